"""The files of a profile: the tree of msprof below ``result_path``, that of ``mindspore.profiler`` below its own.

A name has the time of the virtual clock where the vendor's has that of the machine, and the rank where the vendor's has
the process, so that two runs of a script write the same trees. Every file appears whole.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from dumpsim.archive.sink import DiskFaults, Sink
from dumpsim.core.errors import DumpWriteError
from dumpsim.core.version import __version__
from dumpsim.profiling import table, timeline
from dumpsim.profiling.options import ProfilingOptions
from dumpsim.profiling.record import Profile, Step, TaskRecord

__all__ = ["write_analysis", "write_profile"]

_FILE_MODE, _DIRECTORY_MODE = 0o640, 0o750


def write_profile(
    profile: Profile, options: ProfilingOptions, *, disk: DiskFaults | None = None, durable: bool = False
) -> str:
    """Write the files that ``profiling_options`` request and return the new directory.

    ::

        {result_path}/PROF_{number}_{time}_RANK{rank}/device_{id}/
            info.json
            summary/   step_trace_{id}.csv  task_time_{id}.csv  op_summary_{id}.csv  op_statistic_{id}.csv
                       aicpu_{id}.csv
            timeline/  step_trace_{id}.json  task_time_{id}.json

    Raises
    ------
    DumpWriteError
        Naming the file.
    """
    time = _moment(profile.start_ns)
    root = _claimed(options.result_path, lambda number: f"PROF_{number:06d}_{time}_RANK{profile.rank:04d}")
    directory, name = f"{root}/device_{profile.device_id}", profile.device_id
    sink = Sink(file_mode=_FILE_MODE, directory_mode=_DIRECTORY_MODE, disk=disk, durable=durable)
    if options.training_trace:
        sink.write(f"{directory}/summary", f"step_trace_{name}.csv", [table.csv_text(table.step_trace(profile))])
        sink.write(f"{directory}/timeline", f"step_trace_{name}.json", [_trace(timeline.iterations(profile))])
    if options.task_trace:
        sink.write(f"{directory}/summary", f"task_time_{name}.csv", [table.csv_text(table.task_time(profile))])
        sink.write(f"{directory}/summary", f"op_statistic_{name}.csv", [table.csv_text(table.op_statistic(profile))])
        sink.write(f"{directory}/timeline", f"task_time_{name}.json", [_trace(timeline.tasks(profile))])
    if options.operators:
        summary = table.csv_text(table.op_summary(profile, options.ai_core_metrics))
        sink.write(f"{directory}/summary", f"op_summary_{name}.csv", [summary])
    if options.aicpu_trace:
        sink.write(f"{directory}/summary", f"aicpu_{name}.csv", [table.csv_text(table.aicpu(profile))])
    collected = {key: value for key, value in asdict(options).items() if key != "result_path"}
    sink.write(directory, "info.json", [_json({**_info(profile), "options": collected})])
    return root


def write_analysis(
    profile: Profile,
    path: str,
    *,
    worker: str,
    settings: dict[str, Any],
    metadata: dict[str, Any],
    operators: bool,
    operands: bool,
    metrics: str | None,
    pretty: bool = False,
    steps: Sequence[int] | None = None,
    disk: DiskFaults | None = None,
    durable: bool = False,
) -> str:
    """Write the files of ``mindspore.profiler`` after its analysis and return the new directory.

    ::

        {path}/{worker}_{time}_ascend_ms/
            profiler_info_{rank}.json  profiler_metadata.json
            ASCEND_PROFILER_OUTPUT/  trace_view.json  kernel_details.csv  op_statistic.csv  step_trace_time.csv

    Parameters
    ----------
    operators : bool
        Tables and timelines of the device, not only of the host.
    operands, metrics
        See `kernel_details`.
    steps : sequence of int, optional
        Only these steps, of those that the script marks.
    """
    if steps is not None:
        profile = _only(profile, [step for step in profile.steps if step.number in steps])
    stem = f"{worker}_{_moment(profile.start_ns)}"
    root = _claimed(path, lambda number: f"{stem}{f'_{number}' if number > 1 else ''}_ascend_ms")
    directory = f"{root}/ASCEND_PROFILER_OUTPUT"
    sink = Sink(file_mode=_FILE_MODE, directory_mode=_DIRECTORY_MODE, disk=disk, durable=durable)
    events = [*timeline.steps(profile)]
    if operators:
        events += [*timeline.tasks(profile), *timeline.iterations(profile)]
        details = table.kernel_details(profile, operands=operands, metrics=metrics)
        sink.write(directory, "kernel_details.csv", [table.csv_text(details)])
        sink.write(directory, "op_statistic.csv", [table.csv_text(table.op_statistic(profile))])
        sink.write(directory, "step_trace_time.csv", [table.csv_text(table.step_trace_time(profile))])
    sink.write(directory, "trace_view.json", [timeline.trace_text(events, indent=4 if pretty else None)])
    if metadata:
        sink.write(root, "profiler_metadata.json", [_json(metadata)])
    sink.write(root, f"profiler_info_{profile.rank}.json", [_json({**_info(profile), "config": settings})])
    return root


def _only(profile: Profile, steps: Sequence[Step]) -> Profile:
    """Return the part of a profile that was launched in these steps."""

    def inside(task: TaskRecord) -> bool:
        return any(step.start_ns < task.launched_ns <= step.end_ns for step in steps)

    return replace(profile, steps=tuple(steps), tasks=tuple(filter(inside, profile.tasks)))


def _claimed(path: str, name: Callable[[int], str]) -> str:
    """Create a directory under the first name that is free, and return its path."""
    try:
        os.makedirs(path, mode=_DIRECTORY_MODE, exist_ok=True)
        for number in count(1):
            root = os.path.join(path, name(number))
            try:
                os.mkdir(root, _DIRECTORY_MODE)
            except FileExistsError:
                continue
            return root
    except OSError as error:
        raise DumpWriteError(f"the directory of a profile cannot be made: {error.strerror}", where=path) from error
    raise AssertionError("numbers do not end")


def _moment(ns: int) -> str:
    """Format a time for a file name: year to milliseconds."""
    time = datetime.fromtimestamp(ns // 10**9, UTC) + timedelta(microseconds=ns // 1000 % 10**6)
    return f"{time:%Y%m%d%H%M%S}{time.microsecond // 1000:03d}"


def _info(profile: Profile) -> dict[str, Any]:
    return {
        "dumpsim": __version__,
        "chip": profile.chip,
        "device_target": profile.target,
        "device_id": profile.device_id,
        "rank_id": profile.rank,
        "start_time(us)": table.microseconds(profile.start_ns),
        "end_time(us)": table.microseconds(profile.end_ns),
        "tasks": len(profile.tasks),
        "iterations": len(profile.iterations),
    }


def _json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=4) + "\n").encode()


def _trace(events: Any) -> bytes:
    return timeline.trace_text(events)
