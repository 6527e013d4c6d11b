"""Follows bad values through the operators of a dump: which made them, received them, pass them on."""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from dumpsim.analysis.align import PUT_IN
from dumpsim.analysis.amplify import Blame
from dumpsim.analysis.apiname import canonical
from dumpsim.analysis.condition import Condition
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.finding import Finding, Run, Tensor
from dumpsim.analysis.operator import Operator
from dumpsim.analysis.reads import reads_of
from dumpsim.analysis.remark import measured, same, some
from dumpsim.archive.naming import escape
from dumpsim.core.irdoc import IrNode

__all__ = ["COLLECTIVE", "GIVEN", "INTENDED", "Scan", "has_weights", "in_place", "joined"]

# Operators whose result may hold -inf on purpose: those that fill attention masks, and those that select or slice
# them. NaN and +inf are never intended. [users 23]
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
GIVEN = ("parameter", "data", "constant", "const")  # inputs of the network, in canonical words
COLLECTIVE = (
    "allreduce",
    "allgather",
    "reducescatter",
    "broadcast",
    "alltoall",
    "receive",
    "hcom",
    "neighborexchange",
)
# the commonest mistake of ports from torch, whose new modules are in training mode [MindSpore 2.10, torch 2.13]
_MODE = "so may its mode: a new cell of MindSpore is in evaluation mode until net.set_train()"
# modules that have weights, which an API dump does not have, in canonical words [spec api_dump 1.3; torch 2.13]
_WEIGHTED = (
    *(
        "dense",
        "bidense",
        "conv?d*",
        "batchnorm*",
        "layernorm*",
        "groupnorm*",
        "instancenorm*",
        "rmsnorm*",
        "embedding*",
    ),
    *("lstm*", "gru*", "rnn*", "prelu", "multiheadattention", "transformer*", "lazy*", "syncbatchnorm"),
)
_LOOKED_BACK = 64  # operators of one dump alone to search for the source of a difference


class Scan:
    """Follows bad values through the operators of each rank."""

    def __init__(
        self,
        *,
        allow: tuple[str, ...],
        intended: tuple[str, ...],
        everything: bool,
        words: tuple[str, ...],
        options: tuple[str, ...],
    ) -> None:
        self.allow, self._intended, self._everything = allow, intended, everything
        self._words, self._options, self._pair = words, options, len(words) > 1
        self.ranks = 1
        self._found: list[tuple[int, Finding]] = []
        self.unreadable: list[str] = []
        self.unmatched: tuple[str, ...] = ()
        self.idle: tuple[str, ...] = ()
        self.skipped: Counter[str] = Counter()
        self.passed_on = 0
        self._known: dict[int, set[str]] = {}
        self._here: set[str] = set()
        self._bad: dict[str, frozenset[str]] = {}
        self._seen: set[str] = set()
        self._nodes: dict[int, dict[int | None, IrNode]] = {}
        self._has_inputs = True
        self._before: Run | None = None
        self._alone: list[Run] = []
        self._runs: Counter[str] = Counter()
        self._last: dict[int, int | None] = {}
        self._gap = ""

    def open_rank(self, rank: int, iteration: int | None, operators: Sequence[Operator]) -> None:
        """Begin the next iteration of a rank."""
        self._here = self._known.setdefault(rank, set())
        self._bad, self._seen, self._nodes = {}, set(), {}
        self._has_inputs = any(one.inputs for one in operators)
        self._before = None
        self._alone, self._runs = [], Counter()
        last = self._last.get(rank)
        gap = last is not None and iteration is not None and iteration - last > 1
        self._gap = f"; the iterations between {last} and {iteration} were not dumped" if gap else ""
        self._last[rank] = iteration

    @property
    def enough(self) -> bool:
        """Return whether later iterations can be skipped: a bad value of one is in the weights of the next."""
        return bool(self._found) and not self._everything

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings, by iteration and time."""
        return tuple(one for _, one in sorted(self._found, key=lambda item: (item[1].iteration or 0, item[0])))

    def allowed(self, entry: Entry, state: Condition) -> set[str]:
        """Return the bad kinds that this tensor may have."""
        if any(map(entry.answers, self.allow)):
            return {"inf"}
        word = canonical(entry.op_type)
        if not state.positive_inf and any(
            entry.answers(pattern) or fnmatchcase(word, pattern.lower()) for pattern in self._intended
        ):
            return {"inf"}
        return set()

    def take(self, run: Run) -> bool:
        """Examine the next operator; return True if the rest of this iteration can be skipped."""
        known = set(self._here)
        self._here |= run.tolerated
        inputs, outputs = run.kinds("input") | run.tolerated, run.kinds("output")
        one = run.operator
        basis, said = self._judged(run)
        before, self._before = self._before, run
        self._seen.add(one.name)
        self._runs[one.name] += 1
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
        entered = frozenset(kind for one in self._unmasked(run, "input") for kind in one.kinds) - known
        if made and basis == "inputs" and one.inputs and self.ranks > 1 and word.startswith(COLLECTIVE):
            self._here |= outputs
            if not made <= known:
                self._report(run, "received", made, "inputs", "output", "from another rank")
            return False
        if made and word in GIVEN:
            if not made <= known and self._unmasked(run, "output"):
                self._report(run, "given", made, basis, "output")
            self._here |= outputs
            return False
        self._here |= outputs | run.kinds("input")
        if made:
            if entered:
                self._report(run, "received", entered, "inputs", "input", self._sender(run, entered))
            return self._made(run, made, basis)
        if entered:
            if in_place(one) and outputs & entered:
                return self._report(
                    run, "made", entered, "order", "output", "works in place: its input was dumped after it ran"
                )
            self._report(run, "received", entered, "inputs", "input", self._sender(run, entered))
        elif outputs:
            self.passed_on += 1
        return False

    def _unmasked(self, run: Run, io: str) -> list[Tensor]:
        """Return bad inputs of the network that no mask explains."""
        return [one for one in run.tensors if one.entry.io == io and one.kinds and not (one.mask and self._intended)]

    def _judged(self, run: Run) -> tuple[str, frozenset[str]]:
        """Return how the inputs of an operator are judged, and the bad kinds of their producers."""
        one = run.operator
        dumped = one.inputs if not self._pair else [t for t in run.tensors if t.entry.io == "input"]
        if dumped:
            return "inputs", frozenset()
        reads = reads_of(one.entries[0], self._nodes)
        if reads is not None and self._seen.issuperset(names := reads.producers):
            return "graph", frozenset(kind for name in names for kind in self._bad.get(name, ()))
        return ("inputs", frozenset()) if self._has_inputs and not self._pair else ("order", frozenset())

    def _made(self, run: Run, made: frozenset[str], basis: str) -> bool:
        """Report a maker, with other possible causes."""
        got = [one for one in run.tensors if one.entry.io == "input"]
        if "nan" in made and any(one.infinite for one in got):
            return self._report(run, "made", made, "infinite", "output")
        return self._report(run, "made", made, basis, "output", self._caveat(run.operator, basis))

    def _reads(self, one: Operator) -> Sequence[str]:
        """Return the operators that make an operator's inputs, according to the graph."""
        reads = reads_of(one.entries[0], self._nodes)
        return reads.producers if reads is not None else ()

    def close(self) -> None:
        """End the iteration of this rank."""

    def _caveat(self, one: Operator, basis: str) -> str:
        """Return a remark on inputs of the operator that were not dumped."""
        if basis == "graph" and (reads := reads_of(one.entries[0], self._nodes)) is not None:
            names = [name for name in reads.parameters if escape(name) not in self._seen]
            if names:
                return f"not dumped, and perhaps bad before: {some(names)}"
        if basis == "order" and (others := self._others()):
            return f"ran before it in one dump alone: {some(others)}"
        if one.api and has_weights(one):
            weights = f"an API dump does not have its weights: they may {'differ' if self._pair else 'be bad'}"
            moded = self._pair and canonical(one.op_type) == "batchnorm"
            return joined(weights, _MODE if moded else "")
        return ""

    def _gradient(self, run: Run, before: Run | None, known: set[str]) -> bool:
        """Examine the backward of a call: its incoming gradient was made by the backward before it."""
        kinds = run.kinds("input") - known
        self._here |= run.kinds("input")
        if not kinds:
            self.passed_on += 1
            return False
        if before is None or not before.operator.backward:
            self._report(run, "received", kinds, "inputs", "input", "the first gradient of the step")
            return False
        maker = before.operator
        note = joined(f"seen as the gradient that flows into {run.operator.op_name}", self._caveat(maker, "gradient"))
        return self._report(run, "made", kinds, "gradient", "input", note, by=maker)

    def _sender(self, run: Run, kinds: Iterable[str]) -> str:
        """Return where a bad input comes from, as far as the graph shows."""
        entry = run.worst(kinds, "input").entry
        reads = reads_of(entry, self._nodes)
        name = reads.given(entry.slot) if reads is not None else ""
        said = f"it is {name}" if name else "no operator before it in the dump has it"
        if not name and (others := self._others()):
            said += f"; ran before it in one dump alone: {some(others)}"
        return said + self._gap

    def _others(self) -> list[str]:
        """Return operators of one dump alone, the latest first, without those that compilers insert."""
        return [one.operator.op_name for one in self._alone[::-1] if canonical(one.operator.op_type) not in PUT_IN]

    def _from_alone(self, bad: Tensor) -> tuple[Run, list[str]] | None:
        """Return the first operator of one dump alone on the path of a bad tensor, and the names of the others."""
        chain: list[Run] = []
        for side, entry in (("A", bad.entry), ("B", bad.other)):
            wanted = [entry] if entry is not None else []
            candidates = [one for one in self._alone if one.alone == side][-_LOOKED_BACK:]
            while candidates and wanted:
                one = candidates.pop()
                if any(same(mine, want) for want in wanted for mine in one.operator.outputs):
                    chain.append(one)
                    wanted = list(one.operator.inputs)
            if chain:
                break
        if not chain or canonical(chain[-1].operator.op_type) in PUT_IN:
            return None
        return chain[-1], [one.operator.op_name for one in chain[-2::-1]]

    def _report(
        self,
        run: Run,
        kind: str,
        kinds: Iterable[str],
        basis: str,
        io: str,
        note: str = "",
        by: Operator | None = None,
        bad: Tensor | None = None,
        blame: Blame | None = None,
        number: int | None = None,
    ) -> bool:
        bad = run.worst(kinds, io) if bad is None else bad
        one = by if by is not None else run.operator
        line = one.line
        if kind == "given":
            note = (note + self._gap).removeprefix("; ")
        number = self._runs[one.name] if number is None else number
        if by is None and number > 1:
            note = joined(note, f"in its run number {number} of the iteration")
        finding = Finding(
            kind=kind,
            what=", ".join(sorted(set(kinds), reverse=True)),
            rank=one.rank,
            iteration=one.iteration,
            op_type=one.op_type if by is not None else bad.entry.op_type,
            op_name=one.op_name if by is not None else bad.entry.op_name,
            tensor=f"{bad.entry.io}.{bad.entry.slot}" if by is None else bad.entry.label,
            basis=basis,
            detail=measured(bad),
            source=f"{line.path}:{line.line}" if line is not None else "",
            code=line.code.strip() if line is not None else "",
            path=str(bad.entry.path) if bad.entry.path is not None else None,
            other_path=str(bad.other.path) if bad.other is not None and bad.other.path is not None else None,
            other_name=run.partner.op_name if run.partner is not None and by is None else "",
            note=note,
            next=self._next(one if by is not None else bad.entry, run),
            **({} if blame is None else measures(blame)),
        )
        self._found.append((one.entries[0].timestamp, finding))
        return kind == "made" and not self._everything

    def _next(self, one: Operator | Entry, run: Run) -> str:
        """Return a command that shows the operator, with iteration and rank if both dumps have the same."""
        command = ["compare", *self._words, "--all"] if self._pair else ["show", *self._words]
        words = ["dumpsim", *command, "--op", one.op_name, *self._options]
        other = run.partner if run.partner is not None else one
        step = run.operator.entries[0].place.step
        if one.iteration is not None and other.iteration == one.iteration:
            words += ["--iteration", str(one.iteration)]
        if not self._pair and step is not None:
            words += ["--step", str(step)]
        if (one.rank or self.ranks > 1) and other.rank == one.rank:
            words += ["--rank", str(one.rank)]
        return shlex.join(words)


def has_weights(one: Operator) -> bool:
    """Return whether a call of an API dump belongs to a module with weights."""
    return one.op_name.startswith("NN_") and any(fnmatchcase(canonical(one.op_type), word) for word in _WEIGHTED)


def measures(blame: Blame) -> dict[str, Any]:
    """Return the errors of a finding; None for unknown ones."""
    numbers = {name: getattr(blame, name) for name in ("error_in", "error_out", "explained")}
    return {name: value if value == value else None for name, value in numbers.items()} | {"verdict": blame.verdict}


def joined(*said: str) -> str:
    """Join several remarks."""
    return "; ".join(filter(None, said))


def in_place(one: Operator) -> bool:
    """Return whether a call overwrites its input, so that the dumped input is its result. [spec api_dump 1.9]"""
    name = one.op_type
    return one.api and (
        (name.endswith("_") and not name.endswith("__")) or (name.startswith("__i") and name.endswith("__"))
    )
