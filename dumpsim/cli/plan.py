"""``dumpsim plan``: predict the files and bytes that a config would write."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dumpsim.cli.options import (
    Chip,
    DeviceName,
    Engine,
    Release,
    Seed,
    SetFields,
    check_script,
    process_environment,
    run_settings,
)
from dumpsim.cli.output import echo, print_json
from dumpsim.cli.profile import TARGETS, overrides
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.settings import RunSettings

__all__ = ["plan"]

_LARGEST = 1 << 26  # largest account in bytes
_GENERATED = "ge_dump_data_json"  # where TorchAir writes a script's dump_config for GE
_TYPES = 8  # operator types to show
_RATES = (100.0, 1000.0)


def plan(
    context: typer.Context,
    script: Annotated[
        str | None,
        typer.Argument(
            help="The script to run for a few steps; what follows are its own arguments.", metavar="[SCRIPT [ARGS]...]"
        ),
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", help="Run a module instead of a script.", metavar="MODULE")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="The dump config to plan.")] = None,
    dump: Annotated[
        Path | None, typer.Option("--dump", help="Take the tensors of this dump instead of running a script.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            help="Number of steps of the real run.",
            min=1,
            show_default="the last step of the config's iteration",
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", help="Number of ranks of the real run.", min=1, show_default="the ranks that ran"),
    ] = None,
    devices: Annotated[
        int, typer.Option("--devices", help="Devices per server, for the config's support_device.", min=1, max=16)
    ] = 8,
    rate: Annotated[
        list[float] | None,
        typer.Option("--rate", help="Rate of the file system in MB/s; may be repeated.", show_default="100 and 1000"),
    ] = None,
    measure: Annotated[
        int, typer.Option("--measure", help="Number of steps to run before the script is stopped.", min=1)
    ] = 2,
    run_ranks: Annotated[
        int | None,
        typer.Option("--run-ranks", help="Number of ranks to run, in one process.", min=1, show_default="1"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    device: DeviceName = None,
    chip: Chip = None,
    mindspore: Release = None,
    set_: SetFields = None,
    engine: Engine = None,
    seed: Seed = None,
    jit_level: Annotated[
        str, typer.Option("--jit-level", help="With --dump: the jit_level of the real run, O0, O1 or O2.")
    ] = "O0",
) -> None:
    """Say what a dump config would write: files, bytes and time, by step, rank and operator type.

    SCRIPT runs for two steps on the emulated machine, and no file of the dump is written. Steps that did not run are
    taken to be like the last one that did.
    """
    if (dump is None) == (script is None and module is None):
        raise BadInputError(
            "give either a SCRIPT (or -m MODULE), or --dump DUMP", where="dumpsim plan", code="DS-RUN-012"
        )
    if rate is not None and any(not 0 < one < float("inf") for one in rate):
        raise _error("a rate is a number of MB/s above 0", "--rate")
    if dump is not None:
        from dumpsim.analysis.plandump import account_of

        if config is None:
            raise _error("--dump needs --config")
        accounts = account_of(
            dump,
            config,
            device=_target(device),
            jit_level=jit_level,
            release=mindspore or "seed",
            fields=overrides(set_ or []),
            environment=_environment(os.environ),
        )
        source, code = str(dump), 0
    else:
        given = {
            "device": device,
            "chip": chip,
            "mindspore": mindspore,
            "overrides": set_,
            "engine": engine,
            "seed": seed,
        }
        command = ["-m", module, *([script] if script else [])] if module is not None else [script or ""]
        if module is None:
            check_script(command[0], context)
        accounts, code = _run([*command, *context.args], config, given, measure, run_ranks)
        source = module or os.path.basename(command[0])
    if accounts:
        if config is not None and os.path.basename(accounts[0]["config"]) == config.name:
            accounts[0]["config"] = str(config)  # as the user named it; a script may have asked for another dump
        elif os.path.basename(os.path.dirname(accounts[0]["config"])) == _GENERATED:
            accounts[0]["config"] = f"dump_config of {source}"
        report = _report(accounts, source, steps, ranks, devices, rate or list(_RATES))
        if as_json:
            print_json(report)
        else:
            echo("\n".join(_lines(report)))
    elif not code:
        echo(
            "dumpsim: nothing to plan: the script set no dump, or compiled no graph; --config names a config", err=True
        )
        code = 1
    raise typer.Exit(code)


def _error(what: str, where: str = "dumpsim plan") -> BadInputError:
    return BadInputError(what, where=where, code="DS-RUN-012")


def _target(device: str | None) -> str:
    """The device named by ``--device``, for a plan without a script."""
    name = (device or "ascend").lower()
    if name not in TARGETS:
        near = nearest(name, TARGETS)
        raise BadInputError(
            f"unknown device {name!r}", where="--device", allowed=TARGETS, nearest=near, code="DS-RUN-004"
        )
    return name


def _environment(base: "os._Environ[str] | dict[str, str]") -> dict[str, str]:
    """The environment of a plan: a config without a path needs a directory, although nothing is written there."""
    found = dict(base)
    if not found.get("MS_DIAGNOSTIC_DATA_PATH"):
        found["MS_DIAGNOSTIC_DATA_PATH"] = "/plan"
    return found


def _run(
    command: Sequence[str], config: Path | None, given: dict[str, Any], measure: int, ranks: int | None
) -> tuple[list[dict[str, Any]], int]:
    """Run the script, and return the accounts of its ranks with its exit code."""
    from dumpsim.core.regular import read_bytes

    with tempfile.TemporaryDirectory(prefix="dumpsim-plan-") as directory:
        base = RunSettings(manifest=None, quiet=True, plan=directory, plan_steps=measure)
        env = _environment(process_environment(run_settings(base, given), config))
        words = ["-m", "dumpsim.emulate.localjob", str(ranks), *command] if ranks is not None else list(command)
        code = subprocess.run([sys.executable, *words], env=env, stdout=sys.stderr, check=False).returncode
        accounts = [
            json.loads(read_bytes(os.path.join(directory, name), _LARGEST)) for name in sorted(os.listdir(directory))
        ]
    return sorted(accounts, key=lambda account: account["rank"]), code if code >= 0 else 128 - code


def _report(
    accounts: list[dict[str, Any]], source: str, steps: int | None, ranks: int | None, devices: int, rates: list[float]
) -> dict[str, Any]:
    """Compute the numbers of the plan."""
    from dumpsim.analysis.projection import OTHER, dumping_ranks, project

    first = accounts[0]
    ran = len({account["rank"] for account in accounts})
    own = [a for a in accounts if not a["devices"] or a["rank"] % devices in a["devices"]] or accounts[:1]
    total = dumping_ranks(first["devices"], ranks or ran, devices)
    found = [project(account, steps=steps) for account in own]

    def of_all(each: list[tuple[int, int]]) -> tuple[int, int]:
        """Add up files and bytes of the ranks; those that did not run are like the largest."""
        top = max(each, key=lambda amount: amount[1])
        taken = [*each, *[top] * total][:total]
        return sum(files for files, _ in taken), sum(size for _, size in taken)

    files, size = of_all([(one.files, one.bytes) for one in found])
    one = max(found, key=lambda one: one.bytes)
    changes: dict[str, list[tuple[int, int]]] = {}
    for name in first["counts"]:
        counted = [project(account, name, steps) for account in own if name in account["counts"]]
        changes[name] = [(p.files, p.bytes) for p in counted]
    if one.steps > 1:
        changes["iteration: one step"] = [(p.once[0] + p.step[0], p.once[1] + p.step[1]) for p in found]
    data = sorted((kind for kind in one.types if kind != OTHER), key=lambda kind: -one.types[kind][1])
    if len(data) > 1:
        without = [p.types.get(data[0], (0, 0)) for p in found]
        changes[f"dump_mode: 1, kernels: all types but {data[0]}"] = [
            (p.files - f, p.bytes - b) for p, (f, b) in zip(found, without, strict=True)
        ]
    counts = sorted(((name, of_all(each)) for name, each in changes.items()), key=lambda item: item[1][1])
    smaller = [{"change": name, "files": f, "bytes": b} for name, (f, b) in counts if b < size]
    notes = [*first["dump"]["notes"]]
    if len({p.bytes for p in found}) > 1:
        notes.append("the ranks that ran differ; further ranks are assumed to be like the largest of them")
    if one.estimated:
        notes.append("steps that did not run are assumed to be like the last one that ran")
    if first["estimate"]:
        notes.append(first["estimate"])
    if first["iteration"].get("script"):
        notes.append("the script starts and stops the dump itself: these numbers are an upper bound")
    if first["trigger"] != "every":
        what = "overflow" if first["trigger"] == "overflow" else "fail"
        notes.append(f"this config dumps operators that {what}; a plan cannot know how many will")
    return {
        "config": first["config"], "profile": first["profile"], "chip": first["chip"], "source": source,
        "measured_steps": first["measured"], "measured_ranks": ran, "iteration": first["iteration"]["text"],
        "steps": one.steps, "ranks": ranks or ran, "dumping_ranks": total,
        "once": {"files": one.once[0], "bytes": one.once[1]},
        "step": {"files": one.step[0], "bytes": one.step[1]},
        "rank": {"files": one.files, "bytes": one.bytes},
        "total": {"files": files, "bytes": size},
        "seconds": {f"{rate:g} MB/s": size / (rate * 1e6) for rate in rates},
        "types": {kind: {"files": f, "bytes": b} for kind, (f, b) in sorted(one.types.items(), key=lambda i: -i[1][1])},
        "skipped_in_measured_steps": first["counts"][""]["skipped"],
        "smaller": smaller,
        "notes": notes,
        "exact": first["dump"],
    }  # fmt: skip


def _lines(report: dict[str, Any]) -> list[str]:
    """Format the plan for people."""
    from dumpsim.dump.summary import human_size

    def row(title: str, amount: dict[str, int], more: str = "") -> str:
        line = f"  {title:34} {amount['files']:>10} file{' ' if amount['files'] == 1 else 's'} "
        return f"{line}{human_size(amount['bytes']):>10}  {more}".rstrip()

    def many(count: int, word: str) -> str:
        return f"{count} {word}{'s' * (count != 1)}"

    ran = f"{many(len(report['measured_steps']), 'step')} on {many(report['measured_ranks'], 'rank')}"
    lines = [
        f"{report['config']} ({report['profile']}, {report['chip']}), counted in {ran} of {report['source']}; "
        "nothing was written",
        *([row("each rank: once", report["once"])] if report["once"]["files"] else []),
        row("each rank: each step", report["step"]),
        row(f"each rank: {many(report['steps'], 'step')}", report["rank"],
            f"(iteration {report['iteration'] or 'all'})"),
        row(f"in all: {many(report['dumping_ranks'], 'rank')}", report["total"],
            "" if report["dumping_ranks"] == report["ranks"] else f"(of {report['ranks']}, by support_device)"),
    ]  # fmt: skip
    lines += [f"  at {rate:31} {_time(seconds):>16}" for rate, seconds in report["seconds"].items()]
    size = report["rank"]["bytes"]
    types = list(report["types"].items())
    lines.append("by operator type, on each rank:")
    shown = types if len(types) <= _TYPES + 1 else types[:_TYPES]
    lines += [row(kind, amount, f"{amount['bytes'] / max(size, 1):.0%}") for kind, amount in shown]
    rest = types[len(shown) :]
    if rest:
        others = {key: sum(amount[key] for _, amount in rest) for key in ("files", "bytes")}
        lines.append(row(f"{len(rest)} other types", others, f"{others['bytes'] / max(size, 1):.0%}"))
    if report["skipped_in_measured_steps"]:
        lines.append("not captured, in the steps that ran:")
        lines += [f"  {count}: {reason}" for reason, count in report["skipped_in_measured_steps"].items()]
    if report["smaller"]:
        lines.append("smaller alternatives, the smallest first:")
        whole = report["total"]["bytes"]  # above 0: something is smaller
        lines += [row(one["change"], one, f"{one['bytes'] / whole - 1:+.1%}") for one in report["smaller"]]
    return [*lines, *(f"note: {note}" for note in report["notes"])]


def _time(seconds: float) -> str:
    """Format a duration.

    Examples
    --------
    >>> _time(0.002), _time(75), _time(90_000)
    ('2.0 ms', '75.0 s', '25.0 h')
    """
    for unit, length, limit in (("ms", 1e-3, 1.0), ("s", 1.0, 120.0), ("min", 60.0, 7200.0)):
        if seconds < limit:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds / 3600:.1f} h"
