"""The scheduler: selects the next task, and reports deadlocks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from dumpsim.core.errors import CollectiveError, DeviceError
from dumpsim.core.gate import Failure
from dumpsim.device.ready import Ready
from dumpsim.device.rendezvous import Rendezvous, numbers
from dumpsim.device.stream import Owner, Stream

__all__ = ["Failing", "Hosts", "Scheduler", "Waiting"]

# a waiting stream: its rank, its number, what its first task waits for, and its line of the deadlock report
Waiting: TypeAlias = tuple[int, int, str, str]


class Hosts(Protocol):
    """The programs of the ranks of one process, which take turns."""

    def switch(self, rank: int) -> bool:
        """Let other ranks run, because `rank` waits and no task is ready.

        Return True if a task may be ready, False if no other rank can proceed.
        """
        ...

    def wake(self, rank: int) -> None:
        """Notify a waiting rank that a task of it is ready."""
        ...

    def run_as(self, rank: int, function: Callable[[int], None], argument: int) -> None:
        """Call a function in the context of a rank that is not running."""
        ...

    def elsewhere(self) -> Sequence[Waiting]:
        """Return the waiting streams of ranks in other processes, for the deadlock report."""
        ...

    def report(self) -> Sequence[str]:
        """Return the state of the ranks that do not wait, one line each, for the deadlock report."""
        ...


_IN_FULL = 4  # up to this number, streams that wait for the same thing are listed one by one


class Failing(Protocol):
    """An object that fails with a rank."""

    def fail(self, failure: Failure) -> None:
        """Notify the object that a rank has failed."""
        ...


class Scheduler:
    """Runs the tasks of the streams of all devices of all ranks.

    Of the tasks that could start, the one with the smallest (time, rank, device, stream, serial) runs, so that one
    program has one order. Streams whose first task is ready are in a heap; the others wait for a gate, which wakes
    them. There are no threads: work happens when the scheduler reaches it. [design; spec parallel 4.2]

    Parameters
    ----------
    hosts : Hosts, optional
        The programs of a process with several ranks; None for a single rank.
    """

    def __init__(self, hosts: Hosts | None = None) -> None:
        self._hosts = hosts
        self._ready = Ready()
        self._blocked: dict[Stream, None] = {}
        self._groups: dict[int, list[Failing]] = {}  # by rank
        self._devices: dict[int, list[Owner]] = {}  # by rank
        self._later: list[Callable[[], None]] = []
        self._killed: dict[int, Failure] = {}  # by rank
        self._count = 0
        self._running: Stream | None = None

    @property
    def hosts(self) -> Hosts | None:
        """The programs of the ranks that share this scheduler; None if a rank is alone in its process."""
        return self._hosts

    def add(self, device: Owner) -> int:
        """Add a device and return its number."""
        self._devices.setdefault(device.rank, []).append(device)
        self._count += 1
        return self._count - 1

    def finish(self, rank: int) -> None:
        """Wait for the devices of a rank that ends; errors that its program has caught are not raised again."""
        for device in self._devices.get(rank, ()):
            caught = device.raised
            try:
                device.synchronize()
            except Exception as error:
                if error is not caught:
                    raise

    def failed(self, rank: int) -> bool:
        """Whether a device of the rank has an error of its own that was not raised yet, or a lasting one."""
        return any(
            device.errors
            or any(isinstance(stream.error, CollectiveError) or _fails(stream) for stream in device.streams)
            or (device.stopped is not None and device.stopped.rank == rank)
            for device in self._devices.get(rank, ())
        )

    def rendezvous(
        self,
        members: Sequence[int],
        name: str = "",
        judge: Callable[[int, Mapping[int, int]], Mapping[int, Failure]] | None = None,
    ) -> Rendezvous:
        """Return a new rendezvous of these ranks, which fails when one of them does."""
        group = Rendezvous(members, name, judge, self.later)
        self.enlist(group.members, group)
        return group

    def enlist(self, ranks: Sequence[int], group: Failing) -> None:
        """Let `group` fail when one of these ranks does."""
        for rank in ranks:
            self._groups.setdefault(rank, []).append(group)
            if rank in self._killed:
                group.fail(self._killed[rank])

    def later(self, action: Callable[[], None]) -> None:
        """Defer `action` until no rank can continue without it."""
        self._later.append(action)

    def release(self) -> bool:
        """Run the deferred actions; return whether there were any.

        Ranks influence each other only here, when no rank can continue: the point that each of them has reached then
        depends on the programs only, not on the order of turns or the speed of processes. So the order of a rank's
        tasks, and the time stamps of their files, are the same for every order of turns and every transport.
        """
        actions, self._later = self._later, []
        for action in actions:
            action()
        return bool(actions)

    def schedule(self, stream: Stream) -> None:
        """Queue a stream whose first task is new or may have become ready."""
        if stream is self._running:  # it is queued when the running task has ended
            return
        start = stream.ready_ns()
        if start is None:
            self._rest(stream)
        else:
            self._ready.push(start, stream)
            if self._hosts is not None and stream.device.suspended:
                self._hosts.wake(stream.device.rank)

    def _rest(self, stream: Stream) -> None:
        """Mark a stream without a ready task as blocked or idle."""
        stream.entry = None
        if stream.tasks:
            self._blocked[stream] = None
            return
        self._blocked.pop(stream, None)
        if stream.busy:
            stream.busy = False
            stream.device.busy -= 1

    def fail(self, rank: int, failure: Failure) -> None:
        """Fail the groups of a rank that has failed, by itself or because of another one."""
        for group in self._groups.get(rank, ()):
            group.fail(failure)

    def kill(self, failure: Failure) -> None:
        """Kill the rank of the failure: its queued tasks are dropped, and its groups fail, later ones too."""
        self._killed[failure.rank] = failure
        for device in self._devices.get(failure.rank, ()):
            for stream in device.streams:
                if stream.tasks:
                    stream.drop(failure)
                    self.schedule(stream)
        self.fail(failure.rank, failure)

    def wait(self, device: Owner, streams: Sequence[Stream] | None = None) -> None:
        """Run tasks of all ranks, in order, until the device's streams are empty or one of its tasks has raised.

        Parameters
        ----------
        device : Owner
        streams : sequence of Stream, optional
            Streams of the device that must become empty, by default all of them.

        Raises
        ------
        DeviceError
            If tasks are left and no rank can proceed; the message shows what each stream waits for.
        """
        if self._running is not None:  # called by a task's own work: the outer loop continues anyway
            return
        while (device.busy if streams is None else any(s.busy for s in streams)) and not device.errors:
            if self._ready.times:
                self._run(device)
            else:
                self._switch(device)

    def _run(self, device: Owner) -> None:
        """Run ready tasks until a stream has none or a task raises; its rank's next wait raises the error."""
        ready = self._ready
        first = ready.pop()
        if first is None:
            return
        start, stream = first
        try:
            while stream.tail_ns <= start:
                self._running = stream
                if stream.device is device or self._hosts is None:
                    stream.step(start)
                else:
                    self._hosts.run_as(stream.device.rank, stream.step, start)
                following = stream.ready_ns()
                if following is None:
                    self._rest(stream)
                    return
                start = following
                if ready.times:
                    ready.push(start, stream)
                    first = ready.pop()
                    if first is None:
                        return
                    start, stream = first
        except KeyboardInterrupt:
            self._running = None
            self.schedule(stream)
            raise
        except BaseException as error:
            stream.device.errors.append(error)
        finally:
            self._running = None
        self.schedule(stream)

    def _switch(self, device: Owner) -> None:
        """Let other ranks run, because no task is ready; if none can, end the wait with an error."""
        blocked = [stream for stream in device.streams if stream.tasks]
        failure = device.stopped
        if failure is None:
            device.suspended = True
            try:
                if self._hosts is None:
                    if self.release():
                        return
                elif self._hosts.switch(device.rank):
                    return
            finally:
                device.suspended = False
            error = self._deadlock()
            if self._give_up(blocked, str(error)):
                return
            failure = Failure(rank=device.rank, time_ns=device.clock.now_ns, error=error, lasting=False)
            device.errors.append(error)
        else:
            error = next(stream.error for stream in device.streams if stream.error is not None)
            error.add_note("streams that waited for it:\n" + "\n".join(stream.waits() for stream in blocked))
        for stream in blocked:
            stream.drop(failure)
            self.schedule(stream)

    def _give_up(self, blocked: Sequence[Stream], report: str) -> bool:
        """Fail the tasks whose gates have a failure of their own; return whether there was one."""
        found = False
        for stream in blocked:
            gate = stream.tasks[0].gate if stream.tasks else None
            failure = None if gate is None else gate.give_up(report)
            if failure is not None:
                found = True
                stream.fail_with(failure)
                self.schedule(stream)
        return found

    def waiting(self) -> list[Waiting]:
        """Return the streams whose first task waits, by rank, device and stream; called when none is ready."""
        streams = sorted(self._blocked, key=lambda s: (s.device.rank, s.device.device_id, s.stream_id))
        return [(each.device.rank, each.stream_id, each.waits_for(), each.waits()) for each in streams]

    def _deadlock(self) -> DeviceError:
        waiting = self.waiting() + ([] if self._hosts is None else list(self._hosts.elsewhere()))
        alike: dict[tuple[int, str], list[Waiting]] = {}
        for each in waiting:
            alike.setdefault(each[1:3], []).append(each)
        common = [same for same in alike.values() if len(same) > _IN_FULL]
        grouped = {id(each) for same in common for each in same}
        lines = [line for *_, line in (each for each in waiting if id(each) not in grouped)]
        for same in common:
            _, stream_id, missing, _ = same[0]
            lines.append(f"  ranks {numbers([each[0] for each in same])} stream {stream_id}: {missing}")
        if self._hosts is not None:
            lines += self._hosts.report()
        return DeviceError("deadlock: no stream can progress and work is left\n" + "\n".join(lines), code="DS-DEV-002")


def _fails(stream: Stream) -> bool:
    """Whether the first task is a collective that has failed."""
    gate = stream.tasks[0].gate if stream.tasks else None
    failure = None if gate is None else gate.failure
    return failure is not None and isinstance(failure.error, CollectiveError)
