"""Metrics of tasks whose times and bytes are round numbers."""

import pytest

from dumpsim.profiling.metrics import METRIC_COLUMNS, metric_values
from dumpsim.profiling.record import Operand, Profile, TaskRecord

# a byte takes 2 ns, a matrix operation 4 ns
PROFILE = Profile(chip="910B", target="Ascend", rank=0, device_id=0, start_ns=0, end_ns=0, launch_ns=0,
                  bandwidth=5 * 10**8, matrix_flops=25 * 10**7, tasks=(), cube_ops=frozenset({"MatMul"}))  # fmt: skip


def operand(nbytes, dtype="float16"):
    return Operand((nbytes,), dtype, "ND", nbytes)


def task(op_type="MatMul", kind="KERNEL_AICORE", duration=4000, **more):
    given = {"inputs": (operand(100), operand(400), operand(500)), "outputs": (operand(200),), "flops": 250}
    return TaskRecord(name="x", op_type=op_type, kind=kind, stream_id=0, task_id=0, serial=0, launched_ns=0,
                      start_ns=50, end_ns=50 + duration, **given | more)  # fmt: skip


def values(group, one):
    return dict(zip(METRIC_COLUMNS[group], metric_values(PROFILE, one, group), strict=True))


@pytest.mark.parametrize("group", METRIC_COLUMNS)
@pytest.mark.parametrize(
    "change", [{"kind": "KERNEL_AICPU"}, {"kind": "MEMCPY_ASYNC"}, {"inputs": None}, {"outputs": None}, {"flops": None}]
)
def test_what_runs_on_no_core_or_is_not_known_has_none(group, change):
    assert set(values(group, task(**change)).values()) == {"N/A"}


@pytest.mark.parametrize(
    ("op_type", "dtype", "column"),
    [
        ("MatMul", "float16", "mac_fp16_ratio"), ("MatMul", "int8", "mac_int8_ratio"),
        ("MatMul", "float32", "mac_fp16_ratio"), ("Add", "float32", "vec_fp32_ratio"),
        ("Add", "float16", "vec_fp16_ratio"), ("Add", "int32", "vec_int32_ratio"), ("Add", "int8", "vec_misc_ratio"),
        ("Add", "bfloat16", "vec_misc_ratio"),
    ],
)  # fmt: skip
def test_the_unit_of_the_first_operand_is_busy(op_type, dtype, column):
    found = values("ArithmeticUtilization", task(op_type, inputs=(operand(8, dtype), operand(8, "float32"))))
    assert found.pop(column) == "0.250"  # 250 operations of 4 ns in 4000 ns
    matrix = op_type == "MatMul"
    assert (found.pop("cube_fops"), found.pop("vector_fops")) == (str(250 * matrix), str(250 * (not matrix)))
    assert found.pop("vec_misc_ratio", "N/A") == "N/A"
    assert set(found.values()) == {"0.000"}
    alone = values("ArithmeticUtilization", task(op_type, inputs=(), outputs=(operand(8, dtype),)))
    assert alone[column] == "0.250"
    assert values("ArithmeticUtilization", task("Add", inputs=(), outputs=()))["vec_misc_ratio"] == "0.250"


@pytest.mark.parametrize(("op_type", "unit", "other"), [("MatMul", "mac", "vec"), ("Add", "vec", "mac")])
def test_pipes_are_busy_as_long_as_the_clock_charges(op_type, unit, other):
    found = values("PipeUtilization", task(op_type, kind="KERNEL_AIVEC", flops=251, outputs=(operand(3),)))
    assert found == {
        f"{unit}_time(us)": "1.004", f"{unit}_ratio": "0.251", f"{other}_time(us)": "0.000", f"{other}_ratio": "0.000",
        "scalar_time(us)": "N/A", "scalar_ratio": "N/A", "mte1_time(us)": "N/A", "mte1_ratio": "N/A",
        "mte2_time(us)": "2.000", "mte2_ratio": "0.500", "mte3_time(us)": "0.006", "mte3_ratio": "0.002",
        "icache_miss_rate": "N/A",
    }  # fmt: skip


def test_bytes_by_time_are_bandwidth():
    found = values("Memory", task())
    assert found.pop("main_mem_read_bw(GB/s)") == "0.250"
    assert found.pop("main_mem_write_bw(GB/s)") == "0.050"
    assert set(found.values()) == {"N/A"}
    assert set(values("Memory", task(duration=0)).values()) == {"N/A"}


def test_buffers_of_the_matrix_unit_pass_each_operand_once():
    assert values("MemoryL0", task()) == {
        "l0a_read_bw(GB/s)": "0.025", "l0a_write_bw(GB/s)": "0.025", "l0b_read_bw(GB/s)": "0.100",
        "l0b_write_bw(GB/s)": "0.100", "l0c_read_bw(GB/s)": "0.050", "l0c_write_bw(GB/s)": "0.000",
        "l0c_read_bw_cube(GB/s)": "0.050", "l0c_write_bw_cube(GB/s)": "0.050",
    }  # fmt: skip
    assert set(values("MemoryL0", task("Add")).values()) == {"0.000"}
    assert set(values("ResourceConflictRatio", task()).values()) == {"0.000"}
