"""DumpGradient and TensorDump in networks that are split over two ranks: values against one device."""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn, ops
from dumpsim.frontends.mindspore.communication import init
from dumpsim.frontends.mindspore.ops import operations as P  # noqa: N812 - as scripts call it
from dumpsim.world import launch

GENERATOR = np.random.default_rng(5)
X, Y, B = (GENERATOR.integers(-3, 4, (8, 8)).astype(np.float32) for _ in range(3))
SPLIT, ROWS = ((1, 2), (2, 1)), ((2, 1), (1, 1))


class Net(nn.Cell):
    def __init__(self, mode, path, second):
        super().__init__()
        self.first = P.MatMul().shard(SPLIT)
        self.second = P.MatMul().shard(second)
        self.dump = ops.DumpGradient()
        self.path, self.mode = path, mode

    def construct(self, x, y, b):
        out = self.dump(self.path + "/{rank}/g.npy", self.first(x, y), self.mode)
        return self.second(out, b)


class Gradient(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad = ops.GradOperation(get_all=True)

    def construct(self, x, y, b):
        return self.grad(self.net)(x, y, b)


# mode, strategy of the consumer -> shape of the gradient: that of the operator's own result, or of what the consumer
# reads [observed 2.10]
CASES = {
    ("in", SPLIT): (8, 8),
    ("out", SPLIT): (8, 4),
    ("in", ROWS): (8, 8),
    ("out", ROWS): (4, 8),
}


@pytest.mark.parametrize(("mode", "second"), CASES)
def test_a_gradient_is_saved_on_either_side_of_a_redistribution(tmp_path, mode, second):
    def main():
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.set_device("Ascend")
        init()
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", full_batch=True)
        return [out.asnumpy() for out in Gradient(Net(mode, str(tmp_path), second))(Tensor(X), Tensor(Y), Tensor(B))]

    whole = np.ones((8, 8), np.float32) @ B.T  # the gradient by the first product
    ranks = launch(main, 2, settings=RunSettings(quiet=True, manifest=None, overrides={"tensordump": "C"}))
    for place, expected in enumerate((whole @ Y.T, X.T @ whole)):  # a rank has the gradient by its part
        np.testing.assert_array_equal(ranks[0][place] + ranks[1][place], expected)
    for rank in range(2):
        saved = {path.name.partition("_float32")[0]: np.load(path) for path in (tmp_path / f"rank{rank}").iterdir()}
        name = "g_in" if mode == "in" else "g"
        assert list(saved) == [name]
        assert saved[name].shape == CASES[mode, second]
        half = slice(4 * rank, 4 * rank + 4)
        part = (slice(None), half) if second is SPLIT else (half, slice(None))
        np.testing.assert_array_equal(saved[name], whole if mode == "in" else whole[part])
