"""The order of files in time: in one thread from the second step on, as MindSpore 2.10 runs small networks on a CPU."""

import numpy as np
import pytest
from inprocess import dump

from dumpsim.frontends.mindspore import Tensor, nn, ops

X = np.array([0.5, 1, 2], np.float32)


class Fork(nn.Cell):
    """The execution order takes turns where a kernel has several users; a thread follows each to its end."""

    def construct(self, x):
        a = ops.exp(x)
        s = ops.sin(a)
        return ops.cos(s), ops.neg(s), ops.tanh(ops.abs(a))


@pytest.mark.parametrize(("mode", "later"), [("CPU", "Exp Sin Cos Neg Abs Tanh"), ("GPU", None)])
def test_later_steps_run_depth_first(tmp_path, monkeypatch, mode, later):
    net = Fork()
    left = dump(tmp_path, monkeypatch, mode, lambda: [net(Tensor(X)) for _ in range(3)][-1], iteration="all")
    assert left.error is None
    for got, expected in zip(left.result, (np.cos, lambda v: -v), strict=False):
        np.testing.assert_allclose(got.asnumpy(), expected(np.sin(np.exp(X))), rtol=1e-5)
    np.testing.assert_allclose(left.result[2].asnumpy(), np.tanh(np.exp(X)), rtol=1e-6)
    (table,) = left.files("ms_execution_order_graph_*.csv")
    order = [line.split("/")[-1].split("-")[0] for line in table.read_text().splitlines()[1:]]
    assert mode == "GPU" or order == ["Exp", "Sin", "Abs", "Tanh", "Cos", "Neg"]
    for step in range(3):
        files = sorted(left.files(f"0/{step}/*.output.0.*"), key=lambda path: path.name.split(".")[4])
        found = [path.name.split(".")[0] for path in files if not path.name.startswith("Parameter")]
        assert found == (later.split() if step and later else order)
