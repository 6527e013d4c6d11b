"""Gradients of loops as functions: each function of a loop returns its gradient as a closure."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dumpsim.core.abstract import Abstract, TupleType
from dumpsim.graph.gradient_control import everything, plain
from dumpsim.graph.graph import Graph, Node, Parameter, Step, Value, control_of
from dumpsim.graph.mindspore.branchfunctions import Branches
from dumpsim.graph.mindspore.funcform import Backward, FuncForm
from dumpsim.graph.mindspore.funcgraph import LABELS, FuncGraph, as_constant
from dumpsim.graph.mindspore.funcmaker import Maker
from dumpsim.graph.mindspore.placement import Placement

__all__ = ["LoopGradients", "leaves_of"]


@dataclass(slots=True, kw_only=True, eq=False)
class _HandsOut:
    """A function that returns its gradient.

    Attributes
    ----------
    function : FuncGraph
    given : list of Value
        The values whose gradients the gradient of the call at its end returns.
    steps : list of Step
        The steps of its nodes; empty if it only calls another function.
    """

    function: FuncGraph
    given: list[Value]
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    """A loop that returns its gradient as a closure.

    Attributes
    ----------
    first : Node
        The call of the header before the loop.
    functions : list of _HandsOut
        All functions of the loop and of the code after it.
    outputs : dict of int to Value
        The outputs inside of the code after the loop, by id.
    """

    first: Node
    functions: list[_HandsOut]
    outputs: dict[int, Value] = field(default_factory=dict)


class LoopGradients:
    """Creates the gradients of the functions of loops."""

    def __init__(self, form: FuncForm, nodes: Placement, maker: Maker, branches: Branches, graph: Graph) -> None:
        self._form = form
        self._nodes = nodes
        self._maker = maker
        self._branches = branches
        self._present = {id(node) for node in everything(graph.trail)}
        self._loops: dict[int, _Loop] = {}  # loops that return their gradients, by id of the captured one
        self._handing: list[list[_HandsOut]] = []  # functions of the open loops that return gradients

    def hand_out(self, function: FuncGraph, given: list[Value], steps: Sequence[Step] = ()) -> None:
        """Make a function return its gradient."""
        function.is_differentiated = True
        function.gradient = self._maker.new_function(function.kind, function.label, function.result)
        function.gradient.forward, function.gradient.is_tied = function, False
        self._handing[-1].append(_HandsOut(function=function, given=given, steps=list(steps)))

    def add_step(self, function: FuncGraph, step: Step) -> None:
        """Add a step to a function, which contains its nodes instead of a separate function."""
        next(one for one in self._handing[-1] if one.function is function).steps.append(step)

    def handed_by(self, node: Node) -> Node | None:
        """Return the gradient of a loop that is returned as a closure; None if there is none."""
        unwinds = control_of(node).unwinds
        handed = unwinds and control_of(unwinds[0]).steps and id(unwinds[0]) in self._present
        return unwinds[0] if handed else None

    @contextmanager
    def collected(self) -> Iterator[list[_HandsOut]]:
        """Collect the functions that return their gradients while the functions of a loop are created."""
        self._handing.append([])
        yield self._handing[-1]
        self._handing.pop()

    def put(
        self, unwind: Node, call: Node, functions: list[_HandsOut], function: FuncGraph, rest: Sequence[Node]
    ) -> None:
        """Record the functions of a loop, and replace the outputs of the code after it by the results of their call.

        Parameters
        ----------
        unwind : Node
            The captured gradient of the loop.
        call : Node
            The call of the header before the loop.
        functions : list
            The functions, see `collected`.
        function : FuncGraph
            The function of the call.
        rest : sequence of Node
            The captured code after the loop.
        """
        loop = self._loops[id(unwind)] = _Loop(first=call, functions=functions)
        inside = {id(one) for one in rest}
        leaves = leaves_of(unwind)
        for at, leaf in enumerate(leaves):
            if id(leaf) in inside or id(leaf) in self._nodes.new:
                loop.outputs[id(leaf)] = self._nodes.new.get(id(leaf), leaf)
                element = call if len(leaves) == 1 else self._nodes.element(call, at, leaf.abstract, function)
                self._nodes.new[id(leaf)] = element

    def gradient(self, unwind: Node, function: FuncGraph) -> None:
        """Create the gradient of a loop in a function."""
        if id(unwind) in self._loops:
            self._of_functions(unwind, function)
        else:
            self._fitted(unwind, function)

    def _of_functions(self, unwind: Node, function: FuncGraph) -> None:
        """Create the gradient of a loop: a call of the closure that it has returned."""
        loop = self._loops[id(unwind)]
        seeds, _ = _counts(unwind)
        kinds = [parameter.abstract for parameter in control_of(unwind).steps[1].graph.parameters]
        own = {id(one.function) for one in loop.functions}
        outside = {key: self._nodes.new[key] for key in loop.outputs}
        self._nodes.new |= loop.outputs
        for one in loop.functions:
            self._fill_handed(one, kinds, own)
        self._nodes.new |= outside
        given = control_of(unwind).steps[0].targets
        values = [self._nodes.value(value, function) for value in unwind.operands[1 : 1 + seeds]]
        self._nodes.put_call(unwind, self._backward_call(loop.first, values, given, function), 0)

    def _fill_handed(self, one: _HandsOut, kinds: Sequence[Abstract], own: set[int]) -> None:
        """Fill the gradient of a function of a loop: it calls the gradient of the call at the function's end."""
        gradient, tail = one.function.gradient, one.function.output
        assert gradient is not None
        gradient.parameters = [Parameter(name="", abstract=kind) for kind in kinds]  # type: ignore[arg-type]
        values: list[Value] = list(gradient.parameters)
        if isinstance(tail, Node) and tail.op_type == "Call" and all(id(f) in own for f in self._form.called_by(tail)):
            given = one.steps[-1].given if one.steps else one.given
            call = self._backward_call(tail, values, given, gradient)
            values = [self._nodes.element(call, at, _type_of(value), gradient) for at, value in enumerate(given)]
        for step in reversed(one.steps):
            pairs = zip(step.graph.parameters, values, strict=True)
            self._nodes.new |= {id(parameter): value for parameter, value in pairs}
            bundle = step.graph.output
            assert isinstance(bundle, Node)
            if step is one.steps[0]:
                self._branches.fill_gradient(gradient, step.graph, bundle.abstract)
                return
            self._maker.fill(gradient, step.graph.trail, bundle)
            values = [self._nodes.value(value, gradient) for value in bundle.operands]
        gradient.result.abstract = TupleType(items=tuple(value.abstract for value in values))
        gradient.output = self._nodes.made("MakeTuple", values, gradient.result.abstract, gradient)

    def _backward_call(self, forward: Node, values: list[Value], given: Sequence[Value], function: FuncGraph) -> Node:
        """Create the call of a gradient that another call has returned."""
        call = self._nodes.call(forward, values, TupleType(items=tuple(map(_type_of, given))), function)
        gradients = [called.gradient for called in self._form.called_by(forward) if called.gradient is not None]
        targets = [self._nodes.new.get(id(value), value) for value in given]
        self._form.backwards[id(call)] = Backward(forward=forward, functions=gradients, targets=targets)
        return call

    def _fitted(self, node: Node, function: FuncGraph) -> None:
        """Create the gradient of a loop: a function called with the initial values. [fitted: the vendor's is a loop]"""
        (turn,) = node.blocks
        assert turn.output is not None
        starts = [self._nodes.value(operand, function) for operand in node.operands[1:]]
        body = self._maker.function("body", LABELS["body"] + function.label, turn.trail, turn.output)
        body.parameters = turn.parameters
        assert isinstance(node.abstract, TupleType)
        abstract = node.abstract.items[0] if len(node.abstract.items) == 1 else node.abstract
        call = self._nodes.call(as_constant(body), starts, abstract, function)
        self._form.unwinds[id(call)] = node
        self._nodes.put_call(node, call, len(node.abstract.items))


def leaves_of(unwind: Node) -> list[Value]:
    """Return the outputs of the code after a loop, given the loop's gradient."""
    seeds, results = _counts(unwind)
    return unwind.operands[1 + seeds : len(unwind.operands) - results]


def _counts(unwind: Node) -> tuple[int, int]:
    """Return the number of incoming gradients of a loop's gradient, and the number of gradients that it returns."""
    assert isinstance(unwind.abstract, TupleType)
    return len(control_of(unwind).steps[1].graph.parameters), len(unwind.abstract.items)


def _type_of(value: Value) -> Abstract:
    return plain(value.abstract)
