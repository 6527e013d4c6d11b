"""Functions and methods that choose between several signatures op by op, and their errors. [observed 2.10]"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common._operandtypes import is_tensor, record, type_name

__all__ = ["check", "overloaded"]


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _starts_with_int(kind: type[list[Any]] | type[tuple[Any, ...]]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind) and (not value or _is_int(value[0]) or is_tensor(value[0]))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating))


#: Predicates by the name of the type in the vendor's errors.
_ACCEPTS: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        "Tensor": is_tensor,
        "None": lambda value: value is None,
        "Number": _is_number,
        "number": _is_number,
        "int": _is_int,
        "float": lambda value: isinstance(value, (float, int, np.floating)) and not isinstance(value, bool),
        "bool": lambda value: isinstance(value, bool),
        "string": lambda value: isinstance(value, str),
        "str": lambda value: isinstance(value, str),
        "mstype": lambda value: isinstance(value, DType),
        "tuple of int": _starts_with_int(tuple),
        "list of int": _starts_with_int(list),
        "Tuple": lambda value: isinstance(value, tuple),
        "List": lambda value: isinstance(value, list),
        "any": lambda value: True,
        "Storage": lambda value: False,
    }
)


def _is_list(kinds: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the first argument may be a tuple."""
    return any("tuple" in kind.lower() for kind in next(iter(kinds.values())))


@dataclass(frozen=True, slots=True)
class Overload:
    """One of the signatures of a function.

    Attributes
    ----------
    kinds : mapping of str to tuple of str
        The types that each argument accepts, in order.
    positional : int
        How many of the arguments are positional.
    """

    kinds: Mapping[str, tuple[str, ...]]
    positional: int

    def fits(self, args: Sequence[Any], options: Mapping[str, Any]) -> bool:
        """Whether the names, number and types of arguments match this signature."""
        if args and self.positional == 1 and all(map(_is_int, args)) and _is_list(self.kinds):
            args = (tuple(args),)  # f(2, 3) for f((2, 3))
        if len(args) > self.positional:
            return False
        named = {**dict(zip(self.kinds, args, strict=False)), **options}
        return len(named) == len(args) + len(options) and all(
            name in self.kinds and any(_ACCEPTS[kind](value) for kind in self.kinds[name])
            for name, value in named.items()
        )


@cache
def _overloads(path: str) -> tuple[str, tuple[Overload, ...]]:
    """Return the name that errors show, and the signatures."""
    texts = record("overloads").get(path, ())
    found = []
    for text in texts:
        inner = text.partition("(")[2]
        arguments = re.findall(r"(\w+)=<([^>]*)>", inner)
        positional = len(re.findall(r"\w+=<", inner.partition("*, ")[0]))
        kinds = {name: tuple(re.split(", *", listed)) for name, listed in arguments}
        found.append(Overload(MappingProxyType(kinds), positional))
    name = texts[0].partition("(")[0].rpartition(".")[2] if texts else ""
    return name, tuple(found)


def check(path: str, args: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Check that arguments match a signature of a function. Graphs have other texts and are not checked.

    Parameters
    ----------
    path : str
        ``mint.add``, ``Tensor.add``.
    args, options
        The arguments of the call; those of a method without the tensor.

    Raises
    ------
    ScriptTypeError
        If no signature matches; with the vendor's text.
    """
    if capturing() is not None:
        return
    name, overloads = _overloads(path)
    # a function needs its first argument; that of a method is the tensor
    missing = path.startswith("mint.") and not args and not options
    if overloads and (missing or not any(one.fits(args, options) for one in overloads)):
        given = ", ".join([*map(type_name, args), *(f"{key}={type_name(value)}" for key, value in options.items())])
        raise ScriptTypeError(f'Failed calling {name} with "{name}({given})".')


def overloaded(path: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function that checks its arguments against the recorded signatures first."""

    def decorated(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def checked(*args: _P.args, **options: _P.kwargs) -> _R:
            check(path, args, options)
            return function(*args, **options)

        return checked

    return decorated
