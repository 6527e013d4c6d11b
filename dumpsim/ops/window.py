"""Sliding windows over height and width: padding, output sizes, and the strided view of every kernel element."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.rules import pair_of

__all__ = ["Window"]

Array = np.ndarray[Any, Any]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The geometry of one convolution or pooling on an input of `size`.

    Attributes
    ----------
    size, kernel, stride, dilation : height and width
    pads : top, bottom, left, right
    out : height and width of the output; not positive if the kernel does not fit
    """

    size: Pair
    kernel: Pair
    stride: Pair
    dilation: Pair
    pads: tuple[int, int, int, int]
    out: Pair

    @classmethod
    def of(
        cls, size: Sequence[int], kernel: Any, stride: Any, dilation: Any, pad_mode: str, pad: int | Sequence[int] = 0
    ) -> "Window":
        """Return the geometry for ``valid``, ``same`` (if the padding is odd, the larger part is after) or ``pad``.

        Examples
        --------
        >>> Window.of((27, 27), 5, 1, 1, "same").pads
        (2, 2, 2, 2)
        """
        height, width = size
        k, s, d = pair_of(kernel), pair_of(stride), pair_of(dilation)
        reach = tuple((n - 1) * step + 1 for n, step in zip(k, d, strict=True))
        mode = pad_mode.lower()
        if mode == "valid":
            pads = (0, 0, 0, 0)
        elif mode == "same":
            totals = [
                max((-(-n // step) - 1) * step + far - n, 0)
                for n, step, far in zip((height, width), s, reach, strict=True)
            ]
            pads = (totals[0] // 2, totals[0] - totals[0] // 2, totals[1] // 2, totals[1] - totals[1] // 2)
        elif mode == "pad":
            top, bottom, left, right = (pad,) * 4 if isinstance(pad, int) else pad
            pads = (top, bottom, left, right)
        else:
            raise ScriptValueError(f"unknown pad_mode {pad_mode!r}", allowed=("valid", "same", "pad"))
        out = (
            (height + pads[0] + pads[1] - reach[0]) // s[0] + 1,
            (width + pads[2] + pads[3] - reach[1]) // s[1] + 1,
        )
        return cls(size=(height, width), kernel=k, stride=s, dilation=d, pads=pads, out=out)

    @property
    def padded(self) -> Pair:
        """Height and width with padding."""
        return self.size[0] + self.pads[0] + self.pads[1], self.size[1] + self.pads[2] + self.pads[3]

    def pad(self, x: Array, fill: float = 0) -> Array:
        """Pad `x` of shape (..., height, width); return `x` itself if there is no padding."""
        if not any(self.pads):
            return x
        top, _, left, _ = self.pads
        wide = np.full((*x.shape[:-2], *self.padded), fill, x.dtype)
        wide[..., top : top + self.size[0], left : left + self.size[1]] = x
        return wide

    def crop(self, wide: Array) -> Array:
        """Remove the padding of an array."""
        top, _, left, _ = self.pads
        return wide[..., top : top + self.size[0], left : left + self.size[1]]

    def taps(self, wide: Array, rows: slice | None = None) -> Iterator[Array]:
        """Yield a view (..., out height, out width) for each kernel element, row by row; `rows` limits the output."""
        first, last = (rows.start, rows.stop) if rows is not None else (0, self.out[0])
        for i in range(self.kernel[0]):
            top = i * self.dilation[0] + first * self.stride[0]
            bottom = top + (last - first - 1) * self.stride[0] + 1
            for j in range(self.kernel[1]):
                left = j * self.dilation[1]
                right = left + (self.out[1] - 1) * self.stride[1] + 1
                yield wide[..., top : bottom : self.stride[0], left : right : self.stride[1]]

    def columns(self, wide: Array, rows: slice) -> Array:
        """Return the (channels, kernel height, kernel width, rows, out width) view of a padded image."""
        channel, down, across = wide.strides
        return np.lib.stride_tricks.as_strided(
            wide[:, rows.start * self.stride[0] :],
            (wide.shape[0], *self.kernel, rows.stop - rows.start, self.out[1]),
            (
                channel,
                down * self.dilation[0],
                across * self.dilation[1],
                down * self.stride[0],
                across * self.stride[1],
            ),
            writeable=False,
        )
