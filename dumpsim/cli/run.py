"""``dumpsim run``: run an unmodified script on the emulated machine."""

import os
import sys
from typing import Annotated

import typer

from dumpsim.cli.options import (
    Append,
    CheckRaces,
    Chip,
    Clock,
    CollectiveCheck,
    Config,
    DeviceName,
    Durable,
    Engine,
    FaultFile,
    ManifestFile,
    Quiet,
    ReduceOrder,
    Release,
    Seed,
    SetFields,
    check_script,
    process_environment,
    run_settings,
)
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.settings import RunSettings

__all__ = ["run"]

_TRANSPORTS = ("local", "process", "mpi")


def run(
    context: typer.Context,
    script: Annotated[
        str | None, typer.Argument(help="The script; what follows are its own arguments.", metavar="SCRIPT [ARGS]...")
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", help="Run a module instead of a script.", metavar="MODULE")
    ] = None,
    config: Config = None,
    device: DeviceName = None,
    chip: Chip = None,
    mindspore: Release = None,
    set_: SetFields = None,
    clock: Clock = None,
    engine: Engine = None,
    seed: Seed = None,
    faults: FaultFile = None,
    manifest: ManifestFile = None,
    append: Append = None,
    durable: Durable = None,
    check_races: CheckRaces = None,
    quiet: Quiet = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks",
            help="Run SCRIPT on this many ranks.",
            min=1,
            show_default="1",
            rich_help_panel="Ranks",
        ),
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(
            "--transport",
            help="local: ranks share one process and take turns; process: each has its own; "
            "mpi: this process is one that mpirun has started.",
            show_default="local",
            rich_help_panel="Ranks",
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            help="Order in which the ranks of one process take turns: rank, reverse or random:SEED.",
            show_default="rank",
            rich_help_panel="Ranks",
        ),
    ] = None,
    reduce_order: ReduceOrder = None,
    collective_check: CollectiveCheck = None,
) -> None:
    """Run SCRIPT on the emulated machine; the exit code is the script's.

    A SCRIPT that ends with .sh is run by bash; msrun in its lines is dumpsim's.
    """
    rest = list(context.args)
    if module is not None:
        command = ["-m", module, *([script] if script is not None else []), *rest]
    elif script is not None:
        check_script(script, context)
        command = [script, *rest]
    else:
        raise BadInputError("give a SCRIPT or -m MODULE", where="dumpsim run", code="DS-RUN-002")
    shell = command[0].endswith(".sh")
    _check_transport(ranks, transport, schedule, shell=shell)
    given = {
        "device": device,
        "chip": chip,
        "mindspore": mindspore,
        "overrides": set_,
        "clock": clock,
        "engine": engine,
        "seed": seed,
        "faults": faults,
        "manifest": manifest,
        "append": append,
        "durable": durable,
        "check_races": check_races,
        "quiet": quiet,
        "schedule": schedule,
        "transport": "mpi" if transport == "mpi" else None,  # the script's process need not know of the others
        "reduce_order": reduce_order,
        "collective_check": collective_check,
    }
    settings = run_settings(RunSettings(), given)
    env = process_environment(settings, config)
    if shell:
        os.execvpe("bash", ["bash", *command], env)
    if transport == "process":
        from dumpsim.emulate.processjob import run_processes

        raise typer.Exit(run_processes(command, ranks or 1, env, quiet=settings.quiet))
    if ranks is not None:
        command = ["-m", "dumpsim.emulate.localjob", str(ranks), *command]
    os.execve(sys.executable, [sys.executable, *command], env)


def _check_transport(ranks: int | None, transport: str | None, schedule: str | None, *, shell: bool) -> None:
    """Refuse options for ranks that contradict each other."""
    if transport is not None and transport not in _TRANSPORTS:
        raise BadInputError(
            f"unknown transport {transport!r}",
            where="--transport",
            allowed=_TRANSPORTS,
            nearest=nearest(transport, _TRANSPORTS),
            code="DS-RUN-011",
        )
    if transport == "mpi" and ranks is not None:
        raise BadInputError("mpirun sets the number of ranks: mpirun -n 4 dumpsim run --transport mpi SCRIPT",
            where="--ranks", code="DS-RUN-011",
        )  # fmt: skip
    if transport in ("local", "process") and ranks is None:
        raise BadInputError("needs --ranks", where="--transport", code="DS-RUN-011")
    if schedule is not None and transport in ("process", "mpi"):
        raise BadInputError("ranks in processes of their own do not take turns", where="--schedule", code="DS-RUN-011")
    if shell and ranks is not None:
        raise BadInputError(
            "a shell script cannot run on ranks; call msrun in its lines", where="--ranks", code="DS-RUN-011"
        )
