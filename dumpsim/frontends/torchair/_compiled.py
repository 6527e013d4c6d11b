"""A compiled graph, as a function that torch calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from dumpsim.core.options import CompileOptions
from dumpsim.frontends.torchair._convert import Converter, ViewOfInput
from dumpsim.frontends.torchair._extents import extent, extents
from dumpsim.frontends.torchair._ge import GeGraph
from dumpsim.frontends.torchair._lower import array_of, array_where, lower, tensor_of
from dumpsim.frontends.torchair._state import TorchAir
from dumpsim.graph.pipeline import compile_graph
from dumpsim.graph.program import Program

__all__ = ["Compiled"]

_SHAPES = 8  # largest number of programs of a graph with symbols


@dataclass(slots=True)
class _Same:
    """The graph and model number of the first compilation, for compilations of the same graph with other shapes."""

    graph_id: int
    model_id: int

    def graph(self) -> int:
        return self.graph_id

    def model(self) -> int:
        return self.model_id


class _Sized(NamedTuple):
    """A graph compiled for given sizes of its symbols."""

    program: Program
    makers: list[Callable[[Sequence[Any], Sequence[Any]], Any]]


class Compiled:
    """Runs a graph on the emulated device.

    Parameters
    ----------
    own : TorchAir
    converter : Converter
        The converter of the graph, after the conversion.
    results : sequence
        The captured graph's results as torch describes them (fake tensors).
    folded : mapping of str to str
        Operators that are folded into another one.
    fuses : bool
        Whether kernels are fused.
    gradient : bool
        Whether the results are gradients. Torch accepts gradients with any strides; contiguous ones, as the gradients
        of weights must be, need no further copy.
    """

    def __init__(
        self,
        own: TorchAir,
        converter: Converter,
        results: Sequence[Any],
        folded: Mapping[str, str],
        *,
        fuses: bool = False,
        gradient: bool = False,
    ) -> None:
        self.graph: GeGraph = converter.graph
        self._own = own
        self._folded = folded
        self._fuses = fuses
        self._gradient = gradient
        self._inputs = converter.inputs
        self._ge_inputs = converter.ge_inputs
        self._results = converter.results
        self._values = list(results)
        self._programs: dict[tuple[int, ...], _Sized] = {}
        self._arrays: dict[int, tuple[Any, Any]] = {}  # arrays of weights, with address, shape and strides
        self._numbers: Any = None
        self._symbols = self._symbols_of(self._inputs)
        if not self._symbols:
            self._program({})

    @staticmethod
    def _symbols_of(inputs: Sequence[Any]) -> dict[str, tuple[int, int | None]]:
        """Return where the size of each symbol is found: an input, and a dimension if the input is a tensor."""
        found: dict[str, tuple[int, int | None]] = {}
        for at, value in enumerate(inputs):
            if isinstance(value, torch.SymInt):
                found.setdefault(str(value), (at, None))
        for at, value in enumerate(inputs):
            for dim, one in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if isinstance(one, torch.SymInt):
                    found.setdefault(str(one), (at, dim))
        return found

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Run the graph once."""
        sizes = {
            name: int(arguments[at] if dim is None else arguments[at].shape[dim])
            for name, (at, dim) in self._symbols.items()
        }
        session = self._own.session
        program, makers = self._program(sizes)
        given = [self._input(arguments[at], at) for at in self._ge_inputs]
        with _disable_current_modes():  # AOTAutograd's mode of the first run changes how torch's matmul computes
            made = session.execute(program, given)
        tensors = [tensor_of(np.asarray(one)) for one in made]
        for output, index in self.graph.writes.items():
            arguments[self._ge_inputs[index]].copy_(tensors[output])
        return tuple(maker(tensors, arguments) for maker in makers)

    def _input(self, value: Any, at: int) -> Any:
        """Convert an argument to the type that the session takes.

        A weight, or a view of one, gives the same array in every run as long as its memory is the same.
        """
        if not isinstance(value, torch.Tensor):
            known = self._inputs[at]
            return np.asarray(value, dtype=np.int64 if isinstance(known, (int, torch.SymInt)) else np.float64)
        if not self._own.weights.has(value):
            return array_of(value)
        place = value.data_ptr(), value.shape, value.stride()
        found = self._arrays.get(at)
        if found is None or found[0] != place:
            found = self._arrays[at] = place, array_where(value)
        return found[1]

    def _makers(self, sizes: dict[str, int]) -> list[Callable[[Sequence[Any], Sequence[Any]], Any]]:
        """Return a function for each result that makes it from the graph's outputs and the arguments."""
        return [self._maker(one, value, sizes) for one, value in zip(self._results, self._values, strict=True)]

    def _maker(self, one: Any, value: Any, sizes: dict[str, int]) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        if isinstance(one, ViewOfInput):
            shape, strides = extents(value.shape, sizes), self.graph.strides.of(value, sizes)
            start = extent(value.storage_offset(), sizes)
            return lambda made, arguments: torch.as_strided(arguments[one.index], shape, strides, start)
        if isinstance(one, bool) or not isinstance(one, int) or not isinstance(value, torch.Tensor):
            known = extent(one, sizes) if isinstance(one, torch.SymInt) else one
            return lambda made, arguments: known
        shape, strides = extents(value.shape, sizes), self.graph.strides.of(value, sizes)
        sample = torch.empty(shape, device="meta")
        if self._gradient or sample.stride() == strides or 0 in strides or not sample.numel():
            return lambda made, arguments: made[one].contiguous()
        if torch.empty_strided(shape, strides, device="meta").is_contiguous():  # only strides of extents of 1 differ
            return lambda made, arguments: made[one].contiguous().as_strided(shape, strides)
        return lambda made, arguments: _with_strides(made[one], shape, strides)

    def _program(self, sizes: dict[str, int]) -> "_Sized":
        """Return the program for given sizes of the symbols, and the functions that make the results."""
        key = tuple(sizes.values())
        found = self._programs.get(key)
        if found is not None:
            return found
        session = self._own.session
        if len(self._programs) >= _SHAPES:
            session.release(self._programs.pop(next(iter(self._programs))).program)
        options = self._options()
        numbers = session.ids if self._numbers is None else self._numbers
        with _disable_current_modes(), torch.no_grad():  # a capture may be running
            graph = lower(self.graph, sizes, self._folded, gradient=self._gradient)
            program = compile_graph(graph, numbers, _unknown, options)
            made = _Sized(program, self._makers(sizes))
        root = program.kernel_graphs[0]
        self._numbers = self._numbers or _Same(root.graph_id, root.model_id)
        session.compile(program, options)
        self._programs[key] = made
        return made

    def _options(self) -> CompileOptions:
        session = self._own.session
        return replace(
            session.options(),
            pipeline="torchair-private" if session.chip.private_formats("O0") else "torchair",
            engine=self._own.engine.name,
            memory_reuse=True,
            fusion=self._fuses,
            ge_graph=session.ge_graphs.mode,
            ge_level=session.ge_graphs.level,
        )


def _with_strides(tensor: torch.Tensor, shape: Sequence[int], strides: tuple[int, ...]) -> torch.Tensor:
    """Return the tensor if it has the given strides, and otherwise a copy that has them."""
    if tensor.stride() == strides:
        return tensor
    return torch.empty_strided(tuple(shape), strides, dtype=tensor.dtype).copy_(tensor)


def _unknown(op_type: str) -> Any:
    raise KeyError(op_type)
