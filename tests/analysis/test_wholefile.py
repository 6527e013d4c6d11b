"""Whole files: bytes, modes, short writes."""

import os
from itertools import count

import numpy as np
import pytest

from dumpsim.analysis.wholefile import npy_parts, write_whole
from dumpsim.core import partname
from dumpsim.core.errors import DumpWriteError


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.ones((3, 4), np.int8)),
        np.array(3, np.float16),
        np.empty((0, 2)),
    ],
)
def test_npy_files_are_numpys_own(tmp_path, array):
    write_whole(str(tmp_path / "ours.npy"), npy_parts(array), mode=0o640)
    np.save(tmp_path / "numpys.npy", np.ascontiguousarray(array).reshape(array.shape))
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "numpys.npy").read_bytes()
    assert (tmp_path / "ours.npy").stat().st_mode & 0o777 == 0o640


def test_short_writes_go_on_where_they_stopped(tmp_path, monkeypatch):
    real = os.writev
    monkeypatch.setattr(os, "writev", lambda descriptor, parts: os.write(descriptor, parts[0][:7]))
    parts = [bytes([n]) * n for n in range(40)]
    assert write_whole(str(tmp_path / "a"), parts) == sum(range(40))
    assert (tmp_path / "a").read_bytes() == b"".join(parts)
    monkeypatch.setattr(os, "writev", real)
    write_whole(str(tmp_path / "b"), parts)
    assert (tmp_path / "b").read_bytes() == b"".join(parts)


def test_a_directory_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DumpWriteError, match="nowhere"):
        write_whole(str(tmp_path / "nowhere" / "a"), [b"x"])


def test_what_a_killed_run_left_is_in_nobodys_way(tmp_path, monkeypatch):
    monkeypatch.setattr(partname, "_NUMBERS", count())
    left = tmp_path / f".dumpsim-part-{partname.machine()}-{os.getpid()}-0"
    left.write_bytes(b"half")
    write_whole(str(tmp_path / "a"), [b"x"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [left.name, "a"]
    assert (left.read_bytes(), (tmp_path / "a").read_bytes()) == (b"half", b"x")
