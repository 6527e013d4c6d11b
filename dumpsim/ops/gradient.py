"""Helpers of gradient rules: undoing a broadcast, zeros, and constant tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import ScalarType, TensorType
from dumpsim.core.errors import UnsupportedError
from dumpsim.ops.opdef import GradBuilder
from dumpsim.ops.rules import broadcast

__all__ = ["is_variable", "number", "part", "part_or_zeros", "shape_of", "unbroadcast", "unbroadcast_pair"]


def shape_of(symbol: Any) -> tuple[int, ...]:
    """Return the shape of a tensor symbol; host numbers have shape ().

    Raises
    ------
    UnsupportedError
        For extents that are known only at run time, since rules use them as constants.
    """
    abstract = getattr(symbol, "abstract", None)
    if isinstance(abstract, TensorType):
        if -1 in abstract.shape:
            raise UnsupportedError(f"an operator that needs a known shape, for a tensor of shape {abstract.shape}")
        return abstract.shape
    return tuple(np.shape(getattr(symbol, "value", symbol)))


def is_variable(symbol: Any) -> bool:
    """Whether this operand may need a gradient: a tensor that is not a constant."""
    abstract = getattr(symbol, "abstract", None)
    return isinstance(abstract, TensorType) and not abstract.constant


def part(b: GradBuilder, dout: Any, index: int) -> Any:
    """Return the gradient of output `index` of an operator with several outputs; None if the output is not used."""
    items = getattr(dout, "items", dout)
    return items[index] if isinstance(items, tuple | list) else b.item(dout, index)


def part_or_zeros(b: GradBuilder, dout: Any, index: int, out: Any) -> Any:
    """Return the gradient of output `index`, zeros if the output is not used."""
    found = part(b, dout, index)
    if found is not None:
        return found
    tensor = out.abstract.items[index]
    return np.zeros(tensor.shape, tensor.dtype.numpy)


def number(value: float, like: Any) -> np.ndarray[Any, Any]:
    """Return a constant tensor of shape () with the number type of the tensor symbol `like`."""
    abstract = like.abstract
    assert isinstance(abstract, TensorType | ScalarType)
    return np.asarray(value, abstract.dtype.numpy)


def unbroadcast(b: GradBuilder, gradient: Any, target: Sequence[int], source: Sequence[int]) -> Any:
    """Sum a gradient of shape `source` down to an operand of shape `target` that was broadcast.

    Emits SumExt, then Reshape if leading dimensions are removed and others remain as 1. [2.10 observed]
    """
    target, source = tuple(target), tuple(source)
    if target == source:
        return gradient
    missing = len(source) - len(target)
    padded = (1,) * missing + target
    axes = tuple(i for i, (n, m) in enumerate(zip(padded, source, strict=True)) if n == 1 and (m != 1 or i < missing))
    if not target:
        return b.emit("SumExt", gradient, (), False, None)
    keep = missing == 0
    summed = b.emit("SumExt", gradient, axes, keep, None)
    left = padded if keep else tuple(n for i, n in enumerate(source) if i not in axes)
    return summed if left == target else b.emit("Reshape", summed, target)


def unbroadcast_pair(b: GradBuilder, operands: Sequence[Any], gradients: Sequence[Any]) -> tuple[Any, Any]:
    """Return the gradients of both operands of a broadcasting operator, each in its operand's number type."""
    shapes = [shape_of(operand) for operand in operands[:2]]
    full = broadcast("gradient", shapes[0], shapes[1])
    first, second = (
        unbroadcast(b, gradient, shape, full) if gradient is not None else None
        for gradient, shape in zip(gradients, shapes, strict=True)
    )
    return _typed(b, first, operands[0]), _typed(b, second, operands[1])


def _typed(b: GradBuilder, gradient: Any, operand: Any) -> Any:
    if gradient is None or gradient.abstract.dtype == operand.abstract.dtype or not is_variable(operand):
        return gradient
    return b.emit("Cast", gradient, operand.abstract.dtype)
