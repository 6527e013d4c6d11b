"""The rank context: the object that holds the whole state of a rank."""

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO, TypeVar, cast

from dumpsim.core.communicator import Communicator
from dumpsim.core.settings import RunSettings
from dumpsim.world.output import PrefixedOutput
from dumpsim.world.process import ProcessState
from dumpsim.world.reports import JobReports
from dumpsim.world.wire import ADDRESS, TOKEN

if TYPE_CHECKING:
    from dumpsim.device.scheduler import Scheduler

__all__ = ["Belonging", "RankContext", "World", "current", "root", "use"]

T = TypeVar("T")


class Belonging(Protocol):
    """A change of the process's global state that is installed only while its rank runs."""

    def install(self) -> None:
        """Install it, because the rank resumes."""
        ...

    def remove(self) -> None:
        """Remove it, because the rank is suspended."""
        ...


class Remote(Communicator, Protocol):
    """The communicator of a process that is one rank."""

    scheduler: "Scheduler"

    def depart(self, error: BaseException | None = None, *, result: Any = None) -> Mapping[int, Any] | None:
        """End this rank's part in the job, with a result (JSON); return all ranks' results if this one has them."""
        ...


class _Table:
    """One instance of each requested class."""

    def __init__(self) -> None:
        self._instances: dict[type, Any] = {}
        self._lock = RLock()  # threads of a script share the rank

    def get(self, kind: type[T]) -> T:
        """Return the instance of `kind`, created by ``kind()`` on first use."""
        try:
            return cast(T, self._instances[kind])
        except KeyError:
            pass
        with self._lock:
            if kind not in self._instances:
                self._instances[kind] = self._make(kind)
            return cast(T, self._instances[kind])

    def put(self, kind: type[T], instance: T | None) -> T | None:
        """Replace the instance of `kind` (None: the next `get` creates a new one) and return the previous one."""
        before: T | None = self._instances.pop(kind, None)
        if instance is not None:
            self._instances[kind] = instance
        return before

    def has(self, kind: type) -> bool:
        """Whether there is an instance of `kind`."""
        return kind in self._instances

    def _make(self, kind: type[T]) -> T:
        return kind()


class World(_Table):
    """The objects that the ranks of one launch share.

    The scheduler, the hosts and the cache of compiled programs are instances in its table. A process that was not
    launched by dumpsim has a world of its own, whatever its ``RANK_SIZE`` is.

    Parameters
    ----------
    ranks : int
        Number of ranks in this process.

    Examples
    --------
    >>> world = World()
    >>> world.ranks, world.get(list) is world.get(list)
    (1, True)
    """

    def __init__(self, ranks: int = 1) -> None:
        super().__init__()
        self.ranks = ranks
        self._closers: list[Callable[[], object]] = []

    def at_close(self, action: Callable[[], object]) -> None:
        """Call `action` when the launch has ended, after all of its ranks."""
        self._closers.append(action)

    def close(self) -> None:
        """Call the actions given to `at_close`, each once."""
        while self._closers:
            self._closers.pop(0)()


class RankContext(_Table):
    """The whole state of a rank.

    State of higher packages is stored in a table by class: `get` creates the rank's instance on first use, while this
    context is the current one.

    Parameters
    ----------
    rank, size : int
        Global rank, and number of ranks.
    device_id : int
        Number of the device in its server.
    environment : mapping of str to str, optional
        The rank's environment variables, copied; by default the process's own, live.
    directory : path, optional
        Working directory at the start, by default the process's.
    prefix : str
        Written before each line that the rank prints to the standard output.
    world : World, optional
        By default a new one with this rank alone.
    communicator : Communicator, optional
        How the rank reaches the others; by default the one of the ranks of `world`.

    Attributes
    ----------
    rank, size : int
    device_id : int
        The number of the device; a script may choose another one before it opens the device.
    prefix : str
    world : World

    Examples
    --------
    >>> context = RankContext(rank=3, size=4)
    >>> context.get(dict) is context.get(dict)
    True
    >>> context.run(lambda: current().rank)
    3
    """

    def __init__(
        self,
        *,
        rank: int = 0,
        size: int = 1,
        device_id: int = 0,
        environment: Mapping[str, str] | None = None,
        directory: "str | os.PathLike[str] | None" = None,
        prefix: str = "",
        world: World | None = None,
        communicator: Communicator | None = None,
    ) -> None:
        super().__init__()
        self._communicator = communicator
        self.rank = rank
        self.size = size
        self.device_id = device_id
        self.prefix = prefix
        self.world = World() if world is None else world
        self._environment: Mapping[str, str] | None = None if environment is None else dict(environment)
        self._directory = os.path.abspath(os.curdir if directory is None else directory)
        self._output = PrefixedOutput(sys.stdout, prefix) if prefix else None
        self._streams: tuple[TextIO, TextIO] = (cast(TextIO, self._output or sys.stdout), sys.stderr)
        self._state: ProcessState | None = None  # of a suspended rank
        self._resumed: ProcessState | None = None  # of a running rank, as installed by `resume`
        self._belongings: list[Belonging] = []
        self._closers: list[Callable[[], object]] = []

    @classmethod
    def from_environment(cls) -> "RankContext":
        """Return the context of a process: its rank is ``RANK_ID``, its device ``DEVICE_ID``, unless MPI sets them."""
        if RunSettings.from_environment().transport == "mpi":
            from dumpsim.world.mpi import connect_mpi  # imported late: most processes are not ranks of an MPI job

            context = cls.remote(connect_mpi())
            context.get(JobReports).wanted = True
            return context
        size = _number("RANK_SIZE", _number("MS_WORKER_NUM", 1))
        return cls(rank=_number("RANK_ID", 0), size=size, device_id=_number("DEVICE_ID", 0))

    @classmethod
    def remote(cls, communicator: "Remote") -> "RankContext":
        """Return the context of a process that is one rank of a job, and leave the job when the process ends.

        ``RANK_ID``, ``RANK_SIZE`` and ``DEVICE_ID`` of the process are set.
        """
        from dumpsim.device.scheduler import Scheduler  # imported late, as above

        device_id = communicator.local_ranks.index(communicator.rank)
        world = World()
        world.put(Scheduler, communicator.scheduler)
        numbers = {"RANK_ID": communicator.rank, "RANK_SIZE": communicator.size, "DEVICE_ID": device_id}
        os.environ.update({name: str(value) for name, value in numbers.items()})
        context = cls(
            rank=communicator.rank,
            size=communicator.size,
            device_id=device_id,
            world=world,
            communicator=communicator,
        )

        def leave() -> None:
            reports = context.get(JobReports).document()
            found = communicator.depart(getattr(sys, "last_value", None), result=reports)  # the script's error
            if text := JobReports.text((found or {}).values(), context.size):
                print(text, file=sys.stderr, flush=True)

        context.at_close(leave)
        return context

    @property
    def environment(self) -> Mapping[str, str]:
        """The rank's environment variables: `os.environ` itself while the rank runs."""
        if self._environment is None and self._state is not None:
            self._environment = self._state.environment
        return os.environ if self._environment is None else self._environment

    @property
    def communicator(self) -> Communicator:
        """How the rank reaches the others.

        Examples
        --------
        >>> context = RankContext(rank=3, size=4)
        >>> context.communicator.rank, context.communicator.size
        (3, 4)
        """
        if self._communicator is None and self._has_hub:
            self._join_hub()
        if self._communicator is None:
            from dumpsim.device.scheduler import Scheduler  # imported late: most processes only ask for their rank
            from dumpsim.world.local import LocalCommunicator, LocalJob

            several = self.world.ranks > 1
            job = self.world.get(LocalJob) if several else LocalJob()
            scheduler = self.world.get(Scheduler) if several else None
            self._communicator = LocalCommunicator(self.rank, self.size, job, scheduler)
        return self._communicator

    @property
    def scheduler(self) -> "Scheduler | None":
        """The scheduler that this rank shares with others; None for a rank that is alone."""
        from dumpsim.device.scheduler import Scheduler

        if self._communicator is None and self._has_hub:
            self._join_hub()
        several = self.world.ranks > 1 or self.world.has(Scheduler)
        return self.world.get(Scheduler) if several else None

    @property
    def _has_hub(self) -> bool:
        """Whether this process was started as a rank of a job."""
        return self.world.ranks == 1 and bool(self.environment.get(ADDRESS))

    def _join_hub(self) -> None:
        """Connect the rank to its job, until the rank ends."""
        from dumpsim.device.scheduler import Scheduler
        from dumpsim.world.client import connect
        from dumpsim.world.hub import connect_timeout_s

        client = connect(
            self.environment[ADDRESS],
            token=self.environment.get(TOKEN, ""),
            rank=self.rank,
            size=self.size,
            timeout_s=connect_timeout_s(self.environment),
        )
        self._communicator = client
        self.world.put(Scheduler, client.scheduler)
        self.at_close(client.finish)

    def _make(self, kind: type[T]) -> T:
        token = _CURRENT.set(self)
        try:
            return kind()
        finally:
            _CURRENT.reset(token)

    # ------------------------------------------------------------- switching
    def activate(self) -> None:
        """Make this the current context of the calling greenlet, thread or task."""
        _CURRENT.set(self)

    def give(self, belonging: Belonging) -> None:
        """Install a change of the process's global state, now and whenever this rank resumes; for the running rank."""
        self._belongings.append(belonging)
        belonging.install()

    def resume(self, present: ProcessState | None = None) -> None:
        """Install the rank's process state: random states, environment, working directory, standard output.

        Parameters
        ----------
        present : ProcessState, optional
            The process's state, if the caller has just taken it.
        """
        state = self._state
        if state is None:
            if self._environment is None:
                return  # the process's own context, which was never suspended
            stdout, stderr = self._streams
            state = ProcessState.fresh(
                environment=self._environment,
                directory=self._directory,
                seed=RunSettings.from_environment(self._environment).seed,
                stdout=stdout,
                stderr=stderr,
            )
        state.install(present)
        self._resumed, self._state, self._environment = state, None, None
        for belonging in self._belongings:
            belonging.install()

    def suspend(self) -> ProcessState:
        """Save the process state, before another rank resumes, and return it."""
        for belonging in reversed(self._belongings):
            belonging.remove()
        self._state = ProcessState.take(self._resumed)
        self._resumed = None
        return self._state

    def run(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Call `function` as this rank, and restore the process state afterwards.

        The hosts of ranks that wait for each other use `activate`, `resume` and `suspend`.
        """
        outside = ProcessState.take()
        token = _CURRENT.set(self)
        self.resume(outside)
        try:
            return function(*args, **kwargs)
        finally:
            outside.install(self.suspend())
            _CURRENT.reset(token)

    # ---------------------------------------------------------------- ending
    def at_close(self, action: Callable[[], object]) -> None:
        """Call `action` when the rank ends; the last action added is called first."""
        if not self._closers:
            atexit.register(self.close)
        self._closers.append(action)

    def cancel(self, action: Callable[[], object]) -> None:
        """Remove an action that was added by `at_close`, if it is still there."""
        self._closers = [other for other in self._closers if other != action]

    def close(self) -> None:
        """Call the actions given to `at_close`, each once, even if one of them fails; then raise the first error."""
        atexit.unregister(self.close)
        first: BaseException | None = None
        while self._closers:
            try:
                self._closers.pop()()
            except BaseException as error:
                first = first or error
        if self._output is not None:
            self._output.finish()
        if first is not None:
            raise first


class _Root:
    """The context of the process, for code that runs in no other one."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.context: RankContext | None = None


_ROOT: Final = _Root()
_CURRENT: Final[ContextVar[RankContext | None]] = ContextVar("rank context", default=None)


def current() -> RankContext:
    """Return the context of the running rank.

    Outside of `RankContext.run` this is the context of the process, created from the environment on first use; threads
    of the script share it.

    Examples
    --------
    >>> current() is current()
    True
    """
    return _CURRENT.get() or _ROOT.context or root()


def root() -> RankContext:
    """Return the context of the process, whichever rank runs."""
    with _ROOT.lock:
        if _ROOT.context is None:
            _ROOT.context = RankContext.from_environment()
        return _ROOT.context


@contextmanager
def use(context: RankContext) -> Iterator[RankContext]:
    """Make `context` the one of the process inside a ``with`` block, and close it at the end.

    Examples
    --------
    >>> with use(RankContext(device_id=6)):
    ...     current().device_id
    6
    """
    before, _ROOT.context = _ROOT.context, context
    try:
        try:
            yield context
        finally:
            context.close()
    finally:
        _ROOT.context = before


def _number(name: str, default: int) -> int:
    """Return a number from the environment; an invalid one is ignored, as by the vendor."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else default
