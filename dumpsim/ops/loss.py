"""Losses that are single operators."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptRuntimeError, ScriptValueError
from dumpsim.ops.gradient import is_variable, number, part_or_zeros, shape_of
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import constant, fits, output, same_dtype, same_shape, size_of, tensor_of, tuple_of, value_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _softmax(logits: Array) -> tuple[Array, Array]:
    """Return the probabilities along the last axis and their logarithms."""
    centred = logits - logits.max(axis=-1, keepdims=True)
    powers = np.exp(centred)
    total = powers.sum(axis=-1, keepdims=True)
    return powers / total, centred - np.log(total)


def _infer_sparse(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    name = "SparseSoftmaxCrossEntropyWithLogits"
    logits = tensor_of(name, abstracts[0], "features")
    labels = tensor_of(name, abstracts[1], "labels_type", ("int32", "int64"))
    if labels.shape != logits.shape[:-1]:
        raise ScriptValueError("Labels shape value must be equal to the Features except the last dimension of Features")
    return output(logits.dtype, logits.shape if attrs["is_grad"] else ())


@np.errstate(all="ignore")
def _sparse(logits: Array, labels: Array, *, is_grad: bool = False, sens: float = 1.0) -> Any:
    probabilities, logs = _softmax(logits)
    if is_grad:
        np.put_along_axis(
            probabilities, labels[..., None], np.take_along_axis(probabilities, labels[..., None], -1) - 1, -1
        )
        return probabilities * np.asanyarray(sens / labels.size, probabilities.dtype)
    return -np.take_along_axis(logs, labels[..., None], -1).mean(dtype=logs.dtype)


def _grad_sparse(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    slope = b.emit("SparseSoftmaxCrossEntropyWithLogits", *operands, is_grad=True)
    # Depend keeps the loss itself, so that a step computes it in any case [2.10 observed]
    return b.emit("Mul", b.emit("Depend", slope, out), dout), None


def _infer_dense(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    name = "SoftmaxCrossEntropyWithLogits"
    logits, labels = tensor_of(name, abstracts[0], "logits"), tensor_of(name, abstracts[1], "label")
    if logits.shape != labels.shape:
        raise ScriptValueError(
            f"For '{name}', evaluator arg 'label' shape must be consistent with 'logits' shape, but got 'label' shape: "
            f"{labels.shape}, 'logits' shape: {logits.shape}."
        )
    same_dtype(name, {"logits": logits, "labels": labels})
    if len(logits.shape) != 2:
        raise ScriptValueError(f"For '{name}', the rank of 'logits' must be 2, but got {len(logits.shape)}.")
    return tuple_of(output(logits.dtype, logits.shape[:1]), output(logits.dtype, logits.shape))


@np.errstate(all="ignore")
def _dense(logits: Array, labels: Array) -> tuple[Array, Array]:
    probabilities, logs = _softmax(logits)
    return -(labels * logs).sum(axis=-1), probabilities - labels


def _grad_dense(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    slope = b.item(out, 1)
    return b.emit("Mul", slope, b.emit("ExpandDims", part_or_zeros(b, dout, 0, out), -1)), None


def _infer_smooth(name: str, dout_at: int | None) -> Any:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, y = tensor_of(name, abstracts[0], "prediction"), tensor_of(name, abstracts[1], "target")
        kind = same_dtype(name, {"prediction": x, "target": y})
        same_shape(name, "prediction_shape", x.shape, y.shape)
        beta = value_of(name, abstracts[-2], "beta")
        if beta <= 0:
            what = "should greater than 0" if beta == 0 else "not support negative values"
            raise ScriptRuntimeError(f"For '{name}', the values for beta {what}, but got {beta:g}.")
        whole = dout_at is not None or value_of(name, abstracts[-1], "reduction") == _NONE
        return output(kind, x.shape if whole else ())

    return infer


_SUM, _MEAN, _NONE = 0, 1, 2  # the operand `reduction`


def _reduced(loss: Array, reduction: int) -> Any:
    if reduction == _NONE:
        return loss
    return loss.mean(dtype=loss.dtype) if reduction == _MEAN else loss.sum(dtype=loss.dtype)


@np.errstate(all="ignore")
def _smooth(prediction: Array, target: Array, beta: float = 1.0, reduction: int = _NONE) -> Any:
    gap = np.abs(prediction - target)
    return _reduced(np.where(gap < beta, gap * gap * (0.5 / beta), gap - 0.5 * beta).astype(gap.dtype), reduction)


@np.errstate(all="ignore")
def _smooth_grad(prediction: Array, target: Array, dout: Array, beta: float = 1.0, reduction: int = _NONE) -> Any:
    slope = np.clip((prediction - target) / np.asanyarray(beta, prediction.dtype), -1, 1) * dout
    return slope / np.asanyarray(slope.size, slope.dtype) if reduction == _MEAN else slope


def _grad_smooth(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, y, beta, reduction = operands
    settings = constant(beta), constant(reduction)
    return (
        b.emit("SmoothL1LossGrad", x, y, dout, *settings),
        b.emit("SmoothL1LossGrad", y, x, dout, *settings),
        None,
        None,
    )


def _infer_binary(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, y = (
        tensor_of("BinaryCrossEntropy", abstracts[0], "input"),
        tensor_of("BinaryCrossEntropy", abstracts[1], "target"),
    )
    same_shape("BinaryCrossEntropy", "input_shape", x.shape, y.shape)
    fits("BinaryCrossEntropy", abstracts[2], "weight", x.shape)
    whole = value_of("BinaryCrossEntropy", abstracts[3], "reduction") == _NONE
    return output(same_dtype("BinaryCrossEntropy", {"input": x, "target": y}), x.shape if whole else ())


_TINY = 1e-12  # the logarithms' arguments stay above it [2.10 observed]


@np.errstate(all="ignore")
def _binary(x: Array, target: Array, weight: Array | None = None, reduction: int = _MEAN) -> Any:
    tiny = np.asanyarray(_TINY, x.dtype)
    loss = -(target * np.log(x + tiny) + (1 - target) * np.log(1 - x + tiny))
    return _reduced(loss if weight is None else loss * weight, reduction)


def _infer_binary_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("BinaryCrossEntropyGrad", abstracts[0], "input")
    return output(x.dtype, x.shape)


@np.errstate(all="ignore")
def _binary_grad(x: Array, target: Array, dout: Array, weight: Array | None = None, reduction: int = _MEAN) -> Any:
    slope = (x - target) / np.maximum(x * (1 - x), np.asanyarray(_TINY, x.dtype)) * dout
    if weight is not None:
        slope = slope * weight
    return slope / np.asanyarray(slope.size, slope.dtype) if reduction == _MEAN else slope


def _grad_binary(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, target, weight, reduction = operands
    how = constant(reduction)
    dx = b.emit("BinaryCrossEntropyGrad", x, target, dout, weight, how)
    dtarget = None
    if is_variable(target):
        odds = b.emit("Sub", b.emit("Log", b.emit("Sub", number(1, x), x)), b.emit("Log", x))
        dtarget = b.emit("Mul", odds, dout)
        if is_variable(weight):
            dtarget = b.emit("Mul", dtarget, weight)
        if how == _MEAN:
            dtarget = b.emit("RealDiv", dtarget, number(size_of(shape_of(x)), x))
    return dx, dtarget, None, None


def _infer_l2(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return output(tensor_of("L2Loss", abstracts[0], "input_x").dtype, ())


def _grad_l2(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("Mul", operands[0], dout),)


OPS = (
    OpDef(
        name="SparseSoftmaxCrossEntropyWithLogits",
        operands=("features", "labels"),
        infer=_infer_sparse,
        kernel=_sparse,
        grad=_grad_sparse,
        attrs={"is_grad": False, "sens": 1.0},
        input_names=["features", "labels"],
        output_names=["output"],
    ),
    OpDef(
        name="SoftmaxCrossEntropyWithLogits",
        operands=("logits", "labels"),
        infer=_infer_dense,
        kernel=_dense,
        grad=_grad_dense,
    ),
    OpDef(
        name="SmoothL1Loss",
        operands=("prediction", "target", "beta", "reduction"),
        defaults=(1.0, _NONE),
        infer=_infer_smooth("SmoothL1Loss", None),
        kernel=_smooth,
        grad=_grad_smooth,
        prim_func=True,
    ),
    OpDef(
        name="SmoothL1LossGrad",
        operands=("prediction", "target", "dout", "beta", "reduction"),
        defaults=(1.0, _NONE),
        infer=_infer_smooth("SmoothL1LossGrad", 2),
        kernel=_smooth_grad,
        prim_func=True,
    ),
    OpDef(
        name="BinaryCrossEntropy",
        operands=("input", "target", "weight", "reduction"),
        defaults=(None, _MEAN),
        infer=_infer_binary,
        kernel=_binary,
        grad=_grad_binary,
        prim_func=True,
    ),
    OpDef(
        name="BinaryCrossEntropyGrad",
        operands=("input", "target", "dout", "weight", "reduction"),
        defaults=(None, _MEAN),
        infer=_infer_binary_grad,
        kernel=_binary_grad,
        prim_func=True,
    ),
    OpDef(
        name="L2Loss",
        operands=("input_x",),
        infer=_infer_l2,
        kernel=lambda x: (x * x).sum(dtype=x.dtype) / np.asanyarray(2, x.dtype),
        grad=_grad_l2,
    ),
)
