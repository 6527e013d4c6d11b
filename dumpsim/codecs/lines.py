"""Files that grow by lines: a last line without an end is unfinished, and is left out with a warning.

A process that is killed while it writes leaves such a line, since Linux may cut a write at a page boundary; so does a
run that is still going on. A cut number is still a number, so the line cannot be trusted.
"""

import os
import warnings
from collections.abc import Iterable, Iterator
from typing import AnyStr

from dumpsim.core.errors import UnfinishedWarning

__all__ = ["warn_unfinished", "whole_lines"]


def whole_lines(lines: Iterable[AnyStr], where: "str | os.PathLike[str]") -> Iterator[AnyStr]:
    r"""Return the lines that end with a newline; warn of a last one that does not.

    Parameters
    ----------
    lines : iterable of str or bytes
        A text or binary file, or anything that gives lines with their ends.
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
    """Warn that line `number`, the last of a file, has no end."""
    text = "the last line is unfinished and left out: its run was killed or is still writing [DS-LIN-001]"
    warnings.warn(UnfinishedWarning(f"{os.fspath(where)}:{number}: {text}"), stacklevel=3)
