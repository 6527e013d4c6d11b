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
from tests.dumpproto import messages

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
            slot=slot, dtype=kind, shape=shape, device_dtype=kind, device_shape=shape,
            device_format=str(random.choice(["ND", "DefaultFormat"])), address=int(random.integers(1, 10**9)),
            nbytes=memory.data.nbytes, read=memory,
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


class Full:
    """A disk that has no room for some of the files."""

    def __init__(self):
        self._count = 0

    def charge(self, nbytes):
        self._count += 1
        if self._count % 3 == 0:
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_cannot_be_written_are_counted_alike(tmp_path, kind):
    found = []
    for planned in (False, True):
        random, clock, root = np.random.default_rng(5), VirtualClock(), tmp_path / str(planned)
        profile = find(*KINDS[kind][0].split("/"), {"unwritable": "log"})
        said = []
        writes = WriteLog(
            profile=profile,
            tally=Tally(),
            root=str(root),
            manifest=True,
            log=lambda *words, said=said: said.append(words),
        )
        unit = unit_of(kind, profile, Sink(disk=Full()), writes, clock)
        for source, inputs, outputs in operators(random):
            if planned:
                unit.plan(source, inputs, outputs)(str(root), 0, source.task_id)
            else:
                unit.operator(str(root), source, inputs, outputs)
        tally = {key: value for key, value in asdict(writes.tally).items() if key not in ("findings", "notes")}
        files = sorted(path.name for path in root.rglob("*") if path.is_file())
        texts = [(level, function, text.replace(str(root), "")) for level, function, text in said]
        found.append((tally, files, texts))
    assert found[0] == found[1]
    tally, files, said = found[0]
    assert tally["failed"]
    refused = [level for level, function, _ in said if function == "DumpToFile"]
    assert refused == ["ERROR"] * tally["failures"]
    assert len(refused) > 1
    assert files


def row_counts(tmp_path, count, names):
    """Rows of an operator with so many inputs, what was counted, and the reasons of skipped ones."""
    refs = [replace(one, slot=at) for at, one in enumerate([plain()] * count)]
    writes = WriteLog(profile=find("seed", "ascend_o2"), tally=Tally(), root=str(tmp_path), manifest=False,
                      log=lambda *_: None)  # fmt: skip
    unit = OperatorStatistics(statistics=RequestedStatistics(names=names), sink=Sink(), writes=writes,
                              clock=VirtualClock())  # fmt: skip
    unit.operator(str(tmp_path), SOURCE, refs, [])
    unit.plan(SOURCE, refs, [])(str(tmp_path), 0, 7)
    rows = [len(path.read_text().splitlines()) - 1 for path in tmp_path.iterdir()]
    tally = writes.tally
    return rows, (tally.asked, tally.captured, tally.rows), dict(tally.skipped)


SOURCE = Source(op_type="Add", full_name="Add_1", task_id=7, stream_id=2, rank=0, graph_id=0, iteration=0)


def plain():
    memory = Memory(dtype("float32"), (4,), np.random.default_rng(0))
    kind = dtype("float32")
    return TensorRef(
        slot=0, dtype=kind, shape=(4,), device_dtype=kind, device_format="ND", device_shape=(4,), address=4096,
        nbytes=16, read=memory,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("count", "names", "rows", "skipped"),
    [(10, ("max",), 10, 0), (11, ("max",), 10, 1), (13, ("max",), 10, 3), (13, (), 13, 0)],
)
def test_kernels_measure_ten_tensors_of_an_operator(tmp_path, count, names, rows, skipped):
    """[spec ge 3.7]; the device's processor measures all."""
    reason = {"an operator has more than 10 tensors": 2 * skipped} if skipped else {}
    assert row_counts(tmp_path, count, names) == ([rows] * 2, (2 * count, 2 * rows, 2 * rows), reason)


def test_the_record_of_an_overflow_is_an_output_of_bytes(tmp_path):
    """[spec ge 3.8]; statistics leave it as it is."""
    found = []
    for kind in ("bin", "all statistics"):
        root = tmp_path / kind
        writes = WriteLog(profile=find("seed", "ascend_o2"), tally=Tally(), root=str(root), manifest=False,
                          log=lambda *_: None)  # fmt: skip
        unit_of(kind, None, Sink(), writes, VirtualClock()).overflow(str(root), SOURCE, bytes(range(256)) * 8)
        (path,) = root.iterdir()
        found.append((path.name, path.read_bytes()))
    assert found[0] == found[1]
    name, raw = found[0]
    size = int.from_bytes(raw[:8], "little")
    head = messages()["DumpData"].FromString(raw[8 : 8 + size])
    assert raw[8 + size :] == bytes(range(256)) * 8
    assert name == f"Opdebug.Node_OpDebug.7.2.{head.dump_time}"
    (output,) = head.output
    assert (output.data_type, output.format, list(output.shape.dim), output.size) == (4, 2, [2048], 2048)
    assert (head.op_name, len(head.input)) == ("Node_OpDebug", 0)


@pytest.mark.parametrize(
    ("kind", "names", "cells"),
    [("float32", (), None), ("bfloat16", (), [""] * 7), ("float32", ("max", "l2norm"), None),
     ("int8", ("max", "l2norm"), [None, "NA"]), ("complex64", ("max", "l2norm"), ["NA", "NA"])],
)  # fmt: skip
def test_cells_that_nothing_computes(tmp_path, kind, names, cells):
    """The processor leaves them empty, kernels write NA. [spec ge 3.7]"""
    random = np.random.default_rng(1)
    found = dtype(kind)
    ref = TensorRef(
        slot=0, dtype=found, shape=(4,), device_dtype=found, device_format="ND", device_shape=(4,), address=4096,
        nbytes=4 * found.numpy.itemsize, read=Memory(found, (4,), random),
    )  # fmt: skip
    writes = WriteLog(profile=find("seed", "ascend_o2"), tally=Tally(), root=str(tmp_path), manifest=False,
                      log=lambda *_: None)  # fmt: skip
    unit = OperatorStatistics(statistics=RequestedStatistics(names=names), sink=Sink(), writes=writes,
                              clock=VirtualClock())  # fmt: skip
    unit.operator(str(tmp_path), SOURCE, [ref], [])
    (path,) = tmp_path.iterdir()
    title, row = path.read_text().splitlines()
    count = len(names) or 7
    last = row.split(",")[-count:]
    assert title.count(",") == row.count(",")
    for cell, expected in zip(last, cells or [None] * count, strict=True):
        assert cell == expected if expected is not None else float(cell) > -1000
