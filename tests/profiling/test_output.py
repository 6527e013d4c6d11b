"""The files of a profile that is made by hand: every number follows from the times below."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from dumpsim.core.errors import DumpWriteError
from dumpsim.core.version import __version__
from dumpsim.profiling import table, timeline
from dumpsim.profiling.options import ProfilingOptions
from dumpsim.profiling.output import write_analysis, write_profile
from dumpsim.profiling.record import Iteration, Operand, Profile, Step, TaskRecord, joined

START = 1_700_000_007_123_456_789  # 2023-11-14 22:13:27.123 UTC


def task(name, kind, stream, launched, start, end, serial, **more):
    return TaskRecord(
        name=f"Default/{name}-op{serial}", op_type=name, kind=kind, stream_id=stream, task_id=10 + serial,
        serial=serial, launched_ns=launched, start_ns=start, end_ns=end, **more,
    )  # fmt: skip


HALF = Operand(shape=(2, 3), dtype="float16", format="FRACTAL_NZ", nbytes=12)
TASKS = (
    task("MatMul", "KERNEL_AICORE", 1, 1000, 2000, 5000, 0, iteration=0, model_id=4, inputs=(HALF, HALF), outputs=()),
    task("AllReduce", "KERNEL_HCCL", 2, 1500, 4000, 7000, 1, iteration=0, model_id=4),
    task("Copy", "MEMCPY_ASYNC", 1, 2600, 6000, 6500, 2),
    task("Cast", "KERNEL_AICPU", 1, 2500, 8000, 9000, 3, iteration=1, model_id=4),
    task("Add", "KERNEL_AIVEC", 1, 6000, 12000, 12500, 4),
    task("Add", "KERNEL_AIVEC", 1, 7000, 13000, 14000, 5),
)
PROFILE = Profile(
    chip="910B", target="Ascend", rank=12, device_id=3, start_ns=1000, end_ns=20000, launch_ns=200,
    bandwidth=10**9, matrix_flops=10**12, tasks=TASKS,
    iterations=(
        Iteration(model_id=4, number=1, fp_start_ns=2000, bp_end_ns=5000, first_ns=1900, end_ns=7000),
        Iteration(
            model_id=4, number=2, fp_start_ns=8000, bp_end_ns=8500, first_ns=7900, end_ns=9000, previous_end_ns=7000
        ),
        Iteration(model_id=5, number=1, first_ns=12000, end_ns=14000),
        Iteration(model_id=6, number=1),
    ),
)  # fmt: skip


def rows(found):
    columns, lines = found
    return [dict(zip(columns, line, strict=True)) for line in lines]


def tree(root):
    return sorted(path.relative_to(root).as_posix() for path in Path(root).rglob("*") if path.is_file())


# ---------------------------------------------------------------- tables
def test_time_of_a_profile_without_steps():
    (row,) = rows(table.step_trace_time(PROFILE))
    assert list(row.values()) == [
        "", "5.500", "2.000", "1.000", "3.000", "4.500", "12.000", "0.000", "2.000", "1.000",
    ]  # fmt: skip


def test_a_step_has_the_kernels_that_start_in_it():
    steps = (Step(5, 2000, 8000), Step(6, 8000, 12000), Step(7, 30000, 40000))
    first, second, third = rows(table.step_trace_time(replace(PROFILE, steps=steps)))
    assert list(first.values()) == ["5", "3.000", "2.000", "1.000", "3.000", "0.000", "5.000", "0.000", "2.000",
                                    "0.000"]  # fmt: skip
    assert list(second.values()) == ["6", "1.000", *["0.000"] * 4, "1.000", *["0.000"] * 3]
    assert list(third.values()) == ["7", *["0.000"] * 9]


def test_a_kernel_is_of_the_step_that_launched_it():
    steps = (Step(5, 1000, 2500), Step(6, 2500, 6000))
    found = rows(table.kernel_details(replace(PROFILE, steps=steps), operands=False, metrics=None))
    assert [(row["Type"], row["Step ID"], row["Wait Time(us)"], row["Model ID"]) for row in found] == [
        ("MatMul", "N/A", "0.000", "4"), ("AllReduce", "5", "0.000", "4"), ("Cast", "5", "3.000", "4"),
        ("Add", "6", "3.000", "N/A"), ("Add", "N/A", "0.500", "N/A"),
    ]  # fmt: skip
    first = rows(table.kernel_details(replace(PROFILE, tasks=(replace(TASKS[0], model_id=0),)), operands=False,
                                      metrics=None))  # fmt: skip
    assert first[0]["Model ID"] == "0"
    assert (
        rows(table.op_summary(replace(PROFILE, tasks=(replace(TASKS[0], model_id=0),)), "Memory"))[0]["Model ID"] == "0"
    )
    assert "Step ID" not in rows(table.kernel_details(PROFILE, operands=False, metrics=None))[0]
    with_operands = rows(table.kernel_details(PROFILE, operands=True, metrics=None))
    assert with_operands[0]["Input Shapes"] == '"2,3;2,3"'
    assert with_operands[0]["Input Data Types"] == "FLOAT16;FLOAT16"
    assert with_operands[0]["Input Formats"] == "FRACTAL_NZ;FRACTAL_NZ"
    assert [with_operands[0][f"Output {what}"] for what in ("Shapes", "Data Types", "Formats")] == ['""', "", ""]
    assert with_operands[1]["Input Shapes"] == "N/A"


def test_operators_by_their_time():
    found = [list(row.values()) for row in rows(table.op_statistic(PROFILE))]
    assert found == [
        ["3", "AllReduce", "COMMUNICATION", "1", "3.000", "3.000", "3.000", "3.000", "35.294"],
        ["3", "MatMul", "AI_CORE", "1", "3.000", "3.000", "3.000", "3.000", "35.294"],
        ["3", "Add", "AI_VECTOR_CORE", "2", "1.500", "0.500", "0.750", "1.000", "17.647"],
        ["3", "Cast", "AI_CPU", "1", "1.000", "1.000", "1.000", "1.000", "11.765"],
    ]
    idle = replace(PROFILE, tasks=(replace(TASKS[0], end_ns=2000),))
    assert rows(table.op_statistic(idle))[0]["Ratio(%)"] == "N/A"


@pytest.mark.parametrize(("launch", "computing"), [(200, "0.800"), (1000, "0.000"), (5000, "0.000")])
def test_kernels_of_the_aicpu(launch, computing):
    (row,) = rows(table.aicpu(replace(PROFILE, launch_ns=launch)))
    assert list(row.values()) == [
        "8.000", "Default/Cast-op3", computing, "N/A", "1.000", "5.500", "6.500", "1", "13",
    ]  # fmt: skip


def test_iterations_and_their_parts():
    found = [list(row.values()) for row in rows(table.step_trace(PROFILE))]
    assert found == [
        ["3", "1", "2.000", "5.000", "7.000", "5.000", "3.000", "2.000", "N/A", "4"],
        ["3", "2", "8.000", "8.500", "9.000", "2.000", "0.500", "0.500", "1.000", "4"],
        ["3", "1", "N/A", "N/A", "14.000", "2.000", "N/A", "N/A", "N/A", "5"],
    ]
    drawn = [(e["name"], e["tid"], e["ts"], e["dur"]) for e in timeline.iterations(PROFILE) if e["ph"] == "X"]
    assert drawn == [
        ("Iteration 1", 4, "2.000", "5.000"), ("FP_BP Time 1", 4, "2.000", "3.000"),
        ("Iteration Refresh 1", 4, "5.000", "2.000"), ("Iteration 2", 4, "7.000", "2.000"),
        ("Data_aug Bound 2", 4, "7.000", "1.000"), ("FP_BP Time 2", 4, "8.000", "0.500"),
        ("Iteration Refresh 2", 4, "8.500", "0.500"), ("Iteration 1", 5, "12.000", "2.000"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "field"),
    [("a", "a"), ("a,b", '"a,b"'), ('a"b', '"a""b"'), ("a\nb", '"a\nb"'), ("a\rb", '"a\rb"'), ("", "")],
)
def test_fields_of_tables(text, field):
    assert table.csv_text((("x", "y"), [(text, "1")])).decode() == f"x,y\n{field},1\n"


def test_times_are_exact():
    assert [table.microseconds(ns) for ns in (0, 1, 999, 1000, -1, -1001)] == [
        "0.000", "0.001", "0.999", "1.000", "-0.001", "-1.001",
    ]  # fmt: skip


# ---------------------------------------------------------------- timelines
def test_a_track_for_each_stream():
    events = list(timeline.tasks(PROFILE))
    named = {(e["name"], e["pid"], e["tid"]): e["args"] for e in events if e["ph"] == "M"}
    hardware = events[0]["pid"]
    assert named == {
        ("process_name", hardware, 0): {"name": "Ascend Hardware"},
        ("process_sort_index", hardware, 0): {"sort_index": hardware},
        ("process_labels", hardware, 0): {"labels": "NPU"},
        ("thread_name", hardware, 1): {"name": "Stream 1"},
        ("thread_sort_index", hardware, 1): {"sort_index": 1},
        ("thread_name", hardware, 2): {"name": "Stream 2"},
        ("thread_sort_index", hardware, 2): {"sort_index": 2},
    }
    drawn = [(e["tid"], e["ts"], e["dur"], e["args"]["Iteration"]) for e in events if e["ph"] == "X"]
    assert drawn == [
        (1, "2.000", "3.000", 1), (2, "4.000", "3.000", 1), (1, "6.000", "0.500", None), (1, "8.000", "1.000", 2),
        (1, "12.000", "0.500", None), (1, "13.000", "1.000", None),
    ]  # fmt: skip
    assert [e for e in events if e["name"] in ("Default/Cast-op3", "Default/Add-op4")] == [
        {
            "ph": "X", "name": f"Default/{name}", "pid": 1, "tid": 1, "ts": start, "dur": duration, "args": {
                "Model Id": model, "Task Type": kind, "Stream Id": 1, "Task Id": number, "Iteration": iteration,
            },
        }
        for name, start, duration, model, kind, number, iteration in (
            ("Cast-op3", "8.000", "1.000", 4, "KERNEL_AICPU", 13, 2),
            ("Add-op4", "12.000", "0.500", -1, "KERNEL_AIVEC", 14, None),
        )
    ]  # fmt: skip
    assert next(timeline.tasks(replace(PROFILE, target="GPU")))["args"] == {"name": "GPU"}


def test_the_views_of_host_device_and_iterations_are_processes_of_their_own():
    marked = replace(PROFILE, steps=(Step(5, 1000, 2500),))
    views = [list(view(marked)) for view in (timeline.steps, timeline.tasks, timeline.iterations)]
    processes = [{event["pid"] for event in events} for events in views]
    assert [len(one) for one in processes] == [1, 1, 1]
    assert len(set.union(*processes)) == 3
    assert views[0] == [
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "MindSpore"}},
        {"ph": "M", "name": "process_sort_index", "pid": 0, "tid": 0, "args": {"sort_index": 0}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "CPU"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "Steps"}},
        {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": 0, "args": {"sort_index": 0}},
        {
            "ph": "X", "name": "ProfilerStep#5", "pid": 0, "tid": 0, "ts": "1.000", "dur": "1.500", "args": {},
        },
    ]  # fmt: skip


def test_a_trace_has_an_event_a_line():
    text = timeline.trace_text([{"a": 1}, {"b": 2}])
    assert text.decode().splitlines() == ["[", '{"a": 1},', '{"b": 2}', "]"]
    assert text.endswith(b"\n")
    assert json.loads(timeline.trace_text([])) == []
    assert timeline.trace_text([{"a": 1}], indent=4) == b'[\n    {\n        "a": 1\n    }\n]\n'


# ---------------------------------------------------------------- files
@pytest.mark.parametrize(
    ("switched", "names"),
    [
        ({}, []),
        ({"training_trace": True}, ["summary/step_trace_3.csv", "timeline/step_trace_3.json"]),
        (
            {"task_trace": True},
            ["summary/op_statistic_3.csv", "summary/op_summary_3.csv", "summary/task_time_3.csv",
             "timeline/task_time_3.json"],
        ),
        ({"metrics_given": True, "ai_core_metrics": "Memory"}, ["summary/op_summary_3.csv"]),
        ({"aicpu_trace": True}, ["summary/aicpu_3.csv"]),
    ],
)  # fmt: skip
def test_each_option_has_its_files(tmp_path, switched, names):
    options = ProfilingOptions(result_path=str(tmp_path), **switched)
    root = write_profile(replace(PROFILE, start_ns=START), options)
    assert root == str(tmp_path / "PROF_000001_20231114221327123_RANK0012")
    assert tree(root) == [f"device_3/{name}" for name in ["info.json", *names]]
    info = json.loads(Path(root, "device_3/info.json").read_text())
    assert info.pop("options") == {
        "training_trace": False, "task_trace": False, "aicpu_trace": False, "fp_point": "", "bp_point": "",
        "ai_core_metrics": "PipeUtilization", "metrics_given": False, **switched,
    }  # fmt: skip
    assert info == {
        "dumpsim": __version__, "chip": "910B", "device_target": "Ascend", "device_id": 3, "rank_id": 12,
        "start_time(us)": "1700000007123456.789", "end_time(us)": "20.000", "tasks": 6, "iterations": 4,
    }  # fmt: skip
    for path in Path(root).rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o750 if path.is_dir() else 0o640)
    assert stat.S_IMODE(Path(root).stat().st_mode) == 0o750


def test_numbers_are_free_ones(tmp_path):
    options = ProfilingOptions(result_path=str(tmp_path / "new" / "place"))
    made = [Path(write_profile(PROFILE, options)).name.split("_")[1] for _ in range(3)]
    assert made == ["000001", "000002", "000003"]
    names = [analysis(tmp_path / "new") for _ in range(3)]
    stem = "host_19700101000000000"
    assert [Path(name).name for name in names] == [f"{stem}_ascend_ms", f"{stem}_2_ascend_ms", f"{stem}_3_ascend_ms"]


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DumpWriteError, match="cannot be made") as caught:
        write_profile(PROFILE, ProfilingOptions(result_path=str(tmp_path / "file")))
    assert str(tmp_path / "file") in str(caught.value)


def analysis(path, profile=PROFILE, **more):
    given = {
        "worker": "host", "settings": {"level": 1}, "metadata": {}, "operators": True, "operands": True,
        "metrics": None, **more,
    }  # fmt: skip
    return write_analysis(profile, str(path), **given)


def test_files_of_an_analysis(tmp_path):
    root = Path(analysis(tmp_path, metadata={"who": "me"}))
    output = "ASCEND_PROFILER_OUTPUT"
    assert tree(root) == [
        *(f"{output}/{name}" for name in ("kernel_details.csv", "op_statistic.csv", "step_trace_time.csv",
                                          "trace_view.json")),
        "profiler_info_12.json", "profiler_metadata.json",
    ]  # fmt: skip
    assert (root / "profiler_metadata.json").read_text() == '{\n    "who": "me"\n}\n'
    info = json.loads((root / "profiler_info_12.json").read_text())
    assert (info["config"], info["rank_id"]) == ({"level": 1}, 12)
    trace = root / output / "trace_view.json"
    assert trace.read_text().splitlines()[1].endswith("},")
    names = {event["name"] for event in json.loads(trace.read_text()) if event["ph"] == "X"}
    assert {"Default/Cast-op3", "Iteration 2"} <= names
    bare = Path(analysis(tmp_path, operators=False, pretty=True))
    assert tree(bare) == [f"{output}/trace_view.json", "profiler_info_12.json"]
    assert (bare / output / "trace_view.json").read_text().splitlines()[1] == "    {"
    for path in root.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o750 if path.is_dir() else 0o640)


def test_an_analysis_of_some_steps_has_what_they_launched(tmp_path):
    marked = replace(PROFILE, steps=(Step(5, 1000, 2500), Step(6, 2500, 6000), Step(7, 6000, 7000)))

    def launched(steps):
        root = Path(analysis(tmp_path, marked, steps=steps), "ASCEND_PROFILER_OUTPUT")
        text = (root / "kernel_details.csv").read_text().splitlines()
        return [line.split(",")[0] + " " + line.split(",")[4].split("/")[1] for line in text[1:]]

    assert launched([5]) == ["5 AllReduce-op1", "5 Cast-op3"]
    assert launched([6]) == ["6 Add-op4"]
    assert launched([5, 7]) == ["5 AllReduce-op1", "5 Cast-op3", "7 Add-op5"]
    assert launched(None)[0] == "N/A MatMul-op0"


@pytest.mark.parametrize(("given", "durable"), [({}, False), ({"durable": False}, False), ({"durable": True}, True)])
def test_durable_files_reach_the_disk(tmp_path, monkeypatch, given, durable):
    synced = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(sync(descriptor)))
    options = ProfilingOptions(result_path=str(tmp_path))
    write_profile(PROFILE, options, **given)
    assert bool(synced) is durable
    synced.clear()
    analysis(tmp_path, **given)
    assert bool(synced) is durable


def test_profiles_of_one_device_are_joined():
    later = replace(PROFILE, start_ns=30000, end_ns=40000)
    both = joined([PROFILE, later])
    assert (both.start_ns, both.end_ns) == (1000, 40000)
    assert [one.iteration for one in both.tasks] == [0, 0, -1, 1, -1, -1, 4, 4, -1, 5, -1, -1]
    assert len(both.iterations) == 8
    assert joined([PROFILE]).tasks == list(TASKS) or tuple(joined([PROFILE]).tasks) == TASKS
