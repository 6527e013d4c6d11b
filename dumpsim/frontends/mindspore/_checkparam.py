"""``mindspore._checkparam``: argument checks with MindSpore's messages. [observed 2.10]"""

import operator
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._standin import vendored

EQ, NE, LT, LE, GT, GE, INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH, IN, NOT_IN = range(1, 13)

Relation = Callable[[Any, Any], Any]
_RELATIONS: Mapping[int, tuple[str, Relation]] = MappingProxyType(
    {
        EQ: ("=", operator.eq),
        NE: ("!=", operator.ne),
        LT: ("<", operator.lt),
        LE: ("<=", operator.le),
        GT: (">", operator.gt),
        GE: (">=", operator.ge),
        IN: ("in", lambda value, allowed: value in allowed),
        NOT_IN: ("not in", lambda value, refused: value not in refused),
    }
)
# relation -> bracket and comparison at the lower end, the same at the upper end
_RANGES: Mapping[int, tuple[str, Relation, str, Relation]] = MappingProxyType(
    {
        INC_NEITHER: ("(", operator.lt, ")", operator.lt),
        INC_LEFT: ("[", operator.le, ")", operator.lt),
        INC_RIGHT: ("(", operator.lt, "]", operator.le),
        INC_BOTH: ("[", operator.le, "]", operator.le),
    }
)


def _subject(arg_name: str | None, prim_name: str | None) -> str:
    name = f"'{arg_name}'" if arg_name else "input value"
    return f"For '{prim_name}', the {name}" if prim_name else f"The {name}"


def check(
    arg_name: str,
    arg_value: Any,
    value_name: str,
    value: Any,
    rel: int = EQ,
    prim_name: str | None = None,
    excp_cls: type[Exception] = ValueError,
) -> Any:
    """Return `arg_value` if it has the relation `rel` to `value`.

    Examples
    --------
    >>> check("axis", 1, "rank", 2, LT)
    1
    """
    sign, holds = _RELATIONS[rel]
    if not holds(arg_value, value):
        subject = f"For '{prim_name}', the '{arg_name}'" if prim_name else f"The '{arg_name}'"
        raise excp_cls(f"{subject} should be {sign} {value_name}: {value}, but got {arg_value}.")
    return arg_value


def _check_number(value: Any, bound: Any, rel: int, kind: type, arg_name: str | None, prim_name: str | None) -> Any:
    subject = _subject(arg_name, prim_name)
    if not isinstance(value, kind):
        raise ScriptTypeError(f"{subject} must be {kind.__name__}, but got '{type(value).__name__}'")
    sign, holds = _RELATIONS[rel]
    if isinstance(value, bool) or not holds(value, bound):
        error = ScriptTypeError if isinstance(value, bool) else ScriptValueError
        raise error(
            f"{subject} must be {kind.__name__} and must {sign} {bound}, but got '{value}' with type "
            f"'{type(value).__name__}'."
        )
    return value


def check_int(arg_value: Any, value: int, rel: int, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is an int with the relation `rel` to `value`."""
    return _check_number(arg_value, value, rel, int, arg_name, prim_name)


def check_equal_int(arg_value: Any, value: int, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is an int equal to `value`."""
    return check_int(arg_value, value, EQ, arg_name, prim_name)


def check_positive_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is an int above 0.

    Examples
    --------
    >>> check_positive_int(0, "size", "Pad")
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptValueError: For 'Pad', the 'size' must be int and must > 0, but got '0' with type 'int'.
    """
    return check_int(arg_value, 0, GT, arg_name, prim_name)


def check_non_negative_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is an int of at least 0."""
    return check_int(arg_value, 0, GE, arg_name, prim_name)


def check_negative_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is an int below 0."""
    return check_int(arg_value, 0, LT, arg_name, prim_name)


def check_non_positive_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is an int of at most 0."""
    return check_int(arg_value, 0, LE, arg_name, prim_name)


def check_positive_int_sequence(
    sequence: Iterable[Any], arg_name: str | None = None, prim_name: str | None = None
) -> Iterable[Any]:
    """Return `sequence` if its items are ints above 0."""
    for i, item in enumerate(sequence):
        check_positive_int(item, f"{arg_name}[{i}]", prim_name)
    return sequence


def check_non_negative_int_sequence(
    sequence: Iterable[Any], arg_name: str | None = None, prim_name: str | None = None
) -> Iterable[Any]:
    """Return `sequence` if its items are ints of at least 0."""
    for i, item in enumerate(sequence):
        check_non_negative_int(item, f"{arg_name}[{i}]", prim_name)
    return sequence


def check_float(
    arg_value: Any, value: float, rel: int, arg_name: str | None = None, prim_name: str | None = None
) -> Any:
    """Return `arg_value` if it is a float with the relation `rel` to `value`."""
    return _check_number(arg_value, value, rel, float, arg_name, prim_name)


def check_positive_float(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is a float above 0."""
    return check_float(arg_value, 0, GT, arg_name, prim_name)


def check_non_negative_float(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is a float of at least 0."""
    return check_float(arg_value, 0, GE, arg_name, prim_name)


def check_is_number(arg_value: Any, arg_type: type, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is a number of the given type."""
    if isinstance(arg_value, arg_type) and not isinstance(arg_value, bool):
        return arg_value
    subject = f"For '{prim_name}', the" if prim_name else "The"
    raise ScriptTypeError(
        f"{subject} type of '{arg_name}' must be '{arg_type.__name__}', but got '{type(arg_value).__name__}'."
    )


def check_is_int(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is an int."""
    return check_is_number(arg_value, int, arg_name, prim_name)


def check_is_float(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is a float."""
    return check_is_number(arg_value, float, arg_name, prim_name)


def check_number_range(
    arg_value: Any,
    lower_limit: Any,
    upper_limit: Any,
    rel: int,
    value_type: type,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> Any:
    """Return `arg_value` if it is a number of the given type between two limits.

    Examples
    --------
    >>> check_number_range(3, 0, 3, INC_BOTH, int)
    3
    """
    subject = _subject(arg_name, prim_name)
    if isinstance(arg_value, bool) or not isinstance(arg_value, value_type):
        raise ScriptTypeError(f"{subject} must be '{value_type.__name__}',  but got '{type(arg_value).__name__}'.")
    left, above, right, below = _RANGES[rel]
    if not (above(lower_limit, arg_value) and below(arg_value, upper_limit)):
        raise ScriptValueError(
            f"{subject} must be in range of {left}{lower_limit}, {upper_limit}{right}, but got {arg_value} with type "
            f"'{type(arg_value).__name__}'."
        )
    return arg_value


def check_int_range(
    arg_value: Any,
    lower_limit: int,
    upper_limit: int,
    rel: int,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> Any:
    """Return `arg_value` if it is an int between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, int, arg_name, prim_name)


def check_float_range(
    arg_value: Any,
    lower_limit: float,
    upper_limit: float,
    rel: int,
    arg_name: str | None = None,
    prim_name: str | None = None,
) -> Any:
    """Return `arg_value` if it is a float between two limits."""
    return check_number_range(arg_value, lower_limit, upper_limit, rel, float, arg_name, prim_name)


def check_bool(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it is a bool."""
    if not isinstance(arg_value, bool):
        raise ScriptTypeError(f"{_subject(arg_name, prim_name)} must be a bool, but got {type(arg_value).__name__}.")
    return arg_value


def check_string(
    arg_value: Any, valid_values: Iterable[str], arg_name: str | None = None, prim_name: str | None = None
) -> Any:
    """Return `arg_value` if it is one of the given strings."""
    if isinstance(arg_value, str) and arg_value in valid_values:
        return arg_value
    subject = _subject(arg_name or "parameter", prim_name)
    raise ScriptValueError(f"{subject} must be str and must be in '{valid_values}', but got '{arg_value}'.")


def check_value_type(arg_name: str, arg_value: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """Return `arg_value` if it has one of the given types; a bool does not count as an int.

    Examples
    --------
    >>> check_value_type("axis", (0, 1), (int, tuple))
    (0, 1)
    """
    types = tuple(valid_types) if isinstance(valid_types, Iterable) else (valid_types,)
    if isinstance(arg_value, types) and not (isinstance(arg_value, bool) and bool not in types):
        return arg_value
    names = [kind.__name__ for kind in types]
    wanted = f"'{names[0]}'" if len(names) == 1 else f"one of '{names}'"
    subject = f"For '{prim_name}', the" if prim_name else "The"
    raise ScriptTypeError(
        f"{subject} type of '{arg_name}' should be {wanted}, but got type '{type(arg_value).__name__}'."
    )


def check_isinstance(arg_name: str, arg_value: Any, classes: Any) -> Any:
    """Return `arg_value` if it is an instance of one of the given classes."""
    if not isinstance(arg_value, classes):
        raise ScriptValueError(f"The parameter '{arg_name}' must be isinstance of {classes}, but got {arg_value}.")
    return arg_value


def twice(x: Any) -> Any:
    """Return a number twice, and a tuple unchanged.

    Examples
    --------
    >>> twice(3)
    (3, 3)
    """
    return x if isinstance(x, tuple) else (x, x)


def __getattr__(name: str) -> Any:
    return vendored("mindspore._checkparam", name)
