"""Operators that sharding inserts for their gradients and a later pass drops: they return their operand.

[spec parallel 2.7]
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, MonadType, NoneType, TensorType, TupleType
from dumpsim.graph.compilation import Find
from dumpsim.graph.graph import Constant, Graph, Node
from dumpsim.graph.replacement import Replacements
from dumpsim.ops.opdef import GradBuilder, OpDef

__all__ = ["GATHER", "VIRTUAL", "drop_virtual", "with_virtual"]

Attrs = Mapping[str, Any]
GATHER = "_MicroStepAllGather"


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
    """Turn a sum into a mean, if `wanted`."""
    if not wanted:
        return gradient
    return b.emit("Mul", gradient, np.array(1 / count, gradient.abstract.dtype.numpy))


def _mirrored(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Sum the gradients of all copies of a weight."""
    total = b.emit("AllReduce", dout, op="sum", group=attrs["group"])
    return [_scaled(b, total, attrs["dev_num"], attrs["mean_flag"])]


def _accumulated(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Add a gradient to that of the previous parts of the batch; the returned number only marks that it is done."""
    added = _unordered(b.emit("AssignAdd", operands[1], dout))
    return [b.emit("Depend", np.array(0, dout.abstract.dtype.numpy), added), None]


def _mirrored_once(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Sum the accumulated gradients of all copies of a weight, after all parts of the batch.

    The parallel optimizer takes the sum; other optimizers take the accumulator, to which the sum is assigned.
    """
    done = total = b.emit("Depend", operands[1], dout)
    kind = total.abstract.dtype.numpy
    if attrs["dev_num"] > 1:
        total = b.emit("AllReduce", done, op="sum", group=attrs["group"])
        total = _scaled(b, total, attrs["dev_num"], attrs["mean_flag"])
    if attrs["_shards"]:
        return [total, None]
    return [b.emit("Depend", np.array(1, kind), _unordered(b.emit("Assign", done, total))), None]


def _unordered(node: Any) -> Any:
    """Mark a side effect as ordered only by the nodes that depend on it."""
    node.operands.append(Constant(value="U", abstract=MonadType(kind="U")))
    return node


def _divided(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Divide the gradient of the loss, which starts on every rank that has a copy."""
    return [b.emit("RealDiv", dout, np.array(attrs["divisor"], dout.abstract.dtype.numpy))]


def _scattered(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Return the gradient of a weight that is cut further; with a second operand, from the accumulated gradients."""
    shared = {name: attrs[name] for name in ("group", "rank_size")}
    if len(operands) > 1:
        dout = b.emit("Depend", operands[1], dout)
    total = _scaled(b, b.emit("ReduceScatter", dout, op="sum", **shared), attrs["rank_size"], attrs["_mean"])
    return [total, *[None] * (len(operands) - 1)]


def _gathered(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = abstracts[0]
    assert isinstance(x, TensorType)
    return TensorType(dtype=x.dtype, shape=(x.shape[0] * attrs["rank_size"], *x.shape[1:]))


def _unknown(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return NoneType()


_OPS = (
    # number types as values in lookups, which are folded at compile time
    OpDef(name="DType", operands=("x",), infer=_unknown, kernel=_identity),
    OpDef(name="DtypeToEnum", operands=("op_name", "arg_name", "x"), infer=_unknown, kernel=_identity),
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
    OpDef(
        name="_MirrorMicroStepOperator",
        operands=("x", "z"),
        infer=_same,
        kernel=_identity,
        grad=_mirrored_once,
        attrs={"group": "", "fusion": 1, "mirror_user_id": "", "dev_num": 1, "mean_flag": False, "_shards": False},
    ),
    OpDef(
        name="_VirtualAssignAdd",
        operands=("x", "y"),
        infer=_same,
        kernel=_identity,
        grad=_accumulated,
        attrs={"group": "", "fusion": 1},
    ),
    OpDef(name="_VirtualPipelineEnd", operands=("x",), infer=_same, kernel=_identity, grad=_passed),
    # stands for the AllGather of a weight that the parallel optimizer cuts, until gradients are expanded
    OpDef(
        name=GATHER,
        operands=("x", "*accumulated"),
        infer=_gathered,
        kernel=_identity,
        grad=_scattered,
        attrs={"group": "", "rank_size": 1, "_mean": False},
    ),
)
VIRTUAL: Mapping[str, OpDef] = MappingProxyType({op.name: op for op in _OPS})


def with_virtual(find: Find) -> Find:
    """Return a `find` function that knows these operators, too."""
    return lambda op_type: VIRTUAL.get(op_type) or find(op_type)


def drop_virtual(graph: Graph) -> Graph:
    """Drop the nodes that sharding has inserted for gradients, after these are expanded."""
    _drop(graph, Replacements())
    return graph


def _drop(graph: Graph, replaced: Replacements) -> None:
    kept: list[Node] = []
    for node in graph.trail:
        node.operands = replaced.operands(node)
        for block in node.blocks:
            _drop(block, replaced)
        if node.op_type == GATHER:
            node.op_type, node.definition, node.operands = "AllGather", None, node.operands[:1]
            del node.attrs["_mean"]
        if node.op_type in VIRTUAL:
            replaced.put(node, node.operands[0])
        else:
            kept.append(node)
    replaced.finish(graph, kept)
