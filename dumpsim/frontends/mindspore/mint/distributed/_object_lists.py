"""The collectives of ``mindspore.mint.distributed`` for Python objects."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.communication._handle import check_int
from dumpsim.frontends.mindspore.communication.comm_func import group_rank_of
from dumpsim.frontends.mindspore.communication.management import get_group_rank_from_world_rank
from dumpsim.frontends.mindspore.mint.distributed import _exchange
from dumpsim.frontends.mindspore.mint.distributed._groups import group_name
from dumpsim.frontends.mindspore.mint.distributed._pairs import destination

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """Gather each rank's object into the list.

    Objects are plain values, arrays and Tensors, in any nesting. Nothing is pickled, so a rank never runs code sent by
    another one.

    Raises
    ------
    TypeError
        For a list whose length is not the size of the group.
    UnsupportedError
        For an object of another type; the message names it.
    """
    name = group_name(group, "all_gather_object")
    ranks = management.get_group_size(name)
    if not isinstance(object_list, list) or len(object_list) != ranks:
        raise ScriptTypeError(
            f"The len of argument object_list must be equal to group rank size, but got {len(object_list)}."
        )
    object_list[:] = _exchange.gathered(obj, name)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None
) -> None:
    """Gather each rank's object into the list on the world rank `dst`."""
    name = group_name(group, "gather_object")
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
    """Replace the objects in the list by those of the world rank `src`."""
    name = group_name(group, "broadcast_object_list")
    check_int(src, "broadcast_object_list", "src")
    if not isinstance(object_list, list) or not object_list:
        raise ScriptTypeError("The object_list can not be empty.")
    root = get_group_rank_from_world_rank(src, name)
    if management.get_rank(name) == root:
        _exchange.broadcast(object_list, len(object_list), root, name)
    else:
        object_list[:] = _exchange.broadcast(None, len(object_list), root, name)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any],
    src: int = 0,
    group: str | None = None,
) -> None:
    """Store this rank's object of the list on the world rank `src` as the first item of the output list."""
    name = group_name(group, "scatter_object_list")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ScriptTypeError("The scatter_object_output_list can not be empty.")
    check_int(src, "scatter_object_list", "src")
    root, ranks = get_group_rank_from_world_rank(src, name), management.get_group_size(name)
    objects = None
    if management.get_rank(name) == root:
        objects = scatter_object_input_list
        if not isinstance(objects, list) or len(objects) != ranks:
            raise ScriptTypeError("The len of scatter_object_input_list must be equal to group rank size")
    scatter_object_output_list[0] = _exchange.scattered(objects, root, name)


def send_object_list(object_list: list[Any], dst: int, group: str | None = None, device: Any = None) -> None:
    """Send objects to the world rank `dst`."""
    check_int(dst, "send_object_list", "dst")
    name = group_name(group)
    if not isinstance(object_list, list):
        raise ScriptTypeError("For send_object_list, the object_list must be a list")
    _exchange.send(object_list, destination(dst, "send_object_list", name), name)


def recv_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> int:
    """Receive one object for each item of the list from the world rank `src`; return 0, as in MindSpore."""
    check_int(src, "recv_object_list", "src")
    name = group_name(group)
    if not isinstance(object_list, list):
        raise ScriptTypeError("For recv_object_list, the object_list must be a list")
    object_list[:] = _exchange.receive(len(object_list), group_rank_of(src, name), name)
    return 0
