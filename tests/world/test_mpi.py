"""Ranks started by MPI: they get the same results as local ranks, and notice which rank has died."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dumpsim.core.settings import RunSettings
from dumpsim.emulate import environment

pytestmark = pytest.mark.mpi

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = environment(RunSettings(transport="mpi", quiet=True, manifest=None))

PROGRAM = """
import hashlib, sys
import numpy as np
from dumpsim.core.communicator import Call
from dumpsim.core.settings import RunSettings
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.task import Task, TaskKind
from dumpsim.world import current, launch
from dumpsim.world.terms import terms_of


def run(device, group, op, *arrays, **fields):
    tensors = tuple((array.dtype.name, array.shape) for array in arrays)
    call = Call(op=op, tensors=tensors, **fields)
    meeting, got = group.join(call, lambda: arrays), []
    task = Task(kind=TaskKind.HCCL, name=op, gate=meeting, cost_ns=group.cost_ns(call),
                work=lambda task: got.append(meeting.results()))
    device.stream(1 + group.number).launch(task)
    device.synchronize()
    return got[0]


def main():
    context = current()
    communicator, rank, size = context.communicator, context.rank, context.size
    communicator.enter()
    communicator.terms = terms_of({}, chip("910B"), RunSettings.from_environment())
    device = Device(chip("910B"), rank=rank, scheduler=context.world.get(Scheduler), environment={})
    draws = np.random.default_rng(rank)
    world = communicator.group("")
    pair = communicator.create("pair", [2, 0]) if rank in (0, 2) else None
    found = []
    for kind in (np.float16, np.float32, np.int32):
        part = (draws.standard_normal((6, 50, 7)) * 9).astype(kind)
        for op, fields in (
            ("AllReduce", {"reduce": "sum"}), ("AllReduce", {"reduce": "max"}), ("ReduceScatter", {"reduce": "sum"}),
            ("Reduce", {"reduce": "sum", "root": 1}), ("AllGather", {}), ("Broadcast", {"root": 2}),
            ("CollectiveGather", {"root": 0}), ("AlltoAll", {"axes": (3, 0, 1)}),
        ):
            found.append(run(device, world, op, part, **fields))
        counts = tuple(10 * (rank + 1) + at for at in range(size))
        flat = part.reshape(-1)[: sum(counts)]
        back = tuple(10 * (at + 1) + rank for at in range(size))
        found.append(run(device, world, "AlltoAllV", flat, sends=counts, receives=back))
        whole = [part] if rank == 1 else []
        expected = () if whole else ((part.dtype.name, (2, 50, 7)),)
        found.append(run(device, world, "CollectiveScatter", *whole, root=1, expected=expected))
        run(device, world, "Send", part, root=(rank + 1) % size, tag=3)
        expected = ((part.dtype.name, part.shape),)
        found.append(run(device, world, "Receive", root=(rank - 1) % size, tag=3, expected=expected))
        if pair is not None:
            found.append(run(device, pair, "AllReduce", part, reduce="prod"))
        run(device, world, "Barrier")
    digest = hashlib.sha256()
    for arrays in found:
        for array in arrays:
            digest.update(repr((array.dtype.name, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return [rank, digest.hexdigest(), device.clock.now_ns]


if __name__ == "__main__":
    import json
    if RunSettings.from_environment().transport == "mpi":
        result = main()
        with open(f"{sys.argv[1]}/{result[0]}.json", "w") as file:
            json.dump(result, file)
    else:
        for result in launch(main, ranks=3):
            with open(f"{sys.argv[1]}/{result[0]}.json", "w") as file:
                json.dump(result, file)
"""


def mpirun(ranks, *command, cwd, environment, options=()):
    """Run a command in so many processes; errors are those of the processes.

    MPICH's launcher sometimes waits for ever after one of its processes was killed. It is ended then, and what the
    ranks have said by that time counts.
    """
    program = Path(sys.executable).with_name("mpirun")
    launcher = subprocess.Popen(
        [str(program if program.exists() else "mpirun"), *options, "-n", str(ranks), *command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = launcher.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        os.killpg(launcher.pid, signal.SIGKILL)
        output, errors = launcher.communicate(timeout=30)
    return subprocess.CompletedProcess(launcher.args, launcher.returncode, output, errors)


@pytest.mark.parametrize("order", ["rank", "ring"])
def test_ranks_of_mpi_get_what_local_ranks_get(tmp_path, order):
    (tmp_path / "program.py").write_text(PROGRAM)
    found = {}
    for transport in ("local", "mpi"):
        out = tmp_path / transport
        out.mkdir()
        settings = {"DUMPSIM_RUN": json.dumps({"transport": transport, "reduce_order": order})}
        command = [sys.executable, "program.py", str(out)]
        if transport == "mpi":
            done = mpirun(3, *command, cwd=tmp_path, environment=settings)
        else:
            own = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
            done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found[transport] = [json.loads((out / f"{rank}.json").read_text()) for rank in range(3)]
    assert found["mpi"] == found["local"]
    assert len({digest for _, digest, _ in found["mpi"]}) == 3


SCRIPT = """
import os, sys
import numpy as np
from mindspore import Tensor, ops
from mindspore.communication import get_rank, init
init()
rank = get_rank()
x = Tensor(np.ones((1000, 4), np.float32))
for turn in range(4):
    if rank == 1 and turn == int(sys.argv[1]):
        if sys.argv[2] == "raise":
            raise ValueError("no more")
        os.kill(os.getpid(), 9)
    x = ops.AllReduce()(x)
    x.asnumpy()
with open(f"done_{rank}", "w") as file:
    file.write(str(x.asnumpy()[0, 0]))
"""


@pytest.mark.parametrize("turn", range(4))
def test_a_rank_that_is_killed(tmp_path, turn):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    # the shell outlives its rank, so that mpirun does not end the others before they have said what they wait for
    run = ["sh", "-c", '"$@"; code=$?; sleep 3; exit $code', "sh", sys.executable, "script.py"]
    done = mpirun(3, *run, str(turn), "kill", cwd=tmp_path, environment=SETTINGS)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if "EI0002" in line or "EI0006" in line]
    assert said, done.stderr
    assert all("from remote rank 1: it has failed: rank 1: its process has ended" in line for line in said)
    assert ("EI0006" if turn == 0 else "EI0002") in said[0]
    assert not list(tmp_path.glob("done_*"))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"kind": "kill"}, "from remote rank 1: it has failed: rank 1: its process has ended"),
        ({"kind": "hang"}, "from remote rank 1"),
        ({"kind": "delay", "seconds": 4000}, "from remote rank 1 within 1836 s (HCCL_EXEC_TIMEOUT): it came 4000"),
        ({"kind": "diverge"}, "The arguments for collective communication are inconsistent between ranks"),
    ],
)
def test_faults_of_a_rank(tmp_path, fault, words):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    plan = tmp_path / "faults.json"
    plan.write_text(json.dumps({"faults": [{**fault, "rank": 1, "nth": 3}]}))
    settings = environment(RunSettings(transport="mpi", quiet=True, manifest=None, faults=str(plan)))
    run = ["sh", "-c", '"$@"; code=$?; sleep 3; exit $code', "sh", sys.executable, "script.py", "9", "raise"]
    done = mpirun(3, *run, cwd=tmp_path, environment=settings)
    assert done.returncode != 0
    assert words in done.stderr
    assert not list(tmp_path.glob("done_*"))


def test_a_rank_that_raises(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    run = [sys.executable, "script.py"]
    done = mpirun(3, *run, "2", "raise", cwd=tmp_path, environment=SETTINGS)
    assert done.returncode != 0
    assert "ValueError: no more" in done.stderr
    assert "is stopped: rank 1 has raised ValueError" in done.stderr
    done = mpirun(2, *run, "9", "raise", cwd=tmp_path, environment=SETTINGS)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.glob("done_*")) == ["done_0", "done_1"]
    assert (tmp_path / "done_1").read_text() == "16.0"


def test_the_dumps_of_all_ranks_have_one_summary(tmp_path):
    script = """
        import numpy as np
        import mindspore as ms
        from mindspore import Tensor, nn, ops
        from mindspore.communication import init

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.sum = ops.AllReduce()

            def construct(self, x):
                return self.sum(ops.exp(x))

        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        Net()(Tensor(np.ones(3, np.float32)))
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    common = {"dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "0", "input_output": 0}
    common |= {"kernels": [], "support_device": [1, 2]}
    config = tmp_path / "dump.json"
    config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
    settings = environment(RunSettings(transport="mpi", manifest=None)) | {"MINDSPORE_DUMP_CONFIG": str(config)}
    done = mpirun(3, sys.executable, "script.py", cwd=tmp_path, environment=settings)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith(("dumpsim: ", "  rank"))]
    assert said[0] == f"dumpsim: {tmp_path / 'dump'}"
    assert said[1].startswith("  rank 0: asked 0")
    assert said[2].startswith("  ranks 1-2: asked 4, captured 4, written 4 tensors")
    assert said[3].startswith("dumpsim: 3 ranks: asked 8, captured 8")
    assert sum(line.startswith("dumpsim: 3 ranks") for line in said) == 1
