"""The report of a finished dump, which the process, its job, or the launcher of its job prints."""

import os
import sys
from dataclasses import asdict

from dumpsim.dump.job import Account, JobAccounts
from dumpsim.dump.summary import Summary
from dumpsim.world.context import current
from dumpsim.world.reports import JobReports

__all__ = ["announce"]


def announce(summary: Summary, *, quiet: bool, job: str | None) -> None:
    """Report a finished dump; the dumps of a job's ranks are reported together at the end of the job.

    Parameters
    ----------
    summary : Summary
    quiet : bool
        Whether to print nothing.
    job : str or None
        Directory for the account of a rank with its own process, see `dumpsim.dump.job.VARIABLE`.
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
