"""Operators that sharding inserts and a later pass drops: they give out what they take, and their gradients matter.

[spec parallel 2.7]
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.graph.compilation import Find
from dumpsim.graph.graph import Graph, Node
from dumpsim.graph.replacement import Replacements
from dumpsim.ops.opdef import GradBuilder, OpDef

__all__ = ["MICRO_STEP", "VIRTUAL", "drop_virtual", "with_virtual"]

Attrs = Mapping[str, Any]
MICRO_STEP = "_MicroStepAllGather"


def _same(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    kind = abstracts[0]
    return TensorType(dtype=kind.dtype, shape=kind.shape) if isinstance(kind, TensorType) else kind


def _all(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return TupleType(items=tuple(abstracts))


def _identity(x: Any, **attrs: Any) -> Any:
    return x


def _passed(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return [dout]


def _scaled(b: GradBuilder, gradient: Any, count: int, wanted: bool) -> Any:
    """A sum as a mean, where that is wanted."""
    if not wanted:
        return gradient
    return b.emit("Mul", gradient, np.array(1 / count, gradient.abstract.dtype.numpy))


def _mirrored(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The gradients of all copies of a weight are summed."""
    total = b.emit("AllReduce", dout, op="sum", group=attrs["group"])
    return [_scaled(b, total, attrs["dev_num"], attrs["mean_flag"])]


def _divided(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The loss is seeded on every rank that has a copy of it."""
    return [b.emit("RealDiv", dout, np.array(attrs["divisor"], dout.abstract.dtype.numpy))]


def _scattered(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    shared = {name: attrs[name] for name in ("group", "rank_size")}
    return [_scaled(b, b.emit("ReduceScatter", dout, op="sum", **shared), attrs["rank_size"], attrs["_mean"])]


def _gathered(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = abstracts[0]
    assert isinstance(x, TensorType)
    return TensorType(dtype=x.dtype, shape=(x.shape[0] * attrs["rank_size"], *x.shape[1:]))


_OPS = (
    OpDef(name="_VirtualDataset", operands=("x",), infer=_all, kernel=_identity),
    OpDef(name="ShardIdentity", operands=("x",), infer=_same, kernel=_identity, grad=_passed),
    OpDef(name="_VirtualOutput", operands=("x",), infer=_same, kernel=_identity, grad=_passed),
    OpDef(name="_VirtualDiv", operands=("x",), infer=_same, kernel=_identity, grad=_divided, attrs={"divisor": 1}),
    OpDef(
        name="_MirrorOperator",
        operands=("x",),
        infer=_same,
        kernel=_identity,
        grad=_mirrored,
        attrs={"group": "", "fusion": 1, "mirror_user_id": "", "dev_num": 1, "mean_flag": False},
    ),
    # the AllGather of a weight that the parallel optimizer cuts, until gradients are expanded
    OpDef(
        name=MICRO_STEP,
        operands=("x",),
        infer=_gathered,
        kernel=_identity,
        grad=_scattered,
        attrs={"group": "", "rank_size": 1, "_mean": False},
    ),
)
VIRTUAL: Mapping[str, OpDef] = MappingProxyType({op.name: op for op in _OPS})


def with_virtual(find: Find) -> Find:
    """A way to find definitions that knows these operators, too."""
    return lambda op_type: VIRTUAL.get(op_type) or find(op_type)


def drop_virtual(graph: Graph) -> Graph:
    """Drop what sharding inserted for the sake of gradients, once they are expanded."""
    replaced = Replacements()
    kept: list[Node] = []
    for node in graph.trail:
        node.operands = replaced.operands(node)
        if node.op_type == MICRO_STEP:
            node.op_type, node.definition = "AllGather", None
            del node.attrs["_mean"]
        if node.op_type in VIRTUAL:
            replaced.put(node, node.operands[0])
        else:
            kept.append(node)
    replaced.finish(graph, kept)
    return graph
