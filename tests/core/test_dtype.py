"""The table of number types, against numpy and ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.dtype import DTYPES

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


def test_numbers_of_the_protobuf_are_unique():
    numbers = [row.proto for row in DTYPES.values() if row.proto]
    assert len(numbers) == len(set(numbers))
