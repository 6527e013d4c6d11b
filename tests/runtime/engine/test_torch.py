"""The engine that computes with ATen."""

import doctest
import sys

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.errors import UnsupportedError
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find

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
    with pytest.raises(UnsupportedError, match="Shape: the torch engine runs functions of torch; the kernel gave"):
        engine("torch").compute(find("Shape"), [X], {})
