"""The output of each rank of a test."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, TextIO, cast

import pytest

from dumpsim.world.output import PrefixedOutput

__all__ = ["RankCapture", "RankOutput"]


class _Captured(io.TextIOWrapper):
    """A text stream in memory over a binary one, as standard output has."""

    def __init__(self, shared: TextIO) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)
        self._shared = shared

    def fileno(self) -> int:
        """The descriptor of the process's stream."""
        return self._shared.fileno()

    def take(self) -> str:
        """Return what was written since the last time."""
        buffer = cast(io.BytesIO, self.buffer)
        text = buffer.getvalue().decode("utf-8", "replace")
        buffer.seek(0)
        buffer.truncate()
        return text


class RankOutput:
    """The standard output and standard error of one rank.

    Parameters
    ----------
    rank : int
    live : bool
        Print each line at once, prefixed with ``[rank N]``; False: capture it.
    """

    def __init__(self, rank: int, *, live: bool) -> None:
        prefix = f"[rank {rank}] "
        self.out: PrefixedOutput | _Captured = PrefixedOutput(sys.stdout, prefix) if live else _Captured(sys.stdout)
        self.err: PrefixedOutput | _Captured = PrefixedOutput(sys.stderr, prefix) if live else _Captured(sys.stderr)

    def install(self) -> None:
        """Redirect the output of the running rank to this object."""
        sys.stdout, sys.stderr = cast(TextIO, self.out), cast(TextIO, self.err)

    def take(self) -> tuple[str, str]:
        """Return what was captured since the last time; end unfinished lines that are live."""
        out, err = (self._take(stream) for stream in (self.out, self.err))
        return out, err

    @staticmethod
    def _take(stream: PrefixedOutput | _Captured) -> str:
        if isinstance(stream, _Captured):
            return stream.take()
        stream.finish()
        return ""


class CaptureResult(NamedTuple):
    """Captured output."""

    out: str
    err: str


class RankCapture:
    """The fixture ``capsys`` of one rank."""

    def __init__(self, output: RankOutput, shared: "pytest.CaptureFixture[str]") -> None:
        self._output = output
        self._shared = shared

    def readouterr(self) -> CaptureResult:
        """Return what the rank has printed since the last call."""
        return CaptureResult(*self._output.take())

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Print to the terminal inside the block."""
        own = sys.stdout, sys.stderr
        try:
            with self._shared.disabled():
                yield
        finally:
            sys.stdout, sys.stderr = own
