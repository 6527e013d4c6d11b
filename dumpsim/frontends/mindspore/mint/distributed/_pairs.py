"""The point-to-point functions of ``mindspore.mint.distributed``."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.communication._handle import CommHandle, Work, check_int, check_tensor
from dumpsim.frontends.mindspore.communication.comm_func import (
    check_tag,
    group_rank_of,
    in_place,
    kind_of,
    refuse_in_graph,
)
from dumpsim.frontends.mindspore.communication.management import get_group_rank_from_world_rank
from dumpsim.frontends.mindspore.mint.distributed._groups import group_name
from dumpsim.frontends.mindspore.ops.operations import comm_ops

__all__ = ["P2POp", "batch_isend_irecv", "destination", "irecv", "isend", "recv", "send"]


def destination(dst: Any, function: str, group: str) -> int:
    """Return the rank in the group of the world rank `dst`, which must not be this rank."""
    check_int(dst, function, "dst")
    if management.get_rank() == dst:
        raise ScriptValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    return group_rank_of(dst, group)


def isend(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Start sending a tensor to the world rank `dst`."""
    check_tensor(tensor, "isend")
    check_int(dst, "isend", "dst")
    name = group_name(group)
    refuse_in_graph("isend")
    _, wait = comm_ops.Send(tag, destination(dst, "isend", name), name)._start(tensor)
    return CommHandle(Work(wait))


def send(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Send a tensor to the world rank `dst`."""
    check_tensor(tensor, "send")
    check_int(dst, "send", "dst")
    name = group_name(group)
    comm_ops.Send(tag, destination(dst, "send", name), name)(tensor)


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle | None:
    """Start receiving a tensor from the world rank `src`, in place."""
    check_tensor(tensor, "irecv")
    name = group_name(group)
    check_int(src, "irecv", "src")
    return in_place(_receive(tensor, src, name, tag), (None,), [tensor], True)


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Receive a tensor from the world rank `src`, in place; return 0, as in MindSpore."""
    check_tensor(tensor, "recv")
    check_int(src, "recv", "src")
    name = group_name(group)
    in_place(_receive(tensor, src, name, tag), (None,), [tensor], False)
    return 0


def _receive(tensor: Tensor, src: int, group: str, tag: int) -> Any:
    return comm_ops.Receive(tag, group_rank_of(src, group), tensor.shape, tensor.dtype, group)


class P2POp:
    """One send or receive of `batch_isend_irecv`.

    Parameters
    ----------
    op : {"isend", "irecv"} or one of these functions
    tensor : Tensor
        The tensor to send, or to receive into.
    peer : int
        The world rank of the other side.
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
    """Start several sends and receives; return one handle for all of them."""
    if not p2p_op_list:
        raise ScriptTypeError("p2p_op_list can not be empty list.")
    for one in p2p_op_list:
        if not isinstance(one, P2POp):
            raise ScriptTypeError("The elements in p2p_op_list must be type of P2POp.")
    if any(one.group != p2p_op_list[0].group for one in p2p_op_list):
        raise ScriptTypeError("The group name in p2p_op_list must be consistent.")
    refuse_in_graph("batch_isend_irecv")
    name = group_name(p2p_op_list[0].group)
    waits = []
    for one in p2p_op_list:
        if kind_of(one.op) == "isend":
            peer = get_group_rank_from_world_rank(one.peer, name)
            waits.append(comm_ops.Send(one.tag, peer, name)._start(one.tensor)[1])
    for one in p2p_op_list:
        if kind_of(one.op) == "irecv":
            peer = get_group_rank_from_world_rank(one.peer, name)
            receive = comm_ops.Receive(one.tag, peer, one.tensor.shape, one.tensor.dtype, name)
            handle = in_place(receive, (None,), [one.tensor], True)
            assert handle is not None
            waits.append(handle.wait)

    def wait() -> None:
        for each in waits:
            each()

    return [CommHandle(Work(wait))]
