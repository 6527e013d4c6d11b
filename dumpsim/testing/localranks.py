"""The ranks of a test in one process: they take turns, and meet at barriers of the test."""

import unittest
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import pytest

from dumpsim.core.errors import DeviceError, public_name
from dumpsim.core.settings import RunSettings
from dumpsim.device.scheduler import Scheduler
from dumpsim.testing.outcome import Outcome
from dumpsim.testing.ranks import named
from dumpsim.world import current, launch
from dumpsim.world.ending import RankStopped

__all__ = ["LocalRanks"]


class LocalRanks:
    """Runs a function once in each rank, and records how each ended.

    Parameters
    ----------
    size : int
    settings : RunSettings, optional
    environment : mapping, optional
        Variables added to those of the process.

    Attributes
    ----------
    outcomes : list of Outcome
        One per rank.

    Examples
    --------
    >>> ranks = LocalRanks(2)
    >>> ranks.run(lambda: ranks.meet("gather", 10 * ranks.rank))
    [{0: 0, 1: 10}, {0: 0, 1: 10}]
    >>> [outcome.line() for outcome in ranks.outcomes]
    ['passed', 'passed']
    """

    def __init__(
        self, size: int, *, settings: RunSettings | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.size = size
        self.outcomes = [Outcome(rank=rank) for rank in range(size)]
        self._settings = settings
        self._environment = environment
        self._meetings: list[tuple[str, dict[int, Any]]] = []  # purpose, and value by arrived rank
        self._met = [0] * size  # by rank: number of meetings joined
        self._ended: set[int] = set()

    @property
    def rank(self) -> int:
        """The rank that runs."""
        return current().rank

    def run(self, function: Callable[[], Any]) -> list[Any]:
        """Call the function in each rank, and return the results.

        A rank that skips ends by itself; one that raises stops the others.

        Raises
        ------
        BaseException
            The error of the rank at fault, or the skip of the first rank if all skipped.
        """
        __tracebackhide__ = True
        try:
            results = launch(
                self._member, self.size, args=[function], settings=self._settings, environment=self._environment
            )
        except BaseException as error:
            self._explain(error)
            raise error.with_traceback(_below(self._member, error.__traceback__)) from error.__cause__
        if all(outcome.state == "skipped" for outcome in self.outcomes):
            skip = self.outcomes[0].error
            assert skip is not None
            raise skip
        return results

    def meet(self, kind: str, value: Any = None) -> dict[int, Any]:
        """Wait until all ranks have joined this meeting or have ended, and return the values of those that joined.

        Raises
        ------
        DeviceError
            If ranks join different meetings, or if no rank can progress.
        """
        __tracebackhide__ = True
        rank, hosts = self.rank, current().world.get(Scheduler).hosts
        assert hosts is not None
        number, self._met[rank] = self._met[rank], self._met[rank] + 1
        if number == len(self._meetings):
            self._meetings.append((kind, {}))
        wanted, came = self._meetings[number]
        if wanted != kind:
            raise DeviceError(f"rank {rank} is at {kind} where {named(came)} came to {wanted}", code="DS-TST-005")
        came[rank] = value
        while len(missing := set(range(self.size)) - came.keys() - self._ended):
            if not hosts.switch(rank):
                where = f"rank {rank} waits at {kind} for {named(missing)}"
                raise DeviceError(f"{where}, and no rank can go on", code="DS-TST-005")
        self._wake()
        return {member: came[member] for member in sorted(came)}

    # ------------------------------------------------------------------ ranks
    def _member(self, function: Callable[[], Any]) -> Any:
        """Run one rank, until its device has finished all tasks."""
        __tracebackhide__ = True
        rank = self.rank
        outcome = self.outcomes[rank]
        try:
            result = function()
            current().world.get(Scheduler).finish(rank)  # an error of the last tasks belongs to the rank
        except (pytest.skip.Exception, unittest.SkipTest) as error:
            outcome.state, outcome.reason, outcome.error = "skipped", str(error), error
            return None
        except RankStopped as error:
            outcome.state, outcome.reason = "stopped", str(error).partition(": ")[2]
            raise
        except BaseException as error:
            outcome.state, outcome.error = "failed", error
            raise
        else:
            outcome.state = "passed"
            return result
        finally:
            self._ended.add(rank)
            self._wake()

    def _wake(self) -> None:
        """Wake ranks that wait at a meeting."""
        hosts = current().world.get(Scheduler).hosts
        assert hosts is not None
        for member in {member for _, came in self._meetings[-1:] for member in came}:
            hosts.wake(member)

    def _explain(self, error: BaseException) -> None:
        """Record why ranks did not start, and the errors of those that failed."""
        failed = [outcome for outcome in self.outcomes if outcome.error is error]
        if not failed:  # raised after the rank had ended, while it closed its resources
            rank = _noted(error, self.size)
            if rank is not None:
                failed = [self.outcomes[rank]]
                failed[0].state, failed[0].error = "failed", error
        for outcome in self.outcomes:
            if outcome.state == "failed" and outcome.error is not None:
                outcome.reason = short(outcome.error)
            elif outcome.state == "not started" and failed:
                outcome.reason = f"rank {failed[0].rank} has raised {public_name(error)}"


def short(error: BaseException) -> str:
    """Return type and first line of an error.

    Examples
    --------
    >>> short(ValueError("one\\ntwo"))
    'ValueError: one'
    """
    first = str(error).partition("\n")[0]
    if isinstance(error, pytest.fail.Exception):
        return first
    return f"{public_name(error)}: {first}" if first else type(error).__name__


def _below(function: Callable[..., Any], traceback: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback below a function; all of it if the function is not in it."""
    code = function.__code__
    entry = traceback
    while entry is not None:
        if entry.tb_frame.f_code is code:
            return entry.tb_next
        entry = entry.tb_next
    return traceback


def _noted(error: BaseException, size: int) -> int | None:
    """Return the rank that a note of the error names."""
    notes: Sequence[str] = getattr(error, "__notes__", ())
    return next((rank for rank in range(size) if f"raised in rank {rank} of {size}" in notes), None)
