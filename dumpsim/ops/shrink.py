"""Activations with a threshold, gated ones, and their gradient operators."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import FLOATS, axis_of, constant, output, same_dtype, tensor_of, tuple_of, value_of, vector

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer(op: str, name: str, count: int = 1) -> Infer:
    """Return a rule: the first `count` tensors have one shape and type, which are those of the output."""

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        tensors = {f"{name}{at or ''}": tensor_of(op, abstracts[at], name, FLOATS) for at in range(count)}
        first, *others = [tensor.shape for tensor in tensors.values()]
        if any(shape != first for shape in others):
            shapes = sorted({first, *others})
            raise ScriptValueError(f"For '{op}', the shapes of its tensors must be equal, but got {shapes}.")
        return output(same_dtype(op, tensors), first)

    return infer


def _by(op_type: str, *, of_output: bool = False) -> Grad:
    """Return a gradient with the same settings: ``HShrinkGrad(dout, x, lambd)``."""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        settings = [constant(setting) for setting in operands[1:]]
        return b.emit(op_type, dout, out if of_output else operands[0], *settings), *(None for _ in settings)

    return grad


def _activation(
    name: str, settings: tuple[str, ...], defaults: tuple[Any, ...], kernel: Callable[..., Any],
    slope: Callable[..., Any], slope_name: str = "", names: tuple[str, str] = ("dout", "x"),
) -> tuple[OpDef, OpDef]:  # fmt: skip
    """Return an activation and its gradient operator; kernels take the settings after the tensors."""
    slope_name = slope_name or f"{name}Grad"
    return (
        OpDef(
            name=name,
            operands=("input", *settings),
            defaults=defaults,
            infer=_infer(name, "input"),
            kernel=np.errstate(all="ignore")(kernel),
            grad=_by(slope_name),
            prim_func=True,
        ),
        OpDef(
            name=slope_name,
            operands=(*names, *settings),
            defaults=defaults,
            infer=_infer(slope_name, names[0], 2),
            kernel=np.errstate(all="ignore")(slope),
            prim_func=True,
        ),
    )


def _soft(x: Array, lambd: float) -> Array:
    edge = np.asanyarray(lambd, x.dtype)
    return np.asanyarray(np.where(x > edge, x - edge, np.where(x < -edge, x + edge, np.asanyarray(0, x.dtype))))


def _outside(dout: Array, x: Array, lambd: float) -> Array:
    edge = np.asanyarray(lambd, x.dtype)
    return np.asanyarray(np.where((x >= -edge) & (x <= edge), np.asanyarray(0, x.dtype), dout))


def _logit(x: Array, eps: float) -> Array:
    if eps >= 0:
        x = np.clip(x, np.asanyarray(eps, x.dtype), np.asanyarray(1 - eps, x.dtype))
    return np.asanyarray(np.log(x / (1 - x)))


def _logit_slope(dout: Array, x: Array, eps: float) -> Array:
    slope = dout / (x * (1 - x))
    if eps >= 0:
        return np.asanyarray(np.where((x < eps) | (x > 1 - eps), np.asanyarray(0, x.dtype), slope))
    return np.asanyarray(np.where((x < 0) | (x > 1), np.asanyarray(np.nan, x.dtype), slope))


def _celu(x: Array, alpha: float = 1.0) -> Array:
    rate = np.asanyarray(alpha, x.dtype)
    return np.asanyarray(np.maximum(x, 0) + np.minimum(rate * np.expm1(x / rate), 0))


def _grad_celu(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, alpha = operands
    rate = np.asanyarray(constant(alpha), x.abstract.dtype.numpy)
    zero = np.asanyarray(0, x.abstract.dtype.numpy)
    inner = b.emit("Mul", dout, b.emit("Exp", b.emit("Div", x, rate)))
    return b.emit("Select", b.emit("Greater", x, zero), dout, inner), None


def _infer_half(op: str, name: str, place: int) -> Infer:
    """Return a rule that halves the axis given by operand `place`."""

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(op, abstracts[0], name, FLOATS)
        axis = axis_of(op, value_of(op, abstracts[place], "dim"), len(x.shape), "dim")
        if x.shape[axis] % 2:
            raise ScriptValueError(f"For '{op}', axis {axis} of '{name}' {vector(x.shape)} must be even.")
        return output(x.dtype, (*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :]))

    return infer


def _sigmoid(x: Array) -> Array:
    return np.asanyarray(1 / (1 + np.exp(-x)))


def _swiglu(x: Array, dim: int = -1) -> Array:
    gate, up = np.split(x, 2, axis=dim)
    return np.asanyarray(gate * _sigmoid(gate) * up)


def _swiglu_slope(grad_output: Array, x: Array, dim: int = -1) -> Array:
    gate, up = np.split(x, 2, axis=dim)
    share = _sigmoid(gate)
    first = grad_output * up * (share + gate * share * (1 - share))
    return np.concatenate([first, grad_output * gate * share], axis=dim)


def _glu(x: Array, axis: int = -1) -> Array:
    value, gate = np.split(x, 2, axis=axis)
    return np.asanyarray(value * _sigmoid(gate))


def _glu_slope(grads: Array, x: Array, axis: int = -1) -> Array:
    value, gate = np.split(x, 2, axis=axis)
    share = _sigmoid(gate)
    return np.concatenate([grads * share, grads * value * share * (1 - share)], axis=axis)


def _infer_like(op: str, place: int) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(op, abstracts[place], "input")
        return output(x.dtype, x.shape)

    return infer


def _infer_log_sigmoid(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("LogSigmoid", abstracts[0], "input", FLOATS)
    return tuple_of(output(x.dtype, x.shape), output(x.dtype, x.shape))


def _log_sigmoid(x: Array) -> tuple[Array, Array]:
    """Return the result, and exp(-abs(x)) for the gradient."""
    buffer = np.exp(-np.abs(x))
    return np.asanyarray(np.minimum(x, 0) - np.log1p(buffer)), buffer


def _grad_log_sigmoid(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    from dumpsim.ops.gradient import part_or_zeros

    return (b.emit("LogSigmoidGrad", part_or_zeros(b, dout, 0, out), operands[0], b.item(out, 1)),)


def _log_sigmoid_slope(dy: Array, x: Array, buffer: Array) -> Array:
    share = buffer / (1 + buffer)
    return np.asanyarray(dy * np.where(x < 0, 1 - share, share))


OPS = (
    *_activation(
        "HShrink", ("lambd",), (0.5,),
        lambda x, lambd=0.5: np.where((x >= -lambd) & (x <= lambd), np.asanyarray(0, x.dtype), x),
        _outside, names=("gradients", "features"),
    ),
    *_activation("SoftShrink", ("lambd",), (0.5,), _soft, _outside, names=("input_grad", "input_x")),
    *_activation("Logit", ("eps",), (-1.0,), _logit, _logit_slope, names=("grad", "input")),
    *_activation(
        "Threshold", ("threshold", "value"), (),
        lambda x, threshold, value: np.where(x > threshold, x, np.asanyarray(value, x.dtype)),
        lambda dout, x, threshold, value: np.where(x > threshold, dout, np.asanyarray(0, x.dtype)),
    ),
    *_activation(
        "Hardtanh", ("min_val", "max_val"), (-1, 1),
        lambda x, low=-1, high=1: np.clip(x, np.asanyarray(low, x.dtype), np.asanyarray(high, x.dtype)),
        lambda dout, x, low=-1, high=1: np.where((x > low) & (x < high), dout, np.asanyarray(0, x.dtype)),
    ),
    *_activation(
        "LeakyReLUExt", ("negative_slope",), (0.01,),
        lambda x, slope=0.01: np.where(x > 0, x, x * np.asanyarray(slope, x.dtype)),
        lambda dout, x, slope=0.01: np.where(x > 0, dout, dout * np.asanyarray(slope, x.dtype)),
        "LeakyReLUGradExt", names=("dy", "input"),
    ),
    OpDef(
        name="CeLU",
        operands=("x", "alpha"),
        defaults=(1.0,),
        infer=_infer("CeLU", "x"),
        kernel=np.errstate(all="ignore")(_celu),
        grad=_grad_celu,
        prim_func=True,
    ),
    OpDef(
        name="Swiglu",
        operands=("input", "dim"),
        defaults=(-1,),
        infer=_infer_half("Swiglu", "input", 1),
        kernel=np.errstate(all="ignore")(_swiglu),
        grad=_by("SwigluGrad"),
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="SwigluGrad",
        operands=("grad_output", "input", "dim"),
        defaults=(-1,),
        infer=_infer_like("SwigluGrad", 1),
        kernel=np.errstate(all="ignore")(_swiglu_slope),
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="GLU",
        operands=("x", "axis"),
        defaults=(-1,),
        infer=_infer_half("GLU", "x", 1),
        kernel=np.errstate(all="ignore")(_glu),
        grad=_by("GluGrad"),
        prim_func=True,
    ),
    OpDef(
        name="GluGrad",
        operands=("grads", "x", "axis"),
        defaults=(-1,),
        infer=_infer_like("GluGrad", 1),
        kernel=np.errstate(all="ignore")(_glu_slope),
        prim_func=True,
    ),
    OpDef(
        name="LogSigmoid",
        operands=("input",),
        infer=_infer_log_sigmoid,
        kernel=np.errstate(all="ignore")(_log_sigmoid),
        grad=_grad_log_sigmoid,
        prim_func=True,
    ),
    OpDef(
        name="LogSigmoidGrad",
        operands=("dy", "input", "buffer"),
        infer=_infer_like("LogSigmoidGrad", 1),
        kernel=_log_sigmoid_slope,
        prim_func=True,
    ),
)  # fmt: skip
