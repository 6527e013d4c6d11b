"""One dump file as the tool sees it: tensors with their arrays, buffers, workspaces."""

import math
import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.codecs import npy
from dumpsim.codecs.binfile import BinFile
from dumpsim.codecs.dumpdata import DTYPES_PROTO, FORMATS, Item
from dumpsim.core.errors import DumpsimError, UnreadableError
from dumpsim.tensor.cast import to_numpy, widen

__all__ = ["OPDEBUG", "RANKS", "DumpFile", "Name", "Tensor", "name_of"]

Array = NDArray[Any]

OPDEBUG = "Opdebug.Node_OpDebug."  # case matters [spec ge 3.8]
_NAME = re.compile(  # [spec ge 4.6]
    r"(?P<type>[A-Za-z0-9_-]+)\.(?P<name>[A-Za-z0-9_-]+)\.(?P<task>\d+)(\.(?P<stream>\d+))?\.(?P<time>\d{1,255})"
    r"(\.(?P<kind>\d+)\.(?P<context>\d+)\.(?P<thread>\d+))?(\.(?P<device>\d+))?"
)

# our names of types -> what the arrays of the npy files hold [spec ge 4.2]
_PLAIN = frozenset(
    [
        "float32",
        "float16",
        "float64",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "bool",
        "complex64",
        "complex128",
    ]
)
_LIMIT = 1 << 32  # larger dimensions are forged
_AS_FLOAT64 = frozenset({"hifloat8", "float8_e4m3fn", "float8_e5m2"})
# layouts whose names promise a number of dimensions; a tensor with another number is ND
RANKS = {"NCHW": 4, "NHWC": 4, "HWCN": 4, "CHWN": 4, "NCDHW": 5, "NDHWC": 5, "DHWCN": 5, "NC1HWC0": 5, "FRACTAL_Z": 4}
RANKS |= {"NDC1HWC0": 6, "FRACTAL_Z_3D": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """An input or an output.

    Attributes
    ----------
    io : str
        ``input`` or ``output``.
    index : int
    dtype, format : str
        Our name of the type; the vendor's of the layout.
    shape, original_shape : tuple of int
        On the device and on the host; the latter may be empty.
    groups : int
        Of FRACTAL_Z; 1 for none.
    address : int
    original_name, original_index
        The operator before fusion.
    raw : ndarray
        The bytes, or, of an npy file, the array itself.
    """

    io: str
    index: int
    dtype: str
    format: str
    shape: tuple[int, ...]
    original_shape: tuple[int, ...]
    groups: int
    address: int
    raw: Array
    original_name: str = ""
    original_index: int = 0

    @property
    def label(self) -> str:
        """``input:0``"""
        return f"{self.io}:{self.index}"

    @property
    def real_format(self) -> str:
        """The layout; ND where the shape has not the dimensions that it promises."""
        rank = RANKS.get(self.format)
        return self.format if rank is None or rank == len(self.shape) else "ND"

    def array(self) -> Array:
        """The elements in device layout, with the types that the tool's npy files have. [spec ge 4.2]

        Raises
        ------
        ToolError
            Exit code 21 for a type that the tool does not support, 40 for data that are not of the shape.
        """
        if self.dtype not in DECODED:
            raise ToolError(Status.INVALID_DATA_TYPE, f"The output data type ({_number(self.dtype)}) does not support.")
        if self.raw.dtype != np.uint8 or self.raw.ndim != 1:  # of an npy file
            return self.raw
        if self.dtype == "undefined":
            return self.raw.view(np.int8)
        if max(self.shape, default=0) > _LIMIT:
            raise ToolError(Status.SHAPE_MISMATCH, f"The shape {self.shape} of {self.label} is not possible.")
        if 0 in self.shape:
            return np.empty(self.shape, np.float64)
        dtype = "int64" if self.dtype == "resource" else self.dtype
        try:
            if dtype == "uint1":
                whole = 8 * self.raw.size
                shape = self.shape or (whole,)
                return to_numpy(self.raw, "uint1", shape)
            itemsize = 2 if dtype == "bfloat16" else 1 if dtype in _AS_FLOAT64 else np.dtype(dtype).itemsize
            shape = self.shape or (1,)  # a scalar
            flat = to_numpy(self.raw[: math.prod(shape) * itemsize], dtype, shape)  # more data than that are let pass
        except DumpsimError as error:
            raise ToolError(Status.SHAPE_MISMATCH, f"The data of {self.label} do not fit: {error}") from error
        return flat.astype(np.float64) if dtype in _AS_FLOAT64 else flat


DECODED = _PLAIN | _AS_FLOAT64 | {"bfloat16", "uint1", "undefined", "resource"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpFile:
    """A dump file; everything in it is mapped, nothing is loaded."""

    path: str
    op_name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    buffers: tuple[Array, ...] = ()
    spaces: tuple[Array, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (*self.inputs, *self.outputs)

    @classmethod
    def open(cls, path: str) -> "DumpFile":
        """A bin file, or an npy file, which is one output.

        Raises
        ------
        ToolError
            Exit code 11 for what is not a dump, 39 for a file of 8 bytes or fewer.
        """
        size = os.path.getsize(path)
        if path.endswith(".npy"):
            return cls._npy(path)
        if size <= 8:
            what = (
                f"The size of '{path}' must be greater than 8, but the file size is {size}. Please check the dump file."
            )
            raise ToolError(Status.SIZE_MISMATCH, what)
        try:
            file = BinFile.open(path, trailing=True)
        except UnreadableError as error:
            raise ToolError(Status.INVALID_DUMP_DATA, f"{error.what} ({error.where})") from error
        data = file.data
        return cls(
            path=path,
            op_name=data.op_name,
            inputs=tuple(_tensor("input", i, item, file.input(i)) for i, item in enumerate(data.inputs)),
            outputs=tuple(_tensor("output", i, item, file.output(i)) for i, item in enumerate(data.outputs)),
            buffers=tuple(file.buffer(i) for i in range(len(data.buffers))),
            spaces=tuple(file.space(i) for i in range(len(data.spaces))),
        )

    @classmethod
    def _npy(cls, path: str) -> "DumpFile":
        try:
            array = npy.read(path)
        except UnreadableError as error:
            raise ToolError(Status.INVALID_DUMP_DATA, f"{error.what} ({error.where})") from error
        if array.dtype.name == "bfloat16":
            array = widen(array, "bfloat16")
        output = Tensor(
            io="output",
            index=0,
            dtype=array.dtype.name,
            format="NCHW",
            shape=array.shape,
            original_shape=array.shape,
            groups=1,
            address=0,
            raw=array,
        )
        return cls(path=path, op_name="", inputs=(), outputs=(output,))


def _tensor(io: str, index: int, item: Item, raw: Array) -> Tensor:
    row = DTYPES_PROTO.get(item.dtype)
    return Tensor(
        io=io,
        index=index,
        dtype=row.dtype if row else str(item.dtype),
        format=FORMATS.get(item.format, str(item.format)),
        shape=item.shape,
        original_shape=item.original_shape,
        groups=max(1, item.sub_format),
        address=item.address,
        original_name=item.original_name,
        original_index=item.original_index,
        raw=raw,
    )


def _number(dtype: str) -> str:
    return next((str(row.number) for row in DTYPES_PROTO.values() if row.dtype == dtype), dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """The parts of a dump file's name; ids that it has not are None."""

    op_type: str
    op_name: str
    task_id: int
    stream_id: int | None
    timestamp: int
    context_id: int | None = None
    thread_id: int | None = None


def name_of(name: str) -> Name | None:
    """Parse a file name; None if it is not a dump's. [spec ge 3.4, 4.6]

    Examples
    --------
    >>> found = name_of("Add.Add_1.3.5.1700000000000000")
    >>> found.op_type, found.op_name, found.task_id, found.stream_id
    ('Add', 'Add_1', 3, 5)
    >>> name_of("Add.Add_1.3.1700000000000000").stream_id, name_of("statistic.csv")
    (None, None)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return Name(
        op_type=found["type"],
        op_name=found["name"],
        task_id=int(found["task"]),
        stream_id=_int(found["stream"]),
        timestamp=int(found["time"]),
        context_id=_int(found["context"]),
        thread_id=_int(found["thread"]),
    )


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)
