"""Tasks, the units of work on a stream, and their numbers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dumpsim.core.gate import Gate
from dumpsim.device.event import Event

if TYPE_CHECKING:
    from dumpsim.device.races import Touch

__all__ = ["UNKNOWN_TASK_ID", "Task", "TaskIds", "TaskKind"]

UNKNOWN_TASK_ID = 65535  # [spec parallel 4.1]


class TaskKind(StrEnum):
    """Kinds of tasks. [spec parallel 4.1]"""

    AICORE = "KERNEL_AICORE"
    AIVECTOR = "KERNEL_AIVEC"
    AICPU = "KERNEL_AICPU"
    HCCL = "KERNEL_HCCL"
    HOST = "KERNEL_HOST"
    MEMCPY = "MEMCPY_ASYNC"
    EVENT_RECORD = "EVENT_RECORD"
    EVENT_WAIT = "STREAM_WAIT_EVENT"
    CALLBACK = "HOST_CALLBACK"
    DUMP = "DATADUMP"

    @classmethod
    def of_engine(cls, engine: str) -> "TaskKind":
        """Return the kind of a kernel on that engine (`OpDef.engine`)."""
        return _ENGINES[engine]


_ENGINES = {
    "aicore": TaskKind.AICORE,
    "aivector": TaskKind.AIVECTOR,
    "aicpu": TaskKind.AICPU,
    "hccl": TaskKind.HCCL,
    "host": TaskKind.HOST,
}


@dataclass(eq=False, slots=True, kw_only=True)
class Task:
    """A unit of work on a stream, which sets ids and times.

    Attributes
    ----------
    kind : TaskKind
    name : str
        Full name of the operator, or a description.
    work : callable or None
        Called when the scheduler reaches the task, nowhere else.
    cost_ns : int
        Duration on the virtual clock.
    gate : Gate or None
        The condition that the task waits for; set before the launch.
    event : Event or None
        The event that is recorded when the task has run.
    touches : callable or None
        Returns the memory that the task reads and writes, for the detector of races.
    task_id, flip : int
        16-bit number, and how often it has wrapped.
    serial : int
        Number in the device.
    """

    kind: TaskKind
    name: str
    work: "Callable[[Task], None] | None" = None
    cost_ns: int = 0
    gate: Gate | None = None
    event: Event | None = None
    touches: "Callable[[], Iterable[Touch]] | None" = None
    stream_id: int = -1
    task_id: int = UNKNOWN_TASK_ID
    flip: int = 0
    serial: int = -1
    launched_ns: int = 0
    start_ns: int = 0
    end_ns: int = 0


class TaskIds:
    """Numbers of tasks: 0 to 65534, then from 0 again with the flip count one higher (65535 means unknown).

    At O0 and O1 every stream has its own, at O2 a model has one. [spec parallel 4.1]

    Examples
    --------
    >>> ids = TaskIds(65534)
    >>> ids.take(), ids.take()
    ((65534, 0), (0, 1))
    """

    __slots__ = ("_flip", "_next")

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._flip = 0

    def take(self) -> tuple[int, int]:
        """Return the next number and the flip count."""
        if self._next == UNKNOWN_TASK_ID:
            self._next = 0
            self._flip += 1
        taken = self._next
        self._next += 1
        return taken, self._flip
