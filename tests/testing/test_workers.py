"""The parts of a run whose workers are ranks: who skips, and how the reports of all ranks become one."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dumpsim.core.settings import RunSettings
from dumpsim.testing import workers
from dumpsim.testing.outcome import Outcome
from dumpsim.testing.ranktest import OUTCOME
from dumpsim.testing.workers import Controller, Worker, _line, _worst

WHERE = ("test_inner.py", 3, "test_net")


def report(when="call", outcome="passed", longrepr=None):
    return pytest.TestReport(
        nodeid="test_inner.py::test_net", location=WHERE, keywords={}, outcome=outcome, longrepr=longrepr, when=when
    )


@pytest.fixture
def worker(request, tmp_path):
    """A worker of a run of three that nobody else has joined."""
    made = []

    def make(name="gw0", size=3):
        given = {"dumpsim_ranks": {"directory": str(tmp_path), "size": size}, "workerid": name, "testrunuid": "t"}
        made.append(Worker(SimpleNamespace(workerinput=given, hook=request.config.hook)))
        return made[-1]

    yield make
    for one in made:
        one.pytest_sessionfinish()


def packed(worker, *reports, outcome=None, **end):
    """What a rank tells the others of its test."""
    hook = worker.config.hook
    return json.loads(
        json.dumps(
            {
                "reports": {one.when: hook.pytest_report_to_serializable(config=None, report=one) for one in reports},
                "lines": {one.when: _line(one) for one in reports},
                "outcome": outcome,
                "end": end,
            }
        )
    )


def passed(worker, **end):
    return packed(worker, report("setup"), report(), report("teardown"), outcome={"state": "passed"}, **end)


def failed(worker, text, **end):
    outcome = {"state": "failed", "reason": text, "traceback": text}
    reports = report("setup"), report(outcome="failed", longrepr=text), report("teardown")
    return packed(worker, *reports, outcome=outcome, state="failed", **end)


def skipped(worker, reason, **end):
    outcome = {"state": "skipped", "reason": reason}
    reports = report("setup"), report(outcome="skipped", longrepr=("f", 3, reason)), report("teardown")
    return packed(worker, *reports, outcome=outcome, state="skipped", **end)


def ends(reports):
    return [(one.when, one.outcome) for one in reports]


PASSED = [("setup", "passed"), ("call", "passed"), ("teardown", "passed")]
FAILED = [("setup", "passed"), ("call", "failed"), ("teardown", "passed")]


# ---------------------------------------------------------------- one report
def test_ranks_that_pass_have_one_report(worker):
    first = worker()
    merged = first._merge({rank: passed(first, time=1.0) for rank in range(3)}, [])
    assert ends(merged) == PASSED
    assert [one.sections for one in merged] == [[], [], []]


def test_the_first_rank_that_failed_is_at_fault(worker):
    one = worker()
    found = {0: failed(one, "late", time=2.0), 1: failed(one, "early", time=1.0), 2: passed(one, time=0.5)}
    merged = one._merge(found, [])
    assert ends(merged) == FAILED
    text = merged[1].longreprtext
    assert text.startswith("early\n")
    assert text.index(" rank 1 ") < text.index(" rank 0 ") < text.index(" rank 2 ")
    assert "failed: early (traceback above)" in text
    assert "failed: late" in text


def test_a_rank_that_failed_by_another_one_is_not_at_fault(worker):
    one = worker()
    found = {0: failed(one, "stopped by 1", time=1.0, culprit=1), 1: failed(one, "mine", time=2.0)}
    assert one._merge(found, [])[1].longreprtext.startswith("mine\n")
    found = {
        0: failed(one, "stopped by 2", time=1.0, culprit=2),
        1: failed(one, "stopped by 2 too", time=2.0, culprit=2),
        2: failed(one, "mine", time=3.0, culprit=0),
    }
    assert one._merge(found, [])[1].longreprtext.startswith("mine\n")
    found = {
        0: failed(one, "of another", time=1.0, culprit=2),
        1: failed(one, "mine", time=2.0),
        2: passed(one, time=3.0),
    }
    assert one._merge(found, [])[1].longreprtext.startswith("mine\n")
    found = {0: failed(one, "of another", time=1.0, culprit=7), 1: passed(one, time=2.0)}
    assert one._merge(found, [])[1].longreprtext.startswith("of another\n")


def test_a_rank_that_died_fails_the_test(worker):
    one = worker()
    died = [Outcome(rank=2, state="died", reason="worker gw2, process 7")]
    merged = one._merge({0: passed(one, time=1.0), 1: passed(one, time=1.0)}, died)
    assert ends(merged) == FAILED
    text = merged[1].longreprtext
    assert text.startswith("rank 2 (worker gw2, process 7) ended in this test\n")
    assert "died: worker gw2, process 7" in text
    both = [*died, Outcome(rank=1, state="died", reason="worker gw1, process 8")]
    text = one._merge({0: passed(one, time=1.0)}, both)[1].longreprtext
    assert text.startswith(
        "rank 2 (worker gw2, process 7) ended in this test and rank 1 (worker gw1, process 8) ended in this test\n"
    )
    text = one._merge({0: failed(one, "mine", time=1.0)}, died)[1].longreprtext
    assert text.startswith("mine\n")
    other = [Outcome(rank=1, state="absent", reason="it runs test_other")]
    assert ends(one._merge({0: passed(one, time=1.0)}, other)) == PASSED


def test_a_test_is_skipped_where_all_ranks_skip(worker):
    one = worker()
    merged = one._merge({rank: skipped(one, "no", time=1.0) for rank in range(2)}, [])
    assert ends(merged) == [("setup", "passed"), ("call", "skipped"), ("teardown", "passed")]
    assert merged[1].longrepr == ("f", 3, "no")
    mixed = one._merge({0: passed(one, time=1.0), 1: skipped(one, "no", time=1.0)}, [])
    assert ends(mixed) == PASSED
    assert ("Ranks (rank 1)", "skipped: no") in mixed[1].sections
    wrong = one._merge({0: skipped(one, "no", time=1.0), 1: failed(one, "bad", time=2.0)}, [])
    assert ends(wrong) == FAILED
    late = packed(one, report("setup"), report(outcome="failed", longrepr="later"), report("teardown"),
                  outcome={"state": "passed"})  # fmt: skip
    assert one._merge({0: skipped(one, "no", time=1.0), 1: late}, [])[1].outcome == "skipped"


def test_a_failure_after_the_body_is_shown(worker):
    """As where an expected failure did not come: the rank's own end is good, its report is not."""
    one = worker()
    strict = packed(one, report("setup"), report(outcome="failed", longrepr="[XPASS]"), report("teardown"),
                    outcome={"state": "passed"}, state="passed", time=1.0)  # fmt: skip
    merged = one._merge({0: passed(one, time=1.0), 1: strict}, [])
    assert ends(merged) == FAILED
    assert merged[1].longreprtext.startswith("[XPASS]\n")


def test_a_setup_that_fails_stops_the_others(worker):
    one = worker()
    bad = packed(one, report("setup", "failed", "no fixture\nE ..."), report("teardown"))
    stopped = packed(one, report("setup"), report(outcome="failed", longrepr="stopped"), report("teardown"))
    merged = one._merge({0: stopped, 1: bad}, [])
    assert ends(merged) == [("setup", "failed"), ("teardown", "passed")]
    text = merged[0].longreprtext
    assert text.startswith("no fixture\nE ...\n")
    assert "failed: no fixture" in text
    assert " rank 0 " in text
    skips = packed(one, report("setup", "skipped", ("f", 1, "not here")), report("teardown"))
    merged = one._merge({0: stopped, 1: skips}, [])
    assert ends(merged) == [("setup", "skipped"), ("teardown", "passed")]
    assert merged[0].longrepr == ("f", 1, "not here")
    assert ends(one._merge({0: bad, 1: skips}, []))[0] == ("setup", "failed")


def test_a_teardown_that_fails_is_shown_after_the_call(worker):
    one = worker()
    bad = packed(
        one, report("setup"), report(), report("teardown", "failed", "not closed"), outcome={"state": "passed"}
    )
    merged = one._merge({0: passed(one, time=1.0), 1: bad}, [])
    assert ends(merged) == [*PASSED[:2], ("teardown", "failed")]
    assert merged[2].longreprtext.startswith("not closed\n")


def test_output_is_shown_by_rank(worker):
    one = worker()
    said = packed(one, report("setup"), report(), report("teardown"), outcome={"state": "passed", "out": "hello"})
    merged = one._merge({0: passed(one, time=1.0), 1: said}, [])
    assert merged[1].sections == [("Captured stdout call (rank 1)", "hello")]


def test_the_worst_phase_is_what_became_of_a_test():
    good, bad, none = report(), report("setup", "failed", "x"), report("setup", "skipped", ("f", 1, "x"))
    assert [_worst([good]), _worst([good, none]), _worst([none, bad]), _worst([bad, good])] == [
        "passed", "skipped", "failed", "failed",
    ]  # fmt: skip
    assert _line(report(outcome="failed", longrepr="one\ntwo")) == "one"
    assert _line(good) == _line(none) == ""


# ---------------------------------------------------------------- who skips
ITEM = SimpleNamespace(nodeid="test_inner.py::test_net", name="test_net[2-a/b]", location=WHERE)


@pytest.mark.parametrize(("name", "mine"), [("gw0", True), ("gw1", False)])
def test_a_test_with_more_ranks_than_workers_is_skipped_by_all_and_reported_by_the_first(worker, name, mine):
    one = worker(name)
    assert one._skips(ITEM, 4) == ("the test needs 4 ranks, and the run has 3 workers: --tx 4*popen", mine)
    assert one._skips(ITEM, 3)[0] == ""


def test_a_worker_that_replaces_another_one_skips(worker):
    late = worker("gw3")
    assert late.roll is None
    reason, mine = late._skips(ITEM, 2)
    assert reason.startswith("gw3 replaces a worker that crashed")
    assert mine
    late.pytest_sessionfinish()


@pytest.mark.parametrize(("name", "mine"), [("gw1", True), ("gw2", False)])
def test_after_a_crash_the_first_that_is_left_reports(worker, tmp_path, name, mine):
    (tmp_path / "rank_0.lock").write_text("77")  # nobody holds it
    one = worker(name)
    one.test = "test-0"
    reason, reports = one._skips(ITEM, 2)
    assert reason == "rank 0 (worker gw0, process 77) ended before test_inner.py::test_net"
    assert reports is mine
    assert one.roll.stopped() == reason
    assert one._skips(SimpleNamespace(nodeid="test_later"), 2) == (reason, mine)  # the job has ended


def test_who_was_lost_after_it_had_arrived_does_not_stop_the_others(worker, tmp_path):
    (tmp_path / "test-0").mkdir()
    (tmp_path / "test-0" / "arrived.0").write_text(ITEM.nodeid)
    (tmp_path / "rank_0.lock").write_text("77")
    second = worker("gw1")
    second.test = "test-0"
    assert second._skips(ITEM, 2)[0] == ""


def test_a_directory_that_all_ranks_of_a_test_share(worker, tmp_path):
    one = worker()
    one.test = "test-4"
    found = one.shared_directory(ITEM, tmp_path / "popen-gw0" / "test_net0")
    assert found == tmp_path / "ranks" / "test_net_2_a_b_-test-4"
    assert found.is_dir()
    assert one.shared_directory(ITEM, tmp_path / "popen-gw1" / "test_net0") == found
    long = SimpleNamespace(name="x" * 50)
    assert one.shared_directory(long, tmp_path / "popen-gw0" / "y").name == "x" * 30 + "-test-4"


# ---------------------------------------------------------------- a test on ranks
NAME = "test_inner.py::test_net"


class Inner(pytest.Function):
    """A test whose reports go nowhere but into a list."""

    nodeid = NAME

    @property
    def ihook(self):
        return self.told


@pytest.fixture
def inner(request, monkeypatch):
    """A test on ranks, and what pytest would do to it: its reports, what the rank said at its end, its skip mark."""

    def make(*marks, reports=None, outcome=None, end=None, worker=None):
        item = Inner.from_parent(request.node.parent, name="test_net", callobj=lambda: None)
        for mark in marks:
            item.add_marker(mark)
        item.log, item.runs = [], []
        item.told = SimpleNamespace(
            pytest_runtest_logstart=lambda nodeid, location: item.log.append(("start", nodeid, location)),
            pytest_runtest_logreport=lambda report: item.log.append(report),
            pytest_runtest_logfinish=lambda nodeid, location: item.log.append(("finish", nodeid, location)),
        )

        def protocol(item, *, nextitem, log):
            skips = item.get_closest_marker("skip")
            item.runs.append((nextitem, log, skips.kwargs["reason"] if skips else ""))
            if outcome is not None:
                item.stash[OUTCOME] = outcome
            if end is not None:
                worker.roll.say(f"{worker.test}/ended", json.dumps(end))
            return reports or [report("setup"), report(), report("teardown")]

        monkeypatch.setattr(workers, "runtestprotocol", protocol)
        return item

    return make


def others(folder, test="test-0", **words):
    """What other ranks have said: ``arrived_1="test_net"``."""
    (folder / test).mkdir(exist_ok=True)
    for name, text in words.items():
        what, _, rank = name.partition("_")
        (folder / test / f"{what}.{rank}").write_text(text)


def logged(item):
    """The reports of a test, between its start and its end; nothing where it was not reported."""
    if not item.log:
        return None
    start, *reports, finish = item.log
    assert (start, finish) == (("start", NAME, item.location), ("finish", NAME, item.location))
    return reports


def test_a_test_without_the_marker_is_left_to_pytest(worker, inner, tmp_path):
    one = worker()
    item = inner()
    assert one.pytest_runtest_protocol(item, None) is None
    assert one.pytest_runtest_protocol(SimpleNamespace(get_closest_marker=lambda name: True), None) is None
    assert (item.runs, item.log) == ([], [])
    assert not list(tmp_path.glob("test-*"))


def test_the_first_rank_reports_for_all(worker, inner, tmp_path):
    one = worker()
    mine = Outcome(rank=0, state="passed", out="from 0")
    item = inner(pytest.mark.ranks(2), outcome=mine, end={"state": "passed", "time": 1.0}, worker=one)
    other = packed(one, report("setup"), report(), report("teardown"), outcome={"state": "passed", "out": "from 1"})
    others(tmp_path, arrived_1=NAME, outcome_1=json.dumps(other))
    assert one.pytest_runtest_protocol(item, "next") is True
    assert item.runs == [("next", False, "")]
    reports = logged(item)
    assert ends(reports) == PASSED
    assert reports[1].sections == [("Captured stdout call (rank 0)", "from 0"),
                                   ("Captured stdout call (rank 1)", "from 1")]  # fmt: skip
    assert one.roll.said("test-0/arrived") == {0: NAME, 1: NAME}
    assert one.roll.said("test-0/reported") == {0: "passed"}
    told = json.loads(one.roll.said("test-0/outcome")[0])
    assert told["end"] == {"state": "passed", "time": 1.0}
    assert told["outcome"] == {"state": "passed", "reason": "", "traceback": "", "out": "from 0", "err": ""}
    assert told["lines"] == {"setup": "", "call": "", "teardown": ""}


def test_another_rank_reports_nothing_and_every_test_has_a_number(worker, inner, tmp_path):
    one = worker("gw1")
    for number in range(3):
        item = inner(pytest.mark.ranks(2), reports=[report("setup", "failed", "no fixture"), report("teardown")])
        text = json.dumps(passed(one, time=1.0))
        others(tmp_path, f"test-{number}", arrived_0=NAME, outcome_0=text)
        assert one.pytest_runtest_protocol(item, None) is True
        assert logged(item) is None
        assert len(item.runs) == 1
        assert one.roll.said(f"test-{number}/reported") == {1: "failed"}
        told = json.loads(one.roll.said(f"test-{number}/outcome")[1])
        assert (told["outcome"], told["end"], told["lines"]["setup"]) == (None, {}, "no fixture")


def test_the_report_waits_for_every_rank(worker, inner, tmp_path, monkeypatch):
    one = worker()
    others(tmp_path, arrived_1=NAME)

    def wait(done):
        assert not done()
        others(tmp_path, outcome_1=json.dumps(failed(one, "bad", time=1.0)))
        assert done()

    monkeypatch.setattr(one.roll, "wait", wait)
    item = inner(pytest.mark.ranks(2), outcome=Outcome(rank=0, state="passed"), worker=one)
    assert one.pytest_runtest_protocol(item, None) is True
    assert ends(logged(item)) == FAILED


def test_a_worker_whose_tests_have_ended_says_so(worker, tmp_path):
    worker("gw1").pytest_sessionfinish()
    assert (tmp_path / "left.1").exists()


def test_a_rank_that_the_test_does_not_want_skips_it_unseen(worker, inner):
    one = worker("gw2")
    item = inner(pytest.mark.ranks(2))
    assert one.pytest_runtest_protocol(item, "next") is True
    assert item.runs == [("next", False, "for ranks 0, 1 alone")]
    assert logged(item) is None
    assert one.roll.said("test-0/arrived") == {2: NAME}
    assert one.roll.said("test-0/outcome") == {}


@pytest.mark.parametrize(("name", "mine"), [("gw0", True), ("gw1", False)])
def test_a_test_that_cannot_run_is_run_as_skipped(worker, inner, name, mine):
    one = worker(name)
    item = inner(pytest.mark.ranks(4), reports=[report("setup", "skipped", ("f", 1, "x")), report("teardown")])
    assert one.pytest_runtest_protocol(item, "next") is True
    ((following, log, reason),) = item.runs
    assert (following, log) == ("next", False)
    assert reason.startswith("the test needs 4 ranks")
    assert ends(logged(item) or []) == ([("setup", "skipped"), ("teardown", "passed")] if mine else [])
    assert one.roll.said("test-0/arrived") == {}


def test_a_marker_that_is_wrong_is_left_to_one_rank(worker, inner):
    one = worker()
    item = inner(pytest.mark.ranks("two"), reports=[report("setup", "failed", "wrong"), report("teardown")])
    assert one.pytest_runtest_protocol(item, None) is True
    assert ends(logged(item)) == [("setup", "failed"), ("teardown", "passed")]


def test_the_first_rank_that_is_left_reports_who_died(worker, inner, tmp_path):
    others(tmp_path, arrived_0=NAME, arrived_1=NAME)
    (tmp_path / "rank_0.lock").write_text("77")  # nobody holds it
    one = worker("gw1")
    item = inner(pytest.mark.ranks(2), outcome=Outcome(rank=1, state="passed"), worker=one)
    assert one.pytest_runtest_protocol(item, None) is True
    reports = logged(item)
    assert ends(reports) == FAILED
    assert reports[1].longreprtext.startswith("rank 0 (worker gw0, process 77) ended in this test\n")
    assert "died: worker gw0, process 77" in reports[1].longreprtext


def test_a_rank_that_reported_before_its_end_did_not_die_in_the_test(worker, inner, tmp_path):
    one = worker("gw1")
    others(tmp_path, arrived_0=NAME, outcome_0=json.dumps(passed(one, time=1.0)))
    (tmp_path / "rank_0.lock").write_text("77")
    item = inner(pytest.mark.ranks(2))
    assert one.pytest_runtest_protocol(item, None) is True
    assert logged(item) is None  # rank 0 has reported for both


def test_ranks_with_another_test_are_named_and_not_waited_for(worker, inner, tmp_path):
    one = worker()
    others(tmp_path, arrived_1="test_inner.py::test_other", arrived_2=NAME,
           outcome_2=json.dumps(passed(one, time=1.0)))  # fmt: skip
    (tmp_path / "rank_1.lock").write_text("78")  # and it has ended since, in its own test
    bad = [report("setup"), report(outcome="failed", longrepr="nobody came"), report("teardown")]
    item = inner(pytest.mark.ranks(3), reports=bad, outcome=Outcome(rank=0, state="failed", reason="nobody came"),
                 end={"state": "failed", "time": 2.0}, worker=one)  # fmt: skip
    assert one.pytest_runtest_protocol(item, None) is True
    reports = logged(item)
    assert ends(reports) == FAILED
    assert reports[1].longreprtext.startswith("nobody came\n")
    assert "absent: it runs test_inner.py::test_other" in reports[1].longreprtext
    assert "died" not in reports[1].longreprtext


def test_the_ranks_of_a_test_are_the_first_workers(worker):
    one = worker("gw1")
    one.test = "test-3"
    ranks = one.ranks(ITEM, 2, RunSettings(), {})
    assert (ranks.rank, ranks.size, [outcome.rank for outcome in ranks.outcomes]) == (1, 2, [1])


# ---------------------------------------------------------------- the process that started them
def test_the_controller_gives_workers_a_place_and_takes_it_away():
    controller = Controller(4)
    node = SimpleNamespace(gateway=SimpleNamespace(spec=SimpleNamespace(popen=True)), workerinput={})
    controller.pytest_configure_node(node)
    given = node.workerinput["dumpsim_ranks"]
    assert given["size"] == 4
    assert Path(given["directory"]).is_dir()
    crash = SimpleNamespace(node=SimpleNamespace(gateway=SimpleNamespace(id="gw2")), longrepr="it crashed")
    controller.pytest_handlecrashitem("test_net", crash)
    assert crash.longrepr == "it crashed\ngw2 was rank 2 of the run"
    controller.pytest_unconfigure()
    assert not Path(given["directory"]).exists()
    controller.pytest_unconfigure()  # nothing is left to remove


def test_workers_elsewhere_are_refused():
    controller = Controller(1)
    spec = SimpleNamespace(popen=False)
    with pytest.raises(pytest.UsageError, match="is not a local worker"):
        controller.pytest_configure_node(SimpleNamespace(gateway=SimpleNamespace(spec=spec), workerinput={}))
    controller.pytest_unconfigure()
