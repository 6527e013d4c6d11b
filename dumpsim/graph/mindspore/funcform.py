"""The functions of a network, and their numbers."""

from dataclasses import dataclass, field

from dumpsim.graph.compilation import Numbers
from dumpsim.graph.graph import Node, Value
from dumpsim.graph.mindspore.funcgraph import FuncGraph, called_by
from dumpsim.graph.mindspore.specialise import specialised

__all__ = ["Backward", "FuncForm", "number_functions"]

# The vendor continues counting from all functions that it specialised before, library functions included. Where their
# count is unknown, all numbers have four digits, which gives the same order unless 10, 100 or 1000 lies between the
# vendor's numbers. [fitted 2.10: 276 of the 279 recorded compiles with several functions]
_FIRST = 1001


@dataclass(eq=False, slots=True, kw_only=True)
class Backward:
    """The gradient of a branch, a closure that the branch returns in addition to its output.

    Attributes
    ----------
    forward : Node
        The call of the branch.
    functions : list of FuncGraph
        The gradients of its sides.
    targets : list of Value
        The values whose gradients they return.
    """

    forward: Node
    functions: list[FuncGraph]
    targets: list[Value]


@dataclass(eq=False, slots=True, kw_only=True)
class FuncForm:
    """The functions of a network.

    Attributes
    ----------
    root : FuncGraph
    functions : list of FuncGraph
        The root first; in the order of specialisation after `number_functions`.
    loops : dict of int to Node
        The captured loop of a header, by the header's id.
    unwinds : dict of int to Node
        The captured gradient of a loop that a call runs, by the call's id.
    gradients : dict of int to (Node, list of FuncGraph)
        The call of a branch, and the functions that its gradient may run, by the id of the gradient's call.
    closed : set of int
        Ids of the Partials that have all of their arguments.
    backwards : dict of int to Backward
        The gradients of branches that are returned as closures, by the id of the call of such a closure.
    joined : set of int
        Ids of the calls of branches whose results were formal parameters of the function after the branch.
    formals : dict of int to (dict of int to object)
        Operands that were formal parameters of a function, see `NodeText.formals`: by id of the node, then by index.
    """

    root: FuncGraph
    functions: list[FuncGraph] = field(default_factory=list)
    loops: dict[int, Node] = field(default_factory=dict)
    unwinds: dict[int, Node] = field(default_factory=dict)
    gradients: dict[int, tuple[Node, list[FuncGraph]]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    backwards: "dict[int, Backward]" = field(default_factory=dict)
    joined: set[int] = field(default_factory=set)
    formals: dict[int, dict[int, object]] = field(default_factory=dict)

    def called_by(self, call: Node) -> list[FuncGraph]:
        """Return the functions that a call may run."""
        if id(call) in self.gradients:
            return self.gradients[id(call)][1]
        if id(call) in self.backwards:
            return self.backwards[id(call)].functions
        return list(called_by(call))


def number_functions(form: FuncForm, numbers: Numbers | None = None) -> None:
    """Number the functions, before their closures are lifted. [spec vendor 2.6]"""
    form.functions = specialised(form.root)
    first = numbers.functions(len(form.functions)) if numbers is not None else None
    for number, function in enumerate(form.functions, _FIRST if first is None else first):
        function.number = number
