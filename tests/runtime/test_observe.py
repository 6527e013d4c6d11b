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


def _shown(ref):
    """What a reference says, but for its address, its version and the function that reads it."""
    return (
        ref.slot, ref.dtype.name, ref.shape, ref.device_dtype.name, ref.device_format, ref.device_shape, ref.nbytes,
        ref.groups, ref.origin, ref.producer, ref.name, ref.written, ref.is_weight,
    )  # fmt: skip


def _plain(slot, origin, producer, name, *, written=False, is_weight=False, shape=(3,), kind="float32", nbytes=12):
    """A reference to a tensor in the host's layout."""
    return (
        slot, kind, shape, kind, "DefaultFormat", shape, nbytes, 1, origin, producer, name, written, is_weight
    )  # fmt: skip


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_every_field_of_every_event(net, machine, operators, recorder, level):
    """Numbers and tuples of them are operands where kernels are launched one by one, and attributes in a model."""
    from dumpsim.core.settings import RunSettings

    x, whole = np.array([1, -2, 3], np.float32), level == "O2"
    b = net(graph_id=5, root_graph_id=3)
    weight, moments, given = b.weight("w", x), b.weight("m", 0 * x), b.input("x", (3,))
    total = b.op("AddN", b.op("MakeTuple", given, weight, np.full(3, 2, np.float32)), shape=(3,))
    scaled = b.op("Scale", total, 2.0, bias=0.5)
    scaled.dump_mark = "true"
    same = b.op("Same", scaled, (4, 5))
    updated = b.op("ApplyMomentum", weight, moments, 0.5, same, 0.25)
    s = machine(RunSettings(chip="910B"), environment={}, find=operators, rank=2)
    s.configure(jit_level=level)
    tap = recorder()
    s.add_tap(tap)
    results = s.execute(b.program(b.op("MakeTuple", scaled, updated)), [x])
    # AddN: x + w + 2; Scale: times 2, and a half; the moments are what came in, the weight goes half of it back
    sums = 2 * (x + x + 2) + np.float32(0.5)
    assert [one.tolist() for one in results] == [sums.tolist(), (x - sums / 2).tolist()]

    model = ("kernel_graph5", 1) if whole else ("", 0)
    ((graph, _),) = tap.of("graph")
    names = [f"Default/{kind}-op0" for kind in ("AddN", "Scale", "Same", "ApplyMomentum")]
    assert (graph.graph_id, graph.root_graph_id, graph.is_root, graph.rank) == (5, 3, True, 2)
    assert (graph.execution_order, graph.static, graph.lost_marks, graph.originals) == (tuple(names), True, (), {})
    assert (graph.model_name, graph.model_id) == model
    assert graph.readers == ({"x": (names[0],), "w": (names[0], names[3]), "m": (names[3],)} if whole else {})
    for when, count in (("begin", 0), ("end", 1)):
        ((run, _),) = tap.of(when)
        assert (run.root_graph_id, run.graph_id, run.run_count, run.rank, run.kind) == (3, 5, count, 2, "train")
    parameters = [
        _plain(0, "device", "w", "w", is_weight=True),
        _plain(1, "device", "m", "m", is_weight=True),
        _plain(2, "device", "x", "x"),
    ]
    assert {graph: [_shown(ref) for ref in refs] for graph, refs in run.parameters.items()} == {5: parameters}

    number = {"shape": (), "nbytes": 4}
    outputs = [_plain(0, "device", name, "") for name in names]
    outputs[3] = _plain(0, "device", names[3], names[3], is_weight=True)
    gradient, items = outputs[2], _plain(1, "constant", "", "", shape=(2,), kind="int64", nbytes=16)
    weights = [_plain(at, "device", name, name, written=True, is_weight=True) for at, name in enumerate("wm")]
    rate, factor = _plain(2, "constant", "", "", **number), _plain(1, "constant", "", "", **number)
    operands = [
        [_plain(0, "device", "x", "x"), _plain(1, "device", "w", "w", is_weight=True), _plain(2, "constant", "", "")],
        [outputs[0]] if whole else [outputs[0], factor],
        [outputs[1], items],
        [*weights, (2, *gradient[1:])] if whole else [*weights, rate, (3, *gradient[1:]), (4, *rate[1:])],
    ]
    attrs = [{}, {"bias": 0.5, "dump": "true"}, {}, {}]
    arguments = [{}, {"factor": 2.0}, {"anything": (4, 5)}, {"learning_rate": 0.5, "momentum": 0.25}]
    for when in ("before", "after"):
        data = [event for event, _ in tap.of(when) if event.op_type == "Data"]
        assert [event.full_name for event in data] == (["w", "m", "x"] if whole else [])
        for event, ref in zip(data, parameters if whole else (), strict=True):
            assert [_shown(one) for one in event.outputs] == [(0, *ref[1:])]
            assert (event.operands, event.attrs, event.arguments, event.flops) == ((), {}, {}, 0)
            assert (event.task_id, event.stream_id) == (65535, 65535)  # [spec ge 3.2]
        kernels = [event for event, _ in tap.of(when) if event.op_type != "Data"]
        assert [event.full_name for event in kernels] == names
        for at, event in enumerate(kernels):
            assert [_shown(ref) for ref in event.operands] == operands[at]
            assert [_shown(ref) for ref in event.outputs] == [outputs[at]]
            assert (event.attrs, event.arguments) == (attrs[at], arguments[at])
            assert (event.task_id, event.stream_id, event.flops) == (at, 0, 3)
            assert event.time_ns - kernels[0].time_ns == at * 5_000  # a kernel of few numbers
            assert event.original_names == event.workspaces == ()
        for event in (*data, *kernels):
            assert event.op_type in (event.full_name.split("/")[-1].split("-")[0], "Data")
            assert (event.graph_id, event.root_graph_id, event.rank) == (5, 3, 2)
            assert (event.model_name, event.model_id) == model
            assert (event.error, event.error_code, event.overflow, event.overflow_status) == (None, 0, False, 0)


@pytest.mark.parametrize(("chip", "largest", "shown"), [
    ("CPU", True, (3,)), ("CPU", False, (2,)), ("910B", True, (2,)), ("910B", False, (2,)),
])  # fmt: skip
def test_a_cpu_shows_the_upper_bound_of_a_shape_that_values_decide(net, machine, recorder, chip, largest, shown):
    """[observed 2.10]: of an operator whose bound is known, as its output; its readers see the true shape."""
    from dumpsim.core.abstract import TensorType
    from dumpsim.core.dtype import dtype
    from dumpsim.core.settings import RunSettings
    from dumpsim.ops.opdef import OpDef

    ops = {
        "Chosen": OpDef(
            name="Chosen", operands=("x",), kernel=lambda x: x[x > 0],
            infer=lambda a, _: TensorType(dtype=dtype("float32"), shape=(-1,)),
            largest=(lambda shapes: shapes[0]) if largest else None,
        ),
        "Twice": OpDef(name="Twice", operands=("x",), infer=lambda a, _: a[0], kernel=lambda x: 2 * x),
    }  # fmt: skip
    b = net()
    chosen = b.op("Chosen", b.input("x", (3,)), shape=(-1,))
    b.order = [chosen, b.op("Twice", chosen, shape=(-1,))]
    s, tap = machine(RunSettings(chip=chip), environment={}, find=ops.__getitem__), recorder()
    s.add_tap(tap)
    x = np.array([1, -2, 3], np.float32)
    assert s.execute(b.program(b.order[1]), [x])[0].tolist() == [2, 6]
    tasks = {event.op_type: event for event, _ in tap.of("after")}
    assert tasks["Chosen"].outputs[0].shape == shown
    assert tasks["Twice"].operands[0].shape == tasks["Twice"].outputs[0].shape == (2,)
