"""The sink: whole files, whole lines, clear errors, nothing half written."""

import errno
import os
import resource
import shutil
import stat

import pytest

from dumpsim.archive.sink import Sink
from dumpsim.core.errors import DumpWriteError


class FullAfter:
    """A disk with little room."""

    def __init__(self, room):
        self.room = room

    def charge(self, nbytes):
        if nbytes > self.room:
            raise OSError(28, "No space left on device (fault plan)")
        self.room -= nbytes


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_whole_files_have_the_vendors_permissions(tmp_path):
    sink = Sink()
    directory = f"{tmp_path}/a/b"
    assert sink.write(directory, "x.npy", [b"head", memoryview(b"body")]) == 8
    assert (tmp_path / "a/b/x.npy").read_bytes() == b"headbody"
    assert mode(f"{directory}/x.npy") == 0o400
    assert mode(directory) == mode(tmp_path / "a") == 0o700
    assert os.listdir(directory) == ["x.npy"]
    assert list(sink.written.values()) == [(1, 8)]


def test_writing_again_replaces_the_file(tmp_path):
    sink = Sink()
    for data in (b"one", b"two"):
        sink.write(str(tmp_path), "g.ir", [data])
    assert (tmp_path / "g.ir").read_bytes() == b"two"


def test_files_grow_by_lines_and_stay_read_only(tmp_path):
    sink = Sink()
    assert sink.is_new(str(tmp_path), "s.csv")
    sink.append(str(tmp_path), "s.csv", "head\n")
    assert not sink.is_new(str(tmp_path), "s.csv")
    assert mode(tmp_path / "s.csv") == 0o400
    sink.settle()
    sink.append(str(tmp_path), "s.csv", "row\n")
    sink.settle()
    other = Sink()
    assert not other.is_new(str(tmp_path), "s.csv")
    other.append(str(tmp_path), "s.csv", "later\n")
    assert (tmp_path / "s.csv").read_text() == "head\nrow\nlater\n"
    assert mode(tmp_path / "s.csv") == 0o400
    assert [files for found in (sink, other) for files, _ in found.written.values()] == [1, 0]
    other.settle()


def test_many_growing_files(tmp_path):
    sink = Sink()
    for line in ("1\n", "2\n"):
        for index in range(150):
            sink.append(str(tmp_path), f"{index}.csv", line)
    sink.settle()
    assert {(tmp_path / f"{i}.csv").read_text() for i in range(150)} == {"1\n2\n"}


def test_full_disk_by_fault_plan(tmp_path):
    sink = Sink(disk=FullAfter(10))
    sink.write(str(tmp_path), "a", [b"12345678"])
    sink.append(str(tmp_path), "c", "x\n")
    with pytest.raises(DumpWriteError, match="the disk is full") as caught:
        sink.write(str(tmp_path), "b", [b"123"])
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == 28
    assert caught.value.where == f"{tmp_path}/b"
    with pytest.raises(DumpWriteError, match="the disk is full"):
        sink.append(str(tmp_path), "c", "y\n")
    assert sorted(os.listdir(tmp_path)) == ["a", "c"]
    assert (tmp_path / "c").read_text() == "x\n"
    sink.settle()


def test_full_disk_in_the_middle_of_a_file(tmp_path):
    """RLIMIT_FSIZE cuts writes short, as a disk that fills up does."""
    pid = os.fork()
    if pid == 0:  # the limit must not outlive this test
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            sink = Sink()
            sink.write(str(tmp_path), "small", [b"x" * 999])
            sink.append(str(tmp_path), "rows", "r" * 900 + "\n")
            for action in (
                lambda: sink.write(str(tmp_path), "large", [b"h" * 128, memoryview(b"x" * 5000)]),
                lambda: sink.append(str(tmp_path), "rows", "s" * 900 + "\n"),
            ):
                try:
                    action()
                except DumpWriteError as error:
                    code += 10 if "size limit" in str(error) else 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 21
    assert sorted(os.listdir(tmp_path)) == ["rows", "small"]
    assert (tmp_path / "small").read_bytes() == b"x" * 999
    assert (tmp_path / "rows").read_text() == "r" * 900 + "\n"


def test_a_server_that_reports_its_full_disk_when_the_file_is_closed(tmp_path, monkeypatch):
    really = os.close

    def close(descriptor):
        really(descriptor)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    sink = Sink()
    monkeypatch.setattr(os, "close", close)
    with pytest.raises(DumpWriteError, match=r"x\.npy: cannot be written: the disk quota is used up"):
        sink.write(str(tmp_path), "x.npy", [b"data"])
    assert os.listdir(tmp_path) == []
    assert sink.written == {}


def test_vanished_directory(tmp_path):
    sink = Sink()
    gone = tmp_path / "gone"
    sink.write(str(gone), "a", [b"1"])
    sink.append(str(gone), "rows", "1\n")
    shutil.rmtree(gone)
    with pytest.raises(DumpWriteError, match="vanished"):
        sink.write(str(gone), "b", [b"1"])
    with pytest.raises(DumpWriteError, match="vanished"):
        sink.append(str(gone), "rows", "2\n")
    assert not gone.exists()
    sink.settle()


def test_parent_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DumpWriteError, match="is a file"):
        Sink().write(f"{tmp_path}/file/rank_0", "a", [b"1"])


def test_read_only_directory(tmp_path):
    """Root may write anywhere, so a child process gives the right up."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            Sink().write(str(locked), "a", [b"1"])
        except DumpWriteError as error:
            code = 0 if "permission denied" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert os.listdir(locked) == []


def test_read_only_as_the_system_reports_it(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DumpWriteError, match="read-only") as caught:
        Sink().write(str(tmp_path), "a", [b"1"])
    assert caught.value.errno == 30


def test_what_a_killed_run_left_is_swept_away(tmp_path):
    (tmp_path / ".dumpsim-part").write_text("half")
    Sink().write(str(tmp_path), "a", [b"whole"])
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"whole"
