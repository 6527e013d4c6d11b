"""Names of the leaves of arguments and results: positions in sequences, words for keys of dicts."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["LONGEST", "TOO_DEEP", "leaves", "tensors", "unrecorded", "words"]

LONGEST = 160  # characters of a place, so that a file name has room for the name of the call
TOO_DEEP = "place too deep for the name of a file"

_LONGEST = 64  # characters of a word, so that a file name has room for several of them
_HOLDERS: tuple[tuple[type | tuple[type, ...], str], ...] = ((dict, "dict"), ((set, frozenset), "set"))


def leaves(value: Any, *, into_dicts: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of lists and tuples, optionally of dicts, with their places.

    A container that contains itself is a leaf there.

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
    """Return a word for each key that is valid in a file name and unique.

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


def unrecorded(leaf: Any, tensor: type) -> tuple[str, int]:
    """Return what an unrecorded leaf contains, and how many: tensors in another kind of container, or numpy values.

    Examples
    --------
    >>> unrecorded({"a": 1.0, "b": [2.0]}, float), unrecorded(3, float), unrecorded({1.0}, float)
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
    """Return the number of tensors in lists, tuples, dicts and sets.

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
