"""Layouts of sliced tensors, from the manifests of a dump's ranks: which part each rank dumped."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dumpsim.analysis.derivedlayouts import derived
from dumpsim.analysis.entry import Entry
from dumpsim.archive.naming import escape
from dumpsim.core.errors import UnreadableError
from dumpsim.core.regular import read_text
from dumpsim.core.tensorlayout import TensorLayout

__all__ = ["Layouts", "Sliced", "layouts_of", "manifests_of"]

_LARGEST = 1 << 30  # bytes of a manifest
_PATTERN = "dumpsim-manifest*.json"
_ABOVE = 6  # parent directories of a dump's root to search for manifests


@dataclass(frozen=True, slots=True)
class Sliced:
    """How a tensor is distributed over the ranks.

    Attributes
    ----------
    layout : TensorLayout
    summed : tuple of int
        Device dimensions, counted from the right, along which ranks hold terms of a sum: the operator's result before
        the collective that adds them up.
    """

    layout: TensorLayout
    summed: tuple[int, ...] = ()

    def replicas(self, rank: int) -> tuple[int, ...]:
        """Return the ranks whose tensors must equal a rank's."""
        layout = self.layout
        return layout.group(set(range(len(layout.device_matrix))) - layout.used - set(self.summed), rank)


Key = tuple[int | None, str, str, int]  # graph id, name as files have it, io, slot


class Layouts(Mapping[Key, Sliced]):
    """Layouts by graph id, operator name as files have it, ``input`` or ``output``, and slot.

    Examples
    --------
    >>> layouts = Layouts([{"graph_id": 0, "op": "Default/MatMul-op0", "io": "output", "slot": 0,
    ...                     "device_matrix": [2], "tensor_map": [0, -1], "shape": [4, 8]}])
    >>> layouts[0, "Default_MatMul-op0", "output", 0].layout.slice_shape
    (2, 8)
    """

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        self._known: dict[Key, Sliced] = {}
        for entry in entries:
            axes = tuple(tuple(axis) if isinstance(axis, list) else axis for axis in entry["tensor_map"])
            layout = TensorLayout(tuple(entry["device_matrix"]), axes, tuple(entry["shape"]))
            key = (entry["graph_id"], escape(entry["op"]), entry["io"], entry["slot"])
            self._known[key] = Sliced(layout, tuple(entry.get("summed", ())))

    def __getitem__(self, key: Key) -> Sliced:
        return self._known[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def of(self, entry: Entry) -> Sliced | None:
        """Return the distribution of an entry's tensor; None if the manifests do not have it."""
        names = (entry.name.op_name, entry.op_name)
        keys = ((entry.graph_id, escape(name), entry.io, entry.slot) for name in names)
        return next((self._known[key] for key in keys if key in self._known), None)

    @classmethod
    def read(cls, paths: Iterable[Path]) -> "Layouts":
        """Read the layouts of some manifests.

        Raises
        ------
        UnreadableError
            For a file that is not a manifest.
        """
        entries: list[Mapping[str, Any]] = []
        for path in paths:
            entries += _loaded(path).get("layouts", [])
        try:
            return cls(entries)
        except (KeyError, TypeError, ValueError) as error:
            raise UnreadableError(f"its layouts cannot be read ({error})", where=", ".join(map(str, paths))) from None


def layouts_of(root: Path, manifests: Iterable[Path] | None = None) -> Layouts:
    """Return the layouts of a dump: from its manifests, or else derived from its IR texts.

    Parameters
    ----------
    root : Path
        The dump's root.
    manifests : iterable of Path, optional
        By default those beside the dump.
    """
    found = Layouts.read(manifests_of(root) if manifests is None else manifests)
    return found or Layouts(derived(root))


def manifests_of(root: Path) -> list[Path]:
    """Return the manifests of a dump: files in its directory or above it whose `path` is the dump's.

    Parameters
    ----------
    root : Path
        The dump's root, or a directory inside it.
    """
    root = root.resolve()
    found = []
    for directory in [root, *root.parents][:_ABOVE]:
        for path in sorted(directory.glob(_PATTERN)):
            tree = (directory / str(_loaded(path).get("path", ""))).resolve()
            if tree == root or root in tree.parents or tree in root.parents:
                found.append(path)
        if found:
            break
    return found


def _loaded(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path, _LARGEST))
    except ValueError as error:
        raise UnreadableError(f"is not a manifest ({error})", where=str(path), code="DS-ANA-020") from None
    if not isinstance(found, dict):
        raise UnreadableError("is not a manifest", where=str(path), code="DS-ANA-020")
    return found
