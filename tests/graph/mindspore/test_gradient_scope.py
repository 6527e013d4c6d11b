"""Which scope the gradient of a node belongs to."""

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import NodeMaker
from dumpsim.graph.graph import Parameter, text_of
from dumpsim.graph.mindspore.calls import CallStack
from dumpsim.graph.mindspore.gradient_scope import load_scopes, shared_scopes
from dumpsim.ops.table import find

VECTOR = TensorType(dtype=dtype("float32"), shape=(2,))


def captured(build):
    """A capture of functions that `build(enter, emit)` calls."""
    nodes, calls = [], CallStack("root")
    maker = NodeMaker(find, lambda node: (nodes.append(node), calls.record(node)))

    def emit(op_type, *operands, scope="Default"):
        before = len(nodes)
        output = maker.emit(op_type, *operands)
        for node in nodes[before:]:
            node.scope = scope
        return output

    output = build(calls, emit)
    return nodes, shared_scopes(calls.root, [output], nodes, find)


def test_equal_primitives_share_the_scope_of_the_one_next_to_the_result():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        with calls.calling("first"):
            inner = emit("Tanh", x, scope="Default/first")
        with calls.calling("second"):
            return emit("Tanh", inner, scope="Default/second")

    nodes, scopes = captured(build)
    assert [scopes[id(node)] for node in nodes] == ["Default/second", "Default/second"]


def test_attributes_tell_primitives_apart():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        first = emit("Concat", (x, x), 0, scope="Default/first")
        other = emit("Tanh", first, scope="Default/tanh")
        return emit("Exp", other, scope="Default/exp")

    nodes, scopes = captured(build)
    operators = [node for node in nodes if node.op_type != "MakeTuple"]
    assert [scopes[id(node)] for node in operators] == ["Default/first", "Default/tanh", "Default/exp"]


def test_a_call_nearer_to_the_result_comes_before_a_deeper_one():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        with calls.calling("left"), calls.calling("inside"):
            left = emit("Tanh", x, scope="Default/left/inside")
        with calls.calling("right"):
            right = emit("Tanh", x, scope="Default/right")
        return emit("Add", left, right)

    nodes, scopes = captured(build)
    assert {scopes[id(n)] for n in nodes if n.op_type == "Tanh"} == {"Default/right"}


def test_the_nodes_of_a_branch_join_before_what_follows_it_is_inlined():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        depth = calls.enter("branch")
        inner = emit("Tanh", x, scope="Default/branch")
        calls.leave_branch(depth, [inner], fixed=True)
        return emit("Tanh", inner, scope="Default/rest")

    nodes, scopes = captured(build)
    assert {scopes[id(node)] for node in nodes} == {"Default/branch"}


def test_the_scope_of_a_load_is_that_of_the_call_around_the_first_reader():
    w = Parameter(name="w", abstract=VECTOR, is_weight=True)
    nodes = []
    maker = NodeMaker(find, nodes.append)
    maker.emit("Exp", w)
    maker.emit("Tanh", w)
    nodes[0].scope, text_of(nodes[0]).block_scope = "Default/a/inner", "Default/a"
    nodes[1].scope = "Default/b"
    assert load_scopes(nodes) == {id(w): "Default/a"}
    assert load_scopes(nodes[1:]) == {id(w): "Default/b"}
