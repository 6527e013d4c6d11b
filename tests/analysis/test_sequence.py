"""Pairs of sequences against the textbook's common subsequence."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.analysis import chain, sequence
from dumpsim.analysis.sequence import increasing, pair

WORDS = st.text("abc", max_size=14)


def longest(a, b):
    """Length of the longest common subsequence, by the definition."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@settings(max_examples=120, deadline=None)
@given(WORDS, WORDS)
def test_a_search_finds_a_longest_common_subsequence(a, b):
    found = sequence._search(a, b, (0, len(a), 0, len(b)), None, None)
    assert len(found) == longest(a, b)


@settings(max_examples=120, deadline=None)
@given(WORDS, WORDS)
def test_pairs_are_of_equal_keys_and_increase(a, b):
    found = pair(a, b)
    assert all(a[i] == b[j] for i, j in found)
    assert all(i < k and j < m for (i, j), (k, m) in itertools.pairwise(found))
    assert bool(found) == bool(set(a) & set(b))


@settings(max_examples=60, deadline=None)
@given(st.permutations(range(9)))
def test_the_longest_increasing_choice(order):
    """By trying every subset."""
    best = 0
    for mask in range(1 << len(order)):
        chosen = [value for n, value in enumerate(order) if mask >> n & 1]
        if all(x < y for x, y in itertools.pairwise(chosen)):
            best = max(best, len(chosen))
    assert len(increasing(list(enumerate(order)))) == best


def test_values_tell_equal_keys_apart():
    """Three layers against five of the same shape: those with the same values belong together."""
    left, right = [1.0, 3.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0]

    def values(rows, columns):
        return np.array([[left[n]] for n in rows]), np.array([[right[n]] for n in columns])

    assert pair("LLL", "LLLLL", values) == [(0, 0), (1, 2), (2, 4)]


@pytest.mark.parametrize("window", [2048, 64])
def test_long_repetitions_end_and_are_matched(window, monkeypatch):
    """Also in windows, where the whole table would be too large."""
    monkeypatch.setattr(chain, "WINDOW", window)
    left = [n % 7 for n in range(600)]
    assert len(pair(left, left[7:])) >= 586


def test_keys_in_common_are_not_needed():
    assert pair([("a", n) for n in range(800)], [("b", n) for n in range(800)]) == []
    assert pair([None, "x"], [None, "x"]) == [(1, 1)]
