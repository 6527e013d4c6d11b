"""``dumpsim check``: all errors of a dump config at once; a run stops at the first."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dumpsim.cli.output import echo, print_json
from dumpsim.cli.profile import TARGETS, overrides
from dumpsim.core.errors import BadInputError, UnreadableError, nearest

if TYPE_CHECKING:
    from dumpsim.modes.dialect import Finding

__all__ = ["check"]

_SCHEMAS = ("config", "faults")
_LEVELS = ("O0", "O1", "O2")
_DIALECTS = ("mindspore", "acl")


def check(
    config: Annotated[
        Path | None, typer.Argument(help="Dump config (JSON); with --schema faults, a fault plan.")
    ] = None,
    device: Annotated[str, typer.Option(help="ascend, gpu or cpu.")] = "ascend",
    jit_level: Annotated[
        str, typer.Option(help="O0, O1 or O2: on Ascend, O2 has fields of its own (with ENABLE_MS_GE_DUMP=1, GE's).")
    ] = "O0",
    mindspore: Annotated[str, typer.Option(help="seed, 2.7 or 2.10.")] = "seed",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="One field of the profile.", metavar="FIELD=VALUE")
    ] = None,
    device_id: Annotated[int, typer.Option(help="Device number to look up in support_device.")] = 0,
    schema: Annotated[
        str | None, typer.Option(help="config or faults: what CONFIG is; without CONFIG, print this JSON Schema.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one finding per line.")] = False,
    dialect: Annotated[
        str, typer.Option(help="mindspore, or acl: an ACL config (dump_config_path, aclmdlSetDump).")
    ] = "mindspore",
) -> None:
    """Show every error, warning and field without effect of CONFIG; exit code 1 if there is an error."""
    from dumpsim.modes.aclfile import MAX_ACL_CONFIG, acl_schema, check_acl
    from dumpsim.modes.configfile import MAX_CONFIG, check_all, config_schema
    from dumpsim.modes.profile import device_of, find

    if dialect not in _DIALECTS:
        raise BadInputError(
            f"unknown dialect {dialect!r}",
            where="--dialect",
            allowed=_DIALECTS,
            nearest=nearest(dialect, _DIALECTS),
            code="DS-RUN-007",
        )
    acl = dialect == "acl"

    if device.lower() not in TARGETS:
        raise BadInputError(
            f"unknown device {device!r}",
            where="--device",
            allowed=TARGETS,
            nearest=nearest(device, TARGETS),
            code="DS-RUN-004",
        )
    if jit_level not in _LEVELS:
        raise BadInputError(
            f"unknown compilation level {jit_level!r}",
            where="--jit-level",
            allowed=_LEVELS,
            nearest=nearest(jit_level, _LEVELS),
            code="DS-RUN-004",
        )
    mode = device_of(TARGETS[device.lower()], jit_level, ge=os.environ.get("ENABLE_MS_GE_DUMP") == "1")
    profile = find(mindspore, mode, overrides(set_ or []))
    if schema not in (None, *_SCHEMAS):
        raise BadInputError(
            f"unknown schema {schema!r}",
            where="--schema",
            allowed=_SCHEMAS,
            nearest=nearest(schema, _SCHEMAS),
            code="DS-RUN-007",
        )
    if schema == "faults":
        _faults(config, as_json)
        return
    if schema is not None and config is None:
        print_json(acl_schema() if acl else config_schema(profile))
        return
    if config is None:
        raise BadInputError("give a CONFIG or --schema", where="dumpsim check", code="DS-RUN-005")
    if acl:
        text = _read(config, MAX_ACL_CONFIG)
        findings = check_acl(text, file=str(config))
    else:
        text = _read(config, MAX_CONFIG)
        findings = check_all(text, os.environ, profile, device_id=device_id, file=str(config))
    shown = findings if as_json else _ordered(findings)
    for finding in shown:
        if as_json:
            print_json(
                {
                    "level": finding.level,
                    "code": finding.code,
                    "where": finding.where,
                    "what": finding.what,
                    "vendor": finding.vendor,
                    "allowed": finding.allowed,
                    "nearest": finding.nearest,
                    "forced": {name: str(value) for name, value in finding.forced},
                }
            )
        else:
            echo("\n".join(_lines(finding, "CANN" if acl else "MindSpore")))
    errors = sum(finding.level == "error" for finding in shown)
    if not as_json:
        warnings = sum(finding.level == "warning" for finding in shown)
        silent = len(shown) - errors - warnings
        name = "ACL" if acl else profile.name
        echo(f"{config}: {name}: {errors} errors, {warnings} warnings, {silent} fields without effect")
    if errors:
        raise typer.Exit(1)


def _read(config: Path, largest: int) -> bytes:
    """The config's bytes."""
    from dumpsim.core.regular import read_bytes

    try:
        return read_bytes(config, largest, follow=True)
    except UnreadableError as error:
        raise UnreadableError(error.what, where=str(config), code="DS-RUN-006") from None


def _ordered(findings: "Sequence[Finding]") -> "Sequence[Finding]":
    """Sort errors first, and drop repeated findings, which the vendor logs several times."""
    levels = {"error": 0, "warning": 1}
    unique: dict[tuple[str, ...], Finding] = {}
    for finding in findings:
        unique.setdefault((finding.level, finding.code, finding.where, finding.what), finding)
    return sorted(unique.values(), key=lambda finding: levels.get(finding.level, len(levels)))


def _lines(finding: Any, vendor: str) -> list[str]:
    """Lines that show a finding to a person."""
    head = f"{finding.level}: {finding.where}: {finding.what}"
    if finding.allowed:
        head += f"; allowed: {', '.join(finding.allowed)}"
    if finding.nearest:
        head += f" (did you mean {finding.nearest!r}?)"
    lines = [f"{head} [{finding.code}]"]
    if finding.vendor:
        lines.append(f"    {vendor} says: {finding.vendor}")
    lines += [f"    forced: {name} = {value}" for name, value in finding.forced]
    return lines


def _faults(plan: Path | None, as_json: bool) -> None:
    """Print the schema of fault plans, or all errors of a plan."""
    from dumpsim.device.faults import check_plan, fault_schema

    if plan is None:
        print_json(fault_schema())
        return
    errors = check_plan(plan)
    for error in errors:
        if as_json:
            facts = {"code": error.code, "where": error.where, "what": error.what}
            print_json({"level": "error", **facts, "allowed": error.allowed, "nearest": error.nearest})
        else:
            echo(f"error: {error}")
    if any(error.code == "DS-FLT-002" for error in errors):
        raise typer.Exit(3)
    if not as_json:
        echo(f"{plan}: {len(errors)} errors")
    if errors:
        raise typer.Exit(1)
