"""The groups of ``mindspore.mint.distributed``, and the ranks in them."""

import hashlib
from datetime import timedelta
from typing import Any

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._capture.dispatch import finish
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.communication._handle import check_group
from dumpsim.frontends.mindspore.communication._options import GroupOptions
from dumpsim.frontends.mindspore.communication._state import communication_state
from dumpsim.frontends.mindspore.communication.comm_func import group_rank_of
from dumpsim.frontends.mindspore.communication.management import GlobalComm
from dumpsim.world.context import current

__all__ = [
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group_name",
    "init_process_group",
    "is_available",
    "is_initialized",
    "new_group",
]

_GROUP_TEXT = "The argument 'group' must be type of string"


def group_name(group: Any, function: str = "") -> str:
    """Return the name of a group; None is the group of all ranks."""
    if group is None:
        name: str = GlobalComm.WORLD_COMM_GROUP
        return name
    check_group(group, f"For '{function}', the argument 'group' must be type of string" if function else _GROUP_TEXT)
    checked: str = group
    return checked


def is_available() -> bool:
    """Return True: the module can always be used."""
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
        ``tcp://ADDRESS:PORT``; without effect, since the launcher connects the ranks.
    timeout : timedelta, optional
        Without effect: all ranks of a job exist, or the launcher reports the missing ones.
    world_size, rank : int
        The values set by the launcher; required with `init_method`.
    store : None
        A TCPStore is not emulated.
    group_name, pg_options, device_id
        As in MindSpore, which ignores the last two.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        As in MindSpore, and for a rank or size that differs from the launcher's.
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
        raise UnsupportedError("a TCPStore is not emulated", where="init_process_group.store", nearest="init_method")
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
    """Destroy a group, or leave the job."""
    if group is None or group == GlobalComm.WORLD_COMM_GROUP:
        finish()
        management.release()
        return
    check_group(group, "For 'destroy_group', the argument 'group' must be type of string or None")
    management.destroy_group(group)


def get_rank(group: str | None = None) -> int:
    """Return the rank in a group, -1 for a group that does not exist here."""
    try:
        return management.get_rank(group_name(group, "get_rank"))
    except RuntimeError as error:
        logger.warning(str(error))
        return -1


def get_world_size(group: str | None = None) -> int:
    """Return the number of ranks of a group, -1 for a group that does not exist here."""
    try:
        return management.get_group_size(group_name(group, "get_world_size"))
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
    """Create a group of ranks in ascending order and return its name, or "" if this rank is not a member.

    Parameters
    ----------
    ranks : list of int, optional
        If None, return the group of all ranks.
    backend : {"hccl", "mccl"}, optional
        Part of the name.
    pg_options : GroupOptions, optional
    timeout, use_local_synchronization, group_desc
        Ignored, as in MindSpore.
    """
    if ranks is None:
        return group_name(None)
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
    """Return the back end of a group, from its name."""
    if group is None:
        return "hccl"
    check_group(group, "For 'get_backend', the argument 'group' must be type of string or None")
    backend: str = GlobalComm.BACKEND
    return next((name for name in ("hccl", "mccl") if name in group), backend)


def get_global_rank(group: str | None, group_rank: int) -> int:
    """Convert a rank in a group to the rank in the world."""
    if not isinstance(group_rank, int):
        raise ScriptTypeError(f"The group_rank argument must be integer, but got {type(group_rank)}.")
    if group is None or group == GlobalComm.WORLD_COMM_GROUP:
        return group_rank
    check_group(group, "For 'get_global_rank', the argument 'group' must be type of string or None")
    return management.get_world_rank_from_group_rank(group, group_rank)


def get_group_rank(group: str | None, global_rank: int) -> int:
    """Convert a rank in the world to the rank in a group."""
    if not isinstance(global_rank, int):
        raise ScriptTypeError(f"The global_rank argument must be integer, but got {type(global_rank)}.")
    name = group_name(group, "get_group_rank_from_world_rank")
    return global_rank if name == GlobalComm.WORLD_COMM_GROUP else group_rank_of(global_rank, name)


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """Return the world ranks of the members of a group."""
    if group is not None:
        check_group(group, "For 'get_process_group_ranks', the argument 'group' must be type of string or None")
    return management.get_process_group_ranks(group_name(group))
