"""Open regular files only: no links, pipes, devices or directories, and no file above a limit.

All files of dumps, configs and plans are opened here (`tests/test_opens.py` checks that), since they may come from an
untrusted source: a link to ``/dev/zero`` must not fill the memory, and a pipe must not block a reader.

The path that a user names may itself be a link (``follow=True``, or the root of a dump). Links inside a dump are
refused, including links in place of its directories (`below`).
"""

import errno
import io
import os
import stat
from collections.abc import Iterator
from typing import TypeAlias, Union

from dumpsim.core.errors import MissingFileError, UnreadableError

__all__ = ["RegularFile", "StrPath", "open_regular", "read_bytes", "read_text", "regular_names"]

StrPath: TypeAlias = Union[str, "os.PathLike[str]"]

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LONGEST_LINE = 1 << 20
_LINK = "is a link; links in a dump are not followed"
_KINDS = (
    (stat.S_ISLNK, _LINK),
    (stat.S_ISDIR, "is a directory, not a regular file"),
    (stat.S_ISFIFO, "is a pipe, not a regular file"),
    (stat.S_ISSOCK, "is a socket, not a regular file"),
    (stat.S_ISCHR, "is a device, not a regular file"),
    (stat.S_ISBLK, "is a device, not a regular file"),
)


class RegularFile:
    """An open regular file; a context manager that closes it.

    Attributes
    ----------
    path : str
    descriptor : int
    size : int
        Bytes when the file was opened.
    """

    __slots__ = ("descriptor", "path", "size")

    def __init__(self, path: str, descriptor: int, size: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.size = size

    def __enter__(self) -> "RegularFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def read(self, count: int | None = None) -> bytes:
        """Read the next `count` bytes, or up to the size that the file had when it was opened."""
        left = self.size if count is None else count
        first = os.read(self.descriptor, left)
        if len(first) == left:
            return first
        parts = [first]
        left -= len(first)
        while left and (part := os.read(self.descriptor, left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def read_into(self, target: memoryview, offset: int) -> int:
        """Fill `target` from `offset` on; return the number of bytes read."""
        done = 0
        while count := os.preadv(self.descriptor, [target[done:]], offset + done):
            done += count
        return done

    def read_at(self, offset: int, count: int) -> bytes:
        """Read `count` bytes from `offset` on, fewer at the end of the file."""
        return os.pread(self.descriptor, count, offset)

    def stream(self) -> io.FileIO:
        """Return the file for numpy to map; closing it leaves the descriptor open."""
        return io.FileIO(self.descriptor, closefd=False)

    def lines(self, longest: int = _LONGEST_LINE) -> Iterator[bytes]:
        """Yield the lines with their ends.

        Raises
        ------
        UnreadableError
            For a line of more than `longest` bytes.
        """
        with open(self.descriptor, "rb", closefd=False) as file:
            number = 0
            while line := file.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise UnreadableError(
                        f"the line is longer than {longest} bytes", where=f"{self.path}:{number}", code="DS-FIL-002"
                    )
                yield line


def open_regular(
    path: StrPath, limit: int | None = None, *, below: StrPath | None = None, follow: bool = False
) -> RegularFile:
    """Open a regular file for reading.

    Parameters
    ----------
    path : path
    limit : int, optional
        Largest size in bytes.
    below : path, optional
        Directory above `path` that is trusted. The directories between it and the file are refused if they are links.
        Without it only the file itself is.
    follow : bool
        Whether `path` may be a link: a path that the user named.

    Raises
    ------
    UnreadableError
        For anything that is not a regular file, cannot be opened, or is larger than `limit`; a `MissingFileError`,
        which is a FileNotFoundError too, if the file does not exist.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     os.mkfifo(f"{directory}/info.pkl")
    ...     try:
    ...         open_regular(f"{directory}/info.pkl")
    ...     except UnreadableError as error:
    ...         print(error.what)
    is a pipe, not a regular file
    """
    where = os.fspath(path)
    try:
        if below is None:
            descriptor = os.open(where, _FLAGS if follow else _FLAGS | os.O_NOFOLLOW)
        else:
            descriptor = _open_below(os.fspath(below), where)
    except (OSError, ValueError) as error:
        raise _refusal(where, error) from error
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and (limit is None or found.st_size <= limit):
        return RegularFile(where, descriptor, found.st_size)
    os.close(descriptor)
    what = _kind(found.st_mode) or f"is larger than {limit} bytes"
    raise UnreadableError(what, where=where, code="DS-FIL-001")


def read_bytes(path: StrPath, limit: int, *, below: StrPath | None = None, follow: bool = False) -> bytes:
    """Return the content of a regular file; parameters and errors as of `open_regular`."""
    with open_regular(path, limit, below=below, follow=follow) as file:
        return file.read()


def read_text(path: StrPath, limit: int, *, below: StrPath | None = None) -> str:
    """Return the text of a regular file; bytes that are not UTF-8 are replaced. Errors as of `open_regular`."""
    return read_bytes(path, limit, below=below).decode("utf-8", "replace")


def regular_names(directory: StrPath, *, below: StrPath) -> list[str]:
    """Return the sorted names of the regular files in a directory; an empty list if it does not exist.

    Raises
    ------
    UnreadableError
        If the directory, or one between `below` and it, is a link or not a directory.
    """
    where = os.fspath(directory)
    try:
        descriptor = _open_below(os.fspath(below), where, _DIRECTORY)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise _refusal(where, error) from error
    try:
        with os.scandir(descriptor) as entries:
            return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    finally:
        os.close(descriptor)


def _open_below(below: str, path: str, flags: int = _FLAGS) -> int:
    """Open `path`, one directory at a time from `below` on, without following links."""
    at = os.open(below, _DIRECTORY)
    name = ""
    try:
        *folders, last = os.path.relpath(path, below).split(os.sep)
        for name in folders:
            before, at = at, os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(before)
        name = last
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=at)
    except NotADirectoryError as error:
        if stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from error
        raise
    finally:
        os.close(at)


def _kind(mode: int) -> str:
    """Describe a file that is not regular, an empty text for a regular one."""
    return next((what for test, what in _KINDS if test(mode)), "")


def _refusal(where: str, error: OSError | ValueError) -> UnreadableError:
    """Return the error of a file that was not opened."""
    if isinstance(error, ValueError):
        return UnreadableError(
            f"is not a path: {error}", where=where.encode(errors="replace").decode(), code="DS-FIL-001"
        )
    if isinstance(error, FileNotFoundError):
        return MissingFileError("does not exist", where=where, code="DS-FIL-003")
    what = f"cannot be read: {error.strerror}"
    if error.errno in (errno.ELOOP, errno.EMLINK):
        what = _LINK
    elif error.errno == errno.ENXIO:
        what = "is a socket, not a regular file"
    return UnreadableError(what, where=where, code="DS-FIL-001")
