"""``mindspore.communication.management`` for a world of one rank."""

from dataclasses import dataclass
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError, UnsupportedError
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

_GROUPS = {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
_BACKENDS = {"Ascend": "hccl", "GPU": "nccl", "CPU": "mccl"}


@dataclass(slots=True)
class _State:
    """What `init` and `create_group` leave in a rank."""

    BACKEND: str | None = None
    WORLD_COMM_GROUP: str | None = HCCL_WORLD_COMM_GROUP
    INITED: bool = False
    CHECK_ENVS: bool = True
    groups: tuple[str, ...] = ()


def _state() -> _State:
    return current().get(_State)


class _OfRank(type):
    """A class whose attributes in capitals are those of the rank's `_State`."""

    def __getattr__(cls, name: str) -> Any:
        if name.isupper() and name in _State.__slots__:
            return getattr(_state(), name)
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")

    def __setattr__(cls, name: str, value: Any) -> None:
        if not name.isupper():
            raise AttributeError(f"{name} of {cls.__name__} cannot be set")
        setattr(_state(), name, value)


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
    """Enter the world of one rank.

    Parameters
    ----------
    backend_name : {"hccl", "nccl", "mccl"}, optional
        That of the device where None.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For a back end that is no string or does not exist.
    UnsupportedError
        Where the environment asks for more than one rank.
    """
    import os

    from dumpsim.frontends.mindspore.context import get_context

    size = os.environ.get("RANK_SIZE") or os.environ.get("MS_WORKER_NUM") or "1"
    if size != "1":
        raise UnsupportedError(f"a world of {size} ranks", where="mindspore.communication.init")
    name = _BACKENDS[get_context("device_target")] if backend_name is None else backend_name
    if not isinstance(name, str):
        raise ScriptTypeError(f"Backend name must be a string, but got {type(name)}")
    if name not in _GROUPS:
        raise ScriptValueError(
            "For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', "
            f"but got the 'backend_name' : {name}"
        )
    state = _state()
    state.BACKEND, state.WORLD_COMM_GROUP, state.INITED = name, _GROUPS[name], True


def release() -> None:
    """Leave the world."""
    state = _state()
    state.INITED, state.groups = False, ()


def _entered(function: str, group: str | None, *, new: bool = False) -> None:
    if group is not None and not isinstance(group, str):
        raise ScriptTypeError(
            f"For '{function}', the argument 'group' must be type of string, but got 'group' type : {type(group)}."
        )
    if not _state().INITED:
        raise _NotInitializedError("Distributed Communication has not been inited.")
    if group is not None and not new and group not in (*_GROUPS.values(), *_state().groups):
        raise ScriptValueError(f"the group {group!r} does not exist", where=function, allowed=_state().groups)


def get_rank(group: str | None = None) -> int:
    """The rank of this process: 0."""
    _entered("get_rank", group)
    return 0


def get_local_rank(group: str | None = None) -> int:
    """The rank of this process on its machine: 0."""
    _entered("get_local_rank", group)
    return 0


def get_group_size(group: str | None = None) -> int:
    """The number of ranks: 1."""
    _entered("get_group_size", group)
    return 1


def get_local_rank_size(group: str | None = None) -> int:
    """The number of ranks on this machine: 1."""
    _entered("get_local_rank_size", group)
    return 1


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank in the world of a rank in a group."""
    _entered("get_world_rank_from_group_rank", group)
    return group_rank_id


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in a group of a rank in the world."""
    _entered("get_group_rank_from_world_rank", group)
    return world_rank_id


def create_group(group: str, rank_ids: list[int]) -> None:
    """Make a group of ranks; only rank 0 exists."""
    state = _state()
    _entered("create_group", group, new=True)
    if list(rank_ids) != [0]:
        raise ScriptValueError(f"ranks {list(rank_ids)} do not exist", where="create_group", allowed=("[0]",))
    state.groups = (*state.groups, group)
