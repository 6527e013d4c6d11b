"""What a call was given: the parts of a dump that say it, and operands as kernels take them."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from smalltree import api, chain, write

import dumpsim
from dumpsim.analysis.operator import operators
from dumpsim.analysis.verdict import Side
from dumpsim.core.abstract import MonadType, ScalarType, TensorType
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import BadInputError, UnreadableError
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, NodeRef, ParamRef
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find
from dumpsim.replay import call as calls
from dumpsim.replay import plan as plans
from dumpsim.replay.call import (
    Absent,
    Call,
    Constant,
    Member,
    _attrs,
    _fits,
    _fitting,
    _like,
    _members,
    _type,
    _type_differs,
    arrange,
    attrs_of,
    bound_by_name,
    call_of,
    definition_of,
    operands_of,
    refusal,
)
from dumpsim.replay.gegraph import GeOp
from dumpsim.replay.irconstant import Unparsable
from dumpsim.replay.plan import machine_of, near, rule, whole_graphs

V = [np.full(2, float(n), np.float32) for n in range(3)]
FLOAT, INT, BOOL = (DTYPES[name] for name in ("float32", "int64", "bool"))
PAIR = TensorType(dtype=FLOAT, shape=(2,))
UMONAD = MonadType(kind="UMonad")


@pytest.fixture
def tree(tmp_path):
    for rank in (0, 1):
        for iteration in (2, 3, 5, 6):
            write(tmp_path, chain(*V), rank=rank, iteration=iteration + 10 * rank)
    return tmp_path


@pytest.mark.parametrize(
    ("rank", "iteration", "shown"), [(0, 2, {2}), (0, 5, {3, 5}), (0, 6, {5, 6}), (1, 13, {12, 13})]
)
def test_what_is_near_a_run_is_its_iteration_and_the_one_before(tree, rank, iteration, shown):
    dump = dumpsim.open(tree)
    (one, _) = operators(dump.filter(rank=rank, iteration=iteration))
    assert {(entry.rank, entry.iteration) for entry in near(dump, one)} == {(rank, number) for number in shown}


def test_everything_is_near_a_run_of_another_tree_and_in_a_file(tree, tmp_path_factory):
    dump = dumpsim.open(tree)
    other = write(tmp_path_factory.mktemp("other"), chain(*V), iteration=99)
    assert near(dump, operators(dumpsim.open(other))[0]) is dump
    file = dumpsim.open(next(tree.rglob("*.npy")))
    assert near(file, operators(file)[0]) is file


def test_graphs_that_cannot_be_read_are_reported_or_raised(tmp_path):
    write(tmp_path, chain(*V))
    (tmp_path / "ge_proto_00000001_graph_1_Build.txt").write_text("graph {")
    with pytest.raises(UnreadableError):
        whole_graphs(dumpsim.open(tmp_path))
    seen = []
    assert whole_graphs(SimpleNamespace(root=tmp_path, broken=seen.append)) == {}
    assert "ends inside a message" in str(seen[0])


@pytest.mark.parametrize("text", ["Conv2D", ":tf32", "Conv2D:", "Conv2D:float3"])
def test_a_rule_is_a_pattern_and_a_type(text):
    with pytest.raises(BadInputError, match=f"compute: {text!r} is not PATTERN:TYPE; allowed: float32"):
        rule(text)


@pytest.mark.parametrize(
    ("name", "machine"),
    [("a.Float32.npy", "cpu"), ("a.Bool.npy", "cpu"), ("a.UInt8.npy", "cpu"), ("a.BFloat16.npy", "cpu"),
     ("a.Complex64.npy", "cpu"), ("a.float32.npy", "device"), ("a.Float32.csv", "device"), ("a.npy", "device")],
)  # fmt: skip
def test_names_of_types_tell_the_machine(tmp_path, name, machine):
    entries = [
        SimpleNamespace(path=None),
        SimpleNamespace(path=tmp_path / "b.npy"),
        SimpleNamespace(path=tmp_path / name),
    ]
    assert machine_of(entries) == machine


def node(index, op_type, *operands, types=(), output=PAIR, **more):
    return IrNode(
        index=index, name=f"CNode_{index}", op_type=op_type, prim_func=False, operands=operands, operand_types=types,
        output=output, full_name=f"Default/{op_type}-op{index}", **more,
    )  # fmt: skip


def const(text, abstract=None):
    return ConstRef(value=text, abstract=abstract or ScalarType(dtype=INT, value=0))


def document(*nodes):
    written = TensorType(dtype=FLOAT, shape=(2,), inplace=True) if hasattr(PAIR, "inplace") else PAIR
    params = tuple(SimpleNamespace(name=name, abstract=kind) for name, kind in (("w", PAIR), ("moved", written)))
    return IrDoc(name="g", graph_id=0, params=params, nodes=nodes)


def ref(index):
    return NodeRef(index=index)


def test_where_an_operand_comes_from():
    doc = document(
        node(0, "Split", ParamRef(index=0)), node(1, "TupleGetItem", ref(0), const("I64(1)")),
        node(2, "Load", ParamRef(index=0), const("UMonad[U]")), node(3, "Depend", ref(1), ref(2)),
        node(4, "TupleGetItem", ref(0), const("same")), node(5, "TupleGetItem", ref(0), const("")),
        node(6, "Load"), node(7, "TupleGetItem", ref(0)),
    )  # fmt: skip
    sources = plans._Sources(SimpleNamespace(operators=[]))
    sources.outputs = {
        "Default/Split-op0": {0: "first", 1: "second"}, "Default/Load-op6": {0: "odd"},
        "Default/TupleGetItem-op7": {0: "none"},
    }  # fmt: skip
    sources.parameters = {"w": "weight", "moved": "written later"}
    found = {
        at: sources.of(operand, doc)
        for at, operand in enumerate([ref(0), ref(1), ref(2), ref(3), ref(4), ref(5), ref(6), ref(7), ref(8), ref(-1)])
    }
    assert found == {
        0: "first", 1: "second", 2: "weight", 3: "second", 4: None, 5: None, 6: "odd", 7: "none", 8: None, 9: None
    }  # fmt: skip
    params = [sources.of(ParamRef(index=at), doc) for at in (0, 1, 2, -1)]
    assert params == ["weight", None, None, None]  # what is written has its value of the end of the step
    assert sources.of(ref(0), None) is None
    assert sources.of(const("I64(1)"), doc) is None


def test_operands_are_those_of_the_kernel():
    doc = document(
        node(0, "MakeTuple", ref(1), ParamRef(index=0), types=(PAIR, PAIR)), node(1, "ReLU", output=PAIR),
        node(2, "UpdateState", output=UMONAD),
    )  # fmt: skip
    axis, monad = const("I64(0)"), const("UMonad[U]")
    one = node(3, "Concat", ref(0), axis, ref(2), monad, const("IOMonad[IO]"), ref(1), types=(PAIR, PAIR))
    assert operands_of(one, doc) == [(ref(1), PAIR), (ParamRef(index=0), PAIR), (axis, PAIR), (ref(1), None)]
    assert operands_of(node(3, "Neg", axis, types=(UMONAD,)), doc) == []
    assert operands_of(one, None)[0] == (ref(0), PAIR)


def side(dtype):
    return SimpleNamespace(dtype=dtype)


@pytest.mark.parametrize(
    ("made", "dumped", "text"),
    [("Float16", "float32", "output.0 is float16 on the device, but float32 in its file"), ("Float16", "float16", ""),
     ("float16", "Float16", ""), ("Float16", "", "")],
)  # fmt: skip
def test_a_file_of_another_type_than_the_kernels_is_doubted(made, dumped, text):
    one = node(0, "Cast", kernel_out=(SimpleNamespace(dtype=made),))
    assert _type_differs(one, [(0, side(dumped)), (1, side("int8"))]) == text
    assert _type_differs(one, [(1, side(dumped))]) == ""
    assert _type_differs(node(0, "Cast"), [(0, side(dumped))]) == ""


def operator(**lists):
    entry = {name: [SimpleNamespace(slot=slot, shape=shape) for slot, shape in found] for name, found in lists.items()}
    return SimpleNamespace(**{"inputs": [], "outputs": [], **entry})


def tensor(*shape):
    return TensorType(dtype=FLOAT, shape=shape)


@pytest.mark.parametrize(
    ("inputs", "outputs", "fits"),
    [
        ([], [], True), ([(0, (4,))], [(0, (2, 3))], True), ([(0, (5,))], [(0, (6,))], False),
        ([(0, (4,))], [(0, (7,))], False), ([(1, (99,))], [(1, (99,))], True), ([(2, (3,))], [], True),
        ([(2, (4,))], [], False), ([(3, (99,))], [(2, (99,))], True),
    ],
)  # fmt: skip
def test_sizes_tell_which_node_a_run_is_of(inputs, outputs, fits):
    """Node: inputs of 2x2, unknown, and 3 elements beside a monad; outputs of 2x3 and unknown."""
    from dumpsim.core.abstract import TupleType

    made = TupleType(items=(tensor(2, 3), tensor(-1, 2)))
    one = node(
        0,
        "X",
        types=(
            UMONAD,
            tensor(2, 2),
            tensor(
                -1,
            ),
            tensor(3),
        ),
        output=made,
    )
    assert _fits(one, operator(inputs=inputs, outputs=outputs)) is fits


def test_members_of_a_fused_operator_have_their_types_from_graphs_or_names():
    ge = {"a_Conv2D-op1": GeOp(name="a_Conv2D-op1", type="Conv2D", inputs=(), attrs={"strides": (1, 1)})}

    def members(op_type, *parts):
        return _members(SimpleNamespace(op_type=op_type, parts=parts), ge)

    assert members("Conv2D", "a_Conv2D-op1", "b_ReLU-op7", "c_BNTrainingReduce", "odd") == (
        Member(op_type="Conv2D", settings={"strides": (1, 1)}), Member(op_type="ReLU"),
        Member(op_type="c_BNTrainingReduce"), Member(op_type="odd"),
    )  # fmt: skip
    assert members("MatMulV2", "x") == (Member(op_type="MatMul"),)
    assert members("BNTrainingReduce", "x") == (Member(op_type="BNTrainingReduce"),)


@pytest.mark.parametrize(
    ("value", "default", "found"),
    [(1, False, True), (0, True, False), (3, 0.5, 3.0), (True, 0.5, True), (3, "same", "3"), ("x", "same", "x"),
     (2.5, 1, 2.5), (None, 1.0, None), (3, 4, 3)],
)  # fmt: skip
def test_a_value_has_the_type_of_its_default(value, default, found):
    assert _like(value, default) == found
    assert type(_like(value, default)) is type(found)


def test_attributes_are_those_of_the_graph_or_missing():
    definition = OpDef(
        name="X", operands=("x",), infer=None, kernel=None, attrs={"axis": -1, "keep": False, "eps": 0.5}
    )
    one = node(0, "X", primitive_attrs=(("keep", "1"), ("eps", "2"), ("other", "3")))
    assert _attrs(definition, one) == ({"axis": -1, "keep": True, "eps": 2.0}, "")
    cut = node(0, "X", primitive_attrs=(("axis", "Tensor(shape=[9], dtype=Int32, value=[...])"),))
    assert _attrs(definition, cut) == ({}, "its attribute axis is a tensor whose elements the graph does not show")
    assert attrs_of(definition, {"keep": 1, "size": 3}) == {"axis": -1, "keep": True, "eps": 0.5}


@pytest.mark.parametrize(
    ("op_type", "reason"),
    [("Add", ""), ("TransData", ""), ("MatMulV2", ""), ("Unheard", "unknown operator type"),
     ("AllReduce", "needs the tensors of other ranks"), ("Dropout", "draws random numbers"),
     ("Print", "reads or writes state that is not in the dump")],
)  # fmt: skip
def test_types_that_are_never_recomputed_say_why(op_type, reason):
    assert refusal(op_type) == reason


X, Y = np.float32([[1, 2]]), np.float32([[3, 4]])
AXIS = np.array(1, np.int64)


def shown(values):
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


@pytest.mark.parametrize(
    ("op_type", "values", "host", "found"),
    [
        ("Add", [X, Y], (), [X, Y]),
        ("ReduceSum", [X, np.int64([0, 1]), np.array(True)], (), [X, (0, 1), True, False]),
        ("ReduceSum", [X, (0,)], (), [X, (0,), False, False]),
        ("Concat", [X, Y, AXIS], (), [(X, Y), 1]),
        ("Concat", [X, Y, 1], (), [(X, Y), 1]),
        ("Concat", [X, Y, AXIS], (False, False, True), [(X, Y), 1]),
        ("Concat", [X, Y, X[0, :1]], (), [(X, Y, X[0, :1]), 0]),  # floats are never an axis
        ("Concat", [np.int64([1, 2]), np.int64([3, 4])], (), [(np.int64([1, 2]), np.int64([3, 4])), 0]),
        ("Add", [X, np.int64([2, 3])], (False, True), [X, (2, 3)]),
        ("Add", [np.int64([2, 3]), X], (True, False), [(2, 3), X]),
        ("Add", [X, np.int64([2, 3])], (False, False), [X, np.int64([2, 3])]),
        ("AddN", [X, Y, X], (), [(X, Y, X)]),
        ("Cast", [X], (), [X, FLOAT]),
        ("Cast", [X, BOOL], (False, True), [X, FLOAT]),
        ("Argmax", [X, AXIS], (), [X, 1, FLOAT]),
    ],
)
def test_operands_are_arranged_as_the_kernel_takes_them(op_type, values, host, found):
    given = arrange(find(op_type), values, host, FLOAT)
    flat = [shown(one) if isinstance(one, tuple) and isinstance(one[0], np.ndarray) else one for one in given]
    wanted = [shown(one) if isinstance(one, tuple) and isinstance(one[0], np.ndarray) else one for one in found]
    assert shown(flat) == shown(wanted)


def test_an_operand_that_is_not_there_and_has_no_default_is_named():
    with pytest.raises(Unparsable, match="has no operand other"):
        arrange(find("Add"), [X], (), FLOAT)
    with pytest.raises(Unparsable, match="has no operand other"):
        bound_by_name(find("Add"), [X], {}, FLOAT)


@pytest.mark.parametrize(
    ("op_type", "values", "settings", "found", "left"),
    [
        ("MatMul", [X, Y, X], {"transpose_b": True}, [X, Y, False, True], 1),
        ("ReduceSum", [X], {"axis": (1,), "keep_dims": True}, [X, (1,), True, False], 0),
        ("ReduceSum", [X, np.int64([1])], {"axis": (0,)}, [X, (1,), False, False], 0),  # the tensor comes first
        ("Cast", [X], {}, [X, FLOAT], 0),
        ("Softmax", [X, Y], {}, [X, (-1,)], 1),
        ("Reshape", [X, np.int64([2, 1])], {}, [X, (2, 1)], 0),
        ("Reshape", [X], {"shape": (2,)}, [X, (2,)], 0),
    ],
)
def test_settings_by_name_and_tensors_in_order(op_type, values, settings, found, left):
    values = list(values)
    assert shown(bound_by_name(find(op_type), values, settings, FLOAT)) == shown(found)
    assert len(values) == left


def test_a_list_of_tensors_is_one_operand_of_a_fused_kernel():
    values = [X, Y]
    ((one, other), axis) = bound_by_name(find("Concat"), values, {"axis": 1}, FLOAT)
    assert (one is X, other is Y, axis, values) == (True, True, 1, [])


def test_definitions_have_the_names_of_both():
    assert definition_of("BNTrainingReduce").name == "BNTrainingReduce"
    assert definition_of("TransData").kernel(X) is X
    assert definition_of("Unheard") is None


def test_the_node_of_a_run_is_the_one_whose_shapes_fit():
    small, large = node(0, "ReLU", output=tensor(2)), node(1, "ReLU", output=tensor(9))

    def fitting(own, *nodes, part=None, name="Default_ReLU-op3", size=2):
        graphs = SimpleNamespace(alike=lambda op_type, stem: list(nodes))
        entry = SimpleNamespace(part=part, graphs=graphs)
        run = operator(outputs=[(0, (size,))])
        return _fitting(SimpleNamespace(entries=[entry], name=name, op_type="ReLU", **vars(run)), own)

    assert fitting(large) == (large, True)
    assert fitting(large, large) == (large, True)  # there is no other one
    assert fitting(None, small) == (small, False)
    assert fitting(None, large) == (None, False)
    assert fitting(small, small, large) == fitting(small, large, small) == (small, True)
    assert fitting(large, large, small) == (small, False)
    assert fitting(large, small, node(2, "ReLU", output=tensor(8))) == (small, False)  # not of this graph
    assert fitting(small, small, large, name="ExpandDims-op3") == (small, False)
    assert fitting(large, small, large, part=object()) == (large, True)
    assert fitting(large, large, size=2) == (large, True)


@pytest.mark.parametrize("op_type", calls._SHAPES)
def test_shapes_of_outputs_are_operands_of_that_name(op_type):
    assert find(op_type).operands[calls._SHAPES[op_type]] in ("shape", "input_size", "input_sizes", "filter_sizes",
                                                              "filter_size")  # fmt: skip


@pytest.mark.parametrize("op_type", sorted(calls._TUPLES))
def test_tuples_of_tensors_come_before_settings(op_type):
    tensors, *rest = arrange(find(op_type), [X, Y], (), FLOAT)
    assert len(tensors) == 2
    assert len(rest) == len(find(op_type).operands) - 1


# -- whole calls


def file(io, slot, *shape, dtype="float32"):
    return Side(
        path=f"/d/{io}.{slot}", binary=False, io=io, slot=slot, format="ND", dtype=dtype, shape=shape, row={"x": slot}
    )


def entry(one, graphs, part=None):
    return SimpleNamespace(
        path=None if one.path is None else Path(one.path), part=part, io=one.io, slot=one.slot, format=one.format,
        name=SimpleNamespace(dtype=one.dtype, op_name="Default_X-op1", shape=one.shape), shape=one.shape,
        row=one.row, graph_id=3, graphs=graphs,
    )  # fmt: skip


def called(op_type, files, own=None, doc=None, ge=None, parts=("a",), **options):
    """The call of an operator with these files, whose node is `own` of a document."""
    graphs = SimpleNamespace(
        node=lambda name, graph: own if (name, graph) == ("Default_X-op1", 3) else None,
        document=lambda found: doc if found is own else None, alike=lambda kind, stem: [],
    )  # fmt: skip
    entries = [entry(one, graphs) for one in files]
    entries[1:] = [SimpleNamespace(**{**vars(one), "graphs": None, "graph_id": None}) for one in entries[1:]]
    run = SimpleNamespace(
        op_type=op_type, name="Default_X-op1", parts=parts, entries=entries,
        inputs=[one for one in entries if one.io == "input"], outputs=[one for one in entries if one.io == "output"],
    )  # fmt: skip
    return call_of(run, ge=ge, **options)


def statistics_only(one):
    return replace(one, path=None)


def test_a_call_has_the_operands_of_its_node_in_order():
    """Constants are those of the graph, except floats and tensors, of which a file has all digits."""
    ones, unknown = tensor(1, 2), tensor(-1, 2)
    doc = document(node(0, "ReLU", output=ones))
    one = node(
        1, "Concat", ref(0), ParamRef(index=0), const("F32(0.1)"), const("F32(0.1)"), const("I64(1)"), const(""),
        const("I64(1)", PAIR), UMONAD, types=(None, unknown, None, None, None, PAIR, PAIR, UMONAD),
        primitive_attrs=(("axis", "1"),), kernel_out=(SimpleNamespace(dtype="Float16"),),
    )  # fmt: skip
    files = [file("input", slot, 2) for slot in (0, 3, 4)] + [file("output", 0, 4), file("output", 1, 4)]
    asked = []
    found = called(
        "Concat", files, one, doc, machine="cpu", compute="tf32",
        find_source=lambda operand, found: asked.append((operand, found is doc)),
    )  # fmt: skip
    assert found == Call(
        op_type="Concat",
        operands=(
            files[0], Absent("input.1 was not dumped"), Constant(float(np.float32(0.1))), files[1], Constant(1),
            Absent("input.5 is a constant that the graph does not show"), Constant(1),
        ),
        host=(False, False, True, True, True, False, False),
        shapes=((1, 2), None, None, None, None, (2,), (2,)),
        attrs=find("Concat").attrs,
        outputs=((0, files[3]), (1, files[4])),
        machine="cpu",
        compute="tf32",
        doubt="output.0 is float16 on the device, but float32 in its file",
    )  # fmt: skip
    assert [where for _, where in asked] == [True] * 4  # what the files do not have
    other = file("output", 7, 2)
    found = called("Concat", files, one, doc, find_source=lambda operand, found: other)
    assert found.operands[1] == other
    assert (found.machine, found.compute) == ("device", "")


@pytest.mark.parametrize("op_type", ["Conv2DBackpropInput", "Conv2DBackpropFilter", "Reshape", "BroadcastTo"])
def test_an_operand_that_is_the_shape_of_the_output_needs_no_file(op_type):
    at = 1 if op_type in ("Reshape", "BroadcastTo") else 2
    one = node(0, op_type, *(ParamRef(index=0) for _ in range(at + 1)), types=(PAIR,) * (at + 1))
    made = [file("output", 0, 3, 2), statistics_only(file("output", 1, 5))]
    files = [*(file("input", slot, 6) for slot in range(at)), *made]
    found = called(op_type, files, one, document())
    assert found.operands == (*files[:at], Constant((3, 2)))
    assert found.outputs == tuple(enumerate(made))
    found = called(op_type, made, one, document())
    assert found.operands == (*(Absent(f"input.{slot} was not dumped") for slot in range(at)), Constant((3, 2)))
    found = called(op_type, [*files[:at], file("input", at, 2), *made], one, document())
    assert found.operands == (*files[:at], file("input", at, 2))


def test_a_call_without_a_node_has_the_operands_of_its_files():
    files = [file("input", 0, 2), file("input", 2, 2), statistics_only(file("input", 3, 2)), file("output", 0, 2)]
    for own in (None, node(0, "Neg", ParamRef(index=0))):  # another operator of this name
        found = called("AddN", files, own, machine="cpu", compute="tf32")
        assert found == Call(
            op_type="AddN", operands=(files[0], Absent("input.1 was not dumped"), files[1]),
            outputs=((0, files[3]),), machine="cpu", compute="tf32", members=(Member(op_type="AddN"),),
        )  # fmt: skip
    assert called("AddN", files[3:]).operands == ()
    ge = {"a": GeOp(name="a", type="Dropout", inputs=(), attrs={})}
    found = called("AddN", files, ge=ge)
    assert found.reason == "draws random numbers"
    assert found.members == (Member(op_type="Dropout", settings={}),)


def test_what_keeps_a_call_from_being_known_is_its_reason():
    out = file("output", 0, 2)
    cut = node(0, "Concat", ParamRef(index=0), primitive_attrs=(("axis", "a" * 70_000),))
    for op_type, files, own, reason in (
        ("Dropout", [out], None, "draws random numbers"), ("ReLU", [file("input", 0, 2)], None, "no output was dumped"),
        ("ReLU", [statistics_only(out)], None, "only statistics were dumped"),
    ):  # fmt: skip
        assert called(op_type, files, own, document()) == Call(op_type=op_type, reason=reason)
    cut = node(0, "MaxPool", ParamRef(index=0), primitive_attrs=(("kernel_size", "a" * 70_000),))
    assert called("MaxPool", [out], cut, document()) == Call(
        op_type="MaxPool", reason="its attribute kernel_size is a long value"
    )


def test_a_cpu_does_not_look_at_nesterov():
    """[2.10 observed]"""
    own = node(0, "ApplyMomentum", ParamRef(index=0), primitive_attrs=(("use_nesterov", "1"),))
    found = {name: called("ApplyMomentum", [file("output", 0, 2)], own, document(), machine=name).attrs
             for name in ("cpu", "device")}  # fmt: skip
    assert {name: attrs["use_nesterov"] for name, attrs in found.items()} == {"cpu": False, "device": True}


def test_files_of_parameters_are_found_by_name_and_those_of_runs_by_slot():
    def run(op_type, name, *outputs):
        return SimpleNamespace(
            op_type=op_type, op_name=name, outputs=[entry(replace(one, slot=at), None) for at, one in outputs]
        )

    one, none = file("output", 0, 2), statistics_only(file("output", 0, 2))
    sources = plans._Sources(
        SimpleNamespace(
            operators=[
                run("Parameter", "w", (0, one)), run("Data", "x", (0, one), (1, none)), run("Parameter", "bare"),
                run("Parameter", "measured", (0, none)), run("ReLU", "y", (0, one)),
                run("Data", "odd", (0, none), (1, one)),
            ]
        )
    )  # fmt: skip
    assert sources.parameters == {"w": one, "x": one}
    sources.ran(run("Split", "z", (0, one), (1, none), (2, one)))
    assert sources.outputs == {"z": {0: one, 2: replace(one, slot=2)}}


def test_what_no_device_runs_is_not_planned(tmp_path):
    data = [("Parameter", "w", [], [X]), ("Data", "x", [], [X]), ("Const", "c", [], [X]), ("NetOutput", "n", [X], [])]
    write(tmp_path, [*data, ("Neg", "Default/Neg-op0", [X], [-X])])
    opened = dumpsim.open(tmp_path)
    assert len(operators(opened)) == 5
    assert [one.operator.op_type for one in plans.plan(opened)] == ["Neg"]


def test_calls_of_an_api_are_planned_with_the_reason_why_they_do_not_run(tmp_path):
    api(tmp_path, [(f"Torch_abs_{n}_forward_{io}", X) for n in (0, 1) for io in ("input.0", "output")])
    found = list(plans.plan(dumpsim.open(tmp_path)))
    assert [(one.operator.api, one.call) for one in found] == [(True, Call(op_type="abs", reason=plans.API))] * 2


@pytest.mark.parametrize("rank", [0, 1])
def test_a_parameter_has_the_value_that_an_earlier_run_of_its_iteration_left(monkeypatch, rank):
    """AssignAdd overwrites its first operand; values of other ranks and iterations are not its own."""
    monkeypatch.setattr(plans, "_parameters", lambda operator: [(0, "w"), (1, "v")])

    def run(iteration, op_type="AssignAdd", number=0, of=rank):
        files = [file("input", 0, number), file("input", 1, number + 10)]
        return SimpleNamespace(
            rank=of, iteration=iteration, op_type=op_type, inputs=[entry(one, None) for one in files]
        ), files  # fmt: skip

    known, call = {}, Call(op_type="AssignAdd")
    first, files = run(4, number=1)
    assert plans._with_earlier_values(first, call, known) is call  # nothing is known before it
    assert known == {(rank, "w"): (4, files[0]), (rank, "v"): (4, files[1])}
    second, _ = run(4, number=2)
    assert plans._with_earlier_values(second, call, known) == replace(call, before={0: files[0]})
    assert plans._with_earlier_values(run(4, "Add", 3)[0], call, known) is call  # overwrites nothing
    assert plans._with_earlier_values(run(4, "Unheard", 3)[0], call, known) is call
    other, _ = run(4, of=7)
    assert plans._with_earlier_values(other, call, known) is call
    plans._end(SimpleNamespace(iteration=4), known)
    assert len(known) == 4
    plans._end(SimpleNamespace(iteration=5), known)
    assert known == {}


def test_the_type_of_an_operand_is_that_of_its_parameter_or_node():
    """A graph may be damaged: places that it does not have have no type."""
    kind, other = (TensorType(dtype=DTYPES[name], shape=(2,)) for name in ("float32", "int8"))
    param = SimpleNamespace(abstract=other)
    node = SimpleNamespace(index=0, output=kind)
    doc = SimpleNamespace(params=(param,), nodes=(node, node))
    assert [_type(ParamRef(index=at), doc) for at in (-1, 0, 1, 2)] == [None, other, None, None]
    assert [_type(NodeRef(index=at), doc) for at in (-1, 0, 1, 2)] == [None, kind, None, None]
    assert _type(ParamRef(index=0), None) is None
