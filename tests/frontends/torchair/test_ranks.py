"""Directories and files of ranks of torch.distributed (gloo, real processes)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
