"""The communication state of a rank: its back end, and whether it has entered the job."""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dumpsim.world.context import current

__all__ = [
    "BACKENDS",
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "WORLD_GROUPS",
    "CommunicationState",
    "GlobalComm",
    "communication_state",
]

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"

WORLD_GROUPS = MappingProxyType(
    {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
)
BACKENDS = MappingProxyType({"Ascend": "hccl", "GPU": "nccl", "CPU": "mccl"})


@dataclass(slots=True)
class CommunicationState:
    """The state that `init` and `create_group` set in a rank.

    Attributes
    ----------
    BACKEND, WORLD_COMM_GROUP, INITED, CHECK_ENVS
        The attributes of `GlobalComm`.
    entered : bool
        True between `init` and `release`.
    groups : dict
        The members passed to `create_group`, by group.
    """

    BACKEND: str = "hccl"
    WORLD_COMM_GROUP: str = HCCL_WORLD_COMM_GROUP
    INITED: bool = False
    CHECK_ENVS: bool = True
    entered: bool = False
    groups: dict[str, list[int]] = field(default_factory=dict)


def communication_state() -> CommunicationState:
    """Return the state of the current rank."""
    return current().get(CommunicationState)


class _OfRank(type):
    """Metaclass that maps attributes in capitals to the rank's `CommunicationState`."""

    def __getattr__(cls, name: str) -> Any:
        return getattr(communication_state(), cls._known(name))

    def __setattr__(cls, name: str, value: Any) -> None:
        setattr(communication_state(), cls._known(name), value)

    def _known(cls, name: str) -> str:
        if not name.isupper() or name not in CommunicationState.__slots__:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return name


class GlobalComm(metaclass=_OfRank):
    """Back end and name of the group of all ranks: ``BACKEND``, ``WORLD_COMM_GROUP``, ``INITED``, ``CHECK_ENVS``.

    Examples
    --------
    >>> GlobalComm.INITED
    False
    """
