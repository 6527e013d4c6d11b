"""Files that are written line by line: a last line without a newline is unfinished, and is left out with a warning.

A process that is killed while it writes leaves such a line, because Linux may split a write at a page boundary; so does
a run that is still writing. The line cannot be used, because a number that is cut is still a number.
"""

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import AnyStr

from dumpsim.core.errors import UnfinishedWarning

__all__ = ["warn_unfinished", "whole_lines"]


def whole_lines(lines: Iterable[AnyStr], where: "str | os.PathLike[str]") -> Iterator[AnyStr]:
    r"""Iterate over the lines that end with a newline; warn about a last one that does not.

    Parameters
    ----------
    lines : iterable of str or bytes
        A text or binary file, or any iterable of lines with their newlines.
    where : path
        The file, for the warning.

    Warns
    -----
    UnfinishedWarning
        With file and line.

    Examples
    --------
    >>> import io, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     list(whole_lines(io.StringIO("a,1\nb,2"), "s.csv"))
    ['a,1\n']
    >>> print(caught[0].message)
    s.csv:2: the last line is unfinished and left out: its run was killed or is still writing [DS-LIN-001]
    """
    for number, line in enumerate(lines, 1):
        if line[-1:] not in ("\n", b"\n"):
            warn_unfinished(where, number)
            return
        yield line


def warn_unfinished(where: "str | os.PathLike[str]", number: int) -> None:
    """Warn that line `number`, the last one of a file, has no newline."""
    text = "the last line is unfinished and left out: its run was killed or is still writing [DS-LIN-001]"
    warnings.warn(UnfinishedWarning(f"{os.fspath(where)}:{number}: {text}"), stacklevel=3)
