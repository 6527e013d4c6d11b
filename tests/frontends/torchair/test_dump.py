"""Compiled models of torch under the options of ``dump_config``, on the emulated device."""

import json
import re

import numpy as np
import pytest

import dumpsim
from dumpsim.analysis.msaccucmp.command import run
from dumpsim.analysis.watchdiff import watchdiff
from dumpsim.core.settings import RunSettings
from dumpsim.device.faults import make_plan
from dumpsim.frontends.acl.dump import finalize_dump
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.frontends.torchair import scope  # noqa: E402
from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair._state import state  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from tests.dumpproto import messages  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

X, Y = torch.linspace(-1, 1, 8).reshape(2, 4), torch.linspace(2, 3, 8).reshape(2, 4)
RANK = "worldsize1_global_rank0"


class Net(torch.nn.Module):
    def forward(self, a, b):
        c = torch.add(a, b)
        d = torch.sub(c, b)
        return torch.add(d.relu(), c)


class Scoped(torch.nn.Module):
    def forward(self, a, b):
        c = torch.add(a, b)
        with scope.data_dump():
            d = torch.mul(c, b)
        return torch.sub(d, a)


@pytest.fixture
def process(tmp_path, monkeypatch):
    """Run models in a rank of a fresh process; settings are those of ``dump_config``."""
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    with use(RankContext.from_environment()):

        def run(model, *, runs=1, mode="max-autotune", environment=(), faults=(), **settings):
            session = Session(RunSettings(quiet=True, manifest=None), environment=dict(environment))
            Session.use(session)
            if faults:
                session.inject(make_plan(faults))
            config = CompilerConfig()
            config.mode = mode
            for name, value in settings.items():
                setattr(config.dump_config, name, value)
            compiled = torch.compile(model, backend=get_npu_backend(compiler_config=config))
            with torch.no_grad():
                for _ in range(runs):
                    result = compiled(X, Y)
                if not faults:
                    assert torch.equal(result, model(X, Y))
            finalize_dump()
            return tmp_path

        yield run
        finalize_dump()


def types(root):
    """Names of the operators that have files."""
    return {path.name.split(".")[1] for path in root.rglob("*") if path.is_file() and path.name.count(".") >= 4}


def test_the_tree_and_its_values(process):
    root = process(Net(), runs=2, enable_dump=True) / RANK
    found = sorted({re.sub(r"\d{14}", "T", str(path.parent.relative_to(root))) for path in root.rglob("*.*.*")})
    assert found == ["T/0/graph_1/1/0", "T/0/graph_1/1/1"]
    tensors = {(e.op_name, e.io, e.slot): e.array() for e in dumpsim.open(root) if e.iteration == 0}
    assert {name for name, _, _ in tensors} == {"arg0_1", "arg1_1", "Add", "Sub", "Relu", "Add_1"}
    np.testing.assert_array_equal(tensors["Add_1", "output", 0], Net()(X, Y).numpy())


@pytest.mark.parametrize(
    ("model", "settings", "expected"),
    [
        (Net, {"dump_layer": "Sub Add_1"}, {"Sub", "Add_1", "arg1_1"}),
        (Net, {"dump_layer": "Relu"}, {"Relu"}),
        (Net, {"dump_layer": "arg0_1"}, set()),  # inputs are dumped with who reads them only [spec ge 2.6]
        (Scoped, {}, {"Mul", "arg1_1"}),
        (Scoped, {"dump_layer": "Sub"}, {"Mul", "Sub", "arg0_1", "arg1_1"}),
        (Scoped, {"enable_dump": False}, set()),
    ],
)
def test_layers_and_scopes(process, model, settings, expected):
    assert types(process(model(), **{"enable_dump": True, **settings})) == expected


def test_modes_steps_and_statistics(process):
    root = process(Net(), runs=4, enable_dump=True, dump_mode="output", dump_step="1|3", dump_data="stats") / RANK
    assert sorted({path.parent.name for path in root.rglob("*.csv")}) == ["1", "3"]
    (path,) = root.rglob("1/Add.Add_1.*.csv")
    rows = path.read_text().splitlines()
    assert len(rows) == 2
    assert rows[1].startswith("Output,0,32,DT_FLOAT,ND,2x4,")
    assert not [path for path in root.rglob("*") if path.is_file() and path.suffix != ".csv"]


def test_unknown_layers_are_told(process, capsys):
    process(Net(), enable_dump=True, dump_layer="Sbu")
    assert "no loaded model has an operator 'Sbu' (did you mean 'Sub'?)" in capsys.readouterr().err


@pytest.mark.parametrize(("place", "error"), [("{}", NotADirectoryError), ("{}/" + RANK, FileExistsError)])
def test_a_file_where_the_dump_would_lie(process, tmp_path, place, error):
    """The path exists when it is set and is a file later: an error of the same class as the real one's."""
    (tmp_path / "there").mkdir()

    config = CompilerConfig()
    config.dump_config.enable_dump, config.dump_config.dump_path = True, "there"
    if place == "{}":
        (tmp_path / "there").rmdir()
    (tmp_path / place.format("there")).write_text("")
    Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))
    with torch.no_grad(), pytest.raises(Exception, match=error.__name__):
        torch.compile(Net(), backend=get_npu_backend(compiler_config=config))(X, Y)


def test_a_second_model_is_appended(process):
    root = process(Net(), enable_dump=True)
    torch._dynamo.reset()
    config = CompilerConfig()
    config.dump_config.enable_dump = True
    with torch.no_grad():
        torch.compile(Scoped(), backend=get_npu_backend(compiler_config=config))(X, Y)
    finalize_dump()
    (path,) = (root / "ge_dump_data_json").iterdir()
    assert [entry["model_name"] for entry in json.loads(path.read_text())["dump"]["dump_list"]] == [
        "graph_1",
        "graph_2",
    ]
    assert {path.parent.parent.parent.name for path in (root / RANK).rglob("*.*.*")} == {"graph_1", "graph_2"}


def test_options_are_final(process):
    process(Net())
    torch._dynamo.reset()
    config = CompilerConfig()
    config.dump_config.enable_dump = True
    compiled = torch.compile(Scoped(), backend=get_npu_backend(compiler_config=config))
    with torch.no_grad(), pytest.raises(Exception, match="Unsupport twice initialtion with different options"):
        compiled(X, Y)


@pytest.mark.parametrize("mode", ["reduce-overhead", "npugraph_ex"])
def test_other_modes_save_flat_files(process, mode):
    root = process(Net(), runs=2, mode=mode, enable_dump=True)
    names = sorted(path.name for path in (root / RANK).iterdir())
    nodes = ("add", "add_1", "arg0_1", "arg1_1", "relu", "sub")
    assert names == sorted(f"{node}_device_0_{count}.pt" for node in nodes for count in (0, 1))
    assert not (root / "ge_dump_data_json").exists()
    assert torch.equal(torch.load(root / RANK / "add_1_device_0_1.pt"), Net()(X, Y))


class Mixed(torch.nn.Module):
    def forward(self, a, b):
        half = (a.half() @ b.half().t()).bfloat16()
        order = torch.sort(a, dim=1)[1]
        return half.float().sum() + torch.gather(a, 1, order).cumsum(1)


def test_google_protobuf_and_msaccucmp_read_every_file(process, tmp_path):
    """The header by field numbers alone, the data after it, and what `msaccucmp convert` makes of the file."""
    files = [path for path in (process(Mixed(), enable_dump=True) / RANK).rglob("*.*.*") if path.is_file()]
    assert len(files) >= 10
    kinds = set()
    for path in files:
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        head = messages()["DumpData"].FromString(raw[8 : 8 + size])
        op_type, name, _, _, stamp = path.name.split(".")
        assert (head.version, head.op_name, head.dump_time) == ("2.0", name, int(stamp)), op_type
        tensors = [*head.input, *head.output]
        assert 8 + size + sum(one.size for one in tensors) == len(raw)
        assert run(["convert", "-d", str(path), "-out", str(tmp_path / "npy")]) == 0
        at = 8 + size
        for place, group in (("input", head.input), ("output", head.output)):
            for slot, one in enumerate(group):
                made = np.load(tmp_path / "npy" / f"{path.name}.{place}.{slot}.npy")
                kinds.add(one.data_type)
                data = raw[at : at + one.size]
                at += one.size
                if one.data_type == 27:  # bfloat16 comes out as float32
                    assert made.dtype == np.float32
                    assert (made.view(np.uint32) >> 16).astype(np.uint16).tobytes() == data
                else:
                    assert made.tobytes() == data
                assert list(made.shape) == list(one.shape.dim) or made.shape == (1,)
    assert kinds >= {1, 2, 7, 27}  # float32, float16, int32 (indices), bfloat16


@pytest.mark.parametrize(
    ("switch", "text"),
    [
        ({"dump_debug": "on"}, "dump_debug"),
        ({"dump_op_switch": "on"}, "dump_op_switch"),
        ({"dump_mode": "all"}, "dump_mode"),
    ],
)
def test_watch_mode_beside_other_switches_is_refused(process, tmp_path, switch, text):
    watch = {"dump_path": "out", "dump_scene": "watcher", "dump_mode": "output", **switch}
    watch["dump_list"] = [{"watcher_nodes": ["Add"]}]
    (tmp_path / "out").mkdir()
    (tmp_path / "acl.json").write_text(json.dumps({"dump": watch}))
    with pytest.raises(Exception, match="Fail in acl set dump, return 100009") as caught:
        process(Net(), dump_config_path="acl.json")
    assert "EP0005" in str(caught.value)
    assert text in str(caught.value)
    assert not any((tmp_path / "out").iterdir())


def test_texts_of_graphs_name_the_layers(process):
    root = process(Net(), environment={"DUMP_GE_GRAPH": "2"})
    texts = [path.read_text() for path in root.glob("ge_proto_*.txt")]
    assert texts
    assert all('name: "Add_1"' in text and 'name: "arg0_1"' in text for text in texts)


def test_watch_mode_by_a_json_file(process, tmp_path):
    watch = {"dump_path": "out", "dump_scene": "watcher", "dump_list": [{"watcher_nodes": ["Add"]}]}
    (tmp_path / "out").mkdir()
    (tmp_path / "acl.json").write_text(json.dumps({"dump": watch}))
    fault = {"kind": "stomp", "after": "Relu", "target": "Add", "offset": 4, "nbytes": 8}
    process(Net(), faults=[fault], dump_config_path="acl.json")
    (change,) = watchdiff(tmp_path / "out").changes
    assert (change.node, change.after, change.before, change.verdict) == ("Add", "Relu", "Sub", "trampled")
    assert (change.first, change.last) == (4, 11)


def test_a_summary_takes_the_place_of_the_graph(process, tmp_path):
    config = CompilerConfig()
    config.debug.fx_summary.type = "csv"
    compiled = torch.compile(Net(), backend=get_npu_backend(compiler_config=config))
    Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))
    with torch.no_grad():
        assert torch.equal(compiled(X, Y), Net()(X, Y))
    (path,) = tmp_path.glob("summary_*.csv")
    assert "aten.relu.default,aten,已支持,1" in path.read_text("utf-8-sig")


def test_files_of_the_graph_of_torch_take_the_place_of_the_dump(process, tmp_path):
    config = CompilerConfig()
    config.debug.data_dump.type = "npy"
    Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))
    with torch.no_grad():
        compiled = torch.compile(Net(), backend=get_npu_backend(compiler_config=config))
        for _ in range(2):
            assert torch.equal(compiled(X, Y), Net()(X, Y))
    assert not state().graphs
    files = list((tmp_path / RANK / "graph_1").rglob("relu-*.OUTPUT.0.*.npy"))
    assert sorted(path.parent.name for path in files) == ["0", "1"]
    assert all(np.array_equal(np.load(path), ((X + Y) - Y).relu().numpy()) for path in files)


def test_a_device_without_a_dump_of_ge_is_told_once(process, tmp_path, capsys):
    config = CompilerConfig()
    config.dump_config.enable_dump = True
    Session.use(Session(RunSettings(device="gpu", quiet=True, manifest=None), environment={}))
    with torch.no_grad():
        for _ in range(2):
            torch._dynamo.reset()
            compiled = torch.compile(Net(), backend=get_npu_backend(compiler_config=config))
            assert torch.equal(compiled(X, Y), Net()(X, Y))
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "nothing is dumped" in line)
    assert "ACL's dump on GPU" in line
    assert not types(tmp_path)
