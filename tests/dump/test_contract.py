"""Write, open again, equal: every profile, every form of file."""

import numpy as np
import pytest

import dumpsim
from dumpsim.archive.naming import escape
from dumpsim.modes.profile import find, names
from tests.dump.machine import Machine, graph, ref, task

IMAGE = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
FLAGS = np.array([True, False])
COUNTS = np.arange(-3, 3, dtype=np.int64).reshape(2, 3)
CONV, CAST = "Default/conv.1-Conv2d/Conv2D-op0", "Default/Cast-op12"

FORMS = [
    (name, form)
    for name in names()
    for form in (("bin", "npy") if find(*name.split("/")).tree == "model" else ("npy",))
]


def run(root, profile, form):
    """Two runs of two operators; what was given to the dump, in its order."""
    changes = {"file_format": form} if find(*profile.split("/")).tree == "model" else {}
    machine = Machine(root, profile, **changes)
    machine.compile(graph(order=(CONV, CAST)))
    layout = "NC1HWC0" if "ascend" in profile else "DefaultFormat"
    expected = []
    for iteration in range(2):
        image = IMAGE + iteration
        ids = {"task_id": 4 + iteration, "stream_id": 1}
        if changes:
            ids |= {"model_name": "kernel_graph0", "model_id": 1}
        operators = [
            task(CONV, [ref(image, 0, layout=layout), ref(FLAGS, 1)], [ref(-image, 0, layout=layout)], **ids),
            task(CAST, [ref(COUNTS, 0)], [ref(COUNTS.astype(np.float16), 0), ref(FLAGS, 1)], **ids),
        ]
        machine.run(*operators)
        for op, tensors in (
            (operators[0], [("input", 0, image), ("input", 1, FLAGS), ("output", 0, -image)]),
            (operators[1], [("input", 0, COUNTS), ("output", 0, COUNTS.astype(np.float16)), ("output", 1, FLAGS)]),
        ):
            expected += [(op.op_type, op.full_name, iteration, io, slot, array) for io, slot, array in tensors]
    machine.service.finish()
    return machine, expected


@pytest.mark.parametrize(("profile", "form"), FORMS)
def test_what_was_written_is_read(tmp_path, profile, form):
    machine, expected = run(tmp_path / "dump", profile, form)
    found = sorted(dumpsim.open(tmp_path / "dump"), key=lambda e: (e.timestamp, e.io == "output", e.slot))
    assert len(found) == len(expected)
    for entry, (op_type, op_name, iteration, io, slot, array) in zip(found, expected, strict=True):
        assert (entry.op_type, escape(entry.op_name)) == (op_type, escape(op_name))
        assert (entry.iteration, entry.io, entry.slot) == (iteration, io, slot)
        assert (entry.dtype, entry.shape) == (array.dtype.name, array.shape)
        assert np.array_equal(entry.array(), array)
        record = entry.record
        assert record.stream_id == 1
        assert record.task_id == (4 + iteration if machine.service.profile.task_id == "device" else 0)
