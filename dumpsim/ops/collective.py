"""Collectives in a world of one rank: what arrives is what was sent. [spec parallel 3.1]"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TupleType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.rules import output, tensor_of, tensors_in

__all__ = ["OPS", "REDUCTIONS"]

Attrs = Mapping[str, Any]

REDUCTIONS = ("sum", "max", "min", "prod")
_WORLD = "hccl_world_group"


def _infer(op: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        if attrs.get("op", "sum") not in REDUCTIONS:
            raise ScriptValueError(f"For '{op}', the 'op' must be one of {list(REDUCTIONS)}, but got {attrs['op']}.")
        x = tensor_of(op, abstracts[0], "input_x")
        return output(x.dtype, x.shape)

    return infer


def _infer_broadcast(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    if attrs["root_rank"] != 0:
        raise ScriptValueError(f"For 'Broadcast', the 'root_rank' must be in [0, 1), but got {attrs['root_rank']}.")
    tensors = tensors_in("Broadcast", abstracts[0], "input_x")
    return TupleType(items=tuple(output(tensor.dtype, tensor.shape) for tensor in tensors))


def _same(input_x: Any, **attrs: Any) -> Any:
    return np.array(input_x)


def _each(input_x: Sequence[Any], **attrs: Any) -> Any:
    return tuple(np.array(x) for x in input_x)


def _grad_reduce(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The gradient of a sum is reduced as well; of a maximum or minimum it goes where the value came from."""
    slope = b.emit("AllReduce", dout, op="sum", group=attrs["group"])
    if attrs["op"] == "sum":
        return [slope]
    if attrs["op"] == "prod":
        return [b.emit("RealDiv", b.emit("Mul", slope, out), operands[0])]
    chosen = b.emit("Cast", b.emit("Equal", operands[0], out), dout.abstract.dtype)
    return [b.emit("Mul", slope, chosen)]


def _grad_as(op_type: str, **settings: Any) -> Any:
    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        return [b.emit(op_type, dout, group=attrs["group"], **settings)]

    return grad


OPS = (
    OpDef(
        name="AllReduce",
        operands=("input_x",),
        infer=_infer("AllReduce"),
        kernel=_same,
        grad=_grad_reduce,
        attrs={"op": "sum", "group": _WORLD},
        fixed={"fusion": 0, "index": 0, "no_eliminate": True},
        engine="hccl",
    ),
    OpDef(
        name="AllGather",
        operands=("input_x",),
        infer=_infer("AllGather"),
        kernel=_same,
        grad=_grad_as("ReduceScatter", op="sum"),
        attrs={"group": _WORLD},
        fixed={"rank_size": 1, "fusion": 0, "mean_flag": False, "no_eliminate": True},
        engine="hccl",
    ),
    OpDef(
        name="ReduceScatter",
        operands=("input_x",),
        infer=_infer("ReduceScatter"),
        kernel=_same,
        grad=_grad_as("AllGather"),
        attrs={"op": "sum", "group": _WORLD},
        fixed={"rank_size": 1, "fusion": 0, "no_eliminate": True},
        engine="hccl",
    ),
    OpDef(
        name="Broadcast",
        operands=("input_x",),
        infer=_infer_broadcast,
        kernel=_each,
        attrs={"root_rank": 0, "group": _WORLD},
        fixed={"no_eliminate": True},
        stop=True,
        engine="hccl",
    ),
)
