"""Pipelines: the passes that compile a network for a machine, in order.

A pipeline is a list of names of passes, so a front end, a test or another compiler can run any part of it.

Examples
--------
>>> [one.name for one in passes_of("ge")][:4]
['expand-and-inline-gradients', 'drop-custom-gradients', 'take-whole', 'number-graphs']
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.options import CompileOptions
from dumpsim.graph import passes as neutral
from dumpsim.graph.compilation import Compilation, Find, Numbers, Pass, Saver
from dumpsim.graph.conversion import BACKEND_CAST
from dumpsim.graph.ge import passes as ge
from dumpsim.graph.ge.layout import lay_out
from dumpsim.graph.graph import Graph, Node
from dumpsim.graph.mindspore import passes as mindspore
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.microbatch import run_in_turn
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.shard import shard
from dumpsim.graph.parallel.virtual import drop_virtual, with_virtual
from dumpsim.graph.program import Program

__all__ = ["PASSES", "PIPELINES", "WHOLE_GRAPH", "compile_graph", "mindspore_pipeline", "passes_of", "run"]

WHOLE_GRAPH = "whole-graph"


def _shard(state: Compilation) -> None:
    """Split the network over devices, if the parallel mode requires it."""
    if state.parallel is not None:
        state.sharding = shard(
            state.captured,
            state.parallel,
            state.find,
            numbers=state.numbers if state.saved is not None else None,
            release=state.options.release,
        )
        for stage, doc in state.sharding.texts:
            assert state.saved is not None
            state.saved(stage, [doc])
        state.find = with_virtual(state.find)  # for gradients of inserted nodes


def _run_in_turn(state: Compilation) -> None:
    if state.sharding is not None:
        run_in_turn(state.captured)


def _drop_virtual(state: Compilation) -> None:
    if state.sharding is not None:
        drop_virtual(state.captured)


def _private_formats(state: Compilation) -> None:
    """Insert the conversions of chips whose kernels use private formats kernel by kernel, with MindSpore's names."""

    def made(node: Node) -> None:
        text = node.text = NodeText(is_backend=True)
        if node.definition is not None:  # a conversion; the other nodes only split tuples
            node.full_name = text.full_name = state.numbers.full_name("Default", node.op_type)
        if node.definition is BACKEND_CAST:
            text.attrs["is_backend_cast"] = True

    for draft in state.drafts:
        draft.order = lay_out(draft.graph, draft.order, state.find, state.options, made)


PASSES: Mapping[str, Pass] = MappingProxyType(
    {
        one.name: one
        for one in (
            *neutral.PASSES,
            *mindspore.PASSES,
            *ge.PASSES,
            Pass("shard", _shard),
            Pass("run-in-turn", _run_in_turn),
            Pass("drop-virtual", _drop_virtual),
            Pass("private-formats", _private_formats),
        )
    }
)

_KERNEL_GRAPHS = (
    "save-captured",
    "shard",
    "expand-gradients",
    "run-in-turn",
    "drop-virtual",
    "drop-custom-gradients",
    "count-functions",
    "drop-dead",
    "simplify",
    "merge-equal",
    "make-functions",
    "share-rules",
    "add-monads",
    "hand-out-gradients",
    "merge-loads",
    "merge-readers",
    "number-functions",
    "lift-closures",
    "analyse-again",
    "enforce-order",
    "name-for-text",
    "save-validated",
    "cut",
    "expand-composites",
    "adapt-to-kernels",
    "order-kernels",
    "name-nodes",
    "number-graphs",
)
_FUSED = ("number-models", "text-PreRunBegin", "fuse", "text-PreRunAfterOptimizeOriginalGraph")
_BUILT = (
    "text-PreRunAfterOptimizeGraphBeforeBuild",
    "drop-views",
    "engine-streams",
    "text-AfterAssignStream",
    "text-Build",
)
_GE_GRAPH = ("expand-and-inline-gradients", "drop-custom-gradients", "take-whole", "number-graphs", "order-plainly")
_TORCHAIR = ("take-whole", "number-named", "order-as-given", "number-models", "text-PreRunBegin", "fuse-in-order")
PIPELINES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # MindSpore on CPU and GPU
        "kernel-by-kernel": (*_KERNEL_GRAPHS, "document", "save-kernel-graphs"),
        # MindSpore on Ascend at O0 and O1; the second one on chips whose kernels use private formats at these levels
        "ascend": (*_KERNEL_GRAPHS, "document", "communication-streams", "save-kernel-graphs"),
        "ascend-private": (
            *(*_KERNEL_GRAPHS, "private-formats"),
            *("document", "communication-streams", "save-kernel-graphs"),
        ),
        # MindSpore on Ascend at O2
        WHOLE_GRAPH: (*_KERNEL_GRAPHS, "document", *_FUSED, "lay-out", *_BUILT, "save-kernel-graphs"),
        # a graph for GE that is not from MindSpore: it has no IR text
        "ge": (*_GE_GRAPH, *_FUSED, *_BUILT),
        # a graph converted by TorchAir: it has a name and an order
        "torchair": (*_TORCHAIR, *_BUILT),
        # the same two on chips whose kernels use private formats
        "torchair-private": (*_TORCHAIR, "lay-out", *_BUILT),
        "ge-private": (*_GE_GRAPH, *_FUSED, "lay-out", *_BUILT),
    }
)


def mindspore_pipeline(target: str, jit_level: str, *, private_formats: bool) -> str:
    """Return the pipeline of a MindSpore network.

    Examples
    --------
    >>> mindspore_pipeline("Ascend", "O2", private_formats=True), mindspore_pipeline("CPU", "O2", private_formats=False)
    ('whole-graph', 'kernel-by-kernel')
    """
    if target != "Ascend":
        return "kernel-by-kernel"
    if jit_level == "O2":
        return WHOLE_GRAPH
    return "ascend-private" if private_formats else "ascend"


def passes_of(pipeline: str) -> tuple[Pass, ...]:
    """Return the passes of a pipeline, in order.

    Raises
    ------
    BadInputError
        For an unknown pipeline.
    """
    names = PIPELINES.get(pipeline)
    if names is None:
        raise BadInputError(
            f"unknown pipeline {pipeline!r}", allowed=tuple(PIPELINES), nearest=nearest(pipeline, PIPELINES)
        )
    return tuple(PASSES[name] for name in names)


def run(state: Compilation, passes: Iterable[Pass]) -> Compilation:
    """Run passes one after the other."""
    for one in passes:
        one.run(state)
    return state


def compile_graph(
    captured: Graph,
    numbers: Numbers,
    find: Find,
    options: CompileOptions,
    saved: Saver | None = None,
    *,
    parallel: Settings | None = None,
) -> Program:
    """Compile a network by the pipeline of the options.

    Parameters
    ----------
    captured : Graph
        Parameters, `output` and `trail` as captured; it is modified.
    numbers : Numbers
        Counters of the process.
    find : callable
        The definition of an operator type.
    options : CompileOptions
    saved : callable, optional
        ``saved(stage, documents)`` is called with the IR text at each stage.
    parallel : Settings, optional
        Split the network over devices.
    """
    state = Compilation(captured=captured, numbers=numbers, find=find, options=options, saved=saved, parallel=parallel)
    return run(state, passes_of(options.pipeline)).program()
