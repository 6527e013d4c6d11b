"""Arrays that stand in for a memory's bytes, against a memory that copies them at once."""

import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.errors import BadInputError
from dumpsim.device.memory import BASE_ADDRESS, Memory
from dumpsim.device.shared import SharedRanges

SIZE = 256
spans = st.tuples(st.integers(0, SIZE - 1), st.integers(1, 64)).map(
    lambda span: (span[0], min(span[1], SIZE - span[0]))
)
actions = st.lists(st.tuples(st.sampled_from(["share", "write", "view", "fill", "own", "read"]), spans), max_size=40)


def frozen(values):
    array = np.array(values, np.uint8)
    array.flags.writeable = False
    return array


@settings(max_examples=200, deadline=None)
@given(actions=actions)
def test_whatever_is_shared_and_written_the_bytes_are_those_of_copies(actions):
    memory, copy = Memory(1 << 20), np.zeros(SIZE, np.uint8)
    block = memory.allocate(SIZE)
    block.write(copy)
    given = []
    for number, (action, (start, count)) in enumerate(actions):
        address, part = block.address + start, copy[start : start + count]
        values = (np.arange(count) + 7 * number).astype(np.uint8)
        if action == "share":
            array = frozen(values)
            given.append((array, array.tobytes()))
            memory.share(address, array)
            assert np.shares_memory(memory.read(address, count), array)
        elif action == "write":
            memory.write(address, values)
        elif action == "view":
            memory.view(address, count)[:1] = values[0]
            values = np.concatenate([values[:1], part[1:]])
        elif action == "fill":
            memory.fill(address, count)
            values = np.full(count, 0xCD, np.uint8)
        else:
            if action == "own":
                memory.own(address, count)
            assert memory.read(address, count).tolist() == part.tolist()
            continue
        part[:] = values
    assert block.bytes().tolist() == copy.tolist()
    assert all(array.tobytes() == before for array, before in given)  # nobody has written what others may show


@given(actions=st.lists(spans, max_size=30), probe=spans)
def test_ranges_do_not_overlap_and_find_what_one_of_them_holds(actions, probe):
    ranges, owner = SharedRanges(), [-1] * SIZE
    for number, (start, count) in enumerate(actions):
        if number % 3 != 2:
            ranges.cut(start, start + count)
            ranges.add(start, np.full(count, number, np.uint8))
            owner[start : start + count] = [number] * count
        else:
            taken = ranges.cut(start, start + count)
            assert [at for at, piece in taken for at in range(at, at + piece.size)] == [
                at for at in range(start, start + count) if owner[at] >= 0
            ]
            owner[start : start + count] = [-1] * count
    assert sorted(ranges) == list(ranges)
    assert {at for low, high in ranges for at in range(low, high)} == {at for at in range(SIZE) if owner[at] >= 0}
    start, stop = probe[0], probe[0] + probe[1]
    found = ranges.find(start, stop)
    if found is not None:
        assert found.tolist() == owner[start:stop]
    elif any(number >= 0 for number in owner[start:stop]):
        assert len(set(owner[start:stop])) > 1 or any(start < high and low < stop for low, high in ranges)


def test_a_holder_is_told_when_its_buffer_is_shared_no_longer():
    class Holder:
        told = 0

        def publish(self):
            self.told += 1

    memory = Memory(1 << 20)
    buffer = memory.allocate(64, owner="w")
    buffer.holder = holder = Holder()
    buffer.write(np.zeros(64, np.uint8))
    array = frozen(range(64))
    for number, write in enumerate(
        [buffer.own, lambda: buffer.write(array), lambda: memory.write(buffer.end - 1, array[:3])], 1
    ):
        buffer.share(array)
        assert buffer.shared is array
        write()
        assert buffer.shared is None
        assert holder.told == number
    assert buffer.bytes().tolist() == [*range(63), 0]
    with pytest.raises(BadInputError, match="63 bytes do not fill a buffer of 64 bytes"):
        buffer.share(array[1:])


def test_discarded_bytes_read_as_zero_and_let_their_array_go():
    memory = Memory(1 << 20)
    guard = memory.allocate(512)
    buffer = memory.allocate(64 * 1024)
    array = frozen(np.ones(64 * 1024))
    buffer.share(array)
    memory.discard(buffer)
    assert not memory.ranges
    pages = slice(-(buffer.address - BASE_ADDRESS) % 4096, (64 * 1024) // 4096 * 4096 - 4096)
    assert set(buffer.bytes()[pages]) == {0}
    assert set(buffer.bytes()[:16]) == {1}  # a part of a page, which stays
    assert guard.bytes()[0] == 0xCD


@pytest.mark.parametrize("before", [512, 8192, 9216])
@pytest.mark.parametrize("shared", [(0, 1, 2), (0, 2), (1,)])
def test_only_the_whole_pages_of_what_is_discarded_are_lost(before, shared):
    memory = Memory(1 << 20)
    blocks = [memory.allocate(size) for size in (before, 5 * mmap.PAGESIZE, 6 * mmap.PAGESIZE)]
    for number, block in enumerate(blocks):
        values = frozen(np.full(block.size, number + 1))
        block.share(values) if number in shared else block.write(values)
    memory.discard(blocks[1])
    start = blocks[1].address - BASE_ADDRESS
    first, last = -(-start // mmap.PAGESIZE), (start + blocks[1].size) // mmap.PAGESIZE
    expected = np.full(blocks[1].size, 2)
    expected[first * mmap.PAGESIZE - start : last * mmap.PAGESIZE - start] = 0
    assert blocks[1].bytes().tolist() == expected.tolist()
    assert [set(blocks[at].bytes()) for at in (0, 2)] == [{1}, {3}]
    assert [block.shared is not None for block in blocks] == [0 in shared, False, 2 in shared]


def test_a_write_over_freed_memory_shows_there_and_not_in_the_array():
    memory = Memory(1 << 20)
    buffer = memory.allocate(512)
    array = frozen(np.ones(512))
    buffer.share(array)
    memory.free(buffer)
    assert memory.write(buffer.address + 500, np.zeros(8, np.uint8)) == ()
    again = memory.allocate(512)
    assert again.address == buffer.address
    assert again.bytes().tolist() == [1] * 500 + [0] * 8 + [1] * 4
    assert set(array) == {1}


def test_ranges_end_before_their_next_byte():
    ranges = SharedRanges()
    assert not ranges
    ranges.add(100, np.arange(10, dtype=np.uint8))
    ranges.add(120, np.arange(4, dtype=np.uint8))
    assert ranges
    assert list(ranges) == [(100, 110), (120, 124)]
    assert ranges.find(100, 110).tolist() == list(range(10))
    assert ranges.find(102, 105).tolist() == [2, 3, 4]
    assert ranges.find(99, 105) is ranges.find(108, 111) is ranges.find(110, 120) is None
    for start, stop in ((90, 100), (110, 120), (124, 130), (105, 105)):
        assert ranges.cut(start, stop) == [], (start, stop)
    assert list(ranges) == [(100, 110), (120, 124)]
    taken = ranges.cut(108, 122)
    assert [(at, part.tolist()) for at, part in taken] == [(108, [8, 9]), (120, [0, 1])]
    assert list(ranges) == [(100, 108), (122, 124)]
