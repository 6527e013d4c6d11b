"""Digests against hashlib: `pytest tests/bench/bench_digest.py`."""

import hashlib

import numpy as np
import pytest

from dumpsim.tensor.digest import digest


@pytest.mark.parametrize("algorithm", ["md5", "sha1"])
@pytest.mark.parametrize("count", [1, 4, 64, 4096])
@pytest.mark.parametrize("threads", [1, 2])
def test_against_hashlib(race, bench_bytes, algorithm, count, threads):
    rng = np.random.default_rng(0)
    arrays = np.split(rng.integers(0, 256, bench_bytes // count * count, dtype=np.uint8), count)
    function = getattr(hashlib, algorithm)
    race(
        bench_bytes,
        lambda: digest(arrays, algorithm, threads),
        threads=threads,
        hashlib=lambda: [function(a).hexdigest() for a in arrays],
    )
