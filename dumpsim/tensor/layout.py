"""Host layout to device layout and back.

Every device layout is "split axes into blocks, permute, pad with zeros". `dumpsim.tensor.region` plans it as a few
rectangular regions, the compiled kernel copies regions. Both directions use the same regions, so that one is the
inverse of the other by construction.
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
_SMALL = 1 << 16  # bytes below which alignment is worth nothing
_LARGEST = 1 << 30  # bytes that padding may make of any host tensor, however small
_GROWTH = 64 * 64  # times that padding may multiply a larger one: C1HWNCoC0 of int4 is the widest


def _fresh(shape: Shape, dtype: np.dtype[Any], zero: bool) -> Array:
    """An array whose data begins on a cache line; zero pages cost nothing until they are written."""
    size = math.prod(shape) * dtype.itemsize
    if size < _SMALL:
        return np.zeros(shape, dtype) if zero else np.empty(shape, dtype)
    raw = (np.zeros if zero else np.empty)(size + _ALIGN, np.uint8)
    skip = -raw.ctypes.data % _ALIGN
    return raw[skip : skip + size].view(dtype).reshape(shape)


def _target(out: Array | None, shape: Shape, dtype: np.dtype[Any], zero: bool, source: Array) -> Array:
    """The array to write to: `out` after its checks, or a new one."""
    if out is None:
        return _fresh(shape, dtype, zero)
    if not isinstance(out, np.ndarray):
        raise FormatError(f"out is a {type(out).__name__}, no array", where="out", code="DS-FMT-010")
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
        raise FormatError(
            f"out is {out.dtype} {out.shape}, needed is a writable, contiguous {dtype} {shape}",
            where="out",
            code="DS-FMT-010",
        )
    if np.may_share_memory(out, source):
        raise FormatError("out shares memory with the input", where="out", code="DS-FMT-010")
    if zero:
        out.view(f"u{dtype.itemsize}").fill(0)
    return out


def _copy(dst: Array, src: Array, regions: list[Piece], threads: int) -> None:
    """Run the kernel on this thread, or on several, stopping all of them when this one is interrupted."""
    size, level = dst.dtype.itemsize, level_number()
    to, source = dst.view(f"u{size}"), src.view(f"u{size}")
    if threads == 1 or dst.nbytes < 1 << 20:
        _kernel.copy(to, source, size, regions, level=level)
        return
    stop = bytearray(1)
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
            stop[0] = 1
            raise


def _extents(shape: Sequence[int]) -> Shape:
    try:
        return tuple(index(n) for n in shape)
    except TypeError:
        raise FormatError(
            f"{shape!r} is not a shape", where="shape", allowed=("a sequence of whole numbers",), code="DS-FMT-005"
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
    """Shape on the device of a host tensor.

    Parameters
    ----------
    shape : sequence of int
        Host shape, in the order of `host_format`.
    dtype : dtype
        Number type; it decides C0.
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
    """Lay a host tensor out as the device does.

    Parameters
    ----------
    array : array_like
        Host tensor with elements of 1, 2, 4 or 8 bytes; any strides and byte order. For layouts of rank 4 a shape of
        lower rank is padded: (c), (c, h), (c, h, w); for rank 5: (c), (c, d), (c, d, h), (c, d, h, w).
    format : str
        A name of `dumpsim.core.format.FORMATS`.
    groups : int
        Groups of a convolution's weight, for FRACTAL_Z; the weight has N of all groups and C of one.
    c0 : int, optional
        Channels in a block; None follows the number type (`dumpsim.core.format.cube_c0`).
    host_format : str, optional
        Order of the host's axes: NCHW (default), NHWC, HWCN, CHWN, NCDHW (default for rank 5), NDHWC, DHWCN, DHWNC.
        With ``dialect="ge"`` a full-rank tensor is HWCN for C1HWNCoC0 and FRACTAL_ZN_LSTM and DHWNC for
        FRACTAL_Z_3D_TRANSPOSE unless stated, because GE takes these from nothing else.
    input_size, hidden_size : int, optional
        Sizes of the recurrent cell, for FRACTAL_ZN_RNN and ND_RNN_BIAS.
    dialect : {"mindspore", "ge"}
        Whose rules, where they differ: C0 of bool and other types of one byte, FRACTAL_NZ of vectors, FRACTAL_Z of
        matrices, blocks of FRACTAL_Z_C04, weights of recurrent cells.
    out : ndarray, optional
        Contiguous array to write to.
    threads : int
        How many threads share the work; the bytes are the same for any number.

    Returns
    -------
    ndarray
        The same number type, device shape, zeros where no host element goes.

    Raises
    ------
    FormatError
        For an unknown format, a shape that does not fit it, groups that do not divide, a wrong C0, or an element size
        that no device layout has.
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
    odd = source.ndim > 8 or any(step % max(1, source.itemsize) for step in source.strides)
    if odd or format == "FRACTAL_Z_C04":
        source = np.ascontiguousarray(source)
    steps = tuple(step // source.itemsize for step in source.strides) if source.itemsize else (0,) * source.ndim
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
    """Bring a device tensor back into the host's order and drop its padding.

    Parameters
    ----------
    array : array_like
        Device tensor; any shape with the right number of elements, so that the flat content of a file will do.
    format : str
        Its layout.
    shape : sequence of int
        Host shape, in the order of `host_format`.
    groups, c0, host_format, input_size, hidden_size, dialect, out, threads
        As in `to_device`.

    Returns
    -------
    ndarray
        The same number type, in `shape`.

    Raises
    ------
    FormatError
        As in `to_device`, and if the array does not have the elements that the layout of `shape` has. That is checked
        before anything is allocated, so that a forged shape costs nothing.

    Notes
    -----
    Layouts that MindSpore's own dump refuses to convert (`dumpsim.core.format.Format.dump`) are converted all the same.

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
