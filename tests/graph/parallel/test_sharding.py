"""What is recorded about a network that is split: layouts of gradients, and warnings."""

import pytest

from dumpsim.core.abstract import NoneType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import SourceLine
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.shard import shard
from dumpsim.graph.parallel.sharding import Sharding, Slices, mismatch, places_in_parts
from dumpsim.graph.parallel.slices import slices_of
from dumpsim.graph.program import KernelGraph, Program
from dumpsim.ops.table import find

KIND = TensorType(dtype=dtype("float32"), shape=(8, 16))
ROWS = TensorLayout((2, 4), (1, -1), (8, 16))  # dimension 1 has two devices, dimension 0 four
COLUMNS = TensorLayout((2, 4), (-1, 0), (8, 16))
BOTH = TensorLayout((2, 4), (1, 0), (8, 16))


def node(op_type="ReLU", *operands, kind=KIND, **attrs):
    return Node(op_type=op_type, operands=list(operands), abstract=kind, attrs=attrs)


def sharding(**known):
    return Sharding(settings=Settings(device_num=8, rank=0), begin=Graph(), end=Graph(), **known)


def noted(value, **known):
    """The layout of the gradient of a value."""
    found, gradient = sharding(**known), node("Mul")
    found.note_gradient(value, gradient)
    return found.gradients.get(gradient, "unknown")


@pytest.mark.parametrize(
    ("layout", "summed"),
    [
        (ROWS, (0,)),
        (COLUMNS, (1,)),
        (BOTH, ()),
        (TensorLayout((8,), (-1, -1), (8, 16)), (0,)),
        (TensorLayout((2, 1, 4), (2, -1), (8, 16)), (0,)),  # one device along a dimension: nothing to sum
        (TensorLayout((2, 2, 2), ((2, 0), -1), (8, 16)), (1,)),
        (TensorLayout((2, 2, 2), (-1, 1), (8, 16)), (0, 2)),
    ],
)
def test_the_gradient_of_a_value_is_summed_over_its_copies(layout, summed):
    relu = node()
    assert noted(relu, layouts={relu: (layout,)}) == Slices(layout, summed)
    argument = Parameter(name="x", abstract=KIND)
    assert noted(argument, arguments={argument: layout}) == Slices(layout, summed)


def test_the_gradient_of_a_weight_is_already_summed():
    weight = Parameter(name="w", abstract=KIND, is_weight=True)
    assert noted(weight, parameters={"w": ROWS}) == Slices(ROWS)
    assert noted(weight, parameters={"v": ROWS}) == "unknown"
    assert noted(Parameter(name="w", abstract=KIND), parameters={"w": ROWS}) == "unknown"


def test_before_its_mirror_the_gradient_of_a_weight_has_terms():
    for mean, expected in ((False, Slices(COLUMNS, (1,))), (True, "unknown")):
        mirror = node("_MirrorOperator", mirror_user_id="w", mean_flag=mean)
        assert noted(mirror, parameters={"w": COLUMNS}) == expected
        assert noted(mirror) == "unknown"


def test_values_without_a_layout_of_their_own_are_left_out():
    relu, pair = node(), node("Split")
    assert noted(relu) == "unknown"
    assert noted(constant(1.0)) == "unknown"
    assert noted(pair, layouts={pair: (ROWS, ROWS)}) == "unknown"
    found = sharding(layouts={relu: (ROWS,)})
    found.note_gradient(relu, constant(0.0))  # a gradient of zero has no node
    assert found.gradients == {}


def test_a_node_that_is_the_gradient_of_two_values_with_other_layouts_has_none():
    one, two, gradient = node(), node(), node("Mul")
    found = sharding(layouts={one: (ROWS,), two: (COLUMNS,)})
    found.note_gradient(one, gradient)
    found.note_gradient(one, gradient)
    assert found.gradients == {gradient: Slices(ROWS, (0,))}
    found.note_gradient(two, gradient)
    assert found.gradients == {gradient: None}


def product(op_type="MatMul", kind="sum"):
    """A product whose contracted axis four devices cut, and the last node of the communication after it."""
    made, last = node(op_type), node("AllReduce")
    rows = TensorLayout((2, 4), (1, -1), (8, 16))
    inputs = TensorLayout((2, 4), (1, 0), (8, 4)), TensorLayout((2, 4), (0, -1), (4, 16))
    known = {"layouts": {made: (rows,)}, "inputs": {made: inputs}, "reductions": {made: kind}, "reduced": {last: made}}
    return made, last, known


def test_terms_lie_along_the_dimensions_that_cut_a_contracted_axis():
    made, _, known = product()
    assert sharding(**known).terms(made) == (0,)
    other = TensorLayout((8,), (0, -1), (8, 16))  # the layout of an operand over another matrix says nothing
    known["inputs"][made] = (*known["inputs"][made], other)
    assert sharding(**known).terms(made) == (0,)
    known["inputs"] = {}
    assert sharding(**known).terms(made) == ()


def test_the_gradient_of_terms_is_not_summed_over_those_that_hold_them():
    made, last, known = product()
    assert noted(made, **known) == Slices(ROWS)
    assert noted(last, **known) == Slices(ROWS, (0,))
    known["layouts"][made] = (TensorLayout((2, 4), (-1, -1), (8, 16)),)
    known["inputs"][made] = (TensorLayout((2, 4), (-1, 0), (8, 16)),)
    assert noted(made, **known).summed == (1,)


@pytest.mark.parametrize(("op_type", "kind"), [("MatMul", "mean"), ("MatMul", "scatter"), ("Gather", "sum")])
def test_other_results_before_their_communication_have_no_layout(op_type, kind):
    made, last, known = product(op_type, kind)
    assert noted(made, **known) == "unknown"
    assert noted(last, **known) == Slices(ROWS, (0,))


def test_warnings_name_the_side_the_cuts_and_the_operator():
    branch, loop = node("If"), node("While")
    rest = " returns a tensor that is cut in another way than (2, 1), the layout that the network assumes: MindSpore "
    assert mismatch(branch, 0, (2, 1)).startswith(f"the first side of a branch{rest}")
    assert mismatch(branch, 1, (2, 1)).startswith(f"the second side of a branch{rest}")
    assert mismatch(loop, 1, (2, 1)).startswith(f"the body of a loop{rest}")
    assert places_in_parts(node("Argmax"), "Default/Argmax-op0", 4).startswith(
        "Default/Argmax-op0 searches along an axis that is cut into 4 parts: "
    )


@pytest.mark.parametrize(
    ("op_type", "cuts", "warns"),
    [
        ("ArgMaxWithValue", (1, 4), True),
        ("ArgMaxWithValue", (4, 1), False),
        ("ArgMinWithValue", (2, 2), True),
        ("ArgMinWithValue", (2, 1), False),
    ],
)
def test_a_search_along_a_cut_axis_is_noted(op_type, cuts, warns):
    x = Parameter(name="x", abstract=KIND)
    row = TensorType(dtype=dtype("float32"), shape=(8,))
    place = TensorType(dtype=dtype("int32"), shape=(8,))
    text = NodeText(attrs={"in_strategy": (cuts,)})
    search = Node(op_type=op_type, operands=[x, constant(1), constant(False)], abstract=TupleType(items=(place, row)),
                  attrs={"axis": 1, "keep_dims": False}, text=text)  # fmt: skip
    value = Node(op_type="TupleGetItem", operands=[search, constant(1)], abstract=row)
    graph = Graph(name="net", parameters=[x], output=value, trail=[search, value])
    found = shard(graph, Settings(device_num=4, rank=1, dataset_strategy="full_batch"), find)
    expected = f"Default/{op_type}-op0 searches along an axis that is cut into {cuts[1]} parts: the indexes"
    assert [note.startswith(expected) for note in found.notes] == [True] * warns


@pytest.mark.parametrize(("at", "layout"), [(0, ROWS), (1, COLUMNS)])
def test_an_item_of_a_tuple_that_an_optimizer_takes_has_its_own_layout(at, layout):
    kind = TensorType(dtype=dtype("float32"), shape=layout.slice_shape)
    several = node("Split", Parameter(name="x", abstract=KIND), kind=TupleType(items=(kind, kind)))
    item = node("TupleGetItem", several, constant(at), kind=kind)
    taken = Node(op_type="Neg", operands=[item], abstract=kind, full_name="Gradients/Neg-op0")
    graph = KernelGraph(graph=Graph(output=taken), graph_id=3, order=(taken,), doc=None, is_root=True, root_graph_id=3)
    program = Program(
        kernel_graphs=(graph,),
        steps=(),
        inputs=(),
        outputs=(),
        slots=0,
        sharding=sharding(layouts={several: (ROWS, COLUMNS)}),
    )
    (found,) = slices_of(program)
    assert (found.op, found.io, found.slot, found.graph_id) == ("Gradients/Neg-op0", "input", 0, 3)
    assert (found.device_matrix, found.tensor_map) == (layout.device_matrix, layout.tensor_map)


FRAMES = tuple(
    SourceLine(path=f"{name}.py", line=line, end_line=line, column=0, end_column=1, code="")
    for name, line in (("train", 7), ("net", 9))
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (None, ""), (NodeText(), ""), (NodeText(sources=FRAMES[:1]), " (train.py:7)"),
        (NodeText(sources=FRAMES), " (net.py:9)"),
    ],
)  # fmt: skip
def test_remarks_name_the_innermost_line(text, place):
    for op_type, side, what in (
        ("If", 0, "the first side of a branch"), ("If", 1, "the second side of a branch"),
        ("While", 0, "the body of a loop"), ("While", 1, "the body of a loop"),
    ):  # fmt: skip
        one = Node(op_type=op_type, operands=[], abstract=NoneType(), text=text)
        assert mismatch(one, side, (2, 1)).startswith(
            f"{what}{place} returns a tensor that is cut in another way than (2, 1), "
        )
    assert places_in_parts(one, "ArgMax-op3", 4).startswith(
        f"ArgMax-op3{place} searches along an axis that is cut into 4 parts: "
    )
