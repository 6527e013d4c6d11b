"""Options of the commands that start scripts, and the settings that follow from them."""

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
    Path | None,
    typer.Option("--config", help="Dump config (JSON); sets MINDSPORE_DUMP_CONFIG.", rich_help_panel=_MACHINE),
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
        "--mindspore",
        help="MindSpore release to emulate: seed (the documents' 2.4/2.5), 2.7 or 2.10.",
        show_default="seed",
        rich_help_panel=_MACHINE,
    ),
]
SetFields = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change one field of the profile; see dumpsim explain FIELD.",
        metavar="FIELD=VALUE",
        rich_help_panel=_MACHINE,
    ),
]
Clock = Annotated[
    str | None,
    typer.Option(
        "--clock",
        help="virtual (the same bytes in every run) or wall (real time).",
        show_default="virtual",
        rich_help_panel=_MACHINE,
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="numpy, or null: compute shapes, addresses and virtual times, but no values.",
        show_default="numpy",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        help="Seed for random generators that the script does not seed.",
        show_default="0",
        rich_help_panel=_MACHINE,
    ),
]
FaultFile = Annotated[
    Path | None,
    typer.Option("--faults", help="Fault plan (JSON; see dumpsim check --schema faults).", rich_help_panel=_MACHINE),
]
ManifestFile = Annotated[
    str | None,
    typer.Option(
        "--manifest", help="Path of the manifest; none: write no manifest.", show_default="dumpsim-manifest.json"
    ),
]
Append = Annotated[
    bool | None,
    typer.Option(
        "--append",
        help="Continue a dump: allow a dump root that already holds files.",
        rich_help_panel=_MACHINE,
    ),
]
Durable = Annotated[
    bool | None,
    typer.Option(
        "--durable",
        help="Call fsync for the dump's files and directories, so that they survive a power cut.",
    ),
]
CheckRaces = Annotated[
    bool | None,
    typer.Option(
        "--check-races",
        help="Stop with an error where two streams use the same memory and no event orders them.",
        rich_help_panel=_MACHINE,
    ),
]
Quiet = Annotated[
    bool | None,
    typer.Option("--quiet", "-q", help="Print no summary on stderr.", rich_help_panel=_MACHINE),
]
ReduceOrder = Annotated[
    str | None,
    typer.Option(
        "--reduce-order",
        help="Order in which a collective adds up the ranks: rank, ring, tree, fp32acc or random:SEED.",
        show_default="rank",
        rich_help_panel=_RANKS,
    ),
]
CollectiveCheck = Annotated[
    str | None,
    typer.Option(
        "--collective-check",
        help="Which calls of a collective to check against those of the other ranks: all, first or off.",
        show_default="all",
        rich_help_panel=_RANKS,
    ),
]


def run_settings(base: RunSettings, given: Mapping[str, Any]) -> RunSettings:
    """Combine the options of the command line with other settings, and check them.

    Parameters
    ----------
    base : RunSettings
        Used where an option is not given.
    given : mapping of str to object
        Values by field; None where the option is not given.

    Raises
    ------
    BadInputError, FaultPlanError, UnsupportedError
        For errors that are known before the script starts.
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
            f"the directory {str(Path(settings.manifest).parent)!r} does not exist",
            where="--manifest",
            code="DS-RUN-008",
        )
    check_settings(settings)
    return settings


def process_environment(settings: RunSettings, config: Path | None) -> dict[str, str]:
    """Return the environment of a process that runs a script with these settings.

    Raises
    ------
    BadInputError
        For a config that does not exist.
    """
    found = environment(settings)
    if config is not None:
        if not config.is_file():
            raise BadInputError(f"the file {str(config)!r} does not exist", where="--config", code="DS-RUN-008")
        found["MINDSPORE_DUMP_CONFIG"] = str(config.resolve())
    return found


def check_script(script: str, context: typer.Context) -> None:
    """Refuse a misspelt option, a config or a missing file in place of the script.

    Unknown options belong to the script, so that a misspelt one before it is parsed as the script.
    """
    where = context.command_path
    if script.startswith("-"):
        name = script.partition("=")[0]
        known = [option for parameter in context.command.params for option in parameter.opts if option.startswith("-")]
        raise BadInputError(f"unknown option {name!r}", where=where, nearest=nearest(name, known), code="DS-RUN-001")
    if not Path(script).is_file():
        raise BadInputError(f"the script {script!r} does not exist", where=where, code="DS-RUN-001")
    if script.endswith(".json"):
        what = f"{script!r} is a dump config, not a script: --config {script} SCRIPT"
        raise BadInputError(what, where=where, code="DS-RUN-001")
