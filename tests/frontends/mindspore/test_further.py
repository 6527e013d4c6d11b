"""Functions and primitives with settings, compared with numpy, in graphs and op by op."""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Parameter, Tensor, context, nn, ops
from dumpsim.frontends.mindspore.ops import operations as P  # noqa: N812 - the vendor's spelling
from dumpsim.runtime.session import Session

RNG = np.random.RandomState(5)
X, Y = (RNG.randn(4, 6).astype(np.float32) for _ in range(2))
IMAGE = RNG.randn(1, 8, 2, 3).astype(np.float32)


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"], autouse=True)
def mode(request):
    session = Session(RunSettings(quiet=True), environment={})
    Session.use(session)
    context.set_context(mode=request.param, device_target="CPU")
    session.configure(target="CPU")
    return request.param


class Net(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *tensors):
        return self.function(*tensors)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def shuffled(x):
    return x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)


CASES = {
    "celu": (lambda x: ops.celu(x, 0.5), (X,), np.maximum(X, 0) + np.minimum(0.5 * np.expm1(X / 0.5), 0)),
    "glu": (lambda x: ops.glu(x), (X,), X[:, :3] * sigmoid(X[:, 3:])),
    "hardshrink": (lambda x: ops.hardshrink(x, 0.7), (X,), np.where(np.abs(X) <= 0.7, 0, X)),
    "softshrink": (lambda x: ops.softshrink(x), (X,), np.sign(X) * np.maximum(np.abs(X) - 0.5, 0)),
    "logit": (lambda x: ops.logit(x, 0.1), (X,), np.log(np.clip(X, 0.1, 0.9) / (1 - np.clip(X, 0.1, 0.9)))),
    "isclose": (lambda x, y: ops.isclose(x, y, atol=0.5), (X, Y), np.abs(X - Y) <= 0.5 + 1e-5 * np.abs(Y)),
    "nan_to_num": (lambda x: ops.nan_to_num(x, 1.5), (np.float32([np.nan, 2]),), np.float32([1.5, 2])),
    "roll": (lambda x: ops.roll(x, (1, -2), (0, 1)), (X,), np.roll(X, (1, -2), (0, 1))),
    "P.Roll": (lambda x: P.Roll(3, 1)(x), (X,), np.roll(X, 3, 1)),
    "reverse_sequence": (
        lambda x, n: ops.reverse_sequence(x, n, 1), (X, np.int32([0, 2, 6, 1])),
        np.stack([X[0], [*X[1, 1::-1], *X[1, 2:]], X[2, ::-1], X[3]]),
    ),
    "repeat_interleave": (lambda x: ops.repeat_interleave(x, 3, 1), (X,), np.repeat(X, 3, 1)),
    "repeat_interleave.flat": (lambda x: ops.repeat_interleave(x, 2), (X,), np.repeat(X, 2)),
    "pixel_shuffle": (lambda x: ops.pixel_shuffle(x, 2), (IMAGE,), shuffled(IMAGE)),
    "interpolate": (
        lambda x: ops.interpolate(x, scale_factor=2.0), (IMAGE,), IMAGE.repeat(2, axis=2).repeat(2, axis=3),
    ),
    "index_select": (lambda x, i: ops.index_select(x, 1, i), (X, np.int32([5, 0])), X[:, [5, 0]]),
    "lerp": (lambda x, y: ops.lerp(x, y, 0.25), (X, Y), X + 0.25 * (Y - X)),
    "xlogy": (lambda x, y: ops.xlogy(x, y), (X, np.abs(Y)), X * np.log(np.abs(Y))),
    "hypot": (lambda x, y: ops.hypot(x, y), (X, Y), np.hypot(X, Y)),
    "einsum": (lambda x, y: ops.einsum("ij,kj->ik", x, y), (X, Y), X @ Y.T),
    "P.Einsum": (lambda x, y: P.Einsum("ij,ij->j")((x, y)), (X, Y), (X * Y).sum(0)),
    "addmm": (
        lambda x, y: ops.addmm(x, x, y, beta=2.0, alpha=0.5), (X[:, :4], Y[:, :4]),
        2 * X[:, :4] + X[:, :4] @ Y[:, :4] / 2,
    ),
    "outer": (lambda x, y: ops.outer(x, y), (X[0], Y[1]), np.outer(X[0], Y[1])),
    "P.Conv3D": (
        lambda x, w: P.Conv3D(2, 1)(x, w), (IMAGE[:, :, None], np.ones((2, 8, 1, 1, 1), "f")),
        IMAGE[:, :, None].sum(1, keepdims=True).repeat(2, 1),
    ),
    "ravel": (lambda x: ops.ravel(x), (X,), X.ravel()),
    "moveaxis": (lambda x: ops.moveaxis(x, (0, 1), (-1, 0)), (IMAGE,), np.moveaxis(IMAGE, (0, 1), (-1, 0))),
    "flips": (lambda x: ops.flipud(ops.fliplr(x)), (X,), X[::-1, ::-1]),
    "vstack": (lambda x, y: ops.vstack((x, y)), (X, Y[0]), np.vstack([X, Y[0]])),
    "hstack": (lambda x, y: ops.hstack((x, y)), (X, Y), np.hstack([X, Y])),
    "hstack.vectors": (lambda x, y: ops.hstack((x, y)), (X[0], Y[0]), np.hstack([X[0], Y[0]])),
    "trace": (lambda x: ops.trace(x), (X,), np.trace(X)),
    "softmin": (lambda x: ops.softmin(x), (X,), np.exp(-X) / np.exp(-X).sum(-1, keepdims=True)),
    "pixel_unshuffle": (lambda x: ops.pixel_unshuffle(ops.pixel_shuffle(x, 2), 2), (IMAGE,), IMAGE),
    "cosine_similarity": (
        lambda x, y: ops.cosine_similarity(x, y), (X, Y),
        (X * Y).sum(1) / np.linalg.norm(X, axis=1) / np.linalg.norm(Y, axis=1),
    ),
    "huber_loss": (
        lambda x, y: ops.huber_loss(x, y, "sum", 0.5), (X, Y),
        np.where(np.abs(X - Y) < 0.5, (X - Y) ** 2 / 2, 0.5 * (np.abs(X - Y) - 0.25)).sum(),
    ),
    "margin_ranking_loss": (
        lambda x, y, t: ops.margin_ranking_loss(x, y, t, 0.2), (X, Y, np.sign(Y[::-1])),
        np.maximum(0, -np.sign(Y[::-1]) * (X - Y) + 0.2).mean(),
    ),
    "P.DepthToSpace": (lambda x: P.DepthToSpace(2)(P.SpaceToDepth(2)(x)), (RNG.rand(1, 2, 4, 6).astype("f"),), None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_numpy(name):
    function, operands, expected = CASES[name]
    out = Net(function)(*(Tensor(operand) for operand in operands)).asnumpy()
    np.testing.assert_allclose(out, operands[0] if expected is None else expected, rtol=2e-5, atol=1e-6)


class Scatter(nn.Cell):
    """Write rows of its Parameter."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.table = Parameter(Tensor(X), name="table")

    def construct(self, index, rows):
        return self.function(self.table, index, rows)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda p, i, u: ops.scatter_add(p, i, u), lambda t, u: t + u),
        (lambda p, i, u: ops.scatter_sub(p, i, u), lambda t, u: t - u),
        (lambda p, i, u: ops.scatter_max(p, i, u), np.maximum),
        (lambda p, i, u: P.ScatterMul()(p, i, u), lambda t, u: t * u),
        (lambda p, i, u: P.ScatterUpdate()(p, i, u), lambda t, u: u),
        (lambda p, i, u: ops.scatter_nd_add(p, ops.expand_dims(i, 1), u), lambda t, u: t + u),
        (lambda p, i, u: P.IndexAdd(0)(p, i, u), lambda t, u: t + u),
    ],
)
def test_scatters_write_the_parameter(function, expected):
    net = Scatter(function)
    rows = [3, 1]
    out = net(Tensor(np.int32(rows)), Tensor(Y[:2]))
    wanted = X.copy()
    wanted[rows] = expected(X[rows], Y[:2])
    np.testing.assert_allclose(net.table.asnumpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(out.asnumpy(), wanted, rtol=1e-6)


def test_masked_select_has_memory_for_all_elements(mode):
    out = Net(lambda x, y: ops.masked_select(x, x > y))(Tensor(X), Tensor(Y))
    np.testing.assert_array_equal(out.asnumpy(), X[X > Y])


def test_unsupported_arguments_are_named():
    with pytest.raises(NotImplementedError, match="mode 'bicubic'"):
        ops.interpolate(Tensor(IMAGE), size=(2, 2), mode="bicubic")
    with pytest.raises(ValueError, match="'size' and 'scale_factor' cannot be both empty"):
        ops.interpolate(Tensor(IMAGE))
    with pytest.raises(NotImplementedError, match="repeats of type Tensor"):
        ops.repeat_interleave(Tensor(X), Tensor(X))


def test_logsigmoid_is_two_operators():
    """Values and gradients recorded from 2.10; at -200 they show that it computes no stable form."""
    x = Tensor(np.array([-200, -20, -1, 0, 1, 20], np.float32))

    class Net(nn.Cell):
        def construct(self, x):
            return ops.logsigmoid(x)

    expected = [-np.inf, -20, -1.3132608, -0.693147, -0.31326124, 0]
    np.testing.assert_allclose(Net()(x).asnumpy(), expected, rtol=3e-6, atol=1e-7)  # its Log is approximate
    slopes = ops.grad(Net())(x).asnumpy()
    np.testing.assert_allclose(slopes, [np.nan, 1, 0.7310585, 0.5, 0.2689411, 0], rtol=1e-5, atol=1e-7)
