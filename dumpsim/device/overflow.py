"""What happens to a result that its number type cannot hold: the store of a float unit and the status register."""

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
# what a store in saturation mode makes of NaN: units differ and none is documented; those of 16-bit floats store 0,
# those of float32 keep it [spec parallel 4.4, 9]
_NAN_STORE = {"float16": 0.0, "bfloat16": 0.0, "float32": np.nan}


# bits of AI Core's status word [spec mindspore 5.2]
_FLOAT, _TO_FLOAT16, _CUBE = 0x20, 0x100, 0x400


def status_bits(dtype: DType, *, cube: bool) -> int:
    """What AI Core says of a result that its number type could not hold.

    Parameters
    ----------
    dtype : DType
        Of the result: float16 is what the unit's float32 is converted to.
    cube : bool
        The matrix unit computed it.

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
    """The mode of a chip: its own, or what the environment says where the chip listens to it.

    Raises
    ------
    BadInputError
        For a value of the variable that is not a mode, on a chip that reads it.

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
    """The overflow flag of a device: raised by any task on any stream, down only by `clear`. [spec parallel 4.4]

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
        """An overflow happened."""
        self.raised = True
        self.count += 1

    def clear(self) -> None:
        """Put the flag down."""
        self.raised = False

    def read(self) -> npt.NDArray[np.int32]:
        """The register as NPUGetFloatStatusV2 gives it: int32[8], the sum is positive after an overflow."""
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
        What the kernel computed, float32 for float16 and bfloat16 outputs.
    dtype : DType
        Type of the output; int4 is packed, others than float16, bfloat16 and float32 are converted as numpy does.
    mode : OverflowMode or None
        ``SATURATION``: what does not fit becomes the largest finite number, NaN becomes 0 in 16-bit floats and stays in
        float32. ``INFNAN``: inf and NaN.
        None: as ``INFNAN``, and nothing is looked for.
    inputs_finite : bool
        Whether all operands were finite; an overflow is a result of finite operands only.

    Returns
    -------
    (array, bool)
        The stored array (the very `result` where nothing had to change) and whether an overflow happened.

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
        pairs = result.shape[-1:] and (*result.shape[:-1], result.shape[-1] // 2)
        return pack(result, "int4").view(target).reshape(pairs), False
    if dtype.name == "float32" and result.dtype.itemsize == 2 and result.dtype.kind in "fV":
        return to_single(result), False
    if dtype.name not in _LARGEST or mode is None or result.dtype.kind not in "fV" or result.size == 0:
        return _rounded(result, target), False
    with np.errstate(all="ignore"):
        # a finite sum has finite terms only; the sum of finite terms may be infinite, so then each is looked at
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
    """The values as the target type stores them; the very array where it is of that type."""
    if values.dtype == target:
        return values
    if target.name in HALVES:
        return to_half(values, target)
    with np.errstate(all="ignore"):
        return values.astype(target)
