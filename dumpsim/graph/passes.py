"""Passes by name that do not belong to a vendor's compiler."""

from dumpsim.core.abstract import TupleType, tensors_of
from dumpsim.graph.compilation import Compilation, Draft, Pass
from dumpsim.graph.custom_gradient import drop_custom_gradients
from dumpsim.graph.graph import Node
from dumpsim.graph.program import Run
from dumpsim.graph.sequence import plain_order

__all__ = ["PASSES"]


def _take_whole(state: Compilation) -> None:
    """Turn a network without control flow into one kernel graph."""
    graph = state.captured
    assert graph.output is not None
    results = len(tensors_of(graph.output.abstract))
    if not isinstance(graph.output, Node):
        abstract = TupleType(items=(graph.output.abstract,))
        graph.output = Node(op_type="MakeTuple", operands=[graph.output], abstract=abstract)
    inputs = sum(not parameter.is_weight for parameter in graph.parameters)
    state.slots = inputs + results
    state.outputs = tuple(range(inputs, state.slots))
    state.steps = (Run(graph=0, arguments=tuple(range(inputs)), results=tuple(range(inputs, state.slots))),)
    state.drafts = [Draft(graph=graph)]


def _number_graphs(state: Compilation) -> None:
    for draft in state.drafts:
        draft.graph.graph_id = state.numbers.graph()
        draft.graph.name = f"kernel_graph{draft.graph.graph_id}"


def _order_plainly(state: Compilation) -> None:
    for draft in state.drafts:
        assert isinstance(draft.graph.output, Node)
        draft.order = plain_order(draft.graph.output)


def _number_named(state: Compilation) -> None:
    """Number graphs that have a name already."""
    for draft in state.drafts:
        draft.graph.graph_id = state.numbers.graph()


def _order_as_given(state: Compilation) -> None:
    """Run kernels in the order given by the front end."""
    for draft in state.drafts:
        needed = {id(node) for node in draft.graph.nodes()}
        draft.order = tuple(node for node in draft.graph.trail if id(node) in needed)


def _number_models(state: Compilation) -> None:
    """Make each kernel graph a model with the graph's name, which the device loads."""
    for draft in state.drafts:
        draft.model_name, draft.model_id = draft.graph.name, state.numbers.model()


PASSES = (
    Pass("drop-custom-gradients", lambda state: drop_custom_gradients(state.captured)),
    Pass("take-whole", _take_whole),
    Pass("number-graphs", _number_graphs),
    Pass("order-plainly", _order_plainly),
    Pass("number-named", _number_named),
    Pass("order-as-given", _order_as_given),
    Pass("number-models", _number_models),
)
