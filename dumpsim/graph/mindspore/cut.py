"""Cutting a network at control flow: kernel graphs and the steps that connect them.

The network becomes functions, which are partitioned at their calls. Each segment becomes a kernel graph, in the order
of the functions; the steps follow the structure of the captured graph. [spec vendor 2.5]
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dumpsim.core.abstract import MonadType, TensorType, TupleType, tensors_of
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, reachable, text_of, uses
from dumpsim.graph.mindspore.funcgraph import FuncGraph
from dumpsim.graph.mindspore.functions import CONTROL, FuncForm, given_to_gradient, made_functions
from dumpsim.graph.mindspore.partition import Segment, function_order, segments
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.program import Branch, Keep, Loop, Move, Repeat, Restore, Run, Step
from dumpsim.graph.sequence import listed, parameter_order
from dumpsim.ops.opdef import OpDef

__all__ = ["CALL_RESULT", "Pieces", "cut"]

CALL_RESULT = "_"  # name of a parameter that brings the result of a branch or loop to the segment behind it

# what the vendor prints for a token that another segment made [observed 2.10: control_flow, graph 1]
_FOREIGN_TOKEN = Constant(
    value=np.array(2, np.int32), abstract=TensorType(dtype=dtype("int32"), shape=(), constant=True)
)


_TENSOR_MOVE = OpDef(
    name="TensorMove", operands=("x",), infer=lambda abstracts, attrs: abstracts[0], kernel=lambda x: x
)


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
        What loops keep for their gradients, see `program.Keep`.
    functions : int
        Number of function graphs that the vendor's front end has for the network.
    roots : set of int
        Indices of the segments of the network's own function.
    """

    graphs: list[Graph] = field(default_factory=list)
    steps: tuple[Step, ...] = ()
    outputs: tuple[int | Constant, ...] = ()
    slots: int = 0
    stacks: int = 0
    functions: int = 1
    roots: set[int] = field(default_factory=set)


class Identity:
    """A set of nodes by identity."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._ids = {id(node) for node in nodes}

    def __contains__(self, node: object) -> bool:
        return id(node) in self._ids


def cut(graph: Graph) -> Pieces:
    """Cut a network; its control nodes become steps."""
    pieces = Pieces()
    _prune(graph)
    _give_copies(graph, in_loop=False)
    cutter = _Cutter(pieces, made_functions(graph))
    for parameter in graph.parameters:
        if not parameter.is_weight:
            cutter.give(parameter, [cutter.slot()])
    assert graph.output is not None
    pieces.steps = tuple(cutter.function(graph, graph.trail, graph.output, wrapped=True))
    pieces.outputs = tuple(cutter.sources(graph.output))
    pieces.slots = cutter.count
    return pieces


def _prune(graph: Graph) -> None:
    """Leave out what the output does not need."""
    needed = reachable([graph.output, *(n for n in graph.trail if _has_effect(n))])
    graph.trail = _tokens_first([n for n in graph.trail if id(n) in needed])
    for node in graph.trail:
        for block in node.blocks:
            _prune(block)


def _tokens_first(nodes: list[Node]) -> list[Node]:
    """Put tokens that need nothing of a loop before it: what follows the loop takes them."""
    loop = next((at for at, node in enumerate(nodes) if node.op_type == "While"), None)
    if loop is None:
        return nodes
    late = {id(nodes[loop])}
    early: list[Node] = []
    kept: list[Node] = []
    for node in nodes[loop + 1 :]:
        is_token = node.op_type == "UpdateState" or (
            node.op_type == "MakeTuple" and all(isinstance(o, Node) and o.op_type == "Load" for o in node.operands)
        )
        if is_token and not any(id(operand) in late for operand in node.operands):
            early.append(node)
        else:
            kept.append(node)
            late.add(id(node))
    return [*nodes[:loop], *early, nodes[loop], *_tokens_first(kept)]


def _give_copies(graph: Graph, *, in_loop: bool) -> None:
    """Let branches give copies of weights to their gradients."""
    for node in graph.trail:
        for block in node.blocks:
            if control_of(node).backward is not None and not in_loop:
                for value in given_to_gradient(block) or ():
                    _moved(value, block)
            _give_copies(block, in_loop=in_loop or node.op_type != "If")


def _moved(value: Node, block: Graph) -> None:
    """A weight is given to a gradient as a copy, which the branch itself then uses. [observed 2.10]"""
    if value.op_type != "Load":
        return
    bundle = block.output
    while isinstance(bundle, Node) and bundle.op_type == "Depend":
        bundle = bundle.operands[0]
    assert isinstance(bundle, Node)
    move = Node(
        op_type="TensorMove",
        operands=[value],
        abstract=value.abstract,
        scope=value.scope,
        definition=_TENSOR_MOVE,
        text=NodeText(is_backend=True),
    )
    for node in (*block.trail, bundle):
        node.operands = [move if operand is value else operand for operand in node.operands]
    block.trail.insert(next(i for i, node in enumerate(block.trail) if node is value) + 1, move)


class _Cutter:
    def __init__(self, pieces: Pieces, form: FuncForm) -> None:
        self.pieces = pieces
        self.count = 0
        self.places: dict[int, list[int]] = {}  # slots of a value's tensors
        self._form = form
        self._kept: list[Value] = []  # keeps the values of `places` alive
        self._stacks: dict[int, int] = {}  # stack of the number of rounds, by gradient of a loop
        self._plan: dict[int, list[Segment]] = {}  # by function
        self._graphs: dict[int, int] = {}  # number of the kernel graph of a segment
        self._sited: set[int] = set()  # ids of the captured nodes of all segments
        pieces.functions = len(form.order)
        for function in function_order(form.root):
            plan = self._plan[id(function)] = segments(function)
            for segment in plan:
                if segment.cut is None:
                    self._graphs[id(segment)] = len(pieces.graphs)
                    self._sited.update(id(node) for node in self._captured(segment))
                    pieces.graphs.append(_nothing())
                    if function is form.root:
                        pieces.roots.add(len(pieces.graphs) - 1)

    def slot(self) -> int:
        self.count += 1
        return self.count - 1

    def give(self, value: Value, slots: list[int]) -> None:
        self.places[id(value)] = slots
        self._kept.append(value)

    def sources(self, value: Value) -> list[int | Constant]:
        """Where the tensors of a value are."""
        if id(value) in self.places:
            return list(self.places[id(value)])
        if isinstance(value, Constant):
            if isinstance(value.abstract, TupleType):
                items = zip(value.value, value.abstract.items, strict=True)
                return [s for v, a in items for s in self.sources(Constant(value=v, abstract=a))]
            return [value]
        if isinstance(value, Node) and value.op_type in ("MakeTuple", "Depend"):
            members = value.operands if value.op_type == "MakeTuple" else value.operands[:1]
            return [source for member in members for source in self.sources(member)]
        raise AssertionError(f"{value!r} has no place")

    # -- functions

    def function(self, key: Graph | Node, nodes: Sequence[Node], output: Value, *, wrapped: bool) -> list[Step]:
        """The steps of a function: that of a captured graph, or of what follows a loop, or a branch in one.

        `wrapped`: a tuple that it gives is a value of its own.
        """
        function = self._form.blocks[id(key)]
        plan = [(segment, self._captured(segment)) for segment in self._plan[id(function)]]
        controls = [node for segment, part in plan if segment.cut is not None for node in part]
        for control in controls:
            self._announce(control, nodes)
        last = next((at for at, node in enumerate(nodes) if id(node) in self._form.blocks), len(nodes))
        rest = list(nodes[last + 1 :])
        tail = self._tail_of(plan, output) if rest and function is self._form.root else None
        result = tail.operands[0] if tail is not None else output
        while isinstance(result, Node) and result.op_type == "Depend" and id(result) not in self._sited:
            result = result.operands[0]
        steps: list[Step] = []
        waiting = list(controls)
        for at, (segment, part) in enumerate(plan):
            if segment.cut is None and part:
                later = [node for other, own in plan[at + 1 :] if other.cut is None for node in own]
                later += [*(node for node in rest if node is not tail), *waiting, *([tail] if tail is not None else [])]
                given = [result, *self._tokens(segment, function)]
                run = self._run(self._graphs[id(segment)], part, later, given, controls, wrapped=wrapped)
                steps += [run] if run is not None else []
            elif segment.cut is not None and part:
                steps += self._control(part[0])
                waiting.remove(part[0])
        if last < len(nodes):
            steps += self.function(nodes[last], rest, result, wrapped=wrapped)
        return [*steps, *(self._tail(tail, plan) if tail is not None else ())]

    def _tokens(self, segment: Segment, function: FuncGraph) -> list[Node]:
        """The tokens of a segment that calls take, and writes that nothing of the segment waits for."""
        calls = [each.cut for each in self._plan[id(function)] if each.cut is not None and each.cut.op_type == "Call"]
        taken = {id(operand) for call in calls for operand in call.operands}
        tokens = [n for n in segment.nodes if n.op_type == "UpdateState" and id(n) in taken]
        used = {id(o) for node in segment.nodes if id(node) in self._form.origins for o in node.operands}
        loose = [n for n in segment.nodes if _writes(n) and id(n) not in used]
        return [self._form.origins[id(n)] for n in (*tokens, *loose) if id(n) in self._form.origins]

    def _tail_of(self, plan: "list[tuple[Segment, list[Node]]]", output: Value) -> Node | None:
        """What ties the result of a loop to the last token, where a segment after the loop does that."""
        own = plan[-2][0] if len(plan) > 1 else None
        if own is None or own.cut is not None or not isinstance(output, Node) or output.op_type != "Depend":
            return None
        if not isinstance(output.abstract, TensorType):
            return None
        if id(output) in self._sited:  # what follows the loop has effects of its own, and a tie
            output = replace(output, operands=[output, output.operands[1]], text=replace(text_of(output)))
        text_of(output).variable = ""  # the loop's result has no variable of its own
        return output

    def _tail(self, tail: Node, plan: "list[tuple[Segment, list[Node]]]") -> list[Step]:
        sources = self.sources(tail.operands[0])
        call = Node(op_type="While", operands=[], abstract=tail.operands[0].abstract)
        self.give(call, [self.slot()])
        tail.operands[0] = call
        run = self._kernel_graph(self._graphs[id(plan[-2][0])], [tail], [tail], [call])
        return [*self._moves(self.places[id(call)], sources), run]

    def _captured(self, segment: Segment) -> list[Node]:
        """The captured nodes of a segment, without parts of what a call gives, or the control node of a call."""
        nodes = segment.nodes if segment.cut is None else [segment.cut]
        found = [self._form.origins[id(node)] for node in nodes if id(node) in self._form.origins]
        return [n for n in found if not (n.op_type == "TupleGetItem" and _is_control(n.operands[0]))]

    # -- segments

    def _run(
        self,
        graph: int,
        nodes: Sequence[Node],
        later: Sequence[Node],
        given: Sequence[Value],
        calls: Sequence[Node],
        *,
        wrapped: bool,
    ) -> Step | None:
        """A kernel graph of a segment, and the step that runs it; `given`: what its function gives, and tokens."""
        own = Identity(nodes)
        result = given[0]
        used = [v for node in later for v in _uses_in_order(node)]
        if isinstance(result, Node) and result.op_type == "MakeTuple" and not (wrapped and result in own):
            used += result.operands
        exits: dict[int, Node] = {}
        for value in [result, *used, *given[1:]]:
            if isinstance(value, Node) and value in own and value.op_type not in CONTROL:
                exits.setdefault(id(value), value)
        if not exits:
            return None
        end = Node(op_type="Exit", operands=list(exits.values()), abstract=TupleType(items=()))
        order = [node for node in listed(end) if node is not end and node in own]
        exits = {id(node): node for node in order if id(node) in exits} | exits
        return self._kernel_graph(graph, order, list(exits.values()), calls)

    def _kernel_graph(self, at: int, order: Sequence[Node], exits: Sequence[Node], calls: Sequence[Node]) -> Run:
        own = Identity(order)
        arguments: dict[int, Parameter] = {}
        for node in order:
            node.operands = [self._inside(operand, own, arguments, calls) for operand in node.operands]
        for operand in [*(operand for node in order for operand in node.operands), *exits]:
            if isinstance(operand, Node) and operand.op_type == "MakeTuple" and operand not in own:
                operand.operands = [self._inside(o, own, arguments, calls) for o in operand.operands]
        items: list[Value] = list(exits)
        abstract = TupleType(items=tuple(value.abstract for value in items))
        wrapper = Node(op_type="MakeTuple", operands=items, abstract=abstract, text=NodeText(is_backend=True))
        parameters = parameter_order(listed(wrapper))
        graph = Graph(parameters=parameters, output=wrapper)
        taken = [self._place_of(p, arguments) for p in parameters if not p.is_weight]
        results: list[int] = []
        for node in exits:
            slots = [self.slot() for _ in tensors_of(node.abstract)]
            self.give(node, slots)
            results += slots
        self.pieces.graphs[at] = graph
        return Run(graph=at, arguments=tuple(taken), results=tuple(results))

    def _place_of(self, parameter: Parameter, arguments: dict[int, Parameter]) -> int:
        for key, made in arguments.items():
            if made is parameter:
                return self.places[key][0]
        return self.places[id(parameter)][0]

    def _inside(self, operand: Value, own: "Identity", arguments: dict[int, Parameter], calls: Sequence[Node]) -> Value:
        """An operand as the segment sees it: values of other segments come in as parameters."""
        if not isinstance(operand, Node) or operand in own:
            return operand
        if isinstance(operand.abstract, MonadType):
            return _FOREIGN_TOKEN
        if operand.op_type == "MakeTuple":
            return self._unpacked(operand, own, arguments, calls) if id(operand) in self.places else operand
        found = arguments.get(id(operand))
        if found is None:
            assert isinstance(operand.abstract, TensorType), operand.op_type
            abstract = replace(operand.abstract, ref_key=None, constant=False)
            source = operand.operands[0] if operand.op_type == "TupleGetItem" else operand
            found = Parameter(name=CALL_RESULT if any(source is call for call in calls) else "", abstract=abstract)
            variable = _loop_variable(operand)
            if variable is not None:
                found.name, found.debug_name = variable, f"ф{variable}"
            arguments[id(operand)] = found
        return found

    def _unpacked(self, made: Node, own: "Identity", arguments: dict[int, Parameter], calls: Sequence[Node]) -> Value:
        """A tuple that an earlier segment left, as a tuple of its elements."""
        slots = list(self.places[id(made)])
        elements: list[Value] = []
        for element in made.operands:
            count = len(tensors_of(element.abstract))
            if not isinstance(element, Constant):
                self.places.setdefault(id(element), slots[:count])
            del slots[:count]
            elements.append(self._inside(element, own, arguments, calls))
        return Node(op_type="MakeTuple", operands=elements, abstract=made.abstract, scope=made.scope)

    # -- control

    def _control(self, node: Node) -> list[Step]:
        if node.op_type == "If":
            return self._branch(node)
        return self._loop(node) if node.op_type == "While" else self._unwind(node)

    def _block(self, block: Graph) -> list[Step]:
        assert block.output is not None
        return self.function(block, block.trail, block.output, wrapped=False)

    def _announce(self, control: Node, nodes: Sequence[Node]) -> None:
        """Give the outputs of a control node their slots."""
        slots = [self.slot() for _ in tensors_of(control.abstract)]
        self.give(control, slots)
        for node in nodes:
            if node.op_type == "TupleGetItem" and node.operands[0] is control:
                place = node.operands[1]
                assert isinstance(place, Constant)
                self.give(node, [slots[place.value]])

    def _branch(self, node: Node) -> list[Step]:
        sides: list[tuple[Step, ...]] = []
        for block in node.blocks:
            inside = self._block(block)
            assert block.output is not None
            sides.append((*inside, *self._moves(self.places[id(node)], self.sources(block.output))))
        steps: list[Step] = []
        condition = self._slot_of(node.operands[0], steps)
        return [*steps, Branch(condition=condition, then=sides[0], otherwise=sides[1])]

    def _slot_of(self, value: Value, steps: list[Step]) -> int:
        (source,) = self.sources(value)
        if isinstance(source, int):
            return source
        target = self.slot()
        steps.append(Move(target=target, source=source))
        return target

    def _loop(self, node: Node) -> list[Step]:
        head, body = node.blocks
        slots = self.places[id(node)]
        start = self._moves(slots, [s for operand in node.operands for s in self.sources(operand)])
        for block in (head, body):
            for parameter, slot in zip(block.parameters, slots, strict=True):
                self.give(parameter, [slot])
        head_steps = self._block(head)
        assert head.output is not None
        assert body.output is not None
        test: list[Step] = []
        condition = self._slot_of(head.output, test)
        body_steps = self._block(body)
        outputs = self.sources(body.output)
        back = self._moves(slots, outputs[: len(slots)])
        unwinds = control_of(node).unwinds
        kept = [self._keep(unwind, outputs) for unwind in unwinds]
        steps = (*body_steps, *(step for steps in kept for step in steps), *back)
        counted = tuple(self._stacks[id(unwind)] for unwind in unwinds)
        return [*start, Loop(head=(*head_steps, *test), condition=condition, body=steps, counted=counted)]

    def _keep(self, unwind: Node, outputs: list[int | Constant]) -> list[Step]:
        """Keep what the gradient of a round needs: outputs of the loop's body behind the variables."""
        stack = self._stacks[id(unwind)] = self.pieces.stacks  # of the rounds' number; that of the values is the next
        self.pieces.stacks += 2
        steps: list[Step] = []
        sources: list[int] = []
        for source in (outputs[place] for place in control_of(unwind).saved):
            if isinstance(source, Constant):
                steps.append(Move(target=self.slot(), source=source))
                source = self.count - 1
            sources.append(source)
        return [*steps, Keep(stack=stack + 1, sources=tuple(sources))]

    def _unwind(self, node: Node) -> list[Step]:
        """The gradient of a loop: its rounds backwards, each with the values that were kept of it."""
        (body,) = node.blocks
        slots = self.places[id(node)]
        start = self._moves(slots, [s for operand in node.operands[1:] for s in self.sources(operand)])
        restored = [self.slot() for _ in body.parameters[len(slots) :]]
        for parameter, slot in zip(body.parameters, [*slots, *restored], strict=True):
            self.give(parameter, [slot])
        stack = self._stacks[id(node)]
        first = Restore(stack=stack + 1, targets=tuple(restored))
        steps = self._block(body)
        assert body.output is not None
        back = self._moves(slots, self.sources(body.output))
        return [*start, Repeat(counter=stack, body=(first, *steps, *back))]

    def _moves(self, targets: list[int], sources: list[int | Constant]) -> list[Step]:
        """Assign all at once: a source that is also a target is read first."""
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


def _loop_variable(item: Node) -> str | None:
    """The variable that an output of a loop stands for."""
    if item.op_type != "TupleGetItem":
        return None
    loop, place = item.operands
    if isinstance(loop, Node) and loop.op_type == "While" and isinstance(place, Constant):
        name: str = control_of(loop).variables[place.value]
        return name
    return None


def _nothing() -> Graph:
    """A kernel graph that nothing runs."""
    nothing = Node(op_type="MakeTuple", operands=[], abstract=TupleType(items=()), text=NodeText(is_backend=True))
    return Graph(output=nothing)


def _writes(node: Node) -> bool:
    """Whether a node takes a token to write memory."""
    ties = node.op_type in ("Load", "UpdateState", "Depend")
    return not ties and any(isinstance(operand.abstract, MonadType) for operand in node.operands)


def _is_control(value: Value) -> bool:
    return isinstance(value, Node) and value.op_type in CONTROL


def _uses_in_order(node: Node) -> list[Value]:
    """What a node needs, in the order in which the compiler comes to it: of a branch, the condition last."""
    found = uses(node)
    return [*found[1:], found[0]] if node.op_type == "If" else found


def _has_effect(node: Node) -> bool:
    """Whether a control node has to run although nobody uses its outputs."""
    if node.op_type == "While":
        return True
    return node.op_type in CONTROL and any(
        n.op_type == "UpdateState" and len(n.operands) > 1 for block in node.blocks for n in block.trail
    )
