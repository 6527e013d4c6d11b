"""Reading and checking of the config that ``MINDSPORE_DUMP_CONFIG`` names. [spec mindspore 1.1]"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dumpsim.core.errors import DumpConfigError, UnreadableError
from dumpsim.core.match import KernelRules
from dumpsim.core.regular import read_bytes
from dumpsim.core.statistic import CATEGORIES
from dumpsim.modes import kernelbykernel, wholegraph
from dumpsim.modes.conditions import COMMON, E2E, misses_device
from dumpsim.modes.dialect import Draft, Effect, Field, Finding, Row, first_failure, schema, walk, without_effect
from dumpsim.modes.jsontext import JsonTextError, parse
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest, RequestedStatistics, Selection, Trigger

__all__ = ["CONFIG_VARIABLE", "MAX_CONFIG", "check_all", "config_schema", "dialect", "fields_of", "load", "read_file"]

CONFIG_VARIABLE = "MINDSPORE_DUMP_CONFIG"
MAX_CONFIG = 1 << 24  # bytes
_DIALECTS = {
    "kernel": (kernelbykernel.ROWS, kernelbykernel.EFFECTS),
    "graph": (wholegraph.ROWS, wholegraph.EFFECTS),
}


def dialect(profile: Profile) -> tuple[tuple[Row, ...], tuple[Effect, ...]]:
    """Return the rows of a profile's config, and the fields that may have no effect."""
    return _DIALECTS[profile.dialect]


def fields_of(section: str) -> tuple[str, ...]:
    """Return the fields of a section in all dialects.

    Examples
    --------
    >>> "file_format" in fields_of("common_dump_settings"), "sample_num" in fields_of("e2e_dump_settings")
    (True, True)
    """
    rows = [row for rows, effects in _DIALECTS.values() for row in (*rows, *effects)]
    return tuple(dict.fromkeys(row.name for row in rows if isinstance(row, Field | Effect) and row.section == section))


def read_file(environment: Mapping[str, str]) -> tuple[str, bytes] | None:
    """Read the file that ``MINDSPORE_DUMP_CONFIG`` names; return path and bytes, or None without a name. [spec
    mindspore 1.1]

    Raises
    ------
    DumpConfigError
        For a file that does not exist, has another suffix or cannot be read.
    """
    name = environment.get(CONFIG_VARIABLE, "")
    if not name:
        return None
    path = os.path.realpath(name)
    if not os.path.exists(path):
        raise DumpConfigError(
            f"the file {name!r} does not exist",
            where=CONFIG_VARIABLE,
            vendor="Get dump config file failed",
            code="DS-CFG-080",
        )
    base, dot, suffix = path.rpartition(".")
    if not dot:
        raise DumpConfigError(
            f"{name!r} has no suffix .json",
            where=CONFIG_VARIABLE,
            vendor=f"Invalid json file name:{path}",
            code="DS-CFG-081",
        )
    if suffix != "json":
        raise DumpConfigError(
            f"{name!r} does not end in .json",
            where=CONFIG_VARIABLE,
            nearest=f"{base}.json",
            vendor=f"[DataDump] dump config file suffix only supports json! But got:.{suffix}",
            code="DS-CFG-082",
        )
    try:
        return name, read_bytes(path, MAX_CONFIG)
    except UnreadableError as error:
        raise DumpConfigError(
            f"{name!r} {error.what}",
            where=CONFIG_VARIABLE,
            vendor=f"Dump file:{path} open failed. Errno:{getattr(error.__cause__, 'errno', 0)}",
            code="DS-CFG-083",
        ) from error


def load(
    text: bytes, environment: Mapping[str, str], profile: Profile, *, device_id: int = 0, file: str = "data_dump.json"
) -> tuple[DumpRequest, tuple[Finding, ...]]:
    """Read a config as a run does.

    Parameters
    ----------
    text : bytes
        The JSON file.
    environment : mapping
        Environment, for ``MS_DIAGNOSTIC_DATA_PATH``.
    profile : Profile
    device_id : int
        Device, for ``support_device``.
    file : str
        Name of the file, for messages.

    Returns
    -------
    request : DumpRequest
        The request, with values that the vendor changes.
    warnings : tuple of Finding
        Warnings that the vendor logs.

    Raises
    ------
    DumpConfigError
        For the first error in the vendor's order, with the vendor's text and our note.

    Examples
    --------
    >>> from dumpsim.modes.profile import find
    >>> text = b'''{"common_dump_settings": {"dump_mode": 0, "path": "/tmp/d", "net_name": "Net", "iteration": "0|2",
    ... "input_output": 0, "kernels": [], "support_device": [0]}, "e2e_dump_settings": {"enable": true}}'''
    >>> request, warnings = load(text, {}, find("2.10", "cpu"))
    >>> 2 in request.steps, request.tensors, request.statistics, warnings
    (True, True, None, ())
    """
    draft = _draft(text, environment, profile, device_id, file)
    warnings = first_failure(dialect(profile)[0], draft, file)
    return _request(draft, text, file), warnings


def check_all(
    text: bytes, environment: Mapping[str, str], profile: Profile, *, device_id: int = 0, file: str = "data_dump.json"
) -> tuple[Finding, ...]:
    """Return all findings about a config: errors, warnings, fields without effect.

    The content of the config never raises an error; a text that is not JSON is one finding.

    Examples
    --------
    >>> from dumpsim.modes.profile import find
    >>> found = check_all(b'{"common_dump_settings": {"dump_mode": "0", "net_nam": "n"}}', {}, find("seed", "cpu"))
    >>> [finding.where for finding in found if finding.level == "error"][:3]
    ['$.e2e_dump_settings.enable', '$.common_dump_settings.dump_mode', '$.common_dump_settings.path']
    """
    try:
        draft = _draft(text, environment, profile, device_id, file)
    except DumpConfigError as error:
        return (Finding(level="error", code=error.code or "", where="$", what=error.what, vendor=error.vendor),)
    rows, effects = dialect(profile)
    return (*walk(rows, draft), *_fusion(draft), *without_effect(rows, effects, draft))


def _fusion(draft: Draft) -> Iterator[Finding]:
    """Warn about operators of whole graphs that set_dump cannot mark; a run names them."""
    if draft.profile.dialect == "graph" and draft.values.get("dump_mode") == 2:
        what = "operators that are fused at O2 lose the mark of set_dump and are not dumped; O0 and O1 do not fuse"
        yield Finding(level="warning", code="DS-CFG-057", where=f"$.{COMMON}.dump_mode", what=what)


def config_schema(profile: Profile) -> dict[str, Any]:
    """Return the JSON Schema of a profile's config.

    Examples
    --------
    >>> from dumpsim.modes.profile import find
    >>> config_schema(find("seed", "cpu"))["properties"]["common_dump_settings"]["properties"]["input_output"]["enum"]
    [0, 1, 2]
    """
    return schema(dialect(profile)[0], profile, f"MindSpore dump config, {profile.name}")


def _draft(text: bytes, environment: Mapping[str, str], profile: Profile, device_id: int, file: str) -> Draft:
    """Parse the document for the checks."""
    try:
        document = parse(text)
    except JsonTextError as error:
        # for the vendor, number overflow is not a parse error and has no head line
        head = "Parse dump json failed, error:" if "parse_error" in str(error) else ""
        raise DumpConfigError("the file is not JSON", where=file, vendor=f"{head}{error}", code="DS-CFG-084") from None
    return Draft(profile=profile, document=document, environment=environment, device_id=device_id)


def _request(draft: Draft, text: bytes, file: str) -> DumpRequest:
    """Make the request of a valid draft; fields that the dialect or the device does not have get defaults."""
    values, profile = draft.values, draft.profile
    disabled = None
    if misses_device(draft):
        disabled = f"support_device does not list device {draft.device_id}"
    elif profile.dialect == "kernel" and not draft.has_section(E2E) and profile.no_e2e == "nothing":
        disabled = "there is no e2e_dump_settings section, which O0 and O1 need"
    enable = values.get("enable", True)
    sampled = values.get("sample_mode") == 1 and profile.sampling
    return DumpRequest(
        path=values["path"],
        net_name=values["net_name"],
        file=file,
        text=text,
        selection=_SELECTIONS[values["dump_mode"]](values["kernels"]),
        inputs=values["input_output"] in (0, 1),
        outputs=values["input_output"] in (0, 2),
        steps=values["iteration"],
        first_step=values["initial_iteration"],
        trigger=_TRIGGERS[values["op_debug_mode"]],
        overflow_limit=values["overflow_number"],
        tensors=values["saved_data"] in ("tensor", "full"),
        statistics=_statistics(draft) if values["saved_data"] in ("statistic", "full") else None,
        file_format=values.get("file_format", "npy"),
        host_layout=not (profile.trans_flag and values.get("trans_flag") is False),
        sample=values["sample_num"] if sampled else None,
        kernel_arguments=bool(values.get("save_kernel_args")) and profile.kernel_arguments and enable,
        asynchronous=profile.target == "Ascend" and not enable,
        disabled=disabled,
    )


def _statistics(draft: Draft) -> RequestedStatistics:
    """Return the statistics of ``statistic_category``."""
    values = draft.values
    return RequestedStatistics(
        names=tuple(CATEGORIES[category] for category in values["statistic_category"]),
        device=values.get("stat_calc_mode") == "device",
        precision=values.get("device_stat_precision_mode", "high"),
    )


# dump_mode -> function that selects operators, from `kernels`
_SELECTIONS: dict[int, Callable[[KernelRules], Selection]] = {
    0: lambda kernels: Selection(),
    1: lambda kernels: Selection(rules=kernels),
    2: lambda kernels: Selection(marked=True),
}
_TRIGGERS: dict[int, Trigger] = {0: "every", 3: "overflow", 4: "failure"}  # by op_debug_mode
