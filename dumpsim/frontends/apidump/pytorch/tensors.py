"""The record of a torch tensor: its statistics, computed by our kernels, and its bytes."""

import ctypes
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch

from dumpsim._ext import stats as _stats
from dumpsim._ext.recorder import Outlines
from dumpsim.codecs.apidump import tail_of
from dumpsim.frontends.apidump.output import npy_header
from dumpsim.tensor.cast import widen
from dumpsim.tensor.simd import level_number
from dumpsim.tensor.stats import CODES

__all__ = ["TENSORS", "Measured", "Skip", "measure", "outlines", "reduce_with_gradients", "scalar"]

_NONE = (math.nan, math.nan, math.nan)


class Skip(Exception):
    """A value that cannot be recorded, with the reason that is counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Measured(NamedTuple):
    """One recorded value: its info line from the type on, and the bytes of its npy file."""

    tail: str
    npy: tuple[bytes | memoryview, ...] | None = None


# torch type -> numpy type with the same bits, and the type code of the kernel
_PLAIN: Mapping[torch.dtype, tuple[np.dtype[Any], int]] = MappingProxyType(
    {
        getattr(torch, name): (np.dtype(name), CODES[np.dtype(name)])
        for name in (
            *("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
            *("float16", "float32", "float64", "bool"),
        )
        if hasattr(torch, name)
    }
)
TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_saved_tensor_hooks = torch._C._autograd._top_saved_tensors_default_hooks  # the active ones, or None
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
_BFLOAT16 = 10  # the loop of bfloat16 reads its 16 bits
_DOUBLE = 1023  # bits of an integer that can certainly be converted to a double
_NAMES = MappingProxyType({kind: str(kind) for kind in _PLAIN})
_QUANTISED = frozenset(
    getattr(torch, name) for name in ("qint8", "quint8", "qint32", "quint4x2", "quint2x4") if hasattr(torch, name)
)


def _single(value: float) -> float:
    """Round to float32, as the real tool prints everything. [spec api_dump 1.4]"""
    return ctypes.c_float(value).value


def refuse(tensor: torch.Tensor) -> None:
    """Raise `Skip` for a tensor without bytes of its own."""
    if (
        type(tensor) in TENSORS
        and tensor.layout is torch.strided
        and not (tensor.is_meta or tensor.is_quantized or tensor.is_nested or _is_wrapped(tensor))
    ):
        return
    if tensor.is_meta:
        raise Skip("meta tensor")
    if tensor.layout is not torch.strided:
        raise Skip(f"layout {str(tensor.layout).removeprefix('torch.')}")
    if tensor.is_quantized:
        raise Skip("quantised tensor")
    if tensor.is_nested:
        raise Skip("nested tensor")
    if _is_wrapped(tensor):
        raise Skip("tensor inside vmap or grad")
    name = type(tensor).__name__
    if name in ("FakeTensor", "FunctionalTensor"):
        raise Skip(name)
    if hasattr(tensor, "__tensor_flatten__"):  # it wraps other tensors and has no bytes itself
        raise Skip(f"tensor of class {name}")


def is_data(tensor: torch.Tensor) -> bool:
    """Whether ``filter_data=True`` retains a tensor: floating, with at least one dimension and element."""
    return bool(tensor.dtype.is_floating_point and tensor.dim() > 0 and tensor.numel() > 0)


def measure(tensor: torch.Tensor, *, statistics: bool, npy: bool, exact: bool = False) -> Measured:
    """Return statistics and bytes of a tensor as it is now, without changing it and without effect on autograd.

    Parameters
    ----------
    statistics, npy : bool
        What to compute; statistics that are not requested are NaN.
    exact : bool
        Use torch's own reductions, bit for bit those of 1.0.17; otherwise one pass of our kernels: exact max and min,
        the mean summed in double.

    Raises
    ------
    Skip
        If the tensor cannot be recorded.
    """
    refuse(tensor)
    if not (statistics or npy):
        return _outline(tensor.dtype, tensor.shape)
    if torch._C._len_torch_dispatch_stack():
        from torch.utils._python_dispatch import _disable_current_modes

        with _disable_current_modes():
            return _measure(tensor, statistics, npy, exact)
    return _measure(tensor, statistics, npy, exact)


def reduce_with_gradients(tensor: torch.Tensor) -> None:
    """Save the same tensors for backward as 1.0.17 when it reduces a tensor, if the user has saved-tensor hooks.

    The tool computes max and min while gradients are recorded. A non-reentrant checkpoint counts the tensors that its
    region saves, and ends the second run of the region when as many have been saved as in the first. [observed 1.0.17]
    """
    if tensor.dim() and tensor.numel() and torch.is_grad_enabled() and _saved_tensor_hooks(False) is not None:
        torch.max(tensor)
        torch.min(tensor)


def outlines() -> Outlines:
    """Return the cache of outlines of plain tensors, which contain no values."""
    return Outlines(TENSORS, torch.strided, _is_wrapped, _spell)


def _spell(kind: torch.dtype, shape: torch.Size) -> tuple[bool, Measured | None]:
    """Return whether a plain tensor is data, see `is_data`, and its outline, None for a quantised one."""
    outline = None if kind in _QUANTISED else _outline(kind, shape)
    return bool(kind.is_floating_point and shape and 0 not in shape), outline


def _outline(kind: torch.dtype, shape: torch.Size) -> Measured:
    return Measured(tail_of(str(kind), tuple(shape), _NONE))


def _measure(tensor: torch.Tensor, statistics: bool, npy: bool, exact: bool) -> Measured:
    kind = tensor.dtype
    shape = tuple(tensor.shape)
    text = _NAMES.get(kind) or str(kind)
    values: tuple[Any, Any, Any] = _NONE
    data = tensor.detach()
    if data.device.type != "cpu":
        data = data.cpu()
    if data.is_conj():
        data = data.resolve_conj()
    if data.is_neg():
        data = data.resolve_neg()
    if statistics and exact and kind in _PLAIN and kind is not torch.bool and data.numel():
        values = _reductions(data)
        statistics = False
    if not data.is_contiguous():
        data = data.contiguous()
    known = _PLAIN.get(kind)
    if known is not None:
        array, code = data.numpy(), known[1]
    elif kind is torch.bfloat16:
        array, code = data.view(torch.int16).numpy(), _BFLOAT16
    elif kind.is_complex:
        array, code = _complex(data), None
    else:
        # float8 and similar types: torch widens them exactly
        try:
            data = data.to(torch.float32)
        except (RuntimeError, NotImplementedError):
            raise Skip(f"type {text.removeprefix('torch.')}") from None
        array, code = data.numpy(), CODES[np.dtype(np.float32)]
    if statistics and code is not None and kind is not torch.bool and array.size:
        total, _, high, low, count, *_ = _stats.measure(array.reshape(-1).view(np.uint8), code, level_number(None))
        values = (_single(high), _single(low), _single(total / count))
    return Measured(tail_of(text, shape, values), _file(data, array, shape) if npy else None)


def _reductions(data: torch.Tensor) -> tuple[float, float, float]:
    """Return max, min and mean by torch's reductions, in the tensor's own type. [spec api_dump 1.4]"""
    with torch.no_grad():
        high, low = data.max(), data.min()
        mean = data.mean() if data.dtype.is_floating_point else data.float().mean()
        return float(high.float()), float(low.float()), float(mean.float())


def _complex(data: torch.Tensor) -> "np.ndarray[Any, Any]":
    try:
        array: np.ndarray[Any, Any] = data.numpy()
    except TypeError:
        array = data.to(torch.complex64).numpy()  # numpy has no complex32
    return array


def _file(data: torch.Tensor, array: "np.ndarray[Any, Any]", shape: tuple[int, ...]) -> tuple[bytes | memoryview, ...]:
    """Return the npy file; its data is copied, since the network may overwrite the tensor before it is written.

    bfloat16 is widened exactly to float32: numpy has no such type, and the info line contains the original one.
    """
    if data.dtype is torch.bfloat16:
        wide = widen(array.reshape(-1), "bfloat16")
        return npy_header("<f4", shape), wide.view(np.uint8).data
    copy = array.reshape(-1).copy()
    return npy_header(copy.dtype.str, shape), copy.view(np.uint8).data


def scalar(value: "bool | int | float", *, npy: bool, statistics: bool) -> Measured:
    """Return the record of a Python number, which ``filter_data=False`` retains. [spec api_dump 1.4]"""
    part: tuple[bytes | memoryview, ...] | None = None
    if statistics and isinstance(value, int) and value.bit_length() > _DOUBLE:
        raise Skip("integer beyond a double")  # no reader accepts it as a statistic
    if npy:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise Skip("integer beyond 64 bits")
        part = (npy_header(array.dtype.str, ()), array.tobytes())
    return Measured(tail_of(str(type(value)), (), (value, value, value) if statistics else _NONE), part)
