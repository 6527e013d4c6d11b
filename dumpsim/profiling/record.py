"""The records of a profile: tasks, iterations, and steps that the script marks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["KERNELS", "Iteration", "Operand", "Profile", "Step", "TaskRecord", "joined"]

KERNELS = frozenset({"KERNEL_AICORE", "KERNEL_AIVEC", "KERNEL_AICPU", "KERNEL_HCCL", "KERNEL_HOST"})


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of a kernel, in device layout."""

    shape: tuple[int, ...]
    dtype: str
    format: str
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """A task that has run.

    Attributes
    ----------
    name, op_type, kind : str
        `kind` is a value of `TaskKind`.
    stream_id, task_id, serial : int
    launched_ns, start_ns, end_ns : int
        When the host launched it, when it started and ended on its stream.
    iteration : int
        Index in `Profile.iterations`, -1 outside.
    model_id : int
        Of a model; the root graph elsewhere, -1 for an operator in no graph.
    inputs, outputs : tuple of Operand, or None
        None where the machine does not say, as for operators of PYNATIVE.
    flops : int or None
    """

    name: str
    op_type: str
    kind: str
    stream_id: int
    task_id: int
    serial: int
    launched_ns: int
    start_ns: int
    end_ns: int
    iteration: int = -1
    model_id: int = -1
    inputs: tuple[Operand, ...] | None = None
    outputs: tuple[Operand, ...] | None = None
    flops: int | None = None

    @property
    def duration_ns(self) -> int:
        """Duration in nanoseconds."""
        return self.end_ns - self.start_ns

    @property
    def is_kernel(self) -> bool:
        """Whether the task runs an operator; other tasks are copies, events and callbacks."""
        return self.kind in KERNELS


@dataclass(slots=True, kw_only=True)
class Iteration:
    """One run of a root graph.

    Attributes
    ----------
    model_id, number : int
        The model or root graph, and its iterations so far, from 1.
    fp_start_ns, bp_end_ns : int or None
        Start of the forward pass and end of the backward pass; None where a graph has no backward pass.
    first_ns, end_ns : int or None
        Start of the first task and end of the last one; None where no task ran.
    previous_end_ns : int or None
        End of the iteration before of the same model.
    """

    model_id: int
    number: int
    fp_start_ns: int | None = None
    bp_end_ns: int | None = None
    first_ns: int | None = None
    end_ns: int | None = None
    previous_end_ns: int | None = None

    @property
    def begin_ns(self) -> int | None:
        """End of the iteration before; of the first one, the start of its forward pass or else of its first task."""
        if self.previous_end_ns is not None:
            return self.previous_end_ns
        return self.first_ns if self.fp_start_ns is None else self.fp_start_ns


@dataclass(frozen=True, slots=True)
class Step:
    """A step that the script marks with ``Profiler.step``, in host time."""

    number: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A finished profile of one device.

    Attributes
    ----------
    chip, target : str
    rank, device_id : int
    start_ns, end_ns : int
        When it was switched on and off.
    launch_ns, bandwidth, matrix_flops : int
        What the clock charges: start of a kernel, bytes and matrix operations per second.
    tasks : sequence of TaskRecord
        In the order in which they ran.
    iterations, steps : sequence
    cube_ops : frozenset of str
        Types that run on the matrix unit.
    """

    chip: str
    target: str
    rank: int
    device_id: int
    start_ns: int
    end_ns: int
    launch_ns: int
    bandwidth: int
    matrix_flops: int
    tasks: Sequence[TaskRecord]
    iterations: Sequence[Iteration] = ()
    steps: Sequence[Step] = ()
    cube_ops: frozenset[str] = frozenset()


def joined(profiles: Sequence[Profile]) -> Profile:
    """Join profiles of one device that were recorded one after the other."""
    tasks: list[TaskRecord] = []
    iterations: list[Iteration] = []
    for profile in profiles:
        first = len(iterations)
        tasks += (
            replace(task, iteration=task.iteration + first) if first and task.iteration >= 0 else task
            for task in profile.tasks
        )
        iterations += profile.iterations
    steps = tuple(step for profile in profiles for step in profile.steps)
    start, end = profiles[0].start_ns, profiles[-1].end_ns
    return replace(profiles[-1], start_ns=start, end_ns=end, tasks=tasks, iterations=iterations, steps=steps)
