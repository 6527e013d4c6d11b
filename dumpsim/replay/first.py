"""`dumpsim.first` with evidence: operators whose inputs do not explain their outputs are recomputed."""

from functools import wraps
from typing import Any

from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.first import Search
from dumpsim.analysis.first import first as search
from dumpsim.analysis.operator import Operator
from dumpsim.core.evidence import Evidence
from dumpsim.replay.recompute import Recomputer
from dumpsim.replay.torchcall import torch_evidence

__all__ = ["Evidences", "first"]


class Evidences:
    """Recomputes operators of any dump: calls of torch by torch, operators of MindSpore by the operator table."""

    def __init__(self) -> None:
        self._recomputer = Recomputer()

    def __call__(self, dumpset: DumpSet, operator: Operator, *, on: Operator | None = None) -> Evidence:
        """Return the evidence for or against an operator, see `dumpsim.core.evidence.Recompute`."""
        if operator.api:
            return torch_evidence(dumpset, operator, on=on)
        if on is not None and on.api:
            return Evidence.skip("a call of an API dump cannot be recomputed with the arguments of an operator")
        return self._recomputer(dumpset, operator, on=on)


@wraps(search)
def first(*dumps: Any, **options: Any) -> Search:
    options.setdefault("recompute", Evidences())
    return search(*dumps, **options)
