"""Planned runs: a listener that plans its steps sees what one that gets the events of every run sees."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.events import Follower
from dumpsim.core.settings import RunSettings
from dumpsim.device.faults import make_plan
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find

RUNS = 7


class Watcher:
    """A listener that gets an event for every task."""

    def __init__(self):
        self.log, self.versions = [], {}

    def wants(self, event):
        return True

    def graph_compiled(self, event):
        pass

    run_begin = run_end = graph_compiled

    def before_task(self, event):
        self.note("before", event, event.task_id, event.time_ns)

    def after_task(self, event):
        self.note("after", event, event.task_id, event.time_ns, event.overflow, event.overflow_status)

    def note(self, when, event, number, time_ns, overflow=False, status=0):
        refs = [*event.operands, *(event.outputs if when == "after" else ())]
        self.log.append(
            (
                when, event.op_type, event.full_name, event.graph_id, event.model_id, event.stream_id, number, time_ns,
                overflow, status, dict(event.attrs), [self.seen(ref) for ref in refs],
            )
        )  # fmt: skip

    def seen(self, ref):
        raw = ref.read()
        assert not raw.flags.writeable
        return (
            ref.slot, ref.dtype.name, ref.shape, ref.device_dtype.name, ref.device_format, ref.device_shape,
            ref.address, ref.nbytes, ref.origin, ref.producer, ref.name, ref.written, ref.is_weight, raw.tobytes(),
        )  # fmt: skip


class Planner(Watcher):
    """A listener that plans; in run 5 it plans anew, and in run 6 it does nothing."""

    def __init__(self):
        super().__init__()
        self.plans, self.run, self.begun = [], 0, []

    def plan(self, events):
        self.plans.append((self.run, events))
        return self

    def begin(self):
        self.begun.append(self.run)
        if self.run == 5 and self.plans[-1][0] < 5:
            return None
        if self.run == 6:
            return []
        return [
            Follower(partial(self.step, "before", event), partial(self.step, "after", event))
            for event in self.plans[-1][1]
        ]

    def step(self, when, event, number, time_ns):
        self.note(when, event, number, time_ns)

    def seen(self, ref):
        """Bytes that have changed have another version."""
        found = super().seen(ref)
        version = getattr(ref.read, "version", None)
        if version is not None:
            before = self.versions.setdefault(ref.read, {})
            assert before.setdefault(version, found[-1]) == found[-1], ref
        return found


def _like(abstracts, attrs):
    return TensorType(dtype=abstracts[0].dtype, shape=abstracts[0].shape)


def _step(weight, gradient, rate):
    weight[...] = weight - gradient * rate
    return weight


def _op(name, kernel, operands=("x",), **fields):
    return OpDef(name=name, operands=operands, infer=_like, kernel=kernel, engine="aivector", **fields)


OPS = {
    op.name: op
    for op in (
        _op("Add", lambda x, y: x + y, ("x", "y")),
        _op("Neg", lambda x: -x),
        _op("Large", lambda x: x * 3e37),
        _op("Counted", lambda x, *, counter: x + counter, random=True),
        _op("Looked", lambda x: x + 1, bounds=lambda x: None),
        _op("Unset", lambda x: x + 1, unwritten={"Ascend": (0,), "CPU": (0,)}),
        _op("Scaled", lambda x, factor: x * factor, ("x", "factor")),
        _op("Step", _step, ("weight", "gradient", "rate"), updates=(0,), alias={0: 0}, side_effect="mem"),
        _op("Chosen", lambda x: x[x > 9]),
        _op("Reshape", lambda x, shape: x.reshape(shape), ("x", "shape"), view=True, alias={0: 0}),
        find("AllReduce"),
    )
}


def chain(b):
    x = b.op("Add", b.input("x", (2, 3)), b.input("y", (2, 3)))
    return b.op("Neg", b.op("Add", x, b.op("Neg", x)))


def large(b):
    """The first result overflows; the second one does not, since its operand is not finite."""
    return b.op("Large", b.op("Large", b.op("Add", b.input("x", (2, 3)), b.input("y", (2, 3)))))


def single(kind, *more):
    def build(b):
        total = b.op("Add", b.input("x", (2, 3)), b.input("y", (2, 3)))
        return b.op("Neg", b.op(kind, total, *more))

    return build


def updated(b):
    total = b.op("Add", b.input("x", (2, 3)), b.input("y", (2, 3)))
    weight = b.weight("w", np.ones((2, 3), np.float32))
    return b.op("Neg", b.op("Step", weight, total, 0.5))


def viewed(b):
    total = b.op("Add", b.input("x", (2, 3)), b.input("y", (2, 3)))
    view = b.op("Reshape", total, (3, 2), shape=(3, 2))
    b.order.append(view)
    return b.op("Neg", view)


def chosen(b):
    """A result whose shape depends on the values."""
    total = b.op("Add", b.input("x", (2, 3)), b.input("y", (2, 3)))
    return b.op("Neg", b.op("Chosen", total, shape=(-1,)), shape=(-1,))


def reduced(b):
    total = b.op("Add", b.input("x", (2, 3)), b.input("y", (2, 3)))
    return b.op("Neg", b.op("AllReduce", total, group="hccl_world_group", op="sum"))


UNPLANNED = {"chosen": chosen, "reduced": reduced}
NETS = {
    "chain": chain, "large": large, "counted": single("Counted"), "looked": single("Looked"), "unset": single("Unset"),
    "scaled": single("Scaled", 2.5), "updated": updated, "viewed": viewed,
}  # fmt: skip


def inputs_of_runs():
    """New arrays, the same ones again, the same with other numbers, numbers that are too large."""
    first, second = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 7, np.float32)
    for run in range(RUNS):
        if run == 2:
            first += 1
        yield [first if run < 4 else first * run, second.copy() if run % 2 else second]


@pytest.fixture
def watch(net, machine):
    """Run a network several times with a listener: the results and the clock after each run."""

    def run(name, chip, level, engine, tap, environment=(), faults=()):
        b = net()
        made = {**NETS, **UNPLANNED}[name](b)
        for node in _nodes(made):
            if node.op_type in OPS and node not in b.order:
                b.order.append(node)
        program = b.program(made)
        session = machine(RunSettings(chip=chip), environment=dict(environment), find=OPS.__getitem__)
        session.configure(jit_level=level)
        session.compile(program, replace(session.options(), engine=engine))
        session.add_tap(tap)
        if faults:
            session.inject(make_plan(faults))
        found = []
        for number, arguments in enumerate(inputs_of_runs(), 1):
            tap.run = number
            tap.log.append(number)
            result = session.execute(program, arguments)
            found.append((result[0].tolist(), session.clock.now_ns, session.device.status.count))
        return found

    return run


def _nodes(value, seen=None):
    """The nodes that a value needs, operands first."""
    seen = [] if seen is None else seen
    for operand in getattr(value, "operands", ()):
        _nodes(operand, seen)
    if hasattr(value, "operands") and value not in seen:
        seen.append(value)
    return seen


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize(("chip", "level"), [("CPU", "O0"), ("910B", "O0"), ("910B", "O2")])
@pytest.mark.parametrize("engine", ["numpy", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_planned_run_is_seen_like_any_other(watch, name, chip, level, engine):
    slow, fast = Watcher(), Planner()
    assert watch(name, chip, level, engine, slow) == watch(name, chip, level, engine, fast)
    ours, theirs = by_run(fast.log), by_run(slow.log)
    for run in range(1, RUNS + 1):
        if run != 6:
            assert ours[run] == theirs[run], run
    quiet = [entry for entry in theirs[6] if entry[8]]  # an overflow is an event, whatever was planned
    assert ours[6] == quiet
    # many graphs run once; kernels are bound to memory after the first run that has not filled its workspace
    first = 3 if (engine, level) == ("torch", "O2") and name in ("chain", "large", "viewed") else 2
    assert [run for run, _ in fast.plans] == [first, 5]
    assert sorted(set(fast.begun)) == list(range(first, RUNS + 1))


@pytest.mark.parametrize(
    ("environment", "faults"),
    [
        ({}, [{"kind": "overflow", "op": "Neg", "nth": 4, "index": 2, "value": 7.5}]),
        ({"MS_KERNEL_LAUNCH_SKIP": "Neg"}, []),
    ],
)
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("engine", ["numpy", pytest.param("torch", marks=pytest.mark.torch)])
def test_runs_with_a_fault_plan_or_skipped_kernels_have_no_plan(watch, level, engine, environment, faults):
    slow, fast = Watcher(), Planner()
    wanted = watch("chain", "910B", level, engine, slow, environment, faults)
    assert watch("chain", "910B", level, engine, fast, environment, faults) == wanted
    assert fast.log == slow.log
    assert fast.plans == []


@pytest.mark.parametrize(("chip", "level"), [("CPU", "O0"), ("910B", "O0"), ("910B", "O2")])
@pytest.mark.parametrize(
    ("name", "engine"),
    [("chosen", "numpy"), pytest.param("chosen", "torch", marks=pytest.mark.torch), ("reduced", "numpy")],
)
def test_runs_with_results_of_other_shapes_or_with_collectives_have_no_plan(watch, name, chip, level, engine):
    slow, fast = Watcher(), Planner()
    assert watch(name, chip, level, engine, slow) == watch(name, chip, level, engine, fast)
    assert fast.log == slow.log
    assert fast.plans == []


def by_run(log):
    found = {}
    for entry in log:
        if isinstance(entry, int):
            mine = found[entry] = []
        else:
            mine.append(entry)
    return found
