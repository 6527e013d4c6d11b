"""Scripts with collectives: processes against ranks of one process, a worker that dies, one that never comes."""

import hashlib
import json
import os
import re
import socket
import subprocess
import sys

import dumprun
import pytest

TRAIN = """
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_rank, init

ms.set_context(mode=ms.GRAPH_MODE)
init()


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.sum = ops.AllReduce()
        self.all = ops.AllGather()

    def construct(self, x):
        return self.all(self.sum(x * 0.1))


net = Net()
for step in range(2):
    if sys.argv[1:] == [str(get_rank())] and step == 1:
        os._exit(9)
    y = net(Tensor(np.arange(4, dtype=np.float32) + get_rank()))
print("rank", get_rank(), y.asnumpy().tolist())
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    for name in ("local", "processes"):
        settings = dumprun.config(tmp_path / name, iteration="all", support_device=[0, 1])
        (tmp_path / f"{name}.json").write_text(json.dumps(settings))
    return tmp_path


def job(*options, workers=2):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    counts = ["--worker_num=2", f"--local_worker_num={workers}", "--node_rank=0", f"--master_port={port}"]
    return ["msrun", *counts, "--log_dir=logs", "--join=True", *options]


def start(place, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(dumprun.ROOT)}
    command = [sys.executable, "-m", "dumpsim", *arguments]
    return subprocess.Popen(command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True)


def digests(root):
    """One hash for each rank's tree, of paths and bytes."""
    found = {}
    for tree in sorted(root.iterdir()):
        total = hashlib.sha256()
        for path in sorted(tree.rglob("*")):
            if path.is_file() and path.name != "data_dump.json":
                total.update(path.relative_to(tree).as_posix().encode() + b"\0" + path.read_bytes())
        found[tree.name] = total.hexdigest()
    return found


def test_workers_dump_the_bytes_that_ranks_of_one_process_dump(place):
    local = dumprun.cli(place, "run", "--ranks", "2", "--config", "local.json", "--manifest", "none", "train.py")
    processes = dumprun.cli(place, *job("--config", "processes.json", "--manifest", "none", "train.py"))
    said = sorted(line.split("] ")[1] for line in local.out.splitlines())
    assert len(said) == 2
    assert said == sorted(line for line in processes.out.splitlines() if line.startswith("rank "))
    assert digests(place / "local") == digests(place / "processes")
    assert set(digests(place / "local")) == {"rank_0", "rank_1"}


def test_a_worker_that_dies_is_named_to_the_one_that_waits(place):
    run = dumprun.cli(place, *job("train.py", "1"), code=1)
    assert run.err.splitlines()[-2] == "dumpsim: rank 0: exit code 1, rank 1: exit code 9"
    log = (place / "logs" / "worker_0.log").read_text()
    assert "CollectiveError: rank 0, " in log
    assert "rank 1" in log.partition("CollectiveError: rank 0, ")[2].splitlines()[0]


def test_a_worker_that_never_comes_is_missed_in_time(place):
    run = dumprun.cli(place, *job("--cluster_time_out=8", "train.py", workers=1), code=1)
    assert "dumpsim: rank 0: " in run.err
    assert "rank 1 has died: its process has not connected within 8 s" in (place / "logs" / "scheduler.log").read_text()


def test_workers_of_two_launchers_meet_and_are_bound_to_cpus(place):
    (place / "train.py").write_text(TRAIN + "print(os.sched_getaffinity(0))\n")
    cpu = min(os.sched_getaffinity(0))
    first = [*job(f'--bind_core={{"device0": ["{cpu}"]}}', workers=1)]
    second = [re.sub("--node_rank=0", "--node_rank=1", word).replace("=logs", "=more") for word in first]
    jobs = [start(place, *arguments, "train.py") for arguments in (first, second)]
    said = [job.communicate(timeout=100)[0].splitlines()[-2:] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0]
    values = [line.partition("[")[2] for line, _ in said]
    assert values[0] == values[1] != ""
    assert [line.split(" [")[0] for line, _ in said] == ["rank 0", "rank 1"]
    assert [affinity for _, affinity in said] == [f"{{{cpu}}}"] * 2


def test_a_run_of_processes_shows_whole_lines_and_gives_the_exit_code_of_the_culprit(place):
    run = dumprun.cli(place, "run", "--ranks", "2", "--transport", "process", "train.py")
    assert [line.split(" [")[0] for line in sorted(run.out.splitlines())] == ["[0] rank 0", "[1] rank 1"]
    assert run.err == ""
    failed = dumprun.cli(place, "run", "--ranks", "2", "--transport", "process", "train.py", "1", code=9)
    assert failed.err.splitlines()[-1] == "dumpsim: rank 0: exit code 1, rank 1: exit code 9"
    assert all(line.startswith(("[0] ", "dumpsim: ")) for line in failed.err.splitlines())
    assert "[0] dumpsim.core.errors.CollectiveError: rank 0, " in failed.err
    assert not list(place.glob("*.log")) + list(place.glob("dumpsim-job.json"))
