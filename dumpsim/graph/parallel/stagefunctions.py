"""The functions of a network with branches and loops, as shown by the texts of the stages around sharding.

A function names the values of enclosing functions as ``$(@caller:x)``. [observed 2.10]
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from dumpsim.core.abstract import Abstract, MonadType
from dumpsim.graph.graph import Constant, Node, Parameter, Value, topological
from dumpsim.graph.mindspore.funcform import FuncForm, number_functions
from dumpsim.graph.mindspore.funcgraph import FuncGraph, called_by, function_of

__all__ = ["Functions", "call_text"]

_FIRST = frozenset({"header", "body"})  # written before the function that calls the loop


@dataclass(slots=True)
class Functions:
    """The functions of one text.

    Parameters
    ----------
    form : FuncForm
        With monads.
    title : str
        Name of the network's own function in the text.
    parameters : int
        Number of the network's parameters, after which the formal ones are numbered.
    """

    form: FuncForm
    title: str
    parameters: int
    _owners: dict[int, FuncGraph] = field(default_factory=dict)  # by the id of a node or formal parameter
    _parents: dict[int, FuncGraph] = field(default_factory=dict)
    _formals: dict[int, str] = field(default_factory=dict)  # by the id of a formal parameter; of a function, its monad
    _ordered: set[int] = field(default_factory=set)  # functions that take a monad

    def __post_init__(self) -> None:
        if not self.form.functions[0].number:
            number_functions(self.form)
        for function in self.form.functions:
            for value in (*function.trail, *function.parameters):
                self._owners[id(value)] = function
            for node in function.trail:
                for inner in filter(None, map(function_of, node.operands)):
                    if inner is not function:
                        self._parents.setdefault(id(inner), function)
                if node.op_type == "Call" and isinstance(node.operands[-1].abstract, MonadType):
                    self._ordered |= {id(called) for called in called_by(node)}
        number = self.parameters
        for function in self.inner():
            for parameter in function.parameters:
                number += 1
                self._formals[id(parameter)] = f"para{number}_{parameter.debug_name or parameter.name}"
            if id(function) in self._ordered:
                number += 1
                self._formals[id(function)] = f"para{number}_u"

    def inner(self) -> Iterator[FuncGraph]:
        """Yield all functions except the network's own, in the order of the text."""
        functions = [one for one in self.form.functions if one is not self.form.root]
        yield from (one for one in functions if one.kind in _FIRST)
        yield from (one for one in functions if one.kind not in _FIRST)

    def nodes(self, function: FuncGraph) -> list[Node]:
        """Return the nodes of a function in the order of the text: values that inner functions use come first."""
        mine = {id(node) for node in function.trail}
        return [node for node in topological([function.output], self._needs) if id(node) in mine]

    def _needs(self, node: Node) -> list[Value]:
        found = list(node.operands)
        for inner in filter(None, map(function_of, node.operands)):
            found += self._taken(inner, set())
        return found

    def _taken(self, function: FuncGraph, seen: set[int]) -> list[Value]:
        """Return the values of other functions that a function uses, including those of the functions that it calls."""
        if id(function) in seen:
            return []
        seen.add(id(function))
        found: list[Value] = []
        for node in (*function.trail, function.result):
            for value in node.operands:
                inner = function_of(value)
                if inner is not None:
                    found += self._taken(inner, seen)
                elif isinstance(value, Node) and self._owners.get(id(value)) is not function:
                    found.append(value)
        return found

    @staticmethod
    def is_last(function: FuncGraph) -> bool:
        """Whether a function is written after the network's own."""
        return function.kind not in _FIRST

    def name(self, function: FuncGraph) -> str:
        """Return the name of a function."""
        return self.title if function is self.form.root else function.name

    def parent(self, function: FuncGraph) -> str:
        """Return the name of the innermost function whose values it uses, also by functions that it calls."""
        used = self._used(function, set())
        outer = self._parents.get(id(function), self.form.root)
        while outer is not self.form.root and id(outer) not in used:
            outer = self._parents.get(id(outer), self.form.root)
        return self.name(outer)

    def _used(self, function: FuncGraph, seen: set[int]) -> set[int]:
        """Return the ids of the functions whose values a function, or one that it calls, uses."""
        seen.add(id(function))
        found: set[int] = set()
        for node in (*function.trail, function.result):
            for value in node.operands:
                inner = function_of(value)
                if inner is None:
                    found.add(id(self._owners.get(id(value))))
                elif id(inner) not in seen:
                    found |= self._used(inner, seen)
        return found

    def formals(self, function: FuncGraph) -> tuple[tuple[str, Abstract], ...]:
        """Return the formal parameters of a function with their types."""
        found: list[tuple[str, Abstract]] = [
            (f"%{self._formals[id(parameter)]}", parameter.abstract) for parameter in function.parameters
        ]
        if id(function) in self._ordered:
            found.append((f"%{self._formals[id(function)]}", MonadType(kind="U")))
        return tuple(found)

    def operand(
        self, value: Value, function: FuncGraph, name: Callable[[Node], str], places: Mapping[int, int]
    ) -> str | None:
        """Return the name of a value in a function; None if no special name is needed.

        Parameters
        ----------
        value : Value
        function : FuncGraph
            The function that uses it.
        name : callable
            Returns the name of a node.
        places : mapping
            The numbers of the network's parameters by id.
        """
        called = function_of(value)
        if called is not None:
            return f"@{self.name(called)}"
        if isinstance(value, Constant):
            is_token = isinstance(value.abstract, MonadType) and value.abstract.kind == "U"
            return f"%{self._formals[id(function)]}" if is_token and id(function) in self._ordered else None
        owner = self._owners.get(id(value))
        if isinstance(value, Node):
            return None if owner is function or owner is None else f"$(@{self.name(owner)}:{name(value)})"
        if owner is not None and owner is not self.form.root:
            formal = self._formals[id(value)]
            return f"%{formal}" if owner is function else f"$(@{self.name(owner)}:{formal})"
        if function is self.form.root:
            return None
        return f"$(@{self.title}:para{places[id(value)] + 1}_{_label(value)})"


def _label(parameter: Parameter) -> str:
    return parameter.debug_name or parameter.name


def call_text(node: Node, functions: Functions, index: Mapping[int, int]) -> str:
    """Return the text of a call: of a function, or of the choice of a Switch."""
    names = [f"@{functions.name(one)}" for one in called_by(node)]
    callee = node.operands[0]
    if isinstance(callee, Node):
        return f"%{index[id(callee)]}[@FuncUnion({', '.join(names)})]"
    return f"call {names[0]}"
