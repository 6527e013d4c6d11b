"""``dumpsim msrun``: run a script in several processes, with the options of MindSpore's launcher."""

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
    process_environment,
    run_settings,
)
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.settings import RunSettings

__all__ = ["msrun"]


def msrun(
    context: typer.Context,
    script: Annotated[
        str, typer.Argument(help="The script; what follows are its own arguments.", metavar="SCRIPT [ARGS]...")
    ],
    worker_num: Annotated[int, typer.Option("--worker_num", help="Number of workers of the job.")] = 8,
    local_worker_num: Annotated[
        int, typer.Option("--local_worker_num", help="Number of workers that this call starts.")
    ] = 8,
    master_addr: Annotated[
        str, typer.Option("--master_addr", help="Address or name of the scheduler's host.")
    ] = "127.0.0.1",
    master_port: Annotated[int, typer.Option("--master_port", help="Port of the scheduler, 1024 to 65535.")] = 8118,
    node_rank: Annotated[
        int,
        typer.Option("--node_rank", help="Index of this node in a job of several calls; -1 takes the next free one."),
    ] = -1,
    log_dir: Annotated[str, typer.Option("--log_dir", help="Directory for the logs and dumpsim-job.json.")] = "",
    join: Annotated[
        str, typer.Option("--join", help="True: wait for the job, show the logs, and exit with 1 if a worker fails.")
    ] = "False",
    cluster_time_out: Annotated[
        int,
        typer.Option("--cluster_time_out", help="Seconds to wait for all workers to register; below 0: no limit."),
    ] = 600,
    bind_core: Annotated[
        str, typer.Option("--bind_core", help='Bind processes to CPUs: True, or JSON such as {"device0": ["0-3"]}.')
    ] = "False",
    bind_numa: Annotated[
        str, typer.Option("--bind_numa", help="As --bind_core, but by NUMA node; memory is not bound.")
    ] = "False",
    sim_level: Annotated[int, typer.Option("--sim_level", help="Refused: simulation levels are not emulated.")] = -1,
    sim_rank_id: Annotated[int, typer.Option("--sim_rank_id", help="Refused, as --sim_level.")] = -1,
    rank_table_file: Annotated[
        str, typer.Option("--rank_table_file", help="Rank table; it is checked and passed to the workers.")
    ] = "",
    worker_log_name: Annotated[
        str,
        typer.Option(
            "--worker_log_name", help="Name of the workers' logs without suffix; {ip} and {hostname} are replaced."
        ),
    ] = "worker",
    tail_worker_log: Annotated[
        str, typer.Option("--tail_worker_log", help="Ranks whose logs --join=True shows, such as 0,2; -1: all.")
    ] = "-1",
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
    reduce_order: ReduceOrder = None,
    collective_check: CollectiveCheck = None,
) -> None:
    """Run SCRIPT once in each of several processes on the emulated machine, as MindSpore's msrun does.

    Without --join=True it returns when all processes have started. Exit codes: 0, 1 if a worker has failed, 2 for
    options that are wrong; how each worker ended stands in dumpsim-job.json.
    """
    from dumpsim.emulate.launchplan import MsrunOptions, plan
    from dumpsim.emulate.processes import Job

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
        "reduce_order": reduce_order,
        "collective_check": collective_check,
    }
    settings = run_settings(RunSettings.from_environment(), given)
    environment = process_environment(settings, config)
    options = MsrunOptions(
        worker_num=worker_num,
        local_worker_num=local_worker_num,
        master_addr=master_addr,
        master_port=master_port,
        node_rank=node_rank,
        log_dir=log_dir,
        join=_truth(join),
        cluster_time_out=cluster_time_out,
        bind_core=bind_core,
        bind_numa=bind_numa,
        sim_level=sim_level,
        sim_rank_id=sim_rank_id,
        rank_table_file=rank_table_file,
        worker_log_name=worker_log_name,
        tail_worker_log=tail_worker_log,
        command=(script, *context.args),
    )
    raise typer.Exit(Job(plan(options, environment), environment, quiet=settings.quiet).run())


def _truth(text: str) -> bool:
    """Parse the value of ``--join``."""
    if text not in ("True", "False"):
        raise BadInputError(
            f"{text!r} is not a value of it",
            where="--join",
            allowed=("True", "False"),
            nearest=nearest(text, ("True", "False")),
            code="DS-RUN-011",
        )
    return text == "True"
