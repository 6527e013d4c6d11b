"""Settings of the whole test run."""

import os

import pytest

FORBID_SKIPS = "DUMPSIM_FORBID_SKIPS"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """With DUMPSIM_FORBID_SKIPS=1 a skipped test is a failed one: CI sets it once the extras are installed."""
    report = (yield).get_result()
    if report.skipped and os.environ.get(FORBID_SKIPS) == "1" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and {FORBID_SKIPS} is set: {report.longrepr}"
