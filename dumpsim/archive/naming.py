"""File names of a dump: written from a record, read back into one.

``{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}.{input|output}.{slot}.{format}.{dtype}.npy`` [spec mindspore
3.4]
"""

import re
from dataclasses import dataclass

from dumpsim.codecs.mapping import string_hash
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import UnreadableError
from dumpsim.core.record import Record

__all__ = ["MAX_NAME", "NameRule", "escape", "parse_npy"]

MAX_NAME = 255  # bytes of a file name; one more goes to mapping.csv [spec observed 1.2]
_ESCAPES = str.maketrans({"/": "_", "\\": "_", ".": "_", " ": "_"})  # [spec mindspore 3.4]
_TITLES = {row.title: row.name for row in DTYPES.values()}
_NPY = re.compile(
    r"(?P<head>.+?)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<stamp>\d+)\.(?P<io>input|output)\.(?P<slot>\d+)"
    r"\.(?P<format>[A-Za-z0-9_]+)(?:\.(?P<dtype>[A-Za-z0-9_]+))?\.npy"
)


def escape(name: str) -> str:
    """A scope name as part of a file name.

    Examples
    --------
    >>> escape("Default/fc1-Dense/MatMul-op0"), escape("odd.name/with:chars w")
    ('Default_fc1-Dense_MatMul-op0', 'odd_name_with:chars_w')
    """
    return name.translate(_ESCAPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRule:
    """How a profile names npy files.

    Attributes
    ----------
    dtype_in_name : str
        ``lower`` (``float32``), ``title`` (``Float32``) or ``none``.
    op_name : str
        ``escaped`` full scope, or the ``short`` last part that the seed's samples show.
    over_long : str
        ``hash``: the number in mapping.csv is std::hash of the bare name; ``random``: it also depends on a salt, which
        stands for
        the vendor's random numbers and is the same in every run.
    """

    dtype_in_name: str = "lower"
    op_name: str = "escaped"
    over_long: str = "hash"

    def shown_op_name(self, full_name: str) -> str:
        """The op_name field."""
        return escape(full_name.rsplit("/", 1)[-1] if self.op_name == "short" else full_name)

    def npy(self, record: Record) -> str:
        """The file name of a tensor.

        Examples
        --------
        >>> record = Record(op_type="Add", op_name="Default/Add-op0", io="output", slot=0, dtype="float32",
        ...                 shape=(2, 3), timestamp=1700000000000001)
        >>> NameRule(dtype_in_name="title").npy(record)
        'Add.Default_Add-op0.0.0.1700000000000001.output.0.DefaultFormat.Float32.npy'
        """
        ids = f"{record.task_id}.{record.stream_id}.{record.timestamp}.{record.io}.{record.slot}"
        name = f"{record.op_type}.{self.shown_op_name(record.op_name)}.{ids}.{record.format}"
        if self.dtype_in_name == "lower":
            name += f".{record.dtype}"
        elif self.dtype_in_name == "title":
            name += f".{DTYPES[record.dtype].title}"
        return name + ".npy"

    def short_name(self, name: str, *, salt: str = "") -> str | None:
        """The number that stands for an over-long npy name, None where the name fits.

        Examples
        --------
        >>> NameRule().short_name("a.npy") is None, NameRule().short_name("x" * 256 + ".npy")
        (True, '2112587105.npy')
        """
        raw = name.encode()
        if len(raw) <= MAX_NAME:
            return None
        if self.over_long == "random":
            raw = f"{salt}/{name}".encode()
        return f"{string_hash(raw) % 2**31}.npy"


def parse_npy(name: str, *, where: str | None = None) -> Record:
    """The record that a file name tells; shape and stored type are in the file.

    Names with and without a number type, in either case, full scope or short, are all read. The number type is empty
    where the
    name has none.

    Raises
    ------
    UnreadableError
        For a name that is no tensor's.

    Examples
    --------
    >>> record = parse_npy("Add.Default_Add-op0.0.0.1700000000000001.output.0.DefaultFormat.Float32.npy")
    >>> record.op_type, record.op_name, record.io, record.slot, record.dtype
    ('Add', 'Default_Add-op0', 'output', 0, 'float32')
    """
    found = _NPY.fullmatch(name)
    if found is None:
        raise UnreadableError("is not the name of a dumped tensor", where=where or name, code="DS-ARC-001")
    head = found["head"]
    op_type, _, op_name = head.partition(".")
    if found["dtype"] is None and found["format"] in _TITLES:
        raise UnreadableError("holds a number type and no format", where=where or name, code="DS-ARC-001")
    word = found["dtype"] or ""
    return Record(
        op_type=op_type,
        op_name=op_name,
        io=found["io"],
        slot=int(found["slot"]),
        dtype=_TITLES.get(word, word.lower()),
        shape=(),
        timestamp=int(found["stamp"]),
        format=found["format"],
        task_id=int(found["task"]),
        stream_id=int(found["stream"]),
    )
