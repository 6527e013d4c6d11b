"""Functions that MindSpore builds from others: moving axes, stacking rows, losses of pairs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import inner_single, single
from dumpsim.frontends.mindspore.ops.function.arithmetic import add, div, mul, sub
from dumpsim.frontends.mindspore.ops.function.further import interpolate

__all__ = [
    "cosine_similarity",
    "fliplr",
    "flipud",
    "hstack",
    "huber_loss",
    "margin_ranking_loss",
    "moveaxis",
    "pixel_unshuffle",
    "ravel",
    "softmin",
    "trace",
    "upsample",
    "vstack",
]

upsample = interpolate


def ravel(input: Tensor) -> Tensor:
    """Return the elements as a vector."""
    return single("Reshape", [input, (-1,)])


def moveaxis(x: Tensor, source: Any, destination: Any) -> Tensor:
    """Move axes to new positions; the other axes keep their order.

    Raises
    ------
    ValueError
        For axes out of range, or named twice.
    """
    sources = (source,) if isinstance(source, int) else tuple(source)
    targets = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(sources) != len(targets) or any(not -x.ndim <= axis < x.ndim for axis in (*sources, *targets)):
        raise ScriptValueError(
            f"For 'moveaxis', 'source' {source} and 'destination' {destination} must be axes of a {x.ndim}-D tensor, "
            "equally many."
        )
    taken = dict(zip((t % x.ndim for t in targets), (s % x.ndim for s in sources), strict=True))
    if len(taken) != len(sources) or len(set(taken.values())) != len(sources):
        raise ScriptValueError(f"For 'moveaxis', an axis of {source} or {destination} is named twice.")
    rest = iter(axis for axis in range(x.ndim) if axis not in taken.values())
    return single("Transpose", [x, tuple(taken[at] if at in taken else next(rest) for at in range(x.ndim))])


def flipud(input: Tensor) -> Tensor:
    """Reverse the order of the rows."""
    return inner_single("ReverseV2", [input, (0,)])


def fliplr(input: Tensor) -> Tensor:
    """Reverse the order of the columns."""
    return inner_single("ReverseV2", [input, (1,)])


def _at_least(tensors: Sequence[Tensor], rank: int) -> list[Tensor]:
    return [t if t.ndim >= rank else single("Reshape", [t, (*(1,) * (rank - t.ndim), *t.shape)]) for t in tensors]


def vstack(inputs: Sequence[Tensor]) -> Tensor:
    """Join tensors vertically; vectors are rows."""
    return single("Concat", [tuple(_at_least(inputs, 2)), 0])


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join tensors horizontally; vectors are joined end to end."""
    raised = _at_least(tensors, 1)
    return inner_single("Concat", [tuple(raised), 0 if raised[0].ndim == 1 else 1])


def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix.

    Raises
    ------
    ValueError
        For a tensor that is not a matrix.
    """
    if input.ndim != 2:
        raise ScriptValueError(f"For 'trace', 'input' must have 2 dimensions, but got {input.ndim}.")
    ones = Tensor(np.eye(input.shape[0], input.shape[1]), input.dtype)
    return single("SumExt", [mul(input, ones), (), False, None])


def softmin(x: Tensor, axis: int = -1) -> Tensor:
    """Softmax of the negated elements."""
    return single("Softmax", [single("Neg", [x]), (axis,)])


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Turn pixels into channels: ``(..., C, H * r, W * r)`` becomes ``(..., C * r * r, H, W)``."""
    if downscale_factor < 1 or input.ndim < 3 or any(n % downscale_factor for n in input.shape[-2:]):
        raise ScriptValueError(
            f"For 'pixel_unshuffle', {downscale_factor} must divide height and width of 'input' {input.shape}."
        )
    *batch, channels, height, width = input.shape
    rows, columns, r, count = height // downscale_factor, width // downscale_factor, downscale_factor, len(batch)
    x = single("Reshape", [input, (*batch, channels, rows, r, columns, r)])
    x = single("Transpose", [x, (*range(count), count, count + 2, count + 4, count + 1, count + 3)])
    return single("Reshape", [x, (*batch, channels * r * r, rows, columns)])


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Cosine of the angle between two tensors along an axis."""

    def total(product: Tensor) -> Tensor:
        return single("SumExt", [product, (dim,), False, None])

    lengths = mul(total(mul(x1, x1)), total(mul(x2, x2)))
    return div(total(mul(x1, x2)), single("Sqrt", [single("Maximum", [lengths, eps * eps])]))


def _reduced(loss: Tensor, reduction: str, where: str) -> Tensor:
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ScriptValueError(f"For '{where}', 'reduction' must be in ['none', 'mean', 'sum'], but got {reduction}.")
    return single("SumExt" if reduction == "sum" else "MeanExt", [loss, (), False, None])


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half the square of small differences, the absolute value of large ones.

    Raises
    ------
    ValueError
        For a `delta` that is not positive, or another reduction.
    """
    if delta <= 0:
        raise ScriptValueError(f"For 'huber_loss', 'delta' must be positive, but got {delta}.")
    size = single("Abs", [sub(input, target)])
    near = mul(mul(size, size), 0.5)
    far = mul(sub(size, 0.5 * delta), float(delta))
    return _reduced(single("Select", [single("Less", [size, float(delta)]), near, far]), reduction, "huber_loss")


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``."""
    gap = add(mul(single("Neg", [target]), sub(input1, input2)), float(margin))
    return _reduced(single("Maximum", [gap, 0.0]), reduction, "margin_ranking_loss")
