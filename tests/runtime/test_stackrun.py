"""Programs built by hand for many ranks at once: what each rank computes by itself, and what is refused."""

import weakref
from dataclasses import replace

import numpy as np
import pytest

from dumpsim.core.abstract import ScalarType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError, DeviceError, UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.graph.program import Branch, Constant, Keep, Loop, Move, Program, Repeat, Restore, Run
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime import stackrun
from dumpsim.runtime.planner import plan_graph
from dumpsim.runtime.stack import Stack
from dumpsim.runtime.stackrun import StackRun

RANKS = 5
X = np.array([[1, -1, -8, 7, 0, 3], [2, -2, 5, -5, 6, -6]], np.float32)


def _never(*operands, **attrs):
    raise AssertionError("the kernel of a device runs in no stack")


def _bits(abstracts, attrs):
    return TensorType(dtype=dtype("int4"), shape=(2, 3))


def _number(abstracts, attrs):
    return ScalarType(dtype=dtype("float32"))


OPS = {
    one.name: one
    for one in (
        OpDef(name="Bits", operands=("x",), infer=_bits, kernel=lambda x: x.astype(np.int8)),
        OpDef(name="Unpacked", operands=("x",), infer=lambda a, _: a[0], kernel=lambda x: x.astype(np.float32) * 3),
        OpDef(name="Number", operands=("x",), infer=_number, kernel=lambda x: np.float32(x.sum())),
        OpDef(name="Print", operands=("x",), infer=lambda a, _: a[0], kernel=_never, device=True, side_effect="io"),
        OpDef(name="Status", operands=("x",), infer=lambda a, _: a[0], kernel=_never, device=True),
    )
}


@pytest.fixture
def alike(machine, operators, compile_graph):
    """Run a program in each rank by itself, and in all ranks at once."""

    def find(kind):
        return OPS[kind] if kind in OPS else operators(kind)

    def stacked(made, ranks=RANKS, group=2, chip="910B"):
        session = machine(RunSettings(chip=chip), environment={}, find=find)
        options = session.options()
        graphs = tuple(compile_graph(graph, options, find) for graph in made.kernel_graphs)
        plan = lambda graph: plan_graph(graph, session.device.chip, options, find)  # noqa: E731
        run = StackRun(
            replace(made, kernel_graphs=graphs), ranks, session.device, session.engine, plan, None, group=group
        )
        for parameter in graphs[0].graph.parameters:
            if parameter.is_weight:
                run.weights[id(parameter.storage)] = parameter.storage._array
        return run

    def alone(build, rank, own, times=1):
        session = machine(RunSettings(), environment={}, find=find)
        made = build()
        return [session.execute(made, [own(rank)]) for _ in range(times)]

    return stacked, alone


def test_numbers_of_four_bits_are_those_of_each_rank(net, alike):
    """They lie packed, two in a byte, where a rank runs by itself."""
    stacked, alone = alike

    def own(rank):
        return np.roll(X, rank, 1)

    def build():
        b = net()
        bits = b.op("Bits", b.input("x", X.shape), shape=(2, 3), kind="int4")
        b.order.append(bits)
        values = b.op("Unpacked", bits, shape=X.shape, kind="float32")
        b.order.append(values)
        return b.program(values)

    for group in (1, 2, 5):
        (found,) = stacked(build(), group=group).step([own])
        assert isinstance(found, Stack)
        for rank in range(RANKS):
            assert found[rank].tolist() == (3 * own(rank)).tolist()
    (same,) = stacked(build()).step([own(0)])
    assert same.tolist() == (3 * own(0)).tolist()
    assert alone(build, 3, own)[0][0].tolist() == (3 * own(3)).tolist()


def test_bits_are_checked_as_where_they_are_packed(net, alike):
    stacked, alone = alike

    def build():
        b = net()
        bits = b.op("Same", b.input("x", (9,)), 0, kind="uint1")
        return b.program(b.op("Neg", bits, kind="uint1"))

    def ones(rank):
        return (np.arange(9) % (rank + 2) == 0).astype(np.float32)

    def same():
        b = net()
        return b.program(b.op("Same", b.input("x", (9,)), 0, kind="uint1"))

    (found,) = stacked(same()).step([ones])
    for rank in range(RANKS):
        assert found[rank].tolist() == ones(rank).tolist() == alone(same, rank, ones)[0][0].tolist()
    texts = []
    for run in (lambda: stacked(build()).step([ones]), lambda: alone(build, 1, ones)):
        with pytest.raises(BadInputError, match="uint1") as caught:  # the negative of 1 is 255
            run()
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_a_number_is_one_for_all_ranks(net, alike):
    stacked, alone = alike

    def build():
        b = net()
        x = b.input("x", (2, 3))
        number = b.op("Number", x)
        number.abstract = ScalarType(dtype=dtype("float32"))
        b.order.append(number)
        return b.program(b.op("Scale", x, number, bias=1.5))

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = stacked(build()).step([x])
    assert found.tolist() == (15 * x + 1.5).tolist() == alone(build, 0, lambda rank: x)[0][0].tolist()
    with pytest.raises(UnsupportedError, match="a number operand differs between ranks in lockstep"):
        stacked(build()).step([lambda rank: x + rank])


def test_printing_is_left_to_chosen_ranks_and_the_state_of_a_device_is_refused(net, alike):
    stacked, _ = alike
    b = net()
    x = b.input("x", (3,))
    shown = b.op("Print", x)
    shown.abstract = TupleType(items=())
    b.order.append(shown)
    (found,) = stacked(b.program(b.op("MakeTuple", b.op("Neg", x), shown))).step([lambda rank: np.full(3, rank, "f4")])
    assert [found[rank].tolist() for rank in range(RANKS)] == [[-rank] * 3 for rank in range(RANKS)]
    b = net()
    status = b.op("Status", b.input("x", (3,)))
    b.order.append(status)
    with pytest.raises(UnsupportedError, match="Status needs a device, which ranks in lockstep do not have") as caught:
        stacked(b.program(status)).step([np.ones(3, np.float32)])
    assert "Default/Status-op0" in str(caught.value)


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("chip", ["910A", "910B"])
def test_kernels_without_batches_updates_and_several_results(net, alike, apart, chip):
    """The weights differ between ranks after the first step that differs."""
    stacked, _ = alike
    w, m = np.array([[1, 2, 3], [4, 5, 6]], np.float32), np.full((2, 3), 2, np.float32)
    b = net()
    x = b.input("x", (2, 3))
    weight, moments = b.weight("w", w), b.weight("m", m)
    split = b.op("Split", x, items=[(1, 3), (1, 3)])
    first, second = b.op("TupleGetItem", split, 0), b.op("TupleGetItem", split, 1)
    flat = b.op("Reshape", b.op("AddN", b.op("MakeTuple", x, weight, x)), (6,), shape=(6,))
    b.order.append(flat)
    updated = b.op("ApplyMomentum", weight, moments, 0.5, x, 0.25)
    drawn = b.op("Random", x)
    half = b.op("Same", b.op("Mul", x, np.full((2, 3), 70000, np.float32)), 0, kind="float16")
    run = stacked(b.program(b.op("MakeTuple", first, second, flat, updated, drawn, half)), chip=chip, group=2)
    largest = 65504.0 if chip == "910A" else np.inf

    def own(rank):
        return np.arange(6, dtype=np.float32).reshape(2, 3) + (rank if apart else 0)

    weights = [(w, m)] * RANKS
    for step in range(3):
        outputs = run.step([own if apart else own(0)])
        for rank in range(RANKS):
            x, (w, m) = own(rank), weights[rank]
            m = 0.25 * m + x
            weights[rank] = w - 0.5 * m, m
            sixteen = np.where(x > 0, largest, 0)
            wanted = [x[:1], x[1:], (x + w + x).reshape(-1), weights[rank][0], np.full_like(x, step), sixteen]
            found = [out[rank] if isinstance(out, Stack) else out for out in outputs]
            assert [one.tolist() for one in found] == [one.tolist() for one in wanted]
            assert [one.dtype.name for one in found] == ["float32"] * 5 + ["float16"]
        assert [isinstance(out, Stack) for out in outputs] == [apart] * 6
    assert run.sizes == [2, 2, 1]


def test_what_does_not_fit_is_named(net, alike):
    stacked, _ = alike
    b = net()
    x = b.input("x", (2, 3))
    run = stacked(b.program(b.op("Add", x, b.weight("w", np.ones((2, 3), np.float32)))))
    with pytest.raises(BadInputError, match="net: 0 arguments for 1 inputs"):
        run.step([])
    for value, text in (
        (np.ones((3, 2), np.float32), r"x: float32 of shape \(3, 2\); allowed: float32 of shape \(2, 3\)"),
        (np.ones((2, 3), np.int32), r"x: int32 of shape \(2, 3\); allowed: float32 of shape \(2, 3\)"),
        (lambda rank: np.ones((2, 3), np.float64 if rank == 3 else np.float32), "x of rank 3: float64 of shape"),
        (Stack([np.ones((4, 2, 3), np.float32)]), r"x: float32 of shape \(4, 2, 3\); allowed: float32 of shape \(5, 2"),
        (Stack([np.ones((n, 2, 3 + (n == 1)), np.float32) for n in (2, 2, 1)]), r"x: float32 of shape \(1, 2, 4\)"),
    ):
        with pytest.raises(BadInputError, match=text):
            run.step([value])
    parts = Stack([np.arange(30, dtype=np.float32).reshape(5, 2, 3)])
    for stack in (parts, Stack(np.split(parts.parts[0], [2, 4])), Stack(np.split(parts.parts[0], [3]))):
        (found,) = run.step([stack])
        assert [found[rank].tolist() for rank in range(RANKS)] == (parts.parts[0] + 1).tolist()
        assert [len(part) for part in found.parts] == [2, 2, 1]
    run.weights.clear()
    with pytest.raises(BadInputError, match="w: the weight has no value"):
        run.step([parts])
    b = net()
    wrong = stacked(b.program(b.op("Wrong", b.input("x", (2, 3)))))
    for value in (np.ones((2, 3), np.float32), parts):
        with pytest.raises(DeviceError, match=r"the kernel gave shape \((1|2, 1), 3\) for an output of") as caught:
            wrong.step([value])
        assert caught.value.__notes__ == ["in the kernel of Default/Wrong-op0"]


def test_as_many_ranks_are_stacked_as_fit_into_the_cache(net, alike):
    """Its size is taken as 2 MiB; at least one rank is stacked, and at most 1,024."""
    stacked, _ = alike
    for shape, wanted in (((1 << 19,), 1), ((1 << 20,), 1), ((1 << 17,), 4), ((1 << 10,), 512), ((2,), 1024)):
        b = net()
        run = stacked(b.program(b.op("Neg", b.input("x", shape))), 2100, None)
        assert run.sizes[0] == wanted
        assert sum(run.sizes) == 2100


@pytest.mark.parametrize("apart", [True, False])
def test_values_are_dropped_after_their_last_reader(net, machine, apart):
    """A rank's memory is used again; here the values of all ranks would stay until the end of the run."""
    alive, refs = [], []

    def watched(x):
        refs.append(weakref.ref(x if x.base is None else x.base))
        alive.append(sum(ref() is not None for ref in refs))
        return x + 1

    def find(kind):
        return OpDef(name=kind, operands=("x",), infer=lambda a, _: a[0], kernel=watched, batched=True)

    b = net()
    value = b.input("x", (4,))
    for _ in range(6):
        value = b.op("Watched", value)
        b.order.append(value)
    session = machine(RunSettings(), environment={}, find=find)
    plan = lambda graph: plan_graph(graph, session.device.chip, session.options(), find)  # noqa: E731
    run = StackRun(b.program(value), 3, session.device, session.engine, plan, None, group=3)
    (found,) = run.step([(lambda rank: np.full(4, rank, np.float32)) if apart else np.zeros(4, np.float32)])
    assert (found[2] if apart else found).tolist() == [8 if apart else 6] * 4
    assert len(alive) == 6
    assert max(alive) <= 3  # the argument, which the caller has, and the operands of this kernel and the last one


def test_what_is_equal_in_all_ranks_is_computed_once(net, alike, monkeypatch):
    """With the first group, whatever the order of the kernels; also where all ranks get the same arguments."""
    stacked, _ = alike
    computed, compute = [], stackrun.compute_stack

    def spied(engine, definition, operands, attrs, shapes):
        computed.append(definition.name)
        return compute(engine, definition, operands, attrs, shapes)

    monkeypatch.setattr(stackrun, "compute_stack", spied)
    b = net()
    x, same = b.input("x", (3,)), b.input("same", (3,))
    own = b.op("ReLU", x)
    both = b.op("Mul", own, b.op("Neg", same))
    run = stacked(b.program(b.op("MakeTuple", both, b.op("Add", same, same))), group=2)
    values = np.array([1, -2, 3], np.float32)
    apart, equal = run.step([lambda rank: values + rank, values])
    for rank in range(RANKS):
        assert apart[rank].tolist() == (-values * np.maximum(values + rank, 0)).tolist()
    part = equal[4] if isinstance(equal, Stack) else equal
    assert part.tolist() == (2 * values).tolist()
    assert computed == ["ReLU", "Neg", "Mul", "Add", *(["ReLU", "Mul"] * 2)]
    computed.clear()
    run.step([values, values])
    assert computed == ["ReLU", "Neg", "Mul", "Add"]
    computed.clear()
    run.step([lambda rank: values + rank, values])  # as in the first step
    assert computed == ["ReLU", "Neg", "Mul", "Add", *(["ReLU", "Mul"] * 2)]


def looped(net):
    """while i < n: keep x; x = relu(x) if i < 1 else x + x; then sum = 2 * sum + x for each x kept, the last first."""
    head, relu, double, step, fold = (net(graph_id=i, is_root=i == 0, root_graph_id=0) for i in range(5))
    n = head.input("n", ())
    i = head.input("i", ())
    conditions = head.op("MakeTuple", head.op("Less", i, n, kind="bool"), head.op("Less", i, 1.0, kind="bool"))
    x = double.input("x", (2, 3))
    total = fold.input("sum", (2, 3))
    graphs = (
        head.kernel_graph(conditions),
        relu.kernel_graph(relu.op("ReLU", relu.input("x", (2, 3)))),
        double.kernel_graph(double.op("Add", x, x)),
        step.kernel_graph(step.op("Add", step.input("i", ()), np.array(1, np.float32))),
        fold.kernel_graph(fold.op("Add", fold.op("Add", total, total), fold.input("x", (2, 3)))),
    )
    # slots: 0 x, 1 n, 2 i, 3 i < n, 4 i < 1, 5 a kept x, 6 the first x, 7 sum
    constant = Constant(value=np.float32(0), abstract=n.abstract)
    zeros = Constant(value=np.zeros((2, 3), np.float32), abstract=x.abstract)
    loop = Loop(
        head=(Run(graph=0, arguments=(1, 2), results=(3, 4)),),
        condition=3,
        body=(
            Keep(stack=0, sources=(0,)),
            Branch(
                condition=4,
                then=(Run(graph=1, arguments=(0,), results=(0,)),),
                otherwise=(Run(graph=2, arguments=(0,), results=(0,)),),
            ),
            Run(graph=3, arguments=(2,), results=(2,)),
        ),
        counted=(1,),
    )
    back = Repeat(counter=1, body=(Restore(stack=0, targets=(5,)), Run(graph=4, arguments=(7, 5), results=(7,))))
    return Program(
        kernel_graphs=graphs,
        steps=(
            Move(target=2, source=constant), Move(target=7, source=zeros), Move(target=6, source=0), loop, back,
        ),
        inputs=(relu.graph.parameters[0], n),
        outputs=(0, 2, 6, 7, Constant(value="text", abstract=n.abstract)),
        slots=8,
        stacks=2,
        name="looped",
    )  # fmt: skip


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize("apart", [True, False])
def test_loops_branches_and_what_they_keep_are_those_of_each_rank(net, alike, rounds, apart):
    stacked, _ = alike

    def own(rank):
        return X[:, :3] + np.float32(rank if apart else 0)

    run = stacked(looped(net), group=2)
    for _ in range(2):
        outputs = run.step([own if apart else own(0), np.float32(rounds)])
        assert outputs[-1] == "text"
        for rank in range(RANKS):
            x, total, kept = own(rank), np.zeros((2, 3), np.float32), []
            for at in range(rounds):
                kept.append(x)
                x = np.maximum(x, 0) if at < 1 else x + x
            for one in kept[::-1]:
                total = 2 * total + one
            found = [out[rank] if isinstance(out, Stack) else out for out in outputs[:-1]]
            assert [one.tolist() for one in found] == [x.tolist(), rounds, own(rank).tolist(), total.tolist()]
    if apart and rounds:
        with pytest.raises(UnsupportedError, match="ranks in lockstep cannot take different branches"):
            run.step([own, lambda rank: np.float32(rank)])
