"""A dump from init to close: the base class of the sessions of all frameworks."""

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
    """Whether the run flushes files to disk (``--durable``)."""
    return RunSettings.from_environment(current().environment).durable


class ApiSession(Recorder):
    """Base class of the session of a framework.

    Parameters
    ----------
    output : Output
    stacks : Stacks
    exact : bool
        Behave as 1.0.17 in everything that affects names, order and numbers.
    retain_backward : bool
        Record gradients with respect to recorded outputs too.

    Attributes
    ----------
    skipped : Counter
        Number of values that were not recorded, by reason.
    closed : bool
        Whether the session has been closed.
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
        output.set_callbacks(self._write_stacks, self.flush)
        self._lines_at_start = 0

    def __enter__(self) -> "ApiSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, request: Request, memory: Memory | None = None) -> None:
        """Record from here; counters continue."""
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
        """Unsubscribe, write everything, and end the background thread."""
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
        """Delete old files before the first record."""
        with self.output.interrupts, self._writing:
            if self.begun:
                return
            # first, so that a directory that cannot be created is reported even without a stop
            current().at_close(self._at_exit)
            try:
                self.output.begin()
            finally:
                self.begun = True

    def skip(self, reason: str, number: int = 1) -> None:
        """Count values or calls that were not recorded."""
        if number:
            self.skipped[reason] += number

    # implemented by subclasses

    def listen(self) -> None:
        """Subscribe to the calls that are needed now; called after each start and stop."""

    def leave(self) -> None:
        """Unsubscribe for good."""
        raise NotImplementedError

    # private

    def _write_stacks(self) -> bool:
        """Write the stacks if they have changed, unless another thread writes everything."""
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
        """Write everything when the process ends without stop, also after an error."""
        try:
            self.flush()
        except DumpsimError as error:
            LOG.warning("[*User Warning*] %s", "; ".join([str(error), *getattr(error, "__notes__", ())]))
        finally:
            self.output.release()

    def _check_open(self) -> None:
        if self.closed:
            raise ScriptRuntimeError("this API dump has been closed", where="api_dump", code="DS-ADP-013")
