"""API dump of training steps against steps without: `pytest tests/bench/bench_apidump.py`, which prints its tables.

`DUMPSIM_BENCH_TROUBLESHOOTER` and `DUMPSIM_BENCH_MSPROBE` name the Python of an environment that has that tool and
torch; `DUMPSIM_BENCH_TROUBLESHOOTER_PATH` and `DUMPSIM_BENCH_MSPROBE_PATH` are its PYTHONPATH, where it needs one.
A tool without a Python has no column. `DUMPSIM_BENCH_PAIRS` is the number of pairs (30), `DUMPSIM_BENCH_LONG` the
steps of the long run (200).

Ratios are medians over pairs of a dumped and an undumped sample in turn (`apidump_steps.py`), with their interval of
95 % by bootstrap. They are of the thread's own clock, so that other work on the machine counts less, except in npy
mode: there the disk counts too, and it is the wall's. The limits are those asked for; no test asserts them, since they
depend on the machine.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("apidump_steps.py")
PAIRS = os.environ.get("DUMPSIM_BENCH_PAIRS", "30")
LONG = os.environ.get("DUMPSIM_BENCH_LONG", "200")
PEERS = ("troubleshooter", "msprobe")
NETS = ("cnn", "gpt")
MODES = ("idle", "stack", "statistics", "npy")
LIMITS = {
    ("cnn", "idle"): 1.05,
    ("gpt", "idle"): 1.05,
    ("cnn", "stack"): 1.3,
    ("gpt", "stack"): 1.3,
    ("cnn", "statistics"): 2.0,
    ("gpt", "statistics"): 3.0,
}


def python_of(tool):
    return sys.executable if tool == "dumpsim" else os.environ.get(f"DUMPSIM_BENCH_{tool.upper()}")


def run(tool, net, mode, number=PAIRS):
    path = (
        os.pathsep.join([str(SCRIPT.parents[2]), os.environ.get("PYTHONPATH", "")])
        if tool == "dumpsim"
        else os.environ.get(f"DUMPSIM_BENCH_{tool.upper()}_PATH", "")
    )
    done = subprocess.run(
        [python_of(tool), SCRIPT, tool, net, mode, number],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(next(line[1:] for line in done.stdout.splitlines() if line.startswith("@")))


def ratio(pairs, clock):
    """Median of the ratios, and its interval of 95 % by bootstrap; `clock` is 0 for the thread's, 1 for the wall's."""
    found = np.array(pairs)[:, :, clock]
    ratios = found[:, 1] / found[:, 0]
    drawn = np.random.default_rng(0).choice(ratios, (4000, len(ratios)))
    return float(np.median(ratios)), *(float(edge) for edge in np.quantile(np.median(drawn, 1), [0.025, 0.975]))


def verdict(net, mode, low, middle, high):
    limit = LIMITS.get((net, mode))
    if limit is None:
        return ""
    met = low <= 1.0 <= high < limit if mode == "idle" else middle <= limit
    wanted = f"contains 1.00, excludes {limit}" if mode == "idle" else f"<= {limit}"
    return f"{wanted}: {'met' if met else 'MISSED'}"


@pytest.fixture(scope="module")
def table(pytestconfig):
    """Rows that are printed when all are there."""
    rows = []
    yield rows
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        tools = ["dumpsim", *(tool for tool in PEERS if python_of(tool))]
        print(f"\n\n{'step / plain step':18}" + "".join(f"{tool:>24}" for tool in tools) + f"{'width':>9}  limit")
        for net in NETS:
            for mode in MODES:
                cells = {tool: found for n, m, tool, found in rows if (n, m) == (net, mode)}
                if "dumpsim" not in cells:
                    continue
                middle, low, high = cells["dumpsim"]
                text = ("{:.3f} [{:.3f}, {:.3f}]".format(*cells[tool]) if tool in cells else "failed" for tool in tools)
                print(
                    f"{net} {mode:14}"
                    + "".join(f"{cell:>24}" for cell in text)
                    + f"{high - low:9.3f}  {verdict(net, mode, low, middle, high)}"
                )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("tool", ["dumpsim", *PEERS])
def test_steps(table, tool, net, mode):
    if not python_of(tool):
        pytest.skip(f"DUMPSIM_BENCH_{tool.upper()} names no Python")
    middle, low, high = ratio(run(tool, net, mode), int(mode == "npy"))
    table.append((net, mode, tool, (middle, low, high)))
    assert low <= middle <= high


@pytest.mark.parametrize("mode", ["stack", "statistics"])
@pytest.mark.parametrize("net", NETS)
def test_long(capsys, net, mode):
    times, before, after, stop = run("dumpsim", net, f"long-{mode}", LONG)
    part = len(times) // 4
    early, late, before, after = (float(np.median(p)) * 1e3 for p in (times[:part], times[-part:], before, after))
    with capsys.disabled():
        print(
            f"\n  {net} {mode}: first quarter of {len(times)} steps {early:.2f} ms, last {late:.2f} ms "
            f"(x {late / early:.3f}); plain steps before {before:.2f} ms, after {after:.2f} ms "
            f"(x {after / before:.3f}); stop {stop * 1e3:.0f} ms"
        )
    assert len(times) == int(LONG)


@pytest.mark.parametrize("net", NETS)
def test_disk(capsys, net):
    """Writer: our thread against open, write and close of the same sizes. Run: against the steps and that writing."""
    turns = run("dumpsim", net, "disk", "5")
    size, files = turns[0]["MB"], turns[0]["files"]
    speed = {name: float(np.median([size / turn[name] for turn in turns])) for name in ("raw", "writer")}
    writer = np.array([turn["raw"] / turn["writer"] for turn in turns])
    whole = np.array([turn["dump"] / (turn["plain"] + turn["raw"]) for turn in turns])
    with capsys.disabled():
        print(
            f"\n  {net} npy: {files} files, {size:.0f} MB: writer {speed['writer']:.0f} MB/s, raw {speed['raw']:.0f} "
            f"MB/s, ratio {np.median(writer):.2f} [{writer.min():.2f}, {writer.max():.2f}]; dump / (plain steps + raw "
            f"write) {np.median(whole):.2f} [{whole.min():.2f}, {whole.max():.2f}]"
        )
    assert len({turn["files"] for turn in turns}) == 1
