"""The rows of a replay: what each one contains, their order, and what the whole says."""

import math
from importlib import import_module
from math import inf

import numpy as np
import pytest
from smalltree import write

import dumpsim
from dumpsim.core.errors import BadInputError
from dumpsim.replay.replay import Replay, Row, prepare

UNKNOWN = "unknown operator type"


def row(**more):
    return Row(**{"op_name": "a", "op_type": "Add", "graph": None, "iteration": None, **more})


def test_a_row_that_nobody_filled_is_skipped():
    assert row().as_dict() == {
        "op_name": "a", "op_type": "Add", "graph": None, "iteration": None, "error": None, "explained": None,
        "verdict": "skipped", "reason": "", "rank": 0, "source": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "explained", "excess"),
    [(None, None, 0), (1.0, None, 0), (None, 1.0, 0), (3.0, 2.0, 1.5), (0.0, 2.0, 0), (1.0, 0.0, inf), (0.0, 0.0, 0)],
)
def test_the_excess_is_a_multiple_of_what_is_explained(error, explained, excess):
    assert row(error=error, explained=explained).excess == excess


@pytest.mark.parametrize(
    ("rows", "unreadable", "ok"),
    [
        ([], (), False),
        (["ok"], (), True),
        (["ok", "skipped"], (), True),
        (["skipped"], (), False),  # nothing was recomputed
        (["ok", "suspect"], (), False),
        (["ok"], ("mapping.csv is cut",), False),
        (["ok", "unreadable"], (), False),
    ],
)
def test_a_replay_is_in_order_if_something_was_recomputed_and_nothing_is_wrong(rows, unreadable, ok):
    made = [
        row(verdict="skipped", reason="unreadable: it is gone") if one == "unreadable" else row(verdict=one)
        for one in rows
    ]
    assert Replay(rows=tuple(made), unreadable=unreadable).ok is ok


def test_files_that_cannot_be_read_are_told_from_other_reasons():
    assert row(reason="unreadable: it is gone").unreadable
    assert not row(reason="its neighbour is unreadable: it is gone").unreadable


X = np.float32([0.5, 1.0, 2.0])
TREE = [
    ("Odd", "Default/Odd-op0", [X], [X]),
    ("Exp", "Default/Exp-op1", [X], [np.exp(X)]),
    ("ReLU", "Default/ReLU-op2", [X], [X]),
    ("ReLU", "Default/ReLU-op3", [X], [X + np.float32([0, 0.5, 0])]),
    ("Odd", "Default/Odd-op4", [X], [X]),
    ("Exp", "Default/Exp-op5", [X], [np.exp(X) * np.float32(1.01)]),
    ("ReLU", "Default/ReLU-op6", [X], [X - np.float32([0, 0, 1])]),
    ("Dropout", "Default/Dropout-op7", [X], [X]),
    ("Exp", "Default/Exp-op8", [X], [np.exp(X) * np.float32(1.5)]),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write(tmp_path_factory.mktemp("tree"), TREE, rank=1, iteration=3)


def test_suspects_come_first_and_those_of_no_explanation_before_all(tree):
    """Errors of a ReLU have no explanation, so the larger one is the worse one; skipped ones keep their order."""
    done = []
    found = dumpsim.replay(tree, progress=lambda *args: done.append(args))
    assert done == [(n, 9) for n in range(1, 10)]
    assert [(one.op_name.rpartition("_")[2], one.verdict) for one in found] == [
        ("ReLU-op6", "suspect"), ("ReLU-op3", "suspect"), ("Exp-op8", "suspect"), ("Exp-op5", "suspect"),
        ("Exp-op1", "ok"), ("ReLU-op2", "ok"),
        ("Odd-op0", "skipped"), ("Odd-op4", "skipped"), ("Dropout-op7", "skipped"),
    ]  # fmt: skip
    assert found.rows[1] == Row(
        op_name="Default_ReLU-op3", op_type="ReLU", graph=0, iteration=3, error=0.5, explained=0.0, verdict="suspect",
        reason="output.0[1]", rank=1, source="",
    )  # fmt: skip
    worst = found.rows[2]  # the function rounds by 8 units of 2**-24, its argument by its size
    assert (worst.error, worst.explained) == pytest.approx(
        (0.5 * np.exp(0.5), (8 + 0.5) * 2.0**-24 * np.exp(0.5)), rel=1e-6
    )
    assert worst.excess == worst.error / worst.explained
    assert found.suspects == found.rows[:4]
    assert found.counts == {"ok": 2, "skipped": 3, "suspect": 4}
    assert list(found.counts) == ["ok", "skipped", "suspect"]
    assert list(found.skipped.items()) == [(f"Odd: {UNKNOWN}", 2), ("Dropout: draws random numbers", 1)]
    assert repr(found) == "<Replay of 9 operators: 2 ok, 3 skipped, 4 suspect>"
    assert (len(found), found.ok, found.unreadable) == (9, False, ())
    assert all(one.error is None and one.explained is None for one in found.rows[6:])
    assert dumpsim.replay(tree, factor=2.0**23).counts["suspect"] == 2  # a multiple of nothing is nothing


def test_a_replay_of_nothing_says_so():
    assert repr(Replay(rows=())) == "<Replay of 0 operators: none>"


def test_a_part_of_the_work_is_chosen_by_name_or_type(tree):
    work = prepare(tree)
    assert (len(work), len(work.names)) == (9, 9)
    odd = work.of(lambda text: text in ("Odd", "Default_Exp-op5"))
    assert odd.names == {"Default_Odd-op0", "Default_Odd-op4", "Default_Exp-op5"}
    assert [one.verdict for one in odd.rows()] == ["skipped", "skipped", "suspect"]  # in the order of execution
    assert len(odd.result(odd.rows())) == len(odd) == 3


@pytest.mark.parametrize("factor", [0, 0.0, -1.0, math.nan])
def test_a_factor_is_above_0(tree, factor):
    with pytest.raises(BadInputError, match=f"factor: {factor} is not a valid factor; allowed: a number above 0"):
        prepare(tree, factor=factor)
    assert prepare(tree, factor=1e-9).factor == 1e-9


def test_a_device_is_one_of_two(tree):
    with pytest.raises(BadInputError, match="device: unknown device 'gpu'; allowed: device, cpu"):
        prepare(tree, device="gpu")
    wrong = {name: dumpsim.replay(tree, device=name).rows[3].explained for name in ("device", "cpu")}
    assert wrong["cpu"] > 4 * wrong["device"]  # the vector functions of MindSpore's CPU
    assert dumpsim.replay(tree).rows[3].explained == wrong["device"]  # as the names of the files say


def test_rules_of_types_apply_to_the_operators_that_they_name(tree):
    narrow = {one.op_name: one for one in dumpsim.replay(tree, compute=["Exp:float32", "*op1:tf32", "*op5:bfloat16"])}
    plain = {one.op_name: one for one in dumpsim.replay(tree)}
    ratio = {name: narrow[name].explained / plain[name].explained for name in plain if "Exp" in name}
    assert {name[-3:]: round(value) for name, value in ratio.items()} == {"op1": 2**13, "op5": 2**16, "op8": 1}


def test_processes_start_where_they_pay_off(tree, monkeypatch):
    """Without a number of them: from some number of operators or bytes of the files that are read."""
    module, spreading = import_module("dumpsim.replay.replay"), import_module("dumpsim.analysis.spread")
    real, asked = module.spread, []

    def spread(work, pieces, *, jobs, **options):
        asked.append(jobs)
        return real(work, pieces, jobs=1, **options)

    monkeypatch.setattr(module, "spread", spread)
    dumpsim.replay(tree)
    list(prepare(tree).rows())
    nbytes = sum(path.stat().st_size for kind in ("Exp", "ReLU") for path in tree.rglob(f"{kind}.*.npy"))
    for limits in ((10, nbytes + 1), (9, nbytes + 1), (10, nbytes)):
        monkeypatch.setattr(spreading, "WORTH", limits)
        assert len(dumpsim.replay(tree, jobs=None)) == 9
    dumpsim.replay(tree, jobs=3)
    assert asked == [1, 1, 1, None, None, 3]
