"""Statistics and npy files of single values, against numpy."""

import io
import math

import ml_dtypes
import numpy as np
import pytest

from dumpsim.frontends.apidump.arrays import described, npy_parts

VALUES = np.array([[3, 0, 7], [1, 100, 2]])
NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
NARROW = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize(
    ("kind", "exact"), [*((kind, False) for kind in (*NUMBERS, *NARROW)), *((kind, True) for kind in NUMBERS)]
)
def test_maximum_minimum_and_mean(kind, exact):
    value = VALUES.astype(kind)
    wide = value.astype(np.float64)
    found = described(value, exact=exact)
    assert (found.max, found.min) == (wide.max(), wide.min())
    # in float16, numpy rounds the mean to the type itself [spec api_dump 1.4]
    wanted = np.float16(wide.mean()) if exact and kind == "f2" else np.float32(wide.mean())
    assert found.mean == pytest.approx(float(wanted), rel=1e-6)
    assert all(type(part) is float for part in found)


@pytest.mark.parametrize("value", [2, -1.5, True, 2**70])
def test_a_number_is_its_own_maximum(value):
    for exact in (False, True):
        assert described(value, exact=exact) == (value, value, value)


@pytest.mark.parametrize("value", [np.array([True, False]), np.zeros((0, 3), np.float32)], ids=["bool", "empty"])
def test_what_has_no_statistics(value):
    assert described(value, exact=True) == ([], [], [])
    assert all(math.isnan(part) for part in described(value))
    assert all(math.isnan(part) for part in described(np.array([1j])))


def test_infinity_is_the_rounding_of_a_large_double():
    assert described(np.array([1e300, -1e300])) == (math.inf, -math.inf, 0.0)


@pytest.mark.parametrize("kind", [*NUMBERS, "?", "c8", "c16"])
def test_files_are_those_of_numpy(kind):
    for value in (VALUES.astype(kind), VALUES.T.astype(kind), VALUES.astype(kind)[:, 1], VALUES.astype(kind)[0, 0]):
        content = b"".join(bytes(part) for part in npy_parts(value))
        file = io.BytesIO()
        np.save(file, np.ascontiguousarray(value).reshape(value.shape))
        assert content == file.getvalue()


@pytest.mark.parametrize("kind", NARROW, ids=str)
def test_types_that_numpy_does_not_have_are_widened(kind):
    value = VALUES.astype(kind)
    found = np.load(io.BytesIO(b"".join(bytes(part) for part in npy_parts(value))))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, value.astype(np.float32))


def test_files_hold_copies_and_no_larger_integers():
    value = np.ones(3, np.float32)
    _, data = npy_parts(value)
    value[:] = 2
    assert np.frombuffer(data, np.float32).tolist() == [1, 1, 1]
    with pytest.raises(OverflowError, match="more than 64 bits"):
        npy_parts(2**70)
