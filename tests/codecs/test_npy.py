"""npy files: the vendor's bytes, numpy's reading of them, and files that nobody should trust."""

import contextlib

import ml_dtypes  # numpy knows the names of its types from now on
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.codecs import npy
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import DtypeError, UnreadableError

LOADABLE = [row for row in DTYPES.values() if row.descr and row.name != "bfloat16"]

# first 128 bytes of a float32 file of shape (2, 1, 32, 32) that MindSpore 2.10 wrote [spec observed 1.3]
OBSERVED = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,1,32,32,), }".ljust(127) + b"\n"


def test_the_header_is_the_observed_one():
    assert npy.header("<f4", (2, 1, 32, 32)) == OBSERVED
    assert npy.header("<i8", ()).rstrip() == (
        b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': False, 'shape': (), }"
    )


@pytest.mark.parametrize("row", LOADABLE, ids=lambda row: row.name)
@settings(max_examples=40)
@given(shape=st.lists(st.integers(0, 4), max_size=5).map(tuple))
def test_numpy_reads_what_is_written(row, shape, tmp_path_factory):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(row.numpy)
    head, data = npy.encode(array)
    path = tmp_path_factory.getbasetemp() / f"{row.name}.npy"
    path.write_bytes(head + bytes(data))
    assert len(head) % 64 == 0
    for found in (np.load(path), npy.read(path), npy.read(path, mmap=False)):
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)


def test_headers_end_at_the_first_multiple_of_64_that_leaves_room_for_a_space():
    """After the dict come at least one space and the newline. [spec observed 1.3]"""
    for digits in range(70):
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': (1{'0' * digits},), }}"
        size = -(-(10 + len(text) + 2) // 64) * 64
        head = npy.header("<f4", (10**digits,))
        assert head == b"\x93NUMPY\x01\x00" + (size - 10).to_bytes(2, "little") + text.encode().ljust(size - 11) + b"\n"


def test_the_longest_header_of_version_one():
    """Its size is that of two bytes: 64 * 1024 - 10 bytes after the length fit, 64 more do not."""
    shape = (1,) * ((64 * 1024 - 10 - 2 - len("{'descr': '<f4', 'fortran_order': False, 'shape': (), }")) // 2)
    assert npy.header("<f4", shape)[6:10] == b"\x01\x00" + (64 * 1024 - 10).to_bytes(2, "little")
    longer = npy.header("<f4", (*shape, 1))
    assert longer[6:12] == b"\x02\x00" + (64 * 1025 - 12).to_bytes(4, "little")
    assert len(longer) == 64 * 1025


def test_a_long_header_is_version_two():
    head = npy.header("<f4", (1,) * 40_000)
    assert head[6:8] == b"\x02\x00"
    assert len(head) % 64 == 0
    assert head.endswith(b" \n")


def test_bfloat16_is_read_with_its_values(tmp_path):

    array = np.array([[1.5, -2.25, 0.1]], ml_dtypes.bfloat16)
    head, data = npy.encode(array)
    assert b"'<E2'" in head
    path = tmp_path / "b.npy"
    path.write_bytes(head + bytes(data))
    assert np.array_equal(npy.read(path), array)


def test_numpys_own_files_are_read(tmp_path):
    array = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    np.save(tmp_path / "f.npy", array)
    assert np.array_equal(npy.read(tmp_path / "f.npy"), array)
    big = np.arange(5, dtype=">i4")
    np.save(tmp_path / "b.npy", big)
    assert npy.read(tmp_path / "b.npy").tolist() == big.tolist()


def test_a_header_of_any_length_is_read_and_told_each_time(tmp_path):
    for blanks in (0, 300, 600, 5000):
        text = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}" + " " * blanks + "\n"
        path = tmp_path / f"{blanks}.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + b"\x01\x00\x02\x00")
        for mmap in (True, False, True):
            assert npy.read(path, mmap=mmap).tolist() == [1, 2]
        path.write_bytes(path.read_bytes().replace(b"<i2", b"|O8"))
        for _ in range(2):
            with pytest.raises(UnreadableError, match=f"{blanks}.npy: byte 10.*refused"):
                npy.read(path)


def with_header(version, text, data=b""):
    width = 2 if version == 1 else 4
    return npy.MAGIC + bytes([version, 0]) + len(text).to_bytes(width, "little") + text.encode() + data


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("blanks", [0, 185, 186, 440, 5000, 9942])  # the header ends before, at and after 256 and 512
def test_every_version_is_read_with_blanks_inside_of_its_header(version, blanks, tmp_path):
    text = "{'descr': '<i2'," + " " * blanks + "'fortran_order': False, 'shape': (2,), }\n"
    (tmp_path / "a.npy").write_bytes(with_header(version, text, b"\x01\x00\x02\x00"))
    offset = (10 if version == 1 else 12) + len(text)
    assert npy.info(tmp_path / "a.npy") == (np.dtype("<i2"), (2,), False, offset)
    for mmap in (True, False):
        assert npy.read(tmp_path / "a.npy", mmap=mmap).tolist() == [1, 2]


def test_a_header_of_exactly_the_limit_is_read(tmp_path):
    text = "{'descr': '<i2', 'fortran_order': False, 'shape': (), }"
    (tmp_path / "a.npy").write_bytes(with_header(1, text.ljust(10_000), b"\x07\x00"))
    assert npy.read(tmp_path / "a.npy") == 7
    (tmp_path / "a.npy").write_bytes(with_header(1, text.ljust(10_001), b"\x07\x00"))
    with pytest.raises(UnreadableError, match="byte 8: a header of 10001 bytes is longer than numpy's limit of 10000"):
        npy.read(tmp_path / "a.npy")


def test_a_file_is_mapped_unless_it_is_to_be_read(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(4))
    mapped, own = npy.read(tmp_path / "a.npy"), npy.read(tmp_path / "a.npy", mmap=False)
    assert isinstance(mapped.base, np.memmap)
    assert not mapped.flags.writeable
    assert not isinstance(own, np.memmap)
    assert own.base is None or not isinstance(own.base, np.memmap)
    assert own.flags.writeable


def fields(descr="'<i2'", fortran="False", shape="(2,)"):
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


MOST = (7 * 7 * 73 * 127 * 337, 92737 * 649657)  # their product is 2**63 - 1, the largest number of bytes


@pytest.mark.parametrize(
    ("changes", "shape"),
    [
        ({"shape": "(" + "1," * 31 + "2)"}, (1,) * 31 + (2,)),
        ({"shape": f"(0, {(1 << 48) - 1})"}, (0, (1 << 48) - 1)),
        ({"descr": "'|i1'", "shape": f"(0, {MOST[0]}, {MOST[1]})"}, (0, *MOST)),
        ({"shape": f"(0, {1 << 31}, {(1 << 31) - 1})"}, (0, 1 << 31, (1 << 31) - 1)),
        ({"descr": "'|E2'", "shape": "(1, 2)"}, (1, 2)),
        ({"descr": "'?'", "shape": "(4,)"}, (4,)),
        ({"fortran": "True", "shape": "(1, 2)"}, (1, 2)),
    ],
)
def test_shapes_up_to_the_limits(changes, shape, tmp_path):
    (tmp_path / "a.npy").write_bytes(with_header(1, fields(**changes), bytes(4)))
    assert npy.read(tmp_path / "a.npy").shape == shape


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"descr": "3"}, "descr 3 is not a plain data type"),
        ({"fortran": "0"}, "fortran_order is not a bool or shape is not a tuple"),
        ({"shape": "[2]"}, "fortran_order is not a bool or shape is not a tuple"),
        ({"shape": "(True,)"}, r"shape \(True,\) is not possible"),
        ({"shape": "(-1,)"}, r"shape \(-1,\) is not possible"),
        ({"shape": "(" + "1," * 33 + ")"}, "shape .* is not possible"),
        ({"shape": f"(0, {1 << 48})"}, r"shape \(0, 281474976710656\) is not possible"),
        ({"shape": f"(0, {1 << 31}, {1 << 31})"}, r"shape \(0, 2147483648, 2147483648\) of int16 is not possible"),
        ({"descr": "'<f3'"}, "descr '<f3' is not a number type(?! .objects)"),
        ({"descr": "'i2,i2'"}, "descr 'i2,i2' is not a number type"),
        ({"descr": "''"}, "descr '' is not a number type"),
        ({"descr": "'<f16'"}, "descr '<f16' is not a number type .objects and strings are refused."),
        ({"descr": "'bfloat16'"}, "descr 'bfloat16' is not a number type .objects and strings are refused."),
        ({"descr": "'|S2'"}, "descr '|S2' is not a number type .objects and strings are refused."),
    ],
)
def test_headers_that_describe_no_tensor(changes, words, tmp_path):
    (tmp_path / "a.npy").write_bytes(with_header(1, fields(**changes), bytes(4)))
    with pytest.raises(UnreadableError, match=rf"^{tmp_path}/a\.npy: byte 10: {words}.*\[DS-NPY-002\]$"):
        npy.read(tmp_path / "a.npy")


def test_a_type_without_descr_is_refused():
    with pytest.raises(DtypeError, match="int4"):
        npy.encode(np.zeros(2, np.int8), DTYPES["int4"])


def _with_dict(text: str) -> bytes:
    body = text.encode()
    return npy.MAGIC + b"\x01\x00" + len(body).to_bytes(2, "little") + body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04 a zip",
        npy.MAGIC,
        npy.MAGIC + b"\x09\x00",
        npy.MAGIC + b"\x01\x00\xff\xff",
        npy.MAGIC + b"\x02\x00\xff\xff\xff\xff",
        _with_dict("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"),
        _with_dict("{'descr': '<U8', 'fortran_order': False, 'shape': (1,), }"),
        _with_dict("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
        _with_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }"),
        _with_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"),
        _with_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }") + b"\0\0\0\0",
        _with_dict("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }"),
        _with_dict("__import__('os').system('true')"),
        _with_dict("(" * 5000),
        _with_dict(f"{{'descr': '<f4', 'fortran_order': False, 'shape': (0, {1 << 47}, {1 << 47}), }}"),
        _with_dict(f"{{'descr': '<E2', 'fortran_order': False, 'shape': (0, {1 << 47}, {1 << 47}), }}"),
        _with_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 33 + "), }"),
        _with_dict("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".ljust(10_001)) + bytes(4),
    ],
)
def test_untrusted_files_are_clear_errors(data, tmp_path):
    path = tmp_path / "bad.npy"
    path.write_bytes(data)
    with pytest.raises(UnreadableError, match=r"bad\.npy: byte \d+"):
        npy.read(path)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzz.npy"
    path.write_bytes(npy.MAGIC + data)
    with contextlib.suppress(UnreadableError):
        npy.read(path)
