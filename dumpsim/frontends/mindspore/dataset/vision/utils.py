"""``mindspore.dataset.vision.utils``: interpolation methods."""

from enum import IntEnum
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["Inter"]


class Inter(IntEnum):
    """Interpolation methods of `Resize`.

    Examples
    --------
    >>> Inter.LINEAR
    <Inter.BILINEAR: 2>
    """

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


def __getattr__(name: str) -> Any:
    return vendored("mindspore.dataset.vision.utils", name)
