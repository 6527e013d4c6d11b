"""The strides that tensors of a captured graph have in eager torch."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from dumpsim.frontends.torchair._extents import Sizes, extent, extents

__all__ = ["Strides"]


class Strides:
    """Finds the strides of values of an FX graph.

    The tensors without values with which Dynamo captures have the sizes of eager torch, but a view of one may have
    other strides along dimensions of extent 1. `torch.matmul` looks at those strides when it chooses between one large
    product and a batch of small ones, whose sums have other rounding. So views are repeated here with the C++ code
    that eager torch runs.

    Parameters
    ----------
    nodes : iterable of torch.fx.Node

    Examples
    --------
    >>> Strides(()).of(torch.empty(2, 3), {})  # of no node: its own
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
        """The strides of a value, for sizes of symbols."""
        if sizes != self._sizes:
            self._sizes, self._made = dict(sizes), {}
        origin = self._origins.get(id(value))
        if origin is None:
            return extents(value.stride(), sizes)
        node, at = origin
        with _disable_current_modes(), torch._C._DisablePythonDispatcher():  # a capture may be under way
            found = self._tensor(node)
        if at is not None:
            found = found[at]
        return tuple(found.stride())

    def _tensor(self, node: fx.Node) -> Any:
        """What a node gives, on the meta device."""
        if node not in self._made:
            self._made[node] = self._viewed(node) if _is_view(node) else self._empty(node.meta.get("val"))
        return self._made[node]

    def _viewed(self, node: fx.Node) -> Any:
        """A view, made anew of its source."""
        arguments, keywords = fx.map_arg((node.args, node.kwargs), self._argument)
        target: Any = node.target
        return target(*arguments, **keywords)

    def _argument(self, node: fx.Node) -> Any:
        value = node.meta.get("val")
        return extent(value, self._sizes or {}) if isinstance(value, torch.SymInt) else self._tensor(node)

    def _empty(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._empty(one) for one in value]
        if not isinstance(value, torch.Tensor):
            return value
        sizes: Mapping[str, int] = self._sizes or {}
        shape, strides = extents(value.shape, sizes), extents(value.stride(), sizes)
        return torch.empty_strided(shape, strides, dtype=value.dtype, device="meta")


def _is_view(node: fx.Node) -> bool:
    """Whether a node gives views of its first argument."""
    function = node.target
    if node.op != "call_function" or not isinstance(function, torch._ops.OpOverload):
        return False
    alias: Any = function._schema.arguments[0].alias_info if function._schema.arguments else None
    return alias is not None and not alias.is_write
