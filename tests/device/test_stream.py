"""Streams, events, task ids, the scheduler's order and its reports."""

import pytest

from dumpsim.core.clock import START_NS, WallClock
from dumpsim.core.errors import DeviceError
from dumpsim.core.gate import Failure
from dumpsim.device.chip import OverflowMode, chip
from dumpsim.device.device import Device
from dumpsim.device.event import EventGate
from dumpsim.device.memory import Memory
from dumpsim.device.queue import Message
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
    """Two launches of 1000 ns each, then a task of 10 ns whose work takes 5000 ns more."""
    first = device.stream(0).launch(
        Task(kind=TaskKind.AICORE, name="a", work=lambda _: device.clock.advance(5_000), cost_ns=10)
    )
    task = device.stream(0).launch(kernel("b", [], cost_ns=10))
    device.synchronize()
    assert (first.start_ns, first.end_ns) == (START_NS + 1_000, START_NS + 1_010)
    assert (task.start_ns, task.end_ns) == (START_NS + 1_010 + 5_000, START_NS + 1_020 + 5_000)
    assert device.stream(0).tail_ns == task.end_ns
    assert device.clock.now_ns == START_NS + 2_000 + 5_000  # it was at the launch of b when a ran


def test_the_wall_clock_is_not_moved():
    device = Device(chip("CPU"), clock=WallClock(), environment={})
    log = []
    task = device.stream(0).launch(kernel("a", log, cost_ns=10**15))
    device.synchronize()
    assert log == ["a"]
    assert task.start_ns <= task.end_ns <= device.clock.now_ns
    assert task.end_ns <= device.stream(0).tail_ns <= device.clock.now_ns < task.start_ns + 10**15


def test_a_chip_has_as_many_streams_as_its_row_says(device):
    for number in (2024, -1):
        with pytest.raises(DeviceError) as caught:
            device.stream(number)
        assert (
            str(caught.value) == f"stream {number} does not exist on a 910B; allowed: 0 to 2023"
        )  # [spec parallel 4.1]
    assert device.streams == []
    assert device.stream().stream_id == 0
    assert device.stream(2023).stream_id == 2023
    assert [stream.stream_id for stream in device.streams] == list(range(2024))
    assert device.stream(5) is device.streams[5]


def test_streams_are_in_the_order_of_rank_device_and_number():
    made = [
        Device(chip("910B"), rank=rank, device_id=number, environment={}) for rank in (0, 1) for number in (0, 1, 7)
    ]
    orders = [device.stream(number).order for device in made for number in (0, 1, 2023)]
    assert orders == sorted(set(orders))


def test_nothing_has_happened_on_a_new_device(device, monkeypatch):
    assert (device.rank, device.device_id, device.number, device.busy) == (0, 0, 0, 0)
    assert (device.suspended, device.errors, device.stopped, device.raised) == (False, [], None, None)
    assert (device.memory.capacity, device.memory.device_id) == (64 << 30, 0)
    stream = device.stream(1)
    assert (stream.tail_ns, stream.dropped, stream.busy, stream.error) == (0, 0, False, None)
    task = Task(kind=TaskKind.AICORE, name="a")
    assert (task.stream_id, task.task_id, task.flip, task.serial) == (-1, 65535, 0, -1)  # [spec parallel 4.1]
    assert (task.cost_ns, task.launched_ns, task.start_ns, task.end_ns) == (0, 0, 0, 0)
    event = device.event()
    assert (event.event_id, event.launched, event.recorded, event.time_ns) == (0, 0, 0, 0)
    assert device.event().event_id == 1
    monkeypatch.setenv("MS_ASCEND_CHECK_OVERFLOW_MODE", "SATURATION_MODE")
    memory = Memory(1 << 20)
    other = Device(chip("910B"), device_id=3, rank=2, memory=memory)
    assert other.memory is memory
    assert other.overflow is OverflowMode.SATURATION  # of the process's environment
    assert Device(chip("910A"), device_id=3).memory.device_id == 3


def test_what_has_run_is_traced(device):
    traced = []
    device.trace = traced.append
    tasks = [device.stream(0).launch(kernel("a", [])), device.stream(0).record(device.event())]
    device.synchronize()
    assert traced == tasks


def test_the_host_waits_for_the_streams_that_it_names(device):
    log = []
    device.stream(0).launch(kernel("a", log, cost_ns=10))
    device.stream(1).launch(kernel("b", log, cost_ns=20))
    device.stream(1).launch(kernel("c", log, cost_ns=20))
    device.synchronize([device.stream(0)])
    assert log[0] == "a"
    assert "c" not in log
    assert (device.stream(0).busy, device.stream(1).busy, device.busy) == (False, True, 1)
    device.synchronize([])
    assert "c" not in log
    device.synchronize()
    assert (log, device.busy) == (["a", "b", "c"], 0)


def test_messages_arrive_with_the_end_of_the_wait_by_an_error_too(device):
    seen = []
    queue = device.queues["ms_tensor_dump"]
    queue.receiver = lambda message: seen.append(message.items[0])

    def work(task):
        queue.post(Message(items=(task.name,), attrs={}))

    def fail(task):
        work(task)
        raise OSError("disk full")

    device.stream(0).launch(Task(kind=TaskKind.AICORE, name="a", work=work))
    assert seen == []
    device.synchronize()
    assert seen == ["a"]
    device.stream(0).launch(Task(kind=TaskKind.AICORE, name="b", work=fail))
    with pytest.raises(OSError, match="disk full"):
        device.synchronize()
    assert seen == ["a", "b"]


def test_errors_of_two_streams_are_raised_one_after_the_other(device):
    def failing(text):
        def work(task):
            raise OSError(text)

        return Task(kind=TaskKind.AICORE, name=text, work=work)

    device.stream(0).launch(failing("one"))
    device.stream(1).launch(failing("two"))
    for text in ("one", "two"):
        with pytest.raises(OSError, match=text):
            device.synchronize()
    device.synchronize()
    assert device.stopped is None  # neither lasts


def test_the_first_failure_that_lasts_stops_the_device(device):
    def failing(text):
        def work(task):
            raise TaskFailure(DeviceError(text))

        return Task(kind=TaskKind.AICORE, name=text, work=work)

    device.stream(1).launch(failing("later"))
    device.synchronize([])
    device.stream(0).launch(failing("last"))
    with pytest.raises(DeviceError, match="last") as caught:
        device.synchronize()
    assert str(device.stopped.error) == "later"
    assert device.raised is caught.value


class Waiter:
    """A stream that counts how often it was woken."""

    woken = 0

    def wake(self):
        self.woken += 1


def test_a_record_wakes_who_waits_for_it_once(device):
    event, waiters = device.event(), [Waiter() for _ in range(3)]
    gates = [EventGate(event=event, count=count) for count in (2, 1, 3)]
    for gate, waiter in zip(gates, waiters, strict=True):
        gate.enter(waiter, 5)
    assert [gate.open_ns() for gate in gates] == [None] * 3
    for time, opened, woken in ((10, [None, 10, None], [0, 1, 0]), (20, [20, 20, None], [1, 1, 0])):
        event.record(time)
        assert [gate.open_ns() for gate in gates] == opened
        assert [waiter.woken for waiter in waiters] == woken
    gates[0].enter(late := Waiter(), 30)  # has been reached
    assert late.woken == 0
    first, second = (Failure(rank=0, time_ns=time, error=OSError(str(time))) for time in (40, 50))
    event.fail(first)
    event.fail(second)
    assert [waiter.woken for waiter in waiters] == [1, 1, 1]
    assert late.woken == 0
    assert [gate.open_ns() for gate in gates] == [20, 20, 40]
    assert [gate.failure for gate in gates] == [None, None, first]
