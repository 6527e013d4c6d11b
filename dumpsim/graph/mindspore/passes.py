"""MindSpore's passes by name: from a captured network to kernel graphs with names and IR documents."""

from collections.abc import Callable

from dumpsim.graph.compilation import Compilation, Draft, OperatorNumbers, Pass
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Graph, Node, text_of
from dumpsim.graph.mindspore.actors import MOST_ACTORS, launch_order
from dumpsim.graph.mindspore.backend import adapt_to_kernels
from dumpsim.graph.mindspore.closures import lift_closures
from dumpsim.graph.mindspore.cut import cut
from dumpsim.graph.mindspore.document import document, outline
from dumpsim.graph.mindspore.enforce import enforce_order
from dumpsim.graph.mindspore.expand import expand_composites
from dumpsim.graph.mindspore.expand_gradients import expand_gradients, order_branches
from dumpsim.graph.mindspore.funcform import FuncForm, analyse_again, number_functions
from dumpsim.graph.mindspore.funcgraph import FuncGraph
from dumpsim.graph.mindspore.functions import made_functions
from dumpsim.graph.mindspore.gradient_node import GRADIENT
from dumpsim.graph.mindspore.handout import hand_out_gradients
from dumpsim.graph.mindspore.loads import merge_loads
from dumpsim.graph.mindspore.merge import merge_equal, merge_readers
from dumpsim.graph.mindspore.monads import add_monads
from dumpsim.graph.mindspore.naming import name_for_files, name_for_text, name_later, nodes_in_order
from dumpsim.graph.mindspore.numbering import function_numbers
from dumpsim.graph.mindspore.order import kernel_order, rules_of
from dumpsim.graph.mindspore.partition import listed_nodes
from dumpsim.graph.mindspore.rulefunctions import share_rules
from dumpsim.graph.mindspore.simplify import simplify
from dumpsim.graph.mindspore.unused import drop_unused

__all__ = ["PASSES"]


def _count_functions(state: Compilation) -> None:
    state.functions = function_numbers(state.captured)


def _make_functions(state: Compilation) -> None:
    state.form = made_functions(state.captured)


def _form(state: Compilation) -> FuncForm:
    assert state.form is not None, "the pass make-functions comes first"
    return state.form


def _each(state: Compilation, change: Callable[[FuncGraph], None]) -> None:
    for function in _form(state).functions:
        change(function)


def _cut(state: Compilation) -> None:
    pieces = cut(_form(state))
    state.drafts = [Draft(graph=graph, is_own=at in pieces.roots) for at, graph in enumerate(pieces.graphs)]
    state.steps, state.outputs = pieces.steps, pieces.outputs
    state.slots, state.stacks = pieces.slots, pieces.stacks


def _merge_equal(state: Compilation) -> None:
    """Merge equal nodes, but not in PYNATIVE's forward and backward graphs, which have passed the front end already."""
    if not state.captured.is_continued:
        merge_equal(state.captured, state.find)


def _expand_gradients(state: Compilation, *, shares: bool = True) -> None:
    """Replace gradient nodes by backward passes; for a split network, record the layouts of gradients."""
    order_branches(state.captured)
    nodes = list(everything(state.captured.trail))
    if any(node.op_type in ("If", "While") for node in nodes) and any(node.op_type == GRADIENT for node in nodes):
        drop_unused(state.captured, state.find, before_gradients=True)  # unused variables of loops have no gradients
    tell = None if state.sharding is None else state.sharding.note_gradient
    expand_gradients(state.captured, state.find, tell=tell, shares=shares)


def _name_for_text(state: Compilation) -> None:
    """Name the nodes in the front end's final form.

    The forward and backward graphs that PYNATIVE creates from a ``jit`` function are not compilations of a script: they
    continue the numbers, and their nodes are named in the order of the partition. The forward graph, a second copy of
    the function's graph, was named once before. [spec vendor 4.1; observed 2.10: eleven networks]
    """
    if not state.captured.is_continued:
        state.numbers.texts.clear()
    state.text_numbers = OperatorNumbers(state.numbers.texts)
    root = _form(state).root
    if state.captured.is_named_before or not state.captured.is_continued:
        name_for_text(nodes_in_order(root), state.text_numbers)
    if state.captured.is_continued:
        name_for_text(listed_nodes(root), state.text_numbers)


def _expand(state: Compilation) -> None:
    for draft in state.drafts:
        draft.graph.trail = draft.graph.nodes()
        expand_composites(draft.graph, state.find)


def _name_nodes(state: Compilation) -> None:
    """Name the nodes in IR text and in files; in the release ``seed`` both names are equal. [decisions]"""
    graphs = [draft.graph for draft in state.drafts]
    for draft in state.drafts:
        draft.return_name = name_later(draft.graph, draft.order, state.text_numbers)
    name_for_files(graphs, state.numbers.full_name)
    if state.options.release == "seed":
        for graph in graphs:
            for node in graph.nodes():
                text_of(node).full_name = node.full_name


def _order_kernels(state: Compilation) -> None:
    rules = rules_of(state.options.target, state.options.exec_order)
    for draft in state.drafts:
        assert isinstance(draft.graph.output, Node)
        draft.order = kernel_order(draft.graph.output, rules)
    if len(state.drafts) == 1 and state.options.target == "CPU" and not state.options.memory_reuse:  # with a dump
        (draft,) = state.drafts
        again = launch_order(draft.order) if len(draft.order) <= MOST_ACTORS else draft.order
        draft.repeats = again if again != draft.order else ()


def _document(state: Compilation) -> None:
    """Create the documents of the kernel graphs, and number the nodes without names in order."""
    last = max((at for at, draft in enumerate(state.drafts) if draft.is_own), default=-1)
    state.numbers.take(state.functions.before + (state.functions.after if last < 0 else 0))
    for at, draft in enumerate(state.drafts):
        graph = draft.graph
        draft.doc = document(
            graph, graph.graph_id, draft.return_name, find=state.find, number=state.numbers.cnode, root=draft.is_own
        )
        if at == 0:
            for parameter, shown in zip(graph.parameters, draft.doc.params, strict=True):
                parameter.name = parameter.name or shown.use_label  # of a backward pass [observed 2.10]
        if at == last:
            state.numbers.take(state.functions.after)


def _save(state: Compilation, stage: str) -> None:
    if state.saved is not None:
        state.saved(stage, outline(state.captured, state.find))


def _save_functions(state: Compilation, stage: str) -> None:
    if state.saved is not None:
        graphs = [Graph(name=function.name, output=function.output) for function in _form(state).functions]
        state.saved(stage, [document for graph in graphs for document in outline(graph, state.find)])


def _save_kernel_graphs(state: Compilation) -> None:
    for draft in state.drafts if state.saved is not None else ():
        assert state.saved is not None
        assert draft.doc is not None
        state.saved(f"trace_code_graph_{draft.graph.graph_id}", [draft.doc])


PASSES = (
    Pass("expand-gradients", _expand_gradients),
    Pass("expand-and-inline-gradients", lambda state: _expand_gradients(state, shares=False)),
    Pass("save-captured", lambda state: _save(state, "00_bootstrap")),
    Pass("count-functions", _count_functions),
    Pass("drop-dead", lambda state: drop_unused(state.captured, state.find)),
    Pass("simplify", lambda state: simplify(state.captured)),
    Pass("merge-equal", _merge_equal),
    Pass("make-functions", _make_functions),
    Pass("share-rules", lambda state: share_rules(_form(state))),
    Pass("add-monads", lambda state: add_monads(_form(state), state.find)),
    Pass("hand-out-gradients", lambda state: hand_out_gradients(_form(state))),
    Pass("merge-loads", lambda state: _each(state, merge_loads)),
    Pass("merge-readers", lambda state: merge_readers(_form(state), state.find)),
    Pass("number-functions", lambda state: number_functions(_form(state), state.numbers)),
    Pass("lift-closures", lambda state: lift_closures(_form(state))),
    Pass("analyse-again", lambda state: analyse_again(_form(state))),
    Pass("enforce-order", lambda state: _each(state, enforce_order)),
    Pass("name-for-text", _name_for_text),
    Pass("save-validated", lambda state: _save_functions(state, "21_validate")),
    Pass("cut", _cut),
    Pass("expand-composites", _expand),
    Pass("adapt-to-kernels", lambda state: [adapt_to_kernels(draft.graph) for draft in state.drafts]),
    Pass("name-nodes", _name_nodes),
    Pass("order-kernels", _order_kernels),
    Pass("document", _document),
    Pass("save-kernel-graphs", _save_kernel_graphs),
)
