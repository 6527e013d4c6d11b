"""From the file that ``MINDSPORE_DUMP_CONFIG`` names to a checked `DumpConfig`. [spec mindspore 1.1]"""

import os
from collections.abc import Mapping
from typing import Any

from dumpsim.core.errors import DumpConfigError
from dumpsim.modes import kernelbykernel, wholegraph
from dumpsim.modes.conditions import E2E, misses_device
from dumpsim.modes.config import DumpConfig
from dumpsim.modes.dialect import Draft, Effect, Finding, Row, first_failure, schema, walk, without_effect
from dumpsim.modes.jsontext import JsonTextError, parse
from dumpsim.modes.profile import Profile

__all__ = ["CONFIG_VARIABLE", "check_all", "config_schema", "dialect", "load", "read_file"]

CONFIG_VARIABLE = "MINDSPORE_DUMP_CONFIG"
_DIALECTS = {
    "kernel": (kernelbykernel.ROWS, kernelbykernel.EFFECTS),
    "graph": (wholegraph.ROWS, wholegraph.EFFECTS),
}


def dialect(profile: Profile) -> tuple[tuple[Row, ...], tuple[Effect, ...]]:
    """The table of a profile's config, and the fields that it may set in vain."""
    return _DIALECTS[profile.dialect]


def read_file(environment: Mapping[str, str]) -> tuple[str, bytes] | None:
    """Path and bytes of the file that ``MINDSPORE_DUMP_CONFIG`` names, None where dump is off. [spec mindspore 1.1]

    Raises
    ------
    DumpConfigError
        For a file that is not there, has another suffix or cannot be read.
    """
    name = environment.get(CONFIG_VARIABLE, "")
    if not name:
        return None
    path = os.path.realpath(name)
    if not os.path.exists(path):
        raise DumpConfigError(
            f"there is no file {name!r}", where=CONFIG_VARIABLE, vendor="Get dump config file failed", code="DS-CFG-080"
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
        with open(path, "rb") as file:
            return name, file.read()
    except OSError as error:
        raise DumpConfigError(
            f"{name!r} cannot be read: {error.strerror}",
            where=CONFIG_VARIABLE,
            vendor=f"Dump file:{path} open failed. Errno:{error.errno}",
            code="DS-CFG-083",
        ) from error


def load(
    text: bytes, environment: Mapping[str, str], profile: Profile, *, device_id: int = 0, file: str = "data_dump.json"
) -> tuple[DumpConfig, tuple[Finding, ...]]:
    """Read a config as a run does.

    Parameters
    ----------
    text : bytes
        The JSON file.
    environment : mapping
        For ``MS_DIAGNOSTIC_DATA_PATH``.
    profile : Profile
    device_id : int
        For ``support_device``.
    file : str
        Name for messages.

    Returns
    -------
    config : DumpConfig
        With the vendor's fall-backs applied.
    warnings : tuple of Finding
        What the vendor logs.

    Raises
    ------
    DumpConfigError
        The first failure in the vendor's order, with the vendor's text and our note.

    Examples
    --------
    >>> from dumpsim.modes.profile import find
    >>> text = b'''{"common_dump_settings": {"dump_mode": 0, "path": "/tmp/d", "net_name": "Net", "iteration": "0|2",
    ... "input_output": 0, "kernels": [], "support_device": [0]}, "e2e_dump_settings": {"enable": true}}'''
    >>> config, warnings = load(text, {}, find("2.10", "cpu"))
    >>> 2 in config.steps, config.saved_data, warnings
    (True, 'tensor', ())
    """
    draft = _draft(text, environment, profile, device_id, file)
    warnings = first_failure(dialect(profile)[0], draft, file)
    return _config(draft, text, file), warnings


def check_all(
    text: bytes, environment: Mapping[str, str], profile: Profile, *, device_id: int = 0, file: str = "data_dump.json"
) -> tuple[Finding, ...]:
    """Everything that the table has to say of a config: errors, warnings, fields without effect.

    Never raises for what the config holds; a text that is no JSON is one finding.

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
    return (*walk(rows, draft), *without_effect(rows, effects, draft))


def config_schema(profile: Profile) -> dict[str, Any]:
    """JSON Schema of a profile's config.

    Examples
    --------
    >>> from dumpsim.modes.profile import find
    >>> config_schema(find("seed", "cpu"))["properties"]["common_dump_settings"]["properties"]["input_output"]["enum"]
    [0, 1, 2]
    """
    return schema(dialect(profile)[0], profile, f"MindSpore dump config, {profile.name}")


def _draft(text: bytes, environment: Mapping[str, str], profile: Profile, device_id: int, file: str) -> Draft:
    """The parsed document, ready for the table."""
    try:
        document = parse(text)
    except JsonTextError as error:
        # number overflow is not a parse error for the vendor and loses its head line
        head = "Parse dump json failed, error:" if "parse_error" in str(error) else ""
        raise DumpConfigError("the file is not JSON", where=file, vendor=f"{head}{error}", code="DS-CFG-084") from error
    return Draft(profile=profile, document=document, environment=environment, device_id=device_id)


def _config(draft: Draft, text: bytes, file: str) -> DumpConfig:
    """The typed config of a draft without errors; fields that the dialect does not have keep their defaults."""
    values = dict(draft.values)
    profile = draft.profile
    e2e = draft.has_section(E2E)
    disabled = None
    if misses_device(draft):
        disabled = f"support_device does not list device {draft.device_id}"
    elif profile.dialect == "kernel" and not e2e and profile.no_e2e == "nothing":
        disabled = "there is no e2e_dump_settings section, which O0 and O1 need"
    return DumpConfig(
        file=file,
        text=text,
        steps=values.pop("iteration"),
        e2e=e2e,
        asynchronous=profile.target == "Ascend" and values.get("enable") is False,
        disabled=disabled,
        **values,
    )
