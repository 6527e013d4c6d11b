"""Bounds of rounding errors: float32 lies within them, in any order of summation, and views share them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.ops.table import find
from dumpsim.replay.bounded import DEVICE, Untracked, bound_of, exact
from dumpsim.replay.kernel import compute
from dumpsim.replay.measure import measure


def arrays(seed, *shape):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


@given(seed=st.integers(0, 10_000), size=st.integers(1, 3000))
def test_sums_in_any_order(seed, size):
    x = arrays(seed, size)
    total = exact(x).sum()
    own = np.float32(0)
    for value in np.random.RandomState(seed).permutation(x):
        own += value
    assert abs(float(own) - float(total)) <= float(total.bound)


@given(seed=st.integers(0, 10_000))
def test_functions_in_float32(seed):
    x, y = arrays(seed, 50), arrays(seed + 1, 50)
    for function in (
        lambda a, b: np.exp(a) / (1 + np.exp(b)) - np.tanh(a * b),
        lambda a, b: np.log1p(np.abs(a)) * np.sqrt(b * b + 1) - a**2,
        lambda a, b: (a - a.mean()) / np.sqrt(np.square(a - a.mean()).mean() + 1e-5) * b,
        lambda a, b: np.where(a > b, a, b * 0.1).sum() + np.maximum(a, b).max(),
    ):
        wide = function(exact(x), exact(y))
        assert np.all(np.abs(function(x, y) - np.asarray(wide)) <= wide.bound)


def test_a_view_that_is_written_has_the_bounds_of_the_whole():
    x = exact(arrays(0, 6))
    half = x.reshape(-1)[:3]
    half += exact(arrays(1, 3)) / 3
    assert np.all(bound_of(x)[:3] > 0)
    assert np.all(bound_of(x)[3:] == 0)


def test_what_cannot_be_followed_is_refused():
    with pytest.raises(Untracked):
        np.sort(exact(arrays(0, 3)))
    target = np.zeros(3)
    with pytest.raises(Untracked):
        target += exact(arrays(0, 3))


@pytest.mark.parametrize("order", [1, -1])
def test_overlapping_windows_may_be_summed_in_any_order(order):
    """Gradients of a pooling whose windows overlap, added from the other end."""
    x, dout = arrays(3, 1, 2, 9, 9), arrays(4, 1, 2, 4, 4)
    attrs = {"kernel_size": (1, 1, 3, 3), "strides": (1, 1, 2, 2), "pad_mode": "VALID", "format": "NCHW"}
    out = find("MaxPool").kernel(x, **attrs)
    (computed,) = compute(find("MaxPoolGrad"), (x, out, dout), attrs, machine=DEVICE, real=True)
    own = np.zeros_like(x)
    places = [(c, i, j) for c in range(2) for i in range(4) for j in range(4)][::order]
    for c, i, j in places:
        window = x[0, c, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        row, column = np.unravel_index(np.argmax(window), window.shape)
        own[0, c, 2 * i + row, 2 * j + column] += dout[0, c, i, j]
    assert measure(own, computed, "float32", DEVICE.unit).excess <= 1
