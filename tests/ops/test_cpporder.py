"""Selection and sorting as C++'s library does them: what they promise, and orders recorded from GCC's."""

import json
import random
from pathlib import Path

import pytest

from dumpsim.ops.cpporder import nth_element, stable_sort


@pytest.mark.parametrize("kinds", [1, 2, 5, 1000])
def test_what_nth_element_promises(kinds):
    draw = random.Random(kinds)
    for size in (1, 2, 3, 4, 5, 17, 100):
        values = [draw.randrange(kinds) for _ in range(size)]
        for nth in range(size + 1):
            index = list(range(size))
            nth_element(index, nth, lambda one, other, values=values: values[one] < values[other])
            assert sorted(index) == list(range(size))
            if nth < size:
                assert values[index[nth]] == sorted(values)[nth]
                assert all(values[at] <= values[index[nth]] for at in index[:nth])
                assert all(values[at] >= values[index[nth]] for at in index[nth:])


@pytest.mark.parametrize("kinds", [1, 2, 5, 1000])
def test_stable_sort_is_stable(kinds):
    draw = random.Random(kinds)
    for size in (0, 1, 2, 6, 7, 8, 15, 57, 200):
        values = [draw.randrange(kinds) for _ in range(size)]
        index = list(range(size))
        stable_sort(index, lambda one, other, values=values: values[one] > values[other])
        assert index == sorted(range(size), key=lambda at: -values[at])


def test_a_range_that_stays_large_is_selected_by_a_heap():
    # McIlroy's adversary: an element gets its value when it is first compared with one that has none, so that each
    # pivot turns out to be among the least
    size = 400
    values, solid, candidate = [size] * size, 0, 0

    def before(one, other):
        nonlocal solid, candidate
        if values[one] == size and values[other] == size:
            chosen = one if one == candidate else other
            values[chosen], solid = solid, solid + 1
        if values[one] == size:
            candidate = one
        elif values[other] == size:
            candidate = other
        return values[one] < values[other]

    index = list(range(size))
    nth_element(index, size - 10, before)
    index = list(range(size))
    calls = 0

    def counted(one, other):
        nonlocal calls
        calls += 1
        return values[one] < values[other]

    nth_element(index, size - 10, counted)
    assert values[index[size - 10]] == sorted(values)[size - 10]
    assert calls < size * 40  # a quadratic number would be some 40,000


def test_equal_elements_and_nan_are_left_where_the_library_of_gcc_leaves_them():
    recorded = json.loads((Path(__file__).parents[2] / "fixtures/ops/cpporder.json").read_text("utf-8"))
    assert len(recorded) > 200
    for case in recorded:
        values = [float("nan") if value is None else value for value in case["values"]]
        index = list(range(len(values)))

        def before(one, other, values=values):
            return values[one] < values[other]

        stable_sort(index, before) if case["nth"] < 0 else nth_element(index, case["nth"], before)
        assert index == case["order"], case
