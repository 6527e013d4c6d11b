"""Binary dump files: all tensors of one operator, mapped on request or read at once. [spec ge 3.1]

One reader for three containers: the usual one, a bare protobuf message with the data in its fields ("version 1"), and
the container of small chips, whose header `dumpsim.codecs.nano` reads. [spec ge 3.9]
"""

import os
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dumpsim.codecs import nano
from dumpsim.codecs.dumpdata import Decoder, DumpData, Item, item_of
from dumpsim.codecs.wire import Span, bad
from dumpsim.core.errors import BadInputError
from dumpsim.core.regular import RegularFile, open_regular

__all__ = ["BinFile"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_MAX_HEADER = 1 << 26  # bytes; real headers have a few hundred
_HEAD = 1 << 12  # bytes of the first read, enough for most headers
Kind = Literal["bin", "nano", "bare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BinFile:
    """A dump file: its header, read and checked, and views of its data, mapped on request.

    Attributes
    ----------
    path : str
    kind : str
        ``bin``, ``nano`` or ``bare``.
    data : DumpData
    spans : mapping of str to tuple
        First and last byte of each of ``inputs``, ``outputs``, ``buffers`` and ``spaces``.
    content : bytes or None
        The file, if it was small enough to be read as a whole.
    """

    path: str
    kind: Kind
    data: DumpData
    spans: dict[str, tuple[Span, ...]]
    content: bytes | None = field(default=None, repr=False)

    @classmethod
    def open(cls, path: "str | os.PathLike[str]", *, trailing: bool = False, read_below: int = 0) -> "BinFile":
        """Read a file's header.

        Parameters
        ----------
        path : path
        trailing : bool
            Whether bytes after the last tensor are allowed, as in the vendor's newest reader. [spec ge 3.1]
        read_below : int
            Files with fewer bytes are read as a whole, with their header. If all tensors are read once, that takes half
            the time of mapping them.

        Raises
        ------
        UnreadableError
            With file and offset, for a file that is cut short, has trailing bytes, or is not a dump file.

        Examples
        --------
        >>> import tempfile
        >>> from dumpsim.codecs.dumpdata import Item, dtype_number, format_number, header
        >>> item = Item(dtype=dtype_number("float16"), format=format_number("ND"), shape=(2,), size=4)
        >>> data = DumpData(op_name="Add_1", dump_time=1700000000000000, inputs=(item,), outputs=())
        >>> with tempfile.NamedTemporaryFile(suffix=".3.5.1700000000000000") as file:
        ...     _ = file.write(header(data) + bytes.fromhex("003c0040"))
        ...     file.flush()
        ...     BinFile.open(file.name).input(0).view("float16").tolist()
        [1.0, 2.0]
        """
        where = os.fspath(path)
        with open_regular(path) as opened:
            size = opened.size
            whole = size < read_below
            head = opened.read(size if whole else min(size, _HEAD))
            if size <= 8:
                raise bad(where, size, f"{size} bytes are not a dump file")
            end = 8 + (length := int.from_bytes(head[:8], "little"))
            if not 1 <= length <= size - 8:
                return cls._bare(opened, length)
            if length > _MAX_HEADER:
                raise bad(where, 0, f"a header of {length} bytes is above the limit of {_MAX_HEADER}")
            if end > len(head) and not whole:
                head += opened.read(end - len(head))
        if len(head) < (size if whole else end):
            raise bad(where, len(head), "the file was cut while it was read")
        view = memoryview(head)[:end]
        kind: Kind = "bin"
        if head[8:12] == nano.MAGIC:
            kind, trailing = "nano", False  # sizes must add up exactly [spec ge 3.9]
            data = _nano(view, where)
        else:
            data, _ = Decoder(view, where).dump_data((8, end))
        spans = _spans(data, end, size, where, trailing)
        return cls(path=where, kind=kind, data=data, spans=spans, content=head if whole else None)

    @classmethod
    def _bare(cls, opened: RegularFile, length: int) -> "BinFile":
        """Read a bare protobuf message, whose parts contain their data."""
        where, size = opened.path, opened.size
        if size > 1 << 31:
            raise bad(where, 0, f"a header of {length} bytes does not fit a file of {size} bytes")
        view = np.memmap(opened.stream(), np.uint8, mode="r").data
        try:
            if view[0] not in (0x0A, 0x10, 0x1A, 0x22):  # version, time, output or input
                raise bad(where, 0, "the first byte is not a field of a dump")
            data, contents = Decoder(view, where).dump_data((0, size))
        except ValueError as error:
            what = f"a header of {length} bytes does not fit a file of {size} bytes"
            raise bad(where, 0, f"{what}, nor is it a bare message ({error})") from None
        spans = {}
        for name, parts in contents.items():
            spans[name] = tuple(span or (0, 0) for span in parts)
            for part, (start, end) in zip(getattr(data, name), spans[name], strict=True):
                if part.size not in (0, end - start):
                    raise bad(where, start, f"{end - start} bytes of data, but the size is {part.size}")
        return cls(path=where, kind="bare", data=data, spans=spans)

    def _view(self, what: str, index: int) -> Bytes:
        spans = self.spans[what]
        if not 0 <= index < len(spans):
            raise BadInputError(
                f"no index {index}", where=f"{self.path}: {what}", allowed=[f"0..{len(spans) - 1}"] if spans else ()
            )
        start, end = spans[index]
        if start == end:
            return np.empty(0, np.uint8)
        if self.content is not None:
            return np.frombuffer(self.content, np.uint8, end - start, start)
        with open_regular(self.path) as opened:
            if opened.size < end:
                raise bad(self.path, opened.size, "the file was cut since its header was read")
            return np.memmap(opened.stream(), np.uint8, mode="r", offset=start, shape=(end - start,))

    def input(self, index: int) -> Bytes:
        """Return the bytes of an input, read-only and mapped unless the file was read as a whole."""
        return self._view("inputs", index)

    def output(self, index: int) -> Bytes:
        """Return the bytes of an output."""
        return self._view("outputs", index)

    def buffer(self, index: int) -> Bytes:
        """Return the bytes of an L1 buffer."""
        return self._view("buffers", index)

    def space(self, index: int) -> Bytes:
        """Return the bytes of a workspace."""
        return self._view("spaces", index)


def _nano(view: memoryview, where: str) -> DumpData:
    """Decode a header of tags; operator and time, which it does not contain, come from the file's name."""
    version, inputs, outputs = nano.decode(view, (8, len(view)), where)
    name = os.path.basename(where).split(".")
    stamp = name[-1] if len(name) > 2 and name[-1].isdecimal() else "0"
    return DumpData(
        op_name=name[1] if len(name) > 2 else "",
        dump_time=int(stamp[:20]),
        version=str(version),
        inputs=tuple(item_of(found) for found in inputs),
        outputs=tuple(item_of(found) for found in outputs),
    )


def _spans(data: DumpData, start: int, size: int, where: str, trailing: bool) -> dict[str, tuple[Span, ...]]:
    """Return the bytes of each part.

    Parts without an address have no bytes if the sizes do not fit the file otherwise. [spec ge 3.1]
    """
    items = data.parts
    sizes = [item.size for item in items]
    if start + sum(sizes) > size:
        present = [0 if isinstance(item, Item) and item.address == 0 else item.size for item in items]
        if start + sum(present) == size:
            sizes = present
    at = start
    spans: dict[str, tuple[Span, ...]] = {}
    index = 0
    for name in ("inputs", "outputs", "buffers", "spaces"):
        row = []
        for number in range(len(getattr(data, name))):
            end = at + sizes[index]
            if end > size:
                raise bad(where, at, f"{name[:-1]} {number} has {sizes[index]} bytes, {size - at} are left")
            row.append((at, end))
            at = end
            index += 1
        spans[name] = tuple(row)
    if at < size and not trailing:
        raise bad(where, at, f"{size - at} bytes follow the last tensor")
    return spans
