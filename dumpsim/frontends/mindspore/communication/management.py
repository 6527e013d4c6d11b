"""``mindspore.communication.management``: the rank, the world and its groups."""

from collections.abc import Mapping
from typing import Any

from dumpsim.core.communicator import Communicator, Group
from dumpsim.core.errors import DumpsimError, ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.communication._options import GroupOptions
from dumpsim.frontends.mindspore.communication._state import (
    BACKENDS,
    HCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    WORLD_GROUPS,
    GlobalComm,
    communication_state,
)
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.world.context import current

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_comm_name",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]


class NotInitializedError(DumpsimError, RuntimeError):
    """The RuntimeError for the use of groups before `init`."""


class _RankError(ScriptValueError, RuntimeError):
    """The error for inconsistent values of ``RANK_ID`` and ``RANK_SIZE``."""


class UnknownGroupError(DumpsimError, KeyError):
    """The KeyError for a group that the script has not created."""

    __str__ = Exception.__str__


# ------------------------------------------------------------------ the job
def init(backend_name: str | None = None) -> None:
    """Enter the job, and wait for the other ranks; rank and size are known afterwards.

    Parameters
    ----------
    backend_name : {"hccl", "nccl", "mccl"}, optional
        The back end of the device if None.

    Raises
    ------
    TypeError, RuntimeError
        For a back end that is not a string, does not exist or belongs to another device, with MindSpore's message.
    ValueError
        For a ``RANK_ID`` that is not a rank of the job.
    """
    target = get_context("device_target")
    name = BACKENDS[target] if backend_name is None else backend_name
    if not isinstance(name, str):
        raise ScriptTypeError(
            f"For 'init', the argument 'backend_name' must be a string, but got the type : {type(name)}"
        )
    if name not in WORLD_GROUPS:
        raise ScriptRuntimeError(
            "For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', "
            f"but got 'backend_name' : {name}"
        )
    if name != BACKENDS[target] and name != "mccl":
        raise ScriptRuntimeError(
            f"For 'init', the argument 'backend_name' should be '{BACKENDS[target]}' to init '{target}', "
            f"but got '{name}'."
        )
    _check_environment(current().environment)
    rank = current()
    if not 0 <= rank.rank < rank.size:
        raise _RankError(
            f"rank {rank.rank} is out of range for a world of {rank.size}",
            where="RANK_ID and RANK_SIZE",
            allowed=(f"0 to {rank.size - 1}",),
        )
    get_context("device_id")  # fixes the device id
    communicator().enter()
    state = communication_state()
    state.BACKEND, state.WORLD_COMM_GROUP, state.INITED, state.entered = name, WORLD_GROUPS[name], True, True


def _check_environment(environment: Mapping[str, str]) -> None:
    """Check that ``RANK_ID`` and ``RANK_SIZE`` are valid numbers.

    A process started without a launcher may have neither.
    """
    for name, least in (("RANK_ID", 0), ("RANK_SIZE", 1)):
        text = environment.get(name, "").strip()
        if not text:
            continue
        if not (text.isascii() and text.isdigit()) or int(text) < least:
            raise _RankError(f"invalid value {text!r}", where=name, allowed=(f"a number from {least}",))


def release() -> None:
    """Leave the groups; `get_rank` and `get_group_size` still work, as in MindSpore. [observed 2.10]"""
    state = communication_state()
    if state.entered:
        for name in list(state.groups):
            communicator().destroy(name)
    state.groups, state.entered = {}, False


def communicator() -> Communicator:
    """Return the communicator of the current rank."""
    return current().communicator


def output_rank() -> int:
    """Return the rank in the names of output files: 0 before `init`, as in the real system.

    Ranks that share a process use their real rank from the start, or they would write into each other's directories.
    [spec mindspore 1.5]
    """
    rank = current()
    return rank.rank if communication_state().INITED or rank.world.ranks > 1 else 0


# ------------------------------------------------------------------- groups
def _check_name(function: str, group: object) -> None:
    """Raise for the name of a group that is not a string, even before `init`. [observed 2.10]"""
    if not isinstance(group, str):
        raise ScriptTypeError(
            f"For '{function}', the argument 'group' must be type of string, but got 'group' type : {type(group)}."
        )


def _check_inited() -> None:
    if not communication_state().INITED:
        raise NotInitializedError(
            "Distributed Communication has not been inited.You can't invoke this interface yet. Please call `init()` "
            "method first."
        )


def _get_group(group: str) -> str:
    """Return the name of a group; HCCL's name of all ranks, the default argument, means that of the back end."""
    return communication_state().WORLD_COMM_GROUP if group == HCCL_WORLD_COMM_GROUP else group


def find_group(group: str) -> Group:
    """Return a group of this rank.

    Raises
    ------
    RuntimeError
        Before `init`, and for a group that the rank has not created.
    """
    _check_inited()
    name = _get_group(group)
    state = communication_state()
    if name != state.WORLD_COMM_GROUP and name not in state.groups:
        raise ScriptRuntimeError(
            f"The group {name} does not exist.",
            where="the group of a collective",
            allowed=(state.WORLD_COMM_GROUP, *state.groups),
            vendor=f"The group {name} does not exist.",
        )
    return communicator().group(name)


def _from_environment(name: str, default: int) -> int:
    """Return a number from the environment, as MindSpore does before `init`. [observed 2.10]"""
    return int(current().environment.get(name) or default)


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the rank of this process in a group, by default of all ranks; before `init`, ``RANK_ID`` or 0."""
    _check_name("get_rank", group)
    if not communication_state().INITED:
        return _from_environment("RANK_ID", 0)
    return find_group(group).rank


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of ranks in a group, by default of all ranks; before `init`, ``RANK_SIZE`` or 1."""
    _check_name("get_group_size", group)
    if not communication_state().INITED:
        return _from_environment("RANK_SIZE", 1)
    return len(find_group(group).members)


def _local(group: Group) -> list[int]:
    """Return the members of a group on this rank's machine."""
    here = frozenset(communicator().local_ranks)
    return [member for member in group.members if member in here]


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the rank among the group's ranks on this machine; before `init`, ``LOCAL_RANK`` or 0."""
    _check_name("get_local_rank", group)
    if not communication_state().INITED:
        return _from_environment("LOCAL_RANK", 0)
    return _local(find_group(group)).index(communicator().rank)


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of the group's ranks on this machine; before `init`, ``LOCAL_RANK_SIZE`` or 1."""
    _check_name("get_local_rank_size", group)
    if not communication_state().INITED:
        return _from_environment("LOCAL_RANK_SIZE", 1)
    return len(_local(find_group(group)))


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """Return the name of a group's HCCL communicator: the group's name, or "" on other devices. [observed 2.10]"""
    _check_name("get_comm_name", group)
    name = find_group(group).name
    return name if get_context("device_target") == "Ascend" else ""


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """Return the world ranks of a group, in the order of the group."""
    _check_inited()
    if not isinstance(group, str):
        raise ScriptTypeError(f"The parameter 'group' should be str or None, but got the type : {type(group)}")
    return list(find_group(group).members)


def _check_number(function: str, name: str, value: object) -> None:
    if not isinstance(value, int):
        raise ScriptTypeError(
            f"For '{function}', the argument '{name}' must be type of int, but got '{name}' type : {type(value)}."
        )


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Convert a rank in a group to the rank in the world.

    Raises
    ------
    RuntimeError
        For a rank that is not in the group.
    """
    function = "get_world_rank_from_group_rank"
    _check_name(function, group)
    _check_inited()
    _check_number(function, "group_rank_id", group_rank_id)
    found = find_group(group)
    if not 0 <= group_rank_id < len(found.members):
        raise ScriptRuntimeError(
            f"{group_rank_id} is not a rank of the group {found.name}",
            where=function,
            allowed=(f"0 to {len(found.members) - 1}",),
            vendor=f"Group {found.name} doesn't contain the group rank {group_rank_id}",
        )
    return found.members[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Convert a rank in the world to the rank in a group.

    Raises
    ------
    RuntimeError
        For a rank that is not in the group.
    """
    function = "get_group_rank_from_world_rank"
    _check_name(function, group)
    _check_inited()
    _check_number(function, "world_rank_id", world_rank_id)
    found = find_group(group)
    if world_rank_id not in found.members:
        raise ScriptRuntimeError(
            f"rank {world_rank_id} is not in the group {found.name}",
            where=function,
            allowed=found.members,
            vendor=f"Group {found.name} doesn't contain the global rank {world_rank_id}",
        )
    return found.members.index(world_rank_id)


def create_group(group: str, rank_ids: list[int], options: GroupOptions | None = None) -> None:
    """Create a group of ranks in the given order; every member must call this, other ranks need not.

    Parameters
    ----------
    group : str
    rank_ids : list of int
        Ranks in the world.
    options : GroupOptions, optional

    Raises
    ------
    TypeError, ValueError
        For a name, ranks or options of another type; for no ranks, repeated ranks or ranks that do not exist; and for
        an existing group with other ranks.
    RuntimeError
        Before `init`, and if this rank is not a member.
    """
    _check_name("create_group", group)
    _check_inited()
    state = communication_state()
    before = state.groups.get(group)
    if before is not None:
        if rank_ids != before:
            raise ScriptValueError(
                f"The group {group} has been created, the rank_list is {before}, but current rank_list for the group "
                f"is {rank_ids}"
            )
        logger.warning(f"{group!r} group has existed.")
        return
    _check_ranks(group, rank_ids)
    if options is not None and not isinstance(options, GroupOptions):
        raise ScriptTypeError(
            "For 'create_group', the argument 'options' must be type of GroupOptions, but got 'options' type : "
            f"{type(options)}."
        )
    rank = communicator().rank
    if rank not in rank_ids:
        raise ScriptRuntimeError(
            f"rank {rank} is not one of {rank_ids}",
            where=f"create_group({group!r})",
            vendor=f"Communicator of group {group} inited: failed. Result: Init communicator for group {group} "
            f"exception info: Group {group} doesn't contain the global rank {rank}",
        )
    communicator().create(group, rank_ids)
    state.groups[group] = list(rank_ids)


def _check_ranks(group: str, rank_ids: Any) -> None:
    if not isinstance(rank_ids, list):
        raise ScriptTypeError(
            "For 'create_group', the argument 'rank_ids' must be type of list, but got 'rank_ids' type : "
            f"{type(rank_ids)}."
        )
    if not rank_ids:
        raise ScriptValueError(
            "For 'create_group', the argument 'rank_ids' size should be greater than 1, but got 'rank_ids' size : 0."
        )
    strange = [rank for rank in rank_ids if isinstance(rank, bool) or not isinstance(rank, int)]
    if strange:
        raise ScriptTypeError(f"invalid ranks {strange}", where=f"create_group({group!r})", allowed=("int",))
    if len(set(rank_ids)) < len(rank_ids):
        raise ScriptValueError(f"List rank_ids in Group {group} has duplicate data!")
    size = communicator().size
    outside = [rank for rank in rank_ids if not 0 <= rank < size]
    if outside:
        raise ScriptValueError(
            f"ranks {outside} do not exist", where=f"create_group({group!r})", allowed=(f"0 to {size - 1}",)
        )


def destroy_group(group: str) -> None:
    """Destroy a group.

    Raises
    ------
    ValueError
        For the group of all ranks, and a group with unfinished collectives.
    KeyError
        For a group that does not exist.
    """
    _check_name("destroy_group", group)
    _check_inited()
    state = communication_state()
    if _get_group(group) == state.WORLD_COMM_GROUP:
        raise ScriptValueError("The world_group does not support destruction.")
    if group not in state.groups:
        raise UnknownGroupError(f"the group {group!r} does not exist", where="destroy_group", allowed=state.groups)
    communicator().destroy(group)
    del state.groups[group]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.communication.management", name)
