"""Work in pieces on several processes or on a Dask cluster; results come in the order of the pieces."""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

from dumpsim.core.errors import BadInputError, DumpsimError, UnsupportedError

__all__ = ["spread", "worth"]

WORTH = (40_000, 1 << 28)  # tensors or bytes from which on other processes are worth their start

_ADDRESS = re.compile(r"(?:[a-z]+://)?[^\s/]+:\d+")
_DIED = ("BrokenProcessPool", "KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError")
_TIMEOUT = 10  # seconds until a scheduler must have answered

P = TypeVar("P")
R = TypeVar("R")
Submit = Callable[[Callable[[P], R], P], Any]


def spread(
    work: Callable[[P], R],
    pieces: Iterable[P],
    *,
    jobs: int | None = 1,
    scheduler: str | None = None,
    files: "Sequence[Path]" = (),
) -> Iterator[R]:
    """``work(piece)`` of each piece, in order; only a few pieces are under way at a time.

    Parameters
    ----------
    work : callable
        A function of a module, which other processes import.
    jobs : int or None
        Processes; None: one a CPU. 1 works in this one. Others start afresh (``spawn``), so a script that asks for them
        needs ``if __name__ == "__main__":``.
    scheduler : str
        Address of a Dask scheduler (extra ``dask``), whose workers see the dumps under the same paths; `jobs` is not
        heeded then.
    files : sequence of Path
        What all workers of a cluster must see.

    Raises
    ------
    BadInputError, UnsupportedError
        For less than one job; where Dask is not installed, nobody answers at the address, or a worker cannot do the
        work or does not see the files.
    """
    if jobs is not None and jobs < 1:
        raise BadInputError(f"{jobs} processes", where="jobs", allowed=("1 or more",))
    count = jobs or os.cpu_count() or 1
    if scheduler is None and count == 1:
        return map(work, pieces)
    return _ordered(_cluster(scheduler, files) if scheduler is not None else _processes(count), work, pieces)


def worth(count: int, paths: "Iterable[Path | None]") -> bool:
    """Whether other processes are worth their start for so many tensors, in these files."""
    if count >= WORTH[0]:
        return True
    nbytes = 0
    for path in paths:
        if path is not None and os.path.exists(path):
            nbytes += os.path.getsize(path)
    return nbytes >= WORTH[1]


def _ordered(
    opening: "AbstractContextManager[tuple[Submit[P, R], int]]", work: Callable[[P], R], pieces: Iterable[P]
) -> Iterator[R]:
    with opening as (submit, width):
        waiting: deque[Any] = deque()
        try:
            for piece in pieces:
                waiting.append(_told(submit, work, piece))
                if len(waiting) >= width:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()


def _result(future: Any) -> Any:
    """Return what the work gave."""
    return _told(future.result)


def _told(action: Callable[..., Any], *args: Any) -> Any:
    """Call it; a process that died is an error in words, also where it died while the next one was being started."""
    try:
        return action(*args)
    except Exception as error:
        if type(error).__name__ not in _DIED:
            raise
        raise DumpsimError(f"a process that worked for this one died: {error}") from None


@contextmanager
def _processes(count: int) -> "Iterator[tuple[Submit[Any, Any], int]]":
    context = _Spawning()
    pool = ProcessPoolExecutor(count, mp_context=context)

    def submit(work: Callable[[Any], Any], piece: Any) -> "Future[Any]":
        try:
            return pool.submit(work, piece)
        except OSError as error:  # the pool closed its pipes while it started one more process
            raise BrokenProcessPool(str(error)) from None

    try:
        yield submit, 2 * count
    except DumpsimError:
        context.kill()  # the pool may have forgotten one that it was starting, and would wait for it at the exit
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class _Spawning(SpawnContext):
    """Starts processes afresh and remembers them."""

    def __init__(self) -> None:
        self._started: list[SpawnProcess] = []

    def Process(self, *args: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        process = SpawnProcess(*args, **options)
        self._started.append(process)
        return process

    def kill(self) -> None:
        """End all processes that still run."""
        for process in self._started:
            if process.pid is not None and process.is_alive():
                process.kill()


def missing(paths: Sequence[str]) -> list[str]:
    """Those of some paths that this process does not see."""
    return [path for path in paths if not os.path.exists(path)]


@contextmanager
def _cluster(address: str, files: "Sequence[Path]") -> "Iterator[tuple[Submit[Any, Any], int]]":
    try:
        from distributed import Client
    except ImportError:
        raise UnsupportedError(
            "Dask is not installed: pip install 'dumpsim[dask]'", where="scheduler", code="DS-ANA-010"
        ) from None
    where = f"scheduler {address}"
    if not _ADDRESS.fullmatch(address):
        raise BadInputError("is no address", where=where, allowed=("tcp://HOST:PORT", "HOST:PORT"))
    try:
        client = Client(address, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise BadInputError(f"no Dask scheduler answers: {error}", where=where) from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise BadInputError("the Dask cluster has no workers", where=where)
        try:
            blind = client.run(missing, [os.path.abspath(path) for path in files])
        except Exception as error:  # whatever keeps a worker from importing this
            raise BadInputError(f"a worker cannot run dumpsim: {error}", where=where) from None
        for worker, paths in sorted(blind.items()):
            if paths:
                raise BadInputError(f"the worker {worker} does not see {paths[0]}", where=where)

        def submit(work: Callable[[Any], Any], piece: Any) -> Any:
            return client.submit(work, piece, pure=False)

        yield submit, 4 * threads
