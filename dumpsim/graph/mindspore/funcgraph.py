"""Func graphs: a network with control flow as functions that call each other.

Branches, and the header, body and rest of a loop, are separate functions. A function is a constant operand where it is
used. Three kinds of nodes use functions: ``Partial(function, *arguments)`` binds arguments,
``Switch(condition, one, other)`` chooses, and ``Call(callee, *arguments)`` calls a function or the choice of a Switch.
A function may use values of enclosing functions; after these are lifted to parameters, the vendor's front end passes it
to the back end. [spec vendor 0.1, 2.8]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dumpsim.core.abstract import FunctionType
from dumpsim.graph.graph import Constant, Node, Parameter, Value, topological

__all__ = ["LABELS", "FuncGraph", "as_constant", "called_by", "function_of", "functions_of", "nodes_of"]

# the vendor's labels of the functions that it creates from control flow [spec vendor 2.7]
LABELS = {"true": "✓", "false": "✗", "header": "↵", "body": "↻", "after": "↓", "end": "⇊"}


@dataclass(eq=False, repr=False, slots=True, kw_only=True)
class FuncGraph:
    """A function of a network.

    Attributes
    ----------
    kind : str
        ``root``, ``true`` or ``false`` (of a branch), ``header``, ``body``, ``after`` or ``end`` (of a loop); "" if
        unknown.
    label : str
        Name without the leading number.
    number : int
        Number of the last specialisation of the function, see `specialise`.
    parameters : list of Parameter
        The formal parameters.
    result : Node
        The ``Return``, whose operand is the result of a call.
    trail : list of Node
        The nodes in program order.
    scope : str
        Scope of the cell whose code it is.
    is_tied : bool
        Whether the output waits for the loads; that of a backward pass does not. [observed 2.10]
    loops : frozenset of object
        Keys of the unrolled loops around it, see `NodeText.formals`.
    gives_formal : bool
        Whether the output is a formal parameter of a function of these loops.
    differentiates_weights : bool
        Whether a gradient of weights was expanded in it.
    is_differentiated : bool
        Whether it returns a gradient in addition to its output.
    frame : int
        Number of enclosing calls of functions that are inlined into one that is differentiated.
    gradient : FuncGraph or None
        That gradient; None if it is never called.
    order : sequence of Value
        Of a function that is differentiated: outer values in the order of its parameters.
    forward : FuncGraph or None
        Of such a gradient: the function that it is the gradient of.
    """

    kind: str
    label: str
    result: Node
    number: int = 0
    scope: str = "Default"
    parameters: list[Parameter] = field(default_factory=list)
    trail: list[Node] = field(default_factory=list)
    is_tied: bool = True
    loops: frozenset[object] = frozenset()
    gives_formal: bool = False
    differentiates_weights: bool = False
    is_differentiated: bool = False
    frame: int = 0
    gradient: "FuncGraph | None" = None
    order: Sequence[Value] = ()
    forward: "FuncGraph | None" = None

    def __repr__(self) -> str:
        """Return a short text: a full one could be endless, since functions refer to each other."""
        return f"<function {self.name} at {id(self):#x}>"

    @property
    def name(self) -> str:
        """The name, by whose bytes the vendor sorts functions."""
        return f"{self.number}_{self.label}"

    @property
    def output(self) -> Value:
        """The result of a call of the function."""
        return self.result.operands[0]

    @output.setter
    def output(self, value: Value) -> None:
        self.result.operands[:1] = [value]


def as_constant(function: FuncGraph) -> Constant:
    """Return a function as an operand."""
    return Constant(value=function, abstract=FunctionType())


def function_of(value: Value) -> FuncGraph | None:
    """Return the function of an operand; None for any other operand.

    Examples
    --------
    >>> root = FuncGraph(kind="root", label="net", result=Node(op_type="Return", operands=[], abstract=FunctionType()))
    >>> function_of(as_constant(root)).name
    '0_net'
    """
    return value.value if isinstance(value, Constant) and isinstance(value.value, FuncGraph) else None


def called_by(node: Node) -> Iterator[FuncGraph]:
    """Yield the functions that a Call may run: its callee, or the choices of its Switch."""
    pending: list[Value] = [node.operands[0]]
    while pending:
        value = pending.pop()
        function = function_of(value)
        if function is not None:
            yield function
        elif isinstance(value, Node) and value.op_type == "Partial":
            pending.append(value.operands[0])
        elif isinstance(value, Node) and value.op_type == "Switch":
            pending += reversed(value.operands[1:])


def nodes_of(function: FuncGraph) -> list[Node]:
    """Return the nodes that a function's result needs, operands first; before lifting also those of outer functions."""
    return topological([function.result])


def functions_of(root: FuncGraph) -> list[FuncGraph]:
    """Return a function and all functions that it reaches, in the order of the walk."""
    found: dict[int, FuncGraph] = {id(root): root}
    pending = [root]
    while pending:
        inner: Sequence[FuncGraph | None] = [
            function_of(operand) for node in nodes_of(pending.pop()) for operand in node.operands
        ]
        for function in inner:
            if function is not None and id(function) not in found:
                found[id(function)] = function
                pending.append(function)
    return list(found.values())
