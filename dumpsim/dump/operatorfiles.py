"""One binary file for each operator, with the bytes of all its tensors in device memory. [spec ge 3.1-3.5]"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from dumpsim.archive.longname import bin_number, fits, store
from dumpsim.archive.naming import BinName
from dumpsim.archive.sink import Sink
from dumpsim.codecs.dumpdata import DumpData, HeaderPlan, Item, dtype_number, format_number, ge_number, header
from dumpsim.core.clock import Clock
from dumpsim.core.errors import DumpWriteError
from dumpsim.core.events import TensorRef, reader_of
from dumpsim.dump.convert import graph_format
from dumpsim.dump.unit import FILE_NS, OPDEBUG, Source, Write, later
from dumpsim.dump.writelog import WriteLog

__all__ = ["OperatorFiles", "describe", "name_head"]


class OperatorFiles:
    """Writes the tensors of an operator to one file, directly from device memory."""

    splits = False

    def __init__(self, *, sink: Sink, writes: WriteLog, clock: Clock) -> None:
        self._sink = sink
        self._writes = writes
        self._clock = clock

    def operator(
        self, directory: str, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]
    ) -> None:
        """Write one file, or no file if all tensors are empty."""
        refs = [ref for ref in (*inputs, *outputs) if ref.nbytes]
        if not refs:
            return
        tally = self._writes.tally
        tally.asked += len(refs)
        tally.captured += len(refs)
        self._clock.advance(FILE_NS + sum(ref.nbytes for ref in refs))
        name = _name(source.op_type, source.full_name, source, self._clock.stamp_us())
        data = _data(source, inputs, outputs, name.timestamp)
        written = self._write(directory, str(name), data, [ref.read().data for ref in refs])
        if written is not None:
            for ref in refs:
                self._writes.add(directory, written, source, ref)

    def plan(self, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]) -> Write:
        """Prepare the file of an operator that runs repeatedly: each run only adds names and times, and copies no
        bytes."""
        readers = [(ref, reader_of(ref)) for ref in (*inputs, *outputs) if ref.nbytes]
        head = name_head(source)
        if not readers or not fits(head):
            return later(self, source, inputs, outputs)
        header_of = HeaderPlan(_data(source, inputs, outputs, 0)).at
        size, count = sum(ref.nbytes for ref, _ in readers), len(readers)
        cost_ns = FILE_NS + size
        clock, writes, tally, write = self._clock, self._writes, self._writes.tally, self._sink.write

        def dump(directory: str, iteration: int, task_id: int) -> None:
            nonlocal source, head
            if task_id != source.task_id:  # the tasks of a model have the same ids in every run
                source = replace(source, task_id=task_id)
                head = name_head(source)
            tally.asked += count
            tally.captured += count
            clock.advance(cost_ns)
            stamp = clock.stamp_us()
            name = f"{head}{stamp}"
            try:
                write(directory, name, (header_of(stamp), *[read().data for _, read in readers]))
            except DumpWriteError as error:
                writes.failed(error)
            else:
                writes.add_readers(directory, name, source, readers)

        return dump

    def overflow(self, directory: str, source: Source, record: bytes) -> None:
        """Write the device's record of an overflow, as an output of bytes."""
        self._clock.advance(FILE_NS)
        op_type, op_name = OPDEBUG
        name = _name(op_type, op_name, source, self._clock.stamp_us())
        output = Item(dtype=dtype_number("uint8"), format=format_number("ND"), shape=(len(record),), size=len(record))
        data = DumpData(op_name=op_name, dump_time=name.timestamp, inputs=(), outputs=(output,))
        self._write(directory, str(name), data, [record])

    def _write(self, directory: str, name: str, data: DumpData, payload: Sequence["bytes | memoryview"]) -> str | None:
        """Write a file; return its name, or None if it failed."""
        parts = [header(data), *payload]
        return store(self._sink, directory, name, parts, bin_number, self._writes.attempt)


def _data(source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef], dump_time: int) -> DumpData:
    """Describe an operator for the header."""
    return DumpData(
        op_name=source.full_name,
        dump_time=dump_time,
        inputs=tuple(_items(inputs)),
        outputs=tuple(_original(item, at, source) for at, item in enumerate(_items(outputs))),
        attrs=source.attrs,
    )


def describe(ref: TensorRef) -> Item:
    """Describe a tensor for the header; GE counts the elements of int4, a shape of MindSpore may count pairs."""
    pairs = ref.device_dtype.name == "int4" and bool(ref.shape) and prod(ref.device_shape) == ref.nbytes
    shape, original = (
        (*found[:-1], found[-1] * 2) if pairs and found else found for found in (ref.device_shape, ref.shape)
    )
    return Item(
        dtype=dtype_number(ref.device_dtype.name),
        format=format_number(graph_format(ref)),
        shape=shape,
        size=ref.nbytes,
        original_shape=original,
        sub_format=ref.groups if ref.groups > 1 else 0,
        address=ref.address,
    )


_ABSENT = Item(dtype=0, format=format_number("ND"), shape=(), size=0)  # a slot that is not dumped


def _items(refs: Sequence[TensorRef]) -> "list[Item]":
    """Describe tensors by slot; slots that are not dumped are empty."""
    found = {ref.slot: describe(ref) for ref in refs}
    return [found.get(slot, _ABSENT) for slot in range(max(found, default=-1) + 1)]


def _original(item: Item, at: int, source: Source) -> Item:
    """Add the last operator of a fused one to its output."""
    if not source.original_names or not item.dtype:
        return item
    return replace(
        item,
        original_name=source.original_names[-1],
        original_index=at,
        original_dtype=ge_number(item.dtype),
        original_format=format_number("NCHW" if len(item.original_shape) == 4 else "ND"),
    )


def name_head(source: Source) -> str:
    """Return the name of an operator's file up to the time stamp."""
    return str(_name(source.op_type, source.full_name, source, 0)).removesuffix("0")


def _name(op_type: str, op_name: str, source: Source, timestamp: int) -> BinName:
    return BinName(
        op_type=op_type,
        op_name=op_name,
        task_id=source.task_id,
        stream_id=source.stream_id,
        timestamp=timestamp,
    )
