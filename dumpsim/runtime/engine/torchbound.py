"""Kernels of torch that are bound to memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch

from dumpsim.runtime.engine.engine import Bound, Work
from dumpsim.runtime.result import flat

__all__ = ["Binder", "array_of", "tensor_of"]

# number types that numpy does not have: torch's, the array's, and the integer types of the same size
_BITS = (
    (torch.bfloat16, np.dtype(ml_dtypes.bfloat16), torch.int16, np.int16),
    (torch.float8_e4m3fn, np.dtype(ml_dtypes.float8_e4m3fn), torch.uint8, np.uint8),
    (torch.float8_e5m2, np.dtype(ml_dtypes.float8_e5m2), torch.uint8, np.uint8),
)
_HALVES = (torch.float16, torch.bfloat16)


def tensor_of(array: "np.ndarray[Any, Any]") -> torch.Tensor:
    """Return a tensor that shares an array's memory.

    Examples
    --------
    >>> tensor_of(np.ones(2, ml_dtypes.float8_e5m2)).dtype
    torch.float8_e5m2
    """
    for kind, own, _, bits in _BITS:
        if array.dtype == own:
            return torch.from_numpy(array.view(bits)).view(kind)
    return torch.from_numpy(array)


def array_of(tensor: torch.Tensor) -> "np.ndarray[Any, Any]":
    """Return an array that shares a contiguous tensor's memory.

    Examples
    --------
    >>> array_of(torch.ones(2, dtype=torch.bfloat16)).dtype
    dtype(bfloat16)
    """
    for kind, own, bits, _ in _BITS:
        if tensor.dtype == kind:
            viewed: np.ndarray[Any, Any] = tensor.view(bits).numpy().view(own)
            return viewed
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array


@dataclass(frozen=True, slots=True)
class _View:
    """A place outside of an output's memory that has the numbers of the output.

    Attributes
    ----------
    tensor : torch.Tensor
    origin : int or None
        The tensor whose memory it is a view of; None for memory of the host.
    at : int
        The first kernel that can read it.
    """

    tensor: torch.Tensor
    origin: int | None
    at: int


class _Call(NamedTuple):
    """The function that computes a kernel.

    Attributes
    ----------
    function : callable
    stores : bool
        Whether it writes the output to memory; otherwise it returns it.
    """

    function: Callable[[], Any]
    stores: bool = False


class Binder:
    """Binds the kernels of one graph.

    A kernel with a method ``view`` copies a view of its first operand, such as a transposition. It is skipped if all of
    its readers can read that view instead: if the view is not overwritten before, and the readers compute the same from
    it. Eager torch does so, too. If the copy is a result, the kernel's method ``take`` creates it from the view. A
    kernel with a method ``bind`` decides which operands it reads from such views, and whether it writes its output
    itself. If its attribute ``transposed`` is true, it computes a matrix column by column, and the matrix lies so in
    memory if all of its readers can read it there.

    Parameters
    ----------
    works, arrays, spans, roots, results
        See `BindingEngine.bind`.
    tensors : mapping of int to torch.Tensor
        The arrays as torch sees them.
    strided : mapping of int to torch.Tensor
        Inputs as the host has them.
    """

    def __init__(
        self,
        works: Sequence[Work],
        arrays: Mapping[int, Any],
        tensors: Mapping[int, torch.Tensor],
        spans: Mapping[int, tuple[int, int]],
        roots: Mapping[int, int],
        results: Sequence[int],
        strided: Mapping[int, torch.Tensor],
    ) -> None:
        self._works = works
        self._arrays = arrays
        self._tensors = tensors
        self._spans = spans
        self._roots = roots
        self._results = results
        self._strided = strided
        self._needed: set[int] = set()  # tensors that are read from memory
        self._views: dict[int, _View] = {}
        self._transposed: set[int] = set()  # matrices that lie in memory column by column
        self._writes = [
            (at, *spans[number]) for at, work in enumerate(works) for number in work.outputs if number in spans
        ]

    def bind(self, *, moves: bool = True) -> Bound:
        """Bind the kernels; `moves`: see `BindingEngine.bind`."""
        if moves:
            self._transposed = {number for work in self._works for number in self._computed_transposed(work)}
        while True:
            calls, taken = self._calls(moves)
            read = {number for number in self._transposed if self._roots[number] in self._needed}
            if not read:
                break
            self._transposed -= read
        runs: list[Callable[[], object] | None] = []
        checks: list[tuple[Callable[[], bool], ...]] = []
        for work, call in zip(self._works, calls, strict=True):
            moved = self._is_moved(work)
            outs = [self._tensors[number] for number in work.outputs]
            if moves and moved and self._roots[work.outputs[0]] not in self._needed:
                room = taken.get(work.outputs[0])
                take = getattr(work.definition.kernel, "take", torch.clone)
                runs.append(None if room is None else partial(_take, take, self._views[work.outputs[0]].tensor, room))
            elif call.stores:
                runs.append(call.function)
            elif len(outs) == 1:
                runs.append(partial(_store, call.function, outs[0], outs[0].shape))
            else:
                runs.append(partial(_store_all, call.function, outs))
            checks.append(() if moved else tuple(filter(None, map(self._check, work.outputs))))
        unread = [number for number in self._strided if self._roots[number] not in self._needed]
        results = {at: partial(_array_in, room) for at, room in taken.items() if self._roots[at] not in self._needed}
        return Bound(runs, checks, torch.no_grad, self._restore, unread, results)

    def _calls(self, moves: bool) -> "tuple[list[_Call], dict[int, list[torch.Tensor]]]":
        """Return the functions of all kernels, and the containers of results; find what is read from memory."""
        self._needed = set()
        self._views = {number: _View(tensor, None, 0) for number, tensor in self._strided.items()}
        for at, work in enumerate(self._works):
            self._find_view(at, work)
        taken = self._find_results() if moves else {}
        self._needed |= {self._roots[number] for number in self._results if number not in taken}
        return [self._call(at, work) for at, work in enumerate(self._works)], taken

    # ---------------------------------------------------------------- views
    def _computed_transposed(self, work: Work) -> Sequence[int]:
        """Return the output of a kernel that computes a matrix column by column, or nothing."""
        if not getattr(work.definition.kernel, "transposed", False):
            return ()
        (number,) = work.outputs
        return [number] if self._roots[number] == number and number in self._spans else ()

    def _is_moved(self, work: Work) -> bool:
        """Whether a kernel copies a view."""
        return len(work.outputs) == 1 and work.outputs[0] in self._views and work.outputs[0] not in self._transposed

    def _find_view(self, at: int, work: Work) -> None:
        """Record the view that has the same numbers as a kernel's output."""
        if len(work.outputs) == 1 and work.outputs[0] in self._transposed:
            (number,) = work.outputs
            rows, columns = self._tensors[number].shape
            self._views[number] = _View(self._tensors[number].view(columns, rows).t(), number, at + 1)
            return
        view = getattr(work.definition.kernel, "view", None)
        if view is None or len(work.outputs) != 1 or any(number in self._spans for number in work.operands[1:]):
            return
        source = work.operands[0]
        before = self._views.get(source)
        if before is None or not self._is_intact(before, at):
            before = _View(self._tensors[source], source, at)
        numbers = [self._tensors[number] for number in work.operands[1:]]
        self._views[work.outputs[0]] = _View(view(before.tensor, *numbers, **work.attrs), before.origin, before.at)

    def _find_results(self) -> dict[int, list[torch.Tensor]]:
        """Return containers for the results that are copied directly from the source of a moving kernel.

        They get the memory layout of the source.
        """
        found: dict[int, list[torch.Tensor]] = {}
        for work in self._works:
            if self._is_moved(work) and self._results.count(work.outputs[0]) == 1:
                found[work.outputs[0]] = []
        return found

    def _is_intact(self, view: _View, until: int) -> bool:
        """Whether no kernel up to and including `until` overwrites the view."""
        span = None if view.origin is None else self._spans.get(view.origin)
        return span is None or not any(
            view.at <= at <= until and low < span[1] and span[0] < high for at, low, high in self._writes
        )

    # ---------------------------------------------------------------- calls
    def _call(self, at: int, work: Work) -> "_Call":
        """Return the function that computes a kernel, and record the tensors that it reads from memory."""
        kernel: Any = work.definition.kernel
        if self._is_moved(work):
            view = self._views[work.outputs[0]]
            self._read_view(view)
            return _Call(lambda: view.tensor)
        operands = [self._tensors[number] for number in work.operands]
        if not hasattr(kernel, "bind"):
            for number in work.operands:
                self._read(number)
            return _Call(partial(kernel, *operands, **work.attrs))
        found = {k: self._views[number] for k, number in enumerate(work.operands) if number in self._views}
        views = {k: view.tensor for k, view in found.items() if self._is_intact(view, at)}
        out = self._tensors[work.outputs[0]] if len(work.outputs) == 1 else None
        if out is not None and work.outputs[0] in self._transposed:
            out = self._views[work.outputs[0]].tensor
        function, read, stores = kernel.bind(operands, views, out)
        for k in read:
            self._read(work.operands[k])
        return _Call(function, stores)

    def _read(self, number: int | None) -> None:
        if number is not None:
            self._needed.add(self._roots[number])

    def _read_view(self, view: _View) -> None:
        """Record that the memory of a view is read, unless it is a matrix that lies in memory column by column."""
        if view.origin not in self._transposed:
            self._read(view.origin)

    def _restore(self, at: int) -> None:
        """Store operands of a kernel that it has read from views."""
        for number in self._works[at].operands:
            view = self._views.get(number)
            if view is not None and number not in self._transposed and self._roots[number] not in self._needed:
                self._tensors[number].copy_(view.tensor)

    def _check(self, number: int) -> Callable[[], bool] | None:
        """Return a function that tells whether all numbers of an output are finite; None if its type has no others."""
        tensor, array = self._tensors[number], self._arrays[number]
        if not array.size:
            return None
        if tensor.dtype == torch.float32:
            return partial(_is_small, array.reshape(-1))
        return partial(_is_finite, tensor) if tensor.dtype in _HALVES else None


def _take(copy: Callable[[torch.Tensor], torch.Tensor], tensor: torch.Tensor, room: list[torch.Tensor]) -> None:
    """Copy a result to the host."""
    room[:] = [copy(tensor)]


def _array_in(room: list[torch.Tensor]) -> "np.ndarray[Any, Any]":
    """Return the result that was copied to the host."""
    return array_of(room.pop())


def _store(call: Callable[[], Any], out: torch.Tensor, shape: torch.Size) -> None:
    """Compute and store one output."""
    made = call()
    if type(made) is not torch.Tensor:
        (made,) = flat(made)
    out.copy_(made if made.shape == shape else made.reshape(shape))


def _store_all(call: Callable[[], Any], outs: Sequence[torch.Tensor]) -> None:
    """Compute and store several outputs."""
    for out, made in zip(outs, flat(call()), strict=True):
        out.copy_(made if made.shape == out.shape else made.reshape(out.shape))


def _is_small(numbers: Any) -> bool:
    """Whether a sum of squares is finite, and so are all numbers: the fastest check of many numbers."""
    with np.errstate(over="ignore"):
        return isfinite(numbers.dot(numbers))


def _is_finite(tensor: torch.Tensor) -> bool:
    """Whether a sum is finite, and so are all of its terms."""
    return isfinite(tensor.sum().item())
