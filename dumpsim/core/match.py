"""The ``kernels`` rules of a dump config: which full names a list of texts selects.

Every element is written back as JSON, loses its quotes and blanks, and then is a pattern, an operator type or a full
name. That is why a regex cannot contain a blank and why ``\\\\d`` never matches a digit. [spec mindspore 2.2, spec
observed 1.7]
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from dumpsim.core.ecmascript import PatternError, compile_pattern
from dumpsim.core.errors import DumpConfigError

__all__ = ["KernelRule", "KernelRules"]

_REGEX_HEAD = "name-regex("


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRule:
    """One element of ``kernels``.

    Attributes
    ----------
    text : str
        The element without quotes and blanks, as the vendor's messages print it.
    kind : str
        ``regex`` (matches the whole full name), ``name`` (equals it) or ``type`` (part of the operator type, any case).
    """

    text: str
    kind: str
    pattern: "re.Pattern[str] | None" = field(default=None, compare=False)

    def matches(self, full_name: str) -> bool:
        """Whether the rule selects an operator or parameter of this full name."""
        if self.pattern is not None:
            return self.pattern.fullmatch(full_name) is not None
        if self.kind == "name":
            return full_name == self.text
        return self.text.lower() in type_part(full_name).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRules:
    """All elements of ``kernels``, in the order in which they are tried: patterns, full names, types, each sorted.

    An empty list selects everything. `duplicates` holds the texts that were given more than once. Only the first rule
    that matches a name counts as used.

    Examples
    --------
    >>> rules = KernelRules.parse(["mul", "name-regex(Default/.+dd-op[0-9])"])
    >>> [name for name in ("Default/MatMul-op0", "Default/Add-op0", "Default/Exp-op0") if rules.match(name)]
    ['Default/MatMul-op0', 'Default/Add-op0']
    """

    rules: tuple[KernelRule, ...] = ()
    duplicates: tuple[str, ...] = ()

    @classmethod
    def parse(cls, elements: Iterable[object], *, patterns: bool = True) -> "KernelRules":
        """Read the elements of the JSON array.

        Parameters
        ----------
        elements : iterable
            JSON values of any type.
        patterns : bool
            Compile regular expressions; the vendor does so in dump_mode 1 only.

        Raises
        ------
        DumpConfigError
            For a pattern that the C++ library rejects, with the library's text.
        """
        found: dict[str, KernelRule] = {}
        duplicates: list[str] = []
        for index, element in enumerate(elements):
            text = element_text(element)
            if text == "":
                continue  # skipped; a list with only such elements selects everything
            if text in found:
                duplicates.append(text)
            else:
                found[text] = _rule(text, index, patterns)
        order = ("regex", "name", "type")
        rules = tuple(sorted(found.values(), key=lambda rule: (order.index(rule.kind), rule.text.encode())))
        return cls(rules=rules, duplicates=tuple(duplicates))

    def match(self, full_name: str) -> "KernelRule | None":
        """Return the first rule that selects this name, None if no rule does.

        Without rules, return one that selects everything.
        """
        if not self.rules:
            return EVERYTHING
        return next((rule for rule in self.rules if rule.matches(full_name)), None)


EVERYTHING = KernelRule(text="", kind="type")


def element_text(element: object) -> str:
    """Return a JSON element as the vendor compares it.

    Examples
    --------
    >>> element_text(" relu "), element_text(["relu"]), element_text(None), element_text("a\\\\d")
    ('relu', '[relu]', 'null', 'a\\\\\\\\d')
    """
    try:
        text = json.dumps(element, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except RecursionError:  # nested a thousand levels deep: matches no name
        text = "[...]"
    return text.replace('"', "").replace(" ", "")


def type_part(full_name: str) -> str:
    """Return the part of a name that a type rule examines: between the last ``/`` and the last ``-``.

    Examples
    --------
    >>> type_part("Default/fc1-Dense/MatMul-op0"), type_part("fc1.weight")
    ('MatMul', 'fc1.weight')
    """
    last = full_name[full_name.rfind("/") + 1 :]
    dash = last.rfind("-")
    return last if dash < 0 else last[:dash]


def _rule(text: str, index: int, patterns: bool) -> KernelRule:
    """Classify one text."""
    if text.startswith(_REGEX_HEAD) and text.endswith(")"):
        pattern = None
        if patterns:
            try:
                pattern = compile_pattern(text[len(_REGEX_HEAD) : -1])
            except PatternError as error:
                raise DumpConfigError(
                    f"{text!r} contains an invalid regular expression",
                    where=f"$.common_dump_settings.kernels[{index}]",
                    allowed=("an ECMAScript pattern that matches the whole full name",),
                    vendor=str(error),
                    code="DS-CFG-024",
                ) from error
        return KernelRule(text=text, kind="regex", pattern=pattern)
    kind = "name" if "/" in text or "-op" in text else "type"
    return KernelRule(text=text, kind=kind)
