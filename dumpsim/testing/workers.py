"""``--dumpsim-ranks=xdist``: each worker of pytest-xdist is a rank, and a test on ranks has one report."""

import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from dumpsim.core.settings import RunSettings
from dumpsim.testing.outcome import Outcome, output_sections, rank_sections
from dumpsim.testing.ranks import check, marker_of, named
from dumpsim.testing.ranktest import OUTCOME, extend
from dumpsim.testing.rollcall import RollCall
from dumpsim.testing.workerranks import WorkerRanks

__all__ = ["Controller", "Worker"]

_KEY = "dumpsim_ranks"


class Controller:
    """Hooks of the process that starts the workers: it creates a directory for the run, and names crashed ranks.

    Parameters
    ----------
    size : int
        Number of workers at the start.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._directory = Path(tempfile.mkdtemp(prefix="dumpsim-ranks-"))

    def pytest_configure_node(self, node: Any) -> None:
        """Pass the directory of the run to a new worker."""
        if not node.gateway.spec.popen:
            raise pytest.UsageError(f"--dumpsim-ranks=xdist: {node.gateway.spec} is not a local worker: popen")
        node.workerinput[_KEY] = {"directory": str(self._directory), "size": self._size}

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """Name the rank in xdist's crash report."""
        worker = report.node.gateway.id
        report.longrepr = f"{report.longrepr}\n{worker} was rank {worker.removeprefix('gw')} of the run"

    def pytest_unconfigure(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)


class Worker:
    """Hooks of a worker: it runs tests as one of the ranks, and reports them if it is the first remaining one.

    Parameters
    ----------
    config : pytest.Config
        With ``workerinput`` of xdist.
    """

    def __init__(self, config: Any) -> None:
        given = config.workerinput[_KEY]
        self.config = config
        self.name: str = config.workerinput["workerid"]
        self.token: str = config.workerinput["testrunuid"]
        self.size: int = given["size"]
        self.rank = int(self.name.removeprefix("gw"))
        self.directory = Path(given["directory"])
        self.roll: RollCall | None = None
        if self.rank < self.size:  # a later worker replaces a crashed one
            self.roll = RollCall(self.directory, rank=self.rank, size=self.size)
        self.test = ""
        self._count = 0

    # ---------------------------------------------------------------- hooks
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool | None:
        """Run a test with the marker ranks together with the other workers."""
        if not item.get_closest_marker("ranks") or not isinstance(item, pytest.Function):
            return None
        wanted = _wanted(item)
        self.test = f"test-{self._count}"
        self._count += 1
        reason, mine = self._skips(item, wanted)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
            if mine:
                self._log(item, runtestprotocol(item, nextitem=nextitem, log=False))
            else:
                runtestprotocol(item, nextitem=nextitem, log=False)
            return True
        assert self.roll is not None
        self.roll.say(f"{self.test}/arrived", item.nodeid)
        if self.rank < wanted:
            self._together(item, nextitem, wanted)
        else:
            item.add_marker(pytest.mark.skip(reason=f"for {named(range(wanted))} alone"))
            runtestprotocol(item, nextitem=nextitem, log=False)
        return True

    def pytest_sessionfinish(self) -> None:
        """Mark this rank as finished, so that no other rank waits for it."""
        if self.roll is not None:
            self.roll.close()

    # ---------------------------------------------------------------- for the fixture world
    def ranks(self, item: Any, size: int, settings: RunSettings, environment: Mapping[str, str]) -> WorkerRanks:
        """Return the ranks of the running test."""
        assert self.roll is not None
        return WorkerRanks(
            self.roll, self.test, item.nodeid, size, token=self.token, settings=settings, environment=environment
        )

    def shared_directory(self, item: Any, tmp_path: Path) -> Path:
        """Return a directory of the running test that all workers share."""
        name = re.sub(r"\W", "_", item.name)[:30]
        path = tmp_path.parents[1] / "ranks" / f"{name}-{self.test}"
        path.mkdir(parents=True, exist_ok=True)
        return path

    # ---------------------------------------------------------------- one test
    def _skips(self, item: Any, wanted: int) -> tuple[str, bool]:
        """Return why the test is skipped, if it is, and whether this worker reports that."""
        if self.roll is None:
            crashed = "a worker that crashed"
            return f"{self.name} replaces {crashed}: a rank that is lost cannot come back in the same run", True
        if wanted > self.size:
            workers = f"the run has {self.size} workers: --tx {wanted}*popen"
            return f"the test needs {wanted} ranks, and {workers}", self.rank == 0
        reason = self.roll.stopped()
        lost = self.roll.lost()
        if lost and not reason and not self.roll.said(f"{self.test}/arrived", lost):
            reason = self.roll.stop(f"{self.roll.describe(lost)} ended before {item.nodeid}")
        return reason, self.rank == min(rank for rank in range(self.size) if rank not in lost)

    def _together(self, item: Any, nextitem: Any, wanted: int) -> None:
        """Run the test as one of its ranks, and report it for all if this is the first remaining rank."""
        assert self.roll is not None
        roll, members = self.roll, range(wanted)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        outcome = item.stash.get(OUTCOME, None)
        roll.say(f"{self.test}/outcome", json.dumps(self._pack(reports, outcome)))
        roll.say(f"{self.test}/reported", _worst(reports))
        same: dict[int, str] = {}
        lost: dict[int, str] = {}
        others: dict[int, str] = {}

        def done() -> bool:
            lost.update(roll.lost(members))
            arrived = roll.said(f"{self.test}/arrived", members)
            others.update({rank: nodeid for rank, nodeid in arrived.items() if nodeid != item.nodeid})
            same.update(roll.said(f"{self.test}/outcome", [rank for rank in members if rank not in others]))
            return all(rank in same or rank in others or rank in lost for rank in members)

        roll.wait(done)
        if self.rank == min(same):
            found = {rank: json.loads(text) for rank, text in sorted(same.items())}
            absent = [Outcome(rank=rank, state="absent", reason=f"it runs {nodeid}") for rank, nodeid in others.items()]
            dead = {rank: name for rank, name in lost.items() if rank not in same and rank not in others}
            absent += [Outcome(rank=rank, state="died", reason=name) for rank, name in dead.items()]
            self._log(item, self._merge(found, absent))

    def _pack(self, reports: Sequence[Any], outcome: Outcome | None) -> dict[str, Any]:
        """Return what the other ranks need for the report of the test."""
        hook = self.config.hook
        packed = {r.when: hook.pytest_report_to_serializable(config=self.config, report=r) for r in reports}
        assert self.roll is not None
        end = self.roll.said(f"{self.test}/ended", [self.rank])
        fields = ("state", "reason", "traceback", "out", "err")
        return {
            "reports": packed,
            "lines": {report.when: _line(report) for report in reports},
            "outcome": None if outcome is None else {name: getattr(outcome, name) for name in fields},
            "end": json.loads(end[self.rank]) if end else {},
        }

    def _log(self, item: Any, reports: Sequence[Any]) -> None:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    # ---------------------------------------------------------------- the report
    def _merge(self, found: Mapping[int, Any], absent: Sequence[Outcome]) -> list[Any]:
        """Return one report for each phase of the test."""
        merged = []
        for when in ("setup", "call", "teardown"):
            reports = {
                rank: self._unpack(one["reports"][when]) for rank, one in found.items() if when in one["reports"]
            }
            if when == "call":
                report = self._merge_call(reports, found, absent)
            else:
                rank, report = next(
                    ((rank, one) for rank, one in reports.items() if one.failed),
                    next(((rank, one) for rank, one in reports.items() if one.skipped), min(reports.items())),
                )
                if report.failed:
                    ends = [
                        Outcome(rank=r, state=one.outcome, reason=found[r]["lines"][when], traceback=one.longreprtext)
                        for r, one in reports.items()
                    ]
                    extend(report, rank_sections(ends, rank))
            merged.append(report)
            if when == "setup" and not report.passed:  # the other ranks were stopped before the body
                break
        if merged[-1].when == "setup":
            merged += [self._unpack(one["reports"]["teardown"]) for one in list(found.values())[:1]]
        return merged

    def _merge_call(self, reports: Mapping[int, Any], found: Mapping[int, Any], absent: Sequence[Outcome]) -> Any:
        """Return the report of the rank at fault, with a section for each rank."""
        outcomes = [*(Outcome(rank=rank, **(one["outcome"] or {})) for rank, one in found.items()), *absent]
        failed = [rank for rank in reports if found[rank]["end"].get("state") == "failed"]
        skipped = [rank for rank in reports if found[rank]["end"].get("state") == "skipped"]

        def order(rank: int) -> tuple[bool, float]:
            end = found[rank]["end"]
            return "culprit" in end, end["time"]

        first = None
        if failed:
            first = min(failed, key=order)
            culprit = found[first]["end"].get("culprit")
            first = culprit if culprit in failed else first
            report = reports[first]
        elif skipped and (len(skipped) == len(reports) or not any(report.passed for report in reports.values())):
            report = reports[skipped[0]]
        else:
            wrong = [rank for rank in reports if reports[rank].failed]
            first = wrong[0] if wrong else None
            report = reports[
                wrong[0] if wrong else min((r for r in reports if reports[r].passed), default=min(reports))
            ]
        died = [outcome for outcome in absent if outcome.state == "died"]
        if died and not report.failed:
            report.outcome = "failed"
            report.longrepr = " and ".join(f"rank {one.rank} ({one.reason}) ended in this test" for one in died)
        if report.failed:
            extend(report, rank_sections(outcomes, first))
        elif skipped and report.passed:
            report.sections += [(f"Ranks ({title})", text) for title, text in rank_sections(outcomes, None)]
        report.sections += output_sections(outcomes)
        return report

    def _unpack(self, data: Any) -> Any:
        copy = json.loads(json.dumps(data))  # it is taken apart
        report = self.config.hook.pytest_report_from_serializable(config=self.config, data=copy)
        report.sections = [tuple(section) for section in report.sections]
        if isinstance(report.longrepr, list):  # of a skip, which is a tuple; JSON made it a list
            report.longrepr = tuple(report.longrepr)
        return report


def _wanted(item: Any) -> int:
    """Return the number of ranks of a test; 1 if its marker is wrong, which its setup reports."""
    from dumpsim.core.errors import BadInputError
    from dumpsim.testing.ranks import asked

    marker = marker_of(item)
    try:
        check(marker, item)
    except BadInputError:
        return 1
    return asked(marker, item)


def _worst(reports: Sequence[Any]) -> str:
    return "failed" if any(r.failed for r in reports) else "skipped" if any(r.skipped for r in reports) else "passed"


def _line(report: Any) -> str:
    """Return the first line of the error."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longreprtext)
    return text.partition("\n")[0] if report.failed else ""
