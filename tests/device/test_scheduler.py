"""The order of tasks against the rule written out, waiting for one rank among others, and whose error is whose."""

import random

import pytest

from dumpsim.core.errors import CollectiveError, DeviceError, PeerError
from dumpsim.core.gate import Failure
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.stream import TaskFailure
from dumpsim.device.task import Task, TaskKind


def kernel(name, log, cost_ns=10_000):
    return Task(kind=TaskKind.AICORE, name=name, work=lambda task: log.append(name), cost_ns=cost_ns)


def failing(name, error):
    def work(task):
        raise error

    return Task(kind=TaskKind.AICORE, name=name, work=work)


def raise_full(task):
    raise OSError("disk full")


@pytest.fixture
def devices():
    scheduler = Scheduler()
    return [Device(chip("910B"), rank=rank, device_id=rank, scheduler=scheduler, environment={}) for rank in range(4)]


class LinearScan:
    """The rule of the order, as simply as it can be said: look at all streams before each task."""

    def __init__(self, devices):
        self.devices = devices

    def run(self):
        while True:
            ready = []
            for device in self.devices:
                for stream in device.streams:
                    if not stream.tasks:
                        continue
                    task = stream.tasks[0]
                    start = max(stream.tail_ns, task.launched_ns)
                    if task.gate is not None:
                        opened = task.gate.open_ns()
                        if opened is None:
                            continue
                        start = max(start, opened)
                    key = (start, device.rank, device.device_id, stream.stream_id, task.serial)
                    ready.append((key, len(ready), stream))
            if not ready:
                assert not any(stream.tasks for device in self.devices for stream in device.streams)
                return
            (start, *_), _, stream = min(ready)
            stream.step(start)


def program(seed, devices, log):
    """Launch the same random tasks, events and follow-ups for a seed, over all devices and some streams."""
    rng = random.Random(seed)
    events = []  # recorded before anybody waits, so that nothing deadlocks
    for at in range(rng.randrange(20, 120)):
        device = rng.choice(devices)
        stream = device.stream(rng.randrange(3))
        match rng.randrange(6):
            case 0:
                event = rng.choice(events) if events and rng.random() < 0.3 else device.event()
                stream.record(event)
                events.append(event)
            case 1 if events:
                stream.wait(rng.choice(events))
            case 2:
                behind = [kernel(f"{at} behind {n}", log, rng.choice((0, 500))) for n in range(2)]
                own = rng.choice((0, 700))

                def work(task, stream=stream, behind=behind, at=at, own=own):
                    log.append(f"{at}")
                    stream.device.clock.advance(own)
                    stream.follow(behind)

                stream.launch(Task(kind=TaskKind.AICORE, name=f"{at}", work=work, cost_ns=1000))
            case _:
                stream.launch(kernel(f"{at}", log, rng.choice((0, 0, 700, 1000, 1000, 123_456))))


@pytest.mark.parametrize("seed", range(60))
def test_the_order_is_that_of_a_scan_of_all_streams(seed):
    runs = []
    for plain in (True, False):
        scheduler, log = Scheduler(), []
        devices = [
            # two of them cannot be told apart
            Device(chip("910B"), rank=rank // 2, device_id=rank // 3, scheduler=scheduler, environment={})
            for rank in (3, 0, 2, 1, 4)
        ]
        ordered = sorted(devices, key=lambda d: (d.rank, d.device_id))
        for part in range(2):  # the clocks differ from the second part on
            program(f"{seed} {part}", devices, log)
            if plain:
                LinearScan(ordered).run()
            else:
                for device in devices:
                    device.synchronize()
        runs.append((log, [(s.tail_ns, d.clock.now_ns) for d in devices for s in d.streams]))
    assert runs[0] == runs[1]


def test_a_wait_ends_when_the_own_streams_are_empty(devices):
    log = []
    for device in devices:
        device.stream(0).launch(kernel(f"early{device.rank}", log))
        device.stream(1).launch(kernel(f"late{device.rank}", log, cost_ns=5_000))
    devices[2].stream(1).launch(kernel("last2", log))
    devices[2].synchronize()
    assert log[-1] == "last2"
    assert "late3" in log  # it was its turn
    devices[0].stream(0).launch(kernel("next", log))
    devices[3].synchronize()
    assert "next" not in log


def test_a_blocked_stream_costs_nothing_until_its_gate_opens(devices):
    """A stream that waits is looked at when its event is recorded, not before each task."""
    event = devices[1].event()
    asked = []
    task = devices[0].stream(0).wait(event)
    gate = task.gate

    class Watched:
        failure = None

        def __getattr__(self, name):
            return getattr(gate, name)

        def open_ns(self):
            asked.append(1)
            return gate.open_ns()

    task.gate = Watched()
    for _ in range(50):
        devices[1].stream(0).launch(kernel("busy", []))
    devices[1].stream(0).record(event)
    devices[0].synchronize()
    assert len(asked) < 5


def test_an_exception_of_another_ranks_task_waits_for_its_owner(devices):
    log = []
    devices[0].stream(0).launch(Task(kind=TaskKind.AICORE, name="a", work=raise_full))
    devices[0].stream(0).launch(kernel("dropped", log))
    for _ in range(3):
        devices[1].stream(0).launch(kernel("mine", log))
    devices[1].synchronize()
    assert log == ["mine"] * 3
    with pytest.raises(OSError, match="disk full"):
        devices[0].synchronize()
    devices[0].synchronize()
    assert log == ["mine"] * 3


def test_an_error_of_another_ranks_task_waits_for_its_owner(devices):
    devices[0].stream(0).launch(failing("bad", TaskFailure(DeviceError("aicore error"))))
    for _ in range(2):
        devices[1].stream(0).launch(kernel("mine", []))
    devices[1].synchronize()
    with pytest.raises(DeviceError, match="aicore error"):
        devices[0].synchronize()


@pytest.mark.parametrize("lasting", [True, False])
def test_a_rank_has_failed_while_its_error_is_lasting_or_not_raised_yet(devices, lasting):
    scheduler = devices[0].scheduler
    assert not any(scheduler.failed(rank) for rank in range(5))
    error = TaskFailure(DeviceError("aicore error")) if lasting else OSError("disk full")
    devices[2].stream(0).launch(failing("bad", error))
    devices[1].synchronize()
    with pytest.raises((DeviceError, OSError)):
        devices[2].synchronize()
    assert scheduler.failed(2) == lasting
    assert not any(scheduler.failed(rank) for rank in (0, 1, 3))


@pytest.mark.parametrize("lasting", [True, False])
def test_who_waits_for_an_event_of_a_failed_rank_gets_an_error_that_names_it(devices, lasting):
    log = []
    cause = DeviceError("aicore error") if lasting else OSError("aicore error")
    event = devices[2].event()
    devices[2].stream(0).launch(failing("bad", TaskFailure(cause) if lasting else cause))
    devices[2].stream(0).record(event)
    devices[1].stream(0).launch(kernel("before", log))
    devices[1].stream(0).wait(event)
    devices[1].stream(0).launch(kernel("after", log))
    devices[1].stream(3).launch(kernel("aside", log))
    with pytest.raises(PeerError) as caught:
        devices[1].synchronize()
    assert str(caught.value) == (
        "rank 1 device 1 stream 0: wait for event 0 waited for rank 2, which has failed: aicore error [DS-DEV-006]"
    )
    assert caught.value.rank == 2
    assert caught.value.__cause__ is cause
    assert sorted(log) == ["aside", "before"]
    assert devices[1].stream(0).dropped == 2
    with pytest.raises(type(cause), match="aicore error"):
        devices[2].synchronize()
    with pytest.raises(PeerError):  # the stream has stopped
        devices[1].stream(0).launch(kernel("later", log))


def test_an_error_passes_on_to_who_waits_for_those_that_waited(devices):
    first, second = devices[0].event(), devices[1].event()
    devices[0].stream(0).launch(failing("bad", TaskFailure(DeviceError("aicore error"))))
    devices[0].stream(0).record(first)
    devices[1].stream(0).wait(first)
    devices[1].stream(0).record(second)
    devices[2].stream(0).wait(second)
    with pytest.raises(PeerError, match="waited for rank 0, which has failed: aicore error"):
        devices[2].synchronize()


def test_a_deadlock_drops_the_tasks_of_the_rank_that_waits_only(devices):
    log, missing = [], devices[3].event()
    for device in devices[:2]:
        device.stream(0).wait(missing)
        device.stream(0).launch(kernel(f"rank{device.rank}", log))
    with pytest.raises(DeviceError, match="deadlock") as caught:
        devices[0].synchronize()
    assert len(str(caught.value).splitlines()) == 3
    devices[0].synchronize()
    devices[3].stream(0).record(missing)
    devices[1].synchronize()
    assert log == ["rank1"]


def test_a_deadlock_names_no_stream_that_waited_before(devices):
    log, event, never = [], devices[0].event(), devices[0].event()
    devices[0].stream(1).wait(event)
    devices[0].stream(0).launch(kernel("first", log))
    devices[0].stream(0).record(event)
    devices[0].stream(2).wait(never)
    with pytest.raises(DeviceError, match="deadlock") as caught:
        devices[0].synchronize()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["  rank 0 device 0 stream 2"]
    devices[0].stream(3).wait(never)
    with pytest.raises(DeviceError, match="deadlock") as caught:
        devices[0].synchronize()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["  rank 0 device 0 stream 3"]


class Closed:
    """The gate of a collective that never opens."""

    def __init__(self, failure=None, at_deadlock=None):
        self.failure, self.at_deadlock, self.reports = failure, at_deadlock, []

    def enter(self, waiter, time_ns):
        pass

    def open_ns(self):
        return None

    def abandon(self, failure):
        pass

    def waits_for(self):
        return "its peer"

    def give_up(self, report):
        self.reports.append(report)
        return self.at_deadlock


def late(rank):
    error = CollectiveError(f"rank {rank} did not come", rank=rank, code="EI0002")
    return Failure(rank=rank, time_ns=5, error=error)


def test_a_gate_may_say_at_a_deadlock_why_it_stays_closed(devices):
    failure = late(2)
    gates = [Closed(), Closed(at_deadlock=failure)]
    for number, gate in enumerate(gates):
        devices[0].stream(number).launch(Task(kind=TaskKind.HCCL, name="AllReduce", gate=gate))
    with pytest.raises(CollectiveError) as caught:
        devices[0].synchronize([devices[0].stream(1)])
    assert caught.value is failure.error
    assert not devices[0].stream(1).busy
    assert devices[0].busy == 1  # the other one still waits
    assert [len(gate.reports) for gate in gates] == [1, 1]
    assert "AllReduce) waits for its peer" in gates[0].reports[0]


def test_a_rank_whose_collective_has_failed_has_failed_once_it_is_the_first_task(devices):
    scheduler = devices[0].scheduler
    devices[0].stream(0).launch(Task(kind=TaskKind.HCCL, name="AllReduce", gate=Closed(late(1))))
    devices[1].stream(0).launch(kernel("before", []))
    devices[1].stream(0).launch(Task(kind=TaskKind.HCCL, name="AllReduce", gate=Closed(late(1))))
    devices[2].stream(0).launch(Task(kind=TaskKind.HCCL, name="AllReduce", gate=Closed()))
    assert [scheduler.failed(rank) for rank in range(4)] == [True, False, False, False]


def test_a_killed_rank_has_no_task_left_and_fails_its_groups_later_ones_too(devices):
    class Group:
        failure = None

        def fail(self, failure):
            self.failure = failure

    scheduler, groups, log = devices[0].scheduler, [Group() for _ in range(3)], []
    scheduler.enlist([0, 1], groups[0])
    scheduler.enlist([1, 2], groups[1])
    for device in devices[:2]:
        device.stream(1).launch(kernel("lost", log))
    scheduler.kill(failure := late(0))
    scheduler.enlist([0], groups[2])
    assert [group.failure for group in groups] == [failure, None, failure]
    assert ([device.busy for device in devices[:2]], devices[0].stream(1).dropped) == ([0, 1], 1)
    devices[1].synchronize()
    assert log == ["lost"]


def test_streams_of_one_device_that_wait_for_a_failed_one_are_named_once_each(devices):
    (device, *_) = devices
    event, never = device.event(), device.event()
    device.stream(1).launch(failing("bad", TaskFailure(DeviceError("aicore error"))))
    device.stream(1).record(event)
    device.stream(0).wait(event)
    device.stream(2).wait(never)
    with pytest.raises(DeviceError, match="aicore error") as caught:
        device.synchronize()
    assert not isinstance(caught.value, PeerError)
    notes = "\n".join(caught.value.__notes__)
    assert notes.count("stream 0: task 0") == 1
    assert notes.count("stream 2: task 0 (STREAM_WAIT_EVENT, wait for event 1) waits for event 1, which no") == 1


def test_who_waited_for_a_dropped_task_of_the_own_rank_says_so(devices):
    log, (device, *_) = [], devices
    event = device.event()
    device.stream(0).launch(Task(kind=TaskKind.AICORE, name="a", work=raise_full))
    device.stream(0).record(event)
    device.stream(1).wait(event)
    device.stream(1).launch(kernel("dropped", log))
    with pytest.raises(OSError, match="disk full"):
        device.synchronize()
    with pytest.raises(DeviceError, match="stream 1: wait for event 0 waited for a task that was dropped: disk full"):
        device.synchronize()
    device.stream(1).launch(kernel("next", log))
    device.synchronize()
    assert log == ["next"]


def test_asking_from_a_task_changes_nothing(devices):
    log = []

    def work(task):
        devices[0].synchronize()
        log.append(task.name)

    devices[0].stream(0).launch(Task(kind=TaskKind.AICORE, name="outer", work=work))
    devices[0].stream(0).launch(kernel("inner", log))
    devices[0].synchronize()
    assert log == ["outer", "inner"]


def test_an_interrupt_ends_the_wait_at_once_and_loses_no_stream(devices):
    log = []
    devices[0].stream(0).launch(failing("stop", KeyboardInterrupt()))
    devices[0].stream(1).launch(kernel("rest", log, cost_ns=10**9))
    devices[1].stream(0).launch(kernel("other", log, cost_ns=10**9))
    with pytest.raises(KeyboardInterrupt):
        devices[1].synchronize()
    devices[1].synchronize()
    devices[0].synchronize()
    assert sorted(log) == ["other", "rest"]


def test_devices_are_numbered_in_the_order_in_which_they_come():
    scheduler = Scheduler()
    devices = [Device(chip("910B"), rank=rank, scheduler=scheduler, environment={}) for rank in (0, 1, 0)]
    others = [scheduler.add(device) for device in devices]
    assert others == [3, 4, 5]


def test_a_deadlock_of_many_names_streams_that_wait_for_the_same_once():
    """Four are named one by one; the rank that waits for something else comes first."""
    scheduler = Scheduler()
    made = [Device(chip("910B"), rank=rank, device_id=rank, scheduler=scheduler, environment={}) for rank in range(7)]
    missing, other = made[6].event(), made[6].event()
    for device in made[:5]:
        device.stream(1).wait(missing)
    for device in made[1:6]:
        device.stream(2).wait(missing)
    made[5].stream(3).wait(other)
    for device in made[:4]:
        device.stream(4).wait(other)
    with pytest.raises(DeviceError, match="deadlock") as caught:
        made[0].synchronize()
    lines = str(caught.value).splitlines()[1:]
    assert len(lines) == 7
    assert lines[-2].startswith("  ranks 0-4 stream 1: task 0 ")
    assert lines[-1].startswith("  ranks 1-5 stream 2: task 0 ")
    single = "\n".join(lines[:5])
    assert single.count("stream 4") == 4
    assert single.count("stream 3") == 1
