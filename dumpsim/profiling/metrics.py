"""AI Core metrics of a kernel, as far as they follow from what the virtual clock charges.

The clock knows how long the matrix or vector unit computes and how many bytes move between device memory and the core,
each byte once; caches, banks and the scalar unit do not exist. What does not exist is ``N/A``, the vendor's text for a
value that was not collected. Column names are those of msprof's op_summary. [CANN 5.x to 8.x]
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from dumpsim.profiling.options import METRICS
from dumpsim.profiling.record import Operand, Profile, TaskRecord

__all__ = ["METRIC_COLUMNS", "NOT_COLLECTED", "metric_values"]

NOT_COLLECTED = "N/A"
_ZERO = "0.000"
_CORES = ("KERNEL_AICORE", "KERNEL_AIVEC")
_PIPES = ("mac", "vec", "scalar", "mte1", "mte2", "mte3")
_MEMORIES = ("ub", "l1", "l2", "main_mem")
_FLOATS = MappingProxyType({"float32": "fp32", "float16": "fp16", "int32": "int32", "int8": "int8"})

METRIC_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ArithmeticUtilization": (
            "mac_fp16_ratio", "mac_int8_ratio", "vec_fp32_ratio", "vec_fp16_ratio", "vec_int32_ratio",
            "vec_misc_ratio", "cube_fops", "vector_fops",
        ),
        "PipeUtilization": (
            *(f"{pipe}_{what}" for pipe in _PIPES for what in ("time(us)", "ratio")), "icache_miss_rate",
        ),
        "Memory": tuple(f"{memory}_{way}_bw(GB/s)" for memory in _MEMORIES for way in ("read", "write")),
        "MemoryL0": (
            "l0a_read_bw(GB/s)", "l0a_write_bw(GB/s)", "l0b_read_bw(GB/s)", "l0b_write_bw(GB/s)",
            "l0c_read_bw(GB/s)", "l0c_write_bw(GB/s)", "l0c_read_bw_cube(GB/s)", "l0c_write_bw_cube(GB/s)",
        ),
        "ResourceConflictRatio": ("vec_bankgroup_cflt_ratio", "vec_bank_cflt_ratio", "vec_resc_cflt_ratio"),
    }
)  # fmt: skip
assert tuple(METRIC_COLUMNS) == METRICS


def metric_values(profile: Profile, task: TaskRecord, group: str) -> list[str]:
    """Return the metrics of a task, one per column of the group; ``N/A`` for tasks outside the AI Core.

    Examples
    --------
    >>> from dumpsim.profiling.record import Operand, Profile, TaskRecord
    >>> profile = Profile(chip="910B", target="Ascend", rank=0, device_id=0, start_ns=0, end_ns=0, launch_ns=5000,
    ...     bandwidth=10**9, matrix_flops=10**12, tasks=())
    >>> vector = Operand((1000,), "float32", "ND", 4000)
    >>> task = TaskRecord(name="Default/Add-op0", op_type="Add", kind="KERNEL_AIVEC", stream_id=0, task_id=0, serial=0,
    ...     launched_ns=0, start_ns=0, end_ns=17000, inputs=(vector, vector), outputs=(vector,), flops=1000)
    >>> dict(zip(METRIC_COLUMNS["Memory"], metric_values(profile, task, "Memory")))["main_mem_read_bw(GB/s)"]
    '0.471'
    """
    columns = METRIC_COLUMNS[group]
    if task.kind not in _CORES or task.inputs is None or task.outputs is None or task.flops is None:
        return [NOT_COLLECTED] * len(columns)
    found = _GROUPS[group](profile, task, task.inputs, task.outputs, task.flops)
    return [found.get(column, NOT_COLLECTED) for column in columns]


def _nbytes(operands: Sequence[Operand]) -> int:
    return sum(operand.nbytes for operand in operands)


def _arithmetic(
    profile: Profile, task: TaskRecord, inputs: Sequence[Operand], outputs: Sequence[Operand], flops: int
) -> dict[str, str]:
    matrix = task.op_type in profile.cube_ops
    busy = _share(flops * 10**9 // profile.matrix_flops, task.duration_ns)
    columns = METRIC_COLUMNS["ArithmeticUtilization"][:5]
    found = dict.fromkeys(columns, _ZERO)
    kind = _FLOATS.get((inputs or outputs)[0].dtype if inputs or outputs else "", "")
    unit = f"mac_{'int8' if kind == 'int8' else 'fp16'}_ratio" if matrix else f"vec_{kind}_ratio"
    found[unit if unit in columns else "vec_misc_ratio"] = busy
    return {**found, "cube_fops": str(flops * matrix), "vector_fops": str(flops * (not matrix))}


def _pipes(
    profile: Profile, task: TaskRecord, inputs: Sequence[Operand], outputs: Sequence[Operand], flops: int
) -> dict[str, str]:
    compute = flops * 10**9 // profile.matrix_flops
    matrix = task.op_type in profile.cube_ops
    times = {
        "mac": compute * matrix,
        "vec": compute * (not matrix),
        "mte2": _nbytes(inputs) * 10**9 // profile.bandwidth,
        "mte3": _nbytes(outputs) * 10**9 // profile.bandwidth,
    }
    found = {}
    for pipe, time in times.items():
        found[f"{pipe}_time(us)"] = f"{time // 1000}.{time % 1000:03d}"
        found[f"{pipe}_ratio"] = _share(time, task.duration_ns)
    return found


def _memory(
    profile: Profile, task: TaskRecord, inputs: Sequence[Operand], outputs: Sequence[Operand], flops: int
) -> dict[str, str]:
    return {
        "main_mem_read_bw(GB/s)": _share(_nbytes(inputs), task.duration_ns),  # a byte a nanosecond is a GB a second
        "main_mem_write_bw(GB/s)": _share(_nbytes(outputs), task.duration_ns),
    }


def _memory_l0(
    profile: Profile, task: TaskRecord, inputs: Sequence[Operand], outputs: Sequence[Operand], flops: int
) -> dict[str, str]:
    """Bandwidths of the matrix unit's buffers; each operand passes its buffer once, the lower bound."""
    if task.op_type not in profile.cube_ops:
        return dict.fromkeys(METRIC_COLUMNS["MemoryL0"], _ZERO)
    first, second = (_share(sum(o.nbytes for o in inputs[at : at + 1]), task.duration_ns) for at in (0, 1))
    result = _share(_nbytes(outputs), task.duration_ns)
    return {
        **{f"l0a_{way}_bw(GB/s)": first for way in ("read", "write")},
        **{f"l0b_{way}_bw(GB/s)": second for way in ("read", "write")},
        **{f"l0c_{way}_bw_cube(GB/s)": result for way in ("read", "write")},
        "l0c_read_bw(GB/s)": result,
        "l0c_write_bw(GB/s)": _ZERO,
    }


def _conflicts(
    profile: Profile, task: TaskRecord, inputs: Sequence[Operand], outputs: Sequence[Operand], flops: int
) -> dict[str, str]:
    """Bank conflicts: none, since the emulated memory has no banks."""
    return dict.fromkeys(METRIC_COLUMNS["ResourceConflictRatio"], _ZERO)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else NOT_COLLECTED


_Group = Callable[[Profile, TaskRecord, Sequence[Operand], Sequence[Operand], int], dict[str, str]]
_GROUPS: Mapping[str, _Group] = MappingProxyType(
    {
        "ArithmeticUtilization": _arithmetic,
        "PipeUtilization": _pipes,
        "Memory": _memory,
        "MemoryL0": _memory_l0,
        "ResourceConflictRatio": _conflicts,
    }
)
