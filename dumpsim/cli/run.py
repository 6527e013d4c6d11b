"""``dumpsim run``: a script, unmodified, on the emulated machine."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dumpsim.cli.profile import overrides
from dumpsim.core.errors import BadInputError
from dumpsim.core.settings import RunSettings
from dumpsim.emulate import environment
from dumpsim.emulate.precheck import check_settings

__all__ = ["run"]


def run(
    context: typer.Context,
    script: Annotated[
        str | None, typer.Argument(help="The script; what follows it is its own.", metavar="SCRIPT [ARGS]...")
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", help="Run a module instead of a script.", metavar="MODULE")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Dump config; sets MINDSPORE_DUMP_CONFIG.")] = None,
    device: Annotated[
        str | None, typer.Option(help="ascend, gpu or cpu; overrides the script's device_target.")
    ] = None,
    chip: Annotated[str | None, typer.Option(help="Chip, e.g. 910A or 910B.")] = None,
    mindspore: Annotated[str, typer.Option(help="Version to be: seed, 2.7 or 2.10.")] = "seed",
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="One field of the profile.", metavar="FIELD=VALUE")
    ] = None,
    clock: Annotated[str, typer.Option(help="virtual (same bytes in every run) or wall.")] = "virtual",
    engine: Annotated[
        str, typer.Option(help="numpy, or null: shapes, addresses and virtual times without values.")
    ] = "numpy",
    seed: Annotated[int, typer.Option(help="Seed of what the script does not seed itself.")] = 0,
    faults: Annotated[Path | None, typer.Option(help="Fault plan (JSON; see dumpsim check --schema faults).")] = None,
    manifest: Annotated[
        str, typer.Option(help="Where the manifest goes; none for no manifest.")
    ] = "dumpsim-manifest.json",
    append: Annotated[bool, typer.Option("--append", help="Continue in a dump root that already holds files.")] = False,
    durable: Annotated[
        bool, typer.Option("--durable", help="fsync the dump's files and directories: they survive a power cut.")
    ] = False,
    check_races: Annotated[
        bool,
        typer.Option("--check-races", help="Stop where streams work on the same memory and no event orders them."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary on stderr.")] = False,
    ranks: Annotated[
        int | None, typer.Option(help="Run SCRIPT once in each of so many ranks.", min=1, rich_help_panel="Ranks")
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(help="local: ranks share one process.", rich_help_panel="Ranks"),
    ] = None,
) -> None:
    """Run SCRIPT on the emulated machine; the exit code is the script's.

    A SCRIPT that ends with .sh is run by bash; its lines find dumpsim's msrun.
    """
    rest = list(context.args)
    if module is not None:
        command = ["-m", module, *([script] if script is not None else []), *rest]
    elif script is not None:
        if not Path(script).is_file():
            raise BadInputError(f"there is no script {script!r}", where="dumpsim run", code="DS-RUN-001")
        command = [script, *rest]
    else:
        raise BadInputError("give a SCRIPT or -m MODULE", where="dumpsim run", code="DS-RUN-002")
    settings = RunSettings(
        device=device.lower() if device else None,
        chip=chip,
        mindspore=mindspore,
        overrides=overrides(set_ or []),
        clock=clock,
        engine=engine,
        seed=seed,
        faults=str(faults.resolve()) if faults else None,
        manifest=None if manifest == "none" else os.path.abspath(manifest),
        append=append,
        durable=durable,
        quiet=quiet,
        check_races=check_races,
    )
    _check_early(settings)
    env = environment(settings)
    if config is not None:
        if not config.is_file():
            raise BadInputError(f"there is no file {str(config)!r}", where="--config", code="DS-RUN-008")
        env["MINDSPORE_DUMP_CONFIG"] = str(config.resolve())
    sys.stdout.flush()
    sys.stderr.flush()
    if command[0].endswith(".sh"):
        os.execvpe("bash", ["bash", *command], env)
    if ranks is not None:
        command = ["-m", "dumpsim.emulate.localjob", str(ranks), *command]
    os.execve(sys.executable, [sys.executable, *command], env)


def _check_early(settings: RunSettings) -> None:
    """What can be known to be wrong before the script starts is said before it starts."""
    if settings.manifest is not None and not Path(settings.manifest).parent.is_dir():
        raise BadInputError(
            f"there is no directory {str(Path(settings.manifest).parent)!r}", where="--manifest", code="DS-RUN-008"
        )
    check_settings(settings)
