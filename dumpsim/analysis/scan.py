"""Follows badness through the operators of a dump: who made it, who was given it, who passes it on."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from dumpsim.analysis.apiname import canonical
from dumpsim.analysis.condition import Condition
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.operator import Operator
from dumpsim.archive.naming import escape
from dumpsim.core.irdoc import IrNode, NodeRef, ParamRef

__all__ = ["INTENDED", "Finding", "Run", "Scan", "Tensor"]

# Operators whose result may hold -inf because it was put there: attention masks are filled so, and what selects or
# cuts out of such a mask keeps it. NaN and +inf are never intended. [users 23]
INTENDED = (
    "*mask*",
    "fill",
    "fillv2",
    "fillscalar",
    "fills",
    "full",
    "full_like",
    "masked_fill*",
    "maskedfill*",
    "triu",
    "tril",
)
_THROUGH = ("Load", "Depend", "MakeTuple", "TupleGetItem")  # nodes that hand on what they get, and have no files
_MONADS = ("UpdateState",)  # they order nodes, no value passes
_GIVEN = ("parameter", "data", "constant", "const")  # what comes from outside, in canonical words
_COLLECTIVE = (
    "allreduce",
    "allgather",
    "reducescatter",
    "broadcast",
    "alltoall",
    "receive",
    "hcom",
    "neighborexchange",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An operator where something bad begins.

    Attributes
    ----------
    kind : str
        ``made``: its inputs are good and its output is not. ``received``: an input is bad that no operator of the dump
        made; ``given``: a parameter or input of the network is.
    what : str
        ``nan``, ``inf``, ``nan, inf`` or ``difference``.
    rank, iteration, op_type, op_name
    tensor : str
        The bad tensor: ``output.0``.
    basis : str
        How the inputs were judged: ``inputs`` that were dumped, ``graph`` (results of the operators that the graph
        names), or ``order`` (nothing tells; no operator before it was bad).
    detail : str
        How bad: counts of NaN and infinities, or the largest difference.
    source, code : str
        ``train.py:175`` and the text of the line, empty where the dump does not tell.
    path, other_path : str or None
        Files of the bad tensor.
    other_name : str
        The operator of the second dump.
    note : str
    next : str
        A command that shows more.
    """

    kind: str
    what: str
    rank: int
    iteration: int | None
    op_type: str
    op_name: str
    tensor: str
    basis: str
    detail: str = ""
    source: str = ""
    code: str = ""
    path: str | None = None
    other_path: str | None = None
    other_name: str = ""
    note: str = ""
    next: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values by field name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """What is known of one tensor: kinds of badness, and words about them."""

    entry: Entry
    other: Entry | None
    kinds: frozenset[str]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An operator with its tensors judged."""

    operator: Operator
    partner: Operator | None
    tensors: tuple[Tensor, ...]
    tolerated: frozenset[str] = frozenset()

    def kinds(self, io: str) -> frozenset[str]:
        return frozenset(kind for one in self.tensors if one.entry.io == io for kind in one.kinds)

    def worst(self, kinds: Iterable[str], io: str) -> Tensor:
        """The first tensor of these kinds."""
        wanted = set(kinds)
        return next(one for one in self.tensors if one.entry.io == io and one.kinds & wanted)


class Scan:
    """Follows badness through the operators of each rank."""

    def __init__(
        self, *, allow: tuple[str, ...], intended: tuple[str, ...], everything: bool, words: tuple[str, str], pair: bool
    ) -> None:
        self._allow, self._intended = allow, intended
        self._everything, self._words, self._pair = everything, words, pair
        self.ranks = 1
        self._found: list[tuple[int, Finding]] = []
        self.unreadable: list[str] = []
        self.passed_on = 0
        self._known: dict[int, set[str]] = {}
        self._enough = False
        self._here: set[str] = set()
        self._bad: dict[str, frozenset[str]] = {}
        self._seen: set[str] = set()
        self._nodes: dict[int, dict[int | None, IrNode]] = {}
        self._has_inputs = True
        self._before: Operator | None = None

    def open_rank(self, rank: int, operators: Sequence[Operator]) -> None:
        """The next operators are this rank's, in the next iteration of it."""
        self._here = self._known.setdefault(rank, set())
        self._bad, self._seen, self._nodes = {}, set(), {}
        self._has_inputs = any(one.inputs for one in operators)
        self._before = None

    @property
    def enough(self) -> bool:
        """Whether no later iteration need be looked at."""
        return self._enough and not self._everything

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, by iteration and time."""
        return tuple(one for _, one in sorted(self._found, key=lambda item: (item[1].iteration or 0, item[0])))

    def allowed(self, entry: Entry, state: Condition) -> set[str]:
        """Kinds that this tensor may have."""
        names = [name.lower() for name in (entry.op_name, entry.name.op_name, entry.op_type, entry.label)]
        if any(fnmatchcase(name, pattern.lower()) for pattern in self._allow for name in names):
            return {"inf"}
        words = [*names, canonical(entry.op_type)]
        if not state.positive_inf and any(
            fnmatchcase(name, pattern.lower()) for pattern in self._intended for name in words
        ):
            return {"inf"}
        return set()

    def take(self, run: Run) -> bool:
        """Look at the next operator; True once enough is known of this rank's iteration."""
        known = set(self._here)
        self._here |= run.tolerated
        inputs, outputs = run.kinds("input") | run.tolerated, run.kinds("output")
        one = run.operator
        basis, said = self._judged(run)
        before, self._before = self._before, one
        self._seen.add(one.name)
        if outputs:
            self._bad[one.name] = outputs
        if not outputs and not run.kinds("input"):
            return False
        if one.backward:
            return self._gradient(run, before, known)
        word = canonical(one.op_type)
        made = outputs - (inputs if basis == "inputs" else said)
        if basis == "order":
            made = outputs - known
        entered = run.kinds("input") - known
        if made and basis == "inputs" and one.inputs and self.ranks > 1 and word.startswith(_COLLECTIVE):
            self._here |= outputs
            if not made <= known:
                self._report(run, "received", made, "inputs", "output", "from another rank")
            return False
        if made and word in _GIVEN:
            if not made <= known:
                self._report(run, "given", made, basis, "output")
            self._here |= outputs
            return False
        self._here |= outputs | run.kinds("input")
        if made:
            note = "from infinite inputs" if "nan" in made and "inf" in inputs else ""
            if entered and not self._pair:
                self._report(run, "received", entered, "inputs", "input", self._sender(run, entered))
            return self._report(run, "made", made, basis, "output", note)
        if entered:
            if _in_place(one) and outputs & entered:
                return self._report(
                    run, "made", entered, "order", "output", "works in place: its input was dumped after it ran"
                )
            self._report(run, "received", entered, "inputs", "input", self._sender(run, entered))
        elif outputs:
            self.passed_on += 1
        return False

    def _judged(self, run: Run) -> tuple[str, frozenset[str]]:
        """How the inputs of an operator are judged, and the kinds that its producers have."""
        one = run.operator
        dumped = one.inputs if not self._pair else [t for t in run.tensors if t.entry.io == "input"]
        if dumped:
            return "inputs", frozenset()
        names = self._producers(one.entries[0])
        if names is not None and self._seen.issuperset(names):
            return "graph", frozenset(kind for name in names for kind in self._bad.get(name, ()))
        return ("inputs", frozenset()) if self._has_inputs and not self._pair else ("order", frozenset())

    def _producers(self, entry: Entry) -> list[str] | None:
        """Names of the operators whose results an operator reads, None where no graph tells."""
        graph = entry.graph_id
        doc = entry.graphs.documents.get(graph) if graph is not None else None
        node = entry.graphs.node(entry.name.op_name, graph)
        if graph is None or doc is None or node is None:
            return None
        nodes = self._nodes.setdefault(graph, {one.index: one for one in doc.nodes})
        names: list[str] = []
        waiting, heard = [node], {node.index}
        while waiting:
            for operand in waiting.pop().operands:
                producer = nodes.get(operand.index) if isinstance(operand, NodeRef) else None
                if producer is None or producer.index in heard or producer.op_type in _MONADS:
                    continue
                heard.add(producer.index)
                if producer.op_type in _THROUGH:
                    waiting.append(producer)
                else:
                    names.append(escape(producer.full_name))
        return names

    def _gradient(self, run: Run, before: Operator | None, known: set[str]) -> bool:
        """A call's backward: what flows in is what the backward before it made."""
        kinds = run.kinds("input") - known
        self._here |= run.kinds("input")
        if not kinds:
            self.passed_on += 1
            return False
        if before is None or not before.backward:
            self._report(run, "received", kinds, "inputs", "input", "the first gradient of the step")
            return False
        note = f"seen as the gradient that flows into {run.operator.op_name}"
        return self._report(run, "made", kinds, "order", "input", note, by=before)

    def _sender(self, run: Run, kinds: Iterable[str]) -> str:
        """Where a bad input comes from, as far as a graph tells."""
        tensor = run.worst(kinds, "input")
        entry = tensor.entry
        node = entry.graphs.node(entry.name.op_name, entry.graph_id)
        if node is None or entry.slot >= len(node.operands):
            return "no operator before it in the dump has it"
        operand = node.operands[entry.slot]
        doc = entry.graphs.documents.get(entry.graph_id if entry.graph_id is not None else -1)
        if isinstance(operand, ParamRef) and doc is not None and operand.index < len(doc.params):
            return f"it is {doc.params[operand.index].name}"
        return "no operator before it in the dump has it"

    def _report(
        self,
        run: Run,
        kind: str,
        kinds: Iterable[str],
        basis: str,
        io: str,
        note: str = "",
        by: Operator | None = None,
    ) -> bool:
        bad = run.worst(kinds, io)
        one = by if by is not None else run.operator
        line = one.line
        finding = Finding(
            kind=kind,
            what=", ".join(sorted(set(kinds), reverse=True)),
            rank=one.rank,
            iteration=one.iteration,
            op_type=one.op_type if by is not None else bad.entry.op_type,
            op_name=one.op_name if by is not None else bad.entry.op_name,
            tensor=f"{bad.entry.io}.{bad.entry.slot}",
            basis=basis,
            detail=bad.detail,
            source=f"{line.path}:{line.line}" if line is not None else "",
            code=line.code.strip() if line is not None else "",
            path=str(bad.entry.path) if bad.entry.path is not None else None,
            other_path=str(bad.other.path) if bad.other is not None and bad.other.path is not None else None,
            other_name=run.partner.op_name if run.partner is not None else "",
            note=note,
            next=self._next(one if by is not None else bad.entry),
        )
        self._found.append((one.entries[0].timestamp, finding))
        if kind == "made":
            self._enough = True
            return not self._everything
        return False

    def _next(self, one: Operator | Entry) -> str:
        a, b = self._words
        words = ["dumpsim", "compare", a, b, "--all"] if b else ["dumpsim", "show", a]
        words += ["--op", one.op_name]
        if one.iteration is not None:
            words += ["--iteration", str(one.iteration)]
        if self.ranks > 1:
            words += ["--rank", str(one.rank)]
        return shlex.join(words)


def _in_place(one: Operator) -> bool:
    """Whether a call overwrites its input, of which API dumps then show what it left. [spec api_dump 1.9]"""
    name = one.op_type
    return one.api and (
        (name.endswith("_") and not name.endswith("__")) or (name.startswith("__i") and name.endswith("__"))
    )
