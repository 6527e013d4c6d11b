"""``mindspore.profiler``: what a script starts, steps and stops itself, over the same records as set_context's."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from profilerun import Machine, ns, rows, slices, trained, watched

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import context, profiler
from dumpsim.frontends.mindspore.profiler import (
    AicoreMetrics,
    ExportType,
    HostSystem,
    Profiler,
    ProfilerActivity,
    ProfilerLevel,
    profile,
    schedule,
    tensorboard_trace_handler,
)
from dumpsim.world.context import current

RECORDED = Path(__file__).parents[2] / "fixtures/frontends/mindspore/schedules.json"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with watched("O0", monkeypatch) as found:
        yield found


def results(path, count=1):
    found = sorted(Path(path).glob("*_ascend_ms"))
    assert len(found) == count
    return found[0] if count == 1 else found


def network_steps(machine: Machine, prof, steps: int) -> None:
    """Train one step of a net, then step the profiler, again and again."""
    for _ in range(steps):
        trained(machine, 1)
        prof.step()


def config(**given):
    return profiler._ExperimentalConfig(**given)


def test_schedules_record_the_steps_that_real_ones_record():
    cases = json.loads(RECORDED.read_text())
    assert len(cases) == 35
    for case in cases:
        plan = schedule(**case["given"])
        assert repr(plan) == case["text"]
        assert [plan(step).name for step in range(14)] == case["actions"]
    with pytest.raises(ValueError, match="Invalid parameter step, which must be not less than 0"):
        plan(-1)


def test_the_members_are_those_of_mindspore():
    assert [level.value for level in ProfilerLevel] == ["LevelNone", "Level0", "Level1", "Level2"]
    assert [each.value for each in ProfilerActivity] == ["NPU", "GPU", "CPU"]
    assert [each.value for each in HostSystem] == ["cpu", "mem", "disk", "network", "osrt"]
    assert [each.value for each in AicoreMetrics] == [
        "PipeUtilization", "ArithmeticUtilization", "Memory", "MemoryL0", "MemoryUB", "ResourceConflictRatio",
        "L2Cache", "MemoryAccess", "None",
    ]  # fmt: skip
    assert ms.Profiler is Profiler


def test_analyse_writes_what_ran_since_the_start(machine):
    trained(machine, 1)
    before = len(machine.tasks)
    prof = Profiler(output_path="out", profiler_level=ProfilerLevel.Level1, aic_metrics=AicoreMetrics.Memory)
    trained(machine, 2)
    after = len(machine.tasks)
    prof.stop()
    trained(machine, 1)
    prof.add_metadata("who", "me")
    prof.add_metadata_json("what", '{"a": [1]}')
    prof.analyse()
    found = results("out")
    kernels = [task for task in machine.tasks[before:after] if task.kind.value.startswith("KERNEL")]
    table = rows(found, "kernel_details")
    assert [(row["Name"], ns(row["Start Time(us)"])) for row in table] == [(t.name, t.start_ns) for t in kernels]
    assert table[0]["main_mem_write_bw(GB/s)"] != "N/A"
    assert '"2,1,6,6;2,1,3,3"' in table[0]["Input Shapes"]
    (row,) = rows(found, "step_trace_time")
    assert ns(row["Computing"]) == sum(task.end_ns - task.start_ns for task in kernels)  # one stream: no overlap
    assert ns(row["Computing"]) + ns(row["Free"]) == max(t.end_ns for t in kernels) - min(t.start_ns for t in kernels)
    drawn = [event for event in slices(found, "trace_view") if event["pid"] == 1]
    assert [event["name"] for event in drawn] == [task.name for task in machine.tasks[before:after]]
    assert json.loads((found / "profiler_metadata.json").read_text()) == {"who": "me", "what": {"a": [1]}}
    info = json.loads((found / "profiler_info_0.json").read_text())
    assert (info["config"]["profiler_level"], info["tasks"]) == ("Level1", after - before)
    prof.analyse()  # nothing new: a warning, as in MindSpore
    assert results("out") == found


def test_level_0_shows_names_and_times_only(machine):
    prof = Profiler(output_path="out")
    trained(machine, 1)
    prof.analyse()
    assert list(rows(results("out"), "kernel_details")[0]) == [
        "Model ID", "Task ID", "Stream ID", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)",
        "Wait Time(us)",
    ]  # fmt: skip


def test_start_and_stop_by_hand(machine):
    prof = Profiler(start_profile=False, output_path="out")
    bounds = []
    for on in (False, True, False, True):
        if on:
            prof.start()
        first = len(machine.tasks)
        trained(machine, 1)
        if on:
            prof.stop()
            bounds.append((first, len(machine.tasks)))
    prof.analyse()
    wanted = [task.start_ns for first, last in bounds for task in machine.tasks[first:last]]
    found = results("out")
    assert [ns(event["ts"]) for event in slices(found, "trace_view") if event["pid"] == 1] == wanted
    numbers = {event["args"]["Iteration"] for event in slices(found, "trace_view") if event["pid"] == 1}
    assert numbers == {1}  # each net is a graph of its own


def test_a_schedule_hands_over_each_round(machine):
    seen = []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)

    def ready(trace):
        seen.append(len(machine.tasks))
        trace.analyse()

    bounds = []
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(9):
            bounds.append(len(machine.tasks))
            trained(machine, 1)
            prof.step()
    bounds.append(len(machine.tasks))
    assert seen == [bounds[4], bounds[8]]
    for found, (first, last) in zip(results("data", 2), ((2, 4), (6, 8)), strict=True):
        table = rows(found, "kernel_details")
        kernels = [t for t in machine.tasks[bounds[first] : bounds[last]] if t.kind.value.startswith("KERNEL")]
        assert [ns(row["Start Time(us)"]) for row in table] == [task.start_ns for task in kernels]
        assert {row["Step ID"] for row in table} == {str(step) for step in range(first, last)}
        steps = rows(found, "step_trace_time")
        assert [row["Step"] for row in steps] == [str(step) for step in range(first, last)]
        for row, step in zip(steps, range(first, last), strict=True):
            own = [t for t in machine.tasks[bounds[step] : bounds[step + 1]] if t.kind.value.startswith("KERNEL")]
            assert ns(row["Computing"]) == sum(task.end_ns - task.start_ns for task in own)
        marks = [event for event in slices(found, "trace_view") if event["pid"] == 0]
        assert [event["name"] for event in marks] == [f"ProfilerStep#{step}" for step in range(first, last)]
        for before, after in pairwise(marks):
            assert ns(before["ts"]) + ns(before["dur"]) <= ns(after["ts"])


def test_the_handler_of_tensorboard_chooses_directory_and_worker(machine):
    handler = tensorboard_trace_handler("board", worker_name="w{0}")
    with profile(on_trace_ready=handler, experimental_config=config(profiler_level=ProfilerLevel.Level0)):
        trained(machine, 1)
    assert results("board").name == "w{0}_20231114221320000_ascend_ms"
    with profile(on_trace_ready=tensorboard_trace_handler("none", analyse_flag=False)):
        trained(machine, 1)
    assert not Path("none").exists()


def test_without_the_device_there_are_steps_only(machine):
    plan = schedule(wait=0, active=2, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=tensorboard_trace_handler("o")) as p:
        network_steps(machine, p, 2)
    found = results("o")
    assert {path.name for path in found.rglob("*.*")} == {"trace_view.json", "profiler_info_0.json"}
    assert {event["pid"] for event in slices(found, "trace_view")} == {0}


def test_two_runs_are_the_same_bytes(machine, tmp_path, monkeypatch):
    found = []
    for name in ("a", "b"):
        with watched("O0", monkeypatch) as own:
            prof = Profiler(output_path=name, profiler_level=ProfilerLevel.Level2, aic_metrics=AicoreMetrics.MemoryL0)
            trained(own, 2)
            prof.analyse(pretty=True)
        root = results(name)
        paths = sorted(path for path in root.rglob("*") if path.is_file())
        found.append([(str(path.relative_to(name)), path.read_bytes()) for path in paths])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "given",
    [
        {"with_stack": True}, {"profile_memory": True}, {"data_process": True}, {"parallel_strategy": True},
        {"l2_cache": True}, {"hbm_ddr": True}, {"pcie": True}, {"sys_io": True}, {"sys_interconnection": True},
        {"record_shapes": True}, {"mstx": True}, {"host_sys": [HostSystem.CPU]}, {"export_type": [ExportType.Db]},
        {"export_type": "db"},
        {"profiler_level": ProfilerLevel.Level1, "aic_metrics": AicoreMetrics.L2Cache},
    ],
)  # fmt: skip
def test_what_is_not_emulated_is_refused_by_name(machine, given):
    name = list(given)[-1]
    wanted = "L2Cache" if name == "aic_metrics" else "databases" if name == "export_type" else name
    with pytest.raises(UnsupportedError, match=wanted):
        Profiler(**given)
    assert not list(Path().iterdir())


@pytest.mark.parametrize("name", ["mstx", "DynamicProfilerMonitor", "EnvProfiler"])
def test_what_is_missing_says_so(name):
    with pytest.raises((UnsupportedError, AttributeError), match=name):
        getattr(profiler, name)()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"profiler_level": 1},
            "type of profiler_level should be <enum 'ProfilerLevel'>, but got <class 'int'>, res",
        ),
        (
            {"activities": 3},
            "activities value is Invalid, reset to [<ProfilerActivity.CPU: 'CPU'>, <Profiler",
        ),
        ({"with_stack": 1}, "type of with_stack should be <class 'bool'>, but got <class 'int'>, reset to False."),
        ({"start_profile": 1}, "type of start_profile should be <class 'bool'>, but got <class 'int'>, reset to True."),
        ({"schedule": 3}, "schedule value is Invalid, reset to Schedule(wait=0, active=1, warmup=0, repeat=0, skip_fi"),
        ({"on_trace_ready": 3}, "on_trace_ready value is Invalid, reset to None."),
        ({"export_type": 3}, "Invalid parameter export_type, reset it to text."),
        ({"experimental_config": 3}, "experimental_config value must be the 'mindspore.profiler._ExperimentalConfig'"),
    ],
)
def test_wrong_types_are_reset_with_the_texts_of_mindspore(machine, capsys, given, text):
    Profiler(**given).analyse()
    assert text in capsys.readouterr().err


def test_levels_and_metrics_that_do_not_fit_are_reset(machine):
    with pytest.warns(UserWarning, match="'aic_metrics' cannot be set to other value except"):
        Profiler(aic_metrics=AicoreMetrics.Memory, start_profile=False)
    with pytest.warns(UserWarning, match=r"reset to 'AicoreMetrics.PipeUtilization'"):
        Profiler(profiler_level=ProfilerLevel.Level1, start_profile=False)
    with pytest.warns(UserWarning, match=r"reset to 'ProfilerLevel.Level0'"):
        Profiler(profiler_level=ProfilerLevel.LevelNone, start_profile=False)
    with pytest.warns(UserWarning, match="'op_time' is deprecated"):
        Profiler(op_time=True, start_profile=False)


def test_calls_at_the_wrong_time_say_what_mindspore_says(machine, capsys):
    prof = Profiler(output_path="out")
    prof.start()
    assert "The profiler has already started" in capsys.readouterr().err
    prof.step()
    assert "With no schedule in the Profiler, step takes no effect!" in capsys.readouterr().err
    prof.stop()
    prof.stop()
    assert "has not started. Do not turn off again in the closed state." in capsys.readouterr().err


def said(capsys):
    """The texts of the log since the last call."""
    lines = [line.split("] ", 2)[2] for line in capsys.readouterr().err.splitlines() if "] ME(" in line]
    return [line for line in lines if "be deprecated" not in line and "using warmup" not in line]


# what is said, and how many traces are handed over, by the number of steps before the stop [wheel 2.10, profiler]
EARLY = {
    0: ([], 0),
    1: (
        ["Incorrect schedule: Stop profiler while current state is WARMUP which will result in empty parsed data."],
        0,
    ),
    2: (
        ["Incorrect schedule: Stop profiler while current state is RECORD which may result in incomplete parsed data."],
        1,
    ),
    3: (
        ["Stop profiler while current state is RECORD_AND_SAVE, perhaps the scheduling cycle has not yet completed."],
        1,
    ),
    4: ([], 1),
    6: (
        ["Incorrect schedule: Stop profiler while current state is RECORD which may result in incomplete parsed data."],
        2,
    ),
}


@pytest.mark.parametrize("steps", EARLY)
def test_a_profile_that_stops_within_a_round_says_so(machine, capsys, steps):
    traces = []
    prof = profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=traces.append)
    network_steps(machine, prof, steps)
    prof.stop()
    assert (said(capsys), len(traces)) == EARLY[steps]
    prof.stop()
    assert said(capsys) == ["The profile has not started. Do not turn off again in the closed state."]


def test_a_profile_that_has_not_started_takes_no_steps(machine, capsys):
    prof = profile(start_profile=False)
    prof.step()
    assert said(capsys) == ["profile is stopped, step takes no effect!"]
    with prof:
        prof.start()
        assert said(capsys) == ["The profile has already started. Do not turn on again in the open state."]
        prof.step()
    assert prof.step_num == 1
    prof.step()
    assert said(capsys) == ["profile is stopped, step takes no effect!"]


def test_a_profiler_with_a_schedule_waits_for_its_steps(machine, capsys):
    seen = []
    prof = Profiler(
        schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=lambda _: seen.append(prof.step_num),
        start_profile=False,
    )  # fmt: skip
    with prof:
        prof.stop()
        assert said(capsys) == ["The profiler has schedule. Please use step() to collect data."]
        network_steps(machine, prof, 5)
        trained(machine, 1)
    assert seen == [2, 4, 5]  # after each round, and at the end
    prof.analyse()
    assert said(capsys) == ["The profiler has schedule. Please use 'on_trace_ready' to analyse data."]
    assert seen == [2, 4, 5]
    assert list(Path().iterdir()) == []


def test_metadata_are_texts_and_values_of_json(machine, capsys):
    prof = Profiler(output_path="out")
    for key, value in (("a", "1"), ("a", "2"), (1, "x"), ("b", 2)):
        prof.add_metadata(key, value)
    skipped = "The key and value of metadata must be string. Skip this metadata."
    again = "a is already saved as metadata, override it."
    assert said(capsys) == [again, skipped, skipped]
    for key, value in (("c", "[1]"), ("a", '{"x": 3}'), ("d", "{"), (3, "1"), ("e", 5)):
        prof.add_metadata_json(key, value)
    wrong = "The metadata value must be json format string. Skip this metadata"
    assert said(capsys) == [again, wrong, skipped, skipped]
    trained(machine, 1)
    prof.analyse()
    assert json.loads((results("out") / "profiler_metadata.json").read_text()) == {"a": {"x": 3}, "c": [1]}


def test_wrong_arguments_of_the_handler_are_reset(machine, capsys):
    handler = tensorboard_trace_handler(3, worker_name=4, analyse_flag="no", async_mode=1)
    assert said(capsys) == [
        "Invalid parameter dir_name, reset it to default.", "Invalid parameter worker_name, reset it to default.",
        "analyse_flag is not bool, set by default.", "async_mode is not bool, set by default.",
    ]  # fmt: skip
    with profile(on_trace_ready=handler):
        trained(machine, 1)
    assert results("data").name.startswith("dumpsim_0_")
    tensorboard_trace_handler("", "")
    assert len(said(capsys)) == 2
    tensorboard_trace_handler("board", "w", True, False)
    assert said(capsys) == []


def test_the_end_of_a_rank_stops_its_profiler(machine, capsys):
    prof = Profiler(output_path="out", schedule=None)
    trained(machine, 1)
    current().close()
    assert said(capsys) == ["Profiler is stopped at the end of the program."]
    prof.stop()
    assert said(capsys) == ["The profiler has not started. Do not turn off again in the closed state."]


def test_one_profile_at_a_time(machine, tmp_path):
    context.set_context(enable_profiling=True, profiling_options=json.dumps({"result_path": str(tmp_path)}))
    with pytest.raises(RuntimeError, match="a profile is being recorded already"):
        Profiler()
    context.set_context(enable_profiling=False)
    with profile(on_trace_ready=tensorboard_trace_handler("o")):
        trained(machine, 1)
    assert results("o")


def test_parameters_of_an_experimental_config_are_those_of_mindspore():
    """[2.10 observed]"""
    assert vars(config()) == {
        "profiler_level": ProfilerLevel.Level0, "aic_metrics": AicoreMetrics.AiCoreNone, "l2_cache": False,
        "mstx": False, "data_simplification": True, "export_type": None, "mstx_domain_include": None,
        "mstx_domain_exclude": None, "sys_io": False, "sys_interconnection": False, "host_sys": None,
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:when 'profiler_level'")
@pytest.mark.parametrize("level", [ProfilerLevel.Level1, ProfilerLevel.Level2])
def test_levels_with_metrics_measure_the_pipes_by_default(machine, level):
    headers = []
    for name, given in (("a", {}), ("b", {"aic_metrics": AicoreMetrics.PipeUtilization})):
        prof = Profiler(output_path=name, profiler_level=level, **given)
        trained(machine, 1)
        prof.analyse()
        headers.append(list(rows(results(name), "kernel_details")[0]))
    assert headers[0] == headers[1]
