"""Names that are too long for a file: they are replaced by a number, and mapping.csv has the original."""

import os
from collections.abc import Callable, Sequence

from dumpsim.archive.sink import Sink
from dumpsim.codecs import mapping
from dumpsim.codecs.mapping import string_hash

__all__ = ["MAPPING", "MAX_NAME", "Number", "bin_number", "fits", "npy_number", "store", "stored_name"]

MAPPING = "mapping.csv"
MAX_NAME = 255  # bytes of a file name; longer ones go to mapping.csv [spec observed 1.2]

_LONGEST_STAMP = len("18446744073709551616.csv")  # 64 bits

Number = Callable[[str], str]  # returns the short name for a long one


def npy_number(name: str, salt: str = "") -> str:
    """Return MindSpore's number for a file, with the file's own suffix.

    Parameters
    ----------
    name : str
    salt : str
        A replacement for the vendor's random number, in releases that draw one.

    Examples
    --------
    >>> npy_number("x" * 256 + ".npy")
    '2112587105.npy'
    """
    raw = f"{salt}/{name}" if salt else name
    return f"{string_hash(_bytes(raw)) % 2**31}{os.path.splitext(name)[1]}"


def bin_number(name: str) -> str:
    """Return the number for a bin file, without a suffix. [spec ge 3.5]

    Examples
    --------
    >>> bin_number("Add." + "x" * 260 + ".3.5.1")
    '13221173902839922592'
    """
    return str(string_hash(_bytes(name)))


def stored_name(name: str, number: Number, *, limit: int = MAX_NAME) -> tuple[str, str]:
    """Return the name of a file on disk, and its line of mapping.csv, which is empty if the name is not too long.

    Parameters
    ----------
    name : str
    number : callable
        Returns the short name for a name that is too long.
    limit : int
        Largest number of bytes of a name.

    Examples
    --------
    >>> stored_name("a.npy", npy_number)
    ('a.npy', '')
    >>> stored_name("abcdef.npy", npy_number, limit=8)
    ('1975839447.npy', '1975839447.npy,abcdef.npy\\n')
    """
    if len(_bytes(name)) <= limit:
        return name, ""
    short = number(name)
    return short, mapping.line(short, name)


def fits(head: str) -> bool:
    """Return whether a name that begins with `head` and ends with any time stamp of 64 bits is not too long.

    Examples
    --------
    >>> fits("Add.Add_1.0.0."), fits("Add." + "x" * 240 + ".0.0.")
    (True, False)
    """
    return len(_bytes(head)) + _LONGEST_STAMP <= MAX_NAME


def _bytes(name: str) -> bytes:
    """Encode a name; one with a lone surrogate, which no file can have, fails when the file is written."""
    return name.encode("utf-8", "surrogatepass")


def _plainly(action: Callable[[], object]) -> bool:
    action()
    return True


def store(
    sink: Sink,
    directory: str,
    name: str,
    parts: Sequence["bytes | memoryview"],
    number: Number,
    attempt: Callable[[Callable[[], object]], bool] = _plainly,
) -> str | None:
    """Write a file, and its line of mapping.csv if its name is too long.

    Parameters
    ----------
    sink : Sink
    directory, name : str
    parts : sequence of bytes-like
    number : callable
        As for `stored_name`.
    attempt : callable
        Runs each of the two writes and returns whether it succeeded; by default an error is raised.

    Returns
    -------
    str or None
        The file's name on disk; None if it was not written.

    Raises
    ------
    DumpWriteError
        If the file cannot be written; the error names it.
    """
    stored, line = stored_name(name, number)
    if line:  # first, since the number would have no meaning if the process were killed in between
        attempt(lambda: sink.append(directory, MAPPING, line))
    return stored if attempt(lambda: sink.write(directory, stored, parts)) else None
