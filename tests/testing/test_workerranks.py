"""One rank among workers, with what the others say written by hand."""

import json
import os
import pickle
import unittest
from base64 import b64encode
from types import SimpleNamespace

import pytest

from dumpsim.core.errors import DeviceError, PeerError
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.task import Task, TaskKind
from dumpsim.testing import workerranks
from dumpsim.testing.outcome import Outcome
from dumpsim.testing.rollcall import RollCall
from dumpsim.testing.workerranks import WorkerRanks
from dumpsim.world.context import current
from dumpsim.world.ending import RankStopped

NODE = "tests/test_net.py::test_step"


class Others:
    """The directory in which ranks 1 and 2 of three leave what they say."""

    def __init__(self, folder):
        self.folder = folder

    def say(self, rank, what, text=""):
        path = self.folder / f"{what}.{rank}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def meet(self, rank, number, kind, value):
        self.say(rank, f"test-0/meeting-{number}", json.dumps([kind, b64encode(pickle.dumps(value)).decode()]))

    def end(self, rank, state, kind="NoneType"):
        self.say(rank, "test-0/ended", json.dumps({"state": state, "kind": kind, "time": 0.0}))

    def die(self, rank):
        (self.folder / f"rank_{rank}.lock").write_text("77")  # and nobody holds it


@pytest.fixture
def others(tmp_path):
    return Others(tmp_path)


@pytest.fixture
def ranks(tmp_path):
    roll = RollCall(tmp_path, rank=0, size=3)
    yield WorkerRanks(roll, "test-0", NODE, 3, token="t", settings=RunSettings(), environment={})
    roll.close()


def test_values_of_a_meeting_are_those_of_all_ranks(ranks, others):
    for number in range(2):
        others.meet(1, number, "golden", number)
        others.meet(2, number, "golden", [None, "x"])
        assert ranks.meet("golden", {"mine": number}) == {0: {"mine": number}, 1: number, 2: [None, "x"]}
    others.meet(1, 2, "golden", 5)
    others.end(2, "passed")
    assert ranks.meet("golden") == {0: None, 1: 5}  # rank 2 does not come any longer


def test_ranks_at_different_meetings_are_named(ranks, others):
    others.meet(1, 0, "golden", 1)
    others.meet(2, 0, "golden", 1)
    with pytest.raises(DeviceError, match=r"rank 0 is at dump_dir where ranks 1, 2 came to golden \[DS-TST-005\]"):
        ranks.meet("dump_dir")
    others.meet(2, 1, "golden", 1)  # before rank 1 has come
    with pytest.raises(DeviceError, match="rank 0 is at dump_dir where rank 2 came to golden"):
        ranks.meet("dump_dir")


def test_nobody_is_waited_for_who_has_failed_or_died(ranks, others):
    others.end(1, "failed", "KeyError")
    with pytest.raises(RankStopped, match="rank 0 is stopped: rank 1 has raised KeyError"):
        ranks.meet("golden")
    others.end(1, "passed")
    others.die(2)
    text = rf"rank 2 \(worker gw2, process 77\) ended in {NODE}; rank 0 waits at golden \[DS-TST-006\]"
    with pytest.raises(DeviceError, match=text):
        ranks.meet("golden")
    others.say(2, "left")
    with pytest.raises(DeviceError, match=r"rank 2 \(worker gw2, process 77\) ended"):  # who was first to tell is right
        ranks.meet("golden")


def test_a_test_begins_when_all_are_ready(ranks, others):
    for rank in (1, 2):
        others.say(rank, "test-0/ready")
        others.say(rank, "test-0/arrived", NODE)
    ranks._assemble()
    others.say(2, "test-0/arrived", "tests/test_net.py::test_other")
    said = (
        r"rank 2 \(worker gw2\) runs tests/test_net.py::test_other, and rank 0 \(worker gw0\) runs "
        rf"{NODE}: every worker has to collect the same tests in the same order"
    )
    with pytest.raises(pytest.fail.Exception, match=said) as caught:
        ranks._assemble()
    assert caught.value.pytrace is False


def test_a_rank_that_has_reported_before_the_body_stops_the_others(ranks, others):
    others.say(1, "test-0/ready")
    others.say(2, "test-0/reported", "failed its setup")
    with pytest.raises(RankStopped, match="rank 0 is stopped: rank 2 has failed its setup before the test's body"):
        ranks._assemble()
    others.die(1)
    (others.folder / "test-0" / "ready.1").unlink()
    with pytest.raises(pytest.fail.Exception, match="rank 0 waits for the test to begin"):
        ranks._assemble()


def test_a_connection_that_fails_names_who_has_ended(ranks, others, monkeypatch):
    def refuse(*arguments, **options):
        raise DeviceError("nobody listens")

    monkeypatch.setattr(workerranks, "connect", refuse)
    monkeypatch.setattr(workerranks, "_PARTING_S", 0.0)
    with pytest.raises(pytest.fail.Exception, match="nobody listens") as caught:
        ranks._connect()
    assert caught.value.pytrace is False
    others.die(2)
    with pytest.raises(pytest.fail.Exception, match=rf"^rank 2 \(worker gw2, process 77\) ended in {NODE}$"):
        ranks._connect()


def test_an_error_that_follows_from_a_death_says_so_once(ranks, others, monkeypatch):
    monkeypatch.setattr(workerranks, "_PARTING_S", 0.0)
    for error in (ValueError("own"), DeviceError("x")):
        ranks._name_lost(error)
        assert not getattr(error, "__notes__", [])
    others.die(1)
    text = f"rank 1 (worker gw1, process 77) ended in {NODE}"
    error = DeviceError("no data came")
    ranks._name_lost(error)
    assert error.__notes__ == [text]
    again = DeviceError(f"so: {text}")
    ranks._name_lost(again)
    assert not getattr(again, "__notes__", [])
    plain = KeyError("own")
    ranks._name_lost(plain)
    assert not getattr(plain, "__notes__", [])


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (None, {"state": "passed", "kind": "NoneType"}), (ValueError("x"), {"state": "failed", "kind": "ValueError"}),
        (PeerError("late", rank=2), {"state": "failed", "kind": "PeerError", "culprit": 2}),
        (PeerError("own", rank=0), {"state": "failed", "kind": "PeerError"}),
    ],
)  # fmt: skip
def test_how_a_rank_ended_is_told_to_the_others(ranks, others, error, found):
    outcome = Outcome(rank=0)
    outcome.state, outcome.error = found["state"], error
    ranks._say_end(outcome)
    told = json.loads((others.folder / "test-0" / "ended.0").read_text())
    assert {key: value for key, value in told.items() if key != "time"} == found


def test_the_first_rank_stays_until_nobody_needs_it(ranks, others):
    outcome = Outcome(rank=0)
    outcome.state = "passed"
    ranks._say_end(outcome)
    others.end(1, "passed")
    others.say(2, "test-0/reported", "passed")
    ranks._await_ends()
    (others.folder / "test-0" / "reported.2").unlink()
    others.die(2)
    ranks._await_ends()


def waits(ranks, monkeypatch, *steps):
    """Have the ranks wait until each step has happened, and no shorter."""
    left = list(steps)

    def wait(done):
        if left:
            assert not done()
            left.pop(0)()
        assert done()

    monkeypatch.setattr(ranks._roll, "wait", wait)
    return left


def test_a_meeting_waits_for_a_rank_that_runs(ranks, others, monkeypatch):
    others.meet(1, 0, "golden", 1)
    left = waits(ranks, monkeypatch, lambda: others.meet(2, 0, "golden", 2))
    assert ranks.meet("golden") == {0: None, 1: 1, 2: 2}
    assert left == []


def test_the_first_rank_waits_for_those_that_use_its_hub(ranks, others, monkeypatch):
    ranks._say_end(Outcome(rank=0, state="passed"))
    others.end(1, "passed")
    left = waits(ranks, monkeypatch, lambda: others.end(2, "failed"))
    ranks._await_ends()
    assert left == []


def test_the_lock_of_a_lost_process_may_take_a_moment(ranks, others, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(workerranks, "time", SimpleNamespace(monotonic=lambda: now[0]))
    left = waits(ranks, monkeypatch, lambda: now.append(now.pop() + 1))  # nobody has ended
    assert ranks._await_lost() == ""
    assert left == []
    left = waits(ranks, monkeypatch, lambda: others.die(2))
    assert ranks._await_lost() == f"rank 2 (worker gw2, process 77) ended in {NODE}"
    assert left == []


def test_an_error_at_a_meeting_is_shown_at_the_line_of_the_test(ranks, others, alone):
    others.end(1, "failed", "KeyError")
    with pytest.raises(RankStopped) as stopped:
        ranks.meet("golden")
    others.end(1, "passed")
    others.die(2)
    with pytest.raises(DeviceError) as lost:
        ranks.meet("golden")
    with pytest.raises(IndexError) as own:
        alone[0].run(lambda: [].pop())
    for caught, names in (
        (stopped, ["meet", "wait", "done", "_may_go_on"]),
        (lost, ["meet", "wait", "done", "_may_go_on", "_refuse_lost"]),
        (own, ["run", "_as_rank", "body"]),
    ):  # fmt: skip
        frames = [entry for entry in caught.traceback if "/dumpsim/testing/" in str(entry.path)]
        assert [entry.name for entry in frames] == names
        assert all(entry.ishidden(caught) for entry in frames)


# ---------------------------------------------------------------- the body
@pytest.fixture
def alone(tmp_path):
    """The one rank of a test, which serves itself."""
    roll, settings = RollCall(tmp_path, rank=0, size=1), RunSettings(seed=5)
    token = f"{os.getpid():016x}-more"  # the address is unique on the machine
    made = WorkerRanks(roll, "test-0", NODE, 1, token=token, settings=settings, environment={"MINE": "7"})
    yield made, lambda: json.loads(roll.said("test-0/ended")[0])
    roll.close()


def test_a_rank_has_a_context_of_its_own(alone):
    ranks, ended = alone

    def body():
        context = current()
        assert ranks.meet("golden", 5) == {0: 5}
        names = ("RANK_ID", "RANK_SIZE", "DEVICE_ID", "MINE", VARIABLE)
        return (context.rank, context.size, context.device_id, *(os.environ[name] for name in names))

    assert ranks.run(body) == [(0, 1, 0, "0", "1", "0", "7", RunSettings(seed=5).to_text())]
    assert "MINE" not in os.environ
    (outcome,) = ranks.outcomes
    assert (outcome.line(), outcome.error) == ("passed", None)
    assert (ended()["state"], ended()["kind"]) == ("passed", "NoneType")


def test_how_the_body_of_a_rank_ends(alone):
    ranks, ended = alone
    for error, state, line in (
        (ValueError("one\ntwo"), "failed", "failed: ValueError: one"),
        (pytest.skip.Exception("no"), "skipped", "skipped: no"),
        (unittest.SkipTest("not"), "skipped", "skipped: not"),
        (RankStopped("rank 0 is stopped: rank 1 has raised E"), "stopped", "stopped: rank 1 has raised E"),
    ):  # fmt: skip
        closed = []

        def body(error=error, closed=closed):
            current().at_close(lambda: closed.append(1))
            raise error

        with pytest.raises(type(error)) as caught:
            ranks.run(body)
        assert caught.value is error
        assert closed == [1]
        (outcome,) = ranks.outcomes
        assert (outcome.state, outcome.line()) == (state, line)
        assert (outcome.error is error) is (state != "stopped")
        assert ended()["state"] == state


def test_an_error_of_the_last_tasks_is_the_ranks(alone):
    ranks, _ = alone

    def body():
        def fail(task):
            raise OSError("disk full")

        device = Device(chip("910B"), scheduler=current().world.get(Scheduler), environment={})
        device.stream(0).launch(Task(kind=TaskKind.AICORE, name="a", work=fail))

    with pytest.raises(OSError, match="disk full"):
        ranks.run(body)
    assert ranks.outcomes[0].line() == "failed: OSError: disk full"


@pytest.fixture
def pair(tmp_path):
    """The first of two ranks, which serves both."""
    roll = RollCall(tmp_path, rank=0, size=2)
    token = f"{os.getpid():016x}-pair"
    yield WorkerRanks(roll, "test-0", NODE, 2, token=token, settings=RunSettings(), environment={})
    roll.close()


def test_no_body_begins_before_all_ranks_are_ready(pair, others):
    others.say(1, "test-0/reported", "failed its setup")
    ran = []
    with pytest.raises(RankStopped, match="rank 1 has failed its setup before the test's body"):
        pair.run(lambda: ran.append(1))
    assert ran == []


def test_the_hub_of_the_first_rank_serves_until_the_others_have_ended(pair, others, monkeypatch):
    others.say(1, "test-0/ready")
    steps = iter([lambda: None, lambda: others.end(1, "passed")])  # ready at once, the end comes later

    def wait(done):
        step = next(steps)
        first = done()
        step()
        assert done()
        seen.append(first)

    seen = []
    monkeypatch.setattr(pair._roll, "wait", wait)
    assert pair.run(lambda: 5) == [5]
    assert seen == [True, False]


def test_an_error_of_the_device_names_the_rank_that_was_lost(pair, others, monkeypatch):
    monkeypatch.setattr(workerranks, "_PARTING_S", 0.0)
    others.say(1, "test-0/ready")

    def body():
        others.die(1)
        raise DeviceError("no data came")

    with pytest.raises(DeviceError, match="no data came") as caught:
        pair.run(body)
    assert f"rank 1 (worker gw1, process 77) ended in {NODE}" in caught.value.__notes__
    assert pair.outcomes[0].state == "failed"


@pytest.mark.parametrize("error", [None, pytest.skip.Exception("no"), ValueError("x")])
def test_a_rank_leaves_the_job_at_its_end(alone, monkeypatch, error):
    """Otherwise the hub would take it for one that was lost."""
    ranks, _ = alone
    left, clients = [], []
    connect = workerranks.connect

    def joined(*arguments, **options):
        clients.append(connect(*arguments, **options))
        leave = clients[0].leave
        monkeypatch.setattr(clients[0], "leave", lambda error=None: (left.append(error), leave(error)))
        return clients[0]

    monkeypatch.setattr(workerranks, "connect", joined)

    def body():
        if error is not None:
            raise error

    if error is None:
        ranks.run(body)
    else:
        with pytest.raises(type(error)):
            ranks.run(body)
    assert left == [error if isinstance(error, ValueError) else None]
