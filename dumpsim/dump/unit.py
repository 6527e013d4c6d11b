"""The unit in which a dump is written, and where its tensors come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dumpsim.core.events import TensorRef

__all__ = ["BYTES_PER_NS", "FILE_NS", "OPDEBUG", "PlanningUnit", "Source", "Unit", "Write"]

FILE_NS = 25_000  # what a small file costs the virtual clock [spec observed 1.2]
BYTES_PER_NS = 1  # and its bytes, at 1 GB/s
OPDEBUG = ("Opdebug", "Node_OpDebug")  # operator type and name of overflow records [spec ge 3.8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where tensors come from: an operator of a graph in an iteration.

    Attributes
    ----------
    original_names : tuple of str
        Operators that a fused one replaced.
    timestamp : int or None
        Where all tensors of the operator share one.
    attrs : tuple of (str, str)
        What the header of a binary file says beside.
    """

    op_type: str
    full_name: str
    task_id: int
    stream_id: int
    rank: int
    graph_id: int | None
    iteration: int | None
    original_names: tuple[str, ...] = ()
    timestamp: int | None = None
    attrs: tuple[tuple[str, str], ...] = ()


class Unit(Protocol):
    """What becomes of an operator's tensors: a file each, or one for all."""

    splits: bool  # inputs may be given before outputs are there

    def operator(
        self, directory: str, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]
    ) -> None:
        """Dump tensors of one operator."""
        ...

    def overflow(self, directory: str, source: Source, record: bytes) -> None:
        """Save what the device says of an overflow."""
        ...


Write = Callable[[str], None]  # dumps the tensors of one operator into a directory, as they are now


@runtime_checkable
class PlanningUnit(Protocol):
    """A unit that can prepare an operator's dump, for one that runs again and again in the same memory."""

    def plan(self, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]) -> Write:
        """Prepare what `Unit.operator` does; the tensors have a `Place` as their `read`."""
        ...
