"""Plans which operators of a network are cut, and how: the layouts of all of them, before nodes are inserted."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from dumpsim.core.abstract import TensorType, tensors_of
from dumpsim.core.cutting import (
    Labels,
    Layouts,
    Operator,
    Reduction,
    Scheme,
    Strategy,
    layouts_of,
    layouts_over,
    names_of,
    strategy_error,
)
from dumpsim.core.cuttingrules import default_strategy, scheme_of
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT
from dumpsim.graph.gradient_control import below, everything
from dumpsim.graph.graph import Constant, Graph, Node, Value, uses
from dumpsim.graph.mindspore.gradient_node import GRADIENT, outputs_of
from dumpsim.graph.parallel.settings import Settings

__all__ = ["Edge", "Plan", "edges_of", "forward_nodes", "is_cut", "plan_of", "source_of"]

# nodes that order, bundle or pass values on: the layout is that of the operands
_PASSING = frozenset(
    {"MakeTuple", "TupleGetItem", "Load", "Depend", "UpdateState", "Return", "StopGradient", "TensorDump", "Print"}
)
# operators without a layout; the vendor skips a loss of this name, which scripts define [observed 2.10]
_UNCUT = frozenset({"Reshape", GRADIENT, "_VirtualDataset", CUSTOM_GRADIENT, "VirtualLoss"})


@dataclass(frozen=True, slots=True)
class Edge:
    """A tensor operand of an operator: operand `at` of `node`, which is the operator or the tuple that it takes."""

    node: Node
    at: int

    @property
    def value(self) -> Value:
        """The operand."""
        return self.node.operands[self.at]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """How one operator is cut.

    Attributes
    ----------
    edges : tuple of Edge
        Its tensor operands, in the order of `layouts.inputs`.
    is_given : bool
        Whether the script gave the strategy.
    """

    node: Node
    operator: Operator
    scheme: Scheme
    layouts: Layouts
    edges: tuple[Edge, ...]
    is_given: bool

    @property
    def strategy(self) -> Strategy:
        """The strategy."""
        return self.operator.strategy


def is_cut(node: Node) -> bool:
    """Whether a node is an operator with a layout of its own; Reshape takes those of its neighbours."""
    return node.op_type not in _PASSING and node.op_type not in _UNCUT and not node.blocks


def forward_nodes(graph: Graph) -> list[Node]:
    """Return the nodes of the forward pass in program order; all nodes if no gradient is taken.

    Other nodes that depend on the arguments, but not on a gradient, belong to it, too.

    Raises
    ------
    UnsupportedError
        If a gradient is taken inside of control flow.
    """
    gradients = [node for node in graph.trail if node.op_type == GRADIENT]
    if gradients:
        wanted = {id(node) for node in below(outputs_of(node) for node in gradients)}
        arguments = {id(p) for p in graph.parameters if not p.is_weight}
        after: set[int] = set()  # gradients, and nodes that depend on them
        for node in graph.trail:
            operands = {id(value) for value in uses(node)}
            if node.op_type == GRADIENT or operands & after:
                after.add(id(node))
            elif operands & arguments:
                arguments.add(id(node))
        found = [node for node in graph.trail if id(node) in wanted or id(node) in arguments]
    else:
        found = list(graph.trail)
    for node in everything(found):
        if node.op_type == GRADIENT and all(node is not one for one in gradients):
            raise UnsupportedError(
                "a gradient in a branch or loop of a network that is split over devices is not emulated",
                where=graph.name,
            )
    return found


def edges_of(node: Node) -> Iterator[Edge]:
    """Yield the tensor operands of an operator, tuples flattened."""
    for at, value in enumerate(node.operands):
        if isinstance(value.abstract, TensorType):
            yield Edge(node, at)
        elif isinstance(value, Node) and value.op_type == "MakeTuple" and tensors_of(value.abstract):
            yield from edges_of(value)


def source_of(value: Value) -> tuple[Value, int]:
    """Return the operator, argument, weight or constant that a value comes from, and the index of its output."""
    index = 0
    while isinstance(value, Node) and value.op_type in _PASSING:
        if value.op_type == "TupleGetItem":
            place = value.operands[1]
            assert isinstance(place, Constant)
            index = int(place.value)
            if isinstance(value.operands[0], Node) and value.operands[0].op_type in ("MakeTuple", CUSTOM_GRADIENT):
                value, index = value.operands[0].operands[index], 0
                continue
        elif value.op_type == "MakeTuple":
            break
        value = value.operands[0]
    return value, index


def plan_of(node: Node, settings: Settings, attrs: Mapping[str, Any], generated: Strategy | None = None) -> Plan:
    """Return the plan of an operator with the strategy of the script, or a generated one.

    Raises
    ------
    StrategyError
    """
    edges = tuple(edges_of(node))
    operator = Operator(
        op_type=node.op_type,
        shapes=tuple(_shape(edge.value) for edge in edges),
        outputs=tuple(tensor.shape for tensor in tensors_of(node.abstract)),
        constants={at: value.value for at, value in enumerate(node.operands) if isinstance(value, Constant)},
        attrs=node.attrs,
        strategy=(),
        devices=settings.device_num,
    )
    given = attrs.get("in_strategy")
    over: tuple[TensorLayout, ...] | None = None
    if given is None:
        strategy = generated or default_strategy(operator)
    elif any(isinstance(row, TensorLayout) for row in given):
        over = tuple(given)
        strategy = tuple(row.cuts for row in over)
    else:
        strategy = tuple(tuple(row) for row in given)
    operator = replace(operator, strategy=strategy)
    scheme = scheme_of(operator)
    if attrs.get("out_strategy") is not None:
        scheme = _with_output(operator, scheme, attrs["out_strategy"])
    layouts = (
        layouts_of(operator, scheme, settings.rank)
        if over is None
        else layouts_over(operator, scheme, over, settings.rank)
    )
    return Plan(node=node, operator=operator, scheme=scheme, layouts=layouts, edges=edges, is_given=given is not None)


def _with_output(operator: Operator, scheme: Scheme, wanted: Any) -> Scheme:
    """Return the scheme of a matrix product whose result is scattered: the output's strategy cuts axis 0 further."""
    row = tuple(wanted[0])
    counts = dict(scheme.matrix)
    plain = tuple(prod(counts[name] for name in names_of(label)) for label in scheme.outputs[0])
    if row == plain:
        return scheme
    if scheme.reduction is None or operator.op_type not in ("MatMul", "Gather"):
        raise strategy_error(operator, f"the output cannot be cut into {row}")
    (label,) = scheme.reduction.labels
    if row != (plain[0] * counts[label], *plain[1:]):
        raise strategy_error(operator, f"the output cannot be cut into {row}")
    output: Labels = [(*names_of(scheme.outputs[0][0]), label), *scheme.outputs[0][1:]]
    return replace(scheme, outputs=[output], reduction=Reduction("scatter", (label,)))


def _shape(value: Value) -> tuple[int, ...]:
    assert isinstance(value.abstract, TensorType)
    return value.abstract.shape
