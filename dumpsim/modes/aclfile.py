"""Reading and checking of an ACL config (``acl.json``, ``dump_config_path``, ``aclmdlSetDump``). [spec ge 2]"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dumpsim.core.errors import DumpConfigError, UnsupportedError, nearest
from dumpsim.core.steps import Steps
from dumpsim.modes.aclchecks import ADUMP, IP_PATH, entries, is_address, section, step_error, text
from dumpsim.modes.aclge import GE
from dumpsim.modes.aclitems import DUMP, EXCEPTION_SCENES, FILE, ITEMS, KERNEL_DATA, LIST_ITEMS, STATISTICS, WATCHER
from dumpsim.modes.dialect import Check, Draft, Finding, first_failure, walk
from dumpsim.modes.jsontext import JsonTextError, parse
from dumpsim.modes.profile import Profile, find
from dumpsim.modes.request import Blocked, DumpRequest, ModelRule, RequestedStatistics, Selection, Watch

__all__ = ["MAX_ACL_CONFIG", "ROWS", "AclDump", "acl_profile", "acl_schema", "check_acl", "load_acl"]

MAX_ACL_CONFIG = 10 << 20  # bytes
_DEEPEST = 10  # largest depth of nested objects, and of nested arrays
_POSITION = re.compile(r"(?P<io>input|output)(?P<slot>[0-9]+)")
ROWS: tuple[Check, ...] = (*ADUMP, *GE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AclDump:
    """The dumps that an ACL config requests.

    Attributes
    ----------
    request : DumpRequest or None
        The dump of operators, if any.
    scene : str
        The exception dump: one of the scenes, or "".
    path : str or None
        ``dump_path`` of the file.
    """

    request: DumpRequest | None = None
    scene: str = ""
    path: str | None = None


def acl_profile(overrides: Mapping[str, str] | None = None) -> Profile:
    """Return the profile for an ACL config: that of GE's own dump, with iterations counted for each model."""
    return find("seed", "ascend_ge", {"iteration_rule": "model", **(overrides or {})})


def load_acl(data: bytes, *, file: str = "acl.json") -> tuple[AclDump, tuple[Finding, ...]]:
    """Read a config as a run does.

    Parameters
    ----------
    data : bytes
        The JSON file.
    file : str
        Name of the file, for messages.

    Returns
    -------
    dump : AclDump
    warnings : tuple of Finding

    Raises
    ------
    DumpConfigError
        For the first error of ADUMP's validator, then of GE's.
    UnsupportedError
        For a valid config that is not emulated: a dump that is sent to another host, or core files.

    Examples
    --------
    >>> dump, warnings = load_acl(b'{"dump": {"dump_path": "/tmp", "dump_list": [{"model_name": "graph_1"}]}}')
    >>> dump.request.selection.models[0].model, dump.request.inputs, dump.request.outputs
    ('graph_1', False, True)
    >>> try:
    ...     load_acl(b'{"dump": {"dump_path": "/tmp", "dump_debug": "On"}}', file="a.json")
    ... except DumpConfigError as error:
    ...     print(error.vendor)
    EP0002: Value On for configuration item dump_debug in configuration file a.json is invalid. Expected value: off/on.
    """
    draft = _draft(data, file)
    warnings = first_failure(ROWS, draft, file)
    _refuse(draft, file)
    return _dump(draft, data, file), (*warnings, *_without_effect(draft))


def check_acl(data: bytes, *, file: str = "acl.json") -> tuple[Finding, ...]:
    """Return all findings of both validators, and items without effect.

    Examples
    --------
    >>> found = check_acl(b'{"dump": {"dump_mode": "both", "dump_debug": 1, "dump_lst": []}}')
    >>> [(finding.where, finding.level) for finding in found]  # doctest: +NORMALIZE_WHITESPACE
    [('$.dump.dump_debug', 'error'), ('$.dump.dump_mode', 'error'), ('$.dump.dump_path', 'error'),
     ('$.dump.dump_lst', 'no effect')]
    """
    try:
        draft = _draft(data, file)
    except DumpConfigError as error:
        return (Finding(level="error", code=error.code or "", where="$", what=error.what, vendor=error.vendor),)
    found = [*walk(ROWS, draft)]
    try:
        _refuse(draft, file)
    except UnsupportedError as error:
        where = (error.where or "").rpartition(": ")[2]
        found.append(Finding(level="error", code=error.code or "", where=where, what=error.what, allowed=error.allowed))
    return (*found, *_without_effect(draft))


def acl_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an ACL config."""
    names = {"type": "array", "items": {"type": "string"}}
    black = {
        "type": "array",
        "maxItems": 100,
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "pos": names}},
    }
    ends = {"type": "object", "properties": {"begin": {"type": "string"}, "end": {"type": "string"}}}
    kinds = {
        "model_name": {"type": "string"},
        "opname_range": {"type": "array", "items": ends},
        **dict.fromkeys(("layer", "watcher_nodes"), names),
        **dict.fromkeys(("optype_blacklist", "opname_blacklist"), black),
    }
    items: dict[str, Any] = {}
    for item in ITEMS:
        items[item.name] = {"type": "string", "description": item.about}
        if item.allowed:
            items[item.name]["enum"] = list(item.allowed)
        if item.default:
            items[item.name]["default"] = item.default
    items["dump_stats"] = {"type": "array", "items": {"enum": list(STATISTICS)}, "minItems": 1}
    entry = {"type": "object", "properties": {name: kinds[name] for name in LIST_ITEMS}}
    items["dump_list"] = {"type": "array", "items": entry}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ACL config",
        "type": "object",
        "properties": {DUMP: {"type": "object", "properties": items}},
    }


def _draft(data: bytes, file: str) -> Draft:
    """Parse the document for the checks."""
    try:
        document = parse(data)
    except JsonTextError as error:
        raise _unparsed(file, str(error)) from None
    for kind, name in ((dict, "objects"), (list, "arrays")):
        if _is_too_deep(document, kind):
            raise _unparsed(file, f"more than {_DEEPEST} {name} are nested")
    draft = Draft(profile=acl_profile(), document=document, environment={})
    draft.values[FILE] = file
    return draft


def _unparsed(file: str, reason: str) -> DumpConfigError:
    vendor = f"EP0004: Failed to parse file {file}. Reason: {reason}."
    return DumpConfigError("the file is not an ACL config", where=file, vendor=vendor, code="DS-ACL-004")


def _is_too_deep(document: object, kind: type) -> bool:
    """Return whether too many values of a type are nested, without recursion, since Python's depth is limited."""
    pending = [(document, 0)]
    while pending:
        value, depth = pending.pop()
        depth += isinstance(value, kind)
        if depth > _DEEPEST:
            return True
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        pending += [(one, depth) for one in inner]
    return False


def _refuse(draft: Draft, file: str) -> None:
    """Raise an error for valid settings that are not emulated."""
    if text(draft, "dump_scene") == "aic_err_detail_dump":
        raise UnsupportedError(
            "the core file of aic_err_detail_dump",
            where=f"{file}: $.dump.dump_scene",
            allowed=[scene for scene in EXCEPTION_SCENES if scene != "aic_err_detail_dump"],
            nearest="aic_err_norm_dump",
            code="DS-EXC-001",
        )
    found = IP_PATH.fullmatch(text(draft, "dump_path"))
    if found and is_address(found["host"]):
        raise UnsupportedError(
            f"sending a dump to another host ({found['host']})",
            where=f"{file}: $.dump.dump_path",
            allowed=("a directory of this machine",),
            nearest=found["path"],
            code="DS-ACL-007",
        )


def _dump(draft: Draft, data: bytes, file: str) -> AclDump:
    """Make the requests of a valid config. [spec ge 2.3 step 10]"""
    found = section(draft)
    scene = text(draft, "dump_scene")
    path = found.get("dump_path")
    if scene in EXCEPTION_SCENES:
        return AclDump(scene=scene, path=path)
    listed = found.get("dump_list")
    overflow, switch = text(draft, "dump_debug") == "on", text(draft, "dump_op_switch") == "on"
    if not (listed or switch or overflow or scene):
        return AclDump(path=path)
    mode, level = text(draft, "dump_mode"), text(draft, "dump_level")
    statistics = text(draft, "dump_data") == "stats" and not overflow and not scene
    models = None if overflow else tuple(_rules(draft)) if level != "kernel" else ()
    steps = text(draft, "dump_step")
    return AclDump(
        path=path,
        request=DumpRequest(
            path=found["dump_path"],
            file=file,
            text=data,
            dialect="acl",
            selection=Selection(models=models),
            inputs=overflow or mode in ("all", "input"),
            outputs=overflow or mode in ("all", "output"),
            steps=Steps.parse(steps) if _has_steps(steps) else Steps(text="", every=True),
            trigger="overflow" if overflow else "every",
            tensors=not statistics,
            statistics=_statistics(found) if statistics else None,
            file_format="bin",
            singles=switch and level != "op",
            watches=tuple(_watches(draft)) if scene == WATCHER else (),
        ),
    )


def _has_steps(steps: str) -> bool:
    """Return whether a text has valid steps; that of an overflow dump is not validated, and may mean all steps."""
    return bool(steps) and not any(map(step_error, steps.split("|")))


def _statistics(found: Mapping[str, Any]) -> RequestedStatistics:
    """Return the requested statistics; without names, the device's processor writes all."""
    chosen = found.get("dump_stats", ())
    return RequestedStatistics(names=tuple(STATISTICS[name] for name in chosen), device=bool(chosen))


def _rules(draft: Draft) -> Iterator[ModelRule]:
    """Iterate over the entries of ``dump_list``; an empty list, or empty objects, means every model. [spec ge 2.6]"""
    listed = section(draft).get("dump_list")
    if listed is None or text(draft, "dump_scene") == WATCHER:
        return
    if not any(entries(draft)):
        yield ModelRule()
        return
    switched = text(draft, "dump_op_switch") == "on"
    for entry in entries(draft):
        names = entry.get("layer")
        if switched and (entry.get("model_name") == "" or names == []):
            continue  # GE ignores such entries with a warning
        yield ModelRule(
            model=entry.get("model_name", ""),
            names=tuple(names) if names is not None else () if entry.get("opname_range") else None,
            ranges=tuple((member["begin"], member["end"]) for member in entry.get("opname_range", ())),
            blocked=tuple(_blocked(entry)),
        )


def _blocked(entry: Mapping[str, Any]) -> Iterator[Blocked]:
    for key in ("optype_blacklist", "opname_blacklist"):
        for member in entry.get(key, ()):
            slots: dict[str, set[int]] = {"input": set(), "output": set()}
            for position in member.get("pos", ()):
                found = _POSITION.fullmatch(position)
                if found:
                    slots[found["io"]].add(int(found["slot"]))
            yield Blocked(
                name=member.get("name", ""),
                by_type=key == "optype_blacklist",
                inputs=frozenset(slots["input"]),
                outputs=frozenset(slots["output"]),
            )


def _watches(draft: Draft) -> Iterator[Watch]:
    for entry in entries(draft):
        layers = entry.get("layer")
        yield Watch(layers=None if layers is None else tuple(layers), nodes=tuple(entry["watcher_nodes"]))


def _without_effect(draft: Draft) -> Iterator[Finding]:
    """Iterate over items without effect, and items for which the vendor only warns."""
    found = section(draft)
    known = {item.name for item in ITEMS} | {"dump_stats", "dump_list", "quant_dumpable"}
    for key in draft.document if isinstance(draft.document, dict) else ():
        if key != DUMP:
            yield _ignored(f"$.{key}", nearest(key, (DUMP,)))
    for key in found:
        if key not in known:
            yield _ignored(f"$.{DUMP}.{key}", nearest(key, sorted(known)))
    for at, entry in enumerate(entries(draft)):
        for key in entry:
            if key not in LIST_ITEMS:
                yield _ignored(f"$.{DUMP}.dump_list[{at}].{key}", nearest(key, LIST_ITEMS))
        yield from _bad_positions(entry, f"$.{DUMP}.dump_list[{at}]")
    for name, why in _vain(draft):
        if name in found and name not in draft.bad:
            yield Finding(level="no effect", code="DS-ACL-008", where=f"$.{DUMP}.{name}", what=f"no effect: {why}")


def _bad_positions(entry: Mapping[str, Any], where: str) -> Iterator[Finding]:
    for key in ("optype_blacklist", "opname_blacklist"):
        members = entry.get(key, ())
        for at, member in enumerate(members if isinstance(members, list) else ()):
            positions = member.get("pos", ()) if isinstance(member, dict) else ()
            for position in positions if isinstance(positions, list) else ():
                if not isinstance(position, str) or not _POSITION.fullmatch(position):
                    yield Finding(
                        level="warning",
                        code="DS-ACL-009",
                        where=f"{where}.{key}[{at}].pos",
                        what=f"{position!r} is ignored",
                        allowed=("input and output with a number, such as input0",),
                    )


def _ignored(where: str, meant: str | None) -> Finding:
    return Finding(level="no effect", code="DS-ACL-010", where=where, what="no such item; it is ignored", nearest=meant)


def _vain(draft: Draft) -> Iterator[tuple[str, str]]:
    """Iterate over items that are read without effect, and the reasons."""
    scene, overflow = text(draft, "dump_scene"), text(draft, "dump_debug") == "on"
    others = [item.name for item in ITEMS if item.name not in ("dump_scene", "dump_path", "dump_debug")]
    if scene in EXCEPTION_SCENES:
        yield from ((name, "an exception dump looks at nothing else") for name in (*others, "dump_stats", "dump_list"))
        return
    if overflow:
        why = "an overflow dump saves all tensors of the operators that overflow"
        vain = ("dump_mode", "dump_data", "dump_stats", "dump_level")
        yield from ((name, why) for name in vain)
        if not _has_steps(text(draft, "dump_step")):
            yield "dump_step", "it names no steps, so that all steps are dumped"
    elif scene == WATCHER:
        yield from ((name, "watch mode dumps outputs") for name in ("dump_data", "dump_stats", "dump_level"))
    if section(draft).get("quant_dumpable") in ("1", True):  # TorchAir writes text
        yield "quant_dumpable", "the graph is compiled by CompilerConfig's option of this name, whatever a file says"
    if "dump_kernel_data" in section(draft) and text(draft, "dump_kernel_data") != "":
        yield "dump_kernel_data", f"emulated kernels print none of {', '.join(KERNEL_DATA[1:])}"
    switch = text(draft, "dump_op_switch") == "on"
    if switch and text(draft, "dump_level") == "op":
        yield "dump_op_switch", "dump_level op leaves out operators that run at once"
    elif text(draft, "dump_level") == "kernel" and not switch:
        yield "dump_list", "dump_level kernel dumps no operators of models"
