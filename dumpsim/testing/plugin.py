"""The pytest plugin: fixtures ``npu``, ``dump_dir``, ``faults`` and ``golden``.

It is loaded at the start of every pytest run on the machine, so it imports nothing but pytest until a fixture is used.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dumpsim.core.settings import RunSettings
    from dumpsim.device.injector import Injector
    from dumpsim.runtime.session import Session
    from dumpsim.testing.dump_dir import DumpDir
    from dumpsim.testing.faults import Faults
    from dumpsim.testing.golden import Golden

__all__ = ["dump_dir", "faults", "golden", "npu", "pytest_addoption", "pytest_configure"]

_MARKERS = (
    "npu(device=None, chip=None, mindspore='seed', clock='virtual', seed=0, ..., environment={}): "
    "what the emulated device of the fixture npu is (fields of RunSettings)",
    "faults(*faults, strict=True): faults of the device of the fixture npu, as JSON objects of a fault plan",
)
_WHEN = ("fixtures", "session")
_HINT = (
    "The fixture npu makes `import mindspore` work inside tests. Import it there, or set the ini option\n"
    "dumpsim_imports = session, with which it works at the top of test files, too."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden`` and the ini options."""
    group = parser.getgroup("dumpsim")
    group.addoption(
        "--update-golden", action="store_true", help="Write the golden trees of the fixture golden, not compare them."
    )
    parser.addini(
        "dumpsim_imports",
        "when `import mindspore` finds dumpsim: fixtures (in tests that use the fixture npu) or session (all the time)",
        default="fixtures",
    )
    parser.addini("dumpsim_golden", "directory of golden trees, relative to each test file's", default="golden")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and install the import finder where the ini file asks for it."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    when = config.getini("dumpsim_imports")
    if when not in _WHEN:
        raise pytest.UsageError(f"dumpsim_imports: {when!r} is not one of {', '.join(_WHEN)}")
    if when == "session":
        from dumpsim.testing.imports import aliased

        stack = ExitStack()
        stack.enter_context(aliased())
        config.add_cleanup(stack.close)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> "Iterator[None]":
    """Say what helps where a test file imports mindspore at its top and there is none."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.failed and "No module named 'mindspore" in str(report.longrepr):
        report.sections.append(("dumpsim", _HINT))


@pytest.fixture
def npu(request: pytest.FixtureRequest) -> "Iterator[Session]":
    """A fresh emulated device for this test: the current `Session` of a rank of its own, closed at the end.

    ``@pytest.mark.npu(chip="910A", seed=3)`` chooses its settings and ``@pytest.mark.faults({"kind": ..., ...})`` its
    faults. By default it is a 910B under the virtual clock that prints no summary and writes no manifest.

    As under ``dumpsim run``, ``import mindspore`` finds the emulation, and the global generators of `random` and
    `numpy.random` start from the seed. Both end with the test: a really installed MindSpore is found again afterwards,
    and the generators go on where they were. Names that the test file bound to it at its top stay bound to it.

    Examples
    --------
    ::

        @pytest.mark.npu(chip="910A")
        def test_saturation(npu):
            from mindspore import Tensor

            assert train_step() < 1e4
            assert not npu.device.status.raised
    """
    from dumpsim.emulate import seed
    from dumpsim.runtime.session import Session
    from dumpsim.testing.imports import aliased
    from dumpsim.testing.randomness import restored
    from dumpsim.world.context import RankContext, use

    settings, environment = _settings(request.node)
    wanted = [fault for marker in request.node.iter_markers("faults") for fault in marker.args]
    strict = all(_strict(marker) for marker in request.node.iter_markers("faults"))
    with aliased(), restored(), use(RankContext.from_environment()) as rank:
        session = Session(settings, environment={**os.environ, **environment})
        injector = _inject(session, wanted) if wanted else None
        Session.use(session)
        rank.at_close(session.close)
        seed(settings)
        yield session
    if injector is not None and strict:
        _refuse_unused(injector)


@pytest.fixture
def faults(npu: "Session") -> "Iterator[Faults]":
    """Activate a fault plan for the rest of the test: ``faults({"kind": "aicore_error", "op": "MatMul"})``.

    A fault on an operator that never strikes fails the test, unless ``strict=False``.
    """
    from dumpsim.testing.faults import Faults

    activated = Faults(npu)
    yield activated
    for injector in activated.strict:
        _refuse_unused(injector)


@pytest.fixture
def dump_dir(npu: "Session", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "DumpDir":
    """A dump root of this test; ``dump_dir.configure(saved_data="full")`` writes a config that the device obeys."""
    from dumpsim.testing.dump_dir import DumpDir

    def set_variable(name: str, value: str) -> None:
        monkeypatch.setenv(name, value)
        npu.environment[name] = value

    return DumpDir(tmp_path / "dump", set_variable, release=npu.settings.mindspore)


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> "Golden":
    """Compare a dump with the golden tree of this test: ``golden(dump_dir)``.

    The tree lies in ``golden/<test file>/<test>`` beside the test file. ``pytest --update-golden`` writes it.
    See `dumpsim.testing.golden.Golden` for tolerances and for what may differ.
    """
    from dumpsim.testing.golden import Golden, place

    directory = request.path.parent / request.config.getini("dumpsim_golden")
    return Golden(
        place(directory, request.path, request.node.nodeid),
        update=request.config.getoption("update_golden"),
        roots={"rootdir": str(request.config.rootpath), "tmp_path": str(tmp_path)},
        test=request.node.nodeid,
    )


def _settings(node: Any) -> "tuple[RunSettings, dict[str, str]]":
    """The settings that the markers npu of a test choose, and the variables that they set; inner ones win."""
    from dataclasses import fields

    from dumpsim.core.errors import BadInputError, nearest
    from dumpsim.core.settings import RunSettings
    from dumpsim.emulate.precheck import check_settings

    known = (*(field.name for field in fields(RunSettings)), "environment")
    chosen: dict[str, Any] = {"manifest": None, "quiet": True}
    environment: dict[str, str] = {}
    for marker in reversed(list(node.iter_markers("npu"))):  # outermost first
        if marker.args:
            raise pytest.UsageError(f"the marker npu takes keywords only, got {marker.args!r}")
        for key, value in marker.kwargs.items():
            if key not in known:
                raise BadInputError(
                    f"unknown setting {key!r}",
                    where="@pytest.mark.npu",
                    allowed=known,
                    nearest=nearest(key, known),
                    code="DS-TST-001",
                )
            if key == "environment":
                environment |= value
            else:
                chosen[key] = value
    try:
        settings = RunSettings(**chosen)
        check_settings(settings)
    except BadInputError as error:
        where = (error.where or "").removeprefix("--").partition(" ")[0]  # --chip, --set FIELD
        where = {"set": "overrides", "device_target": "device"}.get(where, where)
        raise BadInputError(
            error.what,
            where=f"@pytest.mark.npu({where}=...)",
            allowed=error.allowed,
            nearest=error.nearest,
            code=error.code or "DS-TST-001",
        ) from None
    return settings, environment


def _strict(marker: Any) -> bool:
    """Whether faults of a marker must strike."""
    wrong = [key for key in marker.kwargs if key != "strict"]
    if wrong:
        raise pytest.UsageError(f"the marker faults takes fault objects and strict=, got {wrong[0]!r}")
    return bool(marker.kwargs.get("strict", True))


def _inject(session: "Session", wanted: "list[Mapping[str, Any]]") -> "Injector":
    from dumpsim.device.faults import make_plan

    return session.inject(make_plan(wanted))


def _refuse_unused(injector: "Injector") -> None:
    unused = injector.unused_text()
    if unused:
        pytest.fail("faults that never struck: " + "; ".join(unused), pytrace=False)
