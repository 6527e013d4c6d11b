"""The opener of all files: what it refuses, and how it says so."""

import os
import socket

import pytest

from dumpsim.core.errors import MissingFileError, UnreadableError
from dumpsim.core.regular import open_regular, read_bytes, read_text, regular_names


@pytest.fixture
def place(tmp_path):
    (tmp_path / "file").write_bytes(b"one\ntwo\xff")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").write_bytes(b"x")
    (tmp_path / "linked").symlink_to("folder")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def test_a_regular_file_is_read(place):
    with open_regular(place / "file") as file:
        assert (file.size, file.read(3), file.read(100)) == (8, b"one", b"\ntwo\xff")
        assert (file.read_at(4, 3), list(file.lines())) == (b"two", [])
        target = bytearray(6)
        assert (file.read_into(memoryview(target), 4), target[:4]) == (4, b"two\xff")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file.descriptor)
    assert (read_bytes(place / "file", 8), read_text(place / "file", 8)) == (b"one\ntwo\xff", "one\ntwo�")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("link", "is a link; links in a dump are not followed"),
        ("zero", "is a link"),
        ("loop", "is a link"),
        ("pipe", "is a pipe, not a regular file"),
        ("folder", "is a directory, not a regular file"),
        ("nul\0", "is not a path"),
        ("file/x", "Not a directory"),
    ],
)
def test_anything_else_is_refused(place, name, what):
    with pytest.raises(UnreadableError, match=what):
        open_regular(f"{place}/{name}")


def test_a_link_that_the_user_named_is_followed_to_a_regular_file_only(place):
    assert read_bytes(place / "link", 8, follow=True) == b"one\ntwo\xff"
    for name, what in (("zero", "is a device"), ("loop", "is a link"), ("linked", "is a directory")):
        with pytest.raises(UnreadableError, match=what):
            open_regular(place / name, follow=True)


def test_directories_below_the_root_are_no_links(place):
    assert read_bytes(place / "folder/inner", 1, below=place) == b"x"
    assert read_bytes(place / "linked/inner", 1, below=place / "linked") == b"x"  # the root itself may be one
    for path in ("linked/inner", "link", "folder/../link"):
        with pytest.raises(UnreadableError, match=r"is a link; links in a dump"):
            open_regular(place / path, below=place)
    with pytest.raises(UnreadableError, match="Not a directory"):
        open_regular(place / "file/x", below=place)


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket has 108 bytes at most
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("s")
        with pytest.raises(UnreadableError, match="is a socket"):
            open_regular("s")


def test_limits(place):
    with pytest.raises(UnreadableError, match="is larger than 7 bytes"):
        open_regular(place / "file", 7)
    (place / "file").write_bytes(b"\n1234\n")
    with open_regular(place / "file") as file, pytest.raises(UnreadableError, match=r"file:2: the line is longer than"):
        list(file.lines(3))


@pytest.mark.parametrize("ends", [b"\n", b""])
def test_the_longest_line(place, ends):
    for longest, given in ((5, (5,)), (1 << 20, ())):  # the second is the default
        (place / "file").write_bytes(b"ab\n" + b"x" * (longest - len(ends)) + ends)
        with open_regular(place / "file") as file:
            assert [len(line) for line in file.lines(*given)] == [3, longest]
        (place / "file").write_bytes(b"ab\n" + b"x" * (longest + 1 - len(ends)) + ends)
        with (
            open_regular(place / "file") as file,
            pytest.raises(UnreadableError, match=rf"file:2: the line is longer than {longest} bytes \[DS-FIL-002\]$"),
        ):
            list(file.lines(*given))


def test_what_does_not_exist_is_a_missing_file_too(place):
    for below in (None, place):
        with pytest.raises(FileNotFoundError, match="none: does not exist") as caught:
            open_regular(place / "none", below=below)
        assert isinstance(caught.value, MissingFileError)


def test_names_of_a_directory(place):
    assert regular_names(place, below=place) == ["file"]
    assert regular_names(place / "linked", below=place / "linked") == ["inner"]
    assert regular_names(place / "none", below=place) == []
    for name, what in (("linked", "is a link"), ("file", "Not a directory")):
        with pytest.raises(UnreadableError, match=what):
            regular_names(place / name, below=place)


def test_nothing_is_left_open(place):
    before = len(os.listdir("/proc/self/fd"))
    for name in ("pipe", "zero", "folder", "none", "linked/inner"):
        with pytest.raises(UnreadableError):
            open_regular(place / name, below=place)
    regular_names(place, below=place)
    regular_names(place / "folder", below=place)
    assert read_bytes(place / "folder/inner", 1, below=place) == b"x"
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_is_read_whole_however_little_comes_at_once(tmp_path, monkeypatch):
    """The system may give fewer bytes than were asked for."""
    content = bytes(range(256)) * 5
    (tmp_path / "file").write_bytes(content)
    read, preadv = os.read, os.preadv
    for most in (1, 2):
        monkeypatch.setattr(os, "read", lambda descriptor, count, most=most: read(descriptor, min(count, most)))
        assert read_bytes(tmp_path / "file", 1 << 20) == content
    monkeypatch.setattr(os, "read", lambda descriptor, count: read(descriptor, min(count, 100)))
    monkeypatch.setattr(os, "preadv", lambda descriptor, parts, at: preadv(descriptor, [p[:100] for p in parts], at))
    with open_regular(tmp_path / "file", 1 << 20) as file:
        assert file.read(350) == content[:350]
        assert file.read(1) == content[350:351]
        assert file.read(5000) == content[351:]
        target = bytearray(700)
        assert file.read_into(memoryview(target), 300) == 700
        assert target == content[300:1000]
        assert file.read_into(memoryview(target), 1000) == 280
    assert read_bytes(tmp_path / "file", 1 << 20) == content
