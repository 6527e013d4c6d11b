"""When an operator is dumped: whenever it runs, when its results overflow, when it fails. One class for each."""

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

_CHECKED = ("float16", "float32", "bfloat16")  # outputs that a finite check looks at [spec mindspore 5.1]


class Trigger(Protocol):
    """Decides what becomes of each selected operator."""

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """A selected kernel is about to run."""
        ...

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """A selected kernel has run."""
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
        """Whether the same is done whenever an operator runs, with its tensors as they are then."""
        kept = self._takes and any(ref.written or overlaps(ref, event.outputs) for ref in event.operands)
        return not kept and self._capture.plans(event)

    def parts(self, event: TaskEvent, moment: Moment) -> "tuple[Planned, Planned]":
        """What is done before and after the kernel, see `Capture.planned`."""
        planned = self._capture.planned
        if self._first:
            return planned(event, moment, outputs=False), planned(event, moment, inputs=False)
        return (None, ()), planned(event, moment)

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Inputs, or at least what the kernel overwrites of them."""
        if self._first:
            self._capture.inputs(event, moment)
        elif self._takes:
            self._snapshot.take(event)

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Outputs, and inputs where they were not dumped before."""
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
        self._warned: set[str] = set()  # number types that are not tested, each logged once
        detectors: dict[str, Callable[[TaskEvent], bool]] = {"finite": self._not_finite, "flags": _flagged}
        self._overflows = detectors[capture.profile.overflow_check]
        self._records = capture.profile.overflow_check == "flags"

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Keep what the kernel overwrites."""
        self._snapshot.take(event)

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Look for an overflow, and dump the operator."""
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
        """Whether an output holds an infinity or a NaN; no status register is read. [spec mindspore 5.1]"""
        profile = self._capture.profile
        for ref in self._capture.choose_outputs(event).wanted:
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


class Failure:
    """Dumps the inputs of the operator that the device stopped at. [spec mindspore 5.3]"""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Nothing has failed yet."""

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """Save the inputs of a kernel with an error: the stream has stopped, so this is not put on it."""
        if event.error is not None:
            self._capture.log("ERROR", "DumpDataForException", f"Sync stream failed at {event.full_name}")
            self._capture.failed(event, moment)


class Never:
    """Dumps no operator: the device cannot dump one that fails, or CANN does."""

    def __init__(self, capture: Capture) -> None:
        profile = capture.profile
        self._log = capture.log
        self._tally = capture.writes.tally
        self._cann = left_to_cann(capture.request, profile)
        self._text = ""
        if profile.exception == "none":
            self._text = f"Abnormal dump is not supported on {profile.target} backend."

    def before(self, event: TaskEvent, moment: Moment) -> None:
        """Nothing to do."""

    def after(self, event: TaskEvent, moment: Moment) -> None:
        """The vendor's warning, one a kernel. [spec mindspore 1.2]"""
        if self._cann and event.error is not None:
            self._tally.elsewhere = True
            self._tally.note(f"{event.full_name} failed: what CANN saves of it is below extra-info")
        if self._text:
            self._log("WARNING", "CPUDataDump", self._text)


def trigger_of(capture: Capture) -> Trigger:
    """The trigger that a request asks for, as far as its profile has it.

    quirk: a device without overflow check saves everything. [spec mindspore 1.2]
    """
    trigger, profile = capture.request.trigger, capture.profile
    if trigger == "overflow" and profile.overflow_check != "none":
        return Overflow(capture)
    if trigger == "failure":
        return Failure(capture) if profile.exception == "inputs" else Never(capture)
    return Every(capture)


def left_to_cann(request: DumpRequest, profile: Profile) -> bool:
    """Whether CANN's exception dump saves the operator that fails."""
    return request.trigger == "failure" and profile.exception == "lite"


def overlooks_saturation(request: DumpRequest, profile: Profile) -> bool:
    """Whether overflows are missed on a chip that saturates, since its results are finite."""
    return request.trigger == "overflow" and profile.overflow_check == "finite"


def _flagged(event: TaskEvent) -> bool:
    """Whether the device raised its flag."""
    return event.overflow
