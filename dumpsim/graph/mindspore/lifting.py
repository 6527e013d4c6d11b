"""In which order the vendor makes parameters of what functions use of others.

[source manager.cc AcquireNodes, func_graph_cloner.cc Lift; observed 2.10: the values that a function's own nodes use
come after those that functions inside of it brought]
"""

from collections.abc import Iterable, Mapping

from dumpsim.graph.graph import Constant, Node, Value
from dumpsim.graph.mindspore.funcgraph import FuncGraph, function_of

__all__ = ["lifted_order"]


def lifted_order(
    root: FuncGraph, owners: Mapping[int, FuncGraph], further: Mapping[int, list[FuncGraph]]
) -> dict[int, list[Value]]:
    """The values of others that each function takes, in the order of its parameters, by the function's id.

    Parameters
    ----------
    root : FuncGraph
    owners : mapping of int to FuncGraph
        The function of each node and formal parameter by id; arguments and weights of the network have none.
    further : mapping of int to list of FuncGraph
        Functions that a node uses besides its operands, by the node's id.
    """
    uses = _Uses(owners, further)
    uses.add(root)
    lift = _Lift(root, owners, uses)
    lift.run()
    return lift.taken


class _Uses:
    """What functions use, in the order in which the vendor's manager meets it: depth-first, the last operand first.

    Attributes
    ----------
    direct : dict of int to dict
        By function: the values of others that its own nodes use, by id.
    functions : dict of int to dict
        By function: the functions that its own nodes use, by id.
    users : dict of int to list of FuncGraph
        By function: the functions of the nodes that use it.
    """

    def __init__(self, owners: Mapping[int, FuncGraph], further: Mapping[int, list[FuncGraph]]) -> None:
        self.direct: dict[int, dict[int, Value]] = {}
        self.functions: dict[int, dict[int, FuncGraph]] = {}
        self.users: dict[int, list[FuncGraph]] = {}
        self._owners = owners
        self._further = further
        self._met: set[int] = set()

    def add(self, function: FuncGraph) -> None:
        """Walk a function, and at once what it uses; again, it does nothing."""
        if id(function) in self.direct:
            return
        self.direct[id(function)], self.functions[id(function)] = {}, {}
        self.users.setdefault(id(function), [])
        pending: list[Node] = [function.result]
        while pending:
            node = pending.pop()
            if id(node) in self._met:
                continue
            self._met.add(id(node))
            for operand in node.operands:
                self._operand(self._owners[id(node)], operand)
            for inner in self._further.get(id(node), ()):
                self._function(self._owners[id(node)], inner)
            pending += [operand for operand in node.operands if isinstance(operand, Node)]

    def _operand(self, user: FuncGraph, operand: Value) -> None:
        inner = function_of(operand)
        if inner is not None:
            self._function(user, inner)
        elif not isinstance(operand, Constant) and self._owners.get(id(operand)) is not user:
            self.direct[id(user)].setdefault(id(operand), operand)

    def _function(self, user: FuncGraph, inner: FuncGraph) -> None:
        self.add(inner)
        self.functions[id(user)].setdefault(id(inner), inner)
        self.users[id(inner)].append(user)


class _Lift:
    """Hands the values of others from each function to its users, the innermost functions first."""

    def __init__(self, root: FuncGraph, owners: Mapping[int, FuncGraph], uses: _Uses) -> None:
        self._root = root
        self._owners = owners
        self._uses = uses
        self.taken = {function: list(values.values()) for function, values in uses.direct.items()}
        self.taken[id(root)] = []
        self._arguments: dict[tuple[int, int], list[Value]] = {}  # by user and function

    def run(self) -> None:
        """Lift everything."""
        order = {id(self._root): self._root}
        pending = [self._root]
        for function in pending:
            fresh = [inner for inner in self._uses.functions[id(function)].values() if id(inner) not in order]
            order |= {id(inner): inner for inner in fresh}
            pending += fresh
        for function in reversed(pending):
            own = list(self._uses.direct[id(function)].values())
            for user in self._uses.users[id(function)] if own else ():
                self._hand(user, function, own)

    def _hand(self, user: FuncGraph, function: FuncGraph, values: Iterable[Value]) -> None:
        fresh = []
        arguments = self._arguments.setdefault((id(user), id(function)), [])
        for value in values:
            if self._is_foreign(user, value) and not _holds(self.taken[id(user)], value):
                self.taken[id(user)].append(value)
                fresh.append(value)
            if not _holds(arguments, value):
                arguments.append(value)
        rest = [value for value in self.taken[id(function)] if not _holds(arguments, value)]
        self.taken[id(function)] = [value for value in arguments if _holds(self.taken[id(function)], value)] + rest
        for outer in self._uses.users[id(user)] if fresh else ():
            self._hand(outer, user, fresh)

    def _is_foreign(self, user: FuncGraph, value: Value) -> bool:
        return user is not self._root and self._owners.get(id(value)) is not user


def _holds(values: Iterable[Value], value: Value) -> bool:
    return any(one is value for one in values)
