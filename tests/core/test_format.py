"""The table of layouts and the block sizes, against the documents. [spec mindspore 10.1, 10.2] [spec ge 5.1, 5.2]"""

from dataclasses import astuple

import pytest

from dumpsim.core.errors import FormatError
from dumpsim.core.format import DIALECTS, FORMATS, HOST_ORDERS, cube_c0, dialect, find

# name: rank of host shapes (0: any), whether channels come in blocks, C0 if the layout fixes it, what MindSpore's dump
# does with it, whether an index rule is documented, GE's only host order if it is not the usual one
LAYOUTS = {
    "DefaultFormat": (0, False, None, "copy", True, None),
    "ND": (0, False, None, "copy", True, None),
    "NCHW": (4, False, None, "copy", True, None),
    "NCDHW": (5, False, None, "copy", True, None),
    "NHWC": (4, False, None, "convert", True, None),
    "HWCN": (4, False, None, "convert", True, None),
    "CHWN": (4, False, None, "unsupported", True, None),
    "NDHWC": (5, False, None, "unsupported", True, None),
    "DHWCN": (5, False, None, "unsupported", True, None),
    "DHWNC": (5, False, None, "unsupported", True, None),
    "NC1HWC0": (4, True, None, "convert", True, None),
    "NC1HWC0_C04": (4, True, 4, "convert", True, None),
    "NDC1HWC0": (5, True, None, "convert", True, None),
    "FRACTAL_Z": (4, True, None, "convert", True, None),
    "FRACTAL_Z_C04": (4, True, None, "unexpected", True, None),
    "FRACTAL_Z_3D": (5, True, None, "convert", True, None),
    "FRACTAL_Z_3D_TRANSPOSE": (5, True, None, "unsupported", True, "DHWNC"),
    "FRACTAL_NZ": (0, True, None, "convert", True, None),
    "C1HWNCoC0": (4, True, None, "convert", True, "HWCN"),
    "FRACTAL_ZN_LSTM": (4, True, 16, "unsupported", True, "HWCN"),
    "FRACTAL_ZN_RNN": (0, True, None, "unsupported", True, None),
    "ND_RNN_BIAS": (0, True, None, "unsupported", True, None),
    "NC1KHKWHWC0": (0, False, None, "unsupported", False, None),
    "NCL": (0, False, None, "unsupported", True, None),
    "ChannelFirst": (0, False, None, "unsupported", True, None),
    "ChannelLast": (0, False, None, "unsupported", True, None),
}


def test_layouts_are_those_of_the_documents():
    assert {name: astuple(find(name))[1:] for name in FORMATS} == LAYOUTS
    assert all(find(name).name == name for name in FORMATS)
    assert [(name, axes) for name, axes in HOST_ORDERS.items() if name != axes.upper()] == []
    assert {name for name, row in LAYOUTS.items() if row[0] and not row[1]} == set(HOST_ORDERS)


@pytest.mark.parametrize("wrong", ["FRACTAL_N", ["ND"], None])
def test_an_unknown_layout(wrong):
    with pytest.raises(FormatError) as caught:
        find(wrong)
    assert str(caught.value).startswith(f"unknown device format {wrong!r}; allowed: DefaultFormat, ND, NCHW, ")
    assert caught.value.nearest == ("FRACTAL_NZ" if wrong == "FRACTAL_N" else caught.value.nearest)
    assert caught.value.code == "DS-FMT-001"


def test_dialects():
    assert DIALECTS == ("mindspore", "ge")
    assert [dialect(name) for name in DIALECTS] == ["mindspore", "ge"]
    for wrong in ("MindSpore", "", "gee"):
        with pytest.raises(FormatError, match=r"^dialect: unknown dialect .*; allowed: mindspore, ge.*DS-FMT-002"):
            dialect(wrong)


# MindSpore: 32 for int8 and uint8, 64 for int4, 16 for everything else; GE: 32 for one byte, 16 for the rest
@pytest.mark.parametrize(
    ("kind", "itemsize", "mindspore", "ge"),
    [
        ("int8", 1, 32, 32), ("uint8", 1, 32, 32), ("bool", 1, 16, 32), ("float8_e5m2", 1, 16, 32), ("int4", 1, 64, 16),
        ("float16", 2, 16, 16), ("bfloat16", 2, 16, 16), ("float32", 4, 16, 16), ("int64", 8, 16, 16),
        ("complex128", 16, 16, 16),
    ],
)  # fmt: skip
def test_block_sizes_by_number_type(kind, itemsize, mindspore, ge):
    assert cube_c0(kind, itemsize=itemsize) == cube_c0(kind, itemsize=itemsize, dialect="mindspore") == mindspore
    assert cube_c0(kind, itemsize=itemsize, dialect="ge") == ge


def test_block_sizes_that_are_given():
    for size in (1, 2, 16, 16383, 16384):  # GE has four bits for log2(C0) + 1
        assert cube_c0("int8", itemsize=1, override=size) == size
    for size, closest in ((0, "1"), (-5, "1"), (16385, "16384"), (16.0, None), ("16", None), (True, "1")):
        with pytest.raises(FormatError, match=r"is not a block size; allowed: 1\.\.16384") as caught:
            cube_c0("int8", itemsize=1, override=size)
        assert (caught.value.nearest, caught.value.where, caught.value.code) == (closest, "c0", "DS-FMT-003")
