"""The null engine: the same launches, addresses and times as with values, but no readable values."""

import mmap

import numpy as np
import pytest

from dumpsim.core.errors import BadInputError, UnknownValueError
from dumpsim.core.settings import RunSettings
from dumpsim.device.memory import Memory
from dumpsim.graph.program import Branch, Loop, Move, Program, Run
from dumpsim.ops.table import find
from dumpsim.runtime.engine.table import engine
from dumpsim.runtime.unknown import Unknown, shape_of

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Timeline:
    """A tap that records launches, addresses and times, which are known without values."""

    def __init__(self):
        self.tasks, self.refs = [], []

    def wants(self, event):
        return True

    def graph_compiled(self, event):
        pass

    def run_begin(self, event):
        pass

    def run_end(self, event):
        self.refs += [ref for refs in event.parameters.values() for ref in refs]

    def before_task(self, event):
        pass

    def after_task(self, event):
        refs = (*event.operands, *event.outputs)
        self.refs += refs
        places = [(r.address, r.nbytes, r.shape, r.dtype.name, r.device_format) for r in refs]
        overflow = event.overflow, event.overflow_status
        self.tasks.append((event.full_name, event.task_id, event.stream_id, event.time_ns, overflow, places))


def training(net, holder):
    """A step with a convolution in a private format, a view, a tuple, an update in place and two results."""
    b = net()
    x = b.input("x", (3, 4))
    weight = b.weight("w", np.ones((4, 4), np.float32))
    moment = b.weight("m", np.zeros((4, 4), np.float32))
    y = b.op("MatMul", x, weight, shape=(3, 4))
    y = b.op("ReLU", y)
    parts = b.op("Split", y, items=((1, 4), (2, 4)))
    head, tail = b.op("TupleGetItem", parts, 0), b.op("TupleGetItem", parts, 1)
    flat = b.op("Reshape", tail, (4, 2), shape=(4, 2))
    gradient = b.op("AddN", b.op("MakeTuple", weight, weight), shape=(4, 4))
    update = b.op("ApplyMomentum", weight, moment, 0.5, gradient, 0.9)
    flat = b.op("Neg", flat)
    return b, b.program(b.op("MakeTuple", head, flat, update))


def timeline(session, net, holder, level, name):
    s = session("910B", engine=name)
    s.configure(jit_level=level)
    tap = Timeline()
    s.add_tap(tap)
    _, program = training(net, holder)
    results = [s.execute(program, [X]) for _ in range(2)]
    return s, tap, results


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_launches_addresses_and_times_are_those_of_the_numpy_engine(session, net, holder, level):
    real, heard, values = timeline(session, net, holder, level, "numpy")
    null, unread, unknown = timeline(session, net, holder, level, "null")
    assert len(heard.tasks) > 10
    assert unread.tasks == heard.tasks
    assert null.clock.now_ns == real.clock.now_ns
    assert list(null.lifetimes()) == list(real.lifetimes())
    assert (null.device.memory.used, null.device.memory.peak) == (real.device.memory.used, real.device.memory.peak)
    assert [[(r.shape, r.dtype) for r in run] for run in unknown] == [
        [(r.shape, r.dtype) for r in run] for run in values
    ]


def test_no_memory_is_mapped_and_nothing_is_uploaded(session, net, holder, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("memory is mapped")

    monkeypatch.setattr(mmap, "mmap", refuse)
    s, tap, _ = timeline(session, net, holder, "O0", "null")
    assert s.device.memory.used > 0
    with pytest.raises(UnknownValueError, match=r"the \d+ bytes at 0x[0-9a-f]+ are not known"):
        tap.refs[0].read()


def test_weights_are_unknown_after_a_run_until_the_script_sets_them(session, net, holder):
    s = session("910B", engine="null")
    b, program = training(net, holder)
    weight = b.graph.parameters[1].storage
    s.execute(program, [X])
    assert isinstance(weight._array, Unknown)
    start = s.clock.now_ns
    s.execute(program, [X])
    again = s.clock.now_ns - start
    weight._array = np.ones((4, 4), np.float32)
    start = s.clock.now_ns
    s.execute(program, [X])
    assert s.clock.now_ns - start > again  # the new value is copied to the device


def test_a_weight_without_an_initial_value_is_copied_once_in_each_rank(session, net, holder):
    b, program = training(net, holder)
    b.graph.parameters[1].storage._array = Unknown("Normal()", np.dtype(np.float32), (4, 4))
    first, second = (session("910B", engine="null") for _ in range(2))
    took = []
    for s in (first, second, first, second):
        start = s.clock.now_ns
        s.execute(program, [X])
        took.append(s.clock.now_ns - start)
    assert took[0] == took[1] > took[2] == took[3]


def test_results_go_back_in_as_arguments_and_cannot_be_read(session, net):
    s = session(engine="null")
    b = net()
    program = b.program(b.op("ReLU", b.input("x", (3, 4))))
    (out,) = s.execute(program, [X])
    (out,) = s.execute(program, [out])
    with pytest.raises(UnknownValueError, match=r"^Default/ReLU-op0: the values of a tensor of shape \(3, 4\)"):
        np.asarray(out)
    with pytest.raises(BadInputError, match="shape"):
        s.execute(program, [Unknown("y", np.dtype(np.float32), (2, 2))])


def test_a_branch_and_a_loop_need_values(session, net):
    b = net()
    x = b.input("x", (3,))
    graph = b.kernel_graph(b.op("Less", x, x, shape=(), kind="bool"))
    for step in (
        Branch(condition=1, then=(), otherwise=()),
        Loop(condition=1, head=(), body=()),
    ):
        program = Program(
            kernel_graphs=(graph,),
            steps=(Run(graph=0, arguments=(0,), results=(1,)), step, Move(source=0, target=2)),
            inputs=graph.arguments,
            outputs=(2,),
            slots=3,
            name="net",
        )
        with pytest.raises(UnknownValueError, match="Default/Less-op0: the branch that the network takes is not known"):
            session(engine="null").execute(program, [np.zeros(3, np.float32)])


@pytest.mark.parametrize(
    ("op_type", "operands", "unknown"),
    [
        ("Unique", [np.zeros(3, np.float32)], "the shape of the result of Unique"),
        ("Print", ["x", np.zeros(3, np.float32)], "the data that Print sends to the host"),
    ],
)
def test_shapes_and_effects_that_depend_on_values_are_refused(session, op_type, operands, unknown):
    s = session("CPU", engine="null")
    with pytest.raises(UnknownValueError, match=f"{op_type}: {unknown} is not known: the null engine"):
        s.run_op(find(op_type), operands)


def test_pynative_takes_the_time_of_the_numpy_engine(session):
    clocks = []
    for name in ("numpy", "null"):
        s = session(engine=name)
        (out,) = s.run_op(find("Add"), [X, X])
        (out,) = s.run_op(find("ReLU"), [out])
        clocks.append((s.clock.now_ns, out.shape, out.dtype))
    assert clocks[0] == clocks[1]
    with pytest.raises(UnknownValueError, match="Default/ReLU"):
        float(out)


def test_unbacked_memory_hands_out_the_same_addresses():
    blocks = []
    for backed in (True, False):
        memory = Memory(1 << 20, backed=backed)
        first, second = memory.allocate(700), memory.allocate(100, fill=False)
        memory.free(first)
        third = memory.allocate(300)
        blocks.append([(b.address, b.size, b.alloc_size, b.version) for b in (first, second, third)])
    assert blocks[0] == blocks[1]
    with pytest.raises(UnknownValueError, match="are not known"):
        third.bytes()


def test_engines_are_chosen_by_name():
    assert (engine("numpy").values, engine("null").values) == (True, False)
    with pytest.raises(BadInputError, match=r"unknown engine 'nul'; allowed: numpy, null, torch.*'null'"):
        engine("nul")
    with pytest.raises(BadInputError, match=r"--engine: 'nul' is not a value of engine; allowed: numpy, null"):
        RunSettings(engine="nul")


def test_an_unknown_tensor_knows_type_and_shape_only():
    x = Unknown("x", np.dtype(np.float16), (2, 3))
    assert (x.ndim, x.nbytes, shape_of(x), shape_of(2.0)) == (2, 12, (2, 3), ())
    assert (x.copy(), x.astype(np.float32).nbytes) == (x, 24)
    for read in (lambda: x[0], lambda: x + 1, lambda: x.reshape(6), lambda: list(x), lambda: bool(x), lambda: x.sum()):
        with pytest.raises((UnknownValueError, TypeError)):
            read()
