"""NaN, infinities and overflows that a dump finds while it writes tensors."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dumpsim.core.events import TaskEvent
from dumpsim.core.irdoc import IrDoc, SourceLine, script_line
from dumpsim.core.record import Record

__all__ = ["Fact", "Findings", "describe"]

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
        ``output.0``; empty for an overflow, which the device reports for an operator.
    graph_id, iteration : int or None
    count : int
        Number of tensors, or of runs of operators, of this kind.
    path, line : str, int
        The script's line of the operator; "" and 0 if unknown.
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
        many = ""
        if self.count > 1:
            many = (
                f"; {self.count} runs of operators overflow" if not self.tensor else f"; {self.count} tensors have it"
            )
        return f"{self.kind} first {self.where}{many}"

    @property
    def where(self) -> str:
        """``in Log, train.py:57 (Default/Log-op0 output.0, iteration 0)``"""
        moment = "" if self.iteration is None else f", iteration {self.iteration}"
        return f"{self.operator} ({f'{self.op_name} {self.tensor}'.rstrip()}{moment})"

    @property
    def operator(self) -> str:
        """``in Log, train.py:57``; for an input, ``in input 0 of Log, train.py:57``"""
        source = f", {os.path.basename(self.path)}:{self.line}" if self.path else ""
        what = f"in {self.tensor.replace('.', ' ')} of" if self.tensor.startswith("input") else "in"
        return f"{what} {self.op_type}{source}"


def describe(facts: Sequence[Fact]) -> list[str]:
    """Return the lines for people: NaN and infinities share one, in the order in which they appeared.

    Examples
    --------
    >>> log = Fact(kind="infinity", op_type="Log", op_name="Default/Log-op0", tensor="output.0", graph_id=0,
    ...            iteration=1, count=2, path="train.py", line=13)
    >>> mul = Fact(kind="NaN", op_type="Mul", op_name="Default/Mul-op0", tensor="output.0", graph_id=0,
    ...            iteration=1, count=9, path="train.py", line=14)
    >>> print(*describe([log, mul]))
    infinity first in Log, train.py:13 (Default/Log-op0 output.0, iteration 1), then NaN in Mul, train.py:14; \
2 tensors have infinity, 9 NaN
    """
    values = [fact for fact in facts if fact.tensor]
    lines = [str(fact) for fact in facts if not fact.tensor or len(values) == 1]
    if len(values) < 2:
        return lines
    first, second = values
    counts = (
        f"{first.count} tensor{' has' if first.count == 1 else 's have'} {first.kind}, {second.count} {second.kind}"
    )
    if (first.op_name, first.tensor, first.iteration) == (second.op_name, second.tensor, second.iteration):
        head = f"{first.kind} and {second.kind} first {first.where}"
    else:
        after = second.operator if second.path else second.where
        head = f"{first.kind} first {first.where}, then {second.kind} {after}"
    return [f"{head}; {counts}", *lines]


@dataclass(frozen=True, slots=True)
class _First:
    """The first occurrence of a kind of finding."""

    op_type: str
    op_name: str
    tensor: str
    graph_id: int | None
    iteration: int | None


class Findings:
    """The first NaN, infinity and overflow, and their counts.

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
        """Record a dumped tensor with non-finite elements."""
        tensor = f"{record.io}.{record.slot}"
        for kind, found in ((_NAN, nan), (_INFINITY, infinite)):
            if found:
                self._count(kind, record.op_type, record.op_name, tensor, record.graph_id, record.iteration)

    def overflow(self, event: TaskEvent, graph_id: int, iteration: int) -> None:
        """Record that the device raised its overflow flag in a kernel."""
        self._count(_OVERFLOW, event.op_type, event.full_name, "", graph_id, iteration)

    def facts(self, docs: Mapping[int, IrDoc]) -> tuple[Fact, ...]:
        """NaN and infinities in the order in which they appeared, then overflows.

        `docs` are the compiled graphs by id, which know the script's lines.
        """
        found = []
        for kind, first in sorted(self._first.items(), key=lambda item: item[0] == _OVERFLOW):
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
    """Return the script's line of an operator, from its own graph or from another one with such an operator."""
    own = [docs[graph_id]] if graph_id is not None and graph_id in docs else []
    for doc in (*own, *docs.values()):
        for node in doc.nodes:
            if node.full_name == op_name:
                return script_line((*node.sources, *(line for _, lines in node.more_sources for line in lines)))
    return None
