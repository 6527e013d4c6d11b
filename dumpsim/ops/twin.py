"""Twins: operators of `mint` that compute the same as an older operator, with different operands.

Some have a kernel on the CPU, the others are expanded (`dumpsim.ops.expand`). [observed 2.10] The operators of their
gradients have not been recorded, unless a rule gives a source.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType, ScalarType
from dumpsim.ops.gradient import is_variable, part_or_zeros, shape_of, unbroadcast_pair
from dumpsim.ops.opdef import Grad, GradBuilder, OpDef
from dumpsim.ops.promotion import operand_type, with_common_type
from dumpsim.ops.rules import axis_of, broadcast, constant, ints_of, kept_shape, output, tensor_of, tuple_of, value_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer_sum(name: str) -> Callable[[Sequence[Abstract], Attrs], Abstract]:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, y = tensor_of(name, abstracts[0], "input"), tensor_of(name, abstracts[1], "other")
        return output(operand_type([x, y]), broadcast(name, x.shape, y.shape))

    return infer


def _grad_sum(negative: bool) -> Grad:
    """Return the gradient; that of the second operand is multiplied by `alpha`. [source grad_math_ops.cc]"""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        alpha, dy = constant(operands[2]), None
        if is_variable(operands[1]):
            dy = b.emit("Neg", dout) if negative else dout
            dy = dy if alpha == 1 else b.emit("Muls", dy, alpha)
        return *unbroadcast_pair(b, operands, (dout, dy)), None

    return grad


def _sum(name: str, function: Callable[[Any, Any], Any], *, negative: bool) -> OpDef:
    @np.errstate(all="ignore")
    def kernel(x: Any, y: Any, alpha: Any = 1) -> Any:
        scaled = y if alpha == 1 else np.asanyarray(y * np.asanyarray(alpha, np.asanyarray(y).dtype))
        return with_common_type(function)(x, scaled)

    return OpDef(
        name=name,
        operands=("input", "other", "alpha"),
        defaults=(1,),
        infer=_infer_sum(name),
        kernel=kernel,
        grad=_grad_sum(negative),
        prim_func=True,
    )


def _infer_products(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, y = tensor_of("BatchMatMulExt", abstracts[0], "input"), tensor_of("BatchMatMulExt", abstracts[1], "mat2")
    batch = broadcast("BatchMatMulExt", x.shape[:-2], y.shape[:-2])
    return output(x.dtype, (*batch, x.shape[-2], y.shape[-1]))


def _grad_products(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, y = operands
    dx = b.emit("BatchMatMul", dout, y, False, True) if is_variable(x) else None
    return dx, b.emit("BatchMatMul", x, dout, True, False) if is_variable(y) else None


def _infer_extreme(name: str) -> Callable[[Sequence[Abstract], Attrs], Abstract]:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        axis = axis_of(name, value_of(name, abstracts[1], "dim"), len(x.shape), "axis")
        keep = value_of(name, abstracts[2], "keepdim")
        shape = kept_shape(x.shape, (axis,)) if keep else (*x.shape[:axis], *x.shape[axis + 1 :])
        return tuple_of(output(x.dtype, shape), output("int64", shape))

    return infer


def _grad_extreme(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, axis, keep = operands[0], constant(operands[1]), bool(constant(operands[2]))
    zeros = b.emit("Zeros", shape_of(x), x.abstract.dtype)
    slope, place = part_or_zeros(b, dout, 0, out), b.item(out, 1)
    if not keep:
        place, slope = b.emit("ExpandDims", place, axis), b.emit("ExpandDims", slope, axis)
    return b.emit("InplaceScatterSrc", zeros, axis, place, slope), None, None


def _extreme(name: str, function: Callable[..., Any]) -> OpDef:
    def kernel(x: Array, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
        place = np.expand_dims(function(x, axis=dim), dim)
        value = np.take_along_axis(x, place, dim)
        return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))

    return OpDef(
        name=name,
        operands=("input", "dim", "keepdim"),
        defaults=(False,),
        infer=_infer_extreme(name),
        kernel=kernel,
        grad=_grad_extreme,
        prim_func=True,
    )


def _infer_same(name: str) -> Callable[[Sequence[Abstract], Attrs], Abstract]:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        return output(x.dtype, x.shape)

    return infer


def _scatter(x: Array, dim: int, index: Array, source: Any, reduce: int = 0) -> Array:
    result = np.array(x)
    place = list(np.meshgrid(*(np.arange(n) for n in index.shape), indexing="ij", sparse=True))
    place[dim % x.ndim] = index
    # a larger source is used from its beginning
    result[tuple(place)] = source[tuple(slice(n) for n in index.shape)] if np.ndim(source) else source
    return result


def _grad_scatter(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The replaced elements have a gradient of zero; the source gets the gradient of their positions."""
    _, dim, index, source, _ = operands
    dx = b.emit("ScatterValue", dout, constant(dim), index, 0, 0)
    if not is_variable(source):
        return dx, None, None, None, None
    taken = b.emit("GatherD", dout, constant(dim), index)
    widths = [n - m for n, m in zip(shape_of(source), shape_of(index), strict=True)]
    if any(widths):
        zero = np.zeros((), dout.abstract.dtype.numpy)
        taken = b.emit("PadV3", taken, tuple(n for width in reversed(widths) for n in (0, width)), zero)
    return dx, None, None, taken, None


def _scattered(name: str, source: str) -> OpDef:
    return OpDef(
        name=name,
        operands=("input", "dim", "index", source, "reduce"),
        defaults=(0,),
        infer=_infer_same(name),
        kernel=_scatter,
        grad=_grad_scatter,
        prim_func=True,
    )


def _joined(shape: Sequence[int], first: int, last: int) -> tuple[int, ...]:
    """Return the shape with axes `first` to `last` joined."""
    if not shape:
        return (1,)
    first, last = first % len(shape), last % len(shape)
    return (*shape[:first], int(np.prod(shape[first : last + 1])), *shape[last + 1 :])


def _infer_flat(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("FlattenExt", abstracts[0], "input")
    first, last = (value_of("FlattenExt", abstracts[at], name) for at, name in ((1, "start_dim"), (2, "end_dim")))
    return output(x.dtype, _joined(x.shape, first, last))


def _grad_flat(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("Reshape", dout, shape_of(operands[0])), None, None


def _softmax(x: Array, dim: int, kind: Any = None) -> Any:
    shifted = x - x.max(axis=dim, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))


def _grad_softmax(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("LogSoftmaxGrad", out, dout, constant(operands[1])), None, None


def _infer_hot(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    index, on = tensor_of("OneHotExt", abstracts[0], "tensor"), tensor_of("OneHotExt", abstracts[2], "on_value")
    depth = value_of("OneHotExt", abstracts[1], "num_classes")
    axis = axis_of("OneHotExt", value_of("OneHotExt", abstracts[4], "axis"), len(index.shape), "axis", extra=1)
    return output(on.dtype, (*index.shape[:axis], depth, *index.shape[axis:]))


def _hot(index: Array, depth: int, on: Any, off: Any, axis: int = -1) -> Any:
    place = axis % (index.ndim + 1)
    steps = np.arange(depth).reshape(-1, *(1,) * (index.ndim - place))
    return np.where(np.expand_dims(index, place) == steps, on, off).astype(np.asarray(on).dtype)


def _infer_rows(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    index, table = tensor_of("Embedding", abstracts[0], "input"), tensor_of("Embedding", abstracts[1], "weight")
    return output(table.dtype, (*index.shape, table.shape[-1]))


def _grad_rows(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    index, table = operands[:2]
    return None, b.emit("UnsortedSegmentSum", dout, index, shape_of(table)[0]), None, None, None, None


def _widths(rank: int, padding: Sequence[int]) -> list[tuple[int, int]]:
    pairs = [(padding[at], padding[at + 1]) for at in range(0, len(padding), 2)]
    return [(0, 0)] * (rank - len(pairs)) + pairs[::-1]


def _infer_pad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("ConstantPadND", abstracts[0], "input")
    widths = _widths(len(x.shape), ints_of("ConstantPadND", abstracts[1], "padding"))
    return output(x.dtype, (n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)))


def _pad(x: Array, padding: Sequence[int], value: Any = 0) -> Any:
    widths = _widths(x.ndim, padding)
    cut = tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(x.shape, widths, strict=True))
    wider = [(max(before, 0), max(after, 0)) for before, after in widths]
    return np.pad(x[cut], wider, constant_values=np.asarray(value, x.dtype))


def _grad_pad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("ConstantPadND", dout, tuple(-n for n in constant(operands[1])), 0), None, None


def _infer_like(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("OnesLikeExt", abstracts[0], "input")
    wanted = None if isinstance(abstracts[1], NoneType) else value_of("OnesLikeExt", abstracts[1], "dtype")
    return output(wanted or x.dtype, x.shape)


def _infer_power(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    exponent = tensor_of("PowScalarTensor", abstracts[1], "exponent")
    base = abstracts[0]
    assert isinstance(base, ScalarType)
    return output(operand_type([exponent, base]), exponent.shape)


@np.errstate(all="ignore")
def _power(base: Any, exponent: Array) -> Any:
    kind = np.dtype(np.float32) if isinstance(base, float) and exponent.dtype.kind in "iub" else exponent.dtype
    return np.power(np.asarray(base, kind), exponent.astype(kind))


def _grad_power(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    slope = b.emit("Mul", b.emit("PowScalarTensor", constant(operands[0]), operands[1]), dout)
    return None, b.emit("Muls", slope, float(np.log(constant(operands[0]))))


def _composite(
    name: str, operands: tuple[str, ...], infer: Any, kernel: Any, grad: Grad | None, defaults: tuple[Any, ...] = ()
) -> OpDef:
    return OpDef(
        name=name,
        operands=operands,
        defaults=defaults,
        infer=infer,
        kernel=np.errstate(all="ignore")(kernel),
        grad=grad,
        prim_func=True,
        composite=True,
        stop=grad is None,
    )


OPS = (
    _sum("AddExt", np.add, negative=False),
    _sum("SubExt", np.subtract, negative=True),
    OpDef(
        name="BatchMatMulExt",
        operands=("input", "mat2"),
        infer=_infer_products,
        kernel=np.errstate(all="ignore")(np.matmul),
        grad=_grad_products,
        prim_func=True,
    ),
    _extreme("MaxDim", np.argmax),
    _extreme("MinDim", np.argmin),
    _scattered("Scatter", "src"),
    _scattered("ScatterValue", "src"),
    _composite(
        "FlattenExt",
        ("input", "start_dim", "end_dim"),
        _infer_flat,
        lambda x, first=0, last=-1: x.reshape(_joined(x.shape, first, last)),
        _grad_flat,
        (0, -1),
    ),
    _composite(
        "LogSoftmaxExt", ("input", "dim", "dtype"), _infer_same("LogSoftmaxExt"), _softmax, _grad_softmax, (None,)
    ),
    _composite("OneHotExt", ("tensor", "num_classes", "on_value", "off_value", "axis"), _infer_hot, _hot, None, (-1,)),
    _composite(
        "Embedding",
        ("input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq"),
        _infer_rows,
        lambda index, table, *rest: table[index],
        _grad_rows,
        (None, None, 2.0, False),
    ),
    _composite("ConstantPadND", ("input", "padding", "value"), _infer_pad, _pad, _grad_pad, (0,)),
    _composite(
        "OnesLikeExt",
        ("input", "dtype"),
        _infer_like,
        lambda x, kind=None: np.ones(np.shape(x), x.dtype if kind is None else kind.numpy),
        None,
        (None,),
    ),
    _composite("PowScalarTensor", ("input", "exponent"), _infer_power, _power, _grad_power),
)
