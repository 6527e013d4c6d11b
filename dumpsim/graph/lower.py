"""From a captured network to a program: the passes in their order."""

from collections.abc import Callable, Sequence

from dumpsim.core.irdoc import IrDoc
from dumpsim.core.options import CompileOptions
from dumpsim.graph.conversion import BACKEND_CAST
from dumpsim.graph.custom_gradient import drop_custom_gradients
from dumpsim.graph.ge.layout import lay_out
from dumpsim.graph.ge.streams import schedule
from dumpsim.graph.ge.whole import compile_whole
from dumpsim.graph.graph import Graph, Node, text_of
from dumpsim.graph.mindspore.backend import adapt_to_kernels
from dumpsim.graph.mindspore.cut import cut
from dumpsim.graph.mindspore.document import document, outline
from dumpsim.graph.mindspore.expand import expand_composites
from dumpsim.graph.mindspore.merge import merge_equal
from dumpsim.graph.mindspore.monads import add_monads
from dumpsim.graph.mindspore.naming import Numbers, name_for_files, name_for_text
from dumpsim.graph.mindspore.numbering import function_numbers
from dumpsim.graph.mindspore.simplify import simplify
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.program import KernelGraph, Program
from dumpsim.graph.sequence import kernel_order
from dumpsim.ops.opdef import OpDef

__all__ = ["lower"]


def lower(
    captured: Graph,
    numbers: Numbers,
    find: Callable[[str], OpDef],
    options: CompileOptions,
    saved: Callable[[str, Sequence[IrDoc]], object] | None = None,
) -> Program:
    """Lower a captured network.

    Parameters
    ----------
    captured : Graph
        Parameters, `output` and `trail` as recorded; it is taken over and changed.
    numbers : Numbers
        Counters of the process.
    find : callable
        The definition of an operator type.
    options : CompileOptions
        Which dialect of names.
    saved : callable, optional
        ``saved(stage, documents)`` is told of the graph after each stage.

    Returns
    -------
    Program
    """
    captured = drop_custom_gradients(captured)
    if saved is not None:
        saved("00_bootstrap", outline(captured, find))
    functions = function_numbers(captured)
    captured = expand_composites(add_monads(merge_equal(simplify(captured), find), find), find)
    if saved is not None:
        saved("21_validate", outline(captured, find))
    pieces = cut(captured)
    graphs = [adapt_to_kernels(graph) for graph in pieces.graphs]
    returns = name_for_text(graphs, pieces.functions)
    name_for_files(graphs, numbers.op)
    if options.release == "seed":  # IR, files and `kernels` agree [decisions]
        for graph in graphs:
            for node in graph.nodes():
                text_of(node).full_name = node.full_name
    last_root = max(pieces.roots, default=-1)
    numbers.take(functions.before + (functions.behind if last_root < 0 else 0))
    root_id = -1
    kernel_graphs: list[KernelGraph] = []
    for index, (graph, return_name) in enumerate(zip(graphs, returns, strict=True)):
        graph.graph_id = numbers.graph()
        root_id = graph.graph_id if root_id < 0 else root_id
        graph.name = f"kernel_graph{graph.graph_id}"
        assert isinstance(graph.output, Node)
        is_root = graph.graph_id == root_id
        order = kernel_order(graph.output)
        if options.private_formats and not options.fusion:
            order = lay_out(graph, order, find, options, lambda node: _named(node, numbers))
        doc = document(graph, graph.graph_id, return_name, find=find, number=numbers.cnode, root=index in pieces.roots)
        if is_root:
            for parameter, shown in zip(graph.parameters, doc.params, strict=True):
                parameter.name = parameter.name or shown.use_label  # of a backward pass [observed 2.10]
        if index == last_root:
            numbers.take(functions.behind)
        launches = schedule(order, find, engines=False) if options.target == "Ascend" else ()
        stages: tuple[tuple[str, str], ...] = ()
        if options.fusion:
            whole = compile_whole(graph, find, options)
            order, launches, stages = whole.order, whole.launches, whole.stages
        kernel_graphs.append(
            KernelGraph(
                graph=graph,
                graph_id=graph.graph_id,
                order=order,
                doc=doc,
                is_root=is_root,
                root_graph_id=root_id,
                is_own=index in pieces.roots,
                launches=launches,
                stages=stages,
            )
        )
    if saved is not None:
        for kernel_graph in kernel_graphs:
            saved(f"trace_code_graph_{kernel_graph.graph_id}", [kernel_graph.doc])
    return Program(
        kernel_graphs=tuple(kernel_graphs),
        steps=pieces.steps,
        inputs=tuple(p for p in captured.parameters if not p.is_weight),
        outputs=pieces.outputs,
        slots=pieces.slots,
        stacks=pieces.stacks,
        name=captured.name,
    )


def _named(node: Node, numbers: Numbers) -> None:
    """Name a conversion that the backend inserts: ``Default/TransData-op12``."""
    text = node.text = NodeText(is_backend=True)
    if node.definition is not None:
        node.full_name = text.full_name = f"Default/{node.op_type}-op{numbers.op('Default', node.op_type)}"
    if node.definition is BACKEND_CAST:
        text.attrs["is_backend_cast"] = True
