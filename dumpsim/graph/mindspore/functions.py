"""Func graphs of a captured network: its branches and loops as functions, as in the vendor's compiler.

In a captured graph, control flow consists of nodes with blocks. The vendor has functions instead: a branch is two
functions from which a Switch chooses, and the code after it stays in the caller; a loop is a header that calls the body
or the code after the loop, and the body calls the header. [spec vendor 2.8] The captured nodes become nodes of the
functions, which may use values of enclosing functions until `lift_closures` turns these into parameters.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from dumpsim.core.abstract import Abstract, FunctionType, ScalarType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.gradient_control import ends_of, everything, is_child, plain
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Step, Value, control_of, copied, text_of
from dumpsim.graph.mindspore.capturedflow import (
    CONTROL,
    by_first_use,
    given_to_gradient,
    is_differentiated,
    is_part,
    is_trivial,
    order_outputs,
    place_of,
    whole_call,
)
from dumpsim.graph.mindspore.funcform import Backward, FuncForm
from dumpsim.graph.mindspore.funcgraph import LABELS, FuncGraph, as_constant
from dumpsim.graph.mindspore.monads import is_gradient
from dumpsim.graph.mindspore.rulefunctions import RULE, is_rule_call

__all__ = ["made_functions"]


def made_functions(graph: Graph) -> FuncForm:
    """Return the functions of a captured network, whose nodes are moved into them."""
    assert graph.output is not None
    root = FuncGraph(
        kind="root", label=graph.name, result=Node(op_type="Return", operands=[], abstract=graph.output.abstract)
    )
    root.parameters = list(graph.parameters)
    root.is_tied, root.differentiates_weights = graph.is_tied, graph.differentiates_weights
    form = FuncForm(root=root, is_analysed_again=graph.is_analysed_again)
    _Maker(form, graph).fill(root, graph.trail, graph.output)
    return form


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The end of a function that calls a header instead of returning a value.

    Attributes
    ----------
    header : FuncGraph
    order : list of int
        The variables of the loop in the order of the header's parameters.
    leave : _Leave, optional
        How ``break`` leaves the loop.
    hands_out : bool
        Whether a round returns its gradient as a closure; otherwise it returns the values that its gradient needs.
    """

    header: FuncGraph
    order: list[int]
    hands_out: bool = False
    leave: "_Leave | None" = None


@dataclass(slots=True, kw_only=True, eq=False)
class _Leave:
    """The end of a side of a branch that leaves a loop.

    Attributes
    ----------
    places : list of int
        The variables of the loop that the code after it takes from the point where the loop was left.
    end : FuncGraph or None
        The function of the code after the loop, if that has control flow: all sides that leave the loop call it.
    copies : list of (list of Node, Value, dict of int to int, Step or None)
        Otherwise copies of the code after the loop, one for each such side: nodes, output, the variables by id of their
        nodes, and the gradient.
    after : _End or None
        The end of the code after the loop.
    """

    places: list[int]
    end: FuncGraph | None = None
    copies: list[tuple[list[Node], Value, dict[int, int], Step | None]] = field(default_factory=list)
    after: "_End | None" = None


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
    node : Node
    first : Node
        The call of the header before the loop.
    functions : list of _HandsOut
        All functions of the loop and of the code after it.
    outputs : dict of int to Value
        The outputs inside of the code after the loop, by id.
    """

    node: Node
    first: Node
    functions: list[_HandsOut]
    outputs: dict[int, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closure:
    """The gradient that a function returns in addition to its output, and the values that the gradient takes."""

    gradient: FuncGraph
    taken: list[Value]


class _Maker:
    def __init__(self, form: FuncForm, graph: Graph) -> None:
        self.form = form
        self._loops = 0  # number of enclosing loops
        nodes = list(everything(graph.trail))
        self._present = {id(node) for node in nodes}
        self._is_twice = any(_is_second(node) for node in nodes)  # gradients of gradients
        self._new: dict[int, Value] = {}  # replacements of captured values, by id
        self._closing: set[int] = set()  # ids of branches that return their gradients as closures
        self._backwards: dict[int, tuple[Node, list[FuncGraph]]] = {}  # these gradients, by id of the captured one
        self._unwinding: dict[int, _Loop] = {}  # loops that return their gradients, by id of the captured one
        self._handing: list[list[_HandsOut]] = []  # functions of the open loops that return gradients
        self._waiting: dict[int, list[FuncGraph]] = {}  # the gradients of a branch's sides, by the gradient's id
        self._functions: dict[int, FuncGraph] = {}  # by id of a captured graph that several nodes call
        self._sides: dict[Hashable, FuncGraph] = {}  # of branches, by the name of their origin
        self._headers: dict[int, FuncGraph] = {}  # by id of a loop
        self._placed: set[int] = set()  # ids of the nodes of all functions
        self._given: dict[int, Value] = {}  # captured values that stand for parts of a loop, by id of the part
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
        steps: Sequence[Step] = (),
        of: Node | None = None,
    ) -> FuncGraph:
        """Create the function of captured nodes.

        Parameters
        ----------
        kind, label : str
        nodes : sequence of Node
        output : Value
        end : _End, optional
            Given if it calls the header of a loop with its output.
        into : FuncGraph, optional
            The function, if it has been created already.
        closure : _Closure, optional
        steps : sequence of Step, optional
            Given if it returns its gradient: the steps of its nodes, and of the function that it calls.
        of : Node, optional
            The control node to which it belongs.
        """
        function = into or self._new_function(kind, label, output, end)
        if of is not None:
            function.loops = control_of(of).loops
        if steps:
            self._hand_out(function, steps[0].given, steps)
        self.fill(function, nodes, output, end=end, closure=closure, step=steps[0] if steps else None)
        return function

    def _hand_out(self, function: FuncGraph, given: list[Value], steps: Sequence[Step] = ()) -> None:
        """Make a function return its gradient."""
        function.is_differentiated = True
        function.gradient = self._new_function(function.kind, function.label, function.result)
        function.gradient.forward, function.gradient.is_tied = function, False
        self._handing[-1].append(_HandsOut(function=function, given=given, steps=list(steps)))

    def _inside(self, function: FuncGraph, step: Step) -> None:
        """Add a step to a function, which contains its nodes instead of a separate function."""
        next(one for one in self._handing[-1] if one.function is function).steps.append(step)

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
        step: Step | None = None,
    ) -> None:
        """Move captured nodes into a function; see `function`."""
        whole = whole_call(output) if end is None else None
        if whole is not None and function.kind == "root" and whole.op_type == "Invoke":
            whole = None
        for at, node in enumerate(nodes):
            rest = nodes[at + 1 :]
            if node.op_type == "If" and control_of(node).jumps:
                assert end is not None
                function.output = self._jump(node, function, end, step)
                return
            if node.op_type == "If" and not is_differentiated(node) and not control_of(node).tails:
                order_outputs(node, rest, output)
            if node.op_type == "While" and (unwind := self._handed_by(node)) is not None:
                here = next((at for at, later in enumerate(rest) if later is unwind), None)
                if here is None:
                    function.output = self._differentiated_loop(node, unwind, function, rest, output)
                    return
                self._differentiated_loop(node, unwind, function, rest[:here], None)
                self.fill(function, rest[here:], output)  # continue after the differentiated function
                return
            if node.op_type == "While":
                inner = step.inner if step is not None and step.split is node else ()
                function.output = self._loop(node, function, rest, output, end, closure, inner)
                return
            if node.op_type == "If":
                self._branch(node, function, rest)
                if end is not None:  # the code after it calls the header; recursive functions are not inlined
                    parts = {id(part): part for part in rest if is_part(part, node)}
                    rest = [later for later in rest if id(later) not in parts]
                    inner = step.inner if step is not None and step.split is node else ()
                    is_trivial_call = not rest and is_trivial(rest, output)
                    if is_trivial_call or is_child(rest, output, nodes[:at]):
                        for later_step in inner:
                            self._inside(function, later_step)
                        step = inner[0] if inner else step
                        continue
                    for part in parts.values():
                        self._part(part, node, function)
                    after = self.function("after", LABELS["after"] + function.label, rest, output, end=end, steps=inner)
                    after.scope = node.scope
                    function.output = self._call(as_constant(after), [], after.result.abstract, function)
                    return
            elif id(node) in self._unwinding:
                self._backward_loop(node, function)
            elif node.op_type == "Unwind":
                self._unwind(node, function)
            elif node.op_type == "Invoke":
                self._shared(node, function)
            else:
                self._plain(node, function)
        if whole is not None:  # return the function call itself instead of a tuple of its items
            items = [output, *(each for each in function.trail if is_part(each, self._call_of(whole)))]
            function.trail = [each for each in function.trail if all(each is not item for item in items)]
            function.output = self._call_of(whole)
        else:
            function.output = self._value(output, function) if end is None else self._back(output, function, end)
        if closure is not None:
            values = [as_constant(closure.gradient), *(self._value(value, function) for value in closure.taken)]
            partial = self._made("Partial", values, FunctionType(), function)
            self.form.closed.add(id(partial))
            function.result.operands.append(partial)

    def _jump(self, node: Node, function: FuncGraph, end: _End, step: Step | None) -> Node:
        """Create a branch at the end of a loop's body, whose sides may break or continue."""
        control = control_of(node)
        condition = self._value(node.operands[0], function)
        inner: Sequence[Step | None] = step.inner if step is not None and step.split is node else (None, None)
        sides: list[FuncGraph] = []
        for at, (kind, block, how) in enumerate(zip(("true", "false"), node.blocks, control.jumps, strict=True)):
            assert block.output is not None
            label = LABELS[kind] + function.label
            side = self._new_function(kind, label, block.output, end)
            side.scope, side.loops = node.scope, control.loops
            sides.append(side)
            mine = inner[at]
            if mine is not None:
                self._hand_out(side, mine.given, (mine,))
            later_steps = mine.inner if mine is not None and not how else ()
            start = control.starts[at]
            own, later = block.trail[:start], block.trail[start:]
            if how == "break":
                assert end.leave is not None
                self._leave(side, own, block.output, end.leave)
            elif how == "continue":
                self.fill(side, block.trail, block.output, end=end, step=mine)
            elif is_trivial(later, block.output):
                for later_step in later_steps:
                    self._inside(side, later_step)
                self.fill(side, block.trail, block.output, end=end, step=later_steps[0] if later_steps else None)
            else:  # a recursive function is only inlined if it is trivial
                for each in own:
                    self._plain_or_branch(each, side, later)
                after = self.function(
                    "after", LABELS["after"] + function.label, later, block.output, end=end, steps=later_steps
                )
                after.scope = node.scope
                side.output = self._call(as_constant(after), [], after.result.abstract, side)
        switch = self._made("Switch", [condition, *map(as_constant, sides)], FunctionType(), function)
        self._kept.append(node)
        return self._call(switch, [], end.header.result.abstract, function)

    def _plain_or_branch(self, node: Node, function: FuncGraph, rest: Sequence[Node]) -> None:
        if node.op_type == "If":
            self._branch(node, function, rest)
        elif node.op_type == "Invoke":
            self._shared(node, function)
        else:
            self._plain(node, function)

    def _leave(self, function: FuncGraph, nodes: Sequence[Node], output: Value, leave: _Leave) -> None:
        """Fill a function that leaves a loop with the variables in `output`."""
        assert isinstance(output, Node)
        if leave.end is not None:
            for at, node in enumerate(nodes):
                self._plain_or_branch(node, function, nodes[at + 1 :])
            values = [self._value(output.operands[at], function) for at in leave.places]
            function.output = self._call(as_constant(leave.end), values, leave.end.result.abstract, function)
            return
        rest, result, parts, step = leave.copies.pop()
        if step is not None:
            self._inside(function, step)
        for identity, place in parts.items():
            self._given[identity] = output.operands[place]
        self.fill(function, [*nodes, *rest], result, end=leave.after)

    def _back(self, output: Value, function: FuncGraph, end: _End) -> Node:
        """Call the header at the end of a loop's body, with the variables and the values that the gradient needs."""
        assert isinstance(output, Node)
        kept = range(len(end.order), len(output.operands)) if not end.hands_out else ()
        values = [self._value(output.operands[at], function) for at in (*end.order, *kept)]
        return self._call(as_constant(end.header), values, end.header.result.abstract, function)

    def _call_of(self, node: Node) -> Node:
        call = self._new[id(node)]
        assert isinstance(call, Node)
        return call

    # -- nodes

    def _own(self, node: Node, function: FuncGraph) -> Node:
        self._placed.add(id(node))
        function.trail.append(node)
        return node

    def _made(self, op_type: str, operands: list[Value], abstract: Abstract, function: FuncGraph) -> Node:
        return self._own(Node(op_type=op_type, operands=operands, abstract=abstract), function)

    def _value(self, value: Value, function: FuncGraph) -> Value:
        if isinstance(value, Node) and id(value) not in self._new and id(value) not in self._placed:
            # a bundle, which is not a part of the program
            self._take_operands(value, function)
            self._kept.append(value)
            if value.op_type == "MakeTuple" and len(value.operands) == 1 and function.kind != "root":
                self._new[id(value)] = value.operands[0]
                function.gives_formal = self.form.formals.get(id(value), {}).get(0) in function.loops
            else:
                self._own(value, function)
        return self._new.get(id(value), value)

    def _take_operands(self, node: Node, function: FuncGraph) -> None:
        """Replace the operands of a node."""
        known = node.text.formals if node.text is not None else {}
        places = {at: known[v] for at, v in enumerate(node.operands) if isinstance(v, Node) and v in known}
        if places:
            self.form.formals[id(node)] = places
        node.operands = [self._value(operand, function) for operand in node.operands]

    def _plain(self, node: Node, function: FuncGraph) -> None:
        source = node.operands[0] if node.operands else None
        if id(node) in self._given:
            self._kept.append(node)
            self._new[id(node)] = self._value(self._given[id(node)], function)
            return
        if node.op_type == "TupleGetItem" and isinstance(source, Node) and source.op_type in CONTROL:
            self._part(node, source, function)
            return
        self._take_operands(node, function)
        self._own(node, function)

    def _part(self, node: Node, source: Node, function: FuncGraph) -> None:
        """Replace an item of a control node's result; for a loop, by a parameter of its header."""
        place = node.operands[1]
        assert isinstance(place, Constant)
        self._kept.append(node)
        if id(source) in self._closing and place.value >= self._results(source):
            (given,) = (value for value in _given(source, place.value) if not isinstance(value, Constant))
            self._new[id(node)] = self._new.get(id(given), given)  # its gradient is a closure in this function
        elif source.op_type == "While":
            self._new[id(node)] = self._new[id(source.blocks[1].parameters[place.value])]
        elif self._results(source) == 1 and id(source) not in self._unwinding:
            self._new[id(node)] = self._new[id(source)]
        else:
            node.operands = [self._new[id(source)], place]
            self._own(node, function)

    def _call(self, callee: Value, values: list[Value], abstract: Abstract, function: FuncGraph) -> Node:
        return self._made("Call", [callee, *values], abstract, function)

    # -- control

    def _shared(self, node: Node, function: FuncGraph) -> None:
        """Create a call of a function that has other calls."""
        (block,) = node.blocks
        assert block.output is not None
        assert isinstance(node.abstract, TupleType)
        is_rule = is_rule_call(node)
        abstract = node.abstract.items[0] if len(node.abstract.items) == 1 and not is_rule else node.abstract
        called = self._functions.get(id(block))
        if called is None:
            kind = RULE if is_rule else "function"
            called = self._functions[id(block)] = self._new_function(kind, block.name, block.output)
            called.parameters = list(block.parameters)
            if is_rule:
                called.is_tied = False
                self._fill_gradient(called, block, node.abstract)
            else:
                self.fill(called, block.trail, block.output)
        arguments = [self._value(operand, function) for operand in node.operands]
        self._kept.append(node)
        self._new[id(node)] = self._call(as_constant(called), arguments, abstract, function)

    def _branch(self, node: Node, function: FuncGraph, rest: Sequence[Node]) -> None:
        if id(node) in self._backwards:
            self._backward(node, function)
            return
        if self._is_closing(node):
            self._differentiated(node, function)
            return
        condition = self._value(node.operands[0], function)
        waiting = self._waiting.pop(id(node), None)
        for block in node.blocks:
            for own, value in zip(block.parameters, node.operands[2:], strict=False):
                self._new[id(own)] = self._value(value, function)
        sides: list[FuncGraph] = []
        for at, (kind, block) in enumerate(zip(("true", "false"), node.blocks, strict=True)):
            assert block.output is not None
            label = LABELS[kind] + function.label
            closure = None if waiting is not None else self._closure(node, at, kind, label, rest)
            into = waiting[at] if waiting is not None else None
            origins = control_of(node).origins if waiting is None and closure is None else ()
            name = (origins[at].name, str(block.output.abstract)) if origins else None
            if name is not None and name in self._sides:
                self._kept.append(node)
                sides.append(self._sides[name])
                continue
            side = self.function(kind, label, block.trail, block.output, into=into, closure=closure, of=node)
            sides.append(side)
            sides[-1].scope = node.scope
            # sides of a gradient's branch are created after the tokens
            sides[-1].is_tied = waiting is not None or not is_gradient(node)
            if name is not None:
                self._sides[name] = sides[-1]
        assert isinstance(node.abstract, TupleType)
        abstract = node.abstract.items[0] if len(node.abstract.items) == 1 else node.abstract
        if waiting is not None:  # call the gradient that the branch has returned with its output
            forward = self._value(node.operands[1], function)
            assert isinstance(forward, Node)
            call = self._call(forward, [], abstract, function)
            self.form.gradients[id(call)] = forward, waiting
        else:
            switch = self._made("Switch", [condition, *map(as_constant, sides)], FunctionType(), function)
            call = self._call(switch, [], abstract, function)
        if node.control is not None and node.control.joins:
            self.form.joined.add(id(call))
        self._kept.append(node)
        self._new[id(node)] = call

    def _is_closing(self, node: Node) -> bool:
        """Whether a branch returns its gradient as a closure.

        In loops values are saved round by round instead; if a gradient is differentiated again, the branch returns the
        values that its gradient uses. [fitted]
        """
        backward = control_of(node).backward
        if self._loops or self._is_twice or not control_of(node).is_differentiated:
            return False
        return backward is None or id(backward) in self._present

    def _differentiated(self, node: Node, function: FuncGraph) -> None:
        """Create a branch in a function that is differentiated: each side returns its output and its gradient function.

        [source dfunctor.cc: MapMorphism, K of a function gives a tuple; observed 2.10]
        """
        condition = self._value(node.operands[0], function)
        count = self._results(node)
        assert isinstance(node.abstract, TupleType)
        items = node.abstract.items[:count]
        abstract: Abstract = items[0] if count == 1 else TupleType(items=items)
        self._closing.add(id(node))
        backward = control_of(node).backward
        sides: list[FuncGraph] = []
        for kind, block in zip(("true", "false"), node.blocks, strict=True):
            assert isinstance(block.output, Node)
            label = LABELS[kind] + function.label
            bundle = replace(block.output, operands=block.output.operands[:count], abstract=TupleType(items=items))
            self._kept.append(bundle)
            side = self.function(kind, label, block.trail, bundle, of=node)
            side.scope, side.is_differentiated = node.scope, True
            side.frame = text_of(node).frame
            if backward is not None:
                side.gradient = self._new_function(kind, label, node)
                side.gradient.forward, side.gradient.is_tied = side, False
            sides.append(side)
        switch = self._made("Switch", [condition, *map(as_constant, sides)], FunctionType(), function)
        call = self._call(switch, [], abstract, function)
        if node.control is not None and node.control.joins:
            self.form.joined.add(id(call))
        if backward is not None:
            self._backwards[id(backward)] = call, [side.gradient for side in sides if side.gradient is not None]
        self._kept.append(node)
        self._new[id(node)] = call

    def _backward(self, node: Node, function: FuncGraph) -> None:
        """Create the gradient of a branch: a call of the returned closure, with the gradients of the outputs."""
        forward, sides = self._backwards[id(node)]
        count = len(node.blocks[0].parameters)
        arguments = [self._value(value, function) for value in node.operands[2 : 2 + count]]
        targets = [self._value(value, function) for value in node.operands[2 + count :]]
        for side, block in zip(sides, node.blocks, strict=True):
            assert isinstance(block.output, Node)
            side.parameters = list(block.parameters)
            self._fill_gradient(side, block, node.abstract)
        call = self._call(forward, arguments, node.abstract, function)
        self.form.backwards[id(call)] = Backward(forward=forward, functions=sides, targets=targets)
        self._kept.append(node)
        self._new[id(node)] = call

    def _fill_gradient(self, function: FuncGraph, block: Graph, abstract: Abstract) -> None:
        """Fill a gradient, which always returns a tuple; a further analysis folds it if all of its items are constants.

        [observed 2.10: h_grad_g; r1_017, r88_057 with a further analysis]
        """
        assert isinstance(block.output, Node)
        function.result.abstract = abstract
        self.fill(function, block.trail, block.output)
        values = [self._value(value, function) for value in block.output.operands]
        if all(isinstance(value, Constant) for value in values) and self.form.is_analysed_again:
            known = tuple(value.value for value in values if isinstance(value, Constant))
            function.output = Constant(value=known, abstract=abstract)
        elif len(values) == 1:
            function.output = self._made("MakeTuple", values, abstract, function)

    def _results(self, node: Node) -> int:
        """Return the number of a control node's own outputs; -1 for a gradient, which always returns a tuple."""
        assert isinstance(node.abstract, TupleType)
        if id(node) in self._backwards or is_rule_call(node):
            return -1
        own = node.blocks[0].results if id(node) in self._closing or self._is_closing(node) else None
        return own or len(node.abstract.items)

    def _closure(self, node: Node, at: int, kind: str, label: str, rest: Sequence[Node]) -> _Closure | None:
        """Return the gradient of one side of a branch, and the values that the side passes to it."""
        backward = control_of(node).backward
        if backward is None or all(later is not backward for later in rest):
            return None
        output = backward.blocks[at].output
        assert output is not None
        gradient = self._new_function(kind, label, output)
        self._waiting.setdefault(id(backward), []).append(gradient)
        return _Closure(gradient=gradient, taken=given_to_gradient(node.blocks[at]))

    def _loop(
        self,
        node: Node,
        function: FuncGraph,
        rest: Sequence[Node],
        output: Value,
        end: _End | None,
        closure: _Closure | None,
        steps: Sequence[Step] = (),
    ) -> Node:
        """Create the functions of a loop, including that of the code after it; return the call of the header.

        If they return gradients, `steps` are those of the loop's round, of the code after it and of the header.
        """
        head, turn = node.blocks
        assert head.output is not None
        assert turn.output is not None
        ends = list(ends_of(turn))
        order = by_first_use(head, turn)
        if control_of(node).jumps:
            changed = {
                at
                for how, bundle in ends
                if how != "break"
                for at, value in enumerate(bundle.operands)
                if value is not turn.parameters[at]
            }
            order = [at for at in order if at in changed]
        starts = [self._value(node.operands[at], function) for at in order]
        label = function.label
        header = self._headers[id(node)] = self._new_function("header", LABELS["header"] + label, output, end)
        self.form.loops[id(header)] = node
        header.loops = control_of(node).loops
        self._kept.append(node)
        for own, other in zip(head.parameters, turn.parameters, strict=True):
            shown = own.debug_name or f"ф{own.name}"
            header.parameters.append(Parameter(name=own.name, abstract=own.abstract, debug_name=shown))
            self._new[id(own)] = self._new[id(other)] = header.parameters[-1]
        for at in sorted(set(range(len(node.operands))) - set(order)):  # not changed by any round
            start = self._value(node.operands[at], function)
            self._new[id(head.parameters[at])] = self._new[id(turn.parameters[at])] = start
        if steps:
            self._hand_out(header, steps[0].targets, steps[2:])
            header.scope = node.scope
        else:
            self._loops += 1
        for at, each in enumerate(head.trail):
            if each.op_type == "If":
                self._branch(each, header, head.trail[at + 1 :])
            else:
                self._plain(each, header)
        condition = self._value(head.output, header)
        leave = None
        if any(how == "break" for how, _ in ends):
            bundles = [bundle for how, bundle in ends if how == "break"]
            leave = self._leaving(node, bundles, rest, output, end, label, steps[1:2])
        back = _End(header=header, order=order, leave=leave, hands_out=bool(steps))
        again = self.function(
            "body", LABELS["body"] + label, turn.trail, turn.output, end=back, steps=steps[:1], of=node
        )
        again.scope = node.scope if steps else again.scope
        self._loops -= 0 if steps else 1
        if leave is not None and leave.end is not None:
            values = [self._new[id(turn.parameters[at])] for at in leave.places]
            after = self._new_function("after", LABELS["after"] + label, output, end)
            if steps:
                self._hand_out(after, steps[0].targets)
            after.output = self._call(as_constant(leave.end), values, leave.end.result.abstract, after)
        else:
            after = self.function(
                "after", LABELS["after"] + label, rest, output, end=end, closure=closure, steps=steps[1:2], of=node
            )
        after.scope = node.scope if steps else after.scope
        sides: list[Value] = [as_constant(again), as_constant(after)]
        switch = self._made("Switch", [condition, *sides], FunctionType(), header)
        header.output = self._call(switch, [], after.result.abstract, header)
        header.parameters = [header.parameters[at] for at in order]
        return self._call(as_constant(header), starts, after.result.abstract, function)

    def _leaving(
        self,
        node: Node,
        bundles: Sequence[Node],
        rest: Sequence[Node],
        output: Value,
        end: _End | None,
        label: str,
        steps: Sequence[Step],
    ) -> _Leave:
        """Return how a loop is left by ``break``, with its variables in the bundles."""
        turn = node.blocks[1]
        parts = {id(part): place_of(part) for part in rest if is_part(part, node)}
        places = [
            at
            for at in dict.fromkeys(parts.values())
            if any(bundle.operands[at] is not turn.parameters[at] for bundle in bundles)
        ]
        recurs = end is not None and not is_trivial(rest, output)  # recursive functions are not inlined
        if not recurs and not any(each.blocks for each in rest):  # inlined at each ``break``
            leave = _Leave(places=places, after=end)
            for _ in bundles:
                known: dict[int, Value] = {}
                copy = copied(Graph(trail=list(rest), output=output), known)
                assert copy.output is not None
                taken = {id(known[part]): at for part, at in parts.items()}
                step = replace(steps[0], graph=copied(steps[0].graph, known)) if steps else None
                leave.copies.append((copy.trail, copy.output, taken, step))
            return leave
        function = self._new_function("end", LABELS["end"] + label, output, end)
        if steps:
            self._hand_out(function, steps[0].given, steps)
        for at in places:
            own = turn.parameters[at]
            formal = Parameter(name=own.name, abstract=own.abstract, debug_name=own.debug_name or f"ф{own.name}")
            function.parameters.append(formal)
            for part, place in parts.items():
                if place == at:
                    self._given[part] = formal
        for part, place in parts.items():
            if place not in places:
                self._given[part] = turn.parameters[place]
        self.fill(function, rest, output, end=end, step=steps[0] if steps else None)
        return _Leave(places=places, end=function)

    def _handed_by(self, node: Node) -> Node | None:
        """Return the gradient of a loop that is returned as a closure; None if there is none."""
        unwinds = control_of(node).unwinds
        handed = unwinds and control_of(unwinds[0]).steps and id(unwinds[0]) in self._present
        return unwinds[0] if handed else None

    def _differentiated_loop(
        self, node: Node, unwind: Node, function: FuncGraph, rest: Sequence[Node], output: Value | None
    ) -> Node:
        """Create the functions of a loop in a function that is differentiated, and return their call."""
        steps = control_of(unwind).steps
        seeds, results = _counts(unwind)
        leaves = unwind.operands[1 + seeds : len(unwind.operands) - results]
        if output is None and len(leaves) == 1:
            output = leaves[0]
        elif output is None:
            items = tuple(leaf.abstract for leaf in leaves)
            output = Node(op_type="MakeTuple", operands=list(leaves), abstract=TupleType(items=items))
        self._handing.append([])
        call = self._loop(node, function, rest, output, None, None, steps)
        functions = self._handing.pop()
        for one in functions:
            one.function.frame = text_of(node).frame
        loop = self._unwinding[id(unwind)] = _Loop(node=node, first=call, functions=functions)
        inside = {id(one) for one in rest}
        for at, leaf in enumerate(leaves):
            if id(leaf) in inside or id(leaf) in self._new:
                loop.outputs[id(leaf)] = self._new.get(id(leaf), leaf)
                self._new[id(leaf)] = call if len(leaves) == 1 else self._element(call, at, leaf.abstract, function)
        return call

    def _backward_loop(self, unwind: Node, function: FuncGraph) -> None:
        """Create the gradient of a loop: a call of the closure that it has returned."""
        loop = self._unwinding[id(unwind)]
        seeds, _ = _counts(unwind)
        kinds = [parameter.abstract for parameter in control_of(unwind).steps[1].graph.parameters]
        own = {id(one.function) for one in loop.functions}
        outside = {key: self._new[key] for key in loop.outputs}
        self._new |= loop.outputs
        for one in loop.functions:
            self._fill_handed(one, kinds, own)
        self._new |= outside
        given = control_of(unwind).steps[0].targets
        values = [self._value(value, function) for value in unwind.operands[1 : 1 + seeds]]
        self._new[id(unwind)] = self._backward_call(loop.first, values, given, function)
        self._kept.append(unwind)

    def _fill_handed(self, one: _HandsOut, kinds: Sequence[Abstract], own: set[int]) -> None:
        """Fill the gradient of a function of a loop: it calls the gradient of the call at the function's end."""
        gradient, tail = one.function.gradient, one.function.output
        assert gradient is not None
        gradient.parameters = [Parameter(name="", abstract=kind) for kind in kinds]  # type: ignore[arg-type]
        values: list[Value] = list(gradient.parameters)
        if isinstance(tail, Node) and tail.op_type == "Call" and all(id(f) in own for f in self.form.called_by(tail)):
            given = one.steps[-1].given if one.steps else one.given
            call = self._backward_call(tail, values, given, gradient)
            values = [self._element(call, at, _type_of(value), gradient) for at, value in enumerate(given)]
        for step in reversed(one.steps):
            self._new |= {id(parameter): value for parameter, value in zip(step.graph.parameters, values, strict=True)}
            bundle = step.graph.output
            assert isinstance(bundle, Node)
            if step is one.steps[0]:
                self._fill_gradient(gradient, step.graph, bundle.abstract)
                return
            self.fill(gradient, step.graph.trail, bundle)
            values = [self._value(value, gradient) for value in bundle.operands]
        gradient.result.abstract = TupleType(items=tuple(value.abstract for value in values))
        gradient.output = self._made("MakeTuple", values, gradient.result.abstract, gradient)

    def _backward_call(self, forward: Node, values: list[Value], given: Sequence[Value], function: FuncGraph) -> Node:
        """Create the call of a gradient that another call has returned."""
        call = self._call(forward, values, TupleType(items=tuple(map(_type_of, given))), function)
        gradients = [called.gradient for called in self.form.called_by(forward) if called.gradient is not None]
        targets = [self._new.get(id(value), value) for value in given]
        self.form.backwards[id(call)] = Backward(forward=forward, functions=gradients, targets=targets)
        return call

    def _element(self, call: Node, at: int, abstract: Abstract, function: FuncGraph) -> Node:
        place = Constant(value=at, abstract=ScalarType(dtype=dtype("int64"), value=at))
        return self._made("TupleGetItem", [call, place], abstract, function)

    def _unwind(self, node: Node, function: FuncGraph) -> None:
        """Create the gradient of a loop: a function called with the initial values. [fitted: the vendor's is a loop]"""
        (turn,) = node.blocks
        assert turn.output is not None
        starts = [self._value(operand, function) for operand in node.operands[1:]]
        body = self.function("body", LABELS["body"] + function.label, turn.trail, turn.output)
        body.parameters = turn.parameters
        assert isinstance(node.abstract, TupleType)
        abstract = node.abstract.items[0] if len(node.abstract.items) == 1 else node.abstract
        call = self._call(as_constant(body), starts, abstract, function)
        self.form.unwinds[id(call)] = node
        self._kept.append(node)
        self._new[id(node)] = call


def _counts(unwind: Node) -> tuple[int, int]:
    """Return the number of incoming gradients of a loop's gradient, and the number of gradients that it returns."""
    assert isinstance(unwind.abstract, TupleType)
    return len(control_of(unwind).steps[1].graph.parameters), len(unwind.abstract.items)


def _type_of(value: Value) -> Abstract:
    return plain(value.abstract)


def _given(node: Node, place: int) -> list[Value]:
    """Return the outputs of a branch's sides at an index."""
    return [block.output.operands[place] for block in node.blocks if isinstance(block.output, Node)]


def _is_second(node: Node) -> bool:
    """Whether a node is one of several gradients of a branch, or a gradient that is differentiated itself."""
    if node.op_type != "If" or len(node.operands) == 1:
        return False
    forward = node.operands[1]
    assert isinstance(forward, Node)
    return control_of(node).backward is not None or control_of(forward).backward is not node
