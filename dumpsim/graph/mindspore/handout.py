"""Branches of functions that are differentiated return their gradients as closures.

The vendor's gradient of a function is a function, and differentiated functions return it in addition to their output: a
branch returns a tuple, whose second item is called when the gradient of the branch is needed. It returns the gradients
of all formal parameters as a tuple. [source dfunctor.cc; observed 2.10]
"""

from collections.abc import Iterable, Sequence

from dumpsim.core.abstract import Abstract, FunctionType, ScalarType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Constant, Node, Value
from dumpsim.graph.mindspore.funcform import Backward, FuncForm
from dumpsim.graph.mindspore.funcgraph import FuncGraph, as_constant, called_by
from dumpsim.graph.mindspore.lifting import lifted_order

__all__ = ["by_program", "hand_out_gradients"]

_NUMBER = dtype("int64")
_FUNCTIONS = frozenset({"Muls"})  # operators of the script that are functions, which call the operator


def hand_out_gradients(form: FuncForm) -> None:
    """Make differentiated functions return tuples of their outputs and gradients, and split these after calls."""
    if not any(function.is_differentiated for function in form.functions):
        return
    _order_results(form)
    for function in form.functions:
        if function.is_differentiated:
            _give_tuple(function)
    elements = _taken_apart(form)
    for function in form.functions:
        for node in (*function.trail, function.result):
            if id(node) in elements.parts:
                continue
            backward = form.backwards.get(id(node))
            for at, operand in enumerate(node.operands):
                if at == 0 and backward is not None:
                    node.operands[0] = elements.gradients[id(backward.forward)]
                elif id(operand) in elements.outputs:
                    node.operands[at] = elements.outputs[id(operand)]


def _give_tuple(function: FuncGraph) -> None:
    given: Constant
    if function.gradient is not None:
        given = as_constant(function.gradient)
    else:  # the gradient is never called
        given = Constant(value=0, abstract=ScalarType(dtype=_NUMBER, value=0))
    items = (function.output.abstract, given.abstract)
    bundle = Node(op_type="MakeTuple", operands=[function.output, given], abstract=TupleType(items=items))
    function.trail.append(bundle)
    function.output = bundle
    function.result.abstract = bundle.abstract


class _Elements:
    """The items of calls of differentiated functions: the output and the gradient, by id of the call."""

    def __init__(self) -> None:
        self.outputs: dict[int, Node] = {}
        self.gradients: dict[int, Node] = {}
        self.parts: set[int] = set()


def _taken_apart(form: FuncForm) -> _Elements:
    elements = _Elements()
    wanted = {id(backward.forward) for backward in form.backwards.values()}
    for function in form.functions:
        trail: list[Node] = []
        for node in function.trail:
            trail.append(node)
            if node.op_type != "Call" or id(node) in form.backwards:
                continue
            if not any(called.is_differentiated for called in called_by(node)):
                continue
            elements.outputs[id(node)] = _element(node, 0, node.abstract)
            if id(node) in wanted:
                elements.gradients[id(node)] = _element(node, 1, FunctionType())
                trail.append(elements.gradients[id(node)])
            trail.append(elements.outputs[id(node)])
            node.abstract = TupleType(items=(node.abstract, FunctionType()))
        function.trail = trail
    elements.parts = {id(part) for kind in (elements.outputs, elements.gradients) for part in kind.values()}
    return elements


def _element(call: Node, at: int, abstract: Abstract) -> Node:
    place = Constant(value=at, abstract=ScalarType(dtype=_NUMBER, value=at))
    return Node(op_type="TupleGetItem", operands=[call, place], abstract=abstract, scope=call.scope)


def _order_results(form: FuncForm) -> None:
    """Sort gradients in the order of the formal parameters, which both sides of a branch have in common.

    The vendor lifts closures before it creates gradients: those of one side first, then those of the other side only.
    """
    owners: dict[int, FuncGraph] = {}
    for function in form.functions:
        owners |= {id(node): function for node in (*function.trail, function.result)}
        if function is not form.root:
            owners |= {id(parameter): function for parameter in function.parameters}
    taken = lifted_order(form.root, owners, {}, _by_program)
    for function in form.functions:
        for node in function.trail:
            if node.op_type == "Call" and any(called.is_differentiated for called in form.called_by(node)):
                sides = list(form.called_by(node))
                values = _once(value for side in sides for value in taken.get(id(side), ()))
                for side in sides:
                    side.order = [*values, *side.parameters]
    reordered: set[int] = set()
    for function in form.functions:
        for node in function.trail:
            if id(node) in form.backwards:
                backward = form.backwards[id(node)]
                forward = backward.functions[0].forward
                assert forward is not None
                _reorder(form, node, backward, forward.order, reordered)


def _by_program(function: FuncGraph, values: Sequence[Value]) -> list[Value]:
    weights = [node.operands[0] for node in function.trail if node.op_type == "Load"]
    return by_program(function.trail, function.frame, weights, values)


def by_program(nodes: Sequence[Node], around: int, weights: Sequence[Value], values: Sequence[Value]) -> list[Value]:
    """Sort the outer values of a function by when its own code began to use them.

    The manager lists the values that a function uses in that order. When a call is inlined, its result and its
    parameters are replaced by other values, which are appended; weights of a cell are added when its call is inlined.
    So arguments, weights and outputs of branches that the function itself uses come first; then the others, those with
    fewer inlined calls around them first; last the values that the function only passes to others.
    [source manager.cc, opt.cc; observed 2.10: before_lift and after_lift of 16 networks]
    """
    frames: dict[int, int] = {}  # of the code that reads a value
    for node in nodes:
        for operand in node.operands:
            is_load = isinstance(operand, Node) and operand.op_type == "Load"
            value = operand.operands[0] if is_load else operand  # type: ignore[union-attr]
            frame = node.text.frame if node.text is not None else around
            frames[id(value)] = min(frame, frames.get(id(value), frame))
    loaded = {id(weight): at for at, weight in reversed(list(enumerate(weights)))}
    inlined = {id(operand) for node in nodes for operand in node.operands}
    places = [at for at, value in enumerate(values) if id(value) in inlined]

    def key(value: Value) -> tuple[int, ...]:
        frame = frames.get(id(value), around)
        later = frame if frame > around else 0
        if id(value) in loaded:
            return later, 1, loaded[id(value)]
        calls = _inlined_calls(value) or around
        return (calls, 0) if calls >= later else (later, 2)

    given = iter(sorted((values[at] for at in places), key=key))
    return [next(given) if at in places else value for at, value in enumerate(values)]


def _inlined_calls(value: Value) -> int:
    """Return how many calls are inlined until a value is known: all operators of a script are functions."""
    if not isinstance(value, Node) or value.op_type == "Call" or value.blocks:
        return 0
    source = value.operands[0] if value.op_type == "TupleGetItem" else None
    if isinstance(source, Node):
        return _inlined_calls(source)
    return value.text.calls if value.text is not None else 0


def _once(values: Iterable[Value]) -> list[Value]:
    return list({id(value): value for value in values}.values())


def _reorder(form: FuncForm, call: Node, backward: Backward, values: Sequence[Value], reordered: set[int]) -> None:
    places = {id(value): at for at, value in reversed(list(enumerate(values)))}
    count = len(backward.targets)
    order = sorted(range(count), key=lambda at: places.get(id(backward.targets[at]), len(values)))
    if order == list(range(count)):
        return
    assert isinstance(call.abstract, TupleType)
    call.abstract = TupleType(items=tuple(call.abstract.items[at] for at in order))
    for side in backward.functions:
        if id(side) in reordered:  # which has other calls
            continue
        reordered.add(id(side))
        given = side.output
        side.result.abstract = call.abstract
        if isinstance(given, Constant):
            side.output = Constant(value=tuple(given.value[at] for at in order), abstract=call.abstract)
        else:
            assert isinstance(given, Node)
            given.operands, given.abstract = [given.operands[at] for at in order], call.abstract
    backward.targets = [backward.targets[at] for at in order]
    for function in form.functions:
        for node in function.trail:
            if node.op_type == "TupleGetItem" and node.operands[0] is call:
                place = node.operands[1]
                assert isinstance(place, Constant)
                at = order.index(place.value)
                node.operands[1] = Constant(value=at, abstract=ScalarType(dtype=_NUMBER, value=at))
