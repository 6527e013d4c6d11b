"""A planned dump: the device runs a few steps, and the files that would be written are counted."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.archive.countsink import CountingSink
from dumpsim.core.clock import VirtualClock
from dumpsim.core.events import GraphEvent, RunEvent, TaskEvent, TensorRef
from dumpsim.core.steps import Steps
from dumpsim.dump.graphplan import GraphDump
from dumpsim.dump.info import SessionInfo
from dumpsim.dump.job import write_json
from dumpsim.dump.service import DumpService
from dumpsim.dump.summary import Summary
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest

__all__ = ["PlannedDump"]

_ALL = Steps(text="all", every=True)


class PlannedDump(DumpService):
    """A dump that writes nothing but an account of the files that it would write.

    In addition to the config's own dump, it counts each step, even if the config does not select it, for the config and
    for smaller ones. The sizes of later steps are estimated from these.

    Parameters
    ----------
    info, profile, request
        As for `DumpService`; ``info.settings`` has the directory of the account and the number of steps.
    smaller : sequence of (str, DumpRequest)
        Other requests to count, with their names.
    devices : sequence of int
        Devices of a server that are dumped.
    """

    def __init__(
        self,
        info: SessionInfo,
        profile: Profile,
        request: DumpRequest,
        *,
        smaller: Sequence[tuple[str, DumpRequest]] = (),
        devices: Sequence[int] = (),
    ) -> None:
        self._count = _counter(profile, request)
        info = replace(info, disk=None)
        super().__init__(info, profile, request, self._count)
        self._devices = list(devices)
        self._seen: dict[int, None] = {}  # numbers of the steps that have run
        self._shadows: dict[str, tuple[DumpService, CountingSink]] = {}
        for name, other in (("", request), *smaller):
            every = replace(other, steps=_ALL, disabled=_disabled(other))
            sink = _counter(profile, every)
            shadow = replace(info, clock=VirtualClock(), log=_silent, late_changes=tuple)
            self._shadows[name] = (DumpService(shadow, profile, every, sink), sink)
        self._values = info.settings.engine != "null"
        self._reported = False

    def _others(self) -> "list[DumpService]":
        """Return the other dumps that are enabled."""
        return [service for service, _ in self._shadows.values() if service.enabled]

    # -- Tap

    def wants(self, event: TaskEvent | GraphEvent | RunEvent) -> bool:
        """Return whether any count needs the event."""
        wanting = [super().wants(event), *(service.wants(event) for service in self._others())]
        return any(wanting)

    def graph_compiled(self, event: GraphEvent) -> None:
        """Count the graph's files."""
        if not self._values:
            event = replace(event, constants=_zeros(event.constants))
        if super().wants(event):
            super().graph_compiled(event)
        for service in self._others():
            service.graph_compiled(event)

    def plan(self, events: Sequence[TaskEvent]) -> GraphDump | None:
        """Return None, since each event is counted by several dumps."""
        return None

    def run_begin(self, event: RunEvent) -> None:
        """Begin a run, or end the script after the last step."""
        dataset = event.kind == "dataset"
        number = self._iteration.coming(event.root_graph_id, dataset=dataset)
        if not dataset:
            if number not in self._seen and len(self._seen) >= self.info.settings.plan_steps:
                raise SystemExit(0)
            self._seen[number] = None
        if super().wants(event):
            super().run_begin(event)
        else:
            self._iteration.begin(
                event.root_graph_id, run=event.run_count, time_ns=self.info.clock.now_ns, dataset=dataset
            )
        for service in self._others():
            service.run_begin(event)

    def run_end(self, event: RunEvent) -> None:
        """Count the Parameter files of a run."""
        if not self._values:
            event = replace(event, parameters={graph: _zeros(refs) for graph, refs in event.parameters.items()})
        super().run_end(event)
        for service in self._others():
            service.run_end(event)

    def before_task(self, event: TaskEvent) -> None:
        """Pass an event to the dumps before a kernel."""
        self._forward(event, DumpService.before_task)

    def after_task(self, event: TaskEvent) -> None:
        """Pass an event to the dumps after a kernel."""
        self._forward(event, DumpService.after_task)

    def _forward(self, event: TaskEvent, method: Callable[[DumpService, TaskEvent], None]) -> None:
        if not self._values:
            event = replace(
                event,
                operands=_zeros(event.operands),
                outputs=_zeros(event.outputs),
                workspaces=_zeros(event.workspaces),
            )
        if super().wants(event):
            method(self, event)
        for service in self._others():
            if service.wants(event):
                method(service, event)

    # -- end

    def finish(self) -> Summary:
        """Write the account."""
        summary = super().finish()
        directory = self.info.settings.plan
        if directory and not self._reported:
            self._reported = True
            shadows = {name: (service.finish(), sink) for name, (service, sink) in self._shadows.items()}
            name = f"rank_{self.info.member}-{os.getpid()}-{len(os.listdir(directory))}.json"
            write_json(os.path.join(directory, name), self._document(summary, shadows))
        return summary

    def _document(self, summary: Summary, shadows: Mapping[str, tuple[Summary, CountingSink]]) -> dict[str, Any]:
        """Return the account as a JSON document."""
        steps = self.request.steps
        return {
            "rank": self.info.member,
            "profile": self.profile.name,
            "chip": self.info.chip,
            "config": self.request.file,
            "path": summary.path,
            "trigger": self.request.trigger,
            "iteration": {
                "text": steps.text,
                "every": steps.every,
                "ranges": steps.ranges,
                "script": self.info.control.dynamic,
            },
            "measured": list(self._seen),
            "estimate": ""
            if self._values or self.request.statistics is None
            else "the null engine computes no values: rows of statistics are an estimate",
            "devices": self._devices,
            "dump": {
                "asked": summary.asked,
                "captured": summary.captured,
                "skipped": dict(summary.skipped),
                "tensors": summary.tensors,
                "rows": summary.rows,
                "files": summary.files,
                "bytes": summary.bytes,
                "notes": list(summary.notes),
            },
            "counts": {
                name: {
                    "skipped": dict(found.skipped),
                    "steps": [
                        [step, {kind: asdict(amount) for kind, amount in of.types.items()}]
                        for step, of in sink.steps.items()
                    ],
                }
                for name, (found, sink) in shadows.items()
            },
        }


def _counter(profile: Profile, request: DumpRequest) -> CountingSink:
    """Make a sink that counts files by step, according to the directories of the profile's tree."""
    root = request.path.rstrip("/")
    depth = 3 if profile.tree == "rank" else 0 if profile.step_level else 4  # of the steps in the tree

    def step_of(directory: str) -> int | None:
        parts = directory[len(root) + 1 :].split("/")
        name = parts[depth] if len(parts) > depth else ""
        return int(name) if name.isdigit() else None

    return CountingSink(step_of)


def _disabled(request: DumpRequest) -> str | None:
    """Return why a request dumps nothing; an unlisted device counts as a listed one."""
    reason = request.disabled
    return None if reason is not None and reason.startswith("support_device") else reason


def _zeros(refs: Sequence[TensorRef]) -> tuple[TensorRef, ...]:
    """Use zeros for values that were not computed; pages of zeros need no memory."""
    return tuple(replace(ref, read=_reader(ref.nbytes)) for ref in refs)


def _reader(nbytes: int) -> "Callable[[], NDArray[np.uint8]]":
    return lambda: np.zeros(nbytes, np.uint8)


def _silent(level: str, function: str, text: str) -> None:
    """Log nothing."""
