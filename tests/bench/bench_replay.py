"""`dumpsim.replay` against the time to read its files: `pytest tests/bench/bench_replay.py -s`.

One tree of matrix products and elementwise operators of `DUMPSIM_BENCH_MB` in all; the files are in the page cache.
"""

from time import perf_counter

import numpy as np
import pytest

import dumpsim

SIDE = 512


def tree(root, op_type, nbytes):
    """Runs of one operator with two inputs; their bytes."""
    place = root / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    random = np.random.default_rng(0)
    stamp, total = 1_700_000_000_000_000, 0
    for n in range(max(nbytes // (3 * 4 * SIDE * SIDE), 1)):
        a, b = (random.standard_normal((SIDE, SIDE), np.float32) for _ in range(2))
        for io, array in (("input.0", a), ("input.1", b), ("output.0", a @ b if op_type == "MatMul" else a + b)):
            stamp += 1
            np.save(place / f"{op_type}.Default_{op_type}-op{n}.0.0.{stamp}.{io}.DefaultFormat.float32.npy", array)
            total += array.nbytes
    return total


@pytest.mark.parametrize("op_type", ["Add", "MatMul"])
def test_replay(tmp_path, capsys, bench_bytes, op_type):
    total = tree(tmp_path, op_type, bench_bytes)
    start = perf_counter()
    for path in tmp_path.rglob("*.npy"):
        np.load(path).sum()
    read = perf_counter() - start
    start = perf_counter()
    result = dumpsim.replay(tmp_path)
    seconds = perf_counter() - start
    assert result.ok
    with capsys.disabled():
        print(f"\n  {op_type}: {total / seconds / 1e9:.3f} GB/s, reading {total / read / 1e9:.2f} GB/s, ", end="")
        print(f"ratio {read / seconds:.3f}")
