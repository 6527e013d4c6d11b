"""Chips whose matrix unit takes formats and numbers of its own, and kernels that are joined on request."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import dumpsim  # noqa: E402
from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.acl.dump import finalize_dump  # noqa: E402
from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from dumpsim.world.context import RankContext, use  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


class Pictures(nn.Module):
    """A convolution, a pooling, and products of two and of three dimensions."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.first, self.last = nn.Linear(8 * 16, 20), nn.Linear(20, 5, bias=False)

    def forward(self, x):
        x = functional.max_pool2d(torch.relu(self.conv(x)), 2)
        x = torch.tanh(self.first(x.flatten(1)))
        return torch.sigmoid(self.last(x)) * 2 + 1


def dump_of(folder, monkeypatch, net, inputs, *, chip="", switches=None, grad=False):
    """What a dumped step gives, with its gradients, and the records of its first graph's dump."""
    torch._dynamo.reset()
    monkeypatch.chdir(folder)
    with use(RankContext()), torch.set_grad_enabled(grad):
        Session.use(Session(RunSettings(chip=chip, quiet=True, manifest=None), environment={}))
        config = CompilerConfig()
        config.dump_config.enable_dump, config.dump_config.dump_path = True, str(folder)
        config.dump_config.dump_mode = "all"
        if switches is not None:
            (folder / "fusion.cfg").write_text(json.dumps({"Switch": switches}))
            config.fusion_config.fusion_switch_file = str(folder / "fusion.cfg")
        result = torch.compile(net, backend=get_npu_backend(compiler_config=config))(inputs)
        if grad:
            result.sum().backward()
        finalize_dump()
    entries = dumpsim.open(folder / "worldsize1_global_rank0") if list(folder.glob("worldsize*")) else ()
    first = [one for one in entries if "graph_1" in one.path.parts]
    return result.detach(), {(one.op_name, one.io, one.slot): one for one in first}


@pytest.mark.parametrize("chip", ["910A", "310P"])
def test_a_chip_with_private_formats(chip, tmp_path, monkeypatch):
    """Its matrix unit takes float16 in formats of its own; conversions stand in the dump."""
    torch.manual_seed(0)
    net, x = Pictures(), torch.randn(2, 3, 8, 8)
    result, found = dump_of(tmp_path, monkeypatch, net, x, chip=chip, grad=True)
    ours = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    want = net(x)
    want.sum().backward()
    assert torch.allclose(result, want, atol=1e-3)
    assert not torch.equal(result, want.detach())  # float16 is coarser
    for one, p in zip(ours, net.parameters(), strict=True):
        assert torch.allclose(one, p.grad, rtol=1e-2, atol=1e-2)
    conv = [found["Conv2D", io, slot] for io, slot in (("input", 0), ("input", 1), ("output", 0))]
    assert [one.format for one in conv] == ["NC1HWC0", "FRACTAL_Z", "NC1HWC0"]
    assert {one.dtype for one in conv} == {"float16"}
    products = [one for (name, *_), one in found.items() if name.startswith("MatMul") and one.slot < 2]
    assert products
    assert {(one.format, one.dtype) for one in products} == {("FRACTAL_NZ", "float16")}
    assert {one.op_type for one in found.values()} >= {"Cast", "TransData"}
    half = torch.conv2d(x.half(), net.conv.weight.half(), net.conv.bias.half(), padding=1)
    assert np.array_equal(found["Conv2D", "output", 0].array(), half.detach().numpy())


def test_chips_by_name_without_private_formats(tmp_path, monkeypatch):
    net, x = nn.Linear(4, 4), torch.randn(2, 4)
    for chip in ("910B", "910_93"):
        (tmp_path / chip).mkdir()
        result, found = dump_of(tmp_path / chip, monkeypatch, net, x, chip=chip)
        assert torch.equal(result, net(x))
        assert found
        assert not {one.op_type for one in found.values()} & {"Cast", "TransData"}


def test_fused_kernels_have_joined_names(tmp_path, monkeypatch):
    torch.manual_seed(0)
    net, x = Pictures(), torch.randn(2, 3, 8, 8)
    result, found = dump_of(tmp_path, monkeypatch, net, x, switches={"UBFusion": {"ALL": "on"}})
    assert torch.equal(result, net(x))
    assert {name for name, *_ in found} >= {"Conv2DRelu", "MulAddTanh", "MatMulSigmoid"}
    assert not {name for name, *_ in found} & {"Conv2D", "Relu", "Sigmoid"}


@pytest.mark.parametrize(
    ("switches", "refused"),
    [
        ({"GraphFusion": {"ConvBatchnormFusionPass": "on"}, "UBFusion": {"ALL": "off"}}, "ConvBatchnormFusionPass"),
        ({"UBFusion": {"ALL": "on", "TbePool2dQuantFusionPass": "off"}}, "TbePool2dQuantFusionPass"),
        ({"GraphFusion": {"ALL": "on"}, "UBFusion": {"ALL": "on"}}, "ALL"),
        ({"GraphFusion": {"ALL": "off"}, "UBFusion": {"ALL": "off"}}, None),
    ],
)
def test_other_fusions_are_refused_by_name(switches, refused, tmp_path, monkeypatch):
    if refused is None:
        assert torch.equal(dump_of(tmp_path, monkeypatch, lambda x: x + 1, torch.ones(2), switches=switches)[0],
                           torch.full((2,), 2.0))  # fmt: skip
    else:
        with pytest.raises(Exception, match=rf"graphs of TorchAir \({refused}\)"):
            dump_of(tmp_path, monkeypatch, lambda x: x + 1, torch.ones(2), switches=switches)


@pytest.mark.parametrize(("chip", "command"), [("910A", "ls"), ("910B", "first")])
def test_the_summary_looks_for_the_first_bad_result_where_there_are_some(tmp_path, monkeypatch, capsys, chip, command):
    """Where the largest number stands for a larger one, every result is finite."""
    torch._dynamo.reset()
    monkeypatch.chdir(tmp_path)
    with use(RankContext()), torch.no_grad():
        Session.use(Session(RunSettings(chip=chip, manifest=None), environment={}))
        config = CompilerConfig()
        config.dump_config.enable_dump, config.dump_config.dump_path = True, str(tmp_path)
        config.dump_config.dump_mode = "output"
        compiled = torch.compile(lambda x: x * x + 1, backend=get_npu_backend(compiler_config=config))
        result = compiled(torch.full((4,), 3e4, dtype=torch.float16))
        finalize_dump()
    assert bool(torch.isfinite(result).all()) == (chip == "910A")
    assert f"dumpsim {command} " in capsys.readouterr().err
