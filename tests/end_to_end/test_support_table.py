"""The support table of the documents, one test a cell: a tiny net that uses the feature, or the refusal. [seed 001]"""

import csv

import numpy as np
import pytest

from dumpsim.core.errors import DumpConfigError
from dumpsim.frontends.mindspore import Tensor, nn, ops, set_dump
from dumpsim.modes.support import support_matrix
from tests.dumpproto import messages
from tests.inprocess import dump

MODES = ("O0", "O1", "O2", "CPU", "GPU")
KERNELS = ("O0", "O1", "CPU", "GPU")
DEVICES = {"O0": 0, "O1": 0, "O2": 1, "CPU": 2, "GPU": 2}  # column of the table
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Net(nn.Cell):
    """exp(x @ w.T), with 12 results."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 6, has_bias=False, weight_init="ones")
        self.exp = ops.Exp()

    def construct(self, x):
        return self.exp(self.fc(x))


class Overflow(nn.Cell):
    """A product that float16 cannot hold."""

    def construct(self, x):
        return ops.mul(x, x) + 1


def thrice(net=Net, x=X):
    def steps():
        found = net()
        for _ in range(3):
            result = found(Tensor(x))
        return result.asnumpy()

    return steps


def cell(feature, mode):
    (row,) = [row for row in support_matrix() if row.feature == feature]
    return row.cells[DEVICES[mode]]


@pytest.fixture
def run(tmp_path, monkeypatch):
    def run(mode, steps=None, name="run", **changes):
        folder = tmp_path / name
        folder.mkdir()
        if mode == "O2":
            changes.setdefault("file_format", "npy")
        return dump(folder, monkeypatch, mode, steps or thrice(), **changes)

    return run


def rows(left):
    (path,) = left.files("statistic.csv")
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("mode", MODES)
def test_full_network_data(run, mode):
    assert cell("Full network data dump", mode) == "Supported"
    left = run(mode)
    assert left.error is None
    expected = np.exp(np.repeat(X.sum(1, keepdims=True), 6, 1))
    output = tensor_of(left, "Exp")
    if mode == "O2":  # a matrix keeps FRACTAL_NZ in npy files, too [spec mindspore 5.6]
        assert output.shape == (1, 1, 16, 16)
        output = output[0, 0, :2, :6]
    assert np.allclose(output, expected, rtol=1e-3)
    assert left.summary.complete
    assert len([name for name in left.types() if name.startswith("MatMul")]) == 1


def tensor_of(left, op_type):
    """The one output of the last operator of a type."""
    found = [path for path in left.tensors() if path.name.startswith(f"{op_type}.") and ".output.0." in path.name]
    return np.load(found[-1])


@pytest.mark.parametrize("mode", MODES)
def test_statistics(run, mode, capfd):
    told = cell("Statistics Dump", mode)
    host = run(mode, saved_data="statistic", statistic_category=["max", "count"])
    if mode == "CPU":
        assert told.startswith("Not Supported On CPU")
        assert isinstance(host.error, DumpConfigError)
        assert "only supported on GPU and Ascend" in str(host.error)
        return
    assert "host" in told
    row = next(row for row in rows(host) if row["Op Type"] == "Exp" and row["IO"] == "output")
    count = "256" if mode == "O2" else "12"  # with the padding of the device's layout
    assert (row["Count"], float(row["Max Value"])) == (count, pytest.approx(np.exp(12), rel=1e-3))
    assert host.tensors() == []
    device = run(mode, name="device", saved_data="statistic", stat_calc_mode="device", statistic_category=["max"])
    assert ("both host and device" in told) == (mode in ("O0", "O1"))
    # a forced stat_calc_mode is told of where the field is read at all
    forced = "only Ascend computes statistics on the device" in capfd.readouterr().err
    assert forced == (mode == "GPU")
    assert len(rows(device)) == len(rows(host))


@pytest.mark.parametrize("mode", MODES)
def test_sampling(run, mode):
    left = run(mode, sample_mode=1, sample_num=5)
    sampled = tensor_of(left, "Exp").size == 5
    assert sampled == (cell("Data Sampling Dump", mode) == "Supported")


@pytest.mark.parametrize("mode", MODES)
def test_overflow(run, mode):
    large = np.array([1, 300, 300], np.float16)
    left = run(mode, thrice(Overflow, large), op_debug_mode=3)
    if cell("Dump overflow operators", mode) == "Not Supported":
        assert isinstance(left.error, RuntimeError)
        assert "only op_debug_mode 0 is supported" in str(left.error)
        assert not left.root.exists()
        return
    assert left.error is None
    assert np.isinf(tensor_of(left, "Mul")).tolist() == [False, True, True]
    assert bool(left.files("Opdebug.Node_OpDebug.*.output.0.json")) == (mode == "O2")
    fine = run(mode, thrice(Overflow, large / 300), name="fine", op_debug_mode=3)
    assert fine.tensors() == []


@pytest.mark.parametrize("mode", MODES)
def test_operator_names(run, mode):
    assert cell("Specify Operator Name", mode) == "Supported"
    left = run(mode, dump_mode=1, kernels=["name-regex(.*Exp.*)"])
    assert left.types() == {"Exp"}
    name = "Default/Exp-op0"
    assert run(mode, name="named", dump_mode=1, kernels=[name]).types() == {"Exp"}
    by_type = run(mode, name="type", dump_mode=1, kernels=["exp"])
    assert by_type.types() == ({"Exp"} if mode != "O2" else set())  # whole graphs know no types


@pytest.mark.parametrize("mode", MODES)
def test_iterations(run, mode):
    assert cell("Specify Iteration", mode) == "Supported"
    left = run(mode, iteration="0|2")
    assert left.summary.iterations == (0, 2)
    steps = {path.relative_to(left.root).parts[0 if mode == "O2" else 3] for path in left.tensors()}
    assert steps == {"0", "2"}


@pytest.mark.parametrize("mode", MODES)
def test_devices(run, mode):
    assert cell("Specify Device", mode) == "Supported"
    assert run(mode, support_device=[0]).tensors()
    other = run(mode, name="other", support_device=[5])
    assert other.error is None
    assert bool(other.tensors()) == (mode == "CPU")  # the field stays and has no effect: a CPU has no device ids


@pytest.mark.parametrize("mode", MODES)
def test_file_formats(run, mode):
    told = cell("Specify File Format", mode)
    binary = run(mode, file_format="bin")
    if told == "Not Applicable":
        assert binary.error is None
        assert {path.suffix for path in binary.tensors()} == {".npy"}
        return
    assert told == "Supported"
    (path,) = [path for path in binary.tensors() if path.name.startswith("Exp.")]
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    head = messages()["DumpData"].FromString(raw[8 : 8 + size])
    output = raw[8 + size + sum(entry.size for entry in head.input) :]
    npy = run(mode, name="npy", file_format="npy")
    assert np.array_equal(np.frombuffer(output, np.float32), tensor_of(npy, "Exp").reshape(-1))


@pytest.mark.parametrize("mode", MODES)
def test_set_dump(run, mode):
    assert cell("set_dump", mode) == "Supported"

    def steps():
        net = Net()
        set_dump(net.exp)
        net(Tensor(X))

    left = run(mode, steps, dump_mode=2)
    assert left.error is None
    assert left.types() == {"Exp"}
    assert run(mode, name="without", dump_mode=2).tensors() == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("feature", ["Graph IR Dump", "Execution Sequence Dump"])
def test_auxiliary_files(run, mode, feature):
    left = run(mode)
    pattern = "ms_output_trace_code_graph_0.*" if feature == "Graph IR Dump" else "ms_execution_order_graph_0.csv"
    found = left.files(pattern)
    assert bool(found) == (cell(feature, mode) == "Supported")
    if found and feature != "Graph IR Dump":
        assert found[0].read_text().splitlines()[1:] == ["Default/fc-Dense/MatMul-op0", "Default/Exp-op0"]
