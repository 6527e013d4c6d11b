"""Starts the ranks of a job as processes of this machine, and collects what they return."""

import os
import selectors
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TextIO, TypeVar

from dumpsim.core.errors import DeviceError, PeerError
from dumpsim.device.scheduler import Scheduler
from dumpsim.world.client import connect
from dumpsim.world.context import RankContext, World, use
from dumpsim.world.exchange import Ending
from dumpsim.world.hub import Hub
from dumpsim.world.reports import JobReports
from dumpsim.world.value import decode_value, encode_value

__all__ = ["Processes", "reason"]

T = TypeVar("T")

_POLL_S = 0.02  # between two checks of the processes
_END_S = 0.05  # that a process may take to end after its socket has closed
_GRACE_S = 10.0  # for ranks that do not wait for others, after one has failed


def reason(status: int) -> str:
    """Return how a process has ended, from its wait status.

    Examples
    --------
    >>> reason(9), reason(3 << 8)
    ('its process was killed by SIGKILL', 'its process has ended with exit code 3')
    """
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"its process has ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"its process was killed by {name}"


class _Member:
    """The process of a rank, as its parent sees it."""

    def __init__(self, pid: int, outputs: dict[int, TextIO]) -> None:
        self.pid = pid
        self.outputs = outputs  # the stream for its lines, by descriptor
        self.lines: dict[int, bytes] = dict.fromkeys(outputs, b"")
        self.running = True
        self.reason: str | None = None


class Processes:
    """The ranks of a launch, each a child of this process.

    A child is forked: it has the modules of this process, but not its threads. The result of the function is copied; it
    may be None, bool, numbers, text, bytes, arrays, and lists, tuples and dicts of them.

    Parameters
    ----------
    function : callable
    args : sequence
    environments : sequence of mapping
        Of the ranks.
    """

    def __init__(
        self, function: Callable[..., T], args: Sequence[Any], environments: Sequence[Mapping[str, str]]
    ) -> None:
        self._function = function
        self._args = args
        self._environments = environments
        self._members: list[_Member] = []
        self._order: list[int] = []  # of the ranks that have failed

    def run(self) -> list[Any]:
        """Run the function in all ranks and return its results, by rank.

        Raises
        ------
        BaseException
            As `dumpsim.world.launch`.
        """
        size = len(self._environments)
        with Hub(size, environment=self._environments[0], report=self._ended) as hub:
            hub.explain = self._explain
            try:
                for rank in range(size):
                    self._members.append(self._fork(hub, rank))
                hub.start()
                self._supervise(hub)
            finally:
                self._end_all()
            hub.wait(_GRACE_S)
            ended = [hub.results.get(rank) or {} for rank in range(size)]
            if text := JobReports.text([each.get("reports") for each in ended], size):
                print(text, file=sys.stderr, flush=True)
            self._raise(hub.endings)
            return [decode_value(each["value"]) for each in ended]

    # ------------------------------------------------------------------- children
    def _fork(self, hub: Hub, rank: int) -> _Member:
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about threads, which the child does not need
            pid = os.fork()
        if pid == 0:
            self._child(hub, rank, [write for _, write in pipes])
        for read, write in pipes:
            os.close(write)
            os.set_blocking(read, False)
        return _Member(pid, {pipes[0][0]: sys.stdout, pipes[1][0]: sys.stderr})

    def _child(self, hub: Hub, rank: int, pipes: Sequence[int]) -> NoReturn:
        """Run the process of a rank from its start to its end."""
        code = 70
        try:
            hub.abandon()
            for other in self._members:
                for descriptor in other.outputs:
                    os.close(descriptor)
            for number, descriptor in enumerate(pipes, 1):
                os.dup2(descriptor, number)
            sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="surrogateescape", closefd=False)
            sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
            code = self._program(hub, rank)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(code)

    def _program(self, hub: Hub, rank: int) -> int:
        size = len(self._environments)
        client = connect(hub.address, token=hub.token, rank=rank, size=size)
        world = World()
        world.put(Scheduler, client.scheduler)
        context = RankContext(
            rank=rank,
            size=size,
            device_id=rank,
            environment=self._environments[rank],
            world=world,
            communicator=client,
        )
        reports = context.get(JobReports)
        reports.wanted = True
        try:
            context.activate()
            context.resume()
            with use(context):  # closes it
                result = self._function(*self._args)
                client.scheduler.finish(rank)
            value = encode_value(result, where=f"result of rank {rank}")
            client.depart(result={"value": value, "reports": reports.document()})
        except BaseException as error:
            client.depart(error, result={"reports": reports.document()})
            return 1
        return 0

    # ----------------------------------------------------------------- supervision
    def _supervise(self, hub: Hub) -> None:
        """Forward the output of the ranks, until all have ended."""
        until: float | None = None
        with selectors.DefaultSelector() as selector:
            for rank, member in enumerate(self._members):
                for descriptor in member.outputs:
                    selector.register(descriptor, selectors.EVENT_READ, rank)
            while any(member.running for member in self._members):
                for key, _ in selector.select(_POLL_S):
                    if not self._print(self._members[key.data], key.fd):
                        selector.unregister(key.fd)
                for rank, member in enumerate(self._members):
                    if member.running and (found := os.waitpid(member.pid, os.WNOHANG))[0]:
                        member.reason, member.running = reason(found[1]), False
                        hub.lost(rank, member.reason)
                if self._order and until is None:
                    until = time.monotonic() + _GRACE_S
                if until is not None and time.monotonic() > until:
                    return
        for member in self._members:
            for descriptor in member.outputs:
                while self._print(member, descriptor, last=True):
                    pass

    def _print(self, member: _Member, descriptor: int, *, last: bool = False) -> bool:
        """Forward complete lines; return False if there is nothing left."""
        try:
            found = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            found = b""
            if not last:
                return True
        *lines, rest = (member.lines[descriptor] + found).split(b"\n")
        member.lines[descriptor] = rest
        if not found and rest:
            lines, member.lines[descriptor] = [rest], b""
        for line in lines:
            member.outputs[descriptor].write(line.decode("utf-8", "replace") + "\n")
        return bool(found)

    def _end_all(self) -> None:
        """Kill the ranks that still run, and close the pipes of their output."""
        for member in self._members:
            if member.running:
                with suppress(ProcessLookupError):
                    os.kill(member.pid, signal.SIGKILL)
        for member in self._members:
            if member.running:
                os.waitpid(member.pid, 0)
                member.running = False
            for descriptor in member.outputs:
                os.close(descriptor)

    def _explain(self, rank: int) -> str | None:
        """Return why the process of a rank has ended; called in the hub's thread, before the process was reaped."""
        member, until = self._members[rank], time.monotonic() + _END_S
        while member.reason is None and time.monotonic() < until:
            with suppress(ChildProcessError):  # `_supervise` has just reaped it, and will set the reason
                found = os.waitid(os.P_PID, member.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
                if found is not None:
                    killed = found.si_code != os.CLD_EXITED
                    return reason(found.si_status if killed else found.si_status << 8)
            time.sleep(_END_S / 50)
        return member.reason

    # -------------------------------------------------------------------- endings
    def _ended(self, rank: int, ending: Ending) -> None:
        if ending.kind in ("failed", "died"):
            self._order.append(rank)

    def _raise(self, endings: Mapping[int, Ending]) -> None:
        """Raise the error of the rank that failed first, or of the rank that this error names as the cause."""
        if not self._order:
            return
        rank = self._order[0]
        culprit = endings[rank].culprit
        if culprit in self._order and isinstance(endings[rank].error, PeerError):
            assert culprit is not None
            rank = culprit
        ending = endings[rank]
        error = ending.error or DeviceError(ending.text, where=f"rank {rank}")
        error.add_note(f"raised in rank {rank} of {len(self._environments)}")
        raise error
