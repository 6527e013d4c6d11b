"""One tensor of a dump on disk: what its name, header, statistics row and graph say, each read when asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dumpsim.analysis.graphindex import GraphIndex
from dumpsim.analysis.place import Place
from dumpsim.codecs import npy
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import UnreadableError
from dumpsim.core.irdoc import SourceLine
from dumpsim.core.record import Record
from dumpsim.tensor.stats import Statistics, statistics

__all__ = ["Entry"]

_FRAMEWORK = ("site-packages/mindspore/", "dumpsim/frontends/")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A tensor of a dump.

    Attributes
    ----------
    name : Record
        What the file name or the statistics row tells.
    place : Place
        Rank, net, graph and iteration.
    path : Path or None
        The npy file; None where only statistics were dumped.
    row : mapping
        The statistics row by field (``max``, ``l2norm``, ``md5``), empty where there is none.
    graphs : GraphIndex
    """

    name: Record
    place: Place
    path: Path | None
    row: Mapping[str, Any]
    graphs: GraphIndex

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
        """Full scope name where a graph tells it, else the name in the file."""
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
        """Original number type; the stored one where the name does not tell."""
        return self.name.dtype or from_numpy(self._header[0]).name

    @property
    def shape(self) -> tuple[int, ...]:
        return self._header[1] if self.path is not None else self.name.shape

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor in its file, or as its statistics row counts them."""
        if self.path is None:
            return self.name.nbytes
        kind, shape = self._header
        return int(np.prod(shape, dtype=np.int64)) * kind.itemsize

    @property
    def label(self) -> str:
        """``Default/fc1-Dense/MatMul-op0:output.0``"""
        return f"{self.op_name}:{self.io}.{self.slot}"

    @property
    def source(self) -> tuple[SourceLine, ...]:
        """The script's lines that made the operator, outermost first; empty where no graph tells."""
        return self.graphs.lines(self.name.op_name, self.graph_id)

    @property
    def script_line(self) -> SourceLine | None:
        """The innermost line that is the script's own, not the framework's."""
        return next((line for line in reversed(self.source) if not any(mark in line.path for mark in _FRAMEWORK)), None)

    def array(self) -> "np.ndarray[Any, Any]":
        """The tensor, memory-mapped and read-only.

        Raises
        ------
        UnreadableError
            Where only statistics were dumped, or the file is no sound npy file.
        """
        if self.path is None:
            _ = self._header
        assert self.path is not None
        return npy.read(self.path)

    @cached_property
    def statistics(self) -> Statistics:
        """Statistics of the tensor file, computed in one pass."""
        return statistics(self.array())

    def statistic(self, field: str) -> Any:
        """One statistic: from the row that was dumped with it, else computed."""
        if field in self.row:
            return self.row[field]
        return getattr(self.statistics, field) if self.path is not None else None

    @property
    def record(self) -> Record:
        """The whole record, as a writer would make it."""
        return replace(
            self.name,
            rank=self.rank,
            graph_id=self.graph_id,
            iteration=self.iteration,
            op_name=self.op_name,
            dtype=self.dtype,
            stored_dtype=from_numpy(self._header[0]).name if self.path is not None else "",
            shape=self.shape,
            nbytes=self.name.nbytes or self.nbytes,
        )

    def __repr__(self) -> str:
        place = f"rank {self.rank}, graph {self.graph_id}, iteration {self.iteration}"
        return f"<{self.op_type} {self.label} {self.dtype}{list(self.shape)} ({place})>"
