"""Compares the statistics of two tensors if the values of one were not dumped."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dumpsim.analysis.tolerance import Tolerance
from dumpsim.core.errors import BadInputError, FormatError
from dumpsim.core.format import FORMATS
from dumpsim.core.statistic import DIGITS, REAL
from dumpsim.tensor.layout import device_shape

__all__ = ["near", "padded", "typical", "zero_filled"]

_PRINTED = 10.0 ** (1 - DIGITS)  # relative rounding error of printed numbers

Shape = tuple[int, ...]


@lru_cache(maxsize=1024)
def padded(host: Shape, device: Shape) -> bool:
    """Return whether one shape is the padded device shape of another.

    Examples
    --------
    >>> padded((8, 6, 28, 28), (8, 1, 28, 28, 16)), padded((8, 6), (8, 7))
    (True, False)
    """
    if not host or math.prod(device) <= math.prod(host):
        return False
    for layout in FORMATS.values():
        for dtype in ("float16", "float32", "int8"):  # the number type decides on the size of a block
            try:
                if device_shape(host, dtype, layout.name) == device:
                    return True
            except (FormatError, BadInputError):
                break
    return False


def zero_filled(row: Mapping[str, Any], count: int, total: int) -> dict[str, Any]:
    """Return the statistics of `count` elements after padding with zeros to a `total`."""
    found = dict(row)
    for name, choose in (("max", max), ("min", min)):
        if (value := row.get(name)) is not None and value == value:
            found[name] = choose(value, 0.0)
    if row.get("avg") is not None:
        found["avg"] = row["avg"] * count / total
    return found


def typical(row: Mapping[str, Any], count: int) -> float:
    """Return the scale of the elements that a row describes; 1 if unknown."""
    norm = row.get("l2norm")
    if norm is not None and count:
        size = abs(norm) / math.sqrt(count)
    else:
        known = [abs(value) for name in ("max", "min") if (value := row.get(name)) is not None]
        size = max(known, default=1.0)
    return size if math.isfinite(size) else 1.0


def near(name: str, own: Mapping[str, Any], other: Mapping[str, Any], count: int, tolerance: Tolerance) -> bool:
    """Return whether a statistic of agreeing tensors may differ this much; `tolerance` is that of their elements."""
    a, b = own[name], other[name]
    if a == b or (a != a and b != b):
        return True
    if name not in REAL or not (math.isfinite(a) and math.isfinite(b)):
        return False
    scale, shift = abs(b), 1.0
    if name == "avg":  # of tensors whose elements cancel out
        scale = max([scale, *(abs(v) for key in ("max", "min") if math.isfinite(v := other.get(key) or 0.0))])
    if name == "l2norm":
        shift = math.sqrt(max(count, 1))
    return bool(abs(a - b) <= tolerance.atol * shift + max(tolerance.rtol, _PRINTED) * scale)
