"""One tensor of a dump on disk: its name, header, statistics row and graph, each read on first use."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from dumpsim.analysis.bintensor import BinTensor
from dumpsim.analysis.graphindex import GraphIndex
from dumpsim.analysis.place import Place
from dumpsim.archive.naming import OPDEBUG
from dumpsim.codecs import npy, opdebug
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import BadInputError, UnreadableError, nearest
from dumpsim.core.irdoc import SourceLine, script_line
from dumpsim.core.record import Record
from dumpsim.core.statistic import NAMES
from dumpsim.tensor.stats import Statistics, statistics

__all__ = ["Entry"]

_SMALL = 1 << 20  # bytes below which reading a file costs less than mapping it


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A tensor of a dump.

    Attributes
    ----------
    name : Record
        The record read from the file name or the statistics row.
    place : Place
        Rank, net, graph and iteration.
    path : Path or None
        The npy or bin file; None if only statistics were dumped.
    row : mapping
        The statistics row by field (``max``, ``l2norm``, ``md5``), empty without one.
    graphs : GraphIndex
    part : BinTensor or None
        The tensor of a bin file: its header, its bytes, its values on the device.
    """

    name: Record
    place: Place
    path: Path | None
    row: Mapping[str, Any]
    graphs: GraphIndex
    part: BinTensor | None = None

    @property
    def rank(self) -> int:
        return self.place.rank

    @property
    def graph_id(self) -> int | None:
        return self.place.graph_id

    @property
    def iteration(self) -> int | None:
        return self.place.iteration

    @property
    def op_type(self) -> str:
        return self.name.op_type

    @cached_property
    def op_name(self) -> str:
        """Full scope name if a graph has it, else the name in the file."""
        if "/" in self.name.op_name:
            return self.name.op_name
        if self.op_type == "Parameter":
            return self.graphs.parameter(self.name.op_name)
        node = self.graphs.node(self.name.op_name, self.graph_id)
        if node is None:
            return self.name.op_name
        stem, _, number = self.name.op_name.rpartition("-op")
        return f"{node.full_name.rpartition('-op')[0]}-op{number}" if stem and number.isdigit() else node.full_name

    @property
    def io(self) -> str:
        return self.name.io

    @property
    def slot(self) -> int:
        return self.name.slot

    @property
    def timestamp(self) -> int:
        return self.name.timestamp

    @property
    def format(self) -> str:
        return self.name.format

    @cached_property
    def _header(self) -> tuple[np.dtype[Any], tuple[int, ...]]:
        if self.path is None:
            raise UnreadableError(
                "only its statistics were dumped, there is no tensor file", where=self.label, code="DS-ANA-001"
            )
        kind, shape, _, _ = npy.info(self.path)
        return kind, shape

    @property
    def dtype(self) -> str:
        """Original number type; the stored one if the name has none, empty if unknown."""
        return self.name.dtype or (from_numpy(self._header[0]).name if self.path is not None else "")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values on the host, also for a bin file's tensor if its layout can be converted."""
        return self._header[1] if self.path is not None and self.part is None else self.name.shape

    @property
    def device_shape(self) -> tuple[int, ...]:
        """Shape in the file: for a bin file's tensor, the shape on the device."""
        return self.part.device_shape if self.part is not None else self.shape

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor in its file, or according to its statistics row."""
        if self.path is None or self.part is not None:
            return self.name.nbytes
        kind, shape = self._header
        return prod(shape) * kind.itemsize

    @property
    def label(self) -> str:
        """``Default/fc1-Dense/MatMul-op0:output.0``"""
        return f"{self.op_name}:{self.io}.{self.slot}"

    def answers(self, pattern: str) -> bool:
        """Return whether a glob matches the operator's name (full or as in files), type or label, ignoring case.

        Type and name are what ``--tol`` and ``--allow`` choose tensors by.
        """
        glob = pattern.lower()
        names = (self.op_name, self.name.op_name, self.op_type, self.label)
        return any(fnmatchcase(name.lower(), glob) for name in names)

    @property
    def source(self) -> tuple[SourceLine, ...]:
        """The script lines that created the operator, outermost first; empty if no graph has them."""
        return self.graphs.lines(self.name.op_name, self.graph_id)

    @property
    def script_line(self) -> SourceLine | None:
        """The innermost line that is the script's own, not the framework's."""
        return script_line(self.source)

    def array(self) -> "np.ndarray[Any, Any]":
        """Return the tensor: memory-mapped and read-only, or converted from the layout and type of a bin file.

        Raises
        ------
        UnreadableError
            If only statistics were dumped, or the file is damaged.
        UnsupportedError
            For a type of a bin file whose bytes cannot be decoded; `part.raw()` returns them.
        """
        if self.part is not None:
            return self.part.array()
        if self.path is None:
            _ = self._header
        assert self.path is not None
        return npy.read(self.path)

    @cached_property
    def statistics(self) -> Statistics:
        """Statistics of the tensor file, computed in one pass."""
        if self.path is not None and self.part is None and self.nbytes < _SMALL:
            return statistics(npy.read(self.path, mmap=False))
        return statistics(self.array())

    def statistic(self, field: str) -> Any:
        """Return one statistic, from the dumped row or else computed; None for types without statistics.

        Raises
        ------
        BadInputError
            For an unknown name; it is also a ValueError.
        """
        if field in self.row:
            return self.row[field]
        if field not in NAMES:
            raise BadInputError(f"unknown statistic {field!r}", allowed=NAMES, nearest=nearest(field, NAMES))
        return getattr(self.statistics, field) if self.measurable else None

    @property
    def measurable(self) -> bool:
        """Whether there are values with statistics: complex numbers have none. [decisions]"""
        if self.path is None or (self.part is not None and not self.part.decodable):
            return False
        return not self.dtype.startswith("complex")

    @property
    def opdebug(self) -> dict[str, Any] | None:
        """The facts of an overflow (`dumpsim.codecs.opdebug.decode`); None for the tensor of any other operator."""
        if self.part is None or (self.name.op_type, self.name.op_name) != OPDEBUG or self.io != "output":
            return None
        return opdebug.decode(self.part.raw().data, self.part.label)

    @property
    def _stored_dtype(self) -> str:
        if self.path is None:
            return ""
        return self.part.dtype if self.part is not None else from_numpy(self._header[0]).name

    @property
    def record(self) -> Record:
        """Return the whole record, as a writer would create it."""
        return replace(
            self.name,
            rank=self.rank,
            graph_id=self.graph_id,
            iteration=self.iteration,
            op_name=self.op_name,
            dtype=self.dtype,
            stored_dtype=self._stored_dtype,
            shape=self.shape,
            nbytes=self.name.nbytes or self.nbytes,
        )

    def __repr__(self) -> str:
        place = f"rank {self.rank}, graph {self.graph_id}, iteration {self.iteration}"
        return f"<{self.op_type} {self.label} {self.dtype}{list(self.shape)} ({place})>"
