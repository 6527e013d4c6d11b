"""Dynamic graph mode under a dump: the backward pass leaves files, what runs op by op leaves none. [seed 001]"""

import csv
import re

import numpy as np
import pytest

from dumpsim.codecs import irtext
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from tests.inprocess import dump

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
W = np.array([[1, 2, -1], [0, 3, 1]], np.float32)


class Net(nn.Cell):
    """exp(x w^T)."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2, weight_init=Tensor(W), has_bias=False)
        self.exp = ops.Exp()

    def construct(self, x):
        return self.exp(self.fc(x) * 0.5)


def steps(count=3):
    def run():
        ms.set_context(mode=ms.PYNATIVE_MODE)
        net = Net()
        gradient = ops.value_and_grad(net, 0, net.trainable_params())
        return [[t.asnumpy() for t in (value, of_x, *of_weights)] for value, (of_x, of_weights) in (
            gradient(Tensor(X + step)) for step in range(count)
        )]  # fmt: skip

    return run


def arrays(left, step, op_type, io, slot):
    """The file of one tensor of one step."""
    folder = left.root / "rank_0" / "Net" / "0" / str(step)
    found = sorted(folder.glob(f"{op_type}.*.{io}.{slot}.DefaultFormat.*.npy"))
    return [np.load(path) for path in found]


@pytest.mark.parametrize("mode", ["O0", "O1"])
def test_the_tree_of_a_backward_pass(tmp_path, monkeypatch, mode):
    left = dump(tmp_path, monkeypatch, mode, steps(), iteration="0|2", net_name="Net")
    assert left.error is None
    rank = left.root / "rank_0"
    assert sorted(path.name for path in (rank / "Net").iterdir()) == ["0"]
    assert sorted(path.name for path in (rank / "Net" / "0").iterdir()) == ["0", "2"]
    names = {path.name.split(".")[1] for path in left.tensors()}
    assert names == {
        "Gradients_Default_Grad_Exp_Mul-op0",
        "Expand__Muls_Mul-op0",  # by a number: composite, as in graph mode
        "Gradients_Default_fc-Dense_Grad_MatMul_MatMul-op0",
        "Gradients_Default_fc-Dense_Grad_MatMul_MatMul-op1",
    }
    (graph,) = rank.glob("graphs/ms_output_trace_code_graph_0.ir")
    shown = irtext.parse(graph.read_text())
    labels = [param.use_label for param in shown.params]
    assert len(set(labels)) == len(labels)
    assert all(re.fullmatch(r"Parameter_[0-9]+", label) for label in labels)
    (order,) = rank.glob("execution_order/ms_execution_order_graph_0.csv")
    rows = [row[0] for row in csv.reader(order.read_text().splitlines()[1:])]
    assert {row.replace("/", "_") for row in rows} == names


def test_the_numbers_of_a_backward_pass(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "O0", steps(), iteration="all", net_name="Net")
    for step, (value, of_x, of_w) in enumerate(left.result):
        x = X + step
        np.testing.assert_allclose(value, np.exp(x @ W.T / 2), rtol=1e-6)
        given = [array for slot in (0, 1) for array in arrays(left, step, "Mul", "input", slot)]
        assert any(np.array_equal(array, value) for array in given)  # the forward result, saved
        products = arrays(left, step, "MatMul", "output", 0)
        np.testing.assert_allclose(of_x, (value * 0.5) @ W, rtol=1e-6)
        np.testing.assert_allclose(of_w, (value * 0.5).T @ x, rtol=1e-6)
        assert any(np.array_equal(p, of_x) for p in products)
        assert any(np.array_equal(p, of_w) for p in products)


@pytest.mark.parametrize("release", ["2.7", "2.10"])
def test_other_releases_run_it_op_by_op(tmp_path, monkeypatch, release):
    left = dump(tmp_path, monkeypatch, "O0", steps(1), settings={"mindspore": release})
    assert left.error is None
    assert left.tensors() == []


def test_a_forward_pass_alone_leaves_nothing(tmp_path, monkeypatch):
    def forward():
        ms.set_context(mode=ms.PYNATIVE_MODE)
        Net()(Tensor(X))

    left = dump(tmp_path, monkeypatch, "O0", forward)
    assert left.error is None
    assert left.tensors() == []


def test_set_dump_marks_the_gradients_of_a_cell(tmp_path, monkeypatch):
    def marked():
        ms.set_context(mode=ms.PYNATIVE_MODE)
        net = Net()
        ms.set_dump(net.fc)
        ops.grad(net)(Tensor(X))

    left = dump(tmp_path, monkeypatch, "O0", marked, dump_mode=2)
    assert left.error is None
    assert {path.name.split(".")[1] for path in left.tensors()} == {"Gradients_Default_fc-Dense_Grad_MatMul_MatMul-op0"}


def test_training_steps_count_on(tmp_path, monkeypatch):
    def train():
        ms.set_context(mode=ms.PYNATIVE_MODE)
        w = Parameter(Tensor(X[0]), name="w")
        for step in range(3):
            _, of_w = ops.value_and_grad(lambda x: ops.square(x * w).sum(), 0, w)(Tensor(X + step))[1]
            w.set_data(Tensor(w.asnumpy() - 0.1 * of_w.asnumpy()))

    left = dump(tmp_path, monkeypatch, "O0", train, iteration="all", net_name="Net")
    assert left.error is None
    folders = sorted(path.name for path in (left.root / "rank_0" / "Net" / "0").iterdir())
    assert folders == ["0", "1", "2"]
    assert len({path.name.split(".")[1] for path in left.tensors()}) * 3 == len(left.files("*.output.0.*.npy"))


def test_whole_graph_dump_has_no_part_of_it(tmp_path, monkeypatch):
    left = dump(tmp_path, monkeypatch, "O2", steps())
    assert left.error is None
    assert left.tensors() == []
    assert "operators of graphs of another jit_level are not dumped" in " ".join(left.summary.notes)
