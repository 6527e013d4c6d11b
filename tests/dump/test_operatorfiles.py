"""What a binary file costs the clock."""

from itertools import pairwise

import numpy as np

from dumpsim.archive.sink import Sink
from dumpsim.core.clock import VirtualClock
from dumpsim.core.dtype import dtype
from dumpsim.core.events import TensorRef
from dumpsim.dump.operatorfiles import OperatorFiles
from dumpsim.dump.summary import Tally
from dumpsim.dump.unit import Source
from dumpsim.dump.writelog import WriteLog
from dumpsim.modes.profile import find


def tensor(count):
    data = np.zeros(4 * count, np.uint8)
    kind = dtype("float32")
    return TensorRef(
        slot=0, dtype=kind, shape=(count,), device_dtype=kind, device_format="ND", device_shape=(count,),
        address=4096, nbytes=4 * count, read=lambda: data,
    )  # fmt: skip


def test_a_file_costs_its_start_and_its_bytes(tmp_path):
    clock = VirtualClock()
    profile = find("seed", "ascend_o2")
    writes = WriteLog(profile=profile, tally=Tally(), root=str(tmp_path), manifest=False, log=lambda *_: None)
    files = OperatorFiles(sink=Sink(), writes=writes, clock=clock)
    source = Source(op_type="Add", full_name="Add_1", task_id=1, stream_id=2, rank=0, graph_id=0, iteration=0)
    stamps = []
    for inputs, outputs in (([], [tensor(10)]), ([], [tensor(10**6)]), ([tensor(10**6)], [tensor(10**6)])):
        before = clock.now_ns
        files.operator(str(tmp_path), source, inputs, outputs)
        size = sum(ref.nbytes for ref in (*inputs, *outputs))
        assert clock.now_ns - before == 25_000 + size  # [spec observed 1.2]
        stamps = sorted(int(path.name.rpartition(".")[2]) for path in tmp_path.iterdir())
    assert len(stamps) == 3
    assert [round((b - a) / 1000) for a, b in pairwise(stamps)] == [4, 8]
