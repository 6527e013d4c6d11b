"""File names of a dump, and their parsers.

========================  ==========================================================================================
bin                       ``{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}`` [spec mindspore 3.7, spec ge 3.4]
bin of an FFTS+ sub-task  the same and ``.4.{context_id}.{thread_id}.{device_id}``
npy                       a bin name and ``.{input|output}.{slot}.{format}.{dtype}.npy`` [spec mindspore 3.4]
overflow                  ``Opdebug.Node_OpDebug.{task_id}.{stream_id}.{timestamp}``, ``.output.0.json`` [spec ge 3.8]
exception                 ``{op_type}.{op_name}.{task_id}.{time}``, ``exception_info.{stream_id}.{task_id}.{time}``
tensordump                ``{base}_{dtype}_{id}.npy``, or ``{id}_{base}.npy`` [spec mindspore 9]
========================  ==========================================================================================
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial

from dumpsim.archive.longname import Number, npy_number
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import UnreadableError
from dumpsim.core.record import Record

__all__ = [
    "OPDEBUG",
    "BinName",
    "NameRule",
    "calendar",
    "escape",
    "exception_info_name",
    "exception_name",
    "is_dump_file",
    "parse_bin",
    "parse_npy",
    "parse_tensordump",
]

OPDEBUG = ("Opdebug", "Node_OpDebug")  # operator type and name of an overflow's file, in this case [spec ge 3.8]
_OLDEST = 10**9  # the smallest number that is a time stamp, whatever its unit
_EXCEPTION_INFO = "exception_info"
_FFTS_PLUS = 4  # the task type in names of sub-tasks
# [spec mindspore 3.4]; newlines, which it does not mention, would break files with one name per line
_ESCAPES = str.maketrans(dict.fromkeys("/\\. \n\r", "_"))
_TITLES = {row.title: row.name for row in DTYPES.values()}
_NPY = re.compile(
    r"(?P<head>.+?)\.(?P<task>\d{1,20})\.(?P<stream>\d{1,20})\.(?P<stamp>\d{1,20})(?:\.4\.\d+\.\d+\.\d+)?"
    r"\.(?P<io>input|output)\.(?P<slot>\d{1,20})"
    r"\.(?P<format>[A-Za-z0-9_]+)(?:\.(?P<dtype>[A-Za-z0-9_]+))?\.npy",
    re.ASCII,
)
_BIN = re.compile(
    r"(?P<type>[^./]+)\.(?P<name>[^./]+)\.(?P<task>\d{1,20})(?:\.(?P<stream>\d{1,20}))?\.(?P<stamp>\d{1,20})"
    r"(?P<part>\.4\.\d{1,20}\.\d{1,20}\.\d{1,20})?",
    re.ASCII,
)
_INFO = re.compile(r"exception_info\.(?P<stream>\d{1,20})\.(?P<task>\d{1,20})\.(?P<stamp>\d{1,20})", re.ASCII)
_TENSORDUMP = re.compile(rf"(?P<base>.+)_(?P<dtype>{'|'.join(DTYPES)})_(?P<id>\d{{1,20}})\.npy", re.ASCII)
_TENSORDUMP_FIRST = re.compile(r"(?P<id>\d{1,20})_(?P<base>.+)\.npy", re.ASCII)
_CALENDAR = "%Y%m%d%H%M%S"


@lru_cache(maxsize=4096)  # an operator has several tensors, and runs again and again
def escape(name: str) -> str:
    """Return a scope name as part of a file name.

    Examples
    --------
    >>> escape("Default/fc1-Dense/MatMul-op0"), escape("odd.name/with:chars w")
    ('Default_fc1-Dense_MatMul-op0', 'odd_name_with:chars_w')
    """
    return name.translate(_ESCAPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRule:
    """A profile's rule for names of npy files.

    Attributes
    ----------
    dtype_in_name : str
        ``lower`` (``float32``), ``title`` (``Float32``) or ``none``.
    op_name : str
        ``escaped`` full scope, or the ``short`` last part, as in the seed's samples.
    over_long : str
        ``hash``: the number in mapping.csv is std::hash of the name; ``random``: it also depends on a salt, which
        replaces the vendor's random numbers and is the same in every run.
    """

    dtype_in_name: str = "lower"
    op_name: str = "escaped"
    over_long: str = "hash"

    def shown_op_name(self, full_name: str) -> str:
        """Return the op_name field."""
        return escape(full_name.rsplit("/", 1)[-1] if self.op_name == "short" else full_name)

    def npy(self, record: Record) -> str:
        """Return the file name of a tensor.

        Examples
        --------
        >>> record = Record(op_type="Add", op_name="Default/Add-op0", io="output", slot=0, dtype="float32",
        ...                 shape=(2, 3), timestamp=1700000000000001)
        >>> NameRule(dtype_in_name="title").npy(record)
        'Add.Default_Add-op0.0.0.1700000000000001.output.0.DefaultFormat.Float32.npy'
        """
        head, tail = self.npy_parts(
            record.op_type, record.op_name, io=record.io, slot=record.slot, form=record.format, dtype=record.dtype
        )
        return f"{head}.{record.task_id}.{record.stream_id}.{record.timestamp}.{tail}"

    def npy_parts(self, op_type: str, op_name: str, *, io: str, slot: int, form: str, dtype: str) -> tuple[str, str]:
        """Return the parts of a tensor's file name before the ids of task and stream, and after the time stamp.

        Examples
        --------
        >>> NameRule().npy_parts("Add", "Default/Add-op0", io="output", slot=0, form="DefaultFormat", dtype="float32")
        ('Add.Default_Add-op0', 'output.0.DefaultFormat.float32.npy')
        """
        kind = ""
        if self.dtype_in_name == "lower":
            kind = f".{dtype}"
        elif self.dtype_in_name == "title":
            kind = f".{DTYPES[dtype].title}"
        return f"{op_type}.{self.shown_op_name(op_name)}", f"{io}.{slot}.{form}{kind}.npy"

    def number(self, salt: str) -> Number:
        """Return the numbering of names that are too long; `salt` is the file's directory, for ``random`` numbers.

        Examples
        --------
        >>> NameRule().number("0/Net/0/1")("x" * 256 + ".npy")
        '2112587105.npy'
        """
        return partial(npy_number, salt=salt if self.over_long == "random" else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class BinName:
    """The name of a bin file.

    Attributes
    ----------
    op_type, op_name : str
        Those of the graph; escaped ones if the name was parsed.
    task_id : int
    stream_id : int or None
        None in the four fields of older toolkits and of exceptions.
    timestamp : int
        Microseconds since 1970.
    part : tuple of int
        Context, thread and device of an FFTS+ sub-task; empty for other tasks.
    time : str
        The calendar time (``20231114221320123``) of exception files, which replaces microseconds.
    """

    op_type: str
    op_name: str
    task_id: int
    stream_id: int | None
    timestamp: int
    part: tuple[int, ...] = ()
    time: str = ""

    @property
    def opdebug(self) -> bool:
        """Whether it is the file of an overflow."""
        return (self.op_type, self.op_name) == OPDEBUG

    def __str__(self) -> str:
        """The file name.

        Examples
        --------
        >>> str(BinName(op_type="Add", op_name="Default/Add_1", task_id=3, stream_id=5, timestamp=1700000000000000))
        'Add.Default_Add_1.3.5.1700000000000000'
        """
        stamp = self.time or str(self.timestamp)
        if self.op_type == _EXCEPTION_INFO:
            return f"{_EXCEPTION_INFO}.{self.stream_id}.{self.task_id}.{stamp}"
        ids = [self.task_id] if self.stream_id is None else [self.task_id, self.stream_id]
        fields = [escape(self.op_type), escape(self.op_name), *map(str, ids), stamp]
        if self.part:
            fields += map(str, (_FFTS_PLUS, *self.part))
        return ".".join(fields)

    def json(self, slot: int = 0) -> str:
        """Return the name of an overflow's JSON file, beside npy files.

        Examples
        --------
        >>> BinName(op_type="Opdebug", op_name="Node_OpDebug", task_id=1, stream_id=2, timestamp=3).json()
        'Opdebug.Node_OpDebug.1.2.3.output.0.json'
        """
        return f"{self}.output.{slot}.json"

    def record(self, io: str, slot: int) -> Record:
        """Make the record of one of the operator's tensors from the name."""
        return Record(
            op_type=self.op_type,
            op_name=self.op_name,
            io=io,
            slot=slot,
            dtype="",
            shape=(),
            timestamp=self.timestamp,
            task_id=self.task_id,
            stream_id=self.stream_id or 0,
        )


def calendar(timestamp: int) -> str:
    """Format a time stamp as in exception files: UTC to the millisecond.

    Examples
    --------
    >>> calendar(1700000000123456)
    '20231114221320123'
    """
    when = datetime.fromtimestamp(timestamp // 10**6, UTC)
    return f"{when:{_CALENDAR}}{timestamp // 1000 % 1000:03d}"


def exception_name(op_type: str, op_name: str, task_id: int, timestamp: int) -> str:
    """Return the name of the file of a failed operator. [spec ge 2.9]

    Examples
    --------
    >>> exception_name("Add", "Default/Add_1", 3, 1700000000123456)
    'Add.Default_Add_1.3.20231114221320123'
    """
    time = calendar(timestamp)
    return str(
        BinName(op_type=op_type, op_name=op_name, task_id=task_id, stream_id=None, timestamp=timestamp, time=time)
    )


def exception_info_name(stream_id: int, task_id: int, timestamp: int) -> str:
    """Return the name of the short file of a failure, with arguments without names. [spec ge 2.9]

    Examples
    --------
    >>> exception_info_name(2, 3, 1700000000123456)
    'exception_info.2.3.20231114221320123'
    """
    return f"{_EXCEPTION_INFO}.{stream_id}.{task_id}.{calendar(timestamp)}"


def parse_bin(name: str, *, where: str | None = None) -> BinName:
    """Parse the name of a bin file in any form of the table above.

    Raises
    ------
    UnreadableError
        For a name that is not that of a bin file.

    Examples
    --------
    >>> parse_bin("Add.Add_1.3.5.1700000000000000").stream_id
    5
    >>> parse_bin("Add.Add_1.3.20231114221320123").timestamp
    1700000000123000
    """
    if found := _INFO.fullmatch(name):
        timestamp, time = _stamp(found["stamp"])
        return BinName(
            op_type=_EXCEPTION_INFO,
            op_name="",
            task_id=int(found["task"]),
            stream_id=int(found["stream"]),
            timestamp=timestamp,
            time=time,
        )
    found = _BIN.fullmatch(name)
    if found is None:
        raise UnreadableError("is not the name of a dump file", where=where or name, code="DS-ARC-002")
    timestamp, time = _stamp(found["stamp"])
    return BinName(
        op_type=found["type"],
        op_name=found["name"],
        task_id=int(found["task"]),
        stream_id=int(found["stream"]) if found["stream"] else None,
        timestamp=timestamp,
        part=tuple(int(number) for number in (found["part"] or "").split(".")[2:]),
        time=time,
    )


def is_dump_file(name: str) -> bool:
    """Return whether a file may be part of a dump, by its name: npy, statistics, overflow, bin, or mapping.csv.

    A name such as ``libfoo.so.1.2`` is not that of a bin file, since its last number is not a time stamp.

    Examples
    --------
    >>> [is_dump_file(name) for name in ("Add.Add_1.3.5.1700000000000000", "libfoo.so.1.2", "acl_dump_0.json")]
    [True, False, False]
    """
    if name.endswith(".npy") or name in ("statistic.csv", "mapping.csv"):
        return True
    name = name.removesuffix(".csv")
    if name.startswith(".".join(OPDEBUG)) and name.endswith(".json"):
        return True
    try:
        return parse_bin(name).timestamp >= _OLDEST
    except UnreadableError:
        return False


def _stamp(text: str) -> tuple[int, str]:
    """Parse a time stamp to microseconds; also return the text if it is a calendar time."""
    if len(text) == len("YYYYMMDDHHMMSSmmm"):
        try:
            when = datetime.strptime(text[:-3], _CALENDAR).replace(tzinfo=UTC)
        except ValueError:
            return int(text), ""
        return int(when.timestamp()) * 10**6 + int(text[-3:]) * 1000, text
    return int(text), ""


def parse_tensordump(name: str, *, where: str | None = None) -> tuple[Record, int]:
    """Parse the file name of a TensorDump to record and number in the run.

    Raises
    ------
    UnreadableError
        For a name without a number.

    Examples
    --------
    >>> record, number = parse_tensordump("dense_in_float16_7.npy")
    >>> record.op_name, record.io, record.dtype, number
    ('dense_in', 'input', 'float16', 7)
    >>> parse_tensordump("3_dense.npy")[1]
    3
    """
    found = _TENSORDUMP.fullmatch(name)
    dtype = found["dtype"] if found else ""
    if found is None:
        found = _TENSORDUMP_FIRST.fullmatch(name)
    if found is None:
        raise UnreadableError("is not the name of a dumped tensor", where=where or name, code="DS-ARC-001")
    base = found["base"]
    io = "input" if base.endswith("_in") else "output"
    record = Record(op_type="TensorDump", op_name=base, io=io, slot=0, dtype=dtype, shape=(), timestamp=0)
    return record, int(found["id"])


def parse_npy(name: str, *, where: str | None = None) -> Record:
    """Parse the file name of a tensor to a record; shape and stored type are in the file.

    The data type may be missing or in upper or lower case, and the scope full or short. If the name has no data type,
    that of the record is empty.

    Raises
    ------
    UnreadableError
        For a name that is not that of a tensor.

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
        raise UnreadableError("has a data type and no format", where=where or name, code="DS-ARC-001")
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
