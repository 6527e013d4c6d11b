"""How much of a difference is explained, against the formulas written out and against pairs of small dumps."""

from math import inf, isnan, nan
from types import SimpleNamespace

import numpy as np
import pytest
from smalltree import chain, write

import dumpsim
from dumpsim.analysis import amplify
from dumpsim.analysis.amplify import Blame, excess, explain, largest, magnitude
from dumpsim.analysis.finding import Tensor

LAST = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3": 2.0**-4}


def pair(error, kind="float32", other=None):
    entry, partner = SimpleNamespace(dtype=kind), SimpleNamespace(dtype=other or kind)
    return Tensor(entry=entry, other=partner, kinds=frozenset(), detail="", error=error)


@pytest.mark.parametrize("kind", LAST)
def test_an_unknown_operator_may_enlarge_what_it_got_threefold_and_round(kind):
    found = explain("Unknown", [pair(1e-3, kind), pair(2e-3, kind)], [pair(7e-3, kind)])
    assert (found.error_in, found.error_out, found.basis) == (2e-3, 7e-3, "growth")
    assert found.explained == pytest.approx(6e-3 + 16 * LAST[kind], rel=1e-12)
    assert found.excess == pytest.approx(7e-3 / found.explained, rel=1e-12)


def test_a_gradient_may_cancel_tenfold():
    found = explain("UnknownGrad", [pair(1e-3)], [pair(0.5)], gradient=True)
    assert found.explained == pytest.approx(1e-2 + 160 * LAST["float32"], rel=1e-12)


@pytest.mark.parametrize(
    ("kinds", "narrowest"),
    [
        (("float32", "float16"), "float16"),
        (("float64", "bfloat16"), "bfloat16"),
        (("int32", "float64"), "float64"),
        (("int32", "int32"), "float32"),
    ],
)
def test_the_narrowest_floating_type_rounds(kinds, narrowest):
    into, out = kinds
    for one, other in (((into, None), (out, None)), ((out, None), (into, None)), ((into, out), (into, out))):
        found = explain("Unknown", [pair(0.0, *one)], [pair(1e-4, *other)])
        assert found.explained == pytest.approx(16 * LAST[narrowest], rel=1e-12, abs=0.0)


def test_without_inputs_rounding_alone_is_explained():
    found = explain("Unknown", [], [pair(1e-3)])
    assert (found.error_in, found.explained) == (0.0, 16 * LAST["float32"])
    unknown = explain("Unknown", [pair(nan)], [pair(1e-3)])
    assert isnan(unknown.error_in)
    assert unknown.explained == 16 * LAST["float32"]


def test_of_an_unknown_result_nothing_is_said():
    found = explain("Unknown", [pair(1e-3)], [pair(nan)])
    assert isnan(found.error_out)
    assert isnan(found.explained)
    assert (found.excess, found.magnitude) == (0.0, -1)


def test_the_largest_known_difference():
    assert largest([pair(1.0), pair(nan), pair(2.0)]) == 2.0
    assert isnan(largest([pair(nan)]))
    assert largest([]) == 0.0


@pytest.mark.parametrize(
    ("error", "explained", "times"),
    [
        (1.0, 0.25, 4.0), (0.0, 0.0, 0.0), (1e-300, 0.0, inf), (inf, inf, 1.0), (5.0, inf, 0.0), (inf, 2.0, inf),
        (nan, 1.0, 0.0), (1.0, nan, 0.0), (0.0, 1.0, 0.0),
    ],
)  # fmt: skip
def test_excess(error, explained, times):
    assert excess(error, explained) == times
    assert Blame(rank=0, iteration=0, op_type="A", op_name="a", error_out=error, explained=explained).excess == times


@pytest.mark.parametrize(
    ("error", "explained", "powers"),
    [
        (0.1, 0.1, -1), (0.1001, 0.1, 0), (inf, 0.2, 0), (9.9e-6, 1e-6, 0), (1.1e-5, 1e-6, 1), (0.5, 1e-20, 12),
        (0.5, 9e-12, 10), (1.0, 0.0, 12), (0.0, 0.0, -1), (nan, 1.0, -1),
    ],
)  # fmt: skip
def test_powers_of_ten(error, explained, powers):
    assert magnitude(error, explained) == powers


def test_a_function_with_steps_explains_any_difference_of_what_differs():
    found = explain("ArgMax", [pair(1e-7)], [pair(0.5)])
    assert (found.explained, found.excess, found.magnitude) == (0.5, 1.0, -1)
    assert found.reason == "tied or nearly tied maxima can choose another element"
    equal = explain("ArgMax", [pair(0.0)], [pair(0.5)])
    assert equal.reason == ""
    assert equal.explained == 16 * LAST["float32"]
    little = explain("ArgMax", [pair(1e-2)], [pair(0.2)])
    assert (little.reason, little.explained) == ("", 3e-2 + 16 * LAST["float32"])
    slope = explain("ReLUGrad", [pair(1e-7)], [pair(0.5)], gradient=True)
    assert (slope.explained, slope.excess) == (0.5, 1.0)
    endless = explain("ArgMax", [pair(1e-7)], [pair(inf)])
    assert (endless.explained, endless.excess) == (inf, 1.0)
    assert explain("Add", [pair(1e-7)], [pair(inf)]).excess == inf


# ---------------------------------------------------------------- pairs of dumps
def ranked(tmp_path, ours, golden):
    """The ranking of two trees, by operator."""
    a, b = write(tmp_path / "a", ours), write(tmp_path / "b", golden)
    return {one.op_name.rpartition("_")[2]: one for one in dumpsim.first(a, b, everything=True).ranking}


def apart(own, other):
    return np.linalg.norm(own.astype(float) - other) / np.linalg.norm(other.astype(float))


def normalised(x, axes, *, centred=True):
    x = x.astype(np.float64)
    x = x - x.mean(axis=axes, keepdims=True) if centred else x
    return x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + 1e-5)


NORMS = {"BatchNorm": (0, 2, 3), "InstanceNorm": (2, 3), "GroupNorm": (1, 2, 3), "LayerNorm": (3,)}


@pytest.mark.parametrize("kind", NORMS)
def test_a_normalisation_enlarges_differences_of_what_is_nearly_constant(tmp_path, kind):
    random = np.random.default_rng(1)
    x = 1 + 0.02 * random.normal(size=(4, 3, 5, 6))
    y = x + 1e-4 * random.normal(size=x.shape)
    x, y = x.astype(np.float32), y.astype(np.float32)
    ops = [[(kind, f"Default/{kind}-op0", [one], [normalised(one, NORMS[kind]).astype(np.float32)])] for one in (y, x)]
    (found,) = ranked(tmp_path, *ops).values()
    wanted = 3 * apart(normalised(y, NORMS[kind]), normalised(x, NORMS[kind])) + 16 * LAST["float32"]
    assert found.basis == "function"
    assert found.explained == pytest.approx(wanted, rel=1e-5)
    assert found.verdict == "ok"
    assert found.error_in == pytest.approx(apart(y, x), rel=1e-5)


@pytest.fixture
def stored(tmp_path):
    """stored(own, golden, error) -> a pair of files."""
    count = iter(range(99))

    def make(own, golden, error):
        paths = [tmp_path / f"{next(count)}.npy" for _ in range(2)]
        for path, array in zip(paths, (own, golden), strict=True):
            np.save(path, array)
        entry, other = (dumpsim.open(path)[0] for path in paths)
        return Tensor(entry=entry, other=other, kinds=frozenset(), detail="", error=error)

    return make


DEFINED = {
    "BatchNorm": (0, 2, 3), "BatchNormalization": (0, 2, 3), "InstanceNorm": (2, 3), "InstanceNorm2d": (2, 3),
    "GroupNorm": (1, 2, 3), "LayerNorm": (3,), "RmsNorm": None,
}  # fmt: skip


@pytest.mark.parametrize("kind", DEFINED)
def test_all_normalisations_are_computed_by_their_definitions(stored, kind):
    random = np.random.default_rng(3)
    x = random.normal(size=(4, 3, 5, 6)) * np.arange(1, 7) + 0.5
    y = x + 1e-3 * random.normal(size=x.shape)
    axes = DEFINED[kind]
    sides = [normalised(one, (-1,), centred=False) if axes is None else normalised(one, axes) for one in (y, x)]
    found = explain(kind, [stored(y, x, 1e-9)], [pair(0.5, "float64")])
    assert found.basis == "function"
    assert found.explained == pytest.approx(3 * apart(*sides) + 16 * LAST["float64"], rel=1e-9)


def test_what_has_no_values_to_compute_with_grows_as_usual(stored, monkeypatch):
    x = np.arange(24.0).reshape(4, 6)
    usual = 3e-4 + 16 * LAST["float64"]
    result = [pair(0.5, "float64")]

    def known(one):
        found = explain("LayerNorm", [one], result)
        assert (found.basis == "function") is (found.explained != pytest.approx(usual, rel=1e-9))
        return found.basis == "function"

    whole = stored(x * x, x, 1e-4)
    assert known(whole)
    rows = SimpleNamespace(dtype="float64", path=None)
    for entry, other in ((whole.entry, rows), (rows, whole.other), (rows, rows), (whole.entry, None)):
        assert not known(Tensor(entry=entry, other=other, kinds=frozenset(), detail="", error=1e-4))
    assert not known(stored(x, x.reshape(6, 4), 1e-4))
    monkeypatch.setattr(amplify, "_LARGEST", 24)
    assert known(whole)
    monkeypatch.setattr(amplify, "_LARGEST", 23)
    assert not known(whole)
    monkeypatch.undo()
    whole.other.path.write_bytes(b"\x93NUMPY")
    assert not known(whole)
    assert explain("LayerNorm", [], result).basis == explain("Add", [], result).basis == "growth"


def test_of_nothing_any_difference_is_explained(stored):
    x = np.ones((2, 3))
    result = [stored(x, x, 0.5)]
    assert explain("LayerNorm", [stored(x + np.arange(3), x, 1e-4)], [pair(0.5)]).explained == inf  # 0 / 0
    assert explain("Add", [stored(x + 1, x, 1e-4)], result).explained == inf
    one = stored(np.array(2.0), np.array(1.0), 1e-4)  # a number that is added to each of the six
    assert explain("Add", [one], [stored(x * 3, x, 0.5)]).explained == pytest.approx(
        0.5 * 1 / 2 + 16 * LAST["float64"], rel=1e-9
    )
    assert explain("Sub", [stored(x + 1, x, 1e-4)], [stored(x * 3, x, 0.5)]).explained == pytest.approx(
        0.5 * 1 / 2 + 16 * LAST["float64"], rel=1e-9
    )


def test_a_sum_that_cancels(tmp_path):
    """What remains is small, what its operands differ by is not."""
    random = np.random.default_rng(2)
    x = random.normal(size=(4, 3)).astype(np.float32)
    bias = random.normal(size=3).astype(np.float32)
    rest = -x - bias + 1e-3 * random.normal(size=(4, 3)).astype(np.float32)
    moved, shifted = x * np.float32(1.0001), bias * np.float32(1.0001)
    golden = [("AddN", "Default/AddN-op0", [x, bias, rest], [x + bias + rest])]
    ours = [("AddN", "Default/AddN-op0", [moved, shifted, rest], [moved + shifted + rest])]
    (found,) = ranked(tmp_path, ours, golden).values()
    given = np.linalg.norm(moved.astype(float) - x) + 2 * np.linalg.norm(shifted.astype(float) - bias)  # of 12 by 3
    wanted = given / np.linalg.norm((x + bias + rest).astype(float)) + 16 * LAST["float32"]
    assert found.basis == "function"
    assert found.explained == pytest.approx(wanted, rel=1e-4)
    assert found.verdict == "ok"


def test_where_inputs_are_missing_all_before_may_explain(tmp_path):
    """Results alone: what an operator got is the worst of all results so far, and may grow threefold."""
    v = np.arange(1, 7, dtype=np.float32)
    factors = (1e-3, 4e-3, 2e-3, 0.5)
    golden = [("Mystery", f"Default/Mystery-op{n}", [], [v]) for n in range(4)]
    ours = [("Mystery", f"Default/Mystery-op{n}", [], [v * np.float32(1 + f)]) for n, f in enumerate(factors)]
    found = ranked(tmp_path, ours, golden)
    before = [0.0, 1e-3, 4e-3, 4e-3]
    for n, (factor, got) in enumerate(zip(factors, before, strict=True)):
        one = found[f"Mystery-op{n}"]
        assert one.error_out == pytest.approx(factor, rel=1e-3)
        assert one.error_in == pytest.approx(got, rel=1e-3)
        assert one.explained == pytest.approx(max(3 * got, 16 * LAST["float32"]), rel=1e-3)
        assert one.verdict == ("suspect" if factor > 10 * one.explained else "ok")
    assert [one.verdict for one in found.values()].count("suspect") == 2


def test_the_ranking_begins_with_what_is_explained_least(tmp_path):
    v = [np.full((3, 3), float(n + 1), np.float32) for n in range(6)]
    golden = chain(*v, kind="Mystery")
    ours = [list(op) for op in golden]
    ours[1][3] = [v[2] * np.float32(1 + 1e-4)]  # made of equal inputs
    ours[3][3] = [v[4] * np.float32(1.01)]
    ours[4][2], ours[4][3] = [v[4] * np.float32(1.01)], [v[5] * np.float32(1.02)]  # what it got explains it
    a, b = write(tmp_path / "a", ours), write(tmp_path / "b", golden)
    found = dumpsim.first(a, b, everything=True)
    assert [one.op_name[-3:] for one in found.ranking] == ["op3", "op1", "op4"]
    assert [one.verdict for one in found.ranking] == ["suspect", "suspect", "ok"]
    assert [one.tensor for one in found.ranking] == ["output.0"] * 3
    assert [one.op_name[-3:] for one in found] == ["op3"]  # the other one is within the tolerance
    strict = dumpsim.first(a, b, tol=["*:1e-6:1e-6"])
    assert [one.op_name[-3:] for one in strict] == ["op3"]
    assert not dumpsim.first(b, b).ranking
    assert not dumpsim.first(b, b, everything=True).ranking


def test_a_result_within_the_tolerance_is_blamed_where_what_follows_is_not(tmp_path):
    v = [np.full((3, 3), float(n + 1), np.float32) for n in range(4)]
    golden = chain(*v, kind="Mystery")
    ours = [list(op) for op in golden]
    ours[0][3] = [v[1] * np.float32(1 + 9e-5)]
    ours[1][2], ours[1][3] = [v[1] * np.float32(1 + 9e-5)], [v[2] * np.float32(1 + 2.4e-4)]
    a, b = write(tmp_path / "a", ours), write(tmp_path / "b", golden)
    (one,) = dumpsim.first(a, b)
    assert (one.op_name[-3:], one.kind, one.verdict) == ("op0", "made", "suspect")
    assert one.note == "its result is within the tolerance, and what follows is not"
    (crossed,) = dumpsim.first(a, b, tol=["*:1e-4:1e-4"])  # who says what is too far blames nobody who is nearer
    assert (crossed.op_name[-3:], crossed.kind, crossed.verdict) == ("op1", "made", "ok")
    assert not dumpsim.first(a, b, tol=["*:1e-3:1e-3"]).findings
