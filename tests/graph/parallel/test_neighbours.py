"""The users of values of a network that is split, and the layout that the first user of a Reshape wants."""

import pytest

from dumpsim.core.abstract import MonadType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Node, Parameter
from dumpsim.graph.parallel.neighbours import next_layout, users_of

KIND = TensorType(dtype=dtype("float32"), shape=(4, 4))
TOKEN = Constant(value="U", abstract=MonadType(kind="U"))
ROWS, COLUMNS, BEFORE = (TensorLayout((2,), axes, (4, 4)) for axes in ((0, -1), (-1, 0), (-1, -1)))
X = Parameter(name="x", abstract=KIND)


def node(op_type, *operands, kind=KIND):
    return Node(op_type=op_type, operands=list(operands), abstract=kind)


def bundle(*operands):
    return node("MakeTuple", *operands, kind=TupleType(items=tuple(value.abstract for value in operands)))


def item(source, at):
    return node("TupleGetItem", source, at if isinstance(at, Constant | Parameter) else constant(at))


def found(reshape, nodes, wanted, before=BEFORE):
    """What the last of the nodes makes the Reshape want; `wanted` by operator and operand."""
    users = users_of([nodes[-1]], nodes)
    known = {(id(one), at): layout for one, at, layout in wanted}
    return next_layout(reshape, users, lambda edge: known.get((id(edge.node), edge.at)), before)


def edges(value, roots, nodes):
    return [(edge.node.op_type, edge.at) for edge in users_of(roots, nodes).get(id(value), [])]


def test_uses_are_found_breadth_first_from_the_results_and_then_in_unused_nodes():
    relu = node("ReLU", X)
    deep = node("Exp", node("Neg", relu))
    both = node("Sub", deep, relu)
    unused, later = node("Tanh", relu), node("Sin", relu)
    nodes = [relu, deep.operands[0], deep, unused, later, both]
    assert edges(relu, [both], nodes) == [("Sub", 1), ("Neg", 0), ("Sin", 0), ("Tanh", 0)]
    assert edges(relu, [None, both], nodes[:3]) == [("Sub", 1), ("Neg", 0)]
    assert edges(X, [both], nodes) == [("ReLU", 0)]


def test_a_node_that_takes_a_value_twice_uses_it_twice():
    square = node("Mul", X, X)
    assert edges(X, [square, square], [square]) == [("Mul", 0), ("Mul", 1)]


def test_the_first_user_with_a_layout_decides():
    reshape = node("Reshape", X)
    one, two = node("ReLU", reshape), node("Exp", reshape)
    total = node("Add", one, two)
    nodes = [reshape, one, two, total]
    assert found(reshape, nodes, [(one, 0, ROWS), (two, 0, COLUMNS)]) == (ROWS, False)
    assert found(reshape, nodes, [(two, 0, COLUMNS)]) == (COLUMNS, False)
    assert found(reshape, nodes, []) == (None, False)
    assert found(reshape, nodes, [(total, 0, ROWS)]) == (ROWS, False)  # through what is not cut
    assert found(reshape, nodes, [(total, 0, ROWS), (total, 1, COLUMNS)]) == (ROWS, False)


def test_another_reshape_ends_the_search_in_its_direction():
    reshape = node("Reshape", X)
    again = node("Reshape", reshape)
    relu = node("ReLU", again)
    assert found(reshape, [reshape, again, relu], [(relu, 0, ROWS)]) == (None, True)
    both = node("Add", relu, node("Exp", reshape))
    nodes = [reshape, again, relu, both.operands[1], both]
    assert found(reshape, nodes, [(relu, 0, ROWS), (both.operands[1], 0, COLUMNS)]) == (COLUMNS, False)


@pytest.mark.parametrize("observer", ["Print", "TensorDump"])
def test_a_value_that_is_observed_first_keeps_the_layout_before(observer):
    reshape = node("Reshape", X)
    shown, relu = node(observer, reshape), node("ReLU", reshape)
    end = node("Depend", relu, shown)
    nodes = [reshape, shown, relu, end]
    assert found(reshape, nodes, [(relu, 0, ROWS)]) == (ROWS, False)  # the operand that comes first is found first
    assert found(reshape, nodes, []) == (BEFORE, False)
    assert found(reshape, nodes, [], before=None) == (None, False)
    assert found(reshape, [shown], [(shown, 0, ROWS)]) == (BEFORE, False)


@pytest.mark.parametrize("op_type", ["Depend", "UpdateState"])
def test_nodes_that_only_wait_for_a_value_do_not_use_it(op_type):
    reshape = node("Reshape", X)
    waits, passes = node(op_type, TOKEN, reshape), node(op_type, reshape, TOKEN)
    for one, expected in ((waits, None), (passes, ROWS)):
        relu = node("ReLU", one)
        assert found(reshape, [reshape, one, relu], [(relu, 0, ROWS)]) == (expected, False)


def test_only_the_item_of_a_tuple_that_holds_the_value_leads_on():
    reshape = node("Reshape", X)
    pair = bundle(X, reshape)
    first, second = item(pair, 0), item(pair, 1)
    one, two = node("ReLU", first), node("Exp", second)
    total = node("Add", one, two)
    nodes = [reshape, pair, first, second, one, two, total]
    assert found(reshape, nodes, [(one, 0, ROWS), (two, 0, COLUMNS)]) == (COLUMNS, False)
    assert found(reshape, [*nodes[:5], one], [(one, 0, ROWS)]) == (None, False)


def test_an_item_with_an_unknown_index_and_items_of_other_tuples_lead_on():
    reshape = node("Reshape", X)
    pair = bundle(X, reshape)
    unknown = item(pair, Parameter(name="at", abstract=KIND))
    relu = node("ReLU", unknown)
    assert found(reshape, [reshape, pair, unknown, relu], [(relu, 0, ROWS)]) == (ROWS, False)
    several = node("Split", reshape, kind=TupleType(items=(KIND, KIND)))
    part = item(several, 1)
    relu = node("ReLU", part)
    assert found(reshape, [reshape, several, part, relu], [(relu, 0, ROWS)]) == (ROWS, False)


def test_a_user_is_visited_once():
    """A tuple that holds the value twice is searched for the item that was found first."""
    reshape = node("Reshape", X)
    pair = bundle(reshape, reshape)
    first, second = item(pair, 0), item(pair, 1)
    one, two = node("ReLU", first), node("Exp", second)
    total = node("Add", two, one)
    nodes = [reshape, pair, first, second, one, two, total]
    assert found(reshape, nodes, [(one, 0, ROWS), (two, 0, COLUMNS)]) == (ROWS, False)
