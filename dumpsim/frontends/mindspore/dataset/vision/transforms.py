"""``mindspore.dataset.vision.transforms``: transforms of images of shape ``(H, W, C)`` or ``(H, W)``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import type_text
from dumpsim.frontends.mindspore.dataset import config
from dumpsim.frontends.mindspore.dataset.vision._resample import output_size, resample
from dumpsim.frontends.mindspore.dataset.vision.utils import Inter

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
    "Resize",
    "ToTensor",
    "VerticalFlip",
]

Array = np.ndarray[Any, Any]


def _image(value: Any, owner: str) -> Array:
    if not isinstance(value, np.ndarray) and not type(value).__module__.startswith("PIL."):
        raise ScriptTypeError(f"Input should be NumPy or PIL image, got {type_text(value)}.")
    image = np.asarray(value)
    if image.ndim not in (2, 3):
        raise ScriptRuntimeError(f"{owner}: image shape should be <H,W> or <H,W,C>, but got rank: {image.ndim}")
    return image


def _size(size: Any, owner: str) -> tuple[int, int]:
    """Return rows and columns."""
    both = (size, size) if isinstance(size, int) and not isinstance(size, bool) else size
    if not isinstance(both, (tuple, list)) or len(both) != 2:
        raise ScriptTypeError("Size should be a single integer or a list/tuple (h, w) of length 2.", where=owner)
    for at, number in enumerate(both):
        if isinstance(number, bool) or not isinstance(number, int):
            raise ScriptTypeError(
                f"Argument size[{at}] with value {number} is not of type [<class 'int'>], but got {type(number)}."
            )
    if min(both) <= 0:
        raise ScriptValueError(f"invalid size {size}", where=owner, allowed=("positive int",))
    return both[0], both[1]


_LARGEST_RATIO = 1000
_IMAGE_TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "float16", "float32", "float64")
_BLENDED_TYPES = ("bool", "uint8", "int16", "uint16", "float32", "float64")


def _new_size(size: Any) -> int | tuple[int, int]:
    """Check the size of `Resize`, with MindSpore's messages."""
    if isinstance(size, int):
        if not 1 <= size <= 2**24:
            raise ScriptValueError(f"Input is not within the required interval of [1, {2**24}].")
        return int(size)
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise ScriptTypeError("Size should be a single integer or a list/tuple (h, w) of length 2.")
    for at, number in enumerate(size):
        if isinstance(number, bool) or not isinstance(number, int):
            raise ScriptTypeError(
                f"Argument size at dim {at} with value {number} is not of type [{int}], but got {type(number)}."
            )
        if not 1 <= number < 2**31:
            raise ScriptValueError(f"Input size at dim {at} is not within the required interval of [1, {2**31 - 1}].")
    return size[0], size[1]


def _cut(image: Array, top: int, left: int, size: tuple[int, int], owner: str) -> Array:
    if not (0 <= top <= image.shape[0] - size[0] and 0 <= left <= image.shape[1] - size[1]):
        raise ScriptRuntimeError(f"{owner}: a window of {size} at {(top, left)} exceeds the image of {image.shape[:2]}")
    return image[top : top + size[0], left : left + size[1]]


class Rescale:
    """Multiply pixels by a factor and add a shift, as float32.

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


class Resize:
    """Resize images, with the same pixels as MindSpore on a CPU.

    Parameters
    ----------
    size : int or pair of int
        Rows and columns; an integer is the shorter side.
    interpolation : Inter
        ``ANTIALIAS`` supports only PIL images and raises for arrays, as in MindSpore.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For arguments or images that MindSpore refuses.
    UnsupportedError
        For ``PILCUBIC`` of images other than uint8, for which MindSpore computes meaningless numbers.

    Examples
    --------
    >>> Resize(4)(np.array([[0, 100], [100, 200]], np.uint8))
    array([[  0,  25,  75, 100],
           [ 25,  50, 100, 125],
           [ 75, 100, 150, 175],
           [100, 125, 175, 200]], dtype=uint8)
    """

    def __init__(self, size: Any, interpolation: Inter = Inter.LINEAR) -> None:
        if interpolation is None:
            raise KeyError("Interpolation should not be None")
        self.size = _new_size(size)
        if not isinstance(interpolation, Inter):
            raise ScriptTypeError(
                f"Argument interpolation with value {interpolation} is not of type [{Inter}], but got "
                f"{type(interpolation)}."
            )
        self.interpolation = interpolation

    def device(self, device_target: str = "CPU") -> "Resize":
        """Set the device that computes the pixels.

        Raises
        ------
        UnsupportedError
            For Ascend, whose kernels (DVPP) round differently.
        """
        if not isinstance(device_target, str):
            raise ScriptTypeError(
                f"Argument device_target with value {device_target} is not of type [{str}], but got "
                f"{type(device_target)}."
            )
        if device_target not in ("CPU", "Ascend"):
            raise ScriptValueError("Input device_target is not within the valid set of ['CPU', 'Ascend'].")
        if device_target == "Ascend":
            raise UnsupportedError("the pixels of Ascend's DVPP are not emulated", where="Resize.device")
        return self

    def __call__(self, value: Any) -> Array:
        if not isinstance(value, np.ndarray):
            raise ScriptTypeError(f"Input should be NumPy or PIL image, got {type(value)}.")
        if self.interpolation is Inter.ANTIALIAS:
            raise ScriptTypeError(
                "img should be PIL image. Got <class 'numpy.ndarray'>. Use Decode() for encoded data or ToPIL() for "
                "decoded data."
            )
        if value.ndim < 2:
            raise ScriptRuntimeError(
                "Resize: the image tensor should have at least two dimensions. You may need to perform Decode first."
            )
        if not value.size:
            raise ScriptRuntimeError("Input Tensor has no data.")
        if value.ndim > 3:  # several images
            return np.stack([self(image) for image in value])
        return self._resized(value[..., None])[..., 0] if value.ndim == 2 else self._resized(value)

    def _resized(self, image: Array) -> Array:
        rows, columns, channels = image.shape
        height, width = output_size(self.size, rows, columns)
        if height > rows * _LARGEST_RATIO or width > columns * _LARGEST_RATIO:
            raise ScriptRuntimeError(
                f"Resize: the resizing width or height is too big, it's 1000 times bigger than the original image, got "
                f"output height: {height}, width: {width}, and original image size:{rows}, {columns}"
            )
        if image.dtype.name not in _IMAGE_TYPES:
            raise ScriptRuntimeError(
                "Resize: the data type of image tensor does not match the requirement of operator. Expecting tensor in "
                "type of (bool, int8, uint8, int16, uint16, int32, float16, float32, float64). But got type "
                f"{image.dtype.name}."
            )
        how = self.interpolation
        if image.dtype.name not in _BLENDED_TYPES and how is not Inter.NEAREST:
            raise ScriptRuntimeError(f"Resize: OpenCV cannot blend pixels of type {image.dtype.name} (func != 0)")
        if how is Inter.PILCUBIC and channels != 3:
            raise ScriptRuntimeError(
                "Resize: Interpolation mode PILCUBIC only supports image with 3 channels, but got: "
                f"<{rows},{columns},{channels}>"
            )
        if how is Inter.PILCUBIC and image.dtype not in (np.uint8, np.bool_):
            raise UnsupportedError(
                f"PILCUBIC reads the bytes of {image.dtype.name} images as uint8", where="Resize", allowed=("uint8",)
            )
        if how is Inter.AREA and channels > 4:
            raise ScriptRuntimeError(f"Resize: AREA supports up to 4 channels, not {channels} (func != 0 && cn <= 4)")
        if image.dtype == np.bool_:
            return resample(image.view(np.uint8), height, width, how).astype(np.bool_)
        return resample(image, height, width, how)


class Normalize:
    """Subtract the mean of each channel and divide by its standard deviation, as float32.

    Parameters
    ----------
    mean, std : sequence of float
        One per channel, or one for all channels.
    is_hwc : bool
        Whether the channels are the last axis, not the first.

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
    """Move channels to the first axis; an image without channels is unchanged.

    Examples
    --------
    >>> HWC2CHW()(np.zeros((2, 4, 3))).shape
    (3, 2, 4)
    """

    def __call__(self, value: Any) -> Array:
        image = _image(value, "HWC2CHW")
        return image if image.ndim == 2 else np.ascontiguousarray(image.transpose(2, 0, 1))


class ToTensor:
    """Move channels to the first axis, and divide pixels by 255.

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
    """Reverse the columns.

    Examples
    --------
    >>> HorizontalFlip()(np.array([[1, 2]]))
    array([[2, 1]])
    """

    def __call__(self, value: Any) -> Array:
        return np.ascontiguousarray(_image(value, "HorizontalFlip")[:, ::-1])


class VerticalFlip:
    """Reverse the rows.

    Examples
    --------
    >>> VerticalFlip()(np.array([[1], [2]]))
    array([[2],
           [1]])
    """

    def __call__(self, value: Any) -> Array:
        return np.ascontiguousarray(_image(value, "VerticalFlip")[::-1])


class _Random:
    """Base of the random transforms, which draw from the seed of `dataset.config` in the order of the calls."""

    def __init__(self) -> None:
        self._generator: np.random.RandomState | None = None

    @property
    def generator(self) -> np.random.RandomState:
        if self._generator is None:
            self._generator = np.random.RandomState(config.get_seed() % 2**32)
        return self._generator


class _RandomFlip(_Random):
    """Base of the random flips."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__()
        if isinstance(prob, bool) or not isinstance(prob, (int, float)):
            raise ScriptTypeError(
                f"Argument prob with value {prob} is not of type {[float, int]}, but got {type(prob)}."
            )
        if not 0 <= prob <= 1:
            raise ScriptValueError("Input prob is not within the required interval of [0.0, 1.0].")
        self.prob = prob

    def flipped(self, value: Any) -> Any:
        """Return the flipped image."""
        raise NotImplementedError

    def __call__(self, value: Any) -> Any:
        return self.flipped(value) if self.generator.random_sample() < self.prob else value


class RandomHorizontalFlip(_RandomFlip):
    """Apply HorizontalFlip with a probability.

    Examples
    --------
    >>> RandomHorizontalFlip(1.0)(np.array([[1, 2]]))
    array([[2, 1]])
    """

    def flipped(self, value: Any) -> Any:
        return HorizontalFlip()(value)


class RandomVerticalFlip(_RandomFlip):
    """Apply VerticalFlip with a probability.

    Examples
    --------
    >>> RandomVerticalFlip(0.0)(np.array([[1], [2]]))
    array([[1],
           [2]])
    """

    def flipped(self, value: Any) -> Any:
        return VerticalFlip()(value)


class Crop:
    """Cut a window out of the image.

    Examples
    --------
    >>> Crop((0, 1), 2)(np.arange(9).reshape(3, 3))
    array([[1, 2],
           [4, 5]])
    """

    def __init__(self, coordinates: tuple[int, int], size: Any) -> None:
        for at, number in enumerate(coordinates):
            if number < 0:
                raise ScriptValueError(
                    f"Input coordinates[{at}] is not within the required interval of [0, {2**31 - 1}]."
                )
        self.coordinates, self.size = tuple(coordinates), _size(size, "Crop")

    def __call__(self, value: Any) -> Array:
        top, left = self.coordinates
        return _cut(_image(value, "Crop"), top, left, self.size, "Crop")


class CenterCrop:
    """Cut out the window in the middle; smaller images are padded with zeros.

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
            margins = [(lack - lack // 2, lack // 2) for lack in lacking]
            image = np.pad(image, [*margins, *[(0, 0)] * (image.ndim - 2)])
        top, left = ((given - wanted) // 2 for wanted, given in zip(self.size, image.shape, strict=False))
        return _cut(image, top, left, self.size, "CenterCrop")


class RandomCrop(_Random):
    """Cut out a window at a random position.

    Parameters
    ----------
    size : int or pair of int
    padding : int, pair or four of int, optional
        Zeros around the image: all sides, left/right and top/bottom, or left, top, right, bottom.
    pad_if_needed : bool
        Pad smaller images with zeros.

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
            sides = (sides[0], sides[1], sides[0], sides[1])
        if len(sides) != 4 or any(n < 0 for n in sides):
            raise ScriptValueError(
                f"invalid padding {padding}", where="RandomCrop", allowed=("a number", "a pair", "four numbers")
            )
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
        top, left = (int(self.generator.randint(n + 1)) for n in spare)
        return _cut(image, top, left, self.size, "RandomCrop")


def __getattr__(name: str) -> Any:
    return vendored("mindspore.dataset.vision.transforms", name)
