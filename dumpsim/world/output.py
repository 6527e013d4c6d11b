"""The standard output of one rank among others."""

from io import TextIOBase
from typing import TextIO

__all__ = ["PrefixedOutput"]


class PrefixedOutput(TextIOBase):
    """Writes whole lines to another stream, each after a prefix.

    An incomplete line is buffered, so that the lines of ranks do not mix.

    Parameters
    ----------
    stream : TextIO
        The stream to which the lines are written.
    prefix : str

    Examples
    --------
    >>> import sys
    >>> output = PrefixedOutput(sys.stdout, "[1] ")
    >>> print("two", "words", file=output)
    [1] two words
    """

    def __init__(self, stream: TextIO, prefix: str) -> None:
        self.stream = stream
        self.prefix = prefix
        self._unfinished = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has a plain attribute
        """The encoding of the other stream."""
        return self.stream.encoding

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the other stream."""
        return self.stream.fileno()

    def isatty(self) -> bool:
        """Whether the other stream is a terminal."""
        return self.stream.isatty()

    def write(self, text: str) -> int:
        """Write the lines that `text` completes."""
        *lines, self._unfinished = (self._unfinished + text).split("\n")
        if lines:
            self.stream.write("".join(f"{self.prefix}{line}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        """Flush the other stream; an incomplete line stays in the buffer."""
        self.stream.flush()

    def finish(self) -> None:
        """Write the last line, if it is incomplete."""
        if self._unfinished:
            self.write("\n")
