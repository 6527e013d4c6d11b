"""`dumpsim run --ranks N` inside this process: small scripts, their exit codes, and what is said of them."""

import atexit
import multiprocessing.process
import os
import signal
import sys
import textwrap
import threading

import pytest

from dumpsim.core.errors import UnsupportedError
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.emulate import localjob
from dumpsim.emulate.localjob import LocalJob, _exit_code, _Guard
from dumpsim.emulate.rankmodules import RankModules


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a script on ranks of this process; its exit code, and the lines of both outputs."""
    monkeypatch.setattr(sys, "argv", ["localjob"])
    monkeypatch.chdir(tmp_path)

    def ran(script, *words, ranks=2, quiet=False):
        monkeypatch.setenv(VARIABLE, RunSettings(quiet=quiet).to_text())
        (tmp_path / "net.py").write_text(textwrap.dedent(script))
        code = LocalJob([*words] if words[:1] == ("-m",) else ["net.py", *words], ranks).run()
        out, err = capsys.readouterr()
        return code, out.splitlines(), err.splitlines()

    return ran


RANK = "import os\nrank = int(os.environ['RANK_ID'])\n"
ENDS = [
    ("pass", 0, "ranks 0-1: exit code 0"),
    ("raise SystemExit", 0, "ranks 0-1: exit code 0"),
    ("raise SystemExit(0)", 0, "ranks 0-1: exit code 0"),
    ("raise SystemExit(7)", 7, "rank 0: exit code 7, rank 1: did not start"),
    ("raise SystemExit(7 * rank)", 7, "rank 0: exit code 0, rank 1: exit code 7"),
    ("raise SystemExit(256 * (1 - rank) + 5 * rank)", 5, "rank 0: exit code 0, rank 1: exit code 5"),
    ("raise SystemExit('a reason')", 1, "rank 0: exit code 1, rank 1: did not start"),
    ("raise KeyError('x')", 1, "rank 0: KeyError, exit code 1, rank 1: did not start"),
    ("raise KeyboardInterrupt", 130, "rank 0: KeyboardInterrupt, exit code 1, rank 1: did not start"),
]


@pytest.mark.parametrize(("program", "code", "ends"), ENDS)
def test_the_exit_code_is_that_of_the_first_rank_that_fails(run, program, code, ends):
    found, out, err = run(RANK + program)
    assert (found, out) == (code, [])
    if code:
        assert err[-1] == f"dumpsim: {ends}"
    else:
        assert err == []
    assert ("a reason" in err) == ("reason" in program)
    quiet = run(RANK + program, quiet=True)
    assert quiet[0] == code
    assert not any(line.startswith("dumpsim: rank") for line in quiet[2])


def test_lines_have_their_rank_in_front_unless_there_is_one_alone(run):
    program = "import sys\nprint('a', *sys.argv)\nprint('b', end='')"
    assert run(program, "x")[1] == ["[0] a net.py x", "[0] b", "[1] a net.py x", "[1] b"]
    assert run(program, ranks=1)[1] == ["a net.py", "b"]


def test_a_module_that_cannot_run_is_said(run, tmp_path):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "__init__.py").write_text("")
    (tmp_path / "nested" / "__main__").mkdir(parents=True)  # two packages without __init__.py
    names = dict.fromkeys(("bare", "nested", "nowhere"), "does not exist") | {"math": "has no code to run"}
    for name, why in names.items():
        code, _, err = run("", "-m", name, ranks=1)
        assert (code, any(f"-m: the module {name!r} {why} [DS-RUN-001]" in line for line in err)) == (1, True)


def test_a_script_is_main_as_python_makes_it(run, tmp_path):
    program = """
        import inspect, os, sys
        print(__name__, __file__, __spec__, __package__, sys.argv, sys.path[0], sys.modules["__main__"].__file__)
        print(inspect.getsource(sys.modules["__main__"]).strip().splitlines()[0], __loader__.name, __loader__.path)
    """
    file = str(tmp_path / "net.py")
    real = os.path.realpath(tmp_path)
    assert run(program, "a", "b", ranks=1) == (0, [
        f"__main__ {file} None None ['net.py', 'a', 'b'] {real} {file}", f"import inspect, os, sys __main__ {file}",
    ], [])  # fmt: skip


def test_a_module_is_main_as_python_makes_it(run, tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "inner.py").write_text("value = 3")
    program = """
        import sys
        from .inner import value
        print(__name__, __file__, __spec__.name, __package__, __loader__.path, sys.argv, sys.path[0], value)
    """
    for name in ("__main__", "tool"):
        (tmp_path / "pack" / f"{name}.py").write_text(textwrap.dedent(program))
    for asked, name in (("pack", "pack.__main__"), ("pack.tool", "pack.tool")):
        file = str(tmp_path / f"{name.replace('.', '/')}.py")
        code, out, err = run("", "-m", asked, "x", ranks=1)
        assert (code, out, err) == (
            0, [f"__main__ {file} {name} pack {file} ['{file}', 'x'] {tmp_path} 3"], []
        )  # fmt: skip
    assert "pack" not in sys.modules


def test_the_directory_of_the_program_is_the_first_entry_of_the_path(run, tmp_path, monkeypatch, capsys):
    """As Python itself does it: the directory of a script, the current one for ``-m``."""
    (tmp_path / "of").mkdir()
    for name in ("tool.py", "of/net.py"):
        (tmp_path / name).write_text("import sys\nprint(*sys.path, sep='|')")
    monkeypatch.setattr(sys, "path", ["/of/the/command", "/first", "/second", *sys.path])
    rest = "|".join(sys.path[1:])
    assert run("", "-m", "tool", ranks=1)[1] == [f"{os.path.realpath(tmp_path)}|{rest}"]
    assert run("import sys\nprint(*sys.path, sep='|')", ranks=1)[1] == [f"{os.path.realpath(tmp_path)}|{rest}"]
    monkeypatch.chdir(tmp_path.parent)
    assert LocalJob([f"{tmp_path.name}/of/net.py"], 1).run() == 0
    assert capsys.readouterr().out.splitlines() == [f"{os.path.realpath(tmp_path / 'of')}|{rest}"]


def test_an_error_is_shown_from_the_script_on(run, tmp_path, monkeypatch):
    monkeypatch.delenv("DUMPSIM_TRACEBACK", raising=False)
    place = f'  File "{tmp_path / "net.py"}", line 1, in <module>'
    for ranks, notes in ((1, ["dumpsim: rank 0: KeyError, exit code 1"]),
                         (2, ["dumpsim: rank 0: KeyError, exit code 1, rank 1: did not start"])):  # fmt: skip
        assert run("raise KeyError('x')", ranks=ranks)[2] == [
            "Traceback (most recent call last):", place, "    raise KeyError('x')", "KeyError: 'x'",
            f"raised in rank 0 of {ranks}", *notes,
        ]  # fmt: skip
    program = "from dumpsim.device.chip import chip; chip('nothing')"
    for variable, frames in (("", 1), ("full", 2)):
        monkeypatch.setenv("DUMPSIM_TRACEBACK", variable)
        err = run(program, ranks=1)[2]
        assert sum(line.startswith("  File ") for line in err) == frames
        assert err[1] == place


def test_dumps_are_accounted_for_once_at_the_end(run):
    program = """
        from dumpsim.dump.job import JobAccounts
        from dumpsim.world.context import current
        print(current().world.get(JobAccounts).reported)
    """
    assert run(program, ranks=1)[1] == ["True"]  # so that no dump registers a report of its own


MEET = """
from dumpsim.device.scheduler import Scheduler
from dumpsim.world.context import current
from dumpsim.world.ending import RankKilled
rank, hosts = current().rank, current().world.get(Scheduler).hosts
"""


@pytest.mark.parametrize(
    ("program", "code", "ends"),
    [
        ("if rank:\n    raise OSError('x')\nhosts.switch(0)", 1, "rank 0: stopped, rank 1: OSError, exit code 1"),
        ("if rank:\n    raise RankKilled('x')", 1, "rank 0: exit code 0, rank 1: killed"),
    ],
)
def test_ranks_that_are_stopped_or_killed_are_said_to_be(run, program, code, ends):
    found, _, err = run(MEET + program)
    assert (found, err[-1]) == (code, f"dumpsim: {ends}")


def test_errors_of_other_ranks_have_a_line_each(run, capsys):
    """The error of the launch is shown whole; those of the other ranks by their first lines, in order of rank."""
    job = LocalJob(["net.py"], 3)
    first = OSError("one\ntwo")
    job.errors = {2: KeyError("c"), 0: ValueError("a\nb"), 1: first}
    job._show(first)
    assert capsys.readouterr() == ("", "OSError: one\ntwo\nrank 0: ValueError: a\nrank 2: KeyError: 'c'\n")


def test_each_rank_has_modules_and_lists_of_its_own(run, tmp_path, monkeypatch):
    (tmp_path / "helper.py").write_text("import os\nrank, count = os.environ['RANK_ID'], []\n")
    (tmp_path / "space").mkdir()  # a package without __init__.py
    (tmp_path / "space" / "part.py").write_text("import helper\nrank = helper.rank\n")
    (tmp_path / "target" / "thing-1.dist-info").mkdir(parents=True)  # of pip install --target
    (tmp_path / "target" / "thing.py").write_text("count = []\n")
    program = """
        import os, sys
        rank = os.environ["RANK_ID"]
        sys.path.append("target")
        sys.argv.append(rank)
        import helper, space.part, thing, json, wave
        helper.count.append(rank)
        thing.count.append(rank)
        sys.modules["__main__"].mine = rank
        from dumpsim.device.scheduler import Scheduler
        from dumpsim.world.context import current
        hosts = current().world.get(Scheduler).hosts
        hosts.wake(1 - int(rank))
        hosts.switch(int(rank))
        assert sys.modules["helper"] is helper and sys.modules["space.part"] is space.part
        print(helper.rank, space.part.rank, helper.count, thing.count, mine, sys.argv[1:], "target" in sys.path)
    """
    before, paths = set(sys.modules), sys.path
    code, out, err = run(program)
    assert (code, out, err) == (0, [
        "[0] 0 0 ['0'] ['0', '1'] 0 ['0'] True", "[1] 1 1 ['1'] ['0', '1'] 1 ['1'] True",
    ], [])  # fmt: skip
    assert not {"helper", "space", "space.part"} & set(sys.modules)
    assert sys.modules["__main__"].__name__ == "__main__"
    assert not hasattr(sys.modules["__main__"], "mine")
    assert sys.path is paths
    assert sys.argv == ["localjob"]
    for name in set(sys.modules) - before - {"wave"}:
        if name == "thing":
            del sys.modules[name]  # shared, as every installed package is
    assert not [finder for finder in sys.meta_path if isinstance(finder, RankModules)]


def test_the_command_line(monkeypatch, tmp_path, capsys):
    (tmp_path / "net.py").write_text("import sys\nprint(sys.argv)\nsys.exit(3 * (sys.argv[1:] != []))")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, RunSettings(quiet=True).to_text())
    for words, code in (([], 0), (["a", "-b"], 3)):
        monkeypatch.setattr(sys, "argv", ["localjob", "1", "net.py", *words])
        with pytest.raises(SystemExit) as caught:
            localjob.main()
        assert caught.value.code == code
        assert capsys.readouterr() == (f"{['net.py', *words]}\n", "")


def test_while_ranks_share_the_process_what_needs_one_is_refused_and_then_allowed_again(run):
    before = signal.signal, atexit.register, threading.Thread.start, multiprocessing.process.BaseProcess.start
    program = """
        import atexit, signal, os
        old = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        assert signal.signal(signal.SIGUSR1, old) == signal.SIG_IGN
        assert signal.signal(signal.SIGUSR1, signal.default_int_handler) == old
        assert signal.signal(signal.SIGUSR1, old) == signal.default_int_handler
        def handle():
            signal.signal(signal.SIGUSR1, print)
        for action in (lambda: handle(), os.fork, os.forkpty):
            try:
                action()
            except NotImplementedError as error:
                print(error)
        try:
            signal.signal(signal.SIGUSR1, print)
        except NotImplementedError as error:
            print(error)
        mine = lambda *words, **more: print(words, more)
        assert atexit.register(mine, 1, two=3) is mine
    """
    more = "; dumpsim msrun gives each rank a process of its own"
    shared = f"a script whose ranks share a process cannot fork{more}"
    assert run(program, ranks=1) == (0, [
        f"signal.signal: ranks that share a process cannot each handle SIGUSR1{more}", f"os.fork: {shared}",
        f"os.forkpty: {shared}",
        f"signal.signal: ranks that share a process cannot each handle SIGUSR1{more}", "(1,) {'two': 3}",
    ], [])  # fmt: skip
    after = signal.signal, atexit.register, threading.Thread.start, multiprocessing.process.BaseProcess.start
    assert before == after
    pid = os.fork()  # allowed again
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_library_that_a_script_calls_may_handle_signals(run):
    before = signal.getsignal(signal.SIGINT)
    program = """
        import unittest
        unittest.installHandler()
        unittest.removeHandler()
    """
    assert run(program, ranks=1) == (0, [], [])
    assert signal.getsignal(signal.SIGINT) == before


def test_a_fork_is_refused_only_inside():
    before = os.fork, os.forkpty
    with _Guard():
        for name in ("fork", "forkpty"):
            with pytest.raises(UnsupportedError, match=f"^os.{name}: a script whose ranks share a process cannot fork"):
                getattr(os, name)()
    assert before == (os.fork, os.forkpty)


def test_modules_of_others_register_and_handle_as_before():
    """What dumpsim itself registers while a script runs is the process's."""
    registered = []
    with _Guard():
        assert atexit.register(registered.append) == registered.append
        atexit.unregister(registered.append)
        before = signal.signal(signal.SIGUSR2, print)
        assert signal.signal(signal.SIGUSR2, before) is print
        with pytest.raises(UnsupportedError, match="multiprocessing: ranks that share a process cannot start 'own'"):
            multiprocessing.Process(name="own").start()


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [(None, 0, ""), (0, 0, ""), (255, 255, ""), (256, 0, ""), (-1, 255, ""), ("why", 1, "why\n"), ((), 1, "()\n")],
)
def test_codes_of_exits_are_those_of_a_shell(capsys, given, code, said):
    assert _exit_code(given) == code
    assert capsys.readouterr().err == said


def test_a_thread_has_the_variables_of_its_starter(run):
    program = """
        import threading
        from dumpsim.world.context import current
        found = []
        thread = threading.Thread(target=lambda: found.append(current().rank))
        thread.start()
        thread.join()
        print(found)
    """
    assert run(program)[1] == ["[0] [0]", "[1] [1]"]
