"""The tables of a profile, with the column names of msprof. [CANN 5.x to 8.x, MindSpore 2.10]"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from dumpsim.profiling.metrics import METRIC_COLUMNS, NOT_COLLECTED, metric_values
from dumpsim.profiling.record import Iteration, Operand, Profile, Step, TaskRecord

__all__ = ["Table", "aicpu", "csv_text", "kernel_details", "microseconds", "op_statistic", "op_summary", "step_trace",
           "step_trace_time", "task_time"]  # fmt: skip

Table = tuple[Sequence[str], Iterable[Sequence[str]]]  # column names and rows

_TASK_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "KERNEL_AICORE": "AI_CORE",
        "KERNEL_AIVEC": "AI_VECTOR_CORE",
        "KERNEL_AICPU": "AI_CPU",
        "KERNEL_HCCL": "COMMUNICATION",
        "KERNEL_HOST": "HOST",
    }
)
_DTYPES: Mapping[str, str] = MappingProxyType(
    {"float32": "FLOAT", "float64": "DOUBLE", "bfloat16": "DT_BF16", "float16": "FLOAT16"}
)
_OPERAND_COLUMNS = tuple(
    f"{side} {what}" for side in ("Input", "Output") for what in ("Shapes", "Data Types", "Formats")
)


def microseconds(ns: int) -> str:
    """Format nanoseconds as microseconds, exactly.

    Examples
    --------
    >>> microseconds(1700000000000012345)
    '1700000000000012.345'
    """
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def csv_text(table: Table) -> bytes:
    """Return a table as CSV; fields with commas, quotes or line ends are quoted.

    Examples
    --------
    >>> csv_text((("a", "b"), [("1", "2,3")]))
    b'a,b\\n1,"2,3"\\n'
    """
    columns, rows = table
    return "".join(",".join(map(_field, row)) + "\n" for row in (columns, *rows)).encode()


def _field(text: str) -> str:
    quoted = any(mark in text for mark in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if quoted else text


def step_trace(profile: Profile) -> Table:
    """One row per iteration; its parts add up to its time: augmentation, forward to backward, refresh.

    The first iteration of a model begins with its forward pass, since no iteration ends before it.
    """
    columns = (
        "Device_id", "Iteration ID", "FP Start(us)", "BP End(us)", "Iteration End(us)", "Iteration Time(us)",
        "FP to BP Time(us)", "Iteration Refresh(us)", "Data Aug Bound(us)", "Model ID",
    )  # fmt: skip
    return columns, (_step_row(profile, each) for each in profile.iterations if each.end_ns is not None)


def _step_row(profile: Profile, each: Iteration) -> Sequence[str]:
    start, stop, end, before = each.fp_start_ns, each.bp_end_ns, each.end_ns, each.previous_end_ns
    return (
        str(profile.device_id), str(each.number), _span(0, start), _span(0, stop), _span(0, end),
        _span(each.begin_ns, end), _span(start, stop), _span(stop, end), _span(before, start),
        str(each.model_id),
    )  # fmt: skip


def _span(since: int | None, to: int | None) -> str:
    return NOT_COLLECTED if since is None or to is None else microseconds(to - since)


def task_time(profile: Profile) -> Table:
    """One row per task, of all kinds, in the order in which they started."""
    columns = (
        "Device_id", "kernel_name", "kernel_type", "stream_id", "task_id", "task_time(us)", "task_start(us)",
        "task_stop(us)",
    )  # fmt: skip
    rows = (
        (
            str(profile.device_id), task.name, task.kind, str(task.stream_id), str(task.task_id),
            microseconds(task.duration_ns), microseconds(task.start_ns), microseconds(task.end_ns),
        )
        for task in in_order(profile.tasks)
    )  # fmt: skip
    return columns, rows


def op_summary(profile: Profile, metrics: str) -> Table:
    """One row per kernel with its operands and AI Core metrics."""
    columns = (
        "Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "Task Type", "Task Start Time(us)",
        "Task Duration(us)", "Task Wait Time(us)", *_OPERAND_COLUMNS, *METRIC_COLUMNS[metrics],
    )  # fmt: skip
    rows = (
        (
            str(profile.device_id), str(task.model_id) if task.model_id >= 0 else NOT_COLLECTED, str(task.task_id),
            str(task.stream_id), task.name, task.op_type, _TASK_TYPES[task.kind], microseconds(task.start_ns),
            microseconds(task.duration_ns), microseconds(wait), *_operands(task),
            *metric_values(profile, task, metrics),
        )
        for task, wait in _waits(profile.tasks)
    )  # fmt: skip
    return columns, rows


def kernel_details(profile: Profile, *, operands: bool, metrics: str | None) -> Table:
    """`op_summary` as ``mindspore.profiler`` shows it; operands and metrics from level 1 on.

    If the script marks steps, a row has the step in which the host launched the kernel.
    """
    columns = (
        *(("Step ID",) if profile.steps else ()), "Model ID", "Task ID", "Stream ID", "Name", "Type",
        "Accelerator Core", "Start Time(us)", "Duration(us)", "Wait Time(us)",
        *(_OPERAND_COLUMNS if operands else ()), *(METRIC_COLUMNS[metrics] if metrics else ()),
    )  # fmt: skip
    rows = (
        (
            *((_step_of(profile.steps, task),) if profile.steps else ()),
            str(task.model_id) if task.model_id >= 0 else NOT_COLLECTED, str(task.task_id), str(task.stream_id),
            task.name, task.op_type, _TASK_TYPES[task.kind], microseconds(task.start_ns),
            microseconds(task.duration_ns), microseconds(wait), *(_operands(task) if operands else ()),
            *(metric_values(profile, task, metrics) if metrics else ()),
        )
        for task, wait in _waits(profile.tasks)
    )  # fmt: skip
    return columns, rows


def _step_of(steps: Sequence[Step], task: TaskRecord) -> str:
    found = (step.number for step in steps if step.start_ns < task.launched_ns <= step.end_ns)
    return str(next(found, NOT_COLLECTED))


def op_statistic(profile: Profile) -> Table:
    """One row per operator type and core, the longest total first."""
    columns = (
        "Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)", "Max Time(us)",
        "Ratio(%)",
    )  # fmt: skip
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    for task in profile.tasks:
        if task.is_kernel:
            times[task.op_type, _TASK_TYPES[task.kind]].append(task.duration_ns)
    everything = sum(map(sum, times.values()))
    rows = (
        (
            str(profile.device_id), op_type, core, str(len(found)), microseconds(sum(found)), microseconds(min(found)),
            microseconds(sum(found) // len(found)), microseconds(max(found)),
            f"{100 * sum(found) / everything:.3f}" if everything else NOT_COLLECTED,
        )
        for (op_type, core), found in sorted(times.items(), key=lambda item: (-sum(item[1]), item[0]))
    )  # fmt: skip
    return columns, rows


def aicpu(profile: Profile) -> Table:
    """One row per kernel of the AI CPU; memory copies are not emulated there."""
    columns = (
        "Timestamp(us)", "Node", "Compute_time(us)", "Memcpy_time(us)", "Task_time(us)", "Dispatch_time(us)",
        "Total_time(us)", "Stream ID", "Task ID",
    )  # fmt: skip
    rows = (
        (
            microseconds(task.start_ns), task.name, microseconds(max(0, task.duration_ns - profile.launch_ns)),
            NOT_COLLECTED, microseconds(task.duration_ns), microseconds(task.start_ns - task.launched_ns),
            microseconds(task.end_ns - task.launched_ns), str(task.stream_id), str(task.task_id),
        )
        for task in in_order(profile.tasks)
        if task.kind == "KERNEL_AICPU"
    )  # fmt: skip
    return columns, rows


def step_trace_time(profile: Profile) -> Table:
    """Per step of the script: when the device computes, communicates, does both, and idles.

    Without steps there is one row for the whole profile, with an empty step.
    """
    columns = (
        "Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage", "Bubble",
        "Communication(Not Overlapped and Exclude Receive)", "Preparing",
    )  # fmt: skip
    steps: Sequence[Step | None] = profile.steps or (None,)
    return columns, (_step_time(profile, step) for step in steps)


def _step_time(profile: Profile, step: Step | None) -> Sequence[str]:
    begin, end = (profile.start_ns, profile.end_ns) if step is None else (step.start_ns, step.end_ns)
    kernels = [task for task in profile.tasks if task.is_kernel and begin <= task.start_ns < end]
    spans = [(task.start_ns, task.end_ns) for task in kernels if task.kind != "KERNEL_HCCL"]
    sent = [(task.start_ns, task.end_ns) for task in kernels if task.kind == "KERNEL_HCCL"]
    computing, sending, either = covered(spans), covered(sent), covered(spans + sent)
    overlap = computing + sending - either
    first = min((task.start_ns for task in kernels), default=begin)
    last = max((task.end_ns for task in kernels), default=first)
    numbers = (computing, sending - overlap, overlap, sending, last - first - either, last - first, 0)
    times = [microseconds(number) for number in numbers]
    return (str(step.number) if step else "", *times, times[1], microseconds(first - begin))


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """Return the length of the union of intervals.

    Examples
    --------
    >>> covered([(0, 4), (2, 5), (7, 8)])
    6
    """
    total, reached = 0, None
    for start, end in sorted(spans):
        begin = start if reached is None else max(start, reached)
        total += max(0, end - begin)
        reached = max(begin, end)
    return total


def in_order(tasks: Sequence[TaskRecord]) -> list[TaskRecord]:
    """Return the tasks by start, stream and serial number."""
    return sorted(tasks, key=lambda task: (task.start_ns, task.stream_id, task.serial))


def _waits(tasks: Sequence[TaskRecord]) -> Iterator[tuple[TaskRecord, int]]:
    """Iterate over the kernels in order, with the idle time of their stream since its last kernel."""
    ends: dict[int, int] = {}
    for task in in_order([task for task in tasks if task.is_kernel]):
        yield task, task.start_ns - ends.get(task.stream_id, task.start_ns)
        ends[task.stream_id] = task.end_ns


def _operands(task: TaskRecord) -> Iterator[str]:
    for operands in (task.inputs, task.outputs):
        if operands is None:
            yield from (NOT_COLLECTED,) * 3
        else:
            yield '"' + ";".join(",".join(map(str, operand.shape)) for operand in operands) + '"'
            yield ";".join(map(_dtype, operands))
            yield ";".join(operand.format for operand in operands)


def _dtype(operand: Operand) -> str:
    return _DTYPES.get(operand.dtype, operand.dtype.upper())
