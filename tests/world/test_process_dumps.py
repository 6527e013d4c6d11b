"""Dumps of ranks that are processes, against those of ranks of one process."""

import hashlib
import json
import os
import re
import time

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import CollectiveError, DeviceError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.frontends.mindspore.communication import get_rank, init
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
    found = hashlib.sha256()
    for directory, _, names in sorted(os.walk(path)):
        for name in sorted(names):
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


def lenet():
    loss, gradients, _ = train(ms.GRAPH_MODE)
    return loss, [hashlib.sha256(value.tobytes()).hexdigest() for value in gradients.values()]


@pytest.mark.parametrize(("main", "ranks", "files"), [(sums, 3, 12), (lenet, 2, 100)])
def test_the_same_dump_tree(main, ranks, files, tmp_path, monkeypatch):
    trees, results = [], []
    for transport in ("local", "process"):
        root = tmp_path / transport / "dump"
        common = {"dump_mode": 0, "path": str(root), "net_name": "Net", "iteration": "all", "input_output": 0}
        common |= {"kernels": [], "support_device": list(range(ranks))}
        config = tmp_path / transport / "dump.json"
        config.parent.mkdir()
        config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(config))
        results.append(launch(main, ranks, transport=transport, settings=QUIET))
        trees.append(root)
    assert results[0] == results[1]
    names = [sorted(tree.rglob("*.npy"), key=without_time) for tree in trees]
    assert len(names[0]) > files
    assert [without_time(path.relative_to(trees[0])) for path in names[0]] == [
        without_time(path.relative_to(trees[1])) for path in names[1]
    ]
    assert [path.read_bytes() for path in names[0]] == [path.read_bytes() for path in names[1]]
    if main is sums:  # one chain of tasks: the times do not depend on who waits for whom
        assert tree_hash(trees[0]) == tree_hash(trees[1])


def without_time(path):
    return re.sub(r"[.]1700000[0-9]+[.]", ".", str(path))


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
