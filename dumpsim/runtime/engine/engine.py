"""The seam between the runtime and what computes its kernels."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dumpsim.ops.opdef import OpDef

__all__ = ["BindingEngine", "Bound", "Computed", "Engine", "Work"]


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


class Work(NamedTuple):
    """A kernel whose tensors lie at the same place in every run.

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
        Computes a kernel and stores its outputs. None: its readers find the numbers elsewhere.
    finite : list of tuple of callable
        False where an output of the kernel may have numbers that do not fit; none for kernels that only move numbers.
    guard : callable
        Gives the context manager in which they run.
    restore : callable
        ``restore(at)`` stores operands of a kernel, right after it has run, that the kernels before it did not store.
    unread : collection of int
        Inputs that no kernel reads from memory, since all read them where the host has them.
    results : mapping of int to callable
        Results that are not stored on the device, by tensor: gives the copy of the run, once.
    """

    runs: list[Callable[[], object] | None]
    finite: list[tuple[Callable[[], bool], ...]]
    guard: Callable[[], AbstractContextManager[Any]]
    restore: Callable[[int], None]
    unread: Collection[int] = ()
    results: Mapping[int, Callable[[], Any]] = MappingProxyType({})


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


@runtime_checkable
class BindingEngine(Protocol):
    """An engine that can bind the kernels of a graph to memory, for runs that nobody watches."""

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
            In the order in which they run.
        arrays : mapping of int to array
            The tensors by their numbers: views of memory.
        spans : mapping of int to (int, int)
            Where tensors lie that kernels may write: first byte, and the one after the last.
        roots : mapping of int to int
            The tensor whose bytes a tensor shows.
        results : sequence of int
            Tensors that are read after the run.
        moves : bool
            Kernels that only move numbers need not run where others read these numbers elsewhere than in `arrays`;
            False: all run, since somebody looks at every tensor.
        strided : mapping of int to array
            Inputs as the host has them, with strides of their own: kernels may read them there.

        Returns
        -------
        Bound or None
            None where a kernel cannot be bound.
        """
        ...
