"""The choice of an event's tensors, by pure functions: without files, clock or bytes."""

from dataclasses import dataclass, replace

from dumpsim.core.events import TaskEvent, TensorRef
from dumpsim.modes.operators import UNNAMED, hidden_operands, hidden_outputs, leaves_none
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest

__all__ = [
    "EMPTY",
    "Choice",
    "choose_inputs",
    "choose_outputs",
    "choose_parameters",
    "leaves_files",
]

EMPTY = "no elements"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The tensors of an operator to dump, and the requested ones that are skipped."""

    wanted: tuple[TensorRef, ...] = ()
    skipped: tuple[tuple[int, str], ...] = ()  # slot, reason


def leaves_files(profile: Profile, request: DumpRequest, event: TaskEvent) -> bool:
    """Return whether an operator can have files. [spec ge 2.6]"""
    without = leaves_none(profile.skip_tables)
    if without is None:
        return True
    selection = request.selection
    named = selection.everything or selection.models is not None or event.op_type not in UNNAMED
    return named and event.op_type not in without and bool(event.outputs)


def choose_inputs(profile: Profile, op_type: str, refs: tuple[TensorRef, ...]) -> Choice:
    """Return the operands with bytes that no table excludes; in whole graphs, attributes have no slot."""
    if not profile.host_operands:
        refs = tuple(replace(ref, slot=slot) for slot, ref in enumerate(filter(_is_tensor, refs)))
    hidden = hidden_operands(profile.skip_tables, op_type)
    return _choose(profile, refs, hidden, "the operand lives on the host")


def _is_tensor(ref: TensorRef) -> bool:
    """Return whether an operand of a whole graph is a tensor; constants on the host are attributes."""
    return ref.address != 0 or ref.origin == "device"


def choose_outputs(profile: Profile, op_type: str, refs: tuple[TensorRef, ...], *, useless: bool = False) -> Choice:
    """Return the outputs with bytes that no table excludes; `useless` keeps those of the table, too."""
    hidden = frozenset() if useless else hidden_outputs(profile.skip_tables, op_type)
    return _choose(profile, refs, hidden, "the output is known to be useless")


def choose_parameters(request: DumpRequest, profile: Profile, refs: tuple[TensorRef, ...]) -> Choice:
    """Return the graph inputs with a Parameter file; they count as outputs. [spec mindspore 3.10, spec observed 1.4]"""
    if profile.parameters == "none" or not request.outputs:
        return Choice()
    if profile.parameters == "weights":
        refs = tuple(ref for ref in refs if ref.is_weight)
    named = tuple(ref for ref in refs if ref.name and request.selection.selects(ref.name, {}))
    return _choose(profile, named, frozenset(), "")


def _choose(profile: Profile, refs: tuple[TensorRef, ...], hidden: frozenset[int], why: str) -> Choice:
    """Split tensors into those to dump and skipped ones."""
    wanted: list[TensorRef] = []
    skipped: list[tuple[int, str]] = []
    for ref in refs:
        if ref.origin == "none":  # a type, a string or None, not a tensor
            continue
        reason = why if ref.slot in hidden else _reason(profile, ref)
        if reason is None:
            wanted.append(ref)
        else:
            skipped.append((ref.slot, reason))
    return Choice(wanted=tuple(wanted), skipped=tuple(skipped))


def _reason(profile: Profile, ref: TensorRef) -> str | None:
    """Return why a tensor cannot be dumped, None if it can. [spec mindspore 2.4]"""
    if ref.nbytes == 0 and not profile.empty_rows:
        return EMPTY
    if ref.origin == "segment" and not profile.segment_inputs:
        return "handed over by a control-flow segment"
    if ref.origin == "freed" and not profile.segment_inputs:
        return "its memory is free"
    if ref.dtype.name == "complex64" and profile.complex_numbers == "skip64":
        return "complex64 is dropped"
    return None
