"""A directory through which the processes of one pytest run, each a rank, find each other and detect lost ones."""

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

__all__ = ["RollCall"]

_LOOK_S = 0.01
_START_S = 120.0
_COUNTER = count()


class RollCall:
    """One rank's view of the directory.

    Each rank locks a file of its own for the life of its process, so a free lock means that the rank has ended in
    whatever way. Ranks exchange messages as files that are written atomically.

    Parameters
    ----------
    directory : Path
        Directory of one run of pytest; all ranks are on one machine.
    rank, size : int

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> roll = RollCall(Path(folder.name), rank=0, size=1)
    >>> roll.say("test-0/arrived", "test_net")
    >>> roll.said("test-0/arrived"), roll.lost()
    ({0: 'test_net'}, {})
    >>> roll.close()
    >>> folder.cleanup()
    """

    def __init__(self, directory: Path, *, rank: int, size: int) -> None:
        self.directory = directory
        self.rank = rank
        self.size = size
        self._since = time.monotonic()
        part = directory / f".rank_{rank}.{os.getpid()}"
        self._lock: int | None = os.open(part, os.O_CREAT | os.O_RDWR, 0o600)
        os.write(self._lock, str(os.getpid()).encode())
        fcntl.lockf(self._lock, fcntl.LOCK_EX)
        os.rename(part, directory / f"rank_{rank}.lock")

    def close(self) -> None:
        """Mark this rank as finished: it has no further tests."""
        if self._lock is not None:
            self.say("left")
            os.close(self._lock)
            self._lock = None

    # ---------------------------------------------------------------- messages
    def say(self, what: str, text: str = "") -> None:
        """Publish a message to all ranks, once."""
        self._write(self.directory / f"{what}.{self.rank}", text)

    def said(self, what: str, ranks: Iterable[int] | None = None) -> dict[int, str]:
        """Return the messages of the ranks on a topic, by rank."""
        found = {}
        for rank in range(self.size) if ranks is None else ranks:
            with suppress(FileNotFoundError):
                found[rank] = (self.directory / f"{what}.{rank}").read_text("utf-8")
        return found

    def stop(self, reason: str) -> str:
        """End the job for all ranks; return the reason of the first rank that ended it."""
        part = self._part(reason)
        try:
            os.link(part, self.directory / "stopped")
        except FileExistsError:
            pass
        finally:
            part.unlink()
        return self.stopped() or reason

    def stopped(self) -> str:
        """Return why the job has ended; "" while it runs."""
        try:
            return (self.directory / "stopped").read_text("utf-8")
        except FileNotFoundError:
            return ""

    # ---------------------------------------------------------------- lost ranks
    def lost(self, ranks: Iterable[int] | None = None) -> dict[int, str]:
        """Return the ranks whose processes or tests have ended, with their processes."""
        return {rank: name for rank in (range(self.size) if ranks is None else ranks) if (name := self._gone(rank))}

    def _gone(self, rank: int) -> str | None:
        if rank == self.rank:
            return None
        try:
            with open(self.directory / f"rank_{rank}.lock", "rb") as file:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: several ranks may check at once
                process = file.read().decode()
        except FileNotFoundError:
            late = time.monotonic() - self._since > _START_S
            return f"worker gw{rank}, which has not started" if late else None
        except (BlockingIOError, PermissionError):
            return None
        left = self.said("left", [rank])
        return f"worker gw{rank}, whose tests have ended" if left else f"worker gw{rank}, process {process}"

    @staticmethod
    def wait(done: Callable[[], bool]) -> None:
        """Poll until the condition holds."""
        __tracebackhide__ = True
        while not done():
            time.sleep(_LOOK_S)

    # ---------------------------------------------------------------- files
    @staticmethod
    def describe(lost: Mapping[int, str]) -> str:
        """Describe ranks in words.

        Examples
        --------
        >>> RollCall.describe({2: "worker gw2, process 77"})
        'rank 2 (worker gw2, process 77)'
        """
        return " and ".join(f"rank {rank} ({name})" for rank, name in lost.items())

    def _part(self, text: str) -> Path:
        part = self.directory / f".part.{os.getpid()}-{next(_COUNTER)}"
        part.write_text(text, "utf-8")
        return part

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        os.rename(self._part(text), path)
