"""Where the values of a network that is split come from, and how they lie, while it is being split."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dumpsim.core.abstract import TensorType
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.graph import Node, Parameter, Value
from dumpsim.graph.parallel.plan import source_of
from dumpsim.graph.parallel.weights import Weights

__all__ = ["Source", "Sources"]


@dataclass(frozen=True, slots=True)
class Source:
    """A value with its layout, as it is before a Reshape of the script whose target is not yet known."""

    value: Value
    layout: TensorLayout
    name: str  # full name of the operator that made it


class Sources:
    """The sources of values.

    Parameters
    ----------
    weights : Weights
    devices : int

    Attributes
    ----------
    layouts : dict of int to tuple of TensorLayout or None
        Of the outputs of nodes, by the ids of these.
    names : dict of int to str
        Full names of operators, by id.
    pending : dict of int to Source
        By the id of a Reshape what the next one starts from.
    formals : dict of int to Source or None
        By the id of a variable of a loop what it is at first.
    """

    def __init__(self, weights: Weights, devices: int) -> None:
        self._weights, self._devices = weights, devices
        self.layouts: dict[int, tuple[TensorLayout | None, ...]] = {}
        self.names: dict[int, str] = {}
        self.pending: dict[int, Source] = {}
        self.formals: dict[int, Source | None] = {}
        self._given: dict[tuple[int, int], str] = {}  # what made the results of control flow, by node and index

    def of(self, value: Value) -> Source | None:
        """Where a value comes from; None for what has no layout."""
        root, index = source_of(value)
        if isinstance(root, Parameter):
            formal = self.formals.get(id(root))
            if formal is not None:
                return replace(formal, value=value)
            if root.is_weight and isinstance(root.abstract, TensorType):
                cut = self._weights.layouts.get(root.name) or TensorLayout.whole(root.abstract.shape, self._devices)
                return Source(value, cut, root.name)
            return None
        if id(root) in self.pending:
            return self.pending[id(root)]
        layout = self.layouts[id(root)][index] if id(root) in self.layouts else None
        if layout is None:
            return None
        return Source(value, layout, self._given.get((id(root), index)) or self.names.get(id(root), ""))

    def give(self, node: Node, found: Sequence[Source | None]) -> None:
        """Note how the results of a branch or loop lie."""
        self.layouts[id(node)] = tuple(None if source is None else source.layout for source in found)
        for at, source in enumerate(found):
            if source is not None:
                self._given[id(node), at] = source.name
