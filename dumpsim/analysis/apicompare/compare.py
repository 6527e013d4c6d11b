"""api_dump_compare: two API dumps in, the documented tables out."""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any

from dumpsim.analysis.apicompare.align import Group, align
from dumpsim.analysis.apicompare.difference import Tolerance
from dumpsim.analysis.apicompare.parameters import PARAMETER_FILES, compare_parameters
from dumpsim.analysis.apicompare.result import ApiComparison, Divergence, StepComparison, first_divergence
from dumpsim.analysis.apicompare.rows import Finding, Style, compare_table, findings, mapping_table, paired
from dumpsim.analysis.apicompare.source import Call, Dump, open_dump
from dumpsim.analysis.apicompare.table import Table
from dumpsim.core.errors import ScriptTypeError

__all__ = ["api_dump_compare", "compare_api_dumps"]

_LOG = logging.getLogger("troubleshooter.log")
_NOTHING = (0.0, 0.0, 0.0)  # equal to itself, as calls without inputs are alike in that
# [spec api_dump 2.1, 2.3, 2.4]
_STEPS = (
    "The number of steps in origin_path and target_path are different. There are {} steps in origin_path, and {} "
    "steps in target_path. Only the data of the previous {} steps will be compared!"
)
_NO_NPY = "npy files not found, use pkl files to compare."
_NO_VALUES = "all the data in the pkl files are nan."
_NO_MODELS = "Couldn't find saved models in {} and {}. Model state_dicts will not be compared."


def api_dump_compare(
    origin_path: "str | os.PathLike[str]",
    target_path: "str | os.PathLike[str]",
    output_path: "str | os.PathLike[str] | None" = None,
    *,
    rtol: float = 1e-4,
    atol: float = 1e-4,
    equal_nan: bool = False,
    ignore_unmatched: bool = False,
    ignore_backward: bool = False,
) -> ApiComparison:
    """Compare two API dumps: print the tables, write them, and return them.

    Parameters
    ----------
    origin_path, target_path : str or path
        The ``output_path`` of `api_dump_init`, or the directory of one of its ranks. Frameworks are told by the names
        of the files; any two may be compared.
    output_path : str or path, optional
        Where the tables are written; without it they are only shown.
    rtol, atol : float
        Numbers ``a``, ``b`` are close when ``|a - b| <= atol + rtol * |b|``.
    equal_nan : bool
        Whether two NaN are close.
    ignore_unmatched : bool
        Leave rows out that nothing answers; the mapping keeps them.
    ignore_backward : bool
        Compare the forward run alone.

    Returns
    -------
    ApiComparison
        The tables by step, ``first`` (the first divergence, with its stack), ``to_csv`` and ``to_pandas``.

    Raises
    ------
    BadInputError
        A path holds no API dump; a ValueError with the vendor's text.
    ScriptTypeError
        An argument has another type than the documented one.
    UnreadableError
        A file of a dump is damaged.
    DumpWriteError
        The tables cannot be written.
    UnsupportedError
        There are files of state_dicts and torch, which reads them, is not installed; the tables are written before.

    Notes
    -----
    Files: ``ts_api_mapping_N.csv`` (not with MindTorch), ``ts_api_forward_compare_N.csv`` and
    ``ts_api_backward_compare_N.csv`` for each step N. Without npy files on both sides the statistics are compared.
    As in troubleshooter 1.0.17, except that the last step needs no backward run, values decide between calls that names
    and shapes leave equal, modules named on one side alone never stand in for a call, and old files are replaced whole.

    Examples
    --------
    >>> api_dump_compare("no/such/dump", "no/such/dump")
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.BadInputError: origin_path is not a valid dump path
    ...
    """
    result, parameters = compare_api_dumps(
        origin_path,
        target_path,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        ignore_unmatched=ignore_unmatched,
        ignore_backward=ignore_backward,
        progress=sys.stderr.isatty(),
    )
    for note in result.notes:
        _LOG.warning("[*User Warning*] %s", note)
    if result.steps:
        print(result.console(colour=sys.stdout.isatty()))
    if output_path is not None:
        result.to_csv(output_path)
    if parameters is not None:
        table = parameters()
        print(table.console(colour=sys.stdout.isatty()))
        result = ApiComparison(steps=result.steps, first=result.first, notes=result.notes, parameters=table)
    return result


def compare_api_dumps(
    origin_path: "str | os.PathLike[str]",
    target_path: "str | os.PathLike[str]",
    *,
    rtol: float = 1e-4,
    atol: float = 1e-4,
    equal_nan: bool = False,
    ignore_unmatched: bool = False,
    ignore_backward: bool = False,
    progress: bool = False,
) -> tuple[ApiComparison, Callable[[], Table] | None]:
    """Compare without printing or writing; also what compares the parameters, where both nets kept theirs."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        _check(name, value, float)
    for name, value in (
        ("equal_nan", equal_nan),
        ("ignore_unmatched", ignore_unmatched),
        ("ignore_backward", ignore_backward),
    ):
        _check(name, value, bool)
    dumps = open_dump(origin_path, "origin_path"), open_dump(target_path, "target_path")
    style = Style(
        frameworks=(dumps[0].framework, dumps[1].framework),
        arrays=dumps[0].has_arrays and dumps[1].has_arrays,
        tolerance=Tolerance(rtol=rtol, atol=atol, equal_nan=bool(equal_nan)),
    )
    counts = [len(dump.steps) for dump in dumps]
    notes = [] if counts[0] == counts[1] else [_STEPS.format(*counts, min(counts))]
    has_values = style.arrays
    if not style.arrays and min(counts):
        notes.append(_NO_NPY)
        has_values = dumps[0].has_statistics and dumps[1].has_statistics
        notes += [] if has_values else [_NO_VALUES]
    parameters, missing = _parameters(dumps, style)
    notes += missing
    steps = _steps(dumps, style, has_values, ignore_unmatched, ignore_backward, progress)
    result = ApiComparison(steps=steps, first=_first(steps, dumps), notes=tuple(notes))
    return result, parameters


def _check(name: str, value: Any, wanted: type) -> None:
    """The vendor's check of a type; what is false passes. [spec api_dump 1.10]"""
    if value and not isinstance(value, wanted):
        raise ScriptTypeError(
            f"{value!r} is not of type {wanted.__name__}",
            where=name,
            code="DS-API-013",
            vendor=f"The parameter '{name}' must be {wanted}",
        )


def _steps(
    dumps: tuple[Dump, Dump],
    style: Style,
    has_values: bool,
    ignore_unmatched: bool,
    ignore_backward: bool,
    progress: bool,
) -> tuple[StepComparison, ...]:
    """All steps that both sides have."""
    signatures = _signature(dumps[0]), _signature(dumps[1])
    aligned = [
        (one, other, align(one.calls, other.calls, signatures))
        for one, other in zip(dumps[0].steps, dumps[1].steps, strict=False)
    ]
    total = sum(len(call.inputs) + len(call.outputs) + len(call.grads) for one, _, _ in aligned for call in one.calls)
    compared = []
    with _bar(total, progress and has_values) as tick:
        for number, (one, other, groups) in enumerate(aligned):
            wants = has_values, has_values and not ignore_backward and (one.has_backward or other.has_backward)
            compared.append(_step(number, groups, wants, dumps, style, ignore_unmatched, tick))
    return tuple(compared)


def _step(
    number: int,
    groups: Sequence[Group],
    wants: tuple[bool, bool],
    dumps: tuple[Dump, Dump],
    style: Style,
    ignore_unmatched: bool,
    tick: Callable[[], None],
) -> StepComparison:
    """The tables of one step."""
    tables: list[Table | None] = []
    found: list[tuple[Finding, ...]] = []
    for direction, wanted in zip(("forward", "backward"), wants, strict=True):
        rows = tuple(findings(paired(groups, direction), dumps, style, tick)) if wanted else ()
        found.append(rows)
        tables.append(
            compare_table(rows, direction, style, number, ignore_unmatched=ignore_unmatched) if wanted else None
        )
    return StepComparison(
        step=number,
        mapping=mapping_table(groups, style, number),
        forward=tables[0],
        backward=tables[1],
        writes_mapping=not style.mindtorch,
        findings=tuple(chain.from_iterable(found)),
    )


def _signature(dump: Dump) -> Callable[[Call], Sequence[float]]:
    """Six numbers of a call: statistics of its first input and its last output."""

    def signature(call: Call) -> Sequence[float]:
        ends = (call.inputs[:1], call.outputs[-1:])
        return [v for end in ends for v in (dump.statistics(end[0].record) if end else _NOTHING)]

    return signature


def _first(steps: Sequence[StepComparison], dumps: tuple[Dump, Dump]) -> Divergence | None:
    """The first divergence, with the stacks of its call."""
    found = first_divergence(steps)
    if found is None:
        return None
    step, finding = found
    assert finding.origin is not None  # only pairs have a verdict
    assert finding.target is not None
    name = finding.origin.name
    cause = "gradient" if name.direction == "backward" else "operator" if name.io == "output" else "input"
    return Divergence(
        step=step.step,
        direction=name.direction,
        origin=finding.origin.record.name,
        target=finding.target.record.name,
        cause=cause,
        origin_stack=dumps[0].stack(name.call),
        target_stack=dumps[1].stack(finding.target.name.call),
    )


def _parameters(dumps: tuple[Dump, Dump], style: Style) -> tuple[Callable[[], Table] | None, list[str]]:
    """What compares the state_dicts of a MindTorch net and its PyTorch original, or why nothing does."""
    if set(style.frameworks) != {"mindtorch", "torch"}:
        return None, []
    paths = [dump.rank_dir / PARAMETER_FILES[dump.framework] for dump in dumps]
    if not all(path.is_file() for path in paths):
        return None, [_NO_MODELS.format(dumps[0].rank_dir, dumps[1].rank_dir)]
    return lambda: compare_parameters(paths[0], paths[1], style.tolerance), []


def _bar(total: int, shown: bool) -> "AbstractContextManager[Callable[[], None]]":
    """A progress bar on stderr, or nothing."""
    if not shown:
        return nullcontext(_no_tick)
    return _Bar(total)


def _no_tick() -> None:
    """No bar, no progress."""


class _Bar:
    """A progress bar; what it hands out is called once for each array."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("comparing", total=total)
        self._count = 0

    def __enter__(self) -> Callable[[], None]:
        self._progress.start()
        return self._tick

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _tick(self) -> None:
        self._count += 1
        if self._count % 64 == 0:
            self._progress.advance(self._task, 64)
