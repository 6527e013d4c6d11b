"""Kernels of helper nodes, by type, on tensors of torch.

A node that returns a result of an ATen operator computes that operator itself, see `dumpsim.frontends.torchair._lower`;
the kernels here are those of the other nodes. A type that is missing here has no task: nothing but the operator that it
helps needs its values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

__all__ = ["HELPERS", "SHAPES", "VIEWS", "Moved", "axes_of"]

Tensor = torch.Tensor

# inputs that are a shape, axes or bounds: the shape of the result depends on their values
SHAPES: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "BroadcastTo": (1,),
        "ConcatV2": (-1,),
        "Empty": (0,),
        "Expand": (1,),
        "ExpandDims": (1,),
        "Fill": (0,),
        "GatherV2": (2,),
        "Range": (0, 1, 2),
        "ReduceMax": (1,),
        "ReduceMean": (1,),
        "ReduceSum": (1,),
        "Reshape": (1,),
        "StridedSliceV2": (1, 2, 3, 4),
        "Transpose": (1,),
    }
)
# types whose result has the operand's bytes: they have no task
VIEWS = frozenset({"Bitcast", "ExpandDims", "FlattenV2", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def axes_of(numbers: Tensor) -> list[int]:
    """Return the elements of a tensor as a list of integers."""
    return [int(one) for one in numbers.reshape(-1).tolist()]


def _slice(x: Tensor, begin: Tensor, end: Tensor, axes: Tensor, steps: Tensor, **attrs: Any) -> Tensor:
    found = [slice(None)] * x.dim()
    for low, high, axis, step in zip(*map(axes_of, (begin, end, axes, steps)), strict=True):
        found[axis] = slice(low, high, step)
    return x[tuple(found)]


def _reduced(function: Any) -> Callable[..., Tensor]:
    def kernel(x: Tensor, axes: Tensor, *, keep_dims: bool, **attrs: Any) -> Tensor:
        result: Tensor = function(x, axes_of(axes) or list(range(x.dim())), keepdim=keep_dims)
        return result

    return kernel


def _unsqueezed(x: Tensor, *, axes: list[int], **attrs: Any) -> Tensor:
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


def _squeezed(x: Tensor, *, axis: list[int], **attrs: Any) -> Tensor:
    return x.squeeze(tuple(axis)) if axis else x.squeeze()


def _filled(dims: Tensor, value: Tensor, **attrs: Any) -> Tensor:
    return value.reshape(()).expand(axes_of(dims)).contiguous()


def _sorted(x: Tensor, *, axis: int, descending: bool, **attrs: Any) -> tuple[Tensor, Tensor]:
    values, indices = torch.sort(x, dim=axis, descending=descending)
    return values, indices.to(torch.int32)


@dataclass(frozen=True, slots=True)
class Moved:
    """A kernel whose result is a copy of a view of its first operand.

    Parameters
    ----------
    view : callable
        Returns the view; the other operands are numbers.
    keeps : bool
        Whether a copy that is a result keeps the order of the view's dimensions in memory.
    """

    view: Callable[..., Tensor]
    keeps: bool = True

    def __call__(self, *operands: Tensor, **attrs: Any) -> Tensor:
        """Return the copy."""
        return self.view(*operands, **attrs).contiguous()

    def take(self, view: Tensor) -> Tensor:
        """Return the copy of a view, as a result of the graph."""
        return view.clone(memory_format=torch.preserve_format if self.keeps else torch.contiguous_format)


def _flat(x: Tensor, *, axis: int, end_axis: int, **attrs: Any) -> Tensor:
    return x.flatten(axis, end_axis)


def _gather(x: Tensor, indices: Tensor, *axis: Tensor, **attrs: Any) -> Tensor:
    at = axes_of(axis[0])[0] % x.dim() if axis else 0
    found = torch.index_select(x, at, indices.reshape(-1))
    return found.reshape((*x.shape[:at], *indices.shape, *x.shape[at + 1 :]))


def _expanded(x: Tensor, shape: Tensor, **_: Any) -> Tensor:
    """Expand a tensor to a shape; a mean over the last dimension lacks that dimension. [observed wheel 2.14.0]"""
    sizes = axes_of(shape)
    return (x.unsqueeze(-1) if list(x.shape) == list(sizes[:-1]) else x).expand(sizes)


HELPERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "Abs": lambda x, **_: x.abs(),
        "Add": lambda x, y, **_: x + y,
        "BatchMatMul": lambda x, y, *_, **__: torch.matmul(x, y),
        "Bitcast": lambda x, *, type, **_: x.view(type),
        "BroadcastTo": Moved(lambda x, shape, **_: x.expand(axes_of(shape))),
        "Cast": lambda x, *, dst_type, **_: x.to(dst_type),
        "ConcatV2": lambda *x, **_: torch.cat([torch.atleast_1d(one) for one in x[:-1]], int(x[-1])),
        "Empty": lambda shape, *, dtype, **_: torch.zeros(axes_of(shape), dtype=dtype),
        "Equal": lambda x, y, **_: x == y,
        "Expand": Moved(_expanded),
        "ExpandDims": lambda x, axis, **_: x.unsqueeze(int(axis)),
        "Fill": _filled,
        "FlattenV2": _flat,
        "Gather": _gather,
        "GatherV2": _gather,
        "Identity": lambda x, **_: x,
        "MaskedFill": lambda x, mask, value, **_: x.masked_fill(mask, value),
        "MatMul": lambda x, y, *_, **__: torch.matmul(x, y),
        "MatMulV2": lambda x, y, *_, **__: torch.matmul(x, y),
        "Mul": lambda x, y, **_: x * y,
        "Muls": lambda x, *, value, **_: x * value,
        "Neg": lambda x, **_: -x,
        "Pack": lambda *x, axis, **_: torch.stack([one.to(torch.int64) if not one.dim() else one for one in x], axis),
        "Range": lambda a, b, c, **_: torch.arange(a.item(), b.item(), c.item()),
        "RealDiv": lambda x, y, **_: x // y if not (x.is_floating_point() or y.is_floating_point()) else x / y,
        "Reciprocal": lambda x, **_: x.reciprocal(),
        "ReduceMax": _reduced(torch.amax),
        "ReduceMean": _reduced(torch.mean),
        "ReduceProdD": lambda x, **_: x.prod(dtype=x.dtype),
        "ReduceSum": _reduced(torch.sum),
        "Reshape": lambda x, shape, **_: x.reshape(axes_of(shape)),
        "Rsqrt": lambda x, **_: x.rsqrt(),
        "Shape": lambda x, *, dtype, **_: torch.tensor(tuple(x.shape), dtype=dtype),
        "Sort": _sorted,
        "Squeeze": _squeezed,
        "StridedSliceV2": Moved(_slice),
        "Sub": lambda x, y, **_: x - y,
        "TensorMove": lambda x, **_: x.clone(),
        "Transpose": Moved(lambda x, perm, **_: x.permute(axes_of(perm))),
        "Unsqueeze": _unsqueezed,
        "ZerosLike": lambda x, **_: torch.zeros_like(x),
    }
)
