"""Address space in steps: blocks stay whole, addresses stay what they were, thousands of devices fit."""

import mmap
import random
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from dumpsim.core.errors import DeviceError, OutOfMemoryError
from dumpsim.device import arena as arena_module
from dumpsim.device.arena import Arena
from dumpsim.device.memory import BASE_ADDRESS, FILL, Memory

MIB = 1 << 20
GIB = 1 << 30


@pytest.fixture
def small_steps(monkeypatch):
    """Memories whose steps are 4096 bytes."""
    monkeypatch.setattr(Arena.__init__, "__kwdefaults__", {"step": 4096, "where": ""})


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("fit", ["best", "first"])
def test_blocks_lie_where_they_did_in_one_piece_and_keep_their_bytes(small_steps, seed, fit):
    rng = random.Random(seed)
    memory, whole = Memory(MIB, fit=fit), Memory(MIB, fit=fit)
    whole._arena.step = MIB  # as if all had been reserved at once
    live = []
    for _ in range(80):
        if live and rng.random() < 0.45:
            for m, buffer in zip((memory, whole), live.pop(rng.randrange(len(live)))[:2], strict=True):
                m.free(buffer)
            continue
        size = rng.choice((1, 500, 512, 3000, 4096, 9000, 20_000))
        pair = [m.allocate(size, fill=seed % 2 == 0) for m in (memory, whole)]
        assert pair[0].address == pair[1].address
        np.testing.assert_array_equal(pair[0].bytes(), pair[1].bytes())  # what a reused block held is there too
        data = np.frombuffer(rng.randbytes(size), np.uint8)
        for buffer in pair:
            buffer.write(data)
        live.append((*pair, data))
        for ours, _, held in live:
            np.testing.assert_array_equal(ours.bytes(), held)
    assert len(memory._arena._steps) > 1
    for low, high in pairwise(memory._arena._steps):
        assert low.stop <= high.start


@pytest.mark.parametrize("seed", range(20))
def test_a_step_ends_at_the_next_one_and_has_what_was_written_there(seed):
    """Against the owner and the value of each byte."""
    rng, capacity = random.Random(seed), 64
    arena = Arena(capacity, step=16)
    owners, values, sizes = [0] * capacity, [0] * capacity, {0: 0}
    for number in range(1, 60):
        start, stop = sorted(rng.sample(range(capacity + 1), 2))
        used = rng.randrange(capacity + 1)
        arena.reserve(start, stop, used)
        if len(set(owners[start:stop])) > 1 or not owners[start]:
            end = next(
                (at for at in range(stop, capacity) if owners[at] or at >= start + 16),
                capacity,
            )
            for at in range(start, end):
                values[at] = values[at] if at < used and owners[at] else 0
            owners[start:end] = [number] * (end - start)
            sizes[number] = end - start
        steps = [(step.start, step.stop) for step in arena._steps]
        assert steps == [
            (owners.index(one), capacity - owners[::-1].index(one)) for one in dict.fromkeys(owners) if one
        ]
        assert arena.reserved == sum(sizes[one] for one in {*owners})
        low, high = rng.choice(steps)
        for begin, end in steps:
            assert arena.view(begin, end).tolist() == values[begin:end]
        values[low:high] = [rng.randrange(1, 256) for _ in range(low, high)]
        arena.view(low, high)[:] = values[low:high]


def test_a_write_over_the_end_of_a_step_tramples_the_neighbour(small_steps):
    memory = Memory(MIB)
    first, second = memory.allocate(4096), memory.allocate(4096)
    assert len(memory._arena._steps) == 2
    first.write(np.zeros(4096, np.uint8))
    second.write(np.ones(4096, np.uint8))
    hit = memory.write(first.end - 3, np.full(5, 9, np.uint8))
    assert hit == (first, second)
    assert first.bytes()[-4:].tolist() == [0, 9, 9, 9]
    assert second.bytes()[:3].tolist() == [9, 9, 1]
    # over three steps, the last of which nobody has asked for
    memory.write(first.address, np.full(3 * 4096, 5, np.uint8))
    assert set(first.bytes()) == set(second.bytes()) == {5}
    assert set(memory.view(second.end, 4096)) == {5}


def test_a_view_lies_in_one_step(small_steps):
    memory = Memory(MIB)
    first, second = memory.allocate(4096), memory.allocate(4096)
    with pytest.raises(DeviceError, match="belong to several blocks"):
        memory.view(first.end - 1, 2)
    assert first.bytes().base is not None
    assert second.bytes().size == 4096


def test_the_first_step_ends_where_a_block_needs_the_next_one(small_steps):
    memory = Memory(MIB)
    memory.allocate(1000)
    large = memory.allocate(20_000)
    assert large.address == BASE_ADDRESS + 1024
    assert set(large.bytes()) == {FILL}
    assert [(step.start, step.stop) for step in memory._arena._steps] == [(0, 1024), (1024, 1024 + large.alloc_size)]


def test_discard_of_a_block_in_a_later_step(small_steps):
    memory = Memory(MIB)
    memory.allocate(1000)
    buffer = memory.allocate(64 * 1024)
    buffer.write(np.ones(64 * 1024, np.uint8))
    after = memory.allocate(512)
    memory.discard(buffer)
    assert buffer.bytes()[mmap.PAGESIZE : -mmap.PAGESIZE].max() == 0
    assert set(after.bytes()) == {FILL}


def test_where_pages_cannot_be_released_nothing_is_lost(monkeypatch):
    monkeypatch.delattr(mmap, "MADV_DONTNEED", raising=False)
    memory = Memory(MIB)
    buffer = memory.allocate(64 * 1024)
    buffer.write(np.ones(64 * 1024, np.uint8))
    memory.discard(buffer)
    assert set(buffer.bytes()) == {1}
    assert memory._arena.discard(0, MIB) == []


@pytest.mark.parametrize("base", [0, 3 * mmap.PAGESIZE + 7])
def test_whole_pages_of_a_range_are_released(base):
    arena, page = Arena(MIB, step=64 * mmap.PAGESIZE), mmap.PAGESIZE
    arena.reserve(base, base + 64 * page, 0)
    for low, high, released in (
        (0, page, [(0, page)]), (1, 3 * page, [(page, 3 * page)]), (page, 3 * page - 1, [(page, 2 * page)]),
        (1, 2 * page - 1, []), (page, page, []), (63 * page, 70 * page, [(63 * page, 64 * page)]),
    ):  # fmt: skip
        arena.view(base, base + 64 * page)[:] = 1
        assert arena.discard(base + low, base + high) == [(base + start, base + stop) for start, stop in released]
        left = np.ones(64 * page, np.uint8)
        for start, stop in released:
            left[start:stop] = 0
        np.testing.assert_array_equal(arena.view(base, base + 64 * page), left)


def test_what_moves_leaves_untouched_pages_untouched():
    memory = Memory(64 * GIB)
    memory.free(memory.allocate(GIB, fill=False))
    before = resident()
    memory.allocate(512)
    memory.allocate(2 * GIB, fill=False)
    assert resident() - before < 64 * MIB


def test_a_machine_that_refuses_address_space_is_named_and_nothing_is_lost(monkeypatch):
    def refuse(*args, **keywords):
        raise OSError("Cannot allocate memory")

    memory = Memory(GIB, device_id=3)
    monkeypatch.setattr(arena_module.mmap, "mmap", refuse)
    with pytest.raises(OutOfMemoryError, match=r"device 3: this machine refuses 1073741824 bytes of address space"):
        memory.allocate(512)
    monkeypatch.undo()
    assert memory.used == 0
    assert memory.allocate(512).address == BASE_ADDRESS


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * mmap.PAGESIZE


OPEN_MANY = """
import sys
import numpy as np
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.scheduler import Scheduler

scheduler, count = Scheduler(), int(sys.argv[1])
keywords = {"scheduler": scheduler, "environment": {}}
devices = [Device(chip("910B"), rank=rank, device_id=rank, **keywords) for rank in range(count)]
for device in devices:
    buffer = device.memory.allocate(16)
    buffer.write(np.full(16, device.rank % 251, np.uint8))
assert all(device.memory.blocks()[0].bytes()[0] == device.rank % 251 for device in devices)
with open("/proc/self/statm") as statm:
    print(int(statm.read().split()[1]) * 4096)
"""


def test_three_thousand_devices_open_in_one_process():
    """Each with a block that is written; 64 GiB of address space for each would not fit."""
    done = subprocess.run([sys.executable, "-c", OPEN_MANY, "3000"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 400 * MIB
