"""Views that wait for what reads them. [spec aten 9.7]"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dumpsim.frontends.torchair._ge import GeGraph, Ref

__all__ = ["Deferred", "Views"]


@dataclass(frozen=True, slots=True, eq=False)
class Deferred:
    """A view that no node makes yet.

    Attributes
    ----------
    source : Ref
    view : torch.Tensor
        A tensor without values that lies in the source's as the view does, if that is contiguous.
    value : torch.Tensor
        What torch knows of the result.
    """

    source: Ref
    view: torch.Tensor
    value: torch.Tensor


class Views:
    """The views of a graph."""

    def __init__(self, graph: GeGraph) -> None:
        self._graph = graph
        self._made: dict[int, tuple[Deferred, Ref]] = {}

    def defer(
        self, source: Any, function: Any, arguments: Sequence[Any], keywords: dict[str, Any], value: torch.Tensor
    ) -> Deferred | None:
        """A view of a tensor or of a view; None where it has to be made at once."""
        if isinstance(source, Deferred):
            base, before = source.source, source.view
        elif isinstance(source, Ref) and source.output.shape is not None:
            base = source
            before = _empty(source.output.shape, value)
        else:
            return None
        if function is torch.ops.aten.reshape.default or function is torch.ops.aten.view.default:
            arguments, keywords = (tuple(value.shape),), {}
            function = torch.ops.aten.view.default
        elif any(isinstance(one, Ref) for one in arguments):
            return None
        try:
            view = function(before, *arguments, **keywords)
        except (RuntimeError, ValueError):
            return None
        return Deferred(base, view, value)

    def real(self, what: Deferred, learn: Callable[[Any, Any], None]) -> Ref:
        """The nodes of a view, once a view."""
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
            return self._reshape(source, extents)
        wide = [at for at, extent in enumerate(extents) if extent != 1]
        by_stride = sorted(wide, key=lambda at: -_number(strides[at]))
        base = tuple(extents[at] for at in by_stride)
        made = source if base == tuple(shape) else self._reshape(source, base)
        order = [by_stride.index(at) for at in wide]
        made = Ref(self._graph.add("Transpose", [made, self._const(order)]))
        kept = tuple(extents[at] for at in wide)
        return made if kept == extents else self._reshape(made, extents)

    def _reshape(self, source: Ref, shape: Sequence[Any]) -> Ref:
        numbers = [one if isinstance(one, int) else -1 for one in shape]
        attrs = {"axis": 0, "num_axes": -1}
        return Ref(self._graph.add("Reshape", [source, self._const(numbers)], attrs))

    def _const(self, numbers: Sequence[int]) -> Ref:
        return self._graph.const(list(numbers), torch.int64)


def _number(stride: Any) -> int:
    """A stride, of a symbol that of the example."""
    return stride if isinstance(stride, int) else int(stride.node.hint)


def _empty(shape: Sequence[Any], like: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor without values, among the fake tensors where torch has any."""
    mode = getattr(like, "fake_mode", None)
    if mode is None:
        return torch.empty(tuple(shape), device="meta")
    with mode:
        return torch.empty(tuple(shape), device="meta")
