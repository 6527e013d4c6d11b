"""Writes result files atomically: they appear when they are complete."""

import contextlib
import io
import os
import stat
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from dumpsim.archive.growfile import open_growing
from dumpsim.archive.part import create
from dumpsim.core.errors import DumpWriteError

__all__ = ["append_line", "npy_parts", "write_named", "write_whole"]

_AT_ONCE = 16  # parts per system call


def npy_parts(array: "np.ndarray[Any, Any]") -> tuple[bytes, memoryview]:
    """Return header and data of an npy file, as numpy writes it; contiguous data is not copied."""
    solid = np.ascontiguousarray(array).reshape(array.shape)
    data = solid.reshape(-1).view(np.uint8).data if solid.size else memoryview(b"")
    return _header(solid.dtype.str, solid.shape), data


@lru_cache(maxsize=256)
def _header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of an npy file; cached, since dumps have few types and shapes."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": descr, "fortran_order": False, "shape": shape})
    return head.getvalue()


def write_whole(path: str, parts: Iterable["bytes | memoryview"], *, mode: int | None = 0o600) -> int:
    """Write a file by another name and rename it; bytes written. Without a mode it gets the one that `open` gives.

    Raises
    ------
    DumpWriteError
        With the file's name; no incomplete file is left.
    """
    total = 0
    descriptor, temporary = -1, ""
    try:
        descriptor, temporary = create(os.path.dirname(path), 0o666 if mode is None else 0o600)
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        total = sum(view.nbytes for view in views)
        while views:
            written = os.writev(descriptor, views[:_AT_ONCE])
            while views and written >= views[0].nbytes:
                written -= views.pop(0).nbytes
            if written:
                views[0] = views[0][written:]
        if mode is not None and mode != 0o600:
            os.fchmod(descriptor, mode)
        finished, descriptor = descriptor, -1  # a failing close still closes
        os.close(finished)
        os.rename(temporary, path)
        temporary = ""
    except OSError as error:
        raise _failure(path, error) from error
    finally:
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    return total


def write_named(path: "str | os.PathLike[str]", data: bytes) -> None:
    """Write a file that the user named, atomically.

    A link stays, and its target is replaced. Data for a pipe or a device, such as ``/dev/stdout``, is written directly.
    A new file gets the permissions that `open` gives, an existing one keeps its own.

    Raises
    ------
    DumpWriteError
        With the file's name; the file is not changed.
    """
    where = os.fspath(path)
    try:
        found = os.stat(where) if os.path.exists(where) else None
        if found is not None and not stat.S_ISREG(found.st_mode):
            with open(where, "wb") as file:
                file.write(data)
            return
    except OSError as error:
        raise _failure(where, error) from error
    write_whole(os.path.realpath(where), [data], mode=None if found is None else stat.S_IMODE(found.st_mode))


def append_line(path: str, line: str, *, mode: int = 0o600) -> None:
    """Append a line to a text file; cut off an unfinished line of an interrupted run.

    Raises
    ------
    DumpWriteError
        With the file's name; the file is not changed.
    """
    data = line.encode()
    try:
        descriptor, size, _ = open_growing(path, mode)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _failure(path, error) from error


def _failure(path: str, error: OSError) -> DumpWriteError:
    failure = DumpWriteError(f"cannot be written: {error.strerror}", where=path, code="DS-ARC-010")
    failure.errno = error.errno
    return failure
