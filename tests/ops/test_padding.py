"""Padding: zeros and mirrors, their gradients and their errors, as real MindSpore 2.10 has them."""

import numpy as np
import pytest

import dumpsim
import dumpsim.frontends.mindspore as ms
from dumpsim.frontends.mindspore import Tensor, nn, ops
from tests.inprocess import dump

MODES = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}


class Weighed(nn.Cell):
    """The sum of the squares of what a cell makes, each with a weight."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def construct(self, x, weights):
        return ops.ReduceSum()(ops.square(self.cell(x)) * weights)


def drawn(seed, mode):
    """A tensor and widths that fit it."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 5, rng.integers(1, 5))
    top = np.full(shape.size, 3) if mode == "CONSTANT" else shape - (mode == "REFLECT")
    widths = tuple((int(rng.integers(0, n + 1)), int(rng.integers(0, n + 1))) for n in top)
    return rng.standard_normal(shape).astype(np.float32), widths, rng


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("run", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_values_and_gradients_are_those_of_numpy(run, mode, seed):
    """Random cases of real 2.10 were equal to the bit: 60 results, 60 gradients."""
    x, widths, rng = drawn(seed, mode)
    ms.set_context(mode=run)
    cell = nn.Pad(widths, mode)
    padded = np.pad(x, widths, MODES[mode])
    np.testing.assert_array_equal(cell(Tensor(x)).asnumpy(), padded)
    weights = rng.standard_normal(padded.shape).astype(np.float32)
    source = np.pad(np.arange(1, x.size + 1).reshape(x.shape), widths, MODES[mode]).ravel()  # 0: none
    slopes = np.bincount(source, (2 * padded * weights).ravel(), x.size + 1)[1:].reshape(x.shape)
    found = ms.grad(Weighed(cell))(Tensor(x), Tensor(weights))
    np.testing.assert_allclose(found.asnumpy(), slopes, rtol=1e-5, atol=1e-6)


def mirrored(paddings, mode="REFLECT", kind=None):
    return lambda: ops.MirrorPad(mode)(X, Tensor(paddings) if kind is None else Tensor(paddings, kind))


X = Tensor(np.arange(9, dtype=np.float32).reshape(3, 3))
NO_MORE = "For 'MirrorPad', paddings must be no greater than the dimension size: "
OTHER = "For 'Pad', the length of 'paddings' must be equal to the rank of 'input_x', but got"
REFUSED = [
    (lambda: ops.Pad(((1, 1),))(X), f"{OTHER} 1 vs 2"),
    (lambda: nn.Pad(((1, 1), (2, 2), (0, 0)))(X), f"{OTHER} 3 vs 2"),
    (
        lambda: nn.Pad(((0, 0), (-1, 0)))(X),
        "For 'Pad', all elements of 'paddings' must be >= 0, but got paddings[1][0] = -1, paddings[1][1] = 0",
    ),
    (
        lambda: ops.Pad(((1, 1, 1), (1, 1, 1)))(X),
        "For 'Pad', the shape of 'paddings' must be (2, 2), but got paddings.shape[1] = 3",
    ),
    (lambda: ops.Pad([[1, 1]]), "For 'Pad', the type of 'paddings' should be 'tuple', but got type 'list'."),
    (lambda: nn.Pad([[1, 1]]), "For 'Pad', the type of 'paddings' must be tuple, but got list."),
    (lambda: nn.Pad(((0, 0),) * 5), "For 'Pad', only 'paddings' up to 4 dims is supported, but got 5."),
    (lambda: nn.Pad(((1,),)), "For 'Pad', the dimension of 'paddings' must be (n, 2), but got ((1,),)."),
    (
        lambda: nn.Pad(((1, 1),), "EDGE"),
        "For 'Pad', the 'mode' must be str and must be in '['CONSTANT', 'REFLECT', 'SYMMETRIC']', but got 'EDGE'.",
    ),
    (
        lambda: ops.MirrorPad("EDGE"),
        "For 'MirrorPad', the 'mode' must be str and must be in '['REFLECT', 'SYMMETRIC']', but got 'EDGE'.",
    ),
    (mirrored([[3, 1], [0, 0]]), f"{NO_MORE}[3], [1] not less than [3]"),
    (mirrored([[4, 1], [0, 0]], "SYMMETRIC"), f"{NO_MORE}[4], [1] greater than [3]"),
    (mirrored([[1, 1]]), "For 'MirrorPad', paddings.shape[0] must equal to input's rank, but got 1"),
    (mirrored([1, 1]), "For 'MirrorPad', paddings must be equal to 2 dims, but got 1"),
    (mirrored([[1] * 3] * 2), "For 'MirrorPad', paddings must be a matrix with 2 columns, but got 3"),
    (mirrored([[-1, 5], [0, 0]]), "For 'MirrorPad', all elements of paddings must be >= 0."),
    (
        mirrored([[1, 1], [1, 1]], kind=ms.float32),
        "For primitive[MirrorPad], the input argument[paddings] must be a type of {Tensor[Int32], Tensor[Int64]}, "
        "but got Tensor[Float32].",
    ),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_errors_are_those_of_real_2_10(call, text):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == text


def test_a_dump_names_the_nodes_as_real_2_10_and_replay_recomputes_them(tmp_path, monkeypatch):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Pad(((1, 1), (2, 2)), "REFLECT"), nn.Pad(((0, 1), (2, 0)), "SYMMETRIC")
            self.c, self.d = nn.Pad(((0, 1), (2, 0))), nn.Dense(11, 1)

        def construct(self, x):
            return (self.d(self.c(self.b(self.a(x)))) * 2).sum()

    x = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    run = dump(tmp_path, monkeypatch, "CPU", lambda: ms.grad(Net())(Tensor(x)), settings={"mindspore": "2.10"})
    assert run.error is None
    names = [path.name.split(".") for path in run.tensors() if "Pad" in path.name]
    grad = "Gradients_Default_Grad_MirrorPad_MirrorPadGrad-op"
    pads = [("Slice", "Gradients_Default_Grad_Pad_Slice-op0", n) for n in ("Float32", "Int64", "Int64", "Float32")]
    mirrors = [("MirrorPadGrad", grad + at, kind) for at in "01" for kind in ("Float32", "Int64", "Float32")]
    assert [(name[0], name[1], name[-2]) for name in names] == [*pads, *mirrors]
    entry = next(one for one in dumpsim.open(run.root).filter(op_type="MirrorPadGrad", io="input", slot=1))
    assert entry.array().tolist() == [[0, 1], [2, 0]]
    verdicts = {row.op_name.rpartition("/")[2]: row.verdict for row in dumpsim.replay(run.root)}
    assert verdicts["MirrorPadGrad-op0"] == verdicts["MirrorPadGrad-op1"] == verdicts["Slice-op0"] == "ok"
