"""Properties of captured branches and loops that decide the functions that they become."""

import pytest

from dumpsim.core.abstract import ScalarType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Control, Graph, Node, Parameter
from dumpsim.graph.mindspore import capturedflow

KINDS = [TensorType(dtype=dtype("float32"), shape=(size,)) for size in (1, 2, 3, 4)]
KIND = KINDS[1]
X, Y, Z = (Parameter(name=name, abstract=KIND) for name in "xyz")
W = Parameter(name="w", abstract=KIND, is_weight=True)


def node(op_type, *operands, kind=KIND, **more):
    return Node(op_type=op_type, operands=list(operands), abstract=kind, **more)


def bundle(*operands, **more):
    return node("MakeTuple", *operands, kind=TupleType(items=tuple(value.abstract for value in operands)), **more)


def item(source, at):
    return node("TupleGetItem", source, constant(at))


def branch(*outputs, results=None, inside=(), operands=(X,), **control):
    """A branch whose sides return these values."""
    blocks = tuple(Graph(output=bundle(*outputs), results=results, trail=list(inside)) for _ in range(2))
    kind = TupleType(items=tuple(KINDS[: len(outputs)]))
    return node("If", *operands, kind=kind, blocks=blocks, control=Control(**control))


def loop(trails, count=3):
    parameters = [[Parameter(name=f"v{at}", abstract=KIND) for at in range(count)] for _ in trails]
    graphs = []
    for own, trail in zip(parameters, trails, strict=True):
        graph = Graph(parameters=own)
        for used in trail:
            graph.trail.append(node("Add", *(own[at] for at in used)))
        graphs.append(graph)
    return graphs


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        ([], [], [0, 1, 2]),
        ([[2]], [], [2, 0, 1]),
        ([], [[1, 0]], [1, 0, 2]),
        ([[2]], [[1, 2], [0]], [2, 1, 0]),
        ([[1], [1, 0]], [[2]], [1, 0, 2]),
    ],
)
def test_variables_come_in_the_order_of_their_first_use(head, body, expected):
    assert capturedflow.by_first_use(*loop([head, body])) == expected


def test_variables_that_inner_blocks_use_count_where_these_stand():
    head, body = loop([[], [[0]]])
    inside = Graph(trail=[node("Exp", body.parameters[2])])
    body.trail.insert(0, node("If", body.parameters[1], blocks=(inside, Graph())))
    assert capturedflow.by_first_use(head, body) == [1, 2, 0]


def invoke(count=2):
    return node("Invoke", X, kind=TupleType(items=tuple(KINDS[:count])))


def test_a_bundle_of_all_results_of_a_call_in_order_is_the_call():
    call = invoke()
    first, second = item(call, 0), item(call, 1)
    assert capturedflow.whole_call(bundle(first, second)) is call
    for others in ((second, first), (first, first), (first, second, first), (first,), (first, X), (X, first)):
        assert capturedflow.whole_call(bundle(*others)) is None
    assert capturedflow.whole_call(X) is None
    assert capturedflow.whole_call(node("Exp", first, second)) is None
    three = invoke(3)
    assert capturedflow.whole_call(bundle(item(three, 0), item(three, 1))) is None
    assert capturedflow.whole_call(bundle(first, item(three, 1))) is None
    assert capturedflow.whole_call(bundle(first, second, item(three, 0))) is None
    other = node("Split", X, kind=call.abstract)
    assert capturedflow.whole_call(bundle(item(other, 0), item(other, 1))) is None


@pytest.mark.parametrize(
    ("control", "expected"),
    [
        ({"returns": True}, True),
        ({}, False),
        ({"returns": True, "backward": X}, False),
        ({"returns": True, "results": 1}, False),
        ({"returns": True, "operands": (X, Y)}, False),
    ],
)
def test_a_branch_that_the_function_returns_is_such_a_call(control, expected):
    call = branch(X, Y, **control)
    output = bundle(item(call, 0), item(call, 1))
    assert (capturedflow.whole_call(output) is call) is expected


def test_parts_and_their_places():
    call = invoke()
    part = item(call, 1)
    assert capturedflow.is_part(part, call)
    assert not capturedflow.is_part(part, invoke())
    assert not capturedflow.is_part(node("Exp", call), call)
    assert capturedflow.place_of(part) == 1


def test_code_that_only_calls_the_header_is_trivial():
    call = invoke()
    start = node("While", X)
    assert capturedflow.is_trivial([item(call, 0), start], X)
    assert not capturedflow.is_trivial([item(call, 0), node("Exp", X), start], X)


def test_code_without_nodes_is_trivial_unless_its_result_reads_a_weight():
    reads = node("Mul", X, W)
    assert capturedflow.is_trivial([], bundle(X, node("Exp", X)))
    assert not capturedflow.is_trivial([], bundle(X, node("Exp", reads)))
    assert capturedflow.is_trivial([item(invoke(), 0)], bundle(W, X))  # it passes the weight on
    assert not capturedflow.is_trivial([], bundle(X, control=Control(dropped=[X, reads])))
    assert capturedflow.is_trivial([], bundle(X, control=Control(dropped=[Y])))


@pytest.mark.parametrize(
    ("more", "expected"),
    [({}, False), ({"backward": X}, True), ({"operands": (X, Y)}, True), ({"results": 1}, True)],
)
def test_a_branch_with_a_gradient_or_that_is_one_is_differentiated(more, expected):
    assert capturedflow.is_differentiated(branch(X, Y, **more)) is expected


def test_a_branch_without_control_is_not_differentiated():
    one = branch(X, Y)
    one.control = None
    assert not capturedflow.is_differentiated(one)


def ordered(read, passed=(), count=3, output=None):
    """A branch after its outputs are sorted: their places before, the places that its parts have, and the node."""
    one = branch(*(X, Y, Z)[:count], kept={0, 2}, passed=list(passed))
    parts = [item(one, at) for at in range(count)]
    rest = [*parts, *(node("Exp", parts[at]) for at in read)]
    values = bundle(*(parts[at] for at in output)) if output is not None else X
    capturedflow.order_outputs(one, rest, values)
    return one, [capturedflow.place_of(part) for part in parts]


@pytest.mark.parametrize(
    ("read", "passed", "output", "order"),
    [
        ([], (), None, [0, 1, 2]),
        ([0, 1], (), None, [0, 1, 2]),
        ([2], (), None, [2, 0, 1]),
        ([1, 2, 1], (), None, [1, 2, 0]),
        ([1], (2,), None, [2, 1, 0]),
        ([1], (), [2, 1], [1, 2, 0]),
        ([], (), [2, 0], [2, 0, 1]),
    ],
)
def test_outputs_come_in_the_order_in_which_they_are_read(read, passed, output, order):
    one, places = ordered(read, passed, output=output)
    assert [(X, Y, Z).index(value) for value in one.blocks[0].output.operands] == order
    assert one.blocks[1].output.operands == one.blocks[0].output.operands
    assert one.abstract == TupleType(items=tuple(KINDS[at] for at in order))
    assert all(block.output.abstract == one.abstract or order == [0, 1, 2] for block in one.blocks)
    assert places == [order.index(at) for at in range(3)]
    assert one.control.kept == {order.index(0), order.index(2)}
    assert one.control.passed == [order.index(at) for at in passed]


def test_the_constant_of_a_part_has_its_value_as_type_too():
    one = branch(X, Y, Z)
    part, other = item(one, 2), item(invoke(3), 2)
    number = ScalarType(dtype=dtype("int64"), value=2)
    part.operands[1] = Constant(value=2, abstract=number)
    capturedflow.order_outputs(one, [part, node("Exp", part), other], X)
    assert part.operands[1].value == 0
    assert part.operands[1].abstract == ScalarType(dtype=dtype("int64"), value=0)
    assert capturedflow.place_of(other) == 2


def test_outputs_of_a_branch_without_control_are_sorted_too():
    one = branch(X, Y)
    one.control = None
    part = item(one, 1)
    capturedflow.order_outputs(one, [part], part)
    assert one.blocks[0].output.operands == [Y, X]


@pytest.mark.parametrize("control", ["If", "While", "Unwind", "Invoke"])
def test_what_a_branch_passes_to_its_gradient(control):
    exp = node("Exp", X)
    for results, expected in ((None, []), (1, [exp, Y]), (2, [Y]), (4, [])):
        block = branch(X, exp, constant(3), Y, results=results, inside=[exp]).blocks[0]
        assert capturedflow.given_to_gradient(block) == expected
        block.trail.append(node(control, X))  # then it makes no function of them
        assert capturedflow.given_to_gradient(block) == []
    assert capturedflow.given_to_gradient(Graph(output=X, results=1)) == []
