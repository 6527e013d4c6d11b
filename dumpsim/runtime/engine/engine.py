"""The seam between the runtime and what computes its kernels."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from dumpsim.ops.opdef import OpDef

__all__ = ["Computed", "Engine"]


class Computed(NamedTuple):
    """What a kernel computed, before the device stores it.

    Attributes
    ----------
    results : list
        The outputs, tuples flattened; arrays and numbers, not yet rounded to the number types of the outputs.
    updated : mapping of int to array
        New values of the operands that the kernel updates, by their index.
    """

    results: list[Any]
    updated: Mapping[int, Any]


class Engine(Protocol):
    """Computes kernels from arrays; knows neither memory nor streams nor events.

    Attributes
    ----------
    name : str
        By which settings choose it.
    values : bool
        Whether tensors have values; False: `compute` is not called, and the memory of the device has no bytes.
    """

    name: str
    values: bool

    def compute(self, definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Computed:
        """Compute one kernel.

        Parameters
        ----------
        definition : OpDef
            The operator.
        operands : sequence
            Arrays in host layout and the device's number types, host values, tuples of these. Only the operands in
            ``definition.updates`` may be written.
        attrs : mapping
            Keywords of the kernel.
        """
        ...
