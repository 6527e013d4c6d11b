"""Settings of the whole test run."""

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

FORBID_SKIPS = "DUMPSIM_FORBID_SKIPS"


def pytest_runtest_setup(item):
    """A test with the marker of an extra is skipped where the extra is not installed."""
    for extra in EXTRAS:
        if item.get_closest_marker(extra) and missing(extra):
            pytest.skip(f"needs the extra {extra} ({', '.join(missing(extra))})")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """With DUMPSIM_FORBID_SKIPS=1 a skipped test is a failed one: CI sets it once the extras are installed."""
    report = (yield).get_result()
    if report.skipped and os.environ.get(FORBID_SKIPS) == "1" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and {FORBID_SKIPS} is set: {report.longrepr}"


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
