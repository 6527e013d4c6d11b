"""The table of number types, against numpy and ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.dtype import DTYPES, dtype, from_numpy
from dumpsim.core.errors import DtypeError

SHORT = {"float16": "F16", "float32": "F32", "float64": "F64", "complex64": "C64", "complex128": "C128", "bool": "Bool"}


@pytest.mark.parametrize("name", [name for name in DTYPES if hasattr(np, name) or hasattr(ml_dtypes, name)])
def test_sizes_are_those_of_numpy(name):
    row = DTYPES[name]
    kind = np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))
    packed = {"int4": 4, "uint1": 1}
    assert row.bits == packed.get(name, 8 * kind.itemsize)
    assert row.title.lower() == name.replace("_", "")


@pytest.mark.parametrize("name", [name for name, row in DTYPES.items() if row.descr and row.descr[1] in "biufc"])
def test_descriptions_are_those_of_numpy(name):
    row, kind = DTYPES[name], np.dtype(name)
    assert row.descr == kind.newbyteorder("<").str
    assert row.kind == {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}[kind.kind]
    assert row.short == SHORT.get(name, f"{kind.kind.upper()}{8 * kind.itemsize}")


# debugger.DataType [spec mindspore 8.2]; types that it does not have are 0
PROTO = {"bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
         "float16": 10, "float32": 11, "float64": 12, "bfloat16": 46, "int4": 48}  # fmt: skip
# rows of types that numpy does not have: title, bits, descr, kind, short
NARROW = {
    "bfloat16": ("BFloat16", 16, "<E2", "float", "BF16"),  # [spec observed 0.4]
    "int4": ("Int4", 4, None, "int", "I4"),
    "uint1": ("UInt1", 1, None, "uint", "U1"),
    "float8_e5m2": ("Float8E5M2", 8, None, "float", "F8E5M2"),
    "float8_e4m3fn": ("Float8E4M3FN", 8, None, "float", "F8E4M3FN"),
    "hifloat8": ("HiFloat8", 8, None, "float", "HF8"),
}


def test_numbers_of_the_protobuf():
    assert {name: row.proto for name, row in DTYPES.items()} == dict.fromkeys(DTYPES, 0) | PROTO


def test_types_that_numpy_lacks():
    for name, fields in NARROW.items():
        row = dtype(name)
        assert (row.title, row.bits, row.descr, row.kind, row.short) == fields
    assert {name for name, row in DTYPES.items() if row.descr is None or row.descr[1] == "E"} == set(NARROW)


def test_bytes_of_elements_and_tensors():
    """An element of int4 is a pair, eight of uint1 are in a byte."""
    sizes = {name: 1 if name in ("int4", "uint1") else row.bits // 8 for name, row in DTYPES.items()}
    assert {name: row.itemsize for name, row in DTYPES.items()} == sizes
    for name, row in DTYPES.items():
        for count in (0, 1, 7, 8, 9, 15, 16, 17):
            assert row.nbytes(count) == (-(-count // 8) if name == "uint1" else count * sizes[name])


def test_numpys_types_there_and_back():
    for name, row in DTYPES.items():
        if name == "hifloat8":
            with pytest.raises(DtypeError, match=r"did you mean 'float8_e4m3fn'.*DS-TYP-002"):
                _ = row.numpy
            continue
        kind = {"uint1": np.dtype(np.uint8), "int4": np.dtype([("int4x2", "i1")])}.get(name)
        assert row.numpy == (kind or np.dtype(getattr(ml_dtypes, name, name)))
        assert from_numpy(row.numpy) is dtype("uint8" if name == "uint1" else name)
        assert str(row) == name
    assert from_numpy(np.dtype(">f4")) is from_numpy(np.float32) is dtype("float32")


def test_spellings():
    for name, row in DTYPES.items():
        assert dtype(row) is row
        for spelled in (name, name.upper(), row.title if row.bits != 8 or "_" not in name else name):
            assert dtype(spelled) is row
    # [decisions]
    aliases = {"int": "int32", "uint": "uint32", "float": "float32", "double": "float64", "bool_": "bool"}
    assert {alias: dtype(alias).name for alias in aliases} == aliases
    for wrong in ("float31", "", "Float8E5M2"):
        with pytest.raises(DtypeError, match=rf"^unknown number type '{wrong}'; allowed: bool, .*\[DS-TYP-001\]$"):
            dtype(wrong)
