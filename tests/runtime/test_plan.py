"""The memory plan: life times and addresses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.errors import UnsupportedError
from dumpsim.core.options import CompileOptions
from dumpsim.device.chip import chip
from dumpsim.graph.ge.streams import schedule
from dumpsim.runtime.plan import slots_of
from dumpsim.runtime.planner import plan_graph

programs = st.lists(
    st.tuples(
        st.sampled_from(["Add", "Neg", "MatMul", "Reshape", "ApplyMomentum"]), st.integers(0, 99), st.integers(0, 99)
    ),
    min_size=1,
    max_size=25,
)


def build(net, steps):
    b = net()
    w, m = b.weight("w", np.ones((4, 4), np.float32)), b.weight("m", np.zeros((4, 4), np.float32))
    values = [b.input("x", (4, 4)), b.input("y", (4, 4)), b.constant(np.eye(4, dtype=np.float32)), w]
    for op_type, first, second in steps:
        x, y = values[first % len(values)], values[second % len(values)]
        if op_type == "Neg":
            values.append(b.op("Neg", x))
        elif op_type == "Reshape":
            values.append(b.op("Reshape", x, (4, 4)))
        elif op_type == "ApplyMomentum":
            values.append(b.op("ApplyMomentum", w, m, 0.5, x, 0.5))
        else:
            values.append(b.op(op_type, x, y))
    return b, b.op("MakeTuple", *values[3:])


@settings(max_examples=60, deadline=None)
@given(
    steps=programs,
    reuse=st.booleans(),
    pipeline=st.sampled_from(["kernel-by-kernel", "ascend-private", "ge", "whole-graph"]),
)
def test_tensors_that_live_together_never_share_bytes(net, operators, compile_graph, steps, reuse, pipeline):
    b, out = build(net, steps)
    options = CompileOptions(
        pipeline=pipeline, memory_reuse=reuse, cube_ops=frozenset({"MatMul"}), cube_dtype="float16"
    )
    plan = plan_graph(compile_graph(b.kernel_graph(out), options), chip("910A"), options, operators)
    for at, one in enumerate(plan.planned):
        assert one.offset % 512 == 0
        assert one.offset + one.nbytes <= plan.workspace
        for other in plan.planned[:at]:
            apart = one.offset + one.nbytes <= other.offset or other.offset + other.nbytes <= one.offset
            assert apart or (reuse and (one.dead < other.born or other.dead < one.born))
    # all tensors that a kernel uses are alive then
    for position, call in enumerate(plan.calls):
        for argument in (*call.arguments, *call.outputs):
            for place in slots_of(argument):
                root = place.root
                assert root.kind in ("weight", "constant") or root.born <= position <= root.dead


@settings(max_examples=25, deadline=None)
@given(steps=programs, reuse=st.booleans())
def test_reuse_never_changes_a_value(net, operators, steps, reuse):
    from dumpsim.core.settings import RunSettings
    from dumpsim.runtime.session import Session

    rng = np.random.default_rng(0)
    x, y = (rng.integers(-1, 2, (4, 4)).astype(np.float32) for _ in range(2))
    results = []
    for name, reuse_memory in (("CPU", False), ("910B", reuse)):
        b, out = build(net, [step for step in steps if step[0] != "MatMul"])
        session = Session(RunSettings(chip=name), environment={}, find=operators)
        program = b.program(out)
        session.compile(program, CompileOptions(memory_reuse=reuse_memory))
        results.append([a.tobytes() for _ in range(2) for a in session.execute(program, [x, y])])
    assert results[0] == results[1]


def test_updates_and_views_share_the_bytes_of_their_operand(net, operators):
    b = net()
    w, m = b.weight("w", np.ones((4, 4), np.float32)), b.weight("m", np.zeros((4, 4), np.float32))
    x = b.input("x", (4, 4))
    updated = b.op("ApplyMomentum", w, m, 0.5, x, 0.5)
    view = b.op("Reshape", x, (16,), shape=(16,))
    plan = plan_graph(b.kernel_graph(b.op("MakeTuple", updated, view)), chip("910B"), CompileOptions(), operators)
    assert [place.root.name for place in plan.results] == ["w", "x"]
    assert plan.calls[0].stored == (False,)
    assert [place.name for place in plan.planned] == ["x"]


def test_a_long_graph_is_planned_without_recursion(net, operators):
    b = net()
    value = b.input("x", (2,))
    for _ in range(5000):
        value = b.op("Depend", b.op("Neg", value), 0)
    plan = plan_graph(b.kernel_graph(value), chip("910B"), CompileOptions(), operators)
    assert len(plan.calls) == 5000
    assert plan.workspace == 3 * 512


def test_tensors_of_other_streams_keep_their_memory_and_collectives_have_guards(net, operators, compile_graph):
    from dataclasses import replace

    b = net()
    value = b.op("Neg", b.input("x", (64,)))
    summed = b.op("Neg", value)
    summed.definition = replace(operators("Neg"), engine="hccl")
    after = summed
    for _ in range(6):
        after = b.op("Neg", after)
    kernel_graph = b.kernel_graph(after)
    launches = schedule(kernel_graph.order, operators, engines=True)
    kernel_graph = replace(kernel_graph, launches=launches, model_name="kernel_graph0", model_id=1)
    plan = plan_graph(kernel_graph, chip("910B"), CompileOptions(), operators)
    assert [call.stream for call in plan.calls] == [0, 1, *[0] * 6]
    sent, received = plan.calls[1].arguments[0], plan.calls[1].outputs[0]
    spans = sorted(
        (place.offset, place.offset + place.nbytes) for place in plan.planned if place not in (sent, received)
    )
    for place in (sent, received):
        low, high = place.offset - 512, place.offset + 512 + 512
        assert all(end <= low or high <= start for start, end in spans)
        assert place.dead == len(plan.calls)
        assert high <= plan.workspace
    assert abs(sent.offset - received.offset) == 1536
    assert len({start for start, _ in spans}) < len(spans)  # the others take turns


def test_prices_of_kernels(net, operators, compile_graph):
    """A launch, and the longer one of computing and of moving the operands and results.

    An operator without a count of its own computes one operation for each element of its results.
    """
    b = net()
    program = b.kernel_graph(b.op("MakeTuple", b.op("Neg", b.input("x", (2, 3))), b.op("Split", b.input("z", (3,)))))
    device = chip("CPU")
    costs = {}
    for name, flops, bandwidth in (("compute", 10**9, 10**18), ("memory", 10**18, 10**9)):  # a nanosecond each
        prices = replace(device.prices, launch_ns=1000, flops=flops, bandwidth=bandwidth)
        options = CompileOptions()
        plan = plan_graph(compile_graph(program, options), replace(device, prices=prices), options, operators)
        costs[name] = {call.node.op_type: call.cost_ns for call in plan.calls}
    assert costs == {
        "compute": {"Neg": 1000 + 6, "Split": 1000 + 1 + 2},
        "memory": {"Neg": 1000 + 4 * (6 + 6), "Split": 1000 + 4 * (3 + 1 + 2)},
    }


def test_a_parameter_of_another_graph_is_refused(net, operators):
    """The error names the parameter and the kernel graph."""
    b, other = net(), net()
    stranger = other.input("stranger", (2,))
    graph = replace(b.kernel_graph(b.op("Add", b.input("x", (2,)), stranger)), graph_id=7)
    with pytest.raises(UnsupportedError, match=r"'stranger' is not a parameter of its graph") as error:
        plan_graph(graph, chip("CPU"), CompileOptions(), operators)
    assert "kernel graph 7" in str(error.value)


def test_the_memory_of_an_open_shape_is_that_of_its_largest_extents(net):
    """At most all elements are selected, and no tensor has more indices than elements."""
    from dumpsim.ops.table import find

    b = net()
    x, mask = b.input("x", (1, 6)), b.input("mask", (1, 6), "bool")
    chosen = b.op("MaskedSelect", x, mask, shape=(-1,))
    negative = b.op("Neg", chosen)
    places = b.op("NonZero", negative, shape=(-1, 1), kind="int64")
    b.order = [chosen, negative, places]
    output = b.op("MakeTuple", *b.order)
    plan = plan_graph(b.kernel_graph(output), chip("910B"), CompileOptions(), find)
    assert [place.bound for call in plan.calls for place in call.outputs] == [6, 6, 6]


def test_what_nobody_knows_an_extent_of_takes_as_many_rows_as_its_operands_have_elements(net):
    from dumpsim.ops.table import find

    b = net()
    one, other = (
        b.op("NonZero", b.input(name, (size, 2)), shape=(-1, 2), kind="int64") for name, size in (("x", 2), ("y", 3))
    )
    total = b.op("Add", one, other, shape=(-1, 2), kind="int64")  # (4, 2) and (6, 2) do not fit
    places = b.op("NonZero", total, shape=(-1, 2), kind="int64")
    b.order = [one, other, total, places]
    plan = plan_graph(b.kernel_graph(places), chip("910B"), CompileOptions(), find)
    assert [place.bound for call in plan.calls for place in call.outputs] == [8, 12, (8 + 12) * 2, 40 * 2]


@pytest.mark.parametrize(("model", "engines"), [(0, ["aicore", "aicore"]), (1, ["aicore", "aicpu"])])
def test_a_whole_graph_runs_kernels_of_wide_numbers_on_the_ai_cpu(net, model, engines):
    """[spec parallel 4.1]; a kernel that is launched by itself is one of its operator's engine."""
    from dumpsim.ops.table import find

    b = net()
    narrow, wide = (b.op("MatMul", *(b.input(f"{kind}_{at}", (2, 2), kind) for at in range(2)), False, False, kind=kind)
                    for kind in ("float32", "float64"))  # fmt: skip
    graph = replace(b.kernel_graph(b.op("MakeTuple", narrow, wide)), model_id=model)
    plan = plan_graph(graph, chip("910B"), CompileOptions(), find)
    assert [call.engine for call in plan.calls] == engines
