"""Executions of operators: which tensors belong to one, in which series it stands, and what its name says."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from dumpsim.analysis.operator import Operator, numbering, operators, series
from dumpsim.analysis.place import Place

HERE = Place(path=Path("a"))


def entry(name, io="output", slot=0, *, kind="Add", place=HERE, stamp=0, shape=(2,)):
    record = SimpleNamespace(op_type=kind, op_name=name, io=io, slot=slot)
    return SimpleNamespace(name=record, op_type=kind, op_name=name, io=io, slot=slot, place=place, timestamp=stamp,
                           rank=place.rank, iteration=place.iteration, shape=shape, script_line=None)  # fmt: skip


def one(name, kind="Add", api="", **more):
    return Operator(entries=(entry(name, kind=kind, place=Place(path=Path(), api=api)),), order=0, **more)


@pytest.mark.parametrize(
    ("name", "stem", "number", "parts"),
    [
        ("Default/a/Add-op7", "Default_a_Add-op", 7, 1), ("Default_a_Add-op12", "Default_a_Add-op", 12, 1),
        ("Add", "Add", -1, 1), ("NN_Linear_3_forward", "NN_Linear__forward", 3, 1),
        ("NN_Linear_3_backward", "NN_Linear__backward", 3, 1), ("Add_1", "Add_", 1, 1), ("Add-opx", "Add-opx", -1, 1),
        ("Default/A-op1Default/B-op2", "Default_A-op1Default_B-op", 2, 2),
        ("Default/A-op1Default/B-op2Default/C-op3", "Default_A-op1Default_B-op2Default_C-op", 3, 3),
        ("x-op" + "9" * 20, "x-op", int("9" * 18), 1),
    ],
)  # fmt: skip
def test_a_name_has_a_stem_a_number_and_parts(name, stem, number, parts):
    found = one(name)
    assert (found.stem, found.number, len(found.parts)) == (stem, number, parts)
    assert "".join(found.parts) == found.name


def test_parts_of_a_fused_name_are_the_names_of_the_operators():
    assert one("Default/MatMul-op0Default/BiasAdd-op12").parts == ("Default_MatMul-op0", "Default_BiasAdd-op12")


def test_a_word_is_the_operation_or_what_a_map_says():
    assert one("x", "BatchNorm2d").word == one("y", "BatchNorm2d").word
    assert one("x", "Add", meant=("mul",)).word == "mul"
    assert one("x", "Add", meant=("mul", "sum")).word == "=Add"
    assert one("NN_Linear_0_forward", "Linear").call == ("NN", "Linear")


def test_only_a_call_of_an_api_dump_has_a_backward():
    assert one("NN_Linear_0_backward", api="torch").backward
    assert not one("NN_Linear_0_backward").backward
    assert not one("NN_Linear_0_forward", api="torch").backward
    assert [one("x", api=api).api for api in ("torch", "")] == [True, False]


def test_a_tensor_that_comes_again_begins_another_execution():
    entries = [
        entry("a", "input"), entry("b", "input"), entry("a", "output"), entry("a", "input", 1), entry("a", "input"),
        entry("a", "output"), entry("b"), entry("a", "output", kind="Mul"), entry("a", place=Place(path=Path("b"))),
    ]  # fmt: skip
    found = operators(entries)
    assert [(run.op_type, run.op_name, run.order, len(run.entries)) for run in found] == [
        ("Add", "a", 0, 3), ("Add", "b", 1, 2), ("Add", "a", 2, 2), ("Mul", "a", 3, 1), ("Add", "a", 4, 1)
    ]  # fmt: skip
    assert [(len(run.inputs), len(run.outputs)) for run in found] == [(2, 1), (1, 1), (1, 1), (0, 1), (0, 1)]


def test_shapes_leave_out_dimensions_of_one():
    found = Operator(entries=(entry("a", "input", shape=(1, 2, 3)), entry("a", shape=(1,))), order=0)
    assert found.shapes == (((2, 3),), ((),))


def test_overflow_files_are_no_operators_and_modules_stand_before_the_next_call():
    api = Place(path=Path(), api="torch")
    layer = entry("LAYER_fc_forward", "input", kind="LAYER", place=api)
    call, other = entry("NN_A_0_forward", place=api), entry("NN_B_0_forward", place=api)
    found = operators([layer, layer, call, other, entry("Node_OpDebug", kind="Opdebug")])
    assert [(run.op_name, len(run.layers)) for run in found] == [("NN_A_0_forward", 2), ("NN_B_0_forward", 0)]
    assert len(operators([entry("x", kind="LAYER"), entry("y", kind="Opdebug"), entry("Node_OpDebug")])) == 3


@pytest.mark.parametrize(
    ("keys", "numbers"),
    [
        ([(None, 2), (None, 0), (None, 2)], [((None, 0), 0), ((None, 2), 2)]),
        ([(1, 0), (0, 0)], [((0, 0), 0), ((1, 0), 1)]),
        ([(0, 0), (0, 1), (0, 2)], [((0, 0), 0), ((0, 1), 1), ((0, 2), 2)]),  # a sunk loop
        ([(0, 0), (1, 1)], [((0, 0), 0), ((1, 1), 1)]), ([(5, 0), (6, 1)], [((5, 0), 5), ((6, 1), 6)]),
        ([(3, 0), (None, 7)], [((3, 0), 0), ((None, 7), 7)]),
        ([(None, 1), (None, None)], [((None, None), None), ((None, 1), 1)]), ([], []),
    ],
)  # fmt: skip
def test_a_series_has_the_number_that_changes_more_often(keys, numbers):
    assert list(numbering(keys).items()) == numbers


def test_series_come_by_rank_and_number_and_their_operators_by_time():
    def at(rank, iteration, name, stamp, step=None):
        return entry(name, place=Place(path=Path(), rank=rank, iteration=iteration, step=step), stamp=stamp)

    found = list(series([at(1, 0, "d", 1), at(0, 2, "c", 9), at(0, None, "w", 5), at(0, 1, "b", 4), at(0, 1, "a", 3)]))
    assert [(one.rank, one.iteration, [run.op_name for run in one.operators]) for one in found] == [
        (0, None, ["w"]), (0, 1, ["a", "b"]), (0, 2, ["c"]), (1, 0, ["d"])
    ]  # fmt: skip
    found = list(series([at(0, 0, "a", 1, step=4), at(0, 0, "b", 2, step=5)]))
    assert [(one.iteration, [run.op_name for run in one.operators]) for one in found] == [(4, ["a"]), (5, ["b"])]
