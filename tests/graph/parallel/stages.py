"""The text of the stages ``step_parallel_begin`` and ``step_parallel_end``, read into plain rows."""

import re
from dataclasses import dataclass, field

__all__ = ["Line", "Stage", "read"]

_NODE = re.compile(r"  (?! )(?:%(?P<index>\d+)\((?P<name>[^)]*)\) = )?(?P<call>[^(]+)\(")
_SUBGRAPH = re.compile(r"^subgraph @(\S+?)(?: parent: \[[^\]]*\])?\((.*?)\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TITLES = ("primitive_attrs", "cnode_attrs", "cnode_primal_attrs")


@dataclass
class Line:
    """One node: operands are ``%3``, names of parameters and texts of constants."""

    index: int | None
    name: str
    call: str
    operands: list[str]
    instance: str | None = None
    attrs: dict[str, dict[str, str]] = field(default_factory=dict)
    strategy: str = ""
    types: str = ""
    scope: str = ""


@dataclass
class Stage:
    """A function graph: its parameters with their types, and its nodes."""

    name: str
    params: dict[str, str]
    lines: list[Line]


def read(text: str) -> list[Stage]:
    """The function graphs of a stage, in the order of the text."""
    params = dict(re.findall(r"^%(para\d+_[^:]+): (.*)$", text, re.MULTILINE))
    found = []
    for head, arguments, body in _SUBGRAPH.findall(text):
        own = [a.strip().removeprefix("%") for a in arguments.split(",") if a.strip()]
        types = re.search(r"# Parameters: \d+, \((.*)\)\nsubgraph @" + re.escape(head), text)
        kinds = split(types[1]) if types else []
        found.append(Stage(head, dict(zip(own, kinds, strict=False)) if own else params, list(_lines(body))))
    return found


def _lines(body: str):
    line = None
    for row in body.splitlines():
        if match := _NODE.match(row):
            if line is not None:
                yield line
            line = _line(row, match)
        elif line is not None and row.startswith("      : "):
            line.types = row.removeprefix("      : ")
        elif line is not None and row.startswith("      # Scope: "):
            line.scope = row.removeprefix("      # Scope: (").removesuffix(")")
    if line is not None:
        yield line


def _line(row: str, match: re.Match[str]) -> Line:
    start = match.end() - 1
    stop = _closing(row, start)
    line = Line(
        int(match["index"]) if match["index"] is not None else None,
        match["name"] or "",
        match["call"],
        split(row[start + 1 : stop]),
    )
    rest = row[stop + 1 :]
    while rest := rest.strip():
        title = next((t for t in _TITLES if rest.startswith(f"{t}: {{")), "")
        if title:
            rest = rest[len(title) + 2 :]
        elif not rest.startswith("{"):
            break
        end = _closing(rest, 0)
        inside = rest[1:end]
        if title:
            line.attrs[title] = dict(item.split(": ", 1) for item in split(inside))
        elif inside.startswith("instance name: "):
            line.instance = inside.removeprefix("instance name: ")
        elif inside.startswith("in_strategy: "):
            line.strategy = inside.removeprefix("in_strategy: ")
        rest = rest[end + 1 :]
    return line


def _closing(text: str, start: int) -> int:
    """Return the position at which the bracket that opens at `start` closes."""
    depth = 0
    quoted = False
    for at in range(start, len(text)):
        sign = text[at]
        if sign == '"':
            quoted = not quoted
        if quoted:
            continue
        depth += (sign in "([{<") - (sign in ")]}>" and text[at - 1] != "-")
        if depth == 0:
            return at
    raise ValueError(text)


def split(text: str) -> list[str]:
    """A list at its outer commas."""
    found, depth, start, quoted = [], 0, 0, False
    for at, sign in enumerate(text):
        if sign == '"':
            quoted = not quoted
        if quoted:
            continue
        depth += (sign in "([{<") - (sign in ")]}>" and text[at - 1] != "-")
        if sign == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*found, last] if last else found
