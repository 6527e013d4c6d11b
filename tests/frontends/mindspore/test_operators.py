"""Operators and functions against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import Tensor, context, nn, ops
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.ops import operations as P  # noqa: N812 - as scripts write it

RNG = np.random.RandomState(0)
X = (RNG.rand(2, 3) + 0.5).astype(np.float32)
Y = (RNG.rand(2, 3) + 0.5).astype(np.float32)
I = np.arange(6).reshape(2, 3).astype(np.int32)
IMAGE = RNG.rand(2, 3, 4, 5).astype(np.float32)

ARITHMETIC = {
    "x + 2.0": lambda x, y, i: x + 2.0,
    "2.0 + x": lambda x, y, i: 2.0 + x,
    "x - 1": lambda x, y, i: x - 1,
    "1 - x": lambda x, y, i: 1 - x,
    "x * 3.0": lambda x, y, i: x * 3.0,
    "2 * x": lambda x, y, i: 2 * x,
    "x / 2": lambda x, y, i: x / 2,
    "2.0 / x": lambda x, y, i: 2.0 / x,
    "x / y": lambda x, y, i: x / y,
    "x // y": lambda x, y, i: x // y,
    "x % y": lambda x, y, i: x % y,
    "x % 0.4": lambda x, y, i: x % 0.4,
    "x ** 2": lambda x, y, i: x**2,
    "2 ** x": lambda x, y, i: 2**x,
    "-x": lambda x, y, i: -x,
    "abs(x)": lambda x, y, i: abs(-x),
    "x @ y.T": lambda x, y, i: x @ y.T,
    "x < y": lambda x, y, i: x < y,
    "x >= 1.0": lambda x, y, i: x >= 1.0,
    "i == 2": lambda x, y, i: i == 2,
    "i != 2": lambda x, y, i: i != 2,
    "i + 1": lambda x, y, i: i + 1,
    "i * 2": lambda x, y, i: i * 2,
    "i // 2": lambda x, y, i: i // 2,
    "i % 2": lambda x, y, i: i % 2,
    "~(x < y)": lambda x, y, i: ~(x < y),
}


@pytest.mark.parametrize("text", ARITHMETIC)
def test_arithmetic(text):
    function = ARITHMETIC[text]
    expected = function(X, Y, I)
    result = function(Tensor(X), Tensor(Y), Tensor(I))
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=2e-6)
    assert result.asnumpy().dtype == expected.dtype


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: Tensor(I) + 1.5, "float32"),
        (lambda: Tensor(I) * 1.5, "float32"),
        (lambda: Tensor(I) / 2, "float32"),
        (lambda: Tensor(I) + Tensor(X), "float32"),
        (lambda: Tensor(X, mstype.float16) + Tensor(X), "float32"),
        (lambda: Tensor(X, mstype.float16) * 2.0, "float16"),
        (lambda: Tensor([True]) + 1, "int64"),
        (lambda: Tensor(X) + True, "float32"),
        (lambda: Tensor(I).sum(), "int64"),
        (lambda: Tensor(X).argmax(1), "int64"),
        (lambda: Tensor(X).argmin(1), "int32"),
    ],
)
def test_number_types_as_recorded(make, kind):
    assert make().dtype.name == kind


METHODS = {
    "sum": (lambda t: t.sum(), lambda a: a.sum()),
    "sum(1)": (lambda t: t.sum(1), lambda a: a.sum(1)),
    "sum keep": (lambda t: t.sum(axis=1, keepdims=True), lambda a: a.sum(1, keepdims=True)),
    "mean": (lambda t: t.mean((0, 1), True), lambda a: a.mean((0, 1), keepdims=True)),
    "max": (lambda t: t.max(), lambda a: a.max()),
    "max(axis=1)": (lambda t: t.max(axis=1), lambda a: a.max(1)),
    "min(0)": (lambda t: t.min(axis=0), lambda a: a.min(0)),
    "prod": (lambda t: t.prod(), lambda a: a.prod()),
    "std": (lambda t: t.std(), lambda a: a.std()),
    "var": (lambda t: t.var(1), lambda a: a.var(1)),
    "reshape": (lambda t: t.reshape(3, -1), lambda a: a.reshape(3, -1)),
    "view": (lambda t: t.view((3, 2)), lambda a: a.reshape(3, 2)),
    "transpose": (lambda t: t.transpose(), lambda a: a.T),
    "T": (lambda t: t.T, lambda a: a.T),
    "swapaxes": (lambda t: t.swapaxes(0, 1), lambda a: a.T),
    "flatten": (lambda t: t.flatten(), lambda a: a.ravel()),
    "expand_dims": (lambda t: t.expand_dims(1), lambda a: a[:, None]),
    "squeeze": (lambda t: t.unsqueeze(0).squeeze(), lambda a: a),
    "tile": (lambda t: t.tile((2, 1)), lambda a: np.tile(a, (2, 1))),
    "broadcast_to": (lambda t: t.broadcast_to((4, 2, 3)), lambda a: np.broadcast_to(a, (4, 2, 3))),
    "clip": (lambda t: t.clip(0.6, 1.0), lambda a: a.clip(0.6, 1.0)),
    "half": (lambda t: t.half(), lambda a: a.astype(np.float16)),
    "to": (lambda t: t.to(mstype.int32), lambda a: a.astype(np.int32)),
    "cumsum": (lambda t: t.cumsum(0), lambda a: a.cumsum(0)),
    "norm": (lambda t: t.norm(), lambda a: np.linalg.norm(a)),
    "masked_fill": (lambda t: t.masked_fill(t > 1.0, 0.0), lambda a: np.where(a > 1, 0, a).astype(np.float32)),
    "all": (lambda t: (t > 0.0).all(), lambda a: (a > 0).all()),
    "any": (lambda t: (t > 9.0).any(), lambda a: (a > 9).any()),
    "gather": (lambda t: t.gather(Tensor([1, 0], mstype.int32), 0), lambda a: a[[1, 0]]),
    "logsumexp": (lambda t: t.logsumexp(1), lambda a: np.log(np.exp(a).sum(1))),
    **{
        name: (lambda t, name=name: getattr(t, name)(), lambda a, name=name: getattr(np, name)(a))
        for name in ("abs", "exp", "log", "log1p", "sqrt", "square", "sin", "cos", "tanh", "floor", "ceil", "sign")
    },
}


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    method, expected = METHODS[name]
    result, wanted = method(Tensor(X)), np.asarray(expected(X))
    np.testing.assert_allclose(result.asnumpy(), wanted, rtol=3e-6)
    assert result.shape == wanted.shape


def test_split_chunk_stack_concat():
    pieces = Tensor(X).split([1, 2], 1)
    np.testing.assert_array_equal(pieces[1].asnumpy(), X[:, 1:])
    assert [piece.shape for piece in Tensor(X).chunk(2, 1)] == [(2, 2), (2, 1)]
    np.testing.assert_array_equal(ops.concat(pieces, 1).asnumpy(), X)
    np.testing.assert_array_equal(ops.stack((Tensor(X), Tensor(Y)), 1).asnumpy(), np.stack((X, Y), 1))
    np.testing.assert_array_equal(ops.unstack(Tensor(X))[1].asnumpy(), X[1])


def test_topk_unique_select_one_hot():
    values, places = ops.topk(Tensor(X), 2)
    np.testing.assert_array_equal(values.asnumpy(), -np.sort(-X, 1)[:, :2])
    np.testing.assert_array_equal(np.take_along_axis(X, places.asnumpy(), 1), values.asnumpy())
    found, inverse = ops.unique(Tensor([3, 1, 3]))
    np.testing.assert_array_equal(found.asnumpy()[inverse.asnumpy()], [3, 1, 3])
    np.testing.assert_array_equal(
        ops.select(Tensor(X > 1), Tensor(X), 0.0).asnumpy(), np.where(X > 1, X, 0).astype(np.float32)
    )
    np.testing.assert_array_equal(
        ops.one_hot(Tensor(I), 6, Tensor(1.0), Tensor(0.0)).asnumpy(), np.eye(6, dtype=np.float32)[I]
    )


INDICES = [
    0,
    -1,
    (0, 1),
    (slice(None), slice(0, 3)),
    (Ellipsis, 0),
    (0, Ellipsis, slice(1, 3)),
    None,
    (slice(None), None),
    (slice(0, 2, 2), 1),
    (slice(1, None), slice(None), slice(None, None, 2)),
    slice(None),
    slice(-2, None),
    (slice(None), slice(None, -1)),
    (1, -1, 0),
    [1, 0, 1],
    Ellipsis,
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indexing_as_numpy(index):
    np.testing.assert_array_equal(Tensor(IMAGE)[index].asnumpy(), IMAGE[index])


def test_indexing_by_tensors():
    rows, columns = np.array([[0, 1], [1, 0]]), np.array([2, -1])
    np.testing.assert_array_equal(Tensor(IMAGE)[Tensor(rows)].asnumpy(), IMAGE[rows])
    np.testing.assert_array_equal(Tensor(IMAGE)[Tensor(rows), Tensor(columns)].asnumpy(), IMAGE[rows, columns])
    assert Tensor(X)[Tensor(1)].shape == (3,)


ARRAY, ROW = np.array([[0, 1], [1, 0]]), np.array([1, 0, -1])


@pytest.mark.parametrize("index", [
    (ARRAY, slice(0, 3)), (slice(None), ARRAY), (1, ARRAY), (slice(None), ROW, slice(1, 3)), (ROW, slice(None), ROW),
    (slice(None), 0, ROW), (0, slice(None, None, 2), ROW), (Ellipsis, ARRAY), (ROW, Ellipsis, ROW), (slice(1, 2), ROW),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("graph", [False, True])
def test_indexing_by_tensors_among_slices_and_numbers(index, graph):
    """The axes are in numpy's order, whether the indices are constants or operands of a graph."""
    image = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    if graph:
        context.set_context(mode=context.GRAPH_MODE)
        index = tuple(abs(item) if isinstance(item, np.ndarray) else item for item in index)  # negative: a device error

        class Net(nn.Cell):
            def construct(self, x, *indices):
                remaining = iter(indices)
                return x[tuple(next(remaining) if isinstance(item, np.ndarray) else item for item in index)]

        found = Net()(Tensor(image), *(Tensor(item) for item in index if isinstance(item, np.ndarray)))
    else:
        found = Tensor(image)[tuple(Tensor(item) if isinstance(item, np.ndarray) else item for item in index)]
    np.testing.assert_array_equal(found.asnumpy(), image[index])


@given(st.data())
def test_slices_as_numpy(data):
    starts = st.one_of(st.none(), st.integers(-6, 6))
    index = tuple(
        slice(data.draw(starts), data.draw(starts), data.draw(st.one_of(st.none(), st.integers(1, 3))))
        for _ in range(2)
    )
    expected = X[index]
    if expected.size:
        np.testing.assert_array_equal(Tensor(X)[index].asnumpy(), expected)


def test_index_errors():
    with pytest.raises(IndexError, match="out of bounds"):
        Tensor(X)[2]
    with pytest.raises(IndexError, match="too many indices"):
        Tensor(X)[0, 0, 0]
    with pytest.raises(ValueError, match="'strides' cannot contain 0"):
        Tensor(X)[::0]
    with pytest.raises(UnsupportedError, match=r"ops\.gather_nd"):
        Tensor(X)[None, [0]]
    with pytest.raises(IndexError, match=r"<class 'str'>. Supported types"):
        Tensor(X)["a"]


def test_iteration_ends():
    np.testing.assert_array_equal([row.asnumpy() for row in Tensor(X)], list(X))


@pytest.mark.parametrize("index", [0, (slice(None), 1), (0, 2), X > 1], ids=str)
def test_writing_parts(index):
    tensor, array = Tensor(X), X.copy()
    tensor[index] = 7
    array[index] = 7
    np.testing.assert_array_equal(tensor.asnumpy(), array)


def test_primitives():
    np.testing.assert_allclose(P.MatMul(transpose_b=True)(Tensor(X), Tensor(Y)).asnumpy(), X @ Y.T, rtol=1e-6)
    np.testing.assert_allclose(P.ReduceSum(keep_dims=True)(Tensor(X), 1).asnumpy(), X.sum(1, keepdims=True), rtol=1e-6)
    assert P.Shape()(Tensor(IMAGE)) == (2, 3, 4, 5)
    assert P.Argmax(axis=1)(Tensor(X)).dtype == mstype.int32
    assert repr(P.MatMul()) == "Prim[MatMul]<transpose_a=False, transpose_b=False>"
    with pytest.raises(TypeError, match="transpose_c"):
        P.MatMul(transpose_c=True)
    assert P.MatMul().set_device("CPU").attrs["primitive_target"] == "CPU"
    with pytest.raises(ValueError, match="unknown device 'cpu'"):
        P.MatMul().set_device("cpu")


def test_convolution_and_pooling_against_loops():
    weight = RNG.rand(4, 3, 2, 2).astype(np.float32)
    out = P.Conv2D(4, 2)(Tensor(IMAGE), Tensor(weight)).asnumpy()
    expected = np.zeros((2, 4, 3, 4), np.float32)
    for row in range(3):
        for column in range(4):
            window = IMAGE[:, :, row : row + 2, column : column + 2]
            expected[:, :, row, column] = np.einsum("nchw,ochw->no", window, weight)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    pooled = P.MaxPool(2, 2)(Tensor(IMAGE)).asnumpy()
    np.testing.assert_array_equal(pooled, IMAGE[:, :, :, :4].reshape(2, 3, 2, 2, 2, 2).max((3, 5)))
    mean = P.AvgPool(2, 2)(Tensor(IMAGE)).asnumpy()
    np.testing.assert_allclose(mean, IMAGE[:, :, :, :4].reshape(2, 3, 2, 2, 2, 2).mean((3, 5)), rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"kernel_size": 0}, "kernel_size"),
        ({"kernel_size": 3, "pad_mode": "middle"}, "pad_mode"),
        ({"kernel_size": 3, "pad": 1}, "must be zero"),
        ({"kernel_size": (1, 2, 3)}, "kernel_size"),
    ],
)
def test_convolution_settings(settings, text):
    with pytest.raises(ValueError, match=text):
        P.Conv2D(4, **settings)


def test_losses_against_numpy():
    logits, labels = X.astype(np.float64), np.array([2, 0])
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    expected = -np.log(probabilities[[0, 1], labels])
    target = Tensor(labels, mstype.int32)
    np.testing.assert_allclose(ops.cross_entropy(Tensor(X), target).asnumpy(), expected.mean(), rtol=1e-5)
    np.testing.assert_allclose(ops.cross_entropy(Tensor(X), target, reduction="none").asnumpy(), expected, rtol=1e-5)
    weight = np.array([0.5, 1.0, 2.0], np.float32)
    np.testing.assert_allclose(
        ops.cross_entropy(Tensor(X), target, Tensor(weight)).asnumpy(),
        (expected * weight[labels]).sum() / weight[labels].sum(),
        rtol=1e-5,
    )
    ignored = Tensor([2, -100], mstype.int32)
    np.testing.assert_allclose(ops.cross_entropy(Tensor(X), ignored).asnumpy(), expected[0], rtol=1e-5)
    np.testing.assert_allclose(ops.mse_loss(Tensor(X), Tensor(Y)).asnumpy(), ((X - Y) ** 2).mean(), rtol=1e-5)


def test_a_missing_operator_differs_from_an_unknown_name():
    with pytest.raises(UnsupportedError, match=r"mindspore\.ops: .*CTCLoss"):
        ops.CTCLoss()
    with pytest.raises(AttributeError, match="did you mean"):
        _ = ops.concatt
    assert not hasattr(ops, "nothing_like_it")


def test_an_operator_of_the_table_needs_no_code_here():
    np.testing.assert_allclose(ops.fast_gelu(Tensor(X)).asnumpy(), P.FastGeLU()(Tensor(X)).asnumpy())


def test_multitype_functions_choose_by_type():
    graph = ops.MultitypeFuncGraph("pick")
    graph.register("Tensor", "Bool")(lambda t, flag: "tensor")
    graph.register("Number", "Number")(lambda a, b: a + b)
    assert graph(Tensor(1), True) == "tensor"
    assert ops.HyperMap(graph)((1, 2), (3, 4)) == (4, 6)
    with pytest.raises(TypeError, match="no function of 'pick'"):
        graph("a", "b")


def test_reverse_map_calls_from_the_last():
    seen = []
    assert ops.HyperMap(None, True)(lambda v: seen.append(v) or v, (1, 2, 3)) == (1, 2, 3)
    assert seen == [3, 2, 1]
