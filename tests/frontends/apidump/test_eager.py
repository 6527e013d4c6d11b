"""Compiled functions run uncompiled from the start of a dump to its end, whenever the compiler is imported."""

import importlib
import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.frontends.apidump.pytorch import eager  # noqa: E402
from dumpsim.frontends.apidump.pytorch.newthreads import NewThreads  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def compiles():
    """Whether a function that is compiled now reaches its backend."""

    def answer():
        seen = []

        def backend(graph, inputs):
            seen.append(graph)
            return graph.forward

        torch._dynamo.reset()
        result = torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
        assert result.tolist() == [2.0, 2.0]
        return bool(seen)

    assert answer()
    yield answer
    assert answer()


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """The name of a module that stands for torch's compiler and has not been imported."""
    (tmp_path / "late_compiler.py").write_text("VALUE = 5\n")
    (tmp_path / "other_module.py").write_text("VALUE = 6\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(eager, "_COMPILER", "late_compiler")
    yield "late_compiler"
    for name in ("late_compiler", "other_module"):
        sys.modules.pop(name, None)


def test_a_compiler_that_is_imported_during_a_dump_compiles_nothing_until_its_end(compiles, compiler):
    finders = list(sys.meta_path)
    uncompiled = eager.Eager()
    uncompiled.begin()
    assert sys.meta_path[1:] == finders
    assert importlib.import_module("other_module").VALUE == 6
    assert compiles()
    module = importlib.import_module(compiler)
    assert sys.meta_path == finders
    assert not compiles()
    assert module.VALUE == 5
    assert module.__loader__ is module.__spec__.loader
    assert type(module.__loader__) is type(sys.modules["other_module"].__loader__)
    uncompiled.end()
    assert compiles()


def test_a_compiler_that_is_imported_after_the_dump_compiles(compiles, compiler):
    finders = list(sys.meta_path)
    uncompiled = eager.Eager()
    uncompiled.begin()
    uncompiled.begin()
    assert sys.meta_path[1:] == finders
    uncompiled.end()
    assert sys.meta_path == finders
    uncompiled.end()
    assert importlib.import_module(compiler).VALUE == 5
    assert compiles()


def test_an_import_that_began_in_the_dump_and_ended_after_it_changes_nothing(compiles, compiler):
    uncompiled = eager.Eager()
    uncompiled.begin()
    spec = importlib.util.find_spec(compiler)
    uncompiled.end()
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert compiles()


def test_a_missing_compiler_is_missing_during_a_dump_too(compiler, monkeypatch):
    monkeypatch.setattr(eager, "_COMPILER", "no_such_compiler")
    uncompiled = eager.Eager()
    uncompiled.begin()
    with pytest.raises(ModuleNotFoundError, match="no_such_compiler"):
        importlib.import_module("no_such_compiler")
    uncompiled.end()


def test_a_compiler_that_was_imported_before_is_set_at_once(compiles, compiler):
    importlib.import_module(compiler)
    finders = list(sys.meta_path)
    uncompiled = eager.Eager()
    uncompiled.begin()
    assert sys.meta_path == finders
    assert not compiles()
    uncompiled.begin()
    assert not compiles()
    uncompiled.end()


def test_torch_without_stances_is_left_alone(compiler, monkeypatch):
    finders = list(sys.meta_path)
    monkeypatch.delattr(torch.compiler, "set_stance")  # as before torch 2.6
    uncompiled = eager.Eager()
    uncompiled.begin()
    assert sys.meta_path == finders
    uncompiled.end()


@pytest.fixture
def profiles():
    """Sets the profile function of threads back."""
    before = threading.getprofile()
    yield
    threading.setprofile(before)
    sys.setprofile(None)


@pytest.mark.parametrize("daemon", [False, True])
def test_the_first_event_of_a_thread_is_passed_on_and_announces_it(profiles, daemon):
    """The profile function is called directly: no line of one that the interpreter calls is traced."""
    events, arrived = [], []

    def users(*given):
        events.append(given)

    threading.setprofile(users)
    threads = NewThreads(lambda: arrived.append(threading.current_thread().name))
    threads.begin()
    first = threading.getprofile()
    after = []

    def work():
        frame = sys._getframe()
        first(frame, "call", 7)
        now = sys.getprofile()
        sys.setprofile(None)
        after.extend([now is users, events.count((frame, "call", 7))])

    threading.setprofile(None)
    thread = threading.Thread(target=work, name="young", daemon=daemon)
    thread.start()
    thread.join()
    assert after == [True, 1]
    assert arrived == ([] if daemon else ["young"])
    threading.setprofile(first)
    threads.end()
    assert threading.getprofile() is users


def test_a_profiler_of_threads_that_the_user_sets_later_stays(profiles):
    threads = NewThreads(lambda: None)
    threads.begin()
    threading.setprofile(print)
    threads.end()
    assert threading.getprofile() is print
    threading.setprofile(None)
    threads.begin()
    own = threading.getprofile()
    threads.begin()
    assert threading.getprofile() not in (own, None)
    threads.end()
    assert threading.getprofile() is None
    threads.end()
