"""Each option of the vendor's table of ``dump_config``: what it does to the dump, or how it is refused. [seed 003]"""

import json

import numpy as np
import pytest

import dumpsim
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.acl.dump import finalize_dump
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

X, Y = torch.linspace(-1, 1, 8).reshape(2, 4), torch.linspace(2, 3, 8).reshape(2, 4)
OPERATORS = {"arg0_1", "arg1_1", "Add", "Sub", "Relu", "Add_1"}
RANK = "worldsize1_global_rank0"


class Net(torch.nn.Module):
    def forward(self, a, b):
        c = torch.add(a, b)
        d = torch.sub(c, b)
        return torch.add(d.relu(), c)


@pytest.fixture
def dumped(tmp_path, monkeypatch):
    """Run the network under settings of ``dump_config`` twice; gives its dump's entries."""
    monkeypatch.chdir(tmp_path)
    for name in ("dumps", "out"):
        (tmp_path / name).mkdir()
    torch._dynamo.reset()
    with use(RankContext.from_environment()):
        Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))

        def run(settings, *, runs=2, config_path=None):
            config = CompilerConfig()
            if config_path is not None:
                (tmp_path / "acl.json").write_text(json.dumps({"dump": config_path}))
                settings = {**settings, "dump_config_path": "acl.json"}
            for name, value in settings.items():
                setattr(config.dump_config, name, value)
            model = Net()
            compiled = torch.compile(model, backend=get_npu_backend(compiler_config=config))
            with torch.no_grad():
                for _ in range(runs):
                    assert torch.equal(compiled(X, Y), model(X, Y))
            finalize_dump()
            trees = [*tmp_path.rglob(RANK), tmp_path / "out"]
            return [entry for tree in trees if any(tree.rglob("*.*.*")) for entry in dumpsim.open(tree)]

        yield run
        finalize_dump()


def names(entries):
    return {entry.op_name for entry in entries}


@pytest.mark.parametrize(
    ("settings", "operators", "places", "runs"),
    [
        ({}, set(), set(), set()),
        ({"enable_dump": False, "dump_mode": "all", "dump_layer": "Add"}, set(), set(), set()),
        ({"enable_dump": True}, OPERATORS, {"input", "output"}, {0, 1}),
        ({"enable_dump": True, "dump_mode": "input"}, OPERATORS - {"arg0_1", "arg1_1"}, {"input"}, {0, 1}),
        ({"enable_dump": True, "dump_mode": "output"}, OPERATORS, {"output"}, {0, 1}),
        ({"enable_dump": True, "dump_step": "1"}, OPERATORS, {"input", "output"}, {1}),
        ({"enable_dump": True, "dump_step": "0|3-5"}, OPERATORS, {"input", "output"}, {0, 3, 4, 5}),
        ({"enable_dump": True, "dump_layer": "Relu Add_1"}, {"Relu", "Add_1"}, {"input", "output"}, {0, 1}),
        ({"enable_dump": True, "dump_layer": "Sub"}, {"Sub", "arg1_1"}, {"input", "output"}, {0, 1}),
        ({"enable_dump": True, "data_dump_stage": "original"}, OPERATORS, {"input", "output"}, {0, 1}),
    ],
    ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_an_option_takes_effect(dumped, settings, operators, places, runs):
    entries = dumped(settings, runs=max(runs, default=1) + 1)
    assert names(entries) == operators
    assert {entry.io for entry in entries if not entry.op_name.startswith("arg")} == places
    assert {entry.iteration for entry in entries} == runs


@pytest.mark.parametrize("path", ["./dumps", "dumps", "{cwd}/dumps"])
def test_paths_are_relative_to_the_working_directory(dumped, tmp_path, path):
    assert names(dumped({"enable_dump": True, "dump_path": path.replace("{cwd}", str(tmp_path))})) == OPERATORS
    assert [one.name for one in (tmp_path / "dumps").iterdir()] == [RANK]
    assert not (tmp_path / RANK).exists()


@pytest.mark.parametrize("form", ["tensor", "stats"])
def test_forms_of_the_data(dumped, tmp_path, form):
    entries = dumped({"enable_dump": True, "dump_data": form, "dump_layer": "Add"})
    files = [path for path in tmp_path.rglob("Add.Add.*") if path.is_file()]
    assert {path.suffix == ".csv" for path in files} == {form == "stats"}
    (entry,) = (one for one in entries if (one.op_name, one.io, one.iteration) == ("Add", "output", 0))
    if form == "tensor":
        np.testing.assert_array_equal(entry.array(), (X + Y).numpy())


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("enable_dump", "yes", ValueError),
        ("dump_mode", "both", ValueError),
        ("dump_mode", "ALL", ValueError),
        ("dump_path", "nowhere", FileNotFoundError),
        ("dump_path", "", FileNotFoundError),
        ("quant_dumpable", "on", ValueError),
        ("dump_step", "1,2", ValueError),
        ("dump_step", "|1", ValueError),
        ("dump_step", 1, TypeError),
        ("dump_layer", "Add|Sub", ValueError),
        ("dump_layer", ["Add"], TypeError),
        ("dump_data", "statistic", ValueError),
        ("dump_config_path", "", ValueError),
        ("dump_config_path", "nowhere.json", FileNotFoundError),
        ("data_dump_stage", "fused", ValueError),
        ("dump_level", "op", ValueError),
    ],
)
def test_a_value_is_refused(dumped, option, value, error):
    with pytest.raises(error):
        dumped({option: value})


BLACK = {"name": "Add", "pos": ["input0"]}
FILES = [
    ({"dump_list": [{"model_name": "graph_1"}], "dump_mode": "all"}, OPERATORS),
    ({"dump_list": [{"model_name": "graph_2"}], "dump_mode": "all"}, set()),
    ({"dump_list": [{"model_name": "graph_1", "layer": ["Relu"]}]}, {"Relu"}),
    ({"dump_list": [{"layer": ["Sub"]}], "dump_mode": "output"}, {"Sub", "arg1_1"}),
    ({"dump_list": [], "dump_op_switch": "on", "dump_level": "op", "dump_mode": "all"}, OPERATORS),
    (
        {"dump_list": [{"model_name": "graph_1", "opname_range": [{"begin": "Sub", "end": "Relu"}]}],
         "dump_level": "op"},
        {"Sub", "Relu", "arg1_1"},
    ),
    (
        {"dump_list": [{"model_name": "graph_1", "opname_range": [{"begin": "Relu", "end": "Relu"}]}],
         "dump_level": "op"},
        {"Relu"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "operators"), FILES, ids=lambda value: json.dumps(value) if isinstance(value, dict) else ""
)
def test_a_json_file_chooses_operators(dumped, config, operators):
    assert names(dumped({}, config_path={"dump_path": "out", **config})) == operators


@pytest.mark.parametrize(
    ("blacklist", "gone"),
    [
        ({"optype_blacklist": [BLACK]}, {("Add", "input", 0), ("Add_1", "input", 0)}),
        ({"opname_blacklist": [{"name": "Add_1", "pos": ["input0", "output0"]}]},
         {("Add_1", "input", 0), ("Add_1", "output", 0)}),
        ({"opname_blacklist": [{"name": "Sub", "pos": []}]}, set()),
    ],
)  # fmt: skip
def test_a_blacklist_takes_inputs_and_outputs_out(dumped, blacklist, gone):
    config = {"dump_path": "out", "dump_mode": "all", "dump_level": "op", "dump_list": [{"model_name": "graph_1"}]}
    config["dump_list"][0] |= blacklist
    found = {(entry.op_name, entry.io, entry.slot) for entry in dumped({}, config_path=config) if entry.nbytes}
    operators = {("Add", 2), ("Sub", 2), ("Relu", 1), ("Add_1", 2)}
    inner = {(name, "input", at) for name, count in operators for at in range(count)}
    inner |= {(name, "output", 0) for name, _ in operators}
    assert {one for one in found if not one[0].startswith("arg")} == inner - gone


def test_a_range_out_of_order_is_told(dumped, capsys):
    entry = {"model_name": "graph_1", "opname_range": [{"begin": "Relu", "end": "Sub"}]}
    entries = dumped({}, config_path={"dump_path": "out", "dump_level": "op", "dump_list": [entry]})
    assert "Add" not in names(entries)
    assert "opname_range Relu to Sub of graph_1 is out of order" in capsys.readouterr().err


def test_options_void_the_file(dumped, tmp_path, capsys):
    entries = dumped({"enable_dump": True}, config_path={"dump_path": "out", "dump_list": [{"layer": ["Relu"]}]})
    assert names(entries) == OPERATORS
    assert not any((tmp_path / "out").iterdir())
    assert "dump_config_path acl.json has no effect" in capsys.readouterr().err


def test_overflow_by_a_file_leaves_nothing_where_nothing_overflows(dumped):
    assert dumped({}, config_path={"dump_path": "out", "dump_debug": "on"}) == []
