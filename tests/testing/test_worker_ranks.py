"""Tests on many ranks where each worker of pytest-xdist is a rank."""

import re

import pytest

from tests.testing.conftest import section

EACH = ("--dist", "each", "--dumpsim-ranks=xdist", "--color=no", "-rA")

SUM = """
import os, time
import numpy as np
import pytest

def total(world):
    from mindspore import Tensor, communication, ops
    communication.init()
    return float(ops.AllReduce()(Tensor(np.float32([world.rank]))).asnumpy()[0])
"""

MIXED = (
    SUM
    + """
@pytest.mark.ranks(2)
def test_passes(world, npu, capsys, monkeypatch):
    print("rank", world.rank)
    assert os.environ["PYTEST_XDIST_WORKER"] == f"gw{world.rank}" and npu.rank == world.rank
    assert total(world) == 1
    monkeypatch.setenv("RANK_ID", "changed")
    assert world.gather(str(world.rank)) == ["0", "1"]
    assert capsys.readouterr().out == f"rank {world.rank}\\n"

def test_alone():
    assert "RANK_ID" not in os.environ

@pytest.mark.ranks(1, 2, 3)
def test_sizes(world):
    assert sum(world.gather(1)) == world.size

@pytest.mark.ranks(2)
def test_raises_in_each_rank(world):
    from mindspore import Tensor, communication, ops
    communication.init()
    with pytest.raises(RuntimeError, match="EI0005"):
        ops.AllReduce()(Tensor(np.ones(2 + world.rank, np.float32))).asnumpy()
    world.barrier()

@pytest.mark.ranks(2)
def test_fails(world):
    print("told")
    assert world.rank == 0
    world.barrier()

@pytest.mark.ranks(2)
def test_all_fail(world):
    assert world.size == 3, "as many"

@pytest.mark.ranks(2)
def test_skips(world):
    pytest.skip("all of them")

@pytest.mark.ranks(2)
@pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
def test_xfails(world):
    world.barrier()
    1 / (1 - world.rank)

@pytest.fixture
def broken(request):
    if request.config.workerinput["workerid"] == "gw1":
        raise ValueError("no fixture")

@pytest.mark.ranks(2)
def test_setup(world, broken):
    pass

@pytest.mark.ranks(2)
@pytest.mark.faults({"kind": "overflow", "op": "Add", "rank": 1}, {"kind": "overflow", "op": "Sub"})
def test_faults(npu):
    from dumpsim.ops.table import find
    npu.run_op(find("Add"), [np.ones(1, np.float32)] * 2)
"""
)


def test_every_worker_is_a_rank_and_a_test_has_one_report(run):
    output = run(MIXED, *EACH, "--tx", "2*popen")
    assert "3 failed, 6 passed, 2 skipped, 1 xfailed, 1 error" in output, output
    assert ": the test needs 3 ranks, and the run has 2 workers: --tx 3*popen" in output
    assert "E       assert 1 == 0" in output
    failures = output.partition("= FAILURES =")[2]
    assert section(failures, "rank 1").startswith("failed: AssertionError: assert 1 == 0 (traceback above)")
    assert section(failures, "rank 0") == "stopped: rank 1 has raised AssertionError"
    assert section(output, "Captured stdout call (ranks 0, 1)") == "told"
    assert "ranks 0, 1 ----------------------------------\nfailed: AssertionError: as many" in output
    assert "failed: ValueError: no fixture (traceback above)" in output
    assert "faults that never struck: overflow of 'Sub'\n" in output


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--dist", "load", "--tx", "2*popen"), "with --dist load each test runs on one worker alone"),
        (("-n", "2"), "Either run every test on every worker: pytest --dist each --tx 4*popen --dumpsim-ranks=xdist"),
        ((), "pytest-xdist is not installed, or switched off"),
        (("--dist", "no"), "there are no workers that could be ranks: pytest --dist each --tx 4*popen"),
        (("--dumpsim-ranks=xdits",), "'xdits' is not one of local, xdist (did you mean 'xdist'?)"),
    ],
)
def test_other_ways_explain_themselves(run, options, text):
    assert text in run("", "--dumpsim-ranks=xdist", *options)


CRASHES = (
    SUM
    + """
@pytest.mark.ranks(3)
def test_crash(world):
    world.barrier()
    if world.rank == RANK:
        HOW
    began = time.monotonic()
    try:
        WAIT
    finally:
        print("in time", time.monotonic() - began < 30)  # ranks that wait for ever would wait for a minute

@pytest.mark.ranks(3)
def test_later(world): ...

@pytest.mark.ranks(2)
def test_fewer(world): ...

def test_alone(): ...
"""
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "how", "wait"),
    [
        (2, "os.kill(os.getpid(), 9)", "total(world)"),
        (0, "os._exit(3)", "world.barrier()"),
        (0, "os._exit(0)", "total(world)"),
    ],
)
def test_a_worker_that_crashes_fails_the_test_at_once_and_is_named(run, rank, how, wait):
    text = CRASHES.replace("RANK", str(rank)).replace("HOW", how).replace("WAIT", wait)
    output = run(text, *EACH, "--tx", "3*popen")
    assert f"worker 'gw{rank}' crashed while running 'test_inner.py::test_crash'\ngw{rank} was rank {rank} of" in output
    dead = re.search(rf"rank {rank} \(worker gw{rank}, process \d+\) ended in test_inner.py::test_crash", output)
    assert dead, output
    # one rank or both that are left skip the later tests, whichever of them sees the end first
    assert len(re.findall(rf"SKIPPED \[[12]\] test_inner.py:\d+: {re.escape(dead[0])}", output)) == 2
    assert len(re.findall(r"SKIPPED \[1\] test_inner.py:\d+: gw3 replaces a worker that crashed", output)) == 2
    assert re.search(rf"died: worker gw{rank}, process \d+", output)
    assert "in time True" in output
    assert "in time False" not in output
    assert "2 failed, 3 passed" in output


@pytest.mark.slow
def test_ranks_that_run_different_tests_name_both(run):
    output = run(
        """
import os, pytest
if os.environ.get("PYTEST_XDIST_WORKER") != "gw1":
    @pytest.mark.ranks(2)
    def test_first(world): ...
@pytest.mark.ranks(2)
def test_second(world): ...
@pytest.mark.ranks(2)
def test_third(world): ...
""",
        *EACH,
        "--tx",
        "2*popen",
    )
    assert "(worker gw0) runs test_inner.py::test_first" in output
    assert "(worker gw1) runs test_inner.py::test_second" in output
    assert "absent: it runs test_inner.py::test_second" in output
    assert "2 failed" in output
    assert "passed" not in output
    assert "[DS-TST-006]" in output


GOLDEN = """
import numpy as np
import pytest

@pytest.mark.ranks(2)
def test_net(npu, world, dump_dir, golden):
    from mindspore import Tensor, context, nn
    context.set_context(mode=context.GRAPH_MODE)
    dump_dir.configure(saved_data="full")
    class Net(nn.Cell):
        def construct(self, x):
            return x.exp()
    Net()(Tensor(np.array([world.rank, 1], np.float32)))
    golden(dump_dir)
    golden(dump_dir / f"rank_{world.rank}", "each")
"""


@pytest.mark.slow
def test_golden_trees_are_the_same_in_one_process_and_in_many(run, tmp_path):
    assert "1 passed" in run(GOLDEN, "--update-golden")
    root = tmp_path / "golden" / "test_inner" / "test_net"
    files = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert {path.relative_to(root).parts[:2] for path in files} == {
        (name, f"rank_{rank}") for name in ("dump", "each") for rank in (0, 1)
    }
    assert "1 passed" in run(GOLDEN, *EACH, "--tx", "2*popen")
    for path in files:
        path.unlink()
    assert "1 passed" in run(GOLDEN, *EACH, "--tx", "2*popen", "--update-golden")
    assert files == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
