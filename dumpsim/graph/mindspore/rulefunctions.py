"""Gradient rules with branches as functions that several gradients call.

The vendor has one function for the rule of an operator in a differentiated network, and analyses it once for each
combination of argument types. The gradient of a node is a closure that calls it with the operands and the result of the
node. Functions that are called more than once are only inlined if they contain no branch.
[source dfunctor.h, kprim.cc; inline.h GraphHasBranch; observed 2.10: r88_057, r20261224_017]
"""

from dataclasses import dataclass
from typing import Any

from dumpsim.core.abstract import Abstract, ScalarType, TensorType, TupleType, tensors_of
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.gradient_builder import ControlBuilder
from dumpsim.graph.gradient_control import bundle_of
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value
from dumpsim.graph.mindspore.capturedflow import is_part, place_of
from dumpsim.graph.mindspore.funcform import FuncForm
from dumpsim.graph.mindspore.funcgraph import FuncGraph, as_constant, function_of
from dumpsim.ops.opdef import Grad

__all__ = ["RULE", "RuleFunctions", "is_rule_call", "share_rules"]

RULE = "rule"  # kind of these functions
_LABEL = "_anonymous_"


def is_rule_call(node: Node) -> bool:
    """Whether a captured node calls a rule."""
    return node.op_type == "Invoke" and node.blocks[0].name == _LABEL


@dataclass(slots=True, kw_only=True, eq=False)
class _Rule:
    """The function of a rule, and for each operand whether it returns a gradient."""

    graph: Graph
    given: list[bool]


class RuleFunctions:
    """The functions of rules in one gradient, during its expansion."""

    def __init__(self) -> None:
        self._known: dict[Any, _Rule] = {}

    def call(self, node: Node, dout: Value, grad: Grad, builder: ControlBuilder) -> list[Any]:
        """Create a call of the rule of a node; return the gradients of the operands."""
        arguments = [*(operand for operand in node.operands if not isinstance(operand, Constant)), node, dout]
        fixed = [operand.value if isinstance(operand, Constant) else None for operand in node.operands]
        types = tuple(f"{tensor.dtype.name} {tensor.shape}" for v in arguments for tensor in tensors_of(v.abstract))
        key = (node.op_type, repr(fixed), repr(node.attrs), types)
        if key not in self._known:
            self._known[key] = _rule(node, arguments, grad, builder)
        rule = self._known[key]
        assert isinstance(rule.graph.output, Node)
        call = Node(op_type="Invoke", operands=arguments, abstract=rule.graph.output.abstract, blocks=(rule.graph,))
        builder.add(call)
        pending = iter([builder.item(call, at) for at in range(len(rule.graph.output.operands))])
        return [next(pending) if given else None for given in rule.given]


def _rule(node: Node, arguments: list[Value], grad: Grad, builder: ControlBuilder) -> _Rule:
    with builder.block(_LABEL) as graph:
        formals = [_formal(value) for value in arguments]
        graph.parameters = list(formals)
        own = iter(formals)
        operands = [operand if isinstance(operand, Constant) else next(own) for operand in node.operands]
        found = grad(builder, operands, formals[-2], formals[-1], node.attrs)
    graph.output = bundle_of([builder.value(value) for value in found if value is not None])
    return _Rule(graph=graph, given=[value is not None for value in found])


def _formal(value: Value) -> Parameter:
    kind = value.abstract
    assert isinstance(kind, TensorType)
    return Parameter(name="", abstract=TensorType(dtype=kind.dtype, shape=kind.shape))


# -- functions


def share_rules(form: FuncForm) -> None:
    """Create one closure for calls that equal nodes have in common, and inline rules with a single call.

    Calls of equal nodes are merged before the functions with their closures are inlined: several gradients then call
    the closure of the one that stays.
    """
    if not any(function.kind == RULE for function in form.functions):
        return
    for function in list(form.functions):
        groups: dict[tuple[int, ...], list[Node]] = {}
        for node in function.trail:
            rule = _called_rule(node)
            if rule is not None:
                groups.setdefault((id(rule), *map(id, node.operands[1:-1])), []).append(node)
        for calls in groups.values():
            if len(calls) > 1:
                _close(form, function, calls)
    for rule in [function for function in form.functions if function.kind == RULE]:
        users = [(one, node) for one in form.functions for node in one.trail if _called_rule(node) is rule]
        if len(users) == 1:
            _inline_function(form, rule, *users[0])


def _called_rule(node: Node) -> FuncGraph | None:
    rule = function_of(node.operands[0]) if node.op_type == "Call" else None
    return rule if rule is not None and rule.kind == RULE else None


def _close(form: FuncForm, function: FuncGraph, calls: list[Node]) -> None:
    """Replace calls of a rule that differ in the incoming gradient only by calls of a closure.

    A closure returns the gradient of the function itself, a number, in addition to those of its operands.
    """
    first = calls[0]
    formal = _formal(first.operands[-1])
    call = Node(op_type="Call", operands=[*first.operands[:-1], formal], abstract=first.abstract, scope=first.scope)
    assert isinstance(first.abstract, TupleType)
    kinds = first.abstract.items
    items = [_element(call, at, kind) for at, kind in enumerate(kinds)]
    number = ScalarType(dtype=dtype("int64"), value=0)
    bundle = bundle_of([Constant(value=0, abstract=number), *items])
    result = Node(op_type="Return", operands=[bundle], abstract=bundle.abstract)
    closure = FuncGraph(kind="closure", label="◂", result=result, is_tied=False)
    closure.parameters, closure.trail = [formal], [call, *items, bundle]
    form.functions.append(closure)
    ids = {id(one) for one in calls}
    for node in calls:
        node.operands = [as_constant(closure), node.operands[-1]]
        node.abstract = bundle.abstract
    for user in [node for one in form.functions for node in one.trail]:
        if user.op_type == "TupleGetItem" and id(user.operands[0]) in ids:
            place = user.operands[1]
            assert isinstance(place, Constant)
            user.operands[1] = constant(place.value + 1)


def _element(call: Node, at: int, kind: Abstract) -> Node:
    return Node(op_type="TupleGetItem", operands=[call, constant(at)], abstract=kind, scope=call.scope)


def _inline_function(form: FuncForm, rule: FuncGraph, function: FuncGraph, call: Node) -> None:
    """Replace the only call of a rule by its nodes."""
    known: dict[int, Value] = dict(zip(map(id, rule.parameters), call.operands[1:], strict=True))
    bundle = rule.output
    assert isinstance(bundle, Node)
    for node in [node for one in form.functions for node in one.trail]:
        if is_part(node, call):
            known[id(node)] = bundle.operands[place_of(node)]
    form.functions = [one for one in form.functions if one is not rule]
    at = next(place for place, node in enumerate(function.trail) if node is call)
    nodes = [node for node in rule.trail if node is not bundle]
    function.trail = [*function.trail[:at], *nodes, *function.trail[at + 1 :]]
    for one in form.functions:
        one.trail = [node for node in one.trail if id(node) not in known]
        for node in (*one.trail, one.result):
            node.operands = [known.get(id(operand), operand) for operand in node.operands]
