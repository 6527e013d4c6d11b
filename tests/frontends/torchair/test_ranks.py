"""Directories and files of ranks of torch.distributed (gloo, real processes)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dumpsim

pytest.importorskip("torch", reason="needs the extra torch")

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SCRIPT = """
import sys
import torch.distributed as dist

from dumpsim.frontends.torchair._dumping import initialise, load
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
config = CompilerConfig()
config.dump_config.enable_dump = True
config.dump_config.dump_path = "dumps"
initialise(config)
print(load(config, "graph_1", [("Add", {})]))
dist.barrier()
dist.destroy_process_group()
"""


def test_two_ranks(tmp_path):
    (tmp_path / "dumps").mkdir()
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store")],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": ""},
        )
        for rank in (0, 1)
    ]
    for rank, process in enumerate(ranks):
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0
        path = Path(output.split()[-1])
        assert path.name == f"dump_options_worldsize2_rank{rank}_pid{process.pid}.json"
        found = json.loads(path.read_text())["dump"]
        assert found["dump_path"] == f"dumps/worldsize2_global_rank{rank}"
        assert (tmp_path / found["dump_path"]).is_dir()


TRAINING = """
import sys
import torch, torch_npu, torchair
import torch.distributed as dist

rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
config = torchair.CompilerConfig()
config.dump_config.enable_dump = True
config.dump_config.dump_path = "dumps"
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
compiled = torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config))
x = torch.full((3, 4), float(rank + 1))
loss = compiled(x).sum()
loss.backward()
dist.all_reduce(model.weight.grad)  # in eager mode, between the graphs
assert torch.equal(model.weight.grad, torch.full((2, 4), 9.0))
torch.save(model(x).detach(), f"want{rank}.pt")


def step(word, cache):
    cache = torch.cat([cache, word], 0)
    return torch.softmax(word @ cache.t(), -1) @ cache, cache


decode = torch.compile(step, backend=torchair.get_npu_backend(compiler_config=config))
with torch.no_grad():
    cache = same = torch.randn(3 + rank, 4)
    for _ in range(3):  # static, then symbolic
        word = torch.full((1, 4), 0.5 * (rank + 1))
        dist.all_reduce(word)  # every rank decodes the same word
        made, cache = decode(word.npu(), cache)
        want, same = step(word, same)
        assert torch.equal(made, want) and torch.equal(cache, same)
dist.barrier()
dist.destroy_process_group()
"""


def test_two_ranks_train_and_dump_each_into_its_directory(tmp_path):
    import torch

    (tmp_path / "script.py").write_text(TRAINING)
    (tmp_path / "dumps").mkdir()
    environment = {"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "dumpsim", "run", "script.py"]
    ranks = [
        subprocess.Popen([*command, str(rank), str(tmp_path / "store")], cwd=tmp_path, env=environment)
        for rank in (0, 1)
    ]
    assert [process.wait(timeout=240) for process in ranks] == [0, 0]
    for rank in (0, 1):
        found = list(dumpsim.open(tmp_path / "dumps" / f"worldsize2_global_rank{rank}"))
        want = torch.load(tmp_path / f"want{rank}.pt").numpy()
        outputs = [entry.array() for entry in found if entry.io == "output" and tuple(entry.shape) == want.shape]
        assert any((one == want).all() for one in outputs)
        graphs = {entry.path.parent.parent.parent.name for entry in found}
        assert graphs == {"graph_1", "graph_2", "graph_3", "graph_4"}
        rows = [tuple(entry.shape) for entry in found if entry.op_type == "ConcatV2" and entry.io == "output"]
        assert sorted(rows) == [(at + rank, 4) for at in (4, 5, 6)]
        (inputs,) = {
            entry.array().max() for entry in found if tuple(entry.shape) == (3, 4) and "graph_1" in entry.path.parts
        }
        assert inputs == rank + 1
