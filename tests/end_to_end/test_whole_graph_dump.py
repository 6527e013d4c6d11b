"""A training step at O2, dumped as bin, as npy and by GE: the same tensors, told apart by google.protobuf and numpy."""

import csv

import numpy as np
import pytest

import dumpsim
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Tensor, nn
from tests import dumprun
from tests.dumpproto import messages
from tests.inprocess import dump

TYPES = {1: np.float32, 2: np.float16, 7: np.int32, 8: np.int64, 11: np.bool_}  # [spec ge 3.3]
NCHW, ND, NC1HWC0, FRACTAL_Z, FRACTAL_NZ = 0, 2, 3, 4, 29


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 20, 3, pad_mode="same")
        self.relu = nn.ReLU()
        self.flat = nn.Flatten()
        self.fc = nn.Dense(20 * 4 * 4, 5)

    def construct(self, x):
        return self.fc(self.flat(self.relu(self.conv(x))))


def train():
    ms.set_seed(1)
    net = Net()
    loss = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepCell(loss, nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    x = Tensor(np.random.RandomState(0).randn(2, 3, 4, 4).astype(np.float32))
    y = Tensor(np.ones((2, 5), np.float32))
    for _ in range(2):
        step(x, y)


def tensors(path):
    """(io, slot) -> array in host layout, of a bin file."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    head = messages()["DumpData"].FromString(raw[8 : 8 + size])
    at = 8 + size
    found = {}
    for io, entries in (("input", head.input), ("output", head.output)):
        for slot, entry in enumerate(entries):
            data = np.frombuffer(
                raw, TYPES[entry.data_type], entry.size // np.dtype(TYPES[entry.data_type]).itemsize, at
            )
            at += entry.size
            found[io, slot] = host(data.reshape(tuple(entry.shape.dim)), entry.format, tuple(entry.original_shape.dim))
    assert at == len(raw)
    return head, found


def host(array, layout, shape):
    """What an npy file of the same tensor holds: host layout with four axes, else as it lies. [spec mindspore 5.6]"""
    if layout == NC1HWC0 and len(shape) == 4:
        n, c, h, w = shape
        return array.transpose(0, 1, 4, 2, 3).reshape(n, -1, h, w)[:, :c]
    if layout == FRACTAL_Z and len(shape) == 4:
        n, c, h, w = shape
        blocks = array.reshape(-1, h, w, array.shape[1] * 16, 16)  # c1, h, w, n, c0 [spec mindspore 10.3]
        return blocks.transpose(3, 0, 4, 1, 2).reshape(blocks.shape[3], -1, h, w)[:n, :c]
    assert layout in (NCHW, ND, FRACTAL_NZ), layout
    return array


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, env, changes in (("bin", "0", {}), ("npy", "0", {"file_format": "npy"}), ("ge", "1", {})):
            folder = tmp_path_factory.mktemp(name)
            patch.setenv("ENABLE_MS_GE_DUMP", env)
            found[name] = dump(folder, patch, "O2", train, iteration="all", **changes)
            assert found[name].error is None
    return found


def names(root):
    """Files of tensors and their names, which mapping.csv has where they are too long."""
    long = {}
    for path in root.rglob("mapping.csv"):
        long |= {path.parent / short: name for short, name in csv.reader(path.read_text().splitlines())}
    for path in sorted(root.rglob("*")):
        name = long.get(path, path.name)
        if name.count(".") > 3:
            yield path, name


def hold_the_same(left, right):
    """How many tensors a run of bin files and one of npy files share, and the layouts of those."""
    npy = {}
    for path, name in names(right):
        op_type, op_name, task, stream, _, io, slot = name.split(".")[:7]
        npy[path.relative_to(right).parts[0], op_type, op_name, task, stream, io, int(slot)] = np.load(path)
    seen = 0
    layouts = set()
    for path, name in names(left):
        op_type, op_name, task, stream, _ = name.split(".")
        step = path.relative_to(left).parts[0]
        head, found = tensors(path)
        layouts |= {entry.format for entry in (*head.input, *head.output)}
        for (io, slot), array in found.items():
            if array.size:
                other = npy[step, op_type, op_name, task, stream, io, slot]
                assert other.dtype == array.dtype
                assert np.array_equal(other, array, equal_nan=True), name
                seen += 1
    assert seen == len(npy)
    return seen, layouts


def test_bin_and_npy_hold_the_same_tensors(runs):
    seen, layouts = hold_the_same(runs["bin"].root, runs["npy"].root)
    assert seen == runs["npy"].summary.tensors
    assert {NC1HWC0, FRACTAL_Z, FRACTAL_NZ} <= layouts


def test_alexnet(tmp_path):
    """The network of the documents, with names that are too long for npy files."""
    script = (dumprun.ROOT / "dumpsim/examples/alexnet.py").read_text()
    found = {}
    for kind in ("bin", "npy"):
        document = dumprun.config(tmp_path / kind, file_format=kind)
        del document["e2e_dump_settings"]
        arguments = ("--narrow", "16", "--steps", "1", "--jit-level", "O2")
        found[kind] = dumprun.dump(tmp_path, script, name=kind, arguments=arguments, document=document).root
    assert list(found["npy"].rglob("mapping.csv"))
    seen, layouts = hold_the_same(found["bin"], found["npy"])
    assert seen > 300
    assert layouts == {NCHW, ND, NC1HWC0, FRACTAL_Z, FRACTAL_NZ}
    assert sum(name.startswith("Conv2D.") for _, name in names(found["bin"])) == 5


def test_ge_writes_the_same_operators_without_steps(runs):
    def names(left, levels):
        cut = (path.relative_to(left.root).parts[levels:] for path in left.files("*.*.*.*.*"))
        return sorted((*parts[:-1], parts[-1].rsplit(".", 1)[0]) for parts in cut)

    assert names(runs["ge"], 0) == names(runs["bin"], 1)
    assert not runs["ge"].files("acl_dump_*.json")


def test_the_reader_opens_all_of_them(runs):
    sets = {name: dumpsim.open(left.root) for name, left in runs.items()}
    counts = {name: len(found) for name, found in sets.items()}
    assert len(set(counts.values())) == 1, counts
