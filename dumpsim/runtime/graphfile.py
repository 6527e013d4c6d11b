"""A text that a compiler saves about a graph, as a whole file."""

import os
from pathlib import Path

from dumpsim.core.errors import DumpWriteError

__all__ = ["write_text"]

_DIRECTORY_MODE = 0o700


def write_text(path: Path, text: str, mode: int) -> None:
    """Write a new file with this mode, also in the place of an old one that is read-only, and its directories.

    Raises
    ------
    DumpWriteError
        The directory or the file cannot be written.
    """
    try:
        path.parent.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise DumpWriteError(f"the graph could not be saved: {problem.strerror}", where=str(path)) from problem
