"""Evaluates a dump of watch mode: which operator changed a watched output, and whether it may. [spec ge 2.8]

An operator that runs after C may overwrite C's outputs for two reasons. The memory was given to another tensor, since
C's output was not needed any longer: legal reuse. Or the operator wrote where it must not: trampling. Dumps of
dumpsim say in their headers which it was; those of a real device do not.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np

from dumpsim.archive.naming import parse_bin
from dumpsim.codecs import mapping
from dumpsim.codecs.binfile import BinFile
from dumpsim.core.errors import MissingFileError, UnreadableError

__all__ = ["Change", "Verdict", "WatchDiff", "watchdiff"]

Verdict = Literal["trampled", "written in place", "reused", "unknown"]
_ARROW = "_To_"
_MAPPING = "mapping.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The first change of a watched output in an iteration.

    Attributes
    ----------
    directory : str
        Directory of the iteration, relative to the dump.
    node : str
        The watched operator.
    slot : int
        Index of its output.
    after : str
        The operator after which the bytes had changed for the first time.
    before : str
        The last operator after which they had not changed, or the watched operator itself.
    first, last : int
        Offsets of the first and last byte that changed.
    changed, nbytes : int
        Number of changed bytes, and of all bytes of the output.
    address : int
        Address of the first changed byte on the device; 0 if unknown.
    alive : bool or None
        Whether the output was still needed; None if unknown.
    owners : tuple of str
        Other tensors in that memory at the time.
    verdict : str
        ``trampled``, ``written in place`` (the operator is meant to write there), ``reused`` or ``unknown``.
    """

    directory: str
    node: str
    slot: int
    after: str
    before: str
    first: int
    last: int
    changed: int
    nbytes: int
    address: int
    alive: bool | None
    owners: tuple[str, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchDiff:
    """The result of `watchdiff`.

    Attributes
    ----------
    watched : int
        Number of watched outputs, summed over iterations.
    reads : int
        Number of later reads of them.
    changes : tuple of Change
    missing : tuple of str
        Watched operators whose own file is missing, so that nothing can be compared.
    """

    watched: int
    reads: int
    changes: tuple[Change, ...]
    missing: tuple[str, ...] = ()

    @property
    def trampled(self) -> bool:
        """Whether an output that was still needed was overwritten, or may have been."""
        return any(change.verdict in ("trampled", "unknown") for change in self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A file of the dump: one read of a node's outputs."""

    node: str
    after: str  # "" for the node's own file
    file: BinFile
    stamp: int
    attrs: dict[str, str]

    def of(self, name: str, slot: int, separator: str) -> str | None:
        """Return the value of an attribute for an output."""
        values = self.attrs[name].split(separator) if name in self.attrs else []
        return values[slot] if slot < len(values) else None


def watchdiff(path: "str | os.PathLike[str]") -> WatchDiff:
    """Compare later reads of watched outputs with their original values.

    Parameters
    ----------
    path : path-like
        The dump, or any directory inside it.

    Raises
    ------
    MissingFileError
        For a path that does not exist.
    UnreadableError
        For a tree without a file of watch mode, and for a file that cannot be read.
    """
    root = os.fspath(path)
    if not os.path.exists(root):
        raise MissingFileError("does not exist", where=root, code="DS-ANA-002")
    watched = reads = 0
    changes: list[Change] = []
    missing: list[str] = []
    for directory, files in _directories(root):
        own, others = _sorted(files)
        reads += len(others)
        for node, found in groupby(sorted(others, key=lambda read: (read.node, read.stamp)), lambda read: read.node):
            if node not in own:
                missing.append(f"{os.path.relpath(directory, root)}: {node}")
                continue
            watched += len(own[node].file.data.outputs)
            changes += _changes(os.path.relpath(directory, root), own[node], list(found))
    if not reads:
        raise UnreadableError("no file of watch mode (A_To_B)", where=root, code="DS-ANA-003")
    return WatchDiff(watched=watched, reads=reads, changes=tuple(changes), missing=tuple(missing))


def _directories(root: str) -> Iterator[tuple[str, list[BinFile]]]:
    """Return the directories with bin files, and the files."""
    for directory, below, names in os.walk(root):
        below.sort()
        real = _mapped(directory, names)
        found = []
        for name in sorted(names):
            try:
                parsed = parse_bin(real.get(name, name))
            except UnreadableError:
                continue
            if not parsed.opdebug:
                found.append(BinFile.open(os.path.join(directory, name), trailing=True))
        if found:
            yield directory, found


def _mapped(directory: str, names: Sequence[str]) -> dict[str, str]:
    """Return the full names in mapping.csv."""
    if _MAPPING not in names:
        return {}
    return mapping.read(os.path.join(directory, _MAPPING), set(names))


def _sorted(files: Sequence[BinFile]) -> tuple[dict[str, _Read], list[_Read]]:
    """Split files into those of nodes, by name, and reads after other operators."""
    names = {file.data.op_name for file in files}
    read = {name[at.end() :] for name in names for at in re.finditer(_ARROW, name)}
    own: dict[str, _Read] = {}
    others: list[_Read] = []
    for file in files:
        name, attrs = file.data.op_name, dict(file.data.attrs)
        pair = _pair(name, names)
        stamp = file.data.dump_time
        if pair is None or (pair[1] not in names and name in read):  # an operator may be called A_To_B itself
            own[name] = _Read(node=name, after="", file=file, stamp=stamp, attrs=attrs)
        else:
            others.append(_Read(node=pair[1], after=pair[0], file=file, stamp=stamp, attrs=attrs))
    return own, others


def _pair(name: str, names: "set[str]") -> tuple[str, str] | None:
    """The operator and the watched node of ``A_To_C``; a node that has a file of its own is preferred.

    Examples
    --------
    >>> _pair("A_To_C", {"C"}), _pair("A_To_B_To_C", {"B_To_C"}), _pair("Add", {"Add"})
    (('A', 'C'), ('A', 'B_To_C'), None)
    """
    at = name.find(_ARROW)
    found = None
    while at > 0:
        after, node = name[:at], name[at + len(_ARROW) :]
        if node in names:
            return after, node
        found = found or (after, node)
        at = name.find(_ARROW, at + 1)
    return found


def _changes(directory: str, own: _Read, reads: Sequence[_Read]) -> Iterator[Change]:
    """The first change of each output of a node."""
    for slot, item in enumerate(own.file.data.outputs):
        before = own.after or own.node
        original = own.file.output(slot)
        for read in reads:
            if read.stamp < own.stamp or read.of("dumpsim.ran", 0, ",") == "0":
                continue  # read before the node ran
            if slot >= len(read.file.data.outputs):
                continue
            different = np.flatnonzero(original != read.file.output(slot))
            if different.size:
                yield _change(directory, read, slot, before, different, item.size)
                break
            before = read.after


def _change(directory: str, read: _Read, slot: int, before: str, different: Any, nbytes: int) -> Change:
    alive = read.of("dumpsim.alive", slot, ",")
    owners = tuple(name for name in (read.of("dumpsim.owners", slot, ";") or "").split(",") if name)
    verdict: Verdict = "unknown"
    if read.of("dumpsim.written", slot, ",") == "1":
        verdict = "written in place"
    elif alive is not None:
        verdict = "trampled" if alive == "1" else "reused"
    address = read.file.data.outputs[slot].address
    first, last = int(different[0]), int(different[-1])
    return Change(
        directory=directory,
        node=read.node,
        slot=slot,
        after=read.after,
        before=before,
        first=first,
        last=last,
        changed=int(different.size),
        nbytes=nbytes,
        address=address + first if address else 0,
        alive=None if alive is None else alive == "1",
        owners=owners,
        verdict=verdict,
    )
