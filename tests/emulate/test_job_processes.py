"""The processes of a job, started from a plan made by hand: shells instead of scripts."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.emulate import processes, processjob, scheduler
from dumpsim.emulate.binding import SCHEDULER
from dumpsim.emulate.processes import SUMMARY, Job, _Child, _signal_name, _Tail
from dumpsim.emulate.processjob import run_processes


class Plan(SimpleNamespace):
    """What a job needs of a plan."""

    def log(self, rank):
        return os.path.join(self.options.log_dir, "scheduler.log" if rank == SCHEDULER else f"worker_{rank}.log")

    def environment(self, rank):
        return {"RANK_ID": str(rank)}


def job(folder, script, *, ranks=(0, 1), cpus=None, plain=False, quiet=False, **options):
    given = {"log_dir": str(folder / "logs"), "join": True, "command": ["net.py"], "worker_num": len(ranks),
             "cluster_time_out": 1}  # fmt: skip
    plan = Plan(
        warnings=["a warning"], options=SimpleNamespace(**given | options), ranks=ranks, tailed=ranks, scheduler=False,
        claim=None, command=["/bin/sh", "-c", script], binding=SimpleNamespace(cpus=lambda local: cpus),
    )  # fmt: skip
    chosen = {name: True for name, on in (("plain", plain), ("quiet", quiet)) if on}
    return Job(plan, {"PATH": os.environ["PATH"]}, **chosen)


def test_a_job_shows_what_its_workers_write_and_how_they_end(tmp_path, capfd):
    found = job(tmp_path, "echo out $RANK_ID; echo err >&2; printf unfinished; exit 0")
    assert (found.run(), found.code) == (0, 0)
    out, err = capfd.readouterr()
    lines = out.splitlines()
    log = str(tmp_path / "logs" / "worker_1.log")
    assert (
        f"Start worker process with rank id:1, log file:{log}. Environment variable [RANK_ID=1] is exported. "
        "Execute command: python net.py"
    ) in lines
    assert sorted(line for line in lines if not line.startswith("Start")) == [
        "err", "err", "out 0", "out 1", "unfinished", "unfinished"
    ]  # fmt: skip
    assert err.splitlines() == [
        "dumpsim msrun: a warning", "dumpsim msrun: Distributed job is spawned. Waiting all processes to exit...",
        "dumpsim: ranks 0-1: exit code 0",
    ]  # fmt: skip
    told = json.loads((tmp_path / "logs" / SUMMARY).read_text())
    assert [(one["rank"], one["exit_code"], one["log"]) for one in told["ranks"]] == [
        (rank, 0, str(tmp_path / "logs" / f"worker_{rank}.log")) for rank in (0, 1)
    ]
    assert not os.path.exists(found._accounts)


def test_a_plain_job_has_ranks_in_front_and_two_outputs(tmp_path, capfd):
    found = job(tmp_path, "echo out; echo err >&2; exit 3", ranks=(4,), plain=True)
    assert (found.run(), found.code) == (1, 3)
    out, err = capfd.readouterr()
    assert out == "[4] out\n"
    assert err == "[4] err\ndumpsim: rank 4: exit code 3\n"
    assert not (tmp_path / "logs" / SUMMARY).exists()
    assert job(tmp_path, "true", ranks=(4,), plain=True).run() == 0
    assert capfd.readouterr() == ("", "")  # all is well
    assert job(tmp_path, "exit 1", ranks=(4,), plain=True, quiet=True).run() == 1
    assert capfd.readouterr() == ("", "")


def test_the_first_that_fails_ends_the_others(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(processes, "_GRACE_S", 0.0)
    found = job(tmp_path, "[ $RANK_ID = 1 ] && exit 9; exec sleep 100")
    assert (found.run(), found.code) == (1, 9)
    err = capfd.readouterr().err
    pid = found._workers[1].process.pid
    assert f"dumpsim msrun: Worker process {pid} exit with exception: rank 1, exit code 9.\n" in err
    assert "dumpsim msrun: There's worker exits with exception, kill all other workers.\n" in err
    assert "dumpsim: rank 0: killed: another worker has failed, rank 1: exit code 9\n" in err
    where = tmp_path / "logs"
    assert err.endswith(f"Distributed job exited with exception. Please check logs in directory: {where}.\n")


def test_a_signal_of_the_launcher_ends_all(tmp_path, capfd, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    for plain, number, code in ((False, signal.SIGTERM, 143), (False, signal.SIGINT, 0), (True, signal.SIGINT, 130)):
        monkeypatch.setattr(Job, "_look", lambda self, running, number=number: os.kill(os.getpid(), number))
        found = job(tmp_path, "exec sleep 100", ranks=(0,), plain=plain)
        assert found.run() == code
        name = signal.Signals(number).name
        err = capfd.readouterr().err
        assert f"dumpsim: rank 0: killed: the launcher got {name}\n" in err
        assert (f"dumpsim msrun: {name}: all processes are killed\n" in err) is not plain
    assert signal.getsignal(signal.SIGTERM) == before


def test_signals_while_a_job_ends_are_ignored(tmp_path, capfd, monkeypatch):
    found = job(tmp_path, "exec sleep 100", ranks=(0,))
    monkeypatch.setattr(found, "_look", lambda running: os.kill(os.getpid(), signal.SIGTERM))
    kill, seen = found._kill, []

    def interrupted(why, children=None):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            seen.append(signal.getsignal(number))
        os.kill(os.getpid(), signal.SIGHUP)
        kill(why, children)

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    monkeypatch.setattr(found, "_kill", interrupted)
    assert found.run() == 143
    assert seen[:3] == [signal.SIG_IGN] * 3
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
    assert "dumpsim: rank 0: killed: the launcher got SIGTERM\n" in capfd.readouterr().err


def test_a_launcher_that_fails_leaves_nothing_behind(tmp_path, capfd, monkeypatch):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    found = job(tmp_path, "exec sleep 100")
    found.plan.tailed = ()

    def fail(*, stop):
        assert stop is True
        raise RuntimeError("a defect")

    monkeypatch.setattr(found, "_wait", fail)
    with pytest.raises(RuntimeError, match="a defect"):
        found.run()
    assert [child.ending for child in found._workers] == ["killed: the launcher failed"] * 2
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
    assert not os.path.exists(found._accounts)


@pytest.mark.parametrize("join", [True, False])
def test_a_job_that_finds_no_room_says_so(tmp_path, capfd, monkeypatch, forked, join):
    def refuse(prefix):
        raise OSError(28, "No space left on device", "/tmp")

    monkeypatch.setattr(processes.tempfile, "mkdtemp", refuse)
    found = job(tmp_path, "true", join=join)
    if join:
        with pytest.raises(OSError, match=r"^\[Errno 28\] No space left on device: '/tmp'$"):
            found.run()
        return
    assert found.run() == 1
    assert os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]) == 1
    err = capfd.readouterr().err
    assert err.endswith("OSError: [Errno 28] No space left on device: '/tmp'\n")
    assert err.count("Traceback") == 1


def test_logs_of_a_job_without_a_directory_are_in_the_working_one(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert job(tmp_path, "exit 3", ranks=(0,), log_dir="").run() == 1
    assert capfd.readouterr().err.endswith("exited with exception. Please check logs in directory: ..\n")
    assert sorted(os.listdir(tmp_path)) == [SUMMARY, "worker_0.log"]


def test_processes_have_sessions_of_their_own_and_cpus_by_their_places(tmp_path):
    """The scheduler gets the words of its launcher, workers no input at all."""
    asked = []
    script = "echo ${RANK_ID} ${DUMPSIM_JOB_LAUNCHER}; echo err >&2; read word; echo got $word; exec sleep 100"
    for plain in (False, True):
        one = job(tmp_path / str(plain), "", ranks=(4, 5), plain=plain)
        os.makedirs(one.plan.options.log_dir)
        one.plan.binding = SimpleNamespace(cpus=lambda local: asked.append(local))
        one._accounts = str(tmp_path / "accounts")
        logs = [Path(one.plan.log(rank)) for rank in (SCHEDULER, 5)]
        command = ["/bin/sh", "-c", script]
        children = [one._child(rank, command, one.plan.log(rank)) for rank in (SCHEDULER, 5)]
        children[0].process.stdin.write(b"a word\n")
        children[0].process.stdin.flush()
        assert children[1].process.stdin is None
        deadline = time.monotonic() + 10
        while not all("got" in log.read_text() for log in logs) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [os.getsid(child.process.pid) for child in children] == [child.process.pid for child in children]
        one._kill("a test", children)
        assert [child.killed for child in children] == ["a test"] * 2
        assert not os.path.exists(f"/proc/{children[0].process.pid}")
        left = [str(tmp_path / "accounts"), *([one.plan.options.log_dir] if plain else [])]
        told = json.dumps([os.getpid(), left])
        assert logs[0].read_text() == f"-1 {told}\nerr\ngot a word\n"
        assert logs[1].read_text() == ("5\ngot\n" if plain else "5\nerr\ngot\n")
        assert os.path.exists(f"{logs[1]}.err") is plain
        assert not os.path.exists(f"{logs[0]}.err")
        children[0].process.stdin.close()
    assert asked == [SCHEDULER, 1] * 2


def test_a_process_ends_with_its_launcher_and_has_its_cpus(monkeypatch):
    """PR_SET_PDEATHSIG is 1, SIGKILL 9. [prctl(2)]"""
    done = []
    monkeypatch.setattr(
        processes, "_LIBC", SimpleNamespace(prctl=lambda *given: done.append(("prctl", *map(int, given))))
    )
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: done.append(("cpus", pid, cpus)))
    monkeypatch.setattr(os, "_exit", lambda code: done.append(("exit", code)))
    processes._prepare(os.getppid(), (), bound=False)
    assert done == []
    processes._prepare(os.getppid(), (3, 5), bound=True)
    assert done == [("prctl", 1, 9), ("cpus", 0, (3, 5))]
    done.clear()
    processes._prepare(os.getpid(), (), bound=False)
    assert done == [("exit", 1)]


@pytest.fixture
def forked(monkeypatch):
    """The process that a job starts in the background."""
    pids, fork = [], os.fork

    def noted():
        pids.append(fork())
        return pids[-1]

    monkeypatch.setattr(os, "fork", noted)
    return pids


def test_a_job_in_the_background_leaves_an_account_of_its_end(tmp_path, capfd, forked):
    found = job(tmp_path, "echo out $RANK_ID; exit $RANK_ID", join=False)
    assert found.run() == 0
    (pid,) = forked
    assert os.getsid(pid) == pid  # it does not end with the terminal
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    out, err = capfd.readouterr()
    assert [line.partition(",")[0] for line in out.splitlines()] == [
        f"Start worker process with rank id:{rank}" for rank in (0, 1)
    ]
    assert err.startswith("dumpsim msrun: a warning\n")
    for rank in (0, 1):
        assert (tmp_path / "logs" / f"worker_{rank}.log").read_text() == f"out {rank}\n"
    told = json.loads((tmp_path / "logs" / SUMMARY).read_text())
    assert [(one["ending"], one["exit_code"]) for one in told["ranks"]] == [("exit code 0", 0), ("exit code 1", 1)]
    assert "scheduler" not in told


def test_a_job_in_the_background_that_cannot_start_says_so(tmp_path, capfd, forked):
    found = job(tmp_path, "", join=False, ranks=(0,))
    found.plan.command = ["/no/such/program"]
    assert found.run() == 1
    assert os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]) == 1
    assert "FileNotFoundError" in capfd.readouterr().err


def test_what_was_printed_before_a_job_in_the_background_is_printed_once(tmp_path, monkeypatch, forked):
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        print("before")
        print("before", file=sys.stderr)
        one = job(tmp_path, "exit 3", join=False, ranks=(0,))
        one.plan.warnings = []
        assert one.run() == 0
        os.waitpid(forked[0], 0)
    lines = (tmp_path / "out").read_text().splitlines()
    assert [line.partition(",")[0] for line in lines] == ["before", "Start worker process with rank id:0"]
    first, second = (tmp_path / "err").read_text().splitlines()
    assert first == "before"
    assert second.endswith("exit with exception: rank 0, exit code 3.")


def test_no_descriptor_of_the_launcher_stays_open_and_no_output_is_lost_in_the_background(tmp_path, forked):
    before = sorted(os.listdir("/proc/self/fd"))
    assert job(tmp_path, "true", join=False, ranks=(0,)).run() == 0
    assert sorted(os.listdir("/proc/self/fd")) == before
    os.waitpid(forked[0], 0)


@pytest.fixture
def terminals(tmp_path, capfd):
    """The three standard descriptors are a file."""
    before = [os.dup(number) for number in range(3)]
    with open(tmp_path / "terminal", "w+b") as file:
        for number in range(3):
            os.dup2(file.fileno(), number)
        yield
        for number, descriptor in enumerate(before):
            os.dup2(descriptor, number)
            os.close(descriptor)


def test_a_job_in_the_background_has_no_terminal(tmp_path, terminals, forked):
    """And its launcher does not wait for its end."""
    script = f"for _ in $(seq 1000); do [ -e {tmp_path}/go ] && exit 0; sleep 0.01; done; exit 1"
    assert job(tmp_path, script, join=False, ranks=(0,)).run() == 0
    try:
        assert [os.readlink(f"/proc/{forked[0]}/fd/{number}") for number in range(3)] == ["/dev/null"] * 3
    finally:
        (tmp_path / "go").touch()
        assert os.waitpid(forked[0], 0)[1] == 0


def test_a_job_in_the_background_that_fails_leaves_nothing_behind(tmp_path, capfd, forked, monkeypatch):
    # a child of the worker, which does not end with the launcher by itself
    found = job(tmp_path, f"sleep 100 & echo $! > {tmp_path}/pid; wait", join=False, ranks=(0,))

    def fail(*, stop):
        assert stop is False
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.01)
        (tmp_path / "accounts").write_text(found._accounts)
        raise RuntimeError("a defect")

    monkeypatch.setattr(found, "_wait", fail)
    assert found.run() == 0  # it has started
    assert os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]) == 1
    assert not os.path.exists((tmp_path / "accounts").read_text())
    child = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    deadline = time.monotonic() + 5
    while child.exists() and ") Z " not in child.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_the_others_of_a_job_in_the_background_run_on(tmp_path, capfd, forked):
    script = "[ $RANK_ID = 0 ] && exit 4; sleep 0.05; echo done"
    assert job(tmp_path, script, join=False).run() == 0
    assert os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]) == 1
    assert (tmp_path / "logs" / "worker_1.log").read_text() == "done\n"


def test_the_end_of_a_job_in_the_background_is_in_the_log_of_its_scheduler(tmp_path, capfd):
    one = job(tmp_path, "", join=False, ranks=(0, 1))
    (tmp_path / "accounts").mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "log").write_text("before\n")
    one._accounts = str(tmp_path / "accounts")
    one._workers = [_Child(rank, Process(code), f"log {rank}") for rank, code in ((0, 0), (1, -9))]
    one._scheduler = _Child(SCHEDULER, Process(2), str(tmp_path / "log"))
    one._finish()
    assert (tmp_path / "log").read_text() == "before\ndumpsim: rank 0: exit code 0, rank 1: killed by SIGKILL\n"
    assert capfd.readouterr() == ("", "")
    assert json.loads((tmp_path / "logs" / SUMMARY).read_text()) == {
        "ranks": [
            {"rank": 0, "ending": "exit code 0", "dumps": [], "exit_code": 0, "log": "log 0"},
            {"rank": 1, "ending": "killed by SIGKILL", "dumps": [], "exit_code": -9, "log": "log 1"},
        ],
        "scheduler": {"ending": "exit code 2", "exit_code": 2},
    }


def test_a_job_gives_up_with_its_scheduler(tmp_path, capfd, monkeypatch):
    """A scheduler that fails ends the workers that run; without `stop` they go on."""
    monkeypatch.setattr(processes, "_GRACE_S", 0.0)
    monkeypatch.setattr(processes, "_LOOK_S", 0.001)
    (tmp_path / "logs").mkdir()
    one = job(tmp_path, "exec sleep 100", ranks=(0,))
    one._start()
    one._scheduler = _Child(SCHEDULER, Process(3), "log")
    assert one._wait(stop=True) is True
    assert one._workers[0].ending == "killed: the scheduler has given up"
    assert one._scheduler.process.stdin.getvalue() == b"0 killed: the scheduler has given up\n"
    assert one.code == 0  # no worker has failed by itself
    one._finish()


def test_only_the_ranks_that_are_asked_for_are_shown(tmp_path, capfd):
    one = job(tmp_path, "echo out $RANK_ID")
    one.plan.tailed = (1,)
    assert one.run() == 0
    assert [line for line in capfd.readouterr().out.splitlines() if line.startswith("out")] == ["out 1"]


def test_processes_of_dumpsim_run_are_those_of_msrun_on_a_private_address(monkeypatch, tmp_path):
    made = []

    class Made:
        code = 0

        def __init__(self, plan, environment, **options):
            made.append((plan, environment, options))

        def run(self):
            assert os.path.isdir(made[-1][0].options.log_dir)
            return 1

    monkeypatch.setattr(processjob, "Job", Made)
    (tmp_path / "train.py").write_text("")
    script = str(tmp_path / "train.py")
    assert run_processes([script, "x"], 3, {"MS_TOPO_TIMEOUT": "7"}) == 1
    Made.code = 9
    assert run_processes(["-m", "pack", "y"], 2, {}, quiet=True) == 9
    (first, environment, options), (second, _, quiet) = made
    assert (environment, options, quiet) == (
        {"MS_TOPO_TIMEOUT": "7"}, {"quiet": False, "plain": True}, {"quiet": True, "plain": True}
    )  # fmt: skip
    assert first.command == (sys.executable, script, "x")
    assert second.command == (sys.executable, "-m", "pack", "y")
    for plan, size, limit in ((first, 3, 7), (second, 2, 600)):
        assert (plan.ranks, plan.tailed) == (tuple(range(size)),) * 2
        assert (plan.options.worker_num, plan.options.local_worker_num) == (size, size)
        assert (plan.options.join, plan.options.cluster_time_out, plan.scheduler) == (True, limit, True)
        assert (plan.address, plan.warnings, plan.claim, plan.binding.cpus(0)) == ("127.0.0.1", (), None, ())
        assert not os.path.exists(plan.options.log_dir)
        assert plan.hub.startswith("unix:@dumpsim-")
        assert (len(plan.hub), len(plan.token)) == (14 + 16, 32)
    assert first.hub != second.hub
    assert first.token != second.token


SIGNAL = """
import ctypes, os
number = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(number))  # PR_GET_PDEATHSIG
print(os.sched_getaffinity(0), number.value, flush=True)
"""


def test_workers_are_bound_and_end_with_their_launcher_and_a_scheduler_ends_by_itself(tmp_path, capfd):
    one = min(os.sched_getaffinity(0))
    found = job(tmp_path, f'exec {sys.executable} -c "{SIGNAL}"', ranks=(0,), cpus={one}, plain=True)
    assert found.run() == 0
    assert capfd.readouterr().out == f"[0] {{{one}}} 9\n"
    os.makedirs(found.plan.options.log_dir, exist_ok=True)
    scheduler = found._child(SCHEDULER, found.plan.command, found.plan.log(SCHEDULER))
    scheduler.process.communicate()
    assert Path(scheduler.log).read_text() == f"{{{one}}} 0\n"


class Process:
    """A process of which only the end is known."""

    def __init__(self, *codes, pid=77):
        self.codes, self.pid, self.returncode, self.stdin = list(codes), pid, None, io.BytesIO()

    def poll(self):
        self.returncode = self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]
        return self.returncode

    def wait(self, timeout=None):
        if timeout is not None:
            raise subprocess.TimeoutExpired("sh", timeout)


@pytest.mark.parametrize(
    ("code", "killed", "ending", "shell"),
    [(None, "", "", 0), (0, "", "exit code 0", 0), (7, "", "exit code 7", 7), (-9, "", "killed by SIGKILL", 137),
     (-15, "a reason", "killed: a reason", 143), (-60, "", "killed by signal 60", 188)],
)  # fmt: skip
def test_how_a_process_ended(code, killed, ending, shell):
    child = _Child(0, Process(code), "log", killed=killed)
    assert (child.ending, child.code) == (ending, shell)


def test_numbers_of_signals_without_a_name():
    assert (_signal_name(2), _signal_name(200)) == ("SIGINT", "signal 200")


def test_whole_lines_are_shown_and_the_last_one_at_the_end(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"one\ntw")
    output = io.TextIOWrapper(io.BytesIO())
    tail = _Tail.of(str(path), output, b"> ")
    tail.show()
    assert output.buffer.getvalue() == b"> one\n"
    with open(path, "ab") as file:
        file.write(b"o\n\nthr\xff")
    tail.show()
    assert output.buffer.getvalue() == b"> one\n> two\n> \n"
    tail.show(last=True)
    tail.show(last=True)
    assert output.buffer.getvalue() == b"> one\n> two\n> \n> thr\xff\n"
    path.write_bytes(b"done\n")
    tail = _Tail.of(str(path), output, b"")
    tail.show(last=True)
    assert output.buffer.getvalue().endswith(b"thr\xff\ndone\n")


def test_what_was_printed_before_a_log_stays_before_it_and_is_seen_at_once(tmp_path):
    (tmp_path / "log").write_bytes(b"one\ntwo\n")
    with open(tmp_path / "shown", "w") as output:
        print("first", file=output)
        _Tail.of(str(tmp_path / "log"), output, b"").show(last=True)
        assert (tmp_path / "shown").read_text() == "first\none\ntwo\n"


def test_logs_are_shown_while_workers_run(tmp_path, capfd):
    (tmp_path / "log").write_bytes(b"one\n")
    found = job(tmp_path, "")
    with open(tmp_path / "log", "rb") as file:
        found._workers = [_Child(0, Process(None), "log", shown=[_Tail(file, sys.stdout, b"> ")])]
        found._look([])
    assert capfd.readouterr().out == "> one\n"


def test_a_scheduler_is_told_once_of_each_end_and_its_failure_is_the_jobs(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(processes, "_PATIENCE_S", -1.0)
    one = job(tmp_path, "")
    for codes, failed in (((None, 0), False), ((None, 2), True), ((None, None, None), False)):
        one._scheduler = _Child(SCHEDULER, Process(*codes), "log")
        one._reported.clear()
        for _ in range(2):
            one._notify_scheduler(3, "exit code 7")
        assert one._scheduler.process.stdin.getvalue() == b"3 exit code 7\n"
        monkeypatch.setattr(os, "killpg", lambda pid, number: None)
        if codes[1] is None:
            assert one._end_scheduler() is False
            assert one._scheduler.killed == "its workers have ended"
            continue
        one._scheduler.process.codes[0:1] = []
        assert one._end_scheduler() is failed
        said = "dumpsim msrun: Scheduler process 77 exit with exception.\n"
        assert capfd.readouterr().err == (said if failed else "")
    one._scheduler = None
    assert one._end_scheduler() is False


class Steady(Process):
    """A process that runs until it is killed."""

    def __init__(self, pid=77):
        super().__init__(None, pid=pid)
        self.waits = []

    def wait(self, timeout=None):
        self.waits.append(timeout)
        super().wait(timeout)


@pytest.fixture
def kills(monkeypatch):
    killed = []
    monkeypatch.setattr(os, "killpg", lambda pid, number: killed.append((pid, number)))
    return killed


@pytest.mark.parametrize("by", ["worker", "scheduler"])
@pytest.mark.parametrize("stop", [True, False])
def test_workers_have_two_seconds_after_the_first_failure(tmp_path, capfd, monkeypatch, kills, stop, by):
    """The logs are looked at each half second; the others end by themselves at the twelfth look."""
    one, now, looks = job(tmp_path, ""), [50.0], []
    others = [Steady(pid=5), Steady(pid=6)]

    def look(running):
        looks.append([child.rank for child in running])
        now[0] += 0.5
        if kills or len(looks) == 12:
            for process in others:
                process.codes = [-9 if kills else 0]

    monkeypatch.setattr(one, "_look", look)
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: now[0]))
    one._workers = [_Child(rank, process, f"log {rank}") for rank, process in enumerate(others)]
    if by == "worker":
        one._workers.append(_Child(2, Process(3), "log 2"))
    else:
        one._scheduler = _Child(SCHEDULER, Process(None, None, 4), "log")
        one._end_scheduler = lambda: False
    assert one._wait(stop=stop) is True
    first = 1 if by == "worker" else 3
    assert len(looks) == (first + 5 + 1 if stop else 12)  # 2.5 s after the failure, and once more
    assert kills == ([(5, 9), (6, 9)] if stop else [])
    why = "another worker has failed" if by == "worker" else "the scheduler has given up"
    assert [child.ending for child in one._workers[:2]] == [f"killed: {why}" if stop else "exit code 0"] * 2
    assert one.code == (3 if by == "worker" else 0)
    said = ["dumpsim msrun: Worker process 77 exit with exception: rank 2, exit code 3."] * (by == "worker")
    said += ["dumpsim msrun: There's worker exits with exception, kill all other workers."] * stop
    assert capfd.readouterr().err.splitlines() == said


def test_the_code_of_a_job_is_that_of_the_first_failure(tmp_path, capfd):
    one = job(tmp_path, "", plain=True)
    one._workers = [_Child(0, Process(None, 5), "log"), _Child(1, Process(0), "log"), _Child(2, Process(-9), "log")]
    one._look = lambda running: None
    assert one._wait(stop=True) is True
    assert one.code == 137
    assert one._reported == {0, 1, 2}
    one._workers = [_Child(0, Process(0), "log")]
    assert one._wait(stop=True) is False


def test_a_scheduler_has_ten_seconds_to_end_after_its_workers(tmp_path, monkeypatch, kills):
    one, process = job(tmp_path, "", plain=True), Steady(pid=9)
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: 100.0 + len(process.waits)))
    one._scheduler = _Child(SCHEDULER, process, "log")
    assert one._end_scheduler() is False
    assert process.waits == [0.1] * 11 + [None]  # then it was killed
    assert kills == [(9, 9)]
    one._scheduler = _Child(SCHEDULER, Process(None, None, 0), "log")
    assert one._end_scheduler() is False
    assert one._scheduler.killed == ""


def test_logs_are_read_ten_times_a_second_or_when_a_process_ends(tmp_path, monkeypatch):
    polls, registered = [], []
    made = SimpleNamespace(poll=polls.append, register=lambda fd, events: registered.append((os.fstat(fd), events)))
    monkeypatch.setattr(processes, "select", SimpleNamespace(poll=lambda: made, POLLIN=17))
    before = len(os.listdir("/proc/self/fd"))
    one = job(tmp_path, "")
    one._look([_Child(0, Process(None, pid=os.getpid()), "log"), _Child(1, Process(None, pid=2**22 + 1), "log")])
    assert polls == [100]  # ms
    assert [events for _, events in registered] == [17]  # the other one has ended
    assert len(os.listdir("/proc/self/fd")) == before


def test_ends_go_to_the_launcher_that_has_the_scheduler_and_come_from_the_others(tmp_path):
    said, waited = [], []
    claim = SimpleNamespace(
        report=lambda rank, ending: said.append((rank, ending)), wait_for_scheduler=waited.append,
        reports=lambda: {5: "exit code 1"},
    )  # fmt: skip
    one = job(tmp_path, "", cluster_time_out=30)
    one.plan.claim = claim
    one._notify_scheduler(0, "exit code 0")
    assert (said, one._end_scheduler(), waited) == ([(0, "exit code 0")], False, [30])
    one._scheduler = _Child(SCHEDULER, Process(None, 0), "log")
    assert one._end_scheduler() is False
    assert one._scheduler.process.stdin.getvalue() == b"5 exit code 1\n"


def test_a_scheduler_is_told_of_an_end_at_once(tmp_path):
    read, write = os.pipe()
    os.set_blocking(read, False)
    one = job(tmp_path, "")
    one._scheduler = _Child(SCHEDULER, Process(None), "log")
    with open(read, "rb", buffering=0) as pipe, open(write, "wb") as one._scheduler.process.stdin:
        one._notify_scheduler(3, "exit code 7")
        assert pipe.read() == b"3 exit code 7\n"


def test_a_job_that_fails_shows_the_errors_of_its_scheduler(tmp_path, capfd, monkeypatch):
    one = job(tmp_path, "exit 1", ranks=(0,))
    start = one._start

    def started():
        start()
        (tmp_path / "log").write_text("all is well\nERROR: rank 0 has left\n")
        one._scheduler = _Child(SCHEDULER, Process(0), str(tmp_path / "log"))

    monkeypatch.setattr(one, "_start", started)
    assert one.run() == 1
    assert capfd.readouterr().out.splitlines()[1:] == ["all is well", "ERROR: rank 0 has left"]


def test_the_accounts_of_the_ranks_are_those_of_the_job(tmp_path, capfd):
    account = {"path": "/d/rank_0", "asked": 3, "captured": 3, "skipped": [], "tensors": 3, "rows": 0,
               "files": 5, "bytes": 1000, "failed": False, "notes": [], "following": ""}  # fmt: skip
    texts = [json.dumps({"rank": rank, **account}) for rank in (0, 1)]
    for rank, text in enumerate(texts):
        (tmp_path / f"{rank}").write_text(text)
    assert job(tmp_path, f"cp {tmp_path}/$RANK_ID $DUMPSIM_JOB/rank_$RANK_ID.json").run() == 0
    assert "  ranks 0-1: asked 3, captured 3, written 3 tensors; 5 files\n" in capfd.readouterr().err
    told = json.loads((tmp_path / "logs" / SUMMARY).read_text())
    assert [[dump["asked"] for dump in one["dumps"]] for one in told["ranks"]] == [[3], [3]]


def test_errors_in_the_log_of_the_scheduler_are_shown_with_the_lines_around(tmp_path, capfd):
    one = job(tmp_path, "")
    one._show_errors()
    log = tmp_path / "log"
    for bad, shown in (([12], range(7, 18)), ([1, 3], range(9)), ([29], range(24, 30)), ([], ())):
        lines = [f"{n} {'ERROR' if n in bad else 'fine'}" for n in range(30)]
        log.write_text("\n".join(lines))
        one._scheduler = _Child(SCHEDULER, Process(1), str(log))
        one._show_errors()
        assert capfd.readouterr().out.splitlines() == [lines[n] for n in shown]
    one._plain = True
    log.write_text("ERROR")
    one._show_errors()
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [("left", "x", "rank 3 has ended"), ("died", "exit code 0", "rank 3 has ended"),
     ("died", "exit code 1", "ERROR: rank 3 has died: exit code 1")],
)  # fmt: skip
def test_the_scheduler_logs_ends(capsys, kind, text, line):
    scheduler._report(3, SimpleNamespace(kind=kind, text=text))
    assert capsys.readouterr().out == line + "\n"


def test_the_scheduler_ends_with_its_launcher(tmp_path, monkeypatch):
    """After the last word of a launcher that lives the hub is closed; one that is gone leaves no directories."""
    said = []
    hub = SimpleNamespace(lost=lambda rank, how: said.append((rank, how)), close=lambda: said.append("closed"))
    left = tmp_path / "left"
    left.mkdir()
    waits = []
    monkeypatch.setattr(scheduler, "time", SimpleNamespace(monotonic=lambda: 5.0 + len(waits), sleep=waits.append))
    monkeypatch.setattr(sys, "stdin", io.StringIO("3 exit code 7\n12 killed by SIGKILL\n"))
    monkeypatch.setenv(scheduler.LAUNCHER, json.dumps([os.getppid(), [str(left)]]))
    scheduler._listen(hub)
    assert said == [(3, "exit code 7"), (12, "killed by SIGKILL"), "closed"]
    assert left.is_dir()
    assert waits == [0.01] * 10  # ten seconds, of which each look took one

    class Ended(Exception):
        pass

    def end(code):
        raise Ended(code)

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setenv(scheduler.LAUNCHER, json.dumps([os.getppid() + 1, [str(tmp_path / "gone"), str(left)]]))
    with pytest.raises(Ended, match="1"):
        scheduler._listen(hub)
    assert not left.exists()


@pytest.mark.parametrize(
    ("texts", "code"),
    [((), None), (("exit code 0",), None), (("exit code 0", "rank 1 has not come in 30 s"), 1)],
)
def test_a_scheduler_serves_its_hub_until_the_job_is_over(monkeypatch, capsys, texts, code):
    made = []

    class Hub:
        address = "[::1]:7"

        def __init__(self, size, **options):
            self.endings = {rank: SimpleNamespace(text=text) for rank, text in enumerate(texts)}
            made.append((size, options))

        def __enter__(self):
            made.append("in")

        def __exit__(self, *error):
            made.append("out")

        def serve(self):
            made.append("serve")

        def close(self):
            pass

    monkeypatch.setenv("MS_WORKER_NUM", "2")
    monkeypatch.setenv(scheduler.ADDRESS, "there")
    monkeypatch.setenv(scheduler.TOKEN, "secret")
    monkeypatch.setenv(scheduler.LAUNCHER, json.dumps([os.getpid(), []]))
    monkeypatch.setattr(scheduler, "Hub", Hub)
    monkeypatch.setattr(os, "_exit", lambda code: None)
    read, write = os.pipe()
    threads = set(threading.enumerate())
    monkeypatch.setattr(sys, "stdin", os.fdopen(read))
    if code is None:
        scheduler.main()
    else:
        with pytest.raises(SystemExit) as caught:
            scheduler.main()
        assert caught.value.code == code
    # a launcher that still writes keeps no scheduler
    (listener,) = set(threading.enumerate()) - threads
    assert listener.daemon
    os.close(write)
    listener.join(5)
    sys.stdin.close()
    assert made == [(2, {"address": "there", "token": "secret", "report": scheduler._report}), "in", "serve", "out"]
    assert capsys.readouterr().out == "The scheduler of 2 workers listens at [::1]:7.\nThe job is over.\n"


def test_a_scheduler_without_an_address_says_why(monkeypatch, capsys):
    def refuse(size, **options):
        raise BadInputError("is in use", where="there")

    monkeypatch.setattr(scheduler, "Hub", refuse)
    for name in ("MS_WORKER_NUM", scheduler.ADDRESS, scheduler.TOKEN):
        monkeypatch.setenv(name, "2")
    with pytest.raises(SystemExit) as caught:
        scheduler.main()
    assert (caught.value.code, capsys.readouterr().out) == (2, "ERROR: there: is in use\n")
