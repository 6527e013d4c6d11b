"""The memory that PYNATIVE operators use: the address of an array's first byte, and that after its last."""

from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.dtype import dtype
from dumpsim.ops.table import find
from dumpsim.runtime.slot import Slot
from dumpsim.runtime.touched import touched, touched_arrays

WHOLE = np.zeros((4, 6), np.float32)


def first(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize(
    "array",
    [WHOLE, WHOLE[1:3], WHOLE[::-1], WHOLE[:, ::-2], WHOLE[3:0:-2, 1:5:3], WHOLE.T, WHOLE[2, 3], WHOLE.astype(np.int8)],
)
def test_the_bytes_of_an_array(array):
    array = np.asarray(array)
    places = [first(array[(*at, ...)]) for at in np.ndindex(array.shape)]
    (touch,) = touched_arrays(find("Neg"), [array], None)
    assert (touch.low, touch.high) == (min(places), max(places) + array.itemsize)
    assert (touch.writes, touch.space, touch.what) == (False, "host", "Neg's input")
    assert touch.holder is array


def test_an_array_of_no_elements_touches_nothing():
    (touch,) = touched_arrays(find("Neg"), [WHOLE[:0]], None)
    assert touch.low == touch.high


def test_operands_that_are_updated_tuples_numbers_and_groups():
    one, other = WHOLE.copy(), WHOLE.copy()
    written, read = touched_arrays(find("AssignAdd"), [one, other], None)
    assert (written.writes, read.writes) == (True, False)
    tuples = list(touched_arrays(find("AddN"), [(one, (other,), 3)], None))
    assert [touch.low for touch in tuples] == [first(one), first(other)]
    assert list(touched_arrays(find("Neg"), [2.0], None)) == []
    _, group = touched_arrays(find("AllReduce"), [one], "pair")
    assert (group.writes, group.space) == (True, "group pair")  # two calls of a group use the same links
    assert group.low < group.high


@pytest.mark.parametrize("group", [None, "pair"])
def test_the_tensors_of_a_kernel_and_the_links_of_its_group(group):
    """Operands are read, updates written too; an output that shares an updated operand is not written again."""
    kind = dtype("float32")
    a, b, c, d, e = (
        Slot(index=at, name=name, kind="activation", dtype=kind, shape=(3,), device_dtype=kind)
        for at, name in enumerate("abcde")
    )
    call = SimpleNamespace(
        definition=SimpleNamespace(updates=(1,)), arguments=(a, (b, c), None, d), outputs=(e, b), stored=(True, False)
    )
    binding = SimpleNamespace(address=lambda slot: 100 * slot.index, nbytes=lambda slot: slot.nbytes + slot.index)
    found = list(touched(binding, call, group))
    links = [("group 'pair'", 0, 1, True, "group pair")] if group else []
    assert [(one.what, one.low, one.high, one.writes, one.space) for one in found] == [
        ("a", 0, 12, False, "device"), ("b", 100, 113, True, "device"), ("c", 200, 214, True, "device"),
        ("d", 300, 315, False, "device"), ("e", 400, 416, True, "device"), *links,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "shown"), [((), ["", "", ""]), (("x",), ["x", "x", "x"]), (("x", "y"), ["x", "y", "y"])]
)
def test_further_operands_have_the_last_name(names, shown):
    found = touched_arrays(SimpleNamespace(name="Op", operands=names, updates=()), [WHOLE, WHOLE.T, WHOLE], None)
    assert [touch.what for touch in found] == [f"Op's {name}" for name in shown]
