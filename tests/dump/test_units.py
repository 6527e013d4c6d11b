"""What a unit has planned for an operator equals what it does with the operator's tensors one by one."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from dumpsim.archive.sink import Sink
from dumpsim.core.clock import VirtualClock
from dumpsim.core.dtype import dtype
from dumpsim.core.events import TensorRef
from dumpsim.dump.operatorfiles import OperatorFiles
from dumpsim.dump.operatorstats import OperatorStatistics
from dumpsim.dump.summary import Tally
from dumpsim.dump.tensorfiles import TensorFiles
from dumpsim.dump.unit import Source
from dumpsim.dump.writelog import WriteLog
from dumpsim.modes.profile import find
from dumpsim.modes.request import DumpRequest, RequestedStatistics

TYPES = ("float32", "float16", "bfloat16", "float64", "int8", "int64", "uint16", "bool", "complex64")
NAMES = ("Default/Add-op0", "a b\\c.d/e", "x" * 300)
SHAPES = ((), (0,), (5,), (2, 3), (4, 0, 2), (1, 2, 3, 4))


class Memory:
    """Bytes of a tensor that each run overwrites, some runs with NaN."""

    def __init__(self, kind, shape, random):
        self._kind, self._shape, self._random = kind, shape, random
        self.version = 0
        self.data = np.zeros(int(np.prod(shape)) * kind.numpy.itemsize, np.uint8)
        self.step()

    def step(self):
        """Write other values, or leave what is there."""
        if self.version and self._random.random() < 0.3:
            return
        self.version += 1
        values = self._random.normal(0, 50, self._shape)
        if self._random.random() < 0.2 and values.size:
            values.flat[0] = self._random.choice([np.nan, np.inf, -np.inf])
        if self._kind.numpy.kind in "iu" or self._kind.kind == "bool":
            values = np.abs(np.nan_to_num(values, posinf=1, neginf=1)) % 100
        self.data[:] = np.ascontiguousarray(values.astype(self._kind.numpy)).reshape(-1).view(np.uint8)

    def __call__(self):
        return self.data


def tensors(random, most, shapes):
    """Up to so many tensors, by slot."""
    for slot in sorted(random.choice(20, int(random.integers(0, most)), replace=False).tolist()):
        kind = dtype(TYPES[random.integers(len(TYPES))])
        shape = shapes[random.integers(len(shapes))]
        memory = Memory(kind, shape, random)
        yield TensorRef(
            slot=slot, dtype=kind, shape=shape, device_dtype=kind, device_format="ND", device_shape=shape,
            address=int(random.integers(1, 10**9)), nbytes=memory.data.nbytes, read=memory,
        )  # fmt: skip


def operators(random, count=8):
    """Sources with inputs and outputs; the tensors of the first two are all empty."""
    for at in range(count):
        shapes = SHAPES if at > 1 else [(0,), (4, 0, 2)]
        inputs, outputs = tuple(tensors(random, 9, shapes)), tuple(tensors(random, 5, shapes))
        name = NAMES[random.integers(len(NAMES))]
        source = Source(op_type="Add", full_name=name, task_id=at, stream_id=3, rank=0, graph_id=1, iteration=0)
        yield source, inputs, outputs


def unit_of(kind, profile, sink, writes, clock):
    statistics = RequestedStatistics(names=("max", "min"), device=True)
    if kind == "bin":
        return OperatorFiles(sink=sink, writes=writes, clock=clock)
    if kind == "all statistics":
        return OperatorStatistics(statistics=RequestedStatistics(names=()), sink=sink, writes=writes, clock=clock)
    if kind == "some statistics":
        return OperatorStatistics(statistics=statistics, sink=sink, writes=writes, clock=clock)
    request = DumpRequest(path="/")
    if kind == "npy and rows":
        request = replace(request, statistics=RequestedStatistics(names=("max", "min", "avg")))
    return TensorFiles(profile=profile, request=request, sink=sink, writes=writes, clock=clock, seed=0, rank=0)


KINDS = {
    "npy": ("seed/ascend_o0", "seed/gpu", "2.10/cpu"),
    "npy and rows": ("seed/ascend_o0",),
    "bin": ("seed/ascend_o2",),
    "all statistics": ("seed/ascend_o2",),
    "some statistics": ("seed/ascend_o2",),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names])
def test_planned_writes_are_those_of_each_call(tmp_path, kind, name, seed):
    found = []
    for planned in (False, True):
        random = np.random.default_rng(seed)
        clock, profile, root = VirtualClock(), find(*name.split("/")), tmp_path / str(planned)
        writes = WriteLog(profile=profile, tally=Tally(), root=str(root), manifest=True, log=lambda *_: None)
        sink = Sink()
        unit = unit_of(kind, profile, sink, writes, clock)
        made = list(operators(random))
        plans = [unit.plan(source, inputs, outputs) for source, inputs, outputs in made] if planned else []
        for iteration in range(3):
            for at, (source, inputs, outputs) in enumerate(made):
                task_id = source.task_id + 10 * (iteration == 2)
                if planned:
                    plans[at](str(root), iteration, task_id)
                else:
                    now = replace(source, iteration=iteration, task_id=task_id)
                    fixed = [
                        tuple(replace(ref, version=ref.read.version) for ref in refs) for refs in (inputs, outputs)
                    ]
                    unit.operator(str(root), now, *fixed)
                for ref in (*inputs, *outputs):
                    ref.read.step()
        files = {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        tally = {key: value for key, value in asdict(writes.tally).items() if key != "findings"}
        found.append((clock.now_ns, tally, files, writes.tally.findings.facts({})))
    direct, plans = found
    assert direct[0] == plans[0]
    assert direct[1] == plans[1]
    assert direct[1]["asked"] > 30
    assert sorted(direct[2]) == sorted(plans[2])
    assert direct[2] == plans[2]
    assert direct[3] == plans[3]
    assert len(direct[2]) > 10
