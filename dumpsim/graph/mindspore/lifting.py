"""The order in which the vendor turns outer values of functions into parameters.

[source manager.cc AcquireNodes, func_graph_cloner.cc Lift; observed 2.10: values that a function's own nodes use come
after those that its inner functions need]
"""

from collections.abc import Callable, Iterable, Mapping

from dumpsim.graph.graph import Constant, Node, Value
from dumpsim.graph.mindspore.funcgraph import FuncGraph, function_of

__all__ = ["lifted_order"]


def lifted_order(
    root: FuncGraph,
    owners: Mapping[int, FuncGraph],
    further: Mapping[int, list[FuncGraph]],
    used_by: Callable[[FuncGraph, list[Value]], list[Value]] | None = None,
) -> dict[int, list[Value]]:
    """Return the outer values of each function, in the order of its parameters, by the function's id.

    Parameters
    ----------
    root : FuncGraph
    owners : mapping of int to FuncGraph
        The function of each node and formal parameter by id; arguments and weights of the network have no owner.
    further : mapping of int to list of FuncGraph
        Functions that a node uses in addition to its operands, by the node's id.
    used_by : callable, optional
        ``used_by(function, values)`` sorts the values that a function uses itself by when it began to use them.
    """
    uses = _Uses(owners, further)
    uses.add(root)
    if used_by is not None:
        for function in uses.all:
            values = used_by(function, list(uses.direct[id(function)].values()))
            uses.direct[id(function)] = {id(value): value for value in values}
    lift = _Lift(root, owners, uses)
    lift.run()
    return lift.taken


class _Uses:
    """Values and functions that functions use, in the order of the vendor's manager: depth-first, last operand first.

    Attributes
    ----------
    direct : dict of int to dict
        By function: the outer values that its own nodes use, by id.
    functions : dict of int to dict
        By function: the functions that its own nodes use, by id.
    users : dict of int to list of FuncGraph
        By function: the functions of the nodes that use it.
    all : list of FuncGraph
        The functions, in the order of the manager's walk.
    """

    def __init__(self, owners: Mapping[int, FuncGraph], further: Mapping[int, list[FuncGraph]]) -> None:
        self.direct: dict[int, dict[int, Value]] = {}
        self.functions: dict[int, dict[int, FuncGraph]] = {}
        self.users: dict[int, list[FuncGraph]] = {}
        self.all: list[FuncGraph] = []
        self._owners = owners
        self._further = further
        self._met: set[int] = set()

    def add(self, function: FuncGraph) -> None:
        """Walk over a function, and recursively over those that it uses; does nothing the second time."""
        if id(function) in self.direct:
            return
        self.direct[id(function)], self.functions[id(function)] = {}, {}
        self.all.append(function)
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
    """Passes outer values from each function to its users, the innermost functions first.

    A function passes on the values that it uses itself, and those of functions whose parent it is, each value up to the
    function that owns it. Values that are added to it later are passed on immediately. [source manager.cc
    FVTotalComputer, func_graph_cloner.cc Lift, AddParameters, AddInputs, OrderParameters]
    """

    def __init__(self, root: FuncGraph, owners: Mapping[int, FuncGraph], uses: _Uses) -> None:
        self._root = root
        self._owners = owners
        self._uses = uses
        self._total = self._totals()
        self.taken = {function: list(values) for function, values in self._total.items()}
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
            own = self._total[id(function)]
            for user in self._uses.users[id(function)] if own else ():
                self._hand(user, function, own)

    def _totals(self) -> dict[int, list[Value]]:
        """Return the values that each function uses itself, and as the parent of others."""
        parents = _Parents(self._root, self._owners, self._uses)
        totals: dict[int, dict[int, Value]] = {function: {} for function in self._uses.direct}
        for function, values in self._uses.direct.items():
            for value in values.values():
                owner = id(self._owners.get(id(value), self._root))
                current: int | None = function
                while current is not None and current != owner:
                    totals[current].setdefault(id(value), value)
                    current = parents.of(current)
        return {function: list(values.values()) for function, values in totals.items()}

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


class _Parents:
    """The parent of each function: the innermost function whose values it, or a function that it uses, takes.

    [source manager.cc FuncGraphParentsTotalComputer, ParentComputer]
    """

    def __init__(self, root: FuncGraph, owners: Mapping[int, FuncGraph], uses: _Uses) -> None:
        self._around = {function: self._owned(root, owners, values) for function, values in uses.direct.items()}
        while True:
            before = sum(map(len, self._around.values()))
            for function, used in uses.functions.items():
                for inner in used:
                    self._around[function] |= self._around[inner] - {function}
            if sum(map(len, self._around.values())) == before:
                break

    @staticmethod
    def _owned(root: FuncGraph, owners: Mapping[int, FuncGraph], values: Mapping[int, Value]) -> set[int]:
        return {id(owners.get(value, root)) for value in values}

    def of(self, function: int) -> int | None:
        """Return the parent of a function, both by id."""
        around = self._around[function]
        nearest = [one for one in around if all(one not in self._around[other] for other in around - {one})]
        return nearest[0] if nearest else None


def _holds(values: Iterable[Value], value: Value) -> bool:
    return any(one is value for one in values)
