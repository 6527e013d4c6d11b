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
from dumpsim.emulate.localjob import LocalJob, _exit_code, _Guard


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
    for name in ("bare", "nowhere"):
        code, _, err = run("", "-m", name, ranks=1)
        assert (code, any(f"the module {name!r} does not exist" in line for line in err)) == (1, True)


def test_while_ranks_share_the_process_what_needs_one_is_refused_and_then_allowed_again(run):
    before = signal.signal, atexit.register, threading.Thread.start, multiprocessing.process.BaseProcess.start
    program = """
        import atexit, signal, os
        old = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        assert signal.signal(signal.SIGUSR1, old) == signal.SIG_IGN
        assert signal.signal(signal.SIGUSR1, signal.default_int_handler) == old
        assert signal.signal(signal.SIGUSR1, old) == signal.default_int_handler
        for action in (lambda: signal.signal(signal.SIGUSR1, print), os.fork, os.forkpty):
            try:
                action()
            except NotImplementedError as error:
                print(error)
        mine = lambda *words, **more: print(words, more)
        assert atexit.register(mine, 1, two=3) is mine
    """
    more = "; dumpsim msrun gives each rank a process of its own"
    shared = f"a script whose ranks share a process cannot fork{more}"
    assert run(program, ranks=1) == (0, [
        f"signal.signal: ranks that share a process cannot each handle SIGUSR1{more}", f"os.fork: {shared}",
        f"os.forkpty: {shared}", "(1,) {'two': 3}",
    ], [])  # fmt: skip
    after = signal.signal, atexit.register, threading.Thread.start, multiprocessing.process.BaseProcess.start
    assert before == after
    pid = os.fork()  # allowed again
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


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
