"""The hub of a job whose ranks are processes: accepts their connections, and notices when one of them ends."""

import errno
import fcntl
import os
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from types import TracebackType
from typing import Any, Self

from dumpsim.core.errors import BadInputError, DumpsimError, public_name
from dumpsim.core.partname import machine
from dumpsim.world.exchange import Ending, Exchange
from dumpsim.world.segment import Segment
from dumpsim.world.wire import ADDRESS, LONGEST, TOKEN, Frames, WireError, encode, encode_error, take

__all__ = ["ADDRESS", "LOCK_BYTES", "TOKEN", "Hub", "connect_timeout_s", "endpoint"]

LOCK_BYTES = 1 << 12  # offset of the ranks' locks in the segment of locks

_POLL_S = 0.05  # between two checks of the locks
_FOREVER_S = 1e9
_GREETING_S = 5.0  # for a hello
_STRANGERS = 64  # connections without a hello, in addition to the number of ranks
_ENDED = "its process has ended"
_QUEUE = 1 << 28  # limit of unsent bytes for a rank that does not read


def endpoint(address: str) -> tuple[int, Any]:
    """Return family and address of a socket.

    Raises
    ------
    BadInputError
        For anything but ``unix:@NAME``, ``unix:/PATH`` and ``HOST:PORT``.

    Examples
    --------
    >>> endpoint("127.0.0.1:8118")[1], endpoint("unix:@job")[1]
    (('127.0.0.1', 8118), '\\x00job')
    """
    scheme, _, rest = address.partition(":")
    if scheme == "unix" and rest[:1] in ("@", "/") and 1 < len(rest) < 100:
        return socket.AF_UNIX, "\0" + rest[1:] if rest[0] == "@" else rest
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if host and port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 1 << 16:
        return socket.AF_INET6 if ":" in host else socket.AF_INET, (host, int(port))
    raise BadInputError(
        f"{address!r} is not the address of a hub", where=ADDRESS, allowed=["unix:@NAME", "unix:/PATH", "HOST:PORT"]
    )


@dataclass(slots=True, eq=False)
class _Connection:
    """An open connection, of a rank or of a process that has not sent its hello."""

    socket: socket.socket
    since: float
    frames: Frames = field(default_factory=Frames)
    unsent: bytearray = field(default_factory=bytearray)
    rank: int = -1  # -1 until the hello
    pid: int = 0
    locked: bool = False  # the rank holds its lock
    sent: int = 0  # number of messages
    closing: bool = False  # close it after the unsent bytes


class Hub:
    """The server of a job: listens from the start, and serves until all ranks have ended.

    Parameters
    ----------
    size : int
        Ranks of the job.
    address : str
        ``unix:@NAME`` (no file, Linux), ``unix:/PATH`` or ``HOST:PORT``; port 0 takes a free one. By default a unique
        name.
    token : str, optional
        The secret that ranks must send; by default a new one. Empty: every connection is accepted.
    watchdog_s : float
        Wall-clock seconds without a message of any rank, while ranks wait for others, after which the job is given up.
        The limit is long because a rank may compile, or prepare its data, for minutes.
    connect_s : float, optional
        Seconds within which all ranks must connect; by default ``MS_TOPO_TIMEOUT``, then ``HCCL_CONNECT_TIMEOUT``, then
        120.
    environment : mapping, optional
        The environment with these two variables, by default the process's.
    report : callable, optional
        ``report(rank, ending)``, called in the hub's thread whenever a rank ends.
    spread : bool
        Whether ranks may run on other machines: then only their connections show that they have ended.

    Attributes
    ----------
    address, token : str
        The values that ranks need to connect.
    explain : callable or None
        ``explain(rank)`` returns why the process of a rank has ended; called in the hub's thread.
    endings : dict of int to Ending
        The endings of the ranks that have ended.

    Raises
    ------
    BadInputError
        For an address that is in use or invalid.

    Examples
    --------
    >>> with Hub(2) as hub:
    ...     sorted(hub.environment(1))
    ['DEVICE_ID', 'DUMPSIM_HUB', 'DUMPSIM_HUB_TOKEN', 'RANK_ID', 'RANK_SIZE']
    """

    def __init__(
        self,
        size: int,
        *,
        address: str = "",
        token: str | None = None,
        watchdog_s: float = 600.0,
        connect_s: float | None = None,
        environment: Mapping[str, str] | None = None,
        report: Callable[[int, Ending], None] | None = None,
        spread: bool = False,
    ) -> None:
        if size < 1:
            raise BadInputError(f"{size} is not a number of ranks", where="ranks", allowed=["1 or more"])
        self.size = size
        self.token = secrets.token_hex(16) if token is None else token
        self.watchdog_s = watchdog_s
        self.connect_s = (
            connect_timeout_s(os.environ if environment is None else environment) if connect_s is None else connect_s
        )
        self.address = address or f"unix:@dumpsim-{secrets.token_hex(8)}"
        self.explain: Callable[[int], str | None] | None = None
        self._report = report
        self._spread = spread
        self._exchange = Exchange(size, self._post, self._ended, spread=spread)
        self.endings = self._exchange.endings
        self.results = self._exchange.results
        self._listening = self._listen()
        self._locks = Segment.create("dumpsim ranks", LOCK_BYTES + size)
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._connections: dict[int, _Connection] = {}  # by file descriptor
        self._ranks: dict[int, _Connection] = {}
        self._lost: list[tuple[int, str]] = []  # from other threads
        self._started = time.monotonic()
        self._last_message = self._started
        self._closing = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def _listen(self) -> socket.socket:
        family, place = endpoint(self.address)
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            if family != socket.AF_UNIX:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(place)
            listening.listen(min(4096, self.size + _STRANGERS))
        except OSError as error:
            listening.close()
            reason = "is in use already" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
            raise BadInputError(
                f"the address {self.address} {reason}",
                where="hub of the job",
                allowed=["another port, or 0 for a free one"],
            ) from error
        listening.setblocking(False)
        if family != socket.AF_UNIX:
            host, port = listening.getsockname()[:2]
            self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return listening

    # ----------------------------------------------------------- for launchers
    def environment(self, rank: int) -> dict[str, str]:
        """Return the environment variables that make a process that rank."""
        own = {"RANK_ID": str(rank), "RANK_SIZE": str(self.size), "DEVICE_ID": str(rank)}
        return {ADDRESS: self.address, TOKEN: self.token, **own}

    def start(self) -> Self:
        """Serve in a thread of this process."""
        self._thread = threading.Thread(target=self.serve, name="dumpsim hub", daemon=True)
        self._thread.start()
        return self

    def lost(self, rank: int, why: str) -> None:
        """Report that the process of a rank has ended, and why: ``exit code 3``. For launchers, from any thread.

        It has no effect if the rank has left normally.
        """
        self._lost.append((rank, why))
        self._wake()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the job is over; return whether it is."""
        return self._over.wait(timeout_s)

    def close(self) -> None:
        """Stop serving; ranks that still run fail at their next wait."""
        self._closing = True
        self._wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._shut()

    def abandon(self) -> None:
        """Close the descriptors in a forked child of the hub's process, without an effect on the job."""
        for connection in self._connections.values():
            connection.socket.close()
        self._listening.close()
        self._selector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wake(self) -> None:
        with suppress(OSError):  # full, or closed
            os.write(self._wake_write, b"!")

    def _shut(self) -> None:
        if self._wake_read < 0:
            return
        for connection in list(self._connections.values()):
            connection.socket.close()
        self._connections.clear()
        self._selector.close()
        self._listening.close()
        family, place = endpoint(self.address)
        if family == socket.AF_UNIX and place[0] != "\0":
            with suppress(OSError):
                os.unlink(place)
        self._locks.close()
        self._exchange.close()
        for descriptor in (self._wake_read, self._wake_write):
            os.close(descriptor)
        self._wake_read = self._wake_write = -1
        self._over.set()

    # ------------------------------------------------------------------ serving
    def serve(self) -> None:
        """Serve until all ranks have ended, or `close`."""
        try:
            while not self._closing and not (self._exchange.over and not self._unsent()):
                self._turn()
        finally:
            for connection in list(self._connections.values()):
                self._drop(connection, "")
            self._over.set()

    def _turn(self) -> None:
        """Handle the events that have arrived, and check that the ranks are alive."""
        for key, _ in self._selector.select(_POLL_S if self._ranks else min(1.0, self.connect_s / 4)):
            if key.fileobj is self._listening:
                self._accept()
            elif key.fd == self._wake_read:
                os.read(self._wake_read, 4096)
            elif (connection := self._connections.get(key.fd)) is not None:
                self._flush(connection)
                self._read(connection)
        while self._lost:
            rank, why = self._lost.pop(0)
            connection = self._ranks.get(rank)
            if connection is None:
                self._exchange.died(rank, why)
            else:  # handle the messages that it has sent before
                self._exchange.reasons[rank] = why
                self._read(connection)
                self._drop(connection, why)
        self._look()
        self._exchange.settle()

    def _unsent(self) -> bool:
        return any(connection.unsent for connection in self._connections.values())

    def _accept(self) -> None:
        try:
            accepted, _ = self._listening.accept()
        except OSError:  # the connection is closed already, or no descriptor is left
            return
        if sum(one.rank < 0 for one in self._connections.values()) >= _STRANGERS + self.size:
            accepted.close()
            return
        accepted.setblocking(False)
        if accepted.family != socket.AF_UNIX:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[accepted.fileno()] = _Connection(accepted, time.monotonic())
        self._selector.register(accepted, selectors.EVENT_READ)

    def _read(self, connection: _Connection) -> None:
        while True:
            try:
                received = connection.socket.recv(1 << 18)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                received = b""
            if not received:
                self._drop(connection, _ENDED)
                return
            self._last_message = time.monotonic()
            try:
                for message in connection.frames.feed(received):
                    if connection.rank < 0:
                        self._greet(connection, message)
                    elif message["kind"] == "locked":
                        connection.locked = connection.pid != self._pid  # a process cannot test its own lock
                    else:
                        self._exchange.receive(connection.rank, message)
                    if connection.closing:
                        return
            except (WireError, KeyError, TypeError, ValueError, IndexError) as error:
                text = error.explain() if isinstance(error, DumpsimError) else f"{public_name(error)}: {error}"
                self._drop(connection, f"it has sent an invalid message: {text}")
                return

    def _greet(self, connection: _Connection, message: dict[str, Any]) -> None:
        """Accept a connection as that of a rank, or refuse it."""
        if message["kind"] != "hello":
            raise WireError("the first message is not a hello")
        token, rank, size = take(message, "token", str), take(message, "rank", int), take(message, "size", int)
        pid = take(message, "pid", int)
        error: DumpsimError | None = None
        if self.token and not compare_digest(token.encode(), self.token.encode()):
            error = BadInputError(f"{TOKEN} does not match the token of the job", where=self.address)
        elif not self._spread and take(message, "machine", str) != machine():
            error = BadInputError(
                f"rank {rank} runs on another machine or in another container than the hub of the job",
                where=self.address,
                allowed=["one machine; the transport 'mpi' for several"],
            )
        elif not 0 <= rank < self.size:
            error = BadInputError(
                f"rank {rank} is outside of a job of {self.size} ranks",
                where="RANK_ID",
                allowed=[f"0 to {self.size - 1}"],
            )
        elif size != self.size:
            error = BadInputError(
                f"rank {rank} states {size} ranks, the job has {self.size}", where="RANK_SIZE", allowed=[str(self.size)]
            )
        elif rank in self._ranks:
            error = BadInputError(
                f"rank {rank} is connected already, as process {self._ranks[rank].pid}; this is process {pid}",
                where="RANK_ID",
            )
        elif rank in self.endings:
            error = BadInputError(f"rank {rank} of the job has ended: {self.endings[rank].text}", where="RANK_ID")
        if error is not None:
            connection.closing = True
            self._send(connection, {"kind": "refused", "error": encode_error(error)})
            return
        connection.rank, connection.pid = rank, pid
        connection.frames.limit = LONGEST
        self._ranks[rank] = connection
        self._post(rank, {"kind": "welcome", "locks": "" if self._spread else self._locks.path, "pid": self._pid})
        self._exchange.joined(rank, pid)

    def _post(self, rank: int, message: dict[str, Any]) -> int:
        """Send a message to a rank, if it is connected; return how many were sent to it so far."""
        connection = self._ranks.get(rank)
        if connection is None:
            return 0
        connection.sent += 1
        self._send(connection, message)
        return connection.sent

    def _send(self, connection: _Connection, message: dict[str, Any]) -> None:
        connection.unsent += encode(message)
        self._flush(connection)

    def _flush(self, connection: _Connection) -> None:
        try:
            while connection.unsent:
                del connection.unsent[: connection.socket.send(connection.unsent)]
        except (BlockingIOError, InterruptedError):
            if len(connection.unsent) > _QUEUE:
                connection.unsent.clear()
        except OSError:  # a read will notice the end
            connection.unsent.clear()
        if connection.socket.fileno() not in self._connections:
            return
        if connection.closing and not connection.unsent:
            self._drop(connection, "")
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        self._selector.modify(connection.socket, wanted)

    def _drop(self, connection: _Connection, why: str) -> None:
        """Close a connection; unless its rank has left, it has died."""
        if self._connections.pop(connection.socket.fileno(), None) is None:
            return
        self._selector.unregister(connection.socket)
        connection.socket.close()
        if connection.rank >= 0:
            del self._ranks[connection.rank]
            if why == _ENDED and self.explain is not None and connection.rank not in self.endings:
                why = self.explain(connection.rank) or why
            self._exchange.died(connection.rank, why)

    # ----------------------------------------------------------------- liveness
    def _look(self) -> None:
        """Find ended processes whose socket a child still holds, connections without a hello, and silence."""
        now = time.monotonic()
        for connection in list(self._connections.values()):
            if connection.rank < 0 and now - connection.since > _GREETING_S:
                self._drop(connection, "")
            elif connection.locked and not self._spread and self._free(connection.rank):
                self._read(connection)
                self._drop(connection, _ENDED)
        if now - self._started > self.connect_s:
            self._exchange.missing(self.connect_s)
        if now - self._last_message > self.watchdog_s:
            self._last_message = now
            self._exchange.silent(self.watchdog_s)

    def _free(self, rank: int) -> bool:
        """Whether nobody holds the lock of a rank."""
        try:
            fcntl.lockf(self._locks.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCK_BYTES + rank)
        except OSError:
            return False
        fcntl.lockf(self._locks.descriptor, fcntl.LOCK_UN, 1, LOCK_BYTES + rank)
        return True

    def _ended(self, rank: int, ending: Ending) -> None:
        if self._report is not None:
            self._report(rank, ending)


def connect_timeout_s(environment: Mapping[str, str]) -> float:
    """Return how long ranks may take to connect, and how long a rank waits for the hub.

    A negative ``MS_TOPO_TIMEOUT`` means no limit. A value that is not a number is ignored here; HCCL's own variable is
    checked elsewhere.

    Examples
    --------
    >>> connect_timeout_s({"MS_TOPO_TIMEOUT": "30"}), connect_timeout_s({"MS_TOPO_TIMEOUT": "-1"}) > 1e8
    (30.0, True)
    >>> connect_timeout_s({})
    120.0
    """
    for name in ("MS_TOPO_TIMEOUT", "HCCL_CONNECT_TIMEOUT"):
        text = environment.get(name, "")
        if name == "MS_TOPO_TIMEOUT" and text[:1] == "-" and text[1:].isdigit():
            return _FOREVER_S
        if text.isascii() and text.isdigit() and len(text) < 8:
            return float(text)
    return 120.0
