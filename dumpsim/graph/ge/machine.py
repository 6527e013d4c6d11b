"""Operators that only GE's compiler creates: parts of split operators, and compositions.

Scripts cannot name them, so they are not in the table of `dumpsim.ops`; a node has a reference to its definition.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.ops.opdef import OpDef

__all__ = [
    "BN_REDUCE",
    "BN_REDUCE_GRAD",
    "BN_UPDATE",
    "BN_UPDATE_GRAD",
    "DROP_DO_MASK",
    "GE_TYPES",
    "Composition",
    "Source",
    "drop_gen_mask",
]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

# operator types with another name in GE's library, used for whole graphs [CANN: operator prototypes]
GE_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "AllGather": "HcomAllGather",
        "AllGatherV": "HcomAllGatherV",
        "AllReduce": "HcomAllReduce",
        "AlltoAll": "HcomAllToAllV",
        "AlltoAllV": "HcomAllToAllV",
        "AlltoAllVC": "HcomAllToAllVC",
        "BatchISendIRecv": "HcomBatchSendRecv",
        "BatchMatMul": "BatchMatMulV2",
        "Broadcast": "HcomBroadcast",
        "CollectiveGather": "HcomGather",
        "CollectiveScatter": "HcomScatter",
        "Concat": "ConcatV2",
        "Dense": "MatMulV2",
        "Gather": "GatherV2",
        "GeLU": "Gelu",
        "GeLUGrad": "GeluGrad",
        "LogSoftmax": "LogSoftmaxV2",
        "MatMul": "MatMulV2",
        "NeighborExchange": "HcomAllToAllV",
        "NeighborExchangeV2": "HcomAllToAllV",
        "NeighborExchangeV2Grad": "HcomAllToAllV",
        "Receive": "HcomReceive",
        "Reduce": "HcomReduce",
        "ReduceScatter": "HcomReduceScatter",
        "ReduceScatterV": "HcomReduceScatterV",
        "Send": "HcomSend",
        "ReLU": "Relu",
        "ReLU6": "Relu6",
        "ReLU6Grad": "Relu6Grad",
        "Softmax": "SoftmaxV2",
        "Stack": "Pack",
        "StridedSlice": "StridedSliceV2",
        "TopK": "TopKV2",
        "Unstack": "Unpack",
    }
)


def _tensor(abstract: Abstract) -> TensorType:
    assert isinstance(abstract, TensorType)
    return abstract


def _first(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return abstracts[0]


# ------------------------------------------------------- batch normalisation in training, as GE's library splits it
def _channels(values: Array, rank: int) -> Array:
    return values.reshape(-1, *(1,) * (rank - 2))


def _axes(x: Array) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _infer_reduce(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _tensor(abstracts[0])
    sums = TensorType(dtype=attrs["kind"], shape=x.shape[1:2])
    return TupleType(items=(sums, sums))


@np.errstate(all="ignore")
def _reduce(x: Array, *, kind: Any) -> tuple[Array, Array]:
    return x.sum(axis=_axes(x), dtype=x.dtype), np.square(x).sum(axis=_axes(x), dtype=x.dtype)


def _infer_update(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return TupleType(items=(abstracts[0], *(abstracts[3],) * 4))


@np.errstate(all="ignore")
def _update(
    x: Array,
    total: Array,
    square_sum: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    factor: float,
    epsilon: float,
) -> tuple[Array, Array, Array, Array, Array]:
    count = x.size // x.shape[1]
    batch_mean = total / np.asarray(count, x.dtype)
    batch_variance = np.maximum(square_sum / np.asarray(count, x.dtype) - np.square(batch_mean), 0)
    slope = scale / np.sqrt(batch_variance + np.asarray(epsilon, x.dtype))
    y = (x - _channels(batch_mean, x.ndim)) * _channels(slope, x.ndim) + _channels(offset, x.ndim)
    share = np.asarray(factor, mean.dtype)
    unbiased = batch_variance * np.asarray(count / max(count - 1, 1), x.dtype)
    mean[...] = mean * (1 - share) + batch_mean * share
    variance[...] = variance * (1 - share) + unbiased * share
    return y, batch_mean, batch_variance, batch_mean, batch_variance


def _infer_update_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return TupleType(items=(abstracts[2], abstracts[2]))


@np.errstate(all="ignore")
def _update_grad(dy: Array, x: Array, mean: Array, variance: Array, *, epsilon: float) -> tuple[Array, Array]:
    inverse = 1 / np.sqrt(variance + np.asarray(epsilon, x.dtype))
    normal = (x - _channels(mean, x.ndim)) * _channels(inverse, x.ndim)
    return (dy * normal).sum(axis=_axes(x), dtype=x.dtype), dy.sum(axis=_axes(x), dtype=x.dtype)


@np.errstate(all="ignore")
def _reduce_grad(
    dy: Array,
    x: Array,
    dscale: Array,
    doffset: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
) -> Array:
    count = np.asarray(x.size // x.shape[1], x.dtype)
    inverse = 1 / np.sqrt(variance + np.asarray(epsilon, x.dtype))
    normal = (x - _channels(mean, x.ndim)) * _channels(inverse, x.ndim)
    slope = dy - _channels(doffset / count, x.ndim) - normal * _channels(dscale / count, x.ndim)
    result: Array = slope * _channels(scale * inverse, x.ndim)
    return result


def _infer_reduce_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return abstracts[1]


BN_REDUCE = OpDef(
    name="BNTrainingReduce",
    operands=("x",),
    infer=_infer_reduce,
    kernel=_reduce,
    formats={"in": {0: "NC1HWC0"}},
)
BN_UPDATE = OpDef(
    name="BNTrainingUpdate",
    operands=("x", "sum", "square_sum", "scale", "offset", "mean", "variance"),
    infer=_infer_update,
    kernel=_update,
    updates=(5, 6),
    side_effect="mem",
    formats={"in": {0: "NC1HWC0"}, "out": {0: "NC1HWC0"}},
)
BN_UPDATE_GRAD = OpDef(
    name="BNTrainingUpdateGrad",
    operands=("grads", "x", "batch_mean", "batch_variance"),
    infer=_infer_update_grad,
    kernel=_update_grad,
    formats={"in": {0: "NC1HWC0", 1: "NC1HWC0"}},
)
BN_REDUCE_GRAD = OpDef(
    name="BNTrainingReduceGrad",
    operands=("grads", "x", "diff_scale", "diff_offset", "scale", "batch_mean", "batch_variance"),
    infer=_infer_reduce_grad,
    kernel=_reduce_grad,
    formats={"in": {0: "NC1HWC0", 1: "NC1HWC0"}, "out": {0: "NC1HWC0"}},
)


# ------------------------------------------------------------- dropout, as GE's library splits it: AI CPU and AI Core
_MASK_BLOCK = 128  # a mask has one bit for each element, in blocks of this many bits


def drop_gen_mask(dropout: OpDef) -> OpDef:
    """Return the kernel that draws the bits which Dropout would draw; its operands are those after the first."""

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        size = int(np.prod(attrs["shape"], dtype=np.int64))
        return TensorType(dtype=dtype("uint8"), shape=(-(-size // _MASK_BLOCK) * _MASK_BLOCK // 8,))

    def kernel(*settings: Any, shape: tuple[int, ...], counter: int) -> Array:
        bits = dropout.kernel(np.ones(shape, np.float32), *settings, counter=counter)[1].reshape(-1) > 0
        mask = np.zeros(-(-bits.size // _MASK_BLOCK) * _MASK_BLOCK // 8, np.uint8)
        packed = np.packbits(bits, bitorder="little")
        mask[: packed.size] = packed
        return mask

    return OpDef(
        name="DropOutGenMask",
        operands=dropout.operands[1:],
        infer=infer,
        kernel=kernel,
        random=True,
        engine="aicpu",
    )


def _do_mask(x: Array, mask: Array, keep_prob: float) -> Array:
    bits = np.unpackbits(mask, bitorder="little")[: x.size].reshape(x.shape)
    result: Array = x * bits.astype(x.dtype) / np.asarray(keep_prob, x.dtype)
    return result


DROP_DO_MASK = OpDef(
    name="DropOutDoMask", operands=("x", "mask", "keep_prob"), infer=_first, kernel=np.errstate(all="ignore")(_do_mask)
)


# ----------------------------------------------------------------------------------------------------- compositions
@dataclass(frozen=True, slots=True)
class Source:
    """The source of a member's operand in a fused operator: operand `at` of the whole, or the result of member `at`."""

    member: bool
    at: int
    item: int | None = None  # output of a member that has several


@dataclass(frozen=True, slots=True)
class Composition:
    """Several kernels as one, whose intermediate results are not stored.

    Attributes
    ----------
    definitions : tuple of OpDef
    attrs : tuple of mapping
        Keywords of each kernel.
    wiring : tuple of tuple of Source
        Operands of each.
    """

    definitions: tuple[OpDef, ...]
    attrs: tuple[Attrs, ...]
    wiring: tuple[tuple[Source, ...], ...]

    def definition(self, op_type: str) -> OpDef:
        """Return the operator that does the work of all kernels."""
        head = self.definitions[0]
        return OpDef(
            name=op_type,
            operands=head.operands,
            infer=self._infer,
            kernel=self._run,
            engine=head.engine,
            flops=self._flops if head.flops is not None else None,
        )

    def _run(self, *operands: Any) -> Any:
        results: list[Any] = []
        for definition, attrs, sources in zip(self.definitions, self.attrs, self.wiring, strict=True):
            values = [_taken(results if source.member else operands, source) for source in sources]
            made = definition.kernel(*values, **attrs)
            results.append(made[0] if isinstance(made, list) and len(made) == 1 else made)
        last = results[-1]
        return last[0] if isinstance(last, tuple) else last

    def _infer(self, abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        results: list[Abstract] = []
        for definition, own, sources in zip(self.definitions, self.attrs, self.wiring, strict=True):
            types: list[Abstract] = []
            for source in sources:
                found = results[source.at] if source.member else abstracts[source.at]
                if source.item is not None:
                    assert isinstance(found, TupleType)
                    found = found.items[source.item]
                types.append(found)
            results.append(definition.output_type(types, own))
        last = results[-1]
        return last.items[0] if isinstance(last, TupleType) else last

    def _flops(self, abstracts: Sequence[Abstract], attrs: Attrs) -> int:
        head = self.definitions[0]
        assert head.flops is not None
        return head.flops([abstracts[source.at] for source in self.wiring[0]], self.attrs[0])


def _taken(values: Sequence[Any], source: Source) -> Any:
    value = values[source.at]
    return value if source.item is None else value[source.item]
