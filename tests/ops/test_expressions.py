"""Operators that expressions of a script become, in the forms that only PYNATIVE runs, against numpy."""

import numpy as np
import pytest

from dumpsim.core.dtype import dtype
from dumpsim.ops.promotion import number_type, with_common_type
from dumpsim.ops.rules import type_number, type_of
from dumpsim.ops.table import find

X = np.array([[1.5, -2.0, 7.0], [0.25, 3.0, -4.5]], np.float32)
Y = np.array([[2.0, 4.0, -3.0], [0.5, 1.0, 2.0]], np.float32)
PLACES = np.array([[2, 1], [0, 2]])
MASK = np.array([[True, False, True], [False, True, False]])

KERNELS = {
    "EqScalar": ((X, 3), X == 3),
    "RemainderScalarTensor": ((7, Y), np.mod(np.float32(7), Y)),
    "MaskedFillScalar": ((X, MASK, 0.5), np.where(MASK, np.float32(0.5), X)),
    "ArgMaxExt": ((X, 1, False), X.argmax(1)),
    "NewZeros": ((X, (2, 2), None), np.zeros((2, 2), np.float32)),
    "NewOnes": ((X, 4, dtype("int32")), np.ones(4, np.int32)),
    "ViewAs": ((X, np.zeros((3, 2))), X.reshape(3, 2)),
    "AddExt": ((X, Y, 2), X + 2 * Y),
    "SubExt": ((X, Y, 2), X - 2 * Y),
    "BatchMatMulExt": ((X[None], Y.T[None]), (X @ Y.T)[None]),
    "Scatter": ((X, 1, PLACES, Y), np.array([[1.5, 4, 2], [0.5, 3, 1]], np.float32)),
    "ScatterValue": ((X, -1, PLACES, 9), np.array([[1.5, 9, 9], [9, 3, 9]], np.float32)),
    "FlattenExt": ((X[None], 1, 2), X.reshape(1, 6)),
    "LogSoftmaxExt": ((Y / 4, 1, None), Y / 4 - np.log(np.exp(Y / 4).sum(1, keepdims=True))),
    "OneHotExt": ((PLACES, 3, np.int64(5), np.int64(0), 0), 5 * (np.arange(3)[:, None, None] == PLACES)),
    "Embedding": ((PLACES, Y.T, None, None, 2.0, False), Y.T[PLACES]),
    "ConstantPadND": ((X, (1, -1, 0, 1), 2), np.pad(X[:, :-1], ((0, 1), (1, 0)), constant_values=2)),
    "OnesLikeExt": ((X, dtype("int32")), np.ones((2, 3), np.int32)),
    "PowScalarTensor": ((2, Y), 2**Y),
    "GreaterEqualScalar": ((X, 3), X >= 3),
    "SoftplusExt": ((X, 2, 5), np.where(2 * X > 5, X, np.log1p(np.exp(2 * X)) / 2)),
    "SoftplusGradExt": ((Y, X, 2, 5), np.where(2 * X > 5, Y, Y / (1 + np.exp(-2 * X)))),
    "TransposeView": ((X, (1, 0)), X.T),
    "TransposeExtView": ((X, 0, -1), X.T),
    "ExpandDimsView": ((X, -1), X[:, :, None]),
    "NarrowView": ((X, 1, 1, 2), X[:, 1:]),
    "SelectExtView": ((X, 1, -1), X[:, 2]),
    "InplaceAddExt": ((X, Y, 2), X + Y * 2),
    "InplaceAddsExt": ((X, 3, 2), X + 6),
    "InplaceSubExt": ((X, Y, 1), X - Y),
    "InplaceSubScalar": ((X, 3, 1), X - 3),
    "InplaceMul": ((X, Y), X * Y),
    "InplaceMuls": ((X, 3), X * 3),
    "InplaceDiv": ((X, Y), X / Y),
    "InplaceDivs": ((X, 2), X / 2),
    "InplaceFloorDivide": ((X, Y), np.floor_divide(X, Y)),
    "InplaceFloorDivides": ((X, 2), np.floor_divide(X, 2)),
    "InplaceRemainderTensorTensor": ((X, Y), np.mod(X, Y)),
    "InplaceRemainderTensorScalar": ((X, 2), np.mod(X, 2)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name):
    operands, expected = KERNELS[name]
    result = find(name).kernel(*operands)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert np.asarray(result).dtype == expected.dtype


PIECES = {
    "SplitTensorView": ((X, 2, 1), (X[:, :2], X[:, 2:])),
    "ChunkView": ((X, 2, -1), (X[:, :2], X[:, 2:])),
    "UnstackExtView": ((X, 1), (X[:, 0], X[:, 1], X[:, 2])),
    "MaxDim": ((X, 1, False), (X.max(1), X.argmax(1))),
    "MinDim": ((X, 0, True), (X.min(0)[None], X.argmin(0)[None])),
}


@pytest.mark.parametrize("name", PIECES)
def test_kernel_of_several_outputs(name):
    operands, expected = PIECES[name]
    results = find(name).kernel(*operands)
    assert [result.tolist() for result in results] == [part.tolist() for part in expected]


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axis", [(), (1,), (0, 1)])
def test_standard_deviation_and_mean(axis, keep, unbiased):
    std, mean = find("ReduceStd").kernel(X, axis, unbiased, keep)
    axes = axis or (0, 1)
    np.testing.assert_allclose(std, X.std(axis=axes, ddof=int(unbiased), keepdims=keep), rtol=1e-6)
    np.testing.assert_allclose(mean, X.mean(axis=axes, keepdims=keep), rtol=1e-6)


def test_mixed_operands_are_brought_to_one_type_by_the_kernel():
    product = find("Mul").kernel(X, np.array([1, 2, 3], np.int32))
    assert product.dtype == np.float32  # numpy alone would make it float64
    assert with_common_type(np.add)(np.uint8(200), np.int8(100)).dtype == np.int16


@pytest.mark.parametrize(
    ("tensor", "number", "kind"),
    [("uint8", "int64", "int32"), ("float32", "float32", "float32"), ("float16", "float32", None),
     ("float16", "int64", "int32"), ("float64", "float32", None), ("bool", "bool", "bool")],
)  # fmt: skip
def test_number_type_beside_a_tensor(tensor, number, kind):
    found = number_type(dtype(tensor), dtype(number))
    assert (found and found.name) == kind


NUMBERS_OF_TYPES = {  # [2.10 observed: mindspore._c_expression.typing.type_to_type_id]
    "bool": 30, "int8": 32, "int16": 33, "int32": 34, "int64": 35, "uint8": 37, "uint16": 38, "uint32": 39,
    "uint64": 40, "float16": 42, "float32": 43, "float64": 44, "bfloat16": 45, "complex64": 51, "complex128": 52,
}  # fmt: skip


def test_numbers_of_types():
    assert {name: type_number(dtype(name)) for name in NUMBERS_OF_TYPES} == NUMBERS_OF_TYPES
    assert {name: type_of(number).name for name, number in NUMBERS_OF_TYPES.items()} == {n: n for n in NUMBERS_OF_TYPES}
    assert type_number(dtype("int4")) is None
    assert type_of(None) is None
    assert type_of(dtype("int8")) == dtype("int8")
