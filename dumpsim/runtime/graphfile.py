"""Text files that a compiler saves about a graph, written atomically."""

import contextlib
import os
from pathlib import Path

from dumpsim.core.errors import DumpWriteError
from dumpsim.core.partname import part_name

__all__ = ["write_text"]

_DIRECTORY_MODE = 0o700


def write_text(path: Path, text: str, mode: int) -> None:
    """Write a file with permissions `mode`, and create its directories; an old file is replaced, even a read-only one.

    The file appears under its name when it is complete; until then an old one stays.

    Raises
    ------
    DumpWriteError
        If the directory or the file cannot be written; no incomplete file is left.
    """
    part = path.with_name(part_name())
    try:
        path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        try:
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(text)
            part.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
    except OSError as problem:
        raise DumpWriteError(f"the graph could not be saved: {problem.strerror}", where=str(path)) from problem
