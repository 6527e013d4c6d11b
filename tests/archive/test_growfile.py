"""Files that grow, short writes and locks, where the system does what it does rarely."""

import errno
import fcntl
import os
import stat

import pytest

from dumpsim.archive import claim as claims
from dumpsim.archive.claim import _is_at, claim
from dumpsim.archive.growfile import has_no_line, open_growing
from dumpsim.archive.part import create, is_alive, sync_directory
from dumpsim.archive.sink import _write_all
from dumpsim.core.errors import BadInputError


def descriptors():
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    ("content", "kept", "cut"),
    [
        (None, b"", -1), (b"", b"", 0), (b"a\n", b"a\n", 0), (b"a\nbc", b"a\n", 2), (b"abc", b"", 3),
        (b"a\n" + b"b" * (1 << 16), b"a\n", 1 << 16), (b"a\n" + b"b" * ((1 << 16) - 1), b"a\n", (1 << 16) - 1),
        (b"a\n" + b"b" * ((1 << 17) + 1), b"a\n", (1 << 17) + 1),
    ],
    ids=["new", "empty", "whole", "half", "no line", "a block", "less than a block", "blocks"],
)  # fmt: skip
def test_what_no_newline_ends_is_cut_off(tmp_path, content, kept, cut):
    path = str(tmp_path / "f")
    if content is not None:
        with open(path, "wb") as file:
            file.write(content)
    assert has_no_line(path) is (kept == b"")
    descriptor, size, gone = open_growing(path, 0o640)
    assert (size, gone) == (len(kept), cut)
    os.write(descriptor, b"next\n")
    os.close(descriptor)
    with open(path, "rb") as file:
        assert file.read() == kept + b"next\n"
    if content is None:
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    assert has_no_line(path) is False


def test_what_is_no_regular_file_does_not_grow(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "none")
    for name, number in ((".", errno.EISDIR), ("fifo", errno.EINVAL), ("link", errno.EINVAL)):
        before = descriptors()
        with pytest.raises(OSError) as caught:  # noqa: PT011
            open_growing(str(tmp_path / name), 0o600)
        assert caught.value.errno == number
        assert descriptors() == before
    assert has_no_line(str(tmp_path / "link")) is False
    assert has_no_line(str(tmp_path)) is False
    assert has_no_line(str(tmp_path / "none")) is True


def test_an_old_file_is_made_writable_for_a_moment(tmp_path, monkeypatch):
    """As a user who is not root meets it."""
    path = tmp_path / "f"
    path.write_bytes(b"a\n")
    path.chmod(0o400)
    opened = os.open
    modes = []

    def as_user(name, flags, mode=0o777):
        if flags & os.O_RDWR and not os.stat(name).st_mode & 0o200:
            raise PermissionError(errno.EACCES, "denied")
        modes.append(stat.S_IMODE(os.stat(name).st_mode) if not flags & os.O_EXCL else None)
        return opened(name, flags, mode)

    monkeypatch.setattr(os, "open", as_user)
    descriptor, size, cut = open_growing(str(path), 0o400)
    os.close(descriptor)
    assert (size, cut, modes[-1]) == (2, 0, 0o600)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o400

    def never(name, flags, mode=0o777):
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "denied")
        return opened(name, flags, mode)

    monkeypatch.setattr(os, "open", never)
    with pytest.raises(PermissionError):
        open_growing(str(path), 0o400)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o400


def test_a_file_that_cannot_be_cut_is_closed(tmp_path, monkeypatch):
    def fail(descriptor, size):
        raise OSError(errno.EIO, "broken")

    (tmp_path / "f").write_bytes(b"half")
    monkeypatch.setattr(os, "ftruncate", fail)
    before = descriptors()
    with pytest.raises(OSError, match="broken"):
        open_growing(str(tmp_path / "f"), 0o600)
    assert descriptors() == before


PARTS = [b"", b"abc", memoryview(b"defgh"), b"", memoryview(b"\1\0\2\0").cast("H"), b"z"]
WHOLE = b"abcdefgh\1\0\2\0z"


@pytest.mark.parametrize("first", range(len(WHOLE) + 1))
@pytest.mark.parametrize("step", [1, 3, 99])
def test_a_short_write_goes_on_where_it_stopped(monkeypatch, first, step):
    written = bytearray()

    def some(descriptor, parts):
        written.extend(WHOLE[:first])
        return first

    def little(descriptor, data):
        written.extend(bytes(data)[:step])
        return min(len(bytes(data)), step)

    monkeypatch.setattr(os, "writev", some)
    monkeypatch.setattr(os, "write", little)
    _write_all(1, PARTS, len(WHOLE))
    assert bytes(written) == WHOLE


def test_whether_a_process_runs(monkeypatch):
    for error, alive in (
        (ProcessLookupError(), False),
        (PermissionError(), True),
        (OverflowError(), True),
        (None, True),
    ):

        def kill(pid, number, error=error):
            assert number == 0
            if error is not None:
                raise error

        monkeypatch.setattr(os, "kill", kill)
        assert is_alive(77) is alive


def test_a_name_that_a_killed_process_of_our_number_left_is_not_taken(tmp_path, monkeypatch):
    names = iter([".part-1", ".part-1", ".part-2"])
    monkeypatch.setattr("dumpsim.archive.part.part_name", lambda: next(names))
    (tmp_path / ".part-1").touch()
    descriptor, path = create(str(tmp_path), 0o440)
    os.close(descriptor)
    assert path == f"{tmp_path}/.part-2"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o440


def test_no_directory_means_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    descriptor, path = create("", 0o640)
    os.close(descriptor)
    assert os.listdir(tmp_path) == [path]
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    before = descriptors()
    sync_directory("")
    sync_directory("/")
    assert synced == [str(tmp_path), "/"]
    assert descriptors() == before


def test_a_file_has_its_name_until_it_is_removed(tmp_path):
    path = str(tmp_path / "f")
    with open(path, "w") as file:
        assert _is_at(file.fileno(), path)
        os.rename(path, path + "2")
        assert not _is_at(file.fileno(), path)
        with open(path, "w"):
            assert not _is_at(file.fileno(), path)


def test_where_nothing_can_be_locked_nothing_is_claimed(tmp_path, monkeypatch):
    def refused(descriptor, flags):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refused)
    before = descriptors()
    assert claim(str(tmp_path), "data") is None
    assert (os.listdir(tmp_path), descriptors()) == ([], before)


def test_a_file_that_was_removed_while_it_was_locked_is_made_again(tmp_path, monkeypatch):
    answers = [False, True]
    monkeypatch.setattr(claims, "_is_at", lambda descriptor, path: answers.pop(0) if answers else True)
    before = descriptors()
    found = claim(str(tmp_path), "data")
    assert found is not None
    assert (answers, len(descriptors() - before)) == ([], 1)
    found.release()
    assert descriptors() == before
    monkeypatch.setattr(claims, "_is_at", lambda descriptor, path: False)
    with pytest.raises(BadInputError, match="another process is writing this dump; allowed"):
        claim(str(tmp_path), "data")
    assert descriptors() == before
