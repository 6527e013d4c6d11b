"""Strides of a captured graph's tensors in eager torch."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from dumpsim.frontends.torchair._extents import Sizes, extent, extents

__all__ = ["Strides"]


class Strides:
    """Finds the strides of values of an FX graph.

    The fake tensors of Dynamo have the sizes of eager torch, but a view may have other strides along dimensions of
    extent 1. `torch.matmul` reads those strides when it chooses between one large product and a batch of small ones,
    whose sums are rounded differently. Therefore views are made again here with the C++ code that eager torch runs.

    Parameters
    ----------
    nodes : iterable of torch.fx.Node

    Examples
    --------
    >>> Strides(()).of(torch.empty(2, 3), {})  # not the value of a node: the tensor's own strides
    (3, 1)
    """

    def __init__(self, nodes: Iterable[fx.Node]) -> None:
        self._origins: dict[int, tuple[fx.Node, int | None]] = {}
        for node in nodes:
            value = node.meta.get("val")
            if isinstance(value, (list, tuple)):
                for at, one in enumerate(value):
                    self._origins.setdefault(id(one), (node, at))
            elif isinstance(value, torch.Tensor):
                self._origins[id(value)] = node, None
        self._sizes: Sizes | None = None
        self._made: dict[fx.Node, Any] = {}

    def of(self, value: torch.Tensor, sizes: Sizes) -> tuple[int, ...]:
        """Return the strides of a value, for given sizes of the symbols."""
        if sizes != self._sizes:
            self._sizes, self._made = dict(sizes), {}
        origin = self._origins.get(id(value))
        if origin is None:
            return extents(value.stride(), sizes)
        node, at = origin
        with _disable_current_modes(), torch._C._DisablePythonDispatcher():  # a capture may be running
            found = self._tensor(node)
        if at is not None:
            found = found[at]
        return tuple(found.stride())

    def _tensor(self, node: fx.Node) -> Any:
        """Return the value of a node, on the meta device."""
        if node not in self._made:
            self._made[node] = self._viewed(node) if _is_view(node) else self._empty(node.meta.get("val"))
        return self._made[node]

    def _viewed(self, node: fx.Node) -> Any:
        """Make a view again from its source."""
        arguments, keywords = fx.map_arg((node.args, node.kwargs), self._argument)
        target: Any = node.target
        return target(*arguments, **keywords)

    def _argument(self, node: fx.Node) -> Any:
        value = node.meta.get("val")
        return extent(value, self._sizes or {}) if isinstance(value, (int, torch.SymInt)) else self._tensor(node)

    def _empty(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._empty(one) for one in value]
        if not isinstance(value, torch.Tensor):
            return None
        sizes: Mapping[str, int] = self._sizes or {}
        shape, strides = extents(value.shape, sizes), extents(value.stride(), sizes)
        return torch.empty_strided(shape, strides, dtype=value.dtype, device="meta")


def _is_view(node: fx.Node) -> bool:
    """Return whether a node returns views of its first argument."""
    function = node.target
    if node.op != "call_function" or not isinstance(function, torch._ops.OpOverload):
        return False
    alias: Any = function._schema.arguments[0].alias_info if function._schema.arguments else None
    return alias is not None and not alias.is_write
