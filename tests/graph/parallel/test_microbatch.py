"""A batch in parts: which nodes belong to which part, and their order."""

import json
import lzma
from pathlib import Path

import pytest
from graph.parallel.texts import operators_of, texts_of

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.microbatch import accumulators, ends_of, mark_parts, parts_of, run_in_turn

KIND = TensorType(dtype=dtype("float32"), shape=(12, 4))
X, LABEL = (Parameter(name=name, abstract=KIND) for name in ("x", "label"))
W, V = (Parameter(name=name, abstract=KIND, is_weight=True) for name in "wv")


def node(op_type, *operands, scope="Default", attrs=None, primal=None):
    text = NodeText(attrs=attrs or {})
    text.primal.update(primal or {})
    return Node(op_type=op_type, operands=list(operands), abstract=KIND, scope=scope, text=text)


def part(source, begin, count):
    """A slice that states how many parts there are."""
    return node("StridedSlice", source, constant((begin, 0)), constant((begin + 12 // count, 4)), constant((1, 1)),
                attrs={"grad_accu_num": count})  # fmt: skip


@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_slices_state_their_part_and_what_they_lead_to_has_it_too(count):
    slices = [part(X, at * 12 // count, count) for at in range(count)]
    users = [node("Mul", W, one) for one in slices]
    last = [node("Exp", one) for one in users]
    total = node("Add", last[0], last[1])
    apart = node("Neg", X)
    nodes = [*slices, *users, *last, total, apart]
    found = parts_of(nodes)
    for group in (slices, users, last):
        assert [found[id(one)] for one in group] == list(range(count))
    assert found[id(total)] == 0  # that of its first operand
    assert id(apart) not in found


def test_without_such_slices_there_are_no_parts():
    plain = node("StridedSlice", X, constant((6, 0)), constant((12, 4)), constant((1, 1)))
    no_text = Node(op_type="StridedSlice", operands=[X, constant((6, 0))], abstract=KIND)
    other = node("Slice", X, constant((6, 0)), attrs={"grad_accu_num": 2})
    assert parts_of([plain, no_text, other, node("Exp", plain), node("Exp", other)]) == {}


def test_accumulators_are_weights_with_a_prefix():
    into = Parameter(name="accu_grads.net.w", abstract=KIND, is_weight=True)
    graph = Graph(parameters=[X, W, into, Parameter(name="accu_grads.x", abstract=KIND)])
    assert accumulators(graph) == {"net.w": into}
    assert accumulators(Graph(parameters=[X, W])) == {}


def test_the_nodes_that_sum_the_parts_are_marked():
    end, other = node("Add", X, X, attrs={"forward_end": 0}), node("Add", X, X)
    assert ends_of([end, other, Node(op_type="Add", operands=[], abstract=KIND)]) == {id(end)}


def marks(one):
    return dict(one.text.primal)


def test_the_first_operator_with_a_weight_ends_the_backward_pass_of_each_part():
    slices = [part(source, at * 6, 2) for source in (X, LABEL) for at in range(2)]
    data = [node("Exp", one) for one in slices[:2]]
    first = [node("Mul", one, W) for one in data]
    second = [node("Mul", one, V) for one in first]
    again = [node("Mul", one, W, scope="Default/again") for one in second]
    other = [node("Add", one, W) for one in again]
    nodes = [*slices, *(one for pair in zip(data, first, second, again, other, strict=True) for one in pair)]
    mark_parts(nodes, parts_of(nodes))
    for at in range(2):
        assert marks(slices[at]) == marks(slices[2 + at]) == {"micro": at, "grad_accu_forward_begin": at}
        assert marks(first[at]) == {"micro": at, "grad_accu_backward_end": at}
        assert marks(data[at]) == marks(second[at]) == marks(again[at]) == marks(other[at]) == {"micro": at}


def test_a_reshape_of_a_weight_is_no_such_operator_and_other_nodes_get_no_mark():
    slices = [part(X, at * 6, 2) for at in range(2)]
    shaped = [node("Reshape", W, one) for one in slices]
    through = [node("Mul", one, node("Load", W)) for one in shaped]
    apart = node("Mul", X, V)
    nodes = [apart, *slices, *shaped, *through]
    mark_parts(nodes, parts_of(nodes))
    assert marks(apart) == {}
    assert [marks(one) for one in shaped] == [{"micro": 0}, {"micro": 1}]
    assert [marks(one) for one in through] == [{"micro": at, "grad_accu_backward_end": at} for at in range(2)]


def training(count, *, scope="Gradients/Default"):
    """A forward and a backward node of each part, all forward passes first, and the sum of the gradients."""
    slices = [part(X, at * 12 // count, count) for at in range(count)]
    for at, one in enumerate(slices):
        one.text.primal.update(micro=at, grad_accu_forward_begin=at)
    forward = [node("Mul", one, W, primal={"micro": at}) for at, one in enumerate(slices)]
    backward = [
        node("Neg", one, scope=scope, primal={"micro": at, "grad_accu_backward_end": at})
        for at, one in enumerate(forward)
    ]
    total = node("AddN", *backward, scope=scope)
    return slices, forward, backward, Graph(trail=[*slices, *forward, *backward, total], output=total)


@pytest.mark.parametrize("count", [2, 3])
def test_parts_run_in_turn(count):
    slices, forward, backward, graph = training(count)
    total = graph.output
    assert run_in_turn(graph) is graph
    order = [one for one in graph.trail if one.op_type not in ("Depend", "MakeTuple")]
    assert order == [one for parts in zip(slices, forward, backward, strict=True) for one in parts] + [total]
    assert slices[0].operands[0] is X
    for at in range(1, count):
        waits = slices[at].operands[0]
        assert (waits.op_type, waits.operands[0], waits.abstract) == ("Depend", X, KIND)
        done = waits.operands[1]
        assert (done.op_type, done.operands, done.abstract.items) == ("MakeTuple", [backward[at - 1]], (KIND,))
        assert waits.text.attrs == {"side_effect_propagate": 1}
        assert waits.text.node_attrs == {"grad_accu_reorder2": at - 1}
        assert waits.scope == done.scope == "Default"
        assert graph.trail.index(backward[at - 1]) < graph.trail.index(done) < graph.trail.index(waits)
        assert graph.trail.index(waits) < graph.trail.index(slices[at])


def test_one_wait_is_for_all_ends_of_a_part():
    slices, _, backward, graph = training(2)
    more = node("Exp", X, scope="Gradients/Default", primal={"micro": 0, "grad_accu_backward_end": 0})
    label = part(LABEL, 6, 2)
    label.text.primal.update(micro=1, grad_accu_forward_begin=1)
    graph.trail += [more, label]
    run_in_turn(graph)
    assert slices[1].operands[0].operands[1] is label.operands[0].operands[1]
    assert label.operands[0].operands[0] is LABEL
    assert slices[1].operands[0].operands[1].operands == [backward[0], more]


def test_without_ends_in_the_backward_pass_nothing_waits():
    *_, graph = training(2, scope="Default")
    before = list(graph.trail)
    run_in_turn(graph)
    assert graph.trail == before


def test_nodes_that_wait_for_nothing_come_with_their_part_and_those_of_no_part_after_it():
    _, _, backward, graph = training(2)
    early = node("Exp", X, primal={"micro": 1})
    bare = Node(op_type="Neg", operands=[X], abstract=KIND)
    graph.trail[:0] = [bare, early]
    order = run_in_turn(graph).trail
    assert order.index(backward[0]) < order.index(early)
    assert order.index(backward[0]) < order.index(bare)


RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "mindspore_2_10" / "parallel" / "accumulation.json.xz"


def recorded():
    return json.loads(lzma.decompress(RECORDED.read_bytes()))


@pytest.mark.parametrize("name", recorded())
def test_operators_of_a_step_that_accumulates_gradients(name):
    """All operators with names or strategies, and what is inserted for them, are those of MindSpore 2.10's text."""
    net = recorded()[name]
    # marks of later passes
    real = net["end"].replace("first_parameter_cnode: I32(0), ", "").replace("fusion: U64(1)", "fusion: I64(1)")
    names_weights = "enable_parallel_optimizer" not in net["script"]
    mine = texts_of(net["script"])["end"]
    assert operators_of(mine, names_weights=names_weights) == operators_of(real, names_weights=names_weights)
