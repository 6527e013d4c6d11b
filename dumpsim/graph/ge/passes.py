"""GE's passes by name: from kernel graphs to models, with the text of every stage that is requested."""

from collections.abc import Callable
from itertools import count

from dumpsim.graph.compilation import Compilation, Pass
from dumpsim.graph.ge.fuse import fuse, fuse_in_order
from dumpsim.graph.ge.layout import lay_out
from dumpsim.graph.ge.streams import schedule
from dumpsim.graph.ge.text import STAGES, Stage, render, wanted_stages
from dumpsim.graph.graph import Node, definition_of

__all__ = ["PASSES"]


def _text(stage: Stage) -> Callable[[Compilation], None]:
    """Return a pass that renders the graphs at a stage."""

    def run(state: Compilation) -> None:
        detail = state.options.ge_graph
        for draft in state.drafts if stage in wanted_stages(detail, state.options.ge_level) else ():
            draft.stages.append(
                (stage.name, render(draft.graph, draft.order, draft.launches, state.find, detail=detail))
            )

    return run


def _fuse(state: Compilation) -> None:
    for draft in state.drafts:
        draft.order = fuse(draft.graph, state.find)


def _fuse_in_order(state: Compilation) -> None:
    for draft in state.drafts if state.options.fusion else ():
        draft.order = fuse_in_order(draft.graph, draft.order, state.find)


def _lay_out(state: Compilation) -> None:
    """Insert conversions, named ``trans_TransData_3`` and ``trans_Cast_4``. [spec mindspore 3.7]

    All conversions of a graph are numbered together, in execution order.
    """
    for draft in state.drafts:
        numbers = count()

        def named(node: Node, numbers: "count[int]" = numbers) -> None:
            if node.definition is not None:
                node.full_name = f"trans_{node.op_type}_{next(numbers)}"

        draft.order = lay_out(draft.graph, draft.order, state.find, state.options, named, agnostic=True)


def _drop_views(state: Compilation) -> None:
    """Remove nodes that only reshape their operand from the order: they have no task."""
    for draft in state.drafts:
        draft.order = tuple(node for node in draft.order if not definition_of(node, state.find).view)
        for node in draft.order:
            node.text = None  # IR text shows the graph before GE's changes; models use GE's names


def _schedule(engines: bool) -> Callable[[Compilation], None]:
    def run(state: Compilation) -> None:
        for draft in state.drafts:
            draft.launches = schedule(draft.order, state.find, engines=engines)

    return run


PASSES = (
    *(Pass(f"text-{stage.name}", _text(stage)) for stage in STAGES),
    Pass("fuse", _fuse),
    Pass("fuse-in-order", _fuse_in_order),
    Pass("lay-out", _lay_out),
    Pass("drop-views", _drop_views),
    Pass("communication-streams", _schedule(engines=False)),
    Pass("engine-streams", _schedule(engines=True)),
)
