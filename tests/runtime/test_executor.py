"""Programs built by hand, run on the emulated device."""

import mmap
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.errors import BadInputError, DeviceError, OutOfMemoryError, UnsupportedError
from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.graph.graph import Constant
from dumpsim.graph.program import Branch, Loop, Move, Program, Run
from dumpsim.runtime.session import Session

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def test_a_line_of_kernels(net, session):
    b = net()
    x, y = b.input("x", (2, 3)), b.input("y", (2, 3))
    program = b.program(b.op("ReLU", b.op("Add", x, b.op("Mul", x, y))))
    s = session()
    (out,) = s.execute(program, [X, X + 1])
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, np.maximum(X + X * (X + 1), 0))
    # results are the caller's own
    (again,) = s.execute(program, [X * 2, X])
    np.testing.assert_array_equal(out, np.maximum(X + X * (X + 1), 0))
    np.testing.assert_array_equal(again, np.maximum(2 * X + 2 * X * X, 0))


def test_tuples_constants_attributes_and_views(net, session):
    b = net()
    x = b.input("x", (2, 3))
    two = b.op("Split", x, items=((1, 3), (1, 3)))
    first, second = b.op("TupleGetItem", two, 0), b.op("TupleGetItem", two, 1)
    total = b.op("AddN", b.op("MakeTuple", first, second, b.constant(np.ones((1, 3), np.float32))), shape=(1, 3))
    flat = b.op("Reshape", total, (3,), shape=(3,))
    scaled = b.op("Scale", b.op("Depend", flat, 0), 2.0, bias=1.0)
    out = b.op("MakeTuple", scaled, flat, x, b.constant(np.arange(3, dtype=np.int32)))
    s = session()
    got = s.execute(b.program(out), [X])
    expected = X[0] + X[1] + 1
    for a, e in zip(got, (expected * 2 + 1, expected, X, np.arange(3)), strict=True):
        np.testing.assert_array_equal(a, e)
    assert got[3].dtype == np.int32


@pytest.mark.parametrize("name", ["910A", "910B", "GPU", "CPU"])
def test_weights_stay_on_the_device_and_the_host_sees_updates(net, session, name):
    b = net()
    weight, moments = b.weight("w", np.ones((2, 3), np.float32)), b.weight("moments.w", np.zeros((2, 3), np.float32))
    gradient = b.input("g", (2, 3))
    program = b.program(b.op("ApplyMomentum", weight, moments, 0.5, gradient, 0.9))
    s = session(name)
    (out,) = s.execute(program, [X])
    np.testing.assert_array_equal(out, 1 - X * np.float32(0.5))
    np.testing.assert_array_equal(weight.storage._array, out)
    np.testing.assert_array_equal(moments.storage._array, X)
    held = weight.storage._array
    s.execute(program, [X])
    assert weight.storage._array is held  # by reference, without a copy
    velocity = X * np.float32(0.9) + X
    np.testing.assert_allclose(held, 1 - X * 0.5 - velocity * 0.5, rtol=1e-6)
    # a new value of the host is uploaded
    weight.storage._array = np.full((2, 3), 7, np.float32)
    moments.storage._array = np.zeros((2, 3), np.float32)
    (out,) = s.execute(program, [X])
    np.testing.assert_array_equal(out, 7 - X * np.float32(0.5))


def test_two_programs_share_a_weight(net, session, holder):
    shared = holder(np.zeros((2,), np.float32))
    writer, reader = net(graph_id=0), net(graph_id=1)
    w, m = writer.weight("w", shared._array, shared), writer.weight("m", np.zeros(2, np.float32))
    write = writer.program(writer.op("ApplyMomentum", w, m, 1.0, writer.input("g", (2,)), 0.0))
    read = reader.program(reader.op("Neg", reader.weight("w", shared._array, shared)))
    s = session()
    s.execute(write, [np.array([1, 2], np.float32)])
    np.testing.assert_array_equal(s.execute(read, [])[0], [1, 2])
    assert sum(block.kind == "weight" for block in s.device.memory.blocks()) == 2


@pytest.mark.parametrize(("kind", "numpy"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_low_precision_is_computed_in_float32_and_rounded_once(net, session, kind, numpy):
    b = net()
    x = b.input("x", (64,), kind)
    y = b.input("y", (64,), kind)
    program = b.program(b.op("Mul", x, y))
    values = np.random.default_rng(0).normal(size=(2, 64)).astype(numpy)
    (out,) = session().execute(program, list(values))
    assert out.dtype == numpy
    exact = values[0].astype(np.float32) * values[1].astype(np.float32)
    assert out.tobytes() == exact.astype(numpy).tobytes()


def test_in_place_updates_of_low_precision_weights(net, session):
    b = net()
    w, m = b.weight("w", np.ones(3, np.float16)), b.weight("m", np.zeros(3, np.float16))
    program = b.program(b.op("ApplyMomentum", w, m, 0.5, b.input("g", (3,), "float16"), 0.0))
    (out,) = session().execute(program, [np.array([1, 2, 4], np.float16)])
    assert out.tolist() == [0.5, 0.0, -1.0]
    assert w.storage._array.tolist() == [0.5, 0.0, -1.0]
    assert w.storage._array.dtype == np.float16


@pytest.mark.parametrize(
    ("chip", "environment", "expected", "flag"),
    [
        ("910A", {}, 65504.0, True),
        ("910B", {}, np.inf, True),
        ("910B", {"MS_ASCEND_CHECK_OVERFLOW_MODE": "SATURATION_MODE"}, 65504.0, True),
        ("GPU", {}, np.inf, False),
        ("CPU", {}, np.inf, False),
    ],
)
def test_overflow_by_chip(net, session, recorder, chip, environment, expected, flag):
    b = net()
    x = b.input("x", (2,), "float16")
    program = b.program(b.op("Neg", b.op("Mul", x, x)))
    s = session(chip, environment=environment)
    tap = recorder()
    s.add_tap(tap)
    (out,) = s.execute(program, [np.array([300, 2], np.float16)])
    assert out.tolist() == [-expected, -4.0]
    assert s.device.status.raised is flag
    assert [event.overflow for event, _ in tap.of("after")] == [flag, False]  # Neg passes it on, it does not make it


def test_a_random_kernel_gets_the_number_of_earlier_runs(net, session):
    b = net()
    program = b.program(b.op("Random", b.input("x", (2,))))
    s = session()
    assert [s.execute(program, [np.zeros(2, np.float32)])[0][0] for _ in range(3)] == [0, 1, 2]


def test_a_random_pynative_operator_gets_the_number_of_earlier_runs(session):
    s = session()
    x = np.zeros(2, np.float32)
    assert [s.run_op(s._find("Random"), [x])[0].tolist() for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]
    assert s.run_op(s._find("Neg"), [x])[0].tolist() == [0, 0]
    assert s.run_op(s._find("Random"), [x])[0].tolist() == [3, 3]


# ------------------------------------------------------------------ control flow
def loop_program(net):
    """while i < n: if i < 1: x = relu(x) else: x = x + x; i = i + 1  -- returns x"""
    head, relu, double, step = (net(graph_id=i, is_root=i == 0, root_graph_id=0) for i in range(4))
    n = head.input("n", ())
    condition = head.kernel_graph(
        head.op(
            "MakeTuple",
            head.op("Less", head.input("i", ()), n, kind="bool"),
            head.op("Less", head.graph.parameters[1], 1.0, kind="bool"),
        )
    )
    graphs = [
        condition,
        relu.kernel_graph(relu.op("ReLU", relu.input("x", (2, 3)))),
        double.kernel_graph(double.op("Add", double.input("x", (2, 3)), double.graph.parameters[0])),
        step.kernel_graph(step.op("Add", step.input("i", ()), np.array(1, np.float32))),
    ]
    # slots: 0 x, 1 n, 2 i, 3 i<n, 4 i<1
    zero = Constant(value=np.float32(0), abstract=n.abstract)
    return Program(
        kernel_graphs=tuple(graphs),
        steps=(
            Move(target=2, source=zero),
            Loop(
                head=(Run(graph=0, arguments=(1, 2), results=(3, 4)),),
                condition=3,
                body=(
                    Branch(
                        condition=4,
                        then=(Run(graph=1, arguments=(0,), results=(0,)),),
                        otherwise=(Run(graph=2, arguments=(0,), results=(0,)),),
                    ),
                    Run(graph=3, arguments=(2,), results=(2,)),
                ),
            ),
        ),
        inputs=(relu.graph.parameters[0], n),
        outputs=(0, 2),
        slots=5,
        name="loop",
    )


@pytest.mark.parametrize("chip", ["910A", "910B", "CPU"])
@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_control_flow(net, session, chip, rounds):
    s = session(chip)
    program = loop_program(net)
    for _ in range(2):
        x, i = s.execute(program, [X, np.float32(rounds)])
        expected = X
        for at in range(rounds):
            expected = np.maximum(expected, 0) if at < 1 else expected + expected
        np.testing.assert_array_equal(x, expected)
        assert i == rounds
    assert not any(block.kind == "workspace" for block in s.device.memory.blocks())


def test_a_segment_gives_its_workspace_back_when_it_is_done(net, session):
    s = session()
    seen = []

    class Tap:
        def wants(self, event):
            return hasattr(event, "task_id")

        def before_task(self, event):
            held = [block.owner for block in s.device.memory.blocks() if block.kind == "workspace"]
            seen.append((f"kernel graph {event.graph_id}", held))

        def after_task(self, event):
            pass

    s.add_tap(Tap())
    s.execute(loop_program(net), [X, np.float32(3)])
    assert len(seen) > 10
    for own, held in seen:
        assert sorted(held) == sorted({"kernel graph 0", own})


def test_unwritten_memory_has_the_fill_pattern(net, session):
    b = net()
    program = b.program(b.op("Neg", b.input("x", (3,))))
    s = session()
    seen = []

    class Tap:
        def wants(self, event):
            return hasattr(event, "task_id")

        def before_task(self, event):
            pass

        def after_task(self, event):
            for ref in (*event.operands, *event.outputs):
                seen.append(s.device.memory.view(ref.address + ref.nbytes, 512 - ref.nbytes).copy())

    s.add_tap(Tap())
    s.execute(program, [np.ones(3, np.float32)])
    assert len(seen) == 2
    assert all((padding == 0xCD).all() for padding in seen)


def test_memory_is_not_cleared_between_programs(net, session):
    """A kernel that is skipped shows the fill pattern in fresh memory, and then whatever is in it."""

    def program(last):
        b = net()
        return b.program(b.op(last, b.op("Add", b.input("x", (3,)), X[0])))

    s = session(environment={"MS_KERNEL_LAUNCH_SKIP": "Neg"})
    skips, writes = program("Neg"), program("ReLU")
    assert s.execute(skips, [X[0]])[0].tobytes() == b"\xcd" * 12
    wanted = s.execute(writes, [X[0]])[0]
    assert wanted.tolist() == [2, 0, 6]
    assert s.execute(skips, [X[1]])[0].tolist() == wanted.tolist()


def test_control_flow_events(net, session, recorder):
    s, tap = session("CPU"), recorder()
    s.add_tap(tap)
    s.execute(loop_program(net), [X, np.float32(2)])
    assert [(e.graph_id, e.is_root, e.root_graph_id) for e, _ in tap.of("graph")] == [
        (0, True, 0),
        (1, False, 0),
        (2, False, 0),
        (3, False, 0),
    ]
    ran = [(e.graph_id, e.op_type) for e, _ in tap.of("after")]
    head = [(0, "Less"), (0, "Less")]
    assert ran == [*head, (1, "ReLU"), (3, "Add"), *head, (2, "Add"), (3, "Add"), *head]
    origins = {(e.graph_id, r.slot): r.origin for e, _ in tap.of("after") for r in e.operands}
    # a segment's inputs are handed over, its constants are its own; the second Less has a host constant
    assert origins == {
        (0, 0): "device",
        (0, 1): "constant",
        (1, 0): "segment",
        (2, 0): "segment",
        (2, 1): "segment",
        (3, 0): "segment",
        (3, 1): "constant",
    }
    ((end, parameters),) = tap.of("end")
    assert end.run_count == 1
    assert {name: v.tolist() for name, v in parameters.items()} == {"n": 2.0, "i": 2.0}


@pytest.mark.parametrize("chip", ["CPU", "910B"])
def test_tensors_of_a_segment_without_memory_of_their_own(net, operators, recorder, chip):
    """Inputs and weights that another graph hands over, and what a CPU's Reshape returns of them. [spec vendor 2.11]"""
    shown = {}
    for is_own in (True, False):
        b = net(is_root=is_own)
        x = b.input("x", (2, 3))
        view = b.op("Reshape", x, (3, 2), shape=(3, 2))
        b.order.append(view)
        moments = b.weight("m", np.zeros((2, 3), np.float32))
        updated = b.op("ApplyMomentum", b.weight("w", np.ones((2, 3), np.float32)), moments, 1.0, x, 0.5)
        program = b.program(b.op("MakeTuple", b.op("Neg", view), updated))
        s, tap = Session(RunSettings(chip=chip), environment={}, find=operators), recorder()
        s.add_tap(tap)
        s.compile(program, CompileOptions())
        s.execute(program, [np.ones((2, 3), np.float32)])
        shown[is_own] = {
            event.op_type: ([ref.origin for ref in event.operands], [ref.origin for ref in event.outputs])
            for event, _ in tap.of("after")
        }
    assert all(origin != "segment" for lists in shown[True].values() for refs in lists for origin in refs)
    own = "segment" if chip == "CPU" else "device"
    assert shown[False]["Reshape"] == (["segment", "constant"], [own])
    assert shown[False]["Neg"] == (["segment"], ["device"])
    assert shown[False]["ApplyMomentum"][1] == ["device"]
    assert shown[False]["ApplyMomentum"][0][:2] == ["segment", "segment"]


def test_a_kernel_that_computes_nothing_takes_no_time(net, operators):
    b = net()
    view = b.op("Reshape", b.input("x", (2, 3)), (3, 2), shape=(3, 2))
    b.order.append(view)
    s = Session(RunSettings(chip="CPU"), environment={}, find=operators)
    (graph,) = s.compile(b.program(b.op("Neg", view)), CompileOptions()).graphs
    costs = {call.node.op_type: (call.cost_ns, call.flops) for call in graph.plan.calls}
    assert costs["Reshape"] == (0, 0)
    assert costs["Neg"][0] > 0
    assert costs["Neg"][1] == 6


def test_constant_outputs_have_their_own_type(net, session):
    b = net()
    constants = [b.constant(value) for value in (2, 1.5, True, (1, 2), None, "text")]
    program = Program(kernel_graphs=(), steps=(), inputs=(), outputs=tuple(constants), slots=0)
    got = session().execute(program, [])
    assert [getattr(value, "dtype", None) for value in got] == ["int64", "float32", "bool", "int64", None, None]
    assert [value.tolist() for value in got[:4]] == [2, 1.5, True, [1, 2]]
    assert got[4:] == [None, "text"]


# ------------------------------------------------------------------ errors
def test_arguments_that_do_not_fit(net, session):
    b = net()
    program = b.program(b.op("Neg", b.input("x", (2, 3))))
    s = session()
    with pytest.raises(BadInputError, match=r"net: 2 arguments for 1 inputs"):
        s.execute(program, [X, X])
    with pytest.raises(BadInputError, match=r"x: the argument has shape \(3, 2\); allowed: \(2, 3\)"):
        s.execute(program, [X.T])
    with pytest.raises(BadInputError, match=r"x: the argument is float64; allowed: float32"):
        s.execute(program, [X.astype(np.float64)])
    np.testing.assert_array_equal(s.execute(program, [X])[0], -X)


def test_a_kernel_with_a_wrong_result_is_named(net, session):
    b = net()
    with pytest.raises(DeviceError, match=r"Default/Wrong-op0: the kernel of Wrong gave shape \(1, 3\)"):
        session().execute(b.program(b.op("Wrong", b.input("x", (2, 3)))), [X])


def test_unknown_operators_and_weights_without_value(net, session, holder):
    b = net()
    node = b.op("Neg", b.input("x", (2,)))
    node.op_type = "Nag"
    with pytest.raises(UnsupportedError, match="'Nag'"):
        session().compile(b.program(node))
    b = net()
    with pytest.raises(BadInputError, match="w: the weight has no value on the host"):
        session().compile(b.program(b.op("Neg", b.weight("w", np.ones(2, np.float32), holder(None)))))


def test_a_program_too_large_is_refused_when_it_is_compiled(net, session):
    b = net()
    x = b.input("x", (1 << 30, 10))
    program = b.program(b.op("Neg", b.op("Neg", x)))
    s = session()
    with pytest.raises(OutOfMemoryError) as caught:
        s.compile(program)
    assert "alloc size" in str(caught.value)
    assert "activation Default/Neg-op0" in caught.value.__notes__[0]
    assert s.device.memory.used == 0


def test_a_segment_that_is_too_large_leaves_nothing_of_those_before_it(net, session):
    first, second = net(), net(graph_id=1, is_root=False)
    one = first.program(first.op("Add", first.input("x", (3,)), X[0]))
    two = second.program(second.op("Neg", second.op("Neg", second.input("x", (1 << 30, 10)))))
    both = replace(one, kernel_graphs=(*one.kernel_graphs, *two.kernel_graphs))
    s = session()
    with pytest.raises(OutOfMemoryError):
        s.compile(both)
    assert s.device.memory.used == 0


def test_every_run_uses_the_same_memory(net, session):
    """Constants are stored once, with the first run or before."""
    b = net()
    program = b.program(b.op("Add", b.input("x", (3,)), X[0]))
    s = session()
    s.compile(program)
    before, found = s.device.memory.used, []
    for _ in range(4):
        s.execute(program, [X[0]])
        found.append((s.device.memory.used, s.compile(program).graphs[0].binding))
    assert before > 0
    assert {used for used, _ in found} == {before}
    assert len({id(binding) for _, binding in found}) == 1


def test_shapes_known_only_at_run_time(net, session, recorder):
    """`set_inputs` leaves a dimension open: one program, one graph, any size."""
    b = net()
    x = b.input("x", (-1, 2))
    first = b.op("Add", x, b.constant(np.array([[1, 2]], np.float32)))
    parts = b.op("Split", b.op("Depend", first, 0), items=((1, 2), (-1, 2)))
    rest = b.op("TupleGetItem", parts, 1)
    program = b.program(b.op("MakeTuple", b.op("Neg", rest), rest, b.op("TupleGetItem", parts, 0)))
    s, tap = session(), recorder()
    s.add_tap(tap)
    for rows in [3, 5, 3, *range(2, 14)]:
        values = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
        expected = np.add(values, [1, 2])
        got = s.execute(program, [values])
        for array, wanted in zip(got, (-expected[1:], expected[1:], expected[:1]), strict=True):
            np.testing.assert_array_equal(array, wanted)
    assert len(tap.of("graph")) == 1
    assert [e.operands[0].shape for e, _ in tap.of("after") if e.op_type == "Neg"][:3] == [(2, 2), (4, 2), (2, 2)]
    assert sum(block.kind == "constant" for block in s.device.memory.blocks()) == 8  # the last plans are kept
    with pytest.raises(BadInputError, match=r"has shape \(2, 3\); allowed: \(-1, 2\)"):
        s.execute(program, [np.zeros((2, 3), np.float32)])
    s.release(program)
    assert s.device.memory.used == 0


def test_the_first_run_may_have_another_order_than_the_later_ones(net, operators, recorder):
    """[observed 2.10]: of a CPU with a dump."""
    b = net()
    x = b.input("x", (3,))
    first, second = b.op("Neg", x), b.op("ReLU", x)
    total = b.op("Add", first, second)
    program = b.program(total)
    (graph,) = program.kernel_graphs
    program = replace(program, kernel_graphs=(replace(graph, repeats=(second, first, total)),))
    s, tap = Session(RunSettings(chip="CPU"), environment={}, find=operators), recorder()
    s.add_tap(tap)
    s.compile(program, CompileOptions())
    for run in range(3):
        tap.log.clear()
        assert s.execute(program, [X[0]])[0].tolist() == [0, 2, 0]
        ran = [event.op_type for event, _ in tap.of("after")]
        assert ran == (["ReLU", "Neg", "Add"] if run else ["Neg", "ReLU", "Add"])


def test_life_times_for_reports(net, session):
    b = net()
    x = b.input("x", (4,))
    first = b.op("Neg", x)
    program = b.program(b.op("Add", b.op("ReLU", first), first))
    s = session()
    s.execute(program, [np.zeros(4, np.float32)])
    rows = list(s.lifetimes())
    assert [(row.owner, row.kind, row.born, row.dead) for row in rows] == [
        ("x", "input", "", ""),
        ("Default/Neg-op0", "activation", "Default/Neg-op0", "Default/Add-op0"),
        ("Default/ReLU-op0", "activation", "Default/ReLU-op0", "Default/Add-op0"),
        ("Default/Add-op0", "activation", "Default/Add-op0", ""),
    ]
    assert len({row.address for row in rows}) == 4
    assert {(row.graph_id, row.slot, row.nbytes) for row in rows} == {(0, 0, 16)}


@pytest.mark.parametrize("late", [False, True])
def test_a_graph_that_does_not_fit_names_its_eight_largest_tensors(net, session, late):
    """The largest first, and of equal ones the one with the lowest offset; also if the memory is gone after loading."""
    b = net()
    made = [b.op("Neg", b.input(f"x{n}", (1 << n, 1024))) for n in range(5)]
    program = b.program(b.op("MakeTuple", *made))
    s = session()
    if late:
        s.compile(program)
    s.device.memory.limit = 1 << 17
    with pytest.raises(DeviceError) as caught:
        s.execute(program, [np.zeros((1 << n, 1024), np.float32) for n in range(5)])
    (note,) = [note for note in caught.value.__notes__ if note.startswith("largest")]
    head, *lines = note.split("\n")
    assert head == "largest tensors of kernel graph 0 (offset, bytes):"
    rows = [line.split() for line in lines]
    kinds = {"x": "input", "D": "activation"}
    assert sorted((int(size), kind, name) for _, size, kind, name in rows) == sorted(
        (4096 << n, kinds[name[0]], name) for n in range(1, 5) for name in (f"x{n}", f"Default/Neg-op{n}")
    )
    keys = [(-int(size), int(offset)) for offset, size, _, _ in rows]
    assert keys == sorted(keys)
    assert [len(line) - len(name) for line, (*_, name) in zip(lines, rows, strict=True)] == [
        2 + 14 + 1 + 14 + 1 + 11
    ] * 8


def test_a_weight_is_device_memory_and_a_result_is_not(net, session):
    b = net()
    w = b.weight("w", np.ones((2, 2), np.float32))
    s = session()
    (out,) = s.execute(b.program(b.op("Neg", w)), [])
    (block,) = [block for block in s.device.memory.blocks() if block.owner == "w"]
    assert np.shares_memory(w.storage._array, block.bytes())
    s.device.memory.write(block.address, np.full((2, 2), 3, np.float32))
    assert w.storage._array.tolist() == [[3, 3], [3, 3]]
    assert not np.shares_memory(out, s.device.memory.view(s.device.memory.blocks()[0].address, 1 << 20))


# ------------------------------------------------------------------ determinism, size, speed
def test_the_same_run_twice_is_the_same(net, session, recorder):
    def record():
        s, tap = session(), recorder()
        s.add_tap(tap)
        program = loop_program(net)
        for _ in range(2):
            s.execute(program, [X, np.float32(3)])
        return [
            (
                kind,
                getattr(event, "time_ns", 0),
                getattr(event, "task_id", 0),
                [(r.address, r.version) for r in (*getattr(event, "operands", ()), *getattr(event, "outputs", ()))],
            )
            for kind, event, _ in tap.log
        ]

    first, second = record(), record()
    assert first == second
    stamps = [t for kind, t, *_ in first if kind == "after"]
    assert stamps == sorted(stamps)
    assert len(set(stamps)) == len(stamps)


def test_task_ids_count_on_per_stream_and_restart_per_model_at_o2(net, session, recorder):
    for level, expected in (("O0", [0, 1, 2, 3]), ("O2", [0, 0])):
        b = net()
        program = b.program(b.op("Neg", b.op("Neg", b.input("x", (2,)))))
        s, tap = session(), recorder()
        s.add_tap(tap)
        s.compile(program, s.options(jit_level=level))
        for _ in range(2):
            s.execute(program, [np.zeros(2, np.float32)])
        events = [e for e, _ in tap.of("after") if e.op_type != "Data"]
        assert [e.task_id for e in events] == expected
        assert {e.stream_id for e in events} == {0}


def chain(net, length, shape=(4,)):
    b = net()
    value = b.input("x", shape)
    for _ in range(length):
        value = b.op("Neg", value)
    return b.program(value)


def test_memory_is_reused_unless_switched_off(net, session):
    shape = (1024, 1024)
    nbytes = 4 << 20
    reused, kept = session(), session()
    a, b = chain(net, 20, shape), chain(net, 20, shape)
    plan = reused.compile(a).graphs[0].plan
    assert plan.workspace == 3 * nbytes  # the input, and two in turn
    plan = kept.compile(b, CompileOptions(memory_reuse=False)).graphs[0].plan
    assert plan.workspace == 21 * nbytes
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(reused.execute(a, [x])[0], x)
    np.testing.assert_array_equal(kept.execute(b, [x])[0], x)


def test_dead_tensors_without_reuse_take_no_host_memory(net, session):
    s = session("CPU")
    program = chain(net, 200, (1 << 20,))
    s.compile(program, CompileOptions(memory_reuse=False))
    before = _resident()
    s.execute(program, [np.ones(1 << 20, np.float32)])
    assert s.device.memory.peak > 200 * (4 << 20)
    assert _resident() - before < 200 << 20


def _resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * mmap.PAGESIZE


def test_released_programs_give_their_memory_back(net, session):
    s = session()
    b = net()
    program = b.program(b.op("Add", b.input("x", (2,)), np.ones(2, np.float32)))
    s.execute(program, [np.zeros(2, np.float32)])
    assert s.device.memory.used > 0
    s.release(program)
    assert s.device.memory.used == 0


def test_weights_of_dropped_parameters_are_freed_at_the_next_compilation(net, session):
    s = session()
    b = net()
    program = b.program(b.op("Neg", b.weight("w", np.ones(2, np.float32))))
    s.execute(program, [])
    s.release(program)
    assert s.device.memory.used == 512
    del b, program
    s.compile(chain(net, 1))
    assert s.device.memory.used == 0


def test_a_graph_is_launched_without_waiting_and_collected_later(net, session):
    s = session()
    (graph,) = s.compile(chain(net, 3, X.shape)).graphs
    with pytest.raises(DeviceError, match="nothing was launched"):
        graph.collect()
    graph.launch([X])
    stream = s.device.stream(0)
    assert len(stream.tasks) == 3
    with pytest.raises(DeviceError, match="launched again before its results are collected"):
        graph.launch([X])
    assert len(stream.tasks) == 3
    (out,) = graph.collect()
    assert not stream.tasks
    np.testing.assert_array_equal(out, s.execute(chain(net, 3, X.shape), [X])[0])


def test_constants_that_do_not_fit_leave_no_memory(net, session):
    b = net()
    large = [np.full(1 << 18, value, np.float32) for value in (1, 2)]  # 1 MiB each
    program = b.program(b.op("Add", b.op("Add", b.input("x", large[0].shape), large[0]), large[1]))
    s = session()
    memory = s.device.memory
    memory.limit = 3 << 19
    with pytest.raises(OutOfMemoryError):
        s.execute(program, [large[0]])
    assert [block.kind for block in memory.blocks()] == []
    memory.limit = memory.capacity
    assert (s.execute(program, [large[0]])[0] == 4).all()
    assert sorted(block.kind for block in memory.blocks()).count("constant") == 2


def test_sums_of_results_whose_largest_shapes_do_not_fit(net, machine):
    """Only the run knows that the shapes are equal; the memory is that of as many rows as the operands have numbers."""
    from dumpsim.ops.table import find

    b = net()
    found = [
        b.op("NonZero", b.input(name, (rows, 3)), shape=(-1, 2), kind="int64") for name, rows in (("x", 2), ("y", 3))
    ]
    total = b.op("Add", *found, shape=(-1, 2), kind="int64")
    b.order = [*found, total]
    s = machine(RunSettings(chip="910B"), environment={}, find=find)
    x, y = np.array([[1, 0, 2], [0, 3, 0]], np.float32), np.zeros((3, 3), np.float32)
    y[2] = 1
    program = b.program(total)
    for _ in range(3):
        (out,) = s.execute(program, [x, y])
        assert out.tolist() == (np.argwhere(x) + np.argwhere(y)).tolist()
    (out,) = s.execute(program, [0 * x, 0 * y])
    assert out.shape == (0, 2)
