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
