"""``dumpsim run --transport process``: run each rank of a script in a process of its own."""

import secrets
import tempfile
from collections.abc import Mapping, Sequence

from dumpsim.emulate.binding import Binding
from dumpsim.emulate.launchplan import LaunchPlan, MsrunOptions, worker_command
from dumpsim.emulate.processes import Job

__all__ = ["run_processes"]


def run_processes(command: Sequence[str], ranks: int, environment: Mapping[str, str], *, quiet: bool = False) -> int:
    """Run a script in several processes.

    Parameters
    ----------
    command : sequence of str
        A script and its arguments, or ``-m``, a module and its arguments.
    ranks : int
    environment : mapping of str to str
        See `dumpsim.emulate.environment`.
    quiet : bool
        No summary on stderr.

    Returns
    -------
    int
        The exit code of the rank that failed first, else 0.
    """
    line = ("python", *command) if command[0] == "-m" else tuple(command)
    with tempfile.TemporaryDirectory(prefix="dumpsim-logs-") as logs:
        plan = LaunchPlan(
            options=MsrunOptions(
                worker_num=ranks,
                local_worker_num=ranks,
                log_dir=logs,
                join=True,
                cluster_time_out=int(environment.get("MS_TOPO_TIMEOUT", "600")),
                command=line,
            ),
            ranks=tuple(range(ranks)),
            address="127.0.0.1",
            hub=f"unix:@dumpsim-{secrets.token_hex(8)}",
            scheduler=True,
            token=secrets.token_hex(16),
            command=worker_command(line),
            tailed=tuple(range(ranks)),
            binding=Binding(),
        )
        job = Job(plan, environment, quiet=quiet, plain=True)
        code = job.run()
        return job.code or code
