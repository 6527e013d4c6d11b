"""How the compiler expands composite operators into operators that the backend has.

Each expansion emits the nodes that MindSpore 2.10 puts into the kernel graph under ``Expand/_<Composite>/``, in their
order. [2.10 observed]
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import ScalarType, TensorType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import UnsupportedError
from dumpsim.ops.gradient import shape_of
from dumpsim.ops.opdef import Emitter
from dumpsim.ops.promotion import operand_type
from dumpsim.ops.rules import axis_of, constant

__all__ = ["EXPANSIONS", "expand"]

Expansion = Callable[[Emitter, Sequence[Any], Any], Any]


def _as_number(operand: Any, result: Any) -> Any:
    """Return a host number as a constant tensor of the result's number type; tensors are unchanged."""
    if isinstance(getattr(operand, "abstract", None), TensorType):
        return operand
    value = constant(operand)
    return value if isinstance(value, np.ndarray) else np.asarray(value, result.dtype.numpy)


def _cast(b: Emitter, x: Any, kind: DType) -> Any:
    return x if x.abstract.dtype == kind else b.emit("Cast", x, kind)


def _with_number(op_type: str) -> Expansion:
    def run(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
        x, other = operands[:2]
        return b.emit(op_type, _cast(b, x, result.dtype), _as_number(other, result))

    return run


def _with_alpha(op_type: str) -> Expansion:
    """Return the expansion of ``x + other * alpha``; the product is a node even if both factors are constants."""

    def run(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
        x, other, alpha = operands
        scaled = b.emit("Mul", _as_number(other, result), _as_number(alpha, result))
        return b.emit(op_type, _as_number(x, result), scaled)

    return run


def _compared(op_type: str) -> Expansion:
    """Return the expansion of a comparison with a number, in the common type of both."""

    def run(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
        x, value = operands[0], constant(operands[1])
        kind = operand_type([x.abstract, _scalar_type(value)])
        return b.emit(op_type, _cast(b, x, kind), np.asarray(value, kind.numpy))

    return run


def _scalar_type(value: Any) -> ScalarType:
    kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
    return ScalarType(dtype=dtype(kind), value=value)


def _remainder_of_number(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return b.emit("FloorMod", _as_number(operands[0], result), _cast(b, operands[1], result.dtype))


def _inplace(op_type: str, alpha: bool = False) -> Expansion:
    """Return the expansion of ``x += y``, in the type of `x`. [source math_ops.cc]"""

    def run(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
        x, other = operands[:2]
        is_tensor = isinstance(getattr(other, "abstract", None), TensorType)
        y = _cast(b, other, result.dtype) if is_tensor else _as_number(other, result)
        if alpha:
            y = b.emit("Mul", y, _as_number(operands[2], result))
        return b.emit(op_type, x, y)

    return run


def _masked_by_number(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, mask, value = operands
    filler = constant(value)
    if isinstance(filler, float):
        return b.emit("MaskedFill", x, mask, np.asarray(filler, result.dtype.numpy))
    return b.emit("MaskedFill", x, mask, b.emit("Cast", np.asarray(filler, np.int64), result.dtype))


def _index_of_largest(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, dim, keep = operands
    if constant(dim) is None:
        return b.emit("Argmax", b.emit("Reshape", x, (-1,)), 0, dtype("int64"))
    place = b.emit("Argmax", x, constant(dim), dtype("int64"))
    return b.emit("ExpandDims", place, constant(dim)) if constant(keep) else place


def _new(value: int) -> Expansion:
    def run(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
        return b.emit("FillV2", constant(operands[1]), np.asarray(value, result.dtype.numpy))

    return run


def _view_as(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return b.emit("Reshape", operands[0], result.shape)


def _sum(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, dim, keep, _ = operands
    named = constant(dim)
    axes = () if named is None else (named,) if isinstance(named, int) else tuple(named)
    return b.emit("ReduceSum", _cast(b, x, result.dtype), axes, bool(constant(keep)), False)


def _mean(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, dim, keep, _ = operands
    named = constant(dim)
    axes = () if named is None else (named,) if isinstance(named, int) else tuple(named)
    return b.emit("ReduceMean", _cast(b, x, result.dtype), axes, bool(constant(keep)))


def _whole(op_type: str) -> Expansion:
    def run(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
        return b.emit(op_type, operands[0], tuple(range(len(shape_of(operands[0])))), False)

    return run


def _product(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, dim, keep, _ = operands
    named = constant(dim)
    axes = () if named is None else (named,) if isinstance(named, int) else tuple(named)
    return b.emit("ReduceProd", _cast(b, x, result.dtype), axes, bool(constant(keep)))


def _masked(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return b.emit("MaskedFill", *operands)


def _zeros_like(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return _cast(b, b.emit("ZerosLike", operands[0]), result.dtype)


def _softmax_backward(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    dout, out, dim = operands
    last, axis = len(result.shape) - 1, constant(dim) % len(result.shape)
    # another axis than the last one is swapped with it [2.10 observed]
    order = tuple(last if i == axis else axis if i == last else i for i in range(last + 1))
    if axis != last:
        out, dout = b.emit("Transpose", out, order), b.emit("Transpose", dout, order)
    total = b.emit("ReduceSum", b.emit("Mul", out, dout), (-1,), True, False)
    slope = b.emit("Mul", out, b.emit("Sub", dout, total))
    return slope if axis == last else b.emit("Transpose", slope, order)


def _silu(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return b.emit("Mul", operands[0], b.emit("Sigmoid", operands[0]))


def _silu_grad(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    dout, x = operands
    gate = b.emit("Sigmoid", x)
    direct = b.emit("Mul", gate, dout)  # emitted first, though used last: its number is the lower one
    return b.emit("Add", b.emit("SigmoidGrad", gate, b.emit("Mul", x, dout)), direct)


def _clamp(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, low, high = operands
    if constant(low) is not None:
        x = b.emit("Maximum", x, _as_number(low, result))
    return x if constant(high) is None else b.emit("Minimum", x, _as_number(high, result))


def _remainder(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    kind = result.dtype
    return b.emit("FloorMod", *(_cast(b, operand, kind) for operand in operands))


def _div_mod(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, y, rounding = operands
    if constant(rounding) == 2:
        return b.emit("FloorDiv", x, y)
    quotient = b.emit("Div", x, y)
    return b.emit("Trunc", quotient) if constant(rounding) == 1 else quotient


def _matmul(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, y = operands
    left, right = shape_of(x), shape_of(y)
    rows = left if len(left) > 1 else (1, *left)
    columns = right if len(right) > 1 else (1, *right)  # a vector is the row of a transposed matrix
    turned = columns != right
    if rows != left:
        x = b.emit("Reshape", x, rows)
    if columns != right:
        y = b.emit("Reshape", y, columns)
    if len(rows) == 2 and len(columns) == 2:
        product = b.emit("MatMul", x, y, False, turned)
    else:
        batch = np.broadcast_shapes(rows[:-2], columns[:-2])
        if batch != rows[:-2]:
            x = b.emit("BroadcastTo", x, (*batch, *rows[-2:]))
        if batch != columns[:-2]:
            y = b.emit("BroadcastTo", y, (*batch, *columns[-2:]))
        product = b.emit("BatchMatMul", x, y, False, turned)
    return product if shape_of(product) == result.shape else b.emit("Reshape", product, result.shape)


def _dense(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, weight, bias = operands
    is_matrix = len(x.abstract.shape) == 2
    rows = x if is_matrix else b.emit("Reshape", x, (-1, shape_of(weight)[-1]))
    product = b.emit("MatMul", rows, weight, False, True)
    if bias is not None and constant(bias) is not None:
        product = b.emit("Add", product, bias)
    if is_matrix:
        return product
    if result.shape.count(-1) > 1:
        raise UnsupportedError(f"a result of shape {result.shape}", where="Dense")
    return b.emit("Reshape", product, result.shape)


def _pieces(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, sizes, dim = operands
    shape = shape_of(x)
    axis = axis_of("SplitWithSize", constant(dim), len(shape))
    parts, start = [], 0
    for size in constant(sizes):
        begin = tuple(start if i == axis else 0 for i in range(len(shape)))
        parts.append(b.emit("Slice", x, begin, tuple(size if i == axis else n for i, n in enumerate(shape))))
        start += size
    return b.emit("MakeTuple", *parts)


def _scatter(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, dim, index, source = operands
    return b.emit("TensorScatterElements", x, index, source, constant(dim), 0)


def _logits_backward(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    dout, x, target, weight, pos_weight, reduction = operands
    pos_weight = pos_weight if _is_tensor(pos_weight) else b.emit("OnesLike", target)
    steep = b.emit("Mul", target, pos_weight)
    rest = b.emit("Sub", b.emit("Add", steep, np.asarray(1, result.dtype.numpy)), target)
    slope = b.emit("Sub", b.emit("Mul", rest, b.emit("Sigmoid", x)), steep)
    slope = b.emit("Mul", slope, dout)
    slope = b.emit("Mul", slope, weight if _is_tensor(weight) else b.emit("OnesLike", target))
    if constant(reduction) == 1:
        slope = b.emit("RealDiv", slope, np.asarray(result.size, result.dtype.numpy))
    return slope


def _log_softmax(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return b.emit("LogSoftmax", _cast(b, operands[0], result.dtype), constant(operands[1]))


def _one_hot(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    tensor, depth, on, off, axis = operands
    return b.emit("OneHot", tensor, constant(depth), on, off, constant(axis))


def _embedding(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return b.emit("Gather", operands[1], operands[0], 0, 0)


def _padded(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    x, padding, value = operands
    filler = np.asarray(constant(value))
    return b.emit("PadV3", x, tuple(constant(padding)), b.emit("Cast", filler, result.dtype))


def _ones_like(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return _cast(b, b.emit("OnesLike", operands[0]), result.dtype)


def _filled(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return b.emit("FillV2", constant(operands[0]), np.asarray(constant(operands[1]), result.dtype.numpy))


def _power_of_number(b: Emitter, operands: Sequence[Any], result: Any) -> Any:
    return b.emit("Pow", _as_number(operands[0], result), _cast(b, operands[1], result.dtype))


def _is_tensor(operand: Any) -> bool:
    return isinstance(getattr(operand, "abstract", None), TensorType)


EXPANSIONS: Mapping[str, Expansion] = {
    "Muls": _with_number("Mul"),
    "Divs": _with_number("Div"),
    "PowTensorScalar": _with_number("Pow"),
    "RemainderTensorScalar": _with_number("FloorMod"),
    "AddScalar": _with_alpha("Add"),
    "SubScalar": _with_alpha("Sub"),
    "LessScalar": _compared("Less"),
    "EqScalar": _compared("Equal"),
    "GreaterEqualScalar": _compared("GreaterEqual"),
    "PowScalarTensor": _power_of_number,
    "FlattenExt": _view_as,
    "LogSoftmaxExt": _log_softmax,
    "OneHotExt": _one_hot,
    "Embedding": _embedding,
    "ConstantPadND": _padded,
    "OnesLikeExt": _ones_like,
    "FillScalar": _filled,
    "RemainderScalarTensor": _remainder_of_number,
    "InplaceAddExt": _inplace("Add", alpha=True),
    "InplaceAddsExt": _inplace("Add", alpha=True),
    "InplaceSubExt": _inplace("Sub", alpha=True),
    "InplaceSubScalar": _inplace("Sub", alpha=True),
    "InplaceMul": _inplace("Mul"),
    "InplaceMuls": _inplace("Mul"),
    "InplaceDiv": _inplace("RealDiv"),
    "InplaceDivs": _inplace("RealDiv"),
    "InplaceFloorDivide": _inplace("FloorDiv"),
    "InplaceFloorDivides": _inplace("FloorDiv"),
    "InplaceRemainderTensorTensor": _inplace("FloorMod"),
    "InplaceRemainderTensorScalar": _inplace("FloorMod"),
    "MaskedFillScalar": _masked_by_number,
    "ArgMaxExt": _index_of_largest,
    "NewZeros": _new(0),
    "NewOnes": _new(1),
    "ViewAs": _view_as,
    "SumExt": _sum,
    "MeanExt": _mean,
    "ProdExt": _product,
    "Max": _whole("ReduceMax"),
    "Min": _whole("ReduceMin"),
    "InplaceMaskedFillTensor": _masked,
    "ZerosLikeExt": _zeros_like,
    "SoftmaxBackward": _softmax_backward,
    "SiLU": _silu,
    "SiLUGrad": _silu_grad,
    "ClampScalar": _clamp,
    "RemainderTensorTensor": _remainder,
    "DivMod": _div_mod,
    "MatMulExt": _matmul,
    "Dense": _dense,
    "SplitWithSize": _pieces,
    "InplaceScatterSrc": _scatter,
    "BinaryCrossEntropyWithLogitsBackward": _logits_backward,
}


def expand(b: Emitter, op_type: str, operands: Sequence[Any], abstract: Any) -> Any:
    """Emit the nodes that replace a composite operator.

    Parameters
    ----------
    b : Emitter
        Takes the nodes; their scope is ``Expand/_<op_type>``.
    op_type : str
        A key of `EXPANSIONS`.
    operands : sequence
        All operands of the composite node: symbols, constants.
    abstract : Abstract
        The type of its output.

    Returns
    -------
    symbol
        The replacement of the node.
    """
    return EXPANSIONS[op_type](b, operands, abstract)
