"""Pytest sessions of their own, for the tests of the plugin."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
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


@contextlib.contextmanager
def session_in_this_process(folder: Path) -> Iterator[io.StringIO]:
    """Collect what an inner session prints, and forget the modules that it has imported from its folder."""
    output, finders, paths = io.StringIO(), list(sys.meta_path), list(sys.path)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            yield output
    finally:
        sys.meta_path[:], sys.path[:] = finders, paths
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run pytest on one test file; returns its output. Without workers the session is one of this process."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    outer = [name for name in os.environ if name.startswith("PYTEST_")]  # the outer session and its xdist
    for name in [*outer, "CI", "BUILD_NUMBER", "COLUMNS", "FORCE_COLOR", "PY_COLORS", "NO_COLOR"]:
        monkeypatch.delenv(name, raising=False)  # pytest prints whole summaries where CI is set

    def run_file(text, *options):
        path = tmp_path / "test_inner.py"
        path.write_text(text)
        load = [] if INSTALLED else ["-p", "dumpsim.testing.plugin"]
        unused = ["cacheprovider", "hypothesispytest", "benchmark", "anyio"]
        workers = bool({"-n", "--dist"} & set(options))
        unused += [] if workers else ["xdist", "faulthandler"]
        load += [f"-pno:{name}" for name in unused]
        arguments = [*load, "-q", "--strict-markers", str(path), *options]
        if workers:
            command = [sys.executable, "-m", "pytest", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
            return done.stdout + done.stderr
        monkeypatch.chdir(tmp_path)
        with session_in_this_process(tmp_path) as output:
            pytest.main(arguments)
        return output.getvalue()

    return run_file
