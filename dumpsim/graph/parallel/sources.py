"""Sources and layouts of the values of a network while it is being split."""

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
    """A value with its layout, before any Reshape of the script whose target is not yet known."""

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
        Layouts of the outputs of nodes, by the ids of the nodes.
    names : dict of int to str
        Full names of operators, by id.
    pending : dict of int to Source
        The source of a Reshape whose target is not known yet, by its id.
    formals : dict of int to Source or None
        The initial value of a loop's variable, by the id of the variable.
    """

    def __init__(self, weights: Weights, devices: int) -> None:
        self._weights, self._devices = weights, devices
        self.layouts: dict[int, tuple[TensorLayout | None, ...]] = {}
        self.names: dict[int, str] = {}
        self.pending: dict[int, Source] = {}
        self.formals: dict[int, Source | None] = {}
        self._given: dict[tuple[int, int], str] = {}  # operators of control flow's results

    def of(self, value: Value) -> Source | None:
        """Return the source of a value; None if it has no layout."""
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
        """Record the sources of the results of a branch or loop."""
        self.layouts[id(node)] = tuple(None if source is None else source.layout for source in found)
        for at, source in enumerate(found):
            if source is not None:
                self._given[id(node), at] = source.name
