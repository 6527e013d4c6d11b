"""A test on ranks: what its body returns, prints and leaves of its faults, and what its report says."""

import os
from types import SimpleNamespace

import pytest

from dumpsim.device.faults import make_plan
from dumpsim.frontends.mindspore import Tensor, ops
from dumpsim.runtime.session import Session
from dumpsim.testing.faults import Faults
from dumpsim.testing.localranks import LocalRanks
from dumpsim.testing.outcome import Outcome
from dumpsim.testing.ranktest import OUTCOME, RankTest, describe, kept_environment
from dumpsim.testing.rankworld import RankWorld


class OnRanks:
    """A body on ranks, without a session of pytest."""

    def __init__(self, folder, size, *, capture="fd", plan=None, strict=True):
        self.world = RankWorld(folder, LocalRanks, marked=size)
        item = SimpleNamespace(config=SimpleNamespace(getoption={"capture": capture}.__getitem__))
        self.test = RankTest(item, self.world, plan=None if plan is None else make_plan(plan), strict=strict)

    def __call__(self, plain, **arguments):
        return self.test.body(plain)(**arguments)

    @property
    def output(self):
        return [(outcome.out, outcome.err) for outcome in self.world.jobs[-1].outcomes]


# ---------------------------------------------------------------- the body
def test_a_body_returns_what_the_first_rank_returns_that_returns_anything(tmp_path):
    ranks = OnRanks(tmp_path, 3)
    assert ranks(lambda: (None, "one", "two")[ranks.world.rank]) == "one"
    assert ranks(lambda: None) is None
    assert ranks.world.members is None


@pytest.mark.parametrize(
    ("capture", "taken", "live"), [("fd", False, False), ("no", False, True), ("no", True, False), ("fd", True, False)]
)
def test_output_is_live_where_nothing_captures_it(tmp_path, capsys, capture, taken, live):
    ranks = OnRanks(tmp_path, 2, capture=capture)

    def body(**arguments):
        print("step", ranks.world.rank)
        assert list(arguments) == ["capsys"] * taken

    ranks(body, **{"capsys": None} if taken else {})
    assert ranks.output == ([("", "")] * 2 if live else [("step 0\n", ""), ("step 1\n", "")])
    assert capsys.readouterr().out == ("[rank 0] step 0\n[rank 1] step 1\n" if live else "")


def test_output_of_a_rank_that_fails_is_kept(tmp_path):
    ranks = OnRanks(tmp_path, 2)

    def body():
        print("step", ranks.world.rank)
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad") as caught:
        ranks(body)
    assert ranks.output == [("step 0\n", ""), ("", "")]  # rank 1 has not started
    own = [entry for entry in caught.traceback if "/dumpsim/testing/" in str(entry.path)]
    assert all(entry.ishidden(caught) for entry in own)


def test_each_rank_that_fails_shows_the_lines_of_the_test(tmp_path):
    ranks = OnRanks(tmp_path, 2)

    def body():
        if ranks.world.rank == 1:
            raise ValueError("first")
        try:
            ranks.world.barrier()
        except BaseException:  # it is stopped
            raise KeyError("second") from None

    with pytest.raises(ValueError, match="first"):
        ranks(body)
    for outcome, kind in zip(ranks.world.jobs[0].outcomes, (KeyError, ValueError), strict=True):
        assert (outcome.state, type(outcome.error)) == ("failed", kind)
        shown = pytest.ExceptionInfo.from_exception(outcome.error)
        own = [entry for entry in shown.traceback if "/dumpsim/testing/" in str(entry.path)]
        assert all(entry.ishidden(shown) for entry in own)
        assert shown.traceback[-1].name == "body"


def test_fixtures_of_a_rank_are_its_own(tmp_path, capsys):
    ranks, outer = OnRanks(tmp_path, 2), Session.current()

    def body(npu, faults, capsys, other):
        print("mine", ranks.world.rank)
        assert capsys.readouterr().out == f"mine {ranks.world.rank}\n"
        assert npu is Session.current() is not outer
        assert other == 5
        return ranks.world.gather((id(npu), id(faults)))

    found = ranks(body, npu=outer, faults=Faults(outer), capsys=capsys, other=5)
    assert len(set(found)) == 2


ADD = {"kind": "overflow", "op": "Add"}


@pytest.mark.parametrize(
    ("plan", "strict", "launches", "said"),
    [
        ([ADD], True, [], "overflow of 'Add'"), ([ADD], False, [], None), ([ADD], True, [0], None),
        ([ADD], True, [1], None), ([ADD, {**ADD, "op": "Sub"}], True, [1], "overflow of 'Sub'"),
        ([{**ADD, "rank": 1}], True, [0], "overflow of 'Add'"), ([{**ADD, "rank": 1}], True, [1], None),
        ([{**ADD, "rank": 2}], True, [0, 1], "overflow on rank 2: the test has 2 ranks"),
        ([{**ADD, "rank": 7}, ADD], True, [], "overflow on rank 7: the test has 2 ranks; overflow of 'Add'"),
    ],
)  # fmt: skip
def test_a_fault_must_strike_on_one_of_its_ranks(tmp_path, plan, strict, launches, said):
    ranks = OnRanks(tmp_path, 2, plan=plan, strict=strict)

    def body():
        if ranks.world.rank in launches:
            ops.add(Tensor([1.0]), Tensor([2.0]))
        return "done"

    if said is None:
        assert ranks(body) == "done"
        return
    with pytest.raises(pytest.fail.Exception) as caught:
        ranks(body)
    assert str(caught.value) == f"faults that never struck: {said}"
    assert caught.value.pytrace is False


def test_faults_of_the_fixture_must_strike_on_each_rank_that_activates_them(tmp_path):
    ranks = OnRanks(tmp_path, 3)

    def body(faults):
        faults(ADD, strict=ranks.world.rank > 0)
        if ranks.world.rank == 2:
            faults({**ADD, "op": "Sub"})

    with pytest.raises(pytest.fail.Exception) as caught:
        ranks(body, faults=Faults(Session.current()))
    waits = "never struck: 0 launches matched, it waits for launch 1"
    assert str(caught.value) == (
        f"faults that never struck: ranks 1, 2: overflow of 'Add' {waits}; rank 2: overflow of 'Sub' {waits}"
    )


# ---------------------------------------------------------------- the report


class Shown:
    """A traceback to which pytest adds sections."""

    def __init__(self):
        self.sections = []

    def addsection(self, title, text):
        self.sections.append((title, text))


def reported(state, longrepr=None):
    return SimpleNamespace(
        failed=state == "failed", passed=state == "passed", sections=[], longrepr=longrepr, longreprtext="as shown"
    )


def item():
    return SimpleNamespace(stash={}, repr_failure=lambda failure: f"traceback of {failure.value}")


def job(*outcomes, local=True):
    made = LocalRanks(len(outcomes)) if local else SimpleNamespace()
    made.outcomes = list(outcomes)
    return made


def failure(error):
    return None if error is None else SimpleNamespace(value=error)


def raised(error):
    with pytest.raises(type(error)):
        raise error
    return error


ERROR, OTHER = raised(ValueError("bad")), raised(KeyError("other"))


def ends():
    """Ranks that failed, skipped, passed, and did not start."""
    return [
        Outcome(rank=0, state="skipped", reason="no", error=OSError("skip")),
        Outcome(rank=1, state="failed", reason="ValueError: bad", error=ERROR, out="seen\n"),
        Outcome(rank=2, state="failed", reason="KeyError: other", error=OTHER),
        Outcome(rank=3, state="failed", reason="lost"),
        Outcome(rank=4, state="passed"),
    ]


def test_a_failure_has_a_section_for_each_end_of_ranks():
    report = reported("failed", Shown())
    describe(report, item(), [job(*ends())], failure(ERROR))
    assert report.longrepr.sections == [
        ("rank 1", "failed: ValueError: bad (traceback above)"), ("rank 0", "skipped: no"),
        ("rank 2", "failed: KeyError: other\ntraceback of 'other'"), ("rank 3", "failed: lost"), ("rank 4", "passed"),
    ]  # fmt: skip
    assert report.sections == [("Captured stdout call (rank 1)", "seen\n")]
    text = reported("failed", "in words")
    describe(text, item(), [job(*ends())], failure(ERROR))
    assert text.longrepr.startswith("in words\n")
    assert text.longrepr.count("\n---") == 5


@pytest.mark.parametrize(
    ("state", "error"), [("failed", None), ("failed", RuntimeError("after the body")), ("skipped", ERROR)]
)
def test_a_report_that_no_rank_has_caused_has_output_alone(state, error):
    """The failure of a fixture, an error after the body, and a failure that was expected."""
    report = reported(state, Shown())
    describe(report, item(), [job(*ends())], failure(error))
    assert report.longrepr.sections == []
    assert report.sections == [("Captured stdout call (rank 1)", "seen\n")]


def test_ranks_that_skip_are_named_where_the_test_passes():
    skips, passes = Outcome(rank=0, state="skipped", reason="no"), Outcome(rank=1, state="passed")
    report = reported("passed")
    describe(report, item(), [job(skips, passes)], None)
    assert report.sections == [("Ranks (rank 0)", "skipped: no"), ("Ranks (rank 1)", "passed")]
    for state, outcomes in (("passed", [passes]), ("skipped", [skips, passes]), ("failed", [skips, passes])):
        report = reported(state)
        describe(report, item(), [job(*outcomes)], None)
        assert report.sections == []


@pytest.mark.parametrize(
    ("state", "error", "traceback"),
    [("failed", ERROR, "as shown"), ("failed", None, ""), ("skipped", ERROR, ""), ("passed", None, "")],
)
def test_the_rank_of_a_worker_is_kept_for_the_report_of_all(state, error, traceback):
    report, test, outcome = reported("failed", Shown()), item(), Outcome(rank=2, state=state, error=error, out="seen")
    describe(report, test, [job(outcome, local=False)], failure(ERROR))
    assert test.stash == {OUTCOME: outcome}
    assert outcome.traceback == traceback
    assert report.sections == report.longrepr.sections == []


def test_environment_variables_are_put_back(monkeypatch):
    for name, value in (("DUMPSIM_T_CHANGED", "1"), ("DUMPSIM_T_GONE", "2")):
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with kept_environment():
        os.environ |= {"DUMPSIM_T_CHANGED": "5", "DUMPSIM_T_NEW": "6"}
        del os.environ["DUMPSIM_T_GONE"]
    assert dict(os.environ) == before
