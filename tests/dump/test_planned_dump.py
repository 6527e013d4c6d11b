"""A dump that is only counted: its account, for each kind of tree."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.clock import VirtualClock
from dumpsim.core.dtype import dtype
from dumpsim.core.events import RunEvent
from dumpsim.core.settings import RunSettings
from dumpsim.core.steps import Steps
from dumpsim.dump.info import SessionInfo
from dumpsim.dump.planned import PlannedDump
from dumpsim.dump.service import DumpService
from dumpsim.modes.profile import find
from dumpsim.modes.request import DumpRequest, RequestedStatistics
from tests.dump.machine import graph, ref, task

X = np.arange(6, dtype=np.float32).reshape(2, 3)
NPY = 128 + X.nbytes  # the header of a small tensor has 128 bytes [spec mindspore 3.5]


def operator(profile):
    """A kernel with two inputs; whole graphs are models."""
    whole = profile.endswith(("o2", "ge"))
    return task(operands=[ref(X, 0), ref(X, 1)], outputs=[ref(X, 0)], model_name="m" * whole, model_id=int(whole))


def drive(service, event, runs, *, compiled, parameters=()):
    """Run one operator as often as the plan wants; return the number of runs and the code of the end."""
    if compiled:
        constant = TensorType(dtype=dtype("float32"), shape=X.shape, constant=True)
        compilation = graph(constants=((X, constant),))
        compilation = replace(compilation, constants=(ref(X, origin="constant", name="data-0"),))
        if service.wants(compilation):
            service.graph_compiled(compilation)
    for number in range(runs):
        run = RunEvent(root_graph_id=0, graph_id=0, run_count=number)
        try:
            service.run_begin(run)
        except SystemExit as ending:
            return number, ending.code
        if service.wants(event):
            service.before_task(event)
            service.after_task(event)
        service.run_end(replace(run, run_count=number + 1, parameters={0: parameters}))
    return runs, None


def counted(tmp_path, profile="seed/ascend_o0", *, runs=5, smaller=(), settings=(), compiled=False, parameters=(),
            **changes):  # fmt: skip
    """The account of runs of one operator; as many as the plan wants."""
    plan = tmp_path / "plan"
    plan.mkdir(exist_ok=True)
    given = {"plan": str(plan), "plan_steps": 2, "manifest": None, **dict(settings)}
    info = SessionInfo(target="Ascend", chip="910B", clock=VirtualClock(), member=3, settings=RunSettings(**given))
    request = DumpRequest(path=str(tmp_path / "dump"), net_name="Net", file="my.json", **changes)
    service = PlannedDump(
        info, find(*profile.split("/")), request, devices=(0, 3),
        smaller=[(name, replace(request, **fields)) for name, fields in smaller],
    )  # fmt: skip
    event = operator(profile)
    done, code = drive(service, event, runs, compiled=compiled, parameters=parameters)
    assert service.plan([event]) is None
    assert code == 0
    summary = service.finish()
    assert service.finish() is summary
    assert not (tmp_path / "dump").exists()
    (path,) = plan.iterdir()
    assert path.name.startswith("rank_3-")
    return done, json.loads(path.read_text())


def test_the_whole_account(tmp_path):
    steps = Steps.parse("1|7-9")
    done, found = counted(tmp_path, steps=steps, smaller=[("outputs", {"inputs": False})])
    assert done == 2
    assert found == {
        "rank": 3, "profile": "seed/ascend_o0", "chip": "910B", "config": "my.json",
        "path": f"{tmp_path}/dump/rank_0", "trigger": "every",
        "iteration": {"text": "1|7-9", "every": False, "ranges": [[1, 1], [7, 9]], "script": False},
        "measured": [0, 1], "estimate": "", "devices": [0, 3],
        "dump": {
            "asked": 3, "captured": 3, "skipped": {}, "tensors": 3, "rows": 0, "files": 5,
            "bytes": found["dump"]["bytes"], "notes": [],
        },
        "counts": {
            "": {
                "skipped": {},
                "steps": [
                    [None, {"graphs, orders, config": {"files": 2, "bytes": found["dump"]["bytes"] - 3 * NPY}}],
                    [0, {"Add": {"files": 3, "bytes": 3 * NPY}}], [1, {"Add": {"files": 3, "bytes": 3 * NPY}}],
                ],
            },
            "outputs": {
                "skipped": {},
                "steps": [
                    [None, {"graphs, orders, config": {"files": 2, "bytes": found["dump"]["bytes"] - 3 * NPY}}],
                    [0, {"Add": {"files": 1, "bytes": NPY}}], [1, {"Add": {"files": 1, "bytes": NPY}}],
                ],
            },
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("disabled", "counts"),
    [
        (None, [0, 1]), ("support_device does not list device 0", [0, 1]),
        ("there is no e2e_dump_settings section, which O0 and O1 need", []),
    ],
)  # fmt: skip
def test_a_device_that_is_not_listed_counts_as_a_listed_one(tmp_path, disabled, counts):
    done, found = counted(tmp_path, disabled=disabled)
    assert (done, found["measured"]) == (2, [0, 1])
    assert found["dump"]["asked"] == (6 if disabled is None else 0)
    assert [step for step, types in found["counts"][""]["steps"] if "Add" in types] == counts


@pytest.mark.parametrize(
    ("profile", "changes", "sizes"),
    [
        ("seed/gpu", {}, [[0, 3], [1, 3]]), ("2.10/cpu", {}, [[0, 3], [1, 3]]),
        ("seed/ascend_o2", {"file_format": "bin"}, [[0, 1], [1, 1]]), ("seed/ascend_o2", {}, [[0, 3], [1, 3]]),
        ("seed/ascend_ge", {"file_format": "bin"}, [[0, 1], [1, 1]]),
        ("seed/ascend_ge", {"file_format": "bin", "dialect": "acl"}, []),  # the model was loaded before
    ],
)  # fmt: skip
def test_steps_of_each_tree(tmp_path, profile, changes, sizes):
    _, found = counted(tmp_path, profile, **changes)
    steps = found["counts"][""]["steps"]
    assert [[step, types["Add"]["files"]] for step, types in steps if "Add" in types] == sizes
    for _, types in steps:
        if "Add" in types:
            each = NPY if types["Add"]["files"] == 3 else types["Add"]["bytes"]
            assert types["Add"]["bytes"] == each * types["Add"]["files"]


def test_rows_without_values_are_an_estimate(tmp_path):
    text = "the null engine computes no values: rows of statistics are an estimate"
    rows = {"statistics": RequestedStatistics(names=("max",)), "tensors": False}
    for engine, changes, estimate in (("numpy", rows, ""), ("null", {}, ""), ("null", rows, text)):
        (tmp_path / engine / str(len(changes))).mkdir(parents=True)
        _, found = counted(tmp_path / engine / str(len(changes)), settings={"engine": engine}, **changes)
        assert found["estimate"] == estimate
        assert found["dump"]["asked"] == 6


def test_without_a_directory_there_is_no_account(tmp_path):
    info = SessionInfo(target="Ascend", clock=VirtualClock(), settings=RunSettings(manifest=None))
    service = PlannedDump(info, find("seed", "ascend_o0"), DumpRequest(path=str(tmp_path / "dump"), net_name="Net"))
    assert service.finish().asked == 0
    assert list(tmp_path.iterdir()) == []


def test_constants_belong_to_no_step(tmp_path):
    _, found = counted(tmp_path, "seed/gpu", compiled=True)
    steps = found["counts"][""]["steps"]
    assert [[step, types["Parameter"]] for step, types in steps if "Parameter" in types] == [
        [None, {"files": 1, "bytes": NPY}]
    ]
    assert [step for step, types in steps if "Add" in types] == [0, 1]
    assert (found["dump"]["asked"], found["dump"]["tensors"]) == (7, 7)
    assert found["dump"]["files"] == sum(types[kind]["files"] for _, types in steps for kind in types)
    assert found["dump"]["bytes"] == sum(types[kind]["bytes"] for _, types in steps for kind in types)


@pytest.mark.parametrize("profile", ["seed/ascend_o0", "seed/gpu", "2.10/cpu", "seed/ascend_o2", "seed/ascend_ge"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"inputs": False}, {"statistics": RequestedStatistics(names=("max",))}, {"steps": Steps.parse("1")},
     {"first_step": 4}, {"file_format": "bin"}, {"disabled": "there is no section"}],
    ids=lambda changes: next(iter(changes), "all"),
)  # fmt: skip
def test_the_account_counts_what_the_dump_itself_writes(tmp_path, profile, changes):
    parameters = (ref(X, name="w"),)
    done, found = counted(tmp_path, profile, compiled=True, parameters=parameters, **changes)
    info = SessionInfo(target="Ascend", chip="910B", clock=VirtualClock(), settings=RunSettings(manifest=None))
    request = DumpRequest(path=str(tmp_path / "dump"), net_name="Net", file="my.json", **changes)
    service = DumpService(info, find(*profile.split("/")), request)
    drive(service, operator(profile), done, compiled=True, parameters=parameters)
    summary = service.finish()
    names = ("asked", "captured", "tensors", "rows", "files", "bytes")
    assert {name: found["dump"][name] for name in names} == {name: getattr(summary, name) for name in names}
    assert found["dump"]["notes"] == list(summary.notes)
    files = [path for path in (tmp_path / "dump").rglob("*") if path.is_file()]
    assert (len(files), sum(path.stat().st_size for path in files)) == (summary.files, summary.bytes)
    if "steps" not in changes and "disabled" not in changes:  # the account has all steps
        steps = [0, 1] if profile.endswith("ge") else found["measured"]  # GE counts the runs of a model itself
        assert [step for step, _ in found["counts"][""]["steps"] if step is not None] == steps
        amounts = [amount for _, types in found["counts"][""]["steps"] for amount in types.values()]
        assert sum(amount["files"] for amount in amounts) == summary.files
        assert sum(amount["bytes"] for amount in amounts) == summary.bytes
