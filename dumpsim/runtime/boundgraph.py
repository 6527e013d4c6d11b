"""The kernels of a graph bound to memory, for runs with tasks and without."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from dumpsim.device.device import Device
from dumpsim.device.overflow import narrow, status_bits
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.engine.engine import BindingEngine, Bound, Work
from dumpsim.runtime.plan import GraphPlan
from dumpsim.runtime.result import finite
from dumpsim.runtime.slot import Slot
from dumpsim.runtime.unknown import HostArray

__all__ = ["BoundGraph", "bound_graph"]

_SHARED = 4096  # bytes from which an argument is read in host memory


class BoundGraph:
    """Bound kernels, and the arrays that they read and write.

    Attributes
    ----------
    binding : Binding
    device : Device
    kernels : Bound
    arrays : mapping of int to array
        The tensors by their numbers.
    copied : list of (int, array)
        The arguments that are copied, and their targets.

    Parameters
    ----------
    shared : mapping of int to array
        Arguments that kernels read in host memory, by tensor.
    copied : collection of int
        Inputs that are copied.
    """

    def __init__(
        self, binding: Binding, device: Device, kernels: Bound, arrays: dict[int, Any], shared: dict[int, Any],
        copied: Collection[int],
    ) -> None:  # fmt: skip
        plan = binding.plan
        self.binding = binding
        self.device = device
        self.kernels = kernels
        self.arrays = arrays
        self.copied = [(at, arrays[slot.index]) for at, slot in enumerate(plan.inputs) if slot.index in copied]
        self._shared = [(at, shared[slot.index]) for at, slot in enumerate(plan.inputs) if slot.index in shared]
        self._results: list[Callable[[], HostArray]] = [
            kernels.results.get(slot.index) or partial(np.array, arrays[slot.index], dtype=slot.dtype.numpy)
            for slot in plan.results
        ]

    def takes(self, arguments: Sequence[HostArray]) -> bool:
        """Whether the arguments that are read in host memory are still the same arrays."""
        return all(arguments[at] is known for at, known in self._shared)

    def results(self) -> list[HostArray]:
        """Return copies of the results; the order of their dimensions in memory is that of their sources."""
        return [result() for result in self._results]

    def status(self, at: int) -> int:
        """Return AI Core's status word after a kernel that may have overflowed; 0 if its operands were not finite."""
        call, device = self.binding.plan.calls[at], self.device
        head = call.node.members[0].op_type if call.node.members else call.definition.name
        status = 0
        for slot in call.outputs:
            if narrow(self.arrays[slot.index], slot.device_dtype, device.overflow)[1]:
                status |= status_bits(slot.device_dtype, cube=head in device.chip.cube_ops)
        if status:
            self.kernels.restore(at)
            if not finite([self.arrays[slot.index] for slot in call.arguments if isinstance(slot, Slot)]):
                return 0
        return status


def bound_graph(
    binding: Binding,
    device: Device,
    engine: BindingEngine,
    arguments: Sequence[HostArray],
    again: Sequence[bool],
    *,
    moves: bool,
) -> BoundGraph | None:
    """Bind the kernels of a plan to memory.

    Parameters
    ----------
    binding : Binding
    device : Device
    engine : BindingEngine
    arguments : sequence
        Of the run.
    again : sequence of bool
        Whether each is the same array as in the previous run; these are read in host memory.
    moves : bool
        See `BindingEngine.bind`.
    """
    plan = binding.plan
    arrays: dict[int, Any] = {}
    spans: dict[int, tuple[int, int]] = {}
    roots: dict[int, int] = {}
    direct: dict[int, Any] = {}
    strided: dict[int, Any] = {}
    for at, slot in enumerate(plan.inputs):
        value = arguments[at]
        if again[at] and value.nbytes >= _SHARED and value.dtype == slot.numpy:
            (direct if value.flags.c_contiguous else strided)[slot.index] = value
    for slot in {slot.index: slot for slot in (*_slots(plan), *plan.inputs)}.values():
        own = direct.get(slot.root_index)
        arrays[slot.index] = binding.device_array(slot) if own is None else own.reshape(slot.shape)
        roots[slot.index] = slot.root_index
        if slot.root_offset >= 0 and own is None:
            spans[slot.index] = binding.address(slot), binding.address(slot) + slot.nbytes
    works = [
        Work(
            definition=call.definition,
            operands=tuple(argument.index for argument in call.arguments if isinstance(argument, Slot)),
            attrs=call.attrs,
            outputs=tuple(slot.index for slot in call.outputs),
        )
        for call in plan.calls
    ]
    results = [slot.index for slot in plan.results]
    strided = strided if moves else {}
    kernels = engine.bind(works, arrays, spans, roots, results, moves=moves, strided=strided)
    if kernels is None:
        return None
    left = {*direct, *kernels.unread}
    copied = [slot.index for slot in plan.inputs if slot.index not in left]
    return BoundGraph(binding, device, kernels, arrays, direct | strided, copied)


def _slots(plan: GraphPlan) -> list[Slot]:
    """The tensors that kernels and the host read and write."""
    read = [argument for call in plan.calls for argument in call.arguments if isinstance(argument, Slot)]
    return [*read, *(slot for call in plan.calls for slot in call.outputs), *plan.results]
