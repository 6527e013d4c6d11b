"""Turns closures into parameters: the final form of the functions, which the vendor's front end passes to its back end.

[spec vendor 2.8; source cconv.cc]
"""

from collections.abc import Iterable

from dumpsim.core.abstract import FunctionType, MonadType
from dumpsim.graph.graph import Constant, Node, Parameter, Value
from dumpsim.graph.mindspore.funcform import FuncForm
from dumpsim.graph.mindspore.funcgraph import FuncGraph, as_constant, function_of, nodes_of
from dumpsim.graph.mindspore.lifting import lifted_order

__all__ = ["lift_closures"]

_Values = dict[int, Value]


def lift_closures(form: FuncForm) -> None:
    """Add parameters to every function for the values of other functions that it uses, and arguments to its uses.

    Weights and arguments of the network can be used directly in each function. A branch chosen by a Switch takes all of
    its arguments from a Partial.
    """
    _Lifter(form).lift()


class _Lifter:
    def __init__(self, form: FuncForm) -> None:
        self._form = form
        self._owners: dict[int, FuncGraph] = {}  # of nodes and formal parameters, by id
        for function in form.functions:
            self._owners |= {id(node): function for node in (*function.trail, function.result)}
            if function is not form.root:
                self._owners |= {id(parameter): function for parameter in function.parameters}
        self._nodes: dict[int, list[Node]] = {id(function): [] for function in form.functions}
        for node in {id(n): n for function in form.functions for n in nodes_of(function)}.values():
            self._nodes[id(self._owners[id(node)])].append(node)  # also those used by inner functions only
        self._free = self._ordered(self._used_of_others())

    def lift(self) -> None:
        made: dict[int, dict[int, Parameter]] = {}
        for function in self._form.functions:
            mine = made[id(function)] = {}
            for value in self._free[id(function)].values():
                mine[id(value)] = value if self._is_global(value) else _formal(value)  # type: ignore[assignment]
            function.parameters = [*mine.values(), *function.parameters]
        for function in self._form.functions:
            for node in self._nodes[id(function)]:
                if id(node) not in self._form.closed:
                    self._lift(node, made[id(function)])
        for function in self._form.functions:
            for node in self._nodes[id(function)]:
                callee = node.operands[0] if node.op_type == "Call" else None
                if isinstance(callee, Node) and callee.op_type == "Switch":
                    taken, node.operands = node.operands[1:], node.operands[:1]
                    for partial in callee.operands[1:]:
                        assert isinstance(partial, Node)
                        partial.operands += taken if _takes_token(partial) else []
            function.trail = [node for node in nodes_of(function) if node is not function.result]

    def _lift(self, node: Node, mine: dict[int, Parameter]) -> None:
        operands: list[Value] = []
        for place, operand in enumerate(node.operands):
            inner = function_of(operand)
            if inner is None:
                operands.append(mine.get(id(operand), operand))
                continue
            arguments = self._arguments(inner, mine)
            if node.op_type == "Call" and place == 0:
                operands += [operand, *arguments]
            elif node.op_type == "MakeTuple" and not arguments:
                operands.append(operand)
            else:
                partial: list[Value] = [operand, *arguments]
                operands.append(Node(op_type="Partial", operands=partial, abstract=FunctionType()))
        for gradient in self._gradients(node):
            operands += self._arguments(gradient, mine)
        node.operands = operands

    def _arguments(self, function: FuncGraph, mine: dict[int, Parameter]) -> list[Value]:
        return [mine.get(id(value), value) for value in self._free[id(function)].values()]

    def _gradients(self, node: Node) -> list[FuncGraph]:
        """Return the gradients of a branch that a call may run, which take their values from the call."""
        return self._form.gradients[id(node)][1] if id(node) in self._form.gradients else []

    def _is_global(self, value: Value) -> bool:
        return isinstance(value, Parameter) and id(value) not in self._owners

    def _used_of_others(self) -> dict[int, _Values]:
        """Return the values of others that each function uses, directly or through functions that it uses."""
        free: dict[int, _Values] = {id(function): {} for function in self._form.functions}
        while True:
            before = sum(map(len, free.values()))
            for function in self._form.functions:
                mine = free[id(function)]
                for value in self._mentioned(function, free):
                    own = isinstance(value, Constant) or self._owners.get(id(value)) is function
                    if function is not self._form.root and not own:
                        mine.setdefault(id(value), value)
            if sum(map(len, free.values())) == before:
                return free

    def _ordered(self, free: dict[int, _Values]) -> dict[int, _Values]:
        further = {node: functions for node, (_, functions) in self._form.gradients.items()}
        order = lifted_order(self._form.root, self._owners, further)
        found = {}
        for function in self._form.functions:
            values = free[id(function)]
            first = [*function.order, *order.get(id(function), ())]
            found[id(function)] = {id(value): value for value in first if id(value) in values} | values
        return found

    def _mentioned(self, function: FuncGraph, free: dict[int, _Values]) -> Iterable[Value]:
        for node in self._nodes[id(function)]:
            for operand in [*node.operands, *map(as_constant, self._gradients(node))]:
                inner = function_of(operand)
                if inner is None:
                    yield operand
                elif id(node) not in self._form.closed:
                    yield from list(free[id(inner)].values())


def _takes_token(partial: Node) -> bool:
    """Whether a function uses its token; otherwise the parameter is dropped. [observed 2.10]"""
    function = function_of(partial.operands[0])
    assert function is not None
    return any(
        isinstance(operand, Constant) and isinstance(operand.abstract, MonadType)
        for node in function.trail
        for operand in node.operands
    )


def _formal(value: Value) -> Parameter:
    if isinstance(value, Parameter):
        return Parameter(name=value.name, abstract=value.abstract, debug_name=value.debug_name)
    return Parameter(name="", abstract=value.abstract)  # type: ignore[arg-type]
