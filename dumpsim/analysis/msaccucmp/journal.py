"""Lines as the tool prints them: ``YYYY-MM-DD HH:MM:SS (pid) - [LEVEL] text``. [spec ge 4]"""

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

__all__ = ["Journal"]


class Journal:
    """Where lines go. Work on many files keeps its lines in `part`s, which `adopt` prints one after the other.

    Parameters
    ----------
    stream : TextIO, optional
        Standard error where nothing is given.
    now : callable, optional
        Seconds since 1970.
    """

    def __init__(self, stream: TextIO | None = None, now: Callable[[], float] = time.time) -> None:
        self._stream = stream
        self.now = now
        self._held: list[str] | None = None

    def stamp(self) -> str:
        """``YYYYMMDDHHMMSS``, local time, as in names of result files."""
        return time.strftime("%Y%m%d%H%M%S", time.localtime(self.now()))

    def info(self, text: str) -> None:
        self._line("INFO", text)

    def warning(self, text: str) -> None:
        self._line("WARNING", text)

    def error(self, text: str) -> None:
        self._line("ERROR", text)

    def part(self) -> "Journal":
        """A journal that keeps its lines."""
        made = Journal(self._stream, self.now)
        made._held = []
        return made

    def adopt(self, part: "Journal") -> None:
        """Print what a part has kept."""
        for line in part._held or ():
            self._put(line)

    def _line(self, level: str, text: str) -> None:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.now()))
        self._put(f"{moment} ({os.getpid()}) - [{level}] {text}")

    def _put(self, line: str) -> None:
        if self._held is not None:
            self._held.append(line)
        else:
            print(line, file=self._stream or sys.stderr, flush=True)
