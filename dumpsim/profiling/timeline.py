"""The timelines of a profile as Chrome trace JSON, for chrome://tracing, Perfetto and MindStudio Insight.

Times are text in microseconds with three decimal places, as MindSpore writes them: a number of JavaScript cannot hold
nanoseconds since 1970. [observed 2.10]
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from dumpsim.profiling.record import Iteration, Profile
from dumpsim.profiling.table import in_order, microseconds

__all__ = ["iterations", "steps", "tasks", "trace_text"]

_HARDWARE, _ITERATIONS, _HOST = 1, 2, 0  # processes of the view
Event = dict[str, Any]


def trace_text(events: Iterable[Event], *, indent: int | None = None) -> bytes:
    """Events as a JSON array with one event a line, or indented."""
    found = list(events)
    if indent is not None:
        return (json.dumps(found, indent=indent) + "\n").encode()
    return ("[\n" + ",\n".join(json.dumps(event) for event in found) + "\n]\n").encode()


def tasks(profile: Profile) -> Iterator[Event]:
    """One track per stream, one slice per task, in the order in which they started."""
    yield from _process(_HARDWARE, "Ascend Hardware" if profile.target == "Ascend" else profile.target, "NPU")
    for stream in sorted({task.stream_id for task in profile.tasks}):
        yield from _thread(_HARDWARE, stream, f"Stream {stream}")
    for task in in_order(profile.tasks):
        args = {
            "Model Id": task.model_id,
            "Task Type": task.kind,
            "Stream Id": task.stream_id,
            "Task Id": task.task_id,
            "Iteration": profile.iterations[task.iteration].number if task.iteration >= 0 else None,
        }
        yield _slice(task.name, _HARDWARE, task.stream_id, task.start_ns, task.end_ns, args)


def iterations(profile: Profile) -> Iterator[Event]:
    """One track per model: iterations, and below each its forward and backward pass and the refresh."""
    yield from _process(_ITERATIONS, "Step Trace", "NPU")
    for model in sorted({each.model_id for each in profile.iterations}):
        yield from _thread(_ITERATIONS, model, f"Step Trace(Model ID:{model})")
    for each in profile.iterations:
        yield from _parts(each)


def _parts(each: Iteration) -> Iterator[Event]:
    start, stop, end, before = each.fp_start_ns, each.bp_end_ns, each.end_ns, each.previous_end_ns
    track, args = each.model_id, {"Iteration ID": each.number}
    begin = each.begin_ns
    if begin is None or end is None:
        return
    yield _slice(f"Iteration {each.number}", _ITERATIONS, track, begin, end, args)
    if before is not None and start is not None:
        yield _slice(f"Data_aug Bound {each.number}", _ITERATIONS, track, before, start, args)
    if start is not None and stop is not None:
        yield _slice(f"FP_BP Time {each.number}", _ITERATIONS, track, start, stop, args)
    if stop is not None:
        yield _slice(f"Iteration Refresh {each.number}", _ITERATIONS, track, stop, end, args)


def steps(profile: Profile) -> Iterator[Event]:
    """The steps that the script marks."""
    yield from _process(_HOST, "MindSpore", "CPU")
    yield from _thread(_HOST, 0, "Steps")
    for step in profile.steps:
        yield _slice(f"ProfilerStep#{step.number}", _HOST, 0, step.start_ns, step.end_ns, {})


def _process(pid: int, name: str, label: str) -> Iterator[Event]:
    for what, args in (
        ("process_name", {"name": name}),
        ("process_sort_index", {"sort_index": pid}),
        ("process_labels", {"labels": label}),
    ):
        yield {"ph": "M", "name": what, "pid": pid, "tid": 0, "args": args}


def _thread(pid: int, tid: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}


def _slice(name: str, pid: int, tid: int, start: int, end: int, args: Event) -> Event:
    return {
        "ph": "X",
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": microseconds(start),
        "dur": microseconds(end - start),
        "args": args,
    }
