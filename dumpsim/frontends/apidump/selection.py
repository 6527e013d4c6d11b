"""Arguments of start, and the calls that they select."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, nearest

__all__ = ["DUMP_TYPES", "MODES", "Memory", "Request", "Selection", "check_bool"]

MODES = ("all", "list", "range", "api_list")
DUMP_TYPES = ("all", "statistics", "npy", "stack")
_REMEMBERED = 128


def check_bool(name: str, value: object) -> None:
    """The vendor's check of an argument of ``api_dump_init``: falsy values of any type pass. [spec api_dump 1.10]"""
    _check_type(name, value, bool, "api_dump_init")


def _check_type(name: str, value: object, kind: type, function: str = "api_dump_start") -> None:
    if value and not isinstance(value, kind):
        raise ScriptTypeError(
            f"{name} is {value!r}, not a {kind.__name__}",
            vendor=f"The parameter '{name}' must be {kind}",
            where=f"{function}({name}=)",
            code="DS-ADP-010",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Checked arguments of ``api_dump_start``.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        With the vendor's text, in the vendor's order. [spec api_dump 1.10]
    """

    mode: str = "all"
    scope: tuple[str, ...] = ()
    dump_type: str = "all"
    filter_data: bool = True
    filter_stack: bool = True

    @property
    def npy(self) -> bool:
        return self.dump_type in ("all", "npy")

    @property
    def statistics(self) -> bool:
        return self.dump_type in ("all", "statistics")

    @classmethod
    def checked(cls, mode: Any, scope: Any, dump_type: Any, filter_data: Any, filter_stack: Any) -> "Request":
        """Check the arguments of the script and return the request."""
        _check_choice("mode", "mode", mode, MODES)
        _check_choice("dump_type", "support_dump_type", dump_type, DUMP_TYPES)
        _check_type("scope", scope, list)
        _check_type("filter_data", filter_data, bool)
        _check_scope(mode, scope)
        return cls(
            mode=mode,
            scope=tuple(scope or ()),
            dump_type=dump_type,
            filter_data=bool(filter_data),
            filter_stack=bool(filter_stack),
        )


def _check_choice(name: str, vendor_name: str, value: Any, allowed: tuple[str, ...]) -> None:
    hash(value)  # a list is a TypeError here, as in the real tool
    if value not in allowed:
        raise ScriptValueError(
            f"unknown value {value!r}",
            vendor=f"For parameter '{vendor_name}', value '{value}' is illegal. Valid values are {set(allowed)}",
            where=f"api_dump_start({name}=)",
            allowed=allowed,
            nearest=nearest(value, allowed),
            code="DS-ADP-011",
        )


def _check_scope(mode: str, scope: Any) -> None:
    if mode == "all":
        if scope:
            raise _scope(
                f"For 'api_dump_start',  when mode is 'all', the 'scope' muse be None, but currently it is '{scope}'."
            )
        return
    start = f"For 'api_dump_start',  current mode is '{mode}', 'scope' param set invalid, "
    if scope is None:
        raise ScriptTypeError(
            f"mode {mode!r} needs a list of names",
            vendor="object of type 'NoneType' has no len()",
            where="api_dump_start(scope=)",
            code="DS-ADP-012",
        )
    if mode == "range":
        if len(scope) != 2:
            raise _scope(start + "it's must be [start, end].")
    elif not scope:
        raise _scope(start + "it's should not be an empty list.")
    for item in scope:
        if not isinstance(item, str):
            kind = f"{type(item).__name__!r}"
            raise ScriptTypeError(
                f"{item!r} is not a name or a part of one",
                vendor=f"{kind} object has no attribute 'lower'"
                if mode == "api_list"
                else f"expected string or bytes-like object, got {kind}",
                where="api_dump_start(scope=)",
                allowed=("str",),
                code="DS-ADP-012",
            )
    if mode in ("list", "range"):
        what = "The interval endpoints" if mode == "range" else "The list item"
        for item in scope:
            if not (item.rpartition("_")[2].isdigit() and "_" in item):
                # the vendor's sentence here has no comma before it [spec api_dump 1.10]
                raise _scope(f"{start.rstrip(', ')}. {what} should be in the 'Type_Name_ID' format.")


def _scope(vendor: str) -> ScriptValueError:
    return ScriptValueError("does not fit the mode", vendor=vendor, where="api_dump_start(scope=)", code="DS-ADP-012")


@dataclass(slots=True)
class Memory:
    """The state that 1.0.17 keeps between starts, and even inits. [spec api_dump 1.9, 1 and 2]

    Attributes
    ----------
    begun, ended : bool
        Progress of a range.
    answers : dict
        By mode, cached results for names.
    """

    begun: bool = False
    ended: bool = False
    answers: dict[str, dict[str, bool]] = field(default_factory=lambda: {"list": {}, "api_list": {}})

    def recall(self, mode: str, name: str, answer: Callable[[str], bool]) -> bool:
        """Return the cached result of a name, for the last 128 names; otherwise the current one."""
        known = self.answers[mode]
        found = known.pop(name) if name in known else answer(name)
        known[name] = found
        if len(known) > _REMEMBERED:
            del known[next(iter(known))]
        return found


class Selection:
    """The calls that are recorded after one start; `range` depends on the calls so far.

    Parameters
    ----------
    request : Request
    exact : bool
        Reproduce a defect of 1.0.17: names lose trailing letters before they are compared. [spec api_dump 1.9]
    memory : Memory, optional
        Reproduce another one: use the state of earlier starts.
    """

    def __init__(self, request: Request, *, exact: bool = False, memory: Memory | None = None) -> None:
        self._memory = Memory() if memory is None else memory
        self._remembers = memory is not None
        self._mode = request.mode
        self._scope = request.scope
        self._exact = exact
        self._words = tuple(word.lower() for word in request.scope) if request.mode == "api_list" else ()
        self._names = frozenset(request.scope)

    def takes(self, name: str) -> bool:
        """Whether the call ``Kind_API_count`` or the layer ``LAYER_path`` is recorded; called once each, in order."""
        if self._mode == "all":
            return True
        if self._exact:
            name = f"{name}_forward".rstrip("_forward")  # noqa: B005  # [spec api_dump 1.9, 10]
        if self._mode == "range":
            return self._in_range(name)
        if self._remembers:
            return self._memory.recall(self._mode, name, self._is_named)
        return self._is_named(name)

    def _is_named(self, name: str) -> bool:
        if self._mode == "list":
            return name in self._names
        name = name.lower()
        return any(word in name for word in self._words)

    def _in_range(self, name: str) -> bool:
        memory = self._memory
        if name == self._scope[0]:
            memory.begun = True
            return True
        if name == self._scope[1]:
            memory.ended = True
            return True
        return memory.begun and not memory.ended
