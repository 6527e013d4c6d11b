"""Where something bad begins, and what is known of the operators that are looked at for it."""

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
        ``made``: its inputs are good and its output is not. ``received``: an input is bad that no operator of the dump
        made; ``given``: a parameter or input of the network is; ``amplified``: its results differ beyond the tolerance
        where its inputs do not, and what its inputs differ by explains that.
    what : str
        ``nan``, ``inf``, ``nan, inf`` or ``difference``.
    rank, iteration, op_type, op_name
    tensor : str
        The bad tensor: ``output.0``, or ``NAME:input.0`` where it was seen as another operator's input.
    basis : str
        How the inputs were judged: ``inputs`` that were dumped, ``statistics`` of them, ``infinite`` (dumped inputs
        with infinities, of which NaN was made), ``graph`` (results of the operators that the graph names), ``gradient``
        (what flows into a call's backward, and all before it), ``order`` (unknown; no operator before it was
        bad), ``argument`` (a number that the script gave differs), ``detached`` (only one dump has its backward), or
        ``alone`` (only one dump has the operator).
    detail : str
        How bad: counts of NaN and infinities, or elements beyond the tolerance, the largest
        difference, the relative Euclidean distance and the cosine.
    source, code : str
        ``train.py:175`` and the text of the line, empty where the dump does not tell.
    path, other_path : str or None
        Files of the bad tensor.
    other_name : str
        The operator of the second dump.
    note : str
    next : str
        A command that shows more.
    error_in, error_out, explained : float or None
        Of two dumps: the largest relative difference of what the operator got and of what it gave, and how much of the
        latter is explained (`dumpsim.analysis.amplify.Blame`).
    verdict : str
        ``suspect``, ``ok`` (all is explained) or ``unknown``; empty for one dump.
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
    """What is known of one tensor.

    Attributes
    ----------
    entry, other : Entry
        Of the first and the second dump.
    kinds : frozenset of str
        Kinds of badness.
    detail : str
        Words about them.
    mask : bool
        Whether -inf is all that is bad, as in masks.
    infinite : bool
        Whether it has infinities, also those that it may have.
    task : Task or None
        How a pair was compared.
    counted : bool
        Whether statistics were compared in the place of elements.
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
    """An operator with its tensors judged; `alone` is the dump that has it, ``A`` or ``B``, if the other has not."""

    operator: Operator
    partner: Operator | None
    tensors: tuple[Tensor, ...]
    tolerated: frozenset[str] = frozenset()
    alone: str = ""

    def kinds(self, io: str) -> frozenset[str]:
        return frozenset(kind for one in self.tensors if one.entry.io == io for kind in one.kinds)

    def worst(self, kinds: Iterable[str], io: str) -> Tensor:
        """The first tensor of these kinds."""
        wanted = set(kinds)
        return next(one for one in self.tensors if one.entry.io == io and one.kinds & wanted)
