"""The detector of races: what two tasks touch, and what orders them."""

import pytest

from dumpsim.core.errors import StreamHazard
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.races import Races, Touch
from dumpsim.device.task import Task, TaskKind


@pytest.fixture
def device():
    device = Device(chip("910B"), environment={})
    device.races = Races()
    return device


def read(low, high, **more):
    return Touch(what="x", low=low, high=high, writes=False, **more)


def write(low, high, **more):
    return Touch(what="y", low=low, high=high, writes=True, **more)


def launch(device, stream, name, *touches, ran=None):
    task = Task(kind=TaskKind.AICORE, name=name, touches=lambda: touches)
    if ran is not None:
        task.work = lambda task: ran.append(name)
    return device.stream(stream).launch(task)


@pytest.mark.parametrize(
    ("first", "second", "races"),
    [
        (write(0, 8), read(7, 9), True),
        (read(0, 8), write(7, 9), True),
        (write(0, 8), write(0, 8), True),
        (read(0, 8), read(0, 8), False),
        (write(0, 8), write(8, 16), False),
        (write(0, 8), write(0, 8, space="host"), False),
    ],
)
def test_what_collides(device, first, second, races):
    launch(device, 0, "First", first)
    launch(device, 1, "Second", second)
    if races:
        with pytest.raises(StreamHazard, match=r"First \(task 0 of stream 0\) .* and Second \(task 0 of stream 1\)"):
            device.synchronize()
    else:
        device.synchronize()


def test_the_second_task_does_not_run_and_its_stream_stops(device):
    ran = []
    launch(device, 0, "First", write(16, 32), ran=ran)
    launch(device, 2, "Second", read(24, 64), ran=ran)
    launch(device, 2, "Third", ran=ran)
    with pytest.raises(StreamHazard) as caught:
        device.synchronize()
    assert ran == ["First"]
    assert device.streams[2].dropped == 1
    assert str(caught.value) == (
        "bytes 0x18 to 0x20 of y and x: First (task 0 of stream 0) writes and Second (task 0 of stream 2) reads them, "
        "and no event orders the two; allowed: an event that stream 0 records after First and stream 2 waits for "
        "before Second [DS-DEV-007]"
    )


def test_one_stream_orders_its_tasks(device):
    for name in ("First", "Second"):
        launch(device, 0, name, write(0, 8))
    device.synchronize()


def test_an_event_orders(device):
    event = device.event()
    launch(device, 0, "First", write(0, 8))
    device.stream(0).record(event)
    device.stream(1).wait(event)
    launch(device, 1, "Second", write(0, 8))
    device.synchronize()


def test_events_order_through_a_third_stream(device):
    one, two = device.event(), device.event()
    launch(device, 0, "First", write(0, 8))
    device.stream(0).record(one)
    device.stream(1).wait(one)
    device.stream(1).record(two)
    device.stream(2).wait(two)
    launch(device, 2, "Second", write(0, 8))
    device.synchronize()


@pytest.mark.parametrize("early", ["record", "wait"])
def test_an_event_at_the_wrong_place_orders_nothing(device, early):
    event = device.event()
    if early == "record":
        device.stream(0).record(event)
    launch(device, 0, "First", write(0, 8))
    if early == "wait":
        launch(device, 1, "Second", write(0, 8))
        device.stream(0).record(event)
    device.stream(1).wait(event)
    if early == "record":
        launch(device, 1, "Second", write(0, 8))
    with pytest.raises(StreamHazard):
        device.synchronize()


def test_an_event_that_is_recorded_again_orders_what_was_before_the_wait(device):
    event = device.event()
    device.stream(0).record(event)
    device.stream(1).wait(event)
    launch(device, 0, "First", write(0, 8))
    device.stream(0).record(event)  # behind the wait, which it does not open
    launch(device, 1, "Second", write(0, 8))
    with pytest.raises(StreamHazard):
        device.synchronize()


def test_the_host_orders_what_it_waited_for(device):
    launch(device, 0, "First", write(0, 8))
    device.synchronize()
    launch(device, 1, "Second", write(0, 8))
    device.synchronize()


def test_waiting_for_one_stream_orders_that_stream_alone(device):
    launch(device, 0, "First", write(0, 8))
    launch(device, 2, "Other", write(8, 16))
    device.synchronize([device.stream(0)])
    launch(device, 1, "Second", read(0, 8))
    device.synchronize([device.stream(1)])
    launch(device, 1, "Third", read(8, 16))
    with pytest.raises(StreamHazard, match="Other"):
        device.synchronize()


class Peer:
    """A gate that another rank opens; no event of this device."""

    failure = None
    is_open = False

    def enter(self, waiter, time_ns):
        self.waiter = waiter

    def open(self):
        self.is_open = True
        self.waiter.wake()

    def open_ns(self):
        return 0 if self.is_open else None

    def leave(self, time_ns):
        pass


def test_a_task_that_was_launched_before_the_host_waited(device):
    """It is in flight while the host waits for another stream, and is seen when it runs."""
    peer = Peer()
    device.stream(1).launch(Task(kind=TaskKind.HCCL, name="Send", touches=lambda: [read(0, 8)], gate=peer))
    launch(device, 0, "Add", write(0, 8))
    device.synchronize([device.stream(0)])
    peer.open()
    with pytest.raises(StreamHazard, match=r"Add .* writes and Send .* reads"):
        device.synchronize()


def test_two_calls_of_a_group(device):
    links = Touch(what="group 'pair'", low=0, high=1, writes=True, space="group pair")
    other = Touch(what="group 'all'", low=0, high=1, writes=True, space="group all")
    launch(device, 1, "AllReduce-op0", links)
    launch(device, 2, "AllReduce-op1", other)
    device.synchronize()
    launch(device, 1, "AllReduce-op2", links)
    launch(device, 2, "AllReduce-op3", links)
    with pytest.raises(StreamHazard, match=r"AllReduce-op2 .* and AllReduce-op3 .* are calls of group 'pair'"):
        device.synchronize()


def test_nothing_is_compared_unless_asked(device):
    device.races = None
    launch(device, 0, "First", write(0, 8))
    launch(device, 1, "Second", write(0, 8))
    device.synchronize()
