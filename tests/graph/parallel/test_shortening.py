"""Cuts and joins that become one, against arrays that are cut and joined step by step."""

import numpy as np
import pytest

from dumpsim.graph.parallel.shortening import _merged_cuts, _merged_joins
from dumpsim.graph.parallel.transfer import Cut, Join, Reshape

R, S = Reshape((4, 6)), Reshape((24,))


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([], []), ([R], [R]), ([Cut(0, 2, 1)], [Cut(0, 2, 1)]), ([R, Cut(0, 2, 1)], [R, Cut(0, 2, 1)]),
        ([Cut(0, 2, 1), Cut(0, 3, 2)], [Cut(0, 6, 5)]), ([Cut(1, 2, 1), Cut(1, 3, 0)], [Cut(1, 6, 3)]),
        # only reshapes between them, which go
        ([Cut(0, 2, 1), R, Cut(0, 3, 2)], [Cut(0, 6, 5)]), ([Cut(0, 2, 1), R, S, Cut(0, 3, 2)], [Cut(0, 6, 5)]),
        ([Cut(0, 2, 1), R, S, R, Cut(0, 3, 2)], [Cut(0, 6, 5)]),
        ([R, Cut(0, 2, 1), R, Cut(0, 2, 0)], [R, Cut(0, 4, 2)]),
        ([Cut(0, 2, 1), R, Cut(0, 2, 1), S, Cut(0, 2, 0)], [Cut(0, 8, 6)]),
        ([Cut(0, 2, 1), Cut(0, 2, 0), R], [Cut(0, 4, 2), R]),
        # along another axis, or after a join
        ([Cut(0, 2, 1), Cut(1, 2, 1)], [Cut(0, 2, 1), Cut(1, 2, 1)]),
        ([Cut(0, 2, 1), R, Cut(1, 2, 1)], [Cut(0, 2, 1), R, Cut(1, 2, 1)]),
        ([Cut(0, 2, 1), Join(0, 2, 1), Cut(0, 2, 0)], [Cut(0, 2, 1), Join(0, 2, 1), Cut(0, 2, 0)]),
        ([Join(0, 2, 1), R, Cut(0, 2, 0)], [Join(0, 2, 1), R, Cut(0, 2, 0)]),
    ],
)  # fmt: skip
def test_cuts_of_one_axis_become_one(steps, found):
    assert _merged_cuts(steps) == found


@pytest.mark.parametrize("one", [(2, 0), (2, 1), (3, 2)])
@pytest.mark.parametrize("other", [(2, 0), (2, 1), (4, 3)])
def test_a_merged_cut_takes_the_part_of_the_part(one, other):
    array = np.arange(24)
    (step,) = _merged_cuts([Cut(0, *one), Cut(0, *other)])
    expected = np.split(np.split(array, one[0])[one[1]], other[0])[other[1]]
    np.testing.assert_array_equal(np.split(array, step.count)[step.index], expected)


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([Join(0, 2, 1), Join(0, 3, 2)], [Join(0, 6, 1)]), ([Join(1, 2, 4), Join(1, 2, 8)], [Join(1, 4, 4)]),
        ([Join(0, 2, 1), Join(0, 2, 2), Join(0, 2, 4)], [Join(0, 8, 1)]),
        # the groups are not beside each other, or the axis is another one
        ([Join(0, 2, 1), Join(0, 2, 4)], [Join(0, 2, 1), Join(0, 2, 4)]),
        ([Join(0, 2, 2), Join(0, 2, 1)], [Join(0, 2, 2), Join(0, 2, 1)]),
        ([Join(0, 2, 1), Join(1, 2, 2)], [Join(0, 2, 1), Join(1, 2, 2)]),
        ([Join(0, 2, 1), R, Join(0, 2, 2)], [Join(0, 2, 1), R, Join(0, 2, 2)]),
        ([Join(0, 2, 1), Cut(0, 2, 0)], [Join(0, 2, 1), Cut(0, 2, 0)]), ([R, Join(0, 2, 1)], [R, Join(0, 2, 1)]),
        ([], []),
    ],
)  # fmt: skip
def test_joins_of_groups_of_groups_become_one(steps, found):
    """Ranks 0 and 1, then 0 and 2: first the parts of 0 and 1, then those of 2 and 3."""
    assert _merged_joins(steps) == found
