"""One csv file for each operator, with a row of statistics for each of its tensors. [spec ge 3.7]"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.archive.longname import bin_number, fits, store
from dumpsim.archive.naming import BinName
from dumpsim.archive.sink import Sink
from dumpsim.codecs.dumpdata import Item
from dumpsim.codecs.opcsv import ALL, ITEMS, Row, header, row_end, row_start
from dumpsim.core.clock import Clock
from dumpsim.core.errors import DumpWriteError
from dumpsim.core.events import TensorRef, reader_of
from dumpsim.core.format import FORMATS
from dumpsim.core.statistic import DIGITS
from dumpsim.dump.convert import device_values
from dumpsim.dump.operatorfiles import OperatorFiles, describe, name_head
from dumpsim.dump.unit import FILE_NS, Source, Write, later
from dumpsim.dump.writelog import WriteLog
from dumpsim.modes.request import RequestedStatistics
from dumpsim.tensor.stats import measurer, statistics

__all__ = ["OperatorStatistics", "processor_values"]

_MEASURED = frozenset(
    ("bool", "float16", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))
)
_NORMED = frozenset({"bfloat16", "float16", "float32"})  # types that the kernel of the norm supports
_MOST = 10  # largest number of tensors of an operator that kernels measure
_FINITE = f"%.{DIGITS}g,%.{DIGITS}g,%.{DIGITS}g,%d,0,0,0\n"  # the values of `opcsv.ALL` if all elements are finite


class _Known:
    """The statistics of a row, and the version of the bytes from which they were computed."""

    __slots__ = ("text", "version")

    def __init__(self) -> None:
        self.version = -1
        self.text = ""


class OperatorStatistics:
    """Measures the tensors of an operator in device memory.

    Parameters
    ----------
    statistics : RequestedStatistics
        Without names, the device's processor measures all statistics; otherwise kernels measure the named ones.
    """

    splits = False

    def __init__(self, *, statistics: RequestedStatistics, sink: Sink, writes: WriteLog, clock: Clock) -> None:
        self._chosen = tuple(statistics.names) or None
        self._sink = sink
        self._writes = writes
        self._clock = clock
        self._known: dict[tuple[int, int, str], _Known] = {}  # by address, size and type
        self._files = OperatorFiles(sink=sink, writes=writes, clock=clock)

    def operator(
        self, directory: str, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]
    ) -> None:
        """Write one file, or no file if all tensors are empty."""
        tensors = [(io, ref) for io, refs in (("input", inputs), ("output", outputs)) for ref in refs]
        if not any(ref.nbytes for _, ref in tensors):
            return
        tally = self._writes.tally
        tally.asked += len(tensors)
        if self._chosen is not None:
            for _ in tensors[_MOST:]:
                tally.skipped[f"an operator has more than {_MOST} tensors"] += 1
            tensors = tensors[:_MOST]
        tally.captured += len(tensors)
        self._clock.advance(FILE_NS)
        name = BinName(
            op_type=source.op_type,
            op_name=source.full_name,
            task_id=source.task_id,
            stream_id=source.stream_id,
            timestamp=self._clock.stamp_us(),
        )
        lines = [header(self._chosen), *(self._line(io, ref) for io, ref in tensors)]
        text = "".join(lines).encode()
        if store(self._sink, directory, f"{name}.csv", [text], bin_number, self._writes.attempt) is not None:
            tally.rows += len(tensors)

    def overflow(self, directory: str, source: Source, record: bytes) -> None:
        """Save the device's record of an overflow, which is not measured."""
        self._files.overflow(directory, source, record)

    def plan(self, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]) -> Write:
        """Prepare the file of an operator that runs repeatedly; a tensor of several operators is measured once."""
        tensors = [(io, ref) for io, refs in (("input", inputs), ("output", outputs)) for ref in refs]
        head = name_head(source)
        limited = self._chosen is not None and len(tensors) > _MOST
        if limited or not fits(head) or not any(ref.nbytes for _, ref in tensors):
            return later(self, source, inputs, outputs)
        title, count = header(self._chosen), len(tensors)
        rows = [(_start(io, ref), reader_of(ref), self._known_of(ref), self._measure_of(ref)) for io, ref in tensors]
        clock, writes, tally, write = self._clock, self._writes, self._writes.tally, self._sink.write

        def dump(directory: str, iteration: int, task_id: int) -> None:
            nonlocal source, head
            if task_id != source.task_id:  # the tasks of a model have the same ids in every run
                source = replace(source, task_id=task_id)
                head = name_head(source)
            tally.asked += count
            tally.captured += count
            clock.advance(FILE_NS)
            name = f"{head}{clock.stamp_us()}.csv"
            text = title
            for start, reader, known, measure in rows:
                if known.version != (version := reader.version):
                    known.version, known.text = version, measure()
                text += start + known.text
            try:
                write(directory, name, (text.encode(),))
            except DumpWriteError as error:
                writes.failed(error)
            else:
                tally.rows += count

        return dump

    def _known_of(self, ref: TensorRef) -> "_Known":
        """Return the statistics of a tensor's row, which all operators with this tensor share."""
        key = ref.address, ref.nbytes, ref.device_dtype.name
        return self._known.setdefault(key, _Known())

    def _measure_of(self, ref: TensorRef) -> Callable[[], str]:
        """Return a function that measures a tensor for its row, if possible faster than `_end`."""
        slow = partial(self._end, ref)
        kind = ref.device_dtype
        plain = kind.name in _MEASURED and FORMATS[ref.device_format].dump == "copy"
        if self._chosen is not None or not plain or not ref.nbytes:
            return slow
        measure, read = measurer(kind.numpy), reader_of(ref)

        def text() -> str:
            found = measure(read())
            if found.nan or found.positive_inf or found.negative_inf:
                return slow()
            return _FINITE % (found.max, found.min, found.sum / found.elements, found.elements)

        return text

    def _line(self, io: str, ref: TensorRef) -> str:
        return _start(io, ref) + self._end(ref)

    def _end(self, ref: TensorRef) -> str:
        """Format the statistics of a tensor's row."""
        values: dict[str, Any] = {}
        if self._chosen is None:
            if ref.device_dtype.name in _MEASURED and ref.nbytes:
                values = processor_values(device_values(ref))
        elif ref.nbytes:
            values = _kernel_values(device_values(ref), ref.device_dtype.name)
        return row_end(values, self._chosen, "" if self._chosen is None else "NA")


def _start(io: str, ref: TensorRef) -> str:
    """Format the cells of a tensor's row before the statistics."""
    item: Item = describe(ref)
    row = Row(
        io=io, slot=ref.slot, nbytes=ref.nbytes, dtype=ref.device_dtype.name, format="", shape=item.shape
    )  # fmt: skip
    return row_start(row, dtype=item.dtype, format=item.format)


def processor_values(values: NDArray[Any]) -> dict[str, Any]:
    """Compute statistics as the device's processor does, by the names of `opcsv.ALL`.

    Examples
    --------
    >>> found = processor_values(np.array([1, np.nan, -np.inf], np.float32))
    >>> found["max"], found["min"], found["avg"], found["nan"], found["count"]
    (1.0, -inf, -inf, 1, 3)
    >>> processor_values(np.array([np.nan, 1], np.float32))["max"]  # it compares with the first element
    nan
    """
    flat = values.reshape(-1)
    found = statistics(flat)
    made = {name: getattr(found, name) for name in ALL}
    if found.nan:
        first = float(flat[0])
        made["max"] = made["min"] = first
        if not math.isnan(first):
            made["max"], made["min"] = float(np.fmax.reduce(flat)), float(np.fmin.reduce(flat))
    if found.nan or found.positive_inf or found.negative_inf:
        if bool(found.positive_inf) is bool(found.negative_inf):
            made["avg"] = math.nan
        else:
            made["avg"] = math.inf if found.positive_inf else -math.inf
    return made


def _kernel_values(values: NDArray[Any], kind: str) -> dict[str, Any]:
    """Compute statistics as the kernels do; unsupported ones are missing."""
    if kind not in _MEASURED | {"bfloat16"}:
        return {"count": values.size}
    found = statistics(values.reshape(-1))
    made = {name: getattr(found, name) for name in ("count", *ITEMS)}
    if kind not in _NORMED:
        made["l2norm"] = None
    return made
