"""Kernels that are bound to memory: programs built by hand give what their tasks give, and what numpy gives."""

import random
from dataclasses import replace

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.settings import RunSettings
from dumpsim.device.faults import make_plan
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime import preparation
from dumpsim.runtime.prepared import Prepared

torch = pytest.importorskip("torch", reason="needs the extra torch")

pytestmark = pytest.mark.torch

SIDE = 32  # 4,096 bytes: the smallest argument that is read in host memory


class Turned:
    """A transposition, which its readers may read from its source."""

    def __call__(self, x):
        return self.view(x).contiguous()

    def view(self, x):
        return x.T


class Product:
    """A product that reads transpositions where they come from."""

    def __call__(self, x, y):
        return x @ y

    def bind(self, operands, views, out):
        left, right = (views.get(at, operand) for at, operand in enumerate(operands))
        return lambda: left @ right, {0, 1} - set(views), False


class Stored(Product):
    """A product that is computed where its result lies, so that it must not read there."""

    def bind(self, operands, views, out):
        left, right = (views.get(at, operand) for at, operand in enumerate(operands))
        return lambda: torch.mm(left, right, out=out), {0, 1} - set(views), True


def _like(abstracts, attrs):
    return TensorType(dtype=abstracts[0].dtype, shape=abstracts[0].shape)


KERNELS = {
    "Turned": (Turned(), lambda x: x.T),
    "Product": (Product(), lambda x, y: x @ y),
    "Stored": (Stored(), lambda x, y: x @ y),
    "Add": (lambda x, y: x + y, lambda x, y: x + y),
    "Least": (lambda x, y: torch.minimum(x, y), np.minimum),
    "Bound": (lambda x: x.clamp(-9, 9), lambda x: x.clip(-9, 9)),
    "Large": (lambda x: x * 3e37, lambda x: x * np.float32(3e37)),
}
OPS = {
    name: OpDef(
        name=name,
        operands=("x", "y")[: 1 + (name in ("Product", "Stored", "Add", "Least"))],
        infer=_like,
        kernel=kernel,
    )
    for name, (kernel, _) in KERNELS.items()
}


@pytest.fixture
def runs(machine, monkeypatch):
    """Run a program several times: results, clocks and overflows; the number of runs without tasks."""
    seen = []
    collect = Prepared.collect
    monkeypatch.setattr(Prepared, "collect", lambda self: seen.append(self) or collect(self))

    def run(build, inputs, *, tasks):
        session = machine(RunSettings(), environment={}, find=OPS.__getitem__)
        session.configure(jit_level="O2")
        program = build()
        session.compile(program, replace(session.options(), engine="torch"))
        if tasks:
            session.trace_tasks(lambda task: None)
        found = []
        for arguments in inputs:
            copies = [one.copy() for one in arguments]
            results = session.execute(program, arguments)
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(arguments, copies, strict=True))
            tails = [stream.tail_ns for stream in session.device.streams]
            found.append((results, session.clock.now_ns, tails, session.device.status.count))
        return found

    return run, seen


def check(runs, build, inputs, expected):
    run, seen = runs
    fast = run(build, inputs, tasks=False)
    count = len(seen)
    assert count >= len(inputs) - 2
    slow = run(build, inputs, tasks=True)
    assert len(seen) == count
    for (ours, *state), (theirs, *other), arguments in zip(fast, slow, inputs, strict=True):
        assert state == other
        with np.errstate(all="ignore"):
            wanted = expected(*arguments)
        for one, two, three in zip(ours, theirs, wanted, strict=True):
            np.testing.assert_array_equal(one, two)
            if np.isfinite(three).all():  # else the order of the sums decides
                np.testing.assert_array_equal(one, three)
    return fast


def whole(rng, low=-3, high=4):
    """Whole numbers, so that sums of products are exact in any order."""
    return rng.integers(low, high, (SIDE, SIDE)).astype(np.float32)


def arguments_of_runs(rng, made=whole):
    """Two arguments for each run: new ones, the same ones, the same with other numbers in them."""
    first, second = made(rng), made(rng)
    inputs = [[first, second], [first, second], [first, second], [made(rng), second], [made(rng), second.T]]
    inputs += [[first, second], [first, second], [np.asfortranarray(first), second]]
    return inputs


@pytest.mark.parametrize("seed", range(9))
def test_random_programs(net, runs, seed):
    draw = random.Random(seed)
    kinds = ["Turned", "Product", "Add", "Least", "Bound", "Turned"] + ["Large"] * (seed % 3 == 2)
    chosen = [(draw.choice(kinds), draw.random(), draw.random()) for _ in range(12)]

    def walk(live, step):
        for kind, one, other in chosen:
            near = live[-5:]  # the memory of earlier ones is used again
            operands = [near[int(one * len(near))], near[int(other * len(near))]][: len(OPS[kind].operands)]
            live.append(step(kind, *operands))
            if kind == "Product":
                live.append(step("Bound", live[-1]))
        return live[-3:]

    def build():
        b = net()

        def step(kind, *operands):
            node = b.op(kind, *operands)
            if node not in b.order:
                b.order.append(node)
            return node

        return b.program(b.op("MakeTuple", *walk([b.input("x", (SIDE, SIDE)), b.input("y", (SIDE, SIDE))], step)))

    def expected(x, y):
        return walk([x, y], lambda kind, *operands: KERNELS[kind][1](*operands))

    check(runs, build, arguments_of_runs(np.random.default_rng(seed)), expected)


@pytest.mark.parametrize("between", [0, 1, 2])
@pytest.mark.parametrize("last", ["Stored", "Product"])
def test_a_result_that_lies_where_an_operand_is_read(net, runs, between, last):
    """The source of a transposition is dead: a later kernel, or the reader itself, writes into its memory."""

    def walk(x, y, step):
        total = step("Add", x, y)
        turned = step("Turned", total)
        for _ in range(between):
            y = step("Bound", y)
        return [step(last, turned, y)]

    def build():
        b = net()

        def step(kind, *operands):
            b.order.append(b.op(kind, *operands))
            return b.order[-1]

        return b.program(*walk(b.input("x", (SIDE, SIDE)), b.input("y", (SIDE, SIDE)), step))

    rng = np.random.default_rng(between)
    check(runs, build, arguments_of_runs(rng), lambda x, y: walk(x, y, lambda kind, *o: KERNELS[kind][1](*o)))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_transposition_may_be_a_result_several_times(net, runs, times):
    """A single one is copied from its source directly, in the order of the source's memory."""

    def build():
        b = net()
        turned = b.op("Turned", b.op("Add", b.input("x", (SIDE, SIDE)), b.input("y", (SIDE, SIDE))))
        b.order += [turned.operands[0], turned]
        return b.program(b.op("MakeTuple", *[turned] * times))

    found = check(runs, build, arguments_of_runs(np.random.default_rng(times)), lambda x, y: [(x + y).T] * times)
    results, *_ = found[-1]
    assert len({id(one) for one in results}) == times
    assert all(one.flags.f_contiguous for one in results) is (times == 1)


def test_an_overflow_of_operands_that_are_read_elsewhere(net, runs):
    """Whether they are finite is not seen in the memory that they would have, where older numbers lie."""

    def build():
        b = net()
        turned = b.op("Turned", b.input("x", (SIDE, SIDE)))
        product = b.op("Product", turned, turned)
        b.order += [turned, product]
        return b.program(product)

    old, new = np.full((SIDE, SIDE), np.inf, np.float32), np.full((SIDE, SIDE), 1e30, np.float32)
    inputs = [[old.copy()], [old.copy()], [new.copy()], [new.copy()], [old.copy()], [np.ones_like(old)]]
    found = check(runs, build, inputs, lambda x: [x.T @ x.T])
    counts = [count for *_, count in found]
    assert [after - before for before, after in zip([0, *counts], counts, strict=False)] == [0, 0, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("same", "binds"),
    [
        ((0, 0, 0, 0, 0, 0), 1),  # read in host memory
        ((0, 1, 2, 3, 4, 5), 1),  # copied
        ((0, 1, 1, 1, 1, 1), 1),
        ((0, 0, 0, 1, 1, 1), 2),  # another array: the first such run copies it
        ((0, 0, 0, 1, 2, 3), 2),
    ],
)
def test_how_often_a_graph_is_bound(net, machine, monkeypatch, same, binds):
    """Once, unless an array was read in host memory that is no argument any longer."""
    seen, bind = [], preparation.bound_graph
    monkeypatch.setattr(preparation, "bound_graph", lambda *given, **more: seen.append(1) or bind(*given, **more))
    b = net()
    total = b.op("Add", b.input("x", (SIDE, SIDE)), b.input("y", (SIDE, SIDE)))
    b.order = [total]
    session = machine(RunSettings(), environment={}, find=OPS.__getitem__)
    session.configure(jit_level="O2")
    program = b.program(total)
    session.compile(program, replace(session.options(), engine="torch"))
    arrays = [np.full((SIDE, SIDE), value, np.float32) for value in range(6)]
    for at in (*same[:1], *same):  # many graphs run once: the first run prepares nothing
        assert (session.execute(program, [arrays[at], arrays[at]])[0] == 2 * at).all()
    assert len(seen) == binds


def _odd(name, kernel, operands=("x",), **fields):
    return OpDef(name=name, operands=operands, infer=_like, kernel=kernel, **fields)


ODD = {
    op.name: op
    for op in (
        _odd("Counted", lambda x, *, counter: x + counter, random=True),
        _odd("Looked", lambda x: x + 1, bounds=lambda x: None),
        _odd("Unset", lambda x: x + 1, unwritten={"Ascend": (0,)}),
        _odd("Scaled", lambda x, factor: x * factor, ("x", "factor")),
    )
}


@pytest.mark.parametrize(
    ("kind", "more", "wanted"),
    [
        ("Counted", (), lambda run: 3 + run), ("Looked", (), lambda run: 4), ("Unset", (), lambda run: 0),
        ("Scaled", (2.5,), lambda run: 7.5),
    ],
)  # fmt: skip
def test_a_kernel_that_takes_or_does_more_than_tensors_runs_as_a_task(net, machine, monkeypatch, kind, more, wanted):
    monkeypatch.delattr(Prepared, "collect")
    b = net()
    b.order.append(b.op(kind, b.input("x", (2, 3)), *more))
    session = machine(RunSettings(), environment={}, find=ODD.__getitem__)
    session.configure(jit_level="O2")
    program = b.program(b.order[0])
    session.compile(program, replace(session.options(), engine="torch"))
    for run in range(5):
        assert session.execute(program, [np.full((2, 3), 3, np.float32)])[0].tolist() == [[wanted(run)] * 3] * 2


def test_a_fault_and_a_skipped_kernel_bring_the_tasks_back(net, machine):
    b = net()
    total = b.op("Add", b.input("x", (SIDE, SIDE)), b.input("y", (SIDE, SIDE)))
    b.order = [total]
    program, x = b.program(total), np.ones((SIDE, SIDE), np.float32)

    def opened(environment):
        session = machine(RunSettings(), environment=environment, find=OPS.__getitem__)
        session.configure(jit_level="O2")
        session.compile(program, replace(session.options(), engine="torch"))
        return session

    session = opened({})
    for _ in range(4):
        assert (session.execute(program, [x, x])[0] == 2).all()
    session.inject(make_plan([{"kind": "overflow", "op": "Add", "nth": 2, "index": 3, "value": 7.5}]))
    wanted = np.full((SIDE, SIDE), 2, np.float32)
    for value in (2, 7.5, 2):
        wanted.flat[3] = value
        assert session.execute(program, [x, x])[0].tolist() == wanted.tolist()
    session = opened({"MS_KERNEL_LAUNCH_SKIP": "Add"})
    for _ in range(4):
        assert session.execute(program, [x, x])[0].tobytes() == b"\xcd" * (4 * SIDE * SIDE)
