"""Small pieces of the plugin, called directly."""

import importlib
import io
import json
import random
import sys
import unittest
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.errors import BadInputError, DeviceError, DumpConfigError
from dumpsim.core.settings import RunSettings
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.faults import make_plan
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.task import Task, TaskKind
from dumpsim.emulate import ALIASES, AliasFinder
from dumpsim.runtime.session import Session
from dumpsim.testing.dump_dir import DumpDir
from dumpsim.testing.faults import Faults
from dumpsim.testing.golden import Golden, _plain, place
from dumpsim.testing.imports import aliased
from dumpsim.testing.localranks import LocalRanks, _below, _noted, short
from dumpsim.testing.neutral import NeutralTree
from dumpsim.testing.outcome import Outcome, output_sections, rank_sections
from dumpsim.testing.plugin import (
    _faults,
    _refuse_unused,
    _register_workers,
    _settings,
    pytest_configure,
    pytest_runtest_setup,
)
from dumpsim.testing.randomness import restored
from dumpsim.testing.rankoutput import RankCapture, RankOutput
from dumpsim.testing.ranks import _meant, asked, check, marker_of, misspelt, named, sizes
from dumpsim.testing.rankworld import RankWorld
from dumpsim.testing.treediff import _graph_text
from dumpsim.world.context import current
from dumpsim.world.ending import RankStopped


@pytest.mark.parametrize(
    ("size", "meant"),
    [("4", "ranks(4)"), ("1", "ranks(1)"), ("0", None), ("x", None), ("-1", None), ("", None), ([2, 3], "ranks(2, 3)"),
     ((4,), "ranks(4)"), ([], None), ([1, "2"], None), (4.0, "ranks(4)"), (1.0, "ranks(1)"), (0.0, None), (2.5, None),
     (None, None)],
)  # fmt: skip
def test_what_a_wrong_number_of_ranks_probably_means(size, meant):
    assert _meant(size) == meant


@pytest.mark.parametrize(
    ("ranks", "text"),
    [([7], "rank 7"), ([1, 0], "ranks 0, 1"), ([0, 1, 2], "ranks 0-2"), ([0, 2, 3, 5, 6, 7], "ranks 0, 2, 3, 5-7")],
)  # fmt: skip
def test_ranks_in_a_row_are_a_span(ranks, text):
    assert named(ranks) == text


def failing():
    raise KeyError("deep\nmore")


def test_the_frames_below_a_function_are_shown():
    def outer():
        failing()

    def other():
        pass

    try:
        outer()
    except KeyError:
        trace = sys.exc_info()[2]
    assert _below(outer, trace).tb_frame.f_code is failing.__code__
    assert _below(failing, trace) is None
    assert _below(other, trace) is trace
    assert _below(other, None) is None


def test_the_rank_of_an_error_is_in_its_notes():
    error = ValueError("x")
    assert _noted(error, 4) is None
    error.add_note("raised in rank 12 of 14")
    error.add_note("raised in rank 2 of 4")
    assert (_noted(error, 4), _noted(error, 14), _noted(error, 3)) == (2, 12, None)


def test_an_error_is_one_line():
    assert short(ValueError("one\ntwo")) == "ValueError: one"
    assert short(KeyError()) == "KeyError"
    assert short(pytest.fail.Exception("lost\nmore")) == "lost"


def test_what_ranks_have_alike_is_shown_once():
    first = Outcome(rank=1, state="failed", reason="E: 5", traceback="at 0x1f in rank 1")
    same = Outcome(rank=3, state="failed", reason="E: 5", traceback="at 0x2e in rank 3")
    other = Outcome(rank=0, state="failed", reason="E: 6", traceback="E: 6 ")
    stopped = [Outcome(rank=n, state="stopped", reason="rank 1 has raised E") for n in (2, 4)]
    assert rank_sections([*stopped, other, same, first], first=1) == [
        ("ranks 1, 3", "failed: E: 5 (traceback above)"), ("rank 0", "failed: E: 6"),
        ("ranks 2, 4", "stopped: rank 1 has raised E"),
    ]  # fmt: skip
    alone = rank_sections([same], first=None)
    assert alone == [("rank 3", "failed: E: 5\nat 0x2e in rank 3")]
    assert rank_sections([Outcome(rank=0, state="passed")], None) == [("rank 0", "passed")]
    output = [Outcome(rank=0, out="rank 0 a"), Outcome(rank=1, out="rank 1 a", err="e"), Outcome(rank=2)]
    assert output_sections(output) == [
        ("Captured stdout call (ranks 0, 1)", "rank 0 a"), ("Captured stderr call (rank 1)", "e")
    ]  # fmt: skip


def test_roots_are_replaced_in_texts_alone_the_inner_one_first(tmp_path):
    inner = tmp_path / "dump"
    inner.mkdir()
    text = f"{inner}/a and {tmp_path}/b".encode()
    for name in ("a.ir", "b.npy", "c.pb"):
        (inner / name).write_bytes(text)
    tree = NeutralTree(inner, {"tmp_path": str(tmp_path), "dump": str(inner)}, ignore=["*.x", "d/*"])
    assert tree.data("a.ir") == b"<dump>/a and <tmp_path>/b"
    assert tree.data("b.npy") == tree.data("c.pb") == text  # no text, and no graph
    assert NeutralTree(inner).data("a.ir") == text
    assert tree.names() == ["a.ir", "b.npy", "c.pb"]
    assert tree.same("b.npy", NeutralTree(inner), "c.pb")
    assert not tree.same("a.ir", NeutralTree(inner), "a.ir")
    (inner / "d").mkdir()
    (inner / "d" / "e").touch()
    assert tree.names() == ["a.ir", "b.npy", "c.pb"]
    (inner / "l").symlink_to(inner)
    with pytest.raises(BadInputError, match="not a regular file"):
        tree.names()


def test_a_graph_that_is_none_is_shown_as_bytes():
    assert _graph_text(b"\xff" * 17) == f"ff {'ff' * 16}"  # sixteen bytes a word
    assert _graph_text(b"") == ""


@pytest.mark.parametrize(
    ("name", "plain"),
    [("TestStep.test_loss[fp16]", None), ("a=b,c+d_e.f-g", None), ("a b", "a-b-"), ("-a.", "a-"), ("é", "-"),
     ("x" * 100, None), ("x" * 101, "x" * 100 + "-"), ("x" * 300, "x" * 100 + "-")],
)  # fmt: skip
def test_a_name_that_no_file_system_takes_has_a_digest(name, plain):
    found = _plain(name)
    if plain is None:
        assert found == name
    else:
        assert found != name
        assert found.startswith(plain)
        assert len(found) < 255
        assert found == _plain(name) != _plain(name + " ")


def test_trees_of_tests_have_places_of_their_own(tmp_path):
    file = tmp_path / "test_net.py"
    names = ["t.py::test_a", "t.py::test_b", "t.py::T::test_a", "t.py::test_a[x/y]", "t.py::test_a[x:y]"]
    places = [place(tmp_path, file, name) for name in names]
    assert len(set(places)) == len(names)
    assert places[0] == tmp_path / "test_net" / "test_a"
    assert places[2] == tmp_path / "test_net" / "T.test_a"


# ---------------------------------------------------------------- the marker ranks
class Node:
    """A test with markers, the innermost first."""

    name, cls = "test_net", None

    def __init__(self, *marks, obj=print, callspec=None):
        self.marks, self.obj = [mark.mark for mark in marks], obj
        if callspec is not None:
            self.callspec = SimpleNamespace(params=callspec[0], marks=[mark.mark for mark in callspec[1]])

    def iter_markers(self, name=None):
        return (mark for mark in self.marks if name in (None, mark.name))

    def get_closest_marker(self, name):
        return next(self.iter_markers(name), None)


RANKS = pytest.mark.ranks


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        (RANKS(size=4), "(size=...): unknown keyword 'size'; allowed: numbers only: ranks(4)"),
        (RANKS(4, size=4), "(size=...): unknown keyword 'size'; allowed: numbers only: ranks(4)"),
        (RANKS, "(): no number of ranks is given; allowed: ranks(4), several: ranks(1, 2, 4)"),
        (RANKS(0), "(0): 0 is not a number of ranks; allowed: 1 or more"),
        (RANKS(True), "(True): True is not a number of ranks; allowed: 1 or more"),
        (RANKS([2]), "([2]): [2] is not a number of ranks; allowed: 1 or more (did you mean 'ranks(2)'?)"),
        (RANKS(1, 2, 1), "(1, 2, 1): 1 is given twice"),
    ],
)  # fmt: skip
def test_a_wrong_marker_is_refused_whole(mark, said):
    with pytest.raises(BadInputError) as caught:
        sizes(mark.mark)
    assert str(caught.value) == f"@pytest.mark.ranks{said} [DS-TST-004]"


def test_how_many_ranks_a_test_has():
    assert sizes(RANKS(1, 3).mark) == (1, 3)
    plain, several = Node(RANKS(4), RANKS(2)), Node(RANKS(1, 3), callspec=({"world": 3}, []))
    outer = Node(RANKS(4), callspec=({"value": 1}, [RANKS(2), pytest.mark.slow]))
    assert [asked(marker_of(node), node) for node in (plain, several, outer)] == [4, 3, 2]
    for node in (plain, several, outer):
        check(marker_of(node), node)
    assert marker_of(Node()) is None


def test_tests_that_cannot_run_on_ranks_are_refused():
    async def coroutine():
        pass

    case = Node(RANKS(2))
    case.cls = unittest.TestCase
    allowed = "allowed: plain test functions, methods of plain classes [DS-TST-004]"
    for node, said in (
        (case, f"@pytest.mark.ranks: test_net is a method of unittest.TestCase; {allowed}"),
        (Node(RANKS(2), obj=coroutine), f"@pytest.mark.ranks: test_net is a coroutine; {allowed}"),
        (Node(RANKS(2, 4)), "@pytest.mark.ranks(2, 4): several numbers in pytest.param(..., marks=...); allowed: one "
                            "number [DS-TST-004]"),
    ):  # fmt: skip
        with pytest.raises(BadInputError) as caught:
            check(marker_of(node), node)
        assert str(caught.value) == said
    both = Node(RANKS(8), callspec=({"world": 2}, [RANKS(2, 4)]))
    with pytest.raises(BadInputError, match="several numbers"):
        check(marker_of(both), both)
    case.cls = int
    check(marker_of(case), case)


def test_a_marker_that_is_nearly_ranks():
    near = Node(pytest.mark.slow)
    near.marks.append(SimpleNamespace(name="rank"))
    assert misspelt(near) == "rank"
    assert misspelt(Node(pytest.mark.slow)) is None


# ---------------------------------------------------------------- the other markers
def test_settings_of_a_test_are_those_of_its_markers_the_inner_one_first():
    npu = pytest.mark.npu
    assert _settings(Node()) == (RunSettings(manifest=None, quiet=True), {})
    inner = npu(chip="910A", environment={"A": "1"}), npu(chip="910B", seed=3, environment={"A": "0", "B": "2"})
    assert _settings(Node(*inner)) == (
        RunSettings(manifest=None, quiet=True, chip="910A", seed=3), {"A": "1", "B": "2"}
    )  # fmt: skip
    for wrong, said in (
        ({"chip": "910X"}, r"^@pytest.mark.npu\(chip=\.\.\.\): .*'910X'"),
        ({"overrides": {"no_such": 1}}, r"^@pytest.mark.npu\(overrides=\.\.\.\): "),
        ({"chpi": "910A"}, r"^@pytest.mark.npu: unknown setting 'chpi'.*did you mean 'chip'"),
    ):  # fmt: skip
        with pytest.raises(BadInputError, match=said):
            _settings(Node(npu(**wrong)))
    with pytest.raises(pytest.UsageError, match=r"such as device='gpu'; got \('gpu',\)"):
        _settings(Node(npu("gpu")))


def test_faults_of_a_test_are_those_of_all_its_markers():
    mark = pytest.mark.faults
    one, two, three = ({"kind": kind} for kind in ("kill", "hang", "delay"))
    assert _faults(Node()) == ([], True)
    assert _faults(Node(mark(one, two), mark(three))) == ([one, two, three], True)
    assert _faults(Node(mark(one), mark(two, strict=False))) == ([one, two], False)
    assert _faults(Node(mark(one, strict=True))) == ([one], True)
    with pytest.raises(pytest.UsageError, match=r"takes fault objects and strict=, got 'strict_'"):
        _faults(Node(mark(one, strict_=True)))


class Config:
    """The options of a session, and the plugins that it has."""

    def __init__(self, dist, *plugins, tx=()):
        self.options, self.registered, self.pluginmanager = {"dist": dist, "tx": list(tx)}, [], self
        self.plugins = plugins

    def getoption(self, name):
        return self.options[name]

    def hasplugin(self, name):
        return name in self.plugins

    def register(self, plugin, name=None):
        self.registered.append((plugin, name))


def test_a_session_has_as_many_ranks_as_workers():
    for tx, count in ((["4*popen"], 4), (["popen", "2*popen//python=x", "popen"], 4), (["popen"], 1)):
        config = Config("each", "xdist", tx=tx)
        _register_workers(config)
        ((controller, name),) = config.registered
        assert (controller._size, name) == (count, None)
        controller.pytest_unconfigure()
    for config, said in (
        (Config("each"), "pytest-xdist is not installed, or switched off"),
        (Config("no", "xdist"), "there are no workers"),
        (Config("load", "xdist"), "with --dist load each test runs on one worker alone"),
    ):  # fmt: skip
        with pytest.raises(pytest.UsageError, match=f"^--dumpsim-ranks=xdist: {said}"):
            _register_workers(config)
        assert config.registered == []


class StartingConfig(Config):
    """The options of a session that starts, and what it cleans up at its end."""

    def __init__(self, **options):
        super().__init__("no")
        self.options |= {"dumpsim_ranks": "local", "dumpsim_imports": "fixtures"} | options
        self.lines, self.cleanups = [], []

    def getini(self, name):
        return self.options[name]

    def addinivalue_line(self, name, line):
        self.lines.append((name, line.partition(":")[0].partition("(")[0]))

    def add_cleanup(self, function):
        self.cleanups.append(function)


def test_a_session_may_find_the_emulation_until_its_end(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [one for one in sys.meta_path if not isinstance(one, AliasFinder)])
    before = list(sys.meta_path)
    for when, finders in (("fixtures", 0), ("session", 1)):
        session = StartingConfig(dumpsim_imports=when)
        pytest_configure(session)
        assert session.lines == [("markers", name) for name in ("npu", "faults", "ranks")]
        assert [isinstance(one, AliasFinder) for one in sys.meta_path].count(True) == finders
        assert len(session.cleanups) == finders
        for cleanup in session.cleanups:
            cleanup()
        assert sys.meta_path == before
    for options, said in (
        ({"dumpsim_imports": "sesion"}, "dumpsim_imports: 'sesion' is not one of fixtures, session"),
        ({"dumpsim_ranks": "xdst"}, "--dumpsim-ranks: 'xdst' is not one of local, xdist (did you mean 'xdist'?)"),
        ({"dumpsim_ranks": "xdist"}, "--dumpsim-ranks=xdist: pytest-xdist is not installed, or switched off"),
    ):  # fmt: skip
        with pytest.raises(pytest.UsageError) as caught:
            pytest_configure(StartingConfig(**options))
        assert str(caught.value) == said


def test_a_worker_of_a_run_on_ranks_is_registered(tmp_path):
    config = Config("each", "xdist")
    config.workerinput = {
        "dumpsim_ranks": {"directory": str(tmp_path), "size": 2}, "workerid": "gw2", "testrunuid": "t"
    }  # fmt: skip
    _register_workers(config)
    ((worker, name),) = config.registered
    assert (worker.rank, worker.size, worker.directory, name) == (2, 2, tmp_path, "dumpsim-worker")


def test_a_wrong_marker_fails_the_setup_in_one_line(request):
    for mark, fixtures, wanted in ((RANKS("two"), [], None), (RANKS(2), ["a"], ["world", "a"]),
                                   (RANKS(2), ["world"], ["world"]), (pytest.mark.slow, ["a"], ["a"])):  # fmt: skip
        item = pytest.Function.from_parent(request.node.parent, name="test_net", callobj=lambda: None)
        item.add_marker(mark)
        item.fixturenames = fixtures
        if wanted is None:
            with pytest.raises(pytest.fail.Exception, match="'two' is not a number of ranks") as caught:
                pytest_runtest_setup(item)
            assert caught.value.pytrace is False
        else:
            pytest_runtest_setup(item)
            assert item.fixturenames == wanted


def test_faults_that_never_struck_fail_a_test_in_one_line():
    session = Session(RunSettings(device="cpu"), environment={})
    injector = session.inject(make_plan([{"kind": "overflow", "op": name} for name in ("Add", "Sub")]))
    injector.launch("Add", "Default/Add-op0")
    with pytest.raises(pytest.fail.Exception) as caught:
        _refuse_unused(injector)
    assert str(caught.value) == (
        "faults that never struck: overflow of 'Sub' never struck: 0 launches matched, it waits for launch 1"
    )
    assert caught.value.pytrace is False
    injector.launch("Sub", "Default/Sub-op0")
    _refuse_unused(injector)


# ---------------------------------------------------------------- fixtures
def test_a_dump_directory_writes_the_config_and_describes_itself(tmp_path):
    variables, why = {}, ["nothing ran"]
    dump = DumpDir(tmp_path / "dump", variables.__setitem__, why_nothing=lambda: why[0])
    none = "nothing was dumped: the test did not call dump_dir.configure()"
    assert repr(dump) == f"<DumpDir {dump.path}: 0 files, no config; {none}>"
    assert dump.why_empty() == none
    path = dump.configure(saved_data="statistic", iteration="0|2", e2e={"trans_flag": False})
    assert path == tmp_path / "data_dump.json"
    # what is dumped where nothing is said: all tensors of all operators in all steps, on eight devices
    assert json.loads(path.read_text()) == {
        "common_dump_settings": {
            "op_debug_mode": 0, "dump_mode": 0, "path": str(dump.path), "net_name": "Net", "iteration": "0|2",
            "saved_data": "statistic", "input_output": 0, "kernels": [], "support_device": [0, 1, 2, 3, 4, 5, 6, 7],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": False},
    }  # fmt: skip
    assert variables == {"MINDSPORE_DUMP_CONFIG": str(path)}
    assert [one.name for one in tmp_path.iterdir()] == ["data_dump.json"]
    assert repr(dump) == f"<DumpDir {dump.path}: 0 files, config data_dump.json; nothing ran>"
    (dump / "b").mkdir(parents=True)
    (dump / "b" / "c.npy").touch()
    (dump / "a.csv").touch()
    assert dump.files() == ["a.csv", "b/c.npy"]
    assert dump.files("*.npy") == ["b/c.npy"]
    why[0] = ""
    assert repr(dump) == f"<DumpDir {dump.path}: 2 files, config data_dump.json>"
    assert DumpDir(dump.path, variables.__setitem__).why_empty() == ""


def test_fields_and_values_of_a_config_are_checked_where_they_are_given(tmp_path):
    dump = DumpDir(tmp_path / "dump", {}.__setitem__)
    for fields, said in (
        ({"e2e": {"enabel": True}}, "dump_dir.configure(e2e: enabel=...): unknown field of a dump config (did you mean "
                                    "'enable'?) [DS-TST-002]"),
        ({"net_name": {1}}, "dump_dir.configure: not JSON: Object of type set is not JSON serializable [DS-TST-002]"),
    ):  # fmt: skip
        with pytest.raises(DumpConfigError) as caught:
            dump.configure(**fields)
        assert str(caught.value) == said
    with pytest.raises(DumpConfigError, match=r"dump_dir\.configure\(dump_mode=\.\.\.\): "):
        dump.configure(dump_mode=77)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DumpConfigError, match=r"^dump_dir\.configure\(dump_mode=\.\.\.\): "):
        dump.configure(saved_data="full", dump_mode=77, e2e={"enable": True})
    path = dump.configure(saved_dat="full", dump_mode=77, check=False)
    assert path.read_text().startswith('{\n  "common_dump_settings": {\n    "op_debug_mode": 0,\n')  # to be read


def test_a_meeting_of_ranks_waits_for_the_tasks_of_each():
    world, ran = RankWorld(Path("."), LocalRanks), []

    def body():
        device = Device(chip("910B"), rank=world.rank, scheduler=current().world.get(Scheduler), environment={})
        task = Task(kind=TaskKind.AICORE, name="a", work=lambda task, rank=world.rank: ran.append(rank))
        device.stream(0).launch(task)
        world.barrier()
        return sorted(ran)

    assert world.run(body, 3) == [[0, 1, 2]] * 3


def test_global_generators_go_on_where_they_were():
    def draw():
        return random.random(), float(np.random.random())

    @restored()
    def fail():
        random.seed(1)
        np.random.seed(1)
        raise KeyError

    state = random.getstate(), np.random.get_state()
    with restored():
        first = draw()
        with pytest.raises(KeyError):
            fail()
        assert draw() != first
    assert draw() == first
    random.setstate(state[0])
    np.random.set_state(state[1])


def test_modules_of_a_real_mindspore_are_put_back(monkeypatch):
    real = {name: ModuleType(name) for name in ("mindspore", "mindspore.nn", "troubleshooter")}
    for name, module in real.items():
        monkeypatch.setitem(sys.modules, name, module)
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ALIASES}
    monkeypatch.setattr(sys, "meta_path", [one for one in sys.meta_path if not isinstance(one, AliasFinder)])
    finders = list(sys.meta_path)
    with aliased():
        emulation = importlib.import_module("mindspore")
        assert emulation is not real["mindspore"]
        assert emulation.Tensor([1.0]).shape == (1,)
        with aliased():  # inside, nothing changes
            assert importlib.import_module("mindspore") is emulation
        assert importlib.import_module("mindspore") is emulation
    after = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ALIASES}
    assert after == before
    assert sys.meta_path == finders


def test_faults_say_how_many_are_active():
    faults = Faults(Session(RunSettings(device="cpu"), environment={}))
    assert repr(faults) == "Faults(none active)"
    injector = faults({"kind": "overflow", "op": "Add"}, {"kind": "overflow", "op": "Add"})
    assert faults.strict == [injector]
    injector.launch("Add", "Default/Add-op0")
    assert repr(faults) == "Faults(2 active, none pending)"
    faults({"kind": "overflow", "op": "Add"}, strict=False)
    assert faults.strict == [injector]
    faults()
    assert repr(faults) == "Faults(none active)"


def test_what_the_fixture_world_says_of_itself():
    world = RankWorld(Path("."), LocalRanks)
    assert repr(world) == "<RankWorld>"
    assert repr(RankWorld(Path("."), LocalRanks, marked=4)) == "<RankWorld of 4 ranks>"
    assert world.run(lambda: (repr(world), world.rank, world.size, world.gather(world.rank)), 2) == [
        (f"<RankWorld: rank {rank} of 2>", rank, 2, [0, 1]) for rank in range(2)
    ]
    assert world.members is None
    assert [job.size for job in world.jobs] == [2]
    allowed = "allowed: @pytest.mark.ranks(4) before the test, world.run(function, 4)"
    for misspelling, said in (
        (None, f"world.rank: this code does not run on a rank; {allowed} [DS-TST-004]"),
        ("rank", f"world.rank: this code does not run on a rank, and the test's marker is 'rank'; {allowed} (did you "
                 "mean 'ranks'?) [DS-TST-004]"),
    ):  # fmt: skip
        with pytest.raises(BadInputError) as caught:
            _ = RankWorld(Path("."), LocalRanks, misspelt=misspelling).rank
        assert str(caught.value) == said
    for count in (0, True, "2", 1.0):
        with pytest.raises(BadInputError, match="is not a number of ranks; allowed: 1 or more"):
            world.run(print, count)
    with pytest.raises(
        BadInputError, match=r"world\.run: the test runs on ranks already; allowed: calling the function"
    ):
        world.run(lambda: world.run(print, 1), 1)


@pytest.mark.parametrize(("leaving", "have"), [((1,), "rank 1, which has"), ((1, 2), "ranks 1, 2, which have")])
def test_who_waits_for_ranks_that_have_ended_says_so(leaving, have):
    world = RankWorld(Path("."), LocalRanks)
    with pytest.raises(DeviceError, match=rf"rank 0 waits at world.barrier\(\) for {have} ended \[DS-TST-005\]"):
        world.run(lambda: world.rank in leaving or world.barrier(), 1 + len(leaving))


def test_ranks_that_skip_or_fail_are_told_apart():
    ranks = LocalRanks(3)

    def body():
        if ranks.rank == 0:
            ranks.meet("barrier")
        if ranks.rank == 1:
            pytest.skip("no")
        raise ValueError("bad\nmore")

    with pytest.raises(ValueError, match="bad"):
        ranks.run(body)
    assert [outcome.line() for outcome in ranks.outcomes] == [
        "stopped: rank 2 has raised ValueError", "skipped: no", "failed: ValueError: bad",
    ]  # fmt: skip
    ranks = LocalRanks(2)
    with pytest.raises(pytest.skip.Exception, match="0"):
        ranks.run(lambda: pytest.skip(str(ranks.rank)))
    ranks = LocalRanks(2)
    with pytest.raises(KeyError):
        ranks.run(lambda: {}["x"])
    assert [outcome.line() for outcome in ranks.outcomes] == [
        "failed: KeyError: 'x'", "not started: rank 0 has raised KeyError",
    ]  # fmt: skip


def test_an_error_after_the_end_of_a_rank_is_its_own():
    def body():
        def close():
            raise OSError("not closed")

        if ranks.rank == 1:
            current().at_close(close)

    ranks = LocalRanks(3)
    with pytest.raises(OSError, match="not closed"):
        ranks.run(body)
    assert [outcome.line() for outcome in ranks.outcomes] == [
        "passed", "failed: OSError: not closed", "not started: rank 1 has raised OSError"
    ]  # fmt: skip


def test_an_error_of_the_last_tasks_of_a_rank_is_its_own():
    def body():
        def fail(task):
            raise OSError("disk full")

        device = Device(chip("910B"), rank=ranks.rank, scheduler=current().world.get(Scheduler), environment={})
        device.stream(0).launch(Task(kind=TaskKind.AICORE, name="a", work=fail if ranks.rank else None))

    ranks = LocalRanks(2)
    with pytest.raises(OSError, match="disk full"):
        ranks.run(body)
    assert [outcome.line() for outcome in ranks.outcomes] == ["passed", "failed: OSError: disk full"]


def test_ranks_that_meet_elsewhere_or_for_ever_are_named():
    ranks = LocalRanks(2)
    with pytest.raises(DeviceError, match=r"rank 1 is at two where rank 0 came to one \[DS-TST-005\]"):
        ranks.run(lambda: ranks.meet(("one", "two")[ranks.rank]))
    ranks = LocalRanks(2)
    assert ranks.run(lambda: [ranks.meet("one", ranks.rank), ranks.meet("two", -ranks.rank)]) == [
        [{0: 0, 1: 1}, {0: 0, 1: -1}]
    ] * 2  # fmt: skip


def test_output_of_a_rank_is_its_own(capsys):
    class Shared:
        disabled_for = 0

        @contextmanager
        def disabled(self):
            self.disabled_for += 1
            sys.stdout = outer
            yield

    outer, shared = io.StringIO(), Shared()
    before = sys.stdout, sys.stderr
    sys.stdout = SimpleNamespace(fileno=lambda: 77)
    output = RankOutput(3, live=False)
    sys.stdout = before[0]
    capture = RankCapture(output, shared)
    try:
        output.install()
        print("one\u00e9\r")
        print("two", file=sys.stderr)
        assert capture.readouterr() == ("one\u00e9\r\n", "two\n")
        assert capture.readouterr() == ("", "")
        assert output.out.fileno() == 77
        print("more")
        with capture.disabled():
            print("outside")
        print("again")
        assert output.take() == ("more\nagain\n", "")
        sys.stdout.buffer.write(b"\xff")
        assert capture.readouterr().out == "\ufffd"
    finally:
        sys.stdout, sys.stderr = before
    assert (outer.getvalue(), shared.disabled_for) == ("outside\n", 1)
    live = RankOutput(3, live=True)
    try:
        live.install()
        print("seen")
        print("part", end="")
        assert live.take() == ("", "")
    finally:
        sys.stdout, sys.stderr = before
    assert capsys.readouterr().out == "[rank 3] seen\n[rank 3] part\n"


# ---------------------------------------------------------------- tracebacks
def shown(action):
    """Frames of dumpsim that pytest shows of the error of an action, and how many it leaves out."""
    with pytest.raises((Exception, pytest.fail.Exception, RankStopped)) as caught:
        action()
    own = [entry for entry in caught.traceback if "/dumpsim/testing/" in str(entry.path)]
    return [entry.name for entry in own if not entry.ishidden(caught)], len(own)


def test_an_error_of_a_fixture_is_shown_at_the_line_of_the_test(tmp_path):
    dump, tree = DumpDir(tmp_path / "dump", {}.__setitem__), tmp_path / "tree"
    tree.mkdir()
    (tree / "a.json").write_text("{}")
    golden = Golden(tmp_path / "golden")
    world, ranks = RankWorld(Path("."), LocalRanks), LocalRanks(2)
    for action, frames in (
        (lambda: dump.configure(no_such=1), 2), (lambda: golden(dump), 3), (lambda: golden(tree), 2),
        (lambda: golden(tree, rtol=-1), 2), (lambda: golden.differences(tmp_path / "none"), 3),
        (lambda: golden.write(tmp_path / "none"), 3), (lambda: world.rank, 2), (lambda: world.size, 2),
        (world.barrier, 4), (lambda: world.gather(1), 4), (lambda: world.meet("x"), 2),
        (lambda: world.run(print, 0), 1), (lambda: golden(tree, "other"), 2), (lambda: golden(tree, "other"), 2),
        (lambda: world.run(lambda: [].pop(), 1), 2), (lambda: ranks.run(lambda: ranks.meet("ab"[ranks.rank])), 2),
    ):  # fmt: skip
        visible, count = shown(action)
        assert visible == []
        assert count >= frames
