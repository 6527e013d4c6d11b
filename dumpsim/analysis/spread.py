"""Distributes pieces of work over processes or a Dask cluster; results keep the order of the pieces."""

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

WORTH = (40_000, 1 << 28)  # tensors, and bytes, from which starting processes pays off

_ADDRESS = re.compile(r"(?:[a-z]+://)?[^\s/]+:\d+")
_DIED = ("BrokenProcessPool", "KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError")
_TIMEOUT = 10  # seconds to wait for an answer of the scheduler

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
    """Yield ``work(piece)`` for each piece, in order; only a few pieces are submitted at a time.

    Parameters
    ----------
    work : callable
        A function that other processes can import.
    jobs : int or None
        Number of processes; None: one per CPU; 1: work in this process. Others are started by ``spawn``, so a script
        that uses them needs ``if __name__ == "__main__":``.
    scheduler : str
        Address of a Dask scheduler (extra ``dask``) whose workers see the dumps under the same paths; `jobs` is then
        ignored.
    files : sequence of Path
        Files that all workers of a cluster must see.

    Raises
    ------
    BadInputError, UnsupportedError
        For less than one job; if Dask is not installed, no scheduler answers, or a worker cannot do the work or does
        not see the files.
    """
    if jobs is not None and jobs < 1:
        raise BadInputError(f"{jobs} processes", where="jobs", allowed=("1 or more",))
    count = jobs or os.cpu_count() or 1
    if scheduler is None and count == 1:
        return map(work, pieces)
    return _ordered(_cluster(scheduler, files) if scheduler is not None else _processes(count), work, pieces)


def worth(count: int, paths: "Iterable[Path | None]") -> bool:
    """Return whether starting processes pays off for this many tensors in these files."""
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
                waiting.append(_checked(submit, work, piece))
                if len(waiting) >= width:
                    yield _result(waiting.popleft())
            while waiting:
                yield _result(waiting.popleft())
        finally:
            for future in waiting:
                future.cancel()


def _result(future: Any) -> Any:
    """Return the result of the work."""
    return _checked(future.result)


def _checked(action: Callable[..., Any], *args: Any) -> Any:
    """Call a function; report a process that died with a sentence, even if it died during the start of the next."""
    try:
        return action(*args)
    except Exception as error:
        if type(error).__name__ not in _DIED:
            raise
        raise DumpsimError(f"a worker process died: {error}") from None


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
    """Starts processes by ``spawn`` and keeps a list of them."""

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
    """Return the paths that do not exist for this process."""
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
        except Exception as error:  # any error that keeps a worker from importing this
            raise BadInputError(f"a worker cannot run dumpsim: {error}", where=where) from None
        for worker, paths in sorted(blind.items()):
            if paths:
                raise BadInputError(f"the worker {worker} does not see {paths[0]}", where=where)

        def submit(work: Callable[[Any], Any], piece: Any) -> Any:
            return client.submit(work, piece, pure=False)

        yield submit, 4 * threads
