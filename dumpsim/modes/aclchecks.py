"""ADUMP's validator of an ACL config, with its steps in the vendor's order. [spec ge 2.3, 2.5, 2.6]

A run stops at the first finding; ``dumpsim check`` shows all findings that do not depend on wrong items.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from dumpsim.modes.aclitems import (
    DUMP,
    EXCEPTION_SCENES,
    ITEMS,
    KERNEL_DATA,
    STATISTICS,
    WATCHER,
    conflict,
    content,
    unknown_value,
    value_error,
)
from dumpsim.modes.dialect import Check, Draft, Finding

__all__ = ["ADUMP", "IP_PATH", "entries", "is_address", "section", "step_error", "text"]

_NOT_FOUND = "The configuration item is not found"
_EMPTY = "The configuration item value is empty"
_MUST_BE = "This configuration item must be of the {} type"
_MEMBER_MUST_BE = "The member type of this configuration item must be {}"
_MOST = 100  # intervals of dump_step, members of a blacklist
_LONGEST_PATH = 512
IP_PATH = re.compile(r"(?P<host>[^:]*):(?P<path>.*)", re.DOTALL)
_PATH_CHARS = re.compile(r"[A-Za-z0-9\-=\[\];\\,./!@#$%^&*()_+{}:?]*")
_LISTS = ("layer", "watcher_nodes")
_BLACKLISTS = ("optype_blacklist", "opname_blacklist")


def section(draft: Draft) -> Mapping[str, Any]:
    """Return the object under ``dump``; an empty one if it is missing or not an object."""
    found = draft.section(DUMP)
    return found if isinstance(found, dict) else {}


def text(draft: Draft, name: str) -> str:
    """Return the value of a string item; its default if it is missing or wrong."""
    item = next(item for item in ITEMS if item.name == name)
    value = section(draft).get(name, item.default)
    return value if isinstance(value, str) and name not in draft.bad else item.default


def entries(draft: Draft) -> Sequence[Mapping[str, Any]]:
    """Return the members of ``dump_list`` that are objects."""
    found = section(draft).get("dump_list", ())
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _bad(draft: Draft, item: str, finding: Finding) -> Finding:
    """Mark the item of a finding as wrong, and return the finding."""
    draft.bad.add(item)
    return finding


# -- 1, 2: types


def _object(draft: Draft) -> Iterator[Finding]:
    if draft.has_section(DUMP) and not isinstance(draft.section(DUMP), dict):
        yield _bad(draft, DUMP, content(draft, DUMP, _MUST_BE.format("object"), "it is not an object"))


def _types(draft: Draft) -> Iterator[Finding]:
    found = section(draft)
    for item in ITEMS:
        yield from _string(draft, found, item.name, "")
    if "dump_stats" in found:
        yield from _array(draft, found["dump_stats"], "dump_stats", str)
    if "dump_list" not in found:
        return
    if not isinstance(found["dump_list"], list):
        yield _must_be(draft, "dump_list", "array")
        return
    for at, entry in enumerate(found["dump_list"]):
        path = f"dump_list[{at}]"
        if isinstance(entry, dict):
            yield from _entry_types(draft, entry, path)
        else:
            yield _must_be(draft, path, "object")


def _entry_types(draft: Draft, entry: Mapping[str, Any], path: str) -> Iterator[Finding]:
    yield from _string(draft, entry, "model_name", path)
    for name in _LISTS:
        if name in entry:
            yield from _array(draft, entry[name], f"{path}.{name}", str)
    for name in _BLACKLISTS:
        if name in entry:
            yield from _array(draft, entry[name], f"{path}.{name}", dict)
            for at, member in enumerate(_objects(entry[name])):
                yield from _string(draft, member, "name", f"{path}.{name}[{at}]")
                if "pos" in member:
                    yield from _array(draft, member["pos"], f"{path}.{name}[{at}].pos", str)
    if "opname_range" in entry:
        yield from _array(draft, entry["opname_range"], f"{path}.opname_range", dict)
        for at, member in enumerate(_objects(entry["opname_range"])):
            for name in ("begin", "end"):
                yield from _string(draft, member, name, f"{path}.opname_range[{at}]")


def _must_be(draft: Draft, item: str, kind: str) -> Finding:
    article = "a" if kind == "string" else "an"
    return _bad(draft, item, content(draft, item, _MUST_BE.format(kind), f"it is not {article} {kind}"))


def _string(draft: Draft, found: Mapping[str, Any], name: str, path: str) -> Iterator[Finding]:
    if name in found and not isinstance(found[name], str):
        yield _must_be(draft, f"{path}.{name}" if path else name, "string")


def _array(draft: Draft, found: Any, path: str, kind: type) -> Iterator[Finding]:
    """Check an array whose members must have one type; the vendor reports only the first wrong member."""
    if not isinstance(found, list):
        yield _must_be(draft, path, "array")
        return
    word = "string" if kind is str else "object"
    for at, member in enumerate(found):
        if not isinstance(member, kind):
            what = f"the member is not {'a' if kind is str else 'an'} {word}"
            yield _bad(draft, path, content(draft, f"{path}[{at}]", _MEMBER_MUST_BE.format(word), what))


def _objects(found: Any) -> list[Mapping[str, Any]]:
    return [member if isinstance(member, dict) else {} for member in found] if isinstance(found, list) else []


# -- 3: values


def _values(draft: Draft) -> Iterator[Finding]:
    by_name = {item.name: item for item in ITEMS}
    for name in ("dump_mode", "dump_data", "dump_op_switch", "dump_level", "dump_debug", "dump_scene"):
        if name in section(draft) and name not in draft.bad:
            yield from _one_of(draft, name, section(draft)[name], by_name[name].allowed, name)
    if "dump_kernel_data" in section(draft) and "dump_kernel_data" not in draft.bad:
        for piece in section(draft)["dump_kernel_data"].split(","):
            yield from _one_of(draft, "dump_kernel_data", piece, KERNEL_DATA, "dump_kernel_data")
    if "dump_stats" in section(draft) and "dump_stats" not in draft.bad:
        for at, name in enumerate(section(draft)["dump_stats"]):
            yield from _one_of(draft, f"dump_stats[{at}]", name, tuple(STATISTICS), "dump_stats")


def _one_of(draft: Draft, item: str, value: str, allowed: tuple[str, ...], bad: str) -> Iterator[Finding]:
    if not value:
        yield _bad(draft, bad, content(draft, item, _EMPTY, "it is empty"))
    elif value not in allowed:
        yield _bad(draft, bad, unknown_value(draft, item, value, allowed))


# -- 4: scenes


def _scene(draft: Draft) -> Iterator[Finding]:
    scene = text(draft, "dump_scene")
    if not scene:
        return
    for name in ("dump_debug", "dump_op_switch"):
        if text(draft, name) == "on":
            yield conflict(draft, name, "dump_scene", scene, to="on")
    mode = text(draft, "dump_mode")
    if scene == WATCHER and mode != "output":
        yield conflict(draft, "dump_mode", "dump_scene", scene, to=mode)


def _ends(draft: Draft, *, at_debug: bool = True) -> bool:
    """Return whether the validator ends here with success: for an exception scene, or for an overflow dump."""
    if not section(draft) or text(draft, "dump_scene") in EXCEPTION_SCENES:
        return True
    return at_debug and text(draft, "dump_debug") == "on"


# -- 5: path


def _path(draft: Draft) -> Iterator[Finding]:
    if _ends(draft, at_debug=False) or "dump_path" in draft.bad:
        return
    if "dump_path" not in section(draft):
        yield _bad(draft, "dump_path", content(draft, "dump_path", _NOT_FOUND, "it is missing"))
        return
    path = section(draft)["dump_path"]
    if not path:
        yield _bad(draft, "dump_path", content(draft, "dump_path", _EMPTY, "it is empty"))
        return
    reason, meant = _path_error(path)
    if reason:
        yield _bad(draft, "dump_path", value_error(draft, "dump_path", path, reason, meant=meant))


def _path_error(path: str) -> tuple[str, str | None]:
    """Return why a path is refused, and the path that was probably meant."""
    if len(path.encode()) > _LONGEST_PATH:
        return "The path length exceeds the maximum limit of 512 characters", None
    if path.find(":") == len(path) - 1:
        return "The value is an invalid path", None
    found = IP_PATH.fullmatch(path)
    if found and is_address(found["host"]):
        good = _PATH_CHARS.fullmatch(found["path"]) is not None
        return ("" if good else "The value contains invalid characters"), None
    if not os.path.exists(path):
        return "The path does not exist", _existing(path)
    if not os.path.isdir(path):
        return "The path is not a directory path", os.path.dirname(path) or None
    if not os.access(path, os.R_OK | os.W_OK):
        return "The value is a path without read and write permissions", None
    return "", None


def is_address(host: str) -> bool:
    """Return whether the validator takes a text as an IPv4 address: it reads only the leading digits of each part.

    Examples
    --------
    >>> [is_address(host) for host in ("10.0.0.1", "10.0.0.256", "10.0.0", "c")]
    [True, False, False, False]
    """
    numbers = [re.match(r"\s*[+-]?\d+", part) for part in host.split(".")]
    return len(numbers) == 4 and all(found is not None and 0 <= int(found[0]) <= 255 for found in numbers)


def _existing(path: str) -> str | None:
    """Return the nearest parent directory that exists."""
    above = os.path.dirname(os.path.abspath(path))
    while above != "/" and not os.path.isdir(above):
        above = os.path.dirname(above)
    return above if above != "/" else None


# -- 6: overflow


def _debug(draft: Draft) -> Iterator[Finding]:
    if text(draft, "dump_debug") == "on" and not text(draft, "dump_scene") and text(draft, "dump_op_switch") == "on":
        yield conflict(draft, "dump_op_switch", "dump_debug", "on", to="on")


# -- 7: steps


def _steps(draft: Draft) -> Iterator[Finding]:
    steps = text(draft, "dump_step")
    if _ends(draft) or not steps:
        return
    pieces = steps.split("|")
    if len(pieces) > _MOST:
        reason = "The value exceeds the maximum limit of 100 intervals"
        yield _bad(draft, "dump_step", value_error(draft, "dump_step", steps, reason))
        return
    for at, piece in enumerate(pieces):
        reason = step_error(piece)
        if reason:
            yield _bad(draft, "dump_step", value_error(draft, f"dump_step[{at}]", piece, reason, meant=_meant(piece)))


def step_error(piece: str) -> str:
    """Return why a step or a range of steps is refused; "" if it is valid."""
    sides = piece.split("-")
    if len(sides) > 2:
        return "The value has invalid format, expected format: 5-10"
    if not all(side.isascii() and side.isdigit() for side in sides):
        return "The value contains non-digit characters,  expected format: 1 or 5-10"
    if _number(sides[0]) > _number(sides[-1]):
        return "The value has invalid format, start step must not exceed end step, expected format: 5-10"
    return ""


def _number(digits: str) -> Decimal:
    """Parse a number as C's strtol does: numbers beyond 64 bits become the largest one."""
    return min(Decimal(digits), Decimal(2**63 - 1))  # an int has a limit of digits


def _meant(piece: str) -> str | None:
    sides = piece.split("-")
    return f"{sides[1]}-{sides[0]}" if len(sides) == 2 and all(side.isdigit() for side in sides) else None


# -- 8: list


def _list(draft: Draft) -> Iterator[Finding]:
    if _ends(draft):
        return
    found = section(draft).get("dump_list")
    for at, entry in enumerate(found if isinstance(found, list) else ()):
        if isinstance(entry, dict):
            yield from _entry(draft, entry, f"dump_list[{at}]")


def _entry(draft: Draft, entry: Mapping[str, Any], path: str) -> Iterator[Finding]:
    good = {name: value for name, value in entry.items() if f"{path}.{name}" not in draft.bad}
    if text(draft, "dump_op_switch") == "off":
        for name in ("model_name", "layer"):
            if name in good and not good[name]:
                yield content(draft, f"{path}.{name}", _EMPTY, "it is empty")
    watched = f"{path}.watcher_nodes"
    if text(draft, "dump_scene") == WATCHER:
        if "watcher_nodes" not in entry:
            yield content(draft, watched, _NOT_FOUND, "it is missing")
        elif "watcher_nodes" in good and not good["watcher_nodes"]:
            yield content(draft, watched, _EMPTY, "it is empty")
        if good.get("model_name"):
            yield conflict(draft, f"{path}.model_name", "dump_scene", WATCHER)
    elif good.get("watcher_nodes"):
        yield conflict(draft, watched, "dump_scene", WATCHER, unless=True)
    for name in _BLACKLISTS:
        size = len(good.get(name, ()))
        if size > _MOST:
            reason = "The value size exceeds the maximum limit of 100"
            yield value_error(draft, f"{path}.{name}", str(size), reason)
    level = text(draft, "dump_level")
    for name in _BLACKLISTS:
        if good.get(name) and level != "op":
            yield conflict(draft, f"{path}.{name}", "dump_level", "op", unless=True)
    if good.get("opname_range"):
        yield from _ranges(draft, entry, path, level)


def _ranges(draft: Draft, entry: Mapping[str, Any], path: str, level: str) -> Iterator[Finding]:
    if level != "op":
        yield conflict(draft, f"{path}.opname_range", "dump_level", "op", unless=True)
    model = f"{path}.model_name"
    if "model_name" not in entry:
        yield content(draft, model, _NOT_FOUND, "opname_range needs it, and it is missing")
    elif not entry["model_name"]:
        yield content(draft, model, _EMPTY, "opname_range needs it, and it is empty")
    for at, member in enumerate(_objects(entry["opname_range"])):
        begin, end = (member.get(name, "") for name in ("begin", "end"))
        if not begin or not end:
            reason = "The item is incomplete, begin and end must be configured together and non-empty"
            yield value_error(draft, f"{path}.opname_range[{at}]", f"begin={begin}, end={end}", reason)


# -- 9: statistics


def _statistics(draft: Draft) -> Iterator[Finding]:
    if _ends(draft) or "dump_stats" not in section(draft) or "dump_stats" in draft.bad:
        return
    if not section(draft)["dump_stats"]:
        yield content(draft, "dump_stats", _EMPTY, "it is empty")
    elif text(draft, "dump_data") != "stats":
        yield conflict(draft, "dump_stats", "dump_data", "tensor")


ADUMP: tuple[Check, ...] = (
    Check("object", _object),
    Check("types", _types),
    Check("values", _values),
    Check("scene", _scene),
    Check("path", _path),
    Check("debug", _debug),
    Check("steps", _steps),
    Check("list", _list),
    Check("statistics", _statistics),
)
