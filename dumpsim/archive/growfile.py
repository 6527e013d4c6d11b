"""Files that grow by whole lines; an unfinished line of a killed process is removed before the next one."""

import contextlib
import errno
import os
import stat

__all__ = ["has_no_line", "open_growing"]

_BLOCK = 1 << 16


def open_growing(path: str, mode: int) -> tuple[int, int, int]:
    """Open a file for appending, and create it if it is missing.

    Parameters
    ----------
    path : str
    mode : int
        Permissions of a new file. An existing file that is not writable is made writable while it is opened.

    Returns
    -------
    descriptor, size, cut : int
        `cut` is the number of bytes of an unfinished last line, which were removed; -1 for a new file.

    Raises
    ------
    OSError
        Also for anything but a regular file: links are not followed, and opening a FIFO does not wait.
    """
    flags = os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), 0, -1
    except FileExistsError:
        pass
    flags |= os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
    before = os.lstat(path)
    if stat.S_ISDIR(before.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(before.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    try:
        descriptor = os.open(path, flags)
    except PermissionError:
        os.chmod(path, 0o600)  # only root can open a 0400 file for writing
        try:
            descriptor = os.open(path, flags)
        finally:
            os.chmod(path, mode)
    try:
        size = os.fstat(descriptor).st_size
        whole = _end_of_lines(descriptor, size)
        if whole < size:
            os.ftruncate(descriptor, whole)
    except OSError:
        with contextlib.suppress(OSError):
            os.close(descriptor)
        raise
    return descriptor, whole, size - whole


def has_no_line(path: str) -> bool:
    """Return whether a file is missing, empty or has no complete line."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return not os.path.lexists(path)
    try:
        size = os.fstat(descriptor).st_size
        return _end_of_lines(descriptor, size) == 0
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _end_of_lines(descriptor: int, size: int) -> int:
    """Return the number of bytes up to the last newline."""
    end = size
    while end:
        start = max(0, end - _BLOCK)
        at = os.pread(descriptor, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
