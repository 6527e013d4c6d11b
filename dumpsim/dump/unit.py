"""The unit in which a dump is written, and where its tensors come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dumpsim.core.events import TensorRef, current

__all__ = ["BYTES_PER_NS", "FILE_NS", "OPDEBUG", "Source", "Unit", "Write", "later"]

FILE_NS = 25_000  # what a small file costs the virtual clock [spec observed 1.2]
BYTES_PER_NS = 1  # and its bytes, at 1 GB/s
OPDEBUG = ("Opdebug", "Node_OpDebug")  # operator type and name of overflow records [spec ge 3.8]


Write = Callable[[str, int, int], None]  # dumps tensors as they are now: directory, iteration, number of the task


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

    def plan(self, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]) -> Write:
        """Prepare what `operator` does, for one that runs again and again in the same memory.

        The tensors have a `Reader` as their `read`; iteration and number of the task are those of each run.
        """
        ...

    def overflow(self, directory: str, source: Source, record: bytes) -> None:
        """Save what the device says of an overflow."""
        ...


def later(unit: Unit, source: Source, inputs: Sequence[TensorRef], outputs: Sequence[TensorRef]) -> Write:
    """What `Unit.operator` does, each time with the tensors as they are then."""

    def dump(directory: str, iteration: int, task_id: int) -> None:
        now = replace(source, iteration=iteration, task_id=task_id)
        unit.operator(directory, now, current(inputs), current(outputs))

    return dump
