"""Sessions: which device, counters, listeners, eager operators."""

import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.clock import START_NS
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError, DeviceError, UnknownValueError
from dumpsim.core.events import RunEvent
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.device.faults import make_plan
from dumpsim.device.task import Task, TaskKind
from dumpsim.ops.table import find
from dumpsim.runtime.ids import Ids
from dumpsim.runtime.session import Session
from dumpsim.world import current

X = np.array([1, -2, 3], np.float32)
FLOAT16 = dtype("float16")


@pytest.mark.parametrize(
    ("settings", "script", "expected"),
    [
        ({}, None, ("Ascend", "910B")),
        ({}, "CPU", ("CPU", "CPU")),
        ({"device": "gpu"}, "CPU", ("GPU", "GPU")),
        ({"chip": "910A"}, None, ("Ascend", "910A")),
        ({"chip": "910A"}, "CPU", ("CPU", "CPU")),
        ({"chip": "CPU"}, None, ("CPU", "CPU")),
        ({"chip": "910A", "device": "ascend"}, "CPU", ("Ascend", "910A")),
    ],
)
def test_the_target_comes_from_the_settings_then_the_script_then_ascend(settings, script, expected):
    s = Session(RunSettings(**settings), environment={})
    s.configure(target=script)
    assert (s.target, s.chip.name) == expected


def test_a_chip_of_another_device_is_refused():
    s = Session(RunSettings(device="cpu", chip="910A"), environment={})
    with pytest.raises(BadInputError, match="910A is not a chip of CPU"):
        _ = s.device
    with pytest.raises(BadInputError, match="Ascendd"):
        s.configure(target="Ascendd")


def test_changing_the_target_starts_with_an_empty_device(operators, net, session):
    b = net()
    w = b.weight("w", X)
    program = b.program(b.op("Neg", w))
    s = Session(RunSettings(), environment={}, find=operators)
    assert s.execute(program, [])[0].tolist() == (-X).tolist()
    first = s.device
    s.configure(target="CPU")
    assert s.device is not first
    assert s.device.chip.name == "CPU"
    assert s.execute(program, [])[0].tolist() == (-X).tolist()


def test_another_target_takes_the_values_of_the_device_and_leaves_those_of_the_host(net, session, holder):
    kept, set_by_host, gone = (holder(np.zeros(3, np.float32)) for _ in range(3))
    s = session()
    for one in (kept, set_by_host, gone):
        b = net()
        w, m = b.weight("w", one._array, one), b.weight("m", np.zeros(3, np.float32))
        s.execute(b.program(b.op("ApplyMomentum", w, m, 1.0, b.input("g", (3,)), 0.0)), [X])
    host = set_by_host._array = np.full(3, 5, np.float32)
    on_device = kept._array
    del gone, one, w, b
    s.configure(target="CPU")
    assert kept._array.tolist() == (-X).tolist()
    assert not np.shares_memory(kept._array, on_device)
    assert set_by_host._array is host


def test_a_session_says_whether_its_device_is_in_use(session):
    s = session()
    assert not s.is_open
    assert "(not used yet)" in repr(s)
    assert s.device.device_id == 0
    assert s.is_open
    assert "(open)" in repr(s)


def test_whether_tensors_have_values_follows_the_session_and_before_it_the_environment(monkeypatch, session):
    before = Session.use(None)
    try:
        assert Session.has_values()
        monkeypatch.setenv(VARIABLE, RunSettings(engine="null").to_text())
        assert not Session.has_values()
        assert not current().has(Session)
        Session.use(session())
        assert Session.has_values()
        monkeypatch.delenv(VARIABLE)
        Session.use(session(engine="null"))
        assert not Session.has_values()
    finally:
        Session.use(before)


def test_options_follow_the_chip():
    s = Session(RunSettings(chip="910A", mindspore="2.7"), environment={})
    assert (s.options().release, s.options().pipeline) == ("2.7", "ascend-private")
    s = Session(RunSettings(), environment={})
    assert s.options().pipeline == "ascend"
    assert s.options().memory_reuse
    s.memory_reuse = False  # of a dump
    assert not s.options().memory_reuse
    s.configure(jit_level="O2")
    assert (s.options().pipeline, s.options().jit_level) == ("whole-graph", "O2")
    assert s.options().memory_reuse  # whole models are dumped operator by operator, as they run
    s.memory_reuse = True
    assert s.options().memory_reuse


def test_the_current_session_is_one_per_process_and_can_be_swapped(monkeypatch):
    monkeypatch.setenv(VARIABLE, RunSettings(device="cpu", seed=5).to_text())
    before = Session.use(None)
    try:
        made = Session.current()
        assert (made.target, made.seed) == ("CPU", 5)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(Session.current()))
        thread.start()
        thread.join()
        assert seen == [made]
        mine = Session(RunSettings(), environment={})
        assert Session.use(mine) is made
        assert Session.current() is mine
        Session.reset()
        assert Session.current() not in (mine, made)
    finally:
        Session.use(before)


def test_sessions_share_nothing(operators, net, holder):
    shared = holder(np.zeros(3, np.float32))
    nets = []
    for _ in range(2):
        b = net()
        w, m = b.weight("w", shared._array, shared), b.weight("m", np.zeros(3, np.float32))
        nets.append(b.program(b.op("ApplyMomentum", w, m, 1.0, b.input("g", (3,)), 0.0)))
    sessions = [Session(RunSettings(), environment={}, find=operators) for _ in range(2)]
    for at, seen in ((0, -X), (1, -X), (0, -2 * X)):  # each starts from the value that the host has set
        sessions[at].execute(nets[at], [X])
        assert shared._array.tolist() == seen.tolist()
    assert [s.ids.graph() for s in sessions] == [0, 0]


def test_ids_count_over_all_networks():
    ids = Ids()
    assert [ids.full_name("Default", "ReLU") for _ in range(2)] == ["Default/ReLU-op0", "Default/ReLU-op1"]
    assert ids.full_name("Default/conv1-Conv2d", "ReLU") == "Default/conv1-Conv2d/ReLU-op0"
    assert [ids.cnode() for _ in range(3)] == [1, 2, 3]


def test_random_numbers_depend_on_seed_rank_and_key():
    def draw(seed=0, rank=0, key=0):
        return Session(RunSettings(seed=seed), rank=rank, environment={}).generator(key).random()

    assert draw() == draw()
    assert len({draw(), draw(seed=1), draw(rank=1), draw(key=1)}) == 4


# ------------------------------------------------------------------ listeners
def test_events_for_a_tap(net, session, recorder):
    b = net()
    x, w = b.input("x", (3,)), b.weight("fc.weight", X)
    total = b.op("Add", x, w)
    scaled = b.op("Scale", total, 2.0, bias=0.5)
    joined = b.op("AddN", b.op("MakeTuple", scaled, total, b.constant(X)), shape=(3,))
    s, tap = session("910B"), recorder()
    s.add_tap(tap)
    program = b.program(joined)
    for _ in range(2):
        s.execute(program, [X])
    assert [entry[0] for entry in tap.log] == ["graph", *(["begin", *["before", "after"] * 3, "end"] * 2)]
    ((graph, _),) = tap.of("graph")
    assert graph.execution_order == ("Default/Add-op0", "Default/Scale-op0", "Default/AddN-op0")
    assert [e.run_count for e, _ in tap.of("begin")] == [0, 1]
    assert [e.run_count for e, _ in tap.of("end")] == [1, 2]
    assert isinstance(tap.of("end")[0][0], RunEvent)
    ((_, parameters),) = tap.of("end")[0][0].parameters.items()
    assert [r.name for r in parameters] == ["x", "fc.weight"]
    add, scale, addn = tap.of("after")[:3]
    assert [(r.producer, r.name, r.origin, r.address != 0) for r in add[0].operands] == [
        ("x", "x", "device", True),
        ("fc.weight", "fc.weight", "device", True),
    ]
    assert [(r.producer, r.slot) for r in scale[0].operands] == [("Default/Add-op0", 0), ("", 1)]
    assert scale[0].operands[1].shape == ()
    assert scale[1]["in", 1] == 2.0
    assert scale[0].attrs == {"bias": 0.5}
    assert scale[0].arguments == {"factor": 2.0}
    assert scale[1]["out", 0].tolist() == (4 * X + 0.5).tolist()
    assert [(r.slot, r.origin) for r in addn[0].operands] == [(0, "device"), (1, "device"), (2, "constant")]


def test_operands_before_and_after_an_update(net, session, recorder):
    b = net()
    w, m = b.weight("w", X), b.weight("m", np.zeros(3, np.float32))
    program = b.program(b.op("ApplyMomentum", w, m, 1.0, b.input("g", (3,)), 0.0))
    s, tap = session(), recorder()
    s.add_tap(tap)
    s.execute(program, [np.ones(3, np.float32)])
    assert tap.of("before")[0][1]["in", 0].tolist() == X.tolist()
    after, values = tap.of("after")[0]
    assert values["in", 0].tolist() == (X - 1).tolist()
    assert after.outputs[0].address == after.operands[0].address
    assert after.operands[0].version != tap.of("before")[0][0].operands[0].version


def test_operands_before_and_after_an_update_in_pynative(operators, session, recorder):
    s, tap, weight = session(), recorder(), X.copy()
    s.add_tap(tap)
    s.run_op(operators("ApplyMomentum"), [weight, np.zeros(3, np.float32), 1.0, np.ones(3, np.float32), 0.0])
    assert [when for when, *_ in tap.log] == ["before", "after"]
    (before, old), (after, new) = tap.of("before")[0], tap.of("after")[0]
    assert (old["in", 0].tolist(), new["in", 0].tolist()) == (X.tolist(), (X - 1).tolist())
    assert (before.task_id, before.time_ns, before.outputs) == (after.task_id, after.time_ns, ())


def test_nothing_overflows_where_no_values_are_computed(net, session, recorder):
    class Flags(recorder):
        def run_end(self, event):
            pass

        before_task = run_end

        def after_task(self, event):
            self.log.append((event.overflow, event.overflow_status))

    s, tap, b = session(engine="null"), Flags(), net()
    s.add_tap(tap)
    s.execute(b.program(b.op("Neg", b.input("x", (3,)))), [X])
    assert [entry for entry in tap.log if isinstance(entry[0], bool)] == [(False, 0)]
    assert s.device.status.count == 0


def test_a_tap_that_wants_nothing_is_asked_once_per_task(net, session, recorder):
    b = net()
    s, tap = session(), recorder(interested=False)
    s.add_tap(tap)
    s.execute(b.program(b.op("Neg", b.op("Neg", b.input("x", (3,))))), [X])
    assert tap.log == []
    assert tap.asked == 1 + 1 + 2 + 1  # graph, begin, two kernels, end
    s.remove_tap(tap)
    s.execute(b.program(b.op("Neg", b.graph.parameters[0])), [X])
    assert tap.asked == 5


def test_readers_cannot_write(net, session):
    b = net()

    class Tap:
        def wants(self, event):
            return hasattr(event, "operands")

        def before_task(self, event):
            with pytest.raises(ValueError, match="read-only"):
                event.operands[0].read()[0] = 1

        def after_task(self, event):
            pass

    s = session()
    s.add_tap(Tap())
    s.execute(b.program(b.op("Neg", b.input("x", (3,)))), [X])


def test_kinds_of_host_operands(net, session, recorder):
    b = net()
    s, tap = session("CPU"), recorder()
    s.add_tap(tap)
    x = b.input("x", (3,))
    for value in (True, 3, 2.5, (2, 3), (), "same", None, FLOAT16):
        b.op("Same", x, b.constant(value))
    s.execute(b.program(b.op("MakeTuple", *b.order)), [X])
    refs = [event.operands[1] for event, _ in tap.of("after")]
    assert [(r.dtype.name, r.shape, r.origin) for r in refs[:4]] == [
        ("bool", (), "constant"),
        ("int64", (), "constant"),
        ("float32", (), "constant"),
        ("int64", (2,), "constant"),
    ]
    assert [r.origin for r in refs[4:]] == ["none"] * 4
    assert [values["in", 1].tolist() for _, values in tap.of("after")[:4]] == [True, 3, 2.5, [2, 3]]
    assert {r.address for r in refs} == {0}


# ------------------------------------------------------------------ eager
def test_eager_operators_run_as_tasks(operators, session):
    s = session()
    (out,) = s.run_op(operators("Add"), [X, X])
    assert out.tolist() == (2 * X).tolist()
    first, second = s.run_op(operators("Split"), [X])
    assert (first.tolist(), second.tolist()) == ([1], [-2, 3])
    assert s.device.stream(0).ids.take() == (2, 0)
    assert s.clock.now_ns > START_NS


def test_operands_of_an_eager_operator_that_are_no_tensors(session):
    """Truths, numbers, types and tuples of them are constants, from which the result's type is inferred."""
    s = session("CPU")
    square = np.arange(6, dtype=np.float32).reshape(2, 3)
    cases = [
        ("MatMul", [square, square, False, True], square @ square.T),
        ("MatMul", [square, square, True, False], square.T @ square),
        ("Cast", [square, FLOAT16], square.astype(np.float16)),
        ("ReduceSum", [square, (0,), True], square.sum(0, keepdims=True)),
        ("ReduceSum", [square, (1,), False], square.sum(1)),
        ("Add", [square, 2.5], square + np.float32(2.5)),
        ("AddN", [(square, square)], 2 * square),
    ]
    for kind, operands, expected in cases:
        (found,) = s.run_op(find(kind), operands)
        assert (found.dtype, found.shape, found.tolist()) == (expected.dtype, expected.shape, expected.tolist()), kind


def test_an_eager_operator_is_done_when_it_has_run(operators, session):
    s = session()
    pending = s.start_op(operators("Add"), [X, X])
    first = pending.wait()
    assert pending.done
    assert pending.wait() is first


def test_waiting_for_a_finished_operator_does_not_wait_for_its_stream(operators, session):
    """Another thread of the script may have work there by then."""
    s = session()
    pending = s.start_op(operators("Add"), [X, X])
    s.device.stream(0).launch(Task(kind=TaskKind.AICORE, name="of another thread"))
    (out,) = pending.wait()
    assert out.tolist() == (2 * X).tolist()
    assert s.device.stream(0).busy
    s.device.synchronize()
    assert not s.device.stream(0).busy


def test_threads_share_the_device(operators, session):
    """Each gets the results of its own operators."""
    s, before = session(), sys.getswitchinterval()
    wrong = []

    def run(value):
        x = np.full(4, value, np.float32)
        for _ in range(50):
            (out,) = s.run_op(operators("Add"), [x, x])
            if out.tolist() != [2.0 * value] * 4:
                wrong.append(value)

    threads = [threading.Thread(target=run, args=(value,)) for value in range(4)]
    try:
        sys.setswitchinterval(1e-6)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []


@pytest.mark.parametrize(("chip", "expected"), [("910A", 65504.0), ("910B", np.inf), ("CPU", np.inf)])
def test_eager_results_are_stored_as_the_chip_does(operators, session, chip, expected):
    s = session(chip)
    big = np.array([300], np.float16)
    assert s.run_op(operators("Mul"), [big, big])[0].tolist() == [expected]
    assert s.device.status.raised is (chip != "CPU")
    small = np.array([1.5], ml_dtypes.bfloat16)
    assert s.run_op(operators("Add"), [small, small])[0].dtype == ml_dtypes.bfloat16


def test_eager_matmul_of_a_910a_is_float16(operators, session):
    x = np.array([[1 + 2**-12]], np.float32)
    assert session("910A").run_op(operators("MatMul"), [x, x])[0].tolist() == [[1.0]]
    assert session("910B").run_op(operators("MatMul"), [x, x])[0].tolist() == (x @ x).tolist()
    assert session("910A").run_op(operators("Add"), [x, x])[0].tolist() == (x + x).tolist()  # not the matrix unit


def test_eager_updates_write_their_operands_and_results_do_not_share_them(operators, session):
    s = session()
    w, m = np.ones(3, np.float32), np.zeros(3, np.float16)
    (out,) = s.run_op(operators("ApplyMomentum"), [w, m, 0.5, X, 0.0])
    assert w.tolist() == (1 - X / 2).tolist()
    assert m.tolist() == X.tolist()
    w[:] = 0
    assert out.tolist() == (1 - X / 2).tolist()
    w.flags.writeable = False
    with pytest.raises(BadInputError, match="read-only"):
        s.run_op(operators("ApplyMomentum"), [w, m, 0.5, X, 0.0])


def test_eager_updates_of_weights_reach_the_graphs(operators, net, session):
    b = net()
    w = b.weight("w", np.eye(3, dtype=np.float32))
    program = b.program(b.op("MatMul", b.input("x", (3, 3)), w))
    s = session("910A")
    x = np.eye(3, dtype=np.float32)
    s.execute(program, [x])
    s.run_op(operators("ApplyMomentum"), [w.storage._array, np.zeros((3, 3), np.float32), 1.0, x * 2, 0.0])
    assert s.execute(program, [x])[0].tolist() == (-x).tolist()


def test_eager_updates_end_the_versions_of_weights(operators, net, session, recorder):
    b = net()
    w = b.weight("w", X)
    s, tap = session(), recorder()
    s.add_tap(tap)
    program = b.program(b.op("Neg", w))
    s.execute(program, [])
    s.execute(program, [])
    s.run_op(operators("ApplyMomentum"), [w.storage._array, np.zeros(3, np.float32), 1.0, X, 0.0])
    s.execute(program, [])
    events = [event for event, _ in tap.of("after") if event.op_type == "Neg"]
    first, second, third = (event.operands[0].version for event in events)
    assert first == second != third


def test_eager_faults(operators, session):
    s = session()
    s.inject(make_plan([{"kind": "overflow", "op": "Add", "nth": 2}, {"kind": "aicore_error", "op": "Mul"}]))
    assert s.run_op(operators("Add"), [X, X])[0].tolist() == (2 * X).tolist()
    assert s.run_op(operators("Add"), [X, X])[0][0] == np.inf
    with pytest.raises(DeviceError, match="fault kernel_name=Default/Mul"):
        s.run_op(operators("Mul"), [X, X])


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"kind": "overflow", "op": "Add", "output": 1}, "Default/Add has 1 outputs, not an output 1"),
        ({"kind": "overflow", "op": "Add", "index": 3}, "output 0 of Default/Add is float32 of 3 elements"),
        ({"kind": "stomp", "after": "Add"}, "Default/Add runs in PYNATIVE, whose tensors have no device memory"),
    ],
)
def test_a_stomp_fault_in_pynative_is_refused(operators, session, fault, said):
    s = session()
    s.inject(make_plan([fault]))
    with pytest.raises(DeviceError, match=said):
        s.run_op(operators("Add"), [X, X])


def test_an_overflow_of_an_operand_that_is_updated_in_place_raises_the_flag(operators, session):
    s = session("910B")
    weight, large = np.full(3, 3e38, np.float32), np.full(3, -3e38, np.float32)
    s.run_op(operators("ApplyMomentum"), [weight, np.zeros(3, np.float32), 1.0, large, 0.0])
    assert weight.tolist() == [np.inf] * 3
    assert s.device.status.raised


@pytest.mark.parametrize(("gradient", "flags"), [(-3e38, 1), (-1e30, 0), (-np.inf, 0)])
def test_an_overflow_of_an_updated_weight_in_a_graph(net, session, recorder, gradient, flags):
    """But not where a number that is not finite came in."""
    b, weight = net(), np.full(3, 3e38, np.float32)
    moments = b.weight("m", np.zeros(3, np.float32))
    made = b.op("ApplyMomentum", b.weight("w", weight), moments, 1.0, b.input("g", (3,)), 0.0)
    s, tap = session("910B"), recorder()
    s.add_tap(tap)
    s.execute(b.program(made), [np.full(3, gradient, np.float32)])
    assert s.device.status.count == flags
    ((event, _),) = tap.of("after")
    assert (event.overflow, event.overflow_status != 0) == (flags == 1, flags == 1)


def test_an_argument_and_a_weight_of_another_shape_are_refused(net, session):
    b = net()
    w = b.weight("w", X)
    program = b.program(b.op("Add", b.input("x", (3,)), w))
    s = session()
    with pytest.raises(BadInputError, match=r"x: the argument has shape \(2,\)"):
        s.execute(program, [X[:2]])
    s.execute(program, [X])
    w.storage._array = X[:2]
    with pytest.raises(BadInputError, match=r"w: the weight's value has shape \(2,\)"):
        s.execute(program, [X])


def test_a_listener_sees_unknown_operands_of_a_failing_operator_without_their_bytes(operators, session, recorder):
    class Shapes(recorder):
        def wants(self, event):
            return True

        def before_task(self, event):
            (ref,) = event.operands
            self.log.append((event.op_type, ref.shape, ref.dtype.name, ref.nbytes, ref.slot, ref.address))
            with pytest.raises(UnknownValueError):
                ref.read()

        def after_task(self, event):
            self.log.append((event.error_code, event.full_name, event.graph_id, "507015" in event.error))

    s, tap = session(engine="null"), Shapes()
    s.add_tap(tap)
    s.inject(make_plan([{"kind": "aicore_error", "op": "ReLU", "code": 507015}]))
    (first,) = s.run_op(operators("Neg"), [X])
    with pytest.raises(DeviceError, match="507015"):
        s.run_op(operators("ReLU"), [first])
    assert tap.log == [("ReLU", (3,), "float32", 12, 0, 0), (507015, "Default/ReLU", -1, True)]


def test_each_setting_of_the_context_stays_until_it_is_set_again(session):
    s = session()
    found = []
    for setting in ({}, {"exec_order": "dfs"}, {"jit_level": "O1"}, {"jit_level": "O0"}, {"exec_order": "bfs"}, {}):
        s.configure(**setting)
        found.append((s.options().exec_order, s.options().jit_level))
    level = found[0][1]
    assert found == [
        ("bfs", level), ("dfs", level), ("dfs", "O1"), ("dfs", "O0"), ("bfs", "O0"), ("bfs", "O0")
    ]  # fmt: skip
    assert s.options(jit_level="O1").jit_level == "O1"
    assert s.options().jit_level == "O0"
