"""Graphs of operators: nodes, parameters, constants.

A `Graph` is what a front end captures and passes rewrite; cut at control flow it becomes kernel graphs
(`graph.program`).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dumpsim.core.abstract import Abstract, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import DType
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.opdef import OpDef

__all__ = [
    "PLAIN",
    "Constant",
    "Control",
    "Graph",
    "Layout",
    "Node",
    "Parameter",
    "Value",
    "control_of",
    "copied",
    "definition_of",
    "leaves_of",
    "reachable",
    "text_of",
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
    is_formal: bool = False  # of a function of the network, or what another segment made: it has no memory of its own


@dataclass(eq=False, slots=True, kw_only=True)
class Constant:
    """A value known at compile time: number, tuple, string, DType, None, monad token or numpy array."""

    value: Any
    abstract: Abstract


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Origin:
    """Where a side of a branch comes from; sides with equal `name` are one function, recorded more than once.

    Attributes
    ----------
    key : hashable
        Place in the source and what the side computes.
    values : tuple of Value
        The values of others that it uses.
    keeps : object
        What the key has the identity of.
    """

    key: Hashable
    values: "tuple[Value, ...]"
    keeps: object

    @property
    def name(self) -> Hashable:
        """What only sides have in common that are one function."""
        return (self.key, tuple(map(id, self.values)))


@dataclass(eq=False, slots=True, kw_only=True)
class Step:
    """The gradient of a function of a loop's round, or of what follows the loop.

    A function of a round ends with a call: of the loop's header, of a side of a branch, of what follows a branch.

    Attributes
    ----------
    graph : Graph
        Its parameters are what the gradient of that call gives, its outputs the gradients by `targets`.
    given : list of Value
        What the gradient of that call is by, as the function that is called knows it.
    targets : list of Value
    split : Node or None
        The branch or loop that makes functions of what follows.
    inner : tuple of Step
        Of a branch at the end of a round: its sides. Of any other branch: what follows it. Of a loop: its round, what
        follows, and its header.
    """

    graph: "Graph"
    given: "list[Value]"
    targets: "list[Value]"
    split: "Node | None" = None
    inner: "tuple[Step, ...]" = ()


@dataclass(eq=False, slots=True, kw_only=True)
class Control:
    """What connects a control node with its gradient.

    Attributes
    ----------
    variables : tuple of str
        Variables of the script that a loop carries, by output.
    writes : bool
        A block writes memory, so that nothing that reads or writes memory may move before the node.
    backward : Node or None
        The gradient of a branch.
    is_differentiated : bool
        It stands in a function that is differentiated, so that it gives a gradient besides its outputs.
    gradients : int
        How many gradients are taken of a loop.
    is_inner : bool
        It stands in a loop.
    unwinds : list of Node
        The gradients of a loop.
    saved : list of int
        Of such a gradient: the outputs of the loop's body that it needs of every round.
    steps : tuple of Step
        Of such a gradient that functions hand out: of the loop's round, of what follows the loop, and of its header.
    jumps : tuple of str
        Of a branch at the end of a loop's body: how its sides end, ``break``, ``continue`` or "" (with what follows the
        branch); a side that breaks gives the variables of the loop as they are then. Of such a loop: not empty.
    starts : tuple of int
        Of such a branch: where in its sides the nodes that follow it begin.
    joins : bool
        Of a branch: its outputs are formal parameters of the function that the vendor's parser makes of what follows.
    goes_on : bool
        Of a branch, during capture: both of its sides are to go on with what follows it.
    tails : bool
        Of a branch: both of its sides give what a function gives that they call.
    kept : set of int
        Outputs that stay although nobody takes them.
    dropped : list of Value
        Of the bundle that a round gives: what it gave for nobody.
    loops : frozenset of object
        What stands for the unrolled loops around it, see `NodeText.formals`.
    origins : tuple of Origin
        Of a branch: what its sides are to the vendor's parser; empty if they are functions of their own.
    """

    variables: tuple[str, ...] = ()
    writes: bool = False
    backward: "Node | None" = None
    is_differentiated: bool = False
    gradients: int = 0
    is_inner: bool = False
    unwinds: "list[Node]" = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    steps: tuple[Step, ...] = ()
    jumps: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    joins: bool = False
    goes_on: bool = False
    tails: bool = False
    kept: set[int] = field(default_factory=set)
    dropped: "list[Value]" = field(default_factory=list)
    loops: frozenset[object] = frozenset()
    origins: tuple[Origin, ...] = ()


@dataclass(eq=False, slots=True, kw_only=True)
class Node:
    """One operator call."""

    op_type: str
    operands: list["Value"]
    abstract: Abstract
    attrs: dict[str, Any] = field(default_factory=dict)  # arguments of the kernel that are not operands
    scope: str = "Default"
    full_name: str = ""  # scope/op_type-opN: the name in files and `kernels`
    original_name: str = ""  # of a part of a split node: the name of the whole
    dump_mark: str | None = None  # what set_dump says of it, e.g. "true"
    blocks: "tuple[Graph, ...]" = ()  # of control nodes: branches, loop condition and body
    control: Control | None = None
    definition: OpDef | None = None  # of a node that only the machine's compiler makes, or names anew
    layouts: tuple[Layout, ...] = ()  # of the outputs, where one is not as on the host
    members: "tuple[Node, ...]" = ()  # of a fused node: what it replaced, in the order of their work
    text: NodeText | None = None  # made where a compiler prints the node, see `text_of`

    @property
    def ir_name(self) -> str:
        """The name in IR text and execution order."""
        return (self.text.full_name if self.text is not None else "") or self.full_name


Value = Node | Parameter | Constant


@dataclass(eq=False, slots=True, kw_only=True)
class Graph:
    """A graph with its parameters in order and one output value."""

    name: str = ""
    graph_id: int = -1
    parameters: list[Parameter] = field(default_factory=list)
    output: Value | None = None
    trail: list[Node] = field(default_factory=list)  # every node in the order of the program, dead ones too
    is_tied: bool = True  # the output waits for the loads; that of a backward pass does not [observed 2.10]
    differentiates_weights: bool = False  # a gradient by weights was expanded in it
    is_continued: bool = False  # its numbers in IR text go on after those of the compile before
    is_named_before: bool = False  # all of its nodes took numbers in IR text once before
    results: int | None = None  # of a block whose gradient takes further outputs: number of its own

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


def text_of(node: Node) -> NodeText:
    """The text of a node, made where it has none yet."""
    if node.text is None:
        node.text = NodeText()
    return node.text


def control_of(node: Node) -> Control:
    """What connects a control node with its gradient, made where it has none yet."""
    if node.control is None:
        node.control = Control()
    return node.control


def definition_of(node: Node, find: Callable[[str], OpDef]) -> OpDef:
    """What defines a node: the compiler's own definition, or the table's."""
    return node.definition if node.definition is not None else find(node.op_type)


def leaves_of(abstract: Abstract) -> Iterator[TensorType | ScalarType]:
    """What a kernel gives back as tensors, tuples flattened."""
    if isinstance(abstract, (TensorType, ScalarType)):
        yield abstract
    elif isinstance(abstract, TupleType):
        for item in abstract.items:
            yield from leaves_of(item)


def copied(graph: Graph, known: dict[int, "Value"] | None = None) -> Graph:
    """A graph with nodes and parameters of its own, which passes may change; constants are shared.

    Parameters
    ----------
    graph : Graph
    known : dict, optional
        For a graph that uses values of others: by the id of a value what stands for it in the copy. What is copied is
        added; values that are not known stay as they are.
    """
    return _copied(graph, {} if known is None else known, is_closed=known is None)


def _copied(graph: Graph, known: dict[int, "Value"], *, is_closed: bool) -> Graph:
    def new(value: Value, is_bundle: bool = is_closed) -> Value:
        if id(value) not in known and isinstance(value, Node) and is_bundle:  # it is not a part of the program
            known[id(value)] = replace(value, operands=[new(operand) for operand in value.operands])
        return known.get(id(value), value)

    parameters = [replace(parameter) for parameter in graph.parameters]
    for parameter, copy in zip(graph.parameters, parameters, strict=True):
        known.setdefault(id(parameter), copy)
    trail = []
    for node in graph.trail:
        mine = replace(
            node,
            operands=[new(operand) for operand in node.operands],
            attrs=dict(node.attrs),
            blocks=tuple(_copied(block, known, is_closed=is_closed) for block in node.blocks),
            control=replace(node.control) if node.control is not None else None,
            text=replace(node.text, attrs=dict(node.text.attrs), node_attrs=dict(node.text.node_attrs))
            if node.text is not None
            else None,
        )
        known[id(node)] = mine
        trail.append(mine)
        if mine.control is not None and mine.control.origins:
            mine.control.origins = tuple(
                replace(origin, values=tuple(known.get(id(value), value) for value in origin.values))
                for origin in mine.control.origins
            )
    output = new(graph.output, True) if graph.output is not None else None
    return replace(graph, parameters=parameters, trail=trail, output=output)


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
