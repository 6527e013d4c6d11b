"""Cuts a network at control flow into kernel graphs, and creates the steps that connect them.

Each function of the network is partitioned at its calls. Each segment becomes a kernel graph, in the order of the
functions; the steps correspond to the calls. [spec vendor 2.5]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dumpsim.core.abstract import Abstract, FunctionType, MonadType, ScalarType, TensorType, TupleType, tensors_of
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of
from dumpsim.graph.mindspore.funcform import FuncForm
from dumpsim.graph.mindspore.funcgraph import FuncGraph, function_of, nodes_of
from dumpsim.graph.mindspore.partition import Segment, function_order, segments
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.program import Branch, Keep, Loop, Move, Repeat, Restore, Run, Step
from dumpsim.graph.sequence import is_kernel, listed, parameter_order

__all__ = ["CALL_RESULT", "Pieces", "cut"]

CALL_RESULT = "_"  # name of a parameter that passes the result of a branch or loop to the segment after it

# printed by the vendor for a token of another segment [observed 2.10: control_flow, graph 1]
_FOREIGN_TOKEN = Constant(
    value=np.array(2, np.int32), abstract=TensorType(dtype=dtype("int32"), shape=(), constant=True)
)
# printed for a function [observed 2.10: h_gradwhile, graph 8]
_FUNCTION = Constant(value=1, abstract=ScalarType(dtype=dtype("int32"), value=1))
_TOKEN = Constant(value="U", abstract=MonadType(kind="U"))
_TRUTH = TensorType(dtype=dtype("bool"), shape=(), constant=True)


@dataclass(eq=False, slots=True, kw_only=True)
class Pieces:
    """A network that was cut.

    Attributes
    ----------
    graphs : list of Graph
        Segments with their parameters in order; `output` is the MakeTuple that the Return takes.
    steps : tuple of Step
    outputs : tuple of int or Constant
    slots : int
    stacks : int
        Number of stacks of values that loops save for their gradients, see `program.Keep`.
    roots : set of int
        Indexes of the segments of the network's own function.
    """

    graphs: list[Graph] = field(default_factory=list)
    steps: tuple[Step, ...] = ()
    outputs: tuple[int | Constant, ...] = ()
    slots: int = 0
    stacks: int = 0
    roots: set[int] = field(default_factory=set)


def cut(form: FuncForm) -> Pieces:
    """Cut a network, and turn its calls into steps."""
    pieces = Pieces()
    cutter = _Cutter(pieces, form)
    for parameter in form.root.parameters:
        if not parameter.is_weight:
            cutter.give(parameter, [cutter.slot()])
    pieces.steps = tuple(cutter.function(form.root, None))
    pieces.outputs = tuple(cutter.sources(form.root.output))
    pieces.slots = cutter.count
    return pieces


@dataclass(eq=False, slots=True, kw_only=True)
class _Plan:
    """The cuts of a function.

    Attributes
    ----------
    segments : list of Segment
    given : set of int
        Ids of the nodes that are used outside of their segment.
    """

    segments: list[Segment]
    given: set[int] = field(default_factory=set)


@dataclass(eq=False, slots=True, kw_only=True)
class _OpenLoop:
    """A loop whose body is being cut; `again`: slot that is true if another round follows, for loops with ``break``."""

    header: FuncGraph
    unwinds: list[Node]
    again: int | None = None


class _Cutter:
    def __init__(self, pieces: Pieces, form: FuncForm) -> None:
        self.pieces = pieces
        self.count = 0
        self.places: dict[int, list[int]] = {}  # slots of a value's tensors
        self.arguments = {id(parameter) for parameter in form.root.parameters}
        self.met: set[int] = set()  # arguments that a segment of the network's own function has taken
        self._form = form
        self._kept: list[Value] = []  # keeps the values of `places` alive
        self._stacks: dict[int, int] = {}  # stack of the number of rounds, by gradient of a loop
        self._plans: dict[int, _Plan] = {}  # by function
        self._tails: dict[int, Node | None] = {}  # the call that returns the result of a function
        self._given_calls: set[int] = set()  # ids of calls whose results are computed already
        self._rounds: dict[int, int] = {}  # stack of the number of rounds, by header that returns its gradient
        self._round_slots: list[list[int]] = []  # slots that gradients of the current rounds need, by open loop
        self._kept_rounds: dict[int, tuple[int, ...]] = {}  # these slots for complete loops, by header
        self._passed: dict[int, list[int]] = {}  # slots of a header's gradient, by id, during the backward rounds
        self._leaving: dict[int, int] = {}  # slot of a loop's condition, by header of a loop with ``break``
        self._kept_for: dict[int, list[Value]] = {}  # values that the gradient of a function takes from it
        self._graphs: dict[int, int] = {}  # number of the kernel graph of a segment
        self._built: dict[int, Run | None] = {}  # by segment
        self._open: list[_OpenLoop] = []
        self._conditions: dict[int, int] = {}  # slot of the condition by which a call chooses its function
        for function in function_order(form.root):
            plan = self._plans[id(function)] = _plan(function)
            self._tails[id(function)] = _tail(function)  # before its nodes lose their operands
            self._kept_for[id(function)] = _handed_out(function)
            for segment in plan.segments:
                if segment.cut is None:
                    self._graphs[id(segment)] = len(pieces.graphs)
                    pieces.graphs.append(_nothing())
                    if function is form.root:
                        pieces.roots.add(len(pieces.graphs) - 1)

    def slot(self) -> int:
        self.count += 1
        return self.count - 1

    def give(self, value: Value, slots: list[int]) -> list[int]:
        self.places[id(value)] = slots
        self._kept.append(value)
        return slots

    def slots_of(self, value: Value) -> list[int]:
        """Return the slots of a value, assigned on first use."""
        found = self.places.get(id(value))
        return self.give(value, [self.slot() for _ in tensors_of(value.abstract)]) if found is None else found

    def sources(self, value: Value) -> list[int | Constant]:
        """Return the slots or constants of a value's tensors."""
        if id(value) in self.places:
            return list(self.places[id(value)])
        if isinstance(value.abstract, FunctionType):
            return []
        if isinstance(value, Constant):
            if isinstance(value.abstract, TupleType):
                items = zip(value.value, value.abstract.items, strict=True)
                return [s for v, a in items for s in self.sources(Constant(value=v, abstract=a))]
            return [value]
        if isinstance(value, Node) and value.op_type in ("MakeTuple", "Depend"):
            members = value.operands if value.op_type == "MakeTuple" else value.operands[:1]
            return [source for member in members for source in self.sources(member)]
        if isinstance(value, Node) and value.op_type == "TupleGetItem":
            source, place = value.operands
            assert isinstance(source.abstract, TupleType)
            assert isinstance(place, Constant)
            sizes = [len(tensors_of(item)) for item in source.abstract.items]
            start = sum(sizes[: place.value])
            return self.sources(source)[start : start + sizes[place.value]]
        raise AssertionError(f"{getattr(value, 'op_type', value.abstract)} has no place")

    # -- functions

    def function(self, function: FuncGraph, targets: list[int] | None) -> list[Step]:
        """Return the steps of a function, which store its result in the slots `targets`.

        Inside of a loop the last action of a function may be to call the header again, after which nothing follows.
        """
        plan = self._plans[id(function)]
        tail = self._tails[id(function)] if self._open else None
        if tail is not None and targets is not None:
            self.give(tail, targets)
        steps: list[Step] = []
        called = False
        for segment in plan.segments:
            if segment.cut is None:
                run = self._run(segment, plan)
                steps += [run] if run is not None and not called else []
            elif segment.cut.op_type == "Call":
                steps += self._call(segment.cut)
                called = called or segment.cut is tail
        if tail is None and targets is not None:
            given = self.sources(function.output)  # numbers have no slots
            steps += self._moves(targets, [s for s in given if isinstance(s, int) or tensors_of(s.abstract)])
        return [*steps, *self._handed_out(function)]

    def _handed_out(self, function: FuncGraph) -> list[Step]:
        """Return the steps that pass a function's values to its gradient."""
        if function.gradient is None:
            return []
        steps = self._bound(function.gradient, self._kept_for[id(function)])
        if self._round_slots:
            self._round_slots[-1] += self._bound_slots(function.gradient, len(self._kept_for[id(function)]))
        return steps

    def _bound_slots(self, function: FuncGraph, count: int) -> list[int]:
        """Return the slots of the first parameters of a function."""
        return [slot for p in function.parameters[:count] if not p.is_weight for slot in self.places.get(id(p), ())]

    # -- gradients of loops: that of the call at the end of a function comes first

    def _back(self, function: FuncGraph, targets: list[int], arguments: Sequence[Value]) -> list[Step]:
        """Return the steps of the gradient of a loop's function; `arguments` are the gradients of the outputs."""
        gradient, tail = function.gradient, self._tails[id(function)]
        assert gradient is not None
        steps = self._bound(gradient, arguments, self._held(gradient))
        inner = next((n for n in gradient.trail if self._is_back(n, tail)), None)
        if inner is not None:
            steps += self._back_of(inner, arguments)
        return [*steps, *self.function(gradient, targets)]

    def _is_back(self, node: Node, tail: Node | None) -> bool:
        backward = self._form.backwards.get(id(node))
        return backward is not None and backward.forward is tail

    def _back_of(self, call: Node, arguments: Sequence[Value]) -> list[Step]:
        """Return the steps of the gradient of the call at the end of a function."""
        self._given_calls.add(id(call))
        forward = self._form.backwards[id(call)].forward
        called = self._form.called_by(forward)
        if called[0].kind == "header" and id(called[0]) in self._passed:  # another round, which has run before
            self.give(call, self._passed[id(called[0])])
            return []
        targets = self.slots_of(call)
        if called[0].kind == "header":
            return self._rounds_back(called[0], targets, arguments)
        sides = [tuple(self._back(function, targets, arguments)) for function in called]
        if len(sides) == 1:
            return list(sides[0])
        return [Branch(condition=self._conditions[id(forward)], then=sides[0], otherwise=sides[1])]

    def _rounds_back(self, header: FuncGraph, targets: list[int], arguments: Sequence[Value]) -> list[Step]:
        """Return the steps of a loop's gradient: of the code after the loop, then of its rounds in reverse order."""
        assert header.gradient is not None
        tail = self._tails[id(header)]
        (inner,) = (node for node in header.gradient.trail if self._is_back(node, tail))
        body, after = self._form.called_by(self._form.backwards[id(inner)].forward)
        stack = self._rounds[id(header)]
        passed = [self.slot() for _ in targets]
        self.give(inner, passed)
        self._given_calls.add(id(inner))
        last = self._back(after, passed, arguments)
        self._passed[id(header)] = targets
        round_ = self._back(body, passed, arguments)
        del self._passed[id(header)]
        head = self.function(header.gradient, targets)
        restore = Restore(stack=stack + 1, targets=self._kept_rounds[id(header)])
        if id(header) not in self._leaving:
            return [*last, *head, Repeat(counter=stack, body=(restore, *round_, *head))]
        choice = Branch(condition=self._leaving[id(header)], then=tuple(round_), otherwise=tuple(last))
        return [Repeat(counter=stack, body=(restore, choice, *head))]

    def _call(self, call: Node) -> list[Step]:
        if id(call) in self._form.unwinds:
            return self._unwind(call, self._form.unwinds[id(call)])
        arguments = [value for value in call.operands[1:] if not isinstance(value.abstract, MonadType)]
        if id(call) in self._form.gradients:
            forward, functions = self._form.gradients[id(call)]
            sides = []
            for function in functions:
                count = len(function.parameters)
                sides.append((function, arguments[:count]))
                del arguments[:count]
            return self._choice(self._conditions[id(forward)], sides, call)
        if id(call) in self._given_calls:
            return []
        if id(call) in self._form.backwards:
            backward = self._form.backwards[id(call)]
            if backward.functions[0].kind == "header":
                return self._rounds_back(self._form.called_by(backward.forward)[0], self.slots_of(call), arguments)
            both = [(function, arguments) for function in backward.functions]
            return self._choice(self._conditions[id(backward.forward)], both, call)
        callee = call.operands[0]
        called = function_of(callee)
        if called is None:
            assert isinstance(callee, Node)
            assert callee.op_type == "Switch"
            steps: list[Step] = []
            self._conditions[id(call)] = condition = self._slot_of(callee.operands[0], steps)
            if self._round_slots and any(f.is_differentiated for f in self._form.called_by(call)):
                self._round_slots[-1].append(condition)
            return [*steps, *self._choice(condition, [_chosen(side) for side in callee.operands[1:]], call)]
        for loop in self._open:
            if loop.header is called:
                return self._again(loop, arguments)
        if id(called) in self._form.loops:
            return self._loop(called, arguments, call)
        return [*self._bound(called, arguments), *self.function(called, self.slots_of(call))]

    def _choice(self, condition: int, sides: "list[tuple[FuncGraph, list[Value]]]", call: Node) -> list[Step]:
        targets = self.slots_of(call)
        one, other = ([*self._bound(f, arguments, self._held(f)), *self.function(f, targets)] for f, arguments in sides)
        return [Branch(condition=condition, then=tuple(one), otherwise=tuple(other))]

    def _held(self, function: FuncGraph) -> int:
        """Return the number of a gradient's parameters that its forward function has bound."""
        return 0 if function.forward is None else len(self._kept_for[id(function.forward)])

    def _bound(self, function: FuncGraph, arguments: Sequence[Value], skipped: int = 0) -> list[Step]:
        """Return the steps that set the parameters of a function; weights and arguments of the network need none."""
        targets: list[int] = []
        sources: list[int | Constant] = []
        formals = function.parameters[skipped:]
        for parameter, value in zip(formals, arguments, strict=False):
            if parameter is not value and not parameter.is_weight:
                targets += self.slots_of(parameter)
                sources += self.sources(value)
        return self._moves(targets, sources)

    def _slot_of(self, value: Value, steps: list[Step]) -> int:
        (source,) = self.sources(value)
        if isinstance(source, int):
            return source
        target = self.slot()
        steps.append(Move(target=target, source=source))
        return target

    # -- loops

    def _loop(self, header: FuncGraph, arguments: Sequence[Value], call: Node) -> list[Step]:
        unwinds = control_of(self._form.loops[id(header)]).unwinds if header.gradient is None else []
        for unwind in unwinds:
            self._stacks[id(unwind)] = self.pieces.stacks  # of the number of rounds; the next stack is for the values
            self.pieces.stacks += 2
        targets = self.slots_of(call)
        tail = self._tails[id(header)]
        assert tail is not None
        self.give(tail, targets)
        switch, sides = _switch_of(tail)
        (body, given), (after, left) = sides
        if header.gradient is not None:
            self._rounds[id(header)] = self.pieces.stacks
            self.pieces.stacks += 2
            self._round_slots.append([])
        state = _OpenLoop(header=header, unwinds=unwinds)
        if not self._goes_back(body, (header,)):
            state.again = self.slot()
        start = self._bound(header, arguments)
        self._open.append(state)
        head: list[Step] = []
        called = False
        for segment in self._plans[id(header)].segments:
            if segment.cut is None:
                run = self._run(segment, self._plans[id(header)])
                head += [run] if run is not None and not called else []
            elif segment.cut is tail:
                called = True
            elif segment.cut.op_type == "Call":
                head += self._call(segment.cut)
        condition = self._slot_of(switch.operands[0], head)
        head += self._handed_out(header)
        turn = [*self._bound(body, given), *self.function(body, targets)]
        self._open.pop()
        keep: list[Step] = []
        counted = tuple(self._stacks[id(unwind)] for unwind in unwinds)
        if header.gradient is not None:
            slots = self._round_slots.pop()
            if state.again is not None:
                slots.append(condition)
                self._leaving[id(header)] = condition
            counted += (self._rounds[id(header)],)
            self._kept_rounds[id(header)] = tuple(slots)
            keep.append(Keep(stack=self._rounds[id(header)] + 1, sources=tuple(slots)))
        rest = [*self._bound(after, left), *self.function(after, targets)]
        if state.again is None:
            body_steps = (*turn, *keep)
            return [*start, Loop(head=tuple(head), condition=condition, body=body_steps, counted=counted), *rest]
        choice = Branch(condition=condition, then=tuple(turn), otherwise=tuple(rest))
        rounds = (Move(target=state.again, source=_truth(value=False)), *head, choice, *keep)
        first = Move(target=state.again, source=_truth(value=True))
        return [*start, first, Loop(head=(), condition=state.again, body=rounds, counted=counted)]

    def _goes_back(self, function: FuncGraph, known: tuple[FuncGraph, ...]) -> bool:
        """Whether the last action of a function is always a call of one of the `known` functions."""
        tail = self._tails[id(function)]
        if tail is None or id(tail) in self._form.gradients:
            return False
        called = self._form.called_by(tail)
        return all(any(f is one for one in known) or self._goes_back(f, (*known, f)) for f in called)

    def _again(self, loop: _OpenLoop, arguments: Sequence[Value]) -> list[Step]:
        """Return the steps before another round: save values for gradients, and set the header's parameters."""
        count = len(loop.header.parameters)
        steps: list[Step] = []
        for unwind in loop.unwinds:
            kept = arguments[count:]
            variables = len(self._form.loops[id(loop.header)].operands)
            sources: list[int] = []
            for place in control_of(unwind).saved:
                sources.append(self._slot_of(kept[place - variables], steps))
            steps.append(Keep(stack=self._stacks[id(unwind)] + 1, sources=tuple(sources)))
        steps += self._bound(loop.header, arguments)
        return steps if loop.again is None else [*steps, Move(target=loop.again, source=_truth(value=True))]

    def _unwind(self, call: Node, node: Node) -> list[Step]:
        """Return the steps of a loop's gradient: its rounds in reverse order, each with its saved values."""
        function = function_of(call.operands[0])
        assert function is not None
        (turn,) = node.blocks
        starts = len(node.operands) - 1
        arguments = [value for value in call.operands[1:] if not isinstance(value.abstract, MonadType)]
        outer = len(function.parameters) - len(turn.parameters)
        slots = self.slots_of(call)
        steps = self._bound(function, arguments[:outer])
        steps += self._moves(slots, [s for value in arguments[outer:] for s in self.sources(value)])
        restored: list[int] = []
        for at, parameter in enumerate(turn.parameters):
            place = self.give(parameter, [slots[at]]) if at < starts else self.slots_of(parameter)
            restored += place if at >= starts else []
        stack = self._stacks[id(node)]
        first = Restore(stack=stack + 1, targets=tuple(restored))
        inside = [self.slot() for _ in slots]
        body = self.function(function, inside)
        return [*steps, Repeat(counter=stack, body=(first, *body, *self._moves(slots, list(inside))))]

    def _moves(self, targets: Sequence[int], sources: Sequence[int | Constant]) -> list[Step]:
        """Return parallel assignments: a source that is also a target is read first."""
        pairs = [(t, s) for t, s in zip(targets, sources, strict=True) if t != s]
        clash = {t for t, _ in pairs} & {s for _, s in pairs if isinstance(s, int)}
        first: list[Step] = []
        second: list[Step] = []
        for target, source in pairs:
            if isinstance(source, int) and source in clash:
                between = self.slot()
                first.append(Move(target=between, source=source))
                source = between
            second.append(Move(target=target, source=source))
        return [*first, *second]

    # -- segments

    def _run(self, segment: Segment, plan: _Plan) -> Run | None:
        """Build the kernel graph of a segment, and return the step that runs it."""
        if id(segment) not in self._built:
            nodes = [node for node in segment.nodes if not _is_part_of_call(node)]
            exits = [node for node in nodes if id(node) in plan.given]
            self._built[id(segment)] = self._kernel_graph(self._graphs[id(segment)], nodes, exits) if exits else None
        return self._built[id(segment)]

    def _kernel_graph(self, at: int, order: Sequence[Node], exits: Sequence[Node]) -> Run:
        inside = _Inside(self, order, is_own=at in self.pieces.roots)
        for node in order:
            node.operands = [inside.value(operand) for operand in node.operands]
            if is_kernel(node):  # an effect, whose token is not an operand of the kernel
                node.operands = [_TOKEN if operand is _FOREIGN_TOKEN else operand for operand in node.operands]
        items: list[Value] = list(exits)
        abstract = TupleType(items=tuple(value.abstract for value in items))
        wrapper = Node(op_type="MakeTuple", operands=items, abstract=abstract, text=NodeText(is_backend=True))
        graph = Graph(parameters=parameter_order(listed(wrapper)), output=wrapper)
        taken = [self.places[id(p)][0] for p in graph.parameters if not p.is_weight]
        results: list[int] = []
        for node in exits:
            results += self.slots_of(node)
        self.pieces.graphs[at] = graph
        return Run(graph=at, arguments=tuple(taken), results=tuple(results))


class _Inside:
    """Operands in a segment: values of other segments become parameters."""

    def __init__(self, cutter: _Cutter, nodes: Iterable[Node], *, is_own: bool) -> None:
        self._cutter = cutter
        self._is_own = is_own
        self._own = {id(node) for node in nodes}
        self._made: dict[int, Value] = {}

    def value(self, operand: Value) -> Value:
        """Return the value that replaces an operand."""
        if isinstance(operand, Constant) or id(operand) in self._own:
            return _FUNCTION if isinstance(operand.abstract, FunctionType) else operand
        if isinstance(operand, Parameter) and not isinstance(operand.abstract, TupleType):
            return operand if operand.is_weight else self._argument(operand)
        if isinstance(operand.abstract, MonadType):
            return _FOREIGN_TOKEN
        if isinstance(operand, Node) and operand.op_type == "Depend" and not tensors_of(operand.abstract):
            return self.value(operand.operands[0])  # a number, known in every segment
        if id(operand) not in self._made:
            self._made[id(operand)] = self._entering(operand)
        return self._made[id(operand)]

    def _argument(self, parameter: Parameter) -> Parameter:
        """Return an argument of the network, which has its own memory in the first segment only. [observed 2.10]"""
        if not self._is_own or id(parameter) not in self._cutter.arguments:
            parameter.is_formal = parameter.is_formal or id(parameter) not in self._cutter.arguments
            return parameter
        if id(parameter) not in self._made:
            known = id(parameter) in self._cutter.met
            self._cutter.met.add(id(parameter))
            made = replace(parameter, is_formal=True) if known else parameter
            if known:
                self._cutter.give(made, self._cutter.places[id(parameter)])
            self._made[id(parameter)] = made
        found = self._made[id(parameter)]
        assert isinstance(found, Parameter)
        return found

    def _entering(self, operand: Value) -> Value:
        sources = self._cutter.sources(operand)
        return self._parameters(operand, operand.abstract, sources)

    def _parameters(self, operand: Value, abstract: Abstract, sources: list[int | Constant]) -> Value:
        """Create a parameter for a tensor, or a tuple of parameters for a tuple."""
        if isinstance(abstract, TupleType):
            items = [self._parameters(operand, item, sources) for item in abstract.items]
            return Node(op_type="MakeTuple", operands=items, abstract=abstract, scope=_scope(operand))
        if isinstance(abstract, FunctionType):
            return _FUNCTION
        source = sources.pop(0)
        if isinstance(source, Constant):
            return source
        assert isinstance(abstract, TensorType), operand
        name = CALL_RESULT if _is_result(operand) else ""
        made = Parameter(name=name, abstract=replace(abstract, ref_key=None, constant=False), is_formal=True)
        self._cutter.give(made, [source])
        return made


def _plan(function: FuncGraph) -> _Plan:
    plan = _Plan(segments=segments(function))
    place = {id(node): at for at, segment in enumerate(plan.segments) for node in segment.nodes}
    for node in nodes_of(function):
        plan.given.update(id(o) for o in node.operands if place.get(id(o)) != place.get(id(node), -1))
    return plan


def _is_part_of_call(node: Node) -> bool:
    """Whether a node is an item of a call's result: segments that use it get the item directly."""
    source = node.operands[0] if node.op_type == "TupleGetItem" else None
    return isinstance(source, Node) and (source.op_type == "Call" or _is_part_of_call(source))


def _is_result(value: Value) -> bool:
    return isinstance(value, Node) and (value.op_type == "Call" or _is_part_of_call(value))


def _tail(function: FuncGraph) -> Node | None:
    """Return the call whose result is that of a function; None if there is none."""
    value = function.output
    if function.is_differentiated and isinstance(value, Node):  # it returns its gradient, too
        value = value.operands[0]
    while isinstance(value, Node) and (
        value.op_type == "Depend" or (function.is_differentiated and _is_part_of_call(value))
    ):
        value = value.operands[0]
    return value if isinstance(value, Node) and value.op_type == "Call" else None


def _handed_out(function: FuncGraph) -> list[Value]:
    """Return the values that a differentiated function passes to its gradient."""
    given = function.output.operands[1] if isinstance(function.output, Node) and function.gradient is not None else None
    return given.operands[1:] if isinstance(given, Node) else []


def _switch_of(call: Node) -> "tuple[Node, list[tuple[FuncGraph, list[Value]]]]":
    switch = call.operands[0]
    assert isinstance(switch, Node)
    return switch, [_chosen(side) for side in switch.operands[1:]]


def _chosen(side: Value) -> tuple[FuncGraph, list[Value]]:
    """Return the function of a Partial, and its arguments."""
    assert isinstance(side, Node)
    function = function_of(side.operands[0])
    assert function is not None
    return function, [value for value in side.operands[1:] if not isinstance(value.abstract, MonadType)]


def _scope(value: Value) -> str:
    return value.scope if isinstance(value, Node) else "Default"


def _truth(*, value: bool) -> Constant:
    return Constant(value=np.array(value), abstract=_TRUTH)


def _nothing() -> Graph:
    """Return an empty kernel graph, which is never run."""
    nothing = Node(op_type="MakeTuple", operands=[], abstract=TupleType(items=()), text=NodeText(is_backend=True))
    return Graph(output=nothing)
