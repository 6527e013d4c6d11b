"""Graphs of operators: nodes, parameters, constants.

A front end captures a `Graph`, and passes rewrite it; it is cut at control flow into kernel graphs (`graph.program`).
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

PLAIN = "DefaultFormat"  # the layout of the host


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The layout of a tensor on the device."""

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
    storage: Any = None  # the front end's Parameter, see `dumpsim.runtime.storage`; opaque here
    debug_name: str = ""  # label in the IR, if it differs from the name
    is_element: bool = False  # an item of a tuple argument; it gets no Parameter file [observed 2.10]
    is_formal: bool = False  # parameter of an inner function, or result of another segment: it has no memory of its own


@dataclass(eq=False, slots=True, kw_only=True)
class Constant:
    """A value known at compile time: number, tuple, string, DType, None, monad token or numpy array."""

    value: Any
    abstract: Abstract


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Origin:
    """The origin of a side of a branch; sides with equal `name` are one function, captured more than once.

    Attributes
    ----------
    key : hashable
        Position in the source, and what the side computes.
    values : tuple of Value
        The outer values that it uses.
    keeps : object
        The object whose id is part of the key; the reference keeps it alive.
    """

    key: Hashable
    values: "tuple[Value, ...]"
    keeps: object

    @property
    def name(self) -> Hashable:
        """An identity that is equal for sides that are one function."""
        return (self.key, tuple(map(id, self.values)))


@dataclass(eq=False, slots=True, kw_only=True)
class Step:
    """The gradient of a function of a loop's round, or of the code after the loop.

    A function of a round ends with a call: of the loop's header, of a side of a branch, or of the code after a branch.

    Attributes
    ----------
    graph : Graph
        Its parameters are the results of the gradient of that call, its outputs the gradients of `targets`.
    given : list of Value
        The values whose gradients the gradient of that call returns, as named in the called function.
    targets : list of Value
    split : Node or None
        The branch or loop that turns the code after it into functions.
    inner : tuple of Step
        Of a branch at the end of a round: its sides. Of any other branch: the code after it. Of a loop: its round, the
        code after it, and its header.
    """

    graph: "Graph"
    given: "list[Value]"
    targets: "list[Value]"
    split: "Node | None" = None
    inner: "tuple[Step, ...]" = ()


@dataclass(eq=False, slots=True, kw_only=True)
class Control:
    """The properties of a control node, and its connection with its gradient.

    Attributes
    ----------
    variables : tuple of str
        Variables of the script that a loop carries, by output.
    backward : Node or None
        The gradient of a branch.
    is_differentiated : bool
        Whether it is in a function that is differentiated, so that it returns a gradient in addition to its outputs.
    gradients : int
        Number of gradients that are taken of a loop.
    is_inner : bool
        Whether it is in a loop.
    unwinds : list of Node
        The gradients of a loop.
    saved : list of int
        Of a loop's gradient: the outputs of the loop's body that it needs from every round.
    steps : tuple of Step
        Of a loop's gradient that functions return: the steps of the loop's round, of the code after the loop, and of
        its header.
    jumps : tuple of str
        Of a branch at the end of a loop's body: how its sides end, ``break``, ``continue`` or "" (with the code after
        the branch); a side that breaks returns the current variables of the loop. Of such a loop: not empty.
    starts : tuple of int
        Of such a branch: the index in each side at which the code after the branch begins.
    joins : bool
        Of a branch: whether its outputs are formal parameters of the function that the vendor's parser creates from the
        code after it.
    goes_on : bool
        Of a branch, during capture: whether both sides are to continue with the code after it.
    returns : bool
        Of a branch: whether both sides contain the code after it, so that the function around it returns its outputs.
    tails : bool
        Of a branch: whether both sides return the result of a function that they call.
    kept : set of int
        Outputs that are not dropped although they are unused.
    passed : list of int
        Outputs of a branch that an unrolled loop passes on, in the order of the parameters of the loop's function; they
        are not dropped before gradients.
    dropped : list of Value
        Of the bundle that a round returns: the unused values that it returned before.
    loops : frozenset of object
        Keys of the unrolled loops around it, see `NodeText.formals`.
    origins : tuple of Origin
        Of a branch: the identities of its sides for the vendor's parser; empty if they are separate functions.
    """

    variables: tuple[str, ...] = ()
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
    returns: bool = False
    tails: bool = False
    kept: set[int] = field(default_factory=set)
    passed: list[int] = field(default_factory=list)
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
    dump_mark: str | None = None  # the mark of set_dump, e.g. "true"
    blocks: "tuple[Graph, ...]" = ()  # of control nodes: branches, loop condition and body
    control: Control | None = None
    definition: OpDef | None = None  # of a node that only the machine's compiler creates or renames
    layouts: tuple[Layout, ...] = ()  # of the outputs, if one differs from the host's
    members: "tuple[Node, ...]" = ()  # of a fused node: the nodes that it replaces, in execution order
    text: NodeText | None = None  # created when a compiler prints the node, see `text_of`

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
    trail: list[Node] = field(default_factory=list)  # every node in program order, including dead ones
    is_tied: bool = True  # the output waits for the loads; that of a backward pass does not [observed 2.10]
    differentiates_weights: bool = False  # a gradient of weights was expanded in it
    is_analysed_again: bool = False  # its functions are analysed again after their closures are lifted
    is_continued: bool = False  # its numbers in IR text continue those of the previous compilation
    is_named_before: bool = False  # all of its nodes have used up numbers in IR text before
    results: int | None = None  # of a block with further outputs for its gradient: number of its own outputs

    def nodes(self) -> list[Node]:
        """Return the nodes that the output needs, operands before users."""
        return topological([self.output]) if self.output is not None else []


def _operands(node: Node) -> "Sequence[Value]":
    return node.operands


def topological(roots: Iterable[Value | None], needs: "Callable[[Node], Sequence[Value]]" = _operands) -> list[Node]:
    """Return the nodes that `roots` depend on, operands (or what else a node `needs`) first and in their order.

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
    """Return the text of a node, created on first use."""
    if node.text is None:
        node.text = NodeText()
    return node.text


def control_of(node: Node) -> Control:
    """Return the `Control` of a control node, created on first use."""
    if node.control is None:
        node.control = Control()
    return node.control


def definition_of(node: Node, find: Callable[[str], OpDef]) -> OpDef:
    """Return the definition of a node: its own, or the table's."""
    return node.definition if node.definition is not None else find(node.op_type)


def leaves_of(abstract: Abstract) -> Iterator[TensorType | ScalarType]:
    """Yield the types of tensors and numbers that a kernel returns, tuples flattened."""
    if isinstance(abstract, (TensorType, ScalarType)):
        yield abstract
    elif isinstance(abstract, TupleType):
        for item in abstract.items:
            yield from leaves_of(item)


def copied(graph: Graph, known: dict[int, "Value"] | None = None) -> Graph:
    """Copy a graph with its nodes and parameters, which passes may change then; constants are shared.

    Parameters
    ----------
    graph : Graph
    known : dict, optional
        For a graph that uses outer values: their replacements in the copy, by id. Copied values are added; unknown
        values are not replaced.
    """
    return _copied(graph, {} if known is None else known, is_closed=known is None)


def _copied(graph: Graph, known: dict[int, "Value"], *, is_closed: bool) -> Graph:
    def new(value: Value, is_bundle: bool = is_closed) -> Value:
        if id(value) not in known and isinstance(value, Node) and is_bundle:  # not a part of the program
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
        if mine.text is not None:
            mine.text.forward = known.get(id(mine.text.forward), mine.text.forward)
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
    """Return the values that a node needs: its operands, and the outer values that its blocks use."""
    found = list(node.operands)
    for block in node.blocks:
        inside = {id(n) for n in block.trail} | {id(p) for p in block.parameters}
        values = [v for n in block.trail for v in uses(n)]
        if isinstance(block.output, Node):
            values += [block.output] if id(block.output) in inside else block.output.operands
        found += [v for v in values if id(v) not in inside and not isinstance(v, Constant)]
    return found


def reachable(roots: Iterable[Value | None]) -> set[int]:
    """Return the ids of the nodes that `roots` need, also through blocks."""
    seen: set[int] = set()
    pending = [root for root in roots if isinstance(root, Node)]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            pending.extend(v for v in uses(node) if isinstance(v, Node))
    return seen
