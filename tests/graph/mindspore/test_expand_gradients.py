"""Expansion of gradient nodes to backward passes: nodes, positions and scopes, also for gradients of gradients."""

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.irdoc import SourceLine
from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.graph.builder import constant
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT, custom_gradient
from dumpsim.graph.gradient_builder import Parts
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, text_of
from dumpsim.graph.mindspore.calls import CallStack
from dumpsim.graph.mindspore.expand_gradients import expand_gradients, gradients_of
from dumpsim.graph.mindspore.gradient_node import (
    GRADIENT,
    gradient_node,
    gradient_of,
    outputs_of,
    seed_of,
    wanted_of,
)
from dumpsim.graph.pipeline import PIPELINES, compile_graph
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session

VECTOR = TensorType(dtype=dtype("float32"), shape=(3,))
ONES = constant(np.ones(3, np.float32))
TWOS = constant(np.full(3, 2, np.float32))


def bundle(*values):
    kinds = tuple(value.abstract for value in values)
    return Node(op_type="MakeTuple", operands=list(values), abstract=TupleType(items=kinds))


def taken(net, output, wanted, seed=TWOS, **about):
    """The gradients of an output before the pass."""
    node = gradient_node(output, seed, wanted, **about)
    net.place(node)
    return node, [net.item(node, at) for at in range(len(wanted))]


def types(graph):
    return [node.op_type for node in graph.trail]


def run(net, *arguments):
    session = Session(RunSettings(device="cpu"), environment={})
    program = compile_graph(net.graph, session.ids, find, CompileOptions(target="CPU", release="2.10"))
    return session.execute(program, arguments)


def test_the_backward_pass_stands_where_the_gradient_node_stood(net):
    x = net.input("x", (3,))
    y = net.op("Tanh", x)
    _, (gradient,) = taken(net, y, [x])
    net.give(net.op("Neg", net.op("Exp", gradient)))
    expand_gradients(net.graph, find)
    assert types(net.graph) == ["Tanh", "TanhGrad", "Exp", "Neg"]
    tanh, backward, exp, _ = net.graph.trail
    assert backward.operands[:2] == [tanh, TWOS]
    assert exp.operands == [backward]
    assert backward.scope == "Gradients/Default/Grad_Tanh"


def test_a_gradient_node_keeps_the_structure_of_what_it_differentiates(net):
    x = net.input("x", (3,))
    a, b, c = net.op("Exp", x), net.op("Tanh", x), net.op("Sin", x)
    output = bundle(a, bundle(b, c))
    inner = Parts(abstract=output.abstract.items[1], items=(TWOS, ONES))
    node = gradient_node(output, Parts(abstract=output.abstract, items=(ONES, inner)), [x, a])
    assert node.op_type == GRADIENT
    assert node.operands == [a, b, c, ONES, TWOS, ONES, x, a]
    assert gradient_of(node).outputs == (0, (1, 2))
    whole, seed = outputs_of(node), seed_of(node)
    assert whole.operands[0] is a
    assert whole.operands[1].operands == [b, c]
    assert whole.abstract == output.abstract
    assert seed.items[0] is ONES
    assert seed.items[1].items == (TWOS, ONES)
    assert seed.items[1].abstract == output.abstract.items[1]
    assert wanted_of(node) == [x, a]


def test_a_gradient_has_the_type_of_a_plain_tensor(net):
    w = net.weight("w", np.ones(3, np.float32))
    node = gradient_node(net.op("Exp", w), ONES, [w, constant(1)])
    assert node.abstract.items[0] == VECTOR
    assert node.abstract.items[0].ref_key is None
    assert node.abstract.items[1] == constant(1).abstract


def test_of_a_gradient_of_a_gradient_the_inner_one_comes_first(net):
    x = net.input("x", (3,))
    _, (first,) = taken(net, net.op("Exp", net.op("Mul", x, x)), [x], ONES)
    _, (second,) = taken(net, first, [x], ONES)
    net.give(second)
    start = np.array([0.5, -1, 0.25], np.float32)
    (found,) = run(net, start)
    np.testing.assert_allclose(found, (2 + 4 * start**2) * np.exp(start**2), rtol=1e-5)


def test_values_without_influence_on_the_output_have_zero_gradients(net):
    x, y = net.input("x", (3,)), net.input("y", (3,))
    _, (of_x, of_y) = taken(net, net.op("Exp", x), [x, y])
    sums = net.op("AddN", net.maker.emit("MakeTuple", of_x, of_y))
    expand_gradients(net.graph, find)
    _, zeros = sums.operands[0].operands
    np.testing.assert_array_equal(zeros.value, np.zeros(3, np.float32))


def test_a_separate_backward_pass_returns_none_for_a_missing_gradient(net):
    x, y = net.input("x", (3,)), net.input("y", (3,))
    node = gradient_node(net.op("Tanh", x), TWOS, [x, y], fills=False, nodes=net.graph.trail)
    back = Graph(name="backward")
    found, none = gradients_of(back, node, find, around=(net.graph,))
    assert none is None
    assert types(back) == ["TanhGrad"]
    assert back.trail[0] is found
    assert types(net.graph) == ["Tanh"]
    assert text_of(found).call_scope == text_of(found).block_scope == "Default"


def test_constants_that_a_gradient_gives_are_folded_on(net):
    x = net.input("x", (3,))
    _, (gradient,) = taken(net, net.op("Muls", x, 3.0), [x], ONES)
    product = net.op("Muls", gradient, 2.0)
    net.op("Exp", product)
    expand_gradients(net.graph, find)
    assert types(net.graph) == ["Muls", "Exp"]
    (folded,) = net.graph.trail[1].operands
    assert isinstance(folded, Constant)
    np.testing.assert_array_equal(folded.value, np.full(3, 6, np.float32))


def test_nodes_have_the_source_lines_of_the_gradient(net):
    x = net.input("x", (3,))
    y, z = net.op("Tanh", x), net.op("Tanh", x)
    here, there = (
        SourceLine(path="net.py", line=line, end_line=line, column=0, end_column=1, code="") for line in (1, 2)
    )
    text_of(z).sources = (there,)
    node, (gradient,) = taken(net, net.op("AddN", net.maker.emit("MakeTuple", y, z)), [x])
    text = text_of(node)
    text.sources, text.call_scope, text.block_scope = (here,), "Default/a", "Default/b"
    node.dump_mark = "true"
    text_of(gradient).variable = "grad"
    expand_gradients(net.graph, find)
    made = {node.op_type: node for node in net.graph.trail[4:]}
    assert [node.op_type for node in net.graph.trail[4:]] == ["TanhGrad", "TanhGrad", "MakeTuple", "AddN"]
    assert {text_of(node).sources for node in net.graph.trail[4:6]} == {(here,), (there,)}
    assert {text_of(node).call_scope for node in net.graph.trail[4:]} == {"Default/a"}
    assert {text_of(node).block_scope for node in net.graph.trail[4:]} == {"Default/b"}
    assert {node.dump_mark for node in net.graph.trail[4:]} == {"true"}
    assert text_of(made["AddN"]).variable == "grad"


def test_a_variable_for_a_gradient_that_is_a_value_of_the_net_is_that_of_a_call(net):
    x, w = net.input("x", (3,)), net.op("Exp", net.input("w", (3,)))
    _, (gradient,) = taken(net, net.op("Mul", x, w), [x], ONES)
    text_of(gradient).variable = "grad"
    expand_gradients(net.graph, find)
    assert text_of(w).variable == ""
    assert text_of(w).call_variable == "grad"


def test_the_call_around_a_gradient_has_its_nodes(net):
    x = net.input("x", (3,))
    calls = CallStack("root")
    with calls.calling("f"):
        y = net.op("Tanh", x)
        calls.record(y)
    node, _ = taken(net, y, [x], function=calls.latest(), around=calls.open)
    calls.record(node)
    expand_gradients(net.graph, find)
    assert calls.root.entries[1:] == [net.graph.trail[1]]
    assert net.graph.trail[1].op_type == "TanhGrad"


def test_gradients_inside_of_a_branch_are_expanded_there(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")

    def with_gradient():
        _, (gradient,) = taken(net, net.op("Sin", x), [x], ONES)
        return [gradient]

    found = net.branch(flag, with_gradient, lambda: [net.op("Exp", x)])
    net.give(*found)
    expand_gradients(net.graph, find)
    (control,) = [node for node in net.graph.trail if node.op_type == "If"]
    assert types(control.blocks[0]) == ["Sin", "Cos"]
    assert control.blocks[0].output.operands == [control.blocks[0].trail[1]]


def test_the_gradient_of_a_branch_may_be_a_gradient_node(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    (y,) = net.branch(flag, lambda: [net.op("Exp", x)], lambda: [net.op("Tanh", x)])
    _, (gradient,) = taken(net, y, [x], ONES)
    net.give(gradient)
    start = np.array([0.5, -1, 0.25], np.float32)
    (found,) = run(net, start, np.array(False))
    np.testing.assert_allclose(found, 1 - np.tanh(start) ** 2, rtol=1e-5)


def test_a_rule_of_the_script_may_take_a_gradient(net):
    x = net.input("x", (3,))
    y = net.op("Exp", x)
    with net.block("gradient") as rule:
        given = Parameter(name="", abstract=y.abstract)
        rule.parameters.append(given)
        _, (inner,) = taken(net, net.op("Sin", x), [x], ONES)
        rule.output = bundle(net.op("Mul", given, inner))
    node = custom_gradient([y], [x], rule)
    net.place(node)
    _, (gradient,) = taken(net, net.item(node, 0), [x])
    net.give(gradient)
    expand_gradients(net.graph, find)
    assert [name for name in types(net.graph) if name != CUSTOM_GRADIENT] == [
        "Exp",
        "TupleGetItem",
        "Sin",
        "Cos",
        "Mul",
    ]


def test_an_operator_without_a_gradient_is_named_with_the_place_in_the_script(net):
    x = net.input("x", (2, 3))
    node, _ = taken(net, net.op("GeLUGrad", x, x, x), [x], constant(np.ones((2, 3), np.float32)))
    text_of(node).sources = (SourceLine(path="net.py", line=7, end_line=7, column=0, end_column=1, code=""),)
    with pytest.raises(UnsupportedError, match="'GeLUGrad' has no gradient") as caught:
        expand_gradients(net.graph, find)
    assert caught.value.__notes__ == ["while kernel_graph0 was compiled, in net.py:7"]


def test_every_pipeline_expands_gradients_before_passes_that_change_nodes():
    for name, names in PIPELINES.items():
        if name.startswith("torchair"):  # torch takes gradients itself
            assert "expand-gradients" not in names
            continue
        at = next(at for at, name in enumerate(names) if name in ("expand-gradients", "expand-and-inline-gradients"))
        assert set(names[:at]) <= {"save-captured", "shard"}
        assert "drop-custom-gradients" in names[at + 1 : at + 4]


def test_gradients_of_what_a_loop_gives_are_summed_without_a_scope(net):
    """It is a formal parameter of the code after the loop; a value of that code has its own scope."""
    x, w = net.input("x", (4,)), net.weight("w", np.ones(4, np.float32))
    loop = net.loop(
        {"x": x},
        lambda inside: net.op("Less", net.op("ReduceSum", inside["x"], (), False), np.float32(9)),
        lambda inside: {"x": net.op("Mul", inside["x"], w)},
    )
    value = loop["x"]
    part = net.item(net.op("Split", value, axis=0, output_num=2), 0)
    made = net.op("Exp", value)
    ends = [net.op(op, one) for one in (value, made, part) for op in ("Tanh", "Neg")]
    value.scope, part.scope, made.scope = "Default/loop", "Default/part", "Default/made"
    total = net.op("Add", net.op("Add", ends[0], ends[1]), net.op("Add", ends[2], ends[3]))
    whole = [net.op("ReduceSum", one, (), False) for one in (total, net.op("Add", *ends[4:]))]
    result = net.op("Add", *whole)
    _, found = taken(net, result, [x, w], constant(np.float32(1)))
    net.give(*found)
    expand_gradients(net.graph, find)
    (unwind,) = next(node for node in net.graph.trail if node.op_type == "While").control.unwinds
    _, after, _ = unwind.blocks
    sums = [node for node in after.trail if node.op_type == "AddN"]
    assert sorted(node.scope for node in sums) == [f"Gradients/Default{name}" for name in ("", "/made", "/part")]
