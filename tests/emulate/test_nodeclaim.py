"""Launchers of one job on one machine: who has which number, and what they tell each other."""

import gc
import os
import time
from types import SimpleNamespace

import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.emulate.nodeclaim import NodeClaim


@pytest.fixture
def claimed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    return lambda node, nodes=3, job="127.0.0.1:8118": NodeClaim(job, node, nodes)


def test_each_number_is_taken_once(claimed, tmp_path):
    first, second = claimed(-1), claimed(-1)
    third = claimed(2)
    assert [one.node for one in (first, second, third)] == [0, 1, 2]
    assert len({one.token for one in (first, second, third)}) == 1
    assert len(first.token) == 32
    with pytest.raises(BadInputError, match="--node_rank: all 3 nodes of the job are taken"):
        claimed(-1)
    with pytest.raises(BadInputError, match="--node_rank: node 1 of the job is taken"):
        claimed(1)
    del second
    gc.collect()
    assert claimed(-1).node == 1
    assert claimed(-1, job="127.0.0.1:9").node == 0  # another job
    (directory,) = tmp_path.glob("dumpsim-*-msrun-127.0.0.1_8118")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in directory.iterdir()) == ["node-0", "node-1", "node-2", "scheduler", "token"]


def test_a_directory_of_somebody_else_is_refused(claimed, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / f"dumpsim-{os.getuid()}-msrun-a_1").symlink_to(tmp_path / "other")
    with pytest.raises(BadInputError, match="belongs to another user"):
        claimed(0, job="a:1")
    (tmp_path / f"dumpsim-{os.getuid()}-msrun-a_2").mkdir()
    assert claimed(0, job="a:2").node == 0


def test_what_others_report_since_the_scheduler_came_is_read(claimed, tmp_path):
    first = claimed(0)
    other = claimed(1)
    (directory,) = tmp_path.glob("dumpsim-*")
    assert first.reports() == {}
    other.report(4, "exit code 7")
    other.report(5, "killed by SIGKILL")
    with open(directory / "node-1", "ab") as file:
        file.write(b"6 exit co")  # being written
    assert first.reports() == {4: "exit code 7", 5: "killed by SIGKILL"}
    old = claimed(2)
    old.report(9, "exit code 1")
    os.utime(directory / "node-2", ns=(0, 0))  # of a job before
    assert set(first.reports()) == {4, 5}


def test_a_launcher_waits_for_that_of_the_scheduler(claimed, tmp_path):
    other = claimed(1)
    (directory,) = tmp_path.glob("dumpsim-*")
    assert other.wait_for_scheduler(0) is False
    first = claimed(0)
    assert (directory / "scheduler").read_text() == str(os.getpid())
    os.utime(directory / "node-1", ns=(0, 0))
    assert other.wait_for_scheduler(0) is True
    assert (directory / "node-1").stat().st_mtime_ns > 0  # so that its reports are read
    for text, since, found in (("x", 0, False), ("", 0, False), (str(os.getpid()), 0, True), ("x", 10**19, True),
                               ("999999999", 0, False)):  # fmt: skip
        (directory / "scheduler").write_text(text)
        stamp = min(since, time.time_ns() + 10**10)
        os.utime(directory / "scheduler", ns=(stamp, stamp))
        assert other._first_has_come() is found
    (directory / "scheduler").unlink()
    assert other._first_has_come() is False
    (directory / "scheduler").mkdir()
    assert other._first_has_come() is False
    assert first.node == 0


@pytest.mark.parametrize(("later", "come"), [(-1, False), (0, True), (1, True)])
def test_a_launcher_of_the_scheduler_that_has_ended_had_come_if_it_started_no_earlier(claimed, tmp_path, later, come):
    """Two files of one tick of the clock have the same time."""
    other = claimed(1)
    (directory,) = tmp_path.glob("dumpsim-*")
    stamp = (directory / "node-1").stat().st_mtime_ns + later
    (directory / "scheduler").write_text("999999999")  # no process has this id
    os.utime(directory / "scheduler", ns=(stamp, stamp))
    assert other.wait_for_scheduler(0) is come


def test_a_claim_keeps_one_file_open(claimed, tmp_path):
    def held():
        paths = (os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if linked(number))
        return sorted(os.path.basename(path) for path in paths if path.startswith(str(tmp_path)))

    def linked(number):
        return os.path.lexists(f"/proc/self/fd/{number}")

    claims = [claimed(-1), claimed(-1)]
    with pytest.raises(BadInputError):
        claimed(0)
    assert held() == ["node-0", "node-1"]
    claims.clear()
    gc.collect()
    assert held() == []


def test_nobody_else_can_read_what_launchers_share(claimed, tmp_path):
    claimed(0)
    (directory,) = tmp_path.glob("dumpsim-*")
    assert {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()} == dict.fromkeys(
        ("node-0", "scheduler", "token"), 0o600
    )


def test_a_launcher_that_starts_again_has_no_reports_of_before(claimed, tmp_path):
    first = claimed(0)
    first.report(1, "exit code 7")
    token = first.token
    (directory,) = tmp_path.glob("dumpsim-*")
    assert (directory / "node-0").read_bytes() == b"1 exit code 7\n"
    del first
    gc.collect()
    (directory / "scheduler").write_text("1")  # of the process that had the number before
    again = claimed(0)
    assert (directory / "scheduler").read_text() == str(os.getpid())
    assert (directory / "node-0").read_bytes() == b""
    assert again.token == token == (directory / "token").read_text()
    stamp = (directory / "node-0").stat().st_mtime_ns
    other = claimed(1)
    other.report(2, "exit code 3")
    os.utime(directory / "node-1", ns=(stamp - 1, stamp - 1))
    assert again.reports() == {}
    os.utime(directory / "node-1", ns=(stamp, stamp))  # two files of one tick of the clock have the same time
    assert again.reports() == {2: "exit code 3"}


def test_a_launcher_waits_as_long_as_it_is_told(claimed, tmp_path, monkeypatch):
    other = claimed(1)
    (directory,) = tmp_path.glob("dumpsim-*")
    now, slept = [100.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += 1
        if len(slept) == 4:
            claimed(0)

    monkeypatch.setattr("dumpsim.emulate.nodeclaim.time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    assert other.wait_for_scheduler(2) is False
    assert len(slept) == 3  # after 2 seconds the time is over only when there is more than that
    assert other.wait_for_scheduler(-1) is True  # without a limit
    assert len(slept) == 4
    del slept[:]
    (directory / "scheduler").unlink()
    assert other.wait_for_scheduler(0.5) is False
    assert len(slept) == 1
