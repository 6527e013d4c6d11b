"""Users of values while a graph is rewritten."""

from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.abstract import MonadType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Constant, Graph, Node, Parameter
from dumpsim.graph.mindspore.users import Users, settle

KIND = TensorType(dtype=dtype("float32"), shape=(2,))
X = Parameter(name="x", abstract=KIND)


def node(op_type, *operands):
    return Node(op_type=op_type, operands=list(operands), abstract=KIND)


numbers = st.integers(0, 30)
changes = st.one_of(
    st.tuples(st.just("replace"), numbers, numbers, st.none() | numbers),
    st.tuples(st.just("add"), numbers, numbers),
    st.tuples(st.just("move"), numbers, numbers, numbers),
    st.tuples(st.just("drop"), numbers, st.lists(numbers, max_size=3)),
)


@settings(max_examples=80, deadline=None)
@given(picks=st.lists(st.lists(numbers, max_size=3), min_size=1, max_size=6), steps=st.lists(changes, max_size=8))
def test_users_are_those_whose_operands_a_value_is(picks, steps):
    """In the order in which their edges were made: a list of all edges, rewritten step by step."""
    nodes, values = [], [X]
    for number, own in enumerate(picks):
        nodes.append(node(f"Op{number}", *(values[at % len(values)] for at in own)))
        values.append(nodes[-1])
    graph = Graph(output=nodes[-1], trail=nodes)
    users = Users(graph)
    edges = [[one, at, value] for one in nodes for at, value in enumerate(one.operands)]
    for step in steps:
        one = nodes[step[1] % len(nodes)]
        match step:
            case "replace", first, second, but:
                old, new = values[first % len(values)], values[second % len(values)]
                spared = None if but is None else nodes[but % len(nodes)]
                users.replace(old, new, but=spared)
                gone = [edge for edge in edges if edge[2] is old and edge[0] is not spared]
                edges = [edge for edge in edges if not any(edge is other for other in gone)]
                edges += [[edge[0], edge[1], new] for edge in gone]
            case "add", _, second:
                value = values[second % len(values)]
                edges.append([one, len(one.operands), value])
                users.add(one, value)
            case "move", _, second, third:
                if one.operands:
                    at, new = second % len(one.operands), values[third % len(values)]
                    edges = [edge for edge in edges if not (edge[0] is one and edge[1] == at)]
                    edges.append([one, at, new])
                    users.move(one, at, new)
            case "drop", _, several:
                gone = {id(values[at % len(values)]) for at in several}
                left = [value for value in one.operands if id(value) not in gone]
                edges = [edge for edge in edges if edge[0] is not one]
                edges += [[one, at, value] for at, value in enumerate(left)]
                users.drop(one, [values[at % len(values)] for at in several])
        for value in values:
            assert users.of(value) == [edge[0] for edge in edges if edge[2] is value]
        for each in nodes:
            own = sorted((edge for edge in edges if edge[0] is each), key=lambda edge: edge[1])
            assert each.operands == [edge[2] for edge in own]


def test_a_replaced_output_is_the_new_value():
    one, two = node("Exp", X), node("Neg", X)
    graph = Graph(output=one, trail=[one, two])
    users = Users(graph)
    users.replace(two, X)
    assert graph.output is one
    users.replace(one, two)
    assert graph.output is two


def test_the_result_uses_values_even_if_it_is_not_in_the_program():
    one = node("Exp", X)
    bundle = Node(op_type="MakeTuple", operands=[one, one], abstract=TupleType(items=(KIND, KIND)))
    assert Users(Graph(output=bundle, trail=[one])).of(one) == [bundle, bundle]
    assert Users(Graph(output=bundle, trail=[one, bundle])).of(one) == [bundle, bundle]
    assert Users(Graph(output=X, trail=[one])).of(one) == []
    assert Users(Graph(output=X, trail=[one])).of(node("Neg")) == []


def test_settled_nodes_come_after_their_operands_and_unused_loads_and_tokens_are_dropped():
    token = Constant(value="U", abstract=MonadType(kind="U"))
    load, unused = node("Load", X, token), node("Load", X, token)
    late, early = node("Exp", load), node("Neg", X)
    state, idle = node("UpdateState", token, load), node("UpdateState", token, unused)
    pair, single = node("MakeTuple", early, late), node("MakeTuple", unused)
    outer = node("Sin", X)  # of an enclosing function
    end = node("Depend", pair, state)
    last = node("Add", late, outer)
    graph = Graph(output=end, trail=[late, unused, idle, single, state, pair, early, last, end, load])
    settle(graph)
    assert graph.trail == [load, late, early, last, pair, state, end]
