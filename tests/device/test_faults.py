"""Fault plans: what they say, and what is wrong with wrong ones."""

import errno
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


NTH = {"rank": None, "nth": 1}
CALL = {**NTH, "op": None, "group": None}
# what each kind needs, and what everything else is where it is not said [docs: fault plans]
LEAST = [
    ({"kind": "overflow", "op": "A"}, {**NTH, "output": 0, "index": 0, "value": "inf"}),
    ({"kind": "stomp", "after": "A"},
     {**NTH, "target": None, "slot": 0, "address": None, "offset": 0, "nbytes": 32, "byte": 255}),
    ({"kind": "aicore_error", "op": "A"}, {**NTH, "code": 507015}),  # [spec parallel 4.5]
    ({"kind": "out_of_memory", "op": "A"}, {**NTH, "bytes": None}),
    ({"kind": "out_of_memory", "bytes": 0}, {**NTH, "op": None}),
    ({"kind": "disk_full", "after_bytes": 0}, {"rank": None}),
    ({"kind": "slow_disk", "mb_per_s": 0.5}, {"rank": None}),
    ({"kind": "kill"}, CALL), ({"kind": "hang"}, CALL), ({"kind": "delay", "seconds": 2.5}, CALL),
    ({"kind": "diverge"}, {**CALL, "change": "op"}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "rest"), LEAST)
def test_what_is_not_said_of_a_fault(given, rest):
    assert make_plan([given]).faults[0].model_dump() == {**rest, **given}
    needed = [name for name in given if name not in ("kind", "op", "bytes")]
    for name in (*needed, *(["op"] if given["kind"] in ("overflow", "aicore_error") else [])):
        less = {key: value for key, value in given.items() if key != name}
        with pytest.raises(FaultPlanError, match=rf"^faults: \$\.faults\[0\]\.{name}: the field is missing"):
            make_plan([less])


@pytest.mark.parametrize(("given", "rest"), LEAST)
def test_a_plan_does_not_change(given, rest):
    plan = make_plan([given])
    assert hash(plan.faults[0]) == hash(make_plan([given]).faults[0])
    for holder, name in ((plan.faults[0], "rank"), (plan, "faults")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(holder, name, ())


LEAST_OF = {given["kind"]: given for given, _ in LEAST}
# the last number that is allowed, and the next one, which is not
BOUNDS = [
    *((kind, "rank", 0, -1) for kind in LEAST_OF),
    *((given["kind"], "nth", 1, 0) for given, rest in LEAST if "nth" in rest),
    *((given["kind"], name, "A", "") for given, rest in LEAST for name in ("op", "group") if name in {**given, **rest}),
    ("stomp", "after", "A", ""), ("overflow", "output", 0, -1), ("overflow", "index", 0, -1), ("stomp", "slot", 0, -1),
    ("stomp", "address", 0, -1), ("stomp", "nbytes", 1, 0), ("stomp", "byte", 0, -1), ("stomp", "byte", 255, 256),
    ("out_of_memory", "bytes", 0, -1), ("disk_full", "after_bytes", 0, -1), ("slow_disk", "mb_per_s", 1e-300, 0.0),
    ("delay", "seconds", 1e-300, 0), ("delay", "seconds", 1e9, 1.000001e9),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "field", "last", "beyond"), BOUNDS)
def test_the_bounds_of_numbers(kind, field, last, beyond):
    given = {"kind": kind} if (kind, field) in (("out_of_memory", "op"), ("out_of_memory", "bytes")) else LEAST_OF[kind]
    assert getattr(make_plan([{**given, field: last}]).faults[0], field) == last
    with pytest.raises(FaultPlanError, match=rf"^faults: \$\.faults\[0\]\.{field}: "):
        make_plan([{**given, field: beyond}])


def test_every_code_of_the_runtime_is_allowed_and_listed():
    """[spec parallel 4.5]"""
    codes = [507014, 507015, 507016, 507017, 507018, 507034, 507035, 507036, 507042, 507043, 507044, 507045, 507053,
             507054]  # fmt: skip
    made = make_plan([{"kind": "aicore_error", "op": "A", "code": code} for code in codes])
    assert [fault.code for fault in made.faults] == codes
    with pytest.raises(FaultPlanError) as caught:
        make_plan([{"kind": "aicore_error", "op": "A", "code": 507046}])
    assert caught.value.allowed == tuple(map(str, codes))
    assert str(caught.value).startswith("faults: $.faults[0].code: 507046 is not a valid value; allowed: 507014, 5070")


def test_which_of_two_causes_strikes():
    for both in ({"op": "A", "bytes": 5}, {}):
        with pytest.raises(FaultPlanError, match="give either 'op' or 'bytes'"):
            make_plan([{"kind": "out_of_memory", **both}])
    make_plan([{"kind": "stomp", "after": "A", "target": "B"}, {"kind": "stomp", "after": "A", "address": 1}])


def test_messages_are_whole():
    kinds = "overflow, stomp, aicore_error, out_of_memory, disk_full, slow_disk, kill, hang, delay, diverge"
    told = {
        '{"kind": "stmp"}': f".kind: 'stmp' is not a kind of fault; allowed: {kinds} (did you mean 'stomp'?)",
        "{}": f".kind: the kind of the fault is missing; allowed: {kinds}",
        '{"kind": "disk_full", "after_bytes": 1, "rnk": 1}':
            ".rnk: unknown field 'rnk'; allowed: rank, kind, after_bytes (did you mean 'rank'?)",
        '{"kind": "diverge", "change": "tpe"}':
            ".change: 'tpe' is not a valid value; allowed: op, count, type (did you mean 'type'?)",
        '{"kind": "out_of_memory"}': ": give either 'op' or 'bytes'",
        '{"kind": "hang", "nth": "x"}':
            ".nth: 'x': Input should be a valid integer, unable to parse string as an integer",
    }  # fmt: skip
    for text, said in told.items():
        with pytest.raises(FaultPlanError) as caught:
            make_plan([{"kind": "hang"}, json.loads(text)], where="plan")
        assert str(caught.value) == f"plan: $.faults[1]{said} [DS-FLT-001]"


def test_a_plan_has_at_most_16_mib(tmp_path):
    path = tmp_path / "faults.json"
    path.write_bytes(b'{"faults": []}'.ljust(1 << 24))
    assert load_plan(path).faults == ()
    assert check_plan(path) == []
    path.write_bytes(b'{"faults": []}'.ljust((1 << 24) + 1))
    with pytest.raises(FaultPlanError, match="DS-FLT-002"):
        load_plan(path)
    assert [error.code for error in check_plan(path)] == ["DS-FLT-002"]


def test_a_plan_that_is_no_text_or_no_object(tmp_path):
    path = tmp_path / "faults.json"
    path.write_bytes(b"\xff")
    with pytest.raises(FaultPlanError, match=r"faults\.json: the fault plan cannot be read: 'utf-8' codec"):
        load_plan(path)
    path.write_text('{"faults": {"kind": "hang"}}')
    (error,) = check_plan(path)
    assert (error.where, error.code) == (f"{path}: $.faults", "DS-FLT-001")
    (path := tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    (tmp_path / "real.json").write_text('{"faults": []}')
    assert load_plan(path).faults == ()


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


def test_an_injector_says_how_many_wait():
    assert repr(Injector(make_plan([]), VirtualClock())) == "<Injector: 0 faults>"
    plan = make_plan([{"kind": "kill", "nth": 2}, AicoreErrorFault(op="Add"), AicoreErrorFault(op="Add", rank=1)])
    injector = Injector(plan, VirtualClock())
    assert injector.has_collectives
    assert repr(injector) == "<Injector: 2 faults, 2 not struck yet>"
    injector.launch("Add", "Default/Add-op0")
    assert repr(injector) == "<Injector: 2 faults, 1 not struck yet>"
    for _ in range(2):
        injector.collective("AllReduce", "", "pair")
    assert repr(injector) == "<Injector: 2 faults>"
    assert not Injector(make_plan([AicoreErrorFault(op="Add")]), VirtualClock()).has_collectives


def test_each_kind_of_a_launch_strikes():
    faults = [{"kind": "overflow", "op": "Add"}, {"kind": "aicore_error", "op": "*/Add-op1"},
              {"kind": "stomp", "after": "Add", "nth": 2}, {"kind": "out_of_memory", "op": "TensorAdd"}]  # fmt: skip
    injector = Injector(make_plan(faults), VirtualClock())
    assert injector.memory_limit is None
    struck = [
        injector.launch("Add", f"Default/Add-op{number}", script) for number, script in enumerate(("Mul", "", ""))
    ]
    assert [[fault.kind for fault in each] for each in struck] == [["overflow"], ["aicore_error", "stomp"], []]
    assert injector.unused_text() == (
        "out_of_memory of 'TensorAdd' never struck: 0 launches matched, it waits for launch 1",
    )
    assert [fault.kind for fault in injector.launch("Mul", "Default/Mul-op3", "TensorAdd")] == ["out_of_memory"]
    assert injector.unused_text() == ()


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0)])
def test_the_smallest_room_and_the_lowest_speed_count(order):
    faults = [{"kind": "disk_full", "after_bytes": 100}, {"kind": "disk_full", "after_bytes": 90},
              {"kind": "slow_disk", "mb_per_s": 2}, {"kind": "slow_disk", "mb_per_s": 1e-6}]  # fmt: skip
    clock = VirtualClock()
    disk = Injector(make_plan([faults[at] for at in order]), clock).disk
    assert (disk.room, disk.bytes_per_s, disk.written) == (90, 1, 0)
    disk.charge(89)
    assert clock.now_ns == START_NS + 89 * 10**9
    with pytest.raises(OSError, match=r"\(fault plan: full after 90 bytes\)") as caught:
        disk.charge(2)
    assert caught.value.errno == errno.ENOSPC
    assert disk.written == 89  # nothing of what does not fit
    assert clock.now_ns == START_NS + 89 * 10**9


def test_a_disk_is_never_slower_than_a_byte_a_second():
    disk = Injector(make_plan([{"kind": "slow_disk", "mb_per_s": 1e-9}]), VirtualClock()).disk
    assert (disk.bytes_per_s, disk.room) == (1, None)
    disk = Injector(make_plan([{"kind": "slow_disk", "mb_per_s": 2.5}]), VirtualClock()).disk
    assert disk.bytes_per_s == 2_500_000


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
    for sizes in ((10, 5), (5, 10)):
        plan = make_plan([{"kind": "out_of_memory", "bytes": size} for size in sizes])
        assert Injector(plan, VirtualClock()).memory_limit == 5


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("9" * 4300, "an integer of 4300 digits; allowed: 64 bits"),
        ("9" * 4301, "an integer of 4301 digits"),
        ("-" + "9" * 20, "an integer of 21 digits"),
        ("[" * 100_000, "nested too deeply"),
        ("18446744073709551615", r"faults\[0\]\.rank: "),
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
