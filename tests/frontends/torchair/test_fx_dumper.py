"""Dumps of graphs of torch.fx: ``config.debug.data_dump``, and the .pt files of reduce-overhead and npugraph_ex."""

import re

import numpy as np
import pytest

from dumpsim.core.errors import DumpWriteError
from dumpsim.core.settings import RunSettings
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from dumpsim.frontends.torchair.fx_dumper import NpuFxDumper, save_nodes  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

X = torch.arange(6, dtype=torch.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with use(RankContext.from_environment()):
        Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))
        yield tmp_path


def function(x):
    first, second = torch.split(torch.cat([x, x * 2]), 2)
    return torch.add(first, second, alpha=2), second.to(torch.bfloat16)


def dumped(config, name="graph_1", runs=1):
    dumper = NpuFxDumper(make_fx(function)(X), config, name)
    for _ in range(runs):
        result = dumper.run(X)
    return result


def test_files_of_operands_and_results(process):
    config = CompilerConfig().debug.data_dump
    result = dumped(config, runs=2)
    assert torch.equal(result[0], function(X)[0])
    root = process / "worldsize1_global_rank0" / "graph_1"
    assert sorted(path.name for path in root.iterdir()) == ["0", "1"]  # steps
    names = {re.sub(r"\.\d{20}\.npy$", "", path.name) for path in (root / "0").iterdir()}
    assert names == {
        "mul-aten.mul.Tensor.INPUT.0", "mul-aten.mul.Tensor.INPUT.1", "mul-aten.mul.Tensor.OUTPUT.0",
        "cat-aten.cat.default.INPUT.0.0", "cat-aten.cat.default.INPUT.0.1", "cat-aten.cat.default.OUTPUT.0",
        "split-aten.split.Tensor.INPUT.0", "split-aten.split.Tensor.INPUT.1", "split-aten.split.Tensor.OUTPUT.0",
        "split-aten.split.Tensor.OUTPUT.1",
        "add-aten.add.Tensor.INPUT.0", "add-aten.add.Tensor.INPUT.1", "add-aten.add.Tensor.OUTPUT.0",
        "_to_copy-aten._to_copy.default.INPUT.0", "_to_copy-aten._to_copy.default.OUTPUT.0",
    }  # fmt: skip
    stamps = {path.name.rsplit(".", 2)[1] for path in (root / "0").glob("mul-*")}
    assert len(stamps) == 1  # one of a node, taken before it runs
    (path,) = (root / "0").glob("add-*OUTPUT*")
    np.testing.assert_array_equal(np.load(path), function(X)[0].numpy())
    (path,) = (root / "0").glob("_to_copy-*OUTPUT*")
    assert np.load(path).dtype == np.float32  # of bfloat16
    (path,) = (root / "0").glob("mul-*INPUT.1*")
    assert np.load(path) == 2  # no tensor


def test_the_filter_leaves_nodes_out(process):
    config = CompilerConfig().debug.data_dump
    config.filter = lambda node: node if node.name == "add" else None
    config.path = "elsewhere"
    dumped(config)
    names = {path.name.split("-")[0] for path in (process / "elsewhere").rglob("*.npy")}
    assert names == {"add"}


def test_a_path_that_is_a_file(process):
    (process / "taken").write_text("")
    config = CompilerConfig().debug.data_dump
    config.path = "taken"
    with pytest.raises(DumpWriteError, match="cannot be written"):
        dumped(config)


def test_constants_of_captured_graphs_are_not_saved(process):
    """The names are those that the real Python half of the wheel 2.14.0 gives for the same graph."""
    module = make_fx(lambda x: torch.split(x, 1)[1] * torch.tensor([1.0, 2.0, 3.0]))(torch.ones(2, 3))
    assert "get_attr" in {node.op for node in module.graph.nodes}
    save_nodes(module, CompilerConfig().dump_config)(torch.ones(2, 3))
    names = sorted(path.name for path in (process / "worldsize1_global_rank0").iterdir())
    nodes = ["getitem_1", "lift_fresh_copy", "mul", "x_1"]
    assert [name.removesuffix("_device_0_0.pt") for name in names if "getitem_device" not in name] == nodes


def test_saved_tensors_of_captured_graphs(process):
    config = CompilerConfig().dump_config
    module = save_nodes(make_fx(function)(X), config)
    assert save_nodes(module, config) is module  # what is saved already is not saved again
    for _ in range(2):
        result = module(X)
    assert torch.equal(result[0], function(X)[0])
    root = process / "worldsize1_global_rank0"
    names = sorted(path.name for path in root.iterdir())
    nodes = ["_to_copy", "add", "cat", "getitem_1", "getitem", "mul", "x_1"]
    assert names == [f"{node}_device_0_{count}.pt" for node in nodes for count in (0, 1)]
    assert torch.equal(torch.load(root / "add_device_0_1.pt"), function(X)[0])
