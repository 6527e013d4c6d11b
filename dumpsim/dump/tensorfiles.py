"""The dump of single tensors to files and rows: convert, measure, record, encode, write."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.archive.longname import Number, fits, store
from dumpsim.archive.naming import BinName
from dumpsim.archive.sink import Sink
from dumpsim.archive.tree import STATISTIC
from dumpsim.codecs import npy, opdebug, statcsv
from dumpsim.core.clock import Clock
from dumpsim.core.errors import DumpWriteError
from dumpsim.core.events import Reader, TensorRef, reader_of
from dumpsim.core.record import Record
from dumpsim.dump.cache import Cache
from dumpsim.dump.convert import Conversion, Converted, NotDumped, convert, device_values
from dumpsim.dump.decide import EMPTY
from dumpsim.dump.measure import Measured, device_cells, finite, host_cells
from dumpsim.dump.unit import FILE_NS, OPDEBUG, Source, Write
from dumpsim.dump.writelog import WriteLog
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest, RequestedStatistics

__all__ = ["TensorFiles"]

CACHED_BYTES = 32 << 20  # of converted tensors, for other operators that read them
CACHED_ROWS = 4096
_IDS = f"..{1 << 16}.{1 << 16}."  # the longest ids of task and stream in a name


class TensorFiles:
    """Writes tensors in device memory to npy files and rows, one at a time.

    A tensor that needs no conversion is written directly from device memory.
    """

    splits = True

    def __init__(
        self,
        *,
        profile: Profile,
        request: DumpRequest,
        sink: Sink,
        writes: WriteLog,
        clock: Clock,
        seed: int,
        rank: int,
    ) -> None:
        self._profile = profile
        self._request = request
        self._sink = sink
        self._writes = writes
        self._tally = writes.tally
        self._log = writes.log
        self._clock = clock
        self._seed = seed
        self._rank = rank
        self._names = profile.names
        self._csv = profile.csv
        self._tensors: Cache[Converted] = Cache(CACHED_BYTES)
        self._cells: Cache[Measured] = Cache(CACHED_ROWS)
        self._finite: dict[int, tuple[int, int]] = {}  # by address: version and size of bytes that are all finite
        self.plain = Conversion(bug_compat=profile.bug_compat)
        self._how = Conversion(
            to_host=request.host_layout,
            raw=request.asynchronous and profile.async_conversion == "raw",
            rank4=profile.host_layout == "rank4",
            float32=profile.bfloat16 == "float32",
            sample=request.sample,
            bug_compat=profile.bug_compat,
        )

    # -- public --------------------------------------------------------------------------------------------------------

    def operator(
        self, directory: str, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]
    ) -> None:
        """Dump tensors of one operator, inputs first."""
        if self._profile.stamps == "operator":
            source = replace(source, timestamp=self._clock.stamp_us())
        for io, refs in (("input", inputs), ("output", outputs)):
            for ref in refs:
                self.tensor(directory, source, io, ref)

    def plan(self, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]) -> Write:
        """Prepare the files of an operator that runs repeatedly: for most tensors, each run only adds time stamps."""
        each = [self._planned(source, io, ref) for io, refs in (("input", inputs), ("output", outputs)) for ref in refs]
        shared = self._profile.stamps == "operator"
        clock = self._clock

        def dump(directory: str, iteration: int, task_id: int) -> None:
            now = replace(source, iteration=iteration, task_id=task_id, timestamp=clock.stamp_us() if shared else None)
            for write in each:
                write(directory, now)

        return dump

    def _planned(self, source: Source, io: str, ref: TensorRef) -> "Callable[[str, Source], None]":
        """Return the function that dumps one tensor of such an operator."""
        reader = reader_of(ref)
        bare = self._request.tensors and self._request.statistics is None
        descr = ref.dtype.descr if self._how.unchanged(ref) else None
        head, tail = self._names.npy_parts(
            source.op_type, source.full_name, io=io, slot=ref.slot, form="DefaultFormat", dtype=ref.dtype.name
        )
        if not bare or not ref.nbytes or descr is None or not fits(head + _IDS + tail):
            return lambda directory, now: self.tensor(directory, now, io, _current(ref, reader))
        header = npy.header(descr, ref.shape)
        shown = self._profile.task_id == "device"
        cost_ns = FILE_NS + ref.nbytes
        is_float = ref.dtype.numpy.kind == "f"
        stream, address, nbytes = source.stream_id, ref.address, ref.nbytes
        known = self._finite
        clock, writes, tally, write = self._clock, self._writes, self._writes.tally, self._sink.write

        def dump(directory: str, now: Source) -> None:
            tally.asked += 1
            tally.captured += 1
            clock.advance(cost_ns)
            stamp = clock.stamp_us() if now.timestamp is None else now.timestamp
            name = f"{head}.{now.task_id if shown else 0}.{stream}.{stamp}.{tail}"
            data = reader()
            try:
                write(directory, name, (header, data.data))
            except DumpWriteError as error:
                writes.failed(error)
            else:
                writes.add_readers(directory, name, now, ((ref, reader),))
            if is_float:
                key = reader.version, nbytes
                if known.get(address) != key:
                    values = data.view(ref.dtype.numpy)
                    if not finite(values):
                        self._see(self._record(now, io, ref, self._converted(_current(ref, reader)), stamp), values)
                    elif address:
                        known[address] = key

        return dump

    def tensor(self, directory: str, source: Source, io: str, ref: TensorRef) -> None:
        """Dump one operand or output."""
        tensors, statistics = self._request.tensors, self._request.statistics
        if not ref.nbytes:
            self._empty(directory, source, io, ref, statistics)
            return
        if ref.dtype.kind == "complex" and not tensors:
            self._tally.skip("complex numbers have no statistics")  # only npy files have them [seed 001]
            return
        if statistics is not None and statistics.device:
            self._device_row(directory, source, io, ref, statistics)
            return
        try:
            found = self._converted(ref)
        except NotDumped as reason:
            self._log(reason.level, "", f"{source.full_name} {io}.{ref.slot}: {reason}")
            self._tally.skip(str(reason))
            return
        self._tally.asked += 1
        self._tally.captured += 1
        record = self._record(source, io, ref, found, self._stamp(source, found.nbytes))
        if tensors:
            self._npy(directory, record, source, ref, found)
        if statistics is not None:
            self._row(directory, record, ref, found, statistics)
        elif not finite(found.values):
            self._see(record, found.values)

    def _see(self, record: Record, values: "NDArray[Any]") -> None:
        """Record a tensor with elements that are not finite."""
        self._tally.findings.see(record, nan=bool(np.isnan(values).any()), infinite=bool(np.isinf(values).any()))

    def parameter(self, directory: str, ref: TensorRef, graph_id: int, iteration: int) -> None:
        """Dump one graph input at the end of a run. [spec mindspore 3.10]"""
        self.tensor(directory, self._parameter(ref, graph_id, iteration), "output", replace(ref, slot=0))

    def constant(self, directory: str, ref: TensorRef, graph_id: int) -> None:
        """Save one constant of a graph; constants have no statistics. [spec mindspore 3.10]"""
        source = self._parameter(ref, graph_id, None)
        found = convert(ref, self.plain)
        self._tally.asked += 1
        self._tally.captured += 1
        stamp = self._stamp(source, found.nbytes)
        self._npy(directory, self._record(source, "output", ref, found, stamp), source, ref, found)

    def overflow(self, directory: str, source: Source, record: bytes) -> None:
        """Save the device's record of an overflow as JSON, beside npy files. [spec mindspore 5.2]"""
        op_type, op_name = OPDEBUG
        self._clock.advance(FILE_NS)
        name = BinName(
            op_type=op_type,
            op_name=op_name,
            task_id=source.task_id,
            stream_id=source.stream_id,
            timestamp=self._clock.stamp_us(),
        ).json()
        text = opdebug.to_json(opdebug.decode(record), "mindspore")
        self._writes.attempt(lambda: self._sink.write(directory, name, [text.encode()]))

    def _parameter(self, ref: TensorRef, graph_id: int, iteration: int | None) -> Source:
        """Return the operator `Parameter` of a graph input."""
        return Source(
            op_type="Parameter",
            full_name=ref.name,
            task_id=0,
            stream_id=0,
            rank=self._rank,
            graph_id=graph_id,
            iteration=iteration,
        )

    def _converted(self, ref: TensorRef) -> Converted:
        """Convert a tensor; conversions are cached by version of the buffer. [design]"""
        key = _key(ref)
        found = None if key is None else self._tensors.get(key)
        if found is None:
            found = convert(ref, self._how)
            if key is not None and found.owned:
                self._tensors.put(key, found, found.stored.nbytes + found.values.nbytes)
        return found

    # -- record --------------------------------------------------------------------------------------------------------

    def _stamp(self, source: Source, nbytes: int) -> int:
        """Return the time stamp of a tensor, after the time for writing its file."""
        self._clock.advance(FILE_NS + nbytes)
        return self._clock.stamp_us() if source.timestamp is None else source.timestamp

    def _record(self, source: Source, io: str, ref: TensorRef, found: Converted, timestamp: int) -> Record:
        """Make the record of a converted tensor."""
        shown = self._profile.task_id == "device"
        return Record(
            op_type=source.op_type,
            op_name=source.full_name,
            io=io,
            slot=ref.slot,
            dtype=found.dtype.name,
            stored_dtype=found.stored_dtype.name,
            shape=found.shape,
            timestamp=timestamp,
            format=found.format,
            task_id=source.task_id if shown else 0,
            stream_id=source.stream_id,
            rank=source.rank,
            graph_id=source.graph_id,
            iteration=source.iteration,
            nbytes=found.nbytes,
        )

    # -- files ---------------------------------------------------------------------------------------------------------

    def _npy(self, directory: str, record: Record, source: Source, ref: TensorRef, found: Converted) -> None:
        """Write the tensor."""
        if found.stored_dtype.descr is None:
            self._log("WARNING", "", f"{record.dtype} has no npy form: {record.op_name} {record.io}.{record.slot}")
            self._tally.captured -= 1
            self._tally.skipped[f"{record.dtype} has no npy form"] += 1
            return
        name = self._names.npy(record)
        flat = np.ascontiguousarray(found.stored)
        head = npy.header(found.stored_dtype.descr, found.shape)
        parts: list[bytes | memoryview] = [head, flat.reshape(-1).view(np.uint8).data]
        stored = store(self._sink, directory, name, parts, self._number(directory), self._writes.attempt)
        if stored is not None:
            self._writes.add(directory, stored, source, ref)

    def _number(self, directory: str) -> Number:
        """Return the numbering of names that are too long in a directory; it is made only for such names."""
        return lambda name: self._names.number(f"{self._seed}/{self._writes.relative(directory)}")(name)

    def _row(
        self, directory: str, record: Record, ref: TensorRef, found: Converted, statistics: RequestedStatistics
    ) -> None:
        """Add a row with statistics of the host; complex numbers have none. [seed 001]"""
        if found.dtype.kind == "complex":
            self._log("ERROR", "", f"{record.op_name} {record.io}.{record.slot}: complex numbers have no statistics")
            return
        key = _key(ref)
        measured = None if key is None else self._cells.get(key)
        if measured is None:
            hashed = found.values
            if self._profile.bug_compat and found.dtype.name == "int4":
                # quirk: of the unpacked tensor, only the packed tensor's number of bytes [spec mindspore 4.2]
                hashed = hashed.reshape(-1)[: found.nbytes]
            measured = host_cells(found.values, statistics.names, hashed)
            if key is not None:
                self._cells.put(key, measured, 1)
        self._line(directory, record, measured, statistics)

    def _empty(
        self, directory: str, source: Source, io: str, ref: TensorRef, statistics: RequestedStatistics | None
    ) -> None:
        """Add the row of a tensor without elements, whose statistics are all null; it has no file."""
        if statistics is None:
            self._tally.skip(EMPTY)
            return
        self._tally.asked += 1
        self._tally.captured += 1
        values = np.empty(0, np.uint8)
        found = Converted(
            values=values.reshape(0),
            stored=values,
            dtype=ref.dtype,
            stored_dtype=ref.dtype,
            format="DefaultFormat",
            nbytes=0,
        )
        record = replace(self._record(source, io, ref, found, self._stamp(source, 0)), shape=ref.shape)
        nulls = Measured((statcsv.number(None),) * len(statistics.names), None, None)
        self._line(directory, record, nulls, statistics)

    def _device_row(
        self, directory: str, source: Source, io: str, ref: TensorRef, statistics: RequestedStatistics
    ) -> None:
        """Add a row with statistics of the device's kernels; its size is that of the allocation. [spec mindspore 4.1,
        4.4]"""
        values = device_values(ref)
        self._tally.asked += 1
        self._tally.captured += 1
        found = Converted(
            values=values,
            stored=values,
            dtype=ref.device_dtype,
            stored_dtype=ref.device_dtype,
            format=ref.device_format,
            nbytes=ref.nbytes,
        )
        record = self._record(source, io, ref, found, self._stamp(source, found.nbytes))
        self._line(directory, record, device_cells(values, statistics.names, statistics.precision), statistics)

    def _line(self, directory: str, record: Record, measured: Measured, statistics: RequestedStatistics) -> None:
        """Write one row; a new file begins with the header."""
        if measured.nan or measured.infinite:
            self._tally.findings.see(record, nan=bool(measured.nan), infinite=bool(measured.infinite))
        name = record.op_name if self._profile.csv_op_name == "raw" else self._names.shown_op_name(record.op_name)
        line = statcsv.row(record, name, measured.cells, self._csv)
        if self._sink.is_new(directory, STATISTIC):
            line = statcsv.header(statistics.names) + line
        if self._writes.attempt(lambda: self._sink.append(directory, STATISTIC, line)):
            self._tally.rows += 1


def _current(ref: TensorRef, reader: Reader) -> TensorRef:
    """Return a tensor of a planned operator with its current version."""
    return replace(ref, version=reader.version)


def _key(ref: TensorRef) -> tuple[object, ...] | None:
    """Return the key of a tensor's content; None if its buffer has no version."""
    if not ref.version:
        return None
    return (ref.address, ref.version, ref.nbytes, ref.device_format, ref.device_dtype.name, ref.dtype.name, ref.shape)
