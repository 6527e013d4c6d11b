"""Private device formats and number types: real bytes in device layout, decoded to the right values."""

from dataclasses import replace

import numpy as np
import pytest

from dumpsim.core.errors import OutOfMemoryError
from dumpsim.device.faults import make_plan
from dumpsim.tensor.layout import to_device

RNG = np.random.default_rng(7)


def conv_net(net):
    b = net()
    x = b.input("x", (2, 3, 4, 5))
    w = b.weight("conv.weight", RNG.normal(size=(17, 3, 1, 1)).astype(np.float32))
    conv = b.op("Conv2D", x, w, shape=(2, 17, 4, 5))
    return b, x, w, b.op("Add", conv, b.op("Mul", conv, conv))


def expected_conv(x, w):
    low, kernel = x.astype(np.float16).astype(np.float32), w.astype(np.float16).astype(np.float32)
    return np.einsum("nchw,oc->nohw", low, kernel[:, :, 0, 0]).astype(np.float16)


def test_a_910a_computes_convolutions_in_float16_and_nc1hwc0(net, session, recorder):
    b, _, w, out = conv_net(net)
    x = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
    s, tap = session("910A"), recorder()
    s.add_tap(tap)
    program = b.program(out)
    (got,) = s.execute(program, [x])
    conv = expected_conv(x, w.storage._array)
    wide = conv.astype(np.float32)
    np.testing.assert_array_equal(got, wide + wide * wide)

    event, values = next((e, v) for e, v in tap.of("after") if e.op_type == "Conv2D")
    operands = [(r.device_format, r.device_dtype.name, r.device_shape, r.dtype.name, r.shape) for r in event.operands]
    assert operands == [
        ("NC1HWC0", "float16", (2, 1, 4, 5, 16), "float32", (2, 3, 4, 5)),
        ("FRACTAL_Z", "float16", (1, 2, 16, 16), "float32", (17, 3, 1, 1)),
    ]
    (ref,) = event.outputs
    assert (ref.device_format, ref.device_dtype.name, ref.dtype.name) == ("NC1HWC0", "float16", "float32")
    assert ref.nbytes == 2 * 2 * 4 * 5 * 16 * 2
    np.testing.assert_array_equal(values["in", 0], x.astype(np.float16))
    np.testing.assert_array_equal(values["out", 0], conv)
    converted = [e for e, _ in tap.of("after") if e.op_type == "TransData"]
    assert len(converted) > 1
    assert not any(e.overflow or e.overflow_status for e in converted)  # only the layout changes
    # operators that know no private format read host layout and type
    event, values = next((e, v) for e, v in tap.of("after") if e.op_type == "Mul")
    assert [(r.device_format, r.device_dtype.name) for r in event.operands] == [("DefaultFormat", "float32")] * 2
    np.testing.assert_array_equal(values["in", 0], wide)


def test_the_bytes_in_memory_are_the_layouts(net, session):
    b, _, w, out = conv_net(net)
    x = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
    s = session("910A")
    seen = []

    class Tap:
        def wants(self, event):
            return getattr(event, "op_type", "") == "Conv2D"

        def before_task(self, event):
            pass

        def after_task(self, event):
            seen.append([ref.read().tobytes() for ref in (*event.operands, *event.outputs)])

    s.add_tap(Tap())
    s.execute(b.program(out), [x])
    conv = expected_conv(x, w.storage._array)
    assert seen == [
        [
            to_device(x.astype(np.float16), "NC1HWC0").tobytes(),
            to_device(np.asarray(w.storage._array).astype(np.float16), "FRACTAL_Z").tobytes(),
            to_device(conv, "NC1HWC0").tobytes(),
        ]
    ]


def test_each_chip_at_each_level(net, session):
    for chip, level, private in (
        ("910A", "O0", True),
        ("910B", "O0", False),
        ("910B", "O2", True),
        ("CPU", "O0", False),
    ):
        b, *_, out = conv_net(net)
        s = session(chip)
        plan = s.compile(b.program(out), s.options(jit_level=level)).graphs[0].plan
        conv = next(call for call in plan.calls if call.node.op_type == "Conv2D")
        assert (conv.outputs[0].device_format == "NC1HWC0") is private


def test_a_layout_is_converted_once_per_version(net, session, monkeypatch):
    import dumpsim.tensor.layout as layout

    counts = {"to_host": 0, "to_device": 0}
    for name in counts:
        real = getattr(layout, name)

        def counted(*args, _name=name, _real=real, **keywords):
            counts[_name] += 1
            return _real(*args, **keywords)

        monkeypatch.setattr(layout, name, counted)
    b = net()
    x = b.input("x", (2, 3, 4, 5))
    w = b.weight("w", np.ones((3, 3, 1, 1), np.float32))
    value = b.op("Conv2D", x, w)
    other = b.op("Conv2D", x, w)
    for _ in range(5):
        value = b.op("Add", value, b.op("Mul", other, value))
    s = session("910A")
    s.execute(b.program(value), [np.ones((2, 3, 4, 5), np.float32)])
    # two conversions into the convolutions and their two outputs; the outputs' host values are at hand
    assert counts == {"to_device": 4, "to_host": 0}


def test_a_stomp_ends_the_version_of_a_private_tensor(net, session):
    b = net()
    first = b.op("Conv2D", b.input("x", (1, 16, 1, 1)), b.constant(np.eye(16, dtype=np.float32).reshape(16, 16, 1, 1)))
    other = b.op("Neg", b.graph.parameters[0])
    program = b.program(b.op("MakeTuple", b.op("Add", first, other), first))
    s = session("910A")
    fault = {"kind": "stomp", "after": "Neg", "target": "Default/Conv2D-op0", "offset": 2, "nbytes": 2, "byte": 0}
    s.inject(make_plan([fault]))
    x = np.arange(1, 17, dtype=np.float32).reshape(1, 16, 1, 1)
    total, conv = s.execute(program, [x])
    assert conv.reshape(-1).tolist() == [1, 0, *range(3, 17)]
    assert total.reshape(-1).tolist() == [0, -2, *[0] * 14]


def test_a_run_that_failed_leaves_no_stale_conversion(net, session, recorder):
    b = net()
    w, x = b.weight("w", np.eye(4, dtype=np.float32)), b.input("x", (4, 4))
    program = b.program(b.op("MakeTuple", b.op("MatMul", x, w), b.op("MatMul", x, w)))
    other = net(graph_id=1)
    trample = other.program(other.op("Neg", other.op("Neg", other.input("x", (64, 64)))))
    s = session("910A")
    s.inject(make_plan([{"kind": "out_of_memory", "op": "Default/MatMul-op1"}]))
    values = np.arange(16, dtype=np.float32).reshape(4, 4)
    with pytest.raises(OutOfMemoryError):
        s.execute(program, [values])
    s.execute(trample, [np.full((64, 64), 3, np.float32)])
    tap = recorder()
    s.add_tap(tap)
    for out in s.execute(program, [values]):
        np.testing.assert_array_equal(out, values)
    products = [seen for event, seen in tap.of("after") if event.op_type == "MatMul"]
    assert len(products) == 2
    for seen in products:
        np.testing.assert_array_equal(seen["in", 1], np.eye(4))


def test_updated_weights_are_converted_again(net, session):
    b = net()
    w, m = b.weight("w", np.ones((4, 4), np.float32)), b.weight("m", np.zeros((4, 4), np.float32))
    x = b.input("x", (4, 4))
    before = b.op("MatMul", x, w)
    updated = b.op("ApplyMomentum", w, m, 1.0, x, 0.0)
    after = b.op("MatMul", x, w)
    b.order = [before, updated, after]
    s = session("910A")
    eye = np.eye(4, dtype=np.float32)
    program = b.program(b.op("MakeTuple", before, b.op("Depend", after, updated)))
    for step in range(3):
        first, second = s.execute(program, [eye])
        np.testing.assert_array_equal(first, 1 - eye * step)
        np.testing.assert_array_equal(second, 1 - eye * (step + 1))


def test_a_view_of_a_private_tensor_is_brought_back_first(net, session):
    b = net()
    x = b.input("x", (2, 3))
    product = b.op("MatMul", x, b.constant(np.full((3, 2), 2, np.float32)), shape=(2, 2))
    flat = b.op("Reshape", product, (4,), shape=(4,))
    out = b.op("MakeTuple", b.op("Neg", flat), flat)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = session("910A").execute(b.program(out), [values])
    expected = (values @ np.full((3, 2), 2, np.float32)).reshape(4)
    np.testing.assert_array_equal(got[0], -expected)
    np.testing.assert_array_equal(got[1], expected)


def test_a_cast_into_float16_saturates_and_raises_the_flag(net, session):
    b = net()
    program = b.program(b.op("MatMul", b.input("x", (1, 1)), b.input("y", (1, 1))))
    s = session("910A")
    (out,) = s.execute(program, [np.full((1, 1), 1e6, np.float32), np.full((1, 1), 0.5, np.float32)])
    assert out.tolist() == [[32752.0]]
    assert s.device.status.raised


@pytest.mark.parametrize("reuse", [True, False])
def test_reuse_does_not_change_results(net, session, reuse):
    b, *_, out = conv_net(net)
    x = np.random.default_rng(3).normal(size=(2, 3, 4, 5)).astype(np.float32)
    w = np.random.default_rng(4).normal(size=(17, 3, 1, 1)).astype(np.float32)
    b.graph.parameters[1].storage._array = w
    s = session("910A")
    program = b.program(out)
    s.compile(program, replace(s.options(), memory_reuse=reuse))
    wide = expected_conv(x, w).astype(np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(s.execute(program, [x])[0], wide + wide * wide)


# ------------------------------------------------------------------ the operators of the tables
def one_operator(net, op_type, operands, attrs):
    """A program of one operator of the tables; arrays become inputs."""
    from dumpsim.core.abstract import tensors_of
    from dumpsim.ops.table import find

    b = net()
    values = [
        b.input(f"x{at}", v.shape) if isinstance(v, np.ndarray) else b.constant(v) for at, v in enumerate(operands)
    ]
    definition = find(op_type)
    merged = {**definition.attrs, **attrs}
    node = b.op("Neg", b.input("unused", ()))
    node.op_type, node.operands, node.attrs = op_type, values, merged
    node.full_name = f"Default/{op_type}-op0"
    node.abstract = definition.infer([v.abstract for v in values], merged)
    b.graph.parameters.pop(-1)
    assert tensors_of(node.abstract)
    return b.program(node), [v for v in operands if isinstance(v, np.ndarray)]


def integers(*shape):
    return RNG.integers(-3, 4, shape).astype(np.float32)


CASES = {
    "conv": ("Conv2D", [integers(2, 5, 6, 7), integers(20, 5, 3, 3)], {"out_channel": 20, "kernel_size": (3, 3)}),
    "grouped conv": (
        "Conv2D",
        [integers(2, 6, 6, 7), integers(9, 2, 3, 3)],
        {"out_channel": 9, "kernel_size": (3, 3), "group": 3},
    ),
    "grouped filter": (
        "Conv2DBackpropFilter",
        [integers(2, 9, 4, 5), integers(2, 6, 6, 7), (9, 2, 3, 3)],
        {"out_channel": 9, "kernel_size": (3, 3), "group": 3},
    ),
    "input gradient": (
        "Conv2DBackpropInput",
        [integers(2, 20, 4, 5), integers(20, 5, 3, 3), (2, 5, 6, 7)],
        {"out_channel": 20, "kernel_size": (3, 3)},
    ),
    "matmul": ("MatMul", [integers(3, 17), integers(33, 17), False, True], {}),
    "pool": ("MaxPool", [integers(2, 17, 6, 6)], {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 2, 2)}),
}


@pytest.mark.parametrize("name", CASES)
def test_private_formats_change_no_integer_result(net, machine, name):
    from dumpsim.core.settings import RunSettings

    results = []
    for chip in ("CPU", "910A"):
        program, arguments = one_operator(net, *CASES[name])
        s = machine(RunSettings(chip=chip), environment={})
        plan = s.compile(program).graphs[0].plan
        (output,) = next(call for call in plan.calls if call.node.op_type == CASES[name][0]).outputs
        assert (output.device_format != "DefaultFormat") is (chip == "910A")
        assert output.groups == (3 if name == "grouped filter" and chip == "910A" else 1)
        results.append(s.execute(program, arguments))
    for cpu, npu in zip(*results, strict=True):
        assert npu.dtype == cpu.dtype
        np.testing.assert_array_equal(npu, cpu)
