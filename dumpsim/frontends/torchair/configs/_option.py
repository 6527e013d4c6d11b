"""Classes of options and of groups of options; texts of errors are the vendor's. [spec ge 1.1] [spec aten 9.10]"""

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptFileError, ScriptTypeError, ScriptValueError, nearest

__all__ = ["Directory", "File", "Integer", "JsonFile", "NewDirectory", "Option", "Options", "Text"]

# the code that torch_npu appends to a message, by class of the error [spec aten 9.5]
_CODES = ((ValueError, "ERR03001", "invalid parameter"), (FileNotFoundError, "ERR03008", "resource not found"))


def _with_line(text: str, kind: type[DumpsimError]) -> str:
    """Append the vendor's error line to a message."""
    code, meaning = next(((c, m) for k, c, m in _CODES if issubclass(kind, k)), ("ERR03005", "internal error"))
    stamp = time.strftime("%Y-%m-%d-%H:%M:%S")
    return f"{text}\n\n[ERROR] {stamp} (PID:{os.getpid()}, Device:-1, RankID:-1) {code} GRAPH {meaning}"


class Option:
    """An option with its value.

    Parameters
    ----------
    default : object
    allowed : sequence, optional
        Allowed values; without it, any value is allowed.

    Examples
    --------
    >>> option = Option(False, [False, True])
    >>> option.set(True, "dump_config.enable_dump")
    >>> option.value, bool(option)
    ('1', True)
    """

    def __init__(self, default: Any, allowed: Iterable[Any] | None = None) -> None:
        self.default = default
        self.allowed = None if allowed is None else list(allowed)
        self.raw = default

    def __bool__(self) -> bool:
        return bool(self.raw)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.raw == getattr(other, "raw", None)

    __hash__ = None  # type: ignore[assignment]

    @property
    def value(self) -> str | None:
        """The value as it is passed to GE: ``1`` and ``0`` for True and False, other values as text."""
        if self.raw is None:
            return None
        return {"True": "1", "False": "0"}.get(str(self.raw), str(self.raw))

    def set(self, value: Any, where: str) -> None:
        """Set the value.

        Raises
        ------
        ScriptValueError, ScriptTypeError, ScriptFileError
            For a value that the option does not allow.
        """
        self.check(value, where)
        self.raw = value

    def check(self, value: Any, where: str) -> None:
        """Raise an error for a value that the option does not allow."""
        if self.allowed is not None and value not in self.allowed:
            kinds = f"optional list {self.allowed!r} (type: {type(self.allowed[0])})."
            raise self.error(f"Value {value!r} (type: {type(value)}) not in {kinds}", where, value)

    def error(
        self,
        text: str,
        where: str,
        value: Any,
        kind: type[DumpsimError] = ScriptValueError,
        *,
        meant: str | None = None,
    ) -> DumpsimError:
        """Return the error for a wrong value, with the vendor's text and our note."""
        allowed = tuple(map(repr, self.allowed or ()))
        if meant is None and self.allowed and isinstance(value, str):
            found = nearest(value, self.allowed)
            meant = None if found is None else repr(type(self.allowed[0])(found) if found in self.allowed else found)
        return kind(
            f"{value!r} is not a legal value",
            where=where,
            allowed=allowed,
            nearest=meant,
            vendor=_with_line(text, kind),
            code="DS-TAR-001",
        )


class Integer(Option):
    """An integer of a range."""

    def __init__(self, default: int | None, low: int, high: int) -> None:
        super().__init__(default)
        self.low = low
        self.high = high

    def check(self, value: Any, where: str) -> None:
        if not isinstance(value, int):
            raise self.error(f"Please set integer type, but got {type(value)}", where, value)
        if not self.low <= value <= self.high:
            text = f"Please set value in [{self.low}, {self.high}], {value} is out of range."
            raise self.error(text, where, value)


class Text(Option):
    """A string of a given form.

    Parameters
    ----------
    pattern : str
        The vendor's regular expression, which is used in the message only.
    example : str
    accepts : callable
        Returns whether a string is allowed, in linear time, unlike the vendor's expression.
    """

    def __init__(self, default: str, pattern: str, example: str, accepts: Any) -> None:
        super().__init__(default)
        self._pattern = pattern
        self._example = example
        self._accepts = accepts

    def check(self, value: Any, where: str) -> None:
        if not isinstance(value, str):
            text = f"expected string or bytes-like object, got '{type(value).__name__}'"
            raise self.error(text, where, value, ScriptTypeError)
        if not self._accepts(value):
            head = f"Please set legal regex value format match {self._pattern}, {value} is Illegal format"
            raise self.error(f"{head}, correct example:{self._example}.", where, value)


class Directory(Option):
    """A directory that exists."""

    def check(self, value: Any, where: str) -> None:
        if not (isinstance(value, (str, os.PathLike)) and os.path.isdir(value)):
            text = f"Please set legal dir path, {value} is not found or is not a file directory!"
            raise self.error(text, where, value, ScriptFileError)


class File(Option):
    """A file that exists, or None."""

    def check(self, value: Any, where: str) -> None:
        if value is not None and not (isinstance(value, (str, os.PathLike)) and os.path.isfile(value)):
            text = f"Please set legal file path, {value} is not found or is not a file!"
            raise self.error(text, where, value, ScriptFileError)


class JsonFile(Option):
    """A file ``*.json`` that exists, or None."""

    def check(self, value: Any, where: str) -> None:
        if value is None:
            return
        if value == "":
            raise self.error("File path cannot be empty!", where, value)
        if not (isinstance(value, str) and os.path.isfile(value) and value.endswith(".json")):
            text = f"Please set legal file path, {value} is not found or is not '.json' file!"
            meant = f"{value}.json" if isinstance(value, str) and os.path.isfile(f"{value}.json") else None
            raise self.error(text, where, value, ScriptFileError, meant=meant)


class NewDirectory(Option):
    """A directory that is created when it is needed; stored as an absolute path."""

    def set(self, value: Any, where: str) -> None:
        self.raw = os.path.realpath(value)


class Options:
    """A group of options and groups; setting an unknown attribute is an error.

    Parameters
    ----------
    title : str
        The vendor's name of the class, which its messages contain.
    where : str
        The path of the group in the configuration.
    members : mapping
        Options and groups by name; other values are plain attributes.

    Examples
    --------
    >>> group = Options("_GEConfig", "ge_config", {"oo_level": Option("O3", ["O1", "O3"])})
    >>> group.oo_level = "O1"
    >>> group.oo_level.value
    'O1'
    >>> try:
    ...     group.oo_lvl = "O1"
    ... except ValueError as error:
    ...     print(str(error).splitlines()[0])
    _GEConfig has no option oo_lvl, all options ['oo_level']
    """

    def __init__(self, title: str, where: str, members: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_title", title)
        object.__setattr__(self, "_where", where)
        object.__setattr__(self, "_members", dict(members))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_members"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        members = self.__dict__["_members"]
        if name not in members:
            known = list(members)
            raise ScriptValueError(
                f"there is no option {name!r}",
                where=self.__dict__["_where"] or "CompilerConfig",
                allowed=known,
                nearest=nearest(name, known),
                vendor=_with_line(
                    f"{self.__dict__['_title']} has no option {name}, all options {known}", ScriptValueError
                ),
                code="DS-TAR-002",
            )
        if isinstance(members[name], Option):
            where = self.__dict__["_where"]
            members[name].set(value, f"config.{where}.{name}" if where else f"config.{name}")
        else:
            members[name] = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__["_members"] == other.__dict__["_members"]

    __hash__ = None  # type: ignore[assignment]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.__dict__["_members"]]

    def changed(self) -> list[str]:
        """Return the paths of options whose value is not the default."""
        found = []
        for name, member in self.__dict__["_members"].items():
            if isinstance(member, Option) and member.raw != member.default:
                found.append(name)
            elif isinstance(member, Options):
                found += [f"{name}.{inner}" for inner in member.changed()]
        return found
