"""Names of communication groups and of the nodes that sharding inserts. [spec parallel 2.2]"""

from collections.abc import Sequence

__all__ = ["WORLD_GROUPS", "group_name", "hashed", "ranks_text"]

WORLD_GROUPS = {"Ascend": "hccl_world_group", "GPU": "nccl_world_group", "CPU": "mccl_world_group"}
_WORD = (1 << 64) - 1
_MULTIPLIER = 0xC6A4A7935BD1E995
_SEED = 0xC70F6907
_SHIFT = 47


def hashed(text: str) -> int:
    """Return ``std::hash`` of a string, as in the GNU library on 64 bits: MurmurHash2-64A.

    Examples
    --------
    >>> hashed("0-1"), hashed("0-2-4-6")
    (5004544844489628105, 5226697808808137312)
    """
    data = text.encode()
    whole = len(data) // 8 * 8
    value = (_SEED ^ len(data) * _MULTIPLIER) & _WORD
    for at in range(0, whole, 8):
        block = int.from_bytes(data[at : at + 8], "little") * _MULTIPLIER & _WORD
        block = (block ^ block >> _SHIFT) * _MULTIPLIER & _WORD
        value = (value ^ block) * _MULTIPLIER & _WORD
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _WORD
    value = (value ^ value >> _SHIFT) * _MULTIPLIER & _WORD
    return value ^ value >> _SHIFT


def ranks_text(ranks: Sequence[int], devices: int) -> str:
    """Return the attribute ``group_ranks``.

    Examples
    --------
    >>> ranks_text((1, 3), 4), ranks_text((0, 1), 2)
    ('1-3', 'WORLD_GROUP')
    """
    return "WORLD_GROUP" if len(ranks) == devices else "-".join(map(str, ranks))


def group_name(ranks: Sequence[int], devices: int, target: str = "Ascend") -> str:
    """Return the name of the group of these ranks.

    Examples
    --------
    >>> group_name((1, 3), 4), group_name((0, 1), 2)
    ('2-4190060298023907007', 'hccl_world_group')
    """
    if len(ranks) == devices:
        return WORLD_GROUPS[target]
    return f"{len(ranks)}-{hashed('-'.join(map(str, ranks)))}"
