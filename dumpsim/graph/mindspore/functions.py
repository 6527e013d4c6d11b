"""Func graphs of a captured network: what its branches and loops are to the vendor's compiler.

A captured graph has its control flow as nodes with blocks. The vendor has functions instead: a branch is two functions
that a Switch chooses from, and what follows it stays in the caller; a loop is a header that calls the body or what
follows the loop, and the body calls the header. [spec vendor 2.8] The functions take over the captured nodes; they may
use values of the functions around them until `lift_closures` turns these into parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dumpsim.core.abstract import Abstract, FunctionType, ScalarType, TupleType
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, uses
from dumpsim.graph.mindspore.funcgraph import LABELS, FuncGraph, as_constant, called_by
from dumpsim.graph.mindspore.specialise import specialised

__all__ = ["FuncForm", "made_functions", "number_functions"]

_CONTROL = frozenset({"If", "While", "Unwind", "Invoke"})


@dataclass(eq=False, slots=True, kw_only=True)
class FuncForm:
    """The functions of a network.

    Attributes
    ----------
    root : FuncGraph
    functions : list of FuncGraph
        The root first; in the order of specialisation after `number_functions`.
    loops : dict of int to Node
        The captured loop of a header, by the header's id.
    unwinds : dict of int to Node
        The captured gradient of a loop that a call runs, by the call's id.
    gradients : dict of int to (Node, list of FuncGraph)
        By the id of a call of a branch's gradient: the call of the branch, and what it may run.
    closed : set of int
        Ids of the Partials that hold all that they are to take.
    branches : set of int
        Ids of the calls of branches.
    """

    root: FuncGraph
    functions: list[FuncGraph] = field(default_factory=list)
    loops: dict[int, Node] = field(default_factory=dict)
    unwinds: dict[int, Node] = field(default_factory=dict)
    gradients: dict[int, tuple[Node, list[FuncGraph]]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    branches: set[int] = field(default_factory=set)

    def called_by(self, call: Node) -> list[FuncGraph]:
        """The functions that a call may run."""
        if id(call) in self.gradients:
            return self.gradients[id(call)][1]
        return list(called_by(call))


def made_functions(graph: Graph) -> FuncForm:
    """The functions of a captured network, whose nodes they take over."""
    assert graph.output is not None
    root = FuncGraph(
        kind="root", label=graph.name, result=Node(op_type="Return", operands=[], abstract=graph.output.abstract)
    )
    root.parameters = list(graph.parameters)
    root.is_tied, root.differentiates_weights = graph.is_tied, graph.differentiates_weights
    form = FuncForm(root=root)
    _Maker(form).fill(root, graph.trail, graph.output)
    return form


def number_functions(form: FuncForm) -> None:
    """Give the functions their numbers, before their closures are lifted. [spec vendor 2.6]"""
    form.functions = specialised(form.root)
    for number, function in enumerate(form.functions, 1):
        function.number = number


def _by_first_use(head: Graph, body: Graph) -> list[int]:
    """The variables of a loop in the order in which its header and its body use them first. [observed 2.10]"""
    places = {id(p): at for graph in (head, body) for at, p in enumerate(graph.parameters)}
    used = [id(value) for graph in (head, body) for node in graph.trail for value in uses(node)]
    found = [places[identity] for identity in used if identity in places]
    return list(dict.fromkeys([*found, *range(len(body.parameters))]))


def _is_part(node: Node, control: Node) -> bool:
    return node.op_type == "TupleGetItem" and node.operands[0] is control


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """How a function ends that does not return a value: it calls a header.

    Attributes
    ----------
    header : FuncGraph
    order : list of int
        The variables of the loop in the order in which the header takes them.
    """

    header: FuncGraph
    order: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closure:
    """The gradient that a function gives besides its output, and the values that this takes."""

    gradient: FuncGraph
    taken: list[Value]


class _Maker:
    def __init__(self, form: FuncForm) -> None:
        self.form = form
        self._new: dict[int, Value] = {}  # what stands for a captured value, by id
        self._waiting: dict[int, list[FuncGraph]] = {}  # the gradients of a branch's sides, by the gradient's id
        self._functions: dict[int, FuncGraph] = {}  # by id of a captured graph that several nodes call
        self._headers: dict[int, FuncGraph] = {}  # by id of a loop
        self._placed: set[int] = set()  # ids of the nodes of all functions
        self._kept: list[Value] = []
        form.functions.append(form.root)

    def function(
        self,
        kind: str,
        label: str,
        nodes: Sequence[Node],
        output: Value,
        *,
        end: _End | None = None,
        into: FuncGraph | None = None,
        closure: _Closure | None = None,
    ) -> FuncGraph:
        """The function of captured nodes.

        Parameters
        ----------
        kind, label : str
        nodes : sequence of Node
        output : Value
        end : _End, optional
            Where it calls the header of a loop with its output.
        into : FuncGraph, optional
            The function, where it has been made already.
        closure : _Closure, optional
        """
        function = into or self._new_function(kind, label, output, end)
        self.fill(function, nodes, output, end=end, closure=closure)
        return function

    def _new_function(self, kind: str, label: str, output: Value, end: "_End | None" = None) -> FuncGraph:
        abstract = output.abstract if end is None else end.header.result.abstract
        result = Node(op_type="Return", operands=[], abstract=abstract)
        function = FuncGraph(kind=kind, label=label, result=result)
        self.form.functions.append(function)
        return function

    def fill(
        self,
        function: FuncGraph,
        nodes: Sequence[Node],
        output: Value,
        *,
        end: _End | None = None,
        closure: _Closure | None = None,
    ) -> None:
        """Put captured nodes into a function; see `function`."""
        for at, node in enumerate(nodes):
            rest = nodes[at + 1 :]
            if node.op_type == "If" and not _is_differentiated(node):
                _order_outputs(node, rest, output)
            if node.op_type == "While":
                function.output = self._loop(node, function, rest, output, end, closure)
                return
            if node.op_type == "If":
                self._branch(node, function, rest)
                if end is not None:  # what follows calls the header: a function that calls itself is not inlined
                    parts = [part for part in rest if _is_part(part, node)]
                    for part in parts:
                        self._part(part, node, function)
                    rest = [later for later in rest if not _is_part(later, node)]
                    after = self.function("after", LABELS["after"] + function.label, rest, output, end=end)
                    function.output = self._call(as_constant(after), [], after.result.abstract, function)
                    return
            elif node.op_type == "Unwind":
                self._unwind(node, function)
            elif node.op_type == "Invoke":
                self._shared(node, function)
            else:
                self._plain(node, function)
        function.output = self._value(output, function) if end is None else self._back(output, function, end)
        if closure is not None:
            values = [as_constant(closure.gradient), *(self._value(value, function) for value in closure.taken)]
            partial = self._made("Partial", values, FunctionType(), function)
            self.form.closed.add(id(partial))
            function.result.operands.append(partial)

    def _back(self, output: Value, function: FuncGraph, end: _End) -> Node:
        """The call of the header at the end of a loop's body, also with what the loop's gradient needs of a round."""
        assert isinstance(output, Node)
        kept = range(len(end.order), len(output.operands))
        values = [self._value(output.operands[at], function) for at in (*end.order, *kept)]
        return self._call(as_constant(end.header), values, end.header.result.abstract, function)

    # -- nodes

    def _own(self, node: Node, function: FuncGraph) -> Node:
        self._placed.add(id(node))
        function.trail.append(node)
        return node

    def _made(self, op_type: str, operands: list[Value], abstract: Abstract, function: FuncGraph) -> Node:
        return self._own(Node(op_type=op_type, operands=operands, abstract=abstract), function)

    def _value(self, value: Value, function: FuncGraph) -> Value:
        if isinstance(value, Node) and id(value) not in self._new and id(value) not in self._placed:
            # a bundle, which is no part of the program
            value.operands = [self._value(operand, function) for operand in value.operands]
            self._kept.append(value)
            if value.op_type == "MakeTuple" and len(value.operands) == 1 and function.kind != "root":
                self._new[id(value)] = value.operands[0]
            else:
                self._own(value, function)
        return self._new.get(id(value), value)

    def _plain(self, node: Node, function: FuncGraph) -> None:
        source = node.operands[0] if node.operands else None
        if node.op_type == "TupleGetItem" and isinstance(source, Node) and source.op_type in _CONTROL:
            self._part(node, source, function)
            return
        node.operands = [self._value(operand, function) for operand in node.operands]
        self._own(node, function)

    def _part(self, node: Node, source: Node, function: FuncGraph) -> None:
        """A part of what a control node gives: of a loop, a parameter of its header."""
        place = node.operands[1]
        assert isinstance(place, Constant)
        self._kept.append(node)
        if source.op_type == "While":
            self._new[id(node)] = self._headers[id(source)].parameters[place.value]
        elif isinstance(source.abstract, TupleType) and len(source.abstract.items) == 1:
            self._new[id(node)] = self._new[id(source)]
        else:
            node.operands = [self._new[id(source)], place]
            self._own(node, function)

    def _call(self, callee: Value, values: list[Value], abstract: Abstract, function: FuncGraph) -> Node:
        return self._made("Call", [callee, *values], abstract, function)

    # -- control

    def _shared(self, node: Node, function: FuncGraph) -> None:
        """A call of a function that has other calls."""
        (block,) = node.blocks
        assert block.output is not None
        assert isinstance(node.abstract, TupleType)
        abstract = node.abstract.items[0] if len(node.abstract.items) == 1 else node.abstract
        called = self._functions.get(id(block))
        if called is None:
            called = self._functions[id(block)] = self._new_function("function", block.name, block.output)
            called.parameters = list(block.parameters)
            self.fill(called, block.trail, block.output)
        arguments = [self._value(operand, function) for operand in node.operands]
        self._kept.append(node)
        self._new[id(node)] = self._call(as_constant(called), arguments, abstract, function)

    def _branch(self, node: Node, function: FuncGraph, rest: Sequence[Node]) -> None:
        condition = self._value(node.operands[0], function)
        waiting = self._waiting.pop(id(node), None)
        sides: list[FuncGraph] = []
        for at, (kind, block) in enumerate(zip(("true", "false"), node.blocks, strict=True)):
            assert block.output is not None
            label = LABELS[kind] + function.label
            closure = None if waiting is not None else self._closure(node, at, kind, label, rest)
            into = waiting[at] if waiting is not None else None
            sides.append(self.function(kind, label, block.trail, block.output, into=into, closure=closure))
        assert isinstance(node.abstract, TupleType)
        abstract = node.abstract.items[0] if len(node.abstract.items) == 1 else node.abstract
        if waiting is not None:  # what the branch gave besides its output is called
            forward = self._value(node.operands[1], function)
            assert isinstance(forward, Node)
            call = self._call(forward, [], abstract, function)
            self.form.gradients[id(call)] = forward, waiting
        else:
            switch = self._made("Switch", [condition, *map(as_constant, sides)], FunctionType(), function)
            call = self._call(switch, [], abstract, function)
        self.form.branches.add(id(call))
        self._kept.append(node)
        self._new[id(node)] = call

    def _closure(self, node: Node, at: int, kind: str, label: str, rest: Sequence[Node]) -> _Closure | None:
        """The gradient of one side of a branch, and what the side gives to it."""
        backward = control_of(node).backward
        if backward is None or all(later is not backward for later in rest):
            return None
        output = backward.blocks[at].output
        assert output is not None
        gradient = self._new_function(kind, label, output)
        self._waiting.setdefault(id(backward), []).append(gradient)
        return _Closure(gradient=gradient, taken=_given_to_gradient(node.blocks[at]))

    def _loop(
        self,
        node: Node,
        function: FuncGraph,
        rest: Sequence[Node],
        output: Value,
        end: _End | None,
        closure: _Closure | None,
    ) -> Node:
        """The functions of a loop; what follows it is one of them."""
        head, turn = node.blocks
        assert head.output is not None
        assert turn.output is not None
        order = _by_first_use(head, turn)
        starts = [self._value(node.operands[at], function) for at in order]
        label = function.label
        header = self._headers[id(node)] = self._new_function("header", LABELS["header"] + label, output, end)
        self.form.loops[id(header)] = node
        self._kept.append(node)
        for own, other in zip(head.parameters, turn.parameters, strict=True):
            shown = own.debug_name or f"ф{own.name}"
            header.parameters.append(Parameter(name=own.name, abstract=own.abstract, debug_name=shown))
            self._new[id(own)] = self._new[id(other)] = header.parameters[-1]
        for at, each in enumerate(head.trail):
            if each.op_type == "If":
                self._branch(each, header, head.trail[at + 1 :])
            else:
                self._plain(each, header)
        condition = self._value(head.output, header)
        back = _End(header=header, order=order)
        again = self.function("body", LABELS["body"] + label, turn.trail, turn.output, end=back)
        after = self.function("after", LABELS["after"] + label, rest, output, end=end, closure=closure)
        sides: list[Value] = [as_constant(again), as_constant(after)]
        switch = self._made("Switch", [condition, *sides], FunctionType(), header)
        header.output = self._call(switch, [], after.result.abstract, header)
        header.parameters = [header.parameters[at] for at in order]
        return self._call(as_constant(header), starts, after.result.abstract, function)

    def _unwind(self, node: Node, function: FuncGraph) -> None:
        """The gradient of a loop: a function that is called with the first values. [fitted: the vendor's is a loop]"""
        (turn,) = node.blocks
        assert turn.output is not None
        starts = [self._value(operand, function) for operand in node.operands[1:]]
        body = self.function("body", LABELS["body"] + function.label, turn.trail, turn.output)
        body.parameters = turn.parameters
        call = self._call(as_constant(body), starts, node.abstract, function)
        self.form.unwinds[id(call)] = node
        self._kept.append(node)
        self._new[id(node)] = call


def _is_differentiated(node: Node) -> bool:
    """Whether a branch has a gradient, which counts on the places of its outputs, or is one."""
    backward = node.control is not None and node.control.backward is not None
    return backward or len(node.operands) > 1 or any(block.results is not None for block in node.blocks)


def _order_outputs(node: Node, rest: Sequence[Node], output: Value) -> None:
    """Put the outputs of a branch into the order in which what follows reads them. [source parse.cc]

    The code after a branch is a function whose parameters are made as it reads variables.
    """
    assert isinstance(node.abstract, TupleType)
    parts = {id(part): part for part in rest if _is_part(part, node)}
    end = Node(op_type="Return", operands=[output], abstract=output.abstract)
    bundle = list(output.operands) if isinstance(output, Node) else []
    read = [value for later in rest for value in uses(later)] + [*bundle, *end.operands]
    places = [part.operands[1].value for value in read if (part := parts.get(id(value))) is not None]  # type: ignore[union-attr]
    order = list(dict.fromkeys([*places, *range(len(node.abstract.items))]))
    if order == sorted(order):
        return
    node.abstract = TupleType(items=tuple(node.abstract.items[at] for at in order))
    for block in node.blocks:
        assert isinstance(block.output, Node)
        block.output.operands = [block.output.operands[at] for at in order]
        block.output.abstract = node.abstract
    for part in parts.values():
        place = part.operands[1]
        assert isinstance(place, Constant)
        at = order.index(place.value)
        part.operands[1] = Constant(value=at, abstract=ScalarType(dtype=place.abstract.dtype, value=at))  # type: ignore[union-attr]


def _given_to_gradient(block: Graph) -> list[Value]:
    """What a branch gives to its gradient; nothing where it makes no function of these values."""
    bundle = block.output
    if not isinstance(bundle, Node) or block.results is None or any(node.op_type in _CONTROL for node in block.trail):
        return []
    return [value for value in bundle.operands[block.results :] if not isinstance(value, Constant)]
