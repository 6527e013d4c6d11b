"""Dumps of ranks that are processes, against those of ranks of one process."""

import hashlib
import json
import os
import time
from dataclasses import replace

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import CollectiveError, DeviceError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.frontends.mindspore.communication import create_group, get_rank, init
from dumpsim.runtime.session import Session
from dumpsim.world import launch
from tests.world.test_data_parallel import train

QUIET = RunSettings(quiet=True, manifest=None, seed=3)


def inject(*faults):
    from dumpsim.device.faults import make_plan

    Session.current().inject(make_plan(faults))


class Sums(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = ops.AllReduce()
        self.second = ops.AllGather()

    def construct(self, x):
        return self.second(self.first(ops.exp(x)) * 2)


def tree_hash(path):
    """Of all files but the copy of the config, which has the path in it."""
    found = hashlib.sha256()
    for directory, _, names in sorted(os.walk(path)):
        for name in sorted(set(names) - {"data_dump.json"}):
            file = os.path.join(directory, name)
            with open(file, "rb") as content:
                found.update(os.path.relpath(file, path).encode() + b"\0" + content.read())
    return found.hexdigest()


def sums():
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    net = Sums()
    for step in range(2):
        net(ms.Tensor(np.arange(4, dtype=np.float32) + get_rank() + step))


class Crossed(nn.Cell):
    """Collectives of two groups, and messages, beside computation that does not wait for them."""

    def __init__(self, side):
        super().__init__()
        rank = get_rank()
        self.all = ops.AllReduce()
        self.side = ops.AllReduce(group=side)
        self.send = ops.Send(sr_tag=0, dest_rank=(rank + 1) % 4)
        self.receive = ops.Receive(sr_tag=0, src_rank=(rank - 1) % 4, shape=[4], dtype=ms.float32)

    def construct(self, x):
        y = self.all(ops.exp(x))
        z = self.side(ops.sin(x))
        sent = self.send(ops.cos(x))
        got = self.receive(sent)
        for _ in range(3):
            x = ops.tanh(x) + 1
        return x + self.side(y) * self.all(z) + got


def groups():
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    side = f"side {get_rank() % 2}"
    create_group(side, [get_rank() % 2, get_rank() % 2 + 2])
    net = Crossed(side)
    inputs = [ms.Tensor(np.arange(4, dtype=np.float32) / 8 + get_rank() + step) for step in range(2)]
    return [net(x).asnumpy().tolist() for x in inputs]


def lenet():
    loss, gradients, _ = train(ms.GRAPH_MODE)
    return loss, [hashlib.sha256(value.tobytes()).hexdigest() for value in gradients.values()]


def dump(main, ranks, root, monkeypatch, **settings):
    """Run a program on ranks with a dump of all; return what it gives."""
    common = {"dump_mode": 0, "path": str(root / "dump"), "net_name": "Net", "iteration": "all", "input_output": 0}
    common |= {"kernels": [], "support_device": list(range(ranks))}
    root.mkdir()
    (root / "dump.json").write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(root / "dump.json"))
    transport = settings.pop("transport", "local")
    return launch(main, ranks, transport=transport, settings=replace(QUIET, **settings))


@pytest.mark.parametrize(("main", "ranks", "files"), [(sums, 3, 12), (lenet, 2, 100), (groups, 4, 40)])
def test_the_same_dump_tree(main, ranks, files, tmp_path, monkeypatch):
    ways = [{}, {"transport": "process"}, {"schedule": "reverse"}, {"schedule": "random:1"}]
    results = [dump(main, ranks, tmp_path / str(number), monkeypatch, **way) for number, way in enumerate(ways)]
    assert all(result == results[0] for result in results)
    trees = [tmp_path / str(number) / "dump" for number in range(len(ways))]
    assert len(list(trees[0].rglob("*.npy"))) > files
    assert len({tree_hash(tree) for tree in trees}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("main", [lenet, groups])
def test_the_same_dump_tree_for_twenty_orders_of_turns(main, tmp_path, monkeypatch):
    found = set()
    for seed in range(20):
        dump(main, 4, tmp_path / str(seed), monkeypatch, schedule=f"random:{seed}")
        found.add(tree_hash(tmp_path / str(seed) / "dump"))
    assert len(found) == 1


@pytest.mark.parametrize("transport", ["local", "process"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_rank_killed_at_each_collective(transport, nth, tmp_path, monkeypatch):
    common = {"dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all", "input_output": 0}
    common |= {"kernels": [], "support_device": [0, 1, 2]}
    (tmp_path / "dump.json").write_text(
        json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}})
    )
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(tmp_path / "dump.json"))

    def main():
        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        inject({"kind": "kill", "rank": 1, "nth": nth})
        net = Sums()
        try:
            for _ in range(2):
                net(ms.Tensor(np.ones(4, np.float32)))
        except CollectiveError as error:
            (tmp_path / f"told_{get_rank()}").write_text(f"{error.code} {error.rank} {error}")
            raise

    start = time.monotonic()
    with pytest.raises(DeviceError, match="rank 1: its process was killed by SIGKILL") as caught:
        launch(main, 3, transport=transport, settings=QUIET)
    assert time.monotonic() - start < 60
    assert "raised in rank 1 of 3" in caught.value.__notes__
    told = [(tmp_path / f"told_{rank}").read_text() for rank in (0, 2)]
    assert all(text.startswith(("EI0002 1 ", "EI0006 1 ")) for text in told)
    assert all("rank 1: its process was killed by SIGKILL" in text for text in told)
    for path in (tmp_path / "dump").rglob("*"):
        assert ".dumpsim-part" not in path.name
        if path.suffix == ".npy":
            np.load(path)  # whole
