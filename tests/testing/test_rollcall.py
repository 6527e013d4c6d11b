"""Who is there, as the processes of one pytest run see it."""

import fcntl
import os

import pytest

from dumpsim.testing import rollcall
from dumpsim.testing.rollcall import RollCall


@pytest.fixture
def roll(tmp_path):
    made = RollCall(tmp_path, rank=0, size=3)
    yield made
    made.close()


def test_words_have_a_topic_and_a_rank(roll, tmp_path):
    assert roll.said("test-0/arrived") == {}
    roll.say("test-0/arrived", "mine \u00e9")
    roll.say("test-0/empty")
    (tmp_path / "test-0" / "arrived.2").write_text("theirs")
    assert roll.said("test-0/arrived") == {0: "mine \u00e9", 2: "theirs"}
    assert roll.said("test-0/arrived", [1, 2]) == {2: "theirs"}
    assert roll.said("test-0/empty") == {0: ""}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank_0.lock", "test-0"]  # no parts are left
    assert (tmp_path / "rank_0.lock").read_text() == str(os.getpid())
    assert (tmp_path / "rank_0.lock").stat().st_mode & 0o777 == 0o600


def test_the_first_reason_to_stop_is_that_of_all(roll, tmp_path):
    assert roll.stopped() == ""
    assert roll.stop("one") == "one"
    assert roll.stop("two") == "one"
    assert roll.stopped() == "one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank_0.lock", "stopped"]


def test_who_has_ended_and_who_has_not_come_yet(roll, tmp_path, monkeypatch):
    (tmp_path / "rank_1.lock").write_text("77")
    assert roll.lost() == {1: "worker gw1, process 77"}  # rank 2 may start later
    assert roll.lost([0, 2]) == {}
    (tmp_path / "left.1").write_text("")
    assert roll.lost([1]) == {1: "worker gw1, whose tests have ended"}
    assert RollCall.describe({1: "a", 2: "b"}) == "rank 1 (a) and rank 2 (b)"
    now = [roll._since + 120]
    monkeypatch.setattr(rollcall.time, "monotonic", lambda: now[0])
    assert roll.lost([2]) == {}
    now[0] += 0.5
    assert roll.lost([2]) == {2: "worker gw2, which has not started"}


def test_a_rank_leaves_once(tmp_path):
    one = RollCall(tmp_path, rank=0, size=1)
    one.close()
    assert (tmp_path / "left.0").read_text() == ""
    (tmp_path / "left.0").unlink()
    one.close()
    assert not (tmp_path / "left.0").exists()


def test_another_process_sees_how_long_a_rank_lasts(tmp_path):
    """The locks of this process never block itself."""

    def seen():
        ends = os.pipe()
        child = os.fork()
        if not child:
            try:
                open_files = len(os.listdir("/proc/self/fd"))
                found = [RollCall(tmp_path, rank=1, size=2).lost() for _ in range(3)]
                assert found[0] == found[2]
                assert len(os.listdir("/proc/self/fd")) == open_files + 3  # its own locks
                os.write(ends[1], repr(found[0]).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(ends[1])
        with open(ends[0], "rb") as file:
            return file.read().decode()

    roll = RollCall(tmp_path, rank=0, size=2)
    assert seen() == "{}"
    roll.close()
    assert seen() == "{0: 'worker gw0, whose tests have ended'}"


def test_waiting_ends_with_its_condition():
    left = [False, False, True]
    RollCall.wait(lambda: left.pop(0))
    assert left == []


def test_two_ranks_see_at_once_that_a_third_has_ended(tmp_path):
    (tmp_path / "rank_1.lock").write_text("77")  # nobody holds it
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if not child:  # a rank that is just looking
        descriptor = os.open(tmp_path / "rank_1.lock", os.O_RDWR)
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.write(ready[1], b".")
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    roll = RollCall(tmp_path, rank=0, size=2)
    try:
        assert roll.lost() == {1: "worker gw1, process 77"}
    finally:
        os.write(done[1], b".")
        os.waitpid(child, 0)
        roll.close()
        for descriptor in (*ready, *done):
            os.close(descriptor)
