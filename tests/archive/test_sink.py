"""The sink: whole files, whole lines, clear errors, nothing half written."""

import errno
import os
import resource
import shutil
import stat

import pytest

from dumpsim.archive import sink as sink_module
from dumpsim.archive.sink import Sink
from dumpsim.core import partname
from dumpsim.core.errors import DumpWriteError, UnfinishedWarning


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


def test_a_file_that_may_be_written_again_is_counted_once(tmp_path):
    sink, directory = Sink(), str(tmp_path)
    assert [sink.write(directory, "g.ir", [data], mode=0o600) for data in (b"longer", b"two")] == [6, 3]
    assert mode(tmp_path / "g.ir") == 0o600
    assert sink.written == {directory: (1, 3)}
    other = Sink()
    assert other.write(directory, "g.ir", [], mode=0o640) == 0
    assert other.written == {directory: (1, 0)}  # what another run had written does not count
    assert (mode(tmp_path / "g.ir"), (tmp_path / "g.ir").read_bytes()) == (0o640, b"")


def test_what_exists(tmp_path):
    sink, directory = Sink(), f"{tmp_path}/a"
    assert (sink.has_directory(directory), sink.exists(directory, "x")) == (False, False)
    sink.write(directory, "x", [b"1"])
    os.symlink("nowhere", f"{directory}/link")
    assert [sink.exists(directory, name) for name in ("x", "link", "y")] == [True, True, False]
    found = [sink.has_directory(path) for path in (directory, f"{directory}/x", f"{directory}/b")]
    assert found == [True, False, False]


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


def test_at_most_64_growing_files_are_open(tmp_path):
    """The limit of open files may be as low as 256, and the device's process has others. [design]"""
    sink, before = Sink(), len(os.listdir("/proc/self/fd"))
    counts = []
    for index in range(66):
        sink.append(str(tmp_path), f"{index}.csv", "1\n")
        counts.append(len(os.listdir("/proc/self/fd")) - before)
    assert counts == [*range(1, 65), 1, 2]
    sink.settle()
    assert len(os.listdir("/proc/self/fd")) == before
    assert sink.written == {str(tmp_path): (66, 132)}


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


def test_a_file_whose_first_line_failed_still_needs_its_header(tmp_path):
    sink = Sink(disk=FullAfter(3))
    with pytest.raises(DumpWriteError, match="the disk is full"):
        sink.append(str(tmp_path), "s.csv", "header\n")
    assert sink.is_new(str(tmp_path), "s.csv")
    sink.append(str(tmp_path), "s.csv", "ab\n")
    assert not sink.is_new(str(tmp_path), "s.csv")
    sink.settle()
    assert sink.written == {str(tmp_path): (1, 3)}


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


def dead_process():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def test_what_a_killed_run_left_is_swept_away_and_living_writers_files_stay(tmp_path):
    machine = partname.machine()
    dead, folder, link = (f".dumpsim-part-{machine}-{dead_process()}-{number}" for number in (0, 1, 2))
    (tmp_path.parent / "others").mkdir()
    (tmp_path.parent / "others" / "file").write_text("not ours")
    (tmp_path / link).symlink_to(tmp_path.parent / "others")
    living = f".dumpsim-part-{machine}-{os.getppid()}-0"
    elsewhere = f".dumpsim-part-00000000-{dead_process()}-0"
    for name in (dead, living, elsewhere):
        (tmp_path / name).write_text("half")
    (tmp_path / folder / "inside").mkdir(parents=True)
    Sink().write(str(tmp_path), "a", [b"whole"])
    assert sorted(os.listdir(tmp_path)) == sorted(["a", living, elsewhere])
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert (tmp_path.parent / "others" / "file").read_text() == "not ours"


def test_two_processes_in_one_directory_keep_every_file_whole(tmp_path):
    """Each file holds its own process's bytes only, as nobody takes or removes the other's unfinished file."""
    count, size = 300, 100_000
    pids = []
    for who in (b"A", b"B"):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                sink = Sink()
                for at in range(count):
                    sink.write(str(tmp_path), f"{who.decode()}{at}", [who * size])
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0]
    assert len(os.listdir(tmp_path)) == 2 * count
    assert all(path.read_bytes() == path.name[:1].encode() * size for path in tmp_path.iterdir())


@pytest.mark.parametrize("size", [3, 100_000, 200_000])
def test_an_unfinished_last_line_is_cut_off_before_the_next_one(tmp_path, size):
    path = tmp_path / "s.csv"
    path.write_text("head\nrow 1\n" + "x" * size)
    path.chmod(0o400)
    said = []
    sink = Sink(warn=said.append)
    assert not sink.is_new(str(tmp_path), "s.csv")
    sink.append(str(tmp_path), "s.csv", "row 2\n")
    sink.settle()
    assert path.read_text() == "head\nrow 1\nrow 2\n"
    assert mode(path) == 0o400
    assert said == [f"{path}: the last line was unfinished, as a killed run leaves it; {size} bytes are cut off"]


def test_a_half_header_is_written_again(tmp_path):
    (tmp_path / "s.csv").write_text("hea")
    sink = Sink()
    assert sink.is_new(str(tmp_path), "s.csv")
    with pytest.warns(UnfinishedWarning, match="3 bytes are cut off"):
        sink.append(str(tmp_path), "s.csv", "head\nrow\n")
    sink.settle()
    assert (tmp_path / "s.csv").read_text() == "head\nrow\n"


def test_files_that_grow_are_regular_files(tmp_path):
    (tmp_path / "target").write_text("mine\n")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        with pytest.raises(DumpWriteError, match="it is not a regular file"):
            Sink().append(str(tmp_path), name, "1\n")
    assert (tmp_path / "target").read_text() == "mine\n"
    assert mode(tmp_path / "target") == 0o644


def test_a_line_that_cannot_be_taken_back_is_cut_off_later(tmp_path, monkeypatch):
    sink = Sink(warn=lambda text: None)
    sink.append(str(tmp_path), "s.csv", "1\n")
    with monkeypatch.context() as broken:
        broken.setattr(os, "writev", lambda descriptor, parts: os.write(descriptor, parts[0][:2]))
        really = os.write
        calls = []

        def once(descriptor, data):
            calls.append(data)
            if len(calls) > 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return really(descriptor, data)

        broken.setattr(os, "write", once)
        broken.setattr(os, "ftruncate", once)
        with pytest.raises(DumpWriteError, match=r"s\.csv"):
            sink.append(str(tmp_path), "s.csv", "2222\n")
    assert (tmp_path / "s.csv").read_text() == "1\n22"
    sink.append(str(tmp_path), "s.csv", "3\n")
    sink.settle()
    assert (tmp_path / "s.csv").read_text() == "1\n3\n"


def quota_at_close(monkeypatch):
    really = os.close

    def close(descriptor):
        really(descriptor)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "close", close)


def test_files_that_grow_and_fail_when_they_are_closed_are_named(tmp_path, monkeypatch):
    sink = Sink()
    for name in ("a.csv", "b.csv"):
        sink.append(str(tmp_path), name, "1\n")
    with monkeypatch.context() as full:
        quota_at_close(full)
        with pytest.raises(DumpWriteError, match=r"b\.csv: cannot be written: the disk quota is used up") as caught:
            sink.settle()
    assert [note.partition(": ")[0] for note in caught.value.__notes__] == [f"{tmp_path}/a.csv"]
    sink.settle()


def test_a_failing_close_of_another_file_costs_no_line(tmp_path, monkeypatch):
    sink = Sink()
    for at in range(64):
        sink.append(str(tmp_path), f"{at}.csv", "1\n")
    with monkeypatch.context() as full:
        quota_at_close(full)
        with pytest.raises(DumpWriteError, match=r"63\.csv"):
            sink.append(str(tmp_path), "last.csv", "kept\n")
    assert (tmp_path / "last.csv").read_text() == "kept\n"
    sink.settle()


@pytest.mark.parametrize(("name", "reason"), [("a\0b", "a NUL character"), ("a\ud800b", "a lone surrogate")])
def test_names_that_no_file_can_have_are_the_documented_error(tmp_path, name, reason):
    sink = Sink()
    for action in (
        lambda: sink.write(str(tmp_path), name, [b"1"]),
        lambda: sink.append(str(tmp_path), name, "1\n"),
        lambda: sink.is_new(str(tmp_path), name) and sink.append(str(tmp_path), name, "1\n"),
        lambda: sink.make(f"{tmp_path}/{name}"),
    ):
        with pytest.raises(DumpWriteError, match=reason) as caught:
            action()
        str(caught.value).encode()
    with pytest.raises(DumpWriteError, match="a lone surrogate"):
        sink.append(str(tmp_path), "rows", "\udfff\n")
    assert os.listdir(tmp_path) in ([], ["rows"])


def test_durable_files_and_their_directories_are_synced(tmp_path, monkeypatch):
    synced = []
    really = os.fsync

    def fsync(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(str(tmp_path)))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    for durable in (False, True):
        sink = Sink(durable=durable)
        sink.write(f"{tmp_path}/{durable}/d", "x", [b"1"])
        sink.append(f"{tmp_path}/{durable}/d", "rows", "1\n")
        sink.append(f"{tmp_path}/{durable}/d", "rows", "2\n")
        sink.settle()
    part = synced.pop(2)
    assert part.startswith("/True/d/.dumpsim-part-")
    assert synced == ["", "/True", "/True/d", "/True/d", "/True/d/rows"]


def test_what_was_written_is_what_the_disk_has(tmp_path):
    """Parts of any element size, and lines; a file that grows is one file."""
    sink, directory = Sink(), f"{tmp_path}/a"
    parts = [b"head", memoryview(bytearray(b"1234")), memoryview(bytearray(16)).cast("f")]
    assert sink.write(directory, "x.npy", parts) == 24
    for line in ("first\n", "zweite Zeile: ä\n", "third\n"):
        sink.append(directory, "s.csv", line)
    sink.settle()
    sizes = [path.stat().st_size for path in (tmp_path / "a").iterdir()]
    assert sink.written == {directory: (len(sizes), sum(sizes))}


def test_a_line_that_fails_leaves_the_lines_before_it(tmp_path, monkeypatch):
    sink = Sink()
    for line in ("first\n", "second\n"):
        sink.append(str(tmp_path), "s.csv", line)
    whole = sink_module._write_all

    def half(descriptor, parts, size):
        whole(descriptor, (parts[0][:3],), 3)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sink_module, "_write_all", half)
    for _ in range(2):
        with pytest.raises(DumpWriteError):
            sink.append(str(tmp_path), "s.csv", "third\n")
        assert (tmp_path / "s.csv").read_text() == "first\nsecond\n"
    monkeypatch.undo()
    sink.append(str(tmp_path), "s.csv", "fourth\n")
    assert (tmp_path / "s.csv").read_text() == "first\nsecond\nfourth\n"
    sink.settle()


@pytest.mark.parametrize(
    ("left", "kept"),
    [("", ""), ("abc", ""), ("\n", "\n"), ("\nabc", "\n"), ("a\nb", "a\n"), ("a\n\nb", "a\n\n"), ("a\nb\n", "a\nb\n")],
)
def test_whole_lines_of_a_killed_run_stay(tmp_path, left, kept):
    (tmp_path / "s.csv").write_text(left)
    told = []
    sink = Sink(warn=told.append)
    sink.append(str(tmp_path), "s.csv", "next\n")
    sink.settle()
    assert (tmp_path / "s.csv").read_text() == kept + "next\n"
    assert [f"{len(left) - len(kept)} bytes are cut off" in text for text in told] == [True] * (left != kept)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full (No space left on device)"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (OSError("odd"), "odd"),
        (OSError(errno.EFBIG, "File too large"), "the file size limit is reached (File too large)"),
        (OSError(errno.EPERM, "Operation not permitted"), "permission denied (Operation not permitted)"),
        (OSError(errno.EACCES, "permission denied"), "permission denied"),
        (OSError(errno.ENOENT, "No such file"), "the directory has vanished (No such file)"),
    ],
)
def test_the_reason_of_a_failure_is_told_once(tmp_path, monkeypatch, error, text):
    def fail(descriptor, parts, size):
        raise error

    monkeypatch.setattr(sink_module, "_write_all", fail)
    with pytest.raises(DumpWriteError, match="cannot be written") as caught:
        Sink().write(str(tmp_path), "x", [b"1"])
    assert f"cannot be written: {text}" in str(caught.value).split(" [DS-")[0]
    assert str(caught.value).split(" [DS-")[0].endswith(text)
    assert list(tmp_path.iterdir()) == []
