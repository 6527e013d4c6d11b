"""Overflow: how a float unit stores a result that is too large for its number type, and the status register."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from dumpsim.core.dtype import DType
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.device.chip import Chip, OverflowMode
from dumpsim.device.halves import HALVES, to_half, to_single
from dumpsim.device.packed import pack

__all__ = ["VARIABLE", "StatusRegister", "narrow", "overflow_mode", "status_bits"]

VARIABLE = "MS_ASCEND_CHECK_OVERFLOW_MODE"

# [spec parallel 4.4]
_MODES = {"SATURATION_MODE": OverflowMode.SATURATION, "INFNAN_MODE": OverflowMode.INFNAN}

_LARGEST = {
    "float16": 65504.0,
    "bfloat16": (2.0 - 2.0**-7) * 2.0**127,
    "float32": (2.0 - 2.0**-23) * 2.0**127,
}
# NaN in saturation mode: units differ and none is documented; those of 16-bit floats store 0, those of float32 NaN
# [spec parallel 4.4, 9]
_NAN_STORE = {"float16": 0.0, "bfloat16": 0.0, "float32": np.nan}


# bits of AI Core's status word [spec mindspore 5.2]
_FLOAT, _TO_FLOAT16, _CUBE = 0x20, 0x100, 0x400


def status_bits(dtype: DType, *, cube: bool) -> int:
    """Return the status bits of AI Core for a result that is too large for its number type.

    Parameters
    ----------
    dtype : DType
        Type of the result. For float16 the conversion from the unit's float32 overflows.
    cube : bool
        Whether the matrix unit computed it.

    Examples
    --------
    >>> from dumpsim.core.dtype import dtype
    >>> [hex(status_bits(dtype(n), cube=c)) for n, c in (("float32", False), ("float16", False), ("float32", True))]
    ['0x20', '0x100', '0x400']
    """
    if dtype.name == "float16":
        return _TO_FLOAT16
    return _CUBE if cube else _FLOAT


def overflow_mode(chip: Chip, environment: Mapping[str, str]) -> OverflowMode | None:
    """Return the mode of a chip: the chip's default, or that of the environment if the chip has a switch.

    Raises
    ------
    BadInputError
        If the value of the variable is not a mode, on a chip that reads it.

    Examples
    --------
    >>> from dumpsim.device.chip import chip
    >>> overflow_mode(chip("910B"), {"MS_ASCEND_CHECK_OVERFLOW_MODE": "SATURATION_MODE"}).value
    'saturation'
    >>> overflow_mode(chip("910A"), {"MS_ASCEND_CHECK_OVERFLOW_MODE": "INFNAN_MODE"}).value
    'saturation'
    """
    wanted = environment.get(VARIABLE, "")
    if not wanted or not chip.overflow_switch:
        return chip.overflow
    if wanted not in _MODES:
        raise BadInputError(
            f"{wanted!r} is not an overflow mode", where=VARIABLE, allowed=_MODES, nearest=nearest(wanted, _MODES)
        )
    return _MODES[wanted]


@dataclass(slots=True)
class StatusRegister:
    """The overflow flag of a device: set by any task on any stream, reset only by `clear`. [spec parallel 4.4]

    Examples
    --------
    >>> register = StatusRegister()
    >>> register.set()
    >>> int(register.read().sum()) > 0
    True
    """

    raised: bool = False
    count: int = 0

    def set(self) -> None:
        """Set the flag after an overflow."""
        self.raised = True
        self.count += 1

    def clear(self) -> None:
        """Reset the flag."""
        self.raised = False

    def read(self) -> npt.NDArray[np.int32]:
        """Return the register as NPUGetFloatStatusV2 does: int32[8], the sum is positive after an overflow."""
        status = np.zeros(8, np.int32)
        status[0] = int(self.raised)
        return status


def narrow(
    result: npt.NDArray[Any], dtype: DType, mode: OverflowMode | None, *, inputs_finite: bool = True
) -> tuple[npt.NDArray[Any], bool]:
    """Store a result as `dtype`.

    Parameters
    ----------
    result : array
        The kernel's result, float32 for float16 and bfloat16 outputs.
    dtype : DType
        Type of the output. int4 is packed; types other than float16, bfloat16 and float32 are converted as in numpy.
    mode : OverflowMode or None
        ``SATURATION``: too large values become the largest finite number, NaN becomes 0 in 16-bit floats and stays NaN
        in float32. ``INFNAN``: inf and NaN.
        None: as ``INFNAN``, but overflows are not detected.
    inputs_finite : bool
        Whether all operands were finite; only then is the result an overflow.

    Returns
    -------
    (array, bool)
        The stored array (`result` itself if nothing changed) and whether an overflow happened.

    Examples
    --------
    >>> from dumpsim.core.dtype import dtype
    >>> x = np.array([1e6, -1e6, 1.0], np.float32)
    >>> narrow(x, dtype("float16"), OverflowMode.SATURATION)
    (array([ 6.55e+04, -6.55e+04,  1.00e+00], dtype=float16), True)
    >>> narrow(x, dtype("float16"), OverflowMode.INFNAN)
    (array([ inf, -inf,   1.], dtype=float16), True)
    """
    target = dtype.numpy
    if dtype.name == "int4" and result.dtype != target:
        pairs = (*result.shape[:-1], result.shape[-1] // 2) if result.shape else ()
        return pack(result, "int4").view(target).reshape(pairs), False
    if dtype.name == "float32" and result.dtype.itemsize == 2 and result.dtype.kind in "fV":
        return to_single(result), False
    if dtype.name not in _LARGEST or mode is None or result.dtype.kind not in "fV" or result.size == 0:
        return _rounded(result, target), False
    with np.errstate(all="ignore"):
        # a finite sum has only finite terms; the sum of finite terms may be infinite, so then each one is checked
        if target.char == result.dtype.char == "f" and isfinite(result.sum()):
            return result, False
        # NaN makes both of these NaN; rounding to the target decides what is too large
        high, low = result.max().astype(target), result.min().astype(target)
        if np.isfinite(high) and np.isfinite(low):
            return _rounded(result, target), False
        if mode is OverflowMode.INFNAN:
            return _rounded(result, target), inputs_finite
        largest = _LARGEST[dtype.name]
        stored = np.where(np.isnan(result), _NAN_STORE[dtype.name], np.clip(result, -largest, largest))
        return _rounded(stored, target), inputs_finite


def _rounded(values: npt.NDArray[Any], target: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the values rounded to the target type; the same array if it has that type."""
    if values.dtype == target:
        return values
    if target.name in HALVES:
        return to_half(values, target)
    with np.errstate(all="ignore"):
        return values.astype(target)
