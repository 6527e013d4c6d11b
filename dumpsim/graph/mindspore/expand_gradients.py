"""Expands gradient nodes to the operators of backward passes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from dumpsim.core.abstract import TupleType
from dumpsim.core.errors import DumpsimError
from dumpsim.graph.block import opened
from dumpsim.graph.builder import constant
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT
from dumpsim.graph.gradient import reverse
from dumpsim.graph.gradient_builder import Parts
from dumpsim.graph.gradient_control import below, everything, in_parts
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, text_of, topological, uses
from dumpsim.graph.mindspore.calls import Call
from dumpsim.graph.mindspore.capturedflow import order_outputs, place_of
from dumpsim.graph.mindspore.folding import fold, is_foldable
from dumpsim.graph.mindspore.gradient_node import GRADIENT, gradient_of, outputs_of, seed_of, wanted_of
from dumpsim.graph.mindspore.gradient_nodes import NodeBuilder
from dumpsim.graph.mindspore.gradient_scope import compiled_scopes, load_scopes, shared_scopes
from dumpsim.graph.mindspore.handout import by_program
from dumpsim.graph.mindspore.unused import Effects
from dumpsim.graph.replacement import Replacements
from dumpsim.ops.opdef import OpDef

__all__ = ["expand_gradients", "gradients_of", "order_branches"]

_ANALYSES = 3  # of functions with gradients, in three rounds of the optimizer


def expand_gradients(
    graph: Graph,
    find: Callable[[str], OpDef],
    *,
    around: Sequence[Graph] = (),
    tell: Callable[[Value, Value], None] | None = None,
    shares: bool = False,
) -> Graph:
    """Replace every gradient node by a backward pass, in the graph and in its blocks.

    The outputs of branches are in their order (`order_branches`). Nodes are expanded in program order, so the inner one
    comes first in a gradient of a gradient.
    [source meta_fg_prim_eliminate.cc: the gradient operators without one in their function are expanded first]

    Parameters
    ----------
    graph : Graph
        It is modified.
    find : callable
        The definition of an operator type.
    around : sequence of Graph, optional
        Graphs whose values the gradients use, if the forward pass is not a part of `graph`.
    tell : callable, optional
        Called with each node of the forward pass that has one result, and with each Parameter whose gradient is taken;
        the second argument is the complete gradient.
    shares : bool, optional
        Whether rules with branches become functions that several gradients call, if the graph has one gradient node.

    Raises
    ------
    UnsupportedError
        If an operator on the way has no gradient.
    """
    gradients = [node for node in everything(graph.trail) if node.op_type == GRADIENT]
    for node in gradients:
        given = gradient_of(node).nodes
        for loop in everything(below([outputs_of(node)]) if given is None else given):
            if loop.op_type == "While":
                control_of(loop).gradients += 1
    _Expander(find, around, tell, shares=shares and len(gradients) == 1 and tell is None).expand(graph)
    return graph


def order_branches(graph: Graph) -> None:
    """Sort the outputs of branches of a network with gradients, before these depend on the order.

    Dead code counts, too: the order comes from the vendor's parser.
    """
    if any(node.op_type == GRADIENT for node in everything(graph.trail)):
        _order_branches(graph)


def _order_branches(graph: Graph) -> None:
    for at, node in enumerate(graph.trail):
        if node.op_type == "If" and not (control_of(node).jumps or control_of(node).tails) and graph.output is not None:
            order_outputs(node, graph.trail[at + 1 :], graph.output)
        for block in node.blocks:
            _order_branches(block)


def gradients_of(
    graph: Graph, node: Node, find: Callable[[str], OpDef], *, around: Sequence[Graph]
) -> list[Value | None]:
    """Add a gradient node to an empty graph, expand it there, and return its gradients.

    The forward pass is in the graphs `around` it, so the backward pass is a graph of its own.

    Returns
    -------
    list of Value or None
        None for a value that the outputs do not depend on.
    """
    text = text_of(node)
    text.call_scope = text.block_scope = "Default"
    graph.trail.append(node)
    expander = _Expander(find, around)
    expander.expand(graph)
    found = expander.results[id(node)]
    return [None if isinstance(value, Constant) and value.value is None else value for value in found]


class _Expander:
    def __init__(
        self,
        find: Callable[[str], OpDef],
        around: Sequence[Graph],
        tell: Callable[[Value, Value], None] | None = None,
        *,
        shares: bool = False,
    ) -> None:
        self._find = find
        self._shares = shares
        self._tell = tell
        self._open = list(around)
        self._replaced = Replacements()
        self.results: dict[int, list[Value]] = {}  # by id of the gradient node
        self._made: set[int] = set()  # ids of the nodes of backward passes
        self._rules: set[int] = set()  # ids of the rules that are expanded

    def expand(self, graph: Graph) -> None:
        self._open.append(graph)
        nodes, graph.trail = graph.trail, []
        for node in nodes:
            if node.op_type == "While":
                inside = list(everything([one for block in node.blocks for one in block.trail]))
                for inner in inside if any(one.op_type == GRADIENT for one in inside) else ():
                    control_of(inner).is_inner = True
            before, node.operands = node.operands, self._replaced.operands(node)
            for block in node.blocks:
                self.expand(block)
            if node.op_type == GRADIENT:
                self.results[id(node)] = self._differentiated(node)
                if any(isinstance(value, Parameter) and value.is_weight for value in wanted_of(node)):
                    graph.differentiates_weights = True
            elif node.op_type == "TupleGetItem" and id(node.operands[0]) in self.results:
                self._take(node)
            elif any(one is not other for one, other in zip(before, node.operands, strict=True)) and is_foldable(node):
                self._replaced.put(node, fold(node, self._find(node.op_type)))
            else:
                graph.trail.append(node)
        self._replaced.finish(graph, graph.trail)
        self._open.pop()

    def _take(self, node: Node) -> None:
        """Replace an item of a gradient node by the gradient, which is named after the item's variable."""
        source, place = node.operands
        assert isinstance(place, Constant)
        value = self.results[id(source)][place.value]
        self._replaced.put(node, value)
        if not isinstance(value, Node) or node.text is None:
            return
        text = text_of(value)
        if id(value) in self._made:
            text.variable = text.variable or node.text.variable
            text.call_variable = text.call_variable or node.text.call_variable
        else:
            text.call_variable = text.call_variable or node.text.variable or node.text.call_variable

    def _differentiated(self, node: Node) -> list[Value]:
        given = gradient_of(node)
        output, wanted = outputs_of(node), wanted_of(node)
        if given.function is not None:
            _mark_inlined(given.function)
        nodes = [*given.nodes, *_bundles(output)] if given.nodes is not None else self._below(output, given.function)
        nodes = in_parts(nodes, self._open[-1].trail)
        forward = list(everything(nodes))
        for each in forward:
            self._expand_rule(each)
        for each in everything(self._open[-1].trail) if given.nodes is None else forward:
            if each.op_type in ("If", "While"):
                control_of(each).is_differentiated = True
        # a function whose closures were lifted is a copy, whose parameters have no scope [observed 2.10: r1_157]
        scope = "Default" if _has_control(forward) else given.scope
        is_analysed_again = any(map(_gives_tuple, forward))
        self._open[0].is_analysed_again |= is_analysed_again
        made: list[Node] = []
        builder = NodeBuilder(
            self._find,
            self._placer(node, made),
            self._scopes(node, forward),
            block=partial(opened, self._open),
            graphs=tuple(self._open),
            sums=given.sums,
            parameters={id(value): scope for value in wanted[: given.arguments]},
            has_control=_has_control(forward),
            is_analysed_again=is_analysed_again,
            analyses=_ANALYSES + is_analysed_again,
            tuples=_taken_apart(everything(below([output]))),
            shares=self._shares and not given.sums,
        )
        try:
            found = reverse(output, seed_of(node), wanted, builder, nodes=nodes, tell=self._teller(builder))
        except DumpsimError as error:
            _note(error, node, self._open[0].name)
            raise
        if given.around is not None:
            _enter(given.around, node, made)
        self._made.update(map(id, made))
        results = []
        for gradient, value in zip(found, wanted, strict=True):
            blank = builder.zeros(value.abstract) if gradient is None and given.fills else gradient
            results.append(constant(None) if blank is None else builder.value(blank))
            if self._tell is not None and isinstance(value, Parameter):
                self._tell(value, results[-1])
        return results

    def _below(self, output: Value, function: Call | None) -> list[Node]:
        """Return the nodes that the output of a function needs, in the order of the vendor's search from it.

        A weight is read after earlier calls with effects, so the nodes that these need come first. Loops with unused
        results are included: the code after them is a function that they call.
        """
        mine = {id(node) for node in _every(function)} if function is not None else set()
        loops = [node for node in self._open[-1].trail if node.op_type == "While" and id(node) in mine]
        effects = Effects(self._open[0], self._find)
        before: dict[int, Node] = {}
        latest: Node | None = None
        for node in self._open[-1].trail:
            if latest is not None:
                before[id(node)] = latest
            latest = node if node.blocks and node.op_type != GRADIENT and effects.is_busy(node) else latest

        def needs(node: Node) -> list[Value]:
            call = before.get(id(node))
            if node.blocks:
                taken = _taken(node)
                return taken if call is None or not effects.is_busy(node) else [*taken, call]
            reads = [isinstance(value, Parameter) and value.is_weight for value in node.operands]
            return [v if call is None or not r else call for v, r in zip(node.operands, reads, strict=True)]

        needed = {id(node) for node in below([output, *loops])}
        return [node for node in topological([output, *loops], needs) if id(node) in needed]

    def _teller(self, builder: NodeBuilder) -> Callable[[Value, Any], None] | None:
        tell = self._tell
        if tell is None:
            return None

        def noted(value: Value, gradient: Any) -> None:
            if not isinstance(gradient, Parts):
                tell(value, builder.value(gradient))

        return noted

    def _scopes(self, node: Node, forward: Sequence[Node]) -> dict[int, str]:
        given = gradient_of(node)
        if given.sums:
            return compiled_scopes(forward, given.sums, self._find)
        if given.function is None:
            return load_scopes(forward)
        outputs = [
            value
            for value in node.operands[: given.count]
            if isinstance(value, Node) or (isinstance(value, Parameter) and not value.is_weight)
        ]
        shared = shared_scopes(given.function, outputs, forward, self._find)
        # with control flow a weight is a parameter of a copy, which has no scope [observed 2.10: r94_017]
        if _has_control(forward):
            return shared
        several = _read_by_several(given.function) if not given.is_called else set()
        return {**shared, **{key: scope for key, scope in load_scopes(forward).items() if key not in several}}

    def _expand_rule(self, node: Node) -> None:
        """Expand the gradients that a rule of the script takes."""
        rule = node.attrs["rule"] if node.op_type == CUSTOM_GRADIENT else None
        if rule is not None and id(rule) not in self._rules:
            self._rules.add(id(rule))
            self.expand(rule)

    def _placer(self, gradient: Node, made: list[Node]) -> Callable[[Node], None]:
        """Return the function that places the nodes of a backward pass at the position of the gradient node."""
        place = text_of(gradient)

        def put(node: Node) -> None:
            text = text_of(node)
            if text.call_scope is None:
                text.sources = text.sources or place.sources
                text.call_scope, text.block_scope = place.call_scope, place.block_scope
                node.dump_mark = gradient.dump_mark
            made.append(node)
            self._open[-1].trail.append(node)

        return put


def _taken(node: Node) -> list[Value]:
    """Return the operands of a control node; those of a branch are in the order in which its sides use them."""
    if node.op_type != "If":
        return uses(node)
    found = list(node.operands)
    for block in node.blocks:
        nodes = [*block.trail, *([block.output] if isinstance(block.output, Node) else [])]
        inside = {id(one) for one in nodes} | {id(parameter) for parameter in block.parameters}
        own = [v for one in nodes for v in one.operands if id(v) not in inside and not isinstance(v, Constant)]
        weights = [value for value in own if isinstance(value, Parameter) and value.is_weight]
        found += by_program(nodes, text_of(node).frame, weights, list({id(v): v for v in own}.values()))
    return [*found, *uses(node)]


def _mark_inlined(around: Call) -> None:
    """Count the enclosing calls of nodes in functions that the differentiated one calls; `around` calls the latter."""
    for call in around.entries:
        if isinstance(call, Call):
            _count_calls(call, 0, 0)


def _read_by_several(call: Call) -> set[int]:
    """Return the ids of the weights that several calls read, whose gradients are not summed at one Load.

    The Loads are merged before if the network also calls the differentiated function itself. [observed 2.10: six small
    networks that call a Dense layer or an RNNCell twice, in a gradient and in a step of training]
    """
    readers: dict[int, set[int]] = {}
    pending = [call]
    while pending:
        mine = pending.pop()
        for entry in mine.entries:
            if isinstance(entry, Call):
                pending.append(entry)
                continue
            for value in entry.operands:
                if isinstance(value, Parameter) and value.is_weight:
                    readers.setdefault(id(value), set()).add(id(mine))
    return {weight for weight, calls in readers.items() if len(calls) > 1}


def _every(call: Call) -> Iterator[Node]:
    """Yield the nodes of a call and of all calls inside."""
    for entry in call.entries:
        if isinstance(entry, Node):
            yield entry
        else:
            yield from _every(entry)


def _count_calls(call: Call, calls: int, frame: int) -> None:
    for entry in call.entries:
        if isinstance(entry, Node):
            text_of(entry).calls, text_of(entry).frame = calls, frame
        else:
            is_same = entry.is_branch or entry.is_rest or len(entry.entries) == 1
            _count_calls(entry, calls + 1, frame if is_same else frame + 1)


def _has_control(nodes: Sequence[Node]) -> bool:
    return any(node.op_type in ("If", "While") for node in nodes)


def _gives_tuple(node: Node) -> bool:
    """Whether a branch has several outputs, whose gradients become arguments when tuple arguments are split.

    That changes the functions, which are then analysed again. [observed 2.10: five networks]
    """
    if node.op_type != "If" or control_of(node).jumps:  # a branch at the end of a round returns the function's result
        return False
    return isinstance(node.abstract, TupleType) and len(node.abstract.items) > 1


def _taken_apart(nodes: Iterable[Node]) -> set[int]:
    """Return the ids of the branches with more than one used output."""
    places: dict[int, set[int]] = {}
    for node in nodes:
        if node.op_type == "TupleGetItem" and isinstance(node.operands[0], Node) and node.operands[0].op_type == "If":
            places.setdefault(id(node.operands[0]), set()).add(place_of(node))
    return {branch for branch, found in places.items() if len(found) > 1}


def _bundles(output: Value) -> Iterator[Node]:
    """Yield the nodes that bundle the outputs, inner ones first."""
    if isinstance(output, Node) and output.op_type == "MakeTuple":
        for operand in output.operands:
            yield from _bundles(operand)
        yield output


def _enter(call: Call, gradient: Node, made: Sequence[Node]) -> None:
    """Replace a gradient node in a call by the nodes of its backward pass."""
    at = next((place for place, entry in enumerate(call.entries) if entry is gradient), None)
    if at is not None:
        call.entries[at : at + 1] = made


def _note(error: DumpsimError, gradient: Node, name: str) -> None:
    """Add the line of the script that takes the gradient to an error."""
    sources = text_of(gradient).sources
    if sources and not getattr(error, "__notes__", None):
        error.add_note(f"while {name} was compiled, in {sources[-1].path}:{sources[-1].line}")
