"""Func graphs: a network with control flow as functions that call each other.

Branches, and the header, body and rest of a loop, are functions of their own. A function stands as a constant where it
is used. Three kinds of nodes use functions: ``Partial(function, *arguments)`` hands over arguments,
``Switch(condition, one, other)`` chooses, and ``Call(callee, *arguments)`` calls a function or what a Switch chose.
A function may use values of the functions around it; once these are lifted to parameters, it is what the
vendor's front end hands to its back end. [spec vendor 0.1, 2.8]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dumpsim.core.abstract import FunctionType
from dumpsim.graph.graph import Constant, Node, Parameter, Value, topological

__all__ = ["LABELS", "FuncGraph", "as_constant", "called_by", "function_of", "functions_of", "nodes_of"]

# how the vendor labels the functions that it makes of control flow [spec vendor 2.7]
LABELS = {"true": "✓", "false": "✗", "header": "↵", "body": "↻", "after": "↓", "end": "⇊"}


@dataclass(eq=False, repr=False, slots=True, kw_only=True)
class FuncGraph:
    """A function of a network.

    Attributes
    ----------
    kind : str
        ``root``, ``true`` or ``false`` (of a branch), ``header``, ``body``, ``after`` or ``end`` (of a loop); "" where
        nobody knows.
    label : str
        Name without the number in front.
    number : int
        Taken when the function was specialised the last time, see `specialise`.
    parameters : list of Parameter
        The formal parameters.
    result : Node
        The ``Return``, whose operand is what a call gives.
    trail : list of Node
        The nodes in the order of the program.
    scope : str
        That of the cell whose code it is.
    is_tied : bool
        The output waits for the loads; that of a backward pass does not. [observed 2.10]
    loops : frozenset of object
        What stands for the unrolled loops around it, see `NodeText.formals`.
    gives_formal : bool
        The output is a formal parameter of a function of these.
    differentiates_weights : bool
        A gradient by weights was expanded in it.
    is_differentiated : bool
        It gives a gradient besides its output.
    frame : int
        How many calls of functions around it are inlined into one that is differentiated.
    gradient : FuncGraph or None
        That gradient; none where nobody calls it.
    order : sequence of Value
        Of a function that is differentiated: values of others in the order of its parameters.
    forward : FuncGraph or None
        Of such a gradient: the function whose gradient it is.
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
        """A short text: functions use each other, and nodes hold them, so that a full one has no bound."""
        return f"<function {self.name} at {id(self):#x}>"

    @property
    def name(self) -> str:
        """The name, after which the vendor sorts functions as bytes."""
        return f"{self.number}_{self.label}"

    @property
    def output(self) -> Value:
        """What a call of the function gives."""
        return self.result.operands[0]

    @output.setter
    def output(self, value: Value) -> None:
        self.result.operands[:1] = [value]


def as_constant(function: FuncGraph) -> Constant:
    """A function as an operand."""
    return Constant(value=function, abstract=FunctionType())


def function_of(value: Value) -> FuncGraph | None:
    """The function that an operand stands for, None for any other operand.

    Examples
    --------
    >>> root = FuncGraph(kind="root", label="net", result=Node(op_type="Return", operands=[], abstract=FunctionType()))
    >>> function_of(as_constant(root)).name
    '0_net'
    """
    return value.value if isinstance(value, Constant) and isinstance(value.value, FuncGraph) else None


def called_by(node: Node) -> Iterator[FuncGraph]:
    """The functions that a Call may run: its callee, or what its Switch chooses from."""
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
    """The nodes that a function's result needs, operands first; those of functions around it too, before lifting."""
    return topological([function.result])


def functions_of(root: FuncGraph) -> list[FuncGraph]:
    """The function and all that it reaches, in the order of the walk."""
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
