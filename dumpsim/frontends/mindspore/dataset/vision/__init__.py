"""``mindspore.dataset.vision``: transforms of images of shape ``(H, W, C)`` or ``(H, W)``.

Decoding, rotations and colour transforms are not emulated.
"""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.dataset.vision import transforms, utils
from dumpsim.frontends.mindspore.dataset.vision.transforms import (
    HWC2CHW,
    CenterCrop,
    Crop,
    HorizontalFlip,
    Normalize,
    RandomCrop,
    RandomHorizontalFlip,
    RandomVerticalFlip,
    Rescale,
    Resize,
    ToTensor,
    VerticalFlip,
)
from dumpsim.frontends.mindspore.dataset.vision.utils import Inter

__all__ = [
    "HWC2CHW",
    "CenterCrop",
    "Crop",
    "HorizontalFlip",
    "Inter",
    "Normalize",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "Rescale",
    "Resize",
    "ToTensor",
    "VerticalFlip",
    "transforms",
    "utils",
]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.dataset.vision", name)
