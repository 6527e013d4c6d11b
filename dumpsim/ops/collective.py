"""Collectives: types, gradients, and the kernels for a group of one rank. [spec parallel 3.1]

For several ranks, `dumpsim.runtime.collective` exchanges the tensors. Ranks in attributes are positions in the group.
"""

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.ops.gradient import part_or_zeros
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, Kernel, OpDef
from dumpsim.ops.rules import ints_of, output, tensor_of, tensors_in, value_of

__all__ = [
    "MOVED",
    "OPS",
    "PLACED",
    "REDUCTIONS",
    "SHARED",
    "SIZED",
    "WORLD",
    "after",
    "as_vector",
    "collective",
    "counts_of",
    "each",
    "empty_as_scalar",
    "flat_of",
    "refilled",
    "same",
    "sized",
    "typed",
]

Attrs = Mapping[str, Any]

REDUCTIONS = ("sum", "max", "min", "prod")
WORLD = "hccl_world_group"
# number types of reductions and of other collectives, in the order of MindSpore 2.10's errors [2.10 observed; spec
# parallel 3.2]
_REDUCED = ("bfloat16", "bool", "complex64", "float16", "float32", "int16", "int32", "int64", "int8")
MOVED = (*_REDUCED[:5], "float64", *_REDUCED[5:], "uint16", "uint32", "uint64", "uint8")
_NOT_ELIMINATED: Attrs = MappingProxyType({"no_eliminate": True})


# ---------------------------------------------------------------------------------------------------------- types
def typed(op: str, abstract: Abstract, kinds: Sequence[str] = MOVED) -> TensorType:
    """Return the tensor type of the operand, after checking its number type."""
    x = tensor_of(op, abstract, "x")
    if x.dtype.name not in kinds:
        legal = ", ".join(f"Tensor[{dtype(kind).title}]" for kind in kinds)
        raise ScriptTypeError(
            f"For primitive[{op}], the input argument[x] must be a type of {{{legal}}}, but got "
            f"Tensor[{x.dtype.title}]."
        )
    return x


def _reduced(op: str, abstract: Abstract, attrs: Attrs) -> TensorType:
    """Return the type of the operand of a reducing collective."""
    if attrs["op"] not in REDUCTIONS:
        raise ScriptValueError(f"For '{op}', the 'op' must be one of {list(REDUCTIONS)}, but got {attrs['op']}.")
    x = typed(op, abstract, _REDUCED)
    if x.dtype.name == "complex64" and attrs["op"] != "sum":
        raise ScriptTypeError(f"For '{op}', complex64 can be summed only, but got 'op' {attrs['op']!r}.")
    return x


def _parts(op: str, x: TensorType, attrs: Attrs) -> TensorType:
    """Return the type of one of `rank_size` parts of axis 0."""
    size = attrs["rank_size"]
    if not x.shape:
        raise ScriptValueError("the shape is empty", where=op)
    if x.shape[0] % size:
        raise ScriptValueError(
            "the first dimension for 'input_shape' must be divided by 'rank_size', but got input_shape[0]: "
            f"{x.shape[0]}, rank_size: {size}",
            where=op,
        )
    return output(x.dtype, (x.shape[0] // size, *x.shape[1:]))


def _whole(op: str, x: TensorType, attrs: Attrs) -> TensorType:
    """Return the type of `rank_size` concatenated tensors."""
    if not x.shape:
        raise ScriptValueError(f"For '{op}', the 'x shape' must be int and must > 0, but got '0' with type 'int'.")
    return output(x.dtype, (x.shape[0] * attrs["rank_size"], *x.shape[1:]))


def counts_of(op: str, abstract: Abstract, name: str, length: int = 0) -> tuple[int, ...]:
    """Return the number of elements for or from each rank, which must be constant; `length` ranks, if known."""
    if isinstance(abstract, TensorType):
        raise UnsupportedError(f"a tensor as {name}: its values decide a shape", where=op, allowed=["a tuple of int"])
    value = value_of(op, abstract, name)
    if isinstance(value, tuple | list) and value and isinstance(value[0], tuple | list):
        counts = tuple(int(n) for row in value for n in row)
    else:
        counts = ints_of(op, abstract, name)
    if len(counts) != (length or len(counts)) or min(counts, default=-1) < 0:
        wanted = f"{length} numbers" if length else "numbers"
        raise ScriptValueError(f"For '{op}', the '{name}' must have {wanted} >= 0, but got {list(counts)}.")
    return counts


def flat_of(op: str, abstract: Abstract, counts: Sequence[int], name: str, kinds: Sequence[str] = MOVED) -> TensorType:
    """Return the type of the operand of a collective with counts: a vector with the sum of the counts as its length."""
    x = typed(op, abstract, kinds)
    if len(x.shape) != 1:
        raise ScriptValueError(f"For '{op}', the 'input_x' must have one dimension, but got shape {list(x.shape)}.")
    if sum(counts) != x.shape[0]:
        raise ScriptValueError(
            f"For '{op}', the sum of '{name}' must be the number of elements of 'input_x', but got {list(counts)} for "
            f"shape {list(x.shape)}."
        )
    return x


def empty_as_scalar(elements: int) -> tuple[int, ...]:
    """Return the shape of a result of that many elements; an empty result is a scalar without meaning."""
    return (elements,) if elements else ()


def _infer_all_reduce(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _reduced("AllReduce", abstracts[0], attrs)
    return output(x.dtype, x.shape)


def _infer_reduce(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _reduced("Reduce", abstracts[0], attrs)
    return output(x.dtype, x.shape if attrs["dest_rank"] == attrs["_rank"] else (1,))


def _infer_reduce_scatter(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return _parts("ReduceScatter", _reduced("ReduceScatter", abstracts[0], attrs), attrs)


def _infer_all_gather(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return _whole("AllGather", typed("AllGather", abstracts[0]), attrs)


def _infer_gather(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = typed("CollectiveGather", abstracts[0])
    whole = _whole("CollectiveGather", x, attrs)
    return whole if attrs["dest_rank"] == attrs["rank_id"] else output(x.dtype, (1,))


def _infer_scatter(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return _parts("CollectiveScatter", typed("CollectiveScatter", abstracts[0]), attrs)


def _infer_broadcast(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    tensors = tensors_in("Broadcast", abstracts[0], "input_x")
    for tensor in tensors:
        typed("Broadcast", tensor)
    return TupleType(items=tuple(output(tensor.dtype, tensor.shape) for tensor in tensors))


def _infer_all_gather_v(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    counts = counts_of("AllGatherV", abstracts[1], "output_split_sizes", attrs["rank_size"])
    x = flat_of("AllGatherV", abstracts[0], counts[attrs["rank_id"] :][:1], "output_split_sizes")
    return output(x.dtype, empty_as_scalar(sum(counts)))


def _infer_reduce_scatter_v(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    counts = counts_of("ReduceScatterV", abstracts[1], "input_split_sizes", attrs["rank_size"])
    _reduced("ReduceScatterV", abstracts[0], attrs)
    x = flat_of("ReduceScatterV", abstracts[0], counts, "input_split_sizes", _REDUCED)
    return output(x.dtype, empty_as_scalar(counts[attrs["rank_id"]]))


def _infer_barrier(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return NoneType()


# ------------------------------------------------------------------------------------------- kernels of one rank
def same(input_x: Any, *counts: Any, **attrs: Any) -> Any:
    """Return a copy of the input: a collective of one rank."""
    return np.array(input_x)


def each(input_x: Sequence[Any], **attrs: Any) -> Any:
    """Return copies of several tensors."""
    return tuple(np.array(x) for x in input_x)


def sized(input_x: Any, *counts: Any, **attrs: Any) -> Any:
    """Return a copy of a vector; an empty one becomes a scalar."""
    return np.array(input_x) if np.size(input_x) else np.zeros((), input_x.dtype)


def _nothing(**attrs: Any) -> Any:
    return ()


# ------------------------------------------------------------------------------------------------------ gradients
def _grad_all_reduce(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The gradient of a sum is summed too; that of a maximum or minimum goes to the rank with the value."""
    if attrs["op"] == "prod":
        slope = b.emit("AllReduce", b.emit("Mul", dout, out), op="sum", group=attrs["group"])
        return [b.emit("RealDiv", slope, operands[0])]
    slope = b.emit("AllReduce", dout, op="sum", group=attrs["group"])
    if attrs["op"] == "sum":
        return [slope]
    chosen = b.emit("Cast", b.emit("Equal", operands[0], out), dout.abstract.dtype)
    return [b.emit("Mul", slope, chosen)]


def _summed(attrs: Attrs) -> None:
    if attrs["op"] != "sum":
        raise ScriptRuntimeError("The reducescatter bprop only support ReduceOp.SUM until now.")


def _grad_all_gather(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return [b.emit("ReduceScatter", dout, op="sum", group=attrs["group"], rank_size=attrs["rank_size"])]


def _grad_reduce_scatter(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    _summed(attrs)
    return [b.emit("AllGather", dout, group=attrs["group"], rank_size=attrs["rank_size"])]


def _grad_broadcast(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Each rank keeps its own gradient, as in the vendor's rule."""
    return [tuple(part_or_zeros(b, dout, at, out) for at in range(len(out.abstract.items)))]


def _spread(b: GradBuilder, like: TensorType, dout: Any, attrs: Attrs, *, mine: bool) -> Any:
    """Broadcast the gradient of the destination to all ranks."""
    source = dout if mine else np.zeros(like.shape, like.dtype.numpy)
    return b.item(b.emit("Broadcast", (source,), root_rank=attrs["dest_rank"], group=attrs["group"]), 0)


def _grad_reduce(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    spread = _spread(b, operands[0].abstract, dout, attrs, mine=attrs["dest_rank"] == attrs["_rank"])
    return [spread if attrs["dest_rank"] == attrs["_rank"] else after(b, spread, dout)]


def after(b: GradBuilder, value: Any, other: Any) -> Any:
    """Return a value that depends on another one, so that a rank without a result of its own waits for it."""
    return b.emit("Depend", value, other)


def _grad_gather(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, size, rank = operands[0].abstract, attrs["rank_size"], attrs["rank_id"]
    whole = output(x.dtype, (x.shape[0] * size, *x.shape[1:]))
    spread = _spread(b, whole, dout, attrs, mine=attrs["dest_rank"] == rank)
    if attrs["dest_rank"] != rank:
        spread = after(b, spread, dout)
    return [spread if size == 1 else b.item(b.emit("Split", spread, 0, size), rank)]


def _grad_scatter(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    shared = {name: attrs[name] for name in ("group", "rank_id", "rank_size")}
    gathered = b.emit("CollectiveGather", dout, dest_rank=attrs["src_rank"], **shared)
    if attrs["rank_id"] == attrs["src_rank"]:
        return [gathered]
    x = operands[0].abstract
    return [after(b, np.zeros(x.shape, x.dtype.numpy), gathered)]


def as_vector(dout: Any) -> Any:
    """Return the gradient of a vector; that of an empty result, a scalar, becomes an empty vector."""
    kind = dout.abstract
    return dout if kind.shape else np.zeros((0,), kind.dtype.numpy)


def refilled(b: GradBuilder, gradient: Any, like: Any) -> Any:
    """Return a gradient in the shape of its operand, which may be empty."""
    kind = like.abstract
    return gradient if prod(kind.shape) else b.emit("Depend", np.zeros(kind.shape, kind.dtype.numpy), gradient)


def _grad_all_gather_v(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, counts = operands
    return [refilled(b, b.emit("ReduceScatterV", dout, counts, op="sum", **attrs), x), None]


def _grad_reduce_scatter_v(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    _summed(attrs)
    counts = operands[1]
    return [b.emit("AllGatherV", as_vector(dout), counts, **{n: v for n, v in attrs.items() if n != "op"}), None]


def collective(name: str, infer: Infer, kernel: Kernel, grad: Grad | None, attrs: Attrs, **rest: Any) -> OpDef:
    """Return the definition of a collective."""
    given = {"operands": ("input_x",), "fixed": _NOT_ELIMINATED, **rest}
    return OpDef(name=name, infer=infer, kernel=kernel, grad=grad, attrs=attrs, engine="hccl", **given)


SHARED = {"group": WORLD}
SIZED = {"group": WORLD, "rank_size": 1}
PLACED = {"group": WORLD, "rank_size": 1, "rank_id": 0}

OPS = (
    collective(
        "AllReduce",
        _infer_all_reduce,
        same,
        _grad_all_reduce,
        {"op": "sum", **SHARED},
        fixed={"fusion": 0, "index": 0, **_NOT_ELIMINATED},
    ),
    collective(
        "AllGather",
        _infer_all_gather,
        same,
        _grad_all_gather,
        SIZED,
        fixed={"fusion": 0, "mean_flag": False, **_NOT_ELIMINATED},
    ),
    collective(
        "ReduceScatter",
        _infer_reduce_scatter,
        same,
        _grad_reduce_scatter,
        {"op": "sum", **SIZED},
        fixed={"fusion": 0, **_NOT_ELIMINATED},
    ),
    collective("Broadcast", _infer_broadcast, each, _grad_broadcast, {"root_rank": 0, **SHARED}),
    collective(
        "Reduce", _infer_reduce, same, _grad_reduce, {"dest_rank": 0, "op": "sum", **SHARED, "_rank": 0}, fixed={}
    ),
    collective(
        "AllGatherV",
        _infer_all_gather_v,
        sized,
        _grad_all_gather_v,
        PLACED,
        operands=("input_x", "output_split_sizes"),
        fixed={"mean_flag": False},
    ),
    collective(
        "ReduceScatterV",
        _infer_reduce_scatter_v,
        sized,
        _grad_reduce_scatter_v,
        {"op": "sum", **PLACED},
        operands=("input_x", "input_split_sizes"),
        fixed={},
    ),
    collective("CollectiveScatter", _infer_scatter, same, _grad_scatter, {"src_rank": 0, **PLACED}, fixed={}),
    collective("CollectiveGather", _infer_gather, same, _grad_gather, {"dest_rank": 0, **PLACED}, fixed={}),
    collective("Barrier", _infer_barrier, _nothing, None, SHARED, operands=(), fixed={}, side_effect="mem", stop=True),
)
