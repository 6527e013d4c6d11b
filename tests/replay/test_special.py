"""NaN, infinities and zeros in dumps of a CPU, whose kernels treat them otherwise than an accelerator's."""

import numpy as np

import dumpsim
from dumpsim.frontends.mindspore import Tensor, nn, ops
from tests.inprocess import dump

X = np.float32([[np.nan, 1, 2, -3], [0, 100, -3, 0]])
Y = np.float32([[0, 0, 1, -0.0], [1, np.nan, 3, 0]])


class Special(nn.Cell):
    def construct(self, x, y):
        least = ops.ReduceMax()(x, 1)
        loss = ops.cross_entropy(x, Tensor(np.int32([0, 1])))
        return ops.relu(x), ops.maximum(x, y), ops.div(x, y), ops.softmax(x), ops.clamp(x, 0.0, 1.0), least, loss


def verdicts(tmp_path, monkeypatch, profile, **settings):
    run = dump(tmp_path, monkeypatch, profile, lambda: Special()(Tensor(X), Tensor(Y)), settings=settings)
    assert run.error is None
    return run, {row.op_type: row.verdict for row in dumpsim.replay(run.root)}


def test_no_operator_of_either_is_suspect(tmp_path, monkeypatch):
    for profile, settings in (("CPU", {"mindspore": "2.10"}), ("O0", {})):
        folder = tmp_path / profile
        folder.mkdir()
        _, found = verdicts(folder, monkeypatch, profile, **settings)
        assert {"ReLU", "Maximum", "Div", "Softmax", "ReduceMax"} <= set(found)
        assert set(found.values()) == {"ok"}


def test_what_the_cpu_does_is_suspect_on_an_accelerator(tmp_path, monkeypatch):
    run, _ = verdicts(tmp_path, monkeypatch, "O0")
    (path,) = run.root.rglob("ReLU.*output.0*.npy")
    values = np.load(path)
    assert np.isnan(values[0, 0])
    values[0, 0] = 0  # as on the CPU
    np.save(path, values)
    assert [row.op_type for row in dumpsim.replay(run.root).suspects] == ["ReLU"]
