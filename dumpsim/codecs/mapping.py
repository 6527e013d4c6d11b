"""mapping.csv: short names of files whose own name is too long. [spec mindspore 3.6, spec ge 3.5]"""

import io
import struct
from collections.abc import Container, Iterable, Iterator

from dumpsim.codecs.lines import whole_lines
from dumpsim.core.errors import MissingFileError
from dumpsim.core.regular import StrPath, open_regular

__all__ = ["line", "pairs", "parse", "read", "string_hash"]

_MAX_FILE = 1 << 26  # bytes; a line has about 500

_MASK = (1 << 64) - 1
_MUL = 0xC6A4A7935BD1E995
_SEED = 0xC70F6907


def string_hash(name: bytes) -> int:
    """Compute ``std::hash<std::string>`` of libstdc++ for 64 bits. [spec ge 3.5]

    Examples
    --------
    >>> string_hash(b"abc")
    3663726644998027833
    >>> string_hash(b"Add.Add_1.3.5.1700000000000000")
    15060200189498114039
    """
    value = _SEED ^ (len(name) * _MUL & _MASK)
    whole = len(name) & ~7
    for (word,) in struct.iter_unpack("<Q", name[:whole]):
        word = word * _MUL & _MASK
        word = (word ^ word >> 47) * _MUL & _MASK
        value = (value ^ word) * _MUL & _MASK
    if len(name) & 7:
        value = (value ^ int.from_bytes(name[whole:], "little")) * _MUL & _MASK
    value = (value ^ value >> 47) * _MUL & _MASK
    return value ^ value >> 47


def line(short: str, original: str) -> str:
    """Format one line of the file, which has no header. Newlines in a name are written as ``\\n`` and ``\\r``.

    Examples
    --------
    >>> line("1045390066.npy", "MatMul.Default_long.0.0.1.input.0.DefaultFormat.Float32.npy")
    '1045390066.npy,MatMul.Default_long.0.0.1.input.0.DefaultFormat.Float32.npy\\n'
    """
    if "\n" in original or "\r" in original:
        original = original.replace("\n", "\\n").replace("\r", "\\r")
    return f"{short},{original}\n"


def parse(text: str, where: StrPath = "mapping.csv") -> dict[str, str]:
    """Return original names by short name; of several lines with the same short name the last one counts.

    An unfinished last line is left out with a warning.

    Examples
    --------
    >>> parse("1.npy,a.npy\\n2.npy,b.npy\\n1.npy,a.npy\\n")
    {'1.npy': 'a.npy', '2.npy': 'b.npy'}
    """
    return dict(_pairs(io.StringIO(text), where))


def pairs(path: StrPath) -> Iterator[tuple[str, str]]:
    """Iterate over short and original names of a file, as `parse`; there are none if the file does not exist.

    Raises
    ------
    UnreadableError
        For anything that is not a regular file, and for a file or a line that is too large.
    """
    try:
        file = open_regular(path, _MAX_FILE)
    except MissingFileError:
        return
    with file:
        yield from _pairs((line.decode("utf-8", "replace") for line in file.lines()), path)


def read(path: StrPath, names: Container[str]) -> dict[str, str]:
    """Return the original names of the files `names`; errors are those of `pairs`."""
    return {short: original for short, original in pairs(path) if short in names}


def _pairs(lines: Iterable[str], where: StrPath) -> Iterator[tuple[str, str]]:
    for row in whole_lines(lines, where):
        short, comma, original = row.partition(",")
        if comma:
            yield short.strip(), original.strip()
