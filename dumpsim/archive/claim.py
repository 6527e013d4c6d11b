"""The lock that lets only one process at a time write a dump: on a hidden file, until the dump or its process ends."""

import contextlib
import fcntl
import os
from collections.abc import Sequence

from dumpsim.archive.part import is_alive
from dumpsim.archive.sink import Sink
from dumpsim.core.errors import BadInputError, DumpWriteError
from dumpsim.core.partname import CLAIM, machine

__all__ = ["Claim", "DirectoryClaim", "claim"]


class Claim:
    """The right to write a dump, until `release`."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor
        self._pid = os.getpid()

    def release(self) -> None:
        """Release the lock; a forked child does not have it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if self._pid == os.getpid():
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        with contextlib.suppress(OSError):
            os.close(descriptor)


def claim(directory: str, whose: str) -> Claim | None:
    """Take the lock of a dump in an existing directory.

    Parameters
    ----------
    directory : str
    whose : str
        The rank or device of the dump, since several may share the directory.

    Returns
    -------
    Claim or None
        None if this process already has the lock, or the file system does not support locks.

    Raises
    ------
    BadInputError
        If another process is writing this dump.
    """
    path = f"{directory}/{CLAIM}{whose}"
    for _ in range(100):
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(path, flags, 0o600)
        except OSError:
            return None  # writing the first file reports what is wrong with the directory
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner(descriptor)
            orphaned = owner is not None and not is_alive(owner)  # its forked children still have the lock
            if orphaned and _is_at(descriptor, path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            os.close(descriptor)
            if owner == os.getpid():
                return None
            if not orphaned:
                raise _taken(directory, owner) from None
            continue
        except OSError:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        if _is_at(descriptor, path):
            os.ftruncate(descriptor, os.pwrite(descriptor, f"{machine()} {os.getpid()}\n".encode(), 0))
            return Claim(path, descriptor)
        os.close(descriptor)  # it was removed while we waited for it
    raise _taken(directory, None)


class DirectoryClaim:
    """A claim on a directory, which is created for it and removed again if nothing was written."""

    def __init__(self, found: Claim | None, made: Sequence[str]) -> None:
        self._claim = found
        self._made = made

    @classmethod
    def take(cls, directory: str, whose: str, sink: Sink, unwritable: str) -> "DirectoryClaim":
        """Create the directory and claim it.

        Parameters
        ----------
        directory, whose : str
            As for `claim`.
        sink : Sink
        unwritable : str
            ``error``, or ``log`` if a directory that cannot be created is reported only with the first file.

        Raises
        ------
        BadInputError
            If another process is writing this dump.
        DumpWriteError
            If the directory cannot be created.
        """
        made = []
        path = directory
        while path and not os.path.isdir(path):
            made.append(path)
            path = os.path.dirname(path)
        try:
            sink.make(directory)
        except DumpWriteError:
            if unwritable == "error":
                raise
            return cls(None, ())
        return cls(claim(directory, whose), made if unwritable == "log" else ())

    def release(self) -> None:
        """Release the lock; empty directories that were created for it are removed."""
        if self._claim is not None:
            self._claim.release()
        for path in self._made:
            with contextlib.suppress(OSError):
                os.rmdir(path)
        self._made = ()


def _is_at(descriptor: int, path: str) -> bool:
    """Return whether the file still has its name."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    mine = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)


def _owner(descriptor: int) -> int | None:
    """Return the process that has the lock; None if it is on another machine or has just taken the lock."""
    place, _, pid = os.pread(descriptor, 64, 0).decode("ascii", "replace").partition(" ")
    pid = pid.strip()
    return int(pid) if place == machine() and pid.isascii() and pid.isdecimal() and len(pid) < 12 else None


def _taken(directory: str, owner: int | None) -> BadInputError:
    return BadInputError(
        "another process is writing this dump" + (f" (process {owner})" if owner is not None else ""),
        where=directory,
        allowed=("another path", "wait until that process has ended"),
        code="DS-ARC-012",
    )
