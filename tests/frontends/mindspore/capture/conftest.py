"""Fixtures: a fresh session in GRAPH_MODE for every test."""

import pytest

from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.frontends.mindspore import context
from dumpsim.runtime.session import Session


@pytest.fixture
def graph_mode(monkeypatch):
    """The session of a fresh process on the CPU, with the context in GRAPH_MODE."""
    monkeypatch.setenv(VARIABLE, RunSettings(device="cpu", mindspore="2.10", manifest=None).to_text())
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    context.set_context(mode=context.GRAPH_MODE)
    return Session.current()


@pytest.fixture
def graphs(graph_mode):
    """The kernel graphs compiled so far, by program."""
    return lambda: [executor.program.kernel_graphs for executor in graph_mode.executors()]
