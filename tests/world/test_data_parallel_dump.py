"""Dumps of ranks: the reducer's operators, named as by MindSpore 2.10, and tensors that the script dumps itself."""

import json
from pathlib import Path

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn, ops
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.world import launch

RECORDED = Path(__file__).parents[2] / "fixtures" / "frontends" / "mindspore"
SETTINGS = RunSettings(quiet=True, manifest=None, mindspore="2.10")


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.d1 = nn.Dense(4, 3, weight_init="ones", bias_init="zeros")
        self.d2 = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")

    def construct(self, x):
        return self.d2(self.d1(x))


def train():
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_device("CPU")
    init()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5)).set_train()
    x = np.arange(8, dtype=np.float32).reshape(2, 4) + get_rank()
    loss = step(Tensor(x), Tensor(np.zeros((2, 2), np.float32)))
    return loss.asnumpy().item(), {each.name: each.asnumpy().tolist() for each in net.trainable_params()}


def test_the_reducer_is_dumped_as_by_mindspore(tmp_path):
    config = {
        "common_dump_settings": {
            "op_debug_mode": 0, "dump_mode": 0, "path": str(tmp_path), "net_name": "Net", "iteration": "all",
            "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0, 1],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }  # fmt: skip
    (tmp_path / "dump.json").write_text(json.dumps(config))
    environment = {"MINDSPORE_DUMP_CONFIG": str(tmp_path / "dump.json")}
    for rank, (loss, weights) in enumerate(launch(train, 2, settings=SETTINGS, environment=environment)):
        recorded = json.loads((RECORDED / f"data_parallel_{rank}.json").read_text())
        assert (loss, weights) == (recorded["loss"], recorded["weights"])
        root = tmp_path / f"rank_{rank}"
        dumped = root.glob("Net/0/0/*grad_reducer*.npy")
        assert sorted({".".join(path.name.split(".")[:2]) for path in dumped}) == recorded["reducer"]
        (order,) = (root / "execution_order").glob("ms_execution_order_graph_*.csv")
        # the same operators; MindSpore starts an AllReduce as soon as its gradient is there
        assert sorted(order.read_text().splitlines()[1:]) == sorted(recorded["order"])


class Dumping(nn.Cell):
    def construct(self, x):
        ops.tensordump("graph/{rank}/x", x)
        return x + 1


@pytest.mark.parametrize(("mode", "folder"), [(ms.PYNATIVE_MODE, "host"), (ms.GRAPH_MODE, "graph")])
def test_each_rank_dumps_tensors_under_its_own_name(tmp_path, monkeypatch, mode, folder):
    monkeypatch.chdir(tmp_path)

    def main():
        ms.set_context(mode=mode)
        init()
        x = Tensor(np.full(2, get_rank(), np.float32))
        for _ in range(2):
            if mode == ms.GRAPH_MODE:
                Dumping()(x)
            else:
                ops.tensordump("host/{rank}/x", x)
                ops.tensordump(str(tmp_path / "plain" / f"rank_{get_rank()}" / "y.npy"), x, "in")

    settings = RunSettings(quiet=True, manifest=None, overrides={"tensordump": "B"})
    launch(main, 2, settings=settings)
    for rank in range(2):
        files = sorted(path.name for path in (tmp_path / folder / f"rank{rank}").iterdir())
        numbers = [0, 2] if folder == "host" else [0, 1]
        assert files == [f"x_float32_{number}.npy" for number in numbers]
        for path in (tmp_path / folder / f"rank{rank}").iterdir():
            assert np.load(path).tolist() == [rank, rank]
    if folder == "host":
        assert sorted(path.name for path in (tmp_path / "plain" / "rank_1").iterdir()) == [
            f"y_float32_{number}.npy" for number in (1, 3)
        ]


def test_the_documented_generation_numbers_the_files_of_each_rank(tmp_path):
    def main():
        init()
        for name in ("a", "b.npy"):
            ops.tensordump(str(tmp_path / f"rank_{get_rank()}" / name), Tensor([1.0]))

    launch(main, 2, settings=RunSettings(quiet=True, manifest=None))
    for rank in range(2):  # the seed's names; a rank counts for itself
        assert sorted(path.name for path in (tmp_path / f"rank_{rank}").iterdir()) == ["0_a.npy", "1_b.npy"]
