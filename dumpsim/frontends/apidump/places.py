"""Where the values are that a call takes and gives: positions in sequences, words for the keys of dicts."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["LONGEST", "TOO_DEEP", "held", "leaves", "tensors", "words"]

LONGEST = 160  # characters of a place: a file name has room for them and the name of the call
TOO_DEEP = "place too deep for the name of a file"

_LONGEST = 64  # characters of a word: a file name has room for some of them
_HOLDERS: tuple[tuple[type | tuple[type, ...], str], ...] = ((dict, "dict"), ((set, frozenset), "set"))


def leaves(value: Any, *, into_dicts: bool = False) -> Iterator[tuple[str, Any]]:
    """The values inside of lists and tuples with their places; those inside of dicts where asked for.

    A container that is met again inside of itself is a leaf.

    Examples
    --------
    >>> list(leaves((7, [8, {"a/b": 9}]), into_dicts=True))
    [('.0', 7), ('.1.0', 8), ('.1.1.a_b', 9)]
    >>> list(leaves(7))
    [('', 7)]
    """
    return _leaves(value, "", into_dicts, ())


def _leaves(value: Any, place: str, into_dicts: bool, around: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    items: Iterable[tuple[Any, Any]]
    if isinstance(value, (list, tuple)):
        items = enumerate(value)
    elif into_dicts and isinstance(value, dict):
        items = zip(words(value), value.values(), strict=True)
    else:
        yield place, value
        return
    if any(value is container for container in around):
        yield place, value
        return
    for word, item in items:
        yield from _leaves(item, f"{place}.{word}", into_dicts, (*around, value))


def words(keys: Iterable[Any]) -> list[str]:
    """A word for each key: part of a file name, no position of its own, and no other key's.

    Examples
    --------
    >>> words(["out", "../x", ".._x", 0, "0"])
    ['out', '___x', '___x_2', '0', '0_2']
    """
    found: list[str] = []
    for key in keys:
        word = plain = re.sub(r"[^0-9A-Za-z_]", "_", str(key))[:_LONGEST]
        number = 1
        while word in found:
            number += 1
            word = f"{plain}_{number}"
        found.append(word)
    return found


def held(leaf: Any, tensor: type) -> tuple[str, int]:
    """What a leaf that is not recorded holds, and how many: tensors in a holder of another kind, or values of numpy.

    Examples
    --------
    >>> held({"a": 1.0, "b": [2.0]}, float), held(3, float), held({1.0}, float)
    (('tensor in a dict', 2), ('', 0), ('tensor in a set', 1))
    """
    for kind, name in _HOLDERS:
        if isinstance(leaf, kind):
            return f"tensor in a {name}", tensors(leaf, tensor)
    if is_dataclass(leaf) and not isinstance(leaf, type):
        return "tensor in a dataclass", tensors([getattr(leaf, field.name, None) for field in fields(leaf)], tensor)
    if isinstance(leaf, (bool, int, float)):
        return "", 0
    if isinstance(leaf, (np.ndarray, np.generic)):
        return "value of numpy", 1
    return ("complex number", 1) if isinstance(leaf, complex) else ("", 0)


def tensors(value: Any, tensor: type) -> int:
    """How many tensors are in lists, tuples, dicts and sets.

    Examples
    --------
    >>> tensors([1.0, {"a": (2.0, 3)}], float)
    2
    """
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return sum(tensors(item, tensor) for item in value)
    return int(isinstance(value, tensor))
