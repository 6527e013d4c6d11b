"""`dumpsim plan`: the numbers of a dump that is not written are those of the dump."""

import json
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import dumprun
import pytest
from typer.testing import CliRunner

from dumpsim.analysis.projection import OTHER, chosen_steps, project
from dumpsim.cli.app import app
from dumpsim.cli.plan import _lines as lines_of
from dumpsim.cli.plan import _report as report
from dumpsim.cli.plan import _run as run_script
from dumpsim.cli.plan import _time as time_of
from dumpsim.core.settings import VARIABLE, RunSettings

RANKS = """
    import numpy as np
    from mindspore import Tensor, communication, context, nn

    communication.init()
    context.set_context(mode=context.GRAPH_MODE, jit_level="O0")
    context.set_auto_parallel_context(parallel_mode="data_parallel")  # a mean's text depends on the ranks
    net = nn.WithLossCell(nn.Dense(4, 2), nn.MSELoss())
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
    for _ in range(2):
        step(Tensor(np.ones((8, 4), np.float32)), Tensor(np.ones((8, 2), np.float32)))
"""
O2 = 'jit_level="O0"', 'jit_level="O2"'


def planned(folder, *options, script=dumprun.NET, arguments=(), code=0, **changes):
    """The plan of a config, as JSON."""
    config = folder / "plan.json"
    config.write_text(json.dumps(dumprun.config(folder / "planned", **changes)))
    (folder / "script.py").write_text(textwrap.dedent(script))
    found = dumprun.cli(folder, "plan", "--json", "--config", "plan.json", *options, "script.py", *arguments, code=code)
    assert not (folder / "planned").exists()
    assert sorted(path.name for path in folder.iterdir() if "plan" in path.name) == ["plan.json"]
    return json.loads(found.out)


def size(root):
    """Files and bytes below a directory; the copy of the config states its path."""
    found = [path for path in root.rglob("*") if path.is_file() and path.name != "data_dump.json"]
    return len(found), sum(path.stat().st_size for path in found)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("device", "changes"),
    [
        ("ascend", {"saved_data": "full", "iteration": "0|2"}),
        slow("ascend", {"saved_data": "statistic", "iteration": "1-2", "statistic_category": ["max", "md5", "l2norm"]}),
        slow("gpu", {"saved_data": "full", "save_kernel_args": True, "iteration": "all"}),
        slow("cpu", {"support_device": [], "iteration": "2", "input_output": 2}),
        slow("ascend", {"dump_mode": 1, "kernels": ["MatMul"], "iteration": "all"}),
        slow("ascend", {"saved_data": "tensor", "sample_mode": 1, "sample_num": 7, "iteration": "all"}),
        slow("ascend", {"op_debug_mode": 3, "iteration": "all"}),
    ],
)
def test_a_plan_has_the_files_and_bytes_of_the_dump(tmp_path, device, changes):
    plan = planned(tmp_path, "--device", device, "--measure", "3", **changes)
    run = dumprun.dump(tmp_path, name="really", options=("--device", device), **changes)
    copy = run.rank / ".dump_metadata/data_dump.json"
    own = (1, len((tmp_path / "plan.json").read_bytes())) if copy.exists() else (0, 0)
    expected = size(run.root)
    assert (plan["exact"]["files"] - own[0], plan["exact"]["bytes"] - own[1]) == expected
    assert (plan["total"]["files"] - own[0], plan["total"]["bytes"] - own[1]) == expected
    assert plan["exact"]["captured"] + sum(plan["exact"]["skipped"].values()) == plan["exact"]["asked"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"file_format": "bin", "iteration": "all"},
        {"file_format": "npy", "iteration": "0|2"},
        {"file_format": "npy", "saved_data": "statistic", "iteration": "all"},
    ],
)
def test_a_plan_of_whole_graphs_has_the_bytes_of_the_dump(tmp_path, changes):
    script = dumprun.NET.replace(*O2)
    plan = planned(tmp_path, "--measure", "3", script=script, **changes)
    run = dumprun.dump(tmp_path, script, name="really_", **changes)  # a path as long
    assert (plan["exact"]["files"], plan["exact"]["bytes"]) == size(run.root)
    assert (plan["total"]["files"], plan["total"]["bytes"]) == size(run.root)


@pytest.mark.slow
def test_steps_that_did_not_run_are_projected(tmp_path):
    changes = {"saved_data": "tensor", "iteration": "0-1|8-10"}
    plan = planned(tmp_path, "--device", "gpu", "--steps", "12", arguments=["12"], **changes)
    assert plan["measured_steps"] == [0, 1]
    run = dumprun.dump(tmp_path, name="really", options=("--device", "gpu"), arguments=["12"], **changes)
    files, total = size(run.root)
    assert (plan["total"]["files"], plan["total"]["bytes"]) == (
        files + 1,
        total + len((tmp_path / "plan.json").read_bytes()),
    )
    assert plan["steps"] == 5
    assert any("like the last one" in note for note in plan["notes"])


@pytest.mark.slow
def test_smaller_configs_are_counted_in_the_same_run(tmp_path):
    plan = planned(tmp_path, "--measure", "1", saved_data="full")
    found = {one["change"]: one["bytes"] for one in plan["smaller"]}
    copy = len((tmp_path / "plan.json").read_bytes())
    assert list(found.values()) == sorted(found.values())
    statistic = dumprun.dump(tmp_path, name="statistic", saved_data="statistic")
    assert found['saved_data: "statistic"'] == size(statistic.root)[1] + copy + len("statistic") - len("full")
    outputs = dumprun.dump(tmp_path, name="outputs", saved_data="full", input_output=2)
    assert found["input_output: 2 (outputs only)"] == size(outputs.root)[1] + copy


def test_what_a_device_refuses_is_no_advice(tmp_path):
    plan = planned(tmp_path, "--device", "cpu", support_device=[])
    assert not any("saved_data" in one["change"] for one in plan["smaller"])


def test_types_add_up_and_skipped_tensors_have_a_reason(tmp_path):
    script = dumprun.NET.replace("+ self.shift", ".sum(axis=1)")
    plan = planned(tmp_path, script=script, saved_data="full", iteration="all")
    assert {"Conv2D", "MatMul", "ReLU", OTHER} <= set(plan["types"])
    assert sum(one["bytes"] for one in plan["types"].values()) == plan["rank"]["bytes"]
    assert sum(one["files"] for one in plan["types"].values()) == plan["rank"]["files"]
    assert "the operand lives on the host" in plan["skipped_in_measured_steps"]


@pytest.mark.slow
def test_ranks_that_did_not_run_are_like_those_that_did(tmp_path):
    changes = {"support_device": [0, 1, 2], "iteration": "all", "saved_data": "tensor"}
    plan = planned(tmp_path, "--run-ranks", "2", "--ranks", "4", script=RANKS, **changes)
    assert (plan["measured_ranks"], plan["dumping_ranks"]) == (2, 3)
    path = tmp_path / "really.json"
    path.write_text(json.dumps(dumprun.config(tmp_path / "really_", **changes)))
    dumprun.cli(tmp_path, "run", "--quiet", "--ranks", "4", "--config", "really.json", "script.py")
    files, total = size(tmp_path / "really_")
    copy = len((tmp_path / "plan.json").read_bytes())
    assert (plan["total"]["files"], plan["total"]["bytes"]) == (files + 3, total + 3 * copy)


def test_the_null_engine_plans_in_less_memory_than_the_tensors_have(tmp_path):
    script = """
        import resource
        import sys

        import mindspore as ms
        from mindspore import nn, ops

        ms.set_context(mode=ms.GRAPH_MODE, jit_level="O0")

        class Net(nn.Cell):
            def construct(self, x):
                return ops.matmul(x, x) + 1

        Net()(ms.ops.zeros((8192, 8192), ms.float32))
        with open("peak.txt", "w") as file:
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=file)
    """
    plan = planned(tmp_path, "--engine", "null", script=script, saved_data="tensor")
    size = 8192 * 8192 * 4
    assert plan["types"]["MatMul"]["bytes"] == 3 * (size + 128) + 2 * (1 + 128)  # and two truth values
    assert plan["total"]["bytes"] > 5 * size
    assert int((tmp_path / "peak.txt").read_text()) * 1024 < 2 * size


def test_a_dump_can_be_planned_from(tmp_path):
    dumprun.dump(tmp_path, name="small", saved_data="full", iteration="all")
    (tmp_path / "plan.json").write_text(json.dumps(dumprun.config("/big", saved_data="tensor", input_output=2)))
    found = dumprun.cli(tmp_path, "plan", "--json", "--config", "plan.json", "--dump", "small", "--steps", "1")
    plan = json.loads(found.out)
    run = dumprun.dump(tmp_path, name="really", saved_data="tensor", input_output=2)
    tensors = [path.stat().st_size for path in run.files() if path.suffix == ".npy"]
    own = plan["types"].pop(OTHER)
    assert (sum(one["files"] for one in plan["types"].values())) == len(tensors)
    assert (sum(one["bytes"] for one in plan["types"].values())) == sum(tensors)
    assert own["files"] > 0


@pytest.mark.slow
def test_sizes_follow_from_rows_where_there_are_no_tensors(tmp_path):
    dumprun.dump(tmp_path, name="small", saved_data="statistic")
    (tmp_path / "plan.json").write_text(json.dumps(dumprun.config("/big", saved_data="tensor")))
    found = dumprun.cli(tmp_path, "plan", "--json", "--config", "plan.json", "--dump", "small")
    types = json.loads(found.out)["types"]
    run = dumprun.dump(tmp_path, name="really", saved_data="tensor")
    sizes = {}
    for path in run.files():
        if path.suffix == ".npy" and "constants" not in path.parts:
            kind = path.name.split(".")[0]
            sizes[kind] = sizes.get(kind, 0) + path.stat().st_size
    assert {kind: one["bytes"] for kind, one in types.items() if kind != OTHER} == sizes


def test_the_report_for_people(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(dumprun.config("", saved_data="full", iteration="all")))
    (tmp_path / "script.py").write_text(textwrap.dedent(dumprun.NET))
    found = dumprun.cli(
        tmp_path, "plan", "--config", "plan.json", "--steps", "1000", "--ranks", "16", "--rate", "200", "--rate", "0.5",
        "script.py",
    )  # fmt: skip
    assert found.out.startswith("plan.json (seed/ascend_o0, 910B), counted in 2 steps on 1 rank of script.py")
    assert "in all: 2 ranks" in found.out  # device 0 of two servers
    assert "(of 16, by support_device)" in found.out
    assert "at 200 MB/s" in found.out
    assert "at 0.5 MB/s" in found.out
    lines = found.out.splitlines()
    types = lines[lines.index("by operator type, on each rank:") + 1 :]
    shares = [int(line.split("%")[0].split()[-1]) for line in types if re.search(r"B +\d+%$", line)]
    assert len(shares) > 3
    assert abs(sum(shares) - 100) <= len(shares) / 2  # each is rounded
    assert 'saved_data: "statistic"' in found.out
    assert "shape" not in found.out  # what the script prints goes to stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give either a SCRIPT"),
        (["--dump", "x", "script.py"], "give either a SCRIPT"),
        (["missing.py"], "the script 'missing.py' does not exist"),
        (["--dump", "x"], "--dump needs --config"),
        (["--rate", "0", "script.py"], "a rate is a number"),
        (["--rate", "inf", "script.py"], "a rate is a number"),
        (["--rate", "nan", "script.py"], "a rate is a number"),
        (["--rate", "5", "--rate", "-1", "script.py"], "a rate is a number"),
    ],
)
def test_wrong_words_are_refused(tmp_path, arguments, text):
    (tmp_path / "script.py").write_text("")
    found = dumprun.cli(tmp_path, "plan", *arguments, code=2)
    assert text in found.err


def test_a_script_without_a_dump_is_told(tmp_path):
    (tmp_path / "script.py").write_text("print('nothing')")
    assert "the script set no dump" in dumprun.cli(tmp_path, "plan", "script.py", code=1).err


def test_a_config_that_is_refused_ends_the_plan(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(dumprun.config("relative")))
    (tmp_path / "script.py").write_text(textwrap.dedent(dumprun.NET))
    found = dumprun.cli(tmp_path, "plan", "--config", "plan.json", "script.py", code=1)
    assert "Dump path only support absolute path" in found.err


def test_steps_are_chosen_among_those_of_the_run():
    assert chosen_steps({"every": True}, 3) == [(0, 2)]
    assert chosen_steps({"every": False, "ranges": [(3, 1), (4, 9), (10, 11), (20, 30)]}, 11) == [(4, 10)]


def test_a_step_that_wrote_nothing_is_not_projected():
    """Step 1 ran, and an overflow dump found nothing in it."""
    step = {"Add": {"files": 1, "bytes": 10}}
    account = {"iteration": {"every": True, "ranges": []}, "measured": [0, 1], "counts": {"": {"steps": [[0, step]]}}}
    assert project(account).bytes == 10
    assert project(account, steps=5).bytes == 40


def test_a_dump_without_files_of_its_own_has_no_row_for_them(tmp_path, monkeypatch):
    (tmp_path / "plan.json").write_text(json.dumps(dumprun.config(tmp_path / "planned")))
    (tmp_path / "script.py").write_text(textwrap.dedent(dumprun.NET.replace(*O2)))
    for variable, rows in (("0", 1), ("1", 0)):
        monkeypatch.setenv("ENABLE_MS_GE_DUMP", variable)
        found = dumprun.cli(tmp_path, "plan", "--config", "plan.json", "--measure", "1", "script.py")
        assert found.out.count("each rank: once") == rows


def amounts(**kinds):
    return {kind: {"files": files, "bytes": size} for kind, (files, size) in kinds.items()}


def account(rank, add, **changes):
    """What a rank has counted in one step: its own files once, two operator types, and a smaller config."""
    own = {"steps": [[None, amounts(**{OTHER: (1, 100)})], [0, amounts(Add=(2, add), Mul=(1, 50))]],
           "skipped": {"lives on the host": 2}}  # fmt: skip
    return {
        "rank": rank, "config": "c.json", "profile": "seed/ascend_o0", "chip": "910B", "devices": [0, 1],
        "iteration": {"every": True, "ranges": [], "text": ""}, "measured": [0], "trigger": "every", "estimate": "",
        "dump": {"notes": ["a word"], "files": 4},
        "counts": {"": own, "less": {"steps": [[0, amounts(Add=(1, 100))]]},
                   "more": {"steps": [[0, amounts(Add=(1, 9000))]]}},
        **changes,
    }  # fmt: skip


def test_ranks_and_steps_that_did_not_run_are_those_of_the_largest_rank():
    """Ranks 0, 1, 2 ran one step; devices 0 and 1 of each four dump; three steps on eight ranks are planned."""
    found = report([account(0, 200), account(1, 400), account(2, 9000)], "net.py", 3, 8, 4, [200.0, 0.5])
    small, large = (1 + 3 * 3, 100 + 3 * (200 + 50)), (1 + 3 * 3, 100 + 3 * (400 + 50))
    total = small[1] + 3 * large[1]  # ranks 0, 1, and 4, 5 like the largest
    assert found == {
        "config": "c.json", "profile": "seed/ascend_o0", "chip": "910B", "source": "net.py", "measured_steps": [0],
        "measured_ranks": 3, "iteration": "", "steps": 3, "ranks": 8, "dumping_ranks": 4,
        "once": {"files": 1, "bytes": 100}, "step": {"files": 3, "bytes": 450},
        "rank": {"files": large[0], "bytes": large[1]},
        "total": {"files": 4 * 10, "bytes": total},
        "seconds": {"200 MB/s": total / 200e6, "0.5 MB/s": total / 0.5e6},
        "types": amounts(Add=(6, 1200), Mul=(3, 150), **{OTHER: (1, 100)}),
        "skipped_in_measured_steps": {"lives on the host": 2},
        "smaller": [
            {"change": "dump_mode: 1, kernels: all types but Add", "files": 40 - 4 * 6, "bytes": 4 * 250},
            {"change": "less", "files": 4 * 3, "bytes": 4 * 300},
            {"change": "iteration: one step", "files": 4 * 4, "bytes": 350 + 3 * 550},
        ],
        "notes": ["a word", "the ranks that ran differ; further ranks are assumed to be like the largest of them",
                  "steps that did not run are assumed to be like the last one that ran"],
        "exact": {"notes": ["a word"], "files": 4},
    }  # fmt: skip
    assert list(found["types"]) == ["Add", "Mul", OTHER]
    assert lines_of(found) == [
        "c.json (seed/ascend_o0, 910B), counted in 1 step on 3 ranks of net.py; nothing was written",
        "  each rank: once                             1 file       100 B",
        "  each rank: each step                        3 files      450 B",
        "  each rank: 3 steps                         10 files     1.4 kB  (iteration all)",
        "  in all: 4 ranks                            40 files     5.2 kB  (of 8, by support_device)",
        "  at 200 MB/s                                  0.0 ms",
        "  at 0.5 MB/s                                 10.4 ms",
        "by operator type, on each rank:",
        "  Add                                         6 files     1.2 kB  83%",
        "  Mul                                         3 files      150 B  10%",
        f"  {OTHER:34}          1 file       100 B  7%",
        "not captured, in the steps that ran:",
        "  2: lives on the host",
        "smaller alternatives, the smallest first:",
        "  dump_mode: 1, kernels: all types but Add         16 files     1.0 kB  -80.8%",
        "  less                                       12 files     1.2 kB  -76.9%",
        "  iteration: one step                        16 files     2.0 kB  -61.5%",
        *(f"note: {note}" for note in found["notes"]),
    ]


def test_ranks_that_are_none_of_those_that_dump_are_counted_like_the_first():
    """Ranks 2 and 3 ran; devices 0 and 1 of each four dump, on two servers."""
    found = report([account(2, 200), account(3, 400)], "net.py", None, 8, 4, [])
    assert (found["dumping_ranks"], found["total"]) == (4, {"files": 4 * 4, "bytes": 4 * 350})


def test_one_step_is_advice_for_more_than_one():
    """Here the second step is smaller than the first."""
    one = account(0, 200, measured=[0, 1])
    one["counts"] = {"": {"steps": [[0, amounts(Add=(2, 200))], [1, amounts(Add=(1, 90))]], "skipped": {}}}
    advice = [{"change": "iteration: one step", "files": 1, "bytes": 90}]
    for steps in (1, 2, 3):
        assert report([one], "net.py", steps, None, 8, [])["smaller"] == advice * (steps > 1)


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_without_its_largest_type_each_rank_writes_what_is_left(ranks):
    """Rank 0 has nothing of the type that is the largest of rank 1; what did not run is like the larger one."""
    steps = (amounts(Mul=(2, 500)), amounts(Add=(3, 9000), Mul=(1, 40)))
    counts = [{"": {"steps": [[0, step]], "skipped": {}}} for step in steps]
    each = [account(rank, 0, devices=[], counts=count) for rank, count in enumerate(counts)]
    assert report(each, "net.py", None, ranks, 8, [])["smaller"] == [
        {"change": "dump_mode: 1, kernels: all types but Add", "files": 3 + (ranks - 2) * 2,
         "bytes": 540 + (ranks - 2) * 500}
    ]  # fmt: skip


def test_a_plan_of_all_that_ran_says_no_more_than_that():
    step = {"iteration": {"every": False, "ranges": [[0, 0]], "text": "0"}, "devices": [], "dump": {"notes": []}}
    one = account(0, 200, **step)
    one["counts"][""]["steps"][1:] = [[0, amounts(Add=(2, 200))]]
    found = report([one], "net.py", None, None, 8, [])
    assert (found["notes"], [each["change"] for each in found["smaller"]]) == ([], ["less"])
    assert (found["steps"], found["ranks"], found["dumping_ranks"]) == (1, 1, 1)
    assert "each rank: 1 step " in lines_of(found)[3]
    assert lines_of(found)[3].endswith("(iteration 0)")
    assert lines_of(found)[4] == "  in all: 1 rank                              3 files      300 B"


def test_what_a_plan_cannot_know_is_noted():
    every = {"every": True, "ranges": [], "text": "", "script": True}
    one = account(0, 200, iteration=every, estimate="shapes are guessed", trigger="overflow")
    most = "the script starts and stops the dump itself: these numbers are an upper bound"
    notes = ["a word", "shapes are guessed", most]
    said = "this config dumps operators that {}; a plan cannot know how many will"
    assert report([one], "n", None, None, 8, [])["notes"] == [*notes, said.format("overflow")]
    one["trigger"] = "exception"
    assert report([one], "n", None, None, 8, [])["notes"] == [*notes, said.format("fail")]


@pytest.mark.parametrize(("count", "shown"), [(9, 9), (10, 8)])
def test_the_eight_largest_types_are_shown_and_a_last_one_is_not_hidden_alone(count, shown):
    one = account(0, 200)
    kinds = {f"T{n}": (1, 100 - n) for n in range(count)}
    one["counts"][""]["steps"] = [[0, amounts(**kinds)]]
    lines = lines_of(report([one], "n", None, None, 8, []))
    first = lines.index("by operator type, on each rank:") + 1
    rows = [line.split()[0] for line in lines[first : first + shown]]
    assert rows == [f"T{n}" for n in range(shown)]
    total = sum(100 - n for n in range(count))
    rest = 92 + 91
    row = f"  2 other types                               2 files      {rest} B  {rest / total:.0%}"
    assert lines[first + shown] == (row if count > shown else "not captured, in the steps that ran:")


def test_a_plan_of_nothing_divides_by_nothing():
    one = account(0, 0)
    one["counts"] = {"": {"steps": [[0, amounts(Add=(0, 0))]], "skipped": {}}}
    lines = lines_of(report([one], "n", None, None, 8, [1.0]))
    assert lines[-1] == "note: a word"
    assert "  Add                                         0 files        0 B  0%" in lines


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.999, "999.0 ms"), (1, "1.0 s"), (119.9, "119.9 s"), (120, "2.0 min"), (7199, "120.0 min"), (7200, "2.0 h")],
)
def test_a_duration_has_the_unit_of_its_size(seconds, text):
    assert time_of(seconds) == text


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ({"file_format": "bin"}, {"file_format": "bin", "input_output": 2}),
        ({"file_format": "bin"}, {"file_format": "npy"}),
        slow({"file_format": "bin"}, {"file_format": "bin", "input_output": 1}),
        slow({"file_format": "bin"}, {"file_format": "bin", "dump_mode": 1, "kernels": ["MatMul"]}),
        slow({"file_format": "npy"}, {"file_format": "npy", "input_output": 2}),
        slow({"file_format": "npy", "saved_data": "statistic"}, {"file_format": "npy"}),
    ],
)
def test_a_dump_of_whole_graphs_can_be_planned_from(tmp_path, source, changes):
    script = dumprun.NET.replace(*O2)
    dumprun.dump(tmp_path, script, name="small", **source)
    run = dumprun.dump(tmp_path, script, name="really", **changes)
    (tmp_path / "plan.json").write_text(json.dumps(dumprun.config("/big", **changes)))
    found = dumprun.cli(tmp_path, "plan", "--json", "--config", "plan.json", "--dump", "small", "--jit-level", "O2")
    types = json.loads(found.out)["types"]
    sizes = {}
    for path in run.root.rglob("*"):
        if path.is_file() and path.name not in ("acl_dump_0.json", "mapping.csv"):
            amount = sizes.setdefault(path.name.split(".")[0], [0, 0])
            amount[0] += 1
            amount[1] += path.stat().st_size
    assert {kind: [one["files"], one["bytes"]] for kind, one in types.items() if kind != OTHER} == sizes
    assert types[OTHER]["files"] == 1


@pytest.mark.parametrize(
    ("level", "changes", "text"),
    [
        (
            "O0",
            {},
            "the dump is of whole graphs, which --jit-level O0 does not write: give --jit-level O2",
        ),
        ("O2", {"file_format": "bin"}, "bin files have device layouts"),
    ],
)
def test_a_dump_that_does_not_fit_the_config_is_refused(tmp_path, level, changes, text):
    dumprun.dump(tmp_path, dumprun.NET.replace(*O2), name="small", file_format="npy")
    (tmp_path / "plan.json").write_text(json.dumps(dumprun.config("/big", **changes)))
    given = ("--config", "plan.json", "--dump", "small", "--jit-level", level)
    assert text in dumprun.cli(tmp_path, "plan", *given, code=2).err


@pytest.fixture
def planned_from(tmp_path, monkeypatch):
    """Plan from a dump whose account is known; returns the output and what the account was asked for."""
    config = tmp_path / "c.json"
    config.write_text("{}")
    asked = []

    def account_of(dump, config, **options):
        asked.append({"dump": dump, "config": config, **options})
        return [account(0, 200), account(1, 400)]

    def run(*words, code=0):
        found = CliRunner().invoke(app, ["plan", "--dump", "d", "--config", str(config), *words])
        assert found.exit_code == code, found.output
        return found.stdout, asked[-1]

    monkeypatch.delenv("MS_DIAGNOSTIC_DATA_PATH", raising=False)
    monkeypatch.setattr("dumpsim.analysis.plandump.account_of", account_of)
    return run


def test_a_plan_from_a_dump_has_defaults_for_everything(planned_from, tmp_path):
    text, asked = planned_from("--json")
    named = [account(0, 200, config=str(tmp_path / "c.json")), account(1, 400)]
    assert json.loads(text) == report(named, "d", None, None, 8, [100.0, 1000.0])
    assert asked.pop("environment")["MS_DIAGNOSTIC_DATA_PATH"] == "/plan"
    assert asked == {
        "dump": Path("d"), "config": tmp_path / "c.json", "device": "ascend", "jit_level": "O0", "release": "seed",
        "fields": {},
    }  # fmt: skip
    text, _ = planned_from()
    assert text.splitlines() == lines_of(report(named, "d", None, None, 8, [100.0, 1000.0]))


def test_each_option_of_a_plan_changes_it(planned_from, tmp_path, monkeypatch):
    named = [account(0, 200, config=str(tmp_path / "c.json")), account(1, 400)]
    for words, arguments in (
        (["--steps", "7"], (7, None, 8, [100.0, 1000.0])), (["--ranks", "9"], (None, 9, 8, [100.0, 1000.0])),
        (["--ranks", "9", "--devices", "3"], (None, 9, 3, [100.0, 1000.0])),
        (["--rate", "5", "--rate", "0.5"], (None, None, 8, [5.0, 0.5])),
    ):  # fmt: skip
        text, _ = planned_from("--json", *words)
        assert json.loads(text) == report(named, "d", *arguments)
    for words, name, value in (
        (["--device", "GPU"], "device", "gpu"), (["--jit-level", "O2"], "jit_level", "O2"),
        (["--mindspore", "2.7"], "release", "2.7"), (["--set", "op_name=short"], "fields", {"op_name": "short"}),
    ):  # fmt: skip
        assert planned_from(*words)[1][name] == value
    monkeypatch.setenv("MS_DIAGNOSTIC_DATA_PATH", "/mine")
    assert planned_from()[1]["environment"]["MS_DIAGNOSTIC_DATA_PATH"] == "/mine"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        *(([name, str(n)], 2 * (n < 1)) for name in ("--steps", "--ranks") for n in range(2)),
        *((["--devices", str(n)], 2 * (not 1 <= n <= 16)) for n in (0, 1, 16, 17)),
    ],
)  # fmt: skip
def test_numbers_of_a_plan_have_bounds(planned_from, words, code):
    if code:
        found = CliRunner().invoke(app, ["plan", "--dump", "d", "--config", "c.json", *words])
        assert (found.exit_code, found.stdout, words[0] in found.stderr) == (2, "", True)
    else:
        planned_from(*words)


@pytest.mark.parametrize("rate", ["0", "-1", "-0.0", "inf", "nan"])
def test_a_rate_is_a_number_above_nothing(planned_from, rate):
    for words in (["--rate", rate], ["--rate", "5", "--rate", rate]):
        found = CliRunner().invoke(app, ["plan", "--dump", "d", "--config", "c.json", *words])
        assert str(found.exception) == "--rate: a rate is a number of MB/s above 0 [DS-RUN-012]"
    assert "at 1e-06 MB/s" in planned_from("--rate", "1e-6")[0]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/tmp/x/c.json", "{here}/c.json"), ("/tmp/x/other.json", "/tmp/x/other.json"),
        ("/tmp/ge_dump_data_json/data_1.json", "dump_config of script.py"),
    ],
)  # fmt: skip
def test_a_plan_names_the_config_as_its_user_does(tmp_path, monkeypatch, path, shown):
    """TorchAir writes the dump_config of a script to a file of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("")
    config = tmp_path / "c.json"
    config.write_text("{}")
    asked = []
    accounts = [account(0, 200, config=path)]
    monkeypatch.setattr("dumpsim.cli.plan._run", lambda *args: asked.append(args) or (accounts, 3))
    words = ["--json", "--measure", "5", "--run-ranks", "2", "--seed", "4", "--engine", "null", "--chip", "910A"]
    found = CliRunner().invoke(app, ["plan", "--config", str(config), *words, "script.py", "--lr", "1"])
    assert found.exit_code == 3
    assert json.loads(found.stdout)["config"] == shown.format(here=tmp_path)
    assert json.loads(found.stdout)["source"] == "script.py"
    given = {"device": None, "chip": "910A", "mindspore": None, "overrides": None, "engine": "null", "seed": 4}
    assert asked == [(["script.py", "--lr", "1"], config, given, 5, 2)]
    accounts.clear()
    found = CliRunner().invoke(app, ["plan", "-m", "pack", "word"])
    assert (found.exit_code, found.stdout, found.stderr) == (3, "", "")
    assert asked[-1] == (["-m", "pack", "word"], None, dict.fromkeys(given), 2, None)


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3, 3), (-1, 129), (-9, 137)])
@pytest.mark.parametrize("ranks", [None, 2])
def test_a_script_is_run_quietly_and_leaves_the_accounts_of_its_ranks(tmp_path, monkeypatch, ranks, status, code):
    config = tmp_path / "c.json"
    config.write_text("{}")

    def run(words, *, env, check, **_):
        assert not check  # a script may fail
        assert words[1:] == ["-m", "dumpsim.emulate.localjob", "2"] * (ranks is not None) + ["net.py", "x"]
        settings = RunSettings.from_text(env[VARIABLE])
        assert (settings.quiet, settings.manifest, settings.plan_steps, settings.seed) == (True, None, 5, 7)
        assert env["MINDSPORE_DUMP_CONFIG"] == str(config)
        for rank in (10, 9, 2):
            (Path(settings.plan) / f"{rank}.json").write_text(json.dumps({"rank": rank}))
        return SimpleNamespace(returncode=status)

    monkeypatch.setattr("dumpsim.cli.plan.subprocess", SimpleNamespace(run=run))
    accounts = [{"rank": rank} for rank in (2, 9, 10)]
    assert run_script(["net.py", "x"], config, {"seed": 7, "chip": None}, 5, ranks) == (accounts, code)


def test_a_script_that_is_killed_has_the_exit_code_of_a_shell(tmp_path):
    (tmp_path / "script.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    dumprun.cli(tmp_path, "plan", "script.py", code=128 + 9)
