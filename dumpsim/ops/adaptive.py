"""Optimizer steps that adapt the rate of each element; each writes the Parameter and its state in place."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.opdef import Infer, OpDef
from dumpsim.ops.rules import output, same_dtype, tensor_of, tuple_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]


def _infer(name: str, operands: Sequence[str], tensors: Sequence[int], outputs: int) -> Infer:
    """Return a rule: the operands at `tensors` must be like the first one, and so are all outputs."""

    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        first = tensor_of(name, abstracts[0], operands[0])
        for at in tensors:
            other = tensor_of(name, abstracts[at], operands[at])
            if other.shape != first.shape:
                raise ScriptValueError(
                    f"For '{name}', the shape of '{operands[at]}' must be that of '{operands[0]}', but got "
                    f"{other.shape} and {first.shape}."
                )
            same_dtype(name, {operands[0]: first, operands[at]: other})
        result: TensorType = output(first.dtype, first.shape)
        return result if outputs == 1 else tuple_of(*(result,) * outputs)

    return infer


def _step(
    name: str,
    operands: str,
    state: int,
    kernel: Callable[..., None],
    *,
    outputs: int | None = None,
    written: str = "",
    ignored: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    **attrs: Any,
) -> OpDef:
    """Return an optimizer that writes the first `state` of its operands; the gradient is called grad or delta.

    `written` has the names of the outputs, if the operator has names of operands and outputs among its attributes.
    """
    named = tuple(operands.split())
    slope = next(at for at, operand in enumerate(named) if operand in ("grad", "gradient", "delta"))
    results = state if outputs is None else outputs

    @np.errstate(all="ignore")
    def run(*values: Any, **settings: Any) -> Any:
        kernel(*values, **{**attrs, **settings})
        return values[0] if results == 1 else values[:results]

    return OpDef(
        name=name,
        operands=named,
        infer=_infer(name, named, (*range(state), slope), results),
        kernel=run,
        attrs=attrs,
        fixed={"side_effect_mem": True},
        input_names=list(named) if written else (),
        output_names=written.split(),
        updates=tuple(range(state)),
        ignored=ignored,
        alias={at: at for at in range(results)},
        side_effect="mem",
    )


def _towards(mean: Array, value: Array, keep: Any) -> None:
    """Update a running mean in place."""
    mean[...] = mean * keep + value * (np.asanyarray(1, mean.dtype) - keep)


def _rms_prop(
    var: Array, mean_square: Array, moment: Array, learning_rate: Any, grad: Array, rho: Any, momentum: Any,
    epsilon: Any, *, use_locking: bool,
) -> None:  # fmt: skip
    _towards(mean_square, grad * grad, rho)
    moment[...] = moment * momentum + learning_rate * grad / np.sqrt(mean_square + epsilon)
    var -= moment


def _centred_rms_prop(
    var: Array, mean_gradient: Array, mean_square: Array, moment: Array, grad: Array, learning_rate: Any, decay: Any,
    momentum: Any, epsilon: Any, *, use_locking: bool,
) -> None:  # fmt: skip
    _towards(mean_gradient, grad, decay)
    _towards(mean_square, grad * grad, decay)
    spread = mean_square - mean_gradient * mean_gradient + epsilon
    moment[...] = moment * momentum + learning_rate * grad / np.sqrt(spread)
    var -= moment


def _adagrad(var: Array, accum: Array, lr: Any, grad: Array, *, update_slots: bool) -> None:
    if update_slots:
        accum += grad * grad
    var -= lr * grad / np.sqrt(accum)


def _adagrad_v2(var: Array, accum: Array, lr: Any, grad: Array, *, epsilon: float, update_slots: bool) -> None:
    if update_slots:
        accum += grad * grad
    var -= lr * grad / (np.sqrt(accum) + np.asanyarray(epsilon, var.dtype))


def _adadelta(var: Array, accum: Array, accum_update: Array, lr: Any, rho: Any, epsilon: Any, grad: Array) -> None:
    _towards(accum, grad * grad, rho)
    update = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    _towards(accum_update, update * update, rho)
    var -= lr * update


def _ftrl(
    var: Array, accum: Array, linear: Array, grad: Array, lr: Any, l1: Any, l2: Any, lr_power: Any, *, use_locking: bool
) -> None:
    total = accum + grad * grad
    linear += grad - (total**-lr_power - accum**-lr_power) / lr * var
    steep = total**-lr_power / lr + 2 * l2
    var[...] = np.where(np.abs(linear) > l1, (np.sign(linear) * l1 - linear) / steep, 0)
    accum[...] = total


def _adamax(
    var: Array, m: Array, v: Array, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Array
) -> None:
    _towards(m, grad, beta1)
    v[...] = np.maximum(v * beta2, np.abs(grad))
    var -= lr / (np.asanyarray(1, var.dtype) - beta1_power) * m / (v + epsilon)


def _descent(var: Array, alpha: Any, delta: Array) -> None:
    var -= alpha * delta


def _shrunk(moved: Array, rate: Any, l1: Any, l2: Any) -> Array:
    """Return the proximal step of an l1 and an l2 penalty."""
    return np.asanyarray(np.sign(moved) * np.maximum(np.abs(moved) - rate * l1, 0) / (1 + rate * l2))


def _proximal_descent(var: Array, alpha: Any, l1: Any, l2: Any, delta: Array) -> None:
    var[...] = _shrunk(var - alpha * delta, alpha, l1, l2)


def _proximal_adagrad(var: Array, accum: Array, lr: Any, l1: Any, l2: Any, grad: Array, *, use_locking: bool) -> None:
    accum += grad * grad
    rate = lr / np.sqrt(accum)
    var[...] = _shrunk(var - rate * grad, rate, l1, l2)


def _power_sign(var: Array, m: Array, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Array) -> None:
    _towards(m, grad, beta)
    var -= lr * np.exp(logbase * sign_decay * np.sign(grad) * np.sign(m)) * grad


def _add_sign(var: Array, m: Array, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Array) -> None:
    _towards(m, grad, beta)
    var -= lr * (alpha + sign_decay * np.sign(grad) * np.sign(m)) * grad


def _amsgrad(
    var: Array, m: Array, v: Array, vhat: Array, beta1_power: Any, beta2_power: Any, lr: Any, grad: Array, *,
    beta1: float, beta2: float, epsilon: float, use_locking: bool,
) -> None:  # fmt: skip
    kind = var.dtype
    _towards(m, grad, np.asanyarray(beta1, kind))
    _towards(v, grad * grad, np.asanyarray(beta2, kind))
    np.maximum(vhat, v, out=vhat)
    one = np.asanyarray(1, kind)
    rate = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
    var -= rate * m / (np.sqrt(vhat) + np.asanyarray(epsilon, kind))


OPS = (
    _step(
        "ApplyRMSProp", "var mean_square moment learning_rate grad rho momentum epsilon", 3, _rms_prop, outputs=1,
        written="output", use_locking=False,
    ),
    _step(
        "ApplyCenteredRMSProp",
        "var mean_gradient mean_square mom grad learning_rate rho momentum epsilon", 4, _centred_rms_prop, outputs=1,
        use_locking=False,
    ),
    _step(
        "ApplyAdagrad", "var accum lr grad", 2, _adagrad, update_slots=True,
        ignored={"CPU": ("update_slots",)},  # [observed 2.10]
    ),
    _step("ApplyAdagradV2", "var accum lr grad", 2, _adagrad_v2, epsilon=1e-6, update_slots=True),
    _step("ApplyAdadelta", "var accum accum_update lr rho epsilon grad", 3, _adadelta),
    _step(
        "ApplyFtrl", "var accum linear grad lr l1 l2 lr_power", 3, _ftrl, outputs=1, written="output",
        use_locking=False,
    ),
    _step("ApplyAdaMax", "var m v beta1_power lr beta1 beta2 epsilon grad", 3, _adamax),
    _step("ApplyGradientDescent", "var alpha delta", 1, _descent),
    _step("ApplyProximalGradientDescent", "var alpha l1 l2 delta", 1, _proximal_descent),
    _step(
        "ApplyProximalAdagrad", "var accum lr l1 l2 grad", 2, _proximal_adagrad, written="var accum",
        use_locking=False,
    ),
    _step("ApplyPowerSign", "var m lr logbase sign_decay beta grad", 2, _power_sign),
    _step("ApplyAddSign", "var m lr alpha sign_decay beta grad", 2, _add_sign),
    _step(
        "ApplyAdamWithAmsgrad", "var m v vhat beta1_power beta2_power lr grad", 4, _amsgrad,
        beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False,
    ),
)  # fmt: skip
