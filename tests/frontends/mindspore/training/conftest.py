"""Fixtures: a fresh session on the CPU for every test, in GRAPH_MODE or PYNATIVE mode."""

import pytest

from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.frontends.mindspore import context
from dumpsim.runtime.session import Session

collect_ignore = ["alexnet_cifar10.py"]  # a script of the tests: collecting its doctests would import mindspore


@pytest.fixture
def session(monkeypatch):
    """The context and the session of a fresh process on the CPU."""
    monkeypatch.setenv(VARIABLE, RunSettings(device="cpu", mindspore="2.10", manifest=None).to_text())
    monkeypatch.delenv("MINDSPORE_DUMP_CONFIG", raising=False)
    return Session.current()


@pytest.fixture
def mode(session):
    """Sets the mode: ``mode("graph")`` or ``mode("pynative")``."""

    def choose(name):
        context.set_context(mode={"graph": context.GRAPH_MODE, "pynative": context.PYNATIVE_MODE}[name])

    return choose


@pytest.fixture
def kernels(session):
    """Full names of the kernels compiled so far."""
    return lambda: [
        node.full_name
        for executor in session.executors()
        for kernel_graph in executor.program.kernel_graphs
        for node in kernel_graph.order
    ]
