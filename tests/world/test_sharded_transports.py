"""Training of a network that is cut over ranks leaves the same dump trees on every transport."""

import json
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from world.test_mpi import mpirun
from world.test_process_dumps import tree_hash
from world.transformer import Size, Transformer, Ways, sentences

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.emulate import environment
from dumpsim.frontends.mindspore import Tensor, nn
from dumpsim.frontends.mindspore.communication import init
from dumpsim.world import launch

RANKS = 4
QUIET = RunSettings(quiet=True, manifest=None, seed=3)
TESTS = Path(__file__).resolve().parents[1]


def train():
    """Two steps of a small transformer: losses, and where its Parameters lie."""
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel",
        dataset_strategy="full_batch",
        enable_parallel_optimizer=True,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )
    size = Size(layers=1, batch=4, length=4, heads=2)
    net = Transformer(size, Ways(2, 2, rows=True), is_integer=False)
    step = nn.TrainOneStepCell(net, nn.Adam(net.trainable_params(), 2.0**-6)).set_train()
    losses = [step(*map(Tensor, sentences(size, number))).asnumpy().item() for number in range(2)]
    return losses, {p.name: p._layout.cuts for p in step.get_parameters() if p._layout is not None}


def config(place):
    """A configuration that dumps all results of the second step, and its environment."""
    common = {"dump_mode": 0, "path": str(place / "dump"), "net_name": "Net", "iteration": "1", "input_output": 2}
    common |= {"kernels": [], "support_device": list(range(RANKS))}
    place.mkdir()
    path = place / "dump.json"
    path.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
    return {"MINDSPORE_DUMP_CONFIG": str(path)}


def run(place, **settings):
    """What each rank gives, and the hash of the tree."""
    transport = settings.pop("transport", "local")
    chosen = replace(QUIET, **settings)
    found = launch(train, RANKS, transport=transport, settings=chosen, environment=config(place))
    return found, tree_hash(place / "dump")


def test_ranks_that_are_processes_leave_the_trees_of_one_process(tmp_path):
    local = run(tmp_path / "local")
    assert run(tmp_path / "process", transport="process") == local
    (losses, cuts), *_ = local[0]
    assert losses[0] != losses[1]
    assert cuts["table"] == (4, 1), "rows by the model, then by the optimizer"
    names = [path.name for path in (tmp_path / "local" / "dump").rglob("*.npy")]
    assert len(names) > 300
    for kind in ("AllGather", "AllReduce", "ReduceScatter", "StridedSliceGrad"):
        assert any(name.startswith(f"{kind}.") for name in names), kind


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["reverse", "random:1", "random:2"])
def test_the_order_of_turns_does_not_matter(tmp_path, schedule):
    assert run(tmp_path / "local") == run(tmp_path / "other", schedule=schedule)


@pytest.mark.mpi
def test_ranks_of_mpi_leave_the_trees_of_one_process(tmp_path):
    local = run(tmp_path / "local")
    script = f"""
        import json, sys
        sys.path[:0] = [{str(TESTS)!r}, {str(TESTS.parent)!r}]
        from world.test_sharded_transports import train
        from dumpsim.world import current
        found = train()
        with open(f"rank_{{current().rank}}.json", "w") as file:
            json.dump(found, file)
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    settings = {**environment(replace(QUIET, transport="mpi")), **config(tmp_path / "mpi")}
    done = mpirun(RANKS, sys.executable, "script.py", cwd=tmp_path, environment=settings)
    assert done.returncode == 0, done.stderr
    for rank, (losses, cuts) in enumerate(local[0]):
        found = json.loads((tmp_path / f"rank_{rank}.json").read_text())
        assert found == [losses, {name: list(row) for name, row in cuts.items()}]
    assert tree_hash(tmp_path / "mpi" / "dump") == local[1]
