"""The command ``dumpsim replay``: its lines, its JSON and its exit codes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dumpsim
from dumpsim.frontends.mindspore import Tensor, nn, ops
from tests import dumprun
from tests.inprocess import dump

FIELDS = ["op_name", "op_type", "graph", "iteration", "error", "explained", "verdict", "reason"]


def compute():
    class Net(nn.Cell):
        def construct(self, x, w):
            return ops.dropout(ops.relu(ops.matmul(x, w)), 0.5)

    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((8, 16)).astype(np.float32), rng.standard_normal((16, 4)).astype(np.float32)
    Net()(Tensor(x), Tensor(w))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A product, a ReLU and a dropout."""
    folder = tmp_path_factory.mktemp("tree")
    with pytest.MonkeyPatch.context() as patch:
        run = dump(folder, patch, "O0", compute, iteration="all")
    assert run.error is None
    return run.root


def alter(tree, op_type):
    (entry,) = dumpsim.open(tree).filter(io="output", slot=0, op_type=op_type)
    entry.path.chmod(0o600)
    array = np.load(entry.path)
    array.reshape(-1)[np.argmax(np.abs(array))] *= 1.01
    np.save(entry.path, array)


@pytest.fixture
def altered(tree, tmp_path):
    """The same, the largest element of the product 1 % larger."""
    target = tmp_path / "altered"
    shutil.copytree(tree, target)
    alter(target, "MatMul")
    return target


def test_json_has_one_object_an_operator_worst_first(altered, tmp_path):
    said = dumprun.cli(tmp_path, "replay", str(altered), "--json", code=1)
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert all(set(FIELDS) <= set(row) for row in rows)
    assert rows[0]["op_type"] == "MatMul"
    assert [row["verdict"] for row in rows] == ["suspect", "ok", "skipped"]
    assert rows[0]["error"] > rows[0]["explained"] > 0
    assert rows[1]["error"] <= rows[1]["explained"]
    assert "random" in rows[2]["reason"]
    assert rows[2]["error"] is None


def test_the_table_shows_what_is_suspect(altered, tree, tmp_path):
    said = dumprun.cli(tmp_path, "replay", str(altered), code=1)
    assert "MatMul" in said.out
    assert "ReLU" not in said.out
    assert "2 operators recomputed: 1 ok, 1 skipped, 1 suspect" in said.err
    everything = dumprun.cli(tmp_path, "replay", str(tree), "--all", code=0)
    assert "ReLU" in everything.out
    assert "random" in everything.err


def test_a_row_has_the_line_of_the_script(tree):
    (line,) = [
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.strip().startswith("return ops.dropout(")
    ]
    rows = dumpsim.replay(tree, jobs=None).rows
    assert len(rows) == 3
    assert {row.source for row in rows} == {f"{__file__}:{line}"}


def test_an_operator_that_is_not_there_is_said(tree, tmp_path):
    said = dumprun.cli(tmp_path, "replay", str(tree), "--op", "*conv9*", code=1)
    names = {row.op_name for row in dumpsim.replay(tree, jobs=None).rows}
    assert f"no operator called '*conv9*'; there are {', '.join(sorted(names))}" in said.err


def test_a_factor_allows_more(altered, tmp_path):
    dumprun.cli(tmp_path, "replay", str(altered), "--factor", "1e9", code=0)


@pytest.mark.dask
@pytest.mark.filterwarnings("ignore")
def test_workers_of_dask_give_the_same(altered):
    import distributed

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        spread = dumpsim.replay(altered, scheduler=cluster.scheduler_address)
    assert spread.rows == dumpsim.replay(altered).rows


def test_memory_is_bounded_by_the_largest_operator(tmp_path):
    """A dump of 48 operators of 2 MiB each costs what one of 4 does."""
    peaks = []
    for count in (2, 24):
        program = f"""
import numpy as np
from dumpsim.frontends.mindspore import Tensor, context, nn, ops
context.set_context(mode=context.GRAPH_MODE)
class Net(nn.Cell):
    def construct(self, x):
        for _ in range({count}):
            x = ops.relu(x + 1.0)
        return x
Net()(Tensor(np.ones(1 << 19, np.float32)))
"""
        made = dumprun.dump(tmp_path, program, name=str(count), saved_data="tensor")
        replayed = (
            f"import dumpsim; dumpsim.replay({str(made.root)!r}); "
            "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"  # ru_maxrss has the parent's
        )
        peaks.append(int(subprocess.check_output([sys.executable, "-c", replayed], text=True)) >> 10)
    assert peaks[1] - peaks[0] < 32
