"""Fault plans: what they say, and what is wrong with wrong ones."""

import json

import pytest

from dumpsim.core.clock import START_NS, VirtualClock, WallClock
from dumpsim.core.errors import FaultPlanError
from dumpsim.device.disk import FaultyDisk
from dumpsim.device.faults import AicoreErrorFault, OverflowFault, check_plan, fault_schema, load_plan, make_plan
from dumpsim.device.injector import Injector


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (
            {"kind": "stmp", "after": "Add"},
            "plan: $.faults[0].kind: 'stmp' is not a kind of fault; allowed: overflow, stomp",
        ),
        ({"op": "Add"}, "$.faults[0].kind: the kind of the fault is missing; allowed: overflow"),
        ({"kind": "overflow"}, "$.faults[0].op: the field is missing"),
        (
            {"kind": "overflow", "op": "Add", "nht": 2},
            "$.faults[0].nht: unknown field 'nht'; allowed: rank, kind, op, nth",
        ),
        ({"kind": "overflow", "op": "Add", "nht": 2}, "(did you mean 'nth'?)"),
        ({"kind": "overflow", "op": "Add", "nth": 0}, "$.faults[0].nth: 0: Input should be greater than or equal to 1"),
        ({"kind": "overflow", "op": "Add", "value": "huge"}, "$.faults[0].value: 'huge'"),
        (
            {"kind": "aicore_error", "op": "Add", "code": 1},
            "$.faults[0].code: 1 is not a valid value; allowed: 507014, 507015",
        ),
        ({"kind": "stomp", "after": "A", "target": "B", "address": 1}, "$.faults[0]: 'target' and 'address' exclude"),
        ({"kind": "out_of_memory"}, "$.faults[0]: give either 'op' or 'bytes'"),
        ({"kind": "slow_disk", "mb_per_s": 0}, "$.faults[0].mb_per_s: 0: Input should be greater than 0"),
        ({"kind": "disk_full", "after_bytes": "x"}, "$.faults[0].after_bytes: 'x'"),
    ],
)
def test_wrong_faults_say_where_and_what_is_allowed(fault, expected):
    with pytest.raises(FaultPlanError) as caught:
        make_plan([fault], where="plan")
    assert expected in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_files(tmp_path):
    path = tmp_path / "faults.json"
    path.write_text('{"faults": [{"kind": "overflow", "op": "MatMul"}, {"kind": "disk_full", "after_bytes": 5}]}')
    plan = load_plan(path)
    assert plan.faults[0] == OverflowFault(op="MatMul")
    assert make_plan(plan.faults) == plan
    with pytest.raises(FaultPlanError, match="the fault plan does not exist"):
        load_plan(tmp_path / "missing.json")
    path.write_text('{"faults": [}')
    with pytest.raises(FaultPlanError, match=r"faults\.json:1:13: not JSON"):
        load_plan(path)
    path.write_text("[]")
    with pytest.raises(FaultPlanError, match="a fault plan is a JSON object"):
        load_plan(path)
    path.write_text('{"fault": []}')
    with pytest.raises(FaultPlanError, match=r"\$\.fault: unknown field 'fault'; allowed: faults.*mean 'faults'"):
        load_plan(path)


def test_the_schema_knows_every_kind():
    schema = json.loads(json.dumps(fault_schema()))
    kinds = {part["properties"]["kind"]["const"] for part in schema["$defs"].values()}
    of_ranks = {"kill", "hang", "delay", "diverge"}
    assert kinds == {"overflow", "stomp", "aicore_error", "out_of_memory", "disk_full", "slow_disk"} | of_ranks
    assert not schema["additionalProperties"]


def test_the_nth_matching_launch_is_struck_once():
    injector = Injector(make_plan([{"kind": "overflow", "op": "*/fc*/MatMul-op?", "nth": 2}]), VirtualClock())
    names = ["Default/fc1-Dense/MatMul-op0", "Default/conv1/MatMul-op0", "Default/fc2-Dense/MatMul-op0"] * 2
    struck = [bool(injector.launch("MatMul", name)) for name in names]
    assert struck == [False, False, True, False, False, False]
    assert injector.unused() == ()


def test_faults_of_other_ranks_and_unused_ones():
    plan = make_plan([AicoreErrorFault(op="Add", rank=1), AicoreErrorFault(op="Sub", nth=3)])
    injector = Injector(plan, VirtualClock(), rank=0)
    assert injector.launch("Add", "Default/Add-op0") == ()
    assert injector.launch("Sub", "Default/Sub-op0") == ()
    assert [f.op for f in injector.unused()] == ["Sub"]
    assert len(Injector(plan, VirtualClock(), rank=1).launch("Add", "Default/Add-op0")) == 1


def test_disk_faults():
    clock = VirtualClock()
    plan = make_plan([{"kind": "disk_full", "after_bytes": 100}, {"kind": "slow_disk", "mb_per_s": 1}])
    disk = Injector(plan, clock).disk
    disk.charge(100)
    assert clock.now_ns == START_NS + 100_000
    with pytest.raises(OSError, match="No space left on device"):
        disk.charge(1)
    assert disk.written == 100
    slept = []
    FaultyDisk(WallClock(), bytes_per_s=10**6, sleep=slept.append).charge(500_000)
    assert slept == [0.5]
    assert Injector(make_plan([]), clock).disk is None


def test_the_memory_limit_is_the_smallest_of_the_plan():
    plan = make_plan([{"kind": "out_of_memory", "bytes": 10}, {"kind": "out_of_memory", "bytes": 5}])
    assert Injector(plan, VirtualClock()).memory_limit == 5


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("9" * 4300, "an integer of 4300 digits; allowed: 64 bits"),
        ("9" * 4301, "an integer of 4301 digits"),
        ("-" + "9" * 20, "an integer of 21 digits"),
        ("[" * 100_000, "nested too deeply"),
        ("18446744073709551615", "faults"),
    ],
)
def test_hostile_numbers_in_a_plan(tmp_path, value, why):
    path = tmp_path / "faults.json"
    path.write_text(f'{{"faults": [{{"kind": "overflow", "op": "Add", "rank": "x", "nth": {value}}}]}}')
    with pytest.raises(FaultPlanError, match=why):
        load_plan(path)
    (error, *_) = check_plan(path)
    assert len(str(error)) < 400


def test_faults_of_ranks_count_the_matching_collectives():
    plan = make_plan(
        [
            {"kind": "kill", "nth": 4, "rank": 2},
            {"kind": "delay", "op": "AllReduce", "nth": 2, "seconds": 1.5},
            {"kind": "diverge", "op": "*/grad-*", "change": "count", "group": "pair"},
            {"kind": "hang", "nth": 1, "rank": 0},
        ]
    )
    injector = Injector(plan, VirtualClock(), rank=2)
    calls = [("AllReduce", "Default/AllReduce-op0"), ("Barrier", "Default/Barrier-op1")] * 2
    struck = [injector.collective(op, name, "world") for op, name in calls]
    assert [[fault.kind for fault in each] for each in struck] == [[], [], ["delay"], ["kill"]]
    assert injector.unused_text() == (
        "diverge at */grad-* of group 'pair' never struck: 0 collectives matched, it waits for collective 1",
    )
    assert [fault.kind for fault in injector.unused()] == ["diverge"]
    assert [fault.kind for fault in injector.collective("AllGather", "Default/grad-x", "pair")] == ["diverge"]
    assert injector.unused() == ()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"kind": "delay"}, "$.faults[0].seconds: the field is missing"),
        ({"kind": "delay", "seconds": -1}, "$.faults[0].seconds"),
        ({"kind": "diverge", "change": "shape"}, "allowed: op, count, type"),
        ({"kind": "kill", "after": "AllReduce"}, "unknown field 'after'; allowed: rank, op, group, nth, kind"),
        ({"kind": "kil"}, "did you mean 'kill'?"),
    ],
)
def test_wrong_faults_of_ranks(fault, expected):
    with pytest.raises(FaultPlanError) as caught:
        make_plan([fault])
    assert expected in str(caught.value)
