"""Matrix products and biases."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType, TensorType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import is_variable, shape_of, unbroadcast
from dumpsim.ops.opdef import Grad, GradBuilder, OpDef
from dumpsim.ops.rules import broadcast, constant, output, same_dtype, size_of, tensor_of, value_of, vector

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

_NZ = {"in": {0: "FRACTAL_NZ", 1: "FRACTAL_NZ"}, "out": {0: "FRACTAL_NZ"}}  # [decisions: 910A]
_FIXED: dict[str, Any] = {
    "right_format": "DefaultFormat",
    "dst_type": lambda abstracts, out, attrs: out.dtype,
    "left_format": "DefaultFormat",
}


def _turned(shape: Shape, transpose: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


def _flags(name: str, abstracts: Sequence[Abstract]) -> tuple[bool, bool]:
    return bool(value_of(name, abstracts[2], "transpose_a")), bool(value_of(name, abstracts[3], "transpose_b"))


def _infer_matmul(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    x, y = tensor_of("MatMul", abstracts[0], "x1"), tensor_of("MatMul", abstracts[1], "x2")
    if len(x.shape) != 2 or len(y.shape) != 2:
        raise ScriptValueError("MatMul inputs should have the same dimension size and equal to 2.")
    kind = same_dtype("MatMul", {"x1": x, "x2": y})
    transpose_a, transpose_b = _flags("MatMul", abstracts)
    rows, column = _turned(x.shape, transpose_a)
    row, columns = _turned(y.shape, transpose_b)
    if column != row and -1 not in (column, row):
        raise ScriptValueError(
            f"For 'MatMul' the input dimensions must be equal, but got 'x1_col': {column} and 'x2_row': {row}."
        )
    return output(kind, (rows, columns))


def _infer_batch(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    x, y = tensor_of("BatchMatMul", abstracts[0], "x"), tensor_of("BatchMatMul", abstracts[1], "y")
    kind = same_dtype("BatchMatMul", {"x": x, "y": y})
    transpose_a, transpose_b = _flags("BatchMatMul", abstracts)
    if min(len(x.shape), len(y.shape)) < 2:
        raise ScriptValueError(
            f"For BatchMatMul, the rank of the inputs must be at least 2, with x shape {vector(x.shape)}, y shape "
            f"{vector(y.shape)}"
        )
    left, right = _turned(x.shape, transpose_a), _turned(y.shape, transpose_b)
    if left[-1] != right[-2] and -1 not in (left[-1], right[-2]):
        raise ScriptValueError(
            "For BatchMatMul, the row of the input 'y' should be same as the col of the input 'x', with x shape "
            f"{vector(x.shape)}(transpose_a={int(transpose_a)}), y shape "
            f"{vector(y.shape)}(transpose_b={int(transpose_b)})"
        )
    return output(kind, (*broadcast("BatchMatMul", left[:-2], right[:-2], ("x", "y")), left[-2], right[-1]))


@np.errstate(all="ignore")
def _matmul(x: Array, y: Array, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    return np.matmul(x.swapaxes(-1, -2) if transpose_a else x, y.swapaxes(-1, -2) if transpose_b else y)


def _grad_product(name: str) -> Grad:
    """Return the gradient: two products that transpose by their flags, not by nodes."""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        x, y = operands[:2]
        ta, tb = bool(constant(operands[2])), bool(constant(operands[3]))
        dx = dy = None
        if is_variable(x):
            dx = b.emit(name, *((y, dout) if ta else (dout, y)), ta and tb, ta or not tb)
            dx = _unbatch(b, dx, x)
        if is_variable(y):
            dy = b.emit(name, *((dout, x) if tb else (x, dout)), not ta or tb, ta and tb)
            dy = _unbatch(b, dy, y)
        return dx, dy, None, None

    return grad


def _unbatch(b: GradBuilder, gradient: Any, operand: Any) -> Any:
    return unbroadcast(b, gradient, shape_of(operand), shape_of(gradient))


def _flops(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> int:
    x, y = abstracts[:2]
    assert isinstance(x, TensorType)
    assert isinstance(y, TensorType)
    transpose_a, transpose_b = _flags("MatMul", abstracts)
    left, right = _turned(x.shape, transpose_a), _turned(y.shape, transpose_b)
    return 2 * size_of(broadcast("MatMul", left[:-2], right[:-2])) * left[-2] * left[-1] * right[-1]


def _product(name: str, infer: Callable[..., Abstract]) -> OpDef:
    return OpDef(
        batched=True,
        name=name,
        operands=("x", "y", "transpose_a", "transpose_b"),
        defaults=(False, False),
        infer=infer,
        kernel=_matmul,
        grad=_grad_product(name),
        fixed=_FIXED,
        prim_func=True,
        formats=_NZ,
        flops=_flops,
    )


def _infer_general(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    x, y = tensor_of("MatMulExt", abstracts[0], "input"), tensor_of("MatMulExt", abstracts[1], "mat2")
    kind = same_dtype("MatMulExt", {"x1": x, "x2": y})
    left = x.shape if len(x.shape) > 1 else (1, *x.shape)
    right = y.shape if len(y.shape) > 1 else (*y.shape, 1)
    if not x.shape or not y.shape or (left[-1] != right[-2] and -1 not in (left[-1], right[-2])):
        raise ScriptValueError(
            f"For 'MatMulExt', the elements of the input 'input' cannot multiply 'mat2': shapes {vector(x.shape)} and "
            f"{vector(y.shape)}."
        )
    shape = (*broadcast("MatMulExt", left[:-2], right[:-2]), left[-2], right[-1])
    if len(x.shape) == 1:
        shape = (*shape[:-2], shape[-1])
    return output(kind, shape[:-1] if len(y.shape) == 1 else shape)


def _last_swapped(rank: int) -> Shape:
    return (*range(rank - 2), rank - 1, rank - 2)


def _grad_general(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    x, y = operands
    left, right = shape_of(x), shape_of(y)
    if len(left) == 1 or len(right) == 1:
        return _grad_vector(b, x, y, dout)
    dx = dy = None
    if is_variable(x):
        dx = _unbatch(b, b.emit("MatMulExt", dout, b.emit("Transpose", y, _last_swapped(len(right)))), x)
    if is_variable(y):
        if len(left) > 2 and len(right) == 2:
            rows = b.emit("Transpose", b.emit("Reshape", x, (-1, left[-1])), (1, 0))
            dy = b.emit("MatMulExt", rows, b.emit("Reshape", dout, (-1, right[-1])))
        else:
            dy = _unbatch(b, b.emit("MatMulExt", b.emit("Transpose", x, _last_swapped(len(left))), dout), y)
    return dx, dy


def _grad_vector(b: GradBuilder, x: Any, y: Any, dout: Any) -> Sequence[Any]:
    """Return the gradients of a product with a vector, treated as a matrix of one row or column."""
    left, right = shape_of(x), shape_of(y)
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (*right, 1)
    full = (*broadcast("MatMulExt", rows[:-2], columns[:-2]), rows[-2], columns[-1])
    wide = b.emit("Reshape", dout, full)
    matrix_x, matrix_y = b.emit("Reshape", x, rows), b.emit("Reshape", y, columns)
    dx = b.emit("MatMulExt", wide, b.emit("Transpose", matrix_y, _last_swapped(len(columns))))
    dy = b.emit("MatMulExt", b.emit("Transpose", matrix_x, _last_swapped(len(rows))), wide)
    dx = b.emit("Reshape", unbroadcast(b, dx, rows, shape_of(dx)), left)
    return dx, b.emit("Reshape", unbroadcast(b, dy, columns, shape_of(dy)), right)


def _infer_dense(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    x, weight = tensor_of("Dense", abstracts[0], "input"), tensor_of("Dense", abstracts[1], "weight")
    kind = same_dtype("Dense", {"x1": x, "x2": weight})
    if len(weight.shape) != 2 or not x.shape or x.shape[-1] != weight.shape[-1]:
        raise ScriptValueError(
            f"For 'Dense', the last dimension of 'input' must equal that of 'weight', but got {vector(x.shape)} and "
            f"{vector(weight.shape)}."
        )
    if not isinstance(abstracts[2], NoneType):
        bias = tensor_of("Dense", abstracts[2], "bias")
        if bias.shape != (weight.shape[0],):
            raise ScriptValueError(
                f"For 'Dense', the shape of 'bias' must be ({weight.shape[0]},), but got {bias.shape}."
            )
    return output(kind, (*x.shape[:-1], weight.shape[0]))


@np.errstate(all="ignore")
def _dense(x: Array, weight: Array, bias: Array | None = None) -> Any:
    product = np.matmul(x, weight.T)
    return product if bias is None else product + bias


def _grad_dense(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    x, weight, bias = operands
    shape = shape_of(x)
    flat = len(shape) != 2
    rows = b.emit("Reshape", dout, (-1, shape_of(dout)[-1])) if flat else dout
    dx = b.emit("MatMul", rows, weight, False, False)
    dweight = b.emit("MatMul", rows, b.emit("Reshape", x, (-1, shape[-1])) if flat else x, True, False)
    dbias = b.emit("SumExt", rows, (0,), False, None) if is_variable(bias) else None
    return b.emit("Reshape", dx, shape) if flat else dx, dweight, dbias


_CHANNEL = {0: 1, 1: -1, 2: 1}  # data_format NCHW, NHWC, NCDHW -> channel axis


def _channel(name: str, abstract: Abstract, rank: int) -> int:
    return _CHANNEL[value_of(name, abstract, "data_format")] % rank


def _infer_bias_add(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    x, bias = tensor_of("BiasAdd", abstracts[0], "input_x"), tensor_of("BiasAdd", abstracts[1], "bias")
    kind = same_dtype("BiasAdd", {"input_x": x, "bias": bias})
    if len(bias.shape) != 1:
        raise ScriptValueError(
            f"For primitive[BiasAdd], the rank of bias must be equal to 1, but got {len(bias.shape)}."
        )
    if len(x.shape) < 2:
        raise ScriptValueError(
            f"For primitive[BiasAdd], the rank of input_x must be at least 2, but got {len(x.shape)}."
        )
    axis = _channel("BiasAdd", abstracts[2], len(x.shape))
    if bias.shape[0] != x.shape[axis] and -1 not in (bias.shape[0], x.shape[axis]):
        raise ScriptValueError(
            f"For 'BiasAdd', bias[0] shape should be equal to input_x[{axis}] shape when data_format is "
            f"{value_of('BiasAdd', abstracts[2], 'data_format')}, but got bias shape: .{vector(bias.shape)}, "
            f"input_shape: {vector(x.shape)}."
        )
    return output(kind, x.shape)


@np.errstate(all="ignore")
def _bias_add(x: Array, bias: Array, data_format: int = 0) -> Array:
    axis = _CHANNEL[data_format] % x.ndim
    return x + bias.reshape(-1, *(1,) * (x.ndim - 1 - axis))


def _grad_bias_add(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    return dout, b.emit("BiasAddGrad", dout, constant(operands[2])), None


def _infer_bias_grad(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    dout = tensor_of("BiasAddGrad", abstracts[0], "dout")
    return output(dout.dtype, (dout.shape[_channel("BiasAddGrad", abstracts[1], len(dout.shape))],))


@np.errstate(all="ignore")
def _bias_grad(dout: Array, data_format: int = 0) -> Any:
    axis = _CHANNEL[data_format] % dout.ndim
    return dout.sum(axis=tuple(i for i in range(dout.ndim) if i != axis), dtype=dout.dtype)


OPS = (
    _product("MatMul", _infer_matmul),
    _product("BatchMatMul", _infer_batch),
    OpDef(
        name="MatMulExt",
        operands=("input", "mat2"),
        infer=_infer_general,
        kernel=np.errstate(all="ignore")(np.matmul),
        grad=_grad_general,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="Dense",
        operands=("input", "weight", "bias"),
        defaults=(None,),
        infer=_infer_dense,
        kernel=_dense,
        grad=_grad_dense,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="BiasAdd",
        operands=("input_x", "bias", "data_format"),
        defaults=(0,),
        infer=_infer_bias_add,
        kernel=_bias_add,
        grad=_grad_bias_add,
        prim_func=True,
    ),
    OpDef(
        name="BiasAddGrad",
        operands=("dout", "data_format"),
        defaults=(0,),
        infer=_infer_bias_grad,
        kernel=_bias_grad,
        prim_func=True,
    ),
)
