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
from dumpsim.modes.profile import find
from dumpsim.modes.request import DumpRequest, RequestedStatistics
from tests.dump.machine import graph, ref, task

X = np.arange(6, dtype=np.float32).reshape(2, 3)
NPY = 128 + X.nbytes  # the header of a small tensor has 128 bytes [spec mindspore 3.5]


def counted(tmp_path, profile="seed/ascend_o0", *, runs=5, smaller=(), settings=(), compiled=False, **changes):
    """The account of runs of one operator with two inputs; as many as the plan wants."""
    plan = tmp_path / "plan"
    plan.mkdir(exist_ok=True)
    given = {"plan": str(plan), "plan_steps": 2, "manifest": None, **dict(settings)}
    info = SessionInfo(target="Ascend", chip="910B", clock=VirtualClock(), member=3, settings=RunSettings(**given))
    request = DumpRequest(path=str(tmp_path / "dump"), net_name="Net", file="my.json", **changes)
    whole = profile.endswith(("o2", "ge"))
    service = PlannedDump(
        info, find(*profile.split("/")), request, devices=(0, 3),
        smaller=[(name, replace(request, **fields)) for name, fields in smaller],
    )  # fmt: skip
    event = task(operands=[ref(X, 0), ref(X, 1)], outputs=[ref(X, 0)], model_name="m" * whole, model_id=int(whole))
    if compiled:
        constant = TensorType(dtype=dtype("float32"), shape=X.shape, constant=True)
        compilation = graph(constants=((X, constant),))
        service.graph_compiled(replace(compilation, constants=(ref(X, origin="constant", name="data-0"),)))
    done, code = 0, None
    for number in range(runs):
        run = RunEvent(root_graph_id=0, graph_id=0, run_count=number)
        try:
            service.run_begin(run)
        except SystemExit as ending:
            code = ending.code
            break
        assert service.plan([event]) is None
        if service.wants(event):
            service.before_task(event)
            service.after_task(event)
        service.run_end(replace(run, run_count=number + 1))
        done += 1
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
