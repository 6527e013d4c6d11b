"""Conversion between host layout and device layout.

Every device layout splits axes into blocks, permutes them, and pads with zeros. `dumpsim.tensor.region` expresses it by
a few rectangular regions, which the compiled kernel copies. Both directions use the same regions, so that each is the
inverse of the other.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from dumpsim._ext import layout as _kernel
from dumpsim.core.errors import FormatError
from dumpsim.tensor.region import Layout, Piece, Shape, plan, strides
from dumpsim.tensor.simd import level_number
from dumpsim.tensor.threads import thread_count

__all__ = ["device_shape", "to_device", "to_host"]

Array = npt.NDArray[Any]

_ALIGN = 64  # bytes of a cache line
_MOST_AXES = 8  # of a plan; a contiguous array has one, however many its shape has
_SMALL = 1 << 16  # smaller arrays, in bytes, are not aligned
_LARGEST = 1 << 30  # bytes of a device tensor that are always allowed, however small the host tensor is
_GROWTH = 64 * 64  # largest growth of a larger tensor by padding: that of C1HWNCoC0 for int4


def _fresh(shape: Shape, dtype: np.dtype[Any], zero: bool) -> Array:
    """Allocate an array that begins on a cache line; zero pages cost nothing until they are written."""
    size = math.prod(shape) * dtype.itemsize
    if size < _SMALL:
        return np.zeros(shape, dtype) if zero else np.empty(shape, dtype)
    raw = (np.zeros if zero else np.empty)(size + _ALIGN, np.uint8)
    skip = -raw.ctypes.data % _ALIGN
    return raw[skip : skip + size].view(dtype).reshape(shape)


def _target(out: Array | None, shape: Shape, dtype: np.dtype[Any], zero: bool, source: Array) -> Array:
    """Return the array to write to: `out`, after checks, or a new one."""
    if out is None:
        return _fresh(shape, dtype, zero)
    if not isinstance(out, np.ndarray):
        raise FormatError(f"out is a {type(out).__name__}, not an array", where="out", code="DS-FMT-010")
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
        raise FormatError(
            f"out is {out.dtype} {out.shape}; it must be a writable, contiguous {dtype} {shape}",
            where="out",
            code="DS-FMT-010",
        )
    if np.may_share_memory(out, source):
        raise FormatError("out shares memory with the input", where="out", code="DS-FMT-010")
    if zero:
        out.view(f"u{dtype.itemsize}").fill(0)
    return out


def _copy(dst: Array, src: Array, regions: list[Piece], threads: int) -> None:
    """Run the kernel on one or several threads; an interruption stops all of them."""
    size, level = dst.dtype.itemsize, level_number()
    to, source = dst.view(f"u{size}"), src.view(f"u{size}")
    if threads == 1 or dst.nbytes < 1 << 20:
        _kernel.copy(to, source, size, regions, level=level)
        return
    stop = bytearray(b"\0")
    with ThreadPoolExecutor(threads - 1) as pool:
        try:
            others = [
                pool.submit(_kernel.copy, to, source, size, regions, part=part, parts=threads, level=level, stop=stop)
                for part in range(1, threads)
            ]
            _kernel.copy(to, source, size, regions, part=0, parts=threads, level=level, stop=stop)
            for other in others:
                other.result()
        except BaseException:
            stop[:] = b"\1"
            raise


def _extents(shape: Sequence[int]) -> Shape:
    try:
        return tuple(index(n) for n in shape)
    except TypeError:
        raise FormatError(
            f"{shape!r} is not a shape", where="shape", allowed=("a sequence of integers",), code="DS-FMT-005"
        ) from None


def device_shape(
    shape: Sequence[int],
    dtype: npt.DTypeLike,
    format: str,
    *,
    groups: int = 1,
    c0: int | None = None,
    host_format: str | None = None,
    input_size: int | None = None,
    hidden_size: int | None = None,
    dialect: str = "mindspore",
) -> Shape:
    """Return the shape of a host tensor on the device.

    Parameters
    ----------
    shape : sequence of int
        Host shape, in the order of `host_format`.
    dtype : dtype
        Data type; it determines C0.
    format, groups, c0, host_format, input_size, hidden_size, dialect
        As in `to_device`.

    Returns
    -------
    tuple of int

    Raises
    ------
    FormatError
        As in `to_device`.

    Examples
    --------
    >>> device_shape((32, 3, 224, 224), "float16", "NC1HWC0")
    (32, 1, 224, 224, 16)
    >>> device_shape((100, 40), "int8", "FRACTAL_NZ")
    (2, 7, 16, 32)
    """
    host = _extents(shape)
    layout = Layout(
        format=format,
        groups=groups,
        c0=c0,
        host_format=host_format,
        input_size=input_size,
        hidden_size=hidden_size,
        dialect=dialect,
    )
    return plan(host, strides(host), np.dtype(dtype), layout).shape


def to_device(
    array: npt.ArrayLike,
    format: str,
    *,
    groups: int = 1,
    c0: int | None = None,
    host_format: str | None = None,
    input_size: int | None = None,
    hidden_size: int | None = None,
    dialect: str = "mindspore",
    out: Array | None = None,
    threads: int = 1,
) -> Array:
    """Convert a host tensor to a device layout.

    Parameters
    ----------
    array : array_like
        Host tensor with elements of 1, 2, 4 or 8 bytes; any strides and byte order. For layouts of rank 4 a shape of
        lower rank is padded: (c), (c, h), (c, h, w); for rank 5: (c), (c, d), (c, d, h), (c, d, h, w).
    format : str
        A name of `dumpsim.core.format.FORMATS`.
    groups : int
        Number of groups of a convolution's weight, for FRACTAL_Z; N is that of all groups, C that of one group.
    c0 : int, optional
        Channels in a block; by default those of the data type (`dumpsim.core.format.cube_c0`).
    host_format : str, optional
        Order of the host's axes: NCHW (default), NHWC, HWCN, CHWN, NCDHW (default for rank 5), NDHWC, DHWCN, DHWNC.
        With ``dialect="ge"`` a full-rank tensor is HWCN for C1HWNCoC0 and FRACTAL_ZN_LSTM and DHWNC for
        FRACTAL_Z_3D_TRANSPOSE by default, because GE converts these from no other order.
    input_size, hidden_size : int, optional
        Sizes of the recurrent cell, for FRACTAL_ZN_RNN and ND_RNN_BIAS.
    dialect : {"mindspore", "ge"}
        Whose rules to follow. They differ in C0 of bool and other types of one byte, FRACTAL_NZ of vectors, FRACTAL_Z
        of matrices, blocks of FRACTAL_Z_C04, and weights of recurrent cells.
    out : ndarray, optional
        Contiguous array to write to.
    threads : int
        Number of threads; the result does not depend on it.

    Returns
    -------
    ndarray
        An array of the same type with the device shape; padding is zero.

    Raises
    ------
    FormatError
        For an unknown format, a shape that does not fit it, a wrong number of groups, a wrong C0, or an element size
        without a device layout.
    BadInputError
        For an invalid number of threads.

    Notes
    -----
    Index rules are MindSpore's device shape transfer and GE's format transfers. [spec mindspore 10.3, 10.4] [spec ge 5]

    Examples
    --------
    >>> x = np.arange(6, dtype=np.float16).reshape(1, 3, 1, 2)
    >>> to_device(x, "NC1HWC0").shape
    (1, 1, 1, 2, 16)
    >>> to_device(x, "NC1HWC0")[0, 0, 0, 1, :4].tolist()
    [1.0, 3.0, 5.0, 0.0]
    """
    source = np.asarray(array)
    threads = thread_count(threads)
    size = source.itemsize
    if source.ndim > _MOST_AXES or format == "FRACTAL_Z_C04" or any(step % size for step in source.strides if step):
        source = np.ascontiguousarray(source)
    # those of an array with axes of extent 1 may be any numbers
    contiguous = source.flags.c_contiguous
    steps = strides(source.shape) if contiguous else tuple(step // size for step in source.strides)
    layout = Layout(
        format=format,
        groups=groups,
        c0=c0,
        host_format=host_format,
        input_size=input_size,
        hidden_size=hidden_size,
        dialect=dialect,
    )
    planned = plan(source.shape, steps, source.dtype, layout)
    if math.prod(planned.shape) * source.itemsize > max(_LARGEST, _GROWTH * source.nbytes):
        raise FormatError(
            f"{format} of {source.shape} with these options would take {planned.shape}", where="c0", code="DS-FMT-005"
        )
    result = _target(out, planned.shape, source.dtype, planned.padded, source)
    _copy(result, source, planned.regions, threads)
    return result


def to_host(
    array: npt.ArrayLike,
    format: str,
    shape: Sequence[int],
    *,
    groups: int = 1,
    c0: int | None = None,
    host_format: str | None = None,
    input_size: int | None = None,
    hidden_size: int | None = None,
    dialect: str = "mindspore",
    out: Array | None = None,
    threads: int = 1,
) -> Array:
    """Convert a device tensor to the host's layout, without padding.

    Parameters
    ----------
    array : array_like
        Device tensor of any shape with the right number of elements, such as the content of a file.
    format : str
        Layout of the device tensor.
    shape : sequence of int
        Host shape, in the order of `host_format`.
    groups, c0, host_format, input_size, hidden_size, dialect, out, threads
        As in `to_device`.

    Returns
    -------
    ndarray
        An array of the same type with shape `shape`.

    Raises
    ------
    FormatError
        As in `to_device`, and for an array whose size does not fit the layout of `shape`. That is checked before
        anything is allocated.

    Notes
    -----
    Layouts that MindSpore's own dump does not convert (`dumpsim.core.format.Format.dump`) are converted here.

    Examples
    --------
    >>> x = np.arange(24, dtype=np.int8).reshape(2, 3, 2, 2)
    >>> device = to_device(x, "FRACTAL_Z")
    >>> bool((to_host(device, "FRACTAL_Z", x.shape) == x).all())
    True
    >>> to_host(device, "FRACTAL_Z", (2, 3, 999, 999))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dumpsim.core.errors.FormatError: array: int8 FRACTAL_Z of (2, 3, 999, 999) has 510976512 bytes, got 2048 ...
    """
    source = np.asarray(array)
    threads = thread_count(threads)
    host = _extents(shape)
    layout = Layout(
        format=format,
        groups=groups,
        c0=c0,
        host_format=host_format,
        input_size=input_size,
        hidden_size=hidden_size,
        dialect=dialect,
    )
    planned = plan(host, strides(host), source.dtype, layout)
    needed = math.prod(planned.shape) * source.itemsize
    if needed != source.nbytes:
        raise FormatError(
            f"{source.dtype} {format} of {host} has {needed} bytes, got {source.nbytes}",
            where="array",
            code="DS-FMT-011",
        )
    result = _target(out, host, source.dtype, False, source)
    flat = np.ascontiguousarray(source).reshape(-1)
    _copy(result, flat, [(h, d, tuple((n, hs, ds) for n, ds, hs in dims)) for d, h, dims in planned.regions], threads)
    return result
