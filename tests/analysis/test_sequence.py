"""Pairs of sequences against the textbook's common subsequence."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.analysis import chain, sequence
from dumpsim.analysis.sequence import increasing, landmarks, pair

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


# an equal key weighs 4, agreeing values 2, an equal number 1
CHOICES = [
    # left, right, rows of values, numbers, pairs
    ("L", "LL", None, ([5], [3, 5]), [(0, 1)]), ("L", "LL", None, ([5], [5, 3]), [(0, 0)]),
    ("L", "LL", ([1.0], [2.0, 1.0]), None, [(0, 1)]), ("L", "LL", ([1.0], [1.0, 2.0]), None, [(0, 0)]),
    ("L", "LL", ([1.0], [1.0, 2.0]), ([5], [3, 5]), [(0, 0)]),  # values count more than a number
    ("L", "LL", ([1.0], [2.0, 1.0]), ([5], [5, 3]), [(0, 1)]),
    # two keys count most of all: values and the number agree for x alone
    ("xyy", "yyxx", ([1.0, 2.0, 3.0], [8.0, 9.0, 1.0, 7.0]), ([1, 2, 3], [8, 9, 1, 7]), [(1, 0), (2, 1)]),
    ("yyx", "xxyy", ([8.0, 9.0, 1.0], [1.0, 7.0, 2.0, 3.0]), ([8, 9, 1], [1, 7, 2, 3]), [(0, 2), (1, 3)]),
    # rough agreement: a thousandth of the largest number of either row
    ("L", "LL", ([1000.0], [1001.1, 1000.9]), None, [(0, 1)]),
    ("L", "LL", ([1000.0], [1000.9, 1001.1]), None, [(0, 0)]),
    ("L", "LL", ([-1000.0], [-1001.1, -999.1]), None, [(0, 1)]),
    ("L", "LL", ([0.0], [2e-9, 9e-10]), None, [(0, 1)]), ("L", "LL", ([0.0], [9e-10, 2e-9]), None, [(0, 0)]),
    ("L", "LL", ([np.nan], [np.nan, 1.0]), ([1], [0, 1]), [(0, 1)]),  # unknown numbers agree with nothing
    ("L", "LL", ([1.0], [np.nan, 1.0]), None, [(0, 1)]),
    ([None, "L", None], ["L", "L", None], None, ([0, 7, 0], [3, 7, 0]), [(1, 1)]),
    ("aLLb", "acLb", None, None, [(0, 0), (1, 2), (3, 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "values", "numbers", "pairs"), CHOICES)
def test_values_count_more_than_numbers_and_keys_more_than_both(left, right, values, numbers, pairs):
    asked = []

    def rows(ours, theirs):
        asked.append((list(ours), list(theirs)))
        return np.array([[values[0][n]] for n in ours]), np.array([[values[1][n]] for n in theirs])

    assert pair(left, right, rows if values else None, numbers) == pairs
    assert len(asked) == (values is not None)


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0]])
@pytest.mark.parametrize("turned", [1, -1])
def test_rows_agree_where_all_their_numbers_do(order, turned):
    """A row's largest number is the measure of all of them."""
    right = np.array([[100.0, 1.05], [100.0, 1.2], [100.2, 1.0]])[order, ::turned]
    left = np.array([[100.0, 1.0]])[:, ::turned]
    assert pair("L", "LLL", lambda ours, theirs: (left[ours], right[theirs])) == [(0, order.index(0))]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=7),
       st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=7))  # fmt: skip
def test_the_weight_of_a_search_is_the_largest_there_is(left, right):
    """Against a table by the definition: 4 for a key, 1 more for a number."""
    keys = [[key for key, _ in side] for side in (left, right)]
    numbers = tuple([number for _, number in side] for side in (left, right))
    found = sequence._search(*keys, (0, len(left), 0, len(right)), None, numbers)

    def weight(i, j):
        return 4 + (left[i][1] == right[j][1]) if left[i][0] == right[j][0] else 0

    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left)):
        for j in range(len(right)):
            here = table[i][j] + weight(i, j) if weight(i, j) else 0
            table[i + 1][j + 1] = max(here, table[i][j + 1], table[i + 1][j])
    assert sum(weight(i, j) for i, j in found) == table[-1][-1]


def test_a_part_of_two_sequences_can_be_searched():
    assert sequence._search("baabx", "xbaabb", (1, 4, 1, 5), None, None) == [(1, 2), (2, 3), (3, 4)]
    assert sequence._search("ab", "cd", (0, 2, 0, 2), None, None) == []


def test_what_is_unique_cuts_the_ranges():
    """Between two landmarks repeated keys meet only what stands between the same."""
    assert pair("LLxLL", "LxLLL") == [(0, 0), (2, 1), (3, 3), (4, 4)]
    assert pair("", "ab") == pair("ab", "") == []
    assert pair("aa", "aa") == [(0, 0), (1, 1)]
    assert increasing([]) == []
    assert landmarks("aab", "ba") == [(2, 0)]
    assert landmarks(["a", None, "b"], [None, "a", "b"]) == [(0, 1), (2, 2)]
