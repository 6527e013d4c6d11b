"""`dumpsim first` on a pair of 10,000 files each, alignments of thousands: `pytest tests/bench/bench_first.py`."""

import shutil
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pytest

import dumpsim
from dumpsim.analysis.first import first
from dumpsim.analysis.sequence import pair
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from tests.inprocess import dump

OPERATORS = 5000


def tree(root: Path, worst: int | None = None) -> Path:
    """A chain of operators with an input and an output each; from `worst` on the values are others."""
    place = root / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    value = np.ones((16, 16), np.float32)
    stamp = 1_700_000_000_000_000
    for n in range(OPERATORS):
        for io in ("input", "output"):
            if n == worst and io == "output":
                value = value + 1
            stamp += 1
            np.save(place / f"ReLU.Default_relu{n}-ReLU_ReLU-op{n}.0.0.{stamp}.{io}.0.DefaultFormat.float32.npy", value)
    return root


def timed(capsys, what, work):
    start = perf_counter()
    result = work()
    with capsys.disabled():
        print(f"\n  {what}: {perf_counter() - start:.2f} s")
    return result


@pytest.mark.parametrize("jobs", [1, 2])
def test_first_of_ten_thousand_files(tmp_path, capsys, jobs):
    good, bad = tree(tmp_path / "good"), tree(tmp_path / "bad", OPERATORS - 2)
    assert not timed(capsys, f"NaN in 10,000 files, {jobs} processes", lambda: dumpsim.first(good, jobs=jobs)).findings
    found = timed(capsys, f"10,000 against 10,000, {jobs} processes", lambda: dumpsim.first(bad, good, jobs=jobs))
    assert found.maker.op_name.endswith(f"op{OPERATORS - 2}")
    rows = timed(capsys, f"compare 10,000, {jobs} processes", lambda: dumpsim.compare(bad, good, jobs=jobs))
    assert len(rows.findings) == 3


@pytest.mark.filterwarnings("ignore")
def test_first_on_two_workers(tmp_path, capsys):
    distributed = pytest.importorskip("distributed", reason="extra dask")
    good, bad = tree(tmp_path / "good"), tree(tmp_path / "bad", OPERATORS - 2)
    alone = dumpsim.first(bad, good)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        for what in ("cold", "warm"):
            found = timed(
                capsys,
                f"10,000 against 10,000, two workers, {what}",
                lambda: dumpsim.first(bad, good, scheduler=cluster.scheduler_address),
            )
            assert found == alone


def test_alignments(capsys):
    layers = [n % 12 for n in range(4000)]
    assert len(timed(capsys, "4,000 repeated against 3,990", lambda: pair(layers, layers[10:]))) == 3990
    names = [("a", n) for n in range(800)], [("b", n) for n in range(800)]
    assert timed(capsys, "800 against 800 unmatched", lambda: pair(*names)) == []


class _Chain(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.random.default_rng(3).standard_normal((16, 16)).astype(np.float32)), name="w")

    def construct(self, x):
        for _ in range(566):
            x = ops.tanh((x + self.w) * self.w)
        return x


def test_an_early_hit_in_a_dump_with_its_graph(tmp_path, monkeypatch, capsys):
    """CPU seconds of 2 x 4,528 files, of which one of operator 100 is wrong; the goal is 1.5 times the judging."""
    good = dump(tmp_path, monkeypatch, "O0", lambda: _Chain()(Tensor(np.ones((16, 16), np.float32)))).root
    bad = shutil.copytree(good, tmp_path / "bad")
    path = [one.path for one in dumpsim.open(bad).filter(op_type="Mul", io="output")][33]
    path.chmod(0o600)
    np.save(path, np.load(path) * np.float32(1.01))
    start = process_time()
    alone = first(bad, good)  # without a recomputation
    judged = process_time() - start
    start = process_time()
    found = dumpsim.first(bad, good)
    whole = process_time() - start
    assert found.maker.op_name == alone.maker.op_name == "Default/Mul-op33"
    with capsys.disabled():
        print(f"\n  first: {whole:.2f} s CPU, without recomputation {judged:.2f}, ratio {whole / judged:.2f}")
