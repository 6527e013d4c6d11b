"""The ten measures against numpy on whole arrays: `pytest tests/bench/bench_metrics.py`."""

import numpy as np

from dumpsim.tensor.metrics import distance


def whole(own, golden):
    """One expression a measure, as one writes them with numpy."""

    def scaled(x):
        x = np.maximum((x - x.min()) / (x.max() - x.min()), np.finfo(np.float32).eps)
        return x / x.sum()

    gap = np.abs(own - golden)
    ratio = np.abs(own / golden - 1)
    p, q = scaled(own), scaled(golden)
    return (
        np.sum(own / np.linalg.norm(own) * (golden / np.linalg.norm(golden))),
        gap.max(),
        ratio.sum(),
        np.sqrt((gap**2).sum() / (golden**2).sum()),
        (p * np.log(p / q)).sum(),
        (own.mean(), own.std(), golden.mean(), golden.std()),
        gap.mean(),
        np.sqrt((gap**2).mean()),
        ratio.max(),
        ratio.mean(),
    )


def test_against_numpy(race, bench_bytes):
    random = np.random.default_rng(0)
    own = random.standard_normal(bench_bytes // 8, dtype=np.float32)
    golden = own + np.float32(0.01)
    race(
        own.nbytes + golden.nbytes,
        lambda: distance(own, golden),
        numpy=lambda: whole(own, golden),
        without_divergence=lambda: distance(own, golden, divergence=False),
        memcpy=lambda: (own.copy(), golden.copy()),
    )
