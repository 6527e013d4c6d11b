"""Scripts for an NPU run as they are: imports, names of the device, and the dump that they ask for."""

import sys

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

import dumpsim  # noqa: E402
from dumpsim.testing.imports import aliased  # noqa: E402
from tests.dumprun import cli  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

SCRIPT = """
import torch
import torch_npu, torchair
from torch import nn

config = torchair.CompilerConfig()
config.dump_config.enable_dump = True
config.dump_config.dump_mode = "all"
config.dump_config.dump_step = "0|1"
backend = torchair.get_npu_backend(compiler_config=config)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).npu().eval()
x = torch.ones(3, 8, device="npu:0")
with torch.no_grad():
    compiled = torch.compile(model, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(x), model(x))
torch.npu.synchronize()
torch.save(model(x), "eager.pt")
"""


def test_a_script_runs_unchanged_and_its_dump_holds_what_eager_torch_computes(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    cli(tmp_path, "run", str(script))
    root = tmp_path / "worldsize1_global_rank0"
    names = {path.name.split(".")[1] for path in root.rglob("*.*") if path.is_file()}
    data = {f"arg{at}_1" for at in range(5)}
    kernels = "Transpose MatMulV2 Mul Add Relu Transpose_1 MatMulV2_1 Mul_1 Add_1"
    assert names == {*data, *kernels.split()}
    assert sorted(path.name for path in root.glob("*/0/graph_1/1/*")) == ["0", "1"]
    want = torch.load(tmp_path / "eager.pt")
    found = [one for one in dumpsim.open(root) if one.op_name == "Add_1" and one.io == "output"]
    assert len(found) == 2
    assert all(torch.equal(torch.from_numpy(one.array().copy()), want.detach()) for one in found)


def test_names_of_the_device_come_and_go():
    had = torch.Tensor.to
    with aliased():
        import torch_npu  # noqa: F401

        x = torch.zeros(2, device="npu:0").to("npu").npu()
        assert (x.device.type, x.is_npu, torch.device("npu:0").index) == ("cpu", True, 0)
        assert torch.npu.is_available()
        assert torch.npu.device_count() == 1
        event = torch.npu.Event(enable_timing=True)
        event.record()
        assert event.elapsed_time(event) == 0
    assert torch.Tensor.to is had
    assert not hasattr(torch.Tensor, "npu")
    assert "torch_npu" not in sys.modules


def test_another_device_is_refused():
    from dumpsim.core.errors import BadInputError
    from dumpsim.frontends.torchair.torch_npu import npu, uninstall

    uninstall()
    with pytest.raises(BadInputError, match="device 3 is not this rank's"):
        npu.set_device("npu:3" if torch._C._get_privateuse1_backend_name() == "npu" else 3)
