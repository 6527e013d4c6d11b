"""Scripts for an NPU run as they are: imports, names of the device, and the dump that they ask for."""

import sys
import warnings

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


def names_of_tensors():
    return {name: vars(torch.Tensor).get(name) for name in ("to", "npu", "is_npu")}


def test_names_of_the_device_come_and_go():
    had = names_of_tensors()  # those of the device, where a doctest of this process has imported torch_npu
    with aliased():
        import torch_npu  # noqa: F401

        x = torch.zeros(2, device="npu:0").to("npu").npu()
        assert (x.device.type, x.is_npu, torch.device("npu:0").index) == ("cpu", True, 0)
        for device in (torch.device("npu"), torch.device("npu:0"), "npu:0"):
            assert torch.zeros(2, device=device).to(device).to(device=device).device.type == "cpu"
        assert torch.zeros(2, device=torch.device("meta")).is_meta
        assert torch.zeros(2).to(torch.device("meta")).is_meta
        assert isinstance(torch.npu.current_stream(), torch.npu.Stream)
        assert torch.npu.is_available()
        assert torch.npu.device_count() == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.manual_seed(3)
            first = torch.rand(2)
            torch.npu.manual_seed_all(3)
            assert torch.equal(torch.rand(2), first)
        event = torch.npu.Event(enable_timing=True)
        event.record()
        assert event.elapsed_time(event) == 0
    assert names_of_tensors() == had
    assert "torch_npu" not in sys.modules


def test_another_device_is_refused():
    from dumpsim.core.errors import BadInputError
    from dumpsim.frontends.torchair.torch_npu import npu, uninstall

    uninstall()
    with pytest.raises(BadInputError, match="device 3 is not this rank's"):
        npu.set_device("npu:3" if torch._C._get_privateuse1_backend_name() == "npu" else 3)


GRAPH = """
import torch
import torch_npu

class Net(torch.nn.Module):
    def forward(self, x):
        return (x.clone().expand(2, 3) * 2).relu()

x = torch.ones(2, 3, device="npu")
options = {"dump_tensor_data": True, "data_dump_stage": STAGE, "data_dump_dir": "saved"}
compiled = torch.compile(Net(), backend="npugraph_ex", options=options, dynamic=False)
plain = torch.compile(Net(), backend="npu")
with torch.no_grad():
    for _ in range(2):
        assert torch.equal(compiled(x), Net()(x))
    assert torch.equal(plain(x), Net()(x))
"""


@pytest.mark.parametrize(
    ("stage", "nodes"),
    [("original", {"arg0_1", "clone", "expand", "mul", "relu"}), ("optimized", {"arg0_1", "expand", "mul", "relu"})],
)
def test_npugraph_ex_saves_the_tensors_of_its_graph_in_one_directory(tmp_path, stage, nodes):
    (tmp_path / "saved").mkdir()
    script = tmp_path / "script.py"
    script.write_text(GRAPH.replace("STAGE", repr(stage)))
    cli(tmp_path, "run", str(script))
    (root,) = (tmp_path / "saved").iterdir()
    assert root.name == "worldsize1_global_rank0"
    assert {path.name for path in root.iterdir()} == {f"{node}_device_0_{at}.pt" for node in nodes for at in (0, 1)}
    assert torch.equal(torch.load(root / "relu_device_0_1.pt"), torch.full((2, 3), 2.0))


def test_options_of_the_back_ends_by_name():
    compile_ = torch.compile
    with aliased():
        import torch_npu  # noqa: F401

        with pytest.raises(ValueError, match="Invalid option 'dump_tensors'"):
            torch.compile(torch.nn.ReLU(), backend="npugraph_ex", options={"dump_tensors": True})
        with pytest.raises(ValueError, match="the back end npu takes no options"):
            torch.compile(torch.nn.ReLU(), backend="npu", options={"mode": 1})
    assert torch.compile is compile_
