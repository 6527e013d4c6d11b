"""What a network computes for nobody: nodes, outputs of branches, variables of loops.

The vendor's func graphs say what stays: a branch is a call, whose result may lose elements that nobody takes; a loop is
on the way to the result of its function, since what follows it is a function that its header calls. So a loop stays
although nobody reads what it computes, while a variable of it goes that nothing in the loop reads. [spec vendor 2.8]
"""

from collections.abc import Callable, Sequence

from dumpsim.core.abstract import Abstract, ScalarType, TupleType
from dumpsim.graph.effects import has_effect
from dumpsim.graph.graph import Constant, Graph, Node, Value, control_of
from dumpsim.ops.opdef import OpDef

__all__ = ["drop_unused"]


def drop_unused(graph: Graph, find: Callable[[str], OpDef]) -> Graph:
    """Drop what neither the output nor a side effect of a captured network needs, in blocks too; gives the graph.

    Branches and loops whose gradient is in the network keep all outputs: the gradient counts on their places.
    """
    first = _Dropper(find, None)
    first.graph(graph, None)
    dropper = _Dropper(find, first.places)
    dropper.graph(graph, None)
    dropper.clean(graph)
    return graph


class _Dropper:
    """Marks what is needed.

    A branch is asked for the outputs that were taken before any output went (`taken`; at first None, all of them): what
    only an output needs that goes from a branch around it stays, and what a loop is given. [fitted: r1_045, r1_187]
    """

    def __init__(self, find: Callable[[str], OpDef], taken: dict[int, set[int]] | None) -> None:
        self._find = find
        self._taken = taken
        self._live: set[int] = set()  # ids of values
        self._clean: set[int] = set()  # ids of graphs
        self.places: dict[int, set[int]] = {}  # outputs that somebody takes, by id of the control node

    def graph(self, graph: Graph, wanted: set[int] | None) -> None:
        """Mark what the `wanted` outputs of a graph need (None: all), and its effects."""
        self._use(_outputs(graph, wanted))
        for node in reversed(graph.trail):
            self._node(node)

    def _use(self, values: Sequence[Value]) -> None:
        pending = [value for value in values if not isinstance(value, Constant)]
        while pending:
            value = pending.pop()
            if id(value) in self._live:
                continue
            self._live.add(id(value))
            if isinstance(value, Node) and not value.blocks:
                if value.op_type == "TupleGetItem":
                    self._take(value)
                pending += [operand for operand in value.operands if not isinstance(operand, Constant)]

    def _take(self, part: Node) -> None:
        source, place = part.operands
        if isinstance(source, Node) and source.blocks and isinstance(place, Constant):
            self.places.setdefault(id(source), set()).add(place.value)

    def _node(self, node: Node) -> None:
        if node.op_type == "While":
            self._loop(node)
        elif node.blocks:
            self._branch(node)
        elif has_effect(node, self._find):
            self._use([node])

    def _branch(self, node: Node) -> None:
        if id(node) not in self._live and not has_effect(node, self._find):
            return
        self._use([node, *node.operands])
        if self._taken is not None:
            self.places[id(node)] = self._taken.get(id(node), set()) | control_of(node).kept
        wanted = None if _is_fixed(node) or self._taken is None else self.places[id(node)]
        for block in node.blocks:
            self.graph(block, wanted)

    def _loop(self, node: Node) -> None:
        """Mark a loop: all variables stay but those that nothing in it reads, not even to compute themselves.

        The vendor drops parameters of the header one after the other while nobody uses them. [observed: r1_126]
        """
        self._use([node])
        head, body = node.blocks
        taken = set(self.places.get(id(node), ()))
        kept = set(range(len(node.operands)))
        if _is_fixed(node) or self._taken is None:
            self.graph(head, None)
            self.graph(body, None if _is_fixed(node) else kept)
        else:
            before = set(self._live), {key: set(places) for key, places in self.places.items()}
            while True:
                self.graph(head, None)
                self.graph(body, kept)
                read = {
                    at
                    for block in node.blocks
                    for at, parameter in enumerate(block.parameters)
                    if id(parameter) in self._live
                }
                if kept <= read | taken:
                    break
                kept &= read | taken
                self._live, self.places = set(before[0]), {key: set(places) for key, places in before[1].items()}
        self.places[id(node)] = kept
        self._use([node.operands[at] for at in sorted(kept)])

    # -- what goes

    def clean(self, graph: Graph) -> None:
        """Leave out what was not marked; a function that is called more than once comes up more than once."""
        if id(graph) in self._clean:
            return
        self._clean.add(id(graph))
        graph.trail = [node for node in graph.trail if id(node) in self._live]
        for node in graph.trail:
            if node.blocks and not _is_fixed(node):
                self._keep(node, sorted(self.places.get(id(node), ())))
            for block in node.blocks:
                self.clean(block)
        for node in graph.trail:
            if node.op_type == "TupleGetItem" and isinstance(node.operands[0], Node) and node.operands[0].blocks:
                self._move(node, node.operands[0])

    def _keep(self, node: Node, places: list[int]) -> None:
        """Leave a branch or loop the outputs at some places."""
        assert isinstance(node.abstract, TupleType)
        if len(places) == len(node.abstract.items):
            return
        node.abstract = TupleType(items=tuple(node.abstract.items[at] for at in places))
        if node.op_type == "While":
            node.operands = [node.operands[at] for at in places]
            control = control_of(node)
            control.variables = tuple(control.variables[at] for at in places)
            for block in node.blocks:
                block.parameters = [block.parameters[at] for at in places]
        for block in node.blocks[1:] if node.op_type == "While" else node.blocks:
            bundle = block.output
            assert isinstance(bundle, Node)
            bundle.operands = [bundle.operands[at] for at in places]
            bundle.abstract = node.abstract

    def _move(self, part: Node, source: Node) -> None:
        places = self.places.get(id(source))
        place = part.operands[1]
        if places is not None and not _is_fixed(source):
            assert isinstance(place, Constant)
            at = sorted(places).index(place.value)
            if at != place.value:
                part.operands[1] = Constant(value=at, abstract=_index(place, at))


def _index(place: Constant, at: int) -> Abstract:
    kind = place.abstract
    assert isinstance(kind, ScalarType)
    return ScalarType(dtype=kind.dtype, value=at)


def _is_fixed(node: Node) -> bool:
    """Whether a control node has a gradient, or is one, or a call of a function that has other calls."""
    control = node.control
    if node.op_type in ("Unwind", "Invoke") or any(block.results is not None for block in node.blocks):
        return True
    return control is not None and (control.backward is not None or bool(control.unwinds) or bool(control.saved))


def _outputs(graph: Graph, wanted: set[int] | None) -> list[Value]:
    if graph.output is None:
        return []
    if wanted is None:
        return [graph.output]
    assert isinstance(graph.output, Node)
    return [graph.output.operands[at] for at in sorted(wanted)]
