"""Dumps of graphs whose tasks are the same in every run: the trees, manifests and clocks of runs that look at each."""

import json

import numpy as np
import pytest

from dumpsim.core.settings import RunSettings
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import _dumping, nn, ops
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.kernel import Kernels
from dumpsim.runtime.session import Session
from dumpsim.runtime.watched import Watched
from dumpsim.world.context import RankContext, use
from tests.dump.machine import config

STEPS = 5


@pytest.fixture
def planned(monkeypatch):
    """The graphs of which runs were planned, once for each run."""
    seen = []
    begin = Watched.begin

    def begun(self):
        found = begin(self)
        if found:
            seen.append(self)
        return found

    monkeypatch.setattr(Watched, "begin", begun)
    return seen


class Words(nn.Cell):
    """Weights that change in place, an index, a random kernel, constants, a reshape that computes nothing."""

    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(10, 8), nn.LayerNorm((8,))
        self.drop, self.fc = nn.Dropout(p=0.5), nn.Dense(8, 4)
        self.mask = ms.Tensor(np.triu(np.ones((3, 3), np.float32)))

    def construct(self, x):
        y = self.norm(self.table(x)).reshape((2, 3, 8))
        y = ops.matmul(self.mask, self.drop(y)) * 0.5
        return self.fc(ops.cast(ops.cast(y, ms.float16), ms.float32)).reshape((6, 4))


class Growing(nn.Cell):
    """Numbers that become infinite."""

    def __init__(self):
        super().__init__()
        self.total = ms.Parameter(ms.Tensor(np.full(3, 1e10, np.float32)), name="total")

    def construct(self, x):
        self.total = self.total * self.total
        return ops.cast(self.total + x, ms.float16), ops.cast(x, ms.bfloat16)


def train(net):
    """Steps of training."""
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        x, labels = rng.integers(0, 10, 6), rng.integers(0, 4, 6)
        yield step(ms.Tensor(x.astype(np.int32)), ms.Tensor(labels.astype(np.int32))).asnumpy()


def grow(net):
    """Steps whose numbers become too large."""
    for at in range(STEPS):
        first, second = net(ms.Tensor(np.array([1, at, 3], np.float32)))
        yield first.asnumpy()
        yield second.asnumpy()


def dumped(folder, device, release, make, steps, level="O0", **changes):
    """What some steps leave: files, results, the clock."""
    folder.mkdir()
    file = folder / "dump.json"
    file.write_text(json.dumps(config(folder / "out", **changes)))
    settings = RunSettings(mindspore=release, quiet=True, manifest=str(folder / "manifest.json"))
    with use(RankContext()):
        session = Session(settings, environment={})
        Session.use(session)
        ms.set_context(mode=ms.GRAPH_MODE, device_target=device, jit_level=level)
        ms.set_seed(1)
        _dumping.ensure_dump(session, {"MINDSPORE_DUMP_CONFIG": str(file)})
        results = list(steps(make()))
        _dumping.finish_dump(session)
        state = session.device.clock.now_ns, session.device.status.count
    found = {
        str(path.relative_to(folder)): path.read_bytes().replace(str(folder).encode(), b"")
        for path in folder.rglob("*")
        if path.is_file()
    }
    return found, results, state


@pytest.mark.parametrize(("make", "steps"), [(Words, train), (Growing, grow)], ids=["words", "growing"])
@pytest.mark.parametrize(
    ("device", "release", "changes"),
    [
        ("CPU", "2.10", {}),
        ("CPU", "2.10", {"iteration": "0|3-4", "input_output": 1}),
        ("CPU", "seed", {"saved_data": "full"}),
        ("GPU", "2.10", {"dump_mode": 1, "kernels": ["MatMul", "Default/Mul-op0"]}),
        ("GPU", "seed", {"save_kernel_args": True, "input_output": 2}),
        ("Ascend", "2.10", {}),
        ("Ascend", "2.10", {"saved_data": "statistic"}),
        ("Ascend", "seed", {"trans_flag": True, "saved_data": "full"}),
        ("Ascend", "2.7", {"op_debug_mode": 3}),
        ("Ascend", "2.10", {"level": "O2"}),
        ("Ascend", "seed", {"level": "O2", "input_output": 1, "saved_data": "full"}),
    ],
)
def test_a_planned_dump_is_that_of_a_run_that_looks_at_each_task(
    tmp_path, monkeypatch, planned, device, release, changes, make, steps
):
    ours, results, state = dumped(tmp_path / "one", device, release, make, steps, **changes)
    count = len(planned)
    monkeypatch.setattr(Kernels, "watched", lambda *_: None)
    theirs, expected, other = dumped(tmp_path / "two", device, release, make, steps, **changes)
    assert len(planned) == count
    assert count == 0 if changes.get("op_debug_mode") else count >= STEPS - 2
    assert state == other
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(results, expected, strict=True))
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []
    assert changes.get("op_debug_mode") or any("/out" in f"/{name}" and "execution" not in name for name in ours)


@pytest.mark.parametrize("device", ["CPU", "Ascend"])
def test_a_planned_run_ends_the_lives_of_the_same_tensors(tmp_path, monkeypatch, planned, device):
    """A tensor that lived on would keep its converted copy and its pages."""
    ended = []
    end = Binding.end

    def noted(self, slot):
        ended.append(slot.name)
        return end(self, slot)

    monkeypatch.setattr(Binding, "end", noted)
    dumped(tmp_path / "one", device, "2.10", Words, train)
    ours, made = ended[:], {id(graph): [slot.name for slot in graph._binding.plan.planned] for graph in planned}
    assert planned
    ended.clear()
    monkeypatch.setattr(Kernels, "watched", lambda *_: None)
    dumped(tmp_path / "two", device, "2.10", Words, train)
    # a watched graph begins and ends each planned tensor once when it is made
    assert sorted(ours) == sorted([*ended, *(name for names in made.values() for name in names)])


class Chosen(nn.Cell):
    """A result whose shape depends on values."""

    def construct(self, x):
        return ops.nonzero(x) * 2, ops.relu(x)


def choose(net):
    """Steps with more and fewer results."""
    for at in range(STEPS):
        first, second = net(ms.Tensor(np.array([[1, at % 3, 3], [at % 2, 0, -1]], np.float32)))
        yield first.asnumpy()
        yield second.asnumpy()


@pytest.mark.parametrize("device", ["CPU", "Ascend"])
def test_a_graph_whose_values_decide_shapes_has_no_planned_runs(tmp_path, planned, device):
    files, results, _ = dumped(tmp_path / "one", device, "2.10", Chosen, choose)
    assert planned == []
    for at, (first, second) in enumerate(zip(results[::2], results[1::2], strict=True)):
        x = np.array([[1, at % 3, 3], [at % 2, 0, -1]], np.float32)
        assert first.tolist() == (2 * np.argwhere(x)).tolist()
        assert second.tolist() == np.maximum(x, 0).tolist()
    assert len([name for name in files if "ReLU" in name and "output" in name]) == STEPS


def test_an_index_out_of_range_in_a_planned_run(tmp_path, monkeypatch, planned):
    """The kernel that stops is told of, with its inputs, as in a run that looks at each task."""

    class Net(nn.Cell):
        def construct(self, x, index):
            return ops.gather(ops.relu(x), index, 0)

    def steps(net):
        x = ms.Tensor(np.ones((3, 2), np.float32))
        for index in (0, 1, 2, 1, 7):
            try:
                yield net(x, ms.Tensor(np.array([index], np.int32))).asnumpy()
            except RuntimeError as error:
                yield np.array(str(error))

    ours, results, _ = dumped(tmp_path / "one", "Ascend", "2.10", Net, steps)
    count = len(planned)
    monkeypatch.setattr(Kernels, "watched", lambda *_: None)
    theirs, expected, _ = dumped(tmp_path / "two", "Ascend", "2.10", Net, steps)
    assert count >= STEPS - 2
    assert "Aicore kernel execute failed" in str(results[-1])
    assert all(np.array_equal(a, b) for a, b in zip(results, expected, strict=True))
    assert ours == theirs


def test_a_dump_that_is_only_counted_counts_every_step(tmp_path):
    """It counts for other configs beside its own, so that it needs the events of every task."""
    (tmp_path / "plan").mkdir()
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(config(tmp_path / "out")))
    settings = RunSettings(mindspore="2.10", quiet=True, plan=str(tmp_path / "plan"), plan_steps=STEPS, manifest=None)
    with use(RankContext()):
        session = Session(settings, environment={})
        Session.use(session)
        ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
        _dumping.ensure_dump(session, {"MINDSPORE_DUMP_CONFIG": str(file)})
        list(train(Words()))
        _dumping.finish_dump(session)
    (account,) = (tmp_path / "plan").glob("*.json")
    steps = dict(json.loads(account.read_text())["counts"][""]["steps"])
    files = [sum(amount["files"] for amount in steps[number].values()) for number in range(STEPS)]
    assert files == [files[0]] * STEPS
