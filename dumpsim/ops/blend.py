"""Elementwise functions of two or three tensors beyond arithmetic, and a few of one tensor."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import e, log
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.ops.gradient import number, shape_of, unbroadcast, unbroadcast_pair
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import broadcast, constant, output, same_dtype, tensor_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]
Slopes = Callable[[GradBuilder, Any, Any, Any, Any], tuple[Any, Any]]


def _infer(op: str, names: Sequence[str], result: str | None = None) -> Infer:
    """Return the rule of broadcasting tensors; `result` is the output's number type if it differs from theirs."""

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        tensors = {name: tensor_of(op, abstracts[at], name) for at, name in enumerate(names)}
        kind = same_dtype(op, tensors)
        first, *others = (tensor.shape for tensor in tensors.values())
        shape = reduce(lambda one, two: broadcast(op, one, two), others, first)
        return output(result or kind, shape)

    return infer


def _pair_grad(slopes: Slopes) -> Grad:
    """Return the gradient of two tensors: their slopes, summed over broadcast axes."""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        x, y = operands[:2]
        return [*unbroadcast_pair(b, (x, y), slopes(b, x, y, out, dout)), *(None for _ in operands[2:])]

    return grad


def _pair(
    name: str,
    operands: tuple[str, str],
    kernel: Callable[..., Any],
    slopes: Slopes | None = None,
    *,
    result: str | None = None,
    named: tuple[str, ...] = (),
    prim_func: bool = True,
    attrs: Attrs | None = None,
    fixed: Attrs | None = None,
    more: tuple[str, ...] = (),
    defaults: tuple[Any, ...] = (),
) -> OpDef:
    """Return an operator of two tensors; `named` are names of operands and output, printed if not defined in yaml."""
    return OpDef(
        name=name,
        operands=(*operands, *more),
        defaults=defaults,
        infer=_infer(name, operands, result),
        kernel=np.errstate(all="ignore")(kernel),
        grad=None if slopes is None else _pair_grad(slopes),
        stop=slopes is None,
        promotes=(0, 1),
        attrs=attrs or {},
        fixed=fixed or {},
        prim_func=prim_func and not named,
        input_names=list(named[:-1]),
        output_names=list(named[-1:]),
    )


def _xdivy_slopes(b: GradBuilder, x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, Any]:
    dx = b.emit("Mul", b.emit("Xdivy", b.emit("Cast", b.emit("NotEqual", x, number(0, x)), x.abstract.dtype), y), dout)
    dy = b.emit("Mul", b.emit("Xdivy", b.emit("Neg", x), b.emit("Square", y)), dout)
    return dx, dy


def _xlogy_slopes(b: GradBuilder, x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, Any]:
    nonzero = b.emit("Cast", b.emit("NotEqual", x, number(0, x)), x.abstract.dtype)
    return b.emit("Mul", b.emit("Xlogy", nonzero, y), dout), b.emit("Mul", b.emit("Xdivy", x, y), dout)


def _square_slopes(b: GradBuilder, x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, Any]:
    dx = b.emit("Mul", b.emit("Mul", dout, b.emit("Sub", x, y)), number(2, dout))
    return dx, b.emit("Neg", dx)


def _no_nan_slopes(b: GradBuilder, x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, Any]:
    return b.emit("MulNoNan", dout, y), b.emit("MulNoNan", x, dout)


def _truncated_slopes(b: GradBuilder, x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, Any]:
    return dout, b.emit("Mul", b.emit("Neg", dout), b.emit("Trunc", b.emit("Div", x, y)))


def _hypot_slopes(b: GradBuilder, x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, Any]:
    return b.emit("Mul", b.emit("Div", x, out), dout), b.emit("Mul", b.emit("Div", y, out), dout)


def _larger_slopes(compare: str, opposite: str) -> Slopes:
    def slopes(b: GradBuilder, x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, Any]:
        kind = dout.abstract.dtype
        return tuple(b.emit("Mul", b.emit("Cast", b.emit(op, x, y), kind), dout) for op in (compare, opposite))

    return slopes


def _log_add_slopes(base: float) -> Slopes:
    def slopes(b: GradBuilder, x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, Any]:
        def share(operand: Any) -> Any:
            difference = b.emit("Sub", operand, out)
            if base != e:
                difference = b.emit("Mul", difference, number(log(base), operand))
            return b.emit("Mul", b.emit("Exp", difference), dout)

        return share(x), share(y)

    return slopes


def _truncated(x: Array, y: Array) -> Array:
    quotient = np.trunc(x / y)
    return np.asanyarray(quotient, x.dtype)


def _multiplied(x: Array, y: Array) -> Array:
    return np.asanyarray(np.where(y == 0, np.asanyarray(0, x.dtype), x * y))


def _x_over(x: Array, y: Array) -> Array:
    return np.asanyarray(np.where(x == 0, np.asanyarray(0, x.dtype), x / y))


def _x_log(x: Array, y: Array) -> Array:
    return np.asanyarray(np.where((x == 0) & ~np.isnan(y), np.asanyarray(0, x.dtype), x * np.log(y)))


def _close(x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    return np.isclose(x, y, rtol, atol, equal_nan)


def _near(x: Array, y: Array, *, tolerance: float = 1e-5) -> Array:
    return np.asanyarray(np.abs(x - y) < tolerance)


def _lerp(input: Array, end: Array, weight: Any) -> Array:
    return np.asanyarray(input + np.asanyarray(weight, input.dtype) * (end - input))


def _grad_lerp(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    start, end, weight = operands
    full = shape_of(out)
    part = b.emit("Mul", dout, weight)
    slopes = (b.emit("Sub", dout, part), part, b.emit("Mul", dout, b.emit("Sub", end, start)))
    return [unbroadcast(b, slope, shape_of(x), full) for slope, x in zip(slopes, operands, strict=True)]


def _grad_addcmul(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    _, one, two, value = operands
    scaled = b.emit("Mul", dout, value)
    slopes = (
        dout, b.emit("Mul", scaled, two), b.emit("Mul", scaled, one), b.emit("Mul", dout, b.emit("Mul", one, two)),
    )  # fmt: skip
    return [unbroadcast(b, slope, shape_of(x), shape_of(out)) for slope, x in zip(slopes, operands, strict=True)]


def _grad_addcdiv(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    _, one, two, value = operands
    ratio = b.emit("Div", one, two)
    first = b.emit("Div", b.emit("Mul", dout, value), two)
    slopes = (dout, first, b.emit("Neg", b.emit("Mul", first, ratio)), b.emit("Mul", dout, ratio))
    return [unbroadcast(b, slope, shape_of(x), shape_of(out)) for slope, x in zip(slopes, operands, strict=True)]


def _one(name: str, kernel: Callable[[Array], Any], grad: Grad | None) -> OpDef:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        return output("float32" if x.dtype.kind in ("bool", "int", "uint") else x.dtype, x.shape)

    @np.errstate(all="ignore")
    def run(x: Any) -> Any:
        return kernel(np.asanyarray(x, np.float32) if np.asanyarray(x).dtype.kind in "iub" else np.asanyarray(x))

    return OpDef(
        name=name,
        operands=("input",),
        infer=infer,
        kernel=run,
        grad=grad,
        stop=grad is None,
        prim_func=name != "Inv",
    )


def _grad_log(base: float) -> Grad:
    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        x = operands[0]
        return (b.emit("Div", dout, b.emit("Mul", x, number(log(base), x))),)

    return grad


def _grad_exp2(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("Mul", dout, b.emit("Mul", out, number(log(2), out))),)


def _grad_frac(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (dout,)


def _grad_inv(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("Neg", b.emit("Mul", dout, b.emit("Square", out))),)


def _infer_numbers(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("NanToNum", abstracts[0], "input")
    return output(x.dtype, x.shape)


def _nan_to_num(x: Array, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Array:
    return np.asanyarray(np.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf), x.dtype)


def _grad_numbers(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    finite = b.emit("Cast", b.emit("IsFinite", operands[0]), dout.abstract.dtype)
    for setting in operands[1:]:
        constant(setting)
    return b.emit("Mul", dout, finite), None, None, None


OPS = (
    _pair("SquaredDifference", ("x", "y"), lambda x, y: np.square(x - y), _square_slopes, named=("x", "y", "output")),
    _pair("Xdivy", ("x", "y"), _x_over, _xdivy_slopes, named=("x", "y", "output")),
    _pair("Xlogy", ("input", "other"), _x_log, _xlogy_slopes),
    _pair("MulNoNan", ("x", "y"), _multiplied, _no_nan_slopes, named=("x", "y", "output")),
    _pair("TruncateDiv", ("x", "y"), _truncated, named=("x", "y", "output")),
    _pair("TruncateMod", ("x", "y"), np.fmod, _truncated_slopes, named=("x", "y", "output")),
    _pair("Hypot", ("x1", "x2"), np.hypot, _hypot_slopes, named=("x1", "x2", "y")),
    _pair(
        "Fmax", ("x1", "x2"), np.fmax, _larger_slopes("GreaterEqual", "Less"), named=("x1", "x2", "y"),
        fixed={"ignore_nan": True},
    ),
    _pair(
        "Fmin", ("x1", "x2"), np.fmin, _larger_slopes("LessEqual", "Greater"), named=("x1", "x2", "y"),
        fixed={"ignore_nan": True},
    ),
    _pair("Heaviside", ("x", "values"), np.heaviside, named=("x", "values", "y")),
    _pair("LeftShift", ("x1", "x2"), np.left_shift),
    _pair("RightShift", ("input_x", "input_y"), np.right_shift),
    _pair("LogAddExp", ("input", "other"), np.logaddexp, _log_add_slopes(e)),
    _pair("LogAddExp2", ("input", "other"), np.logaddexp2, _log_add_slopes(2.0)),
    _pair("Gcd", ("input", "other"), np.gcd),
    _pair(
        "IsClose", ("input", "other"), _close, result="bool", more=("rtol", "atol", "equal_nan"),
        defaults=(1e-5, 1e-8, False),
    ),
    _pair("ApproximateEqual", ("x", "y"), _near, result="bool", prim_func=False, attrs={"tolerance": 1e-5}),
    OpDef(
        name="Lerp",
        operands=("input", "end", "weight"),
        infer=_infer("Lerp", ("input", "end", "weight")),
        kernel=_lerp,
        grad=_grad_lerp,
        promotes=(0, 1, 2),
        prim_func=True,
    ),
    OpDef(
        name="Addcmul",
        operands=("input", "tensor1", "tensor2", "value"),
        infer=_infer("Addcmul", ("input", "tensor1", "tensor2")),
        kernel=lambda x, one, two, value: x + np.asanyarray(value, x.dtype) * one * two,
        grad=_grad_addcmul,
        prim_func=True,
    ),
    OpDef(
        name="Addcdiv",
        operands=("input", "tensor1", "tensor2", "value"),
        infer=_infer("Addcdiv", ("input", "tensor1", "tensor2")),
        kernel=np.errstate(all="ignore")(lambda x, one, two, value: x + np.asanyarray(value, x.dtype) * one / two),
        grad=_grad_addcdiv,
        prim_func=True,
    ),
    _one("Log2", np.log2, _grad_log(2)),
    _one("Log10", np.log10, _grad_log(10)),
    _one("Exp2", np.exp2, _grad_exp2),
    _one("Frac", lambda x: x - np.trunc(x), _grad_frac),
    _one("Inv", lambda x: 1 / x, _grad_inv),
    OpDef(
        name="NanToNum",
        operands=("input", "nan", "posinf", "neginf"),
        defaults=(None, None, None),
        infer=_infer_numbers,
        kernel=_nan_to_num,
        grad=_grad_numbers,
        prim_func=True,
    ),
)  # fmt: skip
