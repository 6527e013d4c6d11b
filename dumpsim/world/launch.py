"""Starts the ranks of a parallel job."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.device.scheduler import Scheduler
from dumpsim.world.context import RankContext, World
from dumpsim.world.hosts import RankHosts

__all__ = ["TRANSPORTS", "launch"]

T = TypeVar("T")

TRANSPORTS = ("local", "process")


def launch(
    function: Callable[..., T],
    ranks: int = 4,
    *,
    args: Sequence[Any] = (),
    transport: str = "local",
    environment: Mapping[str, str] | None = None,
    settings: RunSettings | None = None,
) -> list[T]:
    """Run a function once in each rank of a job.

    Each rank has its own device, clock, seed and random state, environment, working directory and dump root
    ``rank_N``. Modules and their globals are shared, as between threads, but a Parameter has one value for each rank.
    Ranks take turns: one runs until it waits for another one, or ends. A rank waits for its device before it ends.

    A thread that the function starts does not belong to the rank, unless its target is run by
    ``contextvars.copy_context().run``; it cannot wait for other ranks.

    Parameters
    ----------
    function : callable
        The entry point of the script; it is called as ``function(*args)`` in each rank.
    ranks : int
        Number of ranks.
    args : sequence
        Arguments of the function; all ranks get the same objects.
    transport : str
        ``local`` runs all ranks in this process, ``process`` runs each in a process of its own. These are forked from
        this process, so they see the modules loaded here. They return copies of their results, which may be None, bool,
        numbers, text, bytes, arrays, and lists, tuples and dicts of them.
    environment : mapping, optional
        Environment variables of all ranks, added to those of the process. ``RANK_ID``, ``RANK_SIZE`` and ``DEVICE_ID``
        are set for each rank.
    settings : RunSettings, optional
        The settings of the run, by default those of this process.

    Returns
    -------
    list
        The result of the function, by rank.

    Raises
    ------
    BadInputError
        For an unknown transport, or less than one rank.
    BaseException
        The error of the first rank that failed; a note names the rank. The others are ended by `RankStopped` at their
        next wait for other ranks; ranks that have not started do not start.

    Examples
    --------
    >>> from dumpsim.world import current
    >>> launch(lambda text: f"{text} {current().rank} of {current().size}", ranks=2, args=["rank"])
    ['rank 0 of 2', 'rank 1 of 2']
    """
    if transport not in TRANSPORTS:
        raise BadInputError(
            f"unknown transport {transport!r}",
            where="transport",
            allowed=TRANSPORTS,
            nearest=nearest(transport, TRANSPORTS),
        )
    if ranks < 1:
        raise BadInputError(f"{ranks} is not a number of ranks", where="ranks", allowed=["1 or more"])
    shared = {**os.environ, **(environment or {})}
    if settings is not None:
        shared[VARIABLE] = settings.to_text()
    if transport == "process":
        from dumpsim.world.processes import Processes  # imported late: most launches do not need it

        environments = [{**shared, **_numbers(rank, ranks)} for rank in range(ranks)]
        copies: list[T] = Processes(function, args, environments).run()
        return copies
    hosts = RankHosts(RunSettings.from_environment(shared).schedule)
    world = World(ranks)
    world.put(Scheduler, hosts.scheduler)
    for rank in range(ranks):
        context = RankContext(
            rank=rank, size=ranks, device_id=rank, environment={**shared, **_numbers(rank, ranks)}, world=world
        )
        hosts.add(context, partial(function, *args))
    try:
        results: list[T] = hosts.run()
    finally:
        world.close()
    return results


def _numbers(rank: int, ranks: int) -> dict[str, str]:
    """Return the environment variables that differ between ranks."""
    return {"RANK_ID": str(rank), "RANK_SIZE": str(ranks), "DEVICE_ID": str(rank)}
