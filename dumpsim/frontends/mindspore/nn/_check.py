"""Argument checks with MindSpore's messages."""

from collections.abc import Sequence
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError

__all__ = ["bool_value", "choice", "pair", "positive_int", "positive_pair", "typed"]


def positive_int(value: Any, name: str, owner: str) -> int:
    """Return `value` if it is an int above 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ScriptTypeError(f"For '{owner}', the '{name}' must be int, but got '{type(value).__name__}'.")
    if value <= 0:
        raise ScriptValueError(
            f"For '{owner}', the '{name}' must be int and must > 0, but got '{value}' with type 'int'."
        )
    return value


def bool_value(value: Any, name: str, owner: str) -> bool:
    """Return `value` if it is a bool."""
    if not isinstance(value, bool):
        raise ScriptTypeError(f"For '{owner}', the '{name}' must be a bool, but got {type(value).__name__}.")
    return value


def typed(value: Any, name: str, kinds: Sequence[type], owner: str) -> Any:
    """Return `value` if it has one of the types `kinds`; a bool does not count as a number."""
    if not isinstance(value, tuple(kinds)) or (isinstance(value, bool) and bool not in kinds):
        names = [kind.__name__ for kind in kinds]
        wanted = f"one of '{names}'" if len(names) > 1 else f"'{names[0]}'"
        raise ScriptTypeError(
            f"For '{owner}', the type of '{name}' should be {wanted}, but got type '{type(value).__name__}'."
        )
    return value


def choice(value: Any, allowed: Sequence[str], name: str, owner: str) -> str:
    """Return `value` if it is one of the allowed strings."""
    if value not in allowed:
        raise ScriptValueError(
            f"For '{owner}', the '{name}' must be str and must be in '{list(allowed)}', but got '{value}'."
        )
    return str(value)


def number_type(value: Any, name: str, kinds: Sequence[Any], owner: str) -> None:
    """Refuse a tensor of another number type."""
    if value.dtype not in kinds:
        wanted = f"one of {list(kinds)!r}" if len(kinds) > 1 else str(kinds[0])
        raise ScriptTypeError(f"For '{owner}', the '{name}' should be {wanted}, but got '{value.dtype!r}'.")


def pair(value: Any) -> Any:
    """Return an int twice, and a tuple unchanged."""
    if not isinstance(value, (int, tuple)):
        raise ScriptTypeError(
            f"When expanding an int number to tuple, input type must be integer or tuple[int], but got {type(value)}"
        )
    return (value, value) if isinstance(value, int) else value


def positive_pair(value: Any, name: str, owner: str) -> tuple[int, int]:
    """Return two ints above 0 from one int or from a pair."""
    both = pair(value)
    if len(both) != 2:
        raise ScriptTypeError(f"When expanding an int number to tuple, input tuple dimension must be 2, but got {both}")
    return positive_int(both[0], f"{name} item", owner), positive_int(both[1], f"{name} item", owner)
