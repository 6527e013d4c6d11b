"""The files of an API dump: info lines, stacks, and arrays, which a background thread writes.

::

    <output_path>/rank<r>/                    0700
        .dumpsim-claim-<framework>            during the dump
        <framework>_api_dump/<record>.npy     0700 / 0400
        <framework>_api_dump_info.pkl         0600, text
        <framework>_api_dump_stack.json       0600
"""

import errno
import logging
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from io import BytesIO

import numpy as np

from dumpsim._ext.recorder import Lines
from dumpsim.archive.claim import Claim, claim
from dumpsim.archive.sink import Sink
from dumpsim.codecs.apidump import file_name, lines_of, stack_text
from dumpsim.core.errors import BadInputError, DumpsimError, DumpWriteError
from dumpsim.frontends.apidump.interrupts import Interrupts

__all__ = ["Output", "npy_header"]

LOG = logging.getLogger("troubleshooter.log")

_LINES = 1 << 9  # number of info lines that are formatted and written together
# errors that concern one file only, not the following ones; None: the name is invalid
_OF_ONE_FILE = frozenset({errno.EFBIG, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EINTR, None})
_INTERVAL = 0.5  # seconds after which lines and stacks are written, so that a killed process loses little
_SHARE = 50  # writing stacks takes at most 1 / _SHARE of the time
_PENDING = 256 << 20  # largest number of queued bytes of arrays


@lru_cache(maxsize=4096)
def npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Return the header that numpy writes for an array in C order.

    Examples
    --------
    >>> npy_header("<f4", (2, 3))[10:69]
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    """
    buffer = BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


class Output:
    """Writes one rank's dump of one framework.

    Parameters
    ----------
    root : path
        The user's ``output_path``; created here with its rank directory.
    framework : str
        ``torch``, ``mindspore`` or ``mindtorch``.
    rank : int
    pending : int
        Largest number of queued bytes of arrays; beyond it the caller waits for the disk.
    durable : bool
        See `Sink`.

    Attributes
    ----------
    lines : Lines
        Queue of info lines: a record's name, and its line from the type on, as formatted by `tail_of`.
    files : int
        Number of arrays so far.
    """

    def __init__(
        self,
        root: "str | os.PathLike[str]",
        framework: str,
        rank: int,
        *,
        pending: int = _PENDING,
        durable: bool = False,
    ) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self.framework = framework
        self.info = f"{framework}_api_dump_info.pkl"
        self.stack = f"{framework}_api_dump_stack.json"
        self.lines = Lines(_LINES, self._write_lines)
        self.files = 0
        self.interrupts = Interrupts(self._interrupted, self._release_claim)
        self._sink = Sink(file_mode=0o600, durable=durable)
        self._durable = durable
        self._begun = False
        self._refused = False  # another process owns the directory: nothing is written
        self._claim: Claim | None = None
        self._stacks: Callable[[], bool] | None = None
        self._stacks_due = 0.0
        self._finish: Callable[[], None] = self.flush
        self._lock = threading.Lock()
        self._error: DumpsimError | None = None
        self._pid = os.getpid()
        self._pending = pending
        self.rank = -1
        self.set_rank(rank)

    def set_rank(self, rank: int) -> None:
        """Use the directory of a rank, unless the dump has begun."""
        if rank == self.rank or self._begun:
            return
        self.rank = rank
        self.rank_directory = f"{self.root}/rank{rank}"
        self.array_directory = f"{self.rank_directory}/{self.framework}_api_dump"
        self._queue = _Queue(self.array_directory, self._pending, durable=self._durable, tick=self._tick)
        self._sink.make(self.rank_directory)

    @property
    def is_foreign(self) -> bool:
        """Whether this is a child forked during the dump: only the parent writes, which may have held our locks."""
        return os.getpid() != self._pid

    def begin(self) -> None:
        """Delete the files of an earlier run before the first record. [spec api_dump 1.2]

        Raises
        ------
        BadInputError
            If another process writes this dump.
        """
        if self._begun:
            return
        try:
            self.take()
        except BadInputError:
            self._refused = True
            raise
        self._begun = True
        shutil.rmtree(self.array_directory, ignore_errors=True)
        for name in (self.info, self.stack):
            if self._sink.exists(self.rank_directory, name):
                os.unlink(f"{self.rank_directory}/{name}")
        self._sink.make(self.array_directory)
        self._queue.start()

    def set_callbacks(self, stacks: Callable[[], bool], finish: Callable[[], None]) -> None:
        """Set the callbacks that are used during the dump.

        Parameters
        ----------
        stacks : callable
            Writes the stack file if it has changed, and returns whether it has; called by the background thread.
        finish : callable
            Writes everything; called when a signal is about to end the process.
        """
        self._stacks, self._finish = stacks, finish

    def take(self) -> None:
        """Claim the rank's directory for this process.

        Raises
        ------
        BadInputError
            If another process writes this dump.
        """
        if self._claim is None and not self.is_foreign:
            self._claim = claim(self.rank_directory, self.framework)

    def release(self) -> None:
        """Release the claim and restore the signal handlers; later records are still written."""
        self.interrupts.restore()
        self._release_claim()

    def array(self, name: str, parts: Sequence["bytes | memoryview"]) -> None:
        """Queue one npy file; the bytes must not change until they are written."""
        self.files += 1
        if self._refused:
            return
        with self.interrupts:
            self._queue.put(file_name(name), parts)

    def stacks(self, stacks: Mapping[str, Sequence[str]]) -> None:
        """Write the whole stack file."""
        if self._refused:
            return
        text = stack_text(stacks).encode()
        with self.interrupts, self._lock:
            self._sink.write(self.rank_directory, self.stack, [text], mode=0o600)

    def flush(self) -> None:
        """Write everything recorded so far.

        Raises
        ------
        DumpWriteError
            The first error of the background thread.
        """
        if self.is_foreign:
            return
        with self.interrupts:
            self._write_lines()
            with self._lock:
                error, self._error = self._error, None
                try:
                    self._sink.settle()
                except DumpsimError as failure:
                    error = error or failure
            try:
                self._queue.flush()
            except DumpsimError as failure:
                if error is not None:
                    failure.add_note(str(error))
                raise
            if error is not None:
                raise error

    def close(self) -> None:
        """Flush, and stop the background thread."""
        if self.is_foreign:
            return
        try:
            self.flush()
        finally:
            self.release()
            self._queue.close()

    def _write_lines(self) -> None:
        if self.is_foreign or self._refused:
            self.lines.take()
            return
        with self.interrupts, self._lock:
            names, tails = self.lines.take()
            if names:
                try:
                    self._sink.append(self.rank_directory, self.info, lines_of(names, tails))
                except DumpsimError as error:  # raised by the next flush, not in the user's forward
                    self._error = self._error or error

    def _tick(self) -> None:
        """Write lines and stacks; called periodically by the background thread."""
        self._write_lines()
        begun = time.monotonic()
        if self._stacks is None or begun < self._stacks_due:
            return
        try:
            written = self._stacks()
        except DumpsimError:  # the next flush tries again and raises
            written = True
        if written:  # the whole file is written each time, so the interval grows with its size
            now = time.monotonic()
            self._stacks_due = now + _SHARE * (now - begun)

    def _interrupted(self) -> None:
        """Write everything, since the process is about to end."""
        try:
            self._finish()
        except Exception as error:
            LOG.warning("[*User Warning*] %s", "; ".join([str(error), *getattr(error, "__notes__", ())]))

    def _release_claim(self) -> None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None


class _Queue:
    """A queue of arrays to write, bounded in bytes; its thread also calls `tick` periodically."""

    def __init__(self, directory: str, limit: int, *, durable: bool, tick: Callable[[], None]) -> None:
        self._directory = directory
        self._limit = limit
        self._tick = tick
        self._sink = Sink(file_mode=0o400, durable=durable)
        self._waiting: deque[tuple[str, Sequence[bytes | memoryview], int]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._refused = False  # the directory is not writable: the remaining files are dropped
        self._dropped = 0
        self._error: DumpsimError | None = None

    def start(self) -> None:
        with self._changed:
            if self._thread is None:
                self._ending = False
                self._thread = threading.Thread(target=self._run, name="dumpsim-apidump", daemon=True)
                self._thread.start()

    def put(self, name: str, parts: Sequence["bytes | memoryview"]) -> None:
        size = sum(part.nbytes if isinstance(part, memoryview) else len(part) for part in parts)
        if self._thread is None:
            self.start()
        with self._changed:
            while self._bytes and self._bytes + size > self._limit:
                self._changed.wait()
            self._waiting.append((name, parts, size))
            self._bytes += size
            self._changed.notify_all()

    def flush(self) -> None:
        with self._changed:
            while self._bytes or self._waiting:
                if self._thread is None or not self._thread.is_alive():
                    break
                self._changed.wait(1.0)
            error, self._error = self._error, None
            dropped, self._dropped = self._dropped, 0
            self._refused = False
        if error is not None:
            if dropped:
                error.add_note(f"{dropped} files after it were not written either")
            raise error

    def close(self) -> None:
        with self._changed:
            thread, self._thread = self._thread, None
            self._ending = True
            self._changed.notify_all()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        due = time.monotonic() + _INTERVAL
        while True:
            with self._changed:
                while not self._waiting and (left := due - time.monotonic()) > 0:
                    if self._ending:
                        return
                    self._changed.wait(left)
                name, parts, size = self._waiting[0] if self._waiting else ("", (), 0)
            if time.monotonic() >= due:
                self._tick()
                due = time.monotonic() + _INTERVAL
            if not name:
                continue
            error: DumpsimError | None = None
            try:
                if self._refused:
                    self._dropped += 1
                else:
                    self._sink.write(self._directory, name, parts)
            except DumpsimError as failure:
                error = failure
                self._refused = getattr(failure, "errno", None) not in _OF_ONE_FILE
            except Exception as failure:
                error = DumpWriteError(repr(failure), where=f"{self._directory}/{name}", code="DS-ARC-010")
            with self._changed:
                self._waiting.popleft()
                self._bytes -= size
                self._dropped += error is not None and self._error is not None
                self._error = self._error or error
                self._changed.notify_all()
