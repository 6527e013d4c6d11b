"""The result of comparing two API dumps: tables and the first divergence."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dumpsim.analysis.apicall import Call
from dumpsim.analysis.apicompare.rows import Finding
from dumpsim.analysis.apicompare.table import Table
from dumpsim.analysis.apiname import canonical
from dumpsim.analysis.coverage import MIN_MATCHED, Coverage
from dumpsim.analysis.flow import PASSING, readers
from dumpsim.analysis.frame import frames
from dumpsim.analysis.wholefile import write_whole
from dumpsim.core.errors import DumpWriteError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ApiComparison", "Divergence", "StepComparison"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first array that differs beyond the tolerance.

    Attributes
    ----------
    step : int
    direction : str
        ``forward`` or ``backward``.
    origin, target : str
        Names of the records.
    cause : str
        ``operator`` if all inputs of the call agree; ``input`` if an input already differs, which happens only for the
        first array of a run and after calls without a counterpart; ``gradient`` in the backward run.
    maker : str
        For a gradient, the call whose backward made it, with an incoming gradient that agrees. Empty if unknown.
    origin_stack, target_stack : tuple of str
        The stack of the call, or of a gradient's maker, innermost frame first; empty if the dump has none.
    """

    step: int
    direction: str
    origin: str
    target: str
    cause: str
    maker: str = ""
    origin_stack: tuple[str, ...] = ()
    target_stack: tuple[str, ...] = ()

    def __str__(self) -> str:
        cause = _CAUSES[self.cause] + (f" that the backward of {self.maker} made" if self.maker else "")
        lines = [
            f"First divergence (step {self.step}, {self.direction}): {self.origin} differs from {self.target} ({cause})"
        ]
        for side, stack in (("origin", self.origin_stack), ("target", self.target_stack)):
            lines += [f"  {side}: {' '.join(frame.split())}" for frame in stack]
        return "\n".join(lines)


_CAUSES = {
    "operator": "its inputs agree",
    "input": "it went in different",
    "gradient": "a gradient",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepComparison:
    """The tables of one step.

    Attributes
    ----------
    step : int
    mapping : Table
    forward, backward : Table or None
        None if there is nothing to compare.
    writes_mapping : bool
        False for MindTorch, which writes no such file.
    findings : tuple of Finding
        All pairs, in the order of the origin's run.
    calls : tuple of Call
        Those of the origin.
    """

    step: int
    mapping: Table
    forward: Table | None
    backward: Table | None
    writes_mapping: bool = True
    findings: tuple[Finding, ...] = field(default=(), repr=False)
    calls: tuple[Call, ...] = field(default=(), repr=False)

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Return file names and tables, in the order in which the console shows them."""
        if self.writes_mapping:
            yield f"ts_api_mapping_{self.step}.csv", self.mapping
        if self.forward is not None:
            yield f"ts_api_forward_compare_{self.step}.csv", self.forward
        if self.backward is not None:
            yield f"ts_api_backward_compare_{self.step}.csv", self.backward


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiComparison:
    """The comparison of two API dumps.

    Attributes
    ----------
    steps : tuple of StepComparison
    first : Divergence or None
        The first array, in the order of the origin's run, that differs beyond the tolerance.
    notes : tuple of str
        Remarks: different numbers of steps, missing npy files, missing values.
    parameters : Table or None
        Parameters of a MindTorch net against those of its PyTorch original.
    directories : pair of str or None
        Directories of the compared npy files.
    coverage : Coverage
        Calls with a counterpart.
    """

    steps: tuple[StepComparison, ...]
    first: Divergence | None = None
    notes: tuple[str, ...] = ()
    parameters: Table | None = None
    directories: tuple[str, str] | None = None
    coverage: Coverage = Coverage()  # noqa: RUF009

    @property
    def matched(self) -> float:
        """The share of calls that have a counterpart (`Coverage.share`)."""
        return self.coverage.share

    @property
    def passes(self) -> bool:
        """Whether nothing differs beyond the tolerance, and half of the calls of one dump have a counterpart."""
        return self.first is None and not self.coverage.shortfall(MIN_MATCHED)

    def to_csv(self, directory: "str | os.PathLike[str]") -> list[Path]:
        """Write the documented files to a directory.

        The directory is made where it is missing. A file that is there is replaced as a whole.

        Produces::

            DIRECTORY/ts_api_mapping_0.csv
            DIRECTORY/ts_api_forward_compare_0.csv
            DIRECTORY/ts_api_backward_compare_0.csv

        Raises
        ------
        DumpWriteError
        """
        root = Path(directory)
        written = []
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise DumpWriteError(str(error), where=os.fspath(root), code="DS-API-012") from error
        for step in self.steps:
            for name, table in step.tables():  # readable by the owner alone [spec api_dump 2.3]
                write_whole(os.fspath(root / name), [table.csv().encode()])
                written.append(root / name)
        return written

    def to_pandas(self) -> "pd.DataFrame":
        """All rows of the tables after the columns ``step`` and ``direction`` (extra ``report``)."""
        pandas = frames("pandas")
        tables = []
        for step in self.steps:
            for direction, table in (("forward", step.forward), ("backward", step.backward)):
                if table is not None:
                    frame = table.to_pandas()
                    frame.insert(0, "direction", direction)
                    frame.insert(0, "step", step.step)
                    tables.append(frame)
        rows: pd.DataFrame = pandas.DataFrame({"step": [], "direction": []})
        return pandas.concat(tables, ignore_index=True) if tables else rows

    def console(self, *, colour: bool = False) -> str:
        """The tables as the console shows them, then the first divergence."""
        parts = [] if self.parameters is None else [self.parameters.console(colour=colour)]
        parts += [table.console(colour=colour) for step in self.steps for _, table in step.tables()]
        return "\n".join([*parts, *([str(self.first)] if self.first else [])])

    def __str__(self) -> str:
        return "\n".join([*self.notes, self.console()])


def first_divergence(steps: Sequence[StepComparison]) -> tuple[StepComparison, Finding, Finding | None] | None:
    """The step and the pair that differ first; of a gradient also a pair of the call whose backward made it.

    That is a call that reads the result of which this is the gradient, also a loss of which no gradient was dumped; of
    several one whose backward one dump alone has, or else one with a function of its own. Where values do not tell who
    reads it, it is the call whose backward ran before.
    """
    for step in steps:
        passed: list[Finding] = []  # gradients, since the last that nothing answers
        for finding in step.findings:
            if finding.passes is False:
                if finding.origin is None or finding.origin.parts.direction == "forward":
                    return step, finding, None
                before = (one for one in reversed(passed) if _call(one) != _call(finding))
                return step, finding, _reader(step, _call(finding)) or next(before, None)
            if finding.passes is None:
                passed.clear()
            elif finding.origin is not None and finding.origin.parts.direction == "backward":
                passed.append(finding)
    return None


def _reader(step: StepComparison, call: str) -> Finding | None:
    """A pair of the call that made the gradient by the result of another one."""
    pairs: dict[str, Finding] = {}
    for one in step.findings:
        if one.origin is not None and one.target is not None:
            pairs[_call(one)] = one  # of several the last: a gradient
    alone = {_call(one) for one in step.findings if one.target is None and one.origin is not None}
    read = readers((one.name, one.inputs, one.outputs) for one in step.calls)
    found = [name for name in read.get(call, ()) if name in pairs]
    order = sorted(found, key=lambda name: (name not in alone, canonical(_api(pairs[name])) in PASSING))
    return pairs[order[0]] if order else None


def _api(finding: Finding) -> str:
    return finding.origin.parts.api if finding.origin is not None else ""


def _call(finding: Finding) -> str:
    """Return the name of the origin's call."""
    return finding.origin.parts.call if finding.origin is not None else ""
