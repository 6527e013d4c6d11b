"""Elementwise functions of one tensor, and the conversion of number types."""

from collections.abc import Callable, Mapping, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import is_constant, output, same_dtype, tensor_of, type_of, value_of
from dumpsim.ops.special import erf, erfc

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]


def _infer(name: str, to_float: bool, result: str | None) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        if result is not None:
            return output(result, x.shape)
        if to_float and x.dtype.kind in ("bool", "int", "uint"):
            return output("float32", x.shape)
        return output(x.dtype, x.shape)

    return infer


def _floating(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that converts integers to float32 first."""

    def run(x: Any) -> Any:
        return kernel(np.asanyarray(x, np.float32) if np.asanyarray(x).dtype.kind in "iub" else x)

    return run


def _unary(
    name: str,
    kernel: Callable[..., Any],
    grad: Grad | None = None,
    *,
    real: bool = True,
    stop: bool = False,
    result: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    prim_func: bool = True,
    named: str | None = None,
) -> OpDef:
    """Return an operator of one tensor; `named` is the operand's name, if the primitive prints names."""
    return OpDef(
        batched=True,
        name=name,
        operands=("input",),
        infer=_infer(name, real, result),
        kernel=np.errstate(all="ignore")(_floating(kernel) if real else kernel),
        grad=grad,
        fixed=fixed or {},
        prim_func=prim_func,
        input_names=[named] if named else (),
        output_names=["output"] if named else (),
        stop=stop,
    )


def _by_output(op_type: str) -> Grad:
    """Return a gradient by an operator of the output: ``TanhGrad(out, dout)``."""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        return (b.emit(op_type, out, dout),)

    return grad


def _by_input(op_type: str) -> Grad:
    """Return a gradient by an operator of the input: ``AtanGrad(x, dout)``."""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        return (b.emit(op_type, operands[0], dout),)

    return grad


def _times(slope: Callable[[GradBuilder, Any, Any], Any], dout_first: bool = True) -> Grad:
    """Return a gradient that is a product; `dout_first` is the order of the factors, which differs in the vendor's."""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        factor = slope(b, operands[0], out)
        return (b.emit("Mul", dout, factor) if dout_first else b.emit("Mul", factor, dout),)

    return grad


def _grad_neg(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    return (b.emit("Neg", dout),)


def _grad_log(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    return (b.emit("Div", dout, operands[0]),)


def _grad_log1p(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    return (b.emit("Div", dout, b.emit("AddScalar", operands[0], 1, 1)),)


def _grad_reciprocal(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    negative = b.emit("Neg", dout)
    return (b.emit("Mul", negative, b.emit("Mul", out, out)),)


def _gauss(sign: float) -> Callable[[GradBuilder, Any, Any], Any]:
    def slope(b: GradBuilder, x: Any, out: Any) -> Any:
        bell = b.emit("Exp", b.emit("Neg", b.emit("PowTensorScalar", x, 2)))
        return b.emit("Muls", bell, sign * 2 / sqrt(pi))

    return slope


def _absolute(x: Any) -> Any:
    return x if np.asanyarray(x).dtype == np.bool_ else np.abs(x)


def _square(x: Any) -> Any:
    return np.square(x)


def _negative(x: Any) -> Any:
    return np.negative(x)


def _reciprocal(x: Any) -> Any:
    return np.divide(np.asanyarray(1, np.asanyarray(x).dtype), x)


def _sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(np.signbit(x), small, np.ones_like(small)) / (1 + small)


def _round(x: Any, decimals: int = 0) -> Any:
    return np.round(x, decimals)


def _infer_round(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    x = tensor_of("Round", abstracts[0], "input")
    return output(x.dtype, x.shape)


def _infer_pair(name: str) -> Infer:
    """Return the rule of a gradient operator: `y` or `x`, and `dout`, of one type and shape."""

    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        y = tensor_of(name, abstracts[0], "y")
        dout = tensor_of(name, abstracts[1], "dy")
        return output(same_dtype(name, {"y": y, "dy": dout}), y.shape)

    return infer


def _slope(
    name: str, kernel: Callable[..., Any], operands: tuple[str, str] = ("y", "dy"), grad: Grad | None = None
) -> OpDef:
    return OpDef(
        batched=True,
        name=name,
        operands=operands,
        infer=_infer_pair(name),
        kernel=np.errstate(all="ignore")(kernel),
        grad=grad,
        prim_func=True,
    )


def _grad_tanh_grad(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    y, slope = operands
    dy = b.emit("Mul", b.emit("Muls", b.emit("Mul", dout, slope), -2.0), y)
    return dy, b.emit("TanhGrad", y, dout)


def _grad_sigmoid_grad(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    y, slope = operands
    product = b.emit("Mul", dout, slope)
    dy = b.emit("Sub", product, b.emit("Muls", b.emit("Mul", product, y), 2.0))
    return dy, b.emit("SigmoidGrad", y, dout)


def _target(abstract: Abstract) -> DType:
    kind = value_of("Cast", abstract, "dtype") if is_constant(abstract) else None
    if not isinstance(kind, DType):
        raise ScriptTypeError(f"For 'Cast', the input 'dtype' expect a type, but got {kind!r}")
    return kind


def _infer_cast(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    return output(_target(abstracts[1]), tensor_of("Cast", abstracts[0], "input").shape)


@np.errstate(all="ignore")
def _cast(x: Any, kind: Any) -> Array:
    found: Array = np.asanyarray(x).astype(type_of(kind).numpy)
    return found


def _grad_cast(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    source = operands[0].abstract
    assert isinstance(source, TensorType)
    return b.emit("Cast", dout, source.dtype), None


_LOG = {"shift": 0.0, "scale": 1.0, "cust_aicpu": "Log", "base": -1.0}  # printed but without effect [2.10 observed]

OPS = (
    _unary("Neg", _negative, _grad_neg, real=False),
    _unary("Abs", _absolute, _times(lambda b, x, out: b.emit("Sign", x)), real=False),
    _unary(
        "Square", _square, _times(lambda b, x, out: b.emit("Muls", b.emit("PowTensorScalar", x, 1), 2.0)), real=False
    ),
    _unary("Sign", np.sign, real=False, stop=True),
    _unary("Floor", np.floor, real=False, stop=True),
    _unary("Ceil", np.ceil, real=False, stop=True),
    _unary("Trunc", np.trunc, real=False, stop=True),
    _unary("Rint", np.rint, real=False, stop=True, prim_func=False, named="x"),
    _unary("Sqrt", np.sqrt, _by_output("SqrtGrad")),
    _unary("Rsqrt", lambda x: _reciprocal(np.sqrt(x)), _by_output("RsqrtGrad")),
    _unary("Reciprocal", _reciprocal, _grad_reciprocal),
    _unary("Exp", np.exp, _times(lambda b, x, out: out)),
    _unary("Expm1", np.expm1, _times(lambda b, x, out: b.emit("AddScalar", out, 1, 1))),
    _unary("Log", np.log, _grad_log, fixed=_LOG),
    _unary("Log1p", np.log1p, _grad_log1p),
    _unary("Sin", np.sin, _times(lambda b, x, out: b.emit("Cos", x))),
    _unary("Cos", np.cos, _times(lambda b, x, out: b.emit("Neg", b.emit("Sin", x)))),
    _unary(
        "Tan",
        np.tan,
        _times(lambda b, x, out: b.emit("AddScalar", b.emit("Square", out), 1, 1)),
        named="input",
    ),
    _unary("Atan", np.arctan, _by_input("AtanGrad")),
    _unary("Sinh", np.sinh, _times(lambda b, x, out: b.emit("Cosh", x), dout_first=False)),
    _unary("Cosh", np.cosh, _times(lambda b, x, out: b.emit("Sinh", x), dout_first=False)),
    _unary("Tanh", np.tanh, _by_output("TanhGrad")),
    _unary("Sigmoid", _sigmoid, _by_output("SigmoidGrad")),
    _unary("Erf", erf, _times(_gauss(1.0), dout_first=False)),
    _unary("Erfc", erfc, _times(_gauss(-1.0), dout_first=False)),
    _unary("IsNan", np.isnan, real=False, stop=True, result="bool", prim_func=False, named="x"),
    _unary("IsInf", np.isinf, real=False, stop=True, result="bool"),
    _unary("IsFinite", np.isfinite, real=False, stop=True, result="bool"),
    OpDef(
        name="Round",
        batched=True,
        operands=("input", "decimals"),
        defaults=(0,),
        infer=_infer_round,
        kernel=_round,
        prim_func=True,
        stop=True,
    ),
    _slope("SqrtGrad", lambda y, dy: dy / (2 * y)),
    _slope("RsqrtGrad", lambda y, dy: dy * y * y * y / -2),
    _slope("TanhGrad", lambda y, dy: dy * (1 - y * y), grad=_grad_tanh_grad),
    _slope("SigmoidGrad", lambda y, dy: dy * (1 - y) * y, grad=_grad_sigmoid_grad),
    _slope("AtanGrad", lambda x, dout: dout / (1 + x * x), ("x", "dout")),
    OpDef(
        name="Cast",
        batched=True,
        operands=("input", "dtype"),
        infer=_infer_cast,
        kernel=_cast,
        grad=_grad_cast,
        fixed={"is_backend_cast": False, "dst_type": lambda abstracts, out, attrs: out.dtype},
        prim_func=True,
        input_names=("x", "dst_type"),
        output_names=("output",),
    ),
)
