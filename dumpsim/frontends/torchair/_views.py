"""Deferred views: their nodes are made when an operator reads them. [spec aten 9.7]"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from dumpsim.frontends.torchair._ge import GeGraph, Ref, SymbolList

__all__ = ["Deferred", "Views"]


@dataclass(frozen=True, slots=True, eq=False)
class Deferred:
    """A view without nodes.

    Attributes
    ----------
    source : Ref
    view : torch.Tensor
        The same view of a contiguous tensor without values.
    value : torch.Tensor
        Fake tensor of the result.
    """

    source: Ref
    view: torch.Tensor
    value: torch.Tensor


class Views:
    """The views of a graph.

    Parameters
    ----------
    graph : GeGraph
    """

    def __init__(self, graph: GeGraph) -> None:
        self._graph = graph
        self._made: dict[int, tuple[Deferred, Ref]] = {}
        self._named: dict[Ref, dict[str, Ref]] = {}  # nodes of the symbols in the sizes of a tensor's views
        self._extents: dict[str, Ref] = {}  # nodes of the symbols in Reshapes

    def defer(
        self, source: Any, function: Any, arguments: Sequence[Any], keywords: dict[str, Any], value: torch.Tensor
    ) -> Deferred | None:
        """Defer a view of a tensor or of a view; return None if its nodes have to be made at once."""
        if isinstance(source, Deferred):
            base, before = source.source, source.view
        elif isinstance(source, Ref) and source.output.shape is not None:
            base = source
            before = _empty(source.output.shape, value)
        else:
            return None
        if function is torch.ops.aten.reshape.default or function is torch.ops.aten.view.default:
            if not self._knows(base, arguments[0] if arguments else keywords.get("size", keywords.get("shape")), value):
                return None
            arguments, keywords = (tuple(value.shape),), {}
            function = torch.ops.aten.view.default
            if not _has_view(before, value.shape):
                return None
        elif any(isinstance(one, Ref) for one in arguments):
            return None
        try:
            view = function(before, *arguments, **keywords)
        except (RuntimeError, ValueError):
            return None
        return Deferred(base, view, value)

    def _knows(self, base: Ref, sizes: Any, value: torch.Tensor) -> bool:
        """Return whether all symbols of a view's shape have nodes; record those of its sizes for later views."""
        named = self._named.get(base, {})
        if isinstance(sizes, SymbolList):
            for one, made in zip(sizes, sizes.pack.node.inputs, strict=True):
                if isinstance(one, Ref) and made is not None:
                    named[str(self._graph.symbols[one.node.name, one.index])] = made
        if any(not isinstance(extent, int) and str(extent) not in named for extent in value.shape):
            return False
        self._named[base] = named
        return True

    def real(self, what: Deferred, learn: Callable[[Any, Any], None]) -> Ref:
        """Return the output of a view's nodes; they are made once."""
        found = self._made.get(id(what))
        if found is not None:
            return found[1]
        made = self._emit(what)
        learn(made, what.value)
        self._made[id(what)] = what, made
        return made

    def _emit(self, what: Deferred) -> Ref:
        source, view = what.source, what.view
        shape = source.output.shape
        assert shape is not None
        extents, strides = tuple(view.shape), tuple(view.stride())
        if extents == tuple(shape) and strides == tuple(_empty(shape, view).stride()):
            return source
        if view.is_contiguous():
            return self._reshape(source, source, extents)
        wide = [at for at, extent in enumerate(extents) if extent != 1]
        by_stride = sorted(wide, key=lambda at: -_number(strides[at]))
        base = tuple(extents[at] for at in by_stride)
        made = source if base == tuple(shape) else self._reshape(source, source, base)
        order = [by_stride.index(at) for at in wide]
        made = Ref(self._graph.add("Transpose", [made, self._const(order)]))
        found = tuple(extents[at] for at in wide)
        return made if found == extents else self._reshape(source, made, extents)

    def _reshape(self, base: Ref, source: Ref, shape: Sequence[Any]) -> Ref:
        """Make a Reshape; a shape with symbols is a Pack."""
        attrs = {"axis": 0, "num_axes": -1}
        if all(isinstance(one, int) for one in shape):
            sizes = self._const(list(shape))
        else:
            sizes = self._graph.pack([one if isinstance(one, int) else self._extent(base, one) for one in shape])
        return Ref(self._graph.add("Reshape", [source, sizes], attrs))

    def _extent(self, base: Ref, extent: Any) -> Ref:
        """Return the node of a symbol in the shape of a view of `base`."""
        key = str(extent)
        if key not in self._extents:
            found = self._named.get(base, {}).get(key)
            self._extents[key] = self._found(base, key) if found is None else found
        return self._extents[key]

    def _found(self, base: Ref, symbol: str) -> Ref:
        """Make nodes that read a symbol from the shape of a tensor."""
        names = [str(one) for one in base.output.shape or ()]
        shape = self._graph.add("Shape", [base], {"dtype": torch.int32})
        attrs = {"validate_indices": True, "batch_dims": 0, "is_preprocessed": False, "negative_index_support": False}
        at = self._graph.const(names.index(symbol), torch.int64)
        return Ref(self._graph.add("Gather", [Ref(shape), at], attrs))

    def _const(self, numbers: Sequence[int]) -> Ref:
        return self._graph.const(list(numbers), torch.int64)


def _number(stride: Any) -> int:
    """Return an extent or a stride as a number: a symbol's value in the example inputs."""
    return stride if isinstance(stride, int) else int(stride.node.hint)


def _has_view(tensor: torch.Tensor, shape: Sequence[Any]) -> bool:
    """Return whether the elements of a tensor have a view of another shape.

    Fake tensors cannot tell: they take a dimension of extent 1 for one that joins its neighbours. [torch 2.13 observed]
    """
    with _disable_current_modes():
        real = torch.empty_strided(_numbers(tensor.shape), _numbers(tensor.stride()), device="meta")
        try:
            real.view(_numbers(shape))
        except RuntimeError:
            return False
    return True


def _numbers(extents: Sequence[Any]) -> tuple[int, ...]:
    return tuple(map(_number, extents))


def _empty(shape: Sequence[Any], like: Any) -> torch.Tensor:
    """Make a contiguous tensor without values: a fake tensor, as `like` is."""
    with like.fake_mode:
        return torch.empty(tuple(shape), device="meta")
