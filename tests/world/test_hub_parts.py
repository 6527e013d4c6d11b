"""Unit tests of the hub and of launched processes: addresses, queues, lines, ends."""

import contextlib
import errno
import fcntl
import io
import itertools
import math
import os
import select
import selectors
import signal
import socket
import time
from types import SimpleNamespace

import pytest

from dumpsim.core.errors import BadInputError, DeviceError, DumpsimError, PeerError
from dumpsim.core.partname import machine
from dumpsim.world import hub as hubs
from dumpsim.world import processes
from dumpsim.world.client import connect
from dumpsim.world.hub import LOCK_BYTES, Hub, _Connection, connect_timeout_s, endpoint
from dumpsim.world.processes import Processes, _Member, reason
from dumpsim.world.wire import LONGEST, Frames, encode


@pytest.mark.parametrize(
    ("address", "family", "place"),
    [
        ("unix:@a", socket.AF_UNIX, "\0a"), ("unix:/a", socket.AF_UNIX, "/a"),
        ("unix:@" + "x" * 98, socket.AF_UNIX, "\0" + "x" * 98), ("h:0", socket.AF_INET, ("h", 0)),
        ("h:65535", socket.AF_INET, ("h", 65535)), ("[::1]:80", socket.AF_INET6, ("::1", 80)),
        ("::1:80", socket.AF_INET6, ("::1", 80)),
    ],
)  # fmt: skip
def test_addresses_of_hubs(address, family, place):
    assert endpoint(address) == (family, place)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "unix:",
        "unix:@",
        "unix:/",
        "unix:a",
        "unix:@" + "x" * 99,
        ":80",
        "h:",
        "h:65536",
        "h:000080",
        "h:\u0661",
        "h:-1",
    ],
)
def test_invalid_addresses_of_hubs(address):
    with pytest.raises(BadInputError, match="is not the address of a hub; allowed: unix:@NAME, unix:/PATH, HOST:PORT"):
        endpoint(address)


@pytest.mark.parametrize(
    ("topo", "connect", "seconds"),
    [("30", "5", 30.0), ("", "5", 5.0), ("x", "5", 5.0), ("-x", "5", 5.0), ("12345678", "5", 5.0), ("", "-7", 120.0),
     ("\u0661", "", 120.0), ("1234567", "", 1234567.0)],
)  # fmt: skip
def test_how_long_ranks_may_take_to_connect(topo, connect, seconds):
    assert connect_timeout_s({"MS_TOPO_TIMEOUT": topo, "HCCL_CONNECT_TIMEOUT": connect}) == seconds
    assert connect_timeout_s({"MS_TOPO_TIMEOUT": "-7"}) > 1e8


@pytest.mark.parametrize(
    ("status", "text"),
    [(0, "its process has ended with exit code 0"), (255 << 8, "its process has ended with exit code 255"),
     (15, "its process was killed by SIGTERM"), (11 | 128, "its process was killed by SIGSEGV"),
     (40, "its process was killed by signal 40")],
)  # fmt: skip
def test_how_a_process_has_ended(status, text):
    assert reason(status) == text


class Reader:
    """A socket that accepts a given number of bytes."""

    def __init__(self, *takes):
        self.takes, self.got = list(takes), b""

    def fileno(self):
        return 9999

    def send(self, data):
        take = self.takes.pop(0) if self.takes else len(data)
        if isinstance(take, OSError):
            raise take
        self.got += bytes(data[:take])
        return take

    def close(self):
        pass


@pytest.mark.parametrize(
    ("takes", "got", "left"),
    [
        ((), b"message", b""),
        ((3,), b"message", b""),
        ((3, BlockingIOError()), b"mes", b"sage"),
        ((InterruptedError(),), b"", b"message"),
        ((2, BrokenPipeError()), b"me", b""),
    ],
)
def test_unread_messages_are_queued(takes, got, left):
    modified = []
    with Hub(1) as hub:
        connection = _Connection(Reader(*takes), 0.0)
        hub._connections[9999] = connection
        real, hub._selector = hub._selector, SimpleNamespace(modify=lambda *words: modified.append(words))
        connection.unsent += b"message"
        hub._flush(connection)
        del hub._connections[9999]
        hub._selector = real
    assert (connection.socket.got, bytes(connection.unsent)) == (got, left)
    wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if left else 0)
    assert modified == [(connection.socket, wanted)]


def test_an_overlong_queue_is_dropped(monkeypatch):
    with Hub(1) as hub:
        for limit, left in ((7, b"message"), (6, b"")):
            monkeypatch.setattr(hubs, "_QUEUE", limit)
            connection = _Connection(Reader(BlockingIOError()), 0.0)
            connection.unsent += b"message"
            hub._flush(connection)  # of no connection any longer: the selector is not told
            assert bytes(connection.unsent) == left


def test_a_refused_connection_is_closed_when_it_has_read_why():
    with Hub(1) as hub:
        dropped = []
        hub._drop = lambda connection, why: dropped.append((connection, why))
        connection = _Connection(Reader(), 0.0, closing=True)
        hub._connections[9999] = connection
        hub._send(connection, {"kind": "refused"})
        del hub._connections[9999]
        assert dropped == [(connection, "")]
        assert b"refused" in connection.socket.got


def test_the_number_of_foreign_connections_is_limited(monkeypatch):
    monkeypatch.setattr(hubs, "_STRANGERS", 1)
    with Hub(1) as hub:
        family, place = endpoint(hub.address)
        sockets = [socket.socket(family) for _ in range(4)]
        sockets[0].connect(place)
        hub._accept()
        (known,) = hub._connections.values()
        known.rank = 0  # which does not count
        for one in sockets[1:]:
            one.connect(place)
            hub._accept()
        assert len(hub._connections) == 1 + 2  # one more than ranks
        assert sockets[3].recv(1) == b""  # closed
        known.rank = -1
        for one in sockets:
            one.close()
        monkeypatch.setattr(hubs, "_GREETING_S", -1.0)
        hub._look()
        assert hub._connections == {}
        hub._listening.setblocking(False)
        hub._accept()  # nobody is there any longer
        assert hub._connections == {}


def test_how_much_a_hub_takes_from_those_it_does_not_know(hub, monkeypatch):
    """64 connections more than ranks, five seconds for a hello, and 256 MiB for a rank that does not read."""
    assert hubs._QUEUE == 256 << 20
    family, place = endpoint(hub.address)
    sockets = [socket.socket(family) for _ in range(2 + 64 + 1)]
    for one in sockets:
        one.connect(place)
        hub._accept()
        if one is sockets[-2]:
            assert len(hub._connections) == 66
    assert len(hub._connections) == 66
    now = [0.0]
    for connection in hub._connections.values():
        connection.since = 100.0
    next(iter(hub._connections.values())).since = 101.0
    monkeypatch.setattr(hubs.time, "monotonic", lambda: now[0])
    for now[0], left in ((105.0, 66), (105.1, 1), (106.0, 1), (106.1, 0)):
        hub._look()
        assert len(hub._connections) == left
    for one in sockets:
        one.close()


def test_complete_lines_of_a_process_are_forwarded():
    read, write = os.pipe()
    os.set_blocking(read, False)
    output = io.StringIO()
    member = _Member(1, {read: output})
    one = object.__new__(Processes)
    steps = [(b"", True, ""), (b"a", True, ""), (b"b\nc\n\xffd", True, "ab\nc\n")]
    for data, more, shown in steps:
        if data:
            os.write(write, data)
        assert one._print(member, read) is more
        assert output.getvalue() == shown
    assert one._print(member, read, last=True) is False  # the process lives on, the job does not
    assert output.getvalue() == "ab\nc\n\ufffdd\n"
    os.write(write, b"e")
    os.close(write)
    assert [one._print(member, read) for _ in range(3)] == [True, False, False]
    assert output.getvalue() == "ab\nc\n\ufffdd\ne\n"
    os.close(read)


class Forwarded(io.StringIO):
    """A stream that lets the process go on that has written to it."""

    def __init__(self, go):
        super().__init__()
        self.go = go

    def write(self, text):
        with contextlib.suppress(BrokenPipeError):  # it has ended
            os.write(self.go, b".")
        return super().write(text)


def test_lines_are_forwarded_while_processes_run(monkeypatch):
    """Each of them writes a line, and ends after the line was forwarded."""
    one, lost = object.__new__(Processes), []
    one._members, one._order = [], []
    monkeypatch.setattr(processes, "_POLL_S", 0.002)
    for number in range(2):
        (read, write), (wait, go) = os.pipe(), os.pipe()
        pid = os.fork()
        if not pid:
            os.write(write, b"line %d\nrest" % number)
            came = select.select([wait], [], [], 5)[0]
            os._exit(3 + number if came else 99)
        for descriptor in (write, wait):
            os.close(descriptor)
        os.set_blocking(read, False)
        one._members.append(_Member(pid, {read: Forwarded(go)}))
    one._supervise(SimpleNamespace(lost=lambda rank, why: lost.append((rank, why))))
    assert sorted(lost) == [(rank, f"its process has ended with exit code {3 + rank}") for rank in range(2)]
    assert [member.reason for member in one._members] == [why for _, why in sorted(lost)]
    assert not any(member.running for member in one._members)
    for number, member in enumerate(one._members):
        ((descriptor, output),) = member.outputs.items()
        assert output.getvalue() == f"line {number}\nrest\n"
        os.close(descriptor)
        os.close(output.go)


@pytest.mark.parametrize(("failed", "checks"), [([1], 12), ([], 0)])
def test_ranks_have_ten_seconds_after_the_first_failure(monkeypatch, failed, checks):
    """The clock goes on by a second whenever it is read; without a failure it is not."""
    one, now = object.__new__(Processes), itertools.count()
    one._order = failed
    child = os.fork()
    if not child:
        time.sleep(60 if failed else 0.05)
        os._exit(0)
    one._members = [_Member(child, {})]
    monkeypatch.setattr(processes, "_POLL_S", 0.001)
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: next(now), sleep=time.sleep))
    one._supervise(SimpleNamespace(lost=lambda rank, why: None))
    assert one._members[0].running is bool(failed)
    assert next(now) == checks  # 0 for the failure, then 1 to 11
    one._end_all()


def test_a_process_that_does_not_end_has_no_reason(monkeypatch):
    """50 ms after its socket has closed it still runs; the clock goes on by a tenth of that at each wait."""
    one = object.__new__(Processes)
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    one._members = [_Member(child, {})]
    waits = []
    clock = SimpleNamespace(monotonic=lambda: len(waits) * 0.005, sleep=waits.append)
    monkeypatch.setattr(processes, "time", clock)
    assert one._explain(0) is None
    assert len(waits) == 10
    assert all(0 < each <= 0.005 for each in waits)
    one._end_all()
    waits.clear()
    assert one._explain(0) is None  # another has reaped it, and will say why
    assert len(waits) == 10


def test_running_processes_are_killed_at_the_end():
    one = object.__new__(Processes)
    one._members = []
    for running in (True, False):
        read, write = os.pipe()
        os.close(write)
        pid = os.fork() if running else 0
        if running and not pid:
            time.sleep(100)
            os._exit(0)
        member = _Member(pid, {read: io.StringIO()})
        member.running = running
        one._members.append(member)
    one._end_all()
    assert [member.running for member in one._members] == [False, False]
    with pytest.raises(ChildProcessError):
        os.waitpid(one._members[0].pid, 0)
    for member in one._members:
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            os.fstat(*member.outputs)


def test_the_end_of_a_process_is_explained_before_it_is_reaped():
    one = object.__new__(Processes)
    for act, text in (
        (lambda: os._exit(7), "its process has ended with exit code 7"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "its process was killed by SIGKILL"),
    ):
        pid = os.fork()
        if not pid:
            act()
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        one._members = [_Member(pid, {})]
        assert one._explain(0) == text
        os.waitpid(pid, 0)
        one._members[0].reason = "known"
        assert one._explain(0) == "known"


def ending(error=None, culprit=None, text="gone"):
    return SimpleNamespace(error=error, culprit=culprit, text=text)


def test_the_first_error_or_that_of_the_rank_it_blames_is_raised():
    one = object.__new__(Processes)
    one._environments = [{}] * 3
    peer = PeerError("rank 2 is late", rank=2)
    own = ValueError("wrong")
    for order, endings, text, rank in (
        ([1], {1: ending(own, 2)}, "wrong", 1),
        ([1, 2], {1: ending(peer, 2), 2: ending(own)}, "wrong", 2),
        ([1], {1: ending(peer, 2)}, "rank 2 is late", 1),  # the blamed one has not failed
        ([1, 2], {1: ending(own, 2), 2: ending(peer)}, "wrong", 1),
        ([0], {0: ending(text="was killed")}, "rank 0: was killed", 0),
    ):
        one._order = order
        with pytest.raises((ValueError, DeviceError, PeerError), match=text) as caught:
            one._raise(endings)
        assert caught.value.__notes__[-1] == f"raised in rank {rank} of 3"
    one._order = []
    assert one._raise({}) is None


def test_the_shares_of_members_of_mpi_cover_all_elements():
    from dumpsim.core.communicator import Call
    from dumpsim.world.mpi import _address, _shares

    plain = Call(op="AllReduce")
    for elements, members in ((10, 4), (3, 4), (0, 2), (8, 4)):
        bounds = _shares(plain, elements, members)
        assert bounds == [min(at * math.ceil(elements / members), elements) for at in range(members + 1)]
        assert (bounds[0], bounds[-1], len(bounds)) == (0, elements, members + 1)
    assert _shares(Call(op="ReduceScatterV", sends=(3, 0, 4)), 7, 3) == [0, 3, 3, 7]
    assert endpoint(f"{_address()}:1")[1][1] == 1


def test_a_machine_without_a_name_is_reached_by_its_loopback(monkeypatch, capsys):
    from dumpsim.world import mpi

    def unknown(name):
        raise OSError

    monkeypatch.setattr(socket, "gethostbyname", unknown)
    assert mpi._address() == "127.0.0.1"
    mpi._report(3, SimpleNamespace(kind="died", text="exit code 1"))
    mpi._report(4, SimpleNamespace(kind="left", text="exit code 1"))
    assert capsys.readouterr().err == "dumpsim: rank 3: exit code 1\n"


# -- a hub that turns when it is told to


class Peer:
    """A process that speaks to a hub of this thread."""

    opened = ()

    def __init__(self, hub):
        self.hub = hub
        family, place = endpoint(hub.address)
        self.socket = socket.socket(family)
        self.socket.connect(place)
        self.opened.append(self.socket)
        self.frames = Frames(LONGEST)

    def say(self, kind=None, **message):
        """Send a message, if there is one, and let the hub turn; what it answers, None after the end."""
        if kind is not None:
            self.socket.sendall(encode({"kind": kind, **message}))
        for _ in range(3):  # accept, read, answer
            self.hub._turn()
        self.socket.setblocking(False)
        found = []
        while True:
            try:
                received = self.socket.recv(1 << 16)
            except BlockingIOError:
                return found
            found += self.frames.feed(received)
            if not received:
                self.socket.close()
                return found or None

    def hello(self, rank=0, **changes):
        known = {"token": self.hub.token, "rank": rank, "size": self.hub.size, "pid": 4000 + rank, "machine": machine()}
        return self.say("hello", **known | changes)


@pytest.fixture(autouse=True)
def sockets(monkeypatch):
    """Close the sockets of all peers at the end."""
    monkeypatch.setattr(Peer, "opened", [])
    yield
    for one in Peer.opened:
        one.close()


@pytest.fixture
def hub():
    with Hub(2) as made:
        select = made._selector.select
        made._selector.select = lambda timeout: select(min(timeout, 0.01))
        yield made


def test_a_rank_is_welcomed(hub):
    assert Peer(hub).hello() == [{"kind": "welcome", "locks": hub._locks.path, "pid": os.getpid()}]
    with Hub(2, spread=True) as spread:
        assert Peer(spread).hello(machine="elsewhere") == [{"kind": "welcome", "locks": "", "pid": os.getpid()}]
    with Hub(2, token="") as of_all:
        assert Peer(of_all).hello(token="any")[0]["kind"] == "welcome"


def test_a_rank_is_refused_whole(hub):
    assert len(hub.token) == 32
    first = Peer(hub)
    first.hello()
    for rank, changes, said in (
        (1, {"token": "guessed"}, f"{hub.address}: DUMPSIM_HUB_TOKEN does not match the token of the job"),
        (1, {"machine": "elsewhere"}, f"{hub.address}: rank 1 runs on another machine or in another container than the "
                                      "hub of the job; allowed: one machine; the transport 'mpi' for several"),
        (2, {}, "RANK_ID: rank 2 is outside of a job of 2 ranks; allowed: 0 to 1"),
        (-1, {}, "RANK_ID: rank -1 is outside of a job of 2 ranks; allowed: 0 to 1"),
        (1, {"size": 3}, "RANK_SIZE: rank 1 states 3 ranks, the job has 2; allowed: 2"),
        (0, {"pid": 77}, "RANK_ID: rank 0 is connected already, as process 4000; this is process 77"),
    ):  # fmt: skip
        peer = Peer(hub)
        (refused,) = peer.hello(rank, **changes)
        assert (refused["kind"], refused["error"]["text"]) == ("refused", said)
        assert peer.socket.fileno() < 0  # the hub has closed it
    first.say("bye")
    first.socket.close()
    hub._turn()
    (refused,) = Peer(hub).hello()
    assert refused["error"]["text"] == "RANK_ID: rank 0 of the job has ended: its program has ended"
    assert Peer(hub).say("join") is None  # no hello


def test_the_reason_of_a_launcher_comes_after_what_the_rank_has_said(hub):
    first, second = Peer(hub), Peer(hub)
    first.hello(0)
    second.hello(1)
    first.socket.sendall(encode({"kind": "bye", "result": 5}))
    hub.lost(0, "exit code 0")
    hub.lost(1, "exit code 3")
    second.say()
    assert {rank: (ending.kind, ending.text) for rank, ending in hub.endings.items()} == {
        0: ("left", "its program has ended"), 1: ("died", "exit code 3"),
    }  # fmt: skip
    assert hub.results == {0: 5}
    with Hub(2) as never:
        never.lost(1, "exit code 7")
        assert select.select([never._wake_read], [], [], 0)[0]
        never._turn()
        assert never.endings[1].text == "exit code 7"
        assert select.select([never._wake_read], [], [], 0)[0] == []  # it does not turn again for that


@pytest.mark.parametrize(
    ("explain", "text"), [(None, "its process has ended"), (lambda rank: None, "its process has ended"),
                          (lambda rank: f"rank {rank} was killed", "rank 1 was killed")],
)  # fmt: skip
def test_a_connection_that_ends_is_the_end_of_its_rank(hub, explain, text):
    told, hub.explain = [], explain
    hub._report = lambda rank, ending: told.append((rank, ending.kind, ending.text))
    peer = Peer(hub)
    peer.hello(1)
    peer.socket.close()
    hub._turn()
    assert told == [(1, "died", text)]


def test_a_rank_whose_message_is_invalid_is_given_up(hub):
    peer = Peer(hub)
    peer.hello(1)
    peer.say("join", m="x")
    assert hub.endings[1].text == "it has sent an invalid message: join.time is None; allowed: int"
    other = Peer(hub)
    other.hello(0)
    assert other.say("reduced", m=99) is None or other.socket.fileno() < 0
    assert hub.endings[0].text == "it has sent an invalid message: KeyError: 99"


def test_the_lock_of_a_process_that_has_ended_ends_its_rank(hub, monkeypatch):
    """Though a child of it still holds the socket. A process cannot test a lock of its own."""
    free = []
    monkeypatch.setattr(hub, "_free", lambda rank: rank in free)
    peer, own = Peer(hub), Peer(hub)
    peer.hello(1)
    own.hello(0, pid=os.getpid())
    for one in (peer, own):
        one.say("locked")
    assert hub.endings == {}
    free += [0, 1]
    hub._turn()
    assert {rank: ending.text for rank, ending in hub.endings.items()} == {1: "its process has ended"}


def test_locks_are_free_when_nobody_holds_them(hub):
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        fcntl.lockf(hub._locks.descriptor, fcntl.LOCK_EX, 1, LOCK_BYTES + 1)
        os.write(ready[1], b".")
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    assert [hub._free(0), hub._free(1)] == [True, False]
    os.write(done[1], b".")
    os.waitpid(pid, 0)
    assert [hub._free(0), hub._free(1)] == [True, True]
    pid = os.fork()  # nor does the hub hold them after it has looked
    if not pid:
        for rank in range(2):
            fcntl.lockf(hub._locks.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCK_BYTES + rank)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    for descriptor in (*ready, *done):
        os.close(descriptor)


def test_times_of_a_hub(hub, monkeypatch):
    """Ranks that do not come, and a job in which no rank says anything while one waits."""
    assert Hub.__init__.__kwdefaults__["watchdog_s"] == 600
    assert connect.__kwdefaults__["timeout_s"] == 120  # as long as HCCL waits for a connection [spec parallel 3.5]
    assert (hub.connect_s, hub.watchdog_s) == (connect_timeout_s(os.environ), 600)
    with Hub(1, environment={"MS_TOPO_TIMEOUT": "31"}) as other, Hub(1, connect_s=2.5) as third:
        assert (other.connect_s, third.connect_s) == (31, 2.5)
    told = []
    monkeypatch.setattr(hub._exchange, "missing", lambda after: told.append(("missing", after)))
    monkeypatch.setattr(hub._exchange, "silent", lambda after: told.append(("silent", after)))
    hub.connect_s, hub.watchdog_s = 30, 50
    now = [hub._started + 30]
    monkeypatch.setattr(hubs.time, "monotonic", lambda: now[0])
    hub._look()
    assert told == []
    now[0] += 1
    hub._look()
    assert told == [("missing", 30)]
    now[0] += 19
    hub._look()
    assert ("silent", 50) not in told
    now[0] += 1
    del told[:]
    hub._look()
    hub._look()  # from now on it counts anew
    assert told == [("missing", 30), ("silent", 50), ("missing", 30)]


def test_each_message_starts_the_watch_anew(hub, monkeypatch):
    silent, now = [], [0.0]
    first = Peer(hub)
    first.hello(0)
    monkeypatch.setattr(hub._exchange, "silent", silent.append)
    monkeypatch.setattr(hubs.time, "monotonic", lambda: now[0])
    hub._last_message, hub._started, hub.watchdog_s, hub.connect_s = 0.0, 0.0, 50, 1000
    for now[0], told in ((40, 0), (81, 0), (130, 0), (140, 1)):
        if now[0] in (40, 81):
            first.say("terms", order="rank", exec_ns=1, connect_ns=1, check="all", saturates=False)
        hub._look()
        assert len(silent) == told, now


def test_what_follows_a_refused_hello_is_not_read(hub):
    peer = Peer(hub)
    known = {"rank": 0, "size": 2, "pid": 7, "machine": machine()}
    wrong, right = ({"kind": "hello", "token": token, **known} for token in ("guessed", hub.token))
    peer.socket.sendall(encode(wrong) + encode(right))
    (answer,) = peer.say()
    assert answer["kind"] == "refused"
    assert hub._ranks == {}


def test_a_rank_of_another_machine_has_no_lock(monkeypatch):
    with Hub(1, spread=True) as spread:
        monkeypatch.setattr(spread, "_free", lambda rank: True)
        peer = Peer(spread)
        peer.hello(machine="elsewhere")
        peer.say("locked")
        spread._turn()
        assert spread.endings == {}


def test_a_hub_serves_until_its_last_message_is_sent_or_it_is_closed(hub, monkeypatch):
    turns = []

    def turn():
        turns.append(len(turns))
        if len(turns) == 3:
            connection.unsent.clear()

    monkeypatch.setattr(hub, "_turn", turn)
    connection = _Connection(Reader(), 0.0)
    connection.unsent += b"rest"
    monkeypatch.setattr(hub, "_connections", {1: connection})
    monkeypatch.setattr(hub, "_drop", lambda connection, why: None)
    hub.endings.update({0: object(), 1: object()})
    hub.serve()
    assert turns == [0, 1, 2]
    connection.unsent += b"rest"
    hub._closing = True
    hub.serve()
    assert turns == [0, 1, 2]


def test_an_address_of_a_file_is_gone_with_its_hub(tmp_path):
    address = f"unix:{tmp_path}/hub"
    made = Hub(1, address=address)
    peer = Peer(made)
    peer.hello()
    assert (tmp_path / "hub").is_socket()
    with pytest.raises(BadInputError) as caught:
        Hub(1, address=address)
    assert str(caught.value) == (
        f"hub of the job: the address {address} is in use already; allowed: another port, or 0 for a free one"
    )
    assert not made.wait(0)
    made.close()
    assert made.wait(0)
    assert not (tmp_path / "hub").exists()
    peer.socket.setblocking(True)
    assert peer.socket.recv(1) == b""
    made.close()
    peer.socket.close()
    with pytest.raises(BadInputError, match=r"the address unix:/no/such/hub cannot be used: No such file or directory"):
        Hub(1, address="unix:/no/such/hub")
    with pytest.raises(BadInputError, match="ranks: 0 is not a number of ranks; allowed: 1 or more"):
        Hub(0)


def test_a_forked_child_leaves_the_job_alone(hub):
    peer = Peer(hub)
    peer.hello(1)
    before = len(os.listdir("/proc/self/fd"))
    (connection,) = hub._connections.values()
    hub.abandon()
    assert len(os.listdir("/proc/self/fd")) == before - 3  # a rank, the address, the selector
    assert connection.socket.fileno() < 0
    assert hub.endings == {}
    hub._connections.clear()
    peer.socket.close()


def test_a_hub_serves_until_all_ranks_have_ended(hub):
    first, second = Peer(hub), Peer(hub)
    for rank, peer in enumerate((first, second)):
        peer.hello(rank)
        peer.socket.sendall(encode({"kind": "bye"}))
    hub.serve()
    assert hub.wait(0)
    assert sorted(hub.endings) == [0, 1]
    assert hub._connections == {}
    for peer in (first, second):
        peer.socket.close()
    assert hub.environment(1) == {
        "RANK_ID": "1", "RANK_SIZE": "2", "DEVICE_ID": "1", "DUMPSIM_HUB": hub.address, "DUMPSIM_HUB_TOKEN": hub.token
    }  # fmt: skip


def test_a_port_that_a_hub_has_just_left_can_be_used_again():
    with Hub(1, address="127.0.0.1:0") as first:
        peer = Peer(first)
        peer.hello()
    peer.socket.setblocking(True)
    assert peer.socket.recv(1) == b""  # the hub has closed first, and waits for late packets
    peer.socket.close()
    with Hub(1, address=first.address) as again:
        assert again.address == first.address


def test_a_hub_that_closes_waits_for_its_thread():
    done = []

    class Slow(Hub):
        def serve(self):
            super().serve()
            time.sleep(0.03)
            done.append(self._selector.get_map() is not None)

    with Slow(1).start() as made:
        assert made._thread.daemon
        assert made._thread.name == "dumpsim hub"
    assert done == [True]  # before the selector was closed


def test_no_descriptor_of_a_hub_stays_open():
    before = len(os.listdir("/proc/self/fd"))
    made = Hub(2)
    opened = len(os.listdir("/proc/self/fd"))
    assert opened > before
    peer = Peer(made)
    peer.hello()
    made.close()
    peer.socket.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_addresses_of_the_net_take_a_free_port():
    with Hub(1, address="127.0.0.1:0") as made:
        host, _, port = made.address.partition(":")
        assert (host, int(port) > 0) == ("127.0.0.1", True)
        peer = Peer(made)
        assert peer.hello()[0]["kind"] == "welcome"
        (connection,) = made._connections.values()
        assert connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        peer.socket.close()


def test_a_connection_that_has_gone_is_not_waited_for(hub):
    assert not hub._listening.getblocking()
    hub._accept()
    assert hub._connections == {}


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_addresses_of_ipv6_are_in_brackets():
    if not has_ipv6():
        with pytest.raises((OSError, DumpsimError)), Hub(1, address="[::1]:0"):
            pass
        return
    with Hub(1, address="[::1]:0") as made:
        host, _, port = made.address.rpartition(":")
        assert (host, int(port) > 0) == ("[::1]", True)
        peer = Peer(made)
        assert peer.hello()[0]["kind"] == "welcome"
        peer.socket.close()
