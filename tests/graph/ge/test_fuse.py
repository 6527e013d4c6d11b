"""Fused operators, their names, and conditions that prevent fusion."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.abstract import MonadType, ScalarType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.ge.fuse import fuse, fuse_in_order
from dumpsim.graph.graph import Node
from dumpsim.graph.sequence import plain_order
from dumpsim.ops.table import find

CONV = {"out_channel": 4, "kernel_size": (3, 3), "pad_mode": "same"}
SCALAR = ScalarType(dtype=dtype("float32"))
NAMES = ("gamma", "beta", "mean", "variance")


def kinds(order):
    return [(node.op_type, node.full_name) for node in order]


def conv(net, x, name="w", channels=4):
    w = net.weight(name, np.ones((4, channels, 3, 3), np.float32))
    return net.op("Conv2D", x, w, **CONV)


def test_convolution_bias_and_activation_are_one_kernel_named_by_all(net):
    x = net.input("x", (2, 3, 8, 8))
    y = net.op("ReLU", net.op("BiasAdd", conv(net, x, channels=3), net.weight("b", np.ones(4, np.float32))))
    net.give(y)
    (fused,) = fuse(net.graph, find)
    assert kinds([fused]) == [("Conv2D", "Default/Conv2D-op0Default/BiasAdd-op0Default/ReLU-op0")]
    assert [member.op_type for member in fused.members] == ["Conv2D", "BiasAdd", "ReLU"]
    assert net.graph.output is fused
    assert [o.name for o in fused.operands if not isinstance(o, Node) and hasattr(o, "name")] == ["x", "w", "b"]


def test_product_bias_and_activation_take_the_librarys_type(net):
    x, w = net.input("x", (2, 3)), net.weight("w", np.ones((3, 4), np.float32))
    y = net.op("BiasAdd", net.op("MatMul", x, w, False, False), net.weight("b", np.ones(4, np.float32)))
    net.give(net.op("ReLU", y), net.op("MatMul", x, w, False, False))
    assert kinds(fuse(net.graph, find)) == [
        ("MatMulV2", "Default/MatMul-op0Default/BiasAdd-op0Default/ReLU-op0"),
        ("MatMulV2", "Default/MatMul-op1"),
    ]


def test_an_intermediate_result_with_other_readers_prevents_fusion(net):
    x = net.input("x", (2, 3, 8, 8))
    middle = conv(net, x, channels=3)
    net.give(net.op("ReLU", middle), middle)
    assert [kind for kind, _ in kinds(fuse(net.graph, find))] == ["Conv2D", "Relu"]


def test_a_mark_for_dumping_is_lost_with_its_operator(net):
    x = net.input("x", (2, 3, 8, 8))
    middle = conv(net, x, channels=3)
    middle.dump_mark = "true"
    net.give(net.op("ReLU", middle))
    (fused,) = fuse(net.graph, find)
    assert fused.dump_mark is None


def test_chains_of_elementwise_operators_end_where_shapes_change(net):
    x, y = net.input("x", (2, 3)), net.input("y", (3,))
    total = net.op("Mul", net.op("Add", net.op("Neg", y), y), x)  # grows to (2, 3) here
    net.give(net.op("Exp", net.op("Abs", total)))
    assert kinds(fuse(net.graph, find)) == [
        ("Neg", "Default/Neg-op0Default/Add-op0"),
        ("Mul", "Default/Mul-op0Default/Abs-op0Default/Exp-op0"),
    ]


def test_an_effect_between_two_operators_keeps_them_apart(net):
    """The second one reads what was written because the first one had run: as one kernel it would wait for itself."""
    x = net.input("x", (2,))
    w = net.weight("w", np.zeros(2, np.float32))
    first = net.op("Neg", x)
    assign = net.op("Assign", w, x)
    assign.operands.append(net.state(first))
    load = Node(op_type="Load", operands=[w, net.state(assign)], abstract=x.abstract)
    net.give(net.op("Add", first, load))
    assert [kind for kind, _ in kinds(fuse(net.graph, find))] == ["Neg", "Assign", "Add"]


def batch_norm(net, x, training):
    params = [net.weight(name, np.ones(4, np.float32)) for name in NAMES]
    return net.op("BatchNorm", x, *params, training, 1e-3, 0.1, 0)


def test_normalisation_after_a_convolution_folds_in_inference_only(net):
    x = net.input("x", (2, 3, 8, 8))
    y = net.item(batch_norm(net, conv(net, x, channels=3), False), 0)
    net.give(net.op("ReLU", y))
    (fused,) = fuse(net.graph, find)
    assert fused.full_name == "Default/Conv2D-op0Default/BatchNorm-op0Default/ReLU-op0"


def test_normalisation_in_training_is_two_kernels_each_way(net):
    x, dy = net.input("x", (2, 4, 8, 8)), net.input("dy", (2, 4, 8, 8))
    norm = batch_norm(net, x, True)
    gamma = norm.operands[1]
    slopes = net.op("BatchNormGrad", dy, x, gamma, *(net.item(norm, at) for at in (3, 4, 2)), True, 1e-3, 0)
    net.give(net.item(norm, 0), *(net.item(slopes, at) for at in range(3)))
    order = fuse(net.graph, find)
    assert sorted(kinds(order)) == [
        ("BNTrainingReduce", "Default/BatchNorm-op0_Reduce"),
        ("BNTrainingReduceGrad", "Default/BatchNormGrad-op0_Reduce"),
        ("BNTrainingUpdate", "Default/BatchNorm-op0_Update"),
        ("BNTrainingUpdateGrad", "Default/BatchNormGrad-op0_Update"),
    ]
    place = {node.op_type: at for at, node in enumerate(order)}
    assert place["BNTrainingReduce"] < place["BNTrainingUpdate"] < place["BNTrainingUpdateGrad"]
    assert place["BNTrainingUpdateGrad"] < place["BNTrainingReduceGrad"]


def evaluate(value, feeds):
    """The values of a graph, by its kernels alone."""
    if not isinstance(value, Node):
        return feeds[value.name] if hasattr(value, "name") else value.value
    if value.op_type == "MakeTuple":
        return tuple(evaluate(o, feeds) for o in value.operands)
    if value.op_type == "TupleGetItem":
        return evaluate(value.operands[0], feeds)[value.operands[1].value]
    if value.op_type == "Depend":
        return evaluate(value.operands[0], feeds)
    key = id(value)
    if key not in feeds:
        definition = value.definition or find(value.op_type)
        feeds[key] = definition.kernel(*(evaluate(o, feeds) for o in value.operands), **definition.attrs, **value.attrs)
    return feeds[key]


@pytest.mark.parametrize("training", [True, False])
def test_the_parts_compute_what_the_whole_does(net, training):
    rng = np.random.default_rng(5)
    x, dy = net.input("x", (2, 4, 8, 8)), net.input("dy", (2, 4, 8, 8))
    norm = batch_norm(net, x, training)
    gamma = norm.operands[1]
    slopes = net.op("BatchNormGrad", dy, x, gamma, *(net.item(norm, at) for at in (3, 4, 2)), training, 1e-3, 0)
    net.give(*(net.item(norm, at) for at in (0, 3, 4)), *(net.item(slopes, at) for at in range(3)))
    feeds = {"x": rng.normal(2, 3, size=(2, 4, 8, 8)), "dy": rng.normal(size=(2, 4, 8, 8))}
    feeds |= {name: rng.uniform(0.5, 2, 4) for name in NAMES}
    before = {name: np.array(value) for name, value in feeds.items()}
    whole = evaluate(net.graph.output, feeds)
    moved = {name: feeds[name] for name in NAMES}
    fuse(net.graph, find)
    feeds = {name: np.array(value) for name, value in before.items()}
    for one, other in zip(whole, evaluate(net.graph.output, feeds), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)
    for name in NAMES:
        np.testing.assert_allclose(feeds[name], moved[name])


@pytest.mark.parametrize("size", [6, 128, 200])
def test_dropout_is_a_mask_of_bits_and_two_uses_of_it(net, size):
    x, dy = net.input("x", (2, size)), net.input("dy", (2, size))
    dropped = net.op("Dropout", x, 0.75, 3, 4)
    slopes = net.op("DropoutGrad", dy, net.item(dropped, 1), keep_prob=0.75)
    net.give(net.item(dropped, 0), slopes)
    values = {"x": np.ones((2, size), np.float32), "dy": np.full((2, size), 3, np.float32)}
    y, mask = find("Dropout").kernel(values["x"], 0.75, 3, 4, counter=0)
    order = fuse(net.graph, find)
    assert kinds(order)[0] == ("DropOutGenMask", "Default/Dropout-op0_GenMask")
    assert sorted(kinds(order)[1:]) == [
        ("DropOutDoMask", "Default/Dropout-op0_DoMask"),
        ("DropOutDoMask", "Default/DropoutGrad-op0_DoMask"),
    ]
    order[0].attrs["counter"] = 0  # the runtime counts
    got = evaluate(net.graph.output, dict(values))
    np.testing.assert_array_equal(got[0], y)
    np.testing.assert_array_equal(got[1], mask * 3 / np.float32(0.75))
    assert order[0].abstract.shape == (-(-2 * size // 128) * 16,)  # blocks of 128 bits


def test_a_mask_that_somebody_reads_keeps_dropout_whole(net):
    dropped = net.op("Dropout", net.input("x", (2, 3)), 0.5, 0, 0)
    net.give(net.item(dropped, 0), net.item(dropped, 1))
    assert kinds(fuse(net.graph, find)) == [("Dropout", "Default/Dropout-op0")]


def test_a_chain_whose_result_another_chain_takes_is_one_kernel_too(net):
    x, w = net.input("x", (2, 4)), net.weight("w", np.ones((4, 4), np.float32))
    y = net.op("Tanh", net.op("Mul", x, x))
    net.give(net.op("ReLU", net.op("MatMul", y, w, False, False)))
    assert [kind for kind, _ in kinds(fuse(net.graph, find))] == ["Mul", "MatMulV2"]


def test_kernels_with_an_order_keep_it(net):
    """A chain runs where its last member did."""
    x = net.input("x", (2, 4))
    first = net.op("Tanh", net.op("Mul", x, x))
    other = net.op("ReduceSum", x, ())
    net.give(first, other)
    mul, tanh = first.operands[0], first
    order = (mul, other, tanh)
    for node in order:
        node.definition = find(node.op_type)
    joined = fuse_in_order(net.graph, order, find)
    assert [node.op_type for node in joined] == ["ReduceSum", "Mul"]
    assert [member.op_type for member in joined[1].members] == ["Mul", "Tanh"]
    assert net.graph.output.operands[0] is joined[1]


# -- fused and unfused graphs compute the same


def run_in_order(order, output, feeds):
    """Run kernels one after the other, like a device: each finds its operands made, and writes weights in place."""
    made = {}

    def value_of(value):
        if not isinstance(value, Node):
            return feeds[value.name] if hasattr(value, "name") else value.value
        if id(value) in made:
            return made[id(value)]
        if value.op_type == "TupleGetItem":
            return value_of(value.operands[0])[value.operands[1].value]
        if value.op_type == "MakeTuple":
            return tuple(map(value_of, value.operands))
        assert value.op_type in ("Depend", "Load"), f"{value.full_name} has not run"
        return value_of(value.operands[0])

    for node in order:
        definition = node.definition or find(node.op_type)
        data = [operand for operand in node.operands if not isinstance(operand.abstract, MonadType)]
        for token in node.operands:
            if isinstance(token.abstract, MonadType):
                assert_has_run(token, made)
        result = definition.kernel(*map(value_of, data), **{**definition.attrs, **node.attrs})
        made[id(node)] = np.array(result) if not isinstance(result, tuple | list) else result
    return [np.array(value_of(one)) for one in output.operands]


def assert_has_run(token, made):
    for before in token.operands if isinstance(token, Node) else ():
        if isinstance(before, Node) and before.op_type == "UpdateState":
            assert_has_run(before, made)
        elif isinstance(before, Node) and before.op_type != "Load":
            assert id(before) in made


UNARY = ("Abs", "Exp", "Neg", "ReLU", "Sigmoid", "Square", "Tanh")
STEPS = st.one_of(
    st.tuples(st.sampled_from(UNARY), st.integers(0, 3)),
    st.tuples(st.sampled_from(["Add", "Maximum", "Mul", "Sub"]), st.integers(0, 3), st.integers(0, 9)),
    st.tuples(st.sampled_from(["MatMul", "BiasAdd", "Assign", "Load", "ReduceSum"]), st.integers(0, 3)),
)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=14), results=st.sets(st.integers(0, 13), max_size=3))
def test_fused_kernels_compute_what_the_single_ones_do(make_net, steps, results):
    """Whatever is fused, also across writes of a weight: values, the weight, and the operators are the same."""
    net = make_net()
    x, w = net.input("x", (3, 3)), net.weight("w", np.zeros((3, 3), np.float32))
    values, token = [x], None
    for kind, *at in steps:
        first = values[-1 - at[0] % len(values)]
        if kind == "MatMul":
            made = net.op("MatMul", first, x, False, False)
        elif kind == "BiasAdd":
            made = net.op("BiasAdd", first, net.weight("b", np.zeros(3, np.float32)))
        elif kind == "ReduceSum":
            made = net.op("ReduceSum", first, (0,), True)
            made = net.op("Add", made, x)
        elif kind == "Load":
            made = Node(op_type="Load", operands=[w, *([token] if token else [])], abstract=x.abstract)
        elif kind == "Assign":
            assign = net.op("Assign", w, first)
            assign.operands.append(net.state(*values[1:], *([token] if token else [])))
            token = net.state(assign)
            continue
        elif kind in UNARY:
            made = net.op(kind, first)
        else:
            made = net.op(kind, first, values[at[1] % len(values)])
        values.append(made)
    last = net.op("ReduceSum", values[-1], (), False)
    if token is not None:
        last = Node(op_type="Depend", operands=[last, token], abstract=last.abstract)
    net.give(last, *(values[at % len(values)] for at in sorted(results)), x)
    rng = np.random.default_rng(3)
    feeds = {name: rng.normal(size=(3,) * (1 + (name != "b"))).astype(np.float32) for name in "xwb"}
    single = plain_order(net.graph.output)
    names = [node.full_name for node in single]
    ours, theirs = ({name: array.copy() for name, array in feeds.items()} for _ in range(2))
    wanted = run_in_order(single, net.graph.output, theirs)
    order = fuse(net.graph, find)
    assert sorted(names) == sorted(
        member.full_name for node in order for member in (node.members or (node,))
    )  # each operator once
    assert all(node.full_name == "".join(one.full_name for one in node.members) for node in order if node.members)
    for found, value in zip(run_in_order(order, net.graph.output, ours), wanted, strict=True):
        np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(ours["w"], theirs["w"])


def chain(net, x, kinds):
    for kind in kinds:
        x = net.op(kind, x, *([net.weight("b", np.ones(4, np.float32))] if kind == "BiasAdd" else []))
    return x


@pytest.mark.parametrize(("count", "sizes"), [(2, [2]), (8, [8]), (9, [8, 1]), (10, [8, 2])])
def test_a_chain_of_elementwise_operators_has_at_most_eight_members(net, count, sizes):
    net.give(chain(net, net.input("x", (2, 4)), ["Abs"] * count))
    assert [max(1, len(node.members)) for node in fuse(net.graph, find)] == sizes


@pytest.mark.parametrize(
    ("tail", "kernels"),
    [
        (["BiasAdd", "ReLU"], [3]),
        (["ReLU"], [2]),
        (["BiasAdd", "BiasAdd"], [2, 1]),  # each kind once
        (["ReLU", "BiasAdd"], [2, 1]),  # and in this order
        (["ReLU", "Tanh"], [2, 1]),
        (["BiasAdd", "ReLU", "Tanh", "Exp"], [3, 2]),
        (["Exp", "ReLU"], [1, 2]),  # not an activation
        (["Softmax"], [1, 1]),
    ],
)
def test_kinds_that_follow_a_product(net, tail, kernels):
    x, w = net.input("x", (2, 3)), net.weight("w", np.ones((3, 4), np.float32))
    net.give(chain(net, net.op("MatMul", x, w, False, False), tail))
    assert [max(1, len(node.members)) for node in fuse(net.graph, find)] == kernels


def test_a_result_taken_second_or_by_two_is_not_fused(net):
    x = net.input("x", (2, 4))
    squared = net.op("Square", x)
    net.give(net.op("Sub", x, squared), net.op("Mul", twice := net.op("Exp", x), twice))
    assert [kind for kind, _ in kinds(fuse(net.graph, find))] == ["Square", "Sub", "Exp", "Mul"]


def test_what_waits_for_a_member_waits_for_the_fused_kernel(net):
    x, w = net.input("x", (2,)), net.weight("w", np.zeros(2, np.float32))
    first = net.op("Neg", x)
    second = net.op("Exp", first)
    assign = net.op("Assign", w, x)
    assign.operands.append(net.state(first))
    net.give(second, assign)
    fused, last = fuse(net.graph, find)
    assert (fused.full_name, last) == ("Default/Neg-op0Default/Exp-op0", assign)
    assert last.operands[2].operands[1] is fused


def test_tokens_of_members_stay_with_the_fused_kernel(net):
    x, w = net.input("x", (2,)), net.weight("w", np.zeros(2, np.float32))
    assign = net.op("Assign", w, x)
    first = net.op("Neg", x)
    first.operands.append(token := net.state(assign))
    net.give(net.op("Add", first, x))
    before, fused = fuse(net.graph, find)
    assert (before, fused.operands) == (assign, [x, x, token])
    feeds = {"x": np.float32([1, 2]), "w": np.float32([0, 0])}
    (result,) = run_in_order((before, fused), bundle(fused), feeds)
    assert (result.tolist(), feeds["w"].tolist()) == ([0, 0], [1, 2])


def bundle(*values):
    return Node(op_type="MakeTuple", operands=list(values), abstract=values[0].abstract)


def test_the_results_of_a_normalisation_other_than_the_first_keep_it_single(net):
    x = net.input("x", (2, 3, 8, 8))
    norm = batch_norm(net, conv(net, x, channels=3), False)
    net.give(net.op("ReLU", net.item(norm, 0)), net.item(norm, 1))
    assert [kind for kind, _ in kinds(fuse(net.graph, find))] == ["Conv2D", "BatchNorm", "Relu"]


def test_a_normalisation_whose_statistics_are_used_is_single_too(net):
    x = net.input("x", (2, 3, 8, 8))
    norm = batch_norm(net, conv(net, x, channels=3), False)
    net.give(net.op("ReLU", net.item(norm, 1)))
    assert [kind for kind, _ in kinds(fuse(net.graph, find))] == ["Conv2D", "BatchNorm", "Relu"]


def test_kernels_of_a_kept_order_are_fused_as_in_any_other(net):
    """A graph with an order of its own: chains at the place of their last member, other kernels where they were."""
    x = net.input("x", (2, 4))
    first = net.op("Tanh", net.op("Mul", x, x))
    other, last = net.op("ReduceSum", x, ()), net.op("Exp", net.op("Neg", first))
    net.give(last, other)
    mul, neg = first.operands[0], last.operands[0]
    order = fuse_in_order(net.graph, (mul, first, other, neg, last), find)
    assert kinds(order) == [
        ("ReduceSum", "Default/ReduceSum-op0"),
        ("Mul", "Default/Mul-op0Default/Tanh-op0Default/Neg-op0Default/Exp-op0"),
    ]


# -- operators in parts, with effects around them


def normalised(net):
    """A normalisation in training and its gradient."""
    x, dy = net.input("x", (2, 4, 8, 8)), net.input("dy", (2, 4, 8, 8))
    norm = batch_norm(net, x, True)
    gamma = norm.operands[1]
    return norm, net.op("BatchNormGrad", dy, x, gamma, *(net.item(norm, at) for at in (3, 4, 2)), True, 1e-3, 0)


def test_a_write_waits_for_both_parts_of_a_gradient_before_it(net):
    norm, slopes = normalised(net)
    assign = net.op("Assign", norm.operands[1], norm.operands[2])
    assign.operands.append(net.state(slopes))
    net.give(net.item(slopes, 1), assign)
    order = [kind for kind, _ in kinds(fuse(net.graph, find))]
    assert order.index("Assign") > max(order.index("BNTrainingUpdateGrad"), order.index("BNTrainingReduceGrad"))


def test_the_gradient_of_a_normalisation_that_is_given_out_whole_stays_whole(net):
    norm, slopes = normalised(net)
    net.give(net.item(norm, 0), slopes)
    assert "BatchNormGrad" in [kind for kind, _ in kinds(fuse(net.graph, find))]


def test_parts_have_the_scope_and_the_name_of_the_whole(net):
    norm, slopes = normalised(net)
    norm.scope, slopes.scope = "Default/net", "Gradients/Default/net"
    norm.dump_mark = slopes.dump_mark = "true"
    net.give(net.item(norm, 0), *(net.item(slopes, at) for at in range(3)))
    shown = {node.op_type: (node.original_name, node.scope, node.dump_mark) for node in fuse(net.graph, find)}
    assert shown == {
        "BNTrainingReduce": ("Default/BatchNorm-op0", "Default/net", None),
        "BNTrainingUpdate": ("Default/BatchNorm-op0", "Default/net", None),
        "BNTrainingUpdateGrad": ("Default/BatchNormGrad-op0", "Gradients/Default/net", None),
        "BNTrainingReduceGrad": ("Default/BatchNormGrad-op0", "Gradients/Default/net", None),
    }


def test_a_normalisation_waits_for_the_writes_before_it(net):
    x, w = net.input("x", (2, 4, 8, 8)), net.weight("w", np.ones(4, np.float32))
    assign = net.op("Assign", w, w)
    norm = batch_norm(net, x, True)
    norm.operands.append(net.state(assign))
    net.give(net.item(norm, 0))
    order = [kind for kind, _ in kinds(fuse(net.graph, find))]
    assert order.index("Assign") < order.index("BNTrainingUpdate")


@pytest.mark.parametrize("change", ["shape unknown", "seed unknown", "taken whole", "mask as a value"])
def test_dropout_stays_whole(net, change):
    x = net.input("x", (-1, 3) if change == "shape unknown" else (2, 3))
    dropped = net.op("Dropout", x, 0.5, net.input("seed", ()) if change == "seed unknown" else 0, 0)
    if change == "taken whole":
        net.give(dropped, x)
    elif change == "mask as a value":
        net.give(net.op("DropoutGrad", net.item(dropped, 1), net.item(dropped, 1), keep_prob=0.5), x)
    else:
        net.give(net.item(dropped, 0), x)
    assert next(kind for kind, _ in kinds(fuse(net.graph, find))) == "Dropout"


def test_a_write_waits_for_dropout(net):
    """The dropout reads the weight."""
    w = net.weight("w", np.ones((2, 3), np.float32))
    dropped = net.op("Dropout", w, 0.5, 0, 0)
    assign = net.op("Assign", w, w)
    assign.operands.append(net.state(dropped))
    net.give(assign, net.item(dropped, 0))
    assert kinds(fuse(net.graph, find)) == [
        ("DropOutGenMask", "Default/Dropout-op0_GenMask"),
        ("DropOutDoMask", "Default/Dropout-op0_DoMask"),
        ("Assign", "Default/Assign-op0"),
    ]


def test_the_gradient_of_dropout_divides_by_its_own_probability(net):
    """Without the attribute by the operator's default, 0.5. [MindSpore: primitive DropoutGrad]"""
    x, dy = net.input("x", (2, 64)), net.input("dy", (2, 64))
    dropped = net.op("Dropout", x, 0.75, 3, 4)
    mask = net.item(dropped, 1)
    net.give(net.op("DropoutGrad", dy, mask, keep_prob=0.25), net.op("DropoutGrad", dy, mask))
    values = {"x": np.ones((2, 64), np.float32), "dy": np.full((2, 64), 3, np.float32)}
    drawn = find("Dropout").kernel(values["x"], 0.75, 3, 4, counter=0)[1]
    order = fuse(net.graph, find)
    order[0].attrs["counter"] = 0
    quarter, half = evaluate(net.graph.output, values)
    np.testing.assert_array_equal(quarter, drawn * 12)
    np.testing.assert_array_equal(half, drawn * 6)


@pytest.mark.parametrize("kind", [SCALAR, TupleType(items=(SCALAR, SCALAR)), TupleType(items=(TupleType(items=()),))])
def test_what_gives_no_tensor_is_not_fused(net, kind):
    x = net.input("x", (2,))
    taker = Node(op_type="Exp", operands=[net.op("Neg", x)], abstract=kind, definition=find("Exp"))
    net.place(taker)
    net.graph.output = taker
    assert fuse_in_order(net.graph, list(net.graph.trail), find) == tuple(net.graph.trail)
