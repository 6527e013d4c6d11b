"""The vendor's errors for operands that do not fit; the texts were read from MindSpore 2.10."""

from typing import Any

import numpy as np
import pytest
from ops.evaluator import Builder, Value

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.ops.table import find


def t(*shape: int, kind: str = "float32") -> Value:
    array = np.ones(shape, kind)
    return Value(TensorType(dtype=from_numpy(array.dtype), shape=shape), array)


CONV: dict[str, Any] = {"out_channel": 4, "kernel_size": 3}
POOL: dict[str, Any] = {"kernel_size": (1, 1, 4, 4), "strides": (1, 1, 2, 2)}

REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
    (
        "Add",
        (t(2, 3), t(4)),
        {},
        ValueError,
        "For 'Add', input1.shape and input2.shape need to broadcast. The value of input1.shape[2] or input2.shape[1] "
        "must be 1 or -1 when "
        "they are not the same, but got input1.shape = [2, 3] and input2.shape = [4]",
    ),
    (
        "Mul",
        (t(2, 3, 4), t(2, 5, 4)),
        {},
        ValueError,
        "For 'Mul', input1.shape and input2.shape need to broadcast. The value of input1.shape[4] or input2.shape[4] "
        "must be 1 or -1 when "
        "they are not the same, but got input1.shape = [2, 3, 4] and input2.shape = [2, 5, 4]",
    ),
    (
        "MatMul",
        (t(2, 3), t(4, 5)),
        {},
        ValueError,
        "For 'MatMul' the input dimensions must be equal, but got 'x1_col': 3 and 'x2_row': 4.",
    ),
    ("MatMul", (t(2, 3), t(3)), {}, ValueError, "MatMul inputs should have the same dimension size and equal to 2."),
    (
        "MatMul",
        (t(2, 3), t(3, 4, kind="int32")),
        {},
        TypeError,
        "For 'MatMul', the type of 'x2' should be same as 'x1', but got 'x1' with type Tensor[Float32] and 'x2' with "
        "type Tensor[Int32].",
    ),
    (
        "BiasAdd",
        (t(2, 3), t(4)),
        {},
        ValueError,
        "For 'BiasAdd', bias[0] shape should be equal to input_x[1] shape when data_format is 0, but got bias shape: "
        ".[const vector]{4}, input_shape: [const vector]{2, 3}.",
    ),
    (
        "Conv2D",
        (t(2, 3, 8, 8), t(4, 5, 3, 3)),
        CONV,
        RuntimeError,
        "For 'Conv2D', 'C_in' of input 'x' shape divide by parameter 'group' must be equal to 'C_in' of input "
        "'weight' shape: 5, but got "
        "'C_in' of input 'x' shape: 3, and 'group': 1.",
    ),
    (
        "Conv2D",
        (t(2, 3, 8), t(4, 3, 3, 3)),
        CONV,
        ValueError,
        "For primitive[Conv2D], the x shape size must be equal to 4, but got 3.",
    ),
    (
        "Conv2D",
        (t(2, 3, 8, 8), t(5, 3, 3, 3)),
        CONV,
        RuntimeError,
        "For 'Conv2D', 'w_shape[0]' must be equal to 'out_channel', but got 'w_shape[0]': 5, 'out_channel': 4.",
    ),
    (
        "MaxPool",
        (t(2, 3, 3, 3),),
        POOL,
        ValueError,
        "For 'MaxPool', the each element of the output shape must be larger than 0, but got output shape: [const "
        "vector]{2, 3, 0, 0}. The "
        "input shape: [const vector]{2, 3, 3, 3}, kernel size: [const vector]{1, 1, 4, 4}, strides: [const "
        "vector]{1, 1, 2, 2}. Please "
        "check the official api documents for more information about the output.",
    ),
    (
        "AvgPool",
        (t(2, 3, 3, 3), (4, 4), (2, 2), 2, 0),
        {},
        RuntimeError,
        "For 'AvgPool' op, H_out/W_out must be positive, but H_out/W_out is 0, please check input and parameters of op",
    ),
    (
        "Reshape",
        (t(2, 3), (-1, 4)),
        {},
        ValueError,
        "For primitive[Reshape], the accumulate of x_shape must be equal to out_shape, but got x_shape: [const "
        "vector]{2, 3}, and "
        "out_shape: [const vector]{1, 4}",
    ),
    (
        "Reshape",
        (t(2, 3), (-1, -1)),
        {},
        ValueError,
        "For primitive[Reshape], at most one component of shape can be -1, but got [const vector]{-1, -1}",
    ),
    (
        "Transpose",
        (t(2, 3), (0, 0)),
        {},
        ValueError,
        "For 'Transpose', perms should all be unique dim, but0 is not unique!",
    ),
    (
        "Transpose",
        (t(2, 3), (0, 1, 2)),
        {},
        ValueError,
        "For 'Transpose', size of perm should equal to rank of x, but got 3 and 2!",
    ),
    (
        "Transpose",
        (t(2, 3), (0, 5)),
        {},
        ValueError,
        "For primitive[Transpose], the perm value must be in [-2,2), but got 5.",
    ),
    (
        "Concat",
        ((t(2, 3), t(2, 4)), 0),
        {},
        ValueError,
        "For primitive[Concat], shapes of tensors must match except in given concat axis 0, but got mismatch in "
        "1(all input shapes are "
        "[const vector]{[const vector]{2, 3}, [const vector]{2, 4}})!",
    ),
    (
        "Concat",
        ((t(2, 3), t(2, 3)), 5),
        {},
        ValueError,
        "For primitive[Concat], the axis value must be in [-2,2), but got 5.",
    ),
    (
        "Split",
        (t(2, 3), 1, 2),
        {},
        ValueError,
        "For 'Split', x_shape[1] must be divisible by output_num = 2, but got 3",
    ),
    (
        "ReduceSum",
        (t(2, 3), (5,)),
        {},
        ValueError,
        "For primitive[ReduceSum], the axis value must be in [-2,2), but got 5.",
    ),
    ("ReduceMean", (t(2, 3), (0, 0)), {}, RuntimeError, "dim=0 appears multiple times in the list of dims"),
    ("Softmax", (t(2, 3), (5,)), {}, ValueError, "For primitive[Softmax], the axis must be in [-2,2), but got 5."),
    (
        "Softmax",
        (t(2, kind="int32"),),
        {},
        TypeError,
        "For primitive[Softmax], the input argument[x] must be a type of "
        "{Tensor[BFloat16], Tensor[Float16], Tensor[Float32], "
        "Tensor[Float64]}, but got Tensor[Int32].",
    ),
    ("ExpandDims", (t(2, 3), 5), {}, ValueError, "ExpandDimserror: axis value invalid. axis: 5, input dims: 2"),
    (
        "BroadcastTo",
        (t(2, 3), (4, 4)),
        {},
        ValueError,
        "For 'BroadcastTo', in order to broadcast, each dimension pair must be equal or input dimension is 1 or "
        "target dimension is -1. "
        "But got x_shape: [const vector]{2, 3}, target shape: [const vector]{4, 4}.",
    ),
    (
        "Gather",
        (t(2, 3), t(2, kind="int32"), 5, 0),
        {},
        ValueError,
        "For primitive[Gather], the axis must be in [-2,2], but got 5.",
    ),
    (
        "GatherD",
        (t(2, 3), 0, t(2, kind="int32")),
        {},
        ValueError,
        "For primitive[GatherD], the x_rank must be equal to 1, but got 2.",
    ),
    (
        "OneHot",
        (t(2), 3, t(), t()),
        {},
        TypeError,
        "For primitive[OneHot], the input argument[indices] must be a type of {Tensor[Int32], Tensor[Int64]}, but "
        "got Tensor[Float32].",
    ),
    (
        "SparseSoftmaxCrossEntropyWithLogits",
        (t(2, 3), t(3, kind="int32")),
        {},
        ValueError,
        "Labels shape value must be equal to the Features except the last dimension of Features",
    ),
    (
        "SoftmaxCrossEntropyWithLogits",
        (t(2, 3), t(2, 4)),
        {},
        ValueError,
        "For 'SoftmaxCrossEntropyWithLogits', evaluator arg 'label' shape must be consistent with 'logits' shape, "
        "but got 'label' shape: "
        "(2, 4), 'logits' shape: (2, 3).",
    ),
    (
        "LayerNorm",
        (t(2, 3, 4), t(5), t(5), -1, -1, 1e-7),
        {},
        ValueError,
        "For 'LayerNorm', gamma or beta shape must match input shape, but got input shape: [const vector]{2, 3, 4}, "
        "gamma shape: "
        "[const vector]{5}, beta shape: [const vector]{5}.",
    ),
    (
        "BatchNorm",
        (t(2, 3, 4, 4), t(4), t(4), t(4), t(4)),
        {},
        ValueError,
        "For BatchNorm, scale.shape[0] should be equal to input_x's channel dimension: 3, bug got scale.shape[0]: 4.",
    ),
    (
        "Stack",
        ((t(2, 3), t(2, 4)),),
        {},
        ValueError,
        "For Stack element 1 shapein input can not pack with first element",
    ),
    ("TopK", (t(2, 3), 9), {}, ValueError, "For primitive[TopK], the k must be in (0,3], but got 9."),
    (
        "StridedSlice",
        (t(2, 3), (0,), (2, 3), (1, 1)),
        {},
        ValueError,
        "For 'StridedSlice', 'begin', 'end' and 'strides' must have the same length, but got length of 'begin': 1, "
        "'end': 2, 'strides': 2.",
    ),
    (
        "AddN",
        ((t(2, 3), t(3, 2)),),
        {},
        ValueError,
        "For 'AddN', input shape must be same, but got shape of input[1]: (3, 2), shape of input[0]: (2, 3).",
    ),
    (
        "Slice",
        (t(2, 4), (0, 1), (2, 5)),
        {},
        ValueError,
        "For Slice, the sum of begin_shape[1] and size_shape[1] must be no greater than input_x_shape[1].",
    ),
    (
        "MaskedFill",
        (t(2, 3), t(2, 3), 0.5),
        {},
        TypeError,
        "For primitive[MaskedFill], the input argument[mask] must be a type of {Bool}, but got Float32.",
    ),
    ("Dropout", (t(2, 3), 1.5), {}, RuntimeError, "For 'Dropout, the 'keep_prob' must be in (0.0, 1.0], but got 1.5"),
    (
        "Add",
        (t(2, kind="bool"), t(2, kind="bool")),
        {},
        TypeError,
        "For primitive[Add], the input argument[x] must be a type of {Tensor[BFloat16]",
    ),
]


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "kind", "text"), REFUSED, ids=[f"{i}-{row[0]}" for i, row in enumerate(REFUSED)]
)
def test_refused(name: str, operands: tuple[Any, ...], attrs: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as raised:
        Builder().emit(name, *operands, **attrs)
    assert text in str(raised.value)


def test_unknown_operator_names_the_nearest() -> None:
    with pytest.raises(UnsupportedError, match=r"'MatMull' is not emulated.*did you mean 'MatMul'"):
        find("MatMull")


def test_value_that_only_the_run_knows() -> None:
    with pytest.raises(ScriptTypeError, match="must be a constant"):
        Builder().emit("Reshape", t(2, 3), t(2, kind="int64"))


def test_one_entry_too_many() -> None:
    with pytest.raises(ScriptValueError, match="do not fit a tensor of rank 1"):
        Builder().emit("StridedSlice", t(3), (0, 0), (1, 1), (1, 1))
