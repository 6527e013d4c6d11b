"""Pass the report of a finished dump to its printer: the process, its job, or the launcher of its job."""

import os
import sys
from dataclasses import asdict

from dumpsim.dump.job import Account, JobAccounts
from dumpsim.dump.summary import Summary
from dumpsim.world.context import current
from dumpsim.world.reports import JobReports

__all__ = ["announce"]


def announce(summary: Summary, *, quiet: bool, job: str | None) -> None:
    """Report a finished dump; the ranks of a job leave that to the job, which reports all of them at once.

    Parameters
    ----------
    summary : Summary
    quiet : bool
        Print nothing.
    job : str or None
        The directory that gets the account of a rank that is a process of its own, see `dumpsim.dump.job.VARIABLE`.
    """
    rank = current()
    if rank.world.ranks > 1:
        accounts = rank.world.get(JobAccounts)
        accounts.add(Account.of(rank.rank, summary))
        if not (quiet or accounts.reported):
            accounts.reported = True
            rank.world.at_close(lambda: print(accounts.text(rank.world.ranks), file=sys.stderr, flush=True))
    elif (reports := rank.get(JobReports)).wanted:
        if not quiet:
            reports.renderer = f"{JobAccounts.__module__}:{JobAccounts.__name__}.render"
            reports.own.append(asdict(Account.of(rank.rank, summary)))
    elif job and os.path.isdir(job):
        JobAccounts.leave(Account.of(rank.rank, summary), job)
    elif not quiet:
        print(summary, file=sys.stderr, flush=True)
