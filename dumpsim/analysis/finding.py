"""Findings of `first`: where something bad begins, and the judged operators and tensors."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import nan
from typing import Any

from dumpsim.analysis.entry import Entry
from dumpsim.analysis.operator import Operator
from dumpsim.analysis.verdict import Task

__all__ = ["Finding", "Run", "Tensor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An operator where something bad begins.

    Attributes
    ----------
    kind : str
        ``made``: its inputs are good and a result is bad. ``received``: an input is bad, and no operator of the dump
        made it; ``given``: a parameter or an input of the network is bad; ``amplified``: its results differ beyond the
        tolerance and its inputs do not, but the small difference of the inputs explains that.
    what : str
        ``nan``, ``inf``, ``nan, inf`` or ``difference``.
    rank, iteration, op_type, op_name
    tensor : str
        The bad tensor: ``output.0``, or ``NAME:input.0`` if it was found as another operator's input.
    basis : str
        How the inputs were judged: by ``inputs`` that were dumped, by their ``statistics``, ``infinite`` (dumped inputs
        with infinities, from which NaN was made), by the ``graph`` (results of the operators that it names),
        ``gradient`` (the input of a call's backward, and all results before it), by ``order`` (unknown; no operator
        before it was bad), ``argument`` (a number from the script differs), ``detached`` (only one dump has its
        backward), or ``alone`` (only one dump has the operator).
    detail : str
        How bad: counts of NaN and infinities, or elements beyond the tolerance, the largest
        difference, the relative Euclidean distance and the cosine.
    source, code : str
        ``train.py:175`` and the text of the line, empty if unknown.
    path, other_path : str or None
        Files of the bad tensor.
    other_name : str
        The operator of the second dump.
    note : str
    next : str
        A command that shows details.
    error_in, error_out, explained : float or None
        For two dumps: the largest relative differences of the operator's inputs and of its results, and the explained
        part of the latter (`dumpsim.analysis.amplify.Blame`).
    verdict : str
        ``suspect``, ``ok`` (explained) or ``unknown``; empty for a single dump.
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
    error_in: float | None = None
    error_out: float | None = None
    explained: float | None = None
    verdict: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values by field name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A judged tensor.

    Attributes
    ----------
    entry, other : Entry
        The tensor in the first and in the second dump.
    kinds : frozenset of str
        Kinds of badness.
    detail : str
        Their description.
    mask : bool
        Whether -inf is the only bad value, as in masks.
    infinite : bool
        Whether it has infinities, including allowed ones.
    task : Task or None
        How a pair was compared.
    counted : bool
        Whether statistics were compared instead of elements.
    error : float
        The relative difference of a pair (`Outcome.relative`).
    """

    entry: Entry
    other: Entry | None
    kinds: frozenset[str]
    detail: str
    mask: bool = False
    infinite: bool = False
    task: Task | None = None
    counted: bool = False
    error: float = nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An operator with its judged tensors; `alone` is ``A`` or ``B`` if only that dump has it."""

    operator: Operator
    partner: Operator | None
    tensors: tuple[Tensor, ...]
    tolerated: frozenset[str] = frozenset()
    alone: str = ""

    def kinds(self, io: str) -> frozenset[str]:
        return frozenset(kind for one in self.tensors if one.entry.io == io for kind in one.kinds)

    def worst(self, kinds: Iterable[str], io: str) -> Tensor:
        """Return the first tensor with one of these kinds."""
        wanted = set(kinds)
        return next(one for one in self.tensors if one.entry.io == io and one.kinds & wanted)
