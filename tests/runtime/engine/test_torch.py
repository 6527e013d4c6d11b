"""The engine that computes with ATen."""

import doctest
import sys
import warnings

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.errors import UnsupportedError
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find
from dumpsim.runtime.engine.engine import Work

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.runtime.engine.table import engine  # noqa: E402

pytestmark = pytest.mark.torch

X = np.array([[1, -2], [3, 0.5]], np.float32)


def operator(kernel, **rest):
    return OpDef(name="Op", operands=("x",), infer=lambda a, _: a[0], kernel=kernel, **rest)


def compute(kernel, *operands, updates=(), **attrs):
    return engine("torch").compute(operator(kernel, updates=updates), operands, attrs)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int64, np.bool_])
def test_number_types_stay_as_they_are(kind):
    x = X.astype(kind)
    seen = []
    (out,) = compute(lambda x: seen.append(x.dtype) or x.clone(), x).results
    assert out.dtype == x.dtype
    assert out.tobytes() == x.tobytes()
    assert str(seen[0]).removeprefix("torch.").rstrip("_") in str(x.dtype)


def test_a_kernel_writes_the_memory_of_the_operand_that_it_updates():
    x = X.astype(ml_dtypes.bfloat16)
    computed = compute(torch.ops.aten.mul_.Scalar, x, 2.0, updates=(0,))
    assert computed.updated[0] is x
    assert x.astype(np.float32).tolist() == (2 * X).tolist()


def test_tuples_keywords_and_several_results():
    computed = compute(torch.ops.aten.split.Tensor, X, 1, dim=1)
    assert [r.tolist() for r in computed.results] == [X[:, :1].tolist(), X[:, 1:].tolist()]
    (out,) = compute(lambda xs: torch.ops.aten.cat.default(list(xs)), (X, X)).results
    assert out.shape == (4, 2)


def test_memory_that_must_not_be_written_is_copied():
    x = X.copy()
    x.flags.writeable = False
    compute(torch.ops.aten.mul_.Scalar, x, 2.0)
    assert x.tolist() == X.tolist()


def test_weights_need_no_gradient_and_results_have_none():
    (out,) = compute(lambda x: x * torch.nn.Parameter(torch.ones(())), X).results
    assert out.tolist() == X.tolist()


def test_the_example_holds():  # the doctests of the package are collected where torch is missing too
    made = engine("torch")
    assert doctest.testmod(sys.modules[type(made).__module__]) == (0, 2)


def test_a_kernel_of_numpy_is_refused():
    with pytest.raises(
        UnsupportedError, match=r"Shape: the kernel returned .*; the torch engine runs functions of torch"
    ):
        engine("torch").compute(find("Shape"), [X], {})


class _Turned:
    """A transposition."""

    def __call__(self, x):
        return self.view(x).contiguous()

    def view(self, x):
        return x.T


class _Product:
    """A product that can read a transposition where it comes from."""

    def __init__(self):
        self.views = {}

    def __call__(self, x, y):
        return x @ y

    def bind(self, operands, views, out):
        self.views = views
        return lambda: operands[0] @ views.get(1, operands[1]), set(range(2)) - set(views), False


@pytest.mark.parametrize("moves", [True, False])
def test_moving_kernels_run_if_watched_and_their_readers_read_the_source(moves):
    product = _Product()
    arrays = {0: np.arange(6, dtype=np.float32).reshape(2, 3), 1: np.zeros((3, 2), np.float32)}
    arrays |= {2: np.ones((1, 3), np.float32), 3: np.zeros((1, 2), np.float32)}
    works = [
        Work(operator(_Turned()), (0,), {}, (1,)),
        Work(operator(product), (2, 1), {}, (3,)),
    ]
    roots = {number: number for number in arrays}
    bound = engine("torch").bind(works, arrays, {}, roots, [3], moves=moves)
    assert [run is None for run in bound.runs] == [moves, False]
    for run in bound.runs:
        if run is not None:
            run()
    assert list(product.views) == [1]
    assert arrays[1].any() != moves
    assert arrays[3].tolist() == [[3, 12]]


class _SwappedProduct(_Product):
    """A product that is computed with swapped factors."""

    transposed = True

    def bind(self, operands, views, out):
        x, y = operands
        if not out.T.is_contiguous():
            return lambda: (y.T @ x.T).T, {0, 1}, False
        return lambda: torch.mm(y.T, x.T, out=out.T), {0, 1}, True


@pytest.mark.parametrize("reader", [_Product, _Turned])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("moves", [True, False])
def test_a_product_lies_transposed_in_memory_if_no_reader_needs_it_otherwise(reader, whole, moves):
    rng = np.random.default_rng(3)
    left, right, other = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((2, 3), (3, 4), (5, 2)))
    product = left @ right
    turned = reader is _Turned
    want = product.T if turned else other @ product
    arrays = {0: left, 1: right, 2: np.zeros_like(product), 3: other, 4: np.zeros(want.shape, np.float32)}
    works = [Work(operator(_SwappedProduct()), (0, 1), {}, (2,))]
    works.append(Work(operator(reader()), (2,) if turned else (3, 2), {}, (4,)))
    roots, spans = {number: number for number in arrays}, {2: (0, 32), 4: (32, 32 + want.nbytes)}
    bound = engine("torch").bind(works, arrays, spans, roots, [2, 4] if whole else [4], moves=moves)
    for run in bound.runs:
        if run is not None:
            run()
    got = bound.results[4]() if 4 in bound.results else arrays[4]
    assert np.array_equal(got, want)
    in_order = whole or not moves
    assert np.array_equal(arrays[2].reshape(-1), (product if in_order else product.T).reshape(-1))
    bound.restore(1)
    assert np.array_equal(np.sort(arrays[2].reshape(-1)), np.sort(product.reshape(-1)))


def test_checking_large_numbers_emits_no_warning():
    large = np.full((3, 3), 1e10, np.float32)
    arrays = {0: large, 1: large.copy(), 2: np.zeros((3, 3), np.float32)}
    works = [Work(operator(_Product()), (0, 1), {}, (2,))]
    roots = {number: number for number in arrays}
    bound = engine("torch").bind(works, arrays, {}, roots, [2], moves=True)
    (run,), ((look,),) = bound.runs, bound.finite
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run()
        assert not look()
