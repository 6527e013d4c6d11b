"""Queues to the host: order, copies, slices, and what happens when nobody listens."""

import numpy as np
import pytest

from dumpsim.core.errors import BadInputError, DeviceError
from dumpsim.device.queue import HostQueue, HostQueues, Message


def message(*items):
    return Message(items=items, attrs={})


def test_messages_arrive_in_order_as_they_were_posted():
    queue, seen = HostQueue("q"), []
    queue.receiver = seen.append
    tensor = np.arange(6, dtype=np.float32).reshape(2, 3)
    queue.post(message("a", tensor))
    tensor[:] = -1
    queue.post(message("b", tensor))
    assert seen == []
    queue.deliver()
    assert [m.items[0] for m in seen] == ["a", "b"]
    np.testing.assert_array_equal(seen[0].items[1], np.arange(6).reshape(2, 3))
    queue.deliver()
    assert len(seen) == 2


@pytest.mark.parametrize("shape", [(700_000,), (3, 0), (), (1 << 18, 2)])
def test_sliced_tensors_are_whole_again(shape):
    queue, seen = HostQueues({"MS_DUMP_SLICE_SIZE": "1"})["ms_tensor_dump"], []
    queue.receiver = seen.append
    tensor = np.asarray(np.random.RandomState(0).rand(*shape), np.float32)
    queue.post(message("x", tensor))
    queue.deliver()
    np.testing.assert_array_equal(seen[0].items[1], tensor)
    assert seen[0].items[1].shape == shape


def test_a_full_queue_hands_over_what_waits():
    queue, seen = HostQueue("q"), []
    queue.receiver = seen.append
    for number in range(1500):
        queue.post(message(number))
    assert len(seen) >= 1024 - 1
    queue.deliver()
    assert [m.items[0] for m in seen] == list(range(1500))


def test_a_full_queue_that_nobody_empties_ends_the_wait():
    waited = []
    queue = HostQueues({"MS_DUMP_WAIT_TIME": "3"}, waited.append)["ms_tensor_dump"]
    for number in range(1024):
        queue.post(message(number))
    with pytest.raises(DeviceError, match=r"MS_DUMP_WAIT_TIME=3.*'ms_tensor_dump' is full"):
        queue.post(message(1024))
    assert waited == [3_000_000_000]


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("MS_DUMP_SLICE_SIZE", "2049"),
        ("MS_DUMP_WAIT_TIME", "601"),
        ("MS_DUMP_WAIT_TIME", "-1"),
        ("MS_DUMP_SLICE_SIZE", "a"),
    ],
)
def test_variables_outside_their_range_are_refused(variable, text):
    with pytest.raises(BadInputError, match=variable):
        HostQueues({variable: text})["ms_tensor_dump"]


def test_what_fails_does_not_stop_the_rest():
    queue, seen = HostQueue("q"), []

    def receive(message):
        if message.items[0] == 0:
            raise ValueError("first")
        seen.append(message.items[0])

    queue.receiver = receive
    for number in range(3):
        queue.post(message(number))
    with pytest.raises(ValueError, match="first"):
        queue.deliver()
    queue.deliver()
    assert seen == [1, 2]


def test_the_limits_of_settings_are_allowed():
    made = HostQueues({"MS_DUMP_SLICE_SIZE": "2048", "MS_DUMP_WAIT_TIME": "600"})
    assert made["ms_tensor_dump"] is made["ms_tensor_dump"]


def test_a_tensor_is_cut_into_as_many_pieces_as_it_fills():
    """Pieces count against the depth of the queue: a scalar and a tensor without elements are one each."""
    queue = HostQueue("q", slice_bytes=4)
    for size, pieces in ((0, 1), (1, 1), (2, 2), (5, 5)):
        queue.post(message("x", np.ones(size, np.float32)))
        assert queue._pieces == pieces
        queue.receiver = lambda message: None
        queue.deliver()
        queue.receiver = None
        assert queue._pieces == 0


def test_a_message_arrives_whole():
    queue, seen = HostQueue("q", slice_bytes=8), []
    queue.receiver = seen.append
    strided = np.arange(12, dtype=np.int16).reshape(3, 4)[:, ::2]
    queue.post(Message(items=("a", 3, strided, strided[0]), source="host", attrs={"mode": 1}))
    assert queue._pieces == 2 + 1  # twelve bytes and four, in slices of eight
    queue.deliver()
    (message,) = seen
    assert (message.source, message.attrs, message.items[:2]) == ("host", {"mode": 1}, ("a", 3))
    assert [one.tolist() for one in message.items[2:]] == [[[0, 2], [4, 6], [8, 10]], [0, 2]]
    assert Message(items=(), attrs={}).source == "graph"


@pytest.mark.parametrize(("variable", "pieces"), [("0", 1), ("", 1), ("1", 3), ("2", 2)])
def test_slices_are_counted_in_megabytes(variable, pieces):
    """[spec mindspore 1.5]"""
    queue = HostQueues({"MS_DUMP_SLICE_SIZE": variable})["q"]
    queue.post(message(np.zeros((2 << 20) + 1, np.uint8)))
    assert queue._pieces == pieces


def test_a_queue_takes_1024_pieces():
    """One that does not fit in alone is taken by an empty queue; the wait is over at once where none is asked for."""
    waited = []
    queue = HostQueue("q", slice_bytes=1, wait=waited.append)
    queue.post(message(np.zeros(2000, np.uint8)))
    with pytest.raises(
        DeviceError, match=r"^MS_DUMP_WAIT_TIME=0: queue 'q' is full: 2000 pieces of tensors wait and no"
    ):
        queue.post(message("x"))
    assert waited == [0]
    queue = HostQueue("q", slice_bytes=1)
    queue.post(message(np.zeros(1023, np.uint8)))
    queue.post(message("x"))
    with pytest.raises(DeviceError, match="1024 pieces"):
        queue.post(message("y"))


def test_queues_have_names_and_are_emptied_together():
    queues, seen = HostQueues({}), []
    for name in ("one", "two"):
        queues[name].receiver = lambda message, name=name: seen.append((name, *message.items))
    queues["two"].post(message(2))
    queues["one"].post(message(1))
    queues.deliver()
    assert seen == [("one", 1), ("two", 2)]
    assert queues["one"].name == "one"
    for variable, limit in (("MS_DUMP_SLICE_SIZE", 2048), ("MS_DUMP_WAIT_TIME", 600)):
        for text in (str(limit + 1), "1.5", "\u0661"):
            with pytest.raises(BadInputError) as caught:
                HostQueues({variable: text})["q"]
            assert (
                str(caught.value) == f"{variable}: {text!r} is not a whole number in the range; allowed: 0 to {limit}"
            )
