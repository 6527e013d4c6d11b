"""Remarks on a bad tensor: how far it is off, whether its function jumps, and whether its inputs differed before."""

import numpy as np
import pytest

import dumpsim
from dumpsim.analysis.finding import Tensor
from dumpsim.analysis.remark import crept, jumped, measured, same, some
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.analysis.verdict import Task, side_of

F, INF = np.float32, np.inf
STEP = 2.0**-10


@pytest.fixture
def stored(tmp_path):
    """stored(array) -> an entry; with a second array a pair."""
    count = iter(range(99))

    def entry(array):
        path = tmp_path / f"{next(count)}.npy"
        np.save(path, array)
        return dumpsim.open(path)[0]

    def make(own, golden=None):
        one, other = entry(own), None if golden is None else entry(golden)
        task = None
        if other is not None:
            task = Task(left=side_of(one), right=side_of(other), tolerance=Tolerance(rtol=0.5, atol=0.0))
        return Tensor(entry=one, other=other, kinds=frozenset({"difference"}), detail="3 of 4", task=task)

    return make


def test_a_pair_is_measured(stored):
    own, golden = F([1, 2, 3, 4]), F([1, 2, 4, 8])
    x, y = own.astype(float), golden.astype(float)
    far = np.linalg.norm(x - y) / np.linalg.norm(y)
    cosine = x @ y / (np.linalg.norm(x) * np.linalg.norm(y))
    assert measured(stored(own, golden)) == (f"3 of 4; largest difference 4, relative {far:.4g}, cosine {cosine:.6f}")
    assert measured(stored(own)) == "3 of 4"
    assert measured(stored(F([1, INF]), F([1, 2]))) == "3 of 4"
    assert measured(stored(own, own)) == "3 of 4"


@pytest.mark.parametrize(
    ("times", "inputs", "said"),
    [
        (10, [1], True), (11, [1], False), (1, [1], True), (10, [0, 1], True), (10, [1, 0], True), (10, [0], False),
        (10, [], False), (20, [1, 2], True), (21, [2, 1], False), (10, [None, 1], True), (10, [None], False),
        (10, [INF], False), (10, [INF, 1], False), (INF, [1], False), (INF, [INF], False),
    ],
)  # fmt: skip
def test_a_result_that_is_off_at_most_ten_times_as_far_as_its_inputs_began_before(stored, times, inputs, said):
    """Of one element, a relative difference is exact."""
    pairs = [stored(np.ones(1)) if n is None else stored(np.array([1 + n * STEP]), np.ones(1)) for n in inputs]
    largest = max((n for n in inputs if n is not None), default=0) * STEP
    assert crept(stored(np.array([1 + times * STEP]), np.ones(1)), pairs) == (
        f"its inputs differ too, within the tolerance (relative {largest:.2g}): a smaller one shows where that began"
        if said else ""
    )  # fmt: skip
    assert crept(stored(np.ones(1)), pairs) == ""


def test_a_function_that_jumps_is_told_unless_it_got_the_same(stored):
    said = "tied or nearly tied maxima can choose another element"
    bad = stored(F([1, 2]), F([2, 1]))
    equal, near, alone = stored(F([1, 2]), F([1, 2])), stored(F([1, 2]), F([1, 2.0001])), stored(F([1, 2]))
    for inputs, found in (
        ([equal], ""), ([equal, equal], ""), ([near], said), ([equal, near], said), ([near, equal], said), ([], said),
        ([alone], said), ([equal, alone], said),
    ):  # fmt: skip
        assert jumped("ArgMax", bad, inputs) == found
        assert jumped("Add", bad, inputs) == ""
    whole = stored(np.int32([1]), np.int32([2]))
    assert jumped("Cast", whole, [near]) == "values near a step can fall on its other side"
    assert jumped("Cast", bad, [near]) == ""


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (F([[1, 2, 3]]), F([1, 2, 3]), True), (F([1, 2]), F([1, 2]), True), (F([1, 2]), F([1, 2.0000002]), False),
        (np.ones((2, 3), F), np.ones((3, 2), F), False), (np.ones((2, 3), F), np.ones(6, F), False),
        (F([1, 2]), np.int8([1, 2]), True), (F([np.nan]), F([np.nan]), True), (F(1), F([1]), True),
    ],
)  # fmt: skip
def test_the_same_tensor_has_these_values_in_this_shape(stored, one, other, found):
    assert same(stored(one).entry, stored(other).entry) is found


@pytest.mark.parametrize(
    ("names", "text"),
    [([], ""), (["a"], "a"), (["b", "a", "b", "c"], "b, a, c"), (list("abcd"), "a, b, c and 1 more"),
     (list("abcdea"), "a, b, c and 2 more")],
)  # fmt: skip
def test_three_names_are_said_and_the_others_counted(names, text):
    assert some(names) == text
