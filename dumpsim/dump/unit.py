"""The interface of the writers of an operator's tensors, and the description of the operator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dumpsim.core.events import TensorRef, current

__all__ = ["FILE_NS", "OPDEBUG", "Source", "Unit", "Write", "later"]

# time for a small file on the virtual clock; each byte takes another nanosecond (1 GB/s) [spec observed 1.2]
FILE_NS = 25_000
OPDEBUG = ("Opdebug", "Node_OpDebug")  # operator type and name of overflow records [spec ge 3.8]


Write = Callable[[str, int, int], None]  # dumps the current tensors: directory, iteration, number of the task


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The operator of tensors, with its graph and iteration.

    Attributes
    ----------
    original_names : tuple of str
        Operators that a fused one replaced.
    timestamp : int or None
        Time stamp of all tensors of the operator, if they share one.
    attrs : tuple of (str, str)
        Attributes in the header of a binary file.
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
    """A writer of operators' tensors, to a file for each tensor or one for all."""

    splits: bool  # whether inputs and outputs can be written separately

    def operator(
        self, directory: str, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]
    ) -> None:
        """Dump tensors of one operator."""
        ...

    def plan(self, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]) -> Write:
        """Prepare `operator` for an operator that runs repeatedly in the same memory.

        The tensors have a `Reader` as their `read`; iteration and number of the task are those of each run.
        """
        ...

    def overflow(self, directory: str, source: Source, record: bytes) -> None:
        """Save the device's record of an overflow."""
        ...


def later(unit: Unit, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]) -> Write:
    """Return a function that calls `Unit.operator` with the current tensors."""

    def dump(directory: str, iteration: int, task_id: int) -> None:
        now = replace(source, iteration=iteration, task_id=task_id)
        unit.operator(directory, now, current(inputs), current(outputs))

    return dump
