"""Free ranges against an allocator that looks at every byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.core.errors import BadInputError
from dumpsim.device.space import Space

CAPACITY = 64
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["take", "take", "give"]), st.integers(1, 20), st.sampled_from([1, 4, 16])), max_size=40
)


class Bytes:
    """The same, byte by byte."""

    def __init__(self, fit, reuse):
        self.free, self.taken, self.fit, self.reuse = [True] * CAPACITY, {}, fit, reuse

    def holes(self):
        found, at = [], 0
        while at < CAPACITY:
            if self.free[at]:
                end = at
                while end < CAPACITY and self.free[end]:
                    end += 1
                found.append((at, end))
                at = end
            else:
                at += 1
        return found

    def take(self, size, align):
        fitting = [(start, stop) for start, stop in self.holes() if -(-start // align) * align + size <= stop]
        if not fitting:
            return None
        start, _ = min(fitting, key=lambda hole: (hole[1] - hole[0], hole[0]) if self.fit == "best" else hole)
        at = -(-start // align) * align
        self.free[at : at + size] = [False] * size
        self.taken[at] = size
        return at

    def give(self, at):
        size = self.taken.pop(at)
        if self.reuse:
            self.free[at : at + size] = [True] * size
        return size


@given(ACTIONS, st.sampled_from(["best", "first"]), st.booleans())
def test_ranges_are_those_of_a_search_through_all_bytes(actions, fit, reuse):
    space, truth = Space(CAPACITY, fit=fit, reuse=reuse), Bytes(fit, reuse)
    peak = 0
    for action, size, align in actions:
        if action == "take":
            found = space.take(size, align)
            assert found == truth.take(size, align)
            peak = max(peak, found + size if found is not None else 0)
        elif truth.taken:
            at = sorted(truth.taken)[size % len(truth.taken)]
            assert space.give(at) == truth.give(at)
        assert space.largest_hole == max((stop - start for start, stop in truth.holes()), default=0)
    assert space.peak == peak


def test_what_no_space_has():
    with pytest.raises(BadInputError, match="did you mean 'best'"):
        Space(1, fit="bes")
    with pytest.raises(KeyError):
        Space(8).give(0)


def test_the_peak_is_the_highest_end_that_was_ever_taken():
    space = Space(CAPACITY)
    assert space.peak == 0
    first, second = space.take(10), space.take(20)
    assert space.peak == 30
    space.give(first)
    space.give(second)
    space.take(5)
    assert space.peak == 30


@pytest.mark.parametrize("fit", ["best", "first"])
@pytest.mark.parametrize("order", [(0, 10), (10, 0)])
def test_a_hole_that_was_filled_leaves_nothing_between_its_neighbours(fit, order):
    space = Space(CAPACITY, fit=fit)
    assert [space.take(size) for size in (10, 10, CAPACITY - 20)] == [0, 10, 20]
    for start in order:
        space.give(start)
        assert space.take(10) == start
    for start in reversed(order):
        space.give(start)
    assert space.largest_hole == 20
    assert space.take(20) == 0
