"""The processes that `dumpsim msrun` starts, and the checks before it starts them. [spec parallel 5]"""

import os
import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dumpsim.core.errors import BadInputError, UnsupportedError
from dumpsim.emulate.binding import SCHEDULER, Binding, parse_binding
from dumpsim.emulate.nodeclaim import NodeClaim
from dumpsim.world.hub import ADDRESS, TOKEN
from dumpsim.world.ranktable import read_rank_table

__all__ = ["LaunchPlan", "MsrunOptions", "plan", "worker_command"]

_PROGRAMS = ("python", "python3", "pytest")


@dataclass(frozen=True, slots=True, kw_only=True)
class MsrunOptions:
    """The options of msrun, with its names and defaults.

    Attributes
    ----------
    command : tuple of str
        The script and its arguments, or ``python``, ``python3`` or ``pytest`` and theirs.
    """

    worker_num: int = 8
    local_worker_num: int = 8
    master_addr: str = "127.0.0.1"
    master_port: int = 8118
    node_rank: int = -1
    log_dir: str = ""
    join: bool = False
    cluster_time_out: int = 600
    bind_core: str = "False"
    bind_numa: str = "False"
    sim_level: int = -1
    sim_rank_id: int = -1
    rank_table_file: str = ""
    worker_log_name: str = "worker"
    tail_worker_log: str = "-1"
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """The processes to start on this machine.

    Attributes
    ----------
    options : MsrunOptions
    ranks : tuple of int
        Ranks of this launcher's workers, in the order of their start.
    address : str
        IP address of the scheduler.
    hub : str
        Address of the scheduler, in the form of `dumpsim.world.hub`.
    scheduler : bool
        Whether this launcher starts the scheduler.
    token : str
        Secret that workers show to the scheduler.
    command : tuple of str
        Command of each worker.
    tailed : tuple of int
        Ranks whose logs are shown.
    binding : Binding
    claim : NodeClaim or None
        The index of this launcher among several.
    warnings : tuple of str
    """

    options: MsrunOptions
    ranks: tuple[int, ...]
    address: str
    hub: str
    scheduler: bool
    token: str
    command: tuple[str, ...]
    tailed: tuple[int, ...]
    binding: Binding
    claim: NodeClaim | None = None
    warnings: tuple[str, ...] = field(default=())

    def log(self, rank: int) -> str:
        """Return the path of the log of a rank, or of the scheduler."""
        options = self.options
        if rank == SCHEDULER:
            return os.path.join(options.log_dir, "scheduler.log")
        name = (
            (options.worker_log_name or "worker")
            .replace("{ip}", _own_ip(self.address))
            .replace("{hostname}", socket.gethostname())
        )
        return os.path.join(options.log_dir, f"{name}_{rank}.log")

    def environment(self, rank: int) -> dict[str, str]:
        """Return the variables that a process has besides those of all processes."""
        options = self.options
        found = {
            "RANK_SIZE": str(options.worker_num),
            "MS_WORKER_NUM": str(options.worker_num),
            "MS_SCHED_HOST": self.address,
            "MS_SCHED_PORT": str(options.master_port),
            "MS_TOPO_TIMEOUT": str(options.cluster_time_out),
            "PYTHONUNBUFFERED": "1",  # a log holds what was printed before a worker was killed
            ADDRESS: self.hub,
            TOKEN: self.token,
        }
        if options.rank_table_file:
            found["RANK_TABLE_FILE"] = os.path.abspath(options.rank_table_file)
        if rank == SCHEDULER:
            return found | {"MS_ROLE": "MS_SCHED", "RANK_ID": "0"}
        own = {"RANK_ID": str(rank), "MS_NODE_ID": str(rank), "DEVICE_ID": str(rank - self.ranks[0])}
        return found | own | {"MS_ROLE": "MS_WORKER"}


def plan(options: MsrunOptions, environment: Mapping[str, str]) -> LaunchPlan:
    """Check the options and return the plan.

    Raises
    ------
    BadInputError
        For invalid or contradictory values, a rank table that does not parse, and a port in use.
    UnsupportedError
        For a simulation level, and a scheduler on another machine.
    """
    _check_numbers(options)
    _check_simulation(options, environment)
    command = worker_command(options.command)
    if options.rank_table_file:
        ranks = len(read_rank_table(options.rank_table_file).devices)
        if ranks != options.worker_num:
            raise _bad(
                "--rank_table_file",
                f"the table has {ranks} ranks, --worker_num says {options.worker_num}",
                code="EI0014",
            )
    warnings: list[str] = []
    core, why_core = parse_binding(options.bind_core, "--bind_core", options.local_worker_num)
    numa, why_numa = parse_binding(options.bind_numa, "--bind_numa", options.local_worker_num)
    warnings += filter(None, [why_core, why_numa])
    address = _local(options.master_addr)
    claim, node = None, 0
    if options.local_worker_num < options.worker_num:
        claim = NodeClaim(f"{address}-{options.master_port}", options.node_rank, _nodes(options))
        node = claim.node
        if options.node_rank == -1:
            warnings.append(f"--node_rank is not given: this launcher is node {node}")
    elif options.node_rank not in (0, -1):
        warnings.append(f"all workers start here, so that --node_rank={options.node_rank} has no effect")
    first = node * options.local_worker_num
    ranks_here = tuple(range(first, first + options.local_worker_num))
    if node == 0:
        _check_port(address, options.master_port)
    return LaunchPlan(
        options=options,
        ranks=ranks_here,
        address=address,
        hub=f"[{address}]:{options.master_port}" if ":" in address else f"{address}:{options.master_port}",
        scheduler=node == 0,
        token=claim.token if claim is not None else secrets.token_hex(16),
        command=command,
        tailed=_tailed(options.tail_worker_log, ranks_here),
        binding=core if options.bind_core.lower() != "false" else numa,
        claim=claim,
        warnings=tuple(warnings),
    )


def _check_numbers(options: MsrunOptions) -> None:
    if options.worker_num < 1:
        raise _bad("--worker_num", f"worker_num must be greater than 0, but got {options.worker_num}.")
    if options.local_worker_num < 1:
        raise _bad("--local_worker_num", f"{options.local_worker_num} is not a number of workers", "1 or more")
    if options.local_worker_num > options.worker_num:
        raise _bad(
            "--local_worker_num",
            f"Total worker number is {options.worker_num}, "
            f"but got exceeded local worker number: {options.local_worker_num}.",
            f"1 to {options.worker_num}",
        )
    if options.worker_num % options.local_worker_num:
        raise _bad(
            "--local_worker_num",
            f"{options.worker_num} workers cannot be shared by launchers of {options.local_worker_num}",
        )
    if not 1024 <= options.master_port <= 65535:
        raise _bad("--master_port", f"{options.master_port} is not a port for it", "1024 to 65535")
    if options.node_rank != -1 and not 0 <= options.node_rank < _nodes(options) and _nodes(options) > 1:
        raise _bad(
            "--node_rank",
            f"node {options.node_rank} would have ranks outside of {options.worker_num}",
            "-1",
            f"0 to {_nodes(options) - 1}",
        )


def _check_simulation(options: MsrunOptions, environment: Mapping[str, str]) -> None:
    level = str(options.sim_level) if options.sim_level != -1 else environment.get("MS_SIMULATION_LEVEL", "")
    if level:
        where = "--sim_level" if options.sim_level != -1 else "MS_SIMULATION_LEVEL"
        raise UnsupportedError(
            f"simulation level {level} is not emulated; dumpsim run --engine null compiles and plans memory "
            "without values",
            where=where,
        )
    if options.sim_rank_id != -1:
        raise UnsupportedError("simulation of a single rank is not emulated", where="--sim_rank_id")


def worker_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command of a worker; ``python`` becomes the interpreter that runs dumpsim.

    Raises
    ------
    BadInputError
        For a script that does not exist.
    """
    program, *arguments = command
    if program == "pytest":
        return (sys.executable, "-m", "pytest", *arguments)
    if program in _PROGRAMS:
        return (sys.executable, *arguments)
    if not Path(program).is_file():
        raise BadInputError(f"the script {program!r} does not exist", where="dumpsim msrun", code="DS-RUN-001")
    return (sys.executable, program, *arguments)


def _tailed(text: str, ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Parse the ranks of ``--tail_worker_log``; -1 stands for all."""
    if text == "-1":
        return ranks
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise _bad("--tail_worker_log", f"{text!r} is not a list of ranks", "-1", "0,2")
    return tuple(rank for rank in ranks if rank in map(int, parts))


def _nodes(options: MsrunOptions) -> int:
    return options.worker_num // options.local_worker_num


def _local(name: str) -> str:
    """Return the IP address of the scheduler, which must belong to this machine."""
    try:
        family, _, _, _, place = socket.getaddrinfo(name.strip("[]"), None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise _bad("--master_addr", f"{name!r} is no address: {error}") from None
    address = str(place[0])
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            raise UnsupportedError(
                f"{address} is no address of this machine, and workers of one job run on one machine here",
                where="--master_addr",
            ) from None
    return address


def _check_port(address: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise _bad(
                "--master_port", f"port {port} of {address} is in use: {error.strerror}", "a free port", code="EI0019"
            ) from None


def _own_ip(address: str) -> str:
    """Return the address of this machine that packets to another one come from."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))  # nothing is sent
        return str(probe.getsockname()[0])


def _bad(where: str, what: str, *allowed: str, code: str = "DS-RUN-011") -> BadInputError:
    return BadInputError(what, where=where, allowed=allowed, code=code)
