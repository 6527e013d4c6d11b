"""The only place that writes a dump: whole files by temporary name and rename, and files that grow by whole lines.

A file is never seen half written under its own name, and what was written before a failure stays as it was. [design]
"""

import contextlib
import errno
import os
from collections.abc import Sequence
from typing import Protocol

from dumpsim.core.errors import DumpWriteError

__all__ = ["DiskFaults", "Sink"]

_TEMPORARY = ".dumpsim-part"
_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file size limit is reached",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "the directory has vanished",
    errno.ENOTDIR: "a parent is a file",
    errno.ENAMETOOLONG: "the name is too long",
}


class DiskFaults(Protocol):
    """A disk that a fault plan makes slow or full."""

    def charge(self, nbytes: int) -> None:
        """Account for `nbytes` that are about to be written; OSError where there is no room."""
        ...


class Sink:
    """Writes files below a directory.

    Parameters
    ----------
    file_mode, directory_mode : int
        Permissions of finished files and of directories that the sink makes. [spec mindspore 3.1]
    disk : DiskFaults, optional
        Asked before every write.

    Attributes
    ----------
    written : dict of str to (int, int)
        Files and bytes by directory; files that grow are counted once.
    """

    def __init__(self, *, file_mode: int = 0o400, directory_mode: int = 0o700, disk: DiskFaults | None = None) -> None:
        self.written: dict[str, tuple[int, int]] = {}
        self._file_mode = file_mode
        self._directory_mode = directory_mode
        self._disk = disk
        self._made: set[str] = set()
        self._growing: dict[str, tuple[int, int]] = {}  # path -> descriptor, size

    def write(
        self, directory: str, name: str, parts: Sequence["bytes | memoryview"], *, mode: int | None = None
    ) -> int:
        """Write a whole file; it appears under its name when it is complete.

        Parameters
        ----------
        directory, name : str
            The directory is made when it is written to for the first time.
        parts : sequence of bytes-like
            Written one after the other, without being joined.
        mode : int, optional
            Permissions other than the sink's, for a file that may be written again.

        Returns
        -------
        int
            Bytes written.

        Raises
        ------
        DumpWriteError
            Naming the file; nothing half written is left.
        """
        path = f"{directory}/{name}"
        temporary = f"{directory}/{_TEMPORARY}"
        size = sum(part.nbytes if isinstance(part, memoryview) else len(part) for part in parts)
        descriptor = -1
        try:
            if directory not in self._made:
                self._make(directory)
            if self._disk is not None:
                self._disk.charge(size)
            # born with its final mode: that binds later openers, not this descriptor
            descriptor = self._create(temporary, self._file_mode if mode is None else mode)
            _write_all(descriptor, parts, size)
            finished, descriptor = descriptor, -2  # a failing close, as of a full NFS server, closes all the same
            os.close(finished)
            before = _size(path) if mode is not None else None
            os.rename(temporary, path)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            if descriptor != -1:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise _failure(path, error) from error
        self._count(directory, int(before is None), size - (before or 0))
        return size

    def append(self, directory: str, name: str, line: str) -> int:
        """Let a file grow by one line, in one write; a line that does not fit leaves the file as it was.

        Raises
        ------
        DumpWriteError
            Naming the file.
        """
        path = f"{directory}/{name}"
        data = line.encode()
        try:
            descriptor, size = self._growing.get(path) or self._open(directory, path)
            if self._disk is not None:
                self._disk.charge(len(data))
            if os.fstat(descriptor).st_nlink == 0:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            try:
                _write_all(descriptor, (data,), len(data))
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        except OSError as error:
            raise _failure(path, error) from error
        self._growing[path] = (descriptor, size + len(data))
        self._count(directory, 0, len(data))
        return len(data)

    def exists(self, directory: str, name: str) -> bool:
        """Whether a file is there already."""
        return os.path.lexists(f"{directory}/{name}")

    def is_new(self, directory: str, name: str) -> bool:
        """Whether a growing file is missing or empty, so that it needs its header."""
        known = self._growing.get(f"{directory}/{name}")
        if known is not None:
            return known[1] == 0
        try:
            return os.stat(f"{directory}/{name}").st_size == 0
        except OSError:
            return True

    def make(self, directory: str) -> None:
        """Make a directory and its parents, as the first write would.

        Raises
        ------
        DumpWriteError
        """
        try:
            self._make(directory)
        except OSError as error:
            raise _failure(directory, error, "made") from error

    def settle(self) -> None:
        """Close the files that grow; they may grow again later."""
        while self._growing:
            _, (descriptor, _) = self._growing.popitem()
            os.close(descriptor)

    def _count(self, directory: str, files: int, size: int) -> None:
        """Account for what was written."""
        before = self.written.get(directory, (0, 0))
        self.written[directory] = (before[0] + files, before[1] + size)

    def _create(self, path: str, mode: int) -> int:
        """A new file; what a killed run left under this name is swept away."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(path, flags, mode)
        except FileExistsError:
            os.unlink(path)
            return os.open(path, flags, mode)

    def _make(self, directory: str) -> None:
        """Make missing directories one by one, since only new ones get the sink's mode."""
        missing: list[str] = []
        path = directory
        while path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another rank was faster
                os.mkdir(path, self._directory_mode)
        self._made.add(directory)

    def _open(self, directory: str, path: str) -> tuple[int, int]:
        """A descriptor of a file that grows; a finished one is made writable for the moment of opening."""
        if directory not in self._made:
            self._make(directory)
        if len(self._growing) >= 64:
            self.settle()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, self._file_mode)
            self._count(directory, 1, 0)
        except FileExistsError:
            os.chmod(path, 0o200)  # a user who is not root may not open a 0400 file for writing
            try:
                descriptor = os.open(path, flags)
            finally:
                os.chmod(path, self._file_mode)
        found = (descriptor, os.fstat(descriptor).st_size)
        self._growing[path] = found
        return found


def _size(path: str) -> int | None:
    """Bytes of a file, None where there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _write_all(descriptor: int, parts: Sequence["bytes | memoryview"], size: int) -> None:
    """Write everything; a short write goes on where it stopped."""
    written = os.writev(descriptor, parts)
    if written == size:
        return
    for part in parts:
        view = memoryview(part)
        if written >= view.nbytes:
            written -= view.nbytes
            continue
        view = view[written:]
        written = 0
        while view.nbytes:
            view = view[os.write(descriptor, view) :]


def _failure(path: str, error: OSError, verb: str = "written") -> DumpWriteError:
    """The error that a user meets."""
    detail = error.strerror or ""
    reason = _REASONS.get(error.errno or 0, detail or str(error))
    if verb == "made" and error.errno == errno.ENOENT:  # nothing has vanished: this file system makes no directories
        reason = detail
    text = reason if reason in detail or not detail else f"{reason} ({detail})"
    failure = DumpWriteError(f"cannot be {verb}: {text}", where=path, code="DS-ARC-010")
    failure.errno = error.errno
    return failure
