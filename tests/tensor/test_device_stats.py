"""Device-mode statistics: types, nulls and overflow. [spec mindspore 4.4]"""

import math

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.tensor.device_stats import device_statistics

BF16 = np.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
SIGNED = [np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64)]
NUMBERS = [BF16, F16, F32, F64, *SIGNED, np.dtype(np.uint8)]
OTHERS = [np.dtype(t) for t in (np.uint16, np.uint32, np.uint64, np.complex64, np.complex128, "U3", ml_dtypes.int4)]


def cells(found):
    return [None if c is None else np.dtype(c.dtype) for c in (found.max, found.min, found.avg, found.l2norm)]


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda t: t.name)
def test_types_of_the_results(dtype):
    x = np.array([1, 2, 4], dtype)
    norm = dtype in (BF16, F16, F32)
    assert cells(device_statistics(x, "high")) == [dtype, dtype, F32, F32 if norm else None]
    assert cells(device_statistics(x, "low")) == [dtype, dtype, dtype, dtype if norm else None]


def test_bool_only_in_high_precision():
    x = np.array([True, False])
    high = device_statistics(x)
    assert cells(high) == [np.dtype(np.bool_), np.dtype(np.bool_), None, None]
    assert (bool(high.max), bool(high.min)) == (True, False)
    assert cells(device_statistics(x, "low")) == [None] * 4


@pytest.mark.parametrize("dtype", OTHERS, ids=lambda t: t.name)
@pytest.mark.parametrize("precision", ["high", "low"])
def test_other_types_are_null(dtype, precision):
    assert cells(device_statistics(np.ones(3, dtype), precision)) == [None] * 4


def test_empty_is_null():
    assert cells(device_statistics(np.zeros((0, 3), np.float32))) == [None] * 4


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda t: t.name)
def test_values_in_high_precision(dtype):
    x = (np.random.default_rng(0).standard_normal((7, 333)) * 20 + 60).astype(dtype)
    found, d = device_statistics(x), x.astype(np.float64)
    assert found.max == x.max()
    assert found.min == x.min()
    assert found.avg == pytest.approx(d.mean(), rel=1e-6)
    if found.l2norm is not None:
        assert found.l2norm == pytest.approx(math.sqrt((d * d).sum()), rel=1e-6)


def test_a_norm_of_low_precision_overflows_in_float16_and_an_average_does_not():
    x = np.full(1000, 100, np.float16)
    high, low = device_statistics(x, "high"), device_statistics(x, "low")
    assert (float(high.avg), float(low.avg)) == (100.0, 100.0)
    assert float(high.l2norm) == pytest.approx(math.sqrt(1e7))
    assert float(low.l2norm) == math.inf
    assert (low.max, low.min) == (np.float16(100), np.float16(100))
    assert low.avg.dtype == np.float16
    assert float(device_statistics(np.full(3, 40000, np.float16), "low").avg) == 40000  # their sum does not fit
    # bfloat16 has the range of float32
    assert float(device_statistics(x.astype(BF16), "low").avg) == 100.0


def test_float32_overflows_where_float32_does():
    x = np.array([3e38, 3e38], np.float32)
    assert float(device_statistics(x, "low").avg) == math.inf
    assert float(device_statistics(x, "high").avg) == float(np.float32(3e38))
    assert float(device_statistics(x, "high").l2norm) == math.inf


def test_integers_in_low_precision_lose_the_fraction():
    assert device_statistics(np.array([1, 2], np.int32), "low").avg == np.int32(1)
    assert device_statistics(np.array([-1, -2], np.int32), "low").avg == np.int32(-1)


def test_64_bit_extrema_are_exact():
    x = np.array([2**53 + 1, -(2**53) - 1, 2**62 + 1], np.int64)
    assert int(device_statistics(x).max) == 2**62 + 1
    assert int(device_statistics(x).min) == -(2**53) - 1
    assert int(device_statistics(np.array([2**63 - 1, -(2**63)]), "low").max) == 2**63 - 1
    assert int(device_statistics(np.array([2**63 - 1]), "low").avg) == 2**63 - 1


@pytest.mark.parametrize("dtype", [BF16, F16, F32, F64], ids=lambda t: t.name)
@pytest.mark.parametrize("precision", ["high", "low"])
def test_nan_propagates(dtype, precision):
    found = device_statistics(np.array([1, np.nan, -np.inf], dtype), precision)
    for cell in (found.max, found.min, found.avg, found.l2norm):
        assert cell is None or math.isnan(float(cell))


def test_infinity():
    found = device_statistics(np.array([1, np.inf], np.float16), "low")
    assert [float(c) for c in (found.max, found.min, found.avg, found.l2norm)] == [math.inf, 1.0, math.inf, math.inf]


def test_strides_and_byte_order():
    x = np.arange(60, dtype=np.float32).reshape(6, 10)
    want = device_statistics(np.ascontiguousarray(x[::2, 3:]))
    assert device_statistics(x.astype(">f4")[::2, 3:]) == want
    assert device_statistics(x.astype(">f4")[::2, 3:]).max.dtype == F32


def test_an_unknown_precision():
    with pytest.raises(BadInputError, match=r"'hihg' is not a precision; allowed: high, low \(did you mean 'high'\?\)"):
        device_statistics([1.0], "hihg")
