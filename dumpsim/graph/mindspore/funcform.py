"""The functions of a network, and their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from dumpsim.graph.compilation import Numbers
from dumpsim.graph.graph import Constant, Node, Value
from dumpsim.graph.mindspore.funcgraph import FuncGraph, as_constant, called_by, function_of, nodes_of
from dumpsim.graph.mindspore.specialise import specialised

__all__ = ["Backward", "FuncForm", "analyse_again", "number_functions"]

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
    is_analysed_again : bool
        Whether the functions are analysed again after their closures are lifted.
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
    is_analysed_again: bool = False

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
    _number(form.functions, _FIRST if first is None else first)


def analyse_again(form: FuncForm) -> None:
    """Analyse functions again whose closures are lifted, if the vendor does so.

    A function whose calls pass different constants becomes one function for each of them, and all functions get new
    numbers. [observed 2.10: r20261224_017]
    """
    if form.is_analysed_again:
        _split_by_constants(form)
        form.functions = specialised(form.root, is_lifted=True)
        _number(form.functions, min(function.number for function in form.functions))


def _number(functions: list[FuncGraph], first: int) -> None:
    for number, function in enumerate(functions, first):
        function.number = number


def _split_by_constants(form: FuncForm) -> None:
    """Make one function of each function for each combination of constants that its calls pass, with these inside.

    Constants are equal if they are one object, since results that the analysis computes are not.
    """
    calls: dict[int, list[Node]] = {}
    for function in form.functions:
        for node in function.trail:
            if node.op_type == "Call" and (called := function_of(node.operands[0])) is not None:
                calls.setdefault(id(called), []).append(node)
    general = _general(form)
    for function in [one for one in form.functions if len(calls.get(id(one), ())) > 1 and id(one) not in general]:
        known: dict[tuple[int, ...], FuncGraph] = {}
        for node in calls[id(function)]:
            given = tuple(id(value) if isinstance(value, Constant) else 0 for value in node.operands[1:])
            if given not in known:
                known[given] = _copy(function)
                _replace_constants(known[given], node.operands[1:])
            node.operands[0] = as_constant(known[given])


def _replace_constants(function: FuncGraph, arguments: Sequence[Value]) -> None:
    """Use the constants among the arguments of a function instead of its parameters."""
    given = dict(zip(map(id, function.parameters), arguments, strict=False))
    known = {parameter: value for parameter, value in given.items() if isinstance(value, Constant)}
    for node in nodes_of(function):
        node.operands = [known.get(id(operand), operand) for operand in node.operands]


def _general(form: FuncForm) -> set[int]:
    """Return the ids of the functions that are analysed without the values of their arguments.

    Each choice of a Switch is analysed by a thread of its own. A function that is analysed by a thread and later by one
    that this thread has started is general. [source static_analysis.cc SetIgnoreValueFlag]
    """
    threads: dict[int, list[tuple[int, ...]]] = {}
    found: set[int] = set()
    numbers = count()

    def analyse(function: FuncGraph, thread: tuple[int, ...]) -> None:
        for node in nodes_of(function):
            callees = form.called_by(node) if node.op_type == "Call" else []
            for callee in callees:
                mine = thread if len(callees) == 1 else (*thread, next(numbers))
                before = threads.setdefault(id(callee), [])
                if any(len(one) < len(mine) and mine[: len(one)] == one for one in before):
                    found.add(id(callee))
                before.append(mine)
                if len(before) == 1:
                    analyse(callee, mine)

    analyse(form.root, ())
    return found


def _copy(function: FuncGraph) -> FuncGraph:
    """Copy a function without closures; it refers to the same other functions."""
    parameters = [replace(parameter) for parameter in function.parameters]
    known: dict[int, Value] = dict(zip(map(id, function.parameters), parameters, strict=True))
    copies: dict[int, Node] = {}
    for node in nodes_of(function):
        operands = [known.get(id(operand), operand) for operand in node.operands]
        text = replace(node.text) if node.text is not None else None
        known[id(node)] = copies[id(node)] = replace(node, operands=operands, text=text)
    trail = [copies[id(node)] for node in function.trail]
    return replace(function, parameters=parameters, trail=trail, result=copies[id(function.result)])
