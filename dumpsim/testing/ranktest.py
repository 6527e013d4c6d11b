"""A test that runs on ranks: its body, the fixtures that belong to each rank, and its report."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from dumpsim.device.injector import Injector
from dumpsim.runtime.session import Session
from dumpsim.testing.faults import Faults
from dumpsim.testing.localranks import LocalRanks
from dumpsim.testing.outcome import Outcome, output_sections, rank_sections
from dumpsim.testing.rankoutput import RankCapture, RankOutput
from dumpsim.testing.ranks import named
from dumpsim.testing.rankworld import Ranks, RankWorld

if TYPE_CHECKING:
    from dumpsim.device.faults import FaultPlan

__all__ = ["OUTCOME", "RankTest", "describe", "extend", "kept_environment"]

OUTCOME: "pytest.StashKey[Outcome]" = pytest.StashKey()  # of this worker's rank


class RankTest:
    """One test whose body runs on every rank.

    Parameters
    ----------
    item : pytest.Function
    world : RankWorld
    plan : FaultPlan or None
        Faults of every rank's device.
    strict : bool
        Whether faults must strike.
    """

    def __init__(self, item: Any, world: RankWorld, *, plan: "FaultPlan | None", strict: bool) -> None:
        self.item = item
        self._world = world
        self._plan = plan
        self._strict = strict
        self._injectors: dict[int, Injector] = {}
        self._faults: dict[int, Faults] = {}
        self._unused: dict[int, list[int]] = {}

    def body(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Return what pytest calls instead of the test function."""

        def on_ranks(**arguments: Any) -> Any:
            __tracebackhide__ = True
            live = self.item.config.getoption("capture") == "no" and "capsys" not in arguments
            with self._world.running(self._world.on_marked()) as members:
                outputs: dict[int, RankOutput] = {}

                def one_rank() -> Any:
                    __tracebackhide__ = True
                    output = outputs[members.rank] = RankOutput(members.rank, live=live)
                    output.install()
                    result = plain(**self._own(arguments, output))
                    if self._plan is not None and self._strict:
                        self._unused = self._world.meet("the end of the test", self._waiting_faults())
                    return result

                try:
                    results = members.run(one_rank)
                finally:
                    for outcome in members.outcomes:
                        if outcome.rank in outputs:
                            outcome.out, outcome.err = outputs[outcome.rank].take()
            self._refuse_unused()
            return next((result for result in results if result is not None), None)

        return on_ranks

    def _own(self, arguments: Mapping[str, Any], output: RankOutput) -> dict[str, Any]:
        """Return the arguments of the test function for this rank."""
        rank, own = self._world.rank, dict(arguments)
        if self._plan is not None:
            self._injectors[rank] = Session.current().inject(self._plan)
        if isinstance(own.get("npu"), Session):
            own["npu"] = Session.current()
        if isinstance(own.get("faults"), Faults):
            own["faults"] = self._faults[rank] = Faults(Session.current())
        if isinstance(own.get("capsys"), pytest.CaptureFixture):
            own["capsys"] = RankCapture(output, own["capsys"])
        return own

    def _refuse_unused(self) -> None:
        """Fail the test if a fault never struck on any rank that it was planned for."""
        texts = [] if not self._strict or self._plan is None else self._never_struck(self._plan)
        waiting: dict[str, list[int]] = {}
        for rank, faults in self._faults.items():
            for text in (text for injector in faults.strict for text in injector.unused_text()):
                waiting.setdefault(text, []).append(rank)
        texts += [f"{named(ranks)}: {text}" for text, ranks in waiting.items()]
        if texts:
            pytest.fail("faults that never struck: " + "; ".join(texts), pytrace=False)

    def _waiting_faults(self) -> list[int]:
        """Return the faults of the plan that have not struck on this rank, by index."""
        assert self._plan is not None
        unused = self._injectors[self._world.rank].unused()
        return [at for at, fault in enumerate(self._plan.faults) if fault in unused]

    def _never_struck(self, plan: "FaultPlan") -> list[str]:
        size, texts = self._world.jobs[-1].size, []
        for at, fault in enumerate(plan.faults):
            unused = [at in found for rank, found in self._unused.items() if fault.rank in (None, rank)]
            if fault.rank is not None and fault.rank >= size:
                texts.append(f"{fault.kind} on rank {fault.rank}: the test has {size} ranks")
            elif unused and all(unused):
                texts.append(f"{fault.kind} of {getattr(fault, 'op', None)!r}")
        return texts


def describe(report: Any, item: Any, jobs: Sequence[Ranks], failure: Any) -> None:
    """Add to a report how each rank ended, and its output.

    Parameters
    ----------
    report : pytest.TestReport
    item : pytest.Item
    jobs : sequence of Ranks
        The ranks that ran.
    failure : pytest.ExceptionInfo or None
    """
    error = None if failure is None else failure.value
    for job in jobs:
        outcomes = job.outcomes
        if not isinstance(job, LocalRanks):  # the first worker combines those of all workers
            item.stash[OUTCOME] = outcomes[0]
            if outcomes[0].error is not None and outcomes[0].state == "failed":
                outcomes[0].traceback = report.longreprtext
            continue
        first = next((outcome.rank for outcome in outcomes if error is not None and outcome.error is error), None)
        if first is not None and report.failed:
            for outcome in outcomes:
                if outcome.state == "failed" and outcome.error is not None:
                    outcome.traceback = str(item.repr_failure(pytest.ExceptionInfo.from_exception(outcome.error)))
            extend(report, rank_sections(outcomes, first))
        elif report.passed and any(outcome.state == "skipped" for outcome in outcomes):
            report.sections += [(f"Ranks ({title})", text) for title, text in rank_sections(outcomes, None)]
        report.sections += output_sections(outcomes)


def extend(report: Any, sections: "list[tuple[str, str]]") -> None:
    """Add sections below the traceback of a report."""
    if hasattr(report.longrepr, "addsection"):
        for title, text in sections:
            report.longrepr.addsection(title, text)
    else:
        texts = (f"{f' {title} ':-^80}\n{text}" for title, text in sections)
        report.longrepr = "\n".join([str(report.longrepr), *texts])


@contextmanager
def kept_environment() -> Iterator[None]:
    """Restore the environment variables at the end of the block: ranks may have changed them with `monkeypatch`.

    Examples
    --------
    >>> with kept_environment():
    ...     os.environ["DUMPSIM_EXAMPLE"] = "1"
    >>> "DUMPSIM_EXAMPLE" in os.environ
    False
    """
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
