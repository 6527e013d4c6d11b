"""Tensors of bin files on the host: layouts by numpy alone, low precision by ml_dtypes and en_dtypes."""

import math

import en_dtypes
import ml_dtypes
import numpy as np
import pytest
from dumpproto import dump_file, messages

import dumpsim
from dumpsim.codecs.protonumber import dtype_number, format_number
from dumpsim.core.errors import UnreadableError, UnsupportedError


def tensor(path, raw, dtype, format, shape, original=(), **fields):
    """The one output of a file written by google.protobuf."""
    message = messages()["DumpData"](version="2.0", dump_time=1700000000000000, op_name="Default/x/Op-op1")
    output = message.output.add(data_type=dtype, format=format, size=len(raw), address=0x1000, **fields)
    output.shape.dim.extend(shape)
    output.original_shape.dim.extend(original)
    file = path / "Op.Default_x_Op-op1.3.5.1700000000000000"
    file.write_bytes(dump_file(message, raw))
    (entry,) = dumpsim.open(file)
    return entry


def numbers(*shape):
    return np.random.default_rng(7).normal(size=shape).astype(np.float16)


def padded(array, axis, block):
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, -array.shape[axis] % block)
    return np.pad(array, widths)


def nc1hwc0(x, c0=16):
    n, _, h, w = x.shape
    full = padded(x, 1, c0)
    return full.reshape(n, -1, c0, h, w).transpose(0, 1, 3, 4, 2)


def fractal_z(x, c0=16):
    full = padded(padded(x, 0, 16), 1, c0)
    n, c, h, w = full.shape
    return full.reshape(n // 16, 16, c // c0, c0, h, w).transpose(2, 4, 5, 0, 1, 3).reshape(-1, n // 16, 16, c0)


def fractal_nz(x, c0=16):
    full = padded(padded(x, -2, 16), -1, c0)
    *lead, m, n = full.shape
    axes = [*range(len(lead)), *(len(lead) + axis for axis in (2, 0, 1, 3))]
    return full.reshape(*lead, m // 16, 16, n // c0, c0).transpose(axes)


@pytest.mark.parametrize(
    ("format", "convert", "shape"),
    [("NC1HWC0", nc1hwc0, (2, 19, 3, 5)), ("FRACTAL_Z", fractal_z, (20, 3, 3, 2)), ("FRACTAL_NZ", fractal_nz, (19, 33)),
     ("FRACTAL_NZ", fractal_nz, (2, 3, 19, 33))],
)  # fmt: skip
def test_device_layouts_become_the_hosts(format, convert, shape, tmp_path):
    x = numbers(*shape)
    device = np.ascontiguousarray(convert(x))
    entry = tensor(tmp_path, device.tobytes(), 2, format_number(format), device.shape, shape)
    assert (entry.shape, entry.device_shape, entry.format, entry.dtype) == (shape, device.shape, format, "float16")
    assert np.array_equal(entry.array(), x)
    assert np.array_equal(entry.part.device(), device)
    assert entry.part.converted
    assert entry.statistic("count") == math.prod(shape)  # padding is not counted
    assert entry.statistic("max") == float(x.max())
    assert entry.nbytes == device.nbytes


def test_groups_come_from_the_sub_format(tmp_path):
    """Two groups that fit one block lie on its diagonal. [spec ge 5.3]"""
    x = numbers(8, 3, 2, 2)
    diagonal = np.zeros((8, 6, 2, 2), np.float16)
    diagonal[:4, :3], diagonal[4:, 3:] = x[:4], x[4:]
    device = np.ascontiguousarray(fractal_z(diagonal))
    entry = tensor(tmp_path, device.tobytes(), 2, 4, device.shape, x.shape, sub_format=2)
    assert np.array_equal(entry.array(), x)


def test_the_order_of_the_host_is_told_by_the_shapes(tmp_path):
    """A TensorFlow graph's original shape is NHWC; the device's dimensions fit that order only."""
    x = numbers(2, 5, 7, 19)
    device = np.ascontiguousarray(nc1hwc0(x.transpose(0, 3, 1, 2)))
    entry = tensor(tmp_path, device.tobytes(), 2, 3, device.shape, x.shape)
    assert entry.shape == x.shape
    assert np.array_equal(entry.array(), x)


@pytest.mark.parametrize("shape", [(2, 20, 16), (2, 1, 1, 20, 16)])
def test_dimensions_of_the_device_may_be_merged(tmp_path, shape):
    """They fit no order of the host's axes; of those of the same size the layout's own comes first."""
    x = numbers(2, 3, 4, 5)
    entry = tensor(tmp_path, nc1hwc0(x).tobytes(), 2, 3, shape, x.shape)
    assert (entry.shape, entry.part.converted, entry.part.host_order) == (x.shape, True, None)
    assert np.array_equal(entry.array(), x)


@pytest.mark.parametrize(
    ("merged", "order", "to_nchw"), [((2, 28, 16), "NHWC", (0, 3, 1, 2)), ((19, 10, 16), "HWCN", (3, 2, 0, 1))]
)
def test_merged_dimensions_of_another_order_are_told_by_their_size(tmp_path, merged, order, to_nchw):
    x = numbers(2, 7, 4, 5) if order == "NHWC" else numbers(2, 5, 3, 19)
    entry = tensor(tmp_path, nc1hwc0(x.transpose(to_nchw)).tobytes(), 2, 3, merged, x.shape)
    assert (entry.part.host_order, entry.part.converted) == (order, True)
    assert np.array_equal(entry.array(), x)


@pytest.mark.parametrize("original", [(1, 2, 3, 2, 5), (2, 3, 4, 7)])
def test_what_no_order_of_the_host_explains_stays_as_it_is(tmp_path, original):
    """A shape of five dimensions has no NC1HWC0, and 2 * 4 * 7 blocks are not 40."""
    x = numbers(2, 1, 4, 5, 16)
    entry = tensor(tmp_path, x.tobytes(), 2, 3, x.shape, original)
    assert (entry.shape, entry.part.converted, entry.part.host_order) == (x.shape, False, None)
    assert np.array_equal(entry.array(), x)


def test_bfloat16_in_a_device_layout(tmp_path):
    x = numbers(1, 17, 2, 3).astype(ml_dtypes.bfloat16)
    device = np.ascontiguousarray(nc1hwc0(x))
    entry = tensor(tmp_path, device.tobytes(), dtype_number("bfloat16"), 3, device.shape, x.shape)
    assert entry.array().dtype == np.float32
    assert np.array_equal(entry.array(), x.astype(np.float32))
    assert entry.dtype == entry.record.stored_dtype == "bfloat16"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("float8_e5m2", ml_dtypes.float8_e5m2), ("float8_e4m3fn", ml_dtypes.float8_e4m3fn),
     ("hifloat8", en_dtypes.hifloat8), ("float8_e8m0", ml_dtypes.float8_e8m0fnu)],
)  # fmt: skip
def test_all_codes_of_small_floats(name, kind, tmp_path):
    codes = np.arange(256, dtype=np.uint8)
    entry = tensor(tmp_path, codes.tobytes(), dtype_number(name), 2, (16, 16))
    assert np.array_equal(entry.array(), codes.view(kind).astype(np.float32).reshape(16, 16), equal_nan=True)
    assert entry.statistic("count") == 256


@pytest.mark.parametrize(
    ("dtype", "raw", "shape", "values"),
    [("int4", b"\xf1\x08", (3,), [1, -1, -8]), ("uint1", b"\xa0", (3,), [1, 0, 1]),
     ("bool", b"\1\0", (2,), [True, False]),
     ("resource", (9).to_bytes(8, "little"), (1,), [9]), ("undefined", b"abc", (7,), [97, 98, 99]),
     ("int64", (5).to_bytes(8, "little"), (), 5), ("int16", b"\1\0\2\0", (), [1, 2]),
     ("complex64", np.complex64([1 + 2j]).tobytes(), (1,), [1 + 2j])],
)  # fmt: skip
def test_other_types(dtype, raw, shape, values, tmp_path):
    entry = tensor(tmp_path, raw, dtype_number(dtype), 2, shape)
    assert entry.array().tolist() == values
    assert entry.array().shape == entry.shape


@pytest.mark.parametrize("size", [2, 3, 7, 8, 9, 40])
@pytest.mark.parametrize(
    ("dtype", "bits"), [("int4", 4), ("bool", 8), ("int16", 16), ("float32", 32), ("int64", 64), ("complex64", 64)]
)
def test_without_a_shape_all_bytes_are_elements_in_a_row(dtype, bits, size, tmp_path):
    raw = np.arange(size * bits // 8).astype(np.uint8) & (1 if dtype == "bool" else 255)
    entry = tensor(tmp_path, raw.tobytes(), dtype_number(dtype), 2, ())
    assert entry.shape == entry.device_shape == entry.array().shape == (raw.size * 8 // bits,)
    if dtype != "int4":
        assert entry.array().tobytes() == raw.tobytes()


def test_int4_in_a_device_layout(tmp_path):
    x = np.random.default_rng(3).integers(-8, 8, (20, 70)).astype(np.int8)
    device = fractal_nz(x, 64).reshape(-1)
    raw = ((device[1::2] & 15) << 4 | device[::2] & 15).astype(np.uint8)
    shape = (2, 2, 16, 64)
    entry = tensor(tmp_path, raw.tobytes(), dtype_number("int4"), format_number("FRACTAL_NZ"), shape, (20, 70))
    assert np.array_equal(entry.array(), x)


def test_values_are_mapped_not_read(tmp_path):
    entry = tensor(tmp_path, np.arange(6, dtype=np.float32).tobytes(), 1, 2, (2, 3))
    array = entry.array()
    base = array
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert base is not None
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


def test_what_cannot_be_converted_stays_as_it_is(tmp_path):
    """A layout without a documented rule, and shapes that fit no rule."""
    x = np.arange(32, dtype=np.float32)
    strange = tensor(tmp_path, x.tobytes(), 1, format_number("FRACTAL_DECONV"), (2, 16), (2, 3))
    assert (strange.shape, strange.part.converted, strange.format) == ((2, 16), False, "FRACTAL_DECONV")
    assert np.array_equal(strange.array(), x.reshape(2, 16))
    odd = tensor(tmp_path, x.tobytes(), 1, 3, (2, 16), (5, 5, 5, 5))
    assert (odd.shape, odd.part.converted) == ((2, 16), False)
    unknown = tensor(tmp_path, x.tobytes(), 1, 77, (32,))
    assert (unknown.format, unknown.array().tolist()) == ("format 77", x.tolist())


def test_types_without_values_give_their_bytes(tmp_path):
    for number, name in ((13, "string"), (18, "qint8"), (39, "float4_e2m1"), (99, "type 99")):
        entry = tensor(tmp_path, b"abcd", number, 2, (4,))
        assert (entry.dtype, entry.statistic("max"), bytes(entry.part.raw())) == (name, None, b"abcd")
        with pytest.raises(UnsupportedError, match=f"output 0: values of {name} cannot be read"):
            entry.array()


def test_dimensions_beyond_2_to_the_48_are_forged_even_without_elements(tmp_path):
    entry = tensor(tmp_path, b"", 1, 2, (0, 1 << 48))
    assert entry.array().shape == (0, 1 << 48)
    entry = tensor(tmp_path, b"", 1, 2, (0, (1 << 48) + 1))
    with pytest.raises(UnreadableError, match="output 0: float32 of shape"):
        entry.array()


@pytest.mark.parametrize(
    ("shape", "size"), [((2, 3), 20), ((2, 3), 28), ((2**63, 2**63), 24), ((0, 2**63), 0), ((2**64 - 1, 2), 24)]
)
def test_forged_shapes_cost_nothing(shape, size, tmp_path):
    entry = tensor(tmp_path, bytes(size), 1, 2, shape)
    with pytest.raises(UnreadableError, match=r"output 0: float32 of shape .* the file has"):
        entry.array()
    for format in (3, 4, 29):
        entry = tensor(tmp_path, bytes(size), 1, format, shape, (2**62, 2**62, 3, 3))
        with pytest.raises(UnreadableError, match="output 0"):
            entry.array()
