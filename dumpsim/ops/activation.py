"""Activation functions with their gradient operators, and softmax."""

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.blocks import in_blocks
from dumpsim.ops.gradient import number, shape_of
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import FLOATS, axis_of, constant, ints_of, output, same_dtype, tensor_of, tuple_of, value_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer(name: str, floats: bool = True) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "x", FLOATS if floats else ())
        return output(x.dtype, x.shape)

    return infer


def _infer_grad(name: str, first: str = "dy", second: str = "x") -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, y = tensor_of(name, abstracts[0], first), tensor_of(name, abstracts[1], second)
        return output(same_dtype(name, {first: x, second: y}), x.shape)

    return infer


def _by_slope(op_type: str, *, of_output: bool) -> Grad:
    """Return a gradient such as ``ReluGrad(dout, out)`` or ``ReLU6Grad(dout, x)``; host operands get none."""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        dx = b.emit(op_type, dout, out if of_output else operands[0])
        return dx, *(None for _ in operands[1:])

    return grad


def _function(
    name: str,
    kernel: Callable[..., Any],
    grad: Grad,
    *more: str,
    floats: bool = True,
    defaults: tuple[Any, ...] = (),
    named: str = "",
) -> OpDef:
    """Return an activation; `named` is the operand's name, which only operators not defined in yaml print."""
    return OpDef(
        batched=True,
        name=name,
        operands=("x", *more),
        defaults=defaults,
        infer=_infer(name, floats),
        kernel=np.errstate(all="ignore")(in_blocks(kernel)),
        grad=grad,
        prim_func=not named,
        input_names=[named] if named else (),
        output_names=["output"] if named else (),
    )


def _slope(
    name: str, kernel: Callable[..., Any], second: str = "x", grad: Grad | None = None, names: bool = False
) -> OpDef:
    return OpDef(
        batched=True,
        name=name,
        operands=("dy", second),
        infer=_infer_grad(name, "dy", second),
        kernel=np.errstate(all="ignore")(in_blocks(kernel)),
        grad=grad,
        prim_func=not names,
        input_names=("x",) if names else (),
        output_names=("output",) if names else (),
    )


def _relu(x: Array) -> Array:
    return x if np.asanyarray(x).dtype == np.bool_ else np.maximum(x, 0)


def _grad_relu_grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("ReluGrad", dout, operands[1]), None


_C = sqrt(2 / np.pi)
_A = 0.044715


def _gelu(x: Array) -> Any:
    """The tanh approximation. [2.10 observed]"""
    return 0.5 * x * (1 + np.tanh(_C * (x + _A * x * x * x)))


def _gelu_grad(dy: Array, x: Array, y: Array) -> Any:
    t = np.tanh(_C * (x + _A * x * x * x))
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _C * (1 + 3 * _A * x * x))


def _grad_gelu(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("GeLUGrad", dout, operands[0], out),)


def _fast_gelu(x: Array) -> Any:
    return x / (1 + np.exp(-1.702 * np.abs(x))) * np.exp(0.851 * (x - np.abs(x)))


def _fast_gelu_grad(dy: Array, x: Array) -> Array:
    gate = 1 / (1 + np.exp(-1.702 * x))
    return dy * (gate + 1.702 * x * gate * (1 - gate))


def _hswish(x: Array) -> Any:
    return x * np.clip(x + 3, 0, 6) / 6


def _hswish_grad(dy: Array, x: Array) -> Any:
    return dy * np.where(x <= -3, 0, np.where(x >= 3, 1, (2 * x + 3) / 6)).astype(x.dtype)


def _hsigmoid(x: Array) -> Any:
    return np.clip(x + 3, 0, 6) / 6


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _sigmoid(x: Array) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(np.signbit(x), small, np.ones_like(small)) / (1 + small)


def _elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, (alpha * np.expm1(np.minimum(x, 0))).astype(x.dtype))


def _elu_grad(dy: Array, y: Array) -> Array:
    return np.where(y > 0, dy, dy * (y + 1))


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _selu(x: Array) -> Array:
    return _SELU_SCALE * np.where(x > 0, x, (_SELU_ALPHA * np.expm1(np.minimum(x, 0))).astype(x.dtype))


def _selu_grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    # quirk: the vendor's rule is wrong below 0: it uses 1 instead of SeLU's alpha times its scale [2.10 observed]
    return (b.emit("Muls", b.emit("EluGrad", dout, out), _SELU_SCALE),)


def _grad_mish(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x = operands[0]
    gate = b.emit("Tanh", b.emit("Softplus", x))
    direct = b.emit("Mul", gate, dout)
    through = b.emit("SoftplusGrad", b.emit("TanhGrad", gate, b.emit("Mul", x, dout)), x)
    return (b.emit("Add", direct, through),)


def _grad_softsign(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x = operands[0]
    wide = b.emit("Square", b.emit("AddScalar", b.emit("Abs", x), 1, 1))
    return (b.emit("Mul", dout, b.emit("Div", number(1, x), wide)),)


def _infer_prelu(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, weight = tensor_of("PReLU", abstracts[0], "x"), tensor_of("PReLU", abstracts[1], "weight")
    channels = x.shape[1] if len(x.shape) > 1 else 1
    if weight.shape not in ((1,), (channels,)):
        raise ScriptValueError(
            f"For 'PReLU', the shape of 'weight' must be (1,) or the channels ({channels},), but got {weight.shape}."
        )
    return output(same_dtype("PReLU", {"x": x, "weight": weight}), x.shape)


def _slopes_of(x: Array, weight: Array) -> Array:
    """Reshape the weights of the channels so that they broadcast against `x`."""
    return weight if weight.size == 1 else weight.reshape(-1, *(1,) * (x.ndim - 2))


def _prelu(x: Array, weight: Array) -> Any:
    return np.where(x > 0, x, x * _slopes_of(x, weight))


def _infer_prelu_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, weight = tensor_of("PReLUGrad", abstracts[1], "x"), tensor_of("PReLUGrad", abstracts[2], "weight")
    return tuple_of(output(x.dtype, x.shape), output(weight.dtype, weight.shape))


@np.errstate(all="ignore")
def _prelu_grad(dy: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    dx = np.where(x > 0, dy, dy * _slopes_of(x, weight))
    loss = np.where(x > 0, np.zeros_like(dy), dy * x)
    axes = tuple(i for i in range(x.ndim) if weight.size == 1 or i != 1)
    return dx, loss.sum(axis=axes, dtype=weight.dtype).reshape(weight.shape)


def _grad_prelu(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    slopes = b.emit("PReLUGrad", dout, *operands)
    return b.item(slopes, 0), b.item(slopes, 1)


@np.errstate(all="ignore")
def _scaled_softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = x * np.asanyarray(beta, x.dtype)
    return np.where(scaled > threshold, x, _softplus(scaled) / np.asanyarray(beta, x.dtype))


def _grad_scaled_softplus(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    x, beta, threshold = operands
    return b.emit("SoftplusGradExt", dout, x, constant(beta), constant(threshold)), None, None


@np.errstate(all="ignore")
def _scaled_softplus_grad(dout: Array, x: Array, beta: float, threshold: float) -> Any:
    scaled = x * np.asanyarray(beta, x.dtype)
    return np.where(scaled > threshold, dout, dout / (1 + np.exp(-scaled)))


def _infer_softmax(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Softmax", abstracts[0], "x", FLOATS)
    for axis in ints_of("Softmax", abstracts[1], "axis"):
        axis_of("Softmax", axis, len(x.shape), "axis")
    return output(x.dtype, x.shape)


@np.errstate(all="ignore")
def _softmax(x: Array, axis: int | Sequence[int] = (-1,)) -> Any:
    axes = tuple(axis) if isinstance(axis, tuple | list) else axis
    powers = np.exp(x - x.max(axis=axes, keepdims=True))
    return powers / powers.sum(axis=axes, keepdims=True)


def _grad_softmax(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    named = constant(operands[1])
    rank = len(shape_of(out))
    axis = (named[0] if isinstance(named, tuple | list) else named) % rank
    return b.emit("SoftmaxBackward", dout, out, -1 if axis == rank - 1 else axis), None


def _infer_log_softmax(name: str, axis_at: int) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "logits", FLOATS)
        axis_of(name, value_of(name, abstracts[axis_at], "axis"), len(x.shape), "axis")
        return output(x.dtype, x.shape)

    return infer


@np.errstate(all="ignore")
def _log_softmax(x: Array, axis: int = -1) -> Any:
    centred = x - x.max(axis=axis, keepdims=True)
    return centred - np.log(np.exp(centred).sum(axis=axis, keepdims=True))


@np.errstate(all="ignore")
def _log_softmax_grad(y: Array, dy: Array, axis: int = -1) -> Any:
    return dy - np.exp(y) * dy.sum(axis=axis, keepdims=True)


def _grad_log_softmax(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("LogSoftmaxGrad", out, dout, constant(operands[1])), None


OPS = (
    _function("ReLU", _relu, _by_slope("ReluGrad", of_output=True), floats=False),
    _slope("ReluGrad", lambda dy, x: np.where(x > 0, dy, np.zeros_like(dy)), grad=_grad_relu_grad),
    _function("ReLU6", lambda x: np.clip(x, 0, 6), _by_slope("ReLU6Grad", of_output=False)),
    _slope("ReLU6Grad", lambda dy, x: np.where((x > 0) & (x < 6), dy, np.zeros_like(dy))),
    _function("GeLU", _gelu, _grad_gelu),
    OpDef(
        name="GeLUGrad",
        batched=True,
        operands=("dy", "x", "y"),
        infer=_infer_grad("GeLUGrad"),
        kernel=np.errstate(all="ignore")(in_blocks(_gelu_grad)),
        prim_func=True,
    ),
    _function("FastGeLU", _fast_gelu, _by_slope("FastGeLUGrad", of_output=False)),
    _slope("FastGeLUGrad", _fast_gelu_grad),
    _function("HSwish", _hswish, _by_slope("HSwishGrad", of_output=False)),
    _slope("HSwishGrad", _hswish_grad),
    _function("HSigmoid", _hsigmoid, _by_slope("HSigmoidGrad", of_output=False)),
    _slope("HSigmoidGrad", lambda dy, x: np.where((x > -3) & (x < 3), dy / 6, np.zeros_like(dy))),
    _function("Elu", _elu, _by_slope("EluGrad", of_output=True), "alpha", defaults=(1.0,)),
    _slope("EluGrad", _elu_grad, "y"),
    _function("SeLU", _selu, _selu_grad, named="input_x"),
    _function("Softplus", _softplus, _by_slope("SoftplusGrad", of_output=False), named="x"),
    _slope("SoftplusGrad", lambda dy, x: dy * _sigmoid(x), names=True),
    _function("Mish", lambda x: x * np.tanh(_softplus(x)), _grad_mish, named="x"),
    _function("Softsign", lambda x: x / (1 + np.abs(x)), _grad_softsign, named="x"),
    OpDef(
        name="SoftplusExt",
        operands=("input", "beta", "threshold"),
        defaults=(1.0, 20.0),
        infer=_infer("SoftplusExt"),
        kernel=_scaled_softplus,
        grad=_grad_scaled_softplus,
        prim_func=True,
    ),
    OpDef(
        name="SoftplusGradExt",
        operands=("dout", "x", "beta", "threshold"),
        infer=_infer("SoftplusGradExt"),
        kernel=_scaled_softplus_grad,
        prim_func=True,
    ),
    OpDef(
        name="PReLU",
        operands=("x", "weight"),
        infer=_infer_prelu,
        kernel=_prelu,
        grad=_grad_prelu,
        prim_func=True,
    ),
    OpDef(
        name="PReLUGrad",
        operands=("dy", "x", "weight"),
        infer=_infer_prelu_grad,
        kernel=_prelu_grad,
        prim_func=True,
    ),
    OpDef(
        name="Softmax",
        operands=("x", "axis"),
        defaults=((-1,),),
        infer=_infer_softmax,
        kernel=_softmax,
        grad=_grad_softmax,
        prim_func=True,
    ),
    OpDef(
        name="LogSoftmax",
        operands=("logits", "axis"),
        defaults=(-1,),
        infer=_infer_log_softmax("LogSoftmax", 1),
        kernel=_log_softmax,
        grad=_grad_log_softmax,
        prim_func=True,
    ),
    OpDef(
        name="LogSoftmaxGrad",
        operands=("logits", "grad", "axis"),
        defaults=(-1,),
        infer=_infer_log_softmax("LogSoftmaxGrad", 2),
        kernel=_log_softmax_grad,
        prim_func=True,
    ),
)
