"""Cutting a network at control flow: kernel graphs and the steps that connect them.

The statements in front of a branch, those behind it, each branch, a loop's condition and its body become graphs of
their own, numbered as the vendor numbers them: the segments of a function first, then the branches; behind a loop's
condition and body comes what follows the loop. [observed 2.10]
"""

from dataclasses import dataclass, field, replace

import numpy as np

from dumpsim.core.abstract import MonadType, TensorType, TupleType, tensors_of
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, reachable, text_of
from dumpsim.graph.mindspore.segments import (
    CONTROL,
    Identity,
    is_ordered,
    listed_segments,
    segments_of,
    uses_in_order,
    without,
)
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.program import Branch, Keep, Loop, Move, Repeat, Restore, Run, Step
from dumpsim.graph.sequence import is_kernel, listed, parameter_order
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


def cut(graph: Graph) -> Pieces:
    """Cut a network; its control nodes become steps."""
    pieces = Pieces()
    cutter = _Cutter(pieces)
    for parameter in graph.parameters:
        if not parameter.is_weight:
            cutter.give(parameter, [cutter.slot()])
    steps = cutter.function(graph, in_loop=False, wrapped=True, root=True)
    pieces.steps = tuple(steps)
    pieces.outputs = tuple(cutter.sources(graph.output)) if graph.output is not None else ()
    pieces.slots = cutter.count
    return pieces


class _Cutter:
    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces
        self.count = 0
        self.places: dict[int, list[int]] = {}  # slots of a value's tensors
        self._kept: list[Value] = []  # keeps the values of `places` alive
        self._calls: dict[int, Node] = {}  # stand-in for the result of the loop in front of a tail, by tail
        self._stacks: dict[int, int] = {}  # stack of the number of rounds, by gradient of a loop
        self._sides: dict[int, list[tuple[Step, ...]]] = {}  # of gradients of branches, cut with these

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

    def function(self, graph: Graph, *, in_loop: bool, wrapped: bool, root: bool = False) -> list[Step]:
        """Cut the nodes of one function; the steps that run it."""
        needed = reachable([graph.output, *(n for n in graph.trail if _has_effect(n))])
        nodes = [n for n in graph.trail if id(n) in needed]
        output = graph.output
        assert output is not None
        return self._until_loop(nodes, output, in_loop=in_loop, wrapped=wrapped, root=root)

    def _until_loop(self, nodes: list[Node], output: Value, *, in_loop: bool, wrapped: bool, root: bool) -> list[Step]:
        """Cut nodes up to the first loop; what is behind it is a function of its own."""
        loop = next((i for i, node in enumerate(nodes) if node.op_type == "While"), None)
        tail: Node | None = None
        rest: list[Node] = []
        if loop is not None:
            nodes, rest = nodes[: loop + 1], nodes[loop + 1 :]
            early = without(rest, nodes[loop]) if not in_loop else []
            rest = [n for n in rest if n not in Identity(early)]
            nodes = [*nodes[:-1], *early, nodes[-1]]
            whole = root and isinstance(output.abstract, TensorType)
            if whole and rest and rest[-1] is output and rest[-1].op_type == "Depend":
                tail = rest.pop()
                text_of(tail).variable = ""  # the loop's result has no variable of its own
        controls = [node for node in nodes if node.op_type in CONTROL]
        gradients = any(control_of(node).backward is not None for node in controls) and loop is None and not in_loop
        gradients = gradients and not any(is_kernel(node) and is_ordered(node) for node in nodes)
        segments = (
            listed_segments(nodes, controls, output) if gradients else segments_of(nodes, controls, in_loop=in_loop)
        )
        for control in controls:
            self._announce(control, [*nodes, *rest])
        result = tail.operands[0] if tail is not None else output
        runs: list[Step | None] = []
        for index, segment in enumerate(segments):
            later = [n for s in segments[index + 1 :] for n in s.nodes] + rest + controls[index:]
            later += [tail] if tail is not None else []
            run = self._run(segment.nodes, later, result, controls, wrapped=wrapped, root=root)
            if run is None and segment.nodes_without_kernels:
                self._empty(root=root)
            runs.append(run)
        steps: list[Step] = []
        end: list[Step] = []
        if tail is not None:
            end.append(self._tail(tail))
        for index, run in enumerate(runs):
            if run is not None:
                steps.append(run)
            if index < len(controls):
                control = controls[index]
                steps += self._control(control, in_loop)
        if loop is not None and (rest or tail is not None):
            steps += self._until_loop(rest, result, in_loop=in_loop, wrapped=wrapped, root=False) if rest else []
        if tail is not None:
            sources = self.sources(result)
            steps += [
                Move(target=t, source=s) for t, s in zip(self.places[id(self._calls[id(tail)])], sources, strict=True)
            ]
        return [*steps, *end]

    # -- segments

    def _run(
        self, nodes: list[Node], later: list[Node], result: Value, calls: list[Node], *, wrapped: bool, root: bool
    ) -> Step | None:
        """A kernel graph of a segment, and the step that runs it."""
        own = Identity(nodes)
        used = [v for node in later for v in uses_in_order(node)]
        if isinstance(result, Node) and result.op_type == "MakeTuple" and not (wrapped and result in own):
            used += result.operands
        exits: dict[int, Node] = {}
        for value in [result, *used]:
            if isinstance(value, Node) and value in own and value.op_type not in CONTROL:
                exits.setdefault(id(value), value)
        if not exits:
            return None
        end = Node(op_type="Exit", operands=list(exits.values()), abstract=TupleType(items=()))
        order = [node for node in listed(end) if node is not end and node in own]
        exits = {id(node): node for node in order if id(node) in exits} | exits
        return self._kernel_graph(order, list(exits.values()), calls, root=root)

    def _kernel_graph(self, order: list[Node], exits: list[Node], calls: list[Node], *, root: bool) -> Run:
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
        self.pieces.graphs.append(graph)
        if root:
            self.pieces.roots.add(len(self.pieces.graphs) - 1)
        return Run(graph=len(self.pieces.graphs) - 1, arguments=tuple(taken), results=tuple(results))

    def _place_of(self, parameter: Parameter, arguments: dict[int, Parameter]) -> int:
        for key, made in arguments.items():
            if made is parameter:
                return self.places[key][0]
        return self.places[id(parameter)][0]

    def _inside(self, operand: Value, own: "Identity", arguments: dict[int, Parameter], calls: list[Node]) -> Value:
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

    def _unpacked(self, made: Node, own: "Identity", arguments: dict[int, Parameter], calls: list[Node]) -> Value:
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

    def _empty(self, *, root: bool) -> None:
        """A kernel graph that nothing runs."""
        nothing = Node(op_type="MakeTuple", operands=[], abstract=TupleType(items=()), text=NodeText(is_backend=True))
        self.pieces.graphs.append(Graph(output=nothing))
        if root:
            self.pieces.roots.add(len(self.pieces.graphs) - 1)

    # -- control

    def _control(self, node: Node, in_loop: bool) -> list[Step]:
        if node.op_type == "If":
            return self._branch(node, in_loop)
        return self._loop(node) if node.op_type == "While" else self._unwind(node)

    def _announce(self, control: Node, nodes: list[Node]) -> None:
        """Give the outputs of a control node their slots."""
        slots = [self.slot() for _ in tensors_of(control.abstract)]
        self.give(control, slots)
        for node in nodes:
            if node.op_type == "TupleGetItem" and node.operands[0] is control:
                place = node.operands[1]
                assert isinstance(place, Constant)
                self.give(node, [slots[place.value]])

    def _tail(self, tail: Node) -> Run:
        """The end of a function that called a loop: it ties the result to the last token."""
        call = Node(op_type="While", operands=[], abstract=tail.operands[0].abstract)
        self._calls[id(tail)] = call
        self.give(call, [self.slot()])
        tail.operands[0] = call
        return self._kernel_graph([tail], [tail], [call], root=True)

    def _branch(self, node: Node, in_loop: bool) -> list[Step]:
        self.pieces.functions += 3 if in_loop else 2
        sides = self._sides.pop(id(node), None)
        if sides is None:
            sides = []
            backward = control_of(node).backward
            backward = backward if id(backward) in self.places and not in_loop else None
            for at, block in enumerate(node.blocks):
                sides.append(self._side(node, block, in_loop, closes=backward is not None))
                if backward is not None:  # the gradient of a branch comes behind it [observed 2.10]
                    self._sides.setdefault(id(backward), []).append(
                        self._side(backward, backward.blocks[at], in_loop, closes=False)
                    )
        steps: list[Step] = []
        condition = self._slot_of(node.operands[0], steps)
        return [*steps, Branch(condition=condition, then=sides[0], otherwise=sides[1])]

    def _side(self, node: Node, block: Graph, in_loop: bool, *, closes: bool) -> tuple[Step, ...]:
        """One side of a branch; `closes`: it makes a function of the values that it gives to its gradient."""
        inside = self._closure(block) if closes else self.function(block, in_loop=in_loop, wrapped=False)
        assert block.output is not None
        return (*inside, *self._moves(self.places[id(node)], self.sources(block.output)))

    def _closure(self, block: Graph) -> list[Step]:
        """A branch with a gradient: what this takes is there first, in a graph of its own. [observed 2.10]"""
        output = bundle = block.output
        while isinstance(bundle, Node) and bundle.op_type == "Depend":
            bundle = bundle.operands[0]
        assert output is not None
        assert isinstance(bundle, Node)
        taken = [v for v in bundle.operands[block.results or 0 :] if isinstance(v, Node)]
        if not taken or any(node.op_type in CONTROL for node in block.trail):
            return self.function(block, in_loop=False, wrapped=False)
        taken = [self._moved(value, block, bundle) for value in taken]
        partial = Node(op_type="Partial", operands=list(taken), abstract=TupleType(items=()))
        needed = reachable([block.output])
        nodes = [n for n in block.trail if id(n) in needed]
        own = Identity(nodes)
        root = Node(op_type="Return", operands=[output, partial], abstract=TupleType(items=()))
        order = [n for n in listed(root, lambda node: node.operands) if n in own or n is partial]
        place = next(i for i, n in enumerate(order) if n is partial)
        first, second = order[:place], order[place + 1 :]
        early = Identity(first)
        parts = [n for n in second if n.op_type == "TupleGetItem" and n.operands[0] in early]
        first, second = [*first, *parts], [n for n in second if n not in Identity(parts)]
        runs = [
            self._run(first, [*second, root], output, [], wrapped=False, root=False),
            self._run(second, [root], output, [], wrapped=False, root=False),
        ]
        if runs[1] is None:
            self._empty(root=False)
        return [run for run in runs if run is not None]

    def _moved(self, value: Node, block: Graph, bundle: Node) -> Node:
        """A weight is given to a gradient as a copy, which the branch itself then uses. [observed 2.10]"""
        if value.op_type != "Load":
            return value
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
        return move

    def _slot_of(self, value: Value, steps: list[Step]) -> int:
        (source,) = self.sources(value)
        if isinstance(source, int):
            return source
        target = self.slot()
        steps.append(Move(target=target, source=source))
        return target

    def _loop(self, node: Node) -> list[Step]:
        self.pieces.functions += 3
        head, body = node.blocks
        slots = self.places[id(node)]
        start = self._moves(slots, [s for operand in node.operands for s in self.sources(operand)])
        for block in (head, body):
            for parameter, slot in zip(block.parameters, slots, strict=True):
                self.give(parameter, [slot])
        head_steps = self.function(head, in_loop=True, wrapped=False)
        assert head.output is not None
        assert body.output is not None
        test: list[Step] = []
        condition = self._slot_of(head.output, test)
        body_steps = self.function(body, in_loop=True, wrapped=False)
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
        self.pieces.functions += 3
        (body,) = node.blocks
        slots = self.places[id(node)]
        start = self._moves(slots, [s for operand in node.operands[1:] for s in self.sources(operand)])
        restored = [self.slot() for _ in body.parameters[len(slots) :]]
        for parameter, slot in zip(body.parameters, [*slots, *restored], strict=True):
            self.give(parameter, [slot])
        stack = self._stacks[id(node)]
        first = Restore(stack=stack + 1, targets=tuple(restored))
        steps = self.function(body, in_loop=True, wrapped=False)
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


def _has_effect(node: Node) -> bool:
    """Whether a control node has to run although nobody uses its outputs."""
    return node.op_type in CONTROL and any(
        n.op_type == "UpdateState" and len(n.operands) > 1 for block in node.blocks for n in block.trail
    )
