"""``mindspore.communication.comm_func``: collectives as functions that return their results."""

from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._capture.dispatch import finish
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
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
from dumpsim.frontends.mindspore.communication.management import (
    HCCL_WORLD_COMM_GROUP,
    UnknownGroupError,
    _get_group,
    find_group,
    get_group_rank_from_world_rank,
    get_group_size,
)
from dumpsim.frontends.mindspore.ops.operations import comm_ops

__all__ = [
    "P2POp",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single_with_output_shape",
    "all_to_all_v_c",
    "all_to_all_with_output_shape",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather_into_tensor",
    "irecv",
    "isend",
    "recv",
    "reduce",
    "reduce_scatter_tensor",
    "scatter_tensor",
    "send",
]

_REDUCTIONS = ("sum", "prod", "min", "max")
_SUM = comm_ops.ReduceOp.SUM


def _result(primitive: Any, operands: tuple[Any, ...], async_op: bool) -> tuple[Any, CommHandle | None]:
    """Run a collective; with `async_op`, its results are valid after the handle's `wait`."""
    if not async_op:
        return primitive(*operands), None
    out, wait = primitive._start(*operands)
    return out, CommHandle(Work(wait))


def group_rank_of(world_rank: int, group: str) -> int:
    """Return the rank in a group of a world rank.

    Raises
    ------
    KeyError
        For a group that the script has not created, and a rank outside the group, with MindSpore's message.
    """
    function = "get_group_rank_from_world_rank_from_cache"
    if not isinstance(world_rank, int):
        raise ScriptTypeError(
            f"For '{function}', the argument 'world_rank_id' must be type of int, but got 'world_rank_id' type : "
            f"{type(world_rank)}."
        )
    name = _get_group(group)
    try:
        members = find_group(name).members
    except RuntimeError as error:
        if type(error).__name__ == "NotInitializedError":
            raise
        text = f"For '{function}', the argument 'group' is not found in GROUP_RANKS, 'group' : {group}"
        raise UnknownGroupError(f"{text}, 'world_rank_id' : {world_rank}") from None
    if world_rank not in members:
        text = f"For '{function}', the argument 'world_rank_id' is not found in GROUP_RANKS, 'group' : {group}"
        raise UnknownGroupError(f"{text}, 'world_rank_id' : {world_rank}")
    return members.index(world_rank)


def all_reduce(
    tensor: Tensor, op: str = _SUM, group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Any, CommHandle | None]:
    """Reduce the ranks' tensors; every rank receives the result.

    Parameters
    ----------
    tensor : Tensor
    op : {"sum", "prod", "min", "max"}
    group : str
    async_op : bool
        Return without waiting for the collective.

    Returns
    -------
    tuple of Tensor and CommHandle
        The handle is None without `async_op`.
    """
    check_tensor(tensor, "all_reduce")
    check_reduction(op, "all_reduce", _REDUCTIONS)
    return _result(comm_ops.AllReduce(op, group), (tensor,), async_op)


def all_gather_into_tensor(
    tensor: Tensor, group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Any, CommHandle | None]:
    """Join the ranks' tensors along the first axis."""
    check_tensor(tensor, "all_gather_into_tensor")
    return _result(comm_ops.AllGather(group), (tensor,), async_op)


def reduce_scatter_tensor(
    tensor: Tensor, op: str = _SUM, group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Any, CommHandle | None]:
    """Reduce the ranks' tensors, and return this rank's part of the first axis."""
    check_tensor(tensor, "reduce_scatter_tensor")
    return _result(comm_ops.ReduceScatter(op, group), (tensor,), async_op)


def reduce(tensor: Tensor, dst: int, op: str = _SUM, group: str = HCCL_WORLD_COMM_GROUP) -> Any:
    """Reduce the ranks' tensors; the world rank `dst` receives the result."""
    check_tensor(tensor, "reduce")
    root = get_group_rank_from_world_rank(dst, group)
    return comm_ops.Reduce(root, op, group)(tensor)


def broadcast(tensor: Tensor, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Any:
    """Return the tensor of the world rank `src`."""
    check_tensor(tensor, "broadcast")
    check_int(src, "broadcast", "src")
    return comm_ops.Broadcast(get_group_rank_from_world_rank(src, group), group)((tensor,))[0]


def scatter_tensor(tensor: Tensor, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Any:
    """Return this rank's part of the tensor of the world rank `src`."""
    check_tensor(tensor, "scatter_tensor")
    check_int(src, "scatter_tensor", "src")
    return comm_ops.CollectiveScatter(get_group_rank_from_world_rank(src, group), group)(tensor)


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Any:
    """Join the ranks' tensors along the first axis; the world rank `dst` receives the result."""
    check_tensor(tensor, "gather_into_tensor")
    check_int(dst, "gather_into_tensor", "dst")
    return comm_ops.CollectiveGather(get_group_rank_from_world_rank(dst, group), group)(tensor)


def barrier(group: str = HCCL_WORLD_COMM_GROUP) -> None:
    """Wait for all ranks of a group."""
    if not isinstance(group, str):
        raise ScriptTypeError(f"group must be type of string, but got {type(group)}")
    comm_ops.Barrier(group)()
    finish()


# ----------------------------------------------------------- point to point
def send(tensor: Tensor, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> None:
    """Send a tensor to the world rank `dst`."""
    check_tensor(tensor, "send")
    comm_ops.Send(tag, group_rank_of(dst, group), group)(tensor)


def recv(tensor: Tensor, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> Any:
    """Receive a tensor from the world rank `src`, with the shape and number type of `tensor`."""
    check_tensor(tensor, "recv")
    check_int(src, "recv", "src")
    return comm_ops.Receive(tag, group_rank_of(src, group), tensor.shape, tensor.dtype, group)()


def isend(tensor: Tensor, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> CommHandle:
    """Start sending a tensor to the world rank `dst`."""
    check_tensor(tensor, "isend")
    _, wait = comm_ops.Send(tag, group_rank_of(dst, group), group)._start(tensor)
    return CommHandle(Work(wait))


def irecv(
    tensor: Tensor, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0
) -> tuple[Any, CommHandle | None]:
    """Start receiving a tensor from the world rank `src`."""
    check_tensor(tensor, "irecv")
    primitive = comm_ops.Receive(tag, group_rank_of(src, group), tensor.shape, tensor.dtype, group)
    return _result(primitive, (None,), True)


class P2POp:
    """One send or receive of `batch_isend_irecv`.

    Parameters
    ----------
    op : {"isend", "irecv"} or one of these functions
    tensor : Tensor or tuple of int
        The tensor to send; for a receive, a tensor with its shape, or the shape.
    peer : int
        The world rank of the other side.
    group : str, optional
    tag : int
        Only 0, as in MindSpore.
    recv_dtype : number type, optional
        Required if a receive has a shape.
    """

    def __init__(
        self, op: Any, tensor: Any, peer: int, group: str | None = None, tag: int = 0, *, recv_dtype: Any = None
    ) -> None:
        if not (isinstance(op, str) or callable(op)):
            raise ScriptTypeError(f"op must be type of string or function, but got type of {type(op)}")
        name = kind_of(op)
        if name not in ("isend", "irecv"):
            raise ScriptValueError(f"Expected ``op`` to be of type ``isend`` or `irecv``, but got {name}")
        if not isinstance(tensor, (Tensor, tuple)):
            raise ScriptTypeError(f"Expected ``tensor`` to be type of tuple or Tensor, but got {type(tensor)}.")
        check_tag(tag, "``tag`` not support yet.")
        if not isinstance(peer, int):
            raise ScriptTypeError(f"peer must be type of int, but got type of {type(peer)}")
        if recv_dtype is not None and not isinstance(recv_dtype, DType):
            raise ScriptTypeError(f"recv_dtype must be type of mindspore dtype, but got type of {type(recv_dtype)}")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.recv_dtype = recv_dtype


def kind_of(op: Any) -> str:
    """Return the name of a P2POp's function, ``isend`` or ``irecv``."""
    name: str = op if isinstance(op, str) else op.__name__
    return name


def check_tag(tag: Any, text: str) -> None:
    """Raise for a tag of a P2POp other than 0."""
    if tag != 0:
        raise UnsupportedError(f"tag {tag!r} of a P2POp is not emulated", where="P2POp.tag", allowed=(0,), vendor=text)


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> tuple[Any, ...]:
    """Send to and receive from several ranks at the same time.

    Returns
    -------
    tuple of Tensor
        The received tensors; for each send, an undefined tensor at its index.
    """
    if not isinstance(p2p_op_list, list):
        raise ScriptTypeError(f"p2p_op_list must be type of list, but got type of {p2p_op_list}.")
    if not p2p_op_list:
        raise ScriptTypeError("p2p_op_list can not be empty list.")
    sent: list[Any] = []
    kinds, peers = [], []
    shapes, dtypes = [], []  # of the received tensors
    for index, one in enumerate(p2p_op_list):
        if not isinstance(one, P2POp):
            raise ScriptTypeError("must be type of P2POp")
        kinds.append(kind_of(one.op))
        peers.append(one.peer if one.group is None else get_group_rank_from_world_rank(one.peer, one.group))
        if kinds[-1] == "isend":
            sent.append(one.tensor)
        elif isinstance(one.tensor, Tensor):
            shapes.append(one.tensor.shape)
            dtypes.append(one.tensor._dtype)
        elif one.recv_dtype is None:
            raise ScriptValueError(
                f"'recv_dtype' of {index}th P2POp in p2p_op_list is None but op_types is'irecv' and P2POp.tensor is a "
                "tuple type."
            )
        else:
            shapes.append(one.tensor)
            dtypes.append(one.recv_dtype)
    primitive = comm_ops.BatchISendIRecv(kinds, peers, shapes, dtypes, p2p_op_list[0].group)
    outputs: tuple[Any, ...] = primitive(sent)
    return outputs


# -------------------------------------------------------------- all to all
def all_to_all_with_output_shape(
    output_shape_list: Any, input_tensor_list: Any, group: str | None = None, async_op: bool = False
) -> tuple[tuple[Any, ...], CommHandle | None]:
    """Send one tensor to each rank, and return the tensors received from each rank.

    Parameters
    ----------
    output_shape_list : list of Tensor or shape
        The shapes of the tensors from each rank.
    input_tensor_list : list of Tensor
    group : str, optional
    async_op : bool
    """
    check_all_tensors(input_tensor_list)
    check_all_tensors(output_shape_list, (tuple, list))
    check_same_dtype(input_tensor_list)
    name = HCCL_WORLD_COMM_GROUP if group is None else group
    sends = tuple(tensor.size for tensor in input_tensor_list)
    shapes = [tuple(each.shape if isinstance(each, Tensor) else each) for each in output_shape_list]
    receives = tuple(numel(shape) for shape in shapes)
    flat = ops.cat([tensor.reshape((-1,)) for tensor in input_tensor_list])
    out, handle = _result(comm_ops.AlltoAllV(name), (flat, sends, receives), async_op)
    results, offset = [], 0
    for count, shape in zip(receives, shapes, strict=True):
        results.append(_part(out, offset, count, shape, handle))
        offset += count
    return tuple(results), handle


def _part(whole: Any, offset: int, count: int, shape: tuple[int, ...], handle: CommHandle | None) -> Any:
    """Return a part of a flat tensor; with a handle, it is a view that the handle's `wait` fills."""
    if handle is None:
        return whole[offset : offset + count].reshape(shape)
    return Tensor._around(whole._array[offset : offset + count].reshape(shape))


def all_to_all_single_with_output_shape(
    output_shape: Any,
    tensor: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: str | None = None,
    async_op: bool = False,
) -> tuple[Any, CommHandle | None]:
    """Exchange parts of the first axis between all ranks.

    Parameters
    ----------
    output_shape : Tensor or shape
        The shape of the result.
    tensor : Tensor
    output_split_sizes, input_split_sizes : list of int, optional
        Numbers of rows received from, and sent to, each rank; equal parts if None.
    group : str, optional
    async_op : bool
    """
    check_all_tensors([tensor])
    check_all_tensors([output_shape], (tuple, list))
    name = HCCL_WORLD_COMM_GROUP if group is None else group
    ranks = get_group_size(name)
    shape = tuple(output_shape.shape if isinstance(output_shape, Tensor) else output_shape)
    given = even_sizes(input_split_sizes, tensor.shape[0], ranks, "input")
    gotten = even_sizes(output_split_sizes, shape[0], ranks, "output")
    sends = tuple(size * numel(tensor.shape[1:]) for size in given)
    receives = tuple(size * numel(shape[1:]) for size in gotten)
    out, handle = _result(comm_ops.AlltoAllV(name), (tensor.reshape((-1,)), sends, receives), async_op)
    return _part(out, 0, sum(receives), (sum(gotten), *shape[1:]), handle), handle


def all_to_all_v_c(
    output: Tensor, input: Tensor, send_count_matrix: list[int], group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Exchange parts of the first axis between all ranks, with sizes from a matrix, into `output`.

    Parameters
    ----------
    output, input : Tensor
    send_count_matrix : list of int
        The number of rows that each rank sends to each rank, row by row.
    group : str, optional
    async_op : bool
    """
    check_all_tensors([input])
    check_all_tensors([output])
    name = HCCL_WORLD_COMM_GROUP if group is None else group
    check_group(name)
    check_async(async_op)
    if not isinstance(send_count_matrix, list):
        raise ScriptTypeError(f"send_count_matrix must be list, but got {type(send_count_matrix)}")
    if not all(isinstance(count, int) for count in send_count_matrix):
        raise ScriptTypeError("send_count_matrix elements must be of type int")
    ranks = get_group_size(name)
    if ranks * ranks != len(send_count_matrix):
        raise ScriptTypeError(f"send_count_matrix must be square matrix, but got {len(send_count_matrix)}.")
    row, taken = numel(input.shape[1:]), numel(output.shape[1:])
    if row != taken:
        raise ScriptValueError(
            f"The input and output dimensions except 0 must be of equal size, but got {row} and {taken}."
        )
    matrix = tuple(count * row for count in send_count_matrix)
    return in_place(comm_ops.AlltoAllVC(name), (input.reshape((-1,)), matrix), [output], async_op)


def in_place(
    primitive: Any, operands: tuple[Any, ...], targets: list[Tensor], async_op: bool, *, average: int = 0
) -> CommHandle | None:
    """Run a collective, and split its result into tensors in place.

    Parameters
    ----------
    primitive, operands
        The collective.
    targets : list of Tensor
        The tensors to write to; empty if this rank receives nothing.
    async_op : bool
        Return without waiting for the collective.
    average : int
        Divisor of the result, 0 for none.

    Raises
    ------
    RuntimeError
        During a capture, since tensors of a graph cannot be changed in place.
    """
    refuse_in_graph(primitive.name)

    def store() -> None:
        taken = out[0] if isinstance(out, tuple) else out
        fill(targets, taken, average)

    if async_op:
        out, wait = primitive._start(*operands)
        return CommHandle(Work(wait, store))
    out = primitive(*operands)
    store()
    return None


def refuse_in_graph(name: str) -> None:
    """Raise during a capture, for a function that exists in PYNATIVE only, as in MindSpore."""
    from dumpsim.frontends.mindspore._current import capturing

    if capturing() is not None:
        raise UnsupportedError(
            "a collective that writes into its arguments exists in PYNATIVE mode only",
            where=name,
            nearest="mindspore.communication.comm_func",
        )


def fill(targets: list[Tensor], source: Tensor, average: int = 0) -> None:
    """Split a tensor into other tensors in place."""
    if not targets:
        return
    values = source._values("asnumpy").reshape(-1)
    if average:
        if values.dtype.kind not in "fV":
            raise ScriptTypeError(f"the average of {mstype.number(source._dtype)}", where="ReduceOp.AVG")
        values = (values / values.dtype.type(average)).astype(values.dtype)
    offset = 0
    for target in targets:
        part = values[offset : offset + target.size].reshape(target.shape)
        offset += target.size
        array = target._values("asnumpy")
        if isinstance(target, Parameter) or not array.flags.writeable:
            target.assign_value(Tensor._around(part))
        else:
            array[...] = part


def __getattr__(name: str) -> Any:
    return vendored("mindspore.communication.comm_func", name)
