"""`api_dump_compare`: compares two API dumps and writes the documented tables."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from dumpsim.analysis.apicall import Call, shapes
from dumpsim.analysis.apicompare.options import Options
from dumpsim.analysis.apicompare.parameters import PARAMETER_FILES, compare_parameters
from dumpsim.analysis.apicompare.result import ApiComparison, Divergence, StepComparison, first_divergence
from dumpsim.analysis.apicompare.rows import Finding, Style, compare_table, findings, mapping_table, paired
from dumpsim.analysis.apicompare.source import Dump, frameworks, open_dump, ranks
from dumpsim.analysis.apicompare.table import Table
from dumpsim.analysis.apicompare.vendormapping import vendor_groups
from dumpsim.analysis.callgroup import Group, align
from dumpsim.analysis.coverage import MIN_MATCHED, Coverage
from dumpsim.analysis.coverage import Group as CallNames
from dumpsim.analysis.namemap import NameMap, Names, read_names
from dumpsim.core.errors import UnreadableError

__all__ = ["api_dump_compare", "compare_api_dumps"]

_LOG = logging.getLogger("troubleshooter.log")
# [spec api_dump 2.1, 2.3, 2.4]
_STEPS = (
    "The number of steps in origin_path and target_path are different. There are {} steps in origin_path, and {} "
    "steps in target_path. Only the data of the previous {} steps will be compared!"
)
_DIRECTORIES = "The compare directory information:\n The orig dir: %s \n The target dir: %s"
_NO_NPY = "npy files not found, use pkl files to compare."
_NO_VALUES = "all the data in the pkl files are nan."
_NO_FILES = "{} records in {} have no npy file, and are not compared; the first is {}."
_OTHER_RANKS = "Only {} is compared, not {} beside it; the directory of a rank compares that one."
_OTHER_FRAMEWORKS = "{} holds dumps of {}; that of {} is compared."
_UNUSED = "No call in origin_path is of these APIs of name_map: {}."
_NO_MODELS = "Couldn't find saved models in {} and {}. Model state_dicts will not be compared."
_DEFAULTS = Options()


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
    convinced_match_method: Literal["recursion", "global", "simple"] | None = None,
    compat: str | None = None,
    name_map: NameMap | None = None,
    **kwargs: Any,
) -> ApiComparison:
    """Compare two API dumps: print the tables, write them, and return them.

    Parameters
    ----------
    origin_path, target_path : str or path
        The ``output_path`` of `api_dump_init`, or the directory of one of its ranks. The names of the files show the
        framework; any two may be compared, each from a directory of its own.
    output_path : str or path, optional
        Directory for the tables; without it they are only printed.
    rtol, atol : float
        Numbers ``a``, ``b`` are close if ``|a - b| <= atol + rtol * |b|``.
    equal_nan : bool
        Whether two NaN are close.
    ignore_unmatched : bool
        Leave out rows without a counterpart; the mapping keeps them.
    ignore_backward : bool
        Compare only the forward run.
    convinced_match_method : {'recursion', 'global', 'simple'}, optional
        Map the calls as the real tool does with this argument (its default is ``recursion``): only by names, shapes and
        counts. Without it, values are used as well.
    compat : {None, '1.0.17'}
        The real tool exactly: its mapping, its steps (the last is lost unless a backward run follows), cosines by the
        BLAS of this machine, and unknown keywords pass. Ours; not in the real tool.
    name_map : dict or path, optional
        APIs of the origin, with one or several APIs of the target that replace them: ``{"Functional.linear":
        ["Functional.matmul", "Functional.add"]}``, or a file of such lines. Ours; not in the real tool.

    Returns
    -------
    ApiComparison
        The tables by step, ``first`` (the first divergence, with its stack), ``to_csv`` and ``to_pandas``.

    Raises
    ------
    BadInputError
        If a path holds no API dump (also a ValueError, with the vendor's text), or `name_map` has an invalid name.
    ScriptTypeError
        If an argument does not have the documented type.
    UnreadableError
        If a file of a dump is damaged.
    DumpWriteError
        If the tables cannot be written.
    UnsupportedError
        For an unknown `convinced_match_method`, with the vendor's text; and after the tables are written, if there are
        files of state_dicts and torch, which reads them, is not installed.
    ScriptValueError
        For an unknown `compat`.
    TypeError
        For an unknown keyword, unless `compat` is set.

    Notes
    -----
    Files: ``ts_api_mapping_N.csv`` (not with MindTorch), ``ts_api_forward_compare_N.csv`` and
    ``ts_api_backward_compare_N.csv`` for each step N. Without npy files on both sides the statistics are compared.
    As in troubleshooter 1.0.17, except that the last step needs no backward run, values decide between calls of equal
    names and shapes, modules named on one side alone never replace a call, and old files are replaced atomically.
    The last digit of a cosine near 1 depends on the order of the sums; here it is the same on every machine.

    Examples
    --------
    >>> try:
    ...     api_dump_compare("no/such/dump", "no/such/dump")
    ... except ValueError as error:
    ...     print(error)
    origin_path is not a valid dump path
    """
    if kwargs and compat is None:
        raise TypeError(f"api_dump_compare() got an unexpected keyword argument {next(iter(kwargs))!r}")
    options = Options(
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        ignore_unmatched=ignore_unmatched,
        ignore_backward=ignore_backward,
        convinced_match_method=convinced_match_method,
        compat=compat,
        name_map=name_map,
    )
    result, parameters = compare_api_dumps(origin_path, target_path, options, progress=sys.stderr.isatty())
    for note in result.notes:
        _LOG.warning("[*User Warning*] %s", note)
    if result.directories is not None:
        for _ in chain.from_iterable(filter(None, (step.forward, step.backward)) for step in result.steps):
            _LOG.warning("[*User Attention*] " + _DIRECTORIES, *result.directories)
    if result.steps:
        print(result.console(colour=sys.stdout.isatty()))
    if output_path is not None:
        result.to_csv(output_path)
    if parameters is not None:
        table = parameters()
        print(table.console(colour=sys.stdout.isatty()))
        result = replace(result, parameters=table)
    return result


def compare_api_dumps(
    origin_path: "str | os.PathLike[str]",
    target_path: "str | os.PathLike[str]",
    options: Options = _DEFAULTS,
    *,
    progress: bool = False,
) -> tuple[ApiComparison, Callable[[], Table] | None]:
    """Compare without printing or writing; also return a function that compares the parameters, if both were saved."""
    dumps = open_dump(origin_path, "origin_path"), open_dump(target_path, "target_path")
    if options.exact:
        dumps = dumps[0].as_cut_by_1_0_17(), dumps[1].as_cut_by_1_0_17()
    style = Style(
        frameworks=(dumps[0].framework, dumps[1].framework),
        arrays=dumps[0].has_arrays and dumps[1].has_arrays,
        tolerance=options.tolerance,
        equal_nan=bool(options.equal_nan),
        exact=options.exact,
    )
    counts = [len(dump.steps) for dump in dumps]
    notes = [] if counts[0] == counts[1] else [_STEPS.format(*counts, min(counts))]
    has_values = style.arrays
    if not style.arrays and min(counts):
        notes.append(_NO_NPY)
        has_values = all(dump.has_statistics for dump in dumps) or (options.exact and style.mindtorch)
        notes += [] if has_values else [_NO_VALUES]
    if style.arrays:
        notes += [note for dump in dumps for note in _missing(dump)]
    if not options.exact:
        notes += [note for side in zip((origin_path, target_path), dumps, strict=True) for note in _others(*side)]
    parameters, no_models = _parameters(dumps, style)
    notes += no_models
    names = read_names(options.name_map)
    if unused := names.unused({(call.kind, call.api) for step in dumps[0].steps for call in step.calls}):
        notes.append(_UNUSED.format(", ".join(unused)))
    steps, coverage = _steps(dumps, style, has_values, options, names, progress)
    if not options.exact and (said := coverage.shortfall(MIN_MATCHED)):
        notes.insert(0, f"{said} (A is origin_path, B target_path).")
    first = _first(steps, dumps, notes)
    directories = (dumps[0].array_dir, dumps[1].array_dir) if style.arrays else None
    result = ApiComparison(steps=steps, first=first, notes=tuple(notes), directories=directories, coverage=coverage)
    return result, parameters


def _missing(dump: Dump) -> Iterator[str]:
    """Return a note on records without a file, as after an incomplete copy; they are not compared."""
    names = [entry.line.name for entry in dump.entries() if entry.path is None]
    if names:
        yield _NO_FILES.format(len(names), dump.rank_dir, names[0])


def _others(path: "str | os.PathLike[str]", dump: Dump) -> Iterator[str]:
    """Return notes on further ranks and frameworks that are not compared."""
    if others := [rank.name for rank in ranks(Path(path)) if rank != dump.rank_dir]:
        yield _OTHER_RANKS.format(dump.rank_dir, ", ".join(others))
    if len(several := frameworks(dump.rank_dir)) > 1:
        yield _OTHER_FRAMEWORKS.format(dump.rank_dir, ", ".join(several), dump.framework)


def _steps(
    dumps: tuple[Dump, Dump], style: Style, has_values: bool, options: Options, names: Names, progress: bool
) -> tuple[tuple[StepComparison, ...], Coverage]:
    """Compare all common steps, and count calls with a counterpart."""
    aligned = [
        (one, other, _groups(one.calls, other.calls, dumps, options, names))
        for one, other in zip(dumps[0].steps, dumps[1].steps, strict=False)
    ]
    from rich.console import Console
    from rich.progress import Progress

    total = sum(len(call.inputs) + len(call.outputs) + len(call.grads) for one, _, _ in aligned for call in one.calls)
    compared = []
    bar = Progress(console=Console(stderr=True), transient=True, disable=not (progress and has_values))
    tick = partial(bar.advance, bar.add_task("comparing", total=total))
    with bar:
        for number, (one, other, groups) in enumerate(aligned):
            backward = not options.ignore_backward and (one.has_backward or other.has_backward)
            wants = has_values, has_values and backward
            compared.append(_step(number, groups, wants, dumps, style, bool(options.ignore_unmatched), tick))
    coverage = Coverage.of(_call_names(group) for _, _, groups in aligned for group in groups)
    return tuple(compared), coverage


def _call_names(group: Group) -> CallNames:
    """The calls of a group; they belong together where an array of the ends has the same shape on both sides."""
    origin, target = ([call for call in side if not call.is_layer] for side in (group.origin, group.target))
    compared = bool(origin and target) and any(
        set(shapes(ours)) & set(shapes(theirs))
        for ours, theirs in (
            (origin[0].inputs, target[0].inputs),
            (origin[-1].outputs, target[-1].outputs),
            (origin[-1].grads, target[-1].grads),
        )
    )
    return CallNames(
        left=tuple(call.name for call in origin), right=tuple(call.name for call in target), compared=compared
    )


def _groups(
    origin: Sequence[Call], target: Sequence[Call], dumps: tuple[Dump, Dump], options: Options, names: Names
) -> list[Group]:
    """Match the calls, by our method or one of the real tool's."""
    if options.method is not None:
        return vendor_groups(origin, target, options.method, (dumps[0].framework, dumps[1].framework))
    return align(origin, target, names)


def _step(
    number: int,
    groups: Sequence[Group],
    wants: tuple[bool, bool],
    dumps: tuple[Dump, Dump],
    style: Style,
    ignore_unmatched: bool,
    tick: Callable[[], None],
) -> StepComparison:
    """Build the tables of one step."""
    tables: list[Table | None] = []
    found: list[tuple[Finding, ...]] = []
    for direction, wanted in zip(("forward", "backward"), wants, strict=True):
        rows = tuple(findings(paired(groups, direction, dumps, style), style, tick)) if wanted else ()
        found.append(rows)
        table = compare_table(rows, direction, style, number, ignore_unmatched=ignore_unmatched)
        tables.append(table if table.rows else None)
    return StepComparison(
        step=number,
        mapping=mapping_table(groups, style, number),
        forward=tables[0],
        backward=tables[1],
        writes_mapping=not style.mindtorch,
        findings=tuple(chain.from_iterable(found)),
        calls=tuple(call for group in groups for call in group.origin),
    )


def _first(steps: Sequence[StepComparison], dumps: tuple[Dump, Dump], notes: list[str]) -> Divergence | None:
    """Return the first divergence, with the stacks of its call; note an unreadable stack file."""
    found = first_divergence(steps)
    if found is None:
        return None
    step, finding, before = found
    assert finding.origin is not None  # only pairs have a verdict
    assert finding.target is not None
    name = finding.origin.parts
    guilty = before if before is not None else finding
    stacks: list[tuple[str, ...]] = []
    for item in (guilty.origin, guilty.target):
        assert item is not None
        try:
            stacks.append(item.stack)
        except UnreadableError as error:
            notes.append(str(error))
            stacks.append(())
    return Divergence(
        step=step.step,
        direction=name.direction,
        origin=finding.origin.line.name,
        target=finding.target.line.name,
        cause="gradient" if name.direction == "backward" else "operator" if name.io == "output" else "input",
        maker=before.origin.parts.call if before is not None and before.origin is not None else "",
        origin_stack=stacks[0],
        target_stack=stacks[1],
    )


def _parameters(dumps: tuple[Dump, Dump], style: Style) -> tuple[Callable[[], Table] | None, list[str]]:
    """Return what compares the state_dicts of a MindTorch net and its PyTorch original, or why that is impossible."""
    if set(style.frameworks) != {"mindtorch", "torch"}:
        return None, []
    paths = [dump.rank_dir / PARAMETER_FILES[dump.framework] for dump in dumps]
    if not all(path.is_file() for path in paths):
        return None, [_NO_MODELS.format(dumps[0].rank_dir, dumps[1].rank_dir)]
    return lambda: compare_parameters(paths[0], paths[1], style.tolerance, equal_nan=style.equal_nan), []
