"""Conversion of bytes in device memory to the array of a file: layout, data type, sample."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.core.dtype import DTYPES, DType
from dumpsim.core.errors import FormatError
from dumpsim.core.events import TensorRef
from dumpsim.core.format import FORMATS
from dumpsim.tensor.cast import PACKED, widen
from dumpsim.tensor.layout import to_host

__all__ = ["Conversion", "Converted", "NotDumped", "convert", "device_values", "graph_format"]

# device layouts that are converted in npy files of whole graphs [spec mindspore 5.6]
_CONVERTED = ("FRACTAL_Z", "FRACTAL_NZ", "NC1HWC0", "C1HWNCoC0", "NC1HWC0_C04", "NDC1HWC0", "FRACTAL_Z_3D")
_REMADE = frozenset(PACKED) | {"bfloat16"}  # data types that are, or may be, stored as another one
_FLOAT32, _INT8, _UINT8 = DTYPES["float32"], DTYPES["int8"], DTYPES["uint8"]


class NotDumped(Exception):
    """The reason why the vendor skips a tensor, with the level of its message."""

    def __init__(self, reason: str, level: str = "ERROR") -> None:
        super().__init__(reason)
        self.level = level


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """How to convert a tensor's bytes.

    Attributes
    ----------
    to_host : bool
        Whether device layouts and data types are converted (``trans_flag``).
    rank4 : bool
        Whether only layouts of tensors with four axes are converted, and no data types, with the whole graph's format
        of the tensor in the name. [spec mindspore 5.6]
    raw : bool
        Whether bytes are copied unchanged, but named as if they were converted. [spec mindspore 7]
    float32 : bool
        Whether bfloat16 is stored as float32.
    sample : int or None
        Largest number of elements that are stored.
    bug_compat : bool
        Whether to reproduce defects of packed types. [spec mindspore 3.5]
    """

    to_host: bool = True
    raw: bool = False
    rank4: bool = False
    float32: bool = True
    sample: int | None = None
    bug_compat: bool = False

    def unchanged(self, ref: TensorRef) -> bool:
        """Return whether the file has all bytes of the device unchanged."""
        if ref.device_format != "DefaultFormat" or self.sample is not None or self.raw or self.rank4:
            return False
        return self.to_host and ref.dtype is ref.device_dtype and ref.dtype.name not in _REMADE


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A tensor on the host.

    Attributes
    ----------
    values : ndarray
        The elements in the tensor's own type; a view of device memory if nothing had to be converted.
    stored : ndarray
        The array of the npy file.
    dtype, stored_dtype : DType
        Data types of `values` and of `stored`.
    nbytes : int
        Size in the statistics row; that of the packed bytes for packed types.
    """

    values: NDArray[Any]
    stored: NDArray[Any]
    dtype: DType
    stored_dtype: DType
    format: str
    nbytes: int
    owned: bool = False  # whether it has its own memory and is not a view of the device's

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the file's array."""
        return self.stored.shape


def convert(ref: TensorRef, how: Conversion) -> Converted:
    """Convert one tensor.

    Raises
    ------
    NotDumped
        For a layout or data type that the vendor skips.
    """
    if ref.dtype.name == "hifloat8":
        raise NotDumped("hifloat8 has no npy form", "WARNING")
    data = ref.read()
    if how.unchanged(ref):  # a fast path for most tensors of a CPU and of O0
        values = data.view(ref.dtype.numpy).reshape(ref.shape)
        nbytes = int(values.nbytes)
        kind = ref.dtype
        return Converted(
            values=values, stored=values, dtype=kind, stored_dtype=kind, format="DefaultFormat", nbytes=nbytes
        )
    if how.raw:
        values, dtype, label = _raw(ref, data), ref.dtype, "DefaultFormat"
    elif how.rank4:
        values, dtype, label = _model(ref, data)
    elif how.to_host:
        values, dtype, label = _host(ref, data), ref.dtype, "DefaultFormat"
    else:
        values, dtype, label = _typed(data, ref.device_dtype, ref.device_shape), ref.device_dtype, ref.device_format
    nbytes = (values.size * dtype.bits + 7) // 8
    if how.sample is not None and values.size > how.sample:
        values = values.reshape(-1)[: how.sample]
        nbytes = (values.size * dtype.bits + 7) // 8
    values, stored, stored_dtype = _stored(values, dtype, how)
    return Converted(
        values=values,
        stored=stored,
        dtype=dtype,
        stored_dtype=stored_dtype,
        format=label,
        nbytes=nbytes,
        owned=not np.may_share_memory(stored, data),
    )


def device_values(ref: TensorRef) -> NDArray[Any]:
    """Return the elements in the device's data type without padding, as statistics kernels of the device get them."""
    if FORMATS[ref.device_format].dump == "copy":
        return _typed(ref.read(), ref.device_dtype, ref.device_shape)
    return _converted(ref, ref.read())


def _converted(ref: TensorRef, data: NDArray[Any]) -> NDArray[Any]:
    """Convert to the host's layout, with the device's data type."""
    return to_host(_typed(data, ref.device_dtype, (-1,)), ref.device_format, ref.shape, groups=ref.groups)


def _host(ref: TensorRef, data: NDArray[Any]) -> NDArray[Any]:
    """Convert to the host's layout and data type."""
    layout = FORMATS.get(ref.device_format)
    if layout is None or layout.dump in ("unsupported", "unexpected"):
        raise NotDumped(f"the dump does not convert {ref.device_format}")
    if layout.dump == "copy":
        values = _typed(data, ref.device_dtype, ref.shape)
    else:
        try:
            values = _converted(ref, data)
        except FormatError as error:
            raise NotDumped(f"{ref.device_format}: {error.what}") from error
    if ref.dtype == ref.device_dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(ref.dtype.numpy)


def _model(ref: TensorRef, data: NDArray[Any]) -> tuple[NDArray[Any], DType, str]:
    """Convert as the callback of whole graphs does. [spec mindspore 5.6]"""
    label = graph_format(ref)
    if label not in _CONVERTED or len(ref.shape) != 4:
        return _typed(data, ref.device_dtype, ref.device_shape), ref.device_dtype, label
    try:
        values = _converted(ref, data)
    except FormatError as error:
        raise NotDumped(f"{ref.device_format}: {error.what}") from error
    return values, ref.device_dtype, "NCHW"


def graph_format(ref: TensorRef) -> str:
    """Return a whole graph's format of a tensor: without a device layout, NCHW for four axes, otherwise ND."""
    if ref.device_format == "DefaultFormat":
        return "NCHW" if len(ref.shape) == 4 else "ND"
    return ref.device_format


def _raw(ref: TensorRef, data: NDArray[Any]) -> NDArray[Any]:
    """Return as many device bytes as the host tensor has, without conversion."""
    size = ref.dtype.nbytes(prod(ref.shape))
    if size > data.size:
        raise NotDumped("the host tensor is larger than the device tensor")
    return _typed(data[:size], ref.dtype, ref.shape)


def _typed(data: NDArray[Any], dtype: DType, shape: tuple[int, ...]) -> NDArray[Any]:
    """View bytes as elements of a shape; packed types are unpacked."""
    if dtype.name in PACKED:
        flat = widen(data, dtype.name)
        if shape == (-1,):
            return flat
        if dtype.name == "int4" and shape and prod(shape) * 2 == flat.size:  # the shape counts pairs
            shape = (*shape[:-1], shape[-1] * 2)
        return flat[: prod(shape)].reshape(shape)
    if data.dtype != np.uint8:
        data = data.view(np.uint8)
    return data.view(dtype.numpy).reshape(shape)


def _stored(values: NDArray[Any], dtype: DType, how: Conversion) -> tuple[NDArray[Any], NDArray[Any], DType]:
    """Return the values, the array of the file, and its data type."""
    if dtype.name == "bfloat16" and how.float32:
        return values, widen(values, dtype.name), _FLOAT32
    if dtype.name == "int4":
        return values, values, _INT8
    if dtype.name == "uint1":
        if how.bug_compat:
            values = _uint1_with_defect(values)
        return values, values, _UINT8
    return values, values, dtype


def _uint1_with_defect(values: NDArray[Any]) -> NDArray[Any]:
    """quirk: of the last byte 8 - n % 8 values are written instead of n % 8. [spec mindspore 3.5]"""
    tail = values.size % 8
    found = values.copy().reshape(-1)
    if tail:
        found[values.size - tail + min(tail, 8 - tail) :] = 0
    return found.reshape(values.shape)
