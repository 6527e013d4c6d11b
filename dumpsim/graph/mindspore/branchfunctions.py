"""Branches as functions: a Switch that chooses one of two, and their gradients."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

from dumpsim.core.abstract import Abstract, FunctionType, TupleType
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Constant, Graph, Node, control_of, text_of
from dumpsim.graph.mindspore.capturedflow import given_to_gradient
from dumpsim.graph.mindspore.funcform import Backward, FuncForm
from dumpsim.graph.mindspore.funcgraph import LABELS, FuncGraph, as_constant
from dumpsim.graph.mindspore.funcmaker import Closure, Maker
from dumpsim.graph.mindspore.monads import is_gradient
from dumpsim.graph.mindspore.placement import Placement
from dumpsim.graph.mindspore.rulefunctions import RULE, is_rule_call

__all__ = ["Branches"]


class Branches:
    """Creates the functions of branches, and of functions that several nodes call.

    Parameters
    ----------
    form : FuncForm
    nodes : Placement
    maker : Maker
    graph : Graph
        The captured network.

    Attributes
    ----------
    loops : int
        The number of enclosing loops.
    """

    def __init__(self, form: FuncForm, nodes: Placement, maker: Maker, graph: Graph) -> None:
        self.loops = 0
        self._form = form
        self._nodes = nodes
        self._maker = maker
        captured = list(everything(graph.trail))
        self._present = {id(node) for node in captured}
        self._is_twice = any(_is_second(node) for node in captured)  # gradients of gradients
        self._backwards: dict[int, tuple[Node, list[FuncGraph]]] = {}  # by id of a captured gradient
        self._waiting: dict[int, list[FuncGraph]] = {}  # the gradients of a branch's sides, by the gradient's id
        self._shared: dict[int, FuncGraph] = {}  # by id of a captured graph that several nodes call
        self._sides: dict[Hashable, FuncGraph] = {}  # of branches, by the name of their origin

    def shared(self, node: Node, function: FuncGraph) -> None:
        """Create a call of a function that has other calls."""
        (block,) = node.blocks
        assert block.output is not None
        assert isinstance(node.abstract, TupleType)
        is_rule = is_rule_call(node)
        abstract = node.abstract.items[0] if len(node.abstract.items) == 1 and not is_rule else node.abstract
        called = self._shared.get(id(block))
        if called is None:
            kind = RULE if is_rule else "function"
            called = self._shared[id(block)] = self._maker.new_function(kind, block.name, block.output)
            called.parameters = list(block.parameters)
            if is_rule:
                called.is_tied = False
                self.fill_gradient(called, block, node.abstract)
            else:
                self._maker.fill(called, block.trail, block.output)
        arguments = [self._nodes.value(operand, function) for operand in node.operands]
        call = self._nodes.call(as_constant(called), arguments, abstract, function)
        self._nodes.put_call(node, call, 0 if is_rule else len(node.abstract.items))

    def branch(self, node: Node, function: FuncGraph, rest: Sequence[Node]) -> None:
        """Create a branch, or the gradient of one, in a function; `rest` are the captured nodes after it."""
        if id(node) in self._backwards:
            self._backward(node, function)
            return
        if self._is_closing(node):
            self._differentiated(node, function)
            return
        condition = self._nodes.value(node.operands[0], function)
        waiting = self._waiting.pop(id(node), None)
        for block in node.blocks:
            for own, value in zip(block.parameters, node.operands[2:], strict=False):
                self._nodes.new[id(own)] = self._nodes.value(value, function)
        sides: list[FuncGraph] = []
        for at, (kind, block) in enumerate(zip(("true", "false"), node.blocks, strict=True)):
            assert block.output is not None
            label = LABELS[kind] + function.label
            closure = None if waiting is not None else self._closure(node, at, kind, label, rest)
            into = waiting[at] if waiting is not None else None
            origins = control_of(node).origins if closure is None else ()
            name = (origins[at].name, str(block.output.abstract)) if origins else None
            if name is not None and name in self._sides:
                self._nodes.keep(node)
                sides.append(self._sides[name])
                continue
            side = self._maker.function(kind, label, block.trail, block.output, into=into, closure=closure, of=node)
            sides.append(side)
            sides[-1].scope = node.scope
            # sides of a gradient's branch are created after the tokens
            sides[-1].is_tied = waiting is not None or not is_gradient(node)
            if name is not None:
                self._sides[name] = sides[-1]
        assert isinstance(node.abstract, TupleType)
        abstract = node.abstract.items[0] if len(node.abstract.items) == 1 else node.abstract
        if waiting is not None:  # call the gradient that the branch has returned with its output
            forward = self._nodes.value(node.operands[1], function)
            assert isinstance(forward, Node)
            call = self._nodes.call(forward, [], abstract, function)
            self._form.gradients[id(call)] = forward, waiting
        else:
            switch = self._nodes.made("Switch", [condition, *map(as_constant, sides)], FunctionType(), function)
            call = self._nodes.call(switch, [], abstract, function)
        if control_of(node).joins:
            self._form.joined.add(id(call))
        self._nodes.put_call(node, call, len(node.abstract.items))

    def _is_closing(self, node: Node) -> bool:
        """Whether a branch returns its gradient as a closure.

        In loops values are saved round by round instead; if a gradient is differentiated again, the branch returns the
        values that its gradient uses. [fitted]
        """
        backward = control_of(node).backward
        if self.loops or self._is_twice or not control_of(node).is_differentiated:
            return False
        return backward is None or id(backward) in self._present

    def _differentiated(self, node: Node, function: FuncGraph) -> None:
        """Create a branch in a function that is differentiated: each side returns its output and its gradient function.

        [source dfunctor.cc: MapMorphism, K of a function gives a tuple; observed 2.10]
        """
        condition = self._nodes.value(node.operands[0], function)
        assert isinstance(node.abstract, TupleType)
        count = node.blocks[0].results or len(node.abstract.items)
        items = node.abstract.items[:count]
        abstract: Abstract = items[0] if count == 1 else TupleType(items=items)
        backward = control_of(node).backward
        sides: list[FuncGraph] = []
        for kind, block in zip(("true", "false"), node.blocks, strict=True):
            assert isinstance(block.output, Node)
            label = LABELS[kind] + function.label
            bundle = replace(block.output, operands=block.output.operands[:count], abstract=TupleType(items=items))
            self._nodes.keep(bundle)
            side = self._maker.function(kind, label, block.trail, bundle, of=node)
            side.scope, side.is_differentiated = node.scope, True
            side.frame = text_of(node).frame
            if backward is not None:
                side.gradient = self._maker.new_function(kind, label, node)
                side.gradient.forward, side.gradient.is_tied = side, False
            sides.append(side)
        switch = self._nodes.made("Switch", [condition, *map(as_constant, sides)], FunctionType(), function)
        call = self._nodes.call(switch, [], abstract, function)
        if control_of(node).joins:
            self._form.joined.add(id(call))
        if backward is not None:
            self._backwards[id(backward)] = call, [side.gradient for side in sides if side.gradient is not None]
        self._nodes.put_call(node, call, count, is_closing=True)

    def _backward(self, node: Node, function: FuncGraph) -> None:
        """Create the gradient of a branch: a call of the returned closure, with the gradients of the outputs."""
        forward, sides = self._backwards[id(node)]
        count = len(node.blocks[0].parameters)
        arguments = [self._nodes.value(value, function) for value in node.operands[2 : 2 + count]]
        targets = [self._nodes.value(value, function) for value in node.operands[2 + count :]]
        for side, block in zip(sides, node.blocks, strict=True):
            assert isinstance(block.output, Node)
            side.parameters = list(block.parameters)
            self.fill_gradient(side, block, node.abstract)
        call = self._nodes.call(forward, arguments, node.abstract, function)
        self._form.backwards[id(call)] = Backward(forward=forward, functions=sides, targets=targets)
        self._nodes.put_call(node, call, 0)

    def fill_gradient(self, function: FuncGraph, block: Graph, abstract: Abstract) -> None:
        """Fill a gradient, which always returns a tuple; a further analysis folds it if all of its items are constants.

        [observed 2.10: h_grad_g; r1_017, r88_057 with a further analysis]
        """
        assert isinstance(block.output, Node)
        function.result.abstract = abstract
        self._maker.fill(function, block.trail, block.output)
        values = [self._nodes.value(value, function) for value in block.output.operands]
        if all(isinstance(value, Constant) for value in values) and self._form.is_analysed_again:
            known = tuple(value.value for value in values if isinstance(value, Constant))
            function.output = Constant(value=known, abstract=abstract)
        elif len(values) == 1:
            function.output = self._nodes.made("MakeTuple", values, abstract, function)

    def _closure(self, node: Node, at: int, kind: str, label: str, rest: Sequence[Node]) -> Closure | None:
        """Return the gradient of one side of a branch, and the values that the side passes to it."""
        backward = control_of(node).backward
        if backward is None or all(later is not backward for later in rest):
            return None
        output = backward.blocks[at].output
        assert output is not None
        gradient = self._maker.new_function(kind, label, output)
        self._waiting.setdefault(id(backward), []).append(gradient)
        return Closure(gradient=gradient, taken=given_to_gradient(node.blocks[at]))


def _is_second(node: Node) -> bool:
    """Whether a node is one of several gradients of a branch, or a gradient that is differentiated itself."""
    if node.op_type != "If" or len(node.operands) == 1:
        return False
    forward = node.operands[1]
    assert isinstance(forward, Node)
    return control_of(node).backward is not None or control_of(forward).backward is not node
