"""Copies of the operands that a kernel is about to overwrite."""

from dataclasses import replace

import numpy as np
import pytest

from dumpsim.dump.capture import Snapshot, overlaps
from tests.dump.machine import ref, task

X = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize(
    ("address", "nbytes", "found"),
    [
        (100, 8, True), (92, 8, False), (92, 9, True), (108, 8, False), (107, 1, True), (99, 20, True), (102, 2, True),
        (0, 200, False),
    ],
)  # fmt: skip
def test_a_kernel_writes_where_an_output_has_a_byte_of_the_operand(address, nbytes, found):
    """The outputs take the bytes 100 to 107 and 1000 to 1003; an operand at 0 is not in the memory of the device."""
    outputs = tuple(replace(ref(X), address=at, nbytes=size) for at, size in ((1000, 4), (100, 8)))
    operand = replace(ref(X), address=address, nbytes=nbytes)
    assert overlaps(operand, outputs) is found
    assert overlaps(operand, ()) is False


def test_overwritten_operands_have_the_bytes_of_before_and_no_version():
    """Without a version, nothing that was computed for another state of the memory holds for a copy."""
    written, shared, other = (replace(ref(X + slot, slot), version=7) for slot in range(3))
    event = task(operands=[replace(written, written=True), shared, other],
                 outputs=[replace(ref(X), address=shared.address + 4)])  # fmt: skip
    snapshot = Snapshot()
    snapshot.take(event)
    for one in (written, shared, other):
        one.read()[:] = 0
    found = snapshot.restore(event)
    values = [one.read().view(np.float32).tolist() for one in found.operands]
    assert values == [[0, 1, 2, 3], [1, 2, 3, 4], [0, 0, 0, 0]]
    assert [one.version for one in found.operands] == [0, 0, 7]
    assert found.operands[2] is other
    assert replace(found, operands=event.operands) == event
    assert snapshot.restore(event) is event  # once
    snapshot.take(task(operands=[other], outputs=[ref(X)]))
    assert snapshot.restore(event) is event
