"""The ranks of a test if each worker of pytest-xdist is one: the rank of this process, and its meetings."""

import json
import os
import pickle
import time
import unittest
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from dumpsim.core.errors import DeviceError, DumpsimError, PeerError
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.device.scheduler import Scheduler
from dumpsim.testing.localranks import short
from dumpsim.testing.outcome import Outcome
from dumpsim.testing.ranks import named
from dumpsim.testing.rollcall import RollCall
from dumpsim.world import RankContext, World
from dumpsim.world.client import Client, connect
from dumpsim.world.ending import RankStopped
from dumpsim.world.hub import Hub

__all__ = ["WorkerRanks"]

_GONE = "DS-TST-006"
_PARTING_S = 0.3


class WorkerRanks:
    """The ranks of one test; this process runs one of them.

    Parameters
    ----------
    roll : RollCall
    test : str
        Name of the test's subdirectory.
    nodeid : str
    size : int
        Number of workers that take part, from the first one.
    token : str
        Secret of the run.
    settings : RunSettings
    environment : mapping
        Variables added to those of the process.

    Attributes
    ----------
    outcomes : list of Outcome
        Outcome of this rank only.
    """

    def __init__(
        self,
        roll: RollCall,
        test: str,
        nodeid: str,
        size: int,
        *,
        token: str,
        settings: RunSettings,
        environment: Mapping[str, str],
    ) -> None:
        self.size = size
        self.rank = roll.rank
        self.outcomes = [Outcome(rank=self.rank)]
        self._roll = roll
        self._test = test
        self._nodeid = nodeid
        self._token = token
        self._settings = settings
        self._environment = environment
        self._met = 0
        self._members = range(size)

    def run(self, function: Callable[[], Any]) -> list[Any]:
        """Wait for all ranks, and call the function as this rank.

        Raises
        ------
        DeviceError
            If a rank has died, or runs another test.
        RankStopped
            If a rank will not run the test.
        """
        __tracebackhide__ = True
        outcome = self.outcomes[0]
        with ExitStack() as stack:
            if self.rank == 0:
                stack.enter_context(Hub(self.size, address=self._address, token=self._token)).start()
                stack.callback(self._await_ends)
            try:
                self._assemble()
                result = self._as_rank(function, self._connect())
            except (pytest.skip.Exception, unittest.SkipTest) as error:
                outcome.state, outcome.reason, outcome.error = "skipped", str(error), error
                raise
            except RankStopped as error:
                outcome.state, outcome.reason = "stopped", str(error).partition(": ")[2]
                raise
            except BaseException as error:
                outcome.state, outcome.reason, outcome.error = "failed", short(error), error
                self._name_lost(error)
                raise
            else:
                outcome.state = "passed"
                return [result]
            finally:
                self._say_end(outcome)

    def meet(self, kind: str, value: Any = None) -> dict[int, Any]:
        """Wait until all ranks have joined this meeting or have ended, and return the values of those that joined.

        Raises
        ------
        DeviceError
            If ranks join different meetings, or one has died.
        RankStopped
            If one has failed.
        """
        __tracebackhide__ = True
        place = f"{self._test}/meeting-{self._met}"
        self._met += 1
        self._roll.say(place, json.dumps([kind, b64encode(pickle.dumps(value)).decode()]))
        came: dict[int, str] = {}

        def done() -> bool:
            __tracebackhide__ = True
            came.update(self._roll.said(place, self._members))
            for text in came.values():
                if json.loads(text)[0] != kind:
                    return True
            missing = [rank for rank in self._members if rank not in came]
            return not missing or self._may_go_on(missing, place, f"at {kind}")

        self._roll.wait(done)
        said = {rank: json.loads(text) for rank, text in sorted(came.items())}
        others = {rank: found for rank, (found, _) in said.items() if found != kind}
        if others:
            other = next(iter(others.values()))
            raise DeviceError(f"rank {self.rank} is at {kind} where {named(others)} came to {other}", code="DS-TST-005")
        return {rank: pickle.loads(b64decode(text)) for rank, (_, text) in said.items()}

    # ------------------------------------------------------------------ steps
    @property
    def _address(self) -> str:
        return f"unix:@dumpsim-{self._token[:16]}-{self._test}"

    def _connect(self) -> Client:
        """Connect to the other ranks."""
        wrong = None
        try:
            return connect(self._address, token=self._token, rank=self.rank, size=self.size)
        except DumpsimError as error:
            wrong = self._await_lost() or str(error)
        pytest.fail(wrong, pytrace=False)

    def _assemble(self) -> None:
        """Wait until all ranks begin the body of the test."""
        wrong = None
        try:
            self._await_all()
        except DeviceError as error:
            wrong = str(error)
        if wrong is not None:
            pytest.fail(wrong, pytrace=False)

    def _await_all(self) -> None:
        roll = self._roll
        roll.say(f"{self._test}/ready")

        def done() -> bool:
            ready = roll.said(f"{self._test}/ready", self._members)
            missing = [rank for rank in self._members if rank not in ready]
            for rank, nodeid in roll.said(f"{self._test}/arrived", self._members).items():
                if nodeid != self._nodeid:
                    raise DeviceError(
                        roll.stop(
                            f"rank {rank} (worker gw{rank}) runs {nodeid}, and rank {self.rank} (worker gw{self.rank}) "
                            f"runs {self._nodeid}: every worker has to collect the same tests in the same order"
                        ),
                        code=_GONE,
                    )
            self._refuse_lost(missing, "for the test to begin")
            for rank, text in roll.said(f"{self._test}/reported", missing).items():
                raise RankStopped(f"rank {self.rank} is stopped: rank {rank} has {text} before the test's body")
            return not missing

        roll.wait(done)

    def _as_rank(self, function: Callable[[], Any], client: Client) -> Any:
        """Run the body in a context of its own."""
        __tracebackhide__ = True
        rank, size = self.rank, self.size
        own = {"RANK_ID": str(rank), "RANK_SIZE": str(size), "DEVICE_ID": str(rank)}
        world = World(size)
        world.put(Scheduler, client.scheduler)
        context = RankContext(
            rank=rank,
            size=size,
            device_id=rank,
            environment={**os.environ, **self._environment, VARIABLE: self._settings.to_text(), **own},
            world=world,
            communicator=client,
        )

        def body() -> Any:
            __tracebackhide__ = True
            try:
                result = function()
                client.scheduler.finish(rank)
            finally:
                context.close()
            return result

        try:
            result = context.run(body)
        except (pytest.skip.Exception, unittest.SkipTest):
            client.leave()
            raise
        except BaseException as error:
            client.leave(error)
            raise
        client.leave()
        return result

    def _say_end(self, outcome: Outcome) -> None:
        error = outcome.error
        end = {"state": outcome.state, "kind": type(error).__name__, "time": time.monotonic()}
        if isinstance(error, PeerError) and error.rank != self.rank:
            end["culprit"] = error.rank
        self._roll.say(f"{self._test}/ended", json.dumps(end))

    def _await_ends(self) -> None:
        """Wait until no rank uses the hub of this process any longer."""

        def done() -> bool:
            gone = self._roll.said(f"{self._test}/ended", self._members).keys() | self._roll.lost(self._members).keys()
            missing = [rank for rank in self._members if rank not in gone]
            return not missing or len(self._roll.said(f"{self._test}/reported", missing)) == len(missing)

        self._roll.wait(done)

    def _name_lost(self, error: BaseException) -> None:
        """Name the lost process if an error comes from its end."""
        if isinstance(error, DumpsimError):
            reason = self._roll.stopped() or self._await_lost()
            if reason and reason not in str(error):
                error.add_note(reason)

    def _await_lost(self) -> str:
        """Return which process has ended, or ""; a process closes its connections before its lock is free."""
        until = time.monotonic() + _PARTING_S
        self._roll.wait(lambda: time.monotonic() > until or bool(self._roll.lost(self._members)))
        lost = self._roll.lost(self._members)
        return self._roll.stop(f"{self._roll.describe(lost)} ended in {self._nodeid}") if lost else ""

    def _may_go_on(self, missing: list[int], place: str, where: str) -> bool:
        """Return whether none of these ranks will join any longer; raise if one of them has failed or died."""
        __tracebackhide__ = True
        ended = {rank: json.loads(text) for rank, text in self._roll.said(f"{self._test}/ended", missing).items()}
        for rank, end in ended.items():
            if end["state"] == "failed":
                raise RankStopped(f"rank {self.rank} is stopped: rank {rank} has raised {end['kind']}")
        still = [rank for rank in missing if rank not in ended]
        self._refuse_lost(still, where)
        return not still and not self._roll.said(place, missing)

    def _refuse_lost(self, ranks: list[int], where: str) -> None:
        __tracebackhide__ = True
        lost = self._roll.lost(ranks)
        if lost:
            what = f"{self._roll.describe(lost)} ended in {self._nodeid}"
            raise DeviceError(f"{self._roll.stop(what)}; rank {self.rank} waits {where}", code=_GONE)
