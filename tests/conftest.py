"""Settings of the whole test run."""

import gc
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from extras import EXTRAS, missing
from hypothesis import settings

from dumpsim.world.context import RankContext, use

# the same examples in every run and on every machine; `python -m tests.fuzz` looks further
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# they need torch and have no doctests
collect_ignore = [
    "frontends/torchair/convertcases.py",
    "frontends/torchair/gevalues.py",
    "frontends/torchair/netrecord.py",
    "frontends/torchair/refusalcases.py",
    "plantedbugs.py",
    "plantednets.py",
]

FORBID_SKIPS = "DUMPSIM_FORBID_SKIPS"


def pytest_collection_finish():
    """Exclude the collected tests from garbage collection: in a run of all tests they are millions of objects."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    """A test with the marker of an extra is skipped where the extra is not installed."""
    for extra in EXTRAS:
        if item.get_closest_marker(extra) and missing(extra):
            pytest.skip(f"needs the extra {extra} ({', '.join(missing(extra))})")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """With DUMPSIM_FORBID_SKIPS=1 a skipped test is a failed one, as CI asks for once the extras are installed.

    With ``without-extras``, as CI asks for before that, tests that carry the marker of a missing extra may skip.
    """
    report = (yield).get_result()
    if report.skipped and not hasattr(report, "wasxfail"):
        excused = any(item.get_closest_marker(extra) and missing(extra) for extra in EXTRAS)
        _forbid(report, item.nodeid, excused)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    """The same for modules that skip as a whole; tests/test_extras.py holds them against their markers."""
    report = (yield).get_result()
    if report.skipped:
        _forbid(report, collector.nodeid, excused=True)


def _forbid(report, name, excused):
    asked = os.environ.get(FORBID_SKIPS, "")
    if asked == "1" or (asked == "without-extras" and not excused):
        report.outcome = "failed"
        report.longrepr = f"{name} was skipped, and {FORBID_SKIPS} is set: {report.longrepr}"


@pytest.fixture(autouse=True)
def rank_context() -> Iterator[RankContext]:
    """Every test is a rank of its own: with the context, the session and the numbers of a fresh process."""
    with use(RankContext.from_environment()) as context:
        yield context


@pytest.fixture(scope="session")
def graph_proto():
    """The recorder's decoder of graph files, with a schema of its own."""
    path = Path(__file__).parents[1] / "fixtures" / "mindspore_2_10" / "graph_proto.py"
    spec = importlib.util.spec_from_file_location("graph_proto", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
