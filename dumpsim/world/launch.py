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
    ``rank_N``; what modules hold is shared, as between threads, and a Parameter has one value for each rank. Ranks take
    turns: one runs until it waits for another one, or ends. A rank that ends waits for its device first.

    A thread that the function starts does not belong to the rank, unless its target is run by
    ``contextvars.copy_context().run``; it cannot wait for other ranks.

    Parameters
    ----------
    function : callable
        The script's entry; it is called as ``function(*args)`` in each rank.
    ranks : int
        How many.
    args : sequence
        The same objects for all ranks.
    transport : str
        Where ranks run: ``local``, all of them in this process, or ``process``, each in a process of its own. That one
        is forked from this process, so that it has what is loaded here, and it returns copies of: None, bool, numbers,
        text, bytes, arrays, and lists, tuples and dicts of them.
    environment : mapping, optional
        Environment variables of all ranks, over those of the process. ``RANK_ID``, ``RANK_SIZE`` and ``DEVICE_ID``
        are set for each rank.
    settings : RunSettings, optional
        What `dumpsim run` would pass on; by default this process's settings.

    Returns
    -------
    list
        What the function has returned, by rank.

    Raises
    ------
    BadInputError
        For an unknown transport, or no rank.
    BaseException
        What the first rank that failed has raised; a note names the rank. The others are ended by `RankStopped` at
        their next wait for other ranks; ranks that have not started do not start.

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
        from dumpsim.world.processes import Processes  # most launches do without

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
    """The variables that each rank has of its own."""
    return {"RANK_ID": str(rank), "RANK_SIZE": str(ranks), "DEVICE_ID": str(rank)}
