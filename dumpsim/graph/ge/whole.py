"""GE's compile of a kernel graph that the device takes whole (O2): its passes in their order, and the graph between."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from dumpsim.core.options import CompileOptions
from dumpsim.graph.ge.fuse import fuse
from dumpsim.graph.ge.layout import lay_out
from dumpsim.graph.ge.streams import schedule
from dumpsim.graph.ge.text import STAGES, Stage, wanted_stages
from dumpsim.graph.ge.text import render as render_text
from dumpsim.graph.graph import Graph, Node, definition_of
from dumpsim.graph.program import Launch
from dumpsim.graph.sequence import kernel_order
from dumpsim.ops.opdef import OpDef

__all__ = ["Whole", "compile_whole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A graph as a model: kernels in execution order, tasks, and the text of the stages that were asked for."""

    order: tuple[Node, ...]
    launches: tuple[Launch, ...]
    stages: tuple[tuple[str, str], ...]


def compile_whole(graph: Graph, find: Callable[[str], OpDef], options: CompileOptions) -> Whole:
    """Compile a kernel graph for a device that runs it whole.

    Parameters
    ----------
    graph : Graph
        It is changed: its kernels, their names, and the nodes between them.
    find : callable
        The definition of an operator type.
    options : CompileOptions

    Notes
    -----
    Conversions are named ``trans_TransData_3`` and ``trans_Cast_4``, by one count over the graph in the order of their
    execution. [spec mindspore 3.7]
    """
    assert isinstance(graph.output, Node)
    wanted = wanted_stages(options.ge_graph, options.ge_level)
    texts: list[tuple[str, str]] = []

    def stage(at: Stage, order: tuple[Node, ...], launches: tuple[Launch, ...] = ()) -> None:
        if at in wanted:
            texts.append((at.name, render_text(graph, order, launches, find, detail=options.ge_graph)))

    begin, fused, laid_out, on_streams, built = STAGES
    stage(begin, kernel_order(graph.output))
    order = fuse(graph, find)
    stage(fused, order)
    if options.private_formats:
        count: Counter[str] = Counter()

        def made(node: Node) -> None:
            if node.definition is not None:
                node.full_name = f"trans_{node.op_type}_{count['trans']}"
                count["trans"] += 1

        order = lay_out(graph, order, find, options, made)
    stage(laid_out, order)
    # what only gives its operand another shape has no task
    order = tuple(node for node in order if not definition_of(node, find).view)
    for node in order:
        node.text = None  # the text is of the graph that GE was given; models go by GE's names
    launches = schedule(order, find, engines=options.streams)
    stage(on_streams, order, launches)
    stage(built, order, launches)
    return Whole(order=order, launches=launches, stages=tuple(texts))
