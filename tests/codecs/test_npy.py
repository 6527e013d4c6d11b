"""npy files: the vendor's bytes, numpy's reading of them, and files that nobody should trust."""

import contextlib

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


def test_a_long_header_is_version_two():
    head = npy.header("<f4", (1,) * 40_000)
    assert head[6:8] == b"\x02\x00"
    assert len(head) % 64 == 0
    assert head.endswith(b" \n")


def test_bfloat16_is_read_with_its_values(tmp_path):
    import ml_dtypes

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
