"""Work that a listener defers until after a kernel: on the kernel's stream, in order, with its tensors alive."""

import numpy as np
import pytest

from dumpsim.core.errors import DeviceError
from dumpsim.core.events import GraphEvent, TaskEvent
from dumpsim.core.options import CompileOptions
from dumpsim.device.faults import make_plan

X = np.arange(1 << 19, dtype=np.float32)


class Deferring:
    """A tap that reads outputs later, and records the order."""

    def __init__(self):
        self.log = []

    def wants(self, event):
        return isinstance(event, (TaskEvent, GraphEvent))

    def graph_compiled(self, event):
        self.log.append(("model", event.model_name, event.model_id))

    def before_task(self, event):
        self.log.append(("before", event.full_name))
        if event.defer is not None:
            event.defer(lambda: self.log.append(("behind begin", event.full_name)))

    def after_task(self, event):
        self.log.append(("after", event.full_name))
        if event.defer is not None:
            read, kind = event.outputs[0].read, event.outputs[0].device_dtype.numpy
            event.defer(lambda: self.log.append(("value", event.full_name, float(read().view(kind)[7]))))


@pytest.mark.parametrize("reuse", [True, False])
def test_deferred_work_runs_between_its_kernel_and_the_next_one(net, session, reuse):
    b = net()
    program = b.program(b.op("Neg", b.op("Neg", b.op("Neg", b.input("x", X.shape)))))
    s, tap = session(), Deferring()
    s.add_tap(tap)
    s.compile(program, CompileOptions(memory_reuse=reuse))  # dead pages are given back where nothing is reused
    (out,) = s.execute(program, [X])
    np.testing.assert_array_equal(out, -X)
    expected = [("model", "", 0)]
    for at, value in enumerate((-7.0, 7.0, -7.0)):
        name = f"Default/Neg-op{at}"
        expected += [("before", name), ("after", name), ("behind begin", name), ("value", name, value)]
    assert tap.log == expected


def test_a_stopped_kernel_cannot_have_deferred_work(net, session):
    b = net()
    program = b.program(b.op("Neg", b.input("x", X.shape)))
    s, tap = session(), Deferring()
    s.add_tap(tap)
    s.inject(make_plan([{"kind": "aicore_error", "op": "Neg", "code": 507015}]))
    with pytest.raises(DeviceError, match="507015"):
        s.execute(program, [X])
    assert [entry[0] for entry in tap.log] == ["model", "before", "after", "behind begin"]


def test_whole_graphs_are_models_numbered_over_the_process(net, session):
    s, tap = session(), Deferring()
    s.add_tap(tap)
    for graph_id in (3, 8):
        b = net(graph_id=graph_id)
        s.compile(b.program(b.op("Neg", b.input("x", (2,)))), s.options(jit_level="O2"))
    assert tap.log == [("model", "kernel_graph3", 1), ("model", "kernel_graph8", 2)]
