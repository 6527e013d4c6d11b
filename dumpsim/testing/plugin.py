"""The pytest plugin: fixtures ``npu``, ``world``, ``dump_dir``, ``faults`` and ``golden``, and tests on many ranks.

It is loaded at the start of every pytest run on the machine, so it imports nothing but pytest until a fixture is used.
"""

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
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
    from dumpsim.testing.rankworld import RankWorld

__all__ = ["dump_dir", "faults", "golden", "npu", "pytest_addoption", "pytest_configure", "world"]

_MARKERS = (
    "npu(device=None, chip=None, mindspore='seed', clock='virtual', seed=0, ..., environment={}): "
    "settings of the emulated device of the fixture npu (fields of RunSettings)",
    "faults(*faults, strict=True): faults of the device of the fixture npu, as JSON objects of a fault plan",
    "ranks(*sizes): run the test on that many emulated ranks; several sizes: once for each of them",
)
_WORLD: "pytest.StashKey[RankWorld]" = pytest.StashKey()
_WORKER = "dumpsim-worker"
_PLACES = ("local", "xdist")
_RIGHT = "pytest --dist each --tx 4*popen --dumpsim-ranks=xdist"
_WHEN = ("fixtures", "session")
_HINT = (
    "The fixture npu makes `import mindspore` work inside tests. Import it there, or set the ini option\n"
    "dumpsim_imports = session, with which it works at the top of test files, too."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden`` and the ini options."""
    group = parser.getgroup("dumpsim")
    group.addoption(
        "--update-golden",
        action="store_true",
        help="Write the golden trees of the fixture golden instead of comparing with them.",
    )
    group.addoption(
        "--dumpsim-ranks",
        default="local",
        metavar="local|xdist",
        help="Where tests with the marker ranks run: all ranks in one process (local), or each worker of pytest-xdist "
        "is one (xdist, with --dist each --tx 4*popen).",
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
    where = config.getoption("dumpsim_ranks")
    if where not in _PLACES:
        from dumpsim.core.errors import nearest

        meant = nearest(where, _PLACES)
        hint = f" (did you mean {meant!r}?)" if meant else ""
        raise pytest.UsageError(f"--dumpsim-ranks: {where!r} is not one of {', '.join(_PLACES)}{hint}")
    if where == "xdist":
        _register_workers(config)
    when = config.getini("dumpsim_imports")
    if when not in _WHEN:
        raise pytest.UsageError(f"dumpsim_imports: {when!r} is not one of {', '.join(_WHEN)}")
    if when == "session":
        from dumpsim.testing.imports import aliased

        stack = ExitStack()
        stack.enter_context(aliased())
        config.add_cleanup(stack.close)


def _register_workers(config: Any) -> None:
    """Make each worker of pytest-xdist a rank, or explain why that is impossible."""
    if hasattr(config, "workerinput"):
        from dumpsim.testing.workers import Worker

        config.pluginmanager.register(Worker(config), _WORKER)
        return
    if not config.pluginmanager.hasplugin("xdist"):
        raise pytest.UsageError("--dumpsim-ranks=xdist: pytest-xdist is not installed, or switched off")
    dist = config.getoption("dist")
    if dist == "no":
        raise pytest.UsageError(f"--dumpsim-ranks=xdist: there are no workers that could be ranks: {_RIGHT}")
    if dist != "each":
        raise pytest.UsageError(
            f"--dumpsim-ranks=xdist: with --dist {dist} each test runs on one worker alone, and its rank would wait "
            f"for the others for ever. Either run every test on every worker: {_RIGHT}\n"
            "or leave --dumpsim-ranks out: each worker then runs all ranks of its tests by itself."
        )
    from dumpsim.testing.workers import Controller

    count = sum(
        int(many) if times else 1 for spec in config.getoption("tx") for many, times, _ in [spec.partition("*")]
    )
    config.pluginmanager.register(Controller(count))


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> "Iterator[None]":
    """Add a hint to the report of a test file that fails to import mindspore."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.failed and "No module named 'mindspore" in str(report.longrepr):
        report.sections.append(("dumpsim", _HINT))


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> None:
    """Add the fixture world to tests with the marker ranks."""
    if not collector.istestfunction(obj, name):
        return
    marked = [mark for mark in getattr(obj, "pytestmark", ()) if mark.name in ("ranks", "usefixtures")]
    if any(mark.name == "usefixtures" and "world" in mark.args for mark in marked):
        return
    if collector.get_closest_marker("ranks") or any(mark.name == "ranks" for mark in marked):
        pytest.mark.usefixtures("world")(obj)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Generate a test for each number of ranks if the marker has several."""
    marker = metafunc.definition.get_closest_marker("ranks")
    if marker is None or len(marker.args) < 2:
        return
    from dumpsim.core.errors import BadInputError
    from dumpsim.testing.ranks import sizes

    try:
        found = sizes(marker)
    except BadInputError:
        return  # the fixture raises the error
    metafunc.parametrize("world", found, indirect=True, ids=[f"ranks{size}" for size in found])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a test that cannot run on ranks, instead of running it once."""
    if item.get_closest_marker("ranks") and isinstance(item, pytest.Function):
        from dumpsim.core.errors import BadInputError
        from dumpsim.testing.ranks import check, marker_of

        wrong = None
        try:
            check(marker_of(item), item)
        except BadInputError as error:
            wrong = str(error)
        if wrong is not None:
            pytest.fail(wrong, pytrace=False)
        if "world" not in item.fixturenames:  # the marker belongs to a parameter
            item.fixturenames = ["world", *item.fixturenames]


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> "Generator[None, object, object]":
    """Run the body of a test with the marker ranks on each of them."""
    test = _rank_test(pyfuncitem)
    if test is None:
        return (yield)
    plain = pyfuncitem.obj
    pyfuncitem.obj = test.body(plain)
    try:
        return (yield)
    finally:
        pyfuncitem.obj = plain  # tracebacks begin at the test function


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: "pytest.CallInfo[None]"
) -> "Generator[None, pytest.TestReport, pytest.TestReport]":
    """Add to the report how each rank ended."""
    report = yield
    world = item.stash.get(_WORLD, None)
    if world is not None and call.when == "call":
        from dumpsim.testing.ranktest import describe

        describe(report, item, world.jobs, call.excinfo)
    return report


@pytest.fixture
def npu(request: pytest.FixtureRequest) -> "Iterator[Session]":
    """A fresh emulated device for this test: the current `Session` of a rank of its own, closed at the end.

    ``@pytest.mark.npu(chip="910A", seed=3)`` chooses its settings and ``@pytest.mark.faults({"kind": ..., ...})`` its
    faults. By default it is a 910B under the virtual clock that prints no summary and writes no manifest.

    As under ``dumpsim run``, ``import mindspore`` finds the emulation, and the global generators of `random` and
    `numpy.random` start from the seed. Both end with the test: afterwards a real MindSpore is found again, and the
    generators continue where they were. Names that a test file imported from a real MindSpore stay bound to it.

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
    wanted, strict = _faults(request.node)
    if request.node.get_closest_marker("ranks"):
        wanted = []  # these faults belong to the devices of the ranks, not to this one
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
def world(request: pytest.FixtureRequest, tmp_path: Path) -> "Iterator[RankWorld]":
    """The ranks of this test: ``world.rank``, ``world.size``, ``world.barrier()``, ``world.gather(value)``.

    Under ``@pytest.mark.ranks(4)`` the body of the test runs on four ranks of this process, which take turns, so that
    every run has the same order; ``@pytest.mark.ranks(1, 2, 4)`` makes three tests of it. Without the marker the body
    runs once, and ``world.run(function, 4)`` runs a function on ranks. As with `npu`, ``import mindspore`` finds the
    emulation, and the marker ``npu`` chooses the settings of every rank.

    Fixtures are set up once, outside of the ranks, and all ranks share what they return: also ``tmp_path`` and
    ``dump_dir``, where each rank dumps to its ``rank_N``. Each rank has its own environment variables (with
    ``RANK_ID`` and ``RANK_SIZE``), working directory, seeded generators of `random` and `numpy.random`, standard
    output with ``capsys``, and device with ``npu`` and ``faults``. ``golden`` compares the tree once, when all ranks
    have come to it. `monkeypatch` changes attributes for all ranks; environment variables and the working directory
    change for the rank that calls it.

    The first rank that fails fails the test, with its traceback; the others are stopped where they wait. A rank that
    skips ends by itself.

    Examples
    --------
    ::

        @pytest.mark.ranks(4)
        def test_sum(world):
            from mindspore import Tensor, communication, ops

            communication.init()
            total = ops.AllReduce()(Tensor([float(world.rank)]))
            assert total == 6
    """
    from dumpsim.testing.imports import aliased
    from dumpsim.testing.localranks import LocalRanks
    from dumpsim.testing.ranks import asked, marker_of, misspelt
    from dumpsim.testing.ranktest import kept_environment
    from dumpsim.testing.rankworld import RankWorld

    marker = marker_of(request.node)
    size = None if marker is None else asked(marker, request.node)
    settings, environment = _settings(request.node)

    def make(ranks: int) -> LocalRanks:
        return LocalRanks(ranks, settings=settings, environment=environment)

    directory, make_marked = tmp_path, None
    worker = request.config.pluginmanager.getplugin(_WORKER)
    if worker is not None and size is not None:
        directory = worker.shared_directory(request.node, tmp_path)
        make_marked = partial(worker.ranks, request.node, settings=settings, environment=environment)

    with aliased(), kept_environment():
        made = RankWorld(directory, make, make_marked=make_marked, marked=size, misspelt=misspelt(request.node))
        request.node.stash[_WORLD] = made
        yield made


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
def dump_dir(
    request: pytest.FixtureRequest, npu: "Session", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> "DumpDir":
    """A dump root of this test; ``dump_dir.configure(saved_data="full")`` writes a config for the device."""
    from dumpsim.testing.dump_dir import DumpDir

    world = _world(request)

    def set_variable(name: str, value: str) -> None:
        from dumpsim.runtime.session import Session

        if world is None or world.members is None:
            monkeypatch.setenv(name, value)
            npu.environment[name] = value
        else:  # both belong to the rank
            os.environ[name] = Session.current().environment[name] = value

    directory = tmp_path if world is None else world.directory
    return DumpDir(directory / "dump", set_variable, release=npu.settings.mindspore, why_nothing=_why_nothing)


def _why_nothing() -> str:
    """Return why the current session has dumped nothing so far."""
    from dumpsim.frontends.mindspore._dumping import config_was_read, dump_of
    from dumpsim.runtime.session import Session

    session = Session.current()
    service = dump_of(session)
    if service is None and config_was_read(session):
        return (
            "nothing was dumped: MindSpore reads the config before the first graph is compiled; "
            "call dump_dir.configure() before that"
        )
    if service is None:
        return "nothing was dumped: no graph was compiled, and operators outside graphs (PYNATIVE_MODE) are not dumped"
    return service.why_nothing()


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> "Golden":
    """Compare a dump with the golden tree of this test: ``golden(dump_dir)``.

    The tree lies in ``golden/<test file>/<test>`` beside the test file. ``pytest --update-golden`` writes it.
    See `dumpsim.testing.golden.Golden` for tolerances and for what may differ.
    """
    from dumpsim.testing.golden import Golden, place

    directory = request.path.parent / request.config.getini("dumpsim_golden")
    world = _world(request)
    return Golden(
        place(directory, request.path, request.node.nodeid),
        update=request.config.getoption("update_golden"),
        roots={
            "rootdir": str(request.config.rootpath),
            "tmp_path": str(tmp_path if world is None else world.directory),
        },
        test=request.node.nodeid,
        world=world,
    )


def _world(request: pytest.FixtureRequest) -> "RankWorld | None":
    """Return the fixture world of a test that has it, directly or by the marker ranks."""
    return request.getfixturevalue("world") if "world" in request.fixturenames else None


def _rank_test(item: pytest.Function) -> Any:
    """Return what runs the body of a test with the marker ranks; None for other tests."""
    world = item.stash.get(_WORLD, None)
    if world is None or world.marked is None:
        return None
    from dumpsim.testing.ranktest import RankTest

    wanted, strict = _faults(item)
    plan = None
    if wanted:
        from dumpsim.device.faults import make_plan

        plan = make_plan(wanted)
    return RankTest(item, world, plan=plan, strict=strict)


def _settings(node: Any) -> "tuple[RunSettings, dict[str, str]]":
    """Return the settings and the variables of a test's markers npu; inner markers win."""
    from dataclasses import fields

    from dumpsim.core.errors import BadInputError, nearest
    from dumpsim.core.settings import RunSettings
    from dumpsim.emulate.precheck import check_settings

    known = (*(field.name for field in fields(RunSettings)), "environment")
    chosen: dict[str, Any] = {"manifest": None, "quiet": True}
    environment: dict[str, str] = {}
    for marker in reversed(list(node.iter_markers("npu"))):  # outermost first
        if marker.args:
            raise pytest.UsageError(
                f"@pytest.mark.npu takes keyword arguments only, such as device='gpu'; got {marker.args!r}"
            )
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


def _faults(node: Any) -> "tuple[list[Mapping[str, Any]], bool]":
    """Return the faults of a test's markers, and whether they must strike."""
    markers = list(node.iter_markers("faults"))
    strict = [_strict(marker) for marker in markers]
    return [fault for marker in markers for fault in marker.args], all(strict)


def _strict(marker: Any) -> bool:
    """Return whether the faults of a marker must strike."""
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
