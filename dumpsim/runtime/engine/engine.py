"""The interface between the runtime and the engines that compute its kernels."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dumpsim.ops.opdef import OpDef

__all__ = ["BindingEngine", "Bound", "Computed", "Engine", "Work"]


class Computed(NamedTuple):
    """The results of a kernel, before the device stores them.

    Attributes
    ----------
    results : list
        The outputs, tuples flattened; arrays and numbers, not yet rounded to the number types of the outputs.
    updated : mapping of int to array
        New values of the operands that the kernel updates, by their index.
    """

    results: list[Any]
    updated: Mapping[int, Any]


class Work(NamedTuple):
    """A kernel whose tensors have the same addresses in every run.

    Attributes
    ----------
    definition : OpDef
    operands, outputs : tuple of int
        Numbers of tensors.
    attrs : mapping
        Keywords of the kernel.
    """

    definition: OpDef
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[int, ...]


class Bound(NamedTuple):
    """Kernels that are bound to memory.

    Attributes
    ----------
    runs : list of callable or None
        Computes a kernel and stores its outputs. None if its readers read the numbers elsewhere.
    finite : list of tuple of callable
        Each returns False if an output may have numbers that do not fit; empty for kernels that only move numbers.
    guard : callable
        Returns the context manager in which they run.
    restore : callable
        ``restore(at)`` stores operands of a kernel, right after it has run, that the kernels before it did not store.
    unread : collection of int
        Inputs that no kernel reads from device memory, since all of them read the host's array.
    results : mapping of int to callable
        Results that are not stored on the device, by tensor; the callable returns the run's copy, once.
    """

    runs: list[Callable[[], object] | None]
    finite: list[tuple[Callable[[], bool], ...]]
    guard: Callable[[], AbstractContextManager[Any]]
    restore: Callable[[int], None]
    unread: Collection[int] = ()
    results: Mapping[int, Callable[[], Any]] = MappingProxyType({})


class Engine(Protocol):
    """Computes kernels from arrays; it does not use memory, streams or events of the device.

    Attributes
    ----------
    name : str
        Its name in the settings.
    values : bool
        Whether tensors have values. If not, `compute` is not called, and the memory of the device has no bytes.
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


@runtime_checkable
class BindingEngine(Protocol):
    """An engine that can bind the kernels of a graph to memory."""

    def bind(
        self,
        works: Sequence[Work],
        arrays: Mapping[int, Any],
        spans: Mapping[int, tuple[int, int]],
        roots: Mapping[int, int],
        results: Sequence[int],
        *,
        moves: bool = True,
        strided: Mapping[int, Any] = MappingProxyType({}),
    ) -> Bound | None:
        """Bind the kernels of a graph to memory.

        Parameters
        ----------
        works : sequence of Work
            In the order of execution.
        arrays : mapping of int to array
            The tensors by their numbers: views of memory.
        spans : mapping of int to (int, int)
            Addresses of the tensors that kernels may write: first byte, and the one after the last.
        roots : mapping of int to int
            The tensor that owns a tensor's bytes.
        results : sequence of int
            Tensors that are read after the run.
        moves : bool
            Whether kernels that only move numbers may be skipped if their readers can read the numbers elsewhere than
            in `arrays`. If False, all kernels run, since listeners see every tensor.
        strided : mapping of int to array
            The host's arrays of inputs, with any strides: kernels may read them there.

        Returns
        -------
        Bound or None
            None if a kernel cannot be bound.
        """
        ...
