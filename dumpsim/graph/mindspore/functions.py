"""Func graphs of a captured network: what its branches and loops are to the vendor's back end.

A captured graph has its control flow as nodes with blocks. The vendor has functions instead: a branch is two functions
that a Switch chooses from, and what follows it stays in the caller; a loop is a header that calls the body or what
follows the loop, and the body calls the header. [spec vendor 2.8] The functions are made of new nodes, each of which
knows the captured node that it stands for, so that a partition of the functions is one of the captured graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dumpsim.core.abstract import Abstract, FunctionType, MonadType, TupleType
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, uses
from dumpsim.graph.mindspore.funcgraph import LABELS, FuncGraph, as_constant, function_of, nodes_of
from dumpsim.graph.mindspore.specialise import specialised

__all__ = ["CONTROL", "FuncForm", "given_to_gradient", "has_effect", "made_functions"]

CONTROL = frozenset({"If", "While", "Unwind"})
_TOKEN = MonadType(kind="U")


@dataclass(eq=False, slots=True, kw_only=True)
class FuncForm:
    """The functions of a network.

    Attributes
    ----------
    root : FuncGraph
    order : list of FuncGraph
        In the order of specialisation, the root first.
    blocks : dict of int to FuncGraph
        The function of a captured graph, by the graph's id; what follows a loop, or a branch in one, has the id of
        the control node.
    origins : dict of int to Node
        The captured node that a node stands for, by id.
    """

    root: FuncGraph
    order: list[FuncGraph] = field(default_factory=list)
    blocks: dict[int, FuncGraph] = field(default_factory=dict)
    origins: dict[int, Node] = field(default_factory=dict)


def made_functions(graph: Graph) -> FuncForm:
    """The functions of a captured network, with what they use of each other as parameters."""
    maker = _Maker()
    assert graph.output is not None
    root = maker.function("root", graph.name, graph, graph.trail, graph.output)
    found = FuncForm(root=root, blocks=maker.blocks, origins=maker.origins)
    found.order = specialised(root)
    for number, function in enumerate(found.order, 1):
        function.number = number
    _Lifter(found.order, maker.owners, maker.closed, maker.gradients).lift()
    return found


def has_effect(node: Node) -> bool:
    """Whether a captured node reads or writes weights in the order of the program, its blocks included."""
    ties = node.op_type in ("UpdateState", "Depend")
    if not ties and any(isinstance(operand.abstract, MonadType) for operand in node.operands):
        return True
    return any(has_effect(inner) for block in node.blocks for inner in block.trail)


def given_to_gradient(block: Graph) -> list[Node] | None:
    """What a branch gives to its gradient, None where it makes no function of these values."""
    bundle = block.output
    while isinstance(bundle, Node) and bundle.op_type == "Depend":
        bundle = bundle.operands[0]
    if not isinstance(bundle, Node) or block.results is None or any(node.op_type in CONTROL for node in block.trail):
        return None
    return [value for value in bundle.operands[block.results :] if isinstance(value, Node)] or None


def _by_first_use(head: Graph, body: Graph) -> list[int]:
    """The variables of a loop in the order in which its header and its body use them first. [observed 2.10]"""
    places = {id(p): at for graph in (head, body) for at, p in enumerate(graph.parameters)}
    used = [id(value) for graph in (head, body) for node in graph.trail for value in uses(node)]
    found = [places[identity] for identity in used if identity in places]
    return list(dict.fromkeys([*found, *range(len(body.parameters))]))


def _is_part(node: Node, control: Node) -> bool:
    return node.op_type == "TupleGetItem" and node.operands[0] is control


@dataclass(eq=False, slots=True, kw_only=True)
class _Body:
    """A function that is being made."""

    function: FuncGraph
    token: Value
    loads: list[Node] = field(default_factory=list)  # and writes, since the last token
    effects: list[Node] = field(default_factory=list)
    collected: set[int] = field(default_factory=set)  # ids of what a token depends on
    takes_token: bool = False  # called with one


class _Maker:
    def __init__(self) -> None:
        self.blocks: dict[int, FuncGraph] = {}
        self.origins: dict[int, Node] = {}
        self.owners: dict[int, FuncGraph] = {}  # of nodes and formal parameters, by id
        self.closed: set[int] = set()  # ids of Partials that take all that they are to take
        self.gradients: dict[int, list[FuncGraph]] = {}  # by id: those that a call of a gradient may run
        self._waiting: dict[int, list[FuncGraph]] = {}  # the same by captured node
        self._new: dict[int, Value] = {}  # by id of the captured value
        self._kept: list[Value] = []

    def function(
        self,
        kind: str,
        label: str,
        block: Graph | Node,
        nodes: Sequence[Node],
        output: Value,
        *,
        back: "tuple[FuncGraph, list[int]] | None" = None,
        into: FuncGraph | None = None,
        closure: "tuple[FuncGraph, list[Value]] | None" = None,
        takes_token: bool = False,
    ) -> FuncGraph:
        """The function of captured nodes.

        Parameters
        ----------
        kind, label : str
        block : Graph or Node
            The captured graph, or the control node that the nodes follow.
        nodes : sequence of Node
        output : Value
        back : (FuncGraph, list of int), optional
            The header that it calls at its end, and the variables that this takes.
        into : FuncGraph, optional
            The function, where it has been made already.
        closure : (FuncGraph, list of Value), optional
            The gradient that it gives besides its output, and the values that this takes.
        takes_token : bool
            It is called with a token.
        """
        function = into or self._new_function(kind, label, output)
        self.blocks[id(block)] = function
        body = _Body(function=function, token=Constant(value="U", abstract=_TOKEN), takes_token=takes_token)
        for at, node in enumerate(nodes):
            rest = nodes[at + 1 :]
            if node.op_type == "While":
                call = self._loop(node, body, rest, output, back, closure)
                return self._ended(body, call, call)
            if node.op_type == "If":
                self._branch(node, body, rest)
                if back is not None:  # what follows calls the header: a function that calls itself is not inlined
                    parts = [part for part in rest if _is_part(part, node)]
                    for part in parts:
                        self._part(part, node, body)
                    rest = [later for later in rest if not _is_part(later, node)]
                    after = self.function("after", LABELS["after"] + label, node, rest, output, back=back)
                    effect = any(has_effect(later) for later in rest)
                    call = self._call(as_constant(after), [], body, effect=effect)
                    return self._ended(body, call, call)
            elif node.op_type == "Unwind":
                self._unwind(node, body)
            else:
                self._plain(node, body)
        self._finished(body, output, back)
        if closure is not None:
            gradient, taken = closure
            values = [as_constant(gradient), *(self._value(value, body) for value in taken)]
            partial = self._made("Partial", values, FunctionType(), body)
            self.closed.add(id(partial))
            function.result.operands.append(partial)
        return function

    def _new_function(self, kind: str, label: str, output: Value) -> FuncGraph:
        result = Node(op_type="Return", operands=[], abstract=output.abstract)
        function = FuncGraph(kind=kind, label=label, result=result)
        self.owners[id(result)] = function
        return function

    def _finished(self, body: _Body, output: Value, back: "tuple[FuncGraph, list[int]] | None") -> FuncGraph:
        if back is None:
            value = self._value(output, body)
            tie = isinstance(value, Node) and value.op_type == "Depend" and body.effects == [value]
            if body.function.kind == "after" and isinstance(value, Node) and tie:
                value = value.operands[0]  # the caller of the loop ties the result
                body.effects = []
            return self._ended(body, value, None)
        header, order = back
        bundle = output
        while isinstance(bundle, Node) and bundle.op_type == "Depend":
            bundle = bundle.operands[0]
        assert isinstance(bundle, Node)
        kept = range(len(order), len(bundle.operands))  # what the gradient of the loop needs of a round
        values = [self._value(bundle.operands[at], body) for at in (*order, *kept)]
        call = self._call(as_constant(header), values, body, effect=bool(body.effects))
        return self._ended(body, call, call)

    def _ended(self, body: _Body, output: Value, last: Node | None) -> FuncGraph:
        """Tie the result to the last token; a call in the last place that is the only effect needs no tie."""
        alone = last is not None and all(effect is last for effect in body.effects)
        if alone and isinstance(last, Node):
            output = last
        elif body.effects and not (isinstance(output, Node) and output.op_type == "Depend"):
            output = self._made("Depend", [output, body.token], output.abstract, body)
        body.function.result.operands = [output]
        return body.function

    # -- nodes

    def _made(self, op_type: str, operands: list[Value], abstract: Abstract, body: _Body) -> Node:
        node = Node(op_type=op_type, operands=operands, abstract=abstract)
        self.owners[id(node)] = body.function
        self._kept.append(node)
        return node

    def _value(self, value: Value, body: _Body) -> Value:
        if isinstance(value.abstract, MonadType):
            return body.token
        if isinstance(value, Node) and id(value) not in self._new:  # a bundle, which is no part of the program
            items = [self._value(operand, body) for operand in value.operands]
            single = value.op_type == "MakeTuple" and len(items) == 1
            made = items[0] if single else self._made(value.op_type, items, value.abstract, body)
            self._new[id(value)] = made
            self._kept.append(value)
        return self._new.get(id(value), value)

    def _plain(self, node: Node, body: _Body) -> None:
        source = node.operands[0] if node.operands else None
        if node.op_type == "TupleGetItem" and isinstance(source, Node) and source.op_type in CONTROL:
            self._part(node, source, body)
            return
        effect = any(isinstance(operand.abstract, MonadType) for operand in node.operands)
        if node.op_type == "UpdateState" and self._is_collected(node, body):
            self._new[id(node)] = body.token
            return
        operands = [self._value(operand, body) for operand in node.operands]
        made = self._made(node.op_type, operands, node.abstract, body)
        self._new[id(node)] = made
        self.origins[id(made)] = node
        if node.op_type == "UpdateState":
            body.token = made
            body.loads.clear()
        elif effect and node.op_type != "Depend":
            body.loads.append(made)
        if effect:
            body.effects.append(made)

    def _is_collected(self, node: Node, body: _Body) -> bool:
        """Whether a token depends on nothing but what another one depends on already."""
        bundle = node.operands[1:]
        while len(bundle) == 1 and isinstance(bundle[0], Node) and bundle[0].op_type == "MakeTuple":
            bundle = bundle[0].operands
        return bool(bundle) and all(id(self._new.get(id(load))) in body.collected for load in bundle)

    def _part(self, node: Node, source: Node, body: _Body) -> None:
        """A part of what a control node gives: of a loop, a parameter of its header."""
        place = node.operands[1]
        assert isinstance(place, Constant)
        if source.op_type == "While":
            self._new[id(node)] = self.blocks[id(source.blocks[0])].parameters[place.value]
        elif isinstance(source.abstract, TupleType) and len(source.abstract.items) == 1:
            self._new[id(node)] = self._new[id(source)]
        else:
            made = self._made("TupleGetItem", [self._new[id(source)], place], node.abstract, body)
            self._new[id(node)] = made
            self.origins[id(made)] = node

    def _call(self, callee: Value, values: list[Value], body: _Body, *, effect: bool) -> Node:
        if effect:
            self._collect(body)
        call = self._made("Call", [callee, *values, *([body.token] if effect else [])], TupleType(items=()), body)
        if effect:
            body.token = self._made("UpdateState", [body.token, call], _TOKEN, body)
            body.effects.append(call)
        return call

    def _collect(self, body: _Body) -> None:
        """Let the token depend on the loads and writes since the last one."""
        if body.loads:
            loads: list[Value] = list(body.loads)
            body.collected.update(map(id, body.loads))
            if len(loads) > 1:
                loads = [self._made("MakeTuple", loads, TupleType(items=()), body)]
            body.token = self._made("UpdateState", [body.token, *loads], _TOKEN, body)
            body.loads = []

    # -- control

    def _branch(self, node: Node, body: _Body, rest: Sequence[Node]) -> None:
        effect = body.takes_token or has_effect(node) or any(has_effect(later) for later in rest)
        condition = self._value(node.operands[0], body)
        if effect:
            self._collect(body)
        sides: list[Value] = []
        kinds = ("true", "false")
        label = body.function.label
        waiting = self._waiting.pop(id(node), None)
        for at, (kind, block) in enumerate(zip(kinds, node.blocks, strict=True)):
            assert block.output is not None
            into = waiting[at] if waiting is not None else None
            closure = None if waiting is not None else self._closure(node, at, kind, label, rest)
            name = LABELS[kind] + label
            side = self.function(
                kind, name, block, block.trail, block.output, into=into, closure=closure, takes_token=effect
            )
            sides.append(as_constant(side))
        if waiting is not None:  # what the branch gave besides its output is called
            forward = self._value(node.operands[1], body)
            call = self._call(forward, [], body, effect=effect)
            self.gradients[id(call)] = waiting
        else:
            switch = self._made("Switch", [condition, *sides], FunctionType(), body)
            call = self._call(switch, [], body, effect=effect)
        self._new[id(node)] = call
        self.origins[id(call)] = node

    def _closure(
        self, node: Node, at: int, kind: str, label: str, rest: Sequence[Node]
    ) -> "tuple[FuncGraph, list[Value]] | None":
        """The gradient of one side of a branch, and what the side gives to it."""
        backward = control_of(node).backward
        if backward is None or all(later is not backward for later in rest):
            return None
        output = backward.blocks[at].output
        assert output is not None
        gradient = self._new_function(kind, LABELS[kind] + label, output)
        self._waiting.setdefault(id(backward), []).append(gradient)
        return gradient, list(given_to_gradient(node.blocks[at]) or ())

    def _loop(
        self,
        node: Node,
        body: _Body,
        rest: Sequence[Node],
        output: Value,
        back: "tuple[FuncGraph, list[int]] | None",
        closure: "tuple[FuncGraph, list[Value]] | None",
    ) -> Node:
        effect = has_effect(node) or any(has_effect(later) for later in rest)
        head, turn = node.blocks
        order = _by_first_use(head, turn)
        starts = [self._value(node.operands[at], body) for at in order]
        assert head.output is not None
        assert turn.output is not None
        label = body.function.label
        header = FuncGraph(
            kind="header",
            label=LABELS["header"] + label,
            result=Node(op_type="Return", operands=[], abstract=output.abstract),
        )
        for own, other in zip(head.parameters, turn.parameters, strict=True):
            header.parameters.append(Parameter(name=own.name, abstract=own.abstract, debug_name=own.debug_name))
            self._new[id(own)] = self._new[id(other)] = header.parameters[-1]
            self.owners[id(header.parameters[-1])] = header
        self.blocks[id(head)] = header
        self.owners[id(header.result)] = header
        inner = _Body(function=header, token=Constant(value="U", abstract=_TOKEN))
        for at, each in enumerate(head.trail):
            if each.op_type == "If":
                self._branch(each, inner, head.trail[at + 1 :])
            else:
                self._plain(each, inner)
        condition = self._value(head.output, inner)
        again = self.function("body", LABELS["body"] + label, turn, turn.trail, turn.output, back=(header, order))
        after = self.function("after", LABELS["after"] + label, node, rest, output, back=back, closure=closure)
        sides: list[Value] = [as_constant(again), as_constant(after)]
        switch = self._made("Switch", [condition, *sides], FunctionType(), inner)
        header.result.operands = [self._call(switch, [], inner, effect=effect)]
        call = self._call(as_constant(header), starts, body, effect=effect)
        self._new[id(node)] = call
        self.origins[id(call)] = node
        return call

    def _unwind(self, node: Node, body: _Body) -> None:
        """The gradient of a loop; the vendor's has another form."""
        (turn,) = node.blocks
        assert turn.output is not None
        starts = [self._value(operand, body) for operand in node.operands[1:]]
        function = self.function("body", LABELS["body"] + body.function.label, turn, turn.trail, turn.output)
        function.parameters = turn.parameters
        for parameter in turn.parameters:
            self.owners[id(parameter)] = function
        call = self._call(as_constant(function), starts, body, effect=has_effect(node))
        self._new[id(node)] = call
        self.origins[id(call)] = node


class _Lifter:
    """Turns the values of other functions that a function uses into parameters of it."""

    def __init__(
        self,
        functions: Sequence[FuncGraph],
        owners: dict[int, FuncGraph],
        closed: set[int],
        gradients: dict[int, list[FuncGraph]],
    ) -> None:
        self._functions = functions
        self._owners = owners
        self._closed = closed
        self._gradients = gradients
        self._nodes: dict[int, list[Node]] = {id(function): [] for function in functions}
        for node in {id(n): n for function in functions for n in nodes_of(function)}.values():
            self._nodes[id(owners[id(node)])].append(node)  # also what only functions inside of its owner use

    def lift(self) -> None:
        """Give every function its parameters, and every use of one the arguments."""
        free = self._free()
        made: dict[int, dict[int, Parameter]] = {}
        for function in self._functions:
            mine = made[id(function)] = {}
            for value in free[id(function)].values():
                mine[id(value)] = Parameter(name="", abstract=value.abstract)  # type: ignore[arg-type]
            function.parameters = [*mine.values(), *function.parameters]
        for function in self._functions:
            mine = made[id(function)]
            for node in self._nodes[id(function)]:
                if id(node) in self._closed:
                    continue
                operands: list[Value] = []
                for place, operand in enumerate(node.operands):
                    inner = function_of(operand)
                    if inner is None:
                        operands.append(mine.get(id(operand), operand))
                        continue
                    arguments = [mine.get(id(value), value) for value in free[id(inner)].values()]
                    if node.op_type == "Call" and place == 0:
                        operands += [operand, *arguments]
                    else:
                        partial: list[Value] = [operand, *arguments]
                        operands.append(Node(op_type="Partial", operands=partial, abstract=FunctionType()))
                for gradient in self._gradients.get(id(node), ()):
                    operands += [mine.get(id(value), value) for value in free[id(gradient)].values()]
                node.operands = operands

    def _free(self) -> dict[int, dict[int, Value]]:
        """What each function uses of others, directly or through functions that it uses."""
        free: dict[int, dict[int, Value]] = {id(function): {} for function in self._functions}
        while True:
            before = sum(map(len, free.values()))
            for function in self._functions:
                mine = free[id(function)]
                for node in self._nodes[id(function)]:
                    for operand in [*node.operands, *map(as_constant, self._gradients.get(id(node), ()))]:
                        inner = function_of(operand) if id(node) not in self._closed else None
                        values = [operand] if inner is None else list(free[id(inner)].values())
                        for value in values:
                            owner = self._owners.get(id(value))
                            if owner is not None and owner is not function:
                                mine.setdefault(id(value), value)
            if sum(map(len, free.values())) == before:
                return free
