"""`dumpsim msrun`: processes, logs, exit codes, and what is left when somebody is killed."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, replace

import dumprun
import pytest
from typer.testing import CliRunner

from dumpsim.cli.app import app
from dumpsim.core.settings import RunSettings

WORKER = """
import os, sys, time
print("rank", os.environ["RANK_ID"], "of", os.environ["RANK_SIZE"], sys.argv[1:])
print("pid", os.getpid(), file=sys.stderr)
how = dict(word.split("=") for word in sys.argv[1:]).get(os.environ["RANK_ID"], "0")
if how == "sleep":
    time.sleep(60)
sys.exit(int(how))
"""

TRAIN = """
import os
import sys
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn
from mindspore.communication import get_rank, init

ms.set_context(mode=ms.GRAPH_MODE)
init()
net = nn.Dense(4, 2)
net(Tensor(np.ones((1, 4), np.float32)))
print("trained", get_rank(), os.environ["DEVICE_ID"])
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "train.py").write_text(TRAIN)
    settings = dumprun.config(tmp_path / "DUMP", iteration="all", support_device=[0, 1])
    (tmp_path / "dump.json").write_text(json.dumps(settings))
    return tmp_path


def two(*rest, join=True, log_dir="logs"):
    """The arguments of a job of two workers; the seeds' own line has these options."""
    port = free_port()
    return [
        "msrun", "--worker_num=2", "--local_worker_num=2", f"--master_port={port}", f"--log_dir={log_dir}",
        f"--join={join}", "--cluster_time_out=300", *rest,
    ]  # fmt: skip


def process(place, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "dumpsim", *arguments],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(dumprun.ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def workers(place, count=2):
    """Process numbers of the workers, as they tell them in their logs."""
    found = {}
    for _ in range(600):
        for rank in range(count):
            log = place / "logs" / f"worker_{rank}.log"
            match = re.search(r"pid (\d+)\n", log.read_text() if log.exists() else "")
            if match:
                found[rank] = int(match[1])
        if len(found) == count:
            return found
        time.sleep(0.05)
    raise AssertionError("the workers do not start")


def wait_for(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def gone(pid):
    """Whether a process ends within some seconds; one that nobody waits for counts as ended."""
    for _ in range(200):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def summary(place):
    return json.loads((place / "logs" / "dumpsim-job.json").read_text())


def test_a_job_dumps_by_rank_and_is_told_of_once(place):
    run = dumprun.cli(place, *two("--config", "dump.json", "--tail_worker_log=1", "train.py"))
    starts = [line.split(",")[0] for line in run.out.splitlines()[:3]]
    assert starts == [
        "Start scheduler process",
        "Start worker process with rank id:0",
        "Start worker process with rank id:1",
    ]
    assert run.out.splitlines()[3:] == ["trained 1 1"]
    assert sorted(path.name for path in (place / "logs").iterdir()) == [
        "dumpsim-job.json", "scheduler.log", "worker_0.log", "worker_1.log",
    ]  # fmt: skip
    assert (place / "logs" / "worker_0.log").read_text() == "trained 0 0\n"
    lines = run.err.splitlines()
    assert lines[1] == f"dumpsim: {place}/DUMP"
    assert re.fullmatch(r"  ranks 0-1: asked (\d+), captured \1, written \1 tensors; \d+ files", lines[2])
    assert lines[-1] == "dumpsim: ranks 0-1: exit code 0"
    names = [
        sorted(dumprun.unstamped(path.relative_to(tree).as_posix()) for path in tree.rglob("*") if path.is_file())
        for tree in (place / "DUMP" / "rank_0", place / "DUMP" / "rank_1")
    ]
    assert names[0] == names[1]
    manifests = [json.loads((place / f"dumpsim-manifest{end}.json").read_text()) for end in ("", "-rank1")]
    assert [(found["rank"], found["device_id"]) for found in manifests] == [(0, 0), (1, 1)]
    dumps = [rank["dumps"][0] for rank in summary(place)["ranks"]]
    assert [dump["tensors"] for dump in dumps] == [found["tensors"] for found in manifests]


def test_a_worker_that_fails_ends_the_job_and_keeps_its_exit_code(place):
    run = dumprun.cli(place, *two("worker.py", "0=sleep", "1=7"), code=1)
    assert "rank 1, exit code 7" in run.err
    assert "ERROR: rank 1 has died: exit code 7" in run.out.splitlines()
    assert run.err.splitlines()[-2:] == [
        "dumpsim: rank 0: killed: another worker has failed, rank 1: exit code 7",
        "dumpsim msrun: Distributed job exited with exception. Please check logs in directory: logs.",
    ]
    ranks = summary(place)["ranks"]
    assert [rank["exit_code"] for rank in ranks] == [-signal.SIGKILL, 7]
    assert [rank["log"] for rank in ranks] == ["logs/worker_0.log", "logs/worker_1.log"]
    assert "ERROR: rank 1 has died: exit code 7" in (place / "logs" / "scheduler.log").read_text()
    assert gone(workers(place)[0])


def test_a_killed_launcher_takes_its_processes_along(place):
    job = process(place, *two("worker.py", "0=sleep", "1=sleep"))
    pids = workers(place)
    job.kill()
    job.communicate(timeout=30)
    assert all(gone(pid) for pid in pids.values())


@pytest.mark.parametrize("way", ["msrun", "run"])
def test_a_killed_launcher_leaves_no_temporary_directory(place, monkeypatch, way):
    (temporary := place / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    plain = ["run", "--ranks", "2", "--transport", "process", "worker.py", "0=sleep", "1=sleep"]
    job = process(place, *(two("worker.py", "0=sleep", "1=sleep") if way == "msrun" else plain))
    logs = place / "logs" if way == "msrun" else temporary
    wait_for(lambda: len([log for log in logs.rglob("worker_*") if "pid " in log.read_text()]) == 2)
    assert any(temporary.iterdir())
    job.kill()
    job.communicate(timeout=30)
    wait_for(lambda: not [path for path in temporary.iterdir() if "-msrun-" not in path.name])


def test_an_interrupt_kills_the_job_and_gives_zero_as_msrun_does(place):
    job = process(place, *two("worker.py", "0=sleep", "1=0"))
    pids = workers(place)
    assert gone(pids[1])
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=30)
    assert job.returncode == 0
    assert err.splitlines()[-1] == "dumpsim: rank 0: killed: the launcher got SIGINT, rank 1: exit code 0"
    assert gone(pids[0])


def test_without_join_it_returns_and_the_job_goes_on(place):
    run = dumprun.cli(place, *two("worker.py", "1=3", join=False))
    assert len(run.out.splitlines()) == 3
    for _ in range(600):
        if (place / "logs" / "dumpsim-job.json").exists():
            break
        time.sleep(0.05)
    assert [rank["exit_code"] for rank in summary(place)["ranks"]] == [0, 3]
    assert (place / "logs" / "worker_0.log").read_text().startswith("rank 0 of 2 ['1=3']\n")


def test_shell_lines_find_it_with_the_settings_of_the_run(place):
    line = " ".join(two("--tail_worker_log=0", "worker.py"))
    (place / "job.sh").write_text(f"set -e\necho $1\n{line}\n")
    (place / "outer.py").write_text(
        f"import os\nraise SystemExit(os.waitstatus_to_exitcode(os.system('{line} 1=5')))\n"
    )
    run = dumprun.cli(place, "run", "--device", "cpu", "job.sh", "word")
    assert run.out.splitlines()[0] == "word"
    assert run.out.splitlines()[-2] == "rank 0 of 2 []"
    assert dumprun.cli(place, "run", "--quiet", "outer.py", code=1).err.count("exit code 5") == 1
    (place / "env.py").write_text("import os\nprint(os.environ['DUMPSIM_RUN'])\n")
    (place / "env.sh").write_text(" ".join(two("env.py")))
    out = dumprun.cli(place, "run", "--device", "cpu", "env.sh").out
    assert out.count('"device": "cpu"') == 2


def test_wrong_options_are_usage_errors(place):
    assert "--join: 'true' is not a value of it" in dumprun.cli(place, "msrun", "--join=true", "worker.py", code=2).err
    assert "--sim_level: simulation level 1" in dumprun.cli(place, "msrun", "--sim_level=1", "worker.py", code=2).err


@pytest.mark.parametrize("late", [False, True])
def test_two_launchers_share_a_job(place, late):
    port = free_port()
    common = ["msrun", "--worker_num=2", "--local_worker_num=1", f"--master_port={port}", "--join=True"]
    second = process(place, *common, "--node_rank=1", "--log_dir=more", "worker.py")
    if late:  # its worker has ended before the launcher of the scheduler comes
        log = place / "more" / "worker_1.log"
        while not (log.exists() and "pid" in log.read_text()):
            time.sleep(0.05)
        time.sleep(1)
    first = process(place, *common, "--node_rank=0", "--log_dir=logs", "worker.py")
    assert [job.wait(60) for job in (first, second)] == [0, 0]
    for job in (first, second):
        job.communicate()
    assert "rank 1 of 2" in (place / "more" / "worker_1.log").read_text()
    assert not (place / "more" / "scheduler.log").exists()


class Planned(Exception):
    """In the place of a job that would start."""


@pytest.fixture
def planned(place, monkeypatch):
    """Run a command line; returns the options and the environment of the job that it asks for."""

    def plan(options, environment):
        raise Planned(options, environment)

    monkeypatch.chdir(place)
    monkeypatch.setattr("dumpsim.emulate.launchplan.plan", plan)

    def asked(*words):
        with pytest.raises(Planned) as caught:
            CliRunner().invoke(app, ["msrun", *words], catch_exceptions=False)
        return caught.value.args

    return asked


# [spec parallel 5]
DEFAULTS = {
    "worker_num": 8, "local_worker_num": 8, "master_addr": "127.0.0.1", "master_port": 8118, "node_rank": -1,
    "log_dir": "", "join": False, "cluster_time_out": 600, "bind_core": "False", "bind_numa": "False", "sim_level": -1,
    "sim_rank_id": -1, "rank_table_file": "", "worker_log_name": "worker", "tail_worker_log": "-1",
}  # fmt: skip
CHOSEN = {
    "worker_num": 4, "local_worker_num": 2, "master_addr": "10.0.0.1", "master_port": 9000, "node_rank": 1,
    "log_dir": "logs", "join": True, "cluster_time_out": 5, "bind_core": "True", "bind_numa": "True", "sim_level": 0,
    "sim_rank_id": 3, "rank_table_file": "table.json", "worker_log_name": "w", "tail_worker_log": "0,1",
}  # fmt: skip


def test_options_have_the_defaults_of_msrun_and_reach_the_job(planned):
    options, _ = planned("worker.py", "--lr", "1")
    assert asdict(options) == {**DEFAULTS, "command": ("worker.py", "--lr", "1")}
    options, _ = planned(*(f"--{name}={value}" for name, value in CHOSEN.items()), "worker.py", "--join", "x")
    assert asdict(options) == {**CHOSEN, "command": ("worker.py", "--join", "x")}
    found = CliRunner().invoke(app, ["msrun", "--join=true", "worker.py"])
    assert str(found.exception).startswith("--join: 'true' is not a value of it")


def test_settings_of_an_outer_run_hold_where_the_command_says_nothing(planned, place, monkeypatch):
    monkeypatch.delenv("DUMPSIM_RUN", raising=False)
    _, plain = planned("worker.py")
    manifest = str(place / "dumpsim-manifest.json")
    assert RunSettings.from_environment(plain) == RunSettings(manifest=manifest)
    outer = RunSettings(seed=3, overrides={"op_name": "short"}, manifest=None)
    monkeypatch.setenv("DUMPSIM_RUN", outer.to_text())
    _, inner = planned("--config", "dump.json", "--device=cpu", "--quiet", "--check-races", "worker.py")
    assert RunSettings.from_environment(inner) == replace(outer, device="cpu", quiet=True, check_races=True)
    assert inner["MINDSPORE_DUMP_CONFIG"] == str(place / "dump.json")
