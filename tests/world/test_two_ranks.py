"""State of the front end that each rank of a launch has for itself; and a hundred ranks with a dump.

Two ranks against two processes, byte by byte: test_local_ranks.py.
"""

import json
import os
import sys

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim import migrator
from dumpsim.core.settings import RunSettings
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.task import Task, TaskKind
from dumpsim.frontends.mindspore import _dumping, _listener, nn, ops
from dumpsim.frontends.mindspore import dataset as ds
from dumpsim.frontends.mindspore.common.seed import get_seed
from dumpsim.frontends.mindspore.communication import GlobalComm, create_group, get_group_size, get_rank, init
from dumpsim.frontends.mindspore.dataset.queue import _queues
from dumpsim.runtime.session import Session
from dumpsim.world import current, launch

SETTINGS = RunSettings(quiet=True, manifest=None, seed=3)
X = np.ones((2, 3), np.float32)


class Meeting:
    """A meeting point, at which the ranks wait for each other."""

    def __init__(self):
        self.rendezvous = current().world.get(Scheduler).rendezvous(range(current().size), "meeting")


def meet():
    gate = current().world.get(Meeting).rendezvous.join(current().rank, lambda: None)
    device = Session.current().device
    device.stream(0).launch(
        Task(kind=TaskKind.HCCL, name="Meet", work=lambda task: gate.exchange(lambda _: None), gate=gate)
    )
    device.synchronize()


def in_turn(*steps):
    """Let both ranks take each step before one of them takes the next, and return what the steps give, by rank."""
    order = []

    def main():
        found = []
        for number, step in enumerate(steps):
            found.append(step(current().rank))
            order.append(number)
            meet()
        return found

    found = launch(main, ranks=2, settings=SETTINGS)
    assert order == [number for number in range(len(steps)) for _ in range(2)]
    return found


def test_context_and_seed():
    def change(rank):
        before = ms.get_context("max_call_depth"), get_seed(), ms.get_auto_parallel_context("device_num")
        before += ms.get_context("device_id"), ds.config.get_seed()
        ms.set_context(max_call_depth=100 + rank)
        ms.set_auto_parallel_context(device_num=2 + rank)
        ms.set_seed(rank)
        ds.config.set_seed(50 + rank)
        return before

    def look(rank):
        drawn = np.random.rand() == np.random.RandomState(rank).rand()
        settings = ms.get_context("max_call_depth"), ms.get_auto_parallel_context("device_num")
        return (*settings, get_seed(), ds.config.get_seed(), drawn)

    first, second = in_turn(change, look)
    assert first == [(1000, None, 1, 0, 3), (100, 2, 0, 50, True)]
    assert second == [(1000, None, 1, 1, 3), (101, 3, 1, 51, True)]
    assert (ms.get_context("max_call_depth"), get_seed()) == (1000, None)


def test_default_names_of_parameters():
    assert in_turn(lambda rank: [ms.Parameter(1).name for _ in range(2)]) == [[["Parameter#1", "Parameter#2"]]] * 2


def test_groups_and_queues():
    def enter(rank):
        init()
        create_group(f"of {rank}", [rank])
        data = ds.NumpySlicesDataset({"x": X}, shuffle=False).batch(1)
        queue = ms.train.DatasetHelper(data, dataset_sink_mode=True) if rank else None
        return get_rank(), get_group_size(), list(_queues()), queue

    (first,), (second,) = in_turn(enter)
    assert first[:3] == (0, 2, [])
    assert second[:3] == (1, 2, ["dataset_0"])
    assert not GlobalComm.INITED


def test_environment_directory_and_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    own = {name: os.environ.get(name) for name in ("RANK_ID", "MINE")}

    def change(rank):
        os.environ["MINE"] = str(rank)
        os.mkdir(f"of_{rank}")
        os.chdir(f"of_{rank}")
        sys.stdout.write(f"rank {rank}\n")

    def look(rank):
        return os.environ["RANK_ID"], os.environ["MINE"], os.path.basename(os.getcwd())

    assert in_turn(change, look) == [[None, ("0", "0", "of_0")], [None, ("1", "1", "of_1")]]
    assert os.getcwd() == str(tmp_path)
    assert {name: os.environ.get(name) for name in own} == own
    assert sorted(capsys.readouterr().out.splitlines()) == ["rank 0", "rank 1"]


def test_api_dumps(tmp_path):
    def begin(rank):
        ms.set_context(mode=ms.PYNATIVE_MODE)
        if rank:
            migrator.api_dump_init(nn.ReLU(), str(tmp_path))
            migrator.api_dump_start()
        return len(_listener.listeners())

    def run(rank):
        ops.exp(ms.Tensor(X))
        if rank:
            migrator.api_dump_stop()
        return migrator._active().dump is not None

    assert in_turn(begin, run) == [[0, False], [1, True]]
    info = (tmp_path / "rank1" / "mindspore_api_dump_info.pkl").read_text()
    assert "Functional_exp_0_forward_output" in info
    assert _listener.listeners() == ()


def test_dumps_end_with_their_ranks(tmp_path, monkeypatch):
    config = tmp_path / "dump.json"
    common = {"dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all", "input_output": 0}
    common |= {"kernels": [], "support_device": [0, 1]}
    config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(config))
    found = []

    class Net(nn.Cell):
        def construct(self, x):
            return ops.exp(x)

    def run(rank):
        ms.set_context(mode=ms.GRAPH_MODE)
        Net()(ms.Tensor(X + rank))
        found.append(_dumping.dump_of(Session.current()))

    in_turn(run)
    assert len({id(service) for service in found}) == 2
    for rank in range(2):
        (path,) = (tmp_path / "dump" / f"rank_{rank}" / "Net" / "0" / "0").glob("Exp.*.output.0.*.npy")
        np.testing.assert_array_equal(np.load(path), np.exp(X + rank))


@pytest.mark.slow
def test_a_hundred_ranks_of_lenet_with_a_dump(tmp_path, monkeypatch):
    from dumpsim.emulate import install

    finder = install()
    try:
        from dumpsim.examples.lenet import Digits, LeNet5
    finally:
        sys.meta_path.remove(finder)
    config = tmp_path / "dump.json"
    common = {"dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "LeNet5", "iteration": "0", "input_output": 0}
    common |= {"kernels": [], "support_device": list(range(100)), "saved_data": "statistic"}
    config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(config))

    def step():
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.set_seed(1)
        init()
        pictures = Digits(get_rank(), get_rank() + 4)
        x, y = ms.Tensor(pictures.images[:4]), ms.Tensor(pictures.labels[:4])
        net = nn.WithLossCell(LeNet5(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
        train = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
        return float(train(x, y).asnumpy())

    losses = launch(step, ranks=100, settings=SETTINGS)
    assert len(set(losses)) == 100
    rows = [(tmp_path / "dump" / f"rank_{rank}/LeNet5/0/0/statistic.csv").read_text() for rank in range(100)]
    operators = [[line.split(",")[:2] for line in text.splitlines()] for text in rows]
    assert len(operators[0]) > 40
    assert all(each == operators[0] for each in operators)
    assert len(set(rows)) == 100  # other pictures, other statistics
