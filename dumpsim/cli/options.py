"""Options of the commands that start scripts: what they say, and the settings that they make."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from dumpsim.cli.profile import overrides
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.settings import RunSettings
from dumpsim.emulate import environment
from dumpsim.emulate.precheck import check_settings

__all__ = [
    "Append",
    "CheckRaces",
    "Chip",
    "Clock",
    "CollectiveCheck",
    "Config",
    "DeviceName",
    "Durable",
    "Engine",
    "FaultFile",
    "ManifestFile",
    "Quiet",
    "ReduceOrder",
    "Release",
    "Seed",
    "SetFields",
    "check_script",
    "process_environment",
    "run_settings",
]

_RANKS, _MACHINE = "Ranks", "Emulated machine and dump"

Config = Annotated[
    Path | None, typer.Option("--config", help="Dump config; sets MINDSPORE_DUMP_CONFIG.", rich_help_panel=_MACHINE)
]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device", help="ascend, gpu or cpu; overrides the script's device_target.", rich_help_panel=_MACHINE
    ),
]
Chip = Annotated[str | None, typer.Option("--chip", help="Chip, e.g. 910A or 910B.", rich_help_panel=_MACHINE)]
Release = Annotated[
    str | None,
    typer.Option(
        "--mindspore", help="Version to be: seed, 2.7 or 2.10.", show_default="seed", rich_help_panel=_MACHINE
    ),
]
SetFields = Annotated[
    list[str] | None,
    typer.Option("--set", help="One field of the profile.", metavar="FIELD=VALUE", rich_help_panel=_MACHINE),
]
Clock = Annotated[
    str | None,
    typer.Option(
        "--clock", help="virtual (same bytes in every run) or wall.", show_default="virtual", rich_help_panel=_MACHINE
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="numpy, or null: shapes, addresses and virtual times without values.",
        show_default="numpy",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", help="Seed of what the script does not seed itself.", show_default="0", rich_help_panel=_MACHINE
    ),
]
FaultFile = Annotated[
    Path | None,
    typer.Option("--faults", help="Fault plan (JSON; see dumpsim check --schema faults).", rich_help_panel=_MACHINE),
]
ManifestFile = Annotated[
    str | None,
    typer.Option(
        "--manifest", help="Where the manifest goes; none for no manifest.", show_default="dumpsim-manifest.json"
    ),
]
Append = Annotated[
    bool | None,
    typer.Option(
        "--append",
        help="Continue in a dump root that already holds files.",
        show_default=False,
        rich_help_panel=_MACHINE,
    ),
]
Durable = Annotated[
    bool | None,
    typer.Option(
        "--durable", help="fsync the dump's files and directories: they survive a power cut.", show_default=False
    ),
]
CheckRaces = Annotated[
    bool | None,
    typer.Option(
        "--check-races",
        help="Stop where streams work on the same memory and no event orders them.",
        show_default=False,
        rich_help_panel=_MACHINE,
    ),
]
Quiet = Annotated[
    bool | None,
    typer.Option("--quiet", "-q", help="No summary on stderr.", show_default=False, rich_help_panel=_MACHINE),
]
ReduceOrder = Annotated[
    str | None,
    typer.Option(
        "--reduce-order",
        help="Order of the sums of a collective: rank, ring, tree, fp32acc or random:SEED.",
        show_default="rank",
        rich_help_panel=_RANKS,
    ),
]
CollectiveCheck = Annotated[
    str | None,
    typer.Option(
        "--collective-check",
        help="Which calls of a collective are held against those of other ranks: all, first or off.",
        show_default="all",
        rich_help_panel=_RANKS,
    ),
]


def run_settings(base: RunSettings, given: Mapping[str, Any]) -> RunSettings:
    """Lay what the command line gives over other settings, and check them.

    Parameters
    ----------
    base : RunSettings
        What holds where an option is not given.
    given : mapping of str to object
        Values by field; None where the option is not given.

    Raises
    ------
    BadInputError, FaultPlanError, UnsupportedError
        For what can be known to be wrong before the script starts.
    """
    found = {name: value for name, value in given.items() if value is not None}
    if "device" in found:
        found["device"] = found["device"].lower()
    if "overrides" in found:
        found["overrides"] = {**base.overrides, **overrides(found["overrides"])}
    if "faults" in found:
        found["faults"] = str(found["faults"].resolve())
    manifest = found.pop("manifest", base.manifest or "none")
    found["manifest"] = None if manifest == "none" else os.path.abspath(manifest)
    settings = replace(base, **found)
    if settings.manifest is not None and not Path(settings.manifest).parent.is_dir():
        raise BadInputError(
            f"there is no directory {str(Path(settings.manifest).parent)!r}", where="--manifest", code="DS-RUN-008"
        )
    check_settings(settings)
    return settings


def process_environment(settings: RunSettings, config: Path | None) -> dict[str, str]:
    """The environment of a process that runs a script with these settings.

    Raises
    ------
    BadInputError
        For a config that does not exist.
    """
    found = environment(settings)
    if config is not None:
        if not config.is_file():
            raise BadInputError(f"there is no file {str(config)!r}", where="--config", code="DS-RUN-008")
        found["MINDSPORE_DUMP_CONFIG"] = str(config.resolve())
    return found


def check_script(script: str, context: typer.Context) -> None:
    """Refuse what is no script: a misspelt option, a config, a path that does not exist.

    The commands that start scripts leave unknown options to the script, so that a misspelt one arrives in its place.
    """
    where = context.command_path
    if script.startswith("-"):
        name = script.partition("=")[0]
        known = [option for parameter in context.command.params for option in parameter.opts if option.startswith("-")]
        raise BadInputError(f"unknown option {name!r}", where=where, nearest=nearest(name, known), code="DS-RUN-001")
    if not Path(script).is_file():
        raise BadInputError(f"there is no script {script!r}", where=where, code="DS-RUN-001")
    if script.endswith(".json"):
        what = f"{script!r} is a dump config, not a script: --config {script} SCRIPT"
        raise BadInputError(what, where=where, code="DS-RUN-001")
