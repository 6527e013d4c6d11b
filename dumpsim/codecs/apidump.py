"""Files of an API dump beside its arrays: the info file and the stack file; and the names of records.

Despite its suffix the info file is text, with one JSON array per line; it is never unpickled. [spec api_dump 1.4]
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from dumpsim.codecs.lines import warn_unfinished
from dumpsim.codecs.stackfile import StackFile
from dumpsim.core.errors import UnreadableError
from dumpsim.core.regular import open_regular

__all__ = [
    "HOMES",
    "ApiName",
    "ApiRecord",
    "file_name",
    "is_statistics_free",
    "lines_of",
    "parse_name",
    "read_info",
    "read_stack",
    "stack_keys",
    "stack_text",
    "tail_of",
]

LAYER = "LAYER"
HOMES = MappingProxyType(  # kind of an API -> its module or class in torch [spec api_dump 1.5]
    {
        "NN": "torch.nn.",
        "Functional": "torch.nn.functional.",
        "Tensor": "torch.Tensor.",
        "Torch": "torch.",
        "VF": "torch._VF.",
    }
)
_MAX_LINE = 1 << 20  # limits the memory that a forged file can take
_MAX_BITS = 1023  # of an integer that fits a float
_PLAIN = re.compile(r"[0-9A-Za-z_.]+")  # text without escapes in JSON
_NAME = re.compile(
    r"(?P<kind>[A-Za-z]+)_(?P<api>.+)_(?P<count>\d{1,18})_(?P<direction>forward|backward)_(?P<io>input|output)"
    r"(?P<index>(?:\.[^.]+)*)",
    re.ASCII,
)
_LAYER_NAME = re.compile(
    r"LAYER_(?P<api>.+)_(?P<direction>forward|backward)_(?P<io>input|output)(?P<index>(?:\.[^.]+)*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRecord:
    """One line of the info file.

    Attributes
    ----------
    name : str
        Name of the record, and of its npy file without the suffix.
    dtype : str
        As the framework prints it: ``torch.float32``, ``Float32``, ``<class 'int'>``.
    shape : tuple of int
    max, min, mean : float
        NaN if they were not requested.
    md5 : str or None
        Digest of the raw bytes; 1.0.18 only.
    l2norm : float or None
        1.0.18 only.
    version : str
        ``1.0.17`` (six fields) or ``1.0.18`` (eight fields).
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max: float
    min: float
    mean: float
    md5: str | None = None
    l2norm: float | None = None
    version: str = "1.0.17"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiName:
    """The parts of a record's name.

    Attributes
    ----------
    kind : str
        ``NN``, ``Functional``, ``Tensor``, ``Torch``, ``VF`` or ``LAYER``.
    api : str
        Name of the API; for a LAYER, the module's path with ``_`` in place of ``.``.
    count : int or None
        Index of the call of this API; None for a LAYER.
    direction, io : str
        ``forward`` or ``backward``; ``input`` or ``output``.
    index : tuple of int or str
        Position in the arguments or results. A string is a keyword or a key; only our own full dumps have them.
    """

    kind: str
    api: str
    count: int | None
    direction: str
    io: str
    index: tuple[int | str, ...] = ()

    @property
    def call(self) -> str:
        """The call that the record belongs to: ``NN_Linear_0``, ``LAYER_fc``."""
        return f"{self.kind}_{self.api}" if self.count is None else f"{self.kind}_{self.api}_{self.count}"

    def __str__(self) -> str:
        tail = "".join(f".{part}" for part in self.index)
        return f"{self.call}_{self.direction}_{self.io}{tail}"


def lines_of(names: Sequence[str], tails: Sequence[str]) -> str:
    r"""Format lines of 1.0.17 from names and the results of `tail_of`; NaN and infinities are not quoted.

    Examples
    --------
    >>> lines_of(["NN_ReLU_0_forward_output"], [tail_of("torch.int8", (), (1, 1, 1))])
    '["NN_ReLU_0_forward_output", 1, [], "torch.int8", [], [1, 1, 1]]\n'
    """
    records = zip(names, tails, strict=True)
    if _PLAIN.fullmatch("".join(names)):
        return "".join([f'["{name}", 1, [], {tail}' for name, tail in records])
    return "".join([f"[{json.dumps(name)}, 1, [], {tail}" for name, tail in records])


def tail_of(dtype: str, shape: tuple[int, ...], values: tuple[Any, Any, Any]) -> str:
    r"""Format the fields of a line of 1.0.17 after the name and the reserved fields.

    Examples
    --------
    >>> tail_of("torch.float32", (2, 8), (1.0, 0.0, math.nan))
    '"torch.float32", [2, 8], [1.0, 0.0, NaN]]\n'
    """
    high, low, mean = values
    return f"{_described(dtype, shape)}{_text(high)}, {_text(low)}, {_text(mean)}]]\n"


@lru_cache(maxsize=4096)
def _described(dtype: str, shape: tuple[int, ...]) -> str:
    """Format type and shape, up to the statistics."""
    return f'"{dtype}", [{", ".join(map(str, shape))}], ['


def _text(value: Any) -> str:
    """Format a number as `json` does; common cases do not need its encoder."""
    if type(value) is float:
        if -math.inf < value < math.inf:
            return repr(value)
        if value != value:
            return "NaN"
    return json.dumps(value)


def read_info(path: "str | os.PathLike[str]") -> Iterator[ApiRecord]:
    """Iterate over the records of an info file of 1.0.17 or 1.0.18, in the order of the file.

    An unfinished last line is left out with a warning.

    Raises
    ------
    UnreadableError
        For a line that is not such a record, with file and line.
    """
    with open_regular(path) as file:
        for number, line in enumerate(file.lines(_MAX_LINE), 1):
            if not line.endswith(b"\n") and line[:2] == b'["'[: len(line)]:  # other bytes may be a pickle, for example
                warn_unfinished(path, number)
                return
            if line.strip():
                yield _record(path, number, line)


def file_name(name: str) -> str:
    """Return the name of a record's npy file; ``/`` and NUL are escaped as in a URL.

    Examples
    --------
    >>> file_name("NN_Linear_0_forward_output"), file_name("LAYER_a-b/c_forward_output")
    ('NN_Linear_0_forward_output.npy', 'LAYER_a-b%2Fc_forward_output.npy')
    """
    return f"{name}.npy".replace("/", "%2F").replace("\0", "%00")


def is_statistics_free(record: ApiRecord) -> bool:
    """Return whether the record has no statistics: a bool, an empty tensor, or a dump of type npy or stack."""
    return all(isinstance(value, float) and math.isnan(value) for value in (record.max, record.min, record.mean))


def parse_name(name: str) -> ApiName:
    """Parse a record's name.

    Raises
    ------
    UnreadableError
        For a name that no API dump has.

    Examples
    --------
    >>> parse_name("Torch_cat_3_forward_input.0.1")
    ApiName(kind='Torch', api='cat', count=3, direction='forward', io='input', index=(0, 1))
    >>> str(parse_name("LAYER_features_0_forward_input"))
    'LAYER_features_0_forward_input'
    """
    found = (_LAYER_NAME if name.startswith("LAYER_") else _NAME).fullmatch(name) if len(name) < 1 << 16 else None
    if found is None:
        raise UnreadableError(f"{name[:200]!r} is not the name of a record of an API dump", code="DS-ADP-002")
    part = found.groupdict()
    index = tuple(_position(text) for text in part["index"].split(".")[1:])
    return ApiName(
        kind=part.get("kind") or LAYER,
        api=part["api"],
        count=int(part["count"]) if part.get("count") else None,
        direction=part["direction"],
        io=part["io"],
        index=index,
    )


def stack_text(stacks: Mapping[str, Sequence[str]]) -> str:
    """Format the stack file: one JSON object, indented by four, in the order of the calls.

    Examples
    --------
    >>> print(stack_text({"torch.clip(0) forward": ["File net.py, line 1, in f, \\n clip(x)"]}))
    {
        "torch.clip(0) forward": [
            "File net.py, line 1, in f, \\n clip(x)"
        ]
    }
    """
    return json.dumps({key: list(frames) for key, frames in stacks.items()}, indent=4)


def read_stack(path: "str | os.PathLike[str]") -> StackFile:
    """Read a stack file: frames by key, innermost frame first.

    If the file is cut short, its complete entries are used, with a warning.

    Raises
    ------
    UnreadableError
    """
    return StackFile(path)


def stack_keys(name: ApiName) -> Iterator[str]:
    """Iterate over the keys that the frames of a call may have; a backward call has those of its forward call.

    Examples
    --------
    >>> list(stack_keys(parse_name("NN_Linear_0_backward_input")))
    ['NN_Linear_0_forward_stack_info', 'torch.nn.Linear(0) forward']
    """
    yield f"{name.call}_forward_stack_info"
    if name.kind == LAYER:
        yield f"LAYER: {name.api} forward"
        yield f"LAYER: {name.api.replace('_', '.')} forward"
    elif home := HOMES.get(name.kind):
        yield f"{home}{name.api}({name.count}) forward"
        if name.kind == "VF":
            yield f"_VF.{name.api}({name.count}) forward"


def _record(path: Any, number: int, line: bytes) -> ApiRecord:
    """Parse and check one line."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _bad(path, number, f"is not JSON: {error}") from None
    if not isinstance(fields, list) or len(fields) not in (6, 8):
        raise _bad(path, number, "is not an array of 6 or 8 fields")
    name, _, _, kind, shape, values, *more = fields
    if not isinstance(name, str) or not isinstance(kind, str):
        raise _bad(path, number, "name and data type are not both strings")
    if not name.isprintable() or not kind.isprintable():
        raise _bad(path, number, f"{(name + kind)[:200]!a} has characters that are not printable")
    if not isinstance(shape, list) or not all(type(dim) is int and 0 <= dim < 1 << 48 for dim in shape):
        raise _bad(path, number, f"shape {str(shape)[:200]} is not possible")
    if not isinstance(values, list) or len(values) != 3:
        raise _bad(path, number, "maximum, minimum and mean are not three values")
    largest, smallest, mean = (_number(path, number, value) for value in values)
    md5, norm = more or (None, [])
    if not isinstance(md5, str) and md5 not in (None, []):
        raise _bad(path, number, f"md5 {str(md5)[:200]} is neither a string nor []")
    return ApiRecord(
        name=name,
        dtype=kind,
        shape=tuple(shape),
        max=largest,
        min=smallest,
        mean=mean,
        md5=md5 or None,
        l2norm=None if norm == [] else _number(path, number, norm),
        version="1.0.18" if more else "1.0.17",
    )


def _number(path: Any, number: int, value: Any) -> float:
    """Check a statistic: a number, or [] for a missing one. [spec api_dump 1.4: bool of MindSpore 1.0.17]"""
    if value == []:
        return math.nan
    if not isinstance(value, bool | int | float):
        raise _bad(path, number, f"{str(value)[:200]} is not a statistic")
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise _bad(path, number, f"a statistic of {value.bit_length()} bits is too large")
    return value


def _position(text: str) -> int | str:
    """Parse a part of the index: digits are a position, anything else is a key."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text


def _bad(path: Any, line: int | None, what: str) -> UnreadableError:
    where = os.fspath(path) if line is None else f"{os.fspath(path)}:{line}"
    return UnreadableError(what, where=where, code="DS-ADP-001")
