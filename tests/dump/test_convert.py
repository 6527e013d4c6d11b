"""From bytes of device memory to the array of a file: layouts, number types, samples."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.dtype import dtype
from dumpsim.dump.convert import Conversion, NotDumped, convert, device_values, graph_format
from dumpsim.tensor.layout import to_device
from tests.dump.machine import ref

X = np.arange(6, dtype=np.float32).reshape(2, 3)
IMAGE = np.arange(2 * 20 * 3 * 3, dtype=np.float32).reshape(2, 20, 3, 3)
MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def said(ref, **how):
    """What a file says of a tensor: layout, number type, shape, and the size in its row."""
    found = convert(ref, Conversion(**how))
    return found.format, found.stored_dtype.name, found.shape, found.nbytes


def test_tensors_are_converted_to_the_hosts_form_unless_told():
    assert Conversion() == Conversion(to_host=True, raw=False, rank4=False, float32=True, sample=None, bug_compat=False)
    plain, other = ref(X), ref(X, device="float16")
    found = convert(plain, Conversion())
    assert not found.owned  # it is the memory of the device
    assert np.shares_memory(found.stored, plain.read())
    found = convert(other, Conversion())
    assert found.owned
    assert not np.shares_memory(found.stored, other.read())


@pytest.mark.parametrize(
    ("tensor", "how", "expected"),
    [
        (ref(X), {}, ("DefaultFormat", "float32", (2, 3), 24)),
        (ref(X), {"to_host": False}, ("DefaultFormat", "float32", (2, 3), 24)),
        (ref(X), {"raw": True}, ("DefaultFormat", "float32", (2, 3), 24)),
        (ref(X), {"rank4": True}, ("ND", "float32", (2, 3), 24)),
        (ref(X, device="float16"), {}, ("DefaultFormat", "float32", (2, 3), 24)),
        (ref(X, device="float16"), {"to_host": False}, ("DefaultFormat", "float16", (2, 3), 12)),
        (ref(X, device="float16"), {"rank4": True}, ("ND", "float16", (2, 3), 12)),
        (ref(IMAGE, device="float16", layout="NC1HWC0"), {}, ("DefaultFormat", "float32", (2, 20, 3, 3), 1440)),
        (
            ref(IMAGE, device="float16", layout="NC1HWC0"), {"to_host": False},
            ("NC1HWC0", "float16", (2, 2, 3, 3, 16), 1152),
        ),
        (ref(IMAGE, device="float16", layout="NC1HWC0"), {"rank4": True}, ("NCHW", "float16", (2, 20, 3, 3), 720)),
        (ref(IMAGE, layout="FRACTAL_Z"), {"rank4": True}, ("NCHW", "float32", (2, 20, 3, 3), 1440)),
        (ref(IMAGE), {"rank4": True}, ("NCHW", "float32", (2, 20, 3, 3), 1440)),
        # only layouts of four axes are converted [spec mindspore 5.6]
        (ref(MATRIX, layout="FRACTAL_NZ"), {"rank4": True}, ("FRACTAL_NZ", "float32", (1, 1, 16, 16), 1024)),
        (ref(X), {"sample": 5}, ("DefaultFormat", "float32", (5,), 20)),
        (ref(X), {"sample": 6}, ("DefaultFormat", "float32", (2, 3), 24)),
        (ref(X.astype(ml_dtypes.bfloat16)), {}, ("DefaultFormat", "float32", (2, 3), 12)),
        (ref(X.astype(ml_dtypes.bfloat16)), {"float32": False}, ("DefaultFormat", "bfloat16", (2, 3), 12)),
        (ref(np.uint8([0x21, 0x43]), kind="int4", shape=(4,)), {}, ("DefaultFormat", "int8", (4,), 2)),
        (ref(np.uint8([0x21, 0x43]), kind="int4", shape=(3,)), {}, ("DefaultFormat", "int8", (3,), 2)),
        (ref(np.uint8([0x21, 0x43]), kind="int4", shape=(1, 2)), {}, ("DefaultFormat", "int8", (1, 4), 2)),
        (ref(np.uint8([0x21]), kind="int4", shape=(1,)), {}, ("DefaultFormat", "int8", (2,), 1)),
        (ref(np.uint8([0x21, 0x43, 0x65]), kind="int4", shape=(3,)), {}, ("DefaultFormat", "int8", (6,), 3)),
        (ref(np.uint8([0x21, 0x43]), kind="int4", shape=(2, 1, 1)), {}, ("DefaultFormat", "int8", (2, 1, 2), 2)),
        (ref(np.uint8([0x21, 0x43]), kind="int4", shape=(1, 1, 2)), {}, ("DefaultFormat", "int8", (1, 1, 4), 2)),
        (ref(np.uint8([0x21]), kind="int4", shape=()), {}, ("DefaultFormat", "int8", (), 1)),
        (ref(np.uint8([1, 1]), kind="uint1", shape=(9,)), {}, ("DefaultFormat", "uint8", (9,), 2)),
        (ref(np.uint8([1, 1]), kind="uint1", shape=(9,)), {"sample": 8}, ("DefaultFormat", "uint8", (8,), 1)),
    ],
)  # fmt: skip
def test_what_a_file_says_of_a_tensor(tensor, how, expected):
    assert said(tensor, **how) == expected


def test_values_are_those_of_the_host():
    half = IMAGE.astype(np.float16).astype(np.float32)
    for layout in ("NC1HWC0", "FRACTAL_Z", "DefaultFormat"):
        found = convert(ref(IMAGE, device="float16", layout=layout), Conversion())
        assert np.array_equal(found.stored, half)
        assert (found.owned, found.dtype.name) == (True, "float32")
    values = convert(ref(X), Conversion(sample=4)).values
    assert values.tolist() == [0, 1, 2, 3]
    raw = convert(ref(IMAGE, layout="NC1HWC0"), Conversion(raw=True))
    blocks = ref(IMAGE, layout="NC1HWC0").read()
    assert raw.stored.tobytes() == blocks[: IMAGE.nbytes].tobytes()  # as many bytes, not converted [spec mindspore 7]


def test_memory_is_shared_where_nothing_has_to_be_converted():
    for how in (Conversion(), Conversion(to_host=False), Conversion(raw=True), Conversion(sample=2)):
        tensor = ref(X)
        found = convert(tensor, how)
        assert (found.owned, np.shares_memory(found.stored, tensor.read())) == (False, True)
    brain = ref(X.astype(ml_dtypes.bfloat16))
    found = convert(brain, Conversion())
    assert (found.dtype.name, found.values.dtype, found.owned) == ("bfloat16", ml_dtypes.bfloat16, True)
    assert np.array_equal(found.stored, X)


@pytest.mark.parametrize(
    ("change", "unchanged"),
    [
        ({}, True), ({"to_host": False}, False), ({"raw": True}, False), ({"rank4": True}, False),
        ({"sample": 100}, False), ({"float32": False}, True), ({"bug_compat": True}, True),
    ],
)  # fmt: skip
def test_what_is_written_from_device_memory(change, unchanged):
    how = Conversion(**change)
    assert how.unchanged(ref(X)) is unchanged
    packed = (ref(np.uint8([1]), kind=kind, shape=(count,)) for kind, count in (("uint1", 8), ("int4", 2)))
    brain = ref(X.astype(ml_dtypes.bfloat16))
    for other in (ref(X, device="float16"), ref(IMAGE, layout="NC1HWC0"), brain, *packed):
        assert how.unchanged(other) is False


@pytest.mark.parametrize(
    ("tensor", "how", "reason", "level"),
    [
        (replace(ref(np.zeros(2, np.uint8)), dtype=dtype("hifloat8"), device_dtype=dtype("hifloat8")), {},
         "hifloat8 has no npy form", "WARNING"),
        (ref(X, device="float16"), {"raw": True}, "the host tensor is larger than the device tensor", "ERROR"),
        (ref(np.zeros((1, 1, 4, 4), np.float16), layout="CHWN"), {}, "the dump does not convert CHWN", "ERROR"),
        (replace(ref(X), device_format="NO_FORMAT"), {}, "the dump does not convert NO_FORMAT", "ERROR"),
        (replace(ref(IMAGE, layout="NC1HWC0"), shape=(3, 20, 3, 3)), {}, "NC1HWC0: ", "ERROR"),
        (replace(ref(IMAGE, layout="NC1HWC0"), shape=(3, 20, 3, 3)), {"rank4": True}, "NC1HWC0: ", "ERROR"),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_tensors_that_the_vendor_skips(tensor, how, reason, level):
    with pytest.raises(NotDumped) as caught:
        convert(tensor, Conversion(**how))
    assert str(caught.value).startswith(reason)
    assert caught.value.level == level


@pytest.mark.parametrize("count", range(1, 18))
def test_bits_with_the_defect_of_their_last_byte(count):
    """quirk: 8 - n % 8 values of the last byte are written instead of n % 8. [spec mindspore 3.5]"""
    tensor = ref(np.full(3, 0xFF, np.uint8), kind="uint1", shape=(count,))
    assert convert(tensor, Conversion()).stored.tolist() == [1] * count
    tail = count % 8
    written = count - tail + (min(tail, 8 - tail) if tail else 0)
    found = convert(tensor, Conversion(bug_compat=True))
    assert found.stored.tolist() == [1] * written + [0] * (count - written)
    assert found.values.shape == (count,)


def test_packed_numbers_in_a_private_layout():
    """Low nibble first; the layout is that of the unpacked numbers. [spec mindspore 3.5]"""
    host = (np.arange(32 * 64) * 7 % 16 - 8).astype(np.int8).reshape(32, 64)
    blocks = to_device(host, "FRACTAL_NZ")
    nibbles = blocks.reshape(-1).view(np.uint8) & 15
    data = nibbles[0::2] | nibbles[1::2] << 4
    packed = ref(data, kind="int4", shape=(32, 64))
    found = convert(replace(packed, device_format="FRACTAL_NZ", device_shape=blocks.shape), Conversion())
    assert np.array_equal(found.stored, host)
    assert (found.stored.dtype, found.nbytes) == (np.int8, 1024)


def test_numbers_beyond_a_type_become_infinite_without_a_warning():
    tensor = replace(ref(np.float32([1e30, np.nan, 2])), dtype=dtype("float16"))
    assert np.array_equal(convert(tensor, Conversion()).stored, np.float16([np.inf, np.nan, 2]), equal_nan=True)


@pytest.mark.parametrize(
    ("layout", "array", "form"),
    [("DefaultFormat", IMAGE, "NCHW"), ("DefaultFormat", MATRIX, "ND"), ("DefaultFormat", IMAGE[None], "ND"),
     ("NC1HWC0", IMAGE, "NC1HWC0"), ("ND", IMAGE, "ND")],
)  # fmt: skip
def test_formats_of_whole_graphs(layout, array, form):
    assert graph_format(ref(array, layout=layout)) == form


def test_kernels_of_the_device_see_values_without_padding():
    for layout in ("NC1HWC0", "FRACTAL_Z"):
        found = device_values(ref(IMAGE, device="float16", layout=layout))
        assert found.dtype == np.float16
        assert np.array_equal(found, IMAGE.astype(np.float16))
    assert device_values(ref(X, device="float16")).tolist() == X.tolist()
    assert device_values(ref(X, layout="ND")).shape == (2, 3)
