"""Evidence for `dumpsim.first`: recompute one operator of a MindSpore dump."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.operator import Operator
from dumpsim.core.evidence import Evidence
from dumpsim.replay.call import Absent, Call, Constant, call_of, definition_of
from dumpsim.replay.gegraph import GeOp
from dumpsim.replay.judge import judge
from dumpsim.replay.plan import API, machine_of, near, plan, whole_graphs

__all__ = ["Recomputer"]


@dataclass(slots=True)
class Recomputer:
    """Recomputes operators of dump trees (`dumpsim.core.evidence.Recompute`).

    If an operator's own files and its node in the graph do not show all of its inputs, the files of other operators
    may: then the runs of its iteration and of the one before are planned.

    Examples
    --------
    >>> import tempfile, numpy as np, dumpsim
    >>> from dumpsim.analysis.operator import operators
    >>> place = Path(tempfile.mkdtemp()) / "rank_0" / "Net" / "0" / "0"
    >>> place.mkdir(parents=True)
    >>> for stamp, (io, value) in enumerate([("input.0", [-1, 2]), ("output.0", [0, 2.5])]):
    ...     name = f"ReLU.Default_ReLU-op0.0.0.170000000000000{stamp}.{io}.DefaultFormat.npy"
    ...     np.save(place / name, np.array(value, np.float32))
    >>> dump = dumpsim.open(place)
    >>> Recomputer()(dump, operators(dump)[0])
    Evidence(error=0.5, explained=0.0, verdict='suspect', reason='output.0[1]')
    """

    factor: float = 1.0
    _ge: dict[Path, dict[str, GeOp]] = field(default_factory=dict)
    _calls: dict[Path, tuple[object, dict[object, Call]]] = field(default_factory=dict)  # of one iteration

    def __call__(self, dumpset: DumpSet, operator: Operator, *, on: Operator | None = None) -> Evidence:
        """Return the evidence for or against an operator, see `dumpsim.core.evidence.Recompute`."""
        if operator.api:
            return Evidence.skip(API)
        whole = DumpSet(root=dumpset.root, broken=dumpset.broken)
        if whole.root not in self._ge:
            self._ge[whole.root] = whole_graphs(whole)
        own = call_of(operator, machine=machine_of(operator.entries), ge=self._ge[whole.root])
        if on is None:
            return judge(own if _complete(own) else self._planned(whole, operator, own), factor=self.factor)
        other = call_of(on, machine=own.machine, compute=own.compute)
        if own.reason or other.reason:
            return Evidence.skip(own.reason or other.reason)
        if len(own.operands) != len(other.operands):
            return Evidence.skip(f"takes {len(own.operands)} operands, the other operator {len(other.operands)}")
        operands = (
            mine if isinstance(mine, Constant) else its for mine, its in zip(own.operands, other.operands, strict=True)
        )
        return judge(
            replace(own, operands=tuple(operands), outputs=other.outputs, before=other.before, shapes=other.shapes),
            factor=self.factor,
        )

    def _planned(self, whole: DumpSet, operator: Operator, own: Call) -> Call:
        """Return the call with inputs from the files of other operators."""
        place = operator.entries[0].place
        where = place.rank, place.step, place.iteration
        known, calls = self._calls.get(whole.root, (None, {}))
        if known != where:
            runs = plan(near(whole, operator), ge=self._ge[whole.root])
            calls = {_key(one.operator): one.call for one in runs}
            self._calls[whole.root] = where, calls
        return calls.get(_key(operator), own)


def _complete(call: Call) -> bool:
    """Whether a call needs no files of other operators."""
    definition = definition_of(call.op_type)
    overwrites = definition is not None and bool(definition.updates)
    return bool(call.reason) or not (overwrites or any(isinstance(one, Absent) for one in call.operands))


def _key(operator: Operator) -> object:
    first = operator.entries[0]
    return first.path, first.rank, first.iteration, first.name.op_name, first.io, first.slot, first.timestamp
