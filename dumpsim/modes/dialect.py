"""A config dialect: an ordered table of checks, and the one engine that walks it.

A run raises the first failure, as the vendor does; ``dumpsim check`` walks the whole table and shows all. The JSON
Schema comes from the same rows.
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
    """What a row of the table has to say of a config.

    Attributes
    ----------
    level : str
        ``error``, ``warning`` or ``no effect``.
    where : str
        JSON path.
    what : str
        Our sentence.
    vendor : str or None
        The vendor's text, where it is known.
    function : str
        The vendor's function that logs a warning.
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
        """The finding as the error that a run raises."""
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
        """What a warning prints: the vendor's text, else ours."""
        return self.vendor if self.vendor is not None else self.what


@dataclass(slots=True, kw_only=True)
class Draft:
    """A config on its way through the table: the document, and the values so far."""

    profile: Profile
    document: Any
    environment: Mapping[str, str]
    device_id: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)

    def section(self, name: str) -> Any:
        """A section of the document, None where it is absent; the vendor only asks whether it is there."""
        return self.document.get(name, None) if isinstance(self.document, dict) else None

    def has_section(self, name: str) -> bool:
        """Whether the section is there, whatever it holds."""
        return isinstance(self.document, dict) and name in self.document

    def has(self, row: "Field") -> bool:
        """Whether the field is in the document."""
        section = self.section(row.section)
        return isinstance(section, dict) and row.name in section

    def good(self, *names: str) -> bool:
        """All these fields were read without an error, so that rules about them make sense."""
        return not self.bad.intersection(names)


Test = Callable[[Draft], bool]
Reader = Callable[[Any, Draft], Any]


def _always(draft: Draft) -> bool:
    return True


def _never(draft: Draft) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section that must be there."""

    name: str
    code: str
    vendor: str

    def examine(self, draft: Draft) -> Iterator[Finding]:
        """One error where it is absent."""
        if not draft.has_section(self.name):
            where = f"$.{self.name}"
            yield Finding(level="error", code=self.code, where=where, what="the section is missing", vendor=self.vendor)


# kind -> (what Python makes of it, vendor's complaint, JSON Schema type) [spec observed 2]
_UNSIGNED = "Dump config parse failed, {name} should be unsigned int type"
_KINDS: dict[str, tuple[str, str]] = {
    "unsigned": (_UNSIGNED, "integer"),
    "boolean": ("Dump Json Parse Failed. 'enable' should be boolean type", "boolean"),  # names 'enable' for every field
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
        Whether its absence is an error.
    when : callable
        Whether the field is read at all; a field that is not read keeps its default and may hold anything.
    reads : tuple of str
        Fields that `when` looks at; where one of them has an error, the field is examined all the same.
    allowed : tuple, and refusal : str
        Legal values, and the vendor's text for any other (``{value}`` is filled in).
    tolerated : tuple
        Values that are accepted without being documented.
    read : callable
        Turns the JSON value into the config's; may raise DumpConfigError.
    read_default : bool
        The default goes through `read`, too, where the field is absent.
    complains_as : str
        The name in the vendor's text where it is another field's.
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
        """JSON path."""
        return f"$.{self.section}.{self.name}"

    def examine(self, draft: Draft) -> Iterator[Finding]:
        """Read the field into the draft; at most one error."""
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
        """Type, then legal values, then the field's own reader."""
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
        """An error of this field, with the legal value that was probably meant."""
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
        JSON path that the finding names, and the field's name after its last dot.
    when : callable
        Whether the rule applies.
    level : str
        ``error`` or ``warning``.
    vendor : str
        The vendor's text; ``{value}`` is the field's.
    what : str
        Our sentence.
    force : mapping
        Values that fields get.
    reads : tuple of str
        Fields that must have been read without an error.
    repeat : int
        How many times the warning is given; ``{index}`` counts.
    value : callable
        What ``{value}`` is, where it is not the field's.
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
        """Nothing, one error, or the warning and its forced values."""
        if not draft.good(*self.reads) or not self.when(draft):
            return
        value = self.value(draft) if self.value else draft.values.get(self.where.rsplit(".", 1)[-1])
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
    """A step of a validator that looks at more than one field or rule, such as all items of a list."""

    name: str
    findings: Callable[[Draft], Iterator[Finding]]

    def examine(self, draft: Draft) -> Iterator[Finding]:
        """What the step finds, the vendor's first failure first."""
        yield from self.findings(draft)


class Examines(Protocol):
    """A step of a table: it reads a draft, and says what is wrong with it."""

    def examine(self, draft: Draft) -> Iterator[Finding]: ...


@dataclass(frozen=True, slots=True)
class Effect:
    """A field, or a part of one, that changes nothing under a condition."""

    section: str
    name: str
    when: Test
    why: str
    reads: tuple[str, ...] = ()  # fields that `when` looks at
    part: Callable[[Draft], str] | None = None  # what stands for ``{part}`` in `why`


def walk(rows: Iterable[Examines], draft: Draft) -> Iterator[Finding]:
    """Every finding of every row, in the table's order."""
    for row in rows:
        yield from row.examine(draft)


def first_failure(rows: Iterable[Examines], draft: Draft, file: str) -> tuple[Finding, ...]:
    """The warnings of a config without errors.

    Raises
    ------
    DumpConfigError
        For the first error, as the vendor does.
    """
    warnings: list[Finding] = []
    for finding in walk(rows, draft):
        if finding.level == "error":
            raise finding.error(file)
        warnings.append(finding)
    return tuple(warnings)


def without_effect(rows: "tuple[Row, ...]", effects: tuple[Effect, ...], draft: Draft) -> Iterator[Finding]:
    """Fields of a walked draft that are there and change nothing, unknown ones included."""
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
    """Keys that the vendor ignores without a word."""
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
    """JSON Schema (2020-12) of the dialect."""
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
    """Whether a JSON value is of a kind; a bool is not a number."""
    if kind == "unsigned":
        return type(value) is int and value >= 0
    return isinstance(value, {"boolean": bool, "string": str, "array": list}[kind])


def _meant(value: Any, kind: str, allowed: tuple[Any, ...]) -> str | None:
    """The legal value that a wrong one probably stands for."""
    if kind == "boolean" and not isinstance(value, list | dict):
        return {"true": "true", "1": "true", "false": "false", "0": "false"}.get(str(value).lower())
    if kind == "unsigned" and isinstance(value, str | float) and not isinstance(value, bool):
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
    """A JSON value as users write it."""
    import json

    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "{...}" if isinstance(value, dict) else "[...]"
