"""Checks for finite numbers, and the overflow register of the device. [spec parallel 4.4]"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.device.device import Device
from dumpsim.ops.opdef import Infer, OpDef
from dumpsim.ops.rules import FLOATS, output, tensor_of, tensors_in

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

_WORDS = 8


def _infer_status(op: str, kind: str) -> Infer:
    """Return the rule of an operator whose input and output are eight words."""

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(op, abstracts[0], "input", (kind,))
        if x.shape != (_WORDS,):
            raise ScriptValueError(f"For '{op}', the shape of input must be ({_WORDS},), but got {x.shape}.")
        return output(kind, (_WORDS,))

    return infer


def _infer_alloc(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return output("float32", (_WORDS,))


def _alloc() -> Array:
    return np.zeros(_WORDS, np.float32)


def _get(input_x: Array, *, device: Device) -> Array:
    """Write the register to the operand; the output has no meaning."""
    input_x[...] = device.status.read().astype(np.float32)
    return np.array(input_x)


def _clear(input_x: Array, *, device: Device) -> Array:
    device.status.clear()
    input_x[...] = 0
    return np.array(input_x)


def _get_v2(input: Array, *, device: Device) -> Array:
    return np.asarray(device.status.read(), np.int32)


def _clear_v2(input: Array, *, device: Device) -> Array:
    device.status.clear()
    return np.zeros(_WORDS, np.int32)


def _infer_finite(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    for tensor in tensors_in("AllFinite", abstracts[0], "x"):
        if tensor.dtype.name not in FLOATS:
            raise ScriptTypeError(f"For 'AllFinite', the type of 'x' must be float, but got {tensor.dtype.title}.")
    return output("bool", (1,))


def _all_finite(gradients: Sequence[Array]) -> Array:
    """Return True if an element is not finite. [2.10: the vendor's result is the opposite of the name]"""
    return np.array([not all(np.isfinite(tensor).all() for tensor in gradients)])


def _infer_float_status(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    tensor_of("FloatStatus", abstracts[0], "x", FLOATS)
    return output("float32", (1,))


def _float_status(x: Array) -> Array:
    return np.array([not np.isfinite(x).all()], np.float32)


OPS = (
    OpDef(
        name="NPUAllocFloatStatus",
        operands=(),
        infer=_infer_alloc,
        kernel=_alloc,
        stop=True,
        targets=("Ascend",),
    ),
    *(
        OpDef(
            name=name,
            operands=("input_x",),
            infer=_infer_status(name, "float32"),
            kernel=kernel,
            updates=(0,),
            stop=True,
            device=True,
            targets=("Ascend",),
        )
        for name, kernel in (("NPUGetFloatStatus", _get), ("NPUClearFloatStatus", _clear))
    ),
    *(
        OpDef(
            name=name,
            operands=("input",),
            infer=_infer_status(name, "int32"),
            kernel=kernel,
            stop=True,
            device=True,
            prim_func=True,
            targets=("Ascend",),
        )
        for name, kernel in (("NPUGetFloatStatusV2", _get_v2), ("NPUClearFloatStatusV2", _clear_v2))
    ),
    OpDef(
        name="AllFinite",
        operands=("gradients",),
        infer=_infer_finite,
        kernel=_all_finite,
        stop=True,
        input_names=["gradients"],
        output_names=["is_finite"],
        targets=("Ascend",),
    ),
    OpDef(
        name="FloatStatus",
        operands=("x",),
        infer=_infer_float_status,
        kernel=_float_status,
        input_names=["x"],
        output_names=["output"],
        stop=True,
    ),
)
