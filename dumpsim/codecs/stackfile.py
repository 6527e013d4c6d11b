"""The stack file of an API dump: call stacks by key, decoded on request with the help of an index.

The file is one JSON object of lists of strings. Python objects would take ten times its size. Therefore its bytes are
kept, with one number per call: 32 bits of a hash of the key, and 32 bits for the offset of the entry.
"""

import json
import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping

import numpy as np

from dumpsim.codecs.lines import warn_unfinished
from dumpsim.core.errors import UnreadableError
from dumpsim.core.regular import read_bytes

__all__ = ["StackFile"]

_MAX_FILE = 1 << 31
_MAX_FRAMES = 1 << 20  # bytes of one call's frames
_LOW = (1 << 32) - 1
# possessive, so that matching needs no memory and no backtracking
_TEXT = rb'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+"'
_BLANKS = rb"[ \t\r\n]*+"
_KEY = re.compile(_BLANKS + rb"(" + _TEXT + rb")" + _BLANKS + rb":" + _BLANKS)
_FRAMES = re.compile(
    rb"\[" + _BLANKS + rb"(?:" + _TEXT + _BLANKS + rb"(?:," + _BLANKS + _TEXT + _BLANKS + rb")*+)?+\]" + _BLANKS
)
_START = re.compile(_BLANKS + rb"\{" + _BLANKS)
_END = re.compile(_BLANKS + rb"\}?" + _BLANKS)
_UTF8_MARK = b"\xef\xbb\xbf"


class StackFile(Mapping[str, tuple[str, ...]]):
    """The frames by key, innermost frame first; of equal keys the last one counts.

    If the file is cut short, its complete entries are used, with a warning.

    Parameters
    ----------
    path : path

    Raises
    ------
    UnreadableError
    """

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._path = os.fspath(path)
        self._raw = read_bytes(path, _MAX_FILE)
        index = array("Q")
        for key, at in self._entries():
            index.append((hash(key) & _LOW) << 32 | at)
        ordered = np.frombuffer(index, np.uint64) if index else np.empty(0, np.uint64)
        ordered.sort()  # in place
        self._index = index

    def __getitem__(self, key: str) -> tuple[str, ...]:
        low = hash(key) & _LOW
        at = bisect_left(self._index, low << 32 | _LOW)  # after all entries with this hash
        while at and self._index[at - 1] >> 32 == low:
            at -= 1
            found, frames = self._entry(self._index[at] & _LOW)
            if found == key:
                return frames
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(self._entry(at)[0] for at in sorted(value & _LOW for value in self._index)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _entry(self, at: int) -> tuple[str, tuple[str, ...]]:
        """Decode the entry at an offset, which `_entries` has checked."""
        key = _KEY.match(self._raw, at)
        assert key is not None
        frames = _FRAMES.match(self._raw, key.end())
        assert frames is not None
        return json.loads(key[1]), tuple(json.loads(frames[0]))

    def _entries(self) -> Iterator[tuple[str, int]]:
        """Check the file, and iterate over key and offset of each entry."""
        raw = self._raw
        if not raw.strip():
            return
        start = _START.match(raw, len(_UTF8_MARK) if raw.startswith(_UTF8_MARK) else 0)
        if start is None:
            raise self._bad(0, "is not a JSON object")
        at = start.end()
        if raw[at : at + 1] == b"}":
            return self._at_end(at)
        while True:
            key = _KEY.match(raw, at)
            frames = key and _FRAMES.match(raw, key.end())
            if key is None or frames is None:
                if not raw.rstrip().endswith(b"}"):
                    warn_unfinished(self._path, raw.count(b"\n") + 1)
                    return None
                name = key[1][1:-1][:200].decode("utf-8", "replace") if key else ""
                what = f"the frames of {name!r} are not a list of strings" if key else "is not JSON: expected an entry"
                raise self._bad(at, what)
            if frames.end() - frames.start() > _MAX_FRAMES:
                raise self._bad(at, f"the frames of a call have more than {_MAX_FRAMES} bytes")
            try:
                text, _ = json.loads(key[1]), json.loads(frames[0])
            except ValueError as error:
                raise self._bad(at, f"is not JSON: {error}") from None
            yield text, at
            at = frames.end()
            if raw[at : at + 1] != b",":
                return self._at_end(at)
            at += 1

    def _at_end(self, at: int) -> None:
        """Check the bytes after the last entry."""
        found = _END.match(self._raw, at)
        if found is None or found.end() < len(self._raw):
            raise self._bad(at, "is not JSON: other text follows the last entry")
        if b"}" not in found[0]:
            warn_unfinished(self._path, self._raw.count(b"\n") + 1)

    def _bad(self, at: int, what: str) -> UnreadableError:
        line = self._raw.count(b"\n", 0, at) + 1
        return UnreadableError(what, where=f"{self._path}:{line}", code="DS-ADP-001")
