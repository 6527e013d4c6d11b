"""The collectives of ``mindspore.mint.distributed`` with one tensor per rank."""

from typing import Any

from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore._capture.dispatch import finish
from dumpsim.frontends.mindspore.common._operandtypes import expect
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.communication._handle import (
    CommHandle,
    check_all_tensors,
    check_async,
    check_int,
    check_reduction,
    check_tensor,
    even_sizes,
    numel,
)
from dumpsim.frontends.mindspore.communication.comm_func import in_place
from dumpsim.frontends.mindspore.communication.management import get_group_rank_from_world_rank
from dumpsim.frontends.mindspore.mint.distributed._groups import group_name
from dumpsim.frontends.mindspore.ops.operations import comm_ops
from dumpsim.ops.rules import vector

__all__ = [
    "REDUCTIONS",
    "SUM",
    "all_gather_into_tensor",
    "all_gather_into_tensor_uneven",
    "all_reduce",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "reduce",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven",
    "reduction_of",
]

SUM = comm_ops.ReduceOp.SUM
REDUCTIONS = ("sum", "prod", "min", "max", "avg")


def reduction_of(op: str, group: str) -> tuple[str, int]:
    """Return the reduction over the ranks, and the divisor of its result, 0 for none."""
    return ("sum", management.get_group_size(group)) if op == "avg" else (op, 0)


def _check_shape(owner: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tensor.ndim != len(shape):
        raise ScriptValueError(
            f"For '{owner}', output_tensor shape size must be equal to {len(shape)}, but got {tensor.ndim}"
        )
    if tuple(tensor.shape) != shape:
        raise ScriptValueError(
            f"For '{owner}', output_tensor shape must be equal to {vector(shape)}, but got {vector(tensor.shape)}"
        )


def _check_dtype(owner: str, tensor: Tensor, other: Tensor) -> None:
    if tensor.dtype != other.dtype:
        raise ScriptValueError(
            f"For '{owner}', output_tensor type {tensor.dtype} must be equal to input_tensor type {other.dtype}"
        )


def all_reduce(tensor: Tensor, op: str = SUM, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Reduce the ranks' tensors, in place.

    Parameters
    ----------
    tensor : Tensor
    op : {"sum", "prod", "min", "max", "avg"}
    group : str, optional
    async_op : bool
        Return a handle without waiting for the collective.
    """
    check_tensor(tensor, "all_reduce")
    check_reduction(op, "all_reduce", REDUCTIONS)
    name = group_name(group)
    check_async(async_op)
    folded, average = reduction_of(op, name)
    return in_place(comm_ops.AllReduce(folded, name), (tensor,), [tensor], async_op, average=average)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Join the ranks' tensors along the first axis into `output_tensor`."""
    check_tensor(input_tensor, "all_gather_into_tensor")
    check_tensor(output_tensor, "all_gather_into_tensor", "output")
    name = group_name(group)
    check_async(async_op)
    primitive = comm_ops.AllGather(name)
    shape = tuple(input_tensor.shape)
    expected = (shape[0] * primitive.rank_size, *shape[1:]) if shape else (primitive.rank_size,)
    _check_shape("DistCommAllGatherIntoTensor", output_tensor, expected)
    _check_dtype("DistCommAllGatherIntoTensor", output_tensor, input_tensor)
    return in_place(primitive, (input_tensor if shape else input_tensor.reshape((1,)),), [output_tensor], async_op)


def all_gather_into_tensor_uneven(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Join tensors of different lengths along the first axis into `output`.

    Parameters
    ----------
    output, input : Tensor
    output_split_sizes : list of int, optional
        The length of each rank's tensor; equal lengths if None.
    group : str, optional
    async_op : bool
    """
    name = group_name(group)
    check_async(async_op)
    primitive = comm_ops.AllGatherV(name)
    owner = "DistCommAllGatherIntoTensorUneven"
    expect(owner, output, input, output_split_sizes or [], primitive.rank_size, name, async_op)
    _check_dtype(owner, output, input)
    sizes = even_sizes(output_split_sizes, output.shape[0], primitive.rank_size, "output")
    _check_parts("all_gather_into_tensor_uneven", sizes, primitive, output, input)
    counts = tuple(size * numel(output.shape[1:]) for size in sizes)
    return in_place(primitive, (input.reshape((-1,)), counts), [output], async_op)


def _check_parts(owner: str, sizes: tuple[int, ...], primitive: Any, whole: Tensor, part: Tensor) -> None:
    """Check that parts make up the whole."""
    if len(sizes) != primitive.rank_size or sum(sizes) != whole.shape[0]:
        raise ScriptValueError(
            f"parts of {list(sizes)} rows on {primitive.rank_size} ranks do not add up to {whole.shape[0]} rows",
            where=owner,
        )
    expected = (sizes[primitive.rank], *whole.shape[1:])
    if tuple(part.shape) != expected:
        raise ScriptValueError(f"the part has the shape {tuple(part.shape)} and not {expected}", where=owner)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Reduce the ranks' tensors, and write this rank's part of the first axis to `output`."""
    check_tensor(input, "reduce_scatter_tensor")
    check_tensor(output, "reduce_scatter_tensor", "output")
    check_reduction(op, "reduce_scatter_tensor", REDUCTIONS)
    name = group_name(group)
    check_async(async_op)
    folded, average = reduction_of(op, name)
    primitive = comm_ops.ReduceScatter(folded, name)
    shape = tuple(input.shape)
    if not shape or shape[0] % primitive.rank_size:
        raise ScriptValueError(
            "the first dimension for 'input_shape' must be divided by 'rank_size', but got input_shape[0]: "
            f"{shape[0] if shape else 'none'}, rank_size: {primitive.rank_size}"
        )
    expected = (shape[0] // primitive.rank_size, *shape[1:])
    _check_shape("DistCommReduceScatterTensor", output, expected)
    _check_dtype("DistCommReduceScatterTensor", output, input)
    return in_place(primitive, (input,), [output], async_op, average=average)


def reduce_scatter_tensor_uneven(
    output: Tensor,
    input: Tensor,
    input_split_sizes: list[int] | None = None,
    op: str = SUM,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Reduce the ranks' tensors, and write this rank's part of the first axis to `output`; sizes may differ."""
    check_reduction(op, "reduce_scatter_tensor_uneven", ("sum", "min", "max", "avg"))
    name = group_name(group)
    check_async(async_op)
    folded, average = reduction_of(op, name)
    primitive = comm_ops.ReduceScatterV(folded, name)
    owner = "DistCommReduceScatterTensorUneven"
    expect(owner, output, input, input_split_sizes or [], primitive.rank_size, op, name, async_op)
    _check_dtype(owner, output, input)
    sizes = even_sizes(input_split_sizes, input.shape[0], primitive.rank_size, "input")
    _check_parts("reduce_scatter_tensor_uneven", sizes, primitive, input, output)
    counts = tuple(size * numel(input.shape[1:]) for size in sizes)
    return in_place(primitive, (input.reshape((-1,)), counts), [output], async_op, average=average)


def reduce(
    tensor: Tensor, dst: int, op: str = SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Reduce the ranks' tensors, in place on the world rank `dst`."""
    check_tensor(tensor, "reduce")
    check_int(dst, "reduce", "dst")
    check_reduction(op, "reduce", REDUCTIONS)
    name = group_name(group)
    check_async(async_op)
    folded, average = reduction_of(op, name)
    root = get_group_rank_from_world_rank(dst, name)
    is_root = root == management.get_rank(name)
    primitive = comm_ops.Reduce(root, folded, name)
    return in_place(primitive, (tensor,), [tensor] if is_root else [], async_op, average=average)


def broadcast(tensor: Tensor, src: int, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Broadcast the tensor of the world rank `src`, in place."""
    check_tensor(tensor, "broadcast")
    check_int(src, "broadcast", "src")
    name = group_name(group)
    check_async(async_op)
    primitive = comm_ops.Broadcast(get_group_rank_from_world_rank(src, name), name)
    return in_place(primitive, ((tensor,),), [tensor], async_op)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> CommHandle | None:
    """Wait for all ranks of a group."""
    name = group_name(group)
    check_async(async_op)
    handle = in_place(comm_ops.Barrier(name), (), [], async_op)
    if handle is None:
        finish()
    return handle


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Exchange parts of the first axis between all ranks, into `output`.

    Parameters
    ----------
    output, input : Tensor
    output_split_sizes, input_split_sizes : list of int, optional
        Numbers of rows received from, and sent to, each rank; equal parts if None.
    group : str, optional
    async_op : bool
    """
    check_all_tensors([input])
    check_all_tensors([output])
    name = group_name(group)
    check_async(async_op)
    ranks = management.get_group_size(name)
    lists = (sizes if isinstance(sizes, (list, tuple)) else [1] for sizes in (input_split_sizes, output_split_sizes))
    expect("DistCommAllToAllVSingle", output, input, name, *lists, ranks, False, async_op)
    _check_dtype("DistCommAllToAllVSingle", output, input)
    given = even_sizes(input_split_sizes, input.shape[0], ranks, "input")
    gotten = even_sizes(output_split_sizes, output.shape[0], ranks, "output")
    sends = tuple(size * numel(input.shape[1:]) for size in given)
    receives = tuple(size * numel(output.shape[1:]) for size in gotten)
    if sum(receives) != output.size:
        raise ScriptValueError(
            f"parts of {list(gotten)} rows do not add up to {output.shape[0]} rows", where="all_to_all_single"
        )
    return in_place(comm_ops.AlltoAllV(name), (input.reshape((-1,)), sends, receives), [output], async_op)
