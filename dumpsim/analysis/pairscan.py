"""Finds the operator where two dumps diverge: ranks the operators of an iteration by unexplained difference."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

from dumpsim.analysis.amplify import SUSPECT, Blame, Growth, argument, explain, largest
from dumpsim.analysis.apiname import canonical
from dumpsim.analysis.apitree import ApiEntry
from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.finding import Run, Tensor
from dumpsim.analysis.flow import PASSING, call_of, readers
from dumpsim.analysis.operator import Operator
from dumpsim.analysis.remark import crept, jumped, some
from dumpsim.analysis.scan import COLLECTIVE, GIVEN, Scan, has_weights, in_place, joined
from dumpsim.core.evidence import Evidence, Recompute

__all__ = ["PairScan"]

_RECOMPUTED = 64  # operators to recompute per iteration: those with the largest excess
_LEAST = 1e-3  # of a relative difference that is beyond the tolerance: of any other nothing is said


@dataclass(slots=True, kw_only=True)
class _Candidate:
    """An operator that may have caused a difference."""

    run: Run
    growth: Growth
    bad: Tensor | None
    basis: str
    io: str = "output"
    by: Operator | None = None  # the maker, if the difference was found at another operator
    note: str = ""
    number: int = 1  # index of the run in the iteration
    made: bool = False  # by tolerance alone: the inputs agree, the results do not
    evidence: Evidence | None = None

    @property
    def operator(self) -> Operator:
        return self.by if self.by is not None else self.run.operator

    @property
    def beyond(self) -> bool:
        """Whether the difference is beyond the tolerance."""
        return self.basis == "detached" or self.bad is None or bool(self.bad.kinds)

    def blame(self) -> Blame:
        one, growth = self.operator, self.growth
        verdict = "unknown" if growth.error_out != growth.error_out else "suspect" if growth.excess > SUSPECT else "ok"
        partner = self.run.partner
        return Blame(
            rank=one.rank,
            iteration=one.iteration,
            op_type=one.op_type,
            op_name=one.op_name,
            other_name=partner.op_name if partner is not None and self.by is None else "",
            tensor=""
            if self.bad is None
            else f"{self.io}.{self.bad.entry.slot}"
            if self.by is None
            else self.bad.entry.label,
            error_in=growth.error_in,
            error_out=growth.error_out,
            explained=growth.explained,
            verdict=verdict,
            basis=growth.basis,
            reason=growth.reason,
        )


class PairScan(Scan):
    """Follows differences through the operators of two dumps.

    Parameters
    ----------
    recompute : Recompute, optional
        Checks whether operators with an unexplained difference compute the same as their counterparts.
    dumps : tuple of DumpSet
        Arguments for `recompute`.
    tolerated : bool
        Whether the user gave tolerances: then differences within them are not reported.
    **options
        See `Scan`.
    """

    def __init__(
        self,
        *,
        recompute: "Recompute[DumpSet, Operator] | None",
        dumps: tuple[DumpSet, DumpSet],
        tolerated: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._tolerated = tolerated
        self._recompute, self._dumps = recompute, dumps
        self._ranked: list[Blame] = []
        self._clean: dict[int, tuple[int | None, bool]] = {}  # the last iteration of a rank, if all of it agreed
        self._reset()

    def _reset(self) -> None:
        self._candidates: list[_Candidate] = []
        self._forward: list[Run] = []
        self._backward: list[Run] = []
        self._worst = 0.0  # largest difference of all results so far
        self._errors: dict[str, float] = {}
        self._told = len(self._found)

    @property
    def ranking(self) -> tuple[Blame, ...]:
        """The operators of the iterations that differ, the least explained first."""
        return tuple(self._ranked)

    def take(self, run: Run) -> bool:
        """Examine the next operator; an iteration is always examined to its end."""
        one = run.operator
        if run.alone:
            self._alone.append(run)
            return False
        self._runs[one.name] += 1
        self._seen.add(one.name)
        if one.backward:
            self._backward.append(run)
            return False
        self._forward.append(run)
        arguments = [tensor for tensor in run.tensors if argument(tensor) and tensor.kinds]
        run = replace(run, tensors=tuple(tensor for tensor in run.tensors if not argument(tensor)))
        self._forward_run(run, arguments)
        error = largest(tensor for tensor in run.tensors if tensor.entry.io == "output")
        if error == error:
            self._worst = max(self._worst, error)
            self._errors[one.name] = max(error, self._errors.get(one.name, 0.0))
        return False

    def _forward_run(self, run: Run, arguments: Sequence[Tensor]) -> None:
        one, word = run.operator, canonical(run.operator.op_type)
        known = set(self._here)
        inputs, outputs = run.kinds("input"), run.kinds("output")
        basis, said = self._judged(run)
        if outputs:
            self._bad[one.name] = outputs
        made = outputs - (inputs if basis == "inputs" else said)
        if basis == "order":
            made = outputs - known
        entered = inputs - known
        self._here |= outputs | inputs
        if made and basis == "inputs" and one.inputs and self.ranks > 1 and word.startswith(COLLECTIVE):
            if not made <= known:
                self._report(run, "received", made, "inputs", "output", "from another rank")
            return
        if word in GIVEN:
            if made and not made <= known:
                self._report(run, "given", made, basis, "output")
            return
        if entered and not made:
            if in_place(one) and outputs & entered:
                basis, made = "order", outputs
            elif (source := self._from_alone(run.worst(entered, "input"))) is not None:
                self._alone_made(source, run, entered)
                return
            elif not arguments:
                self._report(run, "received", entered, "inputs", "input", self._sender(run, entered))
        elif outputs and not made and not arguments:
            self.passed_on += 1
        self._add(run, basis, bool(made), arguments)

    def _alone_made(self, source: tuple[Run, list[str]], run: Run, kinds: frozenset[str]) -> None:
        """Record the operator of one dump alone whose result arrives here."""
        maker, through = source
        bad = run.worst(kinds, "input")
        if canonical(maker.operator.op_type) in GIVEN:
            note = f"only {maker.alone} dumped it; it reaches {bad.entry.label}"
            self._report(run, "given", kinds, "alone", "input", note, by=maker.operator)
            return
        note = f"{'B' if maker.alone == 'A' else 'A'} has no such operator; its result reaches {bad.entry.label}"
        note += f" through {some(through)}" if through else ""
        growth = replace(
            explain(maker.operator.op_type, (), (bad,)), basis="alone", reason=f"only {maker.alone} has it"
        )
        self._candidates.append(
            _Candidate(
                run=run, growth=growth, bad=bad, basis="alone", io="input", by=maker.operator, note=note, made=True
            )
        )

    def _add(self, run: Run, basis: str, made: bool, arguments: Sequence[Tensor]) -> None:
        """Record how much of an operator's difference its inputs explain."""
        one = run.operator
        gave = [tensor for tensor in run.tensors if tensor.entry.io == "output"]
        got = [
            tensor for tensor in run.tensors if tensor.entry.io == "input" and not (in_place(one) and basis == "order")
        ]
        if not gave:
            return
        growth = explain(one.op_type, got, gave)
        if basis != "inputs" or not got:
            before = self._before_it(run, basis)
            growth = replace(growth, error_in=before, explained=max(growth.explained, 3 * before))
        bad = max(gave, key=lambda tensor: (bool(tensor.kinds), tensor.error if tensor.error == tensor.error else -1.0))
        note = ""
        if arguments and growth.excess > SUSPECT:
            basis, note = "argument", _arguments(arguments)
            growth = replace(growth, basis="argument", reason=note)
        if growth.error_out > 0 or made:
            number = self._runs[one.name]
            self._candidates.append(
                _Candidate(run=run, growth=growth, bad=bad, basis=basis, note=note, made=made, number=number)
            )

    def _before_it(self, run: Run, basis: str) -> float:
        """Return the largest difference of possible inputs of an operator without dumped inputs."""
        if basis == "order":
            return self._worst
        reads = self._reads(run.operator)
        return max((self._errors[name] for name in reads if name in self._errors), default=0.0)

    # -- the end of an iteration

    def close(self) -> None:
        """Rank the operators of the iteration, and report the first one."""
        runs = [*self._forward, *self._backward]
        if not runs:
            self._reset()
            return
        detached = self._detached()
        self._gradients({one.operator.op_name for one in detached})
        self._candidates += detached
        beyond = any(one.kinds(io) for one in runs for io in ("input", "output"))
        self._weigh()
        ranked = sorted(self._candidates, key=lambda one: -one.growth.magnitude)
        one = self._forward[0].operator if self._forward else self._backward[0].operator
        bad = beyond or bool(detached) or len(self._found) > self._told
        if bad or self._everything:
            self._ranked += [candidate.blame() for candidate in ranked if candidate.growth.error_out > 0]
        if bad:
            self._accuse(ranked)
        self._clean[one.rank] = (one.iteration, not (beyond or detached) and bool(self._backward))
        self._reset()

    def _weigh(self) -> None:
        """Recompute the operators with an unexplained difference."""
        if self._recompute is None:
            return
        asked = [
            one for one in self._candidates if one.growth.excess > SUSPECT and one.by is None and one.io == "output"
        ]
        for one in sorted(asked, key=lambda one: -one.growth.excess)[:_RECOMPUTED]:
            own, other = one.run.operator, one.run.partner
            if other is None or one.basis in ("argument", "detached"):
                continue
            found = self._evidence(own, other)
            if found.verdict == "skipped":
                continue
            one.evidence = found
            error = one.growth.error_out
            if found.verdict == "ok":
                one.growth = replace(one.growth, explained=error, basis="recomputed", reason="its inputs explain it")
            else:
                explained = error / found.excess if isfinite(found.excess) and found.excess > 1 else 0.0
                one.growth = replace(
                    one.growth, explained=min(explained, one.growth.explained), basis="recomputed", reason=found.reason
                )

    def _evidence(self, own: Operator, other: Operator) -> Evidence:
        """Return whether the function of one side turns the other side's inputs into the other side's results."""
        assert self._recompute is not None
        a, b = self._dumps
        for dump, function, on in ((b, other, own), (a, own, other)):
            found = self._recompute(dump, function, on=on)
            if found.verdict != "skipped":
                return found
        each = [self._recompute(a, own), self._recompute(b, other)]
        return next((one for one in each if one.verdict == "suspect"), Evidence.skip(each[0].reason))

    def _accuse(self, ranked: Sequence[_Candidate]) -> None:
        """Report the first operator of the ranking; if none stands out, the first beyond the tolerance."""
        suspects = [one for one in ranked if one.growth.excess > SUSPECT]
        far = [one for one in suspects if one.beyond]
        if far:
            for one in far if self._everything else far[:1]:
                self._report_candidate(one, "made")
            return
        if len(self._found) > self._told:
            return
        if suspects and not self._tolerated:
            note = "its result is within the tolerance, and what follows is not"
            suspects[0].note = joined(note, suspects[0].note) if suspects[0].basis != "detached" else suspects[0].note
            self._report_candidate(suspects[0], "made")
            return
        crossed = next((one for one in self._candidates if one.made), None)
        if crossed is not None:
            explained = crossed.growth.basis in ("recomputed", "function") and crossed.growth.error_in > 0
            self._report_candidate(crossed, "amplified" if explained else "made")

    def _report_candidate(self, one: _Candidate, kind: str) -> None:
        """Add a candidate to the findings."""
        run, bad = one.run, one.bad
        assert bad is not None
        got = [tensor for tensor in run.tensors if tensor.entry.io == "input"]
        basis = one.basis
        note = one.note if basis == "detached" else joined(one.note, self._caveat(one.operator, basis))
        if one.by is None:
            near = "" if any(tensor.kinds for tensor in got) else crept(bad, got)
            note = joined(note, self._optimizer(one), jumped(bad.entry.op_type, bad, got) or near)
            if basis == "inputs" and any(tensor.counted for tensor in got):
                basis = "statistics"
        kinds = bad.kinds or frozenset({"difference"})
        self._report(run, kind, kinds, basis, one.io, note, by=one.by, bad=bad, blame=one.blame(), number=one.number)

    def _optimizer(self, one: _Candidate) -> str:
        """Return a remark that the iteration before agrees, so that only updated weights can differ."""
        last, clean = self._clean.get(one.operator.rank, (None, False))
        here = one.operator.iteration
        if not clean or last is None or here is None or here != last + 1 or not has_weights(one.operator):
            return ""
        return f"all of iteration {last} agrees, gradients too: look at the optimizer, which updated its weights"

    # -- gradients

    def _gradients(self, detached: set[str]) -> None:
        """Assign the incoming gradient of a call to the backward of the calls that read its result."""
        back = {call_of(run.operator): run for run in self._backward}
        forward = {call_of(run.operator): run for run in self._forward}
        read = self._readers()
        before: Run | None = None
        for run in self._backward:
            gave = [tensor for tensor in run.tensors if tensor.entry.io == "input"]
            call = call_of(run.operator)
            makers = [name for name in read.get(call, ()) if name in forward]
            if not makers and before is not None and read.get(call) is None:
                makers = [call_of(before.operator)]
            if not makers and before is None and self._forward:
                makers = [call_of(self._forward[-1].operator)]
            previous, before = before, run
            if not gave or largest(gave) == 0:
                continue
            made = bool(run.kinds("input")) and not (previous is not None and previous.kinds("input"))
            known = [name for name in makers if name in forward or name in back]
            if not known:
                if made:
                    self._report(
                        run, "received", run.kinds("input"), "inputs", "input", "the first gradient of the step"
                    )
                continue
            self._add_gradient(run, gave, [(name, back.get(name), forward.get(name)) for name in known], made)

    def _add_gradient(
        self, run: Run, gave: Sequence[Tensor], makers: "Sequence[tuple[str, Run | None, Run | None]]", made: bool
    ) -> None:
        got: list[Tensor] = []
        for _, back, forward in makers:
            got += [tensor for tensor in back.tensors if tensor.entry.io == "input"] if back is not None else []
            got += [tensor for tensor in forward.tensors if not argument(tensor)] if forward is not None else []
        # a sum passes gradients on: among several readers, one with another function is more likely
        _, back, forward = next(
            (one for one in makers if one[2] is None or canonical(one[2].operator.op_type) not in PASSING), makers[0]
        )
        source = back if back is not None else forward
        assert source is not None
        maker = source.operator
        growth = explain(f"{maker.op_type}Grad", got, gave, gradient=True)
        growth = replace(growth, basis="gradient")
        bad = max(gave, key=lambda tensor: (bool(tensor.kinds), tensor.error if tensor.error == tensor.error else -1.0))
        note = f"seen as the gradient that flows into {run.operator.op_name}"
        if back is None:
            note = joined("the first gradient of the step, made by the backward of its result" if made else "", note)
        note = joined(note, jumped(f"{maker.op_type}Grad", bad, got) or crept(bad, got) if bad.kinds else "")
        self._candidates.append(
            _Candidate(run=run, growth=growth, bad=bad, basis="gradient", io="input", by=maker, note=note, made=made)
        )

    def _readers(self) -> dict[str, list[str]]:
        """Return the calls of the first dump that read a call's results, there or in the second dump."""
        alone = [one.operator for one in self._alone if not one.operator.backward]
        ours = [*(run.operator for run in self._forward), *alone]
        theirs = {call_of(run.partner): call_of(run.operator) for run in self._forward if run.partner is not None}
        found = readers(map(_parts, sorted(ours, key=lambda one: one.entries[0].timestamp)))
        partners = [run.partner for run in self._forward if run.partner is not None]
        for maker, names in readers(map(_parts, partners)).items():
            mine = found.setdefault(theirs[maker], [])
            mine += [theirs[name] for name in names if theirs[name] not in mine]
        return found

    def _detached(self) -> list[_Candidate]:
        """Report calls with a backward in only one dump, although the readers of their results have one in both."""
        lone = {"A": set[str](), "B": set[str]()}
        for one in self._alone:
            if one.operator.backward:
                lone[one.alone].add(call_of(one.operator))
        back = {call_of(run.operator) for run in self._backward}
        if not back or not any(lone.values()):
            return []
        read = self._readers()
        found: list[_Candidate] = []
        missing: list[tuple[Run, str]] = []
        for run in self._forward:
            name, other = call_of(run.operator), call_of(run.partner) if run.partner is not None else ""
            if name not in back and (name in lone["A"]) != (other in lone["B"]):
                missing.append((run, "B" if name in lone["A"] else "A"))
        if not any(has_weights(run.operator) for run, _ in missing) and not any(
            run.kinds("input") for run in self._backward
        ):
            return []
        for run, side in missing:
            name = call_of(run.operator)
            after = [reader for reader in read.get(name, ()) if reader in back]
            if not after:
                continue
            outputs = [tensor for tensor in run.tensors if tensor.entry.io == "output"] or list(run.tensors)
            if not outputs:
                continue
            note = (
                f"{side} has no gradient of its result, the other dump has one; {after[0]}, which reads it, has one "
                f"in both: {side} detaches the tensor there or before"
            )
            found.append(
                _Candidate(
                    run=run,
                    growth=Growth(error_in=0.0, error_out=inf, explained=0.0, basis="gradient", reason="detached"),
                    bad=outputs[-1],
                    basis="detached",
                    note=note,
                )
            )
        return found[-1:]


def _parts(one: Operator) -> tuple[str, tuple[Entry, ...], tuple[Entry, ...]]:
    """Return the name of a call, its inputs and its results."""
    return call_of(one), one.inputs, one.outputs


def _arguments(arguments: Sequence[Tensor]) -> str:
    """Describe the arguments that differ."""
    said = []
    for one in arguments[:3]:
        values = [f"{entry.line.max:g}" for entry in (one.entry, one.other) if isinstance(entry, ApiEntry)]
        said.append(f"its argument {one.entry.io}.{one.entry.slot} is {' in A and '.join(values)} in B")
    return "; ".join(said)
