"""``msaccucmp overflow``: which operators overflowed, with their tensors. [spec ge 3.8]"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpsim.analysis.msaccucmp.convert import Conversion, convert, make_output, overflow_facts
from dumpsim.analysis.msaccucmp.dumpfile import OPDEBUG, DumpFile, name_of
from dumpsim.analysis.msaccucmp.journal import Journal
from dumpsim.analysis.msaccucmp.safepath import existing
from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.analysis.wholefile import write_whole
from dumpsim.codecs.opdebug import overflows

__all__ = ["overflow"]

_ANY = 65535  # context or thread that is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Who overflowed: the ids that lead to its dump file."""

    task_id: int
    stream_id: int
    context_id: int = _ANY
    thread_id: int = _ANY


def overflow(path: str, out: str, top: int, journal: Journal) -> Status:
    """Write the summary of the first `top` overflows below a directory.

    Results: the Opdebug files as JSON, the tensors of the operators that they name as npy, and
    ``overflow_summary_{time}.txt``.
    """
    root = existing(path, "directory")
    make_output(out)
    reports = _reports(root)
    if not reports:
        journal.warning("[Overflow] Find [0] overflow node!")
        return Status.OK
    journal.info(f"[Overflow] Find [{len(reports)}] overflow ops. Will show the top {top}.")
    lines: list[str] = []
    for number, report in enumerate(reports[:top], 1):
        lines.append(f"{'=' * 49}[{number}]{'=' * 50}")
        lines += _section(report, root, out, journal)
    text = "\n".join(lines) + "\n"
    name = os.path.join(os.path.realpath(out), f"overflow_summary_{journal.stamp()}.txt")
    write_whole(name, [text.encode()])
    journal.info("[Overflow] The overflow analyse result:\n" + text)
    return Status.OK


def _reports(root: str) -> list[str]:
    """Opdebug files by time."""
    found: list[tuple[int, str]] = []
    for folder, _, files in os.walk(root):
        for file in files:
            if file.startswith(OPDEBUG) and (name := name_of(file)) is not None:
                found.append((name.timestamp, os.path.join(folder, file)))
    return [path for _, path in sorted(found)]


def _section(report: str, root: str, out: str, journal: Journal) -> list[str]:
    """The lines of one Opdebug file."""
    status = convert([report], Conversion(out=out), journal)
    if status:
        raise ToolError(status, f'Failed to parse the debug file "{report}".')
    dump = DumpFile.open(report)
    if not dump.outputs:
        raise ToolError(Status.INVALID_DUMP_DATA, f'There is no output in the debug file "{report}".')
    found = overflows(overflow_facts(dump, 0))
    name = name_of(os.path.basename(report))
    assert name is not None
    units = [
        f" [{unit}][TaskId:{data['task_id']}][StreamId:{data['stream_id']}][Status:{data['status']}]"
        for unit, data, _ in found
    ]
    stamp = f" [timestamp:{name.timestamp}]"
    if not found:
        return [stamp]
    # ids repeat from step to step: the file lies beside the report; the real tool takes the first of the tree
    task = _task(found[0][1])
    file = _dump_of(task, os.path.dirname(report)) or _dump_of(task, root)
    if file is None:
        journal.warning(
            f"[Overflow] Can't find the dump file corresponding to the debug file: {os.path.basename(report)}"
        )
        return [*units, stamp]
    status = convert([file], Conversion(out=out), journal)
    if status:
        raise ToolError(status, f'Failed to parse the dump file "{file}".')
    op = DumpFile.open(file)
    op_type = os.path.basename(file).split(".", 1)[0]
    return [f"[{op_type}] {op.op_name}", *units, stamp, *_tensors(op)]


def _task(data: Any) -> _Task:
    ids = {name: int(data[name]) for name in ("task_id", "stream_id", "context_id", "thread_id") if name in data}
    return _Task(**ids)


def _dump_of(task: _Task, root: str) -> str | None:
    """The first dump file of a task."""
    for folder, folders, files in os.walk(root):
        folders.sort()
        for file in sorted(files):
            name = None if file.startswith(OPDEBUG) else name_of(file)
            if name is None or (name.task_id, name.stream_id) != (task.task_id, task.stream_id):
                continue
            if task.context_id not in (_ANY, name.context_id) or task.thread_id not in (_ANY, name.thread_id):
                continue
            return os.path.join(folder, file)
    return None


def _tensors(op: DumpFile) -> list[str]:
    """Two lines a tensor: the npy file and what is in it; NaN for the values of an empty one."""
    base = os.path.basename(op.path)
    lines: list[str] = []
    for tensor in op.tensors:
        array = tensor.array()
        values = dict.fromkeys(("Max", "Min", "Mean"), "nan")
        if array.size:
            with np.errstate(all="ignore"):
                values = {"Max": str(np.max(array)), "Min": str(np.min(array)), "Mean": str(np.mean(array))}
        shown = " ".join(f"[{key}: {value}]" for key, value in values.items())
        lines.append(f" {base}.{tensor.io}.{tensor.index}.npy")
        lines.append(f" -[Format: {tensor.format}] [Shape: {array.shape}] [Dtype: {array.dtype.name}] {shown}")
    return lines
