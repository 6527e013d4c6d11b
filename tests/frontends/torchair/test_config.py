"""``CompilerConfig`` against what the real Python half of TorchAir made of the same settings."""

import json
import os
import re
from ast import literal_eval
from pathlib import Path

import pytest

from dumpsim.core.errors import DumpConfigError, DumpWriteError, ScriptRuntimeError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.acl.dump import dump_of, finalize_dump
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.frontends.torchair._dumping import MARK, initialise, load  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from dumpsim.frontends.torchair.configs.dump_config import rank_directory, world  # noqa: E402
from dumpsim.frontends.torchair.configs.npugraph_ex import configured  # noqa: E402

pytestmark = pytest.mark.torch

RECORD = json.loads(
    (Path(__file__).parents[3] / "fixtures" / "frontends" / "torchair" / "dump_options.json").read_text("utf-8")
)
PLAIN = [("Data", {}), ("Data", {}), ("Add", {}), ("Sub", {}), ("NetOutput", {})]
SCOPED = [(kind, {MARK: "True"} if kind == "Sub" else attrs) for kind, attrs in PLAIN]
CASES = {case["case"]: case for case in RECORD["cases"]}


@pytest.fixture
def process(tmp_path, monkeypatch):
    """A rank of a fresh process, in a directory with what the recorded settings name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acl.json").write_text('{"dump": {}}')
    (tmp_path / "acl.txt").write_text("x")
    (tmp_path / "dumps").mkdir()
    with use(RankContext.from_environment()):
        Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))
        yield tmp_path
        finalize_dump()


def made(**settings):
    """The configuration of the record with dump settings."""
    config = CompilerConfig()
    config.experimental_config.pattern_fusion_pass = False
    for name, value in settings.items():
        setattr(config.dump_config, name, value)
    return config


def document(path):
    """An options file; the order of layers is arbitrary in the real one."""
    found = json.loads(path.read_text())
    for entry in found["dump"]["dump_list"]:
        if "layer" in entry:
            entry["layer"].sort()
    return found


@pytest.mark.parametrize("title", [title for title in CASES if not title.startswith("two graphs")])
def test_options_and_file_of_each_recorded_setting(process, title):
    case = CASES[title]
    config = made(**case["settings"])
    got = initialise(config)
    base = CASES["nothing set"]["initialize"]
    recorded = base if title == "nothing set" else base | case["initialize"][0]
    unset = ("ge.exec.allow_hf32", "ge.deterministic", "ge.deterministicLevel")
    assert got == {key: value for key, value in recorded.items() if key not in unset}
    graph = case["load"][0]["graph"] if isinstance(case["load"], list) else "graph_1"
    path = load(config, graph, SCOPED if "scope" in title else PLAIN)
    if not case["set_dump"]:
        assert path is None
    else:
        (wanted,) = case["set_dump"]
        name = wanted["path"].replace("<cwd>", str(process)).replace("<pid>", str(os.getpid()))
        assert str(path) == name
        assert path.read_text().startswith('{\n    "dump": {\n        "dump_path"')  # indented by 4
        for entry in wanted["json"]["dump"]["dump_list"]:
            entry.get("layer", []).sort()
        assert document(path) == wanted["json"]
    assert sorted(found.name for found in process.iterdir() if found.is_dir()) == case["directories"]


def test_local_options_of_nothing_set(process):
    local, _ = made().as_dict()
    of_graph = ("outputReuse", "ge.deterministic", "atomicClean", "frozenInput", "allTensorNotEmpty", "inputHintShape")
    recorded = CASES["nothing set"]["load"]
    assert local == {key: value for key, value in recorded.items() if not any(word in key for word in of_graph)}


def test_a_second_graph_is_appended_to_the_cached_file(process):
    config = made(enable_dump=True)
    initialise(config)
    load(config, "graph_13", PLAIN)
    path = load(made(enable_dump=True, dump_mode="input", dump_layer="Sub"), "graph_14", PLAIN)
    assert document(path) == CASES["two graphs, second with other settings"]["set_dump"][0]["json"]
    assert [(rule.model, rule.names) for rule in dump_of().request.selection.models] == [
        ("graph_13", None), ("graph_14", ("Sub",)),
    ]  # fmt: skip


@pytest.mark.parametrize("bad", RECORD["bad_values"], ids=lambda bad: f"{bad['option']}={bad['given']}")
def test_bad_values(process, bad):
    config = CompilerConfig()
    value = literal_eval(bad["given"])
    if bad["accepted"]:
        setattr(config.dump_config, bad["option"], value)
        assert repr(getattr(config.dump_config, bad["option"]).value) == bad["value"]
        return
    kind = {"ValueError": ValueError, "TypeError": TypeError, "FileNotFoundError": FileNotFoundError}[bad["error"]]
    with pytest.raises(kind) as caught:
        setattr(config.dump_config, bad["option"], value)
    first, *_, last = str(caught.value).splitlines()
    assert first == bad["text"]
    code = {"ValueError": "ERR03001 GRAPH invalid parameter", "TypeError": "ERR03005 GRAPH internal error",
            "FileNotFoundError": "ERR03008 GRAPH resource not found"}[bad["error"]]  # fmt: skip
    assert re.fullmatch(rf"\[ERROR\] [-\d]+:\d\d:\d\d \(PID:\d+, Device:-1, RankID:-1\) {code}", last)


@pytest.mark.parametrize("case", RECORD["twice_in_one_process"], ids=lambda case: case["case"])
def test_options_are_final_for_a_process(process, case):
    initialise(made(**case["first"]))
    load(made(**case["first"]), "graph_1", PLAIN)
    second = made(**case["second"])
    failure = case["failures"][1]
    if failure is None:
        got = initialise(second)
        assert {key: value for key, value in got.items() if "ump" in key} == case["second_initialize_dump"]
        path = load(second, "graph_2", PLAIN)
        assert (path is None) is (case["dump_list"] is None)
        if path is not None:
            assert len(document(path)["dump"]["dump_list"]) == len(case["dump_list"])
        return
    with pytest.raises(ValueError, match="Unsupport twice initialtion") as caught:
        initialise(second)
    wanted = failure.partition("ValueError: ")[2].partition(" and all")[0]
    assert str(caught.value).startswith(wanted)


@pytest.mark.parametrize("case", RECORD["as_dict_by_mode"], ids=lambda case: case["mode"])
def test_modes(process, case):
    config = made(enable_dump=True)
    if "error" in case:
        with pytest.raises(ValueError, match=re.escape(case["text"])):
            config.mode = case["mode"]
        return
    config.mode = case["mode"]
    local, of_process = config.as_dict()
    assert (local, of_process) == (case["local_options"], case["global_options"])
    assert list(of_process) == list(case["global_options"])
    if case["mode"] != "max-autotune":
        assert load(config, "graph_1", PLAIN) is None


@pytest.mark.parametrize("case", RECORD["config_fields"], ids=lambda case: case["field"])
def test_other_options(process, case):
    plain_local, plain_process = made().as_dict()
    config = made()
    *heads, name = case["field"].split(".")
    group = config
    for head in heads:
        group = getattr(group, head)
    setattr(group, name, case["value"])
    local, of_process = config.as_dict()
    assert {k: v for k, v in local.items() if plain_local.get(k) != v} == case["local"]
    assert {k: v for k, v in of_process.items() if plain_process.get(k) != v} == case["global"]


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("debug.data_dump.type", "csv", "Value 'csv' (type: <class 'str'>) not in optional list ['npy']"),
        ("debug.graph_dump.type", "png", "not in optional list ['txt', 'pbtxt', 'py']"),
        (
            "debug.aclgraph.static_capture_size_limit",
            0,
            "Please set value in [1, 9223372036854775807], 0 is out of range.",
        ),
        ("debug.aclgraph.static_capture_size_limit", "4", "Please set integer type, but got <class 'str'>"),
        ("experimental_config.topology_sorting_strategy", "dfs", "['BFS', 'DFS', 'RDFS', 'StableRDFS']"),
        ("ge_config.oo_level", "O2", "not in optional list ['O1', 'O3']"),
        (
            "fusion_config.fusion_switch_file",
            "no.cfg",
            "Please set legal file path, no.cfg is not found or is not a file!",
        ),
        ("ge_config.oo_levels", "O1", "_GEConfig has no option oo_levels, all options ['enable_single_stream'"),
        ("modes", "x", "CompilerConfig has no option modes, all options ['debug', 'aoe_config'"),
    ],
)
def test_bad_values_of_other_options(process, path, value, text):
    group = CompilerConfig()
    *heads, name = path.split(".")
    for head in heads:
        group = getattr(group, head)
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(text)) as caught:
        setattr(group, name, value)
    assert name in " ".join(caught.value.__notes__)


def test_the_nearest_value_is_told(process):
    with pytest.raises(ValueError, match="Value 'outputs'") as caught:
        made(dump_mode="outputs")
    assert "did you mean \"'output'\"" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("steps", "torchair", "option"),
    [
        ("5-2", True, False),
        ("3-3", True, False),
        ("1|", True, False),
        ("1||2", False, None),
        ("4294967296", True, False),
        ("02|3|4-6", True, True),
        ("1-23-4", True, False),
        ("|1", False, None),
    ],
)
def test_steps_are_judged_by_torchair_and_then_by_ge(process, steps, torchair, option):
    """The grammars differ; those of ACL's files are tested with these. [spec ge 1.2, 8.6]"""
    if not torchair:
        with pytest.raises(ValueError, match=r"dump_step|regex|match"):
            made(enable_dump=True, dump_step=steps)
        return
    config = made(enable_dump=True, dump_step=steps)
    if option:
        initialise(config)
        return
    with pytest.raises(DumpConfigError, match="E10001"):
        initialise(config)


def test_a_json_file_sets_the_dump_and_other_options_void_it(process, capsys):
    (process / "out").mkdir()
    (process / "acl.json").write_text(json.dumps({"dump": {"dump_path": "out", "dump_list": [{"layer": ["Add"]}]}}))
    initialise(made(dump_config_path="acl.json"))
    assert dump_of().request.selection.models[0].names == ("Add",)
    finalize_dump()
    with use(RankContext.from_environment()):
        Session.use(Session(RunSettings(quiet=True), environment={}))
        initialise(made(dump_config_path="acl.json", enable_dump=True))
        assert dump_of() is None
    assert "dump_config_path acl.json has no effect" in capsys.readouterr().err


def test_a_json_file_that_acl_refuses(process):
    (process / "acl.json").write_text(json.dumps({"dump": {"dump_path": "missing", "dump_list": [{}]}}))
    with pytest.raises(ScriptRuntimeError, match=r"Fail in acl set dump, return 100009\nEP0003"):
        initialise(made(dump_config_path="acl.json"))


def test_configurations_are_equal_by_their_options(process):
    assert made() == made()
    assert made() != made(dump_mode="input")
    assert made(dump_mode="input").dump_config.changed() == ["dump_mode"]


def test_options_of_npugraph_ex(process):
    config = configured({"dump_tensor_data": True, "data_dump_stage": "original", "data_dump_dir": "dumps"})
    assert config.as_dict()[1] | {"aclgraph.dumpPath": "dumps/worldsize1_global_rank0"} == config.as_dict()[1]
    assert (config.dump_config.data_dump_stage.value, config.mode.value) == ("original", "npugraph_ex")
    assert (process / "dumps" / "worldsize1_global_rank0").is_dir()
    with pytest.raises(ValueError, match="Invalid option 'dump_tensors', allowed options:") as caught:
        configured({"dump_tensors": True})
    assert "did you mean 'dump_tensor_data'" in caught.value.__notes__[0]
    with pytest.raises(FileNotFoundError, match="Please set legal dir path, nowhere"):
        configured({"data_dump_dir": "nowhere"})


def test_an_option_without_effect_is_said_once(process, capsys):
    config = made(enable_dump=True, quant_dumpable=True)
    initialise(config)
    for name in ("graph_1", "graph_2"):
        path = load(config, name, PLAIN)
    assert json.loads(path.read_text())["dump"]["quant_dumpable"] == "1"
    assert capsys.readouterr().err.count("quant_dumpable has no effect") == 1


def test_the_options_file_is_whole_and_a_directory_in_its_place_is_told(process):
    config = made(enable_dump=True)
    initialise(config)
    path = load(config, "graph_1", PLAIN)
    first = path.stat().st_ino
    load(config, "graph_2", PLAIN)
    assert path.stat().st_ino != first  # replaced as a whole
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("in the way")
    with pytest.raises(DumpWriteError, match="ge_dump_data_json"):
        load(config, "graph_3", PLAIN)


def test_directories_are_those_of_the_rank_of_torch_distributed():
    from torch.testing._internal.distributed import fake_pg

    assert (world(), rank_directory("there")) == ((1, 0), "there/worldsize1_global_rank0")
    torch.distributed.init_process_group("fake", store=fake_pg.FakeStore(), rank=2, world_size=4)
    try:
        assert (world(), rank_directory("there")) == ((4, 2), "there/worldsize4_global_rank2")
    finally:
        torch.distributed.destroy_process_group()
