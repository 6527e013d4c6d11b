"""``config.debug.graph_dump`` and ``config.debug.fx_summary``."""

import csv
from dataclasses import dataclass, field

import pytest

from dumpsim.core.errors import DumpWriteError
from dumpsim.core.settings import RunSettings
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from dumpsim.frontends.torchair.graph_dumper import dump_graph, dump_summary  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@dataclass
class Output:
    ge_dtype: str = "DT_FLOAT"
    shape: tuple = (2, 3)


@dataclass
class Node:
    name: str
    type: str
    inputs: list = field(default_factory=list)
    attrs: dict = field(default_factory=dict)
    outputs: list = field(default_factory=lambda: [Output()])


NODES = [
    Node("arg0_1", "Data", attrs={"index": 0}),
    Node("Add", "Add", ["arg0_1:0", "arg0_1:0", None], {"_scope": "net", "flags": [True, False]}),
]


@pytest.fixture(autouse=True)
def process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with use(RankContext.from_environment()):
        Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))
        yield tmp_path


def test_nothing_is_written_unless_asked(process):
    assert dump_graph(CompilerConfig(), "original", "graph_1", NODES) is None
    assert list(process.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        (
            "txt",
            [
                '  name: "Add"',
                '  input: "arg0_1:0"',
                '  input: ""',
                '    key: "flags"',
                "        b: true",
                "      dim: 3",
            ],
        ),
        ("pbtxt", ['    op_type: "Add"', '    input: "arg0_1:0"']),
        ("py", ["Add = ge.Add(arg0_1, arg0_1, None, scope='net', flags=[True, False])"]),
    ],
)
def test_graphs(process, kind, lines):
    config = CompilerConfig()
    config.debug.graph_dump.type = kind
    config.debug.graph_dump.path = "graphs"
    path = dump_graph(config, "optimized", "graph_1", NODES)
    assert path.parent == process / "graphs"
    assert path.name.startswith("dynamo_optimized_graph_1_")
    text = path.read_text().splitlines()
    assert [line for line in lines if line not in text] == []


def test_a_summary_of_the_operators(process):
    config = CompilerConfig()
    config.debug.fx_summary.type = "csv"
    module = make_fx(lambda x: torch.cat([x + 1, x + 1]) * x.sum())(torch.ones(2, 3))
    path = dump_summary(config, module, lambda target: "cat" not in str(target))
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(path.read_text("utf-8-sig").splitlines()))
    found = {row[0]: row[1:] for row in rows[1:]}
    assert found["aten.add.Tensor"] == ["aten", "已支持", "2", "2次：(float32(2, 3), 1)", "2次：float32(2, 3)"]
    assert found["aten.cat.default"][1] == "未注册"
    assert rows[0] == ["目标函数", "函数类型", "支持状态", "调用次数", "输入统计", "输出统计"]


def test_a_place_that_cannot_be_written(process):
    (process / "taken").write_text("")
    config = CompilerConfig()
    config.debug.graph_dump.type = "py"
    config.debug.graph_dump.path = "taken"
    with pytest.raises(DumpWriteError, match="cannot be written"):
        dump_graph(config, "original", "graph_1", NODES)
