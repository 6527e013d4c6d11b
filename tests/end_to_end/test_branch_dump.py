"""Dumps of networks with branches: which kernel graph has which operators, as MindSpore 2.10 cut them on the CPU."""

import csv

import numpy as np
import pytest
from inprocess import dump

from dumpsim.frontends.mindspore import Tensor, nn, ops

X, Y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)


class DeadSum(nn.Cell):
    """A sum that nobody uses, and the same sum in a branch."""

    def construct(self, x, y, b1, b2):
        z = ops.addn([x, y, y])
        if b1 < b2:
            z = ops.addn([x, y, y])
        else:
            z = ops.addn([x, x, y])
        return z


class EqualParts(nn.Cell):
    """Values in front of a branch that its sides and the code after it compute again; one of them is dead."""

    def construct(self, x, y, b1, b2):
        a = ops.exp(x)
        d = ops.log(y)
        if b1 < b2:
            z = ops.exp(x) + ops.log(y)
        else:
            z = ops.log(y) - x
        d = ops.log(y)  # noqa: F841
        return z + a + ops.exp(x)


@pytest.mark.parametrize("mode", ["CPU", "GPU", "O0"])
@pytest.mark.parametrize("then", [True, False])
@pytest.mark.parametrize(("net", "graphs", "run", "value"), [
    (DeadSum, ["Less", "AddN", "AddN"], {True: {"0", "1"}, False: {"0", "2"}}, {True: X + 2 * Y, False: 2 * X + Y}),
    (
        EqualParts,
        ["Exp Less", "Add Add", "Add Exp Log", "Log Sub"],
        {True: {"0", "1", "2"}, False: {"0", "1", "3"}},
        {True: 3 * np.exp(X) + np.log(Y), False: np.log(Y) - X + 2 * np.exp(X)},
    ),
])  # fmt: skip
def test_a_branch_computes_for_itself(tmp_path, monkeypatch, mode, then, net, graphs, run, value):
    bounds = [Tensor(np.float32(n)) for n in ((1, 2) if then else (2, 1))]
    left = dump(tmp_path, monkeypatch, mode, lambda: net()(Tensor(X), Tensor(Y), *bounds), iteration="0")
    assert left.error is None
    np.testing.assert_allclose(left.result.asnumpy(), value[then], rtol=1e-6)
    tables = left.files("ms_execution_order_graph_*.csv")
    found = []
    for path in tables:
        rows = list(csv.reader(path.read_text().splitlines()))[1:]
        found.append(
            " ".join(sorted(cell.rsplit("/", 1)[1].split("-")[0] for row in rows for cell in row if "/" in cell))
        )
    assert found == graphs
    folders = {path.parent.parent.name for path in left.tensors()}
    assert folders <= run[then]
    if mode != "O0":  # there, files of all graphs go to the first one
        assert max(run[then]) in folders


def test_the_history_stands_by_the_graph_of_the_first_dumped_kernel(tmp_path, monkeypatch):
    """Also where that graph is not the network's first. [spec vendor 2.12]"""
    bounds = [Tensor(np.float32(n)) for n in (1, 2)]
    changes = {"iteration": "0", "dump_mode": 1, "kernels": ["Default/AddN-op0"]}
    left = dump(tmp_path, monkeypatch, "CPU", lambda: DeadSum()(Tensor(X), Tensor(Y), *bounds), **changes)
    assert left.error is None
    assert [path.name for path in left.files("ms_global_execution_order_graph_*.csv")] == [
        "ms_global_execution_order_graph_1.csv"
    ]
