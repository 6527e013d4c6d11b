"""What the tool reads in a dump file: the parts of its name, its tensors, and the arrays they become."""

import ml_dtypes
import numpy as np
import pytest
from binfile import bin_bytes, item

from dumpsim.analysis.msaccucmp.dumpfile import DumpFile, Tensor, name_of
from dumpsim.analysis.msaccucmp.status import Status, ToolError

TIME = "1700000000000000"


@pytest.fixture
def opened(tmp_path):
    """opened(raw, dtype, shape) -> the only output of a dump file with it."""

    def make(raw, dtype, shape):
        path = tmp_path / f"Add.a.1.2.{TIME}"
        path.write_bytes(bin_bytes([], [item(raw, dtype=dtype, shape=shape)]))
        (found,) = DumpFile.open(str(path)).outputs
        return found

    return make


def tensor(dtype, raw, shape):
    return Tensor(
        io="output", index=2, dtype=dtype, format="ND", shape=shape, original_shape=(), groups=1, address=0, raw=raw
    )


# [spec ge 4.6]: type.name.task[.stream].time[.kind.context.thread][.device]
NAMES = {
    f"Add.Add_1.3.5.{TIME}": ("Add", "Add_1", 3, 5, int(TIME), None, None),
    f"Add.Add_1.3.{TIME}": ("Add", "Add_1", 3, None, int(TIME), None, None),
    f"A-b_9.x-Y_0.0.0.{TIME}": ("A-b_9", "x-Y_0", 0, 0, int(TIME), None, None),
    f"Add.Add_1.3.5.{TIME}.2.11.7": ("Add", "Add_1", 3, 5, int(TIME), 11, 7),
    f"Add.Add_1.3.5.{TIME}.2.11.7.1": ("Add", "Add_1", 3, 5, int(TIME), 11, 7),
    f"Add.Add_1.3.5.{TIME}.1": ("Add", "Add_1", 3, 5, int(TIME), None, None),
    f"Add.Add_1.3.5.{'9' * 255}": ("Add", "Add_1", 3, 5, int("9" * 255), None, None),
    f"Add.Add_1.3.{'9' * 256}": None,
    f"Add.Add_1.{TIME}": None,
    f"Add.a/b.3.5.{TIME}": None,
    f"Add..3.5.{TIME}": None,
    f".Add.3.5.{TIME}": None,
    f"Add.Add_1.3.5.{TIME}.npy": None,
    f"Add.Add_1.3.5.{TIME}.output.0.npy": None,
    f"Add.Add_1.x.5.{TIME}": None,
    f" Add.Add_1.3.5.{TIME}": None,
    f"Add.Add_1.3.5.{TIME}\n": None,
    "statistic.csv": None,
    "": None,
}


@pytest.mark.parametrize(("name", "parts"), NAMES.items(), ids=[f"{at}" for at in range(len(NAMES))])
def test_the_parts_of_a_name(name, parts):
    found = name_of(name)
    if parts is None:
        assert found is None
    else:
        assert found is not None
        assert (
            found.op_type, found.op_name, found.task_id, found.stream_id, found.timestamp, found.context_id,
            found.thread_id,
        ) == parts  # fmt: skip


BYTES = bytes(range(1, 17))
BITS = [float(bit) for byte in (0xA5, 0x0F) for bit in f"{byte:08b}"]


@pytest.mark.parametrize(
    ("dtype", "stored", "made"),
    [
        *((name, name, name) for name in ("float32", "float16", "float64", "int8", "uint8", "int16", "uint16")),
        *((name, name, name) for name in ("int32", "uint32", "int64", "uint64", "complex64", "complex128")),
        ("bfloat16", ml_dtypes.bfloat16, "float32"),
        ("float8_e4m3fn", ml_dtypes.float8_e4m3fn, "float64"),
        ("float8_e5m2", ml_dtypes.float8_e5m2, "float64"),
        ("undefined", "int8", "int8"),
    ],
)
def test_the_elements_of_each_type(opened, dtype, stored, made):
    """[spec ge 4.2]"""
    whole = np.frombuffer(BYTES, stored)
    found = opened(BYTES, dtype, whole.shape)
    assert (found.dtype, found.shape, found.label) == (dtype, whole.shape, "output:0")
    array = found.array()
    assert (array.dtype, array.shape) == (np.dtype(made), whole.shape)
    np.testing.assert_array_equal(array, whole.astype(made))
    if len(whole) > 1 and dtype != "undefined":
        folded = opened(BYTES, dtype, (2, len(whole) // 2)).array()
        np.testing.assert_array_equal(folded, whole.astype(made).reshape(2, -1))
        (element,) = opened(BYTES[: whole.itemsize], dtype, ()).array()  # a scalar has one dimension
        assert element == whole.astype(made)[0] or np.isnan(element)
        three = opened(BYTES, dtype, (len(whole) - 1,)).array()  # more data than the shape says
        np.testing.assert_array_equal(three, whole.astype(made)[:-1])
        with pytest.raises(ToolError, match="The data of output:0 do not fit") as caught:
            opened(BYTES, dtype, (len(whole) + 1,)).array()
        assert caught.value.status is Status.SHAPE_MISMATCH


def test_undefined_elements_are_bytes_in_a_row(opened):
    assert opened(BYTES, "undefined", (4, 2)).array().tolist() == list(BYTES)  # [spec ge 4.2]
    assert opened(b"\xff\x80" * 8, "undefined", (3,)).array().tolist() == [-1, -128] * 8


def test_bits_are_read_from_the_highest(opened):
    raw = bytes([0xA5, 0x0F])
    for shape, expected in (
        ((16,), BITS), ((2, 8), np.reshape(BITS, (2, 8)).tolist()), ((), BITS), ((11,), BITS[:11]),
    ):  # fmt: skip
        assert opened(raw, "uint1", shape).array().tolist() == expected


def test_resources_are_whole_numbers():
    raw = np.array([5, -6], np.int64).view(np.uint8)
    found = tensor("resource", raw, (2,)).array()
    assert (found.dtype, found.tolist()) == (np.int64, [5, -6])


@pytest.mark.parametrize(
    ("dtype", "number"), [("string", 13), ("int4", 28), ("float8_e8m0", 36), ("float4_e2m1", 39), ("77", 77)]
)
def test_a_type_that_the_tool_lacks_is_named_by_its_number(dtype, number):
    """[spec ge 3.3, 4.2]"""
    with pytest.raises(ToolError) as caught:
        tensor(dtype, np.zeros(8, np.uint8), (2,)).array()
    assert (str(caught.value), caught.value.status) == (
        f"The output data type ({number}) does not support.", Status.INVALID_DATA_TYPE,
    )  # fmt: skip


def test_empty_shapes_are_empty_arrays_of_float64(opened):
    for shape in ((0,), (3, 0), (0, 2**40)[:1]):
        found = opened(b"", "int8", shape).array()
        assert (found.dtype, found.shape) == (np.float64, shape)  # [spec ge 4.2]


def test_dimensions_above_32_bits_are_forged(opened):
    with pytest.raises(ToolError, match="do not fit"):  # as long as the format allows, and longer than the data
        opened(BYTES, "int8", (2**32,)).array()
    with pytest.raises(ToolError) as caught:
        opened(BYTES, "int8", (2**32 + 1, 0)).array()
    assert str(caught.value) == "The shape (4294967297, 0) of output:0 is not possible."
    assert caught.value.status is Status.SHAPE_MISMATCH


def test_all_that_a_file_holds(tmp_path):
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(4, dtype=np.int8)
    path = tmp_path / f"Add.a.1.2.{TIME}"
    path.write_bytes(
        bin_bytes(
            [
                item(x, format="NCHW", original_shape=(3, 2), groups=4, address=77),
                item(y, address=0),
            ],
            [item(y[:1], groups=1, origin=("a/b", 3, 1, 2))],
            op_name="a/Add-op1",
            buffers=[b"12"],
            spaces=[b"345", b""],
        )
    )
    found = DumpFile.open(str(path))
    assert (found.path, found.op_name) == (str(path), "a/Add-op1")
    first, second, third = found.tensors
    assert (found.inputs, found.outputs) == ((first, second), (third,))
    assert (first.label, second.label, third.label) == ("input:0", "input:1", "output:0")
    assert (first.format, first.real_format, first.shape, first.original_shape) == ("NCHW", "ND", (2, 3), (3, 2))
    assert (first.groups, second.groups, third.groups) == (4, 1, 1)
    assert (first.address, second.address, third.address) == (77, 0, 0x1000)
    assert (first.original_name, first.original_index) == ("", 0)
    assert (third.original_name, third.original_index) == ("a/b", 3)
    assert [bytes(one) for one in found.buffers] == [b"12"]
    assert [bytes(one) for one in found.spaces] == [b"345", b""]


def test_the_smallest_files(tmp_path):
    for size, status in ((0, 39), (8, 39), (9, 11)):
        path = tmp_path / str(size)
        path.write_bytes(bytes(size))
        with pytest.raises(ToolError) as caught:
            DumpFile.open(str(path))
        assert caught.value.status == status
        what = f"The size of '{path}' must be greater than 8, but the file size is {size}. Please check the dump file."
        assert (str(caught.value) == what) is (size <= 8)


def test_an_npy_file_is_one_output(tmp_path):
    path = tmp_path / "x.npy"
    for array in (np.arange(6, dtype=np.float16).reshape(2, 3), np.float32(7), np.arange(3, dtype=np.uint8),
                  np.arange(4, dtype=np.uint8).reshape(2, 2)):  # fmt: skip
        np.save(path, array)
        found = DumpFile.open(str(path))
        (only,) = found.tensors
        assert (found.path, found.op_name, found.inputs, found.buffers, found.spaces) == (str(path), "", (), (), ())
        assert (only.label, only.dtype, only.format) == ("output:0", array.dtype.name, "NCHW")
        assert (only.shape, only.original_shape) == (array.shape, array.shape)
        assert (only.groups, only.address, only.original_name, only.original_index) == (1, 0, "", 0)
        np.testing.assert_array_equal(only.array(), array)
        assert only.array().dtype == array.dtype
    path.write_bytes(b"not an array")
    with pytest.raises(ToolError) as caught:
        DumpFile.open(str(path))
    assert caught.value.status is Status.INVALID_DUMP_DATA


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float32", "bool", "int64"])
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (0, 3)])
def test_an_npy_file_holds_the_array_itself(tmp_path, dtype, shape):
    values = np.arange(6).astype(dtype)[: int(np.prod(shape))].reshape(shape)
    np.save(tmp_path / "x.npy", values)
    (found,) = DumpFile.open(str(tmp_path / "x.npy")).outputs
    np.testing.assert_array_equal(found.array(), values, strict=True)
