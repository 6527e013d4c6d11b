"""Passes the selected tensors of an operator to the unit that writes them, at once or after the kernel."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.archive.sink import Sink
from dumpsim.core.events import TaskEvent, TensorRef
from dumpsim.device.task import UNKNOWN_TASK_ID
from dumpsim.dump import decide
from dumpsim.dump.artefacts import arguments_file
from dumpsim.dump.info import Log
from dumpsim.dump.iteration import Moment
from dumpsim.dump.location import Location
from dumpsim.dump.selection import KernelChoice
from dumpsim.dump.unit import Source, Unit, Write
from dumpsim.dump.writelog import WriteLog
from dumpsim.modes.operators import TEXT_OPERANDS
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest

__all__ = ["Capture", "Planned", "Snapshot", "overlaps"]


Planned = tuple[Write | None, tuple[str, ...]]  # function that writes an operator's tensors; reasons of skips


class Snapshot:
    """The bytes of the operands that a kernel is about to overwrite."""

    def __init__(self) -> None:
        self._refs: dict[int, TensorRef] = {}

    def take(self, event: TaskEvent) -> None:
        """Copy the operands that the kernel writes, in place or by outputs at the same address."""
        self._refs = {ref.slot: _copied(ref) for ref in event.operands if ref.written or overlaps(ref, event.outputs)}

    def restore(self, event: TaskEvent) -> TaskEvent:
        """Return the event with the copies as operands, and drop the snapshot."""
        before, self._refs = self._refs, {}
        if not before:
            return event
        return replace(event, operands=tuple(before.get(ref.slot, ref) for ref in event.operands))


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Dumps an operator, for all debug modes.

    Attributes
    ----------
    rank : int
    opdebug : str
        Layout of overflow records: ``old`` or ``new``.
    """

    profile: Profile
    request: DumpRequest
    unit: Unit
    location: Location
    choice: KernelChoice
    writes: WriteLog
    sink: Sink
    log: Log
    rank: int
    opdebug: str

    def when(self, event: TaskEvent, work: Callable[[], None]) -> None:
        """Run an action after the kernel if the dump is asynchronous, otherwise at once."""
        if self.request.asynchronous and event.defer is not None:
            event.defer(work)
        else:
            work()

    def inputs(self, event: TaskEvent, moment: Moment) -> None:
        """Dump the operands."""
        self._operator(event, moment, self._wanted_inputs(event), ())

    def outputs(self, event: TaskEvent, moment: Moment) -> None:
        """Dump the outputs, and the kernel's arguments."""
        self._operator(event, moment, (), self._wanted_outputs(event))
        self._arguments(event, moment)

    def both(self, event: TaskEvent, moment: Moment) -> None:
        """Dump operands and outputs."""
        if not decide.leaves_files(self.profile, self.request, event):
            return
        self._operator(event, moment, self._wanted_inputs(event), self._wanted_outputs(event))
        self._arguments(event, moment)

    def plans(self, event: TaskEvent) -> bool:
        """Return whether the dump of an operator is the same in every run."""
        return not self.request.kernel_arguments and event.op_type not in TEXT_OPERANDS

    def planned(self, event: TaskEvent, moment: Moment, *, inputs: bool = True, outputs: bool = True) -> "Planned":
        """Plan the dump of an operator: the function that writes its tensors, and the reasons of skipped ones.

        `inputs` and `outputs` restrict the plan to some of the requested tensors.
        """
        if not decide.leaves_files(self.profile, self.request, event):
            return None, ()
        no_inputs, no_outputs = self.choice.blocked(event)
        nothing = decide.Choice()
        read = decide.choose_inputs(self.profile, event.op_type, event.operands) if inputs else nothing
        read = read if self.request.inputs else nothing
        made = self.choose_outputs(event) if outputs and self.request.outputs else nothing
        skipped = tuple(reason for _, reason in (*read.skipped, *made.skipped))
        refs = (
            tuple(ref for ref in read.wanted if ref.slot not in no_inputs),
            tuple(ref for ref in made.wanted if ref.slot not in no_outputs),
        )
        if not any(refs):
            return None, skipped
        return self.unit.plan(self.source(event, moment), *refs), skipped

    def failed(self, event: TaskEvent, moment: Moment) -> None:
        """Dump the operands of a kernel that failed, even if no inputs are requested."""
        wanted = self._counted(decide.choose_inputs(self.profile, event.op_type, event.operands))
        self._operator(event, moment, wanted, ())

    def watched(self, event: TaskEvent, moment: Moment, name: str, attrs: tuple[tuple[str, str], ...]) -> None:
        """Dump the outputs of an event at once, under a name of their own."""
        outputs = self._counted(self.choose_outputs(event))
        if outputs:
            source = replace(self.source(event, moment), full_name=name, attrs=attrs)
            self.unit.operator(self.location.directory(event, moment), source, (), outputs)

    def overflow(self, event: TaskEvent, moment: Moment, record: bytes) -> None:
        """Save the device's record of an overflow."""
        source = replace(self.source(event, moment), task_id=UNKNOWN_TASK_ID, stream_id=UNKNOWN_TASK_ID)
        self.unit.overflow(self.location.directory(event, moment), source, record)

    def source(self, event: TaskEvent, moment: Moment) -> Source:
        """Return the operator of an event; the file of a TensorDump precedes its name. [spec mindspore 3.4]"""
        file = event.arguments.get("file") if event.op_type == "TensorDump" else None
        return Source(
            op_type=event.op_type,
            full_name=event.full_name if file is None else f"{file}|{event.full_name}",
            task_id=event.task_id,
            stream_id=event.stream_id,
            rank=self.rank,
            graph_id=self.location.graph_id(event),
            iteration=moment.number,
            original_names=event.original_names,
        )

    def _wanted_inputs(self, event: TaskEvent) -> tuple[TensorRef, ...]:
        if not self.request.inputs:
            return ()
        if event.op_type in TEXT_OPERANDS and any(isinstance(value, str) for value in event.arguments.values()):
            self.log("ERROR", "", f"{event.full_name}: an input is a string, which dump does not support")
        blocked, _ = self.choice.blocked(event)
        return self._counted(decide.choose_inputs(self.profile, event.op_type, event.operands), blocked)

    def _wanted_outputs(self, event: TaskEvent) -> tuple[TensorRef, ...]:
        if not self.request.outputs:
            return ()
        _, blocked = self.choice.blocked(event)
        return self._counted(self.choose_outputs(event), blocked)

    def choose_outputs(self, event: TaskEvent) -> decide.Choice:
        """Return the selected outputs."""
        useless = self.request.useless_outputs
        return decide.choose_outputs(self.profile, event.op_type, event.outputs, useless=useless)

    def _counted(self, chosen: decide.Choice, blocked: frozenset[int] = frozenset()) -> tuple[TensorRef, ...]:
        """Return the selected tensors without those of a blacklist, and count the skipped ones."""
        for _, reason in chosen.skipped:
            self.writes.tally.skip(reason)
            if reason == decide.EMPTY and self.request.asynchronous:
                self.log("WARNING", "", "tensor size is 0")  # a synchronous dump does not log it [spec mindspore 7]
        return tuple(ref for ref in chosen.wanted if ref.slot not in blocked) if blocked else chosen.wanted

    def _operator(
        self, event: TaskEvent, moment: Moment, inputs: tuple[TensorRef, ...], outputs: tuple[TensorRef, ...]
    ) -> None:
        if inputs or outputs:
            self.unit.operator(self.location.directory(event, moment), self.source(event, moment), inputs, outputs)

    def _arguments(self, event: TaskEvent, moment: Moment) -> None:
        """Save the arguments of the kernel. [spec mindspore 3.11]"""
        if self.request.kernel_arguments:
            name, data = arguments_file(event.full_name, event.arguments, event.attrs)
            directory = self.location.directory(event, moment)
            self.writes.attempt(lambda: self.sink.write(directory, name, [data]))


def overlaps(ref: TensorRef, outputs: tuple[TensorRef, ...]) -> bool:
    """Return whether a kernel writes to this operand."""
    end = ref.address + ref.nbytes
    return ref.address != 0 and any(out.address < end and ref.address < out.address + out.nbytes for out in outputs)


def _copied(ref: TensorRef) -> TensorRef:
    """Return a copy of the operand with its current bytes, without a version."""
    data: NDArray[np.uint8] = ref.read().copy()
    read: Callable[[], NDArray[Any]] = lambda: data  # noqa: E731 - keeps the bytes, not the event
    return replace(ref, read=read, version=0)
