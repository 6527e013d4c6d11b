"""Streams, events, task ids, the scheduler's order and its reports."""

import pytest

from dumpsim.core.clock import START_NS, WallClock
from dumpsim.core.errors import DeviceError
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.stream import TaskFailure
from dumpsim.device.task import Task, TaskIds, TaskKind


def kernel(name, log, cost_ns=10_000):
    return Task(kind=TaskKind.AICORE, name=name, work=lambda task: log.append(task.name), cost_ns=cost_ns)


@pytest.fixture
def device():
    return Device(chip("910B"), environment={})


def test_work_happens_at_synchronisation_in_launch_order(device):
    log = []
    for name in "abc":
        device.stream(0).launch(kernel(name, log))
    assert log == []
    device.synchronize()
    assert log == ["a", "b", "c"]


def test_streams_run_side_by_side_by_time(device):
    log = []
    for at in range(3):
        device.stream(0).launch(kernel(f"slow{at}", log, cost_ns=100_000))
    for at in range(3):
        device.stream(1).launch(kernel(f"fast{at}", log, cost_ns=30_000))
    device.synchronize()
    assert log == ["slow0", "fast0", "fast1", "fast2", "slow1", "slow2"]


def test_an_event_orders_two_streams(device):
    log = []
    event = device.event()
    device.stream(1).wait(event)
    device.stream(1).launch(kernel("consumer", log))
    device.stream(0).launch(kernel("producer", log, cost_ns=10**9))
    device.stream(0).record(event)
    device.synchronize()
    assert log == ["producer", "consumer"]
    assert device.stream(1).tail_ns > START_NS + 10**9


def test_a_wait_takes_the_last_record_before_it(device):
    log = []
    event = device.event()
    device.stream(0).launch(kernel("first", log))
    device.stream(0).record(event)
    device.stream(1).wait(event)
    device.stream(1).launch(kernel("other", log))
    device.stream(0).launch(kernel("second", log, cost_ns=10**9))
    device.stream(0).record(event)
    device.synchronize()
    assert log == ["first", "second", "other"] or log == ["first", "other", "second"]
    assert device.stream(1).tail_ns < START_NS + 10**9


def test_a_wait_behind_two_records_waits_for_the_second(device):
    log = []
    event = device.event()
    device.stream(0).record(event)
    device.stream(0).launch(kernel("long", log, cost_ns=10**9))
    device.stream(0).record(event)
    device.stream(1).wait(event)
    device.stream(1).launch(kernel("other", log))
    device.synchronize()
    assert log == ["long", "other"]
    assert device.stream(1).tail_ns > START_NS + 10**9


def test_events_take_task_ids_and_streams_count_apart(device):
    event = device.event()
    tasks = [
        device.stream(0).launch(kernel("a", [])),
        device.stream(0).record(event),
        device.stream(1).wait(event),
        device.stream(1).launch(kernel("b", [])),
        device.stream(0).launch(kernel("c", [])),
    ]
    assert [(t.stream_id, t.task_id) for t in tasks] == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2)]
    assert [t.serial for t in tasks] == [0, 1, 2, 3, 4]


def test_a_model_counts_over_its_streams(device):
    model = TaskIds()
    event = device.event()
    tasks = [
        device.stream(0).launch(kernel("a", []), model),
        device.stream(0).record(event, model),
        device.stream(1).wait(event, model),
        device.stream(1).launch(kernel("b", []), model),
    ]
    assert [(t.stream_id, t.task_id) for t in tasks] == [(0, 0), (0, 1), (1, 2), (1, 3)]


def test_ids_wrap_at_65535_and_count_it():
    ids = TaskIds()
    taken = [ids.take() for _ in range(65535 * 2 + 1)]
    assert taken[65534:65537] == [(65534, 0), (0, 1), (1, 1)]
    assert taken[-1] == (0, 2)


def test_a_deadlock_names_who_waits_for_what(device):
    never, crossed = device.event(), device.event()
    device.stream(0).wait(never)
    device.stream(0).record(crossed)
    device.stream(1).wait(crossed)
    device.stream(1).launch(kernel("Default/Add-op0", []))
    with pytest.raises(DeviceError) as caught:
        device.synchronize()
    assert str(caught.value).splitlines() == [
        "deadlock: no stream can progress and work is left",
        "  rank 0 device 0 stream 0: task 0 (STREAM_WAIT_EVENT, wait for event 0) waits for event 0, "
        "which no stream records; 1 tasks queued after it",
        "  rank 0 device 0 stream 1: task 0 (STREAM_WAIT_EVENT, wait for event 1) waits for event 1, "
        "recorded by task 1 of rank 0 device 0 stream 0; 1 tasks queued after it [DS-DEV-002]",
    ]
    device.synchronize()  # nothing is left behind


def test_devices_of_several_ranks_wait_for_each_other():
    scheduler = Scheduler()
    ranks = [Device(chip("910A"), rank=rank, scheduler=scheduler, environment={}) for rank in (1, 0)]
    log = []
    event = ranks[0].event()
    ranks[1].stream(0).wait(event)
    ranks[1].stream(0).launch(kernel("rank0", log))
    ranks[0].stream(0).launch(kernel("rank1", log, cost_ns=10**6))
    ranks[0].stream(0).record(event)
    ranks[1].synchronize()
    assert log == ["rank1", "rank0"]
    # at the same time the lower rank goes first
    for device in ranks:
        device.stream(1).launch(kernel(f"tie{device.rank}", log))
        device.stream(1).tail_ns = START_NS + 10**9
    ranks[0].synchronize()
    assert log[2:] == ["tie0", "tie1"]


def test_a_failing_task_stops_its_stream_and_shows_at_the_next_synchronisation(device):
    log = []

    def fail(task):
        raise TaskFailure(DeviceError(f"task_id={task.task_id}"))

    device.stream(0).launch(kernel("before", log))
    device.stream(0).launch(Task(kind=TaskKind.AICORE, name="bad", work=fail))
    device.stream(0).launch(kernel("dropped", log))
    device.stream(1).launch(kernel("other", log))
    with pytest.raises(DeviceError, match="task_id=1"):
        device.synchronize()
    assert sorted(log) == ["before", "other"]
    assert device.stream(0).dropped == 1
    with pytest.raises(DeviceError, match="task_id=1"):
        device.stream(0).launch(kernel("later", log))


def test_streams_that_waited_for_a_failed_one_are_named(device):
    def fail(task):
        raise TaskFailure(DeviceError("aicore error"))

    event = device.event()
    device.stream(0).launch(Task(kind=TaskKind.AICORE, name="bad", work=fail))
    device.stream(0).record(event)
    device.stream(1).wait(event)
    with pytest.raises(DeviceError, match="aicore error") as caught:
        device.synchronize()
    assert "rank 0 device 0 stream 1: task 0" in caught.value.__notes__[0]


def test_an_exception_of_a_listener_passes_through_and_leaves_no_work(device):
    def full(task):
        raise OSError("disk full")

    log = []
    device.stream(0).launch(Task(kind=TaskKind.AICORE, name="a", work=full))
    device.stream(0).launch(kernel("b", log))
    with pytest.raises(OSError, match="disk full"):
        device.synchronize()
    device.synchronize()
    assert log == []


def test_the_clock_pays_for_launches_and_work(device):
    prices = device.chip.prices
    task = device.stream(0).launch(kernel("a", [], cost_ns=7_000))
    device.synchronize()
    assert (task.start_ns, task.end_ns) == (START_NS + prices.host_ns, START_NS + prices.host_ns + 7_000)
    assert device.clock.now_ns == task.end_ns
    assert prices.kernel_ns(0, 1_600_000) == prices.launch_ns + 1_000
    assert prices.copy_duration_ns(20_000_000) == 10_000 + 10**6


def test_what_a_task_does_by_itself_delays_its_stream(device):
    device.stream(0).launch(
        Task(kind=TaskKind.AICORE, name="a", work=lambda _: device.clock.advance(5_000), cost_ns=10)
    )
    task = device.stream(0).launch(kernel("b", [], cost_ns=10))
    device.synchronize()
    assert task.start_ns >= START_NS + 5_010


def test_the_wall_clock_is_not_moved():
    device = Device(chip("CPU"), clock=WallClock(), environment={})
    log = []
    device.stream(0).launch(kernel("a", log, cost_ns=10**15))
    device.synchronize()
    assert log == ["a"]


def test_too_many_streams_are_refused(device):
    with pytest.raises(DeviceError, match="stream 2024 does not exist on a 910B"):
        device.stream(2024)
