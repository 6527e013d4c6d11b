"""A training net under a profile in the test's own process, and the device's tasks as the device itself has them."""

import csv
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from inprocess import fresh

import dumpsim.frontends.mindspore as ms
from dumpsim.device.stream import Stream
from dumpsim.frontends.mindspore import context, nn

EVERYTHING = {"training_trace": "on", "task_trace": "on", "aicpu_trace": "on"}


@dataclass
class Machine:
    """What the device was given to do, run by run."""

    tasks: list[Any] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)  # number of tasks before each call of the network


def trained(machine: Machine, steps: int = 3, batch: int = 2) -> None:
    """Train a small convolutional net in graph mode."""
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Dense(72, 3))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    images, labels = ms.Tensor(np.ones((batch, 1, 6, 6), np.float32)), ms.Tensor([0, 1] * (batch // 2), ms.int32)
    for _ in range(steps):
        machine.runs.append(len(machine.tasks))
        step(images, labels)


@contextmanager
def watched(mode: str, monkeypatch: Any, **settings: Any) -> Any:
    """A fresh session whose launched tasks are kept."""
    machine = Machine()
    launch = Stream.launch

    def noted(stream: Stream, task: Any, ids: Any = None) -> Any:
        machine.tasks.append(launch(stream, task, ids))
        return task

    monkeypatch.setattr(Stream, "launch", noted)
    with fresh(mode, monkeypatch, **settings):
        yield machine


def profiled(tmp_path: Path, monkeypatch: Any, mode: str = "O0", run: Any = trained, **options: str) -> Any:
    """Run under set_context's profile; returns the machine and the directory of the device."""
    given = {"result_path": str(tmp_path), **(options or EVERYTHING)}
    with watched(mode, monkeypatch) as machine:
        context.set_context(enable_profiling=True, profiling_options=json.dumps(given))
        run(machine)
        context.set_context(enable_profiling=False)
    (found,) = tmp_path.glob("PROF_*")
    return machine, next(found.glob("device_*"))


def rows(directory: Path, name: str) -> list[dict[str, str]]:
    """A table of a profile."""
    (path,) = directory.rglob(f"{name}*.csv")
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def slices(directory: Path, name: str) -> list[dict[str, Any]]:
    """The slices of a timeline."""
    (path,) = directory.rglob(f"{name}*.json")
    return [event for event in json.loads(path.read_text()) if event["ph"] == "X"]


def ns(text: str) -> int:
    """Microseconds with three digits as nanoseconds."""
    whole, digits = text.split(".")
    return int(whole) * 1000 + int(digits)
