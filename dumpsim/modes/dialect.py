"""Config dialects: an ordered table of checks, and the functions that apply it.

A run raises the first error, as the vendor does; ``dumpsim check`` applies the whole table and shows all findings. The
JSON Schema is made from the same rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dumpsim.core.errors import DumpConfigError, nearest
from dumpsim.modes.profile import Profile

__all__ = [
    "Check",
    "Draft",
    "Effect",
    "Field",
    "Finding",
    "Row",
    "Rule",
    "Section",
    "first_failure",
    "schema",
    "shown",
    "walk",
    "without_effect",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding of a row of the table about a config.

    Attributes
    ----------
    level : str
        ``error``, ``warning`` or ``no effect``.
    where : str
        JSON path.
    what : str
        Our text.
    vendor : str or None
        The vendor's text, if it is known.
    function : str
        The vendor's function that logs the warning.
    forced : tuple of (str, value)
        Fields that the vendor sets to another value.
    """

    level: str
    code: str
    where: str
    what: str
    vendor: str | None = None
    allowed: tuple[str, ...] = ()
    nearest: str | None = None
    function: str = ""
    forced: tuple[tuple[str, Any], ...] = ()

    def error(self, file: str) -> DumpConfigError:
        """Return the error that a run raises for the finding."""
        return DumpConfigError(
            self.what,
            where=f"{file}: {self.where}",
            allowed=self.allowed,
            nearest=self.nearest,
            code=self.code,
            vendor=self.vendor,
        )

    @property
    def text(self) -> str:
        """Text of a warning: the vendor's, otherwise ours."""
        return self.vendor if self.vendor is not None else self.what


@dataclass(slots=True, kw_only=True)
class Draft:
    """A config while it is checked: the document, and the values so far."""

    profile: Profile
    document: Any
    environment: Mapping[str, str]
    device_id: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)

    def section(self, name: str) -> Any:
        """Return a section of the document; None if it is missing."""
        return self.document.get(name, None) if isinstance(self.document, dict) else None

    def has_section(self, name: str) -> bool:
        """Return whether the section exists, whatever its content."""
        return isinstance(self.document, dict) and name in self.document

    def has(self, row: "Field") -> bool:
        """Return whether the document has the field."""
        section = self.section(row.section)
        return isinstance(section, dict) and row.name in section

    def good(self, *names: str) -> bool:
        """Return whether all these fields were read without an error, so that rules about them can be checked."""
        return not self.bad.intersection(names)


Test = Callable[[Draft], bool]
Reader = Callable[[Any, Draft], Any]


def _always(draft: Draft) -> bool:
    return True


def _never(draft: Draft) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A required section."""

    name: str
    code: str
    vendor: str

    def examine(self, draft: Draft) -> Iterator[Finding]:
        """Yield an error if the section is missing."""
        if not draft.has_section(self.name):
            where = f"$.{self.name}"
            yield Finding(level="error", code=self.code, where=where, what="the section is missing", vendor=self.vendor)


# kind -> (the vendor's error, JSON Schema type) [spec observed 2]
_UNSIGNED = "Dump config parse failed, {name} should be unsigned int type"
_KINDS: dict[str, tuple[str, str]] = {
    "unsigned": (_UNSIGNED, "integer"),
    "boolean": ("Dump Json Parse Failed. 'enable' should be boolean type", "boolean"),  # for every field
    "string": ("Dump config parse failed, {name} should be string type", "string"),
    "array": ("Dump config parse failed, {name} should be array type", "array"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of the config.

    Attributes
    ----------
    kind : str
        ``unsigned``, ``boolean``, ``string`` or ``array``.
    required : callable
        Returns whether a missing field is an error.
    when : callable
        Returns whether the field is read; otherwise it has its default, and its value is not checked.
    reads : tuple of str
        Fields that `when` uses; if one of them has an error, the field is checked in any case.
    allowed : tuple, and refusal : str
        Allowed values, and the vendor's text for others (with ``{value}``).
    tolerated : tuple
        Values that are accepted, but not documented.
    read : callable
        Converts the JSON value; may raise DumpConfigError.
    read_default : bool
        Whether `read` also converts the default of a missing field.
    complains_as : str
        The field's name in the vendor's text, if that is the name of another field.
    """

    name: str
    section: str
    kind: str
    code: str
    about: str
    default: Any = None
    allowed: tuple[Any, ...] = ()
    tolerated: tuple[Any, ...] = ()
    refusal: str = ""
    required: Test = _never
    missing: str = "Check dump json failed, {name} not found"
    when: Test = _always
    reads: tuple[str, ...] = ()
    read: Reader | None = None
    read_default: bool = False
    complains_as: str = ""

    @property
    def where(self) -> str:
        """The field's JSON path."""
        return f"$.{self.section}.{self.name}"

    def examine(self, draft: Draft) -> Iterator[Finding]:
        """Read the field into the draft; yield at most one error."""
        draft.values[self.name] = self.default
        if draft.good(*self.reads) and not self.when(draft):
            return
        finding: Finding | None = None
        if not draft.has(self):
            if self.required(draft):
                vendor = self.missing.format(name=self.name)
                finding = self._error("the field is missing", vendor)
            elif self.read_default:
                finding = self._check(self.default, draft)
        else:
            value = draft.section(self.section)[self.name]
            finding = self._check(value, draft)
        if finding is not None:
            draft.bad.add(self.name)
            yield finding

    def _check(self, value: Any, draft: Draft) -> Finding | None:
        """Check the type, then allowed values, then call the field's own reader."""
        if not _is_kind(value, self.kind):
            vendor = _KINDS[self.kind][0].format(name=self.complains_as or self.name)
            return self._error(f"{shown(value)} is not of type {_KINDS[self.kind][1]}", vendor, value)
        if self.kind == "unsigned":
            value %= 2**32  # the vendor's field is 32 bits wide [spec observed 2, row 49]
        if self.allowed and value not in self.allowed and value not in self.tolerated:
            vendor = self.refusal.format(name=self.name, value=value)
            return self._error(f"{shown(value)} is not a legal value", vendor, value)
        try:
            draft.values[self.name] = self.read(value, draft) if self.read else value
        except DumpConfigError as error:
            return Finding(
                level="error",
                code=error.code or self.code,
                where=error.where or self.where,
                what=error.what,
                vendor=error.vendor,
                allowed=error.allowed,
                nearest=error.nearest,
            )
        return None

    def _error(self, what: str, vendor: str, value: Any = None) -> Finding:
        """Make an error of this field, with the allowed value that was probably meant."""
        allowed = tuple(shown(a) for a in self.allowed)
        meant = _meant(value, self.kind, self.allowed)
        return Finding(
            level="error", code=self.code, where=self.where, what=what, vendor=vendor, allowed=allowed, nearest=meant
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A check of fields against each other, or against the device.

    Attributes
    ----------
    field : str
        JSON path in the finding; the part after the last dot is the field's name.
    when : callable
        Returns whether the rule applies.
    level : str
        ``error`` or ``warning``.
    vendor : str
        The vendor's text; ``{value}`` is that of the field.
    what : str
        Our text.
    force : mapping
        Values that the rule sets.
    reads : tuple of str
        Fields that must have been read without an error.
    repeat : int
        Number of times that the warning is given; ``{index}`` counts.
    value : callable
        Returns ``{value}`` if it is not that of the field.
    """

    where: str
    code: str
    level: str
    when: Test
    what: str
    vendor: str | None = None
    function: str = ""
    force: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    repeat: int = 1
    value: Callable[[Draft], Any] | None = None

    def examine(self, draft: Draft) -> Iterator[Finding]:
        """Yield nothing, one error, or the warning, and set the forced values."""
        if not draft.good(*self.reads) or not self.when(draft):
            return
        value = self.value(draft) if self.value else draft.values.get(self.where.rpartition(".")[2])
        words = {"value": value, "target": draft.profile.target, "device_id": draft.device_id}
        for index in range(1, self.repeat + 1):
            yield Finding(
                level=self.level,
                code=self.code,
                where=self.where,
                what=self.what.format(**words),
                vendor=None if self.vendor is None else self.vendor.format(index=index, **words),
                function=self.function,
                allowed=self.allowed,
                nearest=self.allowed[0] if len(self.allowed) == 1 and " " not in self.allowed[0] else None,
                forced=tuple(self.force.items()),
            )
        draft.values.update(self.force)


Row = Section | Field | Rule


@dataclass(frozen=True, slots=True)
class Check:
    """A step of a validator that checks more than one field, such as all items of a list."""

    name: str
    findings: Callable[[Draft], Iterator[Finding]]

    def examine(self, draft: Draft) -> Iterator[Finding]:
        """Yield the findings of the step, beginning with the vendor's first error."""
        yield from self.findings(draft)


class Examines(Protocol):
    """A step of a table, which checks a draft."""

    def examine(self, draft: Draft) -> Iterator[Finding]: ...


@dataclass(frozen=True, slots=True)
class Effect:
    """A field, or a part of one, that has no effect under a condition."""

    section: str
    name: str
    when: Test
    why: str
    reads: tuple[str, ...] = ()  # fields that `when` uses
    part: Callable[[Draft], str] | None = None  # returns ``{part}`` in `why`


def walk(rows: Iterable[Examines], draft: Draft) -> Iterator[Finding]:
    """Iterate over the findings of all rows, in the table's order."""
    for row in rows:
        yield from row.examine(draft)


def first_failure(rows: Iterable[Examines], draft: Draft, file: str) -> tuple[Finding, ...]:
    """Return the warnings of a config without errors.

    Raises
    ------
    DumpConfigError
        For the first error, as in the vendor's code.
    """
    warnings: list[Finding] = []
    for finding in walk(rows, draft):
        if finding.level == "error":
            raise finding.error(file)
        warnings.append(finding)
    return tuple(warnings)


def without_effect(rows: "tuple[Row, ...]", effects: tuple[Effect, ...], draft: Draft) -> Iterator[Finding]:
    """Iterate over the fields of a checked draft that have no effect, and unknown ones."""
    for effect in effects:
        found = draft.section(effect.section)
        present = isinstance(found, dict) and effect.name in found
        if present and draft.good(effect.name, *effect.reads) and effect.when(draft):
            where = f"$.{effect.section}.{effect.name}"
            why = effect.why if effect.part is None else effect.why.format(part=effect.part(draft))
            yield Finding(level="no effect", code="DS-CFG-090", where=where, what=f"no effect: {why}")
    known: dict[str, set[str]] = {}
    for row in (*rows, *effects):
        if isinstance(row, Field | Effect):
            known.setdefault(row.section, set()).add(row.name)
    if isinstance(draft.document, dict):
        yield from _unknown("$", draft.document, known)
    for section, fields in known.items():
        found = draft.section(section)
        if isinstance(found, dict):
            yield from _unknown(f"$.{section}", found, fields)


def _unknown(where: str, found: Mapping[str, Any], known: Iterable[str]) -> Iterator[Finding]:
    """Iterate over keys that the vendor ignores without a message."""
    for key in found:
        if key not in known:
            yield Finding(
                level="no effect",
                code="DS-CFG-091",
                where=f"{where}.{key}",
                what="no such field; it is ignored",
                nearest=nearest(key, sorted(known)),
            )


def schema(rows: "tuple[Row, ...]", profile: Profile, title: str) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the dialect."""
    sections: dict[str, dict[str, Any]] = {}
    needed = {row.name for row in rows if isinstance(row, Section)}
    empty = Draft(profile=profile, document={"e2e_dump_settings": {}}, environment={})
    for row in rows:
        if not isinstance(row, Field):
            continue
        section = sections.setdefault(row.section, {"type": "object", "properties": {}})
        entry: dict[str, Any] = {"type": _KINDS[row.kind][1], "description": row.about}
        if row.kind == "unsigned":
            entry["minimum"] = 0
        if row.allowed:
            entry["enum"] = list(row.allowed)
        if row.default is not None and row.read is None:
            entry["default"] = list(row.default) if isinstance(row.default, tuple) else row.default
        section["properties"][row.name] = entry
        if row.when(empty) and row.required(empty):
            section.setdefault("required", []).append(row.name)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "properties": sections,
        "required": [name for name in sections if name in needed],
    }


def _is_kind(value: Any, kind: str) -> bool:
    """Return whether a JSON value is of a kind; a boolean is not a number."""
    if kind == "unsigned":
        return type(value) is int and value >= 0
    return isinstance(value, {"boolean": bool, "string": str, "array": list}[kind])


def _meant(value: Any, kind: str, allowed: tuple[Any, ...]) -> str | None:
    """Return the allowed value that was probably meant by a wrong one."""
    if kind == "boolean" and not isinstance(value, list | dict):
        return {"true": "true", "1": "true", "false": "false", "0": "false"}.get(str(value).lower())
    if kind == "unsigned" and isinstance(value, str | float):
        try:
            number = int(float(value))
        except (ValueError, OverflowError):
            return None
        return str(number) if number >= 0 and (not allowed or number in allowed) else None
    if kind == "array" and isinstance(value, str | int) and not isinstance(value, bool):
        return shown([value])
    if isinstance(value, str) and allowed:
        return nearest(value, allowed)
    return None


def shown(value: Any) -> str:
    """Format a JSON value."""
    import json

    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "{...}" if isinstance(value, dict) else "[...]"
