"""``mindspore.nn.layer.padding``."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = [
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
]


class _PadNd(Cell):
    """Base of the layers that pad the last axes; `axes` is how many of them a single number pads."""

    axes = 0
    least: int | None = None

    def __init__(self, padding: Any) -> None:
        super().__init__()
        name = type(self).__name__
        if isinstance(padding, int):
            padding = (padding,) * (2 * self.axes)
        if not isinstance(padding, tuple):
            raise ScriptTypeError(
                f"For '{name}' the input 'padding' must be an integer or tuple, but got {type(padding).__name__}"
            )
        if len(padding) % 2:
            raise ScriptValueError(
                f"For '{name}' the length of input 'padding' must be divisible by 2, but got padding of length "
                f"{len(padding)}. "
            )
        if not all(isinstance(n, int) for n in padding):
            raise ScriptTypeError(f"For '{name}' every element in 'padding' must be integer, but got {padding}. ")
        if self.least is not None and any(n < self.least for n in padding):
            raise ScriptValueError(
                f"For '{name}' every element in 'padding' must be >= {self.least}. but got {padding}. "
            )
        self.padding: Any = padding


class _ReflectionPadNd(_PadNd):
    """Base of the layers that pad with mirror images."""

    least = 0

    def __init__(self, padding: Any) -> None:
        super().__init__(padding)
        pairs = [[self.padding[i], self.padding[i + 1]] for i in range(0, len(self.padding), 2)]
        self.padding = pairs[::-1]

    def construct(self, x: Any) -> Any:
        if not self.padding:
            return x
        missing = x.ndim - len(self.padding)
        if missing < 0:
            raise ScriptValueError(
                f"For padding with length {len(self.padding) * 2}, the dimension of the tensor should be at least "
                f"{len(self.padding)}, but got {x.ndim}"
            )
        padding = [[0, 0]] * missing + self.padding
        x = ops.MirrorPad(mode="REFLECT")(x, Tensor(padding))
        return x  # noqa: RET504 - the IR shows the name


class _ReplicationPadNd(_PadNd):
    """Base of the layers that pad with copies of the outermost elements."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding)
        self.padv3 = ops.PadV3(mode="edge")

    def construct(self, x: Any) -> Any:
        if x.ndim == self.axes + 1:
            x = x.expand_dims(0)
            x = self.padv3(x, self.padding, None)
            x = x.squeeze(0)
        else:
            x = self.padv3(x, self.padding, None)
        return x


class ReflectionPad1d(_ReflectionPadNd):
    """Pad the last axis with mirror images that do not repeat the outermost element.

    Parameters
    ----------
    padding : int or tuple of int
        Number of elements before and after the last axis.
    """

    axes = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Pad the last two axes with mirror images; a tuple begins with the last axis."""

    axes = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Pad the last three axes with mirror images; a tuple begins with the last axis."""

    axes = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Pad the last axis of ``(N, C, W)`` or ``(C, W)`` with copies of its outermost elements."""

    axes = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Pad the last two axes of ``(N, C, H, W)`` or ``(C, H, W)`` with copies; a tuple begins with the last axis."""

    axes = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Pad the last three axes of ``(N, C, D, H, W)`` or ``(C, D, H, W)`` with copies; a tuple begins with the last."""

    axes = 3


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.padding", name)
