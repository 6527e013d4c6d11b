"""Layouts of tensors over devices, against a device matrix of ranks in numpy. [spec parallel 2.1]"""

from itertools import product
from math import prod

import numpy as np
import pytest

from dumpsim.core.tensorlayout import WHOLE, TensorLayout, dims_of

LAYOUTS = [
    TensorLayout((2, 2), (1, WHOLE), (16, 32)),
    TensorLayout((2, 4), (0, 1), (8, 6)),
    TensorLayout((2, 3, 4), (2, 0), (4, 8)),
    TensorLayout((2, 3, 4), ((2, 0), 1), (16, 9)),
    TensorLayout((2, 3, 4), ((0, 2), WHOLE, (1, WHOLE)), (8, 5, 3)),
    TensorLayout((2, 1, 4), (1, 0), (16, 32)),
    TensorLayout((8,), (WHOLE, WHOLE), (3, 5)),
    TensorLayout((2, 2), (), ()),
    TensorLayout((1,), (0,), (7,)),
]


def dims(axis):
    """Device dimensions of an axis, as axes of the matrix from the left."""
    return [dim for dim in (axis if isinstance(axis, tuple) else (axis,)) if dim != WHOLE]


def coordinates(layout):
    """rank -> its place in the device matrix, counted from the right, as numpy lays it out."""
    ranks = np.arange(prod(layout.device_matrix)).reshape(layout.device_matrix)
    return {int(ranks[place]): place[::-1] for place in product(*map(range, layout.device_matrix))}


def parts(layout, rank):
    """The part of each axis that a rank has: its number and how many there are."""
    place, matrix = coordinates(layout)[rank], layout.device_matrix[::-1]
    found = []
    for axis in layout.tensor_map:
        number, count = 0, 1
        for dim in dims(axis):
            number, count = number * matrix[dim] + place[dim], count * matrix[dim]
        found.append((number, count))
    return found


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_parts_of_every_rank(layout):
    whole = np.arange(prod(layout.shape)).reshape(layout.shape)
    places = coordinates(layout)
    assert layout.devices == len(places)
    for rank, place in places.items():
        expected = parts(layout, rank)
        assert layout.cuts == tuple(count for _, count in expected)
        assert tuple(layout.index(rank, axis) for axis in range(len(expected))) == tuple(n for n, _ in expected)
        assert tuple(layout.coordinate(rank, dim) for dim in range(len(place))) == place
        part = whole
        for axis, (number, count) in enumerate(expected):
            part = np.split(part, count, axis)[number]
        assert layout.slice_shape == part.shape
        assert np.array_equal(whole[layout.region(rank)], part)
        same = tuple(other for other in places if parts(layout, other) == expected)
        assert layout.replicas(rank) == same
    assert layout.is_whole == all(count == 1 for _, count in parts(layout, 0))
    assert layout.used == {dim for axis in layout.tensor_map for dim in dims(axis)}
    assert layout.fits()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_groups_are_the_ranks_that_differ_in_some_dimensions_only(layout):
    places = coordinates(layout)
    count = len(layout.device_matrix)
    for chosen in ([], [0], [count - 1], list(range(count)), [0, 0]):
        for rank, place in places.items():
            others = [d for d in range(count) if d not in chosen]
            same = tuple(r for r, other in places.items() if all(other[d] == place[d] for d in others))
            assert layout.group(chosen, rank) == same


def test_a_tensor_that_every_device_has_whole():
    layout = TensorLayout.whole([3, 5], 4)
    assert layout == TensorLayout((4,), (WHOLE, WHOLE), (3, 5))
    assert layout.is_whole
    assert layout.replicas(2) == (0, 1, 2, 3)
    assert layout.region(2) == (slice(0, 3), slice(0, 5))


def test_axes_that_cannot_be_cut_into_equal_parts():
    for shape, fits in (((4, 6), True), ((4, 7), False), ((3, 6), False), ((0, 0), True)):
        assert TensorLayout((2, 3), (1, 0), shape).fits() is fits


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_other_forms_have_the_same_parts(layout):
    """Split axes and left-out dimensions change the form, not which elements a rank has."""
    whole = np.arange(prod(layout.shape))
    split = layout.split()
    assert all(len(dims(axis)) <= 1 and not isinstance(axis, tuple) for axis in split.tensor_map)
    assert split.device_matrix == layout.device_matrix
    forms = [split, layout.squeezed(), layout.squeezed(axes=True)]
    assert all(1 not in form.device_matrix or form.device_matrix == (1,) for form in forms[1:])
    assert 1 not in forms[2].shape or forms[2].shape == (1,)
    for rank in range(layout.devices):
        expected = whole.reshape(layout.shape)[layout.region(rank)].ravel()
        for form in forms:
            assert np.array_equal(whole.reshape(form.shape)[form.region(rank)].ravel(), expected)


@pytest.mark.parametrize(
    ("layout", "axes", "expected"),
    [
        (TensorLayout((2, 1, 4), (1, 0), (16, 32)), False, TensorLayout((2, 4), (WHOLE, 0), (16, 32))),
        (TensorLayout((2, 1, 4), (2, (1, 0)), (16, 1)), False, TensorLayout((2, 4), (1, 0), (16, 1))),
        (TensorLayout((2, 1, 4), ((2, 1, 0), WHOLE), (16, 1)), True, TensorLayout((2, 4), ((1, 0),), (16,))),
        (TensorLayout((1, 1), (1, 0), (1, 1)), False, TensorLayout((1,), (WHOLE, WHOLE), (1, 1))),
        (TensorLayout((1, 1), (1, 0), (1, 1)), True, TensorLayout((1,), (WHOLE,), (1,))),
        (TensorLayout((2,), (0, WHOLE), (4, 2)), True, TensorLayout((2,), (0, WHOLE), (4, 2))),
    ],
)
def test_dimensions_and_axes_of_one_are_left_out(layout, axes, expected):
    assert layout.squeezed(axes=axes) == expected


def test_axes_in_several_dimensions_become_several_axes():
    layout = TensorLayout((2, 3, 4), ((2, 1, 0), WHOLE, 1), (48, 5, 3))
    assert layout.split() == TensorLayout((2, 3, 4), (2, 1, 0, WHOLE, 1), (2, 3, 8, 5, 3))
    assert [dims_of(axis) for axis in ((2, WHOLE, 0), WHOLE, 3, (WHOLE,))] == [(2, 0), (), (3,), ()]
