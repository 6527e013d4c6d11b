"""Unfinished files: they have names of their own and are renamed when complete; those of dead writers are removed."""

import contextlib
import os
import shutil

from dumpsim.core.partname import PART, part_name, writer_of

__all__ = ["create", "is_alive", "sweep", "sync_directory"]


def create(directory: str, mode: int) -> tuple[int, str]:
    """Create a file with a unique name; return descriptor and path.

    It has its final mode from the start, which does not restrict this descriptor.
    """
    while True:
        path = f"{directory}/{part_name()}" if directory else part_name()
        with contextlib.suppress(FileExistsError):  # of a killed process that had the same id
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), path


def sweep(directory: str) -> None:
    """Remove the unfinished files of processes of this machine that have ended."""
    with contextlib.suppress(OSError), os.scandir(directory) as found:
        for entry in found:
            if not entry.name.startswith(PART):
                continue
            writer = writer_of(entry.name)
            if writer is not None and not is_alive(writer):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                    continue
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def is_alive(pid: int) -> bool:
    """Return whether a process of this machine is running.

    Examples
    --------
    >>> is_alive(os.getpid())
    True
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def sync_directory(directory: str) -> None:
    """Write the names of a directory to stable storage."""
    descriptor = os.open(directory or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
