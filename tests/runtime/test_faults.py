"""Faults on a running program."""

import numpy as np
import pytest

from dumpsim.core.errors import DeviceError, OutOfMemoryError
from dumpsim.core.options import CompileOptions
from dumpsim.device.faults import make_plan

X = np.array([1, 2, 3, 4], np.float32)


def three(net):
    """a = -x; b = a + x; c = a * b: `a` is needed after `b`."""
    b = net()
    x = b.input("x", (4,))
    first = b.op("Neg", x)
    second = b.op("Add", first, x)
    return b.program(b.op("MakeTuple", b.op("Mul", first, second), first, second))


def test_a_stomp_overwrites_the_neighbour_that_the_next_kernel_reads(net, session, recorder):
    s, tap = session("CPU"), recorder()
    s.add_tap(tap)
    s.inject(
        make_plan([{"kind": "stomp", "after": "Add", "target": "Default/Neg-op0", "offset": 4, "nbytes": 4, "byte": 0}])
    )
    out = s.execute(three(net), [X])
    assert out[1].tolist() == [-1, 0, -3, -4]
    by_type = {event.op_type: values for event, values in tap.of("after")}
    assert by_type["Neg"]["out", 0].tolist() == [-1, -2, -3, -4]  # the victim's own dump looks right
    assert by_type["Mul"]["in", 0].tolist() == [-1, 0, -3, -4]
    neg = {e.op_type: e.outputs[0].version for e, _ in tap.of("after")}["Neg"]
    mul = {e.op_type: e.operands[0].version for e, _ in tap.of("after")}["Mul"]
    assert mul != neg


def test_a_write_past_the_output_reaches_the_next_block(net, session):
    s = session("CPU")
    program = three(net)
    plan = s.compile(program).graphs[0].plan
    add, neg = plan.calls[1].outputs[0], plan.calls[0].outputs[0]
    gap = neg.offset - (add.offset + add.nbytes)
    assert gap != 0
    s.inject(make_plan([{"kind": "stomp", "after": "Default/Add-op0", "offset": gap, "nbytes": 2, "byte": 255}]))
    out = s.execute(program, [X])
    assert out[1].tobytes()[:2] == b"\xff\xff"
    assert out[1].tolist()[1:] == [-2, -3, -4]


def test_a_stomp_on_a_dead_tensor_has_no_effect_and_one_on_a_weight_lasts(net, session):
    b = net()
    w = b.weight("w", np.ones(4, np.float32))
    program = b.program(b.op("Add", b.op("Neg", b.input("x", (4,))), w))
    s = session("CPU")
    s.inject(make_plan([{"kind": "stomp", "after": "Neg", "target": "w", "nbytes": 4, "byte": 0}]))
    assert s.execute(program, [X])[0].tolist() == [-1, -1, -2, -3]
    assert w.storage._array.tolist() == [0, 1, 1, 1]


def test_an_address_can_be_hit(net, session, recorder):
    s, tap = session("CPU"), recorder()
    s.add_tap(tap)
    s.execute(three(net), [X])
    address = tap.of("after")[0][0].outputs[0].address
    s.inject(make_plan([{"kind": "stomp", "after": "Add", "address": address, "nbytes": 16, "byte": 0}]))
    assert s.execute(three(net), [X])[1].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("chip", "value", "expected"),
    [("910A", "inf", 3.4028234663852886e38), ("910B", "-inf", -np.inf), ("910A", "nan", np.nan), ("910B", 5, 5.0)],
)
def test_an_overflow_in_the_second_run(net, session, chip, value, expected):
    s = session(chip)
    program = three(net)
    fault = {"kind": "overflow", "op": "Default/Add*", "nth": 2, "index": 3, "value": value}
    injector = s.inject(make_plan([fault]))
    assert s.execute(program, [X])[2].tolist() == [0, 0, 0, 0]
    assert not s.device.status.raised
    assert injector.unused()
    assert s.execute(program, [X])[2].tolist() == [0, 0, 0, pytest.approx(expected, nan_ok=True)]
    assert s.device.status.raised is (value != 5)
    assert not injector.unused()


def test_an_aicore_error_is_reported_with_the_kernel_and_lasts(net, session, recorder):
    s, tap = session(), recorder()
    s.add_tap(tap)
    s.inject(make_plan([{"kind": "aicore_error", "op": "Add", "code": 507016}]))
    program = three(net)
    with pytest.raises(DeviceError) as caught:
        s.execute(program, [X])
    text = str(caught.value)
    assert "507016" in text
    assert "stream_id=0" in text
    assert "task_id=1," in text
    assert "fault kernel_name=Default/Add-op0" in text
    assert not [note for note in getattr(caught.value, "__notes__", []) if "None" in note]  # no index was out of range
    event, values = tap.of("after")[-1]
    assert event.op_type == "Add"
    assert "507016" in event.error
    assert values["in", 1].tolist() == X.tolist()
    assert [e.op_type for e, _ in tap.of("after")] == ["Neg", "Add"]  # the rest of the stream was dropped
    assert not tap.of("end")
    with pytest.raises(DeviceError, match="507016"):
        s.execute(program, [X])


def test_out_of_memory_at_an_operator_and_by_size(net, session):
    s = session()
    s.inject(make_plan([{"kind": "out_of_memory", "op": "Mul"}]))
    program = three(net)
    with pytest.raises(OutOfMemoryError, match="kernel name: Default/Mul-op0, alloc size: 16B") as caught:
        s.execute(program, [X])
    assert "workspace  kernel graph 0" in str(caught.value)
    assert "Default/Neg-op0" in str(caught.value)
    assert s.execute(program, [X])[1].tolist() == (-X).tolist()  # it struck once
    s = session()
    s.inject(make_plan([{"kind": "out_of_memory", "bytes": 1000}]))
    with pytest.raises(OutOfMemoryError, match="of 1000 bytes used"):
        s.execute(three(net), [X])


def test_targets_that_do_not_exist(net, session):
    for fault, text in (
        ({"kind": "stomp", "after": "Add", "target": "Default/Sub-op0"}, "no tensor of the program matches"),
        ({"kind": "overflow", "op": "Add", "output": 1}, "has 1 outputs, not an output 1"),
        ({"kind": "overflow", "op": "Add", "index": 4}, "is float32 of 4 elements"),
    ):
        s = session()
        s.inject(make_plan([fault]))
        with pytest.raises(DeviceError, match=text):
            s.execute(three(net), [X])


def test_plans_come_from_the_settings(net, session, tmp_path):
    path = tmp_path / "faults.json"
    path.write_text(
        '{"faults": [{"kind": "overflow", "op": "Neg", "value": 9}, {"kind": "disk_full", "after_bytes": 3}]}'
    )
    s = session("CPU", faults=str(path))
    assert s.execute(three(net), [X])[1].tolist() == [9, -2, -3, -4]
    with pytest.raises(OSError, match="No space left"):
        s.disk.charge(4)
    assert session("CPU").disk is None


def test_without_reuse_a_late_stomp_hits_no_tensor(net, session):
    """The well-known effect: the problem disappears when memory is not reused."""
    b = net()
    x = b.input("x", (4,))
    value = b.op("Neg", x)
    for _ in range(3):
        value = b.op("Neg", value)
    out = {}
    for reuse in (True, False):
        s = session("CPU")
        program = b.program(value)
        plan = s.compile(program, CompileOptions(memory_reuse=reuse)).graphs[0].plan
        dead, last = plan.calls[1].outputs[0], plan.calls[3].outputs[0]
        assert (dead.offset == last.offset) is reuse
        s.inject(make_plan([{"kind": "stomp", "after": "Default/Neg-op3", "target": "Default/Neg-op1", "byte": 0}]))
        out[reuse] = s.execute(program, [X])[0].tolist()
    assert out == {True: [0, 0, 0, 0], False: [1, 2, 3, 4]}


def gathering(net, machine, **settings):
    """A session with a program that reads rows of a table, and the table."""
    from dumpsim.core.settings import RunSettings
    from dumpsim.ops.table import find

    b = net()
    rows = b.op("Gather", b.input("x", (4,)), b.input("at", (2,), "int32"), 0, shape=(2,))
    b.order.append(rows)
    environment = settings.pop("environment", {})
    return machine(RunSettings(chip="910B", **settings), environment=environment, find=find), b.program(rows)


def test_a_fault_is_reported_before_an_index_that_would_stop_the_kernel_too(net, machine):
    given = [{"kind": "aicore_error", "op": "Gather", "code": 507034}]
    for faults, code, index in (([], "507015", True), (given, "507034", False)):
        s, program = gathering(net, machine)
        s.inject(make_plan(faults))
        with pytest.raises(DeviceError) as caught:
            s.execute(program, [X, np.array([1, 4], np.int32)])
        assert code in str(caught.value)
        said = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
        assert ("index 4 at [1] of 'input_indices' is outside [-4, 4)" in said) is index


def test_a_kernel_that_does_not_run_takes_any_index(net, machine):
    wrong = [X, np.array([1, 4], np.int32)]
    s, program = gathering(net, machine, environment={"MS_KERNEL_LAUNCH_SKIP": "Gather"})
    assert s.execute(program, wrong)[0].tobytes() == b"\xcd" * 8
    s, program = gathering(net, machine, engine="null")
    assert s.execute(program, wrong)[0].shape == (2,)
    s, program = gathering(net, machine)
    assert s.execute(program, [X, np.array([1, 3], np.int32)])[0].tolist() == [2, 4]
