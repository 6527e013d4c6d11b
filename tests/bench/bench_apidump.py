"""API dump of training steps against steps without: `pytest tests/bench/bench_apidump.py -s`.

`DUMPSIM_BENCH_TROUBLESHOOTER` and `DUMPSIM_BENCH_MSPROBE` name the Python of an environment that has that tool and
torch; it runs the same networks in processes of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

STEPS = Path(__file__).with_name("apidump_steps.py")
PAIRS = os.environ.get("DUMPSIM_BENCH_PAIRS", "30")
PYTHONS = {
    "dumpsim": sys.executable,
    "troubleshooter": os.environ.get("DUMPSIM_BENCH_TROUBLESHOOTER"),
    "msprobe": os.environ.get("DUMPSIM_BENCH_MSPROBE"),
}


def run(tool, net, mode, number=PAIRS):
    python = PYTHONS[tool]
    if not python:
        pytest.skip(f"DUMPSIM_BENCH_{tool.upper()} names no Python")
    paths = os.pathsep.join([str(STEPS.parents[2]), os.environ.get("PYTHONPATH", "")]) if tool == "dumpsim" else None
    done = subprocess.run(
        [python, STEPS, tool, net, mode, number],
        env=os.environ | ({"PYTHONPATH": paths} if paths else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(next(line[1:] for line in done.stdout.splitlines() if line.startswith("@")))


def ratio(pairs):
    """Median of the ratios, and its interval of 95 % by bootstrap."""
    found = np.array(pairs)
    ratios = found[:, 1] / found[:, 0]
    drawn = np.random.default_rng(0).choice(ratios, (4000, len(ratios)))
    return float(np.median(ratios)), *(float(edge) for edge in np.quantile(np.median(drawn, 1), [0.025, 0.975]))


@pytest.mark.parametrize("mode", ["idle", "stack", "statistics", "npy"])
@pytest.mark.parametrize("net", ["cnn", "gpt"])
@pytest.mark.parametrize("tool", list(PYTHONS))
def test_steps(capsys, tool, net, mode):
    middle, low, high = ratio(run(tool, net, mode))
    with capsys.disabled():
        print(f"\n  {tool} {net} {mode}: x {middle:.3f} [{low:.3f}, {high:.3f}]")
    assert low <= middle <= high


@pytest.mark.parametrize("net", ["cnn", "gpt"])
def test_long(capsys, net):
    times, stop = run("dumpsim", net, "long-statistics", "200")
    early, late = (float(np.median(part)) * 1e3 for part in (times[:50], times[-50:]))
    with capsys.disabled():
        print(f"\n  {net}: steps 1-50 {early:.1f} ms, 151-200 {late:.1f} ms, stop {stop * 1e3:.0f} ms")
    assert len(times) == 200


@pytest.mark.parametrize("net", ["cnn", "gpt"])
def test_disk(capsys, net):
    turns = run("dumpsim", net, "disk", "5")
    for turn in turns:
        size = turn["MB"]
        with capsys.disabled():
            print(
                f"\n  {net}: {turn['files']} files, {size / turn['dump']:.0f} MB/s dumped with its steps "
                f"({turn['steps']:.2f} s of them), {size / turn['raw']:.0f} MB/s written plainly",
                end="",
            )
    assert len({turn["files"] for turn in turns}) == 1
