"""The programs of the ranks of one process, which take turns on greenlets."""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

from greenlet import getcurrent, greenlet

from dumpsim.core.errors import BadInputError, DeviceError, PeerError, nearest, public_name
from dumpsim.core.gate import Failure
from dumpsim.device.scheduler import Scheduler, Waiting
from dumpsim.world.context import RankContext
from dumpsim.world.ending import RankKilled, RankStopped
from dumpsim.world.process import ProcessState

__all__ = ["SCHEDULES", "RankHosts", "turns"]

SCHEDULES = ("rank", "reverse", "random:SEED")


def turns(schedule: str) -> Callable[[Sequence[int], int], int]:
    """Return the function that chooses the next rank among those that can run.

    Parameters
    ----------
    schedule : {"rank", "reverse", "random:SEED"}

    Returns
    -------
    callable
        ``choose(runnable, last)`` takes the sorted ranks and the one that ran last, and returns an index of `runnable`.

    Raises
    ------
    BadInputError
        For any other text.

    Examples
    --------
    >>> [turns(schedule)([1, 4, 6], 4) for schedule in ("rank", "reverse")]
    [2, 0]
    """
    if schedule == "rank":
        return lambda runnable, last: bisect_right(runnable, last) % len(runnable)
    if schedule == "reverse":
        return lambda runnable, last: (bisect_left(runnable, last) - 1) % len(runnable)
    kind, _, seed = schedule.partition(":")
    if kind == "random" and seed.isascii() and seed.isdigit() and len(seed) <= 18:
        draws = random.Random(int(seed))
        return lambda runnable, last: draws.randrange(len(runnable))
    raise BadInputError(
        f"unknown order of turns {schedule!r}",
        where="--schedule",
        allowed=SCHEDULES,
        nearest=nearest(schedule, SCHEDULES),
    )


class _Host:
    """The program of one rank."""

    __slots__ = ("context", "done", "error", "function", "greenlet", "result", "variables")

    def __init__(self, context: RankContext, function: Callable[[], Any]) -> None:
        self.context = context
        self.function = function
        self.variables = copy_context()  # for its tasks while another rank runs
        self.variables.run(context.activate)
        self.greenlet: Any = None  # before the start
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False


class RankHosts:
    """Runs the programs of ranks, one at a time.

    A program runs until it ends, or until it waits and no task is ready. Then the next rank that can run takes its
    turn. Nothing else affects the order, so a launch is deterministic.

    Parameters
    ----------
    schedule : str
        The order of the turns: ``rank``, ``reverse``, or ``random:SEED``. What a job computes does not depend on it.

    Attributes
    ----------
    scheduler : Scheduler
        The one that the ranks share.

    Examples
    --------
    >>> from dumpsim.world.context import World
    >>> hosts = RankHosts()
    >>> world = World(2)
    >>> for rank in range(2):
    ...     hosts.add(RankContext(rank=rank, size=2, world=world), lambda rank=rank: rank * 10)
    >>> hosts.run()
    [0, 10]
    """

    def __init__(self, schedule: str = "rank") -> None:
        self.scheduler = Scheduler(self)
        self._turn = turns(schedule)
        self._hosts: list[_Host] = []
        self._runnable: list[int] = []  # in order
        self._waiting: set[int] = set()
        self._last = -1  # the rank that ran last
        self._failed: list[int] = []  # in the order of the failures
        self._killed: set[int] = set()
        self._stopping = False
        self._hub: Any = None
        self._present: ProcessState | None = None  # that of the process, while no rank runs

    def add(self, context: RankContext, function: Callable[[], Any]) -> None:
        """Add the program of the next rank."""
        self._runnable.append(len(self._hosts))
        self._hosts.append(_Host(context, function))

    def run(self) -> list[Any]:
        """Run all programs to their ends and return what they return.

        Raises
        ------
        BaseException
            The error of the first rank that failed, with a note that names the rank; the others are stopped.
        """
        self._hub = getcurrent()
        outside = self._present = ProcessState.take()
        try:
            self._turns()
        finally:
            self._stopping = True
            for rank in sorted(self._waiting):
                own = self.scheduler.failed(rank)  # then its wait raises its own failure
                self._continue(rank, True if own else RankStopped(f"rank {rank} is stopped: {self._reason()}"))
            outside.install(self._present)
            self._present = None
        if self._failed:
            rank = self._blamed()
            error = self._hosts[rank].error
            assert error is not None
            error.add_note(f"raised in rank {rank} of {len(self._hosts)}")
            raise error
        return [host.result for host in self._hosts]

    # ------------------------------------------------------- for the scheduler
    def switch(self, rank: int) -> bool:
        """Let other ranks run until a task may be ready; return False if no other rank can progress.

        Raises
        ------
        RankStopped
            If another rank has failed.
        DeviceError
            In a thread that the rank has started.
        """
        if self._stopping:
            raise RankStopped(f"rank {rank} is stopped: {self._reason()}")
        if getcurrent() is not self._hosts[rank].greenlet:
            raise DeviceError(
                "a thread of the script cannot wait for other ranks of its process; "
                "dumpsim msrun gives each rank a process of its own",
                where=f"rank {rank}",
            )
        self._waiting.add(rank)
        try:
            return bool(self._hub.switch(True))  # nothing is ready
        finally:
            self._waiting.discard(rank)

    def wake(self, rank: int) -> None:
        """Make a waiting rank runnable, because a task of it is ready."""
        at = bisect_left(self._runnable, rank)
        if rank in self._waiting and self._runnable[at : at + 1] != [rank]:
            self._runnable.insert(at, rank)

    def run_as(self, rank: int, function: Callable[[int], None], argument: int) -> None:
        """Call a function in the context of a rank; the process state stays that of the running rank."""
        self._hosts[rank].variables.run(function, argument)

    def elsewhere(self) -> Sequence[Waiting]:
        """Return nothing: all ranks are in this process."""
        return ()

    def report(self) -> Sequence[str]:
        """Return a line for each rank that has ended."""
        return [f"  rank {rank}: its program has ended" for rank, host in enumerate(self._hosts) if host.done]

    # ----------------------------------------------------------------- turns
    def _turns(self) -> None:
        idle = False  # no task is ready
        while not self._stopping:
            if self._runnable:
                idle = self._continue(self._runnable.pop(self._turn(self._runnable, self._last)), True)
            elif not self._waiting:
                return
            elif not (idle and self.scheduler.release()):
                # the last rank may have left ready tasks; else the lowest one reports the deadlock
                idle = self._continue(min(self._waiting), not idle)

    def _continue(self, rank: int, message: "bool | RankStopped") -> bool:
        """Let a rank run until it waits or ends; return whether no task is ready."""
        host = self._hosts[rank]
        self._last = rank
        host.context.resume(self._present)
        try:
            if host.greenlet is None:
                host.greenlet = greenlet(self._main)
                host.greenlet.gr_context = copy_context()
                return bool(host.greenlet.switch(rank))
            if isinstance(message, RankStopped):
                return bool(host.greenlet.throw(message))
            return bool(host.greenlet.switch(message))
        finally:
            self._present = host.context.suspend()

    def _main(self, rank: int) -> bool:
        """Run the program of a rank from its start to its end, on its own greenlet."""
        host = self._hosts[rank]
        host.context.activate()
        try:
            host.result = host.function()
            self.scheduler.finish(rank)
        except BaseException as error:
            self._end(rank, error)
        try:
            host.context.close()
        except BaseException as error:
            self._end(rank, error)
        host.done = True
        return False

    def _end(self, rank: int, error: BaseException) -> None:
        """Record the error that a rank has raised."""
        host = self._hosts[rank]
        if isinstance(error, RankKilled):
            error = DeviceError(f"its process was killed by SIGKILL ({error})", where=f"rank {rank}")
            self.scheduler.kill(Failure(rank=rank, time_ns=0, error=error))
            self._killed.add(rank)
        if host.error is None:
            host.error = error
            if not isinstance(error, RankStopped):
                self._failed.append(rank)
                suffers = isinstance(error, PeerError) and self._killed
                self._stopping = self._stopping or not (rank in self._killed or suffers)
        elif not isinstance(error, RankStopped):
            host.error.add_note(f"then, at the end of the rank: {public_name(error)}: {error}")

    # --------------------------------------------------------------- failures
    def _blamed(self) -> int:
        """Return the rank whose error is raised: the first that failed, or the one that its error names as cause."""
        first = self._failed[0]
        error = self._hosts[first].error
        if isinstance(error, PeerError) and error.rank in self._failed:
            return error.rank
        return first

    def _reason(self) -> str:
        if not self._failed:
            return "the launch was interrupted"
        error = self._hosts[self._failed[0]].error
        return f"rank {self._failed[0]} has raised {public_name(error)}"
