"""Names of files that are being written: who writes them, and that they are no part of a dump."""

import os
import zlib

import pytest

from dumpsim.core import partname
from dumpsim.core.partname import CLAIM, PART, is_ours, machine, part_name, writer_of


@pytest.fixture(autouse=True)
def fresh():
    machine.cache_clear()
    yield
    machine.cache_clear()


def test_names_differ_and_tell_their_writer():
    first, second = part_name(), part_name()
    assert first != second
    head, _, number = first.rpartition("-")
    assert head == f"{PART}{machine()}-{os.getpid()}"
    assert int(second.rpartition("-")[2]) == int(number) + 1
    assert writer_of(first) == writer_of(second) == os.getpid()


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        (f"{PART}x", True), (f"{CLAIM}x", True), (PART, True), ("statistic.csv", False), (f"x{PART}", False),
        (".dumpsim", False),
    ],
)  # fmt: skip
def test_what_is_ours(name, ours):
    assert is_ours(name) is ours


@pytest.mark.parametrize(
    ("rest", "writer"),
    [
        ("{machine}-7-0", 7), ("{machine}-7", 7), ("{machine}-" + "1" * 11 + "-0", int("1" * 11)),
        ("{machine}-" + "1" * 12 + "-0", None), ("{machine}--0", None), ("{machine}-x-0", None), ("{machine}", None),
        ("elsewhere-7-0", None),
    ],
)  # fmt: skip
def test_the_writer_of_a_name(rest, writer):
    name = PART + rest.format(machine=machine())
    assert writer_of(name) == writer
    assert writer_of(name.removeprefix(".")) is None


def test_a_machine_is_its_boot_and_its_name_space(monkeypatch):
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        known = file.read() + os.readlink("/proc/self/ns/pid")
    assert machine() == f"{zlib.crc32(known.encode()):08x}"
    machine.cache_clear()
    monkeypatch.setattr(partname.os, "readlink", lambda path: (_ for _ in ()).throw(PermissionError()))
    monkeypatch.setattr(partname.socket, "gethostname", lambda: "c")  # its crc has a leading zero
    assert machine() == "06b9df6f"
