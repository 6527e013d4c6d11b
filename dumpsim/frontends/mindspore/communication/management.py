"""``mindspore.communication.management``: the rank, the world and its groups."""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.world.context import current

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "create_group",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"

_GROUPS = MappingProxyType(
    {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
)
_BACKENDS = MappingProxyType({"Ascend": "hccl", "GPU": "nccl", "CPU": "mccl"})


@dataclass(slots=True)
class _State:
    """What `init` and `create_group` leave in a rank."""

    BACKEND: str | None = None
    WORLD_COMM_GROUP: str | None = HCCL_WORLD_COMM_GROUP
    INITED: bool = False
    CHECK_ENVS: bool = True
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)


def _state() -> _State:
    return current().get(_State)


class _OfRank(type):
    """A class whose attributes in capitals are those of the rank's `_State`."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(_state(), cls._known(name))

    def __setattr__(cls, name: str, value: Any) -> None:
        setattr(_state(), cls._known(name), value)

    def _known(cls, name: str) -> str:
        if not name.isupper() or name not in _State.__slots__:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return name


class GlobalComm(metaclass=_OfRank):
    """Back end and name of the group of all ranks: ``BACKEND``, ``WORLD_COMM_GROUP``, ``INITED``, ``CHECK_ENVS``.

    Examples
    --------
    >>> GlobalComm.INITED
    False
    """


class _NotInitializedError(DumpsimError, RuntimeError):
    """A question about the ranks before `init`."""


def init(backend_name: str | None = None) -> None:
    """Enter the world of ranks: from here on a rank knows its number and their count.

    Parameters
    ----------
    backend_name : {"hccl", "nccl", "mccl"}, optional
        That of the device where None.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For a back end that is no string or does not exist, and for a rank outside of the world.
    """
    name = _BACKENDS[get_context("device_target")] if backend_name is None else backend_name
    if not isinstance(name, str):
        raise ScriptTypeError(f"Backend name must be a string, but got {type(name)}")
    if name not in _GROUPS:
        raise ScriptValueError(
            "For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', "
            f"but got the 'backend_name' : {name}"
        )
    rank = current()
    if rank.rank >= rank.size:
        raise ScriptValueError(
            f"rank {rank.rank} is outside of a world of {rank.size}",
            where="RANK_ID and RANK_SIZE",
            allowed=(f"0 to {rank.size - 1}",),
        )
    get_context("device_id")  # it is in effect now
    state = _state()
    state.BACKEND, state.WORLD_COMM_GROUP, state.INITED = name, _GROUPS[name], True


def release() -> None:
    """Leave the world."""
    state = _state()
    state.INITED, state.groups = False, {}


def output_rank() -> int:
    """Return the rank under which files are written: known after `init` only, as in the real system.

    Ranks that share a process know theirs from the start, or they would write into each other's directories.
    [spec mindspore 1.5]
    """
    rank = current()
    return rank.rank if _state().INITED or rank.world.ranks > 1 else 0


def _check_name(function: str, group: object) -> None:
    """Refuse the name of a group that is not a string, also before `init`. [observed 2.10]"""
    if not isinstance(group, str):
        raise ScriptTypeError(
            f"For '{function}', the argument 'group' must be type of string, but got 'group' type : {type(group)}."
        )


def _members(function: str, group: str | None) -> tuple[int, ...]:
    """The ranks of a group, in order."""
    if group is not None:
        _check_name(function, group)
    state = _state()
    if not state.INITED:
        raise _NotInitializedError("Distributed Communication has not been inited.")
    if group is None or group in _GROUPS.values():
        return tuple(range(current().size))
    if group not in state.groups:
        raise ScriptValueError(f"the group {group!r} does not exist", where=function, allowed=tuple(state.groups))
    return state.groups[group]


def _place(function: str, rank: int, group: str | None) -> int:
    """The rank in a group of a rank in the world."""
    members = _members(function, group)
    if rank not in members:
        raise ScriptValueError(f"rank {rank} is not in the group {group!r}", where=function, allowed=members)
    return members.index(rank)


def get_rank(group: str | None = None) -> int:
    """The rank of this process in a group, by default among all."""
    return _place("get_rank", current().rank, group)


def get_local_rank(group: str | None = None) -> int:
    """The rank of this process on its machine; all ranks are on one."""
    return _place("get_local_rank", current().rank, group)


def get_group_size(group: str | None = None) -> int:
    """The number of ranks in a group, by default of all."""
    return len(_members("get_group_size", group))


def get_local_rank_size(group: str | None = None) -> int:
    """The number of ranks on this machine: of all."""
    return len(_members("get_local_rank_size", group))


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank in the world of a rank in a group."""
    members = _members("get_world_rank_from_group_rank", group)
    if not 0 <= group_rank_id < len(members):
        where = "get_world_rank_from_group_rank"
        raise ScriptValueError(f"the group {group!r} has no rank {group_rank_id}", where=where)
    return members[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in a group of a rank in the world."""
    return _place("get_group_rank_from_world_rank", world_rank_id, group)


def create_group(group: str, rank_ids: list[int]) -> None:
    """Make a group of ranks, in their order.

    Raises
    ------
    ScriptValueError
        For a rank that does not exist or is there twice.
    """
    _check_name("create_group", group)
    world = _members("create_group", None)
    wrong = [rank for rank in rank_ids if rank not in world]
    if wrong:
        raise ScriptValueError(f"ranks {wrong} do not exist", where="create_group", allowed=world)
    if len(set(rank_ids)) != len(rank_ids):
        raise ScriptValueError(f"a rank is twice in {list(rank_ids)}", where="create_group")
    _state().groups[group] = tuple(rank_ids)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.communication.management", name)
