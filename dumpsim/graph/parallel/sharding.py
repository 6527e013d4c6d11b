"""The result of sharding a network: layouts by node, and the graph before and after."""

from dataclasses import dataclass, field

from dumpsim.core.cutting import Strategy
from dumpsim.core.irdoc import IrDoc
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.graph import Graph, Node, Parameter, Value
from dumpsim.graph.parallel.settings import Settings

__all__ = ["Sharding", "Slices", "mismatch", "places_in_parts"]


@dataclass(eq=False, slots=True, kw_only=True)
class Sharding:
    """Information about a sharded graph.

    Attributes
    ----------
    settings : Settings
    begin, end : Graph
        Snapshots before and after the pass, as ``step_parallel_begin.ir`` and ``step_parallel_end.ir`` print them. In
        `end`, nodes that were there before keep their global types, and those that the pass inserts have none.
    layouts, inputs : dict of Node to tuple of TensorLayout
        Layouts of the outputs and of the tensor operands of the split operators; by the nodes of the compiled graph and
        by those of `end`.
    strategies : dict of Node to tuple
        The strategy of each of these operators, from the script or generated.
    reductions : dict of Node to str
        The kind of the communication after an operator whose results are terms: ``sum``, ``mean``, ``scatter`` ...
    strategies_by_name : dict of str to tuple
        The strategies by the full names of the operators, including the virtual data set.
    arguments : dict of Parameter to TensorLayout
        Layouts of the network's arguments.
    parameters : dict of str to TensorLayout
        Layouts of the weights by name.
    weights : list of Parameter
        These weights.
    groups : dict of str to tuple of int
        The ranks of the communication groups that the pass uses, in the order of their first use.
    reduced : dict of Node to Node
        The operator, by the last node of the communication after it.
    gradients : dict of Node to Slices
        Layouts of the values of a backward pass, by the nodes that compute them.
    texts : tuple of (str, IrDoc)
        The printed stages, if they were requested.
    notes : tuple of str
        Warnings where MindSpore would combine parts that do not fit together.
    """

    settings: Settings
    begin: Graph
    end: Graph
    layouts: dict[Node, tuple[TensorLayout, ...]] = field(default_factory=dict)
    inputs: dict[Node, tuple[TensorLayout, ...]] = field(default_factory=dict)
    strategies: dict[Node, Strategy] = field(default_factory=dict)
    reductions: dict[Node, str] = field(default_factory=dict)
    strategies_by_name: dict[str, Strategy] = field(default_factory=dict)
    arguments: dict[Parameter, TensorLayout] = field(default_factory=dict)
    parameters: dict[str, TensorLayout] = field(default_factory=dict)
    weights: list[Parameter] = field(default_factory=list)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    reduced: dict[Node, Node] = field(default_factory=dict)
    gradients: dict[Node, "Slices | None"] = field(default_factory=dict)
    texts: tuple[tuple[str, IrDoc], ...] = ()
    notes: tuple[str, ...] = ()

    def note_gradient(self, value: Value, gradient: Value) -> None:
        """Record the node that computes the gradient of a value of the forward pass, or of a weight.

        The gradient of a value is cut like the value. Each rank has a share of it: the gradient is the sum over all
        ranks that have a copy of the value. The gradient of a weight is already summed by the communication before it;
        the gradient of an operator whose results are terms, along the dimensions of the terms. [spec parallel 2.7]
        """
        found = self._gradient_of(value)
        if found is None or not isinstance(gradient, Node):
            return
        known = self.gradients.setdefault(gradient, found)
        if known != found:  # one node is the gradient of two values with different layouts
            self.gradients[gradient] = None

    def _gradient_of(self, value: Value) -> "Slices | None":
        if isinstance(value, Parameter):
            layout = self.parameters.get(value.name) if value.is_weight else self.arguments.get(value)
            return None if layout is None else Slices(layout, () if value.is_weight else _free(layout))
        if not isinstance(value, Node):
            return None
        if value.op_type == "_MirrorOperator" and not value.attrs["mean_flag"]:
            weight = self.parameters.get(value.attrs["mirror_user_id"])
            return None if weight is None else Slices(weight, _free(weight))
        maker = self.reduced.get(value, value)
        layouts = self.layouts.get(maker, ())
        if len(layouts) != 1:
            return None
        layout, kind = layouts[0], self.reductions.get(maker)
        if maker is not value or kind is None:
            return Slices(layout, _free(layout))
        if kind != "sum" or maker.op_type == "Gather":  # whose rows are masked after it
            return None
        return Slices(layout, tuple(dim for dim in _free(layout) if dim not in self.terms(maker)))

    def terms(self, node: Node) -> tuple[int, ...]:
        """Return the device dimensions along which the ranks have terms of an operator's result."""
        (layout,) = self.layouts[node][:1]
        inputs = [one for one in self.inputs.get(node, ()) if one.device_matrix == layout.device_matrix]
        return tuple(sorted({dim for one in inputs for dim in one.used} - layout.used))


def _free(layout: TensorLayout) -> tuple[int, ...]:
    """Return the device dimensions that cut no axis."""
    return tuple(dim for dim in range(len(layout.device_matrix)) if dim not in layout.used and layout.extent(dim) > 1)


@dataclass(frozen=True, slots=True)
class Slices:
    """A layout, and the device dimensions along which the ranks have terms of a sum."""

    layout: TensorLayout
    summed: tuple[int, ...] = ()


def mismatch(node: Node, side: int, cuts: tuple[int, ...]) -> str:
    """Return a warning about a branch or loop whose blocks return different layouts."""
    what = ("the first side of a branch", "the second side of a branch")[side]
    if node.op_type != "If":
        what = "the body of a loop"
    return (
        f"{what}{_line_of(node)} returns a tensor that is cut in another way than {cuts}, the layout that the network "
        "assumes: MindSpore does not redistribute it and takes wrong parts; here it is redistributed"
    )


def places_in_parts(node: Node, name: str, parts: int) -> str:
    """Return a warning about an operator that returns indexes along a cut axis."""
    return (
        f"{name}{_line_of(node)} searches along an axis that is cut into {parts} parts: the indexes that it returns "
        "are relative to a part, as in MindSpore"
    )


def _line_of(node: Node) -> str:
    line = node.text.sources[-1] if node.text is not None and node.text.sources else None
    return f" ({line.path}:{line.line})" if line is not None else ""
