"""Find the first bad operator of one or two dumps: `dumpsim.first` and the command of that name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

from dumpsim.analysis.amplify import Blame, magnitude
from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.dumpset import open as open_dump
from dumpsim.analysis.finding import Finding
from dumpsim.analysis.namemap import NameMap
from dumpsim.analysis.operator import Operator
from dumpsim.analysis.pairing import MATCHING, flags
from dumpsim.analysis.pairscan import PairScan
from dumpsim.analysis.scan import INTENDED, Scan
from dumpsim.analysis.stream import Group, of_one, of_two
from dumpsim.core.errors import BadInputError
from dumpsim.core.evidence import Recompute

__all__ = ["Search", "first"]


@dataclass(frozen=True, kw_only=True)
class Search:
    """The result of a search; iteration yields the findings, the earliest first.

    Attributes
    ----------
    findings : tuple of Finding
    operators, tensors : int
        Numbers of examined operators and tensors; for two dumps, those of both.
    passed_on : int
        Operators whose bad results only come from bad inputs.
    skipped : tuple of (str, int)
        Numbers of tensors that could not be examined, by reason.
    unmatched : tuple of str
        A sentence for each rank and iteration that only one dump has.
    idle : tuple of str
        A sentence for each pattern of `tol` and `allow` that matches no tensor, and each name that no call has.
    unreadable : tuple of str
        Errors of unreadable files.
    ranking : tuple of Blame
        For two dumps: the operators of the iterations that differ, sorted by the power of ten by which their difference
        exceeds the explained one, then by execution order.
    """

    findings: tuple[Finding, ...]
    operators: int
    tensors: int = 0
    passed_on: int = 0
    skipped: tuple[tuple[str, int], ...] = ()
    unmatched: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    ranking: tuple[Blame, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def maker(self) -> Finding | None:
        """The operator that made the first bad result, or None."""
        made = [one for one in self.findings if one.kind == "made"]
        earliest = [one for one in made if one.iteration == made[0].iteration]
        return max(earliest, key=_magnitude, default=None)


def _magnitude(one: Finding) -> int:
    return magnitude(nan if one.error_out is None else one.error_out, nan if one.explained is None else one.explained)


def first(
    a: "str | Path | DumpSet",
    b: "str | Path | DumpSet | None" = None,
    *,
    allow: Sequence[str] = (),
    intended: Sequence[str] = INTENDED,
    tol: Iterable[str] = (),
    match: str = "number",
    name_map: NameMap | None = None,
    everything: bool = False,
    recompute: "Recompute[DumpSet, Operator] | None" = None,
    jobs: int | None = 1,
    scheduler: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Search:
    """Find the operator that made a NaN, an infinity or a difference, as opposed to those that pass it on.

    Parameters
    ----------
    a, b : path or DumpSet
        One dump: find the first operator with finite inputs and a non-finite result. Two dumps: find the first operator
        whose inputs agree and whose results differ. Inputs that were not dumped are judged by the graph, if there is
        one, or else by the order of execution.
    allow : sequence of str
        Globs on name, type or label (``*Add-op0:input.1``) of tensors that may hold infinities.
    intended : sequence of str
        The same for results whose only bad value is -inf; by default masks and the operators that fill them. Unless
        empty, inputs of the network may hold -inf, too.
    tol, match, name_map, jobs, scheduler
        See `dumpsim.compare`.
    everything : bool
        Continue after the first maker and in later iterations, and count the operators that pass it on.
    recompute : Recompute
        For two dumps: applies the function of an operator to the inputs of its counterpart
        (`dumpsim.core.evidence.Recompute`); `dumpsim.first` has one. None: judge results by the inputs alone.
    progress : callable
        ``progress(operators)``, with the number examined so far.

    Returns
    -------
    Search

    Raises
    ------
    UnreadableError
        If a path holds no dump.
    BadInputError
        For an invalid tolerance, an unknown name or way of matching, and options for another number of dumps.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> place = Path(tempfile.mkdtemp()) / "rank_0" / "Net" / "0" / "0"
    >>> place.mkdir(parents=True)
    >>> for n, (name, value) in enumerate([("Log-op0.input", 0.0), ("Log-op0.output", -np.inf),
    ...                                    ("Exp-op0.input", -np.inf), ("Exp-op0.output", np.nan)]):
    ...     kind, _, io = name.partition("-op0.")
    ...     file = f"{kind}.Default_{kind}-op0.0.0.170000000000000{n}.{io}.0.DefaultFormat.npy"
    ...     np.save(place / file, np.full(2, value, np.float32))
    >>> finding, = first(place)
    >>> finding.kind, finding.what, finding.op_name, finding.tensor
    ('made', 'inf', 'Default_Log-op0', 'output.0')
    """
    rules = tuple(tol)
    for_two = {"tol": bool(rules), "match": match != MATCHING[0], "name_map": name_map is not None}
    for_one = {"allow": bool(allow), "intended": tuple(intended) != INTENDED}
    for name, given in (for_two if b is None else for_one).items():
        if given:
            said = "two dumps, and there is one" if b is None else "one dump; of two, whatever differs is looked for"
            raise BadInputError(f"is for {said}", where=name)
    options: dict[str, Any] = {
        "allow": tuple(allow),
        "intended": tuple(intended),
        "everything": everything,
        "words": tuple(str(one.root if isinstance(one, DumpSet) else one) for one in (a, b) if one is not None),
        "options": flags(rules, match, name_map),
    }
    scan: Scan = Scan(**options)
    ranked: PairScan | None = None
    if b is not None:
        opened = (a if isinstance(a, DumpSet) else open_dump(a)), (b if isinstance(b, DumpSet) else open_dump(b))
        scan = ranked = PairScan(recompute=recompute, dumps=opened, tolerated=bool(rules), **options)
    stream = (
        of_one(a, scan, jobs, scheduler) if b is None else of_two(a, b, scan, rules, match, name_map, jobs, scheduler)
    )
    operators = tensors = 0
    group: Group | None = None
    done: Group | None = None  # skip the rest of this rank and iteration
    with closing(stream):
        for here, run in stream:
            if here is not group:
                scan.close()
                if scan.enough and (group is None or here.iteration != group.iteration or scan.ranks == 1):
                    break
                group = here
                scan.open_rank(here.rank, here.iteration, here.operators)
            if done is group:
                continue
            operators += bool(run.tensors)
            tensors += len(run.tensors)
            if progress is not None:
                progress(operators)
            if scan.take(run):
                if scan.ranks == 1:
                    break
                done = group
    scan.close()
    return Search(
        findings=scan.findings,
        operators=operators,
        tensors=tensors,
        passed_on=scan.passed_on,
        skipped=tuple(sorted(scan.skipped.items())),
        unmatched=scan.unmatched,
        idle=scan.idle,
        unreadable=tuple(dict.fromkeys(scan.unreadable)),
        ranking=ranked.ranking if ranked is not None else (),
    )
