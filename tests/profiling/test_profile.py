"""The profile of set_context against the tasks that the device itself holds."""

import json
from itertools import pairwise

import numpy as np
import pytest
from profilerun import Machine, ns, profiled, rows, slices, trained, watched

import dumpsim.frontends.mindspore as ms
from dumpsim.device.chip import chip
from dumpsim.frontends.mindspore import context, nn, ops
from dumpsim.frontends.mindspore import dataset as ds
from dumpsim.frontends.mindspore.train import Model
from dumpsim.profiling.metrics import METRIC_COLUMNS
from dumpsim.runtime.session import Session

MODES = pytest.mark.parametrize("mode", ["O0", "O2", "GPU", "CPU"])


@MODES
def test_every_task_of_the_device_is_in_table_and_timeline(tmp_path, monkeypatch, mode):
    machine, found = profiled(tmp_path, monkeypatch, mode)
    wanted = sorted((t.start_ns, t.end_ns, t.stream_id, t.task_id, t.name, t.kind.value) for t in machine.tasks)
    assert len(wanted) > 30
    table = [
        (ns(row["task_start(us)"]), ns(row["task_stop(us)"]), int(row["stream_id"]), int(row["task_id"]),
         row["kernel_name"], row["kernel_type"])
        for row in rows(found, "task_time")
    ]  # fmt: skip
    assert sorted(table) == wanted
    assert [row[0] for row in table] == sorted(row[0] for row in table)
    timeline = [
        (ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["tid"], e["args"]["Task Id"], e["name"], e["args"]["Task Type"])
        for e in slices(found, "task_time")
    ]
    assert timeline == table


@MODES
def test_tasks_of_a_stream_do_not_overlap(tmp_path, monkeypatch, mode):
    _, found = profiled(tmp_path, monkeypatch, mode)
    streams = {}
    for event in slices(found, "task_time"):
        streams.setdefault(event["tid"], []).append(event)
    for events in streams.values():
        for before, after in pairwise(events):
            assert ns(before["ts"]) + ns(before["dur"]) <= ns(after["ts"])


@MODES
def test_iterations_are_the_runs_of_the_network(tmp_path, monkeypatch, mode):
    machine, found = profiled(tmp_path, monkeypatch, mode)
    table = rows(found, "step_trace")
    assert [row["Iteration ID"] for row in table] == ["1", "2", "3"]
    bounds = [*machine.runs, len(machine.tasks)]
    previous = None
    for row, (first, last) in zip(table, pairwise(bounds), strict=True):
        tasks = machine.tasks[first:last]
        kernels = [task for task in tasks if task.kind.value.startswith("KERNEL")]
        backward = [task for task in kernels if "Grad" in task.name.split("/")[0]]
        end = max(task.end_ns for task in tasks)
        assert ns(row["FP Start(us)"]) == min(task.start_ns for task in kernels)
        assert ns(row["BP End(us)"]) == max(task.end_ns for task in backward)
        assert ns(row["Iteration End(us)"]) == end
        parts = [row[name] for name in ("FP to BP Time(us)", "Iteration Refresh(us)", "Data Aug Bound(us)")]
        if previous is None:
            assert parts[2] == "N/A"
        else:
            assert ns(row["Iteration Time(us)"]) == end - previous
            assert ns(row["Data Aug Bound(us)"]) == min(task.start_ns for task in kernels) - previous
        assert ns(row["Iteration Time(us)"]) == sum(ns(part) for part in parts if part != "N/A")
        previous = end
    drawn = {event["name"]: event for event in slices(found, "step_trace")}
    assert len(drawn) == 3 * 4 - 1
    for row in table:
        for column, name in (
            ("Iteration Time(us)", "Iteration {}"), ("FP to BP Time(us)", "FP_BP Time {}"),
            ("Iteration Refresh(us)", "Iteration Refresh {}"), ("Data Aug Bound(us)", "Data_aug Bound {}"),
        ):  # fmt: skip
            event = drawn.get(name.format(row["Iteration ID"]))
            assert (event["dur"] if event else "N/A") == row[column]


def test_the_points_that_a_script_names(tmp_path, monkeypatch, capsys):
    (tmp_path / "b").mkdir()
    machine, found = profiled(tmp_path / "b", monkeypatch)
    names = [task.name for task in machine.tasks[: machine.runs[1]]]
    start = next(name for name in names if "ReLU-op" in name and name.startswith("Default"))
    stop = next(name for name in names if name.startswith("Gradients") and "MatMul" in name)
    (tmp_path / "c").mkdir()
    machine, found = profiled(tmp_path / "c", monkeypatch, training_trace="on", fp_point=start, bp_point=stop)
    for row, number in zip(rows(found, "step_trace"), machine.runs, strict=True):
        run = machine.tasks[number : number + len(names)]
        assert ns(row["FP Start(us)"]) == next(task.start_ns for task in run if task.name == start)
        assert ns(row["BP End(us)"]) == next(task.end_ns for task in run if task.name == stop)
    assert "profile: fp_point" not in capsys.readouterr().err
    (tmp_path / "d").mkdir()
    _, found = profiled(tmp_path / "d", monkeypatch, training_trace="on", fp_point=start[:-1] + "9")
    assert f"fp_point: no operator '{start[:-1]}9' has run (did you mean '{start}'?)" in capsys.readouterr().err
    assert {row["FP Start(us)"] for row in rows(found, "step_trace")} == {"N/A"}


def test_a_graph_without_backward_pass_has_no_points(tmp_path, monkeypatch):
    def infer(machine: Machine) -> None:
        net = nn.Dense(4, 4)
        for _ in range(2):
            net(ms.Tensor(np.ones((2, 4), np.float32)))

    _, found = profiled(tmp_path, monkeypatch, run=infer)
    first, second = rows(found, "step_trace")
    assert (first["FP Start(us)"], first["BP End(us)"], first["Data Aug Bound(us)"]) == ("N/A", "N/A", "N/A")
    assert ns(second["Iteration Time(us)"]) == ns(second["Iteration End(us)"]) - ns(first["Iteration End(us)"])


def test_operators_have_their_operands_and_sums(tmp_path, monkeypatch):
    machine, found = profiled(tmp_path, monkeypatch)
    table = rows(found, "op_summary")
    kernels = [task for task in machine.tasks if task.kind.value.startswith("KERNEL")]
    assert [row["Op Name"] for row in table] == [task.name for task in sorted(kernels, key=lambda t: t.start_ns)]
    product = next(row for row in table if row["OP Type"] == "MatMul")
    assert (product["Input Shapes"], product["Output Shapes"]) == ('"2,72;3,72"', '"2,3"')
    assert product["Input Data Types"] == "FLOAT;FLOAT"
    statistic = rows(found, "op_statistic")
    assert sum(ns(row["Total Time(us)"]) for row in statistic) == sum(t.end_ns - t.start_ns for t in kernels)
    assert sum(int(row["Count"]) for row in statistic) == len(kernels)
    assert sum(float(row["Ratio(%)"]) for row in statistic) == pytest.approx(100, abs=0.01)
    for row in statistic:
        own = [ns(other["Task Duration(us)"]) for other in table if other["OP Type"] == row["OP Type"]]
        assert (len(own), min(own), max(own)) == (
            int(row["Count"]), ns(row["Min Time(us)"]), ns(row["Max Time(us)"])
        )  # fmt: skip
    assert [ns(row["Total Time(us)"]) for row in statistic] == sorted(
        (ns(row["Total Time(us)"]) for row in statistic), reverse=True
    )


@pytest.mark.parametrize("metrics", METRIC_COLUMNS)
def test_metrics_follow_from_what_the_clock_charges(tmp_path, monkeypatch, metrics):
    _, found = profiled(tmp_path, monkeypatch, run=lambda machine: trained(machine, 1, 64), ai_core_metrics=metrics)
    assert not list(found.rglob("task_time*"))
    prices, cubes = chip("910B").prices, chip("910B").cube_ops
    columns = METRIC_COLUMNS[metrics]
    table = rows(found, "op_summary")
    assert list(table[0])[-len(columns) :] == list(columns)
    row = next(row for row in table if row["OP Type"] == "MatMul" and '"64,72;3,72"' in row["Input Shapes"])
    busy, duration = 2 * 64 * 72 * 3 * 10**9 // prices.flops, ns(row["Task Duration(us)"])
    read, written = 4 * (64 * 72 + 3 * 72), 4 * 64 * 3
    on_matrix = "MatMul" in cubes
    wanted = {
        "ArithmeticUtilization": {"cube_fops": str(2 * 64 * 72 * 3 * on_matrix), "vec_misc_ratio": "N/A"},
        "PipeUtilization": {
            "mte2_time(us)": f"0.{read * 10**9 // prices.bandwidth:03d}", "mte3_ratio":
            f"{written * 10**9 // prices.bandwidth / duration:.3f}", "scalar_ratio": "N/A",
            ("mac" if on_matrix else "vec") + "_time(us)": f"0.{busy:03d}",
        },
        "Memory": {"main_mem_read_bw(GB/s)": f"{read / duration:.3f}", "l2_read_bw(GB/s)": "N/A"},
        "MemoryL0": {"l0a_read_bw(GB/s)": f"{4 * 64 * 72 * on_matrix / duration:.3f}"},
        "ResourceConflictRatio": {"vec_bank_cflt_ratio": "0.000"},
    }  # fmt: skip
    assert {name: row[name] for name in wanted[metrics]} == wanted[metrics]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"training_trace": "on"}, {"step_trace_0.csv", "step_trace_0.json"}),
        ({"task_trace": "on"}, {"task_time_0.csv", "task_time_0.json", "op_summary_0.csv", "op_statistic_0.csv"}),
        ({"aicpu_trace": "on"}, {"aicpu_0.csv"}),
        ({"ai_core_metrics": "Memory"}, {"op_summary_0.csv"}),
    ],
)
def test_each_switch_has_files_of_its_own(tmp_path, monkeypatch, options, names):
    _, found = profiled(tmp_path, monkeypatch, **options)
    assert {path.name for path in found.rglob("*.*")} == names | {"info.json"}


def test_tasks_of_the_aicpu(tmp_path, monkeypatch):
    class Net(nn.Cell):
        def construct(self, x):
            return ops.StandardNormal()(x)

    machine, found = profiled(tmp_path, monkeypatch, run=lambda machine: Net()((2, 3)))
    (task,) = [task for task in machine.tasks if task.kind.value == "KERNEL_AICPU"]
    (row,) = rows(found, "aicpu")
    assert (row["Node"], ns(row["Timestamp(us)"])) == (task.name, task.start_ns)
    assert ns(row["Task_time(us)"]) == task.end_ns - task.start_ns
    assert ns(row["Total_time(us)"]) == ns(row["Task_time(us)"]) + ns(row["Dispatch_time(us)"])
    assert ns(row["Dispatch_time(us)"]) == task.start_ns - task.launched_ns


def test_operators_that_run_at_once_are_recorded(tmp_path, monkeypatch):
    def at_once(machine: Machine) -> None:
        context.set_context(mode=context.PYNATIVE_MODE)
        ops.add(ms.Tensor([1.0]), ms.Tensor([2.0]))

    _, found = profiled(tmp_path, monkeypatch, run=at_once)
    assert [row["OP Type"] for row in rows(found, "op_summary")] == ["Add"]
    assert rows(found, "step_trace") == []


def test_two_profiles_of_a_script_are_the_same_bytes(tmp_path, monkeypatch):
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        profiled(tmp_path / name, monkeypatch)
        paths = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        found.append([(str(path.relative_to(tmp_path / name)), path.read_bytes()) for path in paths])
    assert found[0] == found[1]
    assert len(found[0]) == 8


def test_a_second_profile_gets_a_directory_of_its_own(tmp_path, monkeypatch):
    for _ in range(2):
        with watched("O0", monkeypatch) as machine:
            context.set_context(enable_profiling=True, profiling_options=options(tmp_path))
            trained(machine, 1)  # the end of the rank writes it
    assert [path.name[:11] for path in sorted(tmp_path.iterdir())] == ["PROF_000001", "PROF_000002"]


@pytest.mark.parametrize("between", ["same", "other", "off"])
def test_only_changed_settings_end_a_profile(tmp_path, monkeypatch, between):
    other = json.dumps({"result_path": str(tmp_path), "aicpu_trace": "on"})
    with watched("O0", monkeypatch) as machine:
        context.set_context(enable_profiling=True, profiling_options=options(tmp_path))
        trained(machine, 1)
        first = len(machine.tasks)
        if between == "off":
            context.set_context(enable_profiling=False)
        context.set_context(enable_profiling=True, profiling_options=other if between == "other" else options(tmp_path))
        trained(machine, 1)
        total = len(machine.tasks)
    counts = [len(rows(path.parent, "task_time")) for path in sorted(tmp_path.rglob("task_time*.csv"))]
    assert counts == {"same": [total], "other": [first], "off": [first, total - first]}[between]
    assert len(list(tmp_path.iterdir())) == (1 if between == "same" else 2)


def options(path):
    return json.dumps({"result_path": str(path), "task_trace": "on"})


def test_nothing_is_recorded_where_profiling_is_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with watched("O0", monkeypatch) as machine:
        context.set_context(enable_profiling=False, profiling_options=options(tmp_path))
        trained(machine, 1)
    assert list(tmp_path.iterdir()) == []


def test_the_clock_is_the_same_with_and_without_a_profile(tmp_path, monkeypatch):
    times = []
    for on in (False, True):
        with watched("O0", monkeypatch) as machine:
            context.set_context(enable_profiling=on, profiling_options=options(tmp_path))
            trained(machine)
            times.append([(task.name, task.start_ns, task.end_ns, task.task_id) for task in machine.tasks])
    assert times[0] == times[1]


def test_steps_of_a_data_sink_are_iterations_and_its_data_set_graph_is_none(tmp_path, monkeypatch):
    inputs = np.ones((6, 4), np.float32)

    def sink(machine: Machine) -> None:
        data = ds.NumpySlicesDataset((inputs, inputs[:, :1].copy()), ["a", "b"], shuffle=False).batch(2)
        net = nn.Dense(4, 1)
        Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(2, data, dataset_sink_mode=True)

    machine, found = profiled(tmp_path, monkeypatch, run=sink)
    table = rows(found, "step_trace")
    assert [row["Iteration ID"] for row in table] == [str(number) for number in range(1, 7)]
    assert len({row["Model ID"] for row in table}) == 1
    outside = [event["name"] for event in slices(found, "task_time") if event["args"]["Iteration"] is None]
    assert len(outside) == 1  # the task that opens the queue
    assert len(rows(found, "task_time")) == len(machine.tasks)


def test_nobody_listens_when_profiling_is_off_again(tmp_path, monkeypatch):
    with watched("O0", monkeypatch) as machine:
        context.set_context(enable_profiling=True, profiling_options=options(tmp_path))
        trained(machine, 1)
        session = Session.current()
        assert session.device.trace is not None
        context.set_context(enable_profiling=False)
        assert session.device.trace is None
        assert session.observers.taps == []


def test_a_full_disk_is_reported_and_leaves_whole_files(tmp_path, monkeypatch, capsys):
    faults = [{"kind": "disk_full", "after_bytes": 1000}]
    with watched("O0", monkeypatch, faults=faults) as machine:
        context.set_context(enable_profiling=True, profiling_options=options(tmp_path))
        trained(machine, 1)
        context.set_context(enable_profiling=False)
    assert "the disk is full" in capsys.readouterr().err
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.suffix in (".csv", ".json") for path in left)
