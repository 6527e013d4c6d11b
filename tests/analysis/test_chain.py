"""Chains and landmarks against slow and plain truths."""

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.analysis import chain
from dumpsim.analysis.chain import heaviest_chain
from dumpsim.analysis.sequence import landmarks

SEQUENCES = st.lists(st.integers(0, 4), max_size=12)


def equal(first, second):
    other = np.array(second, np.int64)
    return lambda i, lo, hi: (other[lo:hi] == first[i]).astype(np.float64)


def longest(first, second):
    @lru_cache(None)
    def length(i, j):
        if i == len(first) or j == len(second):
            return 0
        taken = 1 + length(i + 1, j + 1) if first[i] == second[j] else 0
        return max(taken, length(i + 1, j), length(i, j + 1))

    return length(0, 0)


@settings(deadline=None, max_examples=60)
@given(SEQUENCES, SEQUENCES, st.booleans())
def test_chains_are_longest_and_rising(first, second, late):
    pairs = heaviest_chain(len(first), len(second), equal(first, second), prefer_match=late)
    assert all(first[i] == second[j] for i, j in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
    assert len(pairs) == longest(tuple(first), tuple(second))


def test_weights_decide():
    weights = np.array([[1.0, 1.5], [0.0, 1.0]])
    assert heaviest_chain(2, 2, lambda i, lo, hi: weights[i, lo:hi]) == [(0, 0), (1, 1)]
    weights[0, 1] = 2.5
    assert heaviest_chain(2, 2, lambda i, lo, hi: weights[i, lo:hi]) == [(0, 1)]


def test_windows_find_what_a_whole_table_finds(monkeypatch):
    monkeypatch.setattr(chain, "WINDOW", 64)
    random = np.random.default_rng(3)
    first = list(range(500))
    second = [v for v in first if random.random() > 0.1] + [900]
    for gap in (40, 200, 333):
        second.insert(gap, 1000 + gap)
    pairs = heaviest_chain(len(first), len(second), equal(first, second))
    assert len(pairs) == len(set(first) & set(second))


def test_windows_get_past_what_has_nothing_in_common(monkeypatch):
    monkeypatch.setattr(chain, "WINDOW", 16)
    first = [*range(100), *[7] * 20]
    second = [*range(1000, 1100), *[7] * 20]
    assert len(heaviest_chain(120, 120, equal(first, second))) == 20


def test_windows_lose_no_pairs_of_sequences_that_repeat(monkeypatch):
    layers = [n % 12 for n in range(400)]
    for cut in (1, 10, 35):
        for first, second in ((layers, layers[cut:]), (layers[cut:], layers), (layers, layers[:-cut])):
            monkeypatch.setattr(chain, "WINDOW", 64)
            pairs = heaviest_chain(len(first), len(second), equal(first, second))
            assert all(first[i] == second[j] for i, j in pairs)
            assert len(pairs) == 400 - cut


def test_windows_step_over_no_pair(monkeypatch):
    monkeypatch.setattr(chain, "WINDOW", 16)
    shared = list(range(40))
    for lead in range(8, 16):
        first = [*range(1000, 1000 + lead), *shared]
        for one, other in ((first, shared), (shared, first)):
            pairs = heaviest_chain(len(one), len(other), equal(one, other))
            assert all(one[i] == other[j] for i, j in pairs)
            assert len(pairs) == 40


@pytest.mark.parametrize("extra", [0, 1, 15, 16, 17, 100])
@pytest.mark.parametrize("shared", [1, 8, 15, 16, 17, 40])
def test_windows_end_where_one_sequence_does(monkeypatch, shared, extra):
    """A sequence that is the beginning of a longer one has all its pairs."""
    monkeypatch.setattr(chain, "WINDOW", 16)
    short, long = list(range(shared)), [*range(shared), *range(1000, 1000 + extra)]
    for one, other in ((short, long), (long, short)):
        assert heaviest_chain(len(one), len(other), equal(one, other)) == [(n, n) for n in range(shared)]


def test_nothing_has_no_pairs(monkeypatch):
    monkeypatch.setattr(chain, "WINDOW", 16)
    for first, second in ((0, 0), (0, 1), (1, 0), (0, 17), (17, 0), (0, 50), (50, 0)):
        assert heaviest_chain(first, second, lambda i, lo, hi: np.ones(hi - lo)) == []
    for first, second in ((1, 50), (50, 1), (17, 40), (40, 40)):
        assert heaviest_chain(first, second, lambda i, lo, hi: np.zeros(hi - lo)) == []


@settings(deadline=None, max_examples=60)
@given(st.permutations(range(9)), st.permutations(range(9)))
def test_landmarks_are_a_longest_chain_of_single_elements(first, second):
    pairs = landmarks(first, second)
    assert all(first[i] == second[j] for i, j in pairs)
    assert pairs == sorted(pairs)
    assert [j for _, j in pairs] == sorted(j for _, j in pairs)
    assert len(pairs) == longest(tuple(first), tuple(second))


def sums(weights):
    """The largest sum of weights of the first i elements of one sequence and the first j of the other."""
    rows, columns = weights.shape
    best = np.zeros((rows + 1, columns + 1))
    for i in range(rows):
        for j in range(columns):
            taken = best[i, j] + weights[i, j] if weights[i, j] > 0 else -1.0
            best[i + 1, j + 1] = max(taken, best[i, j + 1], best[i + 1, j])
    return best


def chosen(weights, late):
    """The pairs of the heaviest chain by a whole table of sums, and the rule of what is preferred where two are equal.

    From the end: a pair (late), or else to do without the element of the first sequence, whichever comes first in the
    order of preference and loses nothing; the element of the second sequence is left out where neither does.
    """
    best = sums(weights)
    pairs, (i, j) = [], weights.shape
    while i and j:
        taken = weights[i - 1, j - 1] > 0 and best[i, j] == best[i - 1, j - 1] + weights[i - 1, j - 1]
        without = best[i, j] == best[i - 1, j]
        if taken and (late or not without):
            pairs.append((i - 1, j - 1))
            i, j = i - 1, j - 1
        elif without:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 7), st.integers(0, 7), st.randoms(use_true_random=False), st.booleans())
def test_of_chains_of_equal_weight_one_is_preferred(rows, columns, random, late):
    weights = np.array([[random.choice([0, 0, 1, 1, 2, 3.5]) for _ in range(columns)] for _ in range(rows)], float)
    weights = weights.reshape(rows, columns)
    found = heaviest_chain(rows, columns, lambda i, lo, hi: weights[i, lo:hi], prefer_match=late)
    assert found == chosen(weights, late)


def test_early_and_late_pairs():
    ones = np.ones((3, 1))
    assert heaviest_chain(3, 1, lambda i, lo, hi: ones[i, lo:hi]) == [(0, 0)]
    assert heaviest_chain(3, 1, lambda i, lo, hi: ones[i, lo:hi], prefer_match=True) == [(2, 0)]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 30), min_size=20, max_size=60), st.integers(0, 2**32 - 1))
def test_windows_find_nearly_all_that_a_whole_table_finds(first, seed):
    """Of two sequences of which one lacks some elements; the pairs are real and increase whatever the windows are."""
    random = np.random.default_rng(seed)
    second = [value for value in first if random.random() > 0.15]
    whole = heaviest_chain(len(first), len(second), equal(first, second))
    window, chain.WINDOW = chain.WINDOW, 16
    try:
        pairs = heaviest_chain(len(first), len(second), equal(first, second))
    finally:
        chain.WINDOW = window
    assert all(first[i] == second[j] for i, j in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
    assert len(pairs) >= 0.9 * len(whole) - 2


def left_at(best, rest):
    """Where a chain leaves a window: at the exit that promises most, of equal ones the nearest to the corner.

    An exit promises the weight so far, and for each pair that the elements left over and those after the window allow
    as much as an element of the window has on average.
    """
    height, width = (n - 1 for n in best.shape)
    each = Fraction(best[height, width]) / min(height, width)
    below = [(best[height, j] + each * min(rest[0], rest[1] + width - j), height, j) for j in range(width, -1, -1)]
    beside = [(best[i, width] + each * min(rest[0] + height - i, rest[1]), i, width) for i in range(height, -1, -1)]
    return max([*below, *beside], key=lambda one: one[0])[1:]


def by_windows(weights, late, size):
    """The pairs of all windows: those of the last quarter of one are left to the next."""
    rows, columns = weights.shape
    pairs, i, j = [], 0, 0
    while i < rows and j < columns:
        stop = min(rows, i + size), min(columns, j + size)
        rest = rows - stop[0], columns - stop[1]
        inside = weights[i : stop[0], j : stop[1]]
        end = left_at(sums(inside), rest) if any(rest) else inside.shape
        found = [(i + a, j + b) for a, b in chosen(inside[: end[0], : end[1]], late)]
        sure = [at if not more else at - size // 4 for at, more in zip(stop, rest, strict=True)]
        kept = [pair for pair in found if pair[0] < sure[0] and pair[1] < sure[1]] if any(rest) else found
        pairs += kept
        if not any(rest):
            break
        if kept:
            i, j = kept[-1][0] + 1, kept[-1][1] + 1
        else:
            first = found[0] if found else stop
            i, j = (min(at + size // 2, one) if more else at for at, one, more in zip((i, j), first, rest, strict=True))
    return pairs


@pytest.mark.parametrize("size", [4, 8, 13])
@pytest.mark.parametrize("late", [False, True])
def test_windows_are_left_where_most_is_to_come(monkeypatch, size, late):
    monkeypatch.setattr(chain, "WINDOW", size)
    for seed in range(40):
        random = np.random.default_rng(seed)
        shape = random.integers(1, 5 * size, 2)
        weights = random.choice([0, 0, 0, 0, 1, 1, 2, 3.5], shape)
        if seed % 2:  # two sequences of one or two ranges in common
            sides = [random.integers(0, 6, n) for n in shape]
            weights = np.where(np.equal.outer(*sides), 1.0 + sides[0][:, None] % 2, 0.0)
        if seed % 5 == 0:
            weights[: shape[0] // 2, : shape[1] // 3] = 0.0
        if seed % 7 == 0:
            weights[shape[0] // 3 :, : shape[1] // 2] = 0.0
        found = heaviest_chain(*map(int, shape), lambda i, lo, hi, of=weights: of[i, lo:hi], prefer_match=late)
        assert found == by_windows(weights, late, size)
