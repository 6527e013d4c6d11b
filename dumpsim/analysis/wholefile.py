"""Result files appear under their names when they are complete, or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np

from dumpsim.core.errors import DumpWriteError

__all__ = ["npy_parts", "write_whole"]

Part = "bytes | memoryview"


def npy_parts(array: "np.ndarray[Any, Any]") -> tuple[bytes, memoryview]:
    """Header and data of an npy file as numpy itself writes it; contiguous data are not copied."""
    import io

    solid = np.ascontiguousarray(array).reshape(array.shape)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(solid))
    return head.getvalue(), solid.reshape(-1).view(np.uint8).data if solid.size else memoryview(b"")


def write_whole(path: str, parts: Iterable["bytes | memoryview"], *, mode: int = 0o600) -> int:
    """Write a file by another name and rename it; bytes written.

    Raises
    ------
    DumpWriteError
        Naming the file; nothing half written is left.
    """
    total = 0
    descriptor, temporary = -1, ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".dumpsim-", dir=os.path.dirname(path) or ".")
        for part in parts:
            view = memoryview(part).cast("B") if len(part) else memoryview(b"")
            total += view.nbytes
            while view.nbytes:
                view = view[os.write(descriptor, view) :]
        if mode != 0o600:
            os.fchmod(descriptor, mode)
        os.close(descriptor)
        descriptor = -1
        os.rename(temporary, path)
    except OSError as error:
        failure = DumpWriteError(f"cannot be written: {error.strerror}", where=path, code="DS-ARC-010")
        failure.errno = error.errno
        raise failure from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    return total
