"""Losses on logarithms of probabilities, and on logits of independent classes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import is_variable, number, part_or_zeros, shape_of
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.rules import (
    constant,
    fits,
    output,
    same_dtype,
    same_shape,
    size_of,
    tensor_of,
    tuple_of,
    value_of,
    vector,
)

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

_SUM, _MEAN, _NONE = 0, 1, 2  # the operand `reduction`


def _like_first(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        return output(x.dtype, x.shape)

    return infer


def _pair(name: str, abstracts: Sequence[Abstract], names: tuple[str, str]) -> Any:
    x, y = tensor_of(name, abstracts[0], names[0]), tensor_of(name, abstracts[1], names[1])
    if x.shape != y.shape and name == "KLDivLoss":
        same_shape(name, "x shape", x.shape, y.shape)
    if x.shape != y.shape and name == "BCEWithLogitsLoss":
        raise ScriptValueError(
            f"For '{name}', two inputs '{names[0]}' and '{names[1]}' shape are not equal, '{names[0]}' shape: "
            f"{vector(x.shape)}, '{names[1]}' shape: {vector(y.shape)}"
        )
    if x.shape != y.shape:
        raise ScriptValueError(
            f"For '{name}', the shapes of '{names[0]}' {x.shape} and '{names[1]}' {y.shape} must be equal."
        )
    same_dtype(name, {names[0]: x, names[1]: y})
    return x


def _soft(x: Array) -> Any:
    """log(1 + exp(x))."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _sigmoid(x: Array) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(np.signbit(x), small, np.ones_like(small)) / (1 + small)


def _infer_sigmoid(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _pair("SigmoidCrossEntropyWithLogits", abstracts, ("logits", "label"))
    return output(x.dtype, x.shape)


def _grad_sigmoid(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("SigmoidCrossEntropyWithLogitsGrad", *operands, dout), None


def _reduced(loss: Array, reduction: int) -> Any:
    if reduction == _NONE:
        return loss
    return loss.mean(dtype=loss.dtype) if reduction == _MEAN else loss.sum(dtype=loss.dtype)


def _infer_logits(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _pair("BCEWithLogitsLoss", abstracts, ("input", "target"))
    for abstract, name in zip(abstracts[2:4], ("weight", "pos_weight"), strict=True):
        fits("BCEWithLogitsLoss", abstract, name, x.shape)
    return output(x.dtype, x.shape if value_of("BCEWithLogitsLoss", abstracts[4], "reduction") == _NONE else ())


@np.errstate(all="ignore")
def _logits(
    x: Array, target: Array, weight: Array | None = None, pos_weight: Array | None = None, reduction: int = _MEAN
) -> Any:
    positive = target * _soft(-x)
    loss = (positive if pos_weight is None else positive * pos_weight) + (1 - target) * _soft(x)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _absent(operand: Any) -> bool:
    abstract = getattr(operand, "abstract", None)
    return operand is None or isinstance(abstract, NoneType)


def _grad_logits(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, target, weight, pos_weight, reduction = operands
    how = constant(reduction)
    dx = b.emit("BinaryCrossEntropyWithLogitsBackward", dout, x, target, weight, pos_weight, how)
    dtarget = None
    if is_variable(target):
        if _absent(pos_weight):
            slope = b.emit("Neg", x)
        else:
            below = b.emit("Neg", b.emit("SoftplusExt", x, 1.0, 20.0))
            above = b.emit("Neg", b.emit("SoftplusExt", b.emit("Neg", x), 1.0, 20.0))
            slope = b.emit("Sub", below, b.emit("Mul", above, pos_weight))
        dtarget = b.emit("Mul", slope, dout)
        if not _absent(weight):
            dtarget = b.emit("Mul", dtarget, weight)
        if how == _MEAN:
            dtarget = b.emit("Divs", dtarget, size_of(shape_of(x)))
    return dx, dtarget, None, None, None


def _infer_logits_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("BinaryCrossEntropyWithLogitsBackward", abstracts[1], "input")
    return output(x.dtype, x.shape)


@np.errstate(all="ignore")
def _logits_grad(
    dout: Array, x: Array, target: Array, weight: Array | None, pos_weight: Array | None, reduction: int = _MEAN
) -> Any:
    steep = target if pos_weight is None else target * pos_weight
    slope = ((steep + 1 - target) * _sigmoid(x) - steep) * dout
    if weight is not None:
        slope = slope * weight
    return slope / np.asanyarray(x.size, x.dtype) if reduction == _MEAN else slope


def _infer_likelihood(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    logits, labels, weight = (
        tensor_of("NLLLoss", a, n) for a, n in zip(abstracts[:3], ("logits", "labels", "weight"), strict=True)
    )
    if len(logits.shape) != 2 or labels.shape != logits.shape[:1] or weight.shape != logits.shape[1:]:
        raise ScriptValueError(
            f"For 'NLLLoss', logits {logits.shape}, labels {labels.shape} and weight {weight.shape} must be (N, C), "
            "(N,) and (C,)."
        )
    whole = value_of("NLLLoss", abstracts[3], "reduction") == _NONE
    return tuple_of(output(logits.dtype, labels.shape if whole else ()), output(weight.dtype, ()))


def _shares(labels: Array, weight: Array, ignore: int) -> tuple[Array, Array]:
    """Return the weight of every label, 0 for ignored ones, and labels that are valid indices."""
    counted = labels != ignore
    safe = np.where(counted, labels, 0)
    return np.where(counted, weight[safe], np.zeros((), weight.dtype)), safe


@np.errstate(all="ignore")
def _likelihood(logits: Array, labels: Array, weight: Array, reduction: int = _MEAN, ignore_index: int = -100) -> Any:
    shares, safe = _shares(labels, weight, ignore_index)
    loss = -shares * logits[np.arange(labels.size), safe]
    total = shares.sum(dtype=weight.dtype)
    if reduction == _NONE:
        return loss, total
    return (loss.sum(dtype=loss.dtype) / total if reduction == _MEAN else loss.sum(dtype=loss.dtype)), total


def _grad_likelihood(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    logits, labels, weight, reduction, ignore = operands
    slope = part_or_zeros(b, dout, 0, out)
    total = b.item(out, 1)
    dx = b.emit("NLLLossGrad", logits, slope, labels, weight, total, constant(reduction), constant(ignore))
    return dx, None, None, None, None


@np.errstate(all="ignore")
def _likelihood_grad(
    logits: Array,
    dout: Array,
    labels: Array,
    weight: Array,
    total: Array,
    reduction: int = _MEAN,
    ignore_index: int = -100,
) -> Any:
    shares, safe = _shares(labels, weight, ignore_index)
    slope = np.zeros_like(logits)
    slope[np.arange(labels.size), safe] = -shares * dout
    return slope / total if reduction == _MEAN else slope


def _infer_divergence(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _pair("KLDivLoss", abstracts, ("logits", "labels"))
    return output(x.dtype, x.shape if attrs["reduction"] == "none" else ())


@np.errstate(all="ignore")
def _divergence(x: Array, target: Array, *, reduction: str = "mean") -> Any:
    loss = np.where(target > 0, target * (np.log(target) - x), np.zeros((), x.dtype))
    if reduction == "none":
        return loss
    total = loss.sum(dtype=x.dtype)
    count = {"mean": x.size, "batchmean": x.shape[0] if x.shape else 1, "sum": 1}[reduction]
    return total / np.asanyarray(count, x.dtype)


def _grad_divergence(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, target = operands
    how = attrs["reduction"]
    slope = b.emit("KLDivLossGrad", dout, x, target, reduction="none" if how == "none" else "sum")
    if how in ("mean", "batchmean"):
        shape = shape_of(x)
        slope = b.emit("RealDiv", slope, number(size_of(shape) if how == "mean" else shape[0], slope))
    return slope, None


def _infer_divergence_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("KLDivLossGrad", abstracts[1], "input")
    return output(x.dtype, x.shape)


OPS = (
    OpDef(
        name="SigmoidCrossEntropyWithLogits",
        operands=("logits", "label"),
        infer=_infer_sigmoid,
        kernel=np.errstate(all="ignore")(lambda x, target: _soft(x) - x * target),
        grad=_grad_sigmoid,
        input_names=["predict", "target"],
        output_names=["loss"],
    ),
    OpDef(
        name="SigmoidCrossEntropyWithLogitsGrad",
        operands=("x", "y", "dout"),
        infer=_like_first("SigmoidCrossEntropyWithLogitsGrad"),
        kernel=np.errstate(all="ignore")(lambda x, target, dout: (_sigmoid(x) - target) * dout),
        input_names=("x", "y", "dout"),
        output_names=("x_grad",),
    ),
    OpDef(
        name="BCEWithLogitsLoss",
        operands=("input", "target", "weight", "posWeight", "reduction"),
        defaults=(None, None, _MEAN),
        infer=_infer_logits,
        kernel=_logits,
        grad=_grad_logits,
        prim_func=True,
    ),
    OpDef(
        name="BinaryCrossEntropyWithLogitsBackward",
        operands=("grad_output", "input", "target", "weight", "posWeight", "reduction"),
        defaults=(_MEAN,),
        infer=_infer_logits_grad,
        kernel=_logits_grad,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="NLLLoss",
        operands=("logits", "labels", "weight", "reduction", "ignore_index"),
        defaults=(_MEAN, -100),
        infer=_infer_likelihood,
        kernel=_likelihood,
        grad=_grad_likelihood,
        prim_func=True,
    ),
    OpDef(
        name="NLLLossGrad",
        operands=("logits", "loss_grad", "labels", "weight", "total_weight", "reduction", "ignore_index"),
        defaults=(_MEAN, -100),
        infer=_like_first("NLLLossGrad"),
        kernel=_likelihood_grad,
        prim_func=True,
    ),
    OpDef(
        name="KLDivLoss",
        operands=("logits", "labels"),
        infer=_infer_divergence,
        kernel=_divergence,
        grad=_grad_divergence,
        attrs={"reduction": "mean"},
    ),
    OpDef(
        name="KLDivLossGrad",
        operands=("grad", "x", "target"),
        infer=_infer_divergence_grad,
        kernel=np.errstate(all="ignore")(
            lambda dout, x, target, *, reduction="sum": np.where(target > 0, -target, 0) * dout
        ),
        attrs={"reduction": "sum"},
        input_names=("x", "target", "grad"),
        output_names=("y",),
    ),
)
