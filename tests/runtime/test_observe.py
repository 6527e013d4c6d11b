"""The references that listeners get: shapes of views on the host and on the device."""

import numpy as np
import pytest


@pytest.mark.parametrize(("chip", "seen"), [("CPU", (2, 8)), ("910B", (4, 4))])
def test_a_cpu_shows_results_of_views_in_the_shape_of_what_they_view(net, operators, recorder, chip, seen):
    """As the vendor's CPU does with operators that compute nothing."""
    from dumpsim.core.options import CompileOptions
    from dumpsim.core.settings import RunSettings
    from dumpsim.runtime.session import Session

    b = net()
    first = b.op("Neg", b.input("x", (2, 8)))
    view = b.op("Reshape", first, (4, 4), shape=(4, 4))
    b.order.append(view)
    last = b.op("ReLU", view)
    session, tap = Session(RunSettings(chip=chip), environment={}, find=operators), recorder()
    session.add_tap(tap)
    program = b.program(last)
    session.compile(program, CompileOptions())
    session.execute(program, [np.ones((2, 8), np.float32)])
    tasks = {event.op_type: event for event, _ in tap.of("after")}
    (made,), (taken,) = tasks["Reshape"].outputs, tasks["ReLU"].operands
    for ref in (made, taken):
        assert ref.shape == seen
        assert ref.device_shape == seen
        assert ref.nbytes == 64
    assert tasks["Neg"].outputs[0].device_shape == (2, 8)
    assert tasks["ReLU"].outputs[0].shape == (4, 4)


def test_new_references_are_created_only_for_written_tensors(net, operators, recorder):
    from dumpsim.core.options import CompileOptions
    from dumpsim.core.settings import RunSettings
    from dumpsim.runtime.session import Session

    b = net()
    zeros = np.zeros((2, 3), np.float32)
    scaled = b.op("Scale", b.op("Neg", b.input("x", (2, 3))), 2.0)
    updated = b.op("ApplyMomentum", b.weight("w", zeros), b.weight("m", zeros), 0.1, scaled, 0.9)
    session, tap = Session(RunSettings(chip="CPU"), environment={}, find=operators), recorder()
    session.add_tap(tap)
    program = b.program(updated)
    session.compile(program, CompileOptions())
    for _ in range(2):
        session.execute(program, [np.ones((2, 3), np.float32)])
    (_, before), (_, after) = ([e.operands for e, _ in tap.of(when) if e.op_type == "ApplyMomentum"]
                               for when in ("before", "after"))  # fmt: skip
    assert [old is new for old, new in zip(before, after, strict=True)] == [False, False, True, True, True]
    assert all(new.version > old.version and new.written for old, new in zip(before[:2], after[:2], strict=True))
    first, second = [e.operands[1] for e, _ in tap.of("after") if e.op_type == "Scale"]
    assert first is second
    assert first.read().view(first.dtype.numpy) == [2.0]
