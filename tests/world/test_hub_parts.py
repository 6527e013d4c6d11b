"""Unit tests of the hub and of launched processes: addresses, queues, lines, ends."""

import errno
import io
import math
import os
import selectors
import signal
import socket
import time
from types import SimpleNamespace

import pytest

from dumpsim.core.errors import BadInputError, DeviceError, PeerError
from dumpsim.world import hub as hubs
from dumpsim.world.hub import Hub, _Connection, connect_timeout_s, endpoint
from dumpsim.world.processes import Processes, _Member, reason


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
        sockets = [socket.socket(family) for _ in range(3)]
        for one in sockets:
            one.connect(place)
            hub._accept()
        assert len(hub._connections) == 2  # one more than ranks
        assert sockets[2].recv(1) == b""  # closed
        for one in sockets:
            one.close()
        monkeypatch.setattr(hubs, "_GREETING_S", -1.0)
        hub._look()
        assert hub._connections == {}
        hub._listening.setblocking(False)
        hub._accept()  # nobody is there any longer
        assert hub._connections == {}


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
