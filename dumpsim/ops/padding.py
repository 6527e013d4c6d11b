"""Padding with constants, copies of the edge, or mirror images."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.ops.gradient import shape_of
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import constant, ints_of, output, tensor_of, value_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

# number types of MirrorPad [observed 2.10]
_MIRRORED = (
    *("bool", "complex128", "complex64", "float16", "float32", "float64"),
    *("int16", "int32", "int64", "int8", "uint16", "uint8"),
)


def _pad_widths(attrs: Attrs) -> list[tuple[int, int]]:
    paddings = attrs["paddings"]
    wrong = [len(pair) for pair in paddings if len(pair) != 2]
    if wrong:
        raise ScriptValueError(
            f"For 'Pad', the shape of 'paddings' must be ({len(paddings)}, 2), but got paddings.shape[1] = {wrong[0]}"
        )
    return [(int(before), int(after)) for before, after in paddings]


def _infer_pad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, widths = tensor_of("Pad", abstracts[0], "x"), _pad_widths(attrs)
    if len(widths) != len(x.shape):
        raise ScriptValueError(
            "For 'Pad', the length of 'paddings' must be equal to the rank of 'input_x', "
            f"but got {len(widths)} vs {len(x.shape)}"
        )
    for axis, (before, after) in enumerate(widths):
        if min(before, after) < 0:
            raise ScriptValueError(
                "For 'Pad', all elements of 'paddings' must be >= 0, "
                f"but got paddings[{axis}][0] = {before}, paddings[{axis}][1] = {after}"
            )
    return output(x.dtype, (n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)))


def _grad_pad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("Slice", dout, tuple(before for before, _ in _pad_widths(attrs)), shape_of(operands[0])),)


def _pairs(shape: Sequence[int], paddings: Sequence[int]) -> list[tuple[int, int]]:
    """Return the widths per axis of a list that starts with the last axis."""
    numbers = [int(n) for n in paddings]
    if len(numbers) % 2 or len(numbers) > 2 * len(shape):
        raise ScriptValueError(f"For 'PadV3', 'paddings' {numbers} do not fit a tensor of rank {len(shape)}.")
    pairs = [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)]
    return [(0, 0)] * (len(shape) - len(pairs)) + pairs[::-1]


def _check_copies(shape: Sequence[int], numbers: Sequence[int], mode: str) -> None:
    """Refuse what the modes that copy elements do not take, with MindSpore's texts. [2.10 observed]"""
    rank, start = len(shape), "For primitive[PadV3], the"
    if rank < 3:
        raise ScriptValueError(
            f"{start} input dims for edge, reflect or circular mode must be greater than or equal to 3, but got {rank}."
        )
    if mode == "reflect" and rank > 4:
        raise ScriptValueError(f"{start} input dims for reflect mode must be less than or equal to 4, but got {rank}.")
    if len(numbers) != 2 * (rank - 2):
        raise ScriptValueError(
            f"{start} input dims when padding's size equal {len(numbers)} must be equal to {len(numbers) // 2 + 2}, "
            f"but got {rank}."
        )
    for axis, (before, after) in reversed(list(enumerate(_pairs(shape, numbers)))):
        n = shape[axis]
        if n + before + after < 1:
            raise ScriptValueError(f"{start} output size must be greater than 0, but got {n + before + after}.")
        if mode == "reflect" and max(before, after) >= n:
            raise ScriptValueError(
                "For 'PadV3' reflect mode, Padding size must be less than the corresponding input dimension, but got: "
                f"padding ({before},{after}) at dimension {axis} of input:[{n}]"
            )


def _infer_pad_any(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, numbers = tensor_of("PadV3", abstracts[0], "x"), ints_of("PadV3", abstracts[1], "paddings")
    if attrs["mode"] != "constant":
        _check_copies(x.shape, numbers, attrs["mode"])
    pairs = _pairs(x.shape, numbers)
    return output(x.dtype, (n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True)))


_MODES = {"reflect": "reflect", "edge": "edge", "circular": "wrap"}


def _places(n: int, before: int, after: int, mode: str) -> Array:
    """Return the index of the element that each place along a padded axis shows.

    Examples
    --------
    >>> _places(4, 2, 1, "reflect")
    array([2, 1, 0, 1, 2, 3, 2])
    """
    inner = np.arange(max(-before, 0), n - max(-after, 0))
    return np.pad(inner, (max(before, 0), max(after, 0)), _MODES[mode])  # type: ignore[call-overload, no-any-return]


def _pad_any(
    x: Array, paddings: Sequence[int], value: Any = None, *, mode: str = "constant", paddings_contiguous: bool = True
) -> Any:
    pairs = _pairs(x.shape, paddings)
    if mode != "constant":
        for axis, (n, (before, after)) in enumerate(zip(x.shape, pairs, strict=True)):
            x = np.take(x, _places(n, before, after, mode), axis) if before or after else x
        return x
    cut = tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(x.shape, pairs, strict=True))
    widths = [(max(before, 0), max(after, 0)) for before, after in pairs]
    return np.pad(x[cut], widths, "constant", constant_values=np.asarray(0 if value is None else value, x.dtype))


def _grad_pad_any(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    unused = (None for _ in operands[1:])
    if attrs["mode"] != "constant":
        return b.emit("PadV3Grad", dout, operands[1], **attrs), *unused
    back = tuple(-int(n) for n in constant(operands[1]))
    zero = np.zeros((), dout.abstract.dtype.numpy)
    return b.emit("PadV3", dout, back, zero, **attrs), *unused


def _infer_pad_slope(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dout = tensor_of("PadV3Grad", abstracts[0], "x")
    pairs = _pairs(dout.shape, ints_of("PadV3Grad", abstracts[1], "paddings"))
    return output(dout.dtype, (n - before - after for n, (before, after) in zip(dout.shape, pairs, strict=True)))


def _pad_slope(x: Array, paddings: Sequence[int], *, mode: str, paddings_contiguous: bool = True) -> Any:
    """Add the gradients of all copies of an element."""
    for axis, (n, (before, after)) in enumerate(zip(x.shape, _pairs(x.shape, paddings), strict=True)):
        if before or after:
            wide = np.moveaxis(x, axis, 0)
            total = np.zeros((n - before - after, *wide.shape[1:]), x.dtype)
            np.add.at(total, _places(n - before - after, before, after, mode), wide)
            x = np.moveaxis(total, 0, axis)
    return x


def _mirrored(op: str, paddings: Abstract, attrs: Attrs) -> list[tuple[int, int]]:
    """Return the widths of a mirror padding, before and after each axis.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        With the texts of MindSpore 2.10. [observed 2.10]
    """
    if isinstance(paddings, TensorType):
        tensor_of(op, paddings, "paddings", ("int32", "int64"))
        if paddings.value is None:
            raise ScriptTypeError(f"For '{op}', 'paddings' must be a constant: its values decide the shape.")
        shape, rows = paddings.shape, paddings.value
    else:
        rows = value_of(op, paddings, "paddings")
        shape = np.shape(rows)
    if len(shape) != 2:
        raise ScriptValueError(f"For '{op}', paddings must be equal to 2 dims, but got {len(shape)}")
    if shape[1] != 2:
        raise ScriptValueError(f"For '{op}', paddings must be a matrix with 2 columns, but got {shape[1]}")
    if any(n < 0 for row in rows for n in row):
        raise ScriptValueError(f"For '{op}', all elements of paddings must be >= 0.")
    return [(before, after) for before, after in rows]


def _infer_mirror(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("MirrorPad", abstracts[0], "input_x", _MIRRORED)
    widths = _mirrored("MirrorPad", abstracts[1], attrs)
    if len(widths) != len(x.shape):
        raise ScriptValueError(f"For 'MirrorPad', paddings.shape[0] must equal to input's rank, but got {len(widths)}")
    least, relation = (1, "not less than") if attrs["mode"] == "REFLECT" else (0, "greater than")
    for n, (before, after) in zip(x.shape, widths, strict=True):
        if max(before, after) > n - least:
            raise ScriptValueError(
                "For 'MirrorPad', paddings must be no greater than the dimension size: "
                f"[{before}], [{after}] {relation} [{n}]"
            )
    return output(x.dtype, (n + before + after for n, (before, after) in zip(x.shape, widths, strict=True)))


def _mirror(x: Array, paddings: Any, *, mode: str) -> Any:
    widths = [(int(before), int(after)) for before, after in paddings]
    return np.pad(x, widths, mode.lower())  # type: ignore[call-overload]


def _grad_mirror(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("MirrorPadGrad", dout, operands[1], **attrs), None


def _infer_fold(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dy = tensor_of("MirrorPadGrad", abstracts[0], "dy", _MIRRORED)
    widths = _mirrored("MirrorPadGrad", abstracts[1], attrs)
    return output(dy.dtype, (n - before - after for n, (before, after) in zip(dy.shape, widths, strict=True)))


def _fold(dy: Array, paddings: Any, *, mode: str) -> Any:
    """Add the gradients in each mirror image to those of the elements that it shows."""
    edge = 1 if mode == "REFLECT" else 0  # the outermost element is the axis of the mirror
    total = dy
    for axis, (before, after) in enumerate(paddings):
        wide = np.moveaxis(total, axis, 0)
        n = wide.shape[0] - before - after
        core = wide[before : before + n].copy()
        core[edge : edge + before] += wide[:before][::-1]
        core[n - edge - after : n - edge] += wide[before + n :][::-1]
        total = np.moveaxis(core, 0, axis)
    return total


OPS = (
    OpDef(
        name="Pad",
        operands=("x",),
        infer=_infer_pad,
        kernel=lambda x, *, paddings: np.pad(x, [tuple(p) for p in paddings]),
        grad=_grad_pad,
        attrs={"paddings": ()},
        input_names=["x"],
        output_names=["y"],
    ),
    OpDef(
        name="PadV3",
        operands=("x", "paddings", "constant_value"),
        defaults=(None,),
        infer=_infer_pad_any,
        kernel=_pad_any,
        grad=_grad_pad_any,
        attrs={"mode": "constant", "paddings_contiguous": True},
        input_names=["x", "paddings", "constant_value"],
        output_names=["y"],
    ),
    OpDef(
        name="PadV3Grad",
        operands=("x", "paddings"),
        infer=_infer_pad_slope,
        kernel=_pad_slope,
        attrs={"mode": "reflect", "paddings_contiguous": True},
        input_names=("x", "paddings"),
        output_names=("y",),
    ),
    OpDef(
        name="MirrorPad",
        operands=("input_x", "paddings"),
        infer=_infer_mirror,
        kernel=_mirror,
        grad=_grad_mirror,
        attrs={"mode": "REFLECT"},
        input_names=["x", "paddings"],
        output_names=["y"],
        engine="aicpu",
    ),
    OpDef(
        name="MirrorPadGrad",
        operands=("dy", "paddings"),
        infer=_infer_fold,
        kernel=_fold,
        attrs={"mode": "REFLECT"},
        input_names=["dy", "paddings"],
        output_names=["output"],
        engine="aicpu",
    ),
)
