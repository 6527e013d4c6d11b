"""A compiled graph as torch calls it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from dumpsim.core.options import CompileOptions
from dumpsim.frontends.torchair._convert import Converter, ViewOfInput
from dumpsim.frontends.torchair._extents import extents
from dumpsim.frontends.torchair._ge import GeGraph
from dumpsim.frontends.torchair._lower import array_of, lower, tensor_of
from dumpsim.frontends.torchair._state import TorchAir
from dumpsim.graph.pipeline import compile_graph
from dumpsim.graph.program import Program

__all__ = ["Compiled"]

_SHAPES = 8  # programs that a graph with symbols keeps


@dataclass(slots=True)
class _Same:
    """Numbers of a graph that is compiled for further shapes: those of the first time."""

    graph_id: int
    model_id: int

    def graph(self) -> int:
        return self.graph_id

    def model(self) -> int:
        return self.model_id

    def full_name(self, scope: str, op_type: str) -> str:
        return op_type

    def cnode(self) -> int:
        return 0

    def take(self, count: int) -> None: ...


class Compiled:
    """Runs a graph on the emulated device.

    Parameters
    ----------
    own : TorchAir
    converter : Converter
        Has converted the graph.
    results : sequence
        What torch knows of the captured graph's results.
    """

    def __init__(self, own: TorchAir, converter: Converter, results: Sequence[Any]) -> None:
        self.graph: GeGraph = converter.graph
        self._own = own
        self._inputs = converter.inputs
        self._kept = converter.kept
        self._results = converter.results
        self._values = list(results)
        self._programs: dict[tuple[int, ...], Program] = {}
        self._numbers: Any = None
        self._symbols = self._symbols_of(self._inputs)
        if not self._symbols:
            self._program({})

    @staticmethod
    def _symbols_of(inputs: Sequence[Any]) -> dict[str, tuple[int, int | None]]:
        """Where the size of a symbol is found: an input, and the dimension of a tensor."""
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
        program = self._program(sizes)
        made = session.execute(program, [_input(arguments[at], self._inputs[at]) for at in self._kept])
        tensors = [tensor_of(np.asarray(one)) for one in made]
        for output, index in self.graph.writes.items():
            arguments[self._kept[index]].copy_(tensors[output])
        return tuple(
            self._result(one, value, tensors, arguments, sizes)
            for one, value in zip(self._results, self._values, strict=True)
        )

    def _result(self, one: Any, value: Any, tensors: Sequence[Any], arguments: Sequence[Any], sizes: Any) -> Any:
        if isinstance(one, ViewOfInput):
            source = arguments[one.index]
            shape, strides = extents(value.shape, sizes), extents(value.stride(), sizes)
            return torch.as_strided(source, shape, strides, extents((value.storage_offset(),), sizes)[0])
        if isinstance(one, bool) or not isinstance(one, int) or not isinstance(value, torch.Tensor):
            return extents((one,), sizes)[0] if isinstance(one, torch.SymInt) else one
        made = tensors[one]
        wanted = extents(value.stride(), sizes)
        if made.stride() != wanted and 0 not in wanted and made.numel():
            made = torch.empty_strided(made.shape, wanted, dtype=made.dtype).copy_(made)
        return made

    def _program(self, sizes: dict[str, int]) -> Program:
        """The program for sizes of the symbols."""
        key = tuple(sizes.values())
        found = self._programs.get(key)
        if found is not None:
            return found
        session = self._own.session
        if len(self._programs) >= _SHAPES:
            session.release(self._programs.pop(next(iter(self._programs))))
        options = self._options()
        numbers = session.ids if self._numbers is None else self._numbers
        with _disable_current_modes(), torch.no_grad():  # a capture may be under way
            program = compile_graph(lower(self.graph, sizes), numbers, _unknown, options)
        root = program.kernel_graphs[0]
        self._numbers = self._numbers or _Same(root.graph_id, root.model_id)
        session.compile(program, options)
        self._programs[key] = program
        return program

    def _options(self) -> CompileOptions:
        session = self._own.session
        return replace(
            session.options(),
            pipeline="torchair",
            engine=self._own.engine.name,
            memory_reuse=True,
            ge_graph=session.ge_graphs.mode,
            ge_level=session.ge_graphs.level,
        )


def _input(value: Any, known: Any) -> Any:
    """An argument as the session takes it."""
    if isinstance(value, torch.Tensor):
        return array_of(value)
    return np.asarray(value, dtype=np.int64 if isinstance(known, (int, torch.SymInt)) else np.float64)


def _unknown(op_type: str) -> Any:
    raise KeyError(op_type)
