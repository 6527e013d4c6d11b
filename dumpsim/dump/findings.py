"""What a dump happens to learn about its tensors while it writes them: NaN, infinities, overflows."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from dumpsim.core.events import TaskEvent
from dumpsim.core.irdoc import IrDoc, SourceLine, script_line
from dumpsim.core.record import Record

__all__ = ["Fact", "Findings"]

_NAN, _INFINITY, _OVERFLOW = "NaN", "infinity", "overflow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """The first tensor or operator of a kind.

    Attributes
    ----------
    kind : str
        ``NaN``, ``infinity`` or ``overflow``.
    op_type, op_name : str
    tensor : str
        ``output.0``; empty for an overflow, which the device reports of an operator.
    graph_id, iteration : int or None
    count : int
        Tensors or runs of operators of this kind.
    path, line : str, int
        The script's line that made the operator; "" and 0 where no graph tells.
    """

    kind: str
    op_type: str
    op_name: str
    tensor: str
    graph_id: int | None
    iteration: int | None
    count: int
    path: str = ""
    line: int = 0

    def __str__(self) -> str:
        """``NaN first in Log, train.py:57 (Default/Log-op0 output.0, iteration 0); 3 tensors have it``"""
        source = f", {os.path.basename(self.path)}:{self.line}" if self.path else ""
        place = f"{self.op_name} {self.tensor}".rstrip()
        moment = "" if self.iteration is None else f", iteration {self.iteration}"
        what = f"in {self.tensor.replace('.', ' ')} of" if self.tensor.startswith("input") else "in"
        many = ""
        if self.count > 1:
            many = (
                f"; {self.count} runs of operators overflow" if not self.tensor else f"; {self.count} tensors have it"
            )
        return f"{self.kind} first {what} {self.op_type}{source} ({place}{moment}){many}"


@dataclass(frozen=True, slots=True)
class _First:
    """Where something was seen first."""

    op_type: str
    op_name: str
    tensor: str
    graph_id: int | None
    iteration: int | None


class Findings:
    """First NaN, first infinity and first overflow, and how many there are of each.

    Examples
    --------
    >>> findings = Findings()
    >>> record = Record(op_type="Log", op_name="Default/Log-op0", io="output", slot=0, dtype="float32", shape=(2,),
    ...                 timestamp=1, iteration=0)
    >>> findings.see(record, nan=True, infinite=False)
    >>> print(*findings.facts({}))
    NaN first in Log (Default/Log-op0 output.0, iteration 0)
    """

    def __init__(self) -> None:
        self._first: dict[str, _First] = {}
        self._counts: dict[str, int] = {}

    def see(self, record: Record, *, nan: bool, infinite: bool) -> None:
        """A tensor with elements that are not finite was dumped."""
        tensor = f"{record.io}.{record.slot}"
        for kind, found in ((_NAN, nan), (_INFINITY, infinite)):
            if found:
                self._count(kind, record.op_type, record.op_name, tensor, record.graph_id, record.iteration)

    def overflow(self, event: TaskEvent, graph_id: int, iteration: int) -> None:
        """The device raised its overflow flag in a kernel."""
        self._count(_OVERFLOW, event.op_type, event.full_name, "", graph_id, iteration)

    def facts(self, docs: Mapping[int, IrDoc]) -> tuple[Fact, ...]:
        """What was found, NaN first; `docs` are the compiled graphs by id, which know the script's lines."""
        found = []
        for kind in (_NAN, _INFINITY, _OVERFLOW):
            first = self._first.get(kind)
            if first is None:
                continue
            line = _line(first.op_name, first.graph_id, docs)
            found.append(
                Fact(
                    kind=kind,
                    op_type=first.op_type,
                    op_name=first.op_name,
                    tensor=first.tensor,
                    graph_id=first.graph_id,
                    iteration=first.iteration,
                    count=self._counts[kind],
                    path="" if line is None else line.path,
                    line=0 if line is None else line.line,
                )
            )
        return tuple(found)

    def _count(
        self, kind: str, op_type: str, op_name: str, tensor: str, graph_id: int | None, iteration: int | None
    ) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if kind not in self._first:
            self._first[kind] = _First(op_type, op_name, tensor, graph_id, iteration)


def _line(op_name: str, graph_id: int | None, docs: Mapping[int, IrDoc]) -> SourceLine | None:
    """The script's line of an operator: of its own graph, else of any that has one of that name."""
    own = [docs[graph_id]] if graph_id is not None and graph_id in docs else []
    for doc in (*own, *docs.values()):
        for node in doc.nodes:
            if node.full_name == op_name:
                return script_line((*node.sources, *(line for _, lines in node.more_sources for line in lines)))
    return None
