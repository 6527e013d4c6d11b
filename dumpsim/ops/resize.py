"""Resizing images by nearest neighbours or bilinear interpolation, forward and backward."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import shape_of
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.rules import constant, ints_of, output, tensor_of, vector

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

_SETTINGS = ("align_corners", "half_pixel_centers")


def _centres(count: int, source: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    """Return the coordinates of the new pixels among the old ones; in float32, as the vendor computes them."""
    places = np.arange(count, dtype=np.float32)
    if align_corners and count > 1:
        return places * np.float32((source - 1) / (count - 1))
    scale = np.float32(source) / np.float32(count)
    return (places + np.float32(0.5)) * scale - np.float32(0.5) if half_pixel_centers else places * scale


def _nearest(count: int, source: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    if align_corners and count > 1:
        chosen = np.floor(_centres(count, source, True, False) + np.float32(0.5))
    elif half_pixel_centers:
        chosen = np.floor((np.arange(count, dtype=np.float32) + np.float32(0.5)) * np.float32(source / count))
    else:
        chosen = np.floor(_centres(count, source, False, False))
    return np.clip(chosen.astype(np.int64), 0, source - 1)


def _blend(count: int, source: int, align_corners: bool, half_pixel_centers: bool, kind: np.dtype[Any]) -> Array:
    """Return the (count, source) weights of a linear interpolation."""
    centres = _centres(count, source, align_corners, half_pixel_centers)
    low = np.floor(centres)
    share = (centres - low).astype(kind)
    weights = np.zeros((count, source), kind)
    rows = np.arange(count)
    np.add.at(weights, (rows, np.clip(low.astype(np.int64), 0, source - 1)), 1 - share)
    np.add.at(weights, (rows, np.clip(low.astype(np.int64) + 1, 0, source - 1)), share)
    return weights


def _pair(size: Any) -> tuple[int, int]:
    height, width = (int(n) for n in np.asanyarray(size).reshape(-1))
    return height, width


def _infer(op: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(op, abstracts[0], "image")
        size = ints_of(op, abstracts[1], "size")
        if len(x.shape) != 4 or len(size) != 2 or min(size) < 1:
            raise ScriptValueError(
                f"For '{op}', 'image' must have 4 dimensions and 'size' be two positive numbers, but got "
                f"{vector(x.shape)} and {size}."
            )
        return output(x.dtype, (*x.shape[:2], *size))

    return infer


def _to_nearest(image: Array, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Array:
    height, width = _pair(size)
    rows = _nearest(height, image.shape[2], align_corners, half_pixel_centers)
    columns = _nearest(width, image.shape[3], align_corners, half_pixel_centers)
    return np.asanyarray(image[:, :, rows[:, None], columns[None, :]])


def _grad_nearest(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    image, _, align, half = operands
    size = shape_of(image)[2:]
    return b.emit("ResizeNearestNeighborV2Grad", dout, size, constant(align), constant(half)), None, None, None


def _from_nearest(grads: Array, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Array:
    height, width = _pair(size)
    rows = _nearest(grads.shape[2], height, align_corners, half_pixel_centers)
    columns = _nearest(grads.shape[3], width, align_corners, half_pixel_centers)
    total = np.zeros((*grads.shape[:2], height, width), grads.dtype)
    images = total.reshape(-1, height, width)
    places: Any = (slice(None), rows[:, None], columns[None, :])
    np.add.at(images, places, grads.reshape(-1, *grads.shape[2:]))
    return total


def _bilinear(image: Array, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Array:
    height, width = _pair(size)
    down = _blend(height, image.shape[2], align_corners, half_pixel_centers, image.dtype)
    across = _blend(width, image.shape[3], align_corners, half_pixel_centers, image.dtype)
    return np.asanyarray(down @ (image @ across.T))


def _grad_bilinear(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    image, _, align, half = operands
    return b.emit("ResizeBilinearGrad", dout, image, constant(align), constant(half)), None, None, None


def _infer_back(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    image = tensor_of("ResizeBilinearGrad", abstracts[1], "image")
    return output(tensor_of("ResizeBilinearGrad", abstracts[0], "grads").dtype, image.shape)


def _from_bilinear(grads: Array, image: Array, align_corners: bool = False, half_pixel_centers: bool = False) -> Array:
    down = _blend(grads.shape[2], image.shape[2], align_corners, half_pixel_centers, grads.dtype)
    across = _blend(grads.shape[3], image.shape[3], align_corners, half_pixel_centers, grads.dtype)
    return np.asanyarray(down.T @ (grads @ across))


OPS = (
    OpDef(
        name="ResizeNearestNeighborV2",
        operands=("image", "size", *_SETTINGS),
        defaults=(False, False),
        infer=_infer("ResizeNearestNeighborV2"),
        kernel=_to_nearest,
        grad=_grad_nearest,
        prim_func=True,
    ),
    OpDef(
        name="ResizeNearestNeighborV2Grad",
        operands=("grads", "size", *_SETTINGS),
        defaults=(False, False),
        infer=_infer("ResizeNearestNeighborV2Grad"),
        kernel=_from_nearest,
        prim_func=True,
    ),
    OpDef(
        name="ResizeBilinearV2",
        operands=("image", "size", *_SETTINGS),
        defaults=(False, False),
        infer=_infer("ResizeBilinearV2"),
        kernel=_bilinear,
        grad=_grad_bilinear,
        prim_func=True,
    ),
    OpDef(
        name="ResizeBilinearGrad",
        operands=("grads", "image", *_SETTINGS),
        defaults=(False, False),
        infer=_infer_back,
        kernel=_from_bilinear,
        prim_func=True,
    ),
)
