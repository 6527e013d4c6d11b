"""``mindspore.mint.distributed.distributed``: groups, and collectives that write into their arguments."""

import hashlib
from datetime import timedelta
from typing import Any

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._capture.dispatch import finish
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.communication._handle import (
    CommHandle,
    Work,
    check_all_tensors,
    check_async,
    check_group,
    check_int,
    check_reduction,
    check_same_dtype,
    check_tensor,
    even_sizes,
    numel,
)
from dumpsim.frontends.mindspore.communication._options import GroupOptions
from dumpsim.frontends.mindspore.communication._state import communication_state
from dumpsim.frontends.mindspore.communication.comm_func import check_tag, in_place, kind_of, place_of
from dumpsim.frontends.mindspore.communication.comm_func import refuse_in_graph as _refuse_in_graph
from dumpsim.frontends.mindspore.communication.management import GlobalComm, get_group_rank_from_world_rank
from dumpsim.frontends.mindspore.mint.distributed import _exchange
from dumpsim.frontends.mindspore.ops.operations import comm_ops
from dumpsim.world.context import current

__all__ = [
    "P2POp",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_into_tensor_uneven",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]

_SUM = comm_ops.ReduceOp.SUM
_REDUCTIONS = ("sum", "prod", "min", "max", "avg")


def _group(group: Any, function: str = "") -> str:
    """Return the name of a group, of all ranks where None."""
    if group is None:
        name: str = GlobalComm.WORLD_COMM_GROUP
        return name
    check_group(group, f"For '{function}', the argument 'group' must be type of string" if function else _GROUP_TEXT)
    checked: str = group
    return checked


_GROUP_TEXT = "The argument 'group' must be type of string"


# ------------------------------------------------------------------- groups
def is_available() -> bool:
    """Return whether the module can be used: always."""
    return True


def is_initialized() -> bool:
    """Return whether this rank has entered the job.

    Examples
    --------
    >>> is_initialized()
    False
    """
    return communication_state().entered


def init_process_group(
    backend: str = "hccl",
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Enter the job.

    Parameters
    ----------
    backend : {"hccl"}
    init_method : str, optional
        ``tcp://ADDRESS:PORT``: who launches the ranks brings them together, so that the address has no effect.
    timeout : timedelta, optional
        No effect: the ranks of a job are there, or the launcher says who is missing.
    world_size, rank : int
        Those that the launcher has given; required with `init_method`.
    store : None
        A TCPStore is not emulated.
    group_name, pg_options, device_id
        As in MindSpore, which ignores the last two.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As MindSpore raises, and for a rank or size that the launcher has not given.
    """
    _check_types(init_method=(init_method, str), timeout=(timeout, timedelta), world_size=(world_size, int))
    _check_types(rank=(rank, int), group_name=(group_name, str))
    for name, value in (("pg_options", pg_options), ("device_id", device_id)):
        if value is not None:
            logger.warning(f"{name} is ignored, setting is invalid")
    if backend != "hccl":
        raise ScriptValueError("Only support hccl now, please setting backend to hccl or using default value")
    if init_method is not None and store is not None:
        raise ScriptValueError("Only one of init_method and store is supported.")
    if store is not None:
        raise UnsupportedError("a TCPStore", where="init_process_group.store", nearest="init_method")
    if init_method is not None:
        if world_size <= 0:
            raise ScriptValueError("Specified world_size must be a positive integer.")
        if rank < 0:
            raise ScriptValueError("Specified rank must be a non-negative integer.")
        if not init_method.startswith("tcp://"):
            raise ScriptRuntimeError(f"Failed to parse TCP URL from 'init_method': {init_method}")
        given = current()
        if (rank, world_size) != (given.rank, given.size):
            raise ScriptValueError(
                f"rank {rank} of {world_size}, but the launcher has started rank {given.rank} of {given.size}",
                where="init_process_group",
                nearest="dumpsim msrun",
            )
    management.init(backend)
    size = management.get_group_size()
    if world_size not in (-1, size):
        raise ScriptValueError(f"world_size is wrong, please using default value or setting:  {size}")


def _check_types(**values: tuple[Any, type]) -> None:
    for name, (value, kind) in values.items():
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ScriptTypeError(f"The parameter '{name}' must be {kind}, but got {type(value)}")


def destroy_process_group(group: str | None = None) -> None:
    """Forget a group, or leave the job."""
    if group is None or group == GlobalComm.WORLD_COMM_GROUP:
        finish()
        management.release()
        return
    check_group(group, "For 'destroy_group', the argument 'group' must be type of string or None")
    management.destroy_group(group)


def get_rank(group: str | None = None) -> int:
    """Return the rank in a group, -1 for a group that does not exist here."""
    try:
        return management.get_rank(_group(group, "get_rank"))
    except RuntimeError as error:
        logger.warning(str(error))
        return -1


def get_world_size(group: str | None = None) -> int:
    """Return the number of ranks of a group, -1 for a group that does not exist here."""
    try:
        return management.get_group_size(_group(group, "get_world_size"))
    except RuntimeError as error:
        logger.warning(str(error))
        return -1


def new_group(
    ranks: list[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: GroupOptions | None = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> str:
    """Create a group of ranks in ascending order and return its name; "" where this rank is not one of them.

    Parameters
    ----------
    ranks : list of int, optional
        The group of all ranks where None.
    backend : {"hccl", "mccl"}, optional
        Part of the name.
    pg_options : GroupOptions, optional
    timeout, use_local_synchronization, group_desc
        Ignored, as in MindSpore.
    """
    if ranks is None:
        return _group(None)
    if not isinstance(ranks, list):
        raise ScriptTypeError(f"ranks must be list, but got {type(ranks)}")
    members = sorted(ranks)
    name = "hccl" if backend is None else backend
    if not isinstance(name, str) or name not in ("hccl", "mccl"):
        raise ScriptTypeError(f"the input backend must be hccl or mccl, but got {name}")
    digest = hashlib.sha1("_".join(map(str, members)).encode(), usedforsecurity=False).hexdigest()
    group = f"{name}_{len(members)}_{digest}"
    if pg_options is not None and not isinstance(pg_options, GroupOptions):
        raise ScriptTypeError(f"pg_options must be type GroupOptions, but got {type(pg_options)}")
    try:
        management.create_group(group, members, pg_options)
    except ScriptRuntimeError as error:
        logger.warning(str(error))
        return ""
    return group


def get_backend(group: str | None = None) -> str:
    """Return the back end of a group, as its name says."""
    if group is None:
        return "hccl"
    check_group(group, "For 'get_backend', the argument 'group' must be type of string or None")
    backend: str = GlobalComm.BACKEND
    return next((name for name in ("hccl", "mccl") if name in group), backend)


def get_global_rank(group: str | None, group_rank: int) -> int:
    """Return the rank in the world of a rank in a group."""
    if not isinstance(group_rank, int):
        raise ScriptTypeError(f"The group_rank argument must be integer, but got {type(group_rank)}.")
    if group is None or group == GlobalComm.WORLD_COMM_GROUP:
        return group_rank
    check_group(group, "For 'get_global_rank', the argument 'group' must be type of string or None")
    return management.get_world_rank_from_group_rank(group, group_rank)


def get_group_rank(group: str | None, global_rank: int) -> int:
    """Return the rank in a group of a rank in the world."""
    if not isinstance(global_rank, int):
        raise ScriptTypeError(f"The global_rank argument must be integer, but got {type(global_rank)}.")
    name = _group(group, "get_group_rank_from_world_rank")
    return global_rank if name == GlobalComm.WORLD_COMM_GROUP else place_of(global_rank, name)


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """Return the ranks of a group in the world."""
    if group is not None:
        check_group(group, "For 'get_process_group_ranks', the argument 'group' must be type of string or None")
    return management.get_process_group_ranks(_group(group))


# -------------------------------------------------------------- collectives
def _folded(op: str, group: str) -> tuple[str, int]:
    """The reduction of the ranks, and what its result is divided by; 0: by nothing."""
    return ("sum", management.get_group_size(group)) if op == "avg" else (op, 0)


def _check_shape(owner: str, name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        raise ScriptValueError(
            f"For '{owner}', {name} shape must be equal to {shape}, but got {tuple(tensor.shape)}", where=owner
        )


def _check_dtype(owner: str, tensor: Tensor, other: Tensor) -> None:
    if tensor.dtype != other.dtype:
        raise ScriptTypeError(f"For {owner}, the output dtype should be {other.dtype}, but got {tensor.dtype}.")


def all_reduce(tensor: Tensor, op: str = _SUM, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Reduce the ranks' tensors to one, in place.

    Parameters
    ----------
    tensor : Tensor
    op : {"sum", "prod", "min", "max", "avg"}
    group : str, optional
    async_op : bool
        Return a handle before the collective is done.
    """
    check_tensor(tensor, "all_reduce")
    check_reduction(op, "all_reduce", _REDUCTIONS)
    name = _group(group)
    check_async(async_op)
    folded, average = _folded(op, name)
    return in_place(comm_ops.AllReduce(folded, name), (tensor,), [tensor], async_op, average=average)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Join the ranks' tensors along the first axis into `output_tensor`."""
    check_tensor(input_tensor, "all_gather_into_tensor")
    check_tensor(output_tensor, "all_gather_into_tensor", "output")
    name = _group(group)
    check_async(async_op)
    primitive = comm_ops.AllGather(name)
    shape = tuple(input_tensor.shape)
    expected = (shape[0] * primitive.rank_size, *shape[1:]) if shape else (primitive.rank_size,)
    _check_shape("DistCommAllGatherIntoTensor", "output_tensor", output_tensor, expected)
    _check_dtype("all_gather_into_tensor", output_tensor, input_tensor)
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
        The length of each rank's tensor; equal ones where None.
    group : str, optional
    async_op : bool
    """
    name = _group(group)
    check_async(async_op)
    primitive = comm_ops.AllGatherV(name)
    sizes = even_sizes(output_split_sizes, output.shape[0], primitive.rank_size, "output")
    _check_parts("all_gather_into_tensor_uneven", sizes, primitive, output, input)
    counts = tuple(size * numel(output.shape[1:]) for size in sizes)
    return in_place(primitive, (input.reshape((-1,)), counts), [output], async_op)


def _check_parts(owner: str, sizes: tuple[int, ...], primitive: Any, whole: Tensor, part: Tensor) -> None:
    """Refuse parts that do not make up the whole."""
    if len(sizes) != primitive.rank_size or sum(sizes) != whole.shape[0]:
        raise ScriptValueError(
            f"parts {list(sizes)} of {primitive.rank_size} ranks do not make up {whole.shape[0]} rows", where=owner
        )
    _check_shape(owner, "the part", part, (sizes[primitive.rank], *whole.shape[1:]))


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = _SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Reduce the ranks' tensors, and write this rank's part of the first axis into `output`."""
    check_tensor(input, "reduce_scatter_tensor")
    check_tensor(output, "reduce_scatter_tensor", "output")
    check_reduction(op, "reduce_scatter_tensor", _REDUCTIONS)
    name = _group(group)
    check_async(async_op)
    folded, average = _folded(op, name)
    primitive = comm_ops.ReduceScatter(folded, name)
    shape = tuple(input.shape)
    if not shape or shape[0] % primitive.rank_size:
        raise ScriptValueError(
            "the first dimension for 'input_shape' must be divided by 'rank_size', but got input_shape[0]: "
            f"{shape[0] if shape else 'none'}, rank_size: {primitive.rank_size}"
        )
    expected = (shape[0] // primitive.rank_size, *shape[1:])
    _check_shape("DistCommReduceScatterTensor", "output_tensor", output, expected)
    _check_dtype("reduce_scatter_tensor", output, input)
    return in_place(primitive, (input,), [output], async_op, average=average)


def reduce_scatter_tensor_uneven(
    output: Tensor,
    input: Tensor,
    input_split_sizes: list[int] | None = None,
    op: str = _SUM,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Reduce the ranks' tensors, and write this rank's part of the first axis, of its own size, into `output`."""
    check_reduction(op, "reduce_scatter_tensor_uneven", ("sum", "min", "max", "avg"))
    name = _group(group)
    check_async(async_op)
    folded, average = _folded(op, name)
    primitive = comm_ops.ReduceScatterV(folded, name)
    sizes = even_sizes(input_split_sizes, input.shape[0], primitive.rank_size, "input")
    _check_parts("reduce_scatter_tensor_uneven", sizes, primitive, input, output)
    counts = tuple(size * numel(input.shape[1:]) for size in sizes)
    return in_place(primitive, (input.reshape((-1,)), counts), [output], async_op, average=average)


def reduce(
    tensor: Tensor, dst: int, op: str = _SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Reduce the ranks' tensors to one, in place on the rank `dst` of the world."""
    check_tensor(tensor, "reduce")
    check_int(dst, "reduce", "dst")
    check_reduction(op, "reduce", _REDUCTIONS)
    name = _group(group)
    check_async(async_op)
    folded, average = _folded(op, name)
    place = get_group_rank_from_world_rank(dst, name)
    mine = place == management.get_rank(name)
    primitive = comm_ops.Reduce(place, folded, name)
    return in_place(primitive, (tensor,), [tensor] if mine else [], async_op, average=average)


def broadcast(tensor: Tensor, src: int, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Take the tensor of the rank `src` of the world, in place."""
    check_tensor(tensor, "broadcast")
    check_int(src, "broadcast", "src")
    name = _group(group)
    check_async(async_op)
    primitive = comm_ops.Broadcast(get_group_rank_from_world_rank(src, name), name)
    return in_place(primitive, ((tensor,),), [tensor], async_op)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> CommHandle | None:
    """Wait for all ranks of a group."""
    name = _group(group)
    check_async(async_op)
    handle = in_place(comm_ops.Barrier(name), (), [], async_op)
    if handle is None:
        finish()
    return handle


# --------------------------------------------------------- lists of tensors
def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Take each rank's tensor into the list; they may differ in shape."""
    check_all_tensors(tensor_list)
    check_same_dtype(tensor_list)
    check_tensor(tensor, "all_gather_into_tensor")
    name = _group(group)
    check_async(async_op)
    _exchange.check_list(tensor_list, management.get_group_size(name))
    _exchange.check_own(tensor, tensor_list, management.get_rank(name), "all_gather")
    counts = tuple(one.size for one in tensor_list)
    return in_place(comm_ops.AllGatherV(name), (tensor.reshape((-1,)), counts), tensor_list, async_op)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: str = _SUM, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Reduce the lists of the ranks, and take this rank's element into `output`."""
    check_all_tensors(input_list)
    check_same_dtype(input_list)
    check_tensor(output, "reduce_scatter", "output")
    name = _group(group)
    check_async(async_op)
    check_reduction(op, "reduce_scatter", _REDUCTIONS)
    _exchange.check_list(input_list, management.get_group_size(name))
    _exchange.check_own(output, input_list, management.get_rank(name), "reduce_scatter")
    folded, average = _folded(op, name)
    counts = tuple(one.size for one in input_list)
    operands = (_exchange.flat(input_list), counts)
    return in_place(comm_ops.ReduceScatterV(folded, name), operands, [output], async_op, average=average)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor], src: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Take this rank's element of the list of the rank `src` of the world."""
    check_all_tensors(scatter_list)
    _exchange.check_same(scatter_list)
    check_tensor(tensor, "scatter_tensor", "output")
    check_int(src, "scatter_tensor", "src")
    name = _group(group)
    check_async(async_op)
    place = get_group_rank_from_world_rank(src, name)
    primitive = comm_ops.CollectiveScatter(place, name)
    if place == primitive.rank_id:
        _exchange.check_elements(scatter_list, tensor, primitive.rank_size)
        whole = _exchange.flat(scatter_list)
    else:
        whole = _exchange.flat([tensor] * primitive.rank_size)  # of the right shape, nobody reads it
    return in_place(primitive, (whole,), [tensor], async_op)


def gather(
    tensor: Tensor, gather_list: list[Tensor], dst: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Take each rank's tensor into the list of the rank `dst` of the world."""
    check_tensor(tensor, "gather")
    check_all_tensors(gather_list)
    _exchange.check_same(gather_list)
    check_int(dst, "gather", "dst")
    name = _group(group)
    check_async(async_op)
    place = get_group_rank_from_world_rank(dst, name)
    primitive = comm_ops.CollectiveGather(place, name)
    mine = place == primitive.rank_id
    if mine:
        _exchange.check_elements(gather_list, tensor, primitive.rank_size)
    return in_place(primitive, (tensor.reshape((-1,)),), gather_list if mine else [], async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Send one tensor to each rank, and take the one that each rank has sent into the other list."""
    name = _group(group)
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
        How much comes from, and goes to, each rank; equal parts where None.
    group : str, optional
    async_op : bool
    """
    check_all_tensors([input])
    check_all_tensors([output])
    name = _group(group)
    check_async(async_op)
    ranks = management.get_group_size(name)
    given = even_sizes(input_split_sizes, input.shape[0], ranks, "input")
    gotten = even_sizes(output_split_sizes, output.shape[0], ranks, "output")
    sends = tuple(size * numel(input.shape[1:]) for size in given)
    receives = tuple(size * numel(output.shape[1:]) for size in gotten)
    if sum(receives) != output.size:
        raise ScriptValueError(f"{list(gotten)} rows for an output of {output.shape[0]}", where="all_to_all_single")
    return in_place(comm_ops.AlltoAllV(name), (input.reshape((-1,)), sends, receives), [output], async_op)


# ----------------------------------------------------------- pairs of ranks
def _destination(dst: Any, function: str, group: str) -> int:
    check_int(dst, function, "dst")
    if management.get_rank() == dst:
        raise ScriptValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    return place_of(dst, group)


def isend(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Begin to send a tensor to the rank `dst` of the world."""
    check_tensor(tensor, "isend")
    check_int(dst, "isend", "dst")
    name = _group(group)
    _refuse_in_graph("isend")
    _, wait = comm_ops.Send(tag, _destination(dst, "isend", name), name)._start(tensor)
    return CommHandle(Work(wait))


def send(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Send a tensor to the rank `dst` of the world."""
    check_tensor(tensor, "send")
    check_int(dst, "send", "dst")
    name = _group(group)
    comm_ops.Send(tag, _destination(dst, "send", name), name)(tensor)


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle | None:
    """Begin to receive from the rank `src` of the world, in place."""
    check_tensor(tensor, "irecv")
    name = _group(group)
    check_int(src, "irecv", "src")
    return in_place(_receive(tensor, src, name, tag), (None,), [tensor], True)


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Receive from the rank `src` of the world, in place; returns 0, as in MindSpore."""
    check_tensor(tensor, "recv")
    check_int(src, "recv", "src")
    name = _group(group)
    in_place(_receive(tensor, src, name, tag), (None,), [tensor], False)
    return 0


def _receive(tensor: Tensor, src: int, group: str, tag: int) -> Any:
    return comm_ops.Receive(tag, place_of(src, group), tensor.shape, tensor.dtype, group)


class P2POp:
    """One send or receive of `batch_isend_irecv`.

    Parameters
    ----------
    op : {"isend", "irecv"} or one of these functions
    tensor : Tensor
        What is sent, or takes what is received.
    peer : int
        The other rank in the world.
    group : str, optional
    tag : int
        Only 0, as in MindSpore.
    """

    def __init__(self, op: Any, tensor: Tensor, peer: int, group: str | None = None, tag: int = 0) -> None:
        if op not in (("isend", "irecv") if isinstance(op, str) else (isend, irecv)):
            raise ScriptTypeError(f"Expected op to be of type isend or irecv, but got {op}")
        if not isinstance(tensor, Tensor):
            raise ScriptTypeError(f"Expected tensor to be Tensor, but got {type(tensor)}.")
        check_int(peer, "P2POp", "peer")
        check_tag(tag, "tag is not support yet.")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[CommHandle]:
    """Begin to send to and receive from several ranks; returns one handle for all."""
    if not p2p_op_list:
        raise ScriptTypeError("p2p_op_list can not be empty list.")
    for one in p2p_op_list:
        if not isinstance(one, P2POp):
            raise ScriptTypeError("The elements in p2p_op_list must be type of P2POp.")
    if any(one.group != p2p_op_list[0].group for one in p2p_op_list):
        raise ScriptTypeError("The group name in p2p_op_list must be consistent.")
    _refuse_in_graph("batch_isend_irecv")
    name = _group(p2p_op_list[0].group)
    waits = []
    for one in p2p_op_list:
        if kind_of(one.op) == "isend":
            place = get_group_rank_from_world_rank(one.peer, name)
            waits.append(comm_ops.Send(one.tag, place, name)._start(one.tensor)[1])
    for one in p2p_op_list:
        if kind_of(one.op) == "irecv":
            place = get_group_rank_from_world_rank(one.peer, name)
            receive = comm_ops.Receive(one.tag, place, one.tensor.shape, one.tensor.dtype, name)
            handle = in_place(receive, (None,), [one.tensor], True)
            assert handle is not None
            waits.append(handle.wait)

    def wait() -> None:
        for each in waits:
            each()

    return [CommHandle(Work(wait))]


# ----------------------------------------------------------- Python objects
def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """Take each rank's object into the list.

    Objects are plain values, arrays and Tensors, in any nesting; nothing is pickled, so that no rank runs what another
    one sends.

    Raises
    ------
    TypeError
        For a list of another length than the group.
    UnsupportedError
        For an object of another type; the message names it.
    """
    name = _group(group, "all_gather_object")
    ranks = management.get_group_size(name)
    if not isinstance(object_list, list) or len(object_list) != ranks:
        raise ScriptTypeError(
            f"The len of argument object_list must be equal to group rank size, but got {len(object_list)}."
        )
    object_list[:] = _exchange.gathered(obj, name)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None
) -> None:
    """Take each rank's object into the list of the rank `dst` of the world."""
    name = _group(group, "gather_object")
    check_int(dst, "gather_object", "dst")
    ranks = management.get_group_size(name)
    mine = management.get_rank() == dst
    if mine and (not isinstance(object_gather_list, list) or len(object_gather_list) != ranks):
        raise ScriptTypeError(
            "The len of object_gather_list must be equal to group rank size, but got "
            f"{len(object_gather_list) if isinstance(object_gather_list, list) else object_gather_list}."
        )
    objects = _exchange.gathered_at(obj, get_group_rank_from_world_rank(dst, name), name)
    if mine and object_gather_list is not None:
        object_gather_list[:] = objects


def broadcast_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> None:
    """Take the objects of the rank `src` of the world, in place."""
    name = _group(group, "broadcast_object_list")
    check_int(src, "broadcast_object_list", "src")
    if not isinstance(object_list, list) or not object_list:
        raise ScriptTypeError("The object_list can not be empty.")
    place = get_group_rank_from_world_rank(src, name)
    if management.get_rank(name) == place:
        _exchange.broadcast(object_list, len(object_list), place, name)
    else:
        object_list[:] = _exchange.broadcast(None, len(object_list), place, name)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any],
    src: int = 0,
    group: str | None = None,
) -> None:
    """Take this rank's object of the list of the rank `src` of the world as the first of the output list."""
    name = _group(group, "scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ScriptTypeError("The scatter_object_output_list can not be empty.")
    check_int(src, "scatter_object_list", "src")
    place, ranks = get_group_rank_from_world_rank(src, name), management.get_group_size(name)
    objects = None
    if management.get_rank(name) == place:
        objects = scatter_object_input_list
        if not isinstance(objects, list) or len(objects) != ranks:
            raise ScriptTypeError("The len of scatter_object_input_list must be equal to group rank size")
    scatter_object_output_list[0] = _exchange.scattered(objects, place, name)


def send_object_list(object_list: list[Any], dst: int, group: str | None = None, device: Any = None) -> None:
    """Send objects to the rank `dst` of the world."""
    check_int(dst, "send_object_list", "dst")
    name = _group(group)
    if not isinstance(object_list, list):
        raise ScriptTypeError("For send_object_list, the object_list must be a list")
    _exchange.send(object_list, _destination(dst, "send_object_list", name), name)


def recv_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> int:
    """Receive as many objects as the list has from the rank `src` of the world; returns 0, as in MindSpore."""
    check_int(src, "recv_object_list", "src")
    name = _group(group)
    if not isinstance(object_list, list):
        raise ScriptTypeError("For recv_object_list, the object_list must be a list")
    object_list[:] = _exchange.receive(len(object_list), place_of(src, name), name)
    return 0


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint.distributed.distributed", name)
