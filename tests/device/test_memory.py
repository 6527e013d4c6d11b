"""The allocator and the bytes behind it."""

import mmap
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.errors import BadInputError, DeviceError, OutOfMemoryError, UnknownValueError
from dumpsim.device.memory import BASE_ADDRESS, FILL, Buffer, Memory
from dumpsim.device.space import BLOCK_RULES, Space

MIB = 1 << 20

actions = st.lists(st.one_of(st.integers(0, 5000), st.tuples(st.just("free"), st.integers(0, 1000))), max_size=60)


@settings(max_examples=60, deadline=None)
@given(actions=actions, rule=st.sampled_from(sorted(BLOCK_RULES)), fit=st.sampled_from(["best", "first"]))
def test_blocks_never_overlap_and_are_aligned(actions, rule, fit):
    memory = Memory(MIB, rule=rule, fit=fit)
    live = []
    for action in actions:
        if isinstance(action, int):
            live.append(memory.allocate(action))
        elif live:
            memory.free(live.pop(action[1] % len(live)))
        spans = sorted((b.address, b.address + b.alloc_size) for b in live)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        for buffer in live:
            assert buffer.address % BLOCK_RULES[rule].align == 0
            assert buffer.alloc_size >= buffer.size + BLOCK_RULES[rule].spare
    assert [b.address for b in memory.blocks()] == sorted(b.address for b in live)
    for buffer in live:
        memory.free(buffer)
    assert memory.used == 0
    # everything given back is one hole again
    assert memory.allocate(MIB // 2).address - BLOCK_RULES[rule].guard == BASE_ADDRESS


@settings(max_examples=60, deadline=None)
@given(actions=actions)
def test_without_reuse_no_address_comes_back(actions):
    memory = Memory(16 * MIB, reuse=False)
    seen: list[tuple[int, int]] = []
    live = []
    for action in actions:
        if isinstance(action, int):
            buffer = memory.allocate(action)
            assert all(buffer.address >= stop for _, stop in seen)
            seen.append((buffer.address, buffer.address + buffer.alloc_size))
            live.append(buffer)
        elif live:
            memory.free(live.pop(action[1] % len(live)))


def test_best_fit_takes_the_smallest_hole_and_first_fit_the_lowest():
    for fit, expected in (("best", 3 * 1024), ("first", 0)):
        space = Space(1 << 16, fit=fit)
        offsets = [space.take(n) for n in (2048, 1024, 512, 512)]
        assert offsets == [0, 2048, 3072, 3584]
        space.give(0)
        space.give(3072)
        assert space.take(512) == expected


def test_block_sizes_of_the_vendor():
    # [spec parallel 4.3], written out
    for size in (0, 1, 479, 480, 481, 511, 512, 513, 4096):
        assert BLOCK_RULES["dynamic"].block(size) == max(512, -(-size // 512) * 512)
        assert BLOCK_RULES["static"].block(size) == max(512, (size + 512 + 32 - 1) // 512 * 512)
        assert BLOCK_RULES["communication"].block(size) == max(512, -(-size // 512) * 512) + 1024
        assert BLOCK_RULES["acl"].block(size) == -(-size // 32) * 32 + 32


def test_communication_blocks_have_a_guard_on_both_sides():
    memory = Memory(MIB)
    first = memory.allocate(512)
    shared = memory.allocate(512, rule="communication")
    after = memory.allocate(512)
    assert shared.address - (first.address + 512) == 512
    assert after.address - (shared.address + 512) == 512


def test_a_fresh_block_holds_the_pattern_and_a_reused_one_its_past():
    memory = Memory(MIB)
    buffer = memory.allocate(100)
    assert set(buffer.bytes()) == {FILL}
    buffer.write(np.arange(100, dtype=np.uint8))
    memory.free(buffer)
    assert memory.allocate(100).bytes().tolist() == list(range(100))


def test_a_write_behind_the_end_tramples_the_neighbour_and_ends_its_version():
    memory = Memory(MIB)
    first, second = memory.allocate(512, owner="a"), memory.allocate(512, owner="b")
    first.write(np.zeros(512, np.uint8))
    second.write(np.ones(512, np.uint8))
    versions = first.version, second.version
    hit = memory.write(first.end - 4, np.full(8, 9, np.uint8))
    assert [b.owner for b in hit] == ["a", "b"]
    assert first.bytes()[-5:].tolist() == [0, 9, 9, 9, 9]
    assert second.bytes()[:5].tolist() == [9, 9, 9, 9, 1]
    assert first.version != versions[0]
    assert second.version != versions[1]


def test_versions_are_unique_in_a_memory():
    memory = Memory(MIB)
    first = memory.allocate(8)
    seen = {first.version}
    first.write(np.zeros(8, np.uint8))
    seen.add(first.version)
    memory.free(first)
    again = memory.allocate(8)
    assert again.address == first.address
    assert again.version not in seen


def test_arrays_are_views_of_memory():
    memory = Memory(MIB)
    buffer = memory.allocate(24)
    array = buffer.array(np.dtype(np.float32), (2, 3))
    array[1, 2] = 1.0
    assert buffer.bytes()[-4:].tobytes() == np.float32(1).tobytes()


def test_out_of_memory_shows_the_plan():
    memory = Memory(4096, device_id=3)
    memory.allocate(1024, owner="fc1.weight", kind="weight")
    memory.allocate(512, owner="Default/Add-op0", kind="activation")
    with pytest.raises(OutOfMemoryError) as caught:
        memory.allocate(4000, owner="Default/MatMul-op0")
    text = str(caught.value)
    assert (
        "Device(id:3) memory isn't enough and alloc failed, kernel name: Default/MatMul-op0, alloc size: 4000B" in text
    )
    assert "1536 of 4096 bytes used, 2560 free, largest free block 2560" in text
    lines = text.splitlines()
    assert lines[2].split()[1:] == ["1024", "weight", "fc1.weight"]
    assert lines[3].split()[1:4] == ["512", "activation", "Default/Add-op0"]
    assert isinstance(caught.value, RuntimeError)


def test_asking_for_room_changes_nothing():
    memory = Memory(4096)
    memory.require(4096)
    with pytest.raises(OutOfMemoryError, match="kernel name: graph, alloc size: 4097B"):
        memory.require(4097, owner="graph")
    buffer = memory.allocate(4096)
    assert buffer.fresh
    assert memory.peak == 4096
    with pytest.raises(OutOfMemoryError):
        memory.require(1)


def test_a_buffer_is_freed_once():
    memory = Memory(MIB)
    buffer = memory.allocate(1, owner="x")
    memory.free(buffer)
    with pytest.raises(DeviceError, match="'x' was freed twice"):
        memory.free(buffer)


def test_addresses_outside_are_an_error():
    memory = Memory(MIB)
    with pytest.raises(DeviceError, match="outside the device's memory"):
        memory.view(BASE_ADDRESS + MIB - 1, 2)
    with pytest.raises(DeviceError, match="outside the device's memory"):
        memory.view(0, 1)


def test_an_arena_costs_nothing_until_it_is_touched():
    memory = Memory(32 << 30)
    buffer = memory.allocate(20 << 30, fill=False)
    buffer.bytes()[:: 1 << 30] = 1
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1]) * mmap.PAGESIZE
    assert resident < 4 << 30


def test_discarded_pages_read_as_zero():
    memory = Memory(MIB)
    buffer = memory.allocate(64 * 1024)
    buffer.write(np.ones(64 * 1024, np.uint8))
    neighbour = memory.allocate(512)
    memory.discard(buffer)
    assert buffer.bytes()[mmap.PAGESIZE : -mmap.PAGESIZE].max() == 0
    assert set(neighbour.bytes()) == {FILL}


def workspace(memory, sizes, owner="plan"):
    """A block with buffers planned inside of it one after the other."""
    block = memory.allocate(sum(sizes), owner=owner, kind="workspace")
    starts = [block.address + sum(sizes[:at]) for at in range(len(sizes))]
    block.parts = {
        at: Buffer(memory=memory, address=start, size=size, alloc_size=size, owner=f"{owner} {at}", kind="activation")
        for at, (start, size) in enumerate(zip(starts, sizes, strict=True))
    }
    return block


@pytest.mark.parametrize("seed", range(20))
def test_buffers_of_a_range_are_those_that_share_a_byte_with_it(seed):
    rng = random.Random(seed)
    memory = Memory(MIB)
    blocks = [memory.allocate(rng.randrange(1, 900)) for _ in range(6)]
    blocks.insert(3, workspace(memory, [rng.randrange(1, 900) for _ in range(3)]))
    memory.free(blocks.pop(rng.choice((0, 1, 5))))
    blocks.sort(key=lambda block: block.address)
    everything = [one for block in blocks for one in (block, *block.parts.values())]
    edges = [edge + by for one in everything for edge in (one.address, one.end) for by in (-1, 0, 1)]
    for _ in range(60):
        first = max(BASE_ADDRESS, rng.choice(edges))
        last = first + rng.choice((1, 2, 500, 3000))
        shared = [one for one in everything if max(first, one.address) < min(last, one.end)]
        assert [one.address for one in memory.overlapping(first, last - first)] == [one.address for one in shared]
        assert {id(one) for one in memory.overlapping(first, last - first)} == set(map(id, shared))


def test_a_plan_is_reported_largest_first_with_what_lies_inside():
    memory = Memory(MIB)
    small, block = memory.allocate(512, owner="small"), workspace(memory, [100, 300, 200])
    more = [memory.allocate(1024 + 512 * at, owner=f"more {at}") for at in range(12)]
    head, *lines = memory.report().splitlines()
    used = sum(one.alloc_size for one in (small, block, *more))
    assert f"{used} of {MIB} bytes used, {MIB - used} free" in head
    blocks = [line for line in lines if line.startswith("  0x")]
    sizes = [int(line.split()[1]) for line in blocks]
    assert sizes == sorted((one.alloc_size for one in (small, block, *more)), reverse=True)[:12]
    assert lines[-1].startswith("  and 2 smaller blocks, ")
    assert int(lines[-1].split()[-2]) == used - sum(sizes)
    memory = Memory(MIB)
    workspace(memory, [100, 300, 200])
    assert [line.split()[1:] for line in memory.report().splitlines()[2:]] == [
        ["300", "activation", "plan", "1"], ["200", "activation", "plan", "2"], ["100", "activation", "plan", "0"],
    ]  # fmt: skip


def test_a_memory_that_is_new():
    memory = Memory(MIB)
    assert (memory.capacity, memory.limit, memory.device_id, memory.used, memory.peak) == (MIB, MIB, 0, 0, 0)
    assert (memory.backed, memory.rule, memory.blocks()) == (True, BLOCK_RULES["dynamic"], [])
    assert memory.allocate(1).version == 1
    bare = Buffer(memory=memory, address=BASE_ADDRESS, size=8, alloc_size=512)
    assert (bare.owner, bare.kind, bare.born, bare.dead, bare.version, bare.block) == ("", "tensor", 0, None, 0, -1)
    assert (bare.fresh, dict(bare.parts), bare.holder, bare.end) == (False, {}, None, BASE_ADDRESS + 8)
    buffer = memory.allocate(8, owner="a", kind="input", born=5)
    assert (buffer.owner, buffer.kind, buffer.born, buffer.dead, buffer.fresh) == ("a", "input", 5, None, True)
    memory.free(buffer)
    assert buffer.dead == 0
    again = memory.allocate(8)
    assert (again.address, again.fresh) == (buffer.address, False)
    memory.free(again, dead=9)
    assert again.dead == 9
    with pytest.raises(DeviceError, match=rf"^{again.address:#x}: the buffer of '' was freed twice$"):
        memory.free(again)


@pytest.mark.parametrize("rule", sorted(BLOCK_RULES))
def test_what_is_used_is_the_sum_of_the_blocks(rule):
    memory, sizes = Memory(MIB, rule=rule), (0, 1, 31, 512, 700)
    rules = BLOCK_RULES[rule]
    buffers = [memory.allocate(size) for size in sizes]
    assert memory.used == memory.peak == sum(rules.block(size) for size in sizes)
    for size, buffer in zip(sizes, buffers, strict=True):
        assert buffer.alloc_size == rules.block(size) - 2 * rules.guard
        assert buffer.size == buffer.bytes().size == size
        assert set(memory.view(buffer.address - rules.guard, rules.block(size))) == {FILL}
    for buffer in buffers[1:]:
        memory.free(buffer)
    assert memory.used == rules.block(0)
    assert memory.peak == sum(rules.block(size) for size in sizes)


def test_a_block_that_is_written_at_once_has_only_its_padding_filled():
    memory = Memory(MIB)
    buffer = memory.allocate(100, fill=False)
    assert memory.view(buffer.address, 512).tolist() == [0] * 100 + [FILL] * 412
    buffer.write(np.arange(100, dtype=np.uint8))
    memory.free(buffer)
    larger = memory.allocate(600, fill=False)  # reuses 512 bytes, and takes as many that are fresh
    assert larger.fresh
    assert memory.view(larger.address, 1024).tolist() == [
        *range(100), *[FILL] * 412, *[0] * 88, *[FILL] * 424
    ]  # fmt: skip


def test_a_plan_of_faults_may_lower_the_limit():
    memory = Memory(MIB, device_id=2)
    memory.limit = 2048
    first = memory.allocate(1024, owner="w", kind="weight")
    memory.require(1024)
    for size in (1025, 4096):
        with pytest.raises(OutOfMemoryError):
            memory.require(size)
        with pytest.raises(OutOfMemoryError):
            memory.allocate(size)
    second = memory.allocate(1000, owner="x", kind="input")
    with pytest.raises(OutOfMemoryError) as caught:
        memory.require(1, owner="Default/Add-op0")
    assert (
        str(caught.value)
        == f"""\
Memory not enough: Device(id:2) memory isn't enough and alloc failed, kernel name: Default/Add-op0, alloc size: 1B.
memory plan of device 2: 2048 of 2048 bytes used, 0 free, largest free block 0
  {first.address:#x}           1024 weight     w
  {second.address:#x}           1024 input      x [DS-DEV-001]"""
    )
    memory.limit = 1000  # less than is used
    assert "2048 of 1000 bytes used, -1048 free, largest free block 0" in memory.report()


def test_bytes_at_the_bounds_of_the_device():
    memory = Memory(MIB, device_id=4)
    assert memory.view(BASE_ADDRESS, MIB).size == MIB
    assert memory.view(BASE_ADDRESS + MIB, 0).size == 0
    for address, count in ((BASE_ADDRESS - 1, 1), (BASE_ADDRESS + MIB, 1), (BASE_ADDRESS, MIB + 1)):
        for action in (memory.view, memory.read, lambda a, n: memory.write(a, np.zeros(n, np.uint8))):
            with pytest.raises(DeviceError) as caught:
                action(address, count)
            assert str(caught.value) == (
                f"device 4: {count} bytes at {address:#x} are outside the device's memory; allowed: "
                f"{BASE_ADDRESS:#x} to {BASE_ADDRESS + MIB:#x}"
            )


def test_a_memory_without_bytes_has_addresses():
    memory, twin = Memory(MIB, backed=False, device_id=3), Memory(MIB)
    assert [memory.allocate(size).address for size in (1, 900)] == [twin.allocate(size).address for size in (1, 900)]
    with pytest.raises(UnknownValueError, match=f"^device 3: the 4 bytes at {BASE_ADDRESS:#x} are not known"):
        memory.view(BASE_ADDRESS, 4)


def test_writes_of_another_size_are_refused_and_of_any_shape_taken():
    memory = Memory(MIB)
    buffer = memory.allocate(8, owner="w")
    before = buffer.version
    for values in (np.zeros(7, np.uint8), np.zeros(3, np.float32)):
        with pytest.raises(BadInputError, match=f"^w: {values.nbytes} bytes do not fill a buffer of 8 bytes$"):
            buffer.write(values)
    assert buffer.version == before
    buffer.write(np.arange(4, dtype=np.int16).reshape(2, 2).T)
    assert buffer.array(np.dtype(np.int16), (2, 2)).tolist() == [[0, 2], [1, 3]]
    assert buffer.version == before + 1
