"""MindSpore's passes by name: from a captured network to kernel graphs with names and IR documents."""

from dataclasses import replace

from dumpsim.graph.compilation import Compilation, Draft, Pass
from dumpsim.graph.graph import text_of
from dumpsim.graph.mindspore.backend import adapt_to_kernels
from dumpsim.graph.mindspore.cut import cut
from dumpsim.graph.mindspore.document import document, outline
from dumpsim.graph.mindspore.expand import expand_composites
from dumpsim.graph.mindspore.merge import merge_equal
from dumpsim.graph.mindspore.monads import add_monads
from dumpsim.graph.mindspore.naming import name_for_files, name_for_text
from dumpsim.graph.mindspore.numbering import function_numbers
from dumpsim.graph.mindspore.simplify import simplify

__all__ = ["PASSES"]


def _simplify(state: Compilation) -> None:
    simplify(state.captured)


def _merge_equal(state: Compilation) -> None:
    merge_equal(state.captured, state.find)


def _add_monads(state: Compilation) -> None:
    add_monads(state.captured, state.find)


def _expand_composites(state: Compilation) -> None:
    expand_composites(state.captured, state.find)


def _count_functions(state: Compilation) -> None:
    state.functions = function_numbers(state.captured)


def _cut(state: Compilation) -> None:
    pieces = cut(state.captured)
    state.drafts = [Draft(graph=graph, is_own=at in pieces.roots) for at, graph in enumerate(pieces.graphs)]
    state.steps, state.outputs = pieces.steps, pieces.outputs
    state.slots, state.stacks = pieces.slots, pieces.stacks
    state.functions = replace(state.functions, count=pieces.functions)


def _adapt_to_kernels(state: Compilation) -> None:
    for draft in state.drafts:
        adapt_to_kernels(draft.graph)


def _name_nodes(state: Compilation) -> None:
    """Name the nodes in IR text and in files; the release ``seed`` has one name for both. [decisions]"""
    graphs = [draft.graph for draft in state.drafts]
    for draft, name in zip(state.drafts, name_for_text(graphs, state.functions.count), strict=True):
        draft.return_name = name
    name_for_files(graphs, state.numbers.full_name)
    if state.options.release == "seed":
        for graph in graphs:
            for node in graph.nodes():
                text_of(node).full_name = node.full_name


def _document(state: Compilation) -> None:
    """Write the documents of the kernel graphs; the nodes without names are numbered in their order."""
    last = max((at for at, draft in enumerate(state.drafts) if draft.is_own), default=-1)
    state.numbers.take(state.functions.before + (state.functions.behind if last < 0 else 0))
    for at, draft in enumerate(state.drafts):
        graph = draft.graph
        draft.doc = document(
            graph, graph.graph_id, draft.return_name, find=state.find, number=state.numbers.cnode, root=draft.is_own
        )
        if at == 0:
            for parameter, shown in zip(graph.parameters, draft.doc.params, strict=True):
                parameter.name = parameter.name or shown.use_label  # of a backward pass [observed 2.10]
        if at == last:
            state.numbers.take(state.functions.behind)


def _save_captured(state: Compilation) -> None:
    if state.saved is not None:
        state.saved("00_bootstrap", outline(state.captured, state.find))


def _save_validated(state: Compilation) -> None:
    if state.saved is not None:
        state.saved("21_validate", outline(state.captured, state.find))


def _save_kernel_graphs(state: Compilation) -> None:
    for draft in state.drafts if state.saved is not None else ():
        assert state.saved is not None
        assert draft.doc is not None
        state.saved(f"trace_code_graph_{draft.graph.graph_id}", [draft.doc])


PASSES = (
    Pass("save-captured", _save_captured),
    Pass("count-functions", _count_functions),
    Pass("simplify", _simplify),
    Pass("merge-equal", _merge_equal),
    Pass("add-monads", _add_monads),
    Pass("expand-composites", _expand_composites),
    Pass("save-validated", _save_validated),
    Pass("cut", _cut),
    Pass("adapt-to-kernels", _adapt_to_kernels),
    Pass("name-nodes", _name_nodes),
    Pass("document", _document),
    Pass("save-kernel-graphs", _save_kernel_graphs),
)
