"""What a binary file costs the clock, and what its header says of a tensor."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dumpsim.archive.sink import Sink
from dumpsim.core.clock import VirtualClock
from dumpsim.core.dtype import dtype
from dumpsim.core.events import TensorRef
from dumpsim.dump.operatorfiles import OperatorFiles, describe
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
    before = clock.now_ns
    files.overflow(str(tmp_path), source, bytes(2048))
    assert clock.now_ns - before == 25_000
    assert len(stamps) == 3
    assert [round((b - a) / 1000) for a, b in pairwise(stamps)] == [4, 8]


@pytest.mark.parametrize(("groups", "sub_format"), [(1, 0), (2, 2), (3, 3)])
def test_only_several_groups_have_a_sub_format(groups, sub_format):
    assert describe(replace(tensor(6), groups=groups)).sub_format == sub_format


@pytest.mark.parametrize(
    ("shape", "nbytes", "shown"),
    [((3,), 3, (6,)), ((1,), 1, (2,)), ((2, 3), 6, (2, 6)), ((2, 3, 1), 6, (2, 3, 2)), ((4,), 2, (4,)), ((), 1, ())],
)  # fmt: skip
def test_the_shape_of_packed_numbers_counts_numbers(shape, nbytes, shown):
    """A shape of MindSpore may count pairs of int4."""
    ref = replace(tensor(1), dtype=dtype("int4"), device_dtype=dtype("int4"), nbytes=nbytes)
    found = describe(replace(ref, shape=shape, device_shape=shape))
    assert (found.shape, found.original_shape) == (shown, shown)
    assert describe(replace(tensor(3), shape=(3,), device_shape=(3,), nbytes=3)).shape == (3,)
