"""``mindspore.dataset.vision``: transforms of images of shape ``(H, W, C)`` or ``(H, W)`` that blend no pixels.

What resamples (Resize, RandomResizedCrop, rotations) or decodes is not emulated.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.dataset import config

__all__ = [
    "HWC2CHW",
    "CenterCrop",
    "Crop",
    "HorizontalFlip",
    "Normalize",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "Rescale",
    "ToTensor",
    "VerticalFlip",
]

Array = np.ndarray[Any, Any]


def _image(value: Any, owner: str) -> Array:
    image = np.asarray(value)
    if image.ndim not in (2, 3):
        raise ScriptRuntimeError(f"{owner}: image shape should be <H,W> or <H,W,C>, but got rank: {image.ndim}")
    return image


def _size(size: Any, owner: str) -> tuple[int, int]:
    """Rows and columns."""
    both = (size, size) if isinstance(size, int) and not isinstance(size, bool) else size
    if not isinstance(both, (tuple, list)) or len(both) != 2:
        raise ScriptTypeError("Size should be a single integer or a list/tuple (h, w) of length 2.", where=owner)
    if any(isinstance(n, bool) or not isinstance(n, int) or n <= 0 for n in both):
        raise ScriptValueError(f"the size {size} is not positive", where=owner)
    return both[0], both[1]


def _cut(image: Array, top: int, left: int, size: tuple[int, int], owner: str) -> Array:
    if not (0 <= top <= image.shape[0] - size[0] and 0 <= left <= image.shape[1] - size[1]):
        raise ScriptRuntimeError(f"{owner}: a window of {size} at {(top, left)} leaves the image {image.shape[:2]}")
    return image[top : top + size[0], left : left + size[1]]


class Rescale:
    """Pixels times a factor plus a shift, as float32.

    Examples
    --------
    >>> Rescale(0.5, 1.0)(np.array([[2, 4]], np.uint8))
    array([[2., 3.]], dtype=float32)
    """

    def __init__(self, rescale: float, shift: float) -> None:
        self.rescale, self.shift = np.float32(rescale), np.float32(shift)

    def __call__(self, value: Any) -> Array:
        result: Array = np.asarray(value).astype(np.float32) * self.rescale + self.shift
        return result


class Normalize:
    """Channels less their means, divided by their deviations, as float32.

    Parameters
    ----------
    mean, std : sequence of float
        One a channel, or one for all.
    is_hwc : bool
        Channels are the last axis rather than the first.

    Examples
    --------
    >>> Normalize([1.0], [2.0])(np.array([[1, 5]], np.uint8))
    array([[0., 2.]], dtype=float32)
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True) -> None:
        if len(mean) != len(std):
            raise ScriptValueError("Length of mean and std must be equal.")
        if any(deviation <= 0 for deviation in std):
            raise ScriptValueError("std must be above 0", where="Normalize")
        self.mean, self.std = np.asarray(mean, np.float32), np.asarray(std, np.float32)
        self.is_hwc = is_hwc

    def __call__(self, value: Any) -> Array:
        image = _image(value, "Normalize").astype(np.float32)
        channels = 1 if image.ndim == 2 else image.shape[-1 if self.is_hwc else 0]
        if len(self.mean) not in (1, channels):
            raise ScriptRuntimeError(
                f"Normalize: number of channels does not match the size of mean and std vectors, got channels: "
                f"{channels}, size of mean: {len(self.mean)}, size of std: {len(self.std)}"
            )
        mean, std = self.mean, self.std
        if image.ndim == 3 and not self.is_hwc:
            mean, std = mean[:, None, None], std[:, None, None]
        result: Array = (image - mean) / std
        return result


class HWC2CHW:
    """Channels first; an image without channels stays as it is.

    Examples
    --------
    >>> HWC2CHW()(np.zeros((2, 4, 3))).shape
    (3, 2, 4)
    """

    def __call__(self, value: Any) -> Array:
        image = _image(value, "HWC2CHW")
        return image if image.ndim == 2 else np.ascontiguousarray(image.transpose(2, 0, 1))


class ToTensor:
    """Channels first, pixels divided by 255.

    Examples
    --------
    >>> ToTensor()(np.full((1, 1, 1), 255, np.uint8))
    array([[[1.]]], dtype=float32)
    """

    def __init__(self, output_type: Any = np.float32) -> None:
        self.kind = mstype.type_of(output_type, "ToTensor").numpy

    def __call__(self, value: Any) -> Array:
        image = _image(value, "ToTensor")
        image = image[..., None] if image.ndim == 2 else image
        return np.ascontiguousarray((image.astype(np.float32) / np.float32(255)).transpose(2, 0, 1)).astype(self.kind)


class HorizontalFlip:
    """Columns from right to left.

    Examples
    --------
    >>> HorizontalFlip()(np.array([[1, 2]]))
    array([[2, 1]])
    """

    def __call__(self, value: Any) -> Array:
        return np.ascontiguousarray(_image(value, "HorizontalFlip")[:, ::-1])


class VerticalFlip:
    """Rows from bottom to top.

    Examples
    --------
    >>> VerticalFlip()(np.array([[1], [2]]))
    array([[2],
           [1]])
    """

    def __call__(self, value: Any) -> Array:
        return np.ascontiguousarray(_image(value, "VerticalFlip")[::-1])


class _Random:
    """What draws: from the seed of `dataset.config`, in the order of the calls."""

    def __init__(self) -> None:
        self._generator: np.random.RandomState | None = None

    @property
    def generator(self) -> np.random.RandomState:
        if self._generator is None:
            self._generator = np.random.RandomState(config.get_seed() % 2**32)
        return self._generator


class _RandomFlip(_Random):
    """A flip with a probability."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__()
        if isinstance(prob, bool) or not isinstance(prob, (int, float)):
            raise ScriptTypeError(f"Argument prob with value {prob} is not of type [<class 'float'>, <class 'int'>].")
        if not 0 <= prob <= 1:
            raise ScriptValueError("Input prob is not within the required interval of [0.0, 1.0].")
        self.prob = prob

    def flipped(self, value: Any) -> Any:
        """The image the other way round."""
        raise NotImplementedError

    def __call__(self, value: Any) -> Any:
        return self.flipped(value) if self.generator.random_sample() < self.prob else value


class RandomHorizontalFlip(_RandomFlip):
    """HorizontalFlip with a probability.

    Examples
    --------
    >>> RandomHorizontalFlip(1.0)(np.array([[1, 2]]))
    array([[2, 1]])
    """

    def flipped(self, value: Any) -> Any:
        return HorizontalFlip()(value)


class RandomVerticalFlip(_RandomFlip):
    """VerticalFlip with a probability.

    Examples
    --------
    >>> RandomVerticalFlip(0.0)(np.array([[1], [2]]))
    array([[1],
           [2]])
    """

    def flipped(self, value: Any) -> Any:
        return VerticalFlip()(value)


class Crop:
    """A window of the image.

    Examples
    --------
    >>> Crop((0, 1), 2)(np.arange(9).reshape(3, 3))
    array([[1, 2],
           [4, 5]])
    """

    def __init__(self, coordinates: tuple[int, int], size: Any) -> None:
        self.coordinates, self.size = tuple(coordinates), _size(size, "Crop")

    def __call__(self, value: Any) -> Array:
        top, left = self.coordinates
        return _cut(_image(value, "Crop"), top, left, self.size, "Crop")


class CenterCrop:
    """The window in the middle; around an image that is smaller there are zeros.

    Examples
    --------
    >>> CenterCrop(1)(np.arange(9).reshape(3, 3))
    array([[4]])
    """

    def __init__(self, size: Any) -> None:
        self.size = _size(size, "CenterCrop")

    def __call__(self, value: Any) -> Array:
        image = _image(value, "CenterCrop")
        lacking = [max(wanted - given, 0) for wanted, given in zip(self.size, image.shape, strict=False)]
        if any(lacking):
            around = [(lack // 2, lack - lack // 2) for lack in lacking]
            image = np.pad(image, [*around, *[(0, 0)] * (image.ndim - 2)])
        top, left = ((given - wanted) // 2 for wanted, given in zip(self.size, image.shape, strict=False))
        return _cut(image, top, left, self.size, "CenterCrop")


class RandomCrop(_Random):
    """A window at a random place.

    Parameters
    ----------
    size : int or pair of int
    padding : int, pair or four of int, optional
        Zeros around the image: all sides, left/top and right/bottom, or left, top, right, bottom.
    pad_if_needed : bool
        Put zeros around an image that is smaller.

    Examples
    --------
    >>> RandomCrop((2, 3), padding=1)(np.zeros((4, 4))).shape
    (2, 3)
    """

    def __init__(self, size: Any, padding: Any = None, pad_if_needed: bool = False) -> None:
        super().__init__()
        self.size = _size(size, "RandomCrop")
        sides = (0,) * 4 if padding is None else (padding,) * 4 if isinstance(padding, int) else tuple(padding)
        if len(sides) == 2:
            sides = (sides[0], sides[0], sides[1], sides[1])
        if len(sides) != 4 or any(n < 0 for n in sides):
            raise ScriptValueError(f"the padding {padding} is no number, pair or four of numbers", where="RandomCrop")
        self.sides = sides
        self.pad_if_needed = pad_if_needed

    def __call__(self, value: Any) -> Array:
        image = _image(value, "RandomCrop")
        left, top, right, bottom = self.sides
        rest = [(0, 0)] * (image.ndim - 2)
        image = np.pad(image, [(top, bottom), (left, right), *rest])
        if self.pad_if_needed:
            rows, columns = (max(w - g, 0) for w, g in zip(self.size, image.shape, strict=False))
            image = np.pad(image, [(rows, rows), (columns, columns), *rest])
        spare = [given - wanted for wanted, given in zip(self.size, image.shape, strict=False)]
        if min(spare) < 0:
            raise ScriptRuntimeError(
                f"RandomCrop: invalid crop size, crop size is greater than the image size, got crop height: "
                f"{self.size[0]}, crop width: {self.size[1]}, image height: {image.shape[0]}, image width: "
                f"{image.shape[1]}"
            )
        places = [int(self.generator.randint(n + 1)) for n in spare]
        return _cut(image, places[0], places[1], self.size, "RandomCrop")


def __getattr__(name: str) -> Any:
    raise absent("mindspore.dataset.vision", name)
