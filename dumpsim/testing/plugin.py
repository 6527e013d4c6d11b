"""The pytest plugin: fixtures ``npu``, ``dump_dir`` and ``faults``.

It is loaded at the start of every pytest run on the machine, so it imports nothing but pytest until a fixture is used.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dumpsim.device.injector import Injector
    from dumpsim.runtime.session import Session
    from dumpsim.testing.dump_dir import DumpDir

__all__ = ["dump_dir", "faults", "npu", "pytest_configure"]

_MARKERS = (
    "npu(device=None, chip=None, mindspore='seed', clock='virtual', seed=0, ..., environment={}): "
    "what the emulated device of the fixture npu is (fields of RunSettings)",
    "faults(*faults, strict=True): faults of the device of the fixture npu, as JSON objects of a fault plan",
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


@pytest.fixture
def npu(request: pytest.FixtureRequest) -> "Iterator[Session]":
    """A fresh emulated device for this test: the current `Session` of a rank of its own, closed at the end.

    ``@pytest.mark.npu(chip="910A", seed=3)`` chooses its settings and ``@pytest.mark.faults({"kind": ..., ...})`` its
    faults. By default it is a 910B under the virtual clock that prints no summary and writes no manifest.

    Examples
    --------
    ::

        @pytest.mark.npu(chip="910A")
        def test_saturation(npu):
            assert train_step() < 1e4
            assert not npu.device.status.raised
    """
    from dumpsim.core.settings import RunSettings
    from dumpsim.runtime.session import Session
    from dumpsim.world.context import RankContext, use

    chosen: dict[str, Any] = {"manifest": None, "quiet": True}
    environment: dict[str, str] = {}
    for marker in reversed(list(request.node.iter_markers("npu"))):  # outermost first
        if marker.args:
            raise pytest.UsageError(f"the marker npu takes keywords only, got {marker.args!r}")
        chosen |= {key: value for key, value in marker.kwargs.items() if key != "environment"}
        environment |= marker.kwargs.get("environment", {})
    wanted = [fault for marker in request.node.iter_markers("faults") for fault in marker.args]
    strict = all(marker.kwargs.get("strict", True) for marker in request.node.iter_markers("faults"))
    with use(RankContext.from_environment()) as rank:
        session = Session(RunSettings(**chosen), environment={**os.environ, **environment})
        injector = _inject(session, wanted) if wanted else None
        Session.use(session)
        rank.at_close(session.close)
        yield session
    if injector is not None and strict:
        _refuse_unused(injector)


@pytest.fixture
def faults(npu: "Session") -> "Iterator[Callable[..., Injector]]":
    """Activate a fault plan for the rest of the test: ``faults({"kind": "aicore_error", "op": "MatMul"})``.

    A fault on an operator that never strikes fails the test, unless ``strict=False``.
    """
    injectors: list[Injector] = []

    def activate(*wanted: "Mapping[str, Any]", strict: bool = True) -> "Injector":
        injector = _inject(npu, wanted)
        if strict:
            injectors.append(injector)
        return injector

    yield activate
    for injector in injectors:
        _refuse_unused(injector)


@pytest.fixture
def dump_dir(npu: "Session", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "DumpDir":
    """A dump root of this test; ``dump_dir.configure(saved_data="full")`` writes a config that the device obeys."""
    from dumpsim.testing.dump_dir import DumpDir

    def set_variable(name: str, value: str) -> None:
        monkeypatch.setenv(name, value)
        npu.environment[name] = value

    return DumpDir(tmp_path / "dump", set_variable)


def _inject(session: "Session", wanted: Any) -> "Injector":
    from dumpsim.device.faults import make_plan

    return session.inject(make_plan(wanted))


def _refuse_unused(injector: "Injector") -> None:
    unused = injector.unused()
    if unused:
        pytest.fail("faults that never struck: " + "; ".join(str(fault) for fault in unused), pytrace=False)
