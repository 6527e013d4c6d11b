"""``msaccucmp compare``: two dumps, operator by operator. [spec ge 4.6]"""

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.analysis.msaccucmp import fusion
from dumpsim.analysis.msaccucmp.convert import make_output
from dumpsim.analysis.msaccucmp.dumpfile import DumpFile, Tensor
from dumpsim.analysis.msaccucmp.journal import Journal
from dumpsim.analysis.msaccucmp.listing import Golden, Listed, dump_files, golden_npy, in_name
from dumpsim.analysis.msaccucmp.reformat import Converter, custom_converters, load_function, reformat
from dumpsim.analysis.msaccucmp.safepath import existing
from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.analysis.wholefile import write_whole
from dumpsim.tensor.metrics import METRICS, metrics, selected

__all__ = ["Comparison", "compare"]

Array = NDArray[Any]
Measure = Callable[[Array, Array, Any], tuple[str, str]]

NAN = "NaN"
_HOST_FORMATS = {4: "NCHW", 3: "ND", 2: "ND"}
_HOST_ORDERS = frozenset({"ND", "NCHW", "NHWC", "HWCN", "CHWN", "NCDHW", "NDHWC", "DHWCN"})
_OVERFLOW = 65504  # the largest float16 [spec ge 4.6]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is asked for; texts are those of the command line."""

    own: str
    golden: str
    out: str
    fusion: str | None = None
    custom: str | None = None
    algorithm: str = "all"
    algorithm_options: str = ""
    mapping: bool = False
    overflow_detection: bool = False
    range: str | None = None
    select: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One line of the result; what it does not know is NaN."""

    index: int
    op_type: str = NAN
    own: str = "*"
    own_dtype: str = NAN
    own_address: str = NAN
    golden: str = "*"
    golden_dtype: str = NAN
    golden_address: str = NAN
    tensor: str = NAN
    shape: str = NAN
    overflow: str = NAN
    values: tuple[str, ...] = ()
    reason: str = ""
    own_path: str = NAN
    golden_path: str = NAN


@dataclass(slots=True)
class _Work:
    """What all operators of one comparison share."""

    what: Comparison
    journal: Journal
    names: tuple[str, ...]
    own_measures: Mapping[str, Measure]
    converters: Mapping[tuple[str, str], Converter]
    rows: list[_Row] = field(default_factory=list)
    status: Status = Status.OK

    def fail(self, status: Status) -> None:
        """The first failure is the command's."""
        self.status = self.status or status


def compare(what: Comparison, journal: Journal) -> Status:
    """Write ``result_{time}.csv``, or ``mapping_{time}.csv`` for -map."""
    own_path, golden_path = existing(what.own, "directory"), existing(what.golden, "directory")
    rules = None if what.fusion is None else fusion.load(existing(what.fusion, "file"))
    measures, converters = _custom(what, journal)
    names = _names(what, measures, journal)
    make_output(what.out)
    own = dump_files(own_path)
    npy = golden_npy(golden_path)
    work = _Work(what, journal, names, measures, converters)
    if rules is None and npy:
        raise ToolError(
            Status.INVALID_PARAM, "When the right side is npy data of the original model, the -f parameter is required."
        )
    if rules is not None and not npy:
        raise ToolError(
            Status.UNSUPPORTED_COMPARE,
            "With -f the right side is npy data of the original model, and there is none. Dumps of two models need "
            "-cf, which dumpsim does not support.",
        )
    if rules is None:
        _dumps(work, own, dump_files(golden_path))
    else:
        _fused(work, rules, own, npy)
    _write(work, npy_side=rules is not None)
    return work.status


def _custom(what: Comparison, journal: Journal) -> tuple[dict[str, Measure], dict[tuple[str, str], Converter]]:
    """The user's own measures and converters; this runs the user's files, nothing but -c leads here."""
    if what.custom is None:
        return {}, {}
    root = existing(what.custom, "directory")
    measures: dict[str, Measure] = {}
    folder = os.path.join(root, "algorithm")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        stem, suffix = os.path.splitext(name)
        if suffix == ".py" and stem.startswith("alg_"):
            measures[stem.removeprefix("alg_")] = load_function(os.path.join(folder, name), stem, "compare")
    return measures, custom_converters(root, journal)


def _names(what: Comparison, measures: Mapping[str, Measure], journal: Journal) -> tuple[str, ...]:
    """Columns of the result, built-in measures first."""
    known, unknown = selected(what.algorithm)
    own = tuple(name for name in unknown if name in measures)
    for name in unknown:
        if name not in measures:
            journal.warning(
                f"The '{name}' does not supported in builtin or custom. Please check the algorithm name or "
                "algorithm index."
            )
    if not known + own:
        raise ToolError(
            Status.INVALID_ALGORITHM,
            f"The algorithm in '{what.algorithm}' does not supported. Just supports {[*METRICS, *measures]}",
        )
    return known + own


def _dumps(work: _Work, own: Mapping[str, Listed], golden: Mapping[str, Listed]) -> None:
    """Dump against dump: operators of the same name."""
    for index, (name, file) in enumerate(own.items()):
        if name not in golden:
            _unmatched(
                work,
                _Row(index=index, own=name),
                f'[{name}] There is no the ground truth dump file for the op "{name}".',
            )
            continue
        work.journal.info(f"[{name}] [Left] {file.path}")
        work.journal.info(f"[{name}] [Right] {golden[name].path}")
        try:
            rows = _pair(work, index, file, DumpFile.open(file.path), DumpFile.open(golden[name].path))
        except ToolError as error:
            work.journal.error(str(error))
            work.fail(error.status)
            rows = [_Row(index=index, own=name, golden=name, reason=str(error))]
        _add(work, rows)
    for offset, name in enumerate(name for name in golden if name not in own):
        row = _Row(index=len(own) + offset, golden=name)
        _unmatched(work, row, f'[{name}] There is no the my output dump file for the op "{name}".')


def _unmatched(work: _Work, row: _Row, reason: str) -> None:
    work.journal.warning(reason)
    if not work.what.mapping:
        work.fail(Status.NO_DUMP_FILE)
    _add(work, [replace(row, reason=reason)])


def _add(work: _Work, rows: Sequence[_Row]) -> None:
    blank = (NAN,) * len(work.names)
    work.rows.extend(row if row.values else replace(row, values=blank) for row in rows)


def _pair(work: _Work, index: int, file: Listed, own: DumpFile, golden: DumpFile) -> list[_Row]:
    """Inputs, then outputs, by number; reasons of those that cannot be compared where nothing else is left."""
    rows: list[_Row] = []
    reasons: list[str] = []
    name = file.op_name
    for kind, left, right in (("input", own.inputs, golden.inputs), ("output", own.outputs, golden.outputs)):
        if len(left) != len(right):
            reason = f"[{name}] The number of {kind} does not match ({len(left)} vs {len(right)})."
            work.journal.warning(reason)
            reasons.append(reason)
            continue
        for a, b in zip(left, right, strict=True):
            x, y = a.array(), b.array()
            label = f"{name}:{a.label}"
            if x.shape != y.shape:
                reason = f"[{name}] The shape does not match ({_shape(x)} vs {_shape(y)}) for {label}."
                work.journal.error(reason)
                reasons.append(reason)
                continue
            work.journal.info(f"[{name}] compare {a.format} {_shape(x)} for {label}.")
            row = _Row(
                index=index,
                op_type=file.op_type,
                own=name,
                golden=name,
                golden_dtype=y.dtype.name,
                golden_address=str(b.address),
            )
            x, y = _unpadded(work, a, x), _unpadded(work, b, y)
            rows.append(_measured(work, row, a, x, y, label, own.path, golden.path, shape=a.shape))
    if rows:
        return rows
    work.fail(Status.INVALID_DUMP_DATA)
    return [_Row(index=index, own=name, golden=name, reason=",".join(reasons))]


def _shape(array: Array) -> str:
    return f"({', '.join(map(str, array.shape))})"


def _unpadded(work: _Work, tensor: Tensor, array: Array) -> Array:
    """A tensor as it is measured: a private layout as on the host, without padding; as it is where that fails.

    The number of dimensions on the host decides the target. [msaccucmp 26.2]
    """
    target = _HOST_FORMATS.get(len(tensor.original_shape))
    if target is None or tensor.real_format in _HOST_ORDERS:
        return array
    try:
        return reformat(tensor, target, work.journal)
    except ToolError as error:
        work.journal.error(str(error))
        return array


def _measured(
    work: _Work,
    row: _Row,
    tensor: Tensor,
    own: Array,
    golden: Array,
    label: str,
    own_path: str,
    golden_path: str,
    *,
    shape: Sequence[int] | None = None,
) -> _Row:
    """The row of a pair with all its measures; it shows the shape of the own side, or the one that is given."""
    builtin = [name for name in work.names if name in METRICS]
    found = metrics(_numbers(own), _numbers(golden), builtin, own_name=own_path, golden_name=golden_path)
    values = {name: metric.text for name, metric in found.items()}
    notes = [metric.note for metric in found.values() if metric.note]
    for name in work.names:
        if name not in values:
            values[name], note = _own_measure(work, name, own, golden)
            notes += [note] if note else []
    for note in notes:
        work.journal.warning(note)
    overflow = NAN
    if work.what.overflow_detection and own.dtype == np.float16:
        overflow = "YES" if own.size and bool((np.abs(own) >= _OVERFLOW).any()) else "NO"
        if overflow == "YES":
            work.journal.warning(f"{row.own} operator {tensor.label} is overflow.")
    return replace(
        row,
        own_dtype=own.dtype.name,
        own_address=str(tensor.address),
        tensor=label,
        shape=f"[{','.join(map(str, own.shape if shape is None else shape))}]",
        overflow=overflow,
        values=tuple(values[name] for name in work.names),
        reason=" ".join(notes),
        own_path=own_path,
        golden_path=golden_path,
    )


def _numbers(array: Array) -> Array:
    """Booleans are compared as 0 and 1 here. [spec ge 4.6]"""
    return array.view(np.uint8) if array.dtype == np.bool_ else array


def _own_measure(work: _Work, name: str, own: Array, golden: Array) -> tuple[str, str]:
    """A measure of the user's: ``compare(my, golden, args) -> (text, message)`` on flat float32."""
    x, y = own.astype(np.float32).reshape(-1), golden.astype(np.float32).reshape(-1)
    try:
        text, note = work.own_measures[name](x, y, _options(work.what.algorithm_options).get(name, {}))
    except Exception as error:  # the user's code
        return NAN, f"Failed to execute 'compare' in '{name}'. {error}"
    return str(text), str(note)


def _options(text: str) -> dict[str, dict[str, str]]:
    """``Name:key=value,key=value;Name:...``"""
    found: dict[str, dict[str, str]] = {}
    for part in text.split(";") if text else ():
        name, colon, pairs = part.partition(":")
        if not colon or any("=" not in pair for pair in pairs.split(",")):
            raise ToolError(Status.INVALID_PARAM, f'"{part}" of -a has not the form Name:key=value,key=value.')
        split = (pair.strip().partition("=") for pair in pairs.split(","))
        found[name.strip()] = {key: value for key, _, value in split}
    return found


# -- dump against npy files of the original model


def _fused(
    work: _Work, rules: fusion.Rules, own: Mapping[str, Listed], golden: Mapping[tuple[str, int], Golden]
) -> None:
    for number in fusion.selection(rules, work.what.range, work.what.select):
        operator = rules.operators[number]
        title = ",".join(operator.originals) or "*"
        row = _Row(index=number, op_type=operator.type, own=operator.name, golden=title)
        file = own.get(in_name(operator.name))
        if file is None:
            _unmatched(
                work, row, f'[{operator.name}] There is no dump file for my output operator "{operator.name}". '
                f"The type is {operator.type}.",
            )  # fmt: skip
            continue
        work.journal.info(f"[{operator.name}] [Offline] ['{file.path}']")
        try:
            dump = DumpFile.open(file.path)
            rows = [_against_npy(work, rules, operator, row, dump, tensor, golden) for tensor in dump.tensors]
        except ToolError as error:
            work.journal.error(str(error))
            work.fail(error.status)
            rows = [replace(row, reason=str(error))]
        _add(work, rows)


def _against_npy(
    work: _Work,
    rules: fusion.Rules,
    operator: fusion.Operator,
    row: _Row,
    dump: DumpFile,
    tensor: Tensor,
    golden: Mapping[tuple[str, int], Golden],
) -> _Row:
    """One tensor against the output of the original model that it stands for."""
    label = f"{operator.name}:{tensor.label}"
    of = rules.of_input if tensor.io == "input" else rules.of_output
    origin = of(operator, tensor.index)
    row = replace(row, tensor=label, own_path=dump.path)
    if origin is None:
        return _lost(work, row, f"[{operator.name}] The model does not tell what {label} stands for.")
    work.journal.info(f"[{operator.name}] Left({label}) <======> Right({origin.op_name}:output:{origin.index})")
    file = golden.get((in_name(origin.op_name), origin.index)) or golden.get((origin.op_name, origin.index))
    if file is None:
        missing = f"{origin.op_name}.{origin.index}.timestamp.npy"
        what = f"[{operator.name}] There is no ground truth file {missing} for {label}."
        return _lost(work, row, what)
    work.journal.info(f"[{origin.op_name}] [Standard] ['{file.path}']")
    right = DumpFile.open(file.path).outputs[0].raw
    if work.what.mapping:
        return replace(row, golden_path=file.path)
    left = _as_golden(work, tensor, origin.format or "NCHW", right)
    if left.shape != right.shape:
        what = f"[{operator.name}] The shape does not match ({_shape(left)} vs {_shape(right)}) for {label}."
        return _lost(work, row, what, Status.INVALID_SHAPE)
    row = replace(row, golden_dtype=right.dtype.name)
    return _measured(work, row, tensor, left, right, label, dump.path, file.path)


def _lost(work: _Work, row: _Row, reason: str, status: Status = Status.NO_DUMP_FILE) -> _Row:
    work.journal.warning(reason)
    work.fail(status)
    return replace(row, reason=reason)


def _as_golden(work: _Work, tensor: Tensor, target: str, golden: Array) -> Array:
    """A device tensor in the layout and shape of the golden one."""
    array = tensor.array()
    if tensor.real_format in (target, "ND") or array.shape == golden.shape:
        made = array
    else:
        shaped = replace(tensor, original_shape=golden.shape)
        made = reformat(shaped, target, work.journal, custom=dict(work.converters))
    if made.shape != golden.shape and made.size == golden.size:
        made = made.reshape(golden.shape)
    return made


# -- the result


def _write(work: _Work, *, npy_side: bool) -> None:
    what, out = work.what, io.StringIO()
    writer = csv.writer(out)  # lines end as RFC 4180 has it, the tool's too
    stamp = work.journal.stamp()
    root = os.path.realpath(what.out)
    if what.mapping:
        path = os.path.join(root, f"mapping_{stamp}.csv")
        writer.writerow(("Index", "OpType", "NPUDump", "GroundTruth", "TensorIndex", "NPUDumpPath", "GroundTruthPath"))
        for row in work.rows:
            writer.writerow((row.index, row.op_type, row.own, row.golden, row.tensor, row.own_path, row.golden_path))
        write_whole(path, [out.getvalue().encode()])
        work.journal.info(f"The mapping table result have been written to \"'{path}'\".")
        return
    path = os.path.join(root, f"result_{stamp}.csv")
    sequence = what.range is not None or what.select is not None
    columns: list[tuple[str, Callable[[_Row], Any]]] = [("Index", lambda row: row.index)]
    if sequence:
        columns.append(("OpSequence", lambda row: row.index))
    columns += [
        ("OpType", lambda row: row.op_type),
        ("NPUDump", lambda row: row.own),
        ("DataType", lambda row: row.own_dtype),
        ("Address", lambda row: row.own_address),
        ("GroundTruth", lambda row: row.golden),
        ("DataType", lambda row: row.golden_dtype),
    ]
    if not npy_side:
        columns.append(("Address", lambda row: row.golden_address))
    columns += [("TensorIndex", lambda row: row.tensor), ("Shape", lambda row: row.shape)]
    if what.overflow_detection:
        columns.append(("OverFlow", lambda row: row.overflow))
    writer.writerow([*(name for name, _ in columns), *work.names, "CompareFailReason"])
    for row in work.rows:
        line = [*(value(row) for _, value in columns), *row.values, row.reason]
        writer.writerow(line)
        work.journal.info(f"[{row.golden if row.own == '*' else row.own}] Result: {' '.join(map(str, line))}")
    write_whole(path, [out.getvalue().encode()])
    work.journal.info(f"The comparison result have been written to \"'{path}'\".")
