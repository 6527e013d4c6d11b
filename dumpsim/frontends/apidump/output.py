"""The files of an API dump: info lines, stacks, and arrays that a thread of their own writes.

::

    <output_path>/rank<r>/                    0700
        <framework>_api_dump/<record>.npy     0700 / 0400
        <framework>_api_dump_info.pkl         0600, text
        <framework>_api_dump_stack.json       0600
"""

import errno
import os
import shutil
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO

import numpy as np

from dumpsim._ext.recorder import Lines
from dumpsim.archive.sink import Sink
from dumpsim.codecs.apidump import lines_of, stack_text
from dumpsim.core.errors import DumpsimError, DumpWriteError

__all__ = ["Output", "npy_header"]

_LINES = 1 << 9  # info lines that wait before they are spelt and written together
_OF_ONE_FILE = frozenset({errno.EFBIG, errno.ENAMETOOLONG})  # failures that say nothing of the files behind it
_PENDING = 256 << 20  # bytes of arrays that may wait for the disk


@lru_cache(maxsize=4096)
def npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    """The header that numpy writes for an array in C order.

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
        The user's ``output_path``; made here with its rank directory.
    framework : str
        ``torch``, ``mindspore`` or ``mindtorch``.
    rank : int
    pending : int
        Bytes of arrays that may wait; more makes the caller wait for the disk.

    Attributes
    ----------
    lines : Lines
        Takes info lines: a record's name, and its line from the type on, as `tail_of` spells it.
    files : int
        Arrays given so far.
    """

    def __init__(self, root: "str | os.PathLike[str]", framework: str, rank: int, *, pending: int = _PENDING) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self.framework = framework
        self.info = f"{framework}_api_dump_info.pkl"
        self.stack = f"{framework}_api_dump_stack.json"
        self.lines = Lines(_LINES, self._write_lines)
        self.files = 0
        self._sink = Sink(file_mode=0o600)
        self._begun = False
        self._lock = threading.Lock()
        self._error: DumpsimError | None = None
        self._pid = os.getpid()
        self._pending = pending
        self.rank = -1
        self.go(rank)

    def go(self, rank: int) -> None:
        """Into the directory of a rank; what has begun stays where it is."""
        if rank == self.rank or self._begun:
            return
        self.rank = rank
        self.rank_directory = f"{self.root}/rank{rank}"
        self.array_directory = f"{self.rank_directory}/{self.framework}_api_dump"
        self._queue = _Queue(self.array_directory, self._pending)
        self._sink.make(self.rank_directory)

    @property
    def is_foreign(self) -> bool:
        """Whether this is a child that was forked during the dump: its parent writes, and may have held our locks."""
        return os.getpid() != self._pid

    def begin(self) -> None:
        """Make room before the first record: what an earlier run left under these names goes. [spec api_dump 1.2]"""
        if self._begun:
            return
        self._begun = True
        shutil.rmtree(self.array_directory, ignore_errors=True)
        for name in (self.info, self.stack):
            if self._sink.exists(self.rank_directory, name):
                os.unlink(f"{self.rank_directory}/{name}")
        self._sink.make(self.array_directory)

    def array(self, name: str, parts: Sequence["bytes | memoryview"]) -> None:
        """One npy file; the bytes must stay as they are until they are written."""
        self.files += 1
        self._queue.put(f"{name}.npy", parts)

    def stacks(self, stacks: Mapping[str, Sequence[str]]) -> None:
        """The stack file, whole."""
        self._sink.write(self.rank_directory, self.stack, [stack_text(stacks).encode()], mode=0o600)

    def flush(self) -> None:
        """Everything given so far is on its way to the disk.

        Raises
        ------
        DumpWriteError
            The first failure of the thread that writes.
        """
        if self.is_foreign:
            return
        self._write_lines()
        self._sink.settle()
        error, self._error = self._error, None
        try:
            self._queue.flush()
        except DumpsimError as failure:
            if error is not None:
                failure.add_note(str(error))
            raise
        if error is not None:
            raise error

    def close(self) -> None:
        """Flush, and stop the thread."""
        if self.is_foreign:
            return
        try:
            self.flush()
        finally:
            self._queue.close()

    def _write_lines(self) -> None:
        if self.is_foreign:
            self.lines.take()
            return
        with self._lock:
            names, tails = self.lines.take()
            if names:
                try:
                    self._sink.append(self.rank_directory, self.info, lines_of(names, tails))
                except DumpsimError as error:  # not out of the user's forward, but of the next flush
                    self._error = self._error or error


class _Queue:
    """Arrays on their way to the disk, bounded by bytes."""

    def __init__(self, directory: str, limit: int) -> None:
        self._directory = directory
        self._limit = limit
        self._sink = Sink(file_mode=0o400)
        self._waiting: deque[tuple[str, Sequence[bytes | memoryview], int]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._refused = False  # the place takes no more files: they are not tried one by one
        self._dropped = 0
        self._error: DumpsimError | None = None

    def put(self, name: str, parts: Sequence["bytes | memoryview"]) -> None:
        size = sum(part.nbytes if isinstance(part, memoryview) else len(part) for part in parts)
        with self._changed:
            if self._thread is None:
                self._ending = False
                self._thread = threading.Thread(target=self._run, name="dumpsim-apidump", daemon=True)
                self._thread.start()
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
        while True:
            with self._changed:
                while not self._waiting:
                    if self._ending:
                        return
                    self._changed.wait()
                name, parts, size = self._waiting[0]
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
