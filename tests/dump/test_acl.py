"""Dumps by an ACL config: which operators, which tensors, which form, which tree."""

import csv
import json
import re

import numpy as np
import pytest

import dumpsim
from dumpsim.core.errors import DeviceError, DumpConfigError, UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.dump.operatorstats import processor_values
from dumpsim.frontends.acl.dump import dump_of, finalize_dump, set_dump
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use
from tests.dump.aclrun import VALUES, run_acl

MODEL = "kernel_graph0"
CHAIN = ["keep", "short", *(f"op_{number}" for number in range(6)), "last"]


def names(root):
    """Names of the operators that have files, in the order of time."""
    found = [path.name for path in root.rglob("*") if path.is_file() and path.name.count(".") >= 4]
    return [name.split(".")[1] for name in sorted(found, key=lambda name: name.split(".")[4])]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], ["x", *CHAIN]),
        ([{}], ["x", *CHAIN]),
        ([{"model_name": MODEL}], ["x", *CHAIN]),
        ([{"model_name": "other"}], []),
        ([{"model_name": MODEL, "layer": ["op_1", "last"]}], ["op_1", "last"]),
        ([{"layer": ["op_1"]}, {"model_name": MODEL, "layer": ["op_2"]}], ["op_1", "op_2"]),
        ([{"layer": ["keep"]}], ["x", "keep"]),  # what it reads of the model's inputs is dumped along
    ],
)
def test_models_and_layers(tmp_path, entries, expected):
    switch = {"dump_op_switch": "on"} if entries == [] else {}
    assert names(run_acl(tmp_path, {"dump_list": entries, **switch})) == expected


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([("op_1", "op_3")], ["op_1", "op_2", "op_3"]),
        ([("op_2", "op_2")], ["op_2"]),
        ([("keep", "keep"), ("op_5", "last")], ["x", "keep", "op_5", "last"]),
        ([("op_3", "op_1")], []),
    ],
)
def test_ranges_of_the_execution_order(tmp_path, capsys, ranges, expected):
    entry = {"model_name": MODEL, "opname_range": [{"begin": begin, "end": end} for begin, end in ranges]}
    assert names(run_acl(tmp_path, {"dump_level": "op", "dump_list": [entry]})) == expected
    assert ("is out of order" in capsys.readouterr().err) is (not expected)


def test_blacklists(tmp_path):
    entry = {
        "model_name": MODEL,
        "optype_blacklist": [{"name": "Add", "pos": ["input0", "output0"]}],
        "opname_blacklist": [{"name": "keep", "pos": ["input0"]}, {"name": "short"}, {"name": "x", "pos": ["output0"]}],
    }
    root = run_acl(tmp_path, {"dump_level": "op", "dump_mode": "all", "dump_list": [entry]})
    found = {
        name: sorted(f"{e.io}{e.slot}" for e in dumpsim.open(root) if e.op_name == name and e.nbytes)
        for name in names(root)
    }
    assert found["last"] == ["input1"]
    assert found["keep"] == ["output0"]
    assert found["short"] == ["input0", "output0"]  # no position suppresses nothing
    assert "x" not in found


@pytest.mark.parametrize(
    ("mode", "expected"), [("input", {"input"}), ("output", {"output"}), ("all", {"input", "output"})]
)
def test_modes(tmp_path, mode, expected):
    root = run_acl(tmp_path, {"dump_mode": mode, "dump_list": [{"layer": ["op_1"]}]})
    assert {entry.io for entry in dumpsim.open(root)} == expected


def test_steps_name_the_directories(tmp_path):
    root = run_acl(tmp_path, {"dump_step": "1|3-4", "dump_list": [{"layer": ["op_1"]}]}, runs=6)
    found = sorted(str(path.parent.relative_to(root)) for path in root.rglob("Sin.*"))
    assert [re.sub(r"^\d{14}", "T", name) for name in found] == [f"T/0/{MODEL}/1/{step}" for step in (1, 3, 4)]


def test_statistics_of_the_processor(tmp_path):
    root = run_acl(tmp_path, {"dump_data": "stats", "dump_mode": "all", "dump_list": [{"layer": ["keep"]}]})
    (path,) = root.rglob("Tanh.keep.*.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    titles = "Shape,Max Value,Min Value,Avg Value,Count,Nan Count,Negative Inf Count,Positive Inf Count"
    assert list(rows[0])[5:] == titles.split(",")
    assert [(row["Input/Output"], row["Index"], row["Data Type"], row["Shape"]) for row in rows] == [
        ("Input", "0", "DT_FLOAT", "8x8"), ("Output", "0", "DT_FLOAT", "8x8"),
    ]  # fmt: skip
    assert rows[0]["Max Value"] == "1"
    assert rows[0]["Avg Value"] == f"{VALUES.mean():g}"
    assert not list(root.rglob("Tanh.keep.*[0-9]"))
    (entry,) = (e for e in dumpsim.open(root) if e.op_name == "keep" and e.io == "output")
    assert entry.op_type == "Tanh"


def test_chosen_statistics(tmp_path):
    chosen = {"dump_data": "stats", "dump_stats": ["L2norm", "Max"], "dump_list": [{"layer": ["keep"]}]}
    (path,) = run_acl(tmp_path, chosen).rglob("Tanh.*.csv")
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert list(row)[6:] == ["Count", "Max Value", "l2norm"]
    assert row["l2norm"] == f"{np.linalg.norm(np.tanh(VALUES.astype(np.float64))):g}"


@pytest.mark.parametrize(
    ("values", "maximum", "minimum", "average"),
    [
        ([1, 3], "3", "1", "2"),
        ([1, np.nan, 3], "3", "1", "nan"),
        ([np.nan, 1], "nan", "nan", "nan"),
        ([1, np.inf], "inf", "1", "inf"),
        ([1, -np.inf], "1", "-inf", "-inf"),
        ([np.inf, -np.inf], "inf", "-inf", "nan"),
        ([np.nan, np.inf], "nan", "nan", "inf"),
    ],
)
def test_values_that_are_not_finite(values, maximum, minimum, average):
    found = processor_values(np.array(values, np.float32))
    assert [f"{found[name]:g}" for name in ("max", "min", "avg")] == [maximum, minimum, average]


def test_single_operators_lie_beside_models(tmp_path):
    root = run_acl(tmp_path, {"dump_op_switch": "on", "dump_list": [], "dump_mode": "all"}, single=True)
    (path,) = (path for path in root.rglob("Sin.Default_Sin.*") if path.is_file())
    assert re.fullmatch(r"\d{14}/0", str(path.parent.relative_to(root)))
    found = {e.io: e.array() for e in dumpsim.open(root) if e.op_name == "Default/Sin"}
    assert found["input"].tobytes() == VALUES.tobytes()
    np.testing.assert_allclose(found["output"], np.sin(VALUES), rtol=1e-6)
    assert "keep" in names(root)


@pytest.mark.parametrize(
    ("config", "singles", "models"),
    [
        ({"dump_op_switch": "on"}, True, False),
        ({"dump_op_switch": "on", "dump_list": [{}], "dump_level": "op"}, False, True),
        ({"dump_op_switch": "on", "dump_list": [{}], "dump_level": "kernel"}, True, False),
        ({"dump_list": [{}]}, False, True),
    ],
)
def test_what_levels_and_the_switch_leave(tmp_path, config, singles, models):
    found = names(run_acl(tmp_path, config, single=True))
    assert ("Default_Sin" in found, "keep" in found) == (singles, models)


def test_an_overflow_dump_below_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rel").mkdir()
    fault = {"kind": "overflow", "op": "op_3", "value": "inf"}
    run_acl(tmp_path, {"dump_path": "rel", "dump_debug": "on"}, faults=[fault], runs=2)
    found = names(tmp_path / "rel")
    assert found == ["Node_OpDebug", "op_3"]
    assert {e.io for e in dumpsim.open(tmp_path / "rel") if e.op_name == "op_3"} == {"input", "output"}


@pytest.mark.parametrize(
    ("scene", "start"), [("lite_exception", "exception_info."), ("aic_err_norm_dump", "Sin.op_3.")]
)
def test_exception_scenes(tmp_path, monkeypatch, scene, start):
    monkeypatch.delenv("ASCEND_DUMP_PATH", raising=False)
    monkeypatch.delenv("ASCEND_WORK_PATH", raising=False)
    with pytest.raises(DeviceError):
        run_acl(tmp_path, {"dump_scene": scene}, faults=[{"kind": "aicore_error", "op": "op_3"}])
    (path,) = (tmp_path / "out" / "extra-info" / "data-dump" / "0").iterdir()
    assert path.name.startswith(start)


def test_names_that_no_model_has(tmp_path, capsys):
    run_acl(tmp_path, {"dump_list": [{"layer": ["opp_1", "op_2"]}]})
    assert "no loaded model has an operator 'opp_1' (did you mean 'op_1'?)" in capsys.readouterr().err


def test_bad_files(tmp_path):
    with pytest.raises(DumpConfigError):
        set_dump(tmp_path / "missing.json")
    (tmp_path / "acl.json").write_text("{")
    with pytest.raises(DumpConfigError, match="EP0004"):
        set_dump(tmp_path / "acl.json")


def test_only_ascend_has_acl(tmp_path):
    (tmp_path / "acl.json").write_text(json.dumps({"dump": {"dump_path": str(tmp_path), "dump_list": [{}]}}))
    session = Session(RunSettings(device="cpu", quiet=True), environment={})
    with use(RankContext.from_environment()):
        Session.use(session)
        with pytest.raises(UnsupportedError, match="CPU"):
            set_dump(tmp_path / "acl.json")


def test_a_config_with_more_models_extends_the_dump_and_another_one_replaces_it(tmp_path):
    def write(**items):
        (tmp_path / "acl.json").write_text(json.dumps({"dump": {"dump_path": str(tmp_path / "out"), **items}}))
        set_dump(tmp_path / "acl.json")
        return dump_of()

    (tmp_path / "out").mkdir()
    session = Session(RunSettings(quiet=True, manifest=None), environment={})
    with use(RankContext.from_environment()):
        Session.use(session)
        first = write(dump_list=[{"model_name": "graph_1"}])
        assert write(dump_list=[{"model_name": "graph_1"}, {"model_name": "graph_2"}]) is first
        assert [rule.model for rule in first.request.selection.models] == ["graph_1", "graph_2"]
        assert write(dump_list=[{"model_name": "graph_1"}], dump_mode="all") is not first
        assert len(session.observers.taps) == 1
        assert write() is None
        assert session.observers.taps == []
        finalize_dump()
