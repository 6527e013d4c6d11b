"""set_dump at O2: a fused operator loses its mark, as the documents say, and the run says which node fused it."""

import json

import numpy as np
import pytest
from dumprun import config
from inprocess import dump

from dumpsim.frontends.mindspore import Tensor, nn, ops, set_dump
from dumpsim.modes.configfile import check_all
from dumpsim.modes.profile import find

X = Tensor(np.ones((1, 3, 4, 4), np.float32))


class Net(nn.Cell):
    """The documents' own example: a convolution and its activation."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, has_bias=False)
        self.relu = ops.ReLU()
        self.softmax = ops.Softmax()

    def construct(self, x):
        return self.softmax(self.relu(self.conv(x)))


def run(tmp_path, monkeypatch, mode, *marked):
    def steps():
        net = Net()
        for name in marked:
            set_dump(getattr(net, name))
        for _ in range(2):
            net(X)

    return dump(tmp_path, monkeypatch, mode, steps, dump_mode=2, iteration="all")


@pytest.mark.parametrize(("marked", "lost"), [
    (["relu"], ["Default/ReLU-op0"]),
    (["conv"], ["Default/conv-Conv2d/Conv2D-op0"]),
    (["conv", "relu"], ["Default/conv-Conv2d/Conv2D-op0", "Default/ReLU-op0"]),
])  # fmt: skip
def test_a_fused_operator_is_not_dumped_and_said_so_once(tmp_path, monkeypatch, capsys, marked, lost):
    left = run(tmp_path, monkeypatch, "O2", *marked)
    assert left.error is None
    assert left.tensors() == []
    fused = "Default/conv-Conv2d/Conv2D-op0Default/ReLU-op0"
    texts = [f"the mark of set_dump on {name} is lost: {fused} fused it and is not dumped" for name in lost]
    told = [note for note in left.summary.notes if "is lost" in note]
    assert told == texts
    err = capsys.readouterr().err
    assert [err.count(text) for text in texts] == [1] * len(texts)


def test_an_operator_that_stands_alone_keeps_its_mark(tmp_path, monkeypatch):
    left = run(tmp_path, monkeypatch, "O2", "softmax")
    assert left.types() == {"SoftmaxV2"}
    assert not [note for note in left.summary.notes if "is lost" in note]


def test_kernel_by_kernel_nothing_is_fused(tmp_path, monkeypatch):
    left = run(tmp_path, monkeypatch, "O0", "relu", "conv")
    assert left.types() == {"Conv2D", "ReLU"}
    assert not [note for note in left.summary.notes if "is lost" in note]


@pytest.mark.parametrize(("device", "mode", "warned"), [
    ("ascend_o2", 2, True), ("ascend_ge", 2, True), ("ascend_o2", 0, False), ("ascend_o0", 2, False),
])  # fmt: skip
def test_check_warns_of_set_dump_at_o2(tmp_path, device, mode, warned):
    document = config(tmp_path, dump_mode=mode)
    if device != "ascend_o0":
        del document["e2e_dump_settings"]
    found = check_all(json.dumps(document).encode(), {}, find("seed", device))
    assert not [finding for finding in found if finding.level == "error"]
    assert [finding.level for finding in found if finding.code == "DS-CFG-057"] == ["warning"] * warned
