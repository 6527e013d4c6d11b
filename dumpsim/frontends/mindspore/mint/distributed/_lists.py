"""The collectives of ``mindspore.mint.distributed`` with one tensor per rank in a list."""

from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.communication._handle import (
    CommHandle,
    check_all_tensors,
    check_async,
    check_int,
    check_reduction,
    check_same_dtype,
    check_tensor,
)
from dumpsim.frontends.mindspore.communication.comm_func import in_place
from dumpsim.frontends.mindspore.communication.management import get_group_rank_from_world_rank
from dumpsim.frontends.mindspore.mint.distributed import _exchange
from dumpsim.frontends.mindspore.mint.distributed._groups import group_name
from dumpsim.frontends.mindspore.mint.distributed._tensors import REDUCTIONS, SUM, reduction_of
from dumpsim.frontends.mindspore.ops.operations import comm_ops

__all__ = ["all_gather", "all_to_all", "gather", "reduce_scatter", "scatter"]


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Gather each rank's tensor into the list; the shapes may differ."""
    check_all_tensors(tensor_list)
    check_same_dtype(tensor_list)
    check_tensor(tensor, "all_gather_into_tensor")
    name = group_name(group)
    check_async(async_op)
    _exchange.check_list(tensor_list, management.get_group_size(name))
    _exchange.check_own(tensor, tensor_list, management.get_rank(name), "all_gather")
    counts = tuple(one.size for one in tensor_list)
    return in_place(comm_ops.AllGatherV(name), (tensor.reshape((-1,)), counts), tensor_list, async_op)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: str = SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Reduce the lists of the ranks, and write this rank's element to `output`."""
    check_all_tensors(input_list)
    check_same_dtype(input_list)
    check_tensor(output, "reduce_scatter", "output")
    name = group_name(group)
    check_async(async_op)
    check_reduction(op, "reduce_scatter", REDUCTIONS)
    _exchange.check_list(input_list, management.get_group_size(name))
    _exchange.check_own(output, input_list, management.get_rank(name), "reduce_scatter")
    folded, average = reduction_of(op, name)
    counts = tuple(one.size for one in input_list)
    operands = (_exchange.flat(input_list), counts)
    return in_place(comm_ops.ReduceScatterV(folded, name), operands, [output], async_op, average=average)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor], src: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Write this rank's element of the list on the world rank `src` to `tensor`."""
    check_all_tensors(scatter_list)
    _exchange.check_same(scatter_list)
    check_tensor(tensor, "scatter_tensor", "output")
    check_int(src, "scatter_tensor", "src")
    name = group_name(group)
    check_async(async_op)
    root = get_group_rank_from_world_rank(src, name)
    primitive = comm_ops.CollectiveScatter(root, name)
    if root == primitive.rank_id:
        _exchange.check_elements(scatter_list, tensor, primitive.rank_size)
        whole = _exchange.flat(scatter_list)
    else:
        whole = _exchange.flat([tensor] * primitive.rank_size)  # only the shape matters
    return in_place(primitive, (whole,), [tensor], async_op)


def gather(
    tensor: Tensor, gather_list: list[Tensor], dst: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Gather each rank's tensor into the list on the world rank `dst`."""
    check_tensor(tensor, "gather")
    check_all_tensors(gather_list)
    _exchange.check_same(gather_list)
    check_int(dst, "gather", "dst")
    name = group_name(group)
    check_async(async_op)
    root = get_group_rank_from_world_rank(dst, name)
    primitive = comm_ops.CollectiveGather(root, name)
    is_root = root == primitive.rank_id
    if is_root:
        _exchange.check_elements(gather_list, tensor, primitive.rank_size)
    return in_place(primitive, (tensor.reshape((-1,)),), gather_list if is_root else [], async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Send one tensor to each rank, and receive one tensor from each rank into the other list."""
    name = group_name(group)
    check_async(async_op)
    for tensors in (input_tensor_list, output_tensor_list):
        check_all_tensors(tensors)
    for tensors in (input_tensor_list, output_tensor_list):
        check_same_dtype(tensors)
    ranks = management.get_group_size(name)
    _exchange.check_list(input_tensor_list, ranks)
    _exchange.check_list(output_tensor_list, ranks)
    sends = tuple(tensor.size for tensor in input_tensor_list)
    receives = tuple(tensor.size for tensor in output_tensor_list)
    operands = (_exchange.flat(input_tensor_list), sends, receives)
    return in_place(comm_ops.AlltoAllV(name), operands, output_tensor_list, async_op)
