"""Small decisions of the comparison: sizes without zeros, ratios of nothing, lines of a cell, equal halves."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.analysis.apicompare.rows import _far
from dumpsim.analysis.apicompare.table import _wrapped
from dumpsim.analysis.apicompare.vendormapping import _key, _merged, _recursion
from dumpsim.analysis.condition import condition, condition_of_row
from dumpsim.analysis.meaning import meaning
from dumpsim.analysis.spread import missing
from dumpsim.analysis.verdict import Side, _ratio, _squares, _typical


def test_a_typical_size_leaves_out_zeros_and_what_is_no_number():
    assert _typical(np.float32([0, 0, 0, 0, 4, -6, np.inf, np.nan])) == 5
    assert _typical(np.int8([0, 3, 0, -7, 5])) == 5
    assert _typical(np.zeros(4, np.float32)) == _typical(np.float32([np.nan])) == 1


def test_a_ratio_of_roots():
    assert _ratio(1.0, 4.0) == 0.5
    assert _ratio(0.25, 0.0) == math.inf
    assert _ratio(0.0, 0.0) == 0
    a, b = np.float64([1, 2, np.nan, -1e9]), np.float64([0, 4, 1, -1e9])
    assert _squares(a, b, 100.0) == (1 + 4, 16 + 1)
    assert _squares(np.uint8([1, 250]), np.uint8([3, 255]), math.inf) == (4 + 25, 9 + 255**2)


def test_a_cell_is_broken_only_where_it_is_too_wide():
    assert _wrapped("a\tb", 3) == ["a\tb"]
    assert _wrapped("ab cd", 4) == ["ab", "cd"]
    assert _wrapped("ab cd", None) == ["ab cd"]
    assert _wrapped("a\n\nb", 9) == ["a", "", "b"]
    assert _wrapped("ab cd\n\nef", 4) == ["ab", "cd", "", "ef"]


def test_missing_paths(tmp_path):
    (tmp_path / "here").touch()
    paths = [str(tmp_path / name) for name in ("here", "there")]
    assert missing(paths) == paths[1:]


def test_equal_sequences_of_calls_are_paired_one_by_one():
    keys = [("nn_a", (), ()), ("nn_b", (), ()), ("nn_a", (), ())]
    assert sorted(_recursion(keys, keys)) == [(0, 0), (1, 1), (2, 2)]
    longer = [*keys, ("tensor_c", (), ())]
    assert sorted(_recursion(keys, longer)) == [(0, 0), (1, 1), (2, 2)]
    assert _recursion(keys, []) == []


def test_calls_that_cross_are_paired_by_their_kind():
    kinds = ("nn_a", "functional_a", "tensor_a", "other_a")
    for at, better in enumerate(kinds):
        for worse in kinds[at + 1 :]:
            one, other = (better, (), ()), (worse, (), ())
            assert _recursion([one, other], [other, one]) == [(0, 1)]
            assert _recursion([other, one], [one, other]) == [(1, 0)]


@pytest.mark.parametrize(
    ("row", "shape", "counts"),
    [
        ({"max": math.nan, "min": 0.0}, (1, 3), (-1, 0, 0)), ({"max": math.inf, "min": 0.0}, (1,), (0, -1, 0)),
        ({"avg": -math.inf}, (2, 1), (0, 0, -1)), ({"max": math.nan}, (0, 1), (0, 0, 0)),
        ({"max": 1.0, "min": 0.0}, (3,), (0, 0, 0)),
    ],
)  # fmt: skip
def test_a_row_shows_that_there_are_numbers_that_are_not_finite(row, shape, counts):
    found = condition_of_row(row, "float32", shape)
    assert (found.nan, found.positive_inf, found.negative_inf) == counts
    assert condition_of_row(row, "int32", shape) == condition_of_row({"max": 1}, "float32", (3,))


def test_numbers_that_are_not_finite_are_counted_and_an_unreadable_file_says_why(tmp_path):
    array = np.float32([1, math.inf, math.nan, -math.inf, math.inf, -math.inf, -math.inf])
    np.save(tmp_path / "a.npy", array)
    side = Side(path=str(tmp_path / "a.npy"), binary=False, io="", slot=0, format="", dtype="", shape=(7,), row={})
    found = condition(side)
    assert (found.nan, found.positive_inf, found.negative_inf, found.error) == (1, 2, 3, "")
    (tmp_path / "a.npy").write_bytes(b"")
    broken = condition(side)
    assert broken.error
    assert not broken.bad


def fits(pair, others):
    """Whether a pair comes after the other ones before it; before the first one the last one will do, too."""
    before, after = [one for one in others if one < pair], [one for one in others if one > pair]
    return (before or after)[-1][1] < pair[1] or (not before and pair[1] < after[0][1])


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_pairs_are_added_all_or_not_at_all(count):
    """Of the pairs that come after all pairs of the other list only the first is asked. [1.0.17: seen]"""
    for size in range(count + 1):
        for places, marks in itertools.product(itertools.combinations(range(count), size), repeat=2):
            rest = [[n for n in range(count) if n not in taken] for taken in (places, marks)]
            kept, new = list(zip(places, marks, strict=True)), list(zip(*rest, strict=True))
            both = sorted(kept + new)
            asked = []
            for pair in both if kept and new else []:
                others = new if pair in kept else kept
                asked.append(fits(pair, others))
                if pair > max(others):
                    break
            assert _merged(kept, new) == (both if all(asked) else kept)


@pytest.mark.parametrize(
    ("framework", "kind", "api", "word"),
    [
        ("torch", "Torch", "dropout", "torch_dropout"), ("torch", "Torch", "abs", "functional_abs"),
        ("torch", "Functional", "dropout", "functional_dropout"), ("torch", "Tensor", "norm", "tensor_norm"),
        ("torch", "NN", "SELU", "nn_SELU"), ("torch", "NN", "Linear", "nn_Dense"),
        ("torch", "Tensor", "SELU", "tensor_SELU"), ("mindtorch", "Torch", "dropout", "torch_dropout"),
        ("mindtorch", "Torch", "relu", "torch_relu"), ("mindtorch", "NN", "Linear", "nn_Linear"),
        ("mindspore", "NN", "SeLU", "nn_SeLU"), ("mindspore", "Functional", "dropout", "functional_dropout"),
        ("mindspore", "Torch", "norm", "torch_norm"), ("mindspore", "NN", "SELU", "nn_SELU"),
    ],
)  # fmt: skip
def test_the_name_by_which_the_real_tool_knows_a_call(framework, kind, api, word):
    one = SimpleNamespace(kind=kind, api=api, meaning=meaning(framework, kind, api), inputs=(), outputs=())
    assert _key(one, framework) == (word, (), ())


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [
        (21.0, 20.0, False), (21.001, 20.0, True), (19.0, 20.0, False), (18.999, 20.0, True), (-21.0, -20.0, False),
        (-21.001, -20.0, True), (20.0, -20.0, True), (0.0, 0.0, False), (1e-30, 0.0, True), (0.0, 1e-30, True),
        (math.inf, math.inf, False), (math.inf, -math.inf, True), (math.inf, 1.0, True), (1.0, -math.inf, True),
        (math.nan, 1.0, False), (1.0, math.nan, False), (math.inf, math.nan, False),
    ],
)  # fmt: skip
def test_numbers_are_marked_above_a_twentieth_of_the_other(one, other, far):
    assert _far(one, other) is far
