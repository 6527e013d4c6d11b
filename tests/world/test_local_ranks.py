"""Ranks of one process against processes, with the whole emulator: dump, Print, PYNATIVE, jit, seeds, faults."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from dumpsim.core.errors import DeviceError
from dumpsim.core.settings import RunSettings
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session
from dumpsim.world import launch

SCRIPT = '''
"""An unmodified training script: everything that it knows of ranks, it asks for."""
import sys

from dumpsim.core.settings import RunSettings
from dumpsim.emulate import install, seed

install()
seed(RunSettings())

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(8, 4)
        self.print = ops.Print()

    def construct(self, x):
        y = ops.relu(self.fc(x))
        self.print("sum", y.sum())
        return y


@ms.jit
def twice(x):
    return x * 2 + 1


def losses(net, *batch):
    train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    return [float(train(*batch).asnumpy()) for _ in range(3)]


imported = Net()


def main():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    ms.set_seed(7)
    init()
    rank = get_rank()
    batch = Tensor(np.random.rand(5, 8).astype(np.float32) + rank), Tensor(np.ones((5, 4), np.float32))
    print("rank", rank, "of", get_group_size(), losses(Net(), *batch), losses(imported, *batch))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    z = ops.relu(batch[0] - 1)
    print(float(z.sum().asnumpy()), float(twice(z).sum().asnumpy()), np.random.rand())
    return rank


if len(sys.argv) > 1:
    from dumpsim.world import launch

    assert launch(main, ranks=2) == [0, 1]
else:
    main()
'''


def tree(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_two_ranks_of_one_process_do_what_two_processes_do(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    outputs, trees = {}, {}
    for kind in ("local", "processes"):
        root, config = tmp_path / kind, tmp_path / f"{kind}.json"
        common = {"op_debug_mode": 0, "dump_mode": 0, "path": str(root), "net_name": "Net", "iteration": "all"}
        common |= {"saved_data": "full", "input_output": 0, "kernels": [], "support_device": [0, 1]}
        config.write_text(
            json.dumps(
                {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}},
            )
        )
        environment = {**os.environ, "MINDSPORE_DUMP_CONFIG": str(config)}
        for name in ("RANK_ID", "RANK_SIZE", "DEVICE_ID"):
            environment.pop(name, None)
        runs = [(["local"], {})]
        if kind == "processes":
            runs = [([], {"RANK_ID": str(rank), "RANK_SIZE": "2", "DEVICE_ID": str(rank)}) for rank in range(2)]
        started = [
            subprocess.Popen(
                [sys.executable, str(script), *arguments],
                cwd=tmp_path,
                env=environment | own,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for arguments, own in runs
        ]
        finished = [process.communicate() for process in started]
        assert [process.returncode for process in started] == [0] * len(runs), finished
        outputs[kind] = "".join(output for output, _ in finished)
        trees[kind] = tree(root)
    assert "rank 1 of 2" in outputs["local"]
    assert outputs["local"] == outputs["processes"]
    assert {path.partition("/")[0] for path in trees["local"]} == {"rank_0", "rank_1"}
    assert len(trees["local"]) > 100
    assert trees["local"].keys() == trees["processes"].keys()
    configs = {f"rank_{rank}/.dump_metadata/data_dump.json" for rank in range(2)}  # with the path of the dump
    assert configs < trees["local"].keys()
    for path in trees["local"].keys() - configs:
        assert trees["processes"][path] == trees["local"][path], path


def test_ranks_have_sessions_of_their_own(tmp_path):
    plan = tmp_path / "faults.json"
    plan.write_text('{"faults": [{"kind": "overflow", "op": "Neg", "value": 9, "rank": 1}]}')

    def step():
        session = Session.current()
        (result,) = session.run_op(find("Neg"), [np.ones(2, np.float32)])
        return session.rank, session.device.rank, session.device_id, session.seed, result.tolist()

    assert launch(step, ranks=3, settings=RunSettings(faults=str(plan), seed=5, quiet=True)) == [
        (0, 0, 0, 5, [-1, -1]),
        (1, 1, 1, 5, [9, -1]),
        (2, 2, 2, 5, [-1, -1]),
    ]


def test_a_rank_of_four_whose_kernel_fails_ends_the_launch(tmp_path):
    plan = tmp_path / "faults.json"
    plan.write_text('{"faults": [{"kind": "aicore_error", "op": "Neg", "rank": 2}]}')
    ended = []

    def step():
        session = Session.current()
        try:
            session.run_op(find("Neg"), [np.ones(2, np.float32)])
        finally:
            ended.append(session.rank)

    with pytest.raises(DeviceError, match="device_id=2") as caught:
        launch(step, ranks=4, settings=RunSettings(faults=str(plan), quiet=True))
    assert caught.value.__notes__ == ["raised in rank 2 of 4"]
    assert ended == [0, 1, 2]
