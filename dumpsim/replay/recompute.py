"""The evidence that `dumpsim.first` asks for: one operator of a MindSpore dump, recomputed."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.operator import Operator
from dumpsim.core.evidence import Evidence
from dumpsim.replay.call import Call, Given, call_of
from dumpsim.replay.judge import judge
from dumpsim.replay.plan import plan

__all__ = ["Recomputer"]


@dataclass(slots=True)
class Recomputer:
    """Recomputes operators of dump trees (`dumpsim.core.evidence.Recompute`).

    The runs of a dump are planned when its first operator is asked for, since what one operator was given may be in the
    files of another.

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
    _calls: dict[Path, dict[object, Call]] = field(default_factory=dict)

    def __call__(self, dumpset: DumpSet, operator: Operator, *, on: Operator | None = None) -> Evidence:
        """Return the evidence for or against an operator, see `dumpsim.core.evidence.Recompute`."""
        own = self._call(dumpset, operator)
        if on is None:
            return judge(own, factor=self.factor)
        other = call_of(on, machine=own.machine, compute=own.compute)
        if own.reason or other.reason:
            return Evidence.skip(own.reason or other.reason)
        if len(own.operands) != len(other.operands):
            return Evidence.skip(f"takes {len(own.operands)} operands, the other one {len(other.operands)}")
        operands = (
            mine if isinstance(mine, Given) else its for mine, its in zip(own.operands, other.operands, strict=True)
        )
        return judge(
            replace(own, operands=tuple(operands), outputs=other.outputs, before=other.before, shapes=other.shapes),
            factor=self.factor,
        )

    def _call(self, dumpset: DumpSet, operator: Operator) -> Call:
        if dumpset.root not in self._calls:
            whole = DumpSet(root=dumpset.root, broken=dumpset.broken)
            self._calls[dumpset.root] = {_key(one.operator): one.call for one in plan(whole)}
        found = self._calls[dumpset.root].get(_key(operator))
        return found if found is not None else call_of(operator)


def _key(operator: Operator) -> object:
    first = operator.entries[0]
    return first.path, first.rank, first.iteration, first.name.op_name, first.io, first.slot, first.timestamp
