"""The sample of `mindspore.ops.tensordump` under its own msrun line: two ranks, the files of its text. [seed 000]"""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np

from dumpsim.codecs import irtext

# as it stands, up to the lines that load the files: those leave out the directory
SAMPLE = """
import numpy as np
import mindspore as ms
from mindspore import nn, Tensor, ops, context
from mindspore.ops import operations as P
from mindspore.communication import init, get_rank
init()
rank_id = get_rank()
dump_path = f'dumps/rank_{rank_id}/mul1_mul2.npy'
class Net(nn.Cell):
    def __init__(self, strategy1, strategy2):
        super(Net, self).__init__()
        self.matmul1 = P.MatMul().shard(strategy1)
        self.matmul2 = P.MatMul().shard(strategy2)

    def construct(self, x, y, b):
        out1 = self.matmul1(x, y)
        ops.tensordump(dump_path, out1, 'all')
        out2 = self.matmul2(out1, b)
        return out2

ms.set_context(mode=ms.GRAPH_MODE, save_graphs=2)
context.set_auto_parallel_context(parallel_mode='semi_auto_parallel', full_batch=True)
strategy1 = ((1, 2), (2, 1))
strategy2 = ((1, 2), (2, 1))
net = Net(strategy1, strategy2)
x = Tensor(0.1 * np.random.randn(64, 64).astype(np.float32))
y = Tensor(0.1 * np.random.randn(64, 64).astype(np.float32))
b = Tensor(0.1 * np.random.randn(64, 64).astype(np.float32))
out = net(x, y, b)
print(f"out shape is: {out.shape}")
"""
LINE = (
    "msrun --worker_num=2 --local_worker_num=2 --master_port=11450 --log_dir=msrun_log --join=True "
    "--cluster_time_out=300 tensordump_example.py"
)


def test_the_sample_gives_the_files_of_its_text(tmp_path):
    (tmp_path / "tensordump_example.py").write_text(SAMPLE)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        line = LINE.replace("11450", str(probe.getsockname()[1]))  # another test may have the sample's own port
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run(
        [sys.executable, "-m", "dumpsim", *shlex.split(line)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for rank in range(2):
        assert "out shape is: (64, 64)" in (tmp_path / "msrun_log" / f"worker_{rank}.log").read_text()
        assert sorted(path.name for path in (tmp_path / "dumps" / f"rank_{rank}").iterdir()) == [
            "0_mul1_mul2.npy",
            f"1_mul1_mul2_CNode_64_all_rank_{rank}.npy",
        ]
    outputs = [np.load(tmp_path / "dumps" / f"rank_{rank}" / "0_mul1_mul2.npy") for rank in range(2)]
    inputs = [
        np.load(tmp_path / "dumps" / f"rank_{rank}" / f"1_mul1_mul2_CNode_64_all_rank_{rank}.npy") for rank in range(2)
    ]
    assert [array.shape for array in (*outputs, *inputs)] == [(64, 64), (64, 64), (64, 32), (64, 32)]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(np.hstack(inputs), outputs[0])  # bit for bit
    for rank in range(2):
        (path,) = (tmp_path / f"rank_{rank}").glob("step_parallel_end_*.ir")
        doc = irtext.parse(path.read_text("utf-8"))
        (node,) = [node for node in doc.nodes if node.name == "CNode_64"]
        assert node.op_type == "TensorDump"
        assert re.search(rf"mul1_mul2_CNode_64_all_rank_{rank}", str(node.operands[0].value))
        stages = {path.name.rpartition("_")[0] for path in (tmp_path / f"rank_{rank}").glob("*.ir")}
        assert {"step_parallel_begin", "step_parallel_end", "21_validate"} <= stages
