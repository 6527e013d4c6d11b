"""The scopes of the gradients of nodes."""

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import NodeMaker
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, text_of
from dumpsim.graph.mindspore.calls import CallStack
from dumpsim.graph.mindspore.gradient_scope import load_scopes, shared_scopes
from dumpsim.ops.table import find

FLAG = TensorType(dtype=dtype("bool"), shape=())
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


def test_primitives_differ_by_attributes():
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


def scopes_of(build):
    """What `captured` finds, by the scope that the nodes were made in."""
    nodes, scopes = captured(build)
    return {node.scope: scopes[id(node)] for node in nodes if node.op_type == "Tanh"}


def test_primitives_of_equal_types_differ_by_attributes():
    x = Parameter(name="x", abstract=TensorType(dtype=dtype("float32"), shape=(2, 2)))
    nodes, calls = [], CallStack("root")
    maker = NodeMaker(find, lambda node: (nodes.append(node), calls.record(node)))
    output = x
    for number, beta in enumerate((1.0, 2.0, 1.0)):
        output = maker.emit("ReduceSum", maker.emit("Softsign", output), (), True)
        output = maker.emit("Add", x, output)
        nodes[-3].attrs = {"beta": [beta, {"b": number % 2}]}
        nodes[-3].scope = f"Default/{number}"
    scopes = shared_scopes(calls.root, [output], nodes, find)
    found = [scopes[id(node)] for node in nodes if node.op_type == "Softsign"]
    assert found == ["Default/2", "Default/1", "Default/2"]


def test_primitives_that_are_defined_by_yaml_have_no_attributes():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        inner = emit("Tanh", x, scope="first")
        inner.attrs = {"number": 1}
        return emit("Tanh", inner, scope="second")

    assert scopes_of(build) == {"first": "second", "second": "second"}


def test_nodes_that_the_result_does_not_need_come_last():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        emit("Tanh", x, scope="unused")
        return emit("Exp", emit("Tanh", x, scope="used"))

    assert scopes_of(build) == {"unused": "used", "used": "used"}


def test_operands_join_in_their_order():
    x = Parameter(name="x", abstract=VECTOR)

    def build(first):
        def build(calls, emit):
            left, right = emit("Tanh", x, scope="left"), emit("Tanh", x, scope="right")
            return emit("Sub", *((left, right) if first == "left" else (right, left)))

        return build

    for first in ("left", "right"):
        assert set(scopes_of(build(first)).values()) == {first}


def test_a_product_with_ones_is_dropped_before_the_gradient_is_taken():
    x = Parameter(name="x", abstract=VECTOR)
    ones = Constant(value=np.ones(2, np.float32), abstract=VECTOR)

    def build(calls, emit):
        product = emit("Mul", x, emit("Exp", x), scope="product")
        return emit("Mul", ones, product, scope="weights of a loss")

    nodes, scopes = captured(build)
    assert scopes[id(nodes[1])] == "product"
    assert scopes[id(nodes[2])] == "product"


def test_a_held_result_delays_inlining():
    x = Parameter(name="x", abstract=VECTOR)

    def build(held):
        def build(calls, emit):
            with calls.calling("left"):
                calls.open.is_held = held
                with calls.calling("inside"):
                    left = emit("Tanh", x, scope="left")
            with calls.calling("right"), calls.calling("inside"):
                right = emit("Tanh", x, scope="right")
            return emit("Add", left, right)

        return build

    assert set(scopes_of(build(held=False)).values()) == {"left"}
    assert set(scopes_of(build(held=True)).values()) == {"right"}


def test_breadth_comes_before_depth():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        deep = emit("Exp", emit("Exp", emit("Tanh", x, scope="deep")))
        return emit("Add", deep, emit("Exp", emit("Tanh", x, scope="shallow")))

    assert set(scopes_of(build).values()) == {"shallow"}


def test_a_call_is_inlined_after_the_nodes_of_its_caller():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        own = emit("Exp", emit("Exp", emit("Tanh", x, scope="own")))
        with calls.calling("f"):
            called = emit("Tanh", x, scope="called")
        return emit("Add", called, own)

    assert set(scopes_of(build).values()) == {"own"}


def test_a_chain_of_calls_is_inlined_from_the_result():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        value = x
        for name in ("a", "b", "c"):
            with calls.calling(name):
                value = emit("Exp", emit("Tanh", value, scope=name))
        return value

    assert scopes_of(build) == dict.fromkeys("abc", "c")


def test_the_rest_after_a_branch_with_an_open_condition_comes_first():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        depth = calls.enter("branch")
        inner = emit("Tanh", x, scope="branch")
        calls.leave_branch(depth, [inner], fixed=False)
        return emit("Tanh", inner, scope="rest")

    assert set(scopes_of(build).values()) == {"rest"}


def test_a_weight_that_is_read_inside_leaves_the_order():
    w = Parameter(name="w", abstract=VECTOR, is_weight=True)

    def build(calls, emit):
        with calls.calling("first"):
            inner = emit("Mul", emit("Tanh", w, scope="first"), w)
        with calls.calling("second"):
            return emit("Mul", emit("Tanh", inner, scope="second"), w)

    assert set(scopes_of(build).values()) == {"second"}


def test_an_unused_call_changes_nothing():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        with calls.calling("unused"):
            emit("Tanh", x, scope="unused")
        with calls.calling("used"):
            return emit("Tanh", x, scope="used")

    assert scopes_of(build) == {"unused": "used", "used": "used"}


def test_only_weights_are_loaded():
    x, w = Parameter(name="x", abstract=VECTOR), Parameter(name="w", abstract=VECTOR, is_weight=True)
    nodes = []
    maker = NodeMaker(find, nodes.append)
    maker.emit("Add", x, w)
    nodes[0].scope = "Default/a"
    assert load_scopes(nodes) == {id(w): "Default/a"}


# -- control flow


def chosen(flag, sides, scope):
    """A branch that gives one tensor; `sides` make its blocks."""
    blocks = []
    for label, build in zip(("then", "else"), sides, strict=True):
        block = Graph(name=label)
        maker = NodeMaker(find, block.trail.append)
        block.output = maker.emit("MakeTuple", build(maker))
        blocks.append(block)
    kind = TupleType(items=(VECTOR,))
    return Node(op_type="If", operands=[flag], abstract=kind, blocks=tuple(blocks), scope=scope)


def lifted(build):
    """Scopes of a function with control flow, by the scope that the nodes were made in."""
    nodes, calls = [], CallStack("root")
    maker = NodeMaker(find, lambda node: (nodes.append(node), calls.record(node)))
    output = build(maker, nodes)
    every = list(everything(nodes))
    scopes = shared_scopes(calls.root, [output], every, find)
    return {node.scope: scopes[id(node)] for node in every if node.op_type == "Tanh"}


def tanh(maker, value, scope):
    made = maker.emit("Tanh", value)
    made.scope = scope
    return made


def test_primitives_of_a_function_come_before_those_of_its_branches():
    x, flag = Parameter(name="x", abstract=VECTOR), Parameter(name="flag", abstract=FLAG)

    def build(maker, nodes):
        before = tanh(maker, x, "before")
        nodes.append(chosen(flag, (lambda m: tanh(m, before, "then"), lambda m: tanh(m, before, "else")), "branch"))
        return maker.emit("TupleGetItem", nodes[-1], 0)

    assert lifted(build) == dict.fromkeys(("before", "then", "else"), "before")


@pytest.mark.parametrize("with_branch", [False, True])
def test_a_branch_does_not_change_the_order_around_it(with_branch):
    # the dense layers of (m(a(x)) * choice).sum() share the scope of m, with a branch before m or without one
    x, flag = Parameter(name="x", abstract=VECTOR), Parameter(name="flag", abstract=FLAG)

    def build(maker, nodes):
        first = tanh(maker, x, "first")
        choice = x
        if with_branch:
            nodes.append(chosen(flag, (lambda m: m.emit("Exp", first), lambda m: m.emit("Neg", first)), "branch"))
            choice = maker.emit("TupleGetItem", nodes[-1], 0)
        return maker.emit("Mul", tanh(maker, first, "last"), choice)

    assert lifted(build) == {"first": "last", "last": "last"}


def test_an_inner_primitive_of_the_library_has_the_scope_of_the_root():
    x = Parameter(name="x", abstract=VECTOR)

    def build(calls, emit):
        flipped = emit("ReverseV2", x, (0,), scope="Default/net")
        text_of(flipped).constant_scope = "Default"
        return emit("Tanh", flipped, scope="Default/net")

    nodes, scopes = captured(build)
    assert [scopes[id(node)] for node in nodes] == ["Default", "Default/net"]


def test_a_branch_that_is_chosen_first_comes_first():
    x, flag = Parameter(name="x", abstract=VECTOR), Parameter(name="flag", abstract=FLAG)

    def build(maker, nodes):
        nodes.append(chosen(flag, (lambda m: tanh(m, x, "then"), lambda m: tanh(m, x, "else")), "branch"))
        return maker.emit("TupleGetItem", nodes[-1], 0)

    assert lifted(build) == {"then": "then", "else": "then"}
