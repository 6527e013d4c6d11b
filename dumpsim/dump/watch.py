"""Which operators are dumped: all of them, those that overflow, or the one that fails. One class for each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from dumpsim.core.events import TaskEvent
from dumpsim.device.task import UNKNOWN_TASK_ID
from dumpsim.dump import decide
from dumpsim.dump.capture import Capture, Held
from dumpsim.dump.convert import Conversion, convert
from dumpsim.dump.iteration import Moment
from dumpsim.dump.measure import is_finite
from dumpsim.dump.overflowrecord import record_of

__all__ = ["Everything", "Failed", "Overflowed", "Watch", "watch"]

_CHECKED = ("float16", "float32", "bfloat16")  # outputs that a finite check looks at [spec mindspore 5.1]


class Watch(Protocol):
    """A debug mode."""

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """A selected kernel is about to run."""
        ...

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """A selected kernel has run."""
        ...


class Everything:
    """op_debug_mode 0: every operator."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._held = Held()
        before = capture.profile.inplace == "before"
        apart = capture.unit.splits and capture.profile.stamps == "tensor"
        self._first = before and apart and not capture.config.asynchronous
        self._holds = before and not self._first

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Inputs, or at least what the kernel overwrites of them."""
        if self._first:
            self._capture.inputs(event, moment)
        elif self._holds:
            self._held.keep(event)

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Outputs, and inputs where they were not dumped before."""
        if event.error is not None:
            return
        if self._first:
            self._capture.outputs(event, moment)
            return
        seen = self._held.give(event)
        self._capture.when(event, lambda: self._capture.both(seen, moment))


class Overflowed:
    """op_debug_mode 3: operators whose results overflow, with all their tensors."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._held = Held()
        self._found = 0
        self._warned: set[str] = set()  # number types that were told not to be tested
        detectors: dict[str, Callable[[TaskEvent], bool]] = {"finite": self._not_finite, "flags": _flagged}
        self._overflows = detectors[capture.profile.overflow_check]
        self._records = capture.profile.overflow_check == "flags"

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Keep what the kernel overwrites."""
        self._held.keep(event)

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Look for an overflow, and dump the operator."""
        seen = self._held.give(event)
        if event.error is None:
            self._capture.when(event, lambda: self._examine(seen, moment))

    def _examine(self, event: TaskEvent, moment: Moment) -> None:
        limit = self._capture.config.overflow_number
        if (limit and self._found >= limit) or not self._overflows(event):
            return
        self._found += 1
        capture = self._capture
        if self._records:
            capture.overflow(event, moment, record_of(event, capture.opdebug))
            if capture.profile.overflow_ids == "debug":
                event = replace(event, task_id=UNKNOWN_TASK_ID, stream_id=UNKNOWN_TASK_ID)
        capture.both(event, moment)

    def _not_finite(self, event: TaskEvent) -> bool:
        """Whether an output holds an infinity or a NaN; no status register is read. [spec mindspore 5.1]"""
        profile = self._capture.profile
        chosen = decide.choose_outputs(profile, event.op_type, event.outputs, useless=self._capture.useless)
        for ref in chosen.wanted:
            kind = ref.dtype.name
            if kind in _CHECKED:
                if not is_finite(convert(ref, _PLAIN).values):
                    return True
            elif kind not in self._warned:
                self._warned.add(kind)
                self._capture.log("WARNING", "CheckOverflow", f"Data type {kind} is not supported by AllFinite")
            elif profile.overflow_scan == "stops":  # quirk: the rest of the outputs is not looked at
                return False
        return False


_PLAIN = Conversion()


class Failed:
    """op_debug_mode 4: the inputs of the operator that the device stopped at. [spec mindspore 5.3]"""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Nothing has failed yet."""

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Save the inputs of a kernel with an error: the stream has stopped, so this is not put on it."""
        if event.error is not None:
            self._capture.log("ERROR", "DumpDataForException", f"Sync stream failed at {event.full_name}")
            self._capture.failed(event, moment)


class Nothing:
    """op_debug_mode 4 where no operator is saved: a device that cannot, or CANN saves what is left of it."""

    def __init__(self, capture: Capture) -> None:
        profile = capture.profile
        self._log = capture.log
        self._tally = capture.ledger.tally
        self._elsewhere = profile.exception == "lite"
        self._text = ""
        if profile.exception == "none":
            self._text = f"Abnormal dump is not supported on {profile.target} backend."

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Nothing to do."""

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """The vendor's warning, one a kernel. [spec mindspore 1.2]"""
        if self._elsewhere and event.error is not None:
            self._tally.elsewhere = True
            self._tally.note(f"{event.full_name} failed: what CANN saves of it is below extra-info")
        if self._text:
            self._log("WARNING", "CPUDataDump", self._text)


def watch(capture: Capture) -> Watch:
    """The debug mode that a config asks for.

    quirk: a device without overflow check saves everything in op_debug_mode 3. [spec mindspore 1.2]
    """
    mode = capture.config.op_debug_mode
    if mode == 3 and capture.profile.overflow_check != "none":
        return Overflowed(capture)
    if mode == 4:
        return Failed(capture) if capture.profile.exception == "inputs" else Nothing(capture)
    return Everything(capture)


def _flagged(event: TaskEvent) -> bool:
    """Whether the device raised its flag."""
    return event.overflow
