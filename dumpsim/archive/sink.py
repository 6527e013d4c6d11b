"""The writer of all files of a dump: complete files, by temporary name and rename, and files that grow by lines.

A file never appears under its own name before it is complete, and a failure does not change files that were written
before. fsync is called only on request: a file survives a crash of its process, but maybe not of the machine. [design]
"""

import contextlib
import errno
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Protocol

from dumpsim.archive.growfile import has_no_line, open_growing
from dumpsim.archive.part import create, sweep, sync_directory
from dumpsim.core.errors import DumpWriteError, UnfinishedWarning

__all__ = ["DiskFaults", "Sink"]

_OPEN = 64  # largest number of growing files that are open
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
    """A disk that is slow or full according to a fault plan."""

    def charge(self, nbytes: int) -> None:
        """Count `nbytes` that are about to be written; raise OSError if the disk is full."""
        ...


def _warn(text: str) -> None:
    warnings.warn(UnfinishedWarning(text), stacklevel=2)


class Sink:
    """Writes files below a directory.

    Parameters
    ----------
    file_mode, directory_mode : int
        Permissions of finished files and of directories that the sink creates. [spec mindspore 3.1]
    disk : DiskFaults, optional
        Called before every write.
    durable : bool
        Whether complete files, their names and new directories are on stable storage when `write` returns, and growing
        files when `settle` returns.
    warn : callable, optional
        Called with a text when an unfinished line of a growing file is removed; by default a Python warning.

    Attributes
    ----------
    written : dict of str to (int, int)
        Number and size of files by directory; growing files are counted once.
    """

    def __init__(
        self,
        *,
        file_mode: int = 0o400,
        directory_mode: int = 0o700,
        disk: DiskFaults | None = None,
        durable: bool = False,
        warn: Callable[[str], None] = _warn,
    ) -> None:
        self.written: dict[str, tuple[int, int]] = {}
        self._file_mode = file_mode
        self._directory_mode = directory_mode
        self._disk = disk
        self._durable = durable
        self._warn = warn
        self._late: DumpWriteError | None = None  # error of a file that was closed to open another one
        self._made: set[str] = set()
        self._growing: dict[str, tuple[int, int]] = {}  # path -> descriptor, size
        self._sizes: dict[str, int] = {}  # of files that may be written again

    def write(
        self, directory: str, name: str, parts: Sequence["bytes | memoryview"], *, mode: int | None = None
    ) -> int:
        """Write a file, which appears under its name when it is complete.

        Parameters
        ----------
        directory, name : str
            The directory is created if it is missing.
        parts : sequence of bytes-like
            Bytes, which are written one after the other.
        mode : int, optional
            Permissions, instead of the sink's, of a file that may be written again.

        Returns
        -------
        int
            Number of bytes.

        Raises
        ------
        DumpWriteError
            If the file cannot be written; the error names it, and no incomplete file is left.
        """
        path = f"{directory}/{name}"
        temporary = ""
        size = 0
        for part in parts:
            size += len(part) if type(part) is bytes else memoryview(part).nbytes
        descriptor = None
        try:
            if directory not in self._made:
                self._make(directory)
            if self._disk is not None:
                self._disk.charge(size)
            descriptor, temporary = create(directory, self._file_mode if mode is None else mode)
            _write_all(descriptor, parts, size)
            if self._durable:
                os.fsync(descriptor)
            finished, descriptor = descriptor, None  # close may fail, as on a full NFS server, but it closes the file
            os.close(finished)
            os.rename(temporary, path)
            temporary = ""
            if self._durable:
                sync_directory(directory)
        except (OSError, ValueError) as error:
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise _failure(path, error) from error
        before = self._sizes.get(path)
        if mode is not None:
            self._sizes[path] = size
        self._count(directory, int(before is None), size - (before or 0))
        return size

    def append(self, directory: str, name: str, line: str) -> int:
        """Append one line to a file in one write; if that fails, the file is unchanged.

        Raises
        ------
        DumpWriteError
            If the line cannot be written; the error names the file.
        """
        path = f"{directory}/{name}"
        try:
            data = line.encode()
            descriptor, size = self._growing.get(path) or self._open(directory, path)
            if self._disk is not None:
                self._disk.charge(len(data))
            if os.fstat(descriptor).st_nlink == 0:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            try:
                _write_all(descriptor, (data,), len(data))
            except OSError:
                self._take_back(path, descriptor, size)
                raise
        except (OSError, ValueError) as error:
            raise _failure(path, error) from error
        self._growing[path] = (descriptor, size + len(data))
        self._count(directory, 0, len(data))
        if self._late is not None:
            late, self._late = self._late, None
            raise late
        return len(data)

    def exists(self, directory: str, name: str) -> bool:
        """Return whether a file exists."""
        return os.path.lexists(f"{directory}/{name}")

    def has_directory(self, directory: str) -> bool:
        """Return whether a directory exists."""
        return os.path.isdir(directory)

    def is_new(self, directory: str, name: str) -> bool:
        """Return whether a growing file has no complete line yet, so that it needs its header."""
        known = self._growing.get(f"{directory}/{name}")
        if known is not None:
            return known[1] == 0
        try:
            return has_no_line(f"{directory}/{name}")
        except ValueError:  # `append` reports what is wrong with the name
            return True

    def make(self, directory: str) -> None:
        """Create a directory and its parents, as the first write does.

        Raises
        ------
        DumpWriteError
        """
        try:
            self._make(directory)
        except (OSError, ValueError) as error:
            raise _failure(directory, error, "created") from error

    def settle(self) -> None:
        """Close the growing files; they can be opened again later.

        Raises
        ------
        DumpWriteError
            If a server or a quota rejects bytes late; the error names the first such file. All files are closed.
        """
        failure, self._late = self._late, None
        while self._growing:
            path, (descriptor, _) = self._growing.popitem()
            try:
                try:
                    if self._durable:
                        os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                found = _failure(path, error)
                if failure is None:
                    failure = found
                else:
                    failure.add_note(str(found))
        if failure is not None:
            raise failure

    def _count(self, directory: str, files: int, size: int) -> None:
        """Count files and bytes."""
        before = self.written.get(directory, (0, 0))
        self.written[directory] = (before[0] + files, before[1] + size)

    def _take_back(self, path: str, descriptor: int, size: int) -> None:
        """Remove the written part of a line that failed; if that fails, too, the next opening removes it."""
        try:
            os.ftruncate(descriptor, size)
        except OSError:
            self._growing.pop(path, None)
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _make(self, directory: str) -> None:
        """Create missing directories one by one, since only new ones get the sink's mode.

        In an existing directory, unfinished files of killed writers are removed.
        """
        missing: list[str] = []
        path = directory
        while path and not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another rank was faster
                os.mkdir(path, self._directory_mode)
            if self._durable:
                sync_directory(os.path.dirname(path))
        if not missing:
            sweep(directory)
        self._made.add(directory)

    def _open(self, directory: str, path: str) -> tuple[int, int]:
        """Open a growing file, and remove an unfinished last line; return descriptor and size."""
        if directory not in self._made:
            self._make(directory)
        if len(self._growing) >= _OPEN:
            try:
                self.settle()
            except DumpWriteError as error:
                self._late = error
        descriptor, size, cut = open_growing(path, self._file_mode)
        if cut < 0:
            self._count(directory, 1, 0)
            if self._durable:
                sync_directory(directory)
        elif cut:
            self._warn(f"{path}: the last line was unfinished, as a killed run leaves it; {cut} bytes are cut off")
        self._growing[path] = (descriptor, size)
        return descriptor, size


def _write_all(descriptor: int, parts: Sequence["bytes | memoryview"], size: int) -> None:
    """Write all bytes, with several calls if necessary."""
    written = os.writev(descriptor, parts)
    if written == size:
        return
    for part in parts:
        view = memoryview(part).cast("B")
        skipped = min(written, view.nbytes)
        written -= skipped
        view = view[skipped:]
        while view.nbytes:
            view = view[os.write(descriptor, view) :]


def _failure(path: str, error: OSError | ValueError, verb: str = "written") -> DumpWriteError:
    """Return the error for the user."""
    if not isinstance(error, OSError):
        shown = path.encode("ascii", "backslashreplace").decode().replace("\0", "\\x00")
        what = "a lone surrogate" if isinstance(error, UnicodeError) else "a NUL character"
        return DumpWriteError(f"cannot be {verb}: the name has {what}", where=shown, code="DS-ARC-010")
    detail = error.strerror or ""
    reason = _REASONS.get(error.errno or 0, detail or str(error))
    if verb == "created" and error.errno == errno.ENOENT:  # the file system does not support new directories
        reason = detail
    text = reason if reason in detail or not detail else f"{reason} ({detail})"
    failure = DumpWriteError(f"cannot be {verb}: {text}", where=path, code="DS-ARC-010")
    failure.errno = error.errno
    return failure
