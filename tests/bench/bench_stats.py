"""Statistics against reading the same memory and against numpy: `pytest tests/bench/bench_stats.py`."""

import math

import numpy as np
import pytest

from dumpsim._ext.stats import read_words
from dumpsim.tensor.simd import level_number, simd_levels
from dumpsim.tensor.slab import raw
from dumpsim.tensor.stats import CODES, statistics

BY_NAME = {t.name: t for t in CODES}


def normal(dtype, size):
    """Values as they come in networks; the same million again and again, which no loop here can notice."""
    rng = np.random.default_rng(0)
    if dtype == np.bool_:
        block = rng.random(1 << 20) < 0.5
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        block = rng.integers(max(info.min, -(2**31)), min(info.max, 2**31), 1 << 20).astype(dtype)
    else:
        block = rng.standard_normal(1 << 20).astype(dtype)
    return np.resize(block, size // dtype.itemsize)


def numpy_statistics(x):
    """The same statistics in as few passes as numpy's functions allow."""
    nan = np.count_nonzero(np.isnan(x))
    square = np.square(x, dtype=np.float64)
    return (
        x.max(),
        x.min(),
        x.mean(dtype=np.float64),
        math.sqrt(square.sum()),
        x.size,
        np.count_nonzero(x < 0),
        np.count_nonzero(x > 0),
        np.count_nonzero(x == 0),
        nan,
        np.count_nonzero(np.isposinf(x)),
        np.count_nonzero(np.isneginf(x)),
    )


@pytest.mark.parametrize("level", simd_levels())
@pytest.mark.parametrize("name", BY_NAME)
def test_against_reading(race, bench_bytes, name, level):
    x = normal(BY_NAME[name], bench_bytes)
    words = raw(x)
    best_level = level_number()
    race(x.nbytes, lambda: statistics(x, _level=level), read=lambda: read_words(words, best_level))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_against_numpy(race, bench_bytes, name):
    x = normal(BY_NAME[name], bench_bytes)
    race(x.nbytes, lambda: statistics(x), numpy=lambda: numpy_statistics(x))


@pytest.mark.parametrize("threads", [2])
def test_threads(race, bench_bytes, threads):
    x = normal(BY_NAME["float32"], bench_bytes)
    race(x.nbytes, lambda: statistics(x, threads=threads), threads=threads, one_thread=lambda: statistics(x))


@pytest.mark.parametrize("kind", ["strided", "transposed", "big_endian"])
def test_not_contiguous(race, bench_bytes, kind):
    x = normal(BY_NAME["float32"], bench_bytes).reshape(1024, -1)
    x = {"strided": x[:, ::2], "transposed": x.T, "big_endian": x.view(">f4")}[kind]
    race(x.nbytes, lambda: statistics(x), contiguous_copy_first=lambda: statistics(np.ascontiguousarray(x, np.float32)))
