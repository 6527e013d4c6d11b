"""Pytest sessions of their own, for the tests of the plugin."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = any(point.value == "dumpsim.testing.plugin" for point in entry_points(group="pytest11"))

COLLECTIVE = """
import numpy as np
from dumpsim.core.communicator import Call
from dumpsim.core.errors import CollectiveError
from dumpsim.core.settings import RunSettings
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.task import Task, TaskKind
from dumpsim.world import current
from dumpsim.world.terms import terms_of

def collective(op, array, **fields):
    context = current()
    context.communicator.terms = terms_of(context.environment, chip("910B"), RunSettings.from_environment())
    device = Device(chip("910B"), rank=context.rank, scheduler=context.world.get(Scheduler), environment={})
    group = context.communicator.group("hccl_world_group")
    call = Call(op=op, tensors=((array.dtype.name, array.shape),), **fields)
    meeting, got = group.join(call, lambda: [array]), []
    task = Task(kind=TaskKind.HCCL, name=op, work=lambda task: got.extend(meeting.results()), gate=meeting)
    device.stream(1).launch(task)
    device.synchronize()
    return got[0]
"""


def section(output: str, title: str) -> str:
    """The text below the headline of that name, up to the next headline."""
    lines = output.split("\n")
    at = next(at for at, line in enumerate(lines) if line.strip("-_=") == f" {title} ")
    end = next((at for at, line in enumerate(lines[at + 1 :], at + 1) if line[:3] in ("---", "___", "===")), len(lines))
    return "\n".join(lines[at + 1 : end]).strip()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run pytest on one test file; returns its output."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    outer = [name for name in os.environ if name.startswith("PYTEST_")]  # the outer session and its xdist
    for name in [*outer, "CI", "BUILD_NUMBER", "COLUMNS", "FORCE_COLOR", "PY_COLORS", "NO_COLOR"]:
        monkeypatch.delenv(name, raising=False)  # pytest prints whole summaries where CI is set

    def run_file(text, *options):
        path = tmp_path / "test_inner.py"
        path.write_text(text)
        load = [] if INSTALLED else ["-p", "dumpsim.testing.plugin"]
        unused = ["cacheprovider", "hypothesispytest", "benchmark", "anyio"]
        unused += [] if {"-n", "--dist"} & set(options) else ["xdist"]
        load += [f"-pno:{name}" for name in unused]
        command = [sys.executable, "-m", "pytest", *load, "-q", "--strict-markers", str(path)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=tmp_path, check=False)
        return done.stdout + done.stderr

    return run_file
