"""Tensors as MPI messages, over a network of this process: results, which messages are sent, tags, ends."""

import sys
import threading
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.communicator import Call, Terms
from dumpsim.core.errors import PeerError, UnsupportedError
from dumpsim.world import mpi
from dumpsim.world.collective import results
from dumpsim.world.hub import Hub
from dumpsim.world.mpi import MpiTensors, connect_mpi
from dumpsim.world.reduction import folder

SIZE = 3


class Request:
    """A message on its way: `arrived` says whether it has come."""

    def __init__(self, arrived):
        self.arrived, self.cancelled = arrived, 0

    def Test(self):  # noqa: N802 - a name of mpi4py
        return self.arrived()

    def Cancel(self):  # noqa: N802
        self.cancelled += 1


class Network:
    """All messages between the members, in the order in which they were sent."""

    def __init__(self):
        self.sent, self.waiting, self.lock = [], {}, threading.Lock()


class Side:
    """The communicator of one member."""

    def __init__(self, network, rank, tag_limit=1000):
        self.network, self.rank, self.size, self.tag_limit = network, rank, SIZE, tag_limit

    def Dup(self):  # noqa: N802
        return Side(self.network, self.rank, self.tag_limit)

    def Get_attr(self, key):  # noqa: N802
        assert key == "limit of tags"
        return self.tag_limit

    def Isend(self, message, dest, tag):  # noqa: N802
        content, count, kind = message
        assert (count, kind) == (content.nbytes, "bytes")
        with self.network.lock:
            self.network.sent.append((self.rank, dest, tag, bytes(content)))
            self.network.waiting.setdefault((self.rank, dest, tag), deque()).append(bytes(content))
        return Request(lambda: True)

    def Irecv(self, message, source, tag):  # noqa: N802
        content, count, kind = message
        assert (count, kind) == (content.nbytes, "bytes")
        done = []

        def arrived():
            with self.network.lock:
                found = self.network.waiting.get((source, self.rank, tag))
                if not done and found:
                    content[:] = np.frombuffer(found.popleft(), np.uint8)
                    done.append(True)
            return bool(done)

        return Request(arrived)


@pytest.fixture(autouse=True)
def library(monkeypatch):
    found = SimpleNamespace(BYTE="bytes", TAG_UB="limit of tags")
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=found))
    return found


def together(calls, tensors, *, order="rank", before=0):
    """What each member gets, and the network."""
    network, got, raised = Network(), [None] * len(calls), []
    carriers = [MpiTensors(Side(network, rank)) for rank in range(len(calls))]
    for carrier in carriers:
        for _ in range(before):
            carrier.free(carrier.publish([np.zeros(1)], None)[1])
    published = [carrier.publish(mine, None) for carrier, mine in zip(carriers, tensors, strict=True)]
    places = [place if mine else {} for (place, _), mine in zip(published, tensors, strict=True)]
    for rank, place in enumerate(places):
        place.setdefault("rank", rank)
        place.setdefault("parcel", before + 1)

    def member(rank):
        fold = folder(Terms(order=order), "group", 4)
        try:
            got[rank] = carriers[rank].collect(calls, places, rank, fold, ())
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=member, args=[rank]) for rank in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert raised == []
    assert not any(network.waiting.values())  # each message was read
    for mine in got:
        assert not any(array.flags.writeable for array in mine)
    for carrier, (_, handle) in zip(carriers, published, strict=True):
        assert not carrier._pending()
        carrier.free(handle)
        assert carrier._published == {}
        carrier.free(handle)  # once more changes nothing
    return got, network


PAIR = (("float32", (6, 2)),)
# the messages that are needed: a share of the sum to and from each other member, a whole tensor from the root, ...
CALLS = [
    (Call(op="AllReduce", tensors=PAIR, reduce="sum"), dict.fromkeys(range(3), [16] * 4)),
    (Call(op="Reduce", tensors=PAIR, reduce="sum", root=1), {0: [16] * 3, 1: [16] * 2, 2: [16] * 3}),
    (Call(op="ReduceScatter", tensors=PAIR, reduce="sum"), dict.fromkeys(range(3), [16] * 2)),
    (Call(op="ReduceScatterV", tensors=PAIR, reduce="max", sends=(0, 5, 7)),  # member 0 has no share
     {0: [20, 28], 1: [28], 2: [20]}),
    (Call(op="AllGather", tensors=PAIR), dict.fromkeys(range(3), [48] * 2)),
    (Call(op="Broadcast", tensors=PAIR, root=2), {2: [48] * 2}),
    (Call(op="CollectiveScatter", tensors=PAIR, root=1), {1: [48] * 2}),
    (Call(op="CollectiveGather", tensors=PAIR, root=2), {0: [48], 1: [48]}),
    (Call(op="AlltoAll", tensors=PAIR, axes=(3, 0, 1)), dict.fromkeys(range(3), [48] * 2)),
]  # fmt: skip


@pytest.mark.parametrize("order", ["rank", "ring", "tree"])
@pytest.mark.parametrize(("call", "messages"), CALLS, ids=[call.op for call, _ in CALLS])
def test_members_get_what_those_of_one_process_get_by_few_messages(call, messages, order):
    draws = np.random.default_rng(1)
    tensors = [[draws.standard_normal((6, 2)).astype(np.float32)] for _ in range(SIZE)]
    got, network = together([call] * SIZE, tensors, order=order)
    wanted = results([call] * SIZE, tensors, folder(Terms(order=order), "group", 4))
    for mine, own in zip(got, wanted, strict=True):
        assert [(array.dtype, array.shape, array.tobytes()) for array in mine] == [
            (array.dtype, array.shape, array.tobytes()) for array in own
        ]
    found = {}
    for rank, _, _, content in sorted(network.sent):
        found.setdefault(rank, []).append(len(content))
    assert {rank: sorted(sizes) for rank, sizes in found.items()} == messages


def test_two_members_share_a_sum():
    call = Call(op="AllReduce", tensors=(("int32", (6,)),), reduce="sum")
    got, network = together([call] * 2, [[np.arange(6, dtype=np.int32)], [np.full(6, 10, np.int32)]])
    assert [array.tolist() for (array,) in got] == [[*range(10, 16)]] * 2
    assert [len(content) for *_, content in network.sent] == [12] * 4  # halves, to and from each other


@pytest.mark.parametrize("elements", [0, 1, 2, 3, 4, 7])
def test_sums_of_fewer_elements_than_members(elements):
    """The last members have a smaller share, or none."""
    call = Call(op="AllReduce", tensors=(("int32", (elements,)),), reduce="sum")
    tensors = [[np.arange(elements, dtype=np.int32) + 10 * rank] for rank in range(SIZE)]
    got, network = together([call] * SIZE, tensors)
    assert [array.tolist() for (array,) in got] == [[3 * at + 30 for at in range(elements)]] * SIZE
    assert all(content for *_, content in network.sent)  # no empty message


def test_each_member_of_an_exchange_sends_its_pieces():
    sends = [(2, 0, 1), (0, 1, 1), (3, 0, 0)]
    calls = [
        Call(
            op="AlltoAllV", tensors=(("int64", (sum(counts),)),), sends=counts, receives=tuple(one[at] for one in sends)
        )
        for at, counts in enumerate(sends)
    ]
    tensors = [[np.arange(sum(counts)) + 10 * at] for at, counts in enumerate(sends)]
    got, network = together(calls, tensors)
    assert [array.tolist() for (array,) in got] == [[0, 1, 20, 21, 22], [10], [2, 11]]
    assert sorted((source, dest, len(content) // 8) for source, dest, _, content in network.sent) == [
        (0, 2, 1), (1, 2, 1), (2, 0, 3)
    ]  # fmt: skip


def test_the_root_alone_has_the_tensor_of_a_scatter():
    root = Call(op="CollectiveScatter", tensors=(("int32", (6,)),), root=1)
    other = Call(op="CollectiveScatter", expected=(("int32", (2,)),), root=1)
    got, _ = together([other, root, other], [[], [np.arange(6, dtype=np.int32)], []])
    assert [array.tolist() for (array,) in got] == [[0, 1], [2, 3], [4, 5]]


def test_members_that_do_not_agree_get_all_bytes():
    """Then no shares are reduced: each member reads the others' bytes as its own type."""
    calls = [Call(op="AllReduce", tensors=((kind, (count,)),), reduce="sum") for kind, count in
             (("int32", 2), ("int16", 4), ("int32", 1))]  # fmt: skip
    tensors = [[np.array([1, 2], np.int32)], [np.array([3, 0, 4, 0], np.int16)], [np.array([5], np.int32)]]
    got, network = together(calls, tensors)
    assert [array.tolist() for (array,) in got] == [[1 + 3 + 5, 2 + 4], [1 + 3 + 5, 0, 2 + 4, 0], [1 + 3 + 5]]
    assert sorted(len(content) for *_, content in network.sent) == [4, 4, 8, 8, 8, 8]


def test_a_group_of_one_sends_nothing():
    network = Network()
    carrier = MpiTensors(Side(network, 2))
    call = Call(op="AllReduce", tensors=(("int32", (2,)),), reduce="sum")
    place, _ = carrier.publish([np.array([4, 5], np.int32)], None)
    (found,) = carrier.collect([call], [place], 0, folder(Terms(), "group", 0), ())
    assert found.tolist() == [4, 5]
    assert network.sent == []


def test_messages_to_one_member_have_the_tag_of_their_number():
    """The number of tags is limited: half of them are for the second step of a reduction."""
    network = Network()
    source, target = (MpiTensors(Side(network, rank, 7)) for rank in (0, 2))
    mine, places = np.arange(4, dtype=np.float16).reshape(2, 2), []
    for number in range(1, 6):
        places.append(source.publish([mine + number], 2)[0])
        assert places[-1] == {"parcel": number, "rank": 0}
    assert [(sent, dest, tag) for sent, dest, tag, _ in network.sent] == [
        (0, 2, 2), (0, 2, 4), (0, 2, 0), (0, 2, 2), (0, 2, 4)
    ]  # fmt: skip
    for number, place in enumerate(places, 1):
        found = target.letter("float16", (2, 2), place)
        assert (found.dtype, found.tolist()) == (np.float16, (mine + number).tolist())
        assert not found.flags.writeable
    network.sent.clear()
    _, network = together([CALLS[0][0]] * SIZE, [[np.zeros((6, 2), np.float32)]] * SIZE, before=4)
    assert sorted({tag for _, _, tag, _ in network.sent}) == [10, 11]


def test_published_tensors_are_copies():
    network = Network()
    carrier = MpiTensors(Side(network, 0))
    mine = np.arange(6, dtype=np.int32).reshape(2, 3)
    carrier.publish([mine.T], None)
    (kept,) = carrier._published[1]
    mine[:] = 0
    assert (kept.tolist(), kept.flags.c_contiguous) == ([[0, 3], [1, 4], [2, 5]], True)
    assert network.sent == []  # no target yet


def test_a_wait_notices_who_has_died(monkeypatch):
    network, asked, requests = Network(), [], []
    carrier = MpiTensors(Side(network, 0))
    assert carrier.look([1, 2]) is None  # nothing is known before the rank is connected
    waits = []
    monkeypatch.setattr(mpi, "time", SimpleNamespace(sleep=waits.append))

    def receive(message, source, tag):
        requests.append(Request(lambda: source == 1 and len(asked) > 1))
        return requests[-1]

    def look(ranks):
        asked.append(ranks)
        if len(asked) == 4:
            raise PeerError("rank 2 has died", rank=2)

    carrier._world.Irecv, carrier.look = receive, look
    with pytest.raises(PeerError, match="rank 2 has died"):
        carrier._receive([(1, 1, np.empty(2)), (2, 1, np.empty(2))])
    assert asked == [[1, 2], [1, 2], [2], [2]]
    assert [request.cancelled for request in requests] == [0, 1]  # a message that has come is not cancelled
    assert len(waits) == 3
    assert 0 < max(waits) < 0.001  # several ranks may share a core


@pytest.mark.parametrize(("arrives", "polls", "cancelled"), [(0, 0, 0), (3, 3, 0), (99, 5, 1)])
def test_the_end_waits_for_messages_but_not_for_long(monkeypatch, arrives, polls, cancelled):
    """5 s here, at one second a check."""
    now, waits = [100.0], []

    def sleep(seconds):
        now[0] += 1
        waits.append(seconds)

    monkeypatch.setattr(mpi, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    carrier = MpiTensors(Side(Network(), 0))
    request = Request(lambda: len(waits) >= arrives)
    carrier._sending = [(request, np.zeros(1)), (Request(lambda: True), np.zeros(1))]
    carrier.close()
    assert (len(waits), request.cancelled) == (polls, cancelled)


def test_shares_of_the_hub_are_not_asked_of_messages():
    with pytest.raises(AssertionError, match="the shares of a reduction are MPI messages"):
        MpiTensors(Side(Network(), 0)).reduce(None, [], None, 0, 1, None)


@pytest.mark.parametrize(("rank", "near"), [(0, (0, 2)), (1, (1,))])
def test_a_process_of_an_mpi_job_finds_the_hub_of_rank_0(library, capsys, rank, near):
    told = []
    with Hub(SIZE, address="127.0.0.1:0", spread=True).start() as other:

        def bcast(own):
            told.append(own)
            return own or (other.address, other.token)

        world = Side(Network(), rank)
        world.bcast, world.allgather = bcast, lambda name: [name, "far", name] if rank == 0 else ["far", name, "far"]
        library.COMM_WORLD, library.Get_processor_name = world, lambda: "here"
        client = connect_mpi()
        try:
            assert (client.rank, client.size, client.local_ranks) == (rank, SIZE, near)
            assert client._carrier.look == client.look
            if rank == 0:
                assert told == [(client._hub.address, client._hub.token)]
                assert client.address == client._hub.address
                assert client._hub._thread.is_alive()
            else:
                assert (told, client._hub, client.address) == ([None], None, other.address)
        finally:
            client._socket.close()
            if client._hub is not None:
                client._hub.close()


@pytest.mark.parametrize("error", [ImportError("no mpi4py"), RuntimeError("cannot load MPI library")])
def test_a_machine_without_mpi(monkeypatch, error):
    class Missing:
        def __getattr__(self, name):
            raise error

    monkeypatch.setitem(sys.modules, "mpi4py", Missing())
    with pytest.raises(UnsupportedError) as caught:
        connect_mpi()
    assert str(caught.value) == f"--transport mpi: it needs the extra mpi and an MPI library ({error})"
