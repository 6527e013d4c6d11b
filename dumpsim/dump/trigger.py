"""The conditions for the dump of an operator: it runs, its results overflow, or it fails; one class for each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from dumpsim.core.events import TaskEvent
from dumpsim.device.task import UNKNOWN_TASK_ID
from dumpsim.dump.capture import Capture, Planned, Snapshot, overlaps
from dumpsim.dump.convert import Conversion, convert
from dumpsim.dump.iteration import Moment
from dumpsim.dump.measure import is_finite
from dumpsim.dump.overflowrecord import record_of
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest

__all__ = ["Every", "Failure", "Never", "Overflow", "Trigger", "left_to_cann", "overlooks_saturation", "trigger_of"]

_CHECKED = ("float16", "float32", "bfloat16")  # types of outputs that are checked for overflow [spec mindspore 5.1]


class Trigger(Protocol):
    """Decides which selected operators are dumped."""

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Handle the start of a selected kernel."""
        ...

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Handle the end of a selected kernel."""
        ...


class Every:
    """Dumps every operator."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._snapshot = Snapshot()
        before = capture.profile.inplace == "before"
        apart = capture.unit.splits and capture.profile.stamps == "tensor"
        self._first = before and apart and not capture.request.asynchronous
        self._takes = before and not self._first

    def plans(self, event: TaskEvent) -> bool:
        """Return whether the dump of an operator is the same in every run."""
        copied = self._takes and any(ref.written or overlaps(ref, event.outputs) for ref in event.operands)
        return not copied and self._capture.plans(event)

    def parts(self, event: TaskEvent, moment: Moment) -> "tuple[Planned, Planned]":
        """Plan the dumps before and after the kernel, see `Capture.planned`."""
        planned = self._capture.planned
        if self._first:
            return planned(event, moment, outputs=False), planned(event, moment, inputs=False)
        return (None, ()), planned(event, moment)

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Dump the inputs, or copy those that the kernel overwrites."""
        if self._first:
            self._capture.inputs(event, moment)
        elif self._takes:
            self._snapshot.take(event)

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Dump the outputs, and the inputs unless they were dumped before."""
        if event.error is not None:
            return
        if self._first:
            self._capture.outputs(event, moment)
            return
        seen = self._snapshot.restore(event)
        self._capture.when(event, lambda: self._capture.both(seen, moment))


class Overflow:
    """Dumps operators whose results overflow, with all their tensors."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._snapshot = Snapshot()
        self._found = 0
        self._warned: set[str] = set()  # data types that are not checked, which are logged once
        detectors: dict[str, Callable[[TaskEvent], bool]] = {"finite": self._not_finite, "flags": _flagged}
        self._overflows = detectors[capture.profile.overflow_check]
        self._records = capture.profile.overflow_check == "flags"

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Copy the operands that the kernel overwrites."""
        self._snapshot.take(event)

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Check for an overflow, and dump the operator if there is one."""
        seen = self._snapshot.restore(event)
        if event.error is None:
            self._capture.when(event, lambda: self._examine(seen, moment))

    def _examine(self, event: TaskEvent, moment: Moment) -> None:
        limit = self._capture.request.overflow_limit
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
        """Return whether an output has an infinity or a NaN; no status register is read. [spec mindspore 5.1]"""
        profile = self._capture.profile
        for ref in self._capture.choose_outputs(event).wanted:
            kind = ref.dtype.name
            if kind in _CHECKED:
                if not is_finite(convert(ref, _PLAIN).values):
                    return True
            elif kind not in self._warned:
                self._warned.add(kind)
                self._capture.log("WARNING", "CheckOverflow", f"Data type {kind} is not supported by AllFinite")
            elif profile.overflow_scan == "stops":  # quirk: the other outputs are not checked
                return False
        return False


_PLAIN = Conversion()


class Failure:
    """Dumps the inputs of the operator that the device stopped at. [spec mindspore 5.3]"""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Do nothing before a kernel."""

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Save the inputs of a kernel with an error, at once, since the stream has stopped."""
        if event.error is not None:
            self._capture.log("ERROR", "DumpDataForException", f"Sync stream failed at {event.full_name}")
            self._capture.failed(event, moment)


class Never:
    """Dumps no operator: the device cannot dump a failing one, or CANN does."""

    def __init__(self, capture: Capture) -> None:
        profile = capture.profile
        self._log = capture.log
        self._tally = capture.writes.tally
        self._cann = left_to_cann(capture.request, profile)
        self._text = ""
        if profile.exception == "none":
            self._text = f"Abnormal dump is not supported on {profile.target} backend."

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Do nothing before a kernel."""

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Log the vendor's warning, once for each kernel. [spec mindspore 1.2]"""
        if self._cann and event.error is not None:
            self._tally.elsewhere = True
            self._tally.note(f"{event.full_name} failed: CANN saves its tensors below extra-info")
        if self._text:
            self._log("WARNING", "CPUDataDump", self._text)


def trigger_of(capture: Capture) -> Trigger:
    """Return the trigger for a request, as far as the profile supports it.

    quirk: a device without overflow check saves everything. [spec mindspore 1.2]
    """
    trigger, profile = capture.request.trigger, capture.profile
    if trigger == "overflow" and profile.overflow_check != "none":
        return Overflow(capture)
    if trigger == "failure":
        return Failure(capture) if profile.exception == "inputs" else Never(capture)
    return Every(capture)


def left_to_cann(request: DumpRequest, profile: Profile) -> bool:
    """Return whether CANN's exception dump saves the failing operator."""
    return request.trigger == "failure" and profile.exception == "lite"


def overlooks_saturation(request: DumpRequest, profile: Profile) -> bool:
    """Return whether overflows are not found on a chip that saturates, since its results are finite."""
    return request.trigger == "overflow" and profile.overflow_check == "finite"


def _flagged(event: TaskEvent) -> bool:
    """Return whether the device raised its flag."""
    return event.overflow
