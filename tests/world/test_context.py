"""Rank contexts: tables by class, the current context, and the state that is switched with a rank."""

import os
import random
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.device.scheduler import Scheduler
from dumpsim.world import reports
from dumpsim.world.context import RankContext, World, current, use
from dumpsim.world.process import ProcessState


class Counter:
    """State of some module."""

    def __init__(self):
        self.rank = current().rank
        self.number = 0


def test_a_context_makes_one_instance_of_a_class():
    context = RankContext(rank=2)
    found = context.get(Counter)
    assert context.get(Counter) is found
    assert found.rank == 2  # made while its context was the current one
    assert RankContext().get(Counter) is not found


def test_a_context_is_a_rank_that_is_alone_unless_told():
    one = RankContext()
    assert (one.rank, one.size, one.device_id, one.prefix, one.world.ranks) == (0, 1, 0, "", 1)
    assert one.environment is os.environ


def test_an_instance_can_be_replaced():
    context, mine = RankContext(), Counter()
    assert not context.has(Counter)
    assert context.put(Counter, mine) is None
    assert context.get(Counter) is mine
    assert context.put(Counter, None) is mine
    assert context.get(Counter) is not mine


def test_threads_make_one_instance():
    context, found = RankContext(), []
    threads = [threading.Thread(target=lambda: found.append(context.get(Counter))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(counter) for counter in found}) == 1


def test_ranks_share_a_world():
    world = World(ranks=2)
    first, second = (RankContext(rank=rank, size=2, world=world) for rank in range(2))
    assert first.world.get(Counter) is second.world.get(Counter)
    assert RankContext().world is not world


def test_the_root_context_comes_from_the_environment(monkeypatch):
    for name, value in {"RANK_ID": "3", "RANK_SIZE": "8", "DEVICE_ID": "5"}.items():
        monkeypatch.setenv(name, value)
    context = RankContext.from_environment()
    assert (context.rank, context.size, context.device_id) == (3, 8, 5)
    monkeypatch.setenv("RANK_ID", "three")
    monkeypatch.delenv("DEVICE_ID")
    context = RankContext.from_environment()
    assert (context.rank, context.device_id) == (0, 0)


@pytest.mark.parametrize("error", [None, ValueError("of the script")])
def test_a_rank_of_an_mpi_job_leaves_it_at_the_end(monkeypatch, capsys, error):
    departed, scheduler = [], Scheduler()

    def depart(raised, *, result):
        departed.append((raised, result))
        return {2: result, 0: None} if error is None else None

    given = {"rank": 2, "size": 4, "local_ranks": (0, 2, 3), "scheduler": scheduler, "depart": depart}
    monkeypatch.setattr("dumpsim.world.mpi.connect_mpi", lambda: SimpleNamespace(**given))
    monkeypatch.setattr(reports, "render", lambda found, ranks: f"{found} of {ranks}", raising=False)
    monkeypatch.setenv(VARIABLE, RunSettings(transport="mpi").to_text())
    for name in ("RANK_ID", "RANK_SIZE", "DEVICE_ID"):
        monkeypatch.setenv(name, "9")
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    context = RankContext.from_environment()
    assert (context.rank, context.size, context.device_id) == (2, 4, 1)  # the second rank of its machine
    assert [os.environ[name] for name in ("RANK_ID", "RANK_SIZE", "DEVICE_ID")] == ["2", "4", "1"]
    assert context.communicator.local_ranks == (0, 2, 3)
    assert context.scheduler is context.world.get(Scheduler) is scheduler
    mine = context.get(reports.JobReports)
    assert mine.wanted
    mine.renderer = "dumpsim.world.reports:render"
    mine.own.append({"n": 1})
    assert departed == []
    context.close()
    context.close()
    assert departed == [(error, {"renderer": "dumpsim.world.reports:render", "reports": [{"n": 1}]})]
    assert capsys.readouterr() == ("", "[{'n': 1}] of 4\n" if error is None else "")


def test_a_process_has_the_numbers_of_its_environment(monkeypatch):
    """Invalid ones are ignored, as by the vendor."""
    for name in ("RANK_ID", "RANK_SIZE", "DEVICE_ID", "MS_WORKER_NUM", VARIABLE):
        monkeypatch.delenv(name, raising=False)

    def found():
        one = RankContext.from_environment()
        return one.rank, one.size, one.device_id

    assert found() == (0, 1, 0)
    for name, text, numbers in (
        ("RANK_ID", "3", (3, 1, 0)), ("MS_WORKER_NUM", "8", (3, 8, 0)), ("RANK_SIZE", "4", (3, 4, 0)),
        ("DEVICE_ID", "2", (3, 4, 2)), ("RANK_SIZE", "x", (3, 8, 2)), ("RANK_ID", "-1", (0, 8, 2)),
        ("DEVICE_ID", "\u0663", (0, 8, 0)), ("RANK_SIZE", "", (0, 8, 0)),
    ):  # fmt: skip
        monkeypatch.setenv(name, text)
        assert found() == numbers


def test_threads_share_the_context_of_the_process():
    seen = []
    with use(RankContext(device_id=6)):
        thread = threading.Thread(target=lambda: seen.append(current().device_id))
        thread.start()
        thread.join()
        assert current().device_id == 6
    assert seen == [6]
    assert current().device_id == 0


def test_a_rank_has_its_own_process_state(tmp_path, capsys):
    here, outside = os.getcwd(), random.getstate()
    environment = {VARIABLE: RunSettings(seed=5).to_text(), "RANK_ID": "1"}
    context = RankContext(rank=1, environment=environment, directory=tmp_path, prefix="[1] ")

    def first():
        assert current() is context
        assert dict(os.environ) == environment == dict(context.environment)
        os.environ["MINE"] = "1"
        os.mkdir("below")
        os.chdir("below")
        print("half", end="")
        return random.random(), np.random.standard_normal()  # an odd number of normal values: one is cached

    drawn = context.run(first)
    assert os.getcwd() == here
    assert "MINE" not in os.environ
    assert random.getstate() == outside
    assert context.environment["MINE"] == "1"

    def second():
        assert os.environ["MINE"] == "1"
        assert os.getcwd() == str(tmp_path / "below")
        print(" line\nend", end="")
        return random.random(), np.random.standard_normal()

    again = context.run(second)
    context.close()
    expected, state = random.Random(5), np.random.RandomState(5)
    assert [drawn[0], again[0]] == [expected.random(), expected.random()]
    assert [drawn[1], again[1]] == [state.standard_normal(), state.standard_normal()]
    assert capsys.readouterr().out == "[1] half line\n[1] end\n"


def test_a_rank_keeps_the_streams_that_it_chose(capsys):
    import io

    context, mine = RankContext(environment={}), io.StringIO()
    outside = sys.stdout

    def redirect():
        sys.stdout = mine

    context.run(redirect)
    assert sys.stdout is outside
    context.run(print, "mine")
    assert mine.getvalue() == "mine\n"
    assert capsys.readouterr().out == ""


def test_ranks_that_take_turns():
    one, two = (RankContext(rank=rank, environment={"RANK_ID": str(rank)}) for rank in range(2))
    outside = RankContext()
    outside.suspend()
    one.resume()
    os.environ["OF"] = "one"
    one.suspend()
    two.resume()
    assert os.environ["RANK_ID"] == "1"
    assert "OF" not in os.environ
    two.suspend()
    one.resume()
    assert os.environ["OF"] == "one"
    one.suspend()
    outside.resume()
    assert "OF" not in os.environ
    assert outside.environment is os.environ


def test_closing_calls_each_action_once_in_reverse_order():
    context, log = RankContext(), []

    def fail():
        raise ValueError("first")

    context.at_close(lambda: log.append(1))
    context.at_close(fail)
    context.at_close(lambda: log.append(2))
    with pytest.raises(ValueError, match="first"):
        context.close()
    context.close()
    assert log == [2, 1]


def test_a_process_closes_its_context_at_exit(tmp_path):
    import subprocess

    script = "from dumpsim.world import current; current().at_close(lambda: print('closed')); print('end')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "end\nclosed\n"


def test_the_state_of_a_rank_that_is_suspended_is_returned():
    """The next rank to run takes it as the present state of the process, without looking again."""
    outside = ProcessState.take()
    context = RankContext(rank=1, environment={"MINE": "2"})
    context.resume(outside)
    try:
        os.environ["LATER"] = "3"
        found = context.suspend()
    finally:
        outside.install()
    assert dict(found.environment) == {"MINE": "2", "LATER": "3"} == dict(context.environment)
