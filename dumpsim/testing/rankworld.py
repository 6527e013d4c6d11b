"""The fixture ``world``: the ranks of a test, as each rank sees them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dumpsim.core.errors import BadInputError, DeviceError
from dumpsim.device.scheduler import Scheduler
from dumpsim.testing.outcome import Outcome
from dumpsim.testing.ranks import named
from dumpsim.world import current

__all__ = ["RankWorld", "Ranks"]

T = TypeVar("T")


class Ranks(Protocol):
    """The ranks of this process that run a test's body: all of them, or one."""

    size: int
    outcomes: list[Outcome]  # of the ranks in this process

    @property
    def rank(self) -> int:
        """The rank that runs."""
        ...

    def run(self, function: Callable[[], Any]) -> list[Any]:
        """Call the function in each rank of this process."""
        ...

    def meet(self, kind: str, value: Any = None) -> dict[int, Any]:
        """Wait until all ranks have joined this meeting or have ended, and return the values of those that joined."""
        ...


class RankWorld:
    """The ranks of a test.

    Under ``@pytest.mark.ranks(4)`` every rank runs the test's body and has this object. Without the marker the body
    runs once, as always, and `run` runs a function on ranks.

    Parameters
    ----------
    directory : Path
    make : callable
        ``make(size)`` returns local ranks with the settings of the test.
    make_marked : callable, optional
        ``make_marked(size)`` returns the ranks that the marker asks for; by default `make`.
    marked : int, optional
        Number of ranks that the test's marker asks for.
    misspelt : str, optional
        A marker of the test that is probably a misspelt ``ranks``.

    Attributes
    ----------
    directory : Path
        A directory that all ranks share: ``tmp_path``, or one for all workers under ``--dumpsim-ranks=xdist``.
    members : Ranks or None
        The ranks, while they run.
    jobs : list of Ranks
        All ranks that ran.

    Examples
    --------
    >>> from dumpsim.testing.localranks import LocalRanks
    >>> world = RankWorld(Path("."), LocalRanks)
    >>> world.run(lambda base: base + world.rank, 3, 10)
    [10, 11, 12]
    """

    def __init__(
        self,
        directory: Path,
        make: Callable[[int], Ranks],
        *,
        make_marked: Callable[[int], Ranks] | None = None,
        marked: int | None = None,
        misspelt: str | None = None,
    ) -> None:
        self.directory = directory
        self.marked = marked
        self.members: Ranks | None = None
        self.jobs: list[Ranks] = []
        self._make = make
        self._make_marked = make if make_marked is None else make_marked
        self._misspelt = misspelt

    def __repr__(self) -> str:
        if self.members is None:
            return "<RankWorld>" if self.marked is None else f"<RankWorld of {self.marked} ranks>"
        return f"<RankWorld: rank {self.members.rank} of {self.members.size}>"

    @property
    def rank(self) -> int:
        """The calling rank, from 0."""
        __tracebackhide__ = True
        return self._running("world.rank").rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        __tracebackhide__ = True
        return self._running("world.size").size

    def barrier(self) -> None:
        """Wait for the rank's own device, and then for all other ranks.

        This is a barrier of the test, not a collective of the emulated machine: it costs no time on the virtual clock.

        Raises
        ------
        DeviceError
            If a rank has ended, or is at another meeting.
        """
        __tracebackhide__ = True
        self._gather("world.barrier()", None)

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, by rank, in each of them.

        Examples
        --------
        ::

            assert len(set(world.gather(digest_of_weights(net)))) == 1
        """
        __tracebackhide__ = True
        return list(self._gather("world.gather()", value).values())

    def meet(self, kind: str, value: Any = None) -> dict[int, Any]:
        """Wait until all ranks have joined this meeting or have ended, and return the values of those that joined.

        For fixtures that ranks use together, such as ``golden``.
        """
        __tracebackhide__ = True
        members = self._running(kind)
        current().world.get(Scheduler).finish(
            members.rank
        )  # finish this rank's tasks, so that no other rank waits for them
        return members.meet(kind, value)

    def run(self, function: Callable[..., T], ranks: int, *args: Any) -> list[T]:
        """Run a function on ranks of this process and return what it returns in each, for tests without the marker.

        Parameters
        ----------
        function : callable
        ranks : int
        *args
            The same objects for all ranks.

        Raises
        ------
        BadInputError
            If the test runs on ranks already.
        BaseException
            The error of the rank at fault.
        """
        __tracebackhide__ = True
        if self.members is not None:
            raise BadInputError(
                "the test runs on ranks already",
                where="world.run",
                allowed=("calling the function", "a test without @pytest.mark.ranks"),
                code="DS-TST-004",
            )
        if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
            raise BadInputError(
                f"{ranks!r} is not a number of ranks", where="world.run", allowed=("1 or more",), code="DS-TST-004"
            )
        with self.running(self._make(ranks)) as members:
            results: list[T] = members.run(partial(function, *args))
        return results

    @contextmanager
    def running(self, members: Ranks) -> Iterator[Ranks]:
        """Set the ranks of the test until the end of the block."""
        self.members = members
        self.jobs.append(members)
        try:
            yield members
        finally:
            self.members = None

    def on_marked(self) -> Ranks:
        """Create the ranks that the marker asks for."""
        assert self.marked is not None
        return self._make_marked(self.marked)

    def _gather(self, kind: str, value: Any) -> dict[int, Any]:
        __tracebackhide__ = True
        came = self.meet(kind, value)
        ended = set(range(self.size)) - came.keys()
        if ended:
            have = "has" if len(ended) == 1 else "have"
            raise DeviceError(
                f"rank {self.rank} waits at {kind} for {named(ended)}, which {have} ended",
                code="DS-TST-005",
            )
        return came

    def _running(self, what: str) -> Ranks:
        __tracebackhide__ = True
        if self.members is None:
            found = "this code does not run on a rank"
            if self._misspelt is not None:
                found += f", and the test's marker is {self._misspelt!r}"
            raise BadInputError(
                found,
                where=what,
                allowed=("@pytest.mark.ranks(4) before the test", "world.run(function, 4)"),
                nearest=None if self._misspelt is None else "ranks",
                code="DS-TST-004",
            )
        return self.members
