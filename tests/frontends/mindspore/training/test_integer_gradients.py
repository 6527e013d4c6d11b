"""Gradients through integers and bools follow the operators' rules. The numbers are those of MindSpore 2.10."""

import numpy as np
import pytest

from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Tensor, ops

X = np.array([1.5, 2.7], np.float32)


def as_int(x):
    return ops.cast(x, ms.int32)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize(("function", "expected"), [
    (as_int, [1, 1]),
    (lambda x: ops.cast(as_int(x), ms.float32) * 3, [3, 3]),
    (lambda x: ops.cast(x, ms.bool_), [1, 1]),
    (lambda x: as_int(x) * 2, [2, 2]),
    (lambda x: ops.cast(ops.cast(x, ms.bool_), ms.float32) * 3, [1, 1]),  # 3 as a bool
    (lambda x: as_int(x) * as_int(x), [2, 4]),
    (lambda x: ops.cast(x, ms.int64).sum(), [1, 1]),
    (lambda x: ops.cast(x > 2, ms.float32) * x, [0, 1]),  # comparisons stop gradients
])  # fmt: skip
def test_gradients_pass_casts(mode, function, expected):
    ms.set_context(mode=mode)
    found = ops.grad(function)(Tensor(X)).asnumpy()
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("function", [lambda x: x * 2, lambda x: ops.cast(x, ms.float32) * 2])
def test_gradients_by_integers(mode, function):
    ms.set_context(mode=mode)
    found = ops.grad(function)(Tensor(np.array([1, 2], np.int32))).asnumpy()
    assert (found.dtype, found.tolist()) == (np.int32, [2, 2])
