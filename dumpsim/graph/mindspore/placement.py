"""Placement of captured nodes in functions: which function they belong to, and by what they are replaced."""

from dumpsim.core.abstract import Abstract, ScalarType
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Constant, Node, Value
from dumpsim.graph.mindspore.capturedflow import CONTROL
from dumpsim.graph.mindspore.funcform import FuncForm
from dumpsim.graph.mindspore.funcgraph import FuncGraph

__all__ = ["Placement"]


class Placement:
    """Moves captured nodes into functions.

    Attributes
    ----------
    new : dict of int to Value
        Replacements of captured values, by id.
    given : dict of int to Value
        Captured values that stand for parts of a loop, by id of the part.
    """

    def __init__(self, form: FuncForm) -> None:
        self._form = form
        self.new: dict[int, Value] = {}
        self.given: dict[int, Value] = {}
        self._counts: dict[int, int] = {}  # number of results by id of a control node, see `put_call`
        self._closing: set[int] = set()  # ids of branches that return their gradients as closures
        self._placed: set[int] = set()  # ids of the nodes of all functions
        self._kept: list[Value] = []

    def keep(self, value: Value) -> None:
        """Keep a captured value alive, since it is known by its id."""
        self._kept.append(value)

    def put_call(self, node: Node, call: Value, count: int, *, is_closing: bool = False) -> None:
        """Replace a control node by a call.

        Parameters
        ----------
        node : Node
        call : Value
        count : int
            The number of its results. The call of a function with one result returns no tuple; 0 for a call that
            always returns one.
        is_closing : bool, optional
            Whether the functions that it calls return their gradient as a closure: further results of the node are
            values of these functions, which the gradient uses directly.
        """
        self.keep(node)
        self.new[id(node)] = call
        self._counts[id(node)] = count
        if is_closing:
            self._closing.add(id(node))

    def own(self, node: Node, function: FuncGraph) -> Node:
        """Add a node to a function."""
        self._placed.add(id(node))
        function.trail.append(node)
        return node

    def made(self, op_type: str, operands: list[Value], abstract: Abstract, function: FuncGraph) -> Node:
        """Create a node in a function."""
        return self.own(Node(op_type=op_type, operands=operands, abstract=abstract), function)

    def value(self, value: Value, function: FuncGraph) -> Value:
        """Return what a function uses for a captured value."""
        if isinstance(value, Node) and id(value) not in self.new and id(value) not in self._placed:
            # a bundle, which is not a part of the program
            self._take_operands(value, function)
            self.keep(value)
            if value.op_type == "MakeTuple" and len(value.operands) == 1 and function.kind != "root":
                self.new[id(value)] = value.operands[0]
                function.gives_formal = self._form.formals.get(id(value), {}).get(0) in function.loops
            else:
                self.own(value, function)
        return self.new.get(id(value), value)

    def _take_operands(self, node: Node, function: FuncGraph) -> None:
        """Replace the operands of a node."""
        known = node.text.formals if node.text is not None else {}
        places = {at: known[v] for at, v in enumerate(node.operands) if isinstance(v, Node) and v in known}
        if places:
            self._form.formals[id(node)] = places
        node.operands = [self.value(operand, function) for operand in node.operands]

    def plain(self, node: Node, function: FuncGraph) -> None:
        """Move a node without blocks into a function."""
        source = node.operands[0] if node.operands else None
        if id(node) in self.given:
            self.keep(node)
            self.new[id(node)] = self.value(self.given[id(node)], function)
            return
        if node.op_type == "TupleGetItem" and isinstance(source, Node) and source.op_type in CONTROL:
            self.part(node, source, function)
            return
        self._take_operands(node, function)
        self.own(node, function)

    def part(self, node: Node, source: Node, function: FuncGraph) -> None:
        """Replace an item of a control node's result; for a loop, by a parameter of its header."""
        place = node.operands[1]
        assert isinstance(place, Constant)
        self.keep(node)
        count = self._counts.get(id(source), 0)
        if id(source) in self._closing and place.value >= count:
            (given,) = (value for value in _given(source, place.value) if not isinstance(value, Constant))
            self.new[id(node)] = self.new.get(id(given), given)  # its gradient is a closure in this function
        elif source.op_type == "While":
            self.new[id(node)] = self.new[id(source.blocks[1].parameters[place.value])]
        elif count == 1:
            self.new[id(node)] = self.new[id(source)]
        else:
            node.operands = [self.new[id(source)], place]
            self.own(node, function)

    def call(self, callee: Value, values: list[Value], abstract: Abstract, function: FuncGraph) -> Node:
        """Create a call in a function."""
        return self.made("Call", [callee, *values], abstract, function)

    def element(self, call: Node, at: int, abstract: Abstract, function: FuncGraph) -> Node:
        """Create an item of a call's result."""
        place = Constant(value=at, abstract=ScalarType(dtype=dtype("int64"), value=at))
        return self.made("TupleGetItem", [call, place], abstract, function)


def _given(node: Node, place: int) -> list[Value]:
    """Return the outputs of a branch's sides at an index."""
    return [block.output.operands[place] for block in node.blocks if isinstance(block.output, Node)]
