"""Arguments of start, and which calls they select."""

from dataclasses import dataclass
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, nearest

__all__ = ["DUMP_TYPES", "MODES", "Request", "Selection", "check_bool"]

MODES = ("all", "list", "range", "api_list")
DUMP_TYPES = ("all", "statistics", "npy", "stack")


def check_bool(name: str, value: object) -> None:
    """The vendor's check: falsy values of any type pass. [spec api_dump 1.10]"""
    _check_type(name, value, bool)


def _check_type(name: str, value: object, kind: type) -> None:
    if value and not isinstance(value, kind):
        raise ScriptTypeError(
            f"{name} is {value!r}, not a {kind.__name__}",
            vendor=f"The parameter '{name}' must be {kind}",
            where=f"api_dump_start({name}=)",
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
        """From what the script gave."""
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
            f"{value!r} is not known",
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
    if mode in ("list", "range"):
        what = "The interval endpoints" if mode == "range" else "The list item"
        for item in scope:
            if not (isinstance(item, str) and item.rpartition("_")[2].isdigit() and "_" in item):
                # the vendor's sentence here has no comma before it [spec api_dump 1.10]
                raise _scope(f"{start.rstrip(', ')}. {what} should be in the 'Type_Name_ID' format.")


def _scope(vendor: str) -> ScriptValueError:
    return ScriptValueError("does not fit the mode", vendor=vendor, where="api_dump_start(scope=)", code="DS-ADP-012")


class Selection:
    """Which calls of one start are recorded; `range` remembers how far the run has come.

    Parameters
    ----------
    request : Request
    exact : bool
        With the defect of 1.0.17: LAYER names lose trailing letters before api_list looks at them. [spec api_dump 1.9]
    """

    def __init__(self, request: Request, *, exact: bool = False) -> None:
        self._mode = request.mode
        self._scope = request.scope
        self._exact = exact
        self._words = tuple(word.lower() for word in request.scope) if request.mode == "api_list" else ()
        self._names = frozenset(request.scope)
        self._begun = False
        self._ended = False

    def takes(self, name: str) -> bool:
        """Whether the call ``Kind_API_count`` or the layer ``LAYER_path`` is recorded; asked once, in order."""
        match self._mode:
            case "all":
                return True
            case "list":
                return name in self._names
            case "api_list":
                if self._exact and name.startswith("LAYER_"):
                    name = name.rstrip("_forward")  # noqa: B005  # [spec api_dump 1.9, 10]
                name = name.lower()
                return any(word in name for word in self._words)
        if name == self._scope[0]:
            self._begun = True
            return True
        if name == self._scope[1]:
            self._ended = True
            return True
        return self._begun and not self._ended
