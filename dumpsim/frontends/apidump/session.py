"""A dump from init to close: what the sessions of all frameworks share."""

import logging
import threading
from collections import Counter

from dumpsim._ext.recorder import Recorder
from dumpsim.core.errors import DumpsimError, ScriptRuntimeError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.apidump.output import Output
from dumpsim.frontends.apidump.selection import Memory, Request, Selection
from dumpsim.frontends.apidump.stack import Stacks
from dumpsim.world.context import current

__all__ = ["ApiSession", "is_durable"]

LOG = logging.getLogger("troubleshooter.log")


def is_durable() -> bool:
    """Whether the run was asked to bring files to stable storage."""
    return RunSettings.from_environment(current().environment).durable


class ApiSession(Recorder):
    """What a framework's side of an API dump builds on.

    Parameters
    ----------
    output : Output
    stacks : Stacks
    exact : bool
        As 1.0.17 in everything that shows in names, order and numbers.
    retain_backward : bool
        Also gradients with respect to recorded outputs.

    Attributes
    ----------
    skipped : Counter
        Values that were not recorded, by reason.
    closed : bool
        No more starts.
    """

    stacks: Stacks

    def __init__(self, output: Output, stacks: Stacks, *, exact: bool, retain_backward: bool) -> None:
        super().__init__(output.lines, stacks, exact=exact, retain_backward=retain_backward)
        self.output = output
        self.skipped: Counter[str] = Counter()
        self.closed = False
        self.selection = Selection(Request())
        self.ask(Request())
        self._writing = threading.RLock()
        output.between(self._write_stacks, self.flush)
        self._lines_at_start = 0

    def __enter__(self) -> "ApiSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, request: Request, memory: Memory | None = None) -> None:
        """Record from here; counters go on where they were."""
        self._check_open()
        self.ask(request)
        self.selection = Selection(request, exact=self.exact, memory=memory)
        self.recording = True
        if self.begun:
            self.output.take()
        self.output.interrupts.install()
        self._lines_at_start = self.lines.total
        self.listen()

    def stop(self) -> None:
        """Stop recording, and write everything.

        Raises
        ------
        DumpWriteError
            If something could not be written.
        """
        self._check_open()
        self.recording = False
        self.listen()
        try:
            self.flush()
        finally:
            self.output.release()

    @property
    def recorded(self) -> bool:
        """Whether anything was recorded since the last start."""
        return self.lines.total > self._lines_at_start

    def flush(self) -> None:
        """Write what has been recorded so far; also done at stop and at the end of the process."""
        if self.output.is_foreign:
            return
        with self.output.interrupts, self._writing:
            try:
                if self.stacks.changed:
                    self.output.stacks(self.stacks.texts())
            finally:
                self.output.flush()

    def close(self) -> None:
        """Stop listening, and end the thread that writes; nothing remains."""
        if self.closed:
            return
        self.recording = False
        self.closed = True
        self.leave()
        try:
            self.flush()
        finally:
            self.output.close()
            current().cancel(self._at_exit)

    def begin(self) -> None:
        """Make room before the first record."""
        with self.output.interrupts, self._writing:
            if self.begun:
                return
            current().at_close(self._at_exit)  # first: it reports a directory that cannot be made, if nobody stops
            try:
                self.output.begin()
            finally:
                self.begun = True

    def skip(self, reason: str, number: int = 1) -> None:
        """Count what was not recorded."""
        if number:
            self.skipped[reason] += number

    # what the framework's side does

    def listen(self) -> None:
        """Hear the calls that matter now; after each start and stop."""

    def leave(self) -> None:
        """Unsubscribe for good."""
        raise NotImplementedError

    # inside

    def _write_stacks(self) -> bool:
        """Write the stacks where they have changed, unless somebody writes everything."""
        if not self.stacks.changed or not self._writing.acquire(blocking=False):
            return False
        try:
            self.output.stacks(self.stacks.texts())
        except DumpsimError:
            self.stacks.changed = True
            raise
        finally:
            self._writing.release()
        return True

    def _at_exit(self) -> None:
        """A process that ends without stop, by an error too, leaves whole files."""
        try:
            self.flush()
        except DumpsimError as error:
            LOG.warning("[*User Warning*] %s", "; ".join([str(error), *getattr(error, "__notes__", ())]))
        finally:
            self.output.release()

    def _check_open(self) -> None:
        if self.closed:
            raise ScriptRuntimeError("this API dump has been closed", where="api_dump", code="DS-ADP-013")
