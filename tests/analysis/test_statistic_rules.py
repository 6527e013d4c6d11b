"""How far statistics of agreeing tensors may be apart, and what padding with zeros does to them."""

import math

import numpy as np
import pytest

from dumpsim.analysis.slicing import Layouts
from dumpsim.analysis.statistic import near, padded, typical, zero_filled
from dumpsim.analysis.tolerance import Tolerance

LOOSE = Tolerance(rtol=0.25, atol=0.5)
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("host", "device", "found"),
    [
        ((8, 6, 28, 28), (8, 1, 28, 28, 16), True), ((8, 17, 4, 4), (8, 2, 4, 4, 16), True),
        ((8, 33, 4, 4), (8, 2, 4, 4, 32), True), ((20, 40), (3, 2, 16, 16), True), ((8, 6), (8, 7), False),
        ((), (16,), False), ((8, 16, 4, 4), (8, 1, 4, 4, 16), False),  # nothing was filled up
        ((8, 6, 28, 28), (8, 2, 28, 28, 16), False), ((3,), (2, 2), False), ((8, 6), (8, 6), False),
    ],
)  # fmt: skip
def test_shapes_of_layouts_that_fill_up_with_zeros(host, device, found):
    assert padded(host, device) is found


@pytest.mark.parametrize("values", [[3.0, 5.0], [-3.0, -1.0], [-2.0, 4.0, 1.0]])
def test_zeros_change_statistics_as_they_change_the_tensor(values):
    x = np.array(values)
    row = {"max": x.max(), "min": x.min(), "avg": x.mean(), "l2norm": np.linalg.norm(x), "nan": 0}
    wide = np.concatenate([x, np.zeros(5)])
    found = zero_filled(row, len(x), len(wide))
    assert found == {"max": wide.max(), "min": wide.min(), "avg": pytest.approx(wide.mean()),
                     "l2norm": pytest.approx(np.linalg.norm(wide)), "nan": 0}  # fmt: skip
    assert zero_filled({"max": NAN}, 1, 2)["max"] != 0
    assert zero_filled({}, 1, 2) == {}


@pytest.mark.parametrize(
    ("row", "count", "size"),
    [
        ({"l2norm": 6.0}, 9, 2.0),
        ({"l2norm": -6.0, "max": 9.0}, 9, 2.0),
        ({"l2norm": 6.0, "max": 3.0, "min": -5.0}, 0, 5.0),
        ({"max": 3.0}, 9, 3.0),
        ({"min": -4.0}, 9, 4.0),
        ({}, 9, 1.0),
        ({"l2norm": INF}, 9, 1.0),
        ({"max": NAN}, 9, 1.0),
    ],
)
def test_the_size_of_elements_of_a_row(row, count, size):
    assert typical(row, count) == size


@pytest.mark.parametrize(
    ("name", "own", "other", "count", "found"),
    [
        ("max", 4.0, 4.0, 4, True), ("max", NAN, NAN, 4, True), ("max", INF, INF, 4, True),
        ("max", INF, -INF, 4, False),
        ("max", NAN, 4.0, 4, False), ("max", 4.0, INF, 4, False),
        ("max", 5.5, 4.0, 4, True), ("max", 5.6, 4.0, 4, False),  # 0.5 + 4 / 4
        ("min", -5.5, -4.0, 4, True), ("min", -2.4, -4.0, 4, False),
        ("l2norm", 6.0, 4.0, 4, True), ("l2norm", 6.1, 4.0, 4, False),  # 0.5 * 2 + 4 / 4
        ("l2norm", 5.5, 4.0, 0, True), ("l2norm", 5.6, 4.0, 0, False),
        ("nan", 3, 4, 4, False), ("nan", 4, 4, 4, True), ("positive_inf", 1, 2, 4, False),
        ("avg", 3.0, 0.0, 4, True), ("avg", 3.1, 0.0, 4, False),  # 0.5 + 10 / 4, of the largest element
    ],
)  # fmt: skip
def test_how_far_a_statistic_may_be_off(name, own, other, count, found):
    rows = [{name: value, "max": 2.0, "min": -10.0} | {name: value} for value in (own, other)]
    assert near(name, *rows, count, LOOSE) is found


def test_printed_numbers_have_six_digits():
    none = Tolerance(rtol=0.0, atol=0.0)
    assert near("max", {"max": 100000.9}, {"max": 100000.0}, 1, none)
    assert not near("max", {"max": 100001.1}, {"max": 100000.0}, 1, none)
    assert not near("avg", {"avg": 1.1}, {"avg": 1.0, "max": INF, "min": None}, 1, none)


ENTRY = {"graph_id": 0, "op": "Default/MatMul-op0", "io": "output", "slot": 0, "device_matrix": [2, 3],
         "tensor_map": [1, -1], "shape": [4, 8]}  # fmt: skip


def test_ranks_that_hold_terms_of_a_sum_are_no_replicas():
    layouts = Layouts([ENTRY, {**ENTRY, "slot": 1, "summed": [0]}, {**ENTRY, "slot": 2, "tensor_map": [[1, 0], -1]}])
    assert list(layouts) == [(0, "Default_MatMul-op0", "output", slot) for slot in range(3)]
    assert len(layouts) == 3
    one, summed, cut = layouts.values()
    # ranks 0 to 5 in two rows of three; the tensor is cut along the rows
    assert [one.replicas(rank) for rank in (0, 2, 4)] == [(0, 1, 2), (0, 1, 2), (3, 4, 5)]
    assert [summed.replicas(rank) for rank in (0, 2, 4)] == [(0,), (2,), (4,)]
    assert [cut.replicas(rank) for rank in (0, 5)] == [(0,), (5,)]


@pytest.mark.parametrize(
    ("other", "far"),
    [
        ({"avg": 0.1}, True), ({"avg": 0.1, "max": 1.0}, False), ({"avg": 0.1, "min": -1.0}, False),
        ({"avg": 0.1, "max": INF, "min": -1.0}, False), ({"avg": 0.1, "max": 0.0, "min": None}, True),
        ({"avg": 0.1, "max": NAN}, True),
    ],
)  # fmt: skip
def test_an_average_may_be_off_by_a_share_of_the_largest_element_that_is_known(other, far):
    """A quarter of 0.1, or of 1."""
    assert near("avg", {"avg": 0.3}, other, 4, Tolerance(rtol=0.25, atol=0.0)) is not far
