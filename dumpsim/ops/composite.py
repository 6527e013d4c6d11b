"""Composite operators, which the compiler expands before the backend (`dumpsim.ops.expand`).

They have kernels for PYNATIVE, where the vendor runs them without expansion.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType, ScalarType, TensorType
from dumpsim.core.dtype import DType, dtype
from dumpsim.ops.gradient import is_variable, number, part_or_zeros, shape_of, unbroadcast_pair
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.promotion import common_type, operand_type, with_common_type
from dumpsim.ops.reduce import axes_of, spread
from dumpsim.ops.rules import (
    axis_of,
    broadcast,
    constant,
    ints_of,
    kept_shape,
    output,
    same_dtype,
    size_of,
    tensor_of,
    tuple_of,
    value_of,
)  # fmt: skip

__all__ = ["FLOOR", "OPS", "sum_type"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer_scalar(name: str, kind: DType | None = None) -> Infer:
    """Return the rule of a tensor and a host number; a float number promotes an integer tensor to float32."""

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        other = abstracts[1]
        promoted = operand_type([x, other]) if isinstance(other, ScalarType) else x.dtype
        shape = broadcast(name, x.shape, other.shape) if isinstance(other, TensorType) else x.shape
        if name == "Divs" and promoted.kind not in ("float", "complex"):
            promoted = dtype("float32")
        return output(kind or promoted, shape)

    return infer


def _with_number(kernel: Callable[..., Any], whole: Any = None) -> Callable[..., Any]:
    """Give the number the type of the tensor, unless the number is of a higher kind.

    `whole` is the type in which the kernel takes integers, by default their own. [2.10 observed]
    """

    @np.errstate(all="ignore")
    def run(x: Any, other: Any, *more: Any) -> Any:
        x = np.asanyarray(x)
        if isinstance(other, float) and x.dtype.kind in "iub":
            x = x.astype(np.float32)
        elif x.dtype.kind == "b" and not isinstance(other, bool):
            x = x.astype(np.int64)
        if whole is not None and x.dtype.kind in "iu":
            x = x.astype(whole)
        # a number beyond the type wraps around [2.10 observed]
        number = np.array(other).astype(x.dtype) if isinstance(other, int) else np.asanyarray(other, x.dtype)
        return kernel(x, number, *more)

    return run


def _grad_muls(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("Muls", dout, constant(operands[1])), None


def _grad_divs(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("Divs", dout, constant(operands[1])), None


def _grad_plus(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return dout, *(None for _ in operands[1:])


def _grad_power(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, power = operands[0], constant(operands[1])
    slope = b.emit("Muls", b.emit("PowTensorScalar", x, power - 1), power)
    return b.emit("Mul", slope, dout), None


def _scalar(
    name: str, kernel: Callable[..., Any], grad: Grad | None, *more: str, stop: bool = False, kind: DType | None = None,
    whole: Any = None,
) -> OpDef:  # fmt: skip
    return OpDef(
        name=name,
        operands=("input", "other", *more),
        defaults=(1,) * len(more),
        infer=_infer_scalar(name, kind),
        kernel=_with_number(kernel, whole),
        grad=grad,
        prim_func=True,
        composite=True,
        stop=stop,
    )


def sum_type(kind: DType, wanted: DType | None) -> DType:
    """Return the number type of SumExt: integers and bool are summed in int64."""
    return wanted or (dtype("int64") if kind.kind in ("bool", "int", "uint") else kind)


def _infer_total(name: str, mean: bool) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        axes = axes_of(name, ints_of(name, abstracts[1], "dim"), len(x.shape))
        wanted = None if isinstance(abstracts[3], NoneType) else value_of(name, abstracts[3], "dtype")
        kind = (wanted or x.dtype) if mean else sum_type(x.dtype, wanted)
        keep = value_of(name, abstracts[2], "keepdim")
        return output(kind, kept_shape(x.shape, axes) if keep else (n for i, n in enumerate(x.shape) if i not in axes))

    return infer


@np.errstate(all="ignore")
def _sum(x: Array, dim: Any = None, keepdim: bool = False, kind: DType | None = None) -> Array:
    axes = axes_of("SumExt", dim, x.ndim)
    numpy = kind.numpy if kind is not None else np.dtype(np.int64) if x.dtype.kind in "iub" else x.dtype
    return np.asanyarray(x.sum(axis=axes, keepdims=keepdim, dtype=numpy) if axes else x.astype(numpy))


@np.errstate(all="ignore")
def _mean(x: Array, dim: Any = None, keepdim: bool = False, kind: DType | None = None) -> Array:
    axes = axes_of("MeanExt", dim, x.ndim)
    numpy = kind.numpy if kind is not None else x.dtype
    return np.asanyarray(x.mean(axis=axes, keepdims=keepdim, dtype=numpy) if axes else x.astype(numpy))


def _total_settings(operands: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = shape_of(operands[0])
    return shape, axes_of("SumExt", constant(operands[1]), len(shape))


def _grad_total(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    dx = spread(b, dout, *_total_settings(operands))
    if out.abstract.dtype != operands[0].abstract.dtype:
        dx = b.emit("Cast", dx, operands[0].abstract.dtype)
    return dx, None, None, None


def _grad_average(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    shape, axes = _total_settings(operands)
    return b.emit("Divs", spread(b, dout, shape, axes), size_of(shape[a] for a in axes)), None, None, None


def _infer_like(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        wanted = None if isinstance(abstracts[1], NoneType) else value_of(name, abstracts[1], "dtype")
        return output(wanted or x.dtype, x.shape)

    return infer


def _infer_softmax_slope(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dout, out = (
        tensor_of("SoftmaxBackward", abstracts[0], "grad_output"),
        tensor_of("SoftmaxBackward", abstracts[1], "output"),
    )
    return output(same_dtype("SoftmaxBackward", {"grad_output": dout, "output": out}), out.shape)


@np.errstate(all="ignore")
def _softmax_slope(dout: Array, out: Array, dim: int = -1) -> Any:
    return out * (dout - (out * dout).sum(axis=dim, keepdims=True))


def _infer_silu(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[-1], "input")
        return output(x.dtype, x.shape)

    return infer


def _gate(x: Array) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(np.signbit(x), small, np.ones_like(small)) / (1 + small)


@np.errstate(all="ignore")
def _silu(x: Array) -> Any:
    return x * _gate(x)


@np.errstate(all="ignore")
def _silu_slope(dout: Array, x: Array) -> Any:
    gate = _gate(x)
    return dout * gate * (1 + x * (1 - gate))


def _grad_silu(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("SiLUGrad", dout, operands[0]),)


def _infer_clamp(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("ClampScalar", abstracts[0], "input")
    is_float = any(isinstance(constant(bound), float) for bound in abstracts[1:])
    return output(dtype("float32") if is_float and x.dtype.kind in ("int", "uint") else x.dtype, x.shape)


def _clamp(x: Array, low: Any = None, high: Any = None) -> Array:
    if x.dtype.kind in "iu" and (isinstance(low, float) or isinstance(high, float)):
        x = np.asanyarray(x, np.float32)  # [observed 2.10]
    if low is not None:
        x = np.maximum(x, np.asanyarray(low, x.dtype))
    return x if high is None else np.minimum(x, np.asanyarray(high, x.dtype))


def _grad_clamp(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, low, high = operands[0], constant(operands[1]), constant(operands[2])
    above = b.emit("GreaterEqual", x, number(low, x)) if low is not None else None
    below = b.emit("LessEqual", x, number(high, x)) if high is not None else None
    if above is None and below is None:
        return dout, None, None
    inside = b.emit("LogicalAnd", above, below) if above is not None and below is not None else above or below
    return b.emit("Select", inside, dout, number(0, dout)), None, None


def _infer_remainder(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, y = tensor_of("Remainder", abstracts[0], "input"), tensor_of("Remainder", abstracts[1], "other")
    return output(common_type(x.dtype, y.dtype), broadcast("Remainder", x.shape, y.shape))


def _grad_remainder(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    dy = None
    if is_variable(operands[1]):
        dy = b.emit("Mul", b.emit("Neg", dout), b.emit("DivMod", *operands, FLOOR))
    return unbroadcast_pair(b, operands, (dout, dy))


_TRUNCATE, FLOOR = 1, 2  # the operand rounding_mode of DivMod


@np.errstate(all="ignore")
def _div_mod(x: Any, y: Any, rounding: int | None = None) -> Any:
    if rounding == FLOOR:
        return np.floor_divide(x, y)
    quotient = np.divide(x, y)
    return np.trunc(quotient).astype(np.result_type(x, y)) if rounding == _TRUNCATE else quotient


def _infer_pieces(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("SplitWithSize", abstracts[0], "input")
    sizes = ints_of("SplitWithSize", abstracts[1], "split_size_or_sections")
    axis = axis_of("SplitWithSize", value_of("SplitWithSize", abstracts[2], "dim"), len(x.shape))
    return tuple_of(*(output(x.dtype, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes))


def _pieces(x: Array, sizes: Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    return tuple(np.split(x, np.cumsum(sizes)[:-1], dim))


def _grad_pieces(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    parts = [part_or_zeros(b, dout, i, out) for i in range(len(out.abstract.items))]
    return b.emit("Concat", tuple(parts), constant(operands[2])), None, None


def _infer_scatter(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("InplaceScatterSrc", abstracts[0], "input")
    return output(x.dtype, x.shape)


def _scatter(x: Array, dim: int, index: Array, source: Array) -> Array:
    result = np.array(x)
    np.put_along_axis(result, index, source, dim)
    return result


OPS = (
    _scalar("Muls", np.multiply, _grad_muls),
    _scalar("Divs", np.divide, _grad_divs, whole=np.float64),
    _scalar("AddScalar", lambda x, other, alpha: x + other * alpha, _grad_plus, "alpha"),
    _scalar("SubScalar", lambda x, other, alpha: x - other * alpha, _grad_plus, "alpha"),
    _scalar("PowTensorScalar", np.power, _grad_power),
    _scalar("RemainderTensorScalar", np.mod, _grad_plus),
    _scalar("LessScalar", np.less, None, stop=True, kind=dtype("bool"), whole=np.int64),
    _scalar("EqScalar", np.equal, None, stop=True, kind=dtype("bool")),
    _scalar("GreaterEqualScalar", np.greater_equal, None, stop=True, kind=dtype("bool")),
    OpDef(
        name="RemainderScalarTensor",
        operands=("input", "other"),
        infer=lambda abstracts, attrs: _infer_scalar("RemainderScalarTensor")(abstracts[::-1], attrs),
        kernel=lambda number, x: _with_number(lambda tensor, value: np.mod(value, tensor))(x, number),
        prim_func=True,
        composite=True,
        stop=True,
    ),
    OpDef(
        name="SumExt",
        operands=("input", "dim", "keepdim", "dtype"),
        defaults=(None, False, None),
        infer=_infer_total("SumExt", mean=False),
        kernel=_sum,
        grad=_grad_total,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="MeanExt",
        operands=("input", "dim", "keepdim", "dtype"),
        defaults=(None, False, None),
        infer=_infer_total("MeanExt", mean=True),
        kernel=_mean,
        grad=_grad_average,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="ZerosLikeExt",
        operands=("input", "dtype"),
        defaults=(None,),
        infer=_infer_like("ZerosLikeExt"),
        kernel=lambda x, kind=None: np.zeros(np.shape(x), x.dtype if kind is None else kind.numpy),
        prim_func=True,
        composite=True,
        stop=True,
    ),
    OpDef(
        name="SoftmaxBackward",
        operands=("grad_output", "output", "dim"),
        defaults=(-1,),
        infer=_infer_softmax_slope,
        kernel=_softmax_slope,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="SiLU",
        operands=("input",),
        infer=_infer_silu("SiLU"),
        kernel=_silu,
        grad=_grad_silu,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="SiLUGrad",
        operands=("dout", "input"),
        infer=_infer_silu("SiLUGrad"),
        kernel=_silu_slope,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="ClampScalar",
        operands=("input", "min", "max"),
        defaults=(None, None),
        infer=_infer_clamp,
        kernel=_clamp,
        grad=_grad_clamp,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="RemainderTensorTensor",
        operands=("input", "other"),
        infer=_infer_remainder,
        kernel=np.errstate(all="ignore")(with_common_type(np.mod)),
        grad=_grad_remainder,
        mixed=(0, 1),
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="DivMod",
        operands=("input", "other", "rounding_mode"),
        defaults=(None,),
        infer=_infer_remainder,
        kernel=_div_mod,
        prim_func=True,
        composite=True,
        stop=True,  # scripts use it only with rounding, which has no gradient
    ),
    OpDef(
        name="SplitWithSize",
        operands=("input", "split_size_or_sections", "dim"),
        defaults=(0,),
        infer=_infer_pieces,
        kernel=_pieces,
        grad=_grad_pieces,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="InplaceScatterSrc",
        operands=("input", "dim", "index", "src"),
        infer=_infer_scatter,
        kernel=_scatter,
        prim_func=True,
        composite=True,
    ),
)
