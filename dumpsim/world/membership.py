"""Who is in a group: the names of the group of all ranks, and what a new group must be."""

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
    """Return the members of a group that a rank creates.

    Parameters
    ----------
    name : str
    members : sequence of int
    rank, size : int
        The rank that creates it, and the number of all.
    existing : collection of str
        Groups that it has created before.

    Raises
    ------
    BadInputError
        For a name in use, no or repeated members, ranks outside of the world, and a group without the rank itself.

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
        raise BadInputError(f"rank {rank} has a group of this name", where=where)
    given = tuple(members)
    if not given:
        raise BadInputError("it has no ranks", where=where, allowed=[f"0 to {size - 1}"])
    for member in given:
        if isinstance(member, bool) or not isinstance(member, int) or not 0 <= member < size:
            raise BadInputError(f"rank {member} does not exist", where=where, allowed=[f"0 to {size - 1}"])
    if len(set(given)) < len(given):
        raise BadInputError(f"a rank is there twice: {list(given)}", where=where)
    if rank not in given:
        raise BadInputError(f"rank {rank} creates it and is none of its ranks {list(given)}", where=where)
    return given
