"""Asynchronous dump at O0 and O1: tensors are read by callbacks behind the kernels."""

import tracemalloc

import numpy as np
import pytest

from dumpsim.codecs import npy
from tests.dump.machine import Machine, ref, task

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


class Stream:
    """Keeps what is put on it, until it is let go."""

    def __init__(self):
        self.works = []

    def drain(self):
        works, self.works = self.works, []
        for work in works:
            work()


@pytest.fixture
def root(tmp_path):
    return tmp_path / "dump"


def npys(machine):
    return [name for name in machine.files() if name.endswith(".npy")]


def test_nothing_is_read_before_the_callback_runs(root):
    stream = Stream()
    weight = ref(np.ones(4, np.float32), 0)
    machine = Machine(root, enable=False)

    def kernel(event):
        weight.read().view(np.float32)[:] = 9

    machine.run(
        task("Default/AssignAdd-op0", [weight, ref(X, 1)], [weight], defer=stream.works.append),
        task("Default/Add-op0", [ref(X, 0)], [ref(X, 0)], defer=stream.works.append),
        kernel=kernel,
    )
    assert npys(machine) == []
    assert len(stream.works) == 2
    stream.drain()
    assert len(npys(machine)) == 5
    assert npy.read(by(machine, "AssignAdd", "input.0"))[0] == 1
    assert npy.read(by(machine, "AssignAdd", "output.0"))[0] == 9


def by(machine, op, part):
    (name,) = [name for name in npys(machine) if f"/{op}." in name and part in name]
    return machine.root / "rank_0" / name


def test_files_are_in_the_order_of_the_callbacks_and_of_the_iteration_of_the_kernel(root):
    stream = Stream()
    machine = Machine(root, enable=False)
    for name in ("A", "B"):
        machine.run(task(f"Default/{name}-op0", [], [ref(X)], defer=stream.works.append))
    stream.works.reverse()
    stream.drain()
    stamps = {name.split("/")[-1][0]: int(name.split(".")[4]) for name in npys(machine)}
    assert stamps["B"] < stamps["A"]
    assert {name.split("/")[2] + name.split("/")[-1][0] for name in npys(machine)} == {"0A", "1B"}


def test_overflow_is_looked_for_in_the_callback(root):
    stream = Stream()
    machine = Machine(root, enable=False, op_debug_mode=3, overflow_number=1)
    bad = ref(np.array([np.inf], np.float32))
    tasks = [task(f"Default/{name}-op0", [bad], [bad], defer=stream.works.append) for name in ("A", "B")]
    machine.run(*tasks)
    assert npys(machine) == []
    stream.drain()
    assert {name.split("/")[-1][0] for name in npys(machine)} == {"A"}


def test_a_kernel_that_failed_is_saved_at_once(root):
    stream = Stream()
    machine = Machine(root, enable=False, op_debug_mode=4)
    machine.run(task("Default/A-op0", [ref(X)], [ref(X)], defer=stream.works.append, error="EZ9999"))
    assert stream.works == []
    assert len(npys(machine)) == 1


def test_statistics_of_the_device_in_the_callback(root):
    stream = Stream()
    machine = Machine(root, enable=False, saved_data="statistic", stat_calc_mode="device")
    flags = ref(np.array([1, 2], np.uint16), 1)
    machine.run(task("Default/A-op0", [], [ref(X, 0), flags], defer=stream.works.append))
    assert not [name for name in machine.files() if name.endswith("statistic.csv")]
    stream.drain()
    machine.service.finish()
    rows = machine.find("statistic.csv").read_text().splitlines()[1:]
    assert rows[0].endswith('"(2,3)",6,1,9.53939')
    assert rows[1].endswith('"(2)",null,null,null')


def test_empty_tensors_are_told_of(root):
    empty = ref(np.zeros((0, 3), np.float32))
    for enable, said in ((False, True), (True, False)):
        machine = Machine(root / str(enable), enable=enable)
        machine.run(task("Default/A-op0", [], [empty]))
        assert (("WARNING", "tensor size is 0") in machine.log) is said


def test_arguments_are_saved_by_the_synchronous_dump_only(root):
    machine = Machine(root, enable=False, save_kernel_args=True)
    machine.run(task("Default/A-op0", [], [ref(X)], arguments={"axis": 1}))
    arguments = [name for name in machine.files() if name.endswith(".json") and not name.startswith(".dump_metadata")]
    assert not arguments


def test_memory_is_bounded_by_a_tensor(root):
    big = ref(np.zeros(8 << 20, np.float32))
    machine = Machine(root, enable=False)
    machine.run(task("Default/A-op0", [], [big]))  # makes directories and caches
    tracemalloc.start()
    try:
        machine.run(*(task(f"Default/B-op{n}", [], [big]) for n in range(4)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20  # a plain tensor of 32 MB is written from device memory
