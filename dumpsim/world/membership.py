"""Members of groups: the names of the group of all ranks, and the checks of a new group."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from dumpsim.core.errors import BadInputError

__all__ = ["WORLD", "WORLD_GROUPS", "check_members"]

WORLD = "hccl_world_group"
# the vendor's names of the group of all ranks, by back end
WORLD_GROUPS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys((WORLD, "nccl_world_group", "mccl_world_group", ""), WORLD)
)


def check_members(
    name: str, members: Sequence[int], rank: int, size: int, existing: Collection[str]
) -> tuple[int, ...]:
    """Check the members of a group that a rank creates, and return them.

    Parameters
    ----------
    name : str
    members : sequence of int
    rank, size : int
        The rank that creates the group, and the number of all ranks.
    existing : collection of str
        Groups that it has created before.

    Raises
    ------
    BadInputError
        For a name in use, missing or repeated members, unknown ranks, and a group without the rank itself.

    Examples
    --------
    >>> check_members("pair", [2, 0], 0, 4, ())
    (2, 0)
    >>> check_members("pair", [2, 4], 0, 4, ())
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.BadInputError: group 'pair': rank 4 does not exist; allowed: 0 to 3
    """
    where = f"group {name!r}"
    if name in existing or name in WORLD_GROUPS:
        raise BadInputError(f"rank {rank} already has a group of this name", where=where)
    given = tuple(members)
    if not given:
        raise BadInputError("the list of ranks is empty", where=where, allowed=[f"0 to {size - 1}"])
    for member in given:
        if isinstance(member, bool) or not isinstance(member, int) or not 0 <= member < size:
            raise BadInputError(f"rank {member} does not exist", where=where, allowed=[f"0 to {size - 1}"])
    if len(set(given)) < len(given):
        raise BadInputError(f"a rank is repeated: {list(given)}", where=where)
    if rank not in given:
        raise BadInputError(f"rank {rank} creates it, but is not one of its ranks {list(given)}", where=where)
    return given
