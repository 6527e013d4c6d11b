"""Norms along axes, and normalisation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import axis_of, output, tensor_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer_unit(name: str) -> Any:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input_x")
        for axis in _axes(attrs["axis"]):
            axis_of(name, axis, len(x.shape))
        return output(x.dtype, x.shape)

    return infer


def _axes(axis: Any) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


@np.errstate(all="ignore")
def _unit(x: Array, *, axis: Any = 0, epsilon: float = 1e-4) -> Any:
    power = np.square(x).sum(axis=_axes(axis), keepdims=True, dtype=x.dtype)
    return x / np.sqrt(np.maximum(power, np.asanyarray(epsilon, x.dtype)))


@np.errstate(all="ignore")
def _unit_grad(x: Array, y: Array, dout: Array, *, axis: Any = 0, epsilon: float = 1e-4) -> Any:
    power = np.square(x).sum(axis=_axes(axis), keepdims=True, dtype=x.dtype)
    return (dout - y * (y * dout).sum(axis=_axes(axis), keepdims=True, dtype=x.dtype)) / np.sqrt(
        np.maximum(power, np.asanyarray(epsilon, x.dtype))
    )


def _grad_unit(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("L2NormalizeGrad", operands[0], out, dout, **attrs),)


def _infer_power(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("LpNorm", abstracts[0], "input")
    axes = {axis_of("LpNorm", a, len(x.shape), "axis") for a in _axes(attrs["axis"])}
    return output(
        x.dtype, (1 if i in axes else n for i, n in enumerate(x.shape) if attrs["keep_dims"] or i not in axes)
    )


@np.errstate(all="ignore")
def _power(x: Array, *, axis: Any, p: int = 2, keep_dims: bool = False, epsilon: float = 1e-12) -> Any:
    total = (np.abs(x) ** p).sum(axis=_axes(axis), keepdims=keep_dims, dtype=x.dtype)
    return np.maximum(total ** np.asanyarray(1 / p, x.dtype), np.asanyarray(epsilon, x.dtype))


def _grad_power(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x = operands[0]
    if attrs["p"] != 2:
        raise ScriptValueError(f"For 'LpNorm', the gradient with p = {attrs['p']} is not emulated.", allowed=(2,))
    if not attrs["keep_dims"]:
        for axis in sorted(a % len(x.abstract.shape) for a in _axes(attrs["axis"])):
            dout, out = b.emit("ExpandDims", dout, axis), b.emit("ExpandDims", out, axis)
    return (b.emit("Mul", x, b.emit("RealDiv", dout, out)),)


OPS = (
    OpDef(
        name="L2Normalize",
        operands=("input_x",),
        infer=_infer_unit("L2Normalize"),
        kernel=_unit,
        grad=_grad_unit,
        attrs={"axis": 0, "epsilon": 1e-4},
    ),
    OpDef(
        name="L2NormalizeGrad",
        operands=("input_x", "out", "dout"),
        infer=_infer_unit("L2NormalizeGrad"),
        kernel=_unit_grad,
        attrs={"axis": 0, "epsilon": 1e-4},
        input_names=("logits", "loss_grad", "labels", "weight", "total_weight"),
        output_names=("logits_grad",),
    ),
    OpDef(
        name="LpNorm",
        operands=("input",),
        infer=_infer_power,
        kernel=_power,
        grad=_grad_power,
        attrs={"axis": 0, "p": 2, "keep_dims": False, "epsilon": 1e-12},
        input_names=["input"],
        output_names=["output"],
    ),
)
