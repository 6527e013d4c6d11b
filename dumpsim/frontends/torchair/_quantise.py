"""Quantisation on the device to integers: ``torch_npu.npu_quantize`` and ``torch_npu.npu_anti_quant``.

Both are operators of torch (namespace ``npu``), so that a captured graph has one node for each. They are computed in
float32, with rounding half to even.
"""

from functools import cache
from types import MappingProxyType
from typing import Any

import torch
from torch import library

from dumpsim.core.errors import ScriptValueError, UnsupportedError

__all__ = ["npu_anti_quant", "npu_quantize"]

# torch's numbers of types; `_STORED` has the types of the tensors that the device returns
_NUMBERS = MappingProxyType(
    {
        torch.uint8: 0,
        torch.int8: 1,
        torch.int32: 3,
        torch.float16: 5,
        torch.float32: 6,
        torch.qint8: 12,
        torch.quint8: 13,
        torch.qint32: 14,
        torch.bfloat16: 15,
    }
)
_STORED = MappingProxyType(
    {
        0: torch.uint8,
        1: torch.int8,
        3: torch.int32,
        5: torch.float16,
        6: torch.float32,
        12: torch.int8,
        13: torch.uint8,
        14: torch.int32,
        15: torch.bfloat16,
    }
)


def npu_quantize(
    self: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor | None,
    dtype: torch.dtype,
    axis: int = 1,
    div_mode: bool = True,
) -> torch.Tensor:
    """Quantise a tensor: divided by its scales, or with ``div_mode=False`` multiplied by them.

    Examples
    --------
    >>> npu_quantize(torch.tensor([[1.0, -2.5]]), torch.tensor([0.5]), torch.tensor([3]), torch.qint8, 0)
    tensor([[ 5, -2]], dtype=torch.int8)
    """
    made: torch.Tensor = torch.ops.npu.npu_quantize(self, scales, zero_points, _number(dtype), axis, div_mode)
    return made


def npu_anti_quant(
    x: torch.Tensor,
    scale: torch.Tensor,
    *,
    offset: torch.Tensor | None = None,
    dst_dtype: torch.dtype | None = None,
    src_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Dequantise a tensor: add the offset, and multiply by the scale.

    Examples
    --------
    >>> npu_anti_quant(torch.tensor([4, -2], dtype=torch.int8), torch.tensor([0.5]), dst_dtype=torch.float32)
    tensor([ 2., -1.])
    """
    types = {"dst_dtype": _number(dst_dtype), "src_dtype": _number(src_dtype)}
    made: torch.Tensor = torch.ops.npu.npu_anti_quant(x, scale, offset=offset, **types)
    return made


def _number(kind: Any) -> int | None:
    """Return torch's number of a type."""
    if kind is None or isinstance(kind, int):
        return kind
    if kind not in _NUMBERS:
        raise UnsupportedError(f"quantisation to {kind}", where="torch_npu", allowed=tuple(map(str, _NUMBERS)))
    return _NUMBERS[kind]


def _quantized(
    x: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor | None,
    dtype: int,
    axis: int = 1,
    div_mode: bool = True,
) -> torch.Tensor:
    kind = _STORED[dtype]
    shape = [1] * x.dim()
    shape[axis] = -1

    def along(one: torch.Tensor) -> torch.Tensor:
        return one.float().reshape(shape) if one.dim() == 1 and x.dim() else one.float()

    made = x.float() / along(scales) if div_mode else x.float() * along(scales)
    if zero_points is not None:
        made = made + along(zero_points)
    limits = torch.iinfo(kind)
    return made.round().double().clamp(limits.min, limits.max).to(kind)


def _restored(
    x: torch.Tensor,
    scale: torch.Tensor,
    *,
    offset: torch.Tensor | None = None,
    dst_dtype: int | None = None,
    src_dtype: int | None = None,
) -> torch.Tensor:
    if x.dtype != torch.int8:
        raise ScriptValueError(f"x is {x.dtype}", where="npu_anti_quant", allowed=("torch.int8",))
    made = x.float() if offset is None else x.float() + offset.float()
    return (made * scale.float()).to(_STORED[5 if dst_dtype is None else dst_dtype])


def _quantized_shape(x: torch.Tensor, scales: Any, zero_points: Any, dtype: int, *others: Any) -> torch.Tensor:
    return torch.empty_like(x, dtype=_STORED[dtype])


def _restored_shape(x: torch.Tensor, scale: Any, *, dst_dtype: int | None = None, **others: Any) -> torch.Tensor:
    return torch.empty_like(x, dtype=_STORED[5 if dst_dtype is None else dst_dtype])


@cache
def _registered() -> library.Library:
    """Register the operators; torch knows them as long as the library exists."""
    made = library.Library("npu", "FRAGMENT")
    made.define("npu_quantize(Tensor self, Tensor scales, Tensor? zero_points, int dtype, int axis=1, "
                "bool div_mode=True) -> Tensor")  # fmt: skip
    made.define("npu_anti_quant(Tensor x, Tensor scale, *, Tensor? offset=None, int? dst_dtype=None, "
                "int? src_dtype=None) -> Tensor")  # fmt: skip
    made.impl("npu_quantize", _quantized, "CPU")
    made.impl("npu_quantize", _quantized_shape, "Meta")
    made.impl("npu_anti_quant", _restored, "CPU")
    made.impl("npu_anti_quant", _restored_shape, "Meta")
    return made


_registered()
