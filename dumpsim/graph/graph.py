"""Graphs of operators: nodes, parameters, constants.

A `Graph` is what a front end captures and passes rewrite; cut at control flow it becomes kernel graphs
(`graph.program`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dumpsim.core.abstract import Abstract, MonadType, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import DType
from dumpsim.core.irdoc import SourceLine
from dumpsim.ops.opdef import OpDef

__all__ = [
    "PLAIN",
    "Constant",
    "Graph",
    "Layout",
    "Node",
    "Parameter",
    "Value",
    "copied",
    "definition_of",
    "is_monad",
    "leaves_of",
    "reachable",
    "topological",
    "uses",
]

PLAIN = "DefaultFormat"  # as on the host


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a tensor lies on the device."""

    format: str = PLAIN
    dtype: DType
    groups: int = 1


@dataclass(eq=False, slots=True, kw_only=True)
class Parameter:
    """A graph input: a weight (with a host storage) or an argument of the network."""

    name: str
    abstract: TensorType
    is_weight: bool = False
    has_default: bool = False
    storage: Any = None  # the front end's holder of the value; the runtime asks it for an array, opaque here
    debug_name: str = ""  # label in the IR where it differs from the name
    is_element: bool = False  # one of a tuple that is the argument; it gets no Parameter file [observed 2.10]


@dataclass(eq=False, slots=True, kw_only=True)
class Constant:
    """A value known at compile time: number, tuple, string, DType, None, monad token or numpy array."""

    value: Any
    abstract: Abstract


@dataclass(eq=False, slots=True, kw_only=True)
class Node:
    """One operator call."""

    op_type: str
    operands: list["Value"]
    abstract: Abstract
    attrs: dict[str, Any] = field(default_factory=dict)  # arguments of the kernel that are not operands
    printed_attrs: dict[str, Any] = field(default_factory=dict)  # primitive attributes of the IR text, in order
    node_attrs: dict[str, Any] = field(default_factory=dict)
    scope: str = "Default"
    full_name: str = ""  # scope/op_type-opN: the name in files and `kernels`
    ir_name: str = ""  # the name in IR and execution order, where it differs [spec observed 0.17]
    debug_name: str = ""  # variable it was assigned to, else CNode_N when printed
    instance_name: str | None = None
    sources: tuple[SourceLine, ...] = ()
    candidate: str = ""  # as in `IrNode.candidate`
    flags: dict[str, Any] = field(default_factory=dict)  # e.g. {"dump": "true"}
    call_scope: str | None = None  # scope of the call whose body holds the node
    block_scope: str | None = None  # the same, of the innermost branch or function
    call_name: str = ""  # variable that took the result of that call
    blocks: "tuple[Graph, ...]" = ()  # of control nodes: branches, loop condition and body
    definition: OpDef | None = None  # of a node that only the machine's compiler makes, or names anew
    layouts: tuple[Layout, ...] = ()  # of the outputs, where one is not as on the host
    members: "tuple[Node, ...]" = ()  # of a fused node: what it replaced, in the order of their work


Value = Node | Parameter | Constant


@dataclass(eq=False, slots=True, kw_only=True)
class Graph:
    """A graph with its parameters in order and one output value."""

    name: str = ""
    graph_id: int = -1
    parameters: list[Parameter] = field(default_factory=list)
    output: Value | None = None
    attrs: dict[str, str] = field(default_factory=dict)
    trail: list[Node] = field(default_factory=list)  # every node in the order of the program, dead ones too
    is_tied: bool = True  # the output waits for the loads; that of a backward pass does not [observed 2.10]

    def nodes(self) -> list[Node]:
        """Nodes that the output needs, operands before users."""
        return topological([self.output]) if self.output is not None else []


def _operands(node: Node) -> "Sequence[Value]":
    return node.operands


def topological(roots: Iterable[Value | None], needs: "Callable[[Node], Sequence[Value]]" = _operands) -> list[Node]:
    """Nodes below `roots`, operands (or what else a node `needs`) first and in their order.

    Depth-first, without recursion. This is the order of the vendor's IR text. [spec observed 1.8]
    """
    seen: set[int] = set()
    order: list[Node] = []
    for root in roots:
        if not isinstance(root, Node) or id(root) in seen:
            continue
        seen.add(id(root))
        stack: list[tuple[Node, Iterator[Value]]] = [(root, iter(needs(root)))]
        while stack:
            node, operands = stack[-1]
            for operand in operands:
                if isinstance(operand, Node) and id(operand) not in seen:
                    seen.add(id(operand))
                    stack.append((operand, iter(needs(operand))))
                    break
            else:
                stack.pop()
                order.append(node)
    return order


def definition_of(node: Node, find: Callable[[str], OpDef]) -> OpDef:
    """What stands behind a node: the compiler's own definition, or the table's."""
    return node.definition if node.definition is not None else find(node.op_type)


def leaves_of(abstract: Abstract) -> Iterator[TensorType | ScalarType]:
    """What a kernel gives back as tensors, tuples flattened."""
    if isinstance(abstract, (TensorType, ScalarType)):
        yield abstract
    elif isinstance(abstract, TupleType):
        for item in abstract.items:
            yield from leaves_of(item)


def copied(graph: Graph) -> Graph:
    """A graph with nodes and parameters of its own, which passes may change; constants are shared."""
    return _copied(graph, {})


def _copied(graph: Graph, known: dict[int, "Value"]) -> Graph:
    def new(value: Value) -> Value:
        if id(value) not in known and isinstance(value, Node):  # a bundle, which is no part of the program
            known[id(value)] = replace(value, operands=[new(operand) for operand in value.operands])
        return known.get(id(value), value)

    parameters = [replace(parameter) for parameter in graph.parameters]
    known.update((id(old), mine) for old, mine in zip(graph.parameters, parameters, strict=True))
    trail = []
    for node in graph.trail:
        mine = replace(
            node,
            operands=[new(operand) for operand in node.operands],
            attrs=dict(node.attrs),
            printed_attrs=dict(node.printed_attrs),
            flags=dict(node.flags),
            blocks=tuple(_copied(block, known) for block in node.blocks),
        )
        known[id(node)] = mine
        trail.append(mine)
    output = new(graph.output) if graph.output is not None else None
    return replace(graph, parameters=parameters, trail=trail, output=output)


def is_monad(value: Value) -> bool:
    """Whether a value is a side-effect token."""
    return isinstance(value.abstract, MonadType)


def uses(node: Node) -> list[Value]:
    """What a node needs: its operands, and the values of outer graphs that its blocks use."""
    found = list(node.operands)
    for block in node.blocks:
        inside = {id(n) for n in block.trail} | {id(p) for p in block.parameters}
        values = [v for n in block.trail for v in uses(n)]
        if isinstance(block.output, Node):
            values += [block.output] if id(block.output) in inside else block.output.operands
        elif block.output is not None:
            values.append(block.output)
        found += [v for v in values if id(v) not in inside and not isinstance(v, Constant)]
    return found


def reachable(roots: Iterable[Value | None]) -> set[int]:
    """Ids of the nodes that `roots` need, through blocks too."""
    seen: set[int] = set()
    pending = [root for root in roots if isinstance(root, Node)]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            pending.extend(v for v in uses(node) if isinstance(v, Node))
    return seen
