"""LeNet dumped in every profile: nothing is suspect, and what was altered by 1 % in one element is found at once."""

import shutil

import numpy as np
import pytest

import dumpsim
from dumpsim.codecs.binfile import BinFile
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Tensor, nn
from dumpsim.replay.gegraph import ge_graphs
from tests import dumprun
from tests.inprocess import dump


class LeNet5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(400, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.relu(self.fc2(x)))


def train():
    ms.set_seed(1)
    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    step.set_train()
    rng = np.random.RandomState(0)
    step(Tensor(rng.randn(2, 1, 32, 32).astype(np.float32)), Tensor(rng.randint(0, 10, 2).astype(np.int32)))


PROFILES = {"O0": {}, "GPU": {}, "CPU": {"mindspore": "2.10"}, "O2": {}}


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """A tree of one step by profile."""
    found = {}
    for name, settings in PROFILES.items():
        folder = tmp_path_factory.mktemp(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DUMP_GE_GRAPH", "2")
            patch.setenv("DUMP_GRAPH_PATH", str(folder / "dump" / "graphs"))
            run = dump(folder, patch, name, train, iteration="all", settings=settings)
        assert run.error is None
        found[name] = run.root
    return found


def altered(source, target, op_type, index):
    """A copy of a tree in which the largest element of one operator's output is 1 % larger; the operator's name."""
    shutil.copytree(source, target)
    outputs = [one for one in dumpsim.open(target).filter(io="output", op_type=op_type) if one.dtype.startswith("fl")]
    entry = outputs[index]
    if entry.part is None:
        array = np.load(entry.path)
        array.reshape(-1)[np.argmax(np.abs(array))] *= 1.01
        entry.path.chmod(0o600)
        np.save(entry.path, array)
        return entry.op_name, entry.iteration
    file = BinFile.open(entry.path)
    start, end = file.spans["outputs"][entry.slot]
    raw = bytearray(entry.path.read_bytes())
    data = np.frombuffer(bytes(raw[start:end]), {"float16": np.float16, "float32": np.float32}[entry.dtype]).copy()
    data[np.argmax(np.abs(data))] *= data.dtype.type(1.01)
    raw[start:end] = data.tobytes()
    entry.path.chmod(0o600)
    entry.path.write_bytes(raw)
    return entry.op_name, entry.iteration


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_is_suspect(trees, profile):
    result = dumpsim.replay(trees[profile])
    assert result.counts.get("suspect", 0) == 0
    assert result.ok
    assert result.counts["ok"] >= 36
    if profile in ("O0", "O2"):
        assert result.skipped == {}


def test_bin_files_without_a_graph(trees, tmp_path):
    """Attributes follow from the shapes where no graph shows them."""
    assert ge_graphs(trees["O2"])
    shutil.copytree(trees["O2"], tmp_path / "dump")
    shutil.rmtree(tmp_path / "dump" / "graphs")
    assert dumpsim.replay(tmp_path / "dump").counts == dumpsim.replay(trees["O2"]).counts


ALTERED = [
    ("O0", "BiasAddGrad", 0), ("O0", "ApplyMomentum", 3), ("GPU", "Conv2D", 1), ("CPU", "MatMul", 1),
    ("CPU", "SparseSoftmaxCrossEntropyWithLogits", 0), ("O2", "Conv2D", 0), ("O2", "MaxPoolGrad", 0),
]  # fmt: skip


@pytest.mark.parametrize(("profile", "op_type", "index"), ALTERED)
def test_an_altered_element_is_found(trees, tmp_path, profile, op_type, index):
    """One element of one output, 1 % larger: at rank 1, and nothing else is suspect."""
    name, iteration = altered(trees[profile], tmp_path / "dump", op_type, index)
    result = dumpsim.replay(tmp_path / "dump")
    worst, *others = result.rows
    assert (worst.op_name, worst.iteration, worst.verdict) == (name, iteration, "suspect")
    assert worst.excess > 2
    assert worst.reason.startswith("output.0[")
    assert all(row.verdict != "suspect" for row in others)


OPTIMIZERS = {
    "ApplyMomentum": lambda weights: nn.Momentum(weights, 0.05, 0.9),
    "Adam": lambda weights: nn.Adam(weights, 0.01),
    "AdamWeightDecay": lambda weights: nn.AdamWeightDecay(weights, 0.01, weight_decay=0.1),
    "ApplyAdagrad": lambda weights: nn.Adagrad(weights, 0.1, 0.05),
}


@pytest.mark.parametrize("op_type", OPTIMIZERS)
def test_a_step_is_recomputed_from_the_state_after_it(tmp_path, monkeypatch, op_type):
    """The files of a CPU hold Parameters as they are afterwards; the state before follows from the gradient."""

    def one_step():
        ms.set_seed(1)
        net = nn.Dense(4, 3, has_bias=False)
        loss = nn.WithLossCell(net, nn.MSELoss())
        step = nn.TrainOneStepCell(loss, OPTIMIZERS[op_type](net.trainable_params()))
        values = np.random.RandomState(0).randn(2, 8, 4).astype(np.float32)
        for value in values:
            step(Tensor(value), Tensor(value[:, :3].copy()))

    root = dump(tmp_path, monkeypatch, "CPU", one_step, iteration="all", settings=PROFILES["CPU"]).root
    verdicts = {(row.iteration, row.verdict) for row in dumpsim.replay(root) if row.op_type == op_type}
    assert verdicts == {(0, "ok"), (1, "ok")}
    (entry,) = dumpsim.open(root).filter(op_type=op_type, io="input", slot=0, iteration=1)
    array = np.load(entry.path)
    array.reshape(-1)[np.argmax(np.abs(array))] *= 1.01
    entry.path.chmod(0o600)
    np.save(entry.path, array)
    assert [(row.op_type, row.iteration) for row in dumpsim.replay(root).suspects] == [(op_type, 1)]


def test_an_altered_bin_file_without_a_graph(trees, tmp_path):
    shutil.copytree(trees["O2"], tmp_path / "plain")
    shutil.rmtree(tmp_path / "plain" / "graphs")
    name, _ = altered(tmp_path / "plain", tmp_path / "dump", "Conv2D", 1)
    suspects = dumpsim.replay(tmp_path / "dump").suspects
    assert [row.op_name for row in suspects] == [name]


@pytest.mark.slow
def test_every_altered_operator_is_found(trees, tmp_path):
    """The largest element of each output of a step that is not zero, one after the other."""
    root = tmp_path / "dump"
    shutil.copytree(trees["O0"], root)
    missed = []
    for entry in dumpsim.open(root).filter(io="output", iteration=0, dtype="float32"):
        whole = entry.path.read_bytes()
        array = np.load(entry.path)
        if not array.any():
            continue
        array.reshape(-1)[np.argmax(np.abs(array))] *= 1.01
        entry.path.chmod(0o600)
        np.save(entry.path, array)
        suspects = dumpsim.replay(dumpsim.open(root).filter(iteration=0)).suspects
        if [row.op_name for row in suspects] != [entry.op_name]:
            missed.append((entry.op_name, [row.op_name for row in suspects]))
        entry.path.write_bytes(whole)
    assert missed == []


def test_processes_give_the_same(trees):
    rows = dumpsim.replay(trees["O0"], jobs=2).rows
    assert rows == dumpsim.replay(trees["O0"]).rows


def test_protobuf_is_enough(trees, tmp_path):
    """Without the IR text the protobuf gives attributes and constants."""
    shutil.copytree(trees["O0"], tmp_path / "dump")
    for path in (tmp_path / "dump").rglob("*.ir"):
        path.unlink()
    assert dumpsim.replay(tmp_path / "dump").counts == dumpsim.replay(trees["O0"]).counts


def test_damaged_and_missing_files_are_skipped(trees, tmp_path):
    shutil.copytree(trees["O0"], tmp_path / "dump")
    entries = list(dumpsim.open(tmp_path / "dump").filter(op="*conv1*", op_type="Conv2D"))
    cut = next(entry for entry in entries if entry.io == "input" and entry.slot == 0)
    cut.path.chmod(0o600)
    cut.path.write_bytes(cut.path.read_bytes()[:200])
    gone = next(iter(dumpsim.open(tmp_path / "dump").filter(op="*fc1*", op_type="MatMul", io="output")))
    gone.path.unlink()
    result = dumpsim.replay(tmp_path / "dump")
    assert not result.ok
    assert result.suspects == ()
    said = {row.op_name: row for row in result if row.verdict == "skipped"}
    assert said[cut.op_name].unreadable
    assert said[gone.op_name].reason == "no output was dumped"
    assert dumprun.cli(tmp_path, "replay", "dump", code=3).out == ""


def test_a_graph_that_is_cut_is_reported_once(tmp_path):
    place = tmp_path / "dump"
    place.mkdir()
    for stamp, (io, value) in enumerate([("input.0", [-1, 2]), ("output.0", [0, 2])]):
        name = f"ReLU.Default_ReLU-op0.0.0.170000000000000{stamp}.{io}.DefaultFormat.npy"
        np.save(place / name, np.array(value, np.float32))
    (place / "ge_proto_00000001_graph_1_Build.txt").write_text("graph { op {")
    result = dumpsim.replay(place)
    assert result.counts == {"ok": 1}
    (text,) = result.unreadable
    assert text.endswith("[DS-RPL-001]")
    assert "the file ends inside a message" in text
