"""The tensors of a plan in one rank's memory: lives, views, shared values, shapes that kernels decide."""

import mmap
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.dtype import dtype
from dumpsim.core.errors import DeviceError
from dumpsim.device.memory import FILL, Memory
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.slot import Slot
from dumpsim.tensor.layout import to_device

PAGE = mmap.PAGESIZE


def slot(index, shape, offset=-1, number="float32", **more):
    given = {"kind": "activation", "dtype": dtype(number), "device_dtype": dtype(number), **more}
    return Slot(index=index, name=f"node{index}", shape=shape, offset=offset, **given)


def bound(*slots, size=16384, memory=None, claim=True, **options):
    """A binding whose workspace is claimed, and its memory."""
    memory = Memory(1 << 20) if memory is None else memory
    given = {"storages": (), "keep_views": False, **options}
    binding = Binding(SimpleNamespace(planned=slots, rule="dynamic"), memory, **given)
    if claim:
        binding.claim(memory.allocate(size, kind="workspace", fill=False))
    return binding, memory


def raw(memory, address, nbytes):
    return memory.read(address, nbytes).tobytes()


# ---------------------------------------------------------------- lives
def test_the_life_of_a_tensor():
    a = slot(0, (2, 3), 512, slot=1, born=4)
    binding, _memory = bound(a)
    assert not binding.is_alive(a)
    binding.begin(a)
    buffer = binding.buffer(a)
    assert binding.is_alive(a)
    assert (buffer.address, buffer.size, buffer.alloc_size) == (binding.base + 512, 24, 512)
    assert (buffer.owner, buffer.kind, buffer.born) == ("node0", "activation", 4)
    assert binding.workspace.parts == {0: buffer}
    assert binding.end(a) is buffer
    assert not binding.is_alive(a)
    assert binding.workspace.parts == {}
    assert binding.address(a) == buffer.address  # its previous address


@pytest.mark.parametrize("keep", [False, True])
def test_buffers_and_views_are_kept_on_request(keep):
    a = slot(0, (2, 3), 0)
    binding, _ = bound(a, keep_views=keep)
    found = []
    for _ in range(2):
        binding.begin(a)
        found.append((binding.buffer(a), binding.array(a)))
        binding.end(a)
        binding.claim(binding.unclaim())
    (buffer, view), (again, same) = found
    assert (buffer is again) is keep
    assert (view is same) is keep


@pytest.mark.parametrize("keep", [False, True])
def test_a_dead_tensor_has_no_buffer(keep):
    plain, private = slot(0, (2, 3), 0), slot(1, (1, 3, 2, 2), 512, "float16", device_format="NC1HWC0")
    binding, _ = bound(plain, private, keep_views=keep)
    binding.begin(plain)
    binding.begin(private)
    view, converted = weakref.ref(binding.array(plain)), weakref.ref(binding.array(private))
    binding.end(plain)
    binding.end(private)
    assert (view() is not None) is keep
    assert converted() is None


def test_a_tensor_has_no_address_before_the_first_run():
    binding, _ = bound(slot(0, (2,), 512), claim=False)
    assert (binding.base, binding.place, binding.workspace) == (0, (0, 0), None)
    assert binding.address(slot(0, (2,), 512)) == 0
    assert binding.unclaim() is None


def test_a_workspace_at_another_address_has_new_views():
    a = slot(0, (2, 3), 512)
    binding, memory = bound(a, keep_views=True)
    binding.begin(a)
    binding.array(a)[...] = 7
    first = binding.buffer(a)
    old = binding.unclaim()
    assert not binding.is_alive(a)
    place = binding.place
    binding.claim(memory.allocate(16384, fill=False))
    assert binding.place != place
    binding.begin(a)
    assert binding.buffer(a) is not first
    binding.array(a)[...] = 5
    assert raw(memory, old.address + 512, 24) == np.full(6, 7, np.float32).tobytes()
    assert raw(memory, binding.base + 512, 24) == np.full(6, 5, np.float32).tobytes()


def test_a_fresh_workspace_shows_its_pattern_after_each_tensor():
    a, b = slot(0, (2, 3), 0), slot(1, (4,), 512)
    binding, memory = bound(a, b)
    memory.view(binding.base, 1024)[:] = 1
    binding.begin(a)
    binding.begin(b, untouched=True)
    assert raw(memory, binding.base, 24) == b"\1" * 24
    assert raw(memory, binding.base + 24, 488) == bytes([FILL]) * 488
    assert raw(memory, binding.base + 512, 512) == bytes([FILL]) * 512
    assert binding.buffer(a).version == 0 < binding.buffer(b).version


def test_a_used_workspace_keeps_its_bytes():
    memory = Memory(1 << 20)
    memory.free(memory.allocate(16384))
    b = slot(0, (4,), 512)
    binding, memory = bound(b, memory=memory)
    memory.view(binding.base, 1024)[:] = 1
    binding.begin(b, untouched=True)
    assert raw(memory, binding.base, 1024) == b"\1" * 1024


def test_owners_are_the_live_tensors_of_the_same_bytes():
    first, second = slot(0, (128,), 0), slot(1, (128,), 512, slot=2)
    over = slot(2, (128,), 256)
    exact = slot(3, (128,), 0)
    last = slot(4, (1,), 1020)
    view = slot(5, (64, 2), base=first)
    weight = slot(6, (128,), kind="weight")
    binding, _ = bound(first, second, over, exact, last)
    assert binding.owners(over) == []
    binding.begin(first)
    binding.begin(second)
    assert binding.owners(over) == ["node0:0", "node1:2"]
    assert binding.owners(exact) == ["node0:0"]
    assert binding.owners(last) == ["node1:2"]
    assert binding.owners(first) == []
    assert binding.owners(view) == []
    assert binding.owners(weight) == []
    binding.end(first)
    assert binding.owners(over) == ["node1:2"]


# ---------------------------------------------------------------- weights and constants
def test_weights_have_memory_of_their_own():
    weight = slot(0, (2, 3), kind="weight")
    binding, memory = bound()
    one, other = memory.allocate(24), memory.allocate(24)
    binding.fix(weight, one)
    assert binding.is_alive(weight)
    assert binding.is_fixed(weight, one)
    assert not binding.is_fixed(weight, other)
    assert binding.address(weight) == one.address
    binding.put(weight, np.arange(6, dtype=np.float32))
    assert binding.array(weight).tolist() == [[0, 1, 2], [3, 4, 5]]
    binding.fix(weight, other)
    binding.array(weight)[...] = 1
    assert one.array(np.dtype(np.float32), (6,)).tolist() == [0, 1, 2, 3, 4, 5]
    assert binding.unfix(weight) is other
    assert binding.unfix(weight) is None


def test_storages_of_weights_directly_or_by_index():
    holder = object()
    binding, _ = bound(claim=False, storages=["a", "b"])
    assert binding.storage(slot(0, (1,), storage=1)) == "b"
    assert binding.storage(slot(0, (1,), storage=0)) == "a"
    assert binding.storage(slot(0, (1,), storage=holder)) is holder


# ---------------------------------------------------------------- shapes that kernels decide
def test_a_shape_that_the_kernel_decides():
    a = slot(0, (-1, 2), 0, bound=6)
    binding, _ = bound(a)
    binding.begin(a)
    assert (binding.shape(a), binding.nbytes(a), a.nbytes) == ((-1, 2), 24, 24)
    binding.settle(a, (2, 2))
    assert binding.shape(a) == binding.device_shape(a) == binding.shown_shape(a, produced=True) == (2, 2)
    assert binding.nbytes(a) == 16
    binding.put(a, np.arange(4, dtype=np.float32).reshape(2, 2))
    assert binding.array(a).tolist() == [[0, 1], [2, 3]]
    binding.settle(a, (3, 2))
    assert binding.array(a).shape == (3, 2)
    assert binding.array(a)[:2].tolist() == [[0, 1], [2, 3]]
    with pytest.raises(DeviceError, match=r"shape \(7,\) has more than 6 elements"):
        binding.settle(a, (7,))


def test_a_result_that_is_shown_with_its_largest_shape():
    a = slot(0, (-1,), 512, bound=6, shows_largest=True)
    binding, memory = bound(a)
    binding.begin(a)
    memory.view(binding.base, 1536)[:] = 9
    binding.settle(a, (2,), (4,))
    assert binding.shown_shape(a, produced=True) == (4,)
    assert binding.shown_shape(a) == binding.shape(a) == (2,)
    assert raw(memory, binding.base + 512, 16) == bytes(16)
    assert raw(memory, binding.base + 528, 4) == bytes([9]) * 4
    assert raw(memory, binding.base + 508, 4) == bytes([9]) * 4
    binding.settle(a, (3,))
    assert binding.shown_shape(a, produced=True) == (4,)  # as of the last time it was said


def test_a_view_on_the_cpu_is_shown_in_the_shape_of_its_base():
    base = slot(0, (2, 8), 0)
    plain, transparent = slot(1, (4, 4), base=base), slot(2, (4, 4), base=base, transparent=True)
    binding, _ = bound(base)
    assert binding.shown_shape(plain) == (4, 4)
    assert binding.shown_shape(transparent) == binding.shown_shape(transparent, produced=True) == (2, 8)
    binding.begin(base)
    binding.put(base, np.arange(16, dtype=np.float32))
    assert binding.array(transparent).shape == (4, 4)
    assert binding.array(transparent)[1, 0] == 4


# ---------------------------------------------------------------- layouts
def test_private_layouts_are_converted_once_a_version():
    a = slot(0, (1, 3, 2, 2), 0, "float16", device_format="NC1HWC0")
    binding, memory = bound(a)
    binding.begin(a)
    values = np.arange(12, dtype=np.float16).reshape(1, 3, 2, 2)
    binding.put(a, values)
    assert raw(memory, binding.base, a.nbytes) == to_device(values, "NC1HWC0").tobytes()
    found = binding.array(a)
    np.testing.assert_array_equal(found, values)
    assert binding.array(a) is found
    binding.device_array(a)[...] = to_device(values * 2, "NC1HWC0")
    assert binding.array(a) is found
    binding.buffer(a).touch()
    np.testing.assert_array_equal(binding.array(a), values * 2)
    binding.end(a)
    memory.view(binding.base, a.nbytes)[:] = 0
    binding.begin(a)
    binding.buffer(a).version = 0
    assert not binding.array(a).any()


def test_a_view_that_was_put_may_be_written_later():
    a = slot(0, (1, 3, 2, 2), 0, "float16", device_format="NC1HWC0")
    binding, _ = bound(a)
    binding.begin(a)
    base = np.ones((2, 3, 2, 2), np.float16)
    binding.put(a, base[:1])
    base[...] = 5
    assert (binding.array(a) == 1).all()


def test_bits_are_packed():
    a = slot(0, (11,), 0, "bool", device_dtype=dtype("uint1"))
    binding, memory = bound(a)
    binding.begin(a)
    values = np.array([1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0], bool)
    binding.put(a, values)
    np.testing.assert_array_equal(binding.array(a), values)
    assert raw(memory, binding.base, 2) == np.packbits(values).tobytes()


# ---------------------------------------------------------------- sharing
def frozen(count, kind=np.float32):
    values = np.arange(count, dtype=kind)
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    ("values", "is_shared"),
    [
        (frozen(PAGE // 4), True),
        (frozen(PAGE // 4).reshape(2, -1), True),
        (frozen(PAGE // 4 - 1), False),  # too few to save memory
        (np.arange(PAGE // 4, dtype=np.float32), False),  # writable
        (frozen(PAGE // 2)[: PAGE // 4], False),  # the rest would stay too
        (frozen(PAGE // 4).reshape(32, -1).T, False),  # not in order
    ],
    ids=["page", "reshaped", "few", "writeable", "part", "transposed"],
)
def test_read_only_values_are_shared(values, is_shared):
    a = slot(0, values.shape, 0)
    binding, _memory = bound(a)
    binding.begin(a)
    before = binding.buffer(a).version
    binding.share(a, values)
    assert binding.buffer(a).version > before
    np.testing.assert_array_equal(binding.array(a), values)
    assert np.shares_memory(binding.array(a), values) is is_shared
    binding.own(a)
    assert not np.shares_memory(binding.array(a), values)
    np.testing.assert_array_equal(binding.array(a), values)
    binding.share(a, values)
    binding.put(a, np.zeros_like(values))
    assert not binding.array(a).any()
    assert values.any()


def test_values_of_another_type_or_layout_are_copied():
    wide = frozen(PAGE // 4, np.int32)
    a = slot(0, (PAGE // 4,), 0)
    binding, _ = bound(a)
    binding.begin(a)
    binding.share(a, wide)
    np.testing.assert_array_equal(binding.array(a), wide.astype(np.float32))
    private = slot(1, (PAGE // 64, 32), 0, "float16", device_format="FRACTAL_NZ")
    binding, _ = bound(private)
    binding.begin(private)
    halves = np.ones((PAGE // 64, 32), np.float16)
    halves.flags.writeable = False
    binding.share(private, halves)
    assert not np.shares_memory(binding.device_array(private), halves)
    np.testing.assert_array_equal(binding.array(private), halves)


def test_a_device_without_bytes_counts_versions():
    a = slot(0, (2,), 0)
    binding, _ = bound(a, memory=Memory(1 << 20, backed=False))
    binding.begin(a)
    before = binding.buffer(a).version
    binding.put(a, np.ones(2, np.float32))
    assert binding.buffer(a).version > before
    assert binding.place == (binding.base, 0)
