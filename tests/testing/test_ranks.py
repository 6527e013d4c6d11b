"""Tests on many ranks of one process: the marker ranks and the fixture world."""

from tests.testing.conftest import COLLECTIVE, section

PASSES = (
    COLLECTIVE
    + """
import os, random
import numpy as np
import pytest

SET_UP = []

@pytest.fixture
def table(world):
    SET_UP.append(os.environ.get("RANK_ID"))
    return []

@pytest.mark.ranks(4)
def test_the_body_runs_on_every_rank(world, table):
    table.append(world.rank)
    world.barrier()
    assert world.size == 4 and table == [0, 1, 2, 3]
    assert world.gather(10 * world.rank) == [0, 10, 20, 30]

def test_fixtures_are_set_up_once_outside_of_the_ranks():
    assert SET_UP == [None] and "RANK_SIZE" not in os.environ

@pytest.mark.ranks(2)
def test_the_marker_is_enough():
    import mindspore
    assert mindspore.__name__ == "dumpsim.frontends.mindspore"
    assert os.environ["RANK_SIZE"] == "2"
    SET_UP.append(os.environ["RANK_ID"])

def test_it_ran_twice():
    assert SET_UP == [None, "0", "1"]

@pytest.mark.ranks(1, 2)
def test_sizes(world):
    assert world.gather(world.size) == [world.size] * world.size

@pytest.mark.ranks(3)
class TestClass:
    @pytest.mark.parametrize("value", [1, pytest.param(2, marks=pytest.mark.ranks(2))])
    def test_method(self, world, value):
        assert world.size == {1: 3, 2: 2}[value]

@pytest.mark.parametrize("value", [pytest.param(2, marks=pytest.mark.ranks(2))])
def test_marker_of_a_parameter(value):
    assert os.environ["RANK_SIZE"] == "2"

@pytest.mark.ranks(2)
@pytest.mark.npu(chip="910A", seed=5, environment={"MINE": "7"})
def test_what_each_rank_has_of_its_own(npu, world, capsys, monkeypatch, tmp_path):
    assert (npu.rank, npu.chip.name, os.environ["MINE"]) == (world.rank, "910A", "7")
    assert len({id(one) for one in world.gather(npu)}) == 2
    assert random.random() == random.Random(5).random() and np.random.rand() == np.random.RandomState(5).rand()
    print("rank", world.rank)
    monkeypatch.setenv("RANK_ID", f"own {world.rank}")
    monkeypatch.chdir(tmp_path)
    world.barrier()
    assert os.environ["RANK_ID"] == f"own {world.rank}"
    assert capsys.readouterr() == (f"rank {world.rank}\\n", "")
    assert capsys.readouterr().out == ""
    with capsys.disabled():
        print("seen", world.rank)

@pytest.fixture(scope="module", autouse=True)
def nothing_is_left():
    directory, environment, state = os.getcwd(), dict(os.environ), random.getstate()
    yield
    assert os.getcwd() == directory and random.getstate() == state
    assert {**os.environ, "PYTEST_CURRENT_TEST": ""} == {**environment, "PYTEST_CURRENT_TEST": ""}

@pytest.mark.ranks(4)
def test_a_sum(world):
    assert collective("AllReduce", np.float32([world.rank]), reduce="sum") == 6

@pytest.mark.ranks(2)
def test_raises_in_each_rank(world):
    with pytest.raises(CollectiveError, match="EI0005"):
        collective("AllReduce", np.float32([1]), reduce="sum" if world.rank else "max")
    world.barrier()

@pytest.mark.faults({"kind": "overflow", "op": "Add", "value": 7, "rank": 1})
@pytest.mark.ranks(2)
def test_faults_strike_where_they_are_planned(npu, world):
    from dumpsim.ops.table import find
    one = np.ones(1, np.float32)
    assert npu.run_op(find("Add"), [one, one])[0].tolist() == [7 if world.rank == 1 else 2]

def test_run(world, capsys):
    def part(text):
        print(text, world.rank)
        return world.gather(world.rank)
    assert world.run(part, 3, "here") == [[0, 1, 2]] * 3
    assert capsys.readouterr().out == "here 0\\nhere 1\\nhere 2\\n"

@pytest.mark.ranks(2)
def test_all_skip(world):
    pytest.skip(f"not for {world.size}")

@pytest.mark.ranks(3)
def test_one_skips(world):
    if world.rank == 1:
        pytest.skip("not for me")
    print("others")

@pytest.mark.ranks(2)
@pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
def test_marked_xfail(world):
    world.rank / world.rank

@pytest.mark.ranks(2)
def test_calls_xfail(world):
    if world.rank == 1:
        pytest.xfail("later")
    world.barrier()
"""
)


def test_bodies_run_on_ranks(run):
    output = run(PASSES, "-rA", "--color=no")
    assert "15 passed, 1 skipped, 2 xfailed" in output, output
    assert "test_sizes[ranks1]" in output
    assert "test_sizes[ranks2]" in output
    assert "seen 0" in output
    assert "seen 1" in output
    assert ": not for 2\n" in output
    assert section(output, "Ranks (rank 1)") == "skipped: not for me"
    assert section(output, "Captured stdout call (ranks 0, 2)") == "others"


FAILS = (
    COLLECTIVE
    + """
import pytest

@pytest.mark.ranks(5)
def test_assertion(world):
    print("both" if world.rank < 2 else "none")
    if world.rank in (0, 1):
        world.barrier()
    left = [world.rank, 2]
    assert left != [3, 2]
    assert left == [2, 2]

@pytest.mark.ranks(3)
def test_a_rank_does_not_come(world):
    if world.rank == 1:
        return
    world.barrier()

@pytest.mark.ranks(3)
def test_other_meetings(world):
    world.gather(0) if world.rank == 2 else world.barrier()

def test_part(world):
    def part():
        assert world.rank == 0
    world.run(part, 2)

@pytest.mark.ranks(2)
@pytest.mark.faults({"kind": "overflow", "op": "Sub"}, {"kind": "overflow", "op": "Add", "rank": 7})
def test_faults(npu, faults):
    faults({"kind": "overflow", "op": "Mul"})

@pytest.mark.ranks(3)
def test_other_shapes(world):
    collective("AllReduce", np.ones(2 + (world.rank == 1), np.float32), reduce="sum")
"""
)


def test_a_failure_is_one_report_with_a_section_for_each_rank(run):
    output = run(FAILS, "--color=no")
    assert "6 failed" in output
    assert "E       assert [3, 2] != [3, 2]" in output
    assert section(output, "rank 3").startswith("failed: AssertionError: assert [3, 2] != [3, 2] (traceback above)")
    assert section(output, "ranks 0, 1") == "stopped: rank 3 has raised AssertionError"
    assert section(output, "rank 4") == "not started: rank 3 has raised AssertionError"
    assert section(output, "rank 2") == "passed"
    assert "raised in rank 3 of 5" in output
    assert output.count("EI0005") >= 2
    assert "parameter shape, local value (3,)" in output
    assert section(output, "Captured stdout call (ranks 0, 1)") == "both"
    assert "rank 2 waits at world.barrier() for rank 1, which has ended [DS-TST-005]" in output
    assert "rank 2 is at world.gather() where ranks 0, 1 came to world.barrier() [DS-TST-005]" in output
    assert ">       assert world.rank == 0" in output
    assert (
        "faults that never struck: overflow of 'Sub'; overflow on rank 7: the test has 2 ranks; ranks 0, 1: " in output
    )
    assert "localranks.py" not in output
    assert "hosts.py" not in output


def test_output_is_live_without_capturing(run):
    output = run(FAILS, "-s", "-k", "assertion")
    assert "[rank 0] both\n[rank 1] both\n[rank 2] none\n" in output


def test_what_a_test_returns_reaches_pytest(run):
    body = "import pytest\n@pytest.mark.ranks(2)\ndef test_value():\n    return {}\n"
    assert "PytestReturnNotNoneWarning" in run(body.format(3))
    assert "PytestReturnNotNoneWarning" not in run(body.format(None))


def test_wrong_markers_are_errors(run):
    output = run(
        """
import unittest
import pytest

@pytest.mark.ranks("x")
def test_text(): ...

@pytest.mark.ranks("4")
def test_digits(): ...

@pytest.mark.ranks(0)
def test_none(): ...

@pytest.mark.ranks(2, True)
def test_bool(): ...

@pytest.mark.ranks(2, 2)
def test_twice(): ...

@pytest.mark.ranks()
def test_nothing(): ...

@pytest.mark.ranks([1, 2])
def test_list(): ...

@pytest.mark.ranks(size=4)
def test_keyword(): ...

@pytest.mark.parametrize("value", [pytest.param(2, marks=pytest.mark.ranks(2, 4))])
def test_several(value): ...

@pytest.mark.ranks(4)
class TestCase(unittest.TestCase):
    def test_method(self): ...

@pytest.mark.ranks(4)
async def test_coroutine(): ...

def test_no_marker(world):
    world.rank

@pytest.mark.ranks(2)
def test_nested(world):
    world.run(print, 2)

def test_number(world):
    world.run(print, 0)

@pytest.mark.rank(4)
def test_name(world):
    world.size
""",
        "-o",
        "markers=rank: something else",
    )
    assert "4 failed, 11 errors" in output, output
    for text in (
        "@pytest.mark.ranks('x'): 'x' is not a number of ranks; allowed: 1 or more [DS-TST-004]",
        "'4' is not a number of ranks; allowed: 1 or more (did you mean 'ranks(4)'?) [DS-TST-004]",
        "@pytest.mark.ranks(0): 0 is not a number of ranks; allowed: 1 or more [DS-TST-004]",
        "@pytest.mark.ranks(True): True is not a number of ranks",
        "@pytest.mark.ranks(2, 2): 2 is given twice",
        "@pytest.mark.ranks(): no number of ranks is given; allowed: ranks(4), several: ranks(1, 2, 4)",
        "@pytest.mark.ranks([1, 2]): [1, 2] is not a number of ranks; allowed: 1 or more (did you mean 'ranks(1, 2)'?)",
        "@pytest.mark.ranks(size=...): unknown keyword 'size'; allowed: numbers only: ranks(4)",
        "@pytest.mark.ranks(2, 4): several numbers in pytest.param(..., marks=...); allowed: one number",
        "@pytest.mark.ranks: test_method is a method of unittest.TestCase; allowed: plain test functions",
        "@pytest.mark.ranks: test_coroutine is a coroutine",
        "world.rank: this code does not run on a rank; allowed: @pytest.mark.ranks(4) before the test, "
        "world.run(function, 4)",
        "world.run: the test runs on ranks already; allowed: calling the function, a test without @pytest.mark.ranks",
        "world.run: 0 is not a number of ranks; allowed: 1 or more",
        "world.size: this code does not run on a rank, and the test's marker is 'rank'",
        "(did you mean 'ranks'?) [DS-TST-004]",
    ):
        assert text in output, text


GOLDEN = """
import numpy as np
import pytest

@pytest.mark.ranks(3)
def test_net(npu, world, dump_dir, golden):
    from mindspore import Tensor, context, nn
    context.set_context(mode=context.GRAPH_MODE)
    dump_dir.configure(saved_data="full")
    class Net(nn.Cell):
        def construct(self, x):
            return x.exp()
    Net()(Tensor(np.array([world.rank, VALUE], np.float32)))
    golden(dump_dir)
    golden(dump_dir / f"rank_{world.rank}", "each")
    if world.rank == 1:
        golden(dump_dir / "rank_1", "one")
"""


def test_golden_trees_of_ranks(run, tmp_path):
    assert "1 passed" in run(GOLDEN.replace("VALUE", "1"), "--update-golden")
    root = tmp_path / "golden" / "test_inner" / "test_net"
    assert sorted(path.name for path in root.iterdir()) == ["dump", "each", "one"]
    for name in ("dump", "each"):
        assert sorted(path.name for path in (root / name).iterdir()) == ["rank_0", "rank_1", "rank_2"]
    assert "1 passed" in run(GOLDEN.replace("VALUE", "1"))
    output = run(GOLDEN.replace("VALUE", "float(world.rank == 2)"), "--color=no")
    assert "rank_2/" not in output.partition("(golden -> dump):")[2].partition("to make this")[0]
    assert "rank_1/Net/0/0/statistic.csv: row Exp" in output
    assert section(output, "ranks 1, 2") == "stopped: rank 0 has raised Failed"


def test_each_worker_of_xdist_runs_ranks_of_its_own(run):
    text = "import pytest\n@pytest.mark.ranks(2, 4)\ndef test_it(world): assert sum(world.gather(1)) == world.size"
    assert "2 passed" in run(text, "-n", "2")
