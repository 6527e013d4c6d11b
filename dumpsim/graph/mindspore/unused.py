"""Drops unused parts of a network: nodes, outputs of branches, variables of loops.

The vendor's func graphs decide which parts stay. A branch is a call: one with effects stays with all items of its
result, since a token takes it as a whole; unused items of any other branch become zeros. The code after a loop is a
function that its header calls, so the result of the function depends on the loop. So a loop stays even if its results
are unused, but a variable that is not read in the loop is dropped.
[spec vendor 2.8; source auto_monad.cc, program_specialize.cc EliminateUnusedSequenceItem]

Unused code exists until reads of weights and effects have their tokens; a node `DEAD` represents such code if it
affects tokens. [source function_block.cc FindIsolatedNodes]
"""

from collections.abc import Callable, Iterator, Sequence

from dumpsim.core.abstract import ScalarType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.effects import DEAD, has_effect, own_operands, skip_depends
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, topological, uses
from dumpsim.ops.opdef import OpDef

__all__ = ["Effects", "drop_unused"]


def drop_unused(graph: Graph, find: Callable[[str], OpDef], *, before_gradients: bool = False) -> Graph:
    """Drop nodes that neither the output nor a side effect of a captured network needs, also in blocks.

    The vendor's analysis before gradients are expanded (`before_gradients`) still sees the calls of unrolled loops.

    Branches and loops with a gradient in the network keep all outputs, since the gradient depends on their order. The
    graph is modified and returned.
    """
    effects = Effects(graph, find)
    first = _Dropper(effects, None, before_gradients=before_gradients)
    first.graph(graph, None)
    dropper = _Dropper(effects, first.places, before_gradients=before_gradients)
    dropper.graph(graph, None)
    dropper.clean(graph)
    return graph


class Effects:
    """Finds nodes that are effects or read weights, and values that depend on such nodes; see `monads`."""

    def __init__(self, graph: Graph, find: Callable[[str], OpDef]) -> None:
        self._find = find
        self._known: dict[frozenset[object], dict[int, bool]] = {}
        self._read = {id(value) for node in everything(graph.trail) for value in uses(node)}
        self._read |= {id(value) for node in topological([graph.output]) for value in node.operands} | {
            id(graph.output)
        }
        parts = [node for node in everything(graph.trail) if node.op_type == "TupleGetItem" and id(node) in self._read]
        self._read |= {id(value) for value in _given_on(graph.trail, parts, frozenset())}

    def is_isolated(self, node: Node) -> bool:
        """Whether no other node, needed or not, takes the result of a node."""
        return id(node) not in self._read

    def writes(self, node: Node) -> bool:
        """Whether a node writes memory or does input and output."""
        return has_effect(node, self._find)

    def is_busy(self, node: Node) -> bool:
        """Whether a branch, or a call of a function, is a call with effects."""
        loops = node.control.loops if node.control is not None else frozenset()
        return self.writes(node) or any(self._is_block_busy(block, loops) for block in node.blocks)

    def depends(self, value: Value, loops: frozenset[object] = frozenset()) -> bool:
        """Whether a value, or one that it is computed from, is an effect or reads a weight.

        Formal parameters of functions of `loops` do not count.
        """
        known = self._known.setdefault(loops, {})
        roots = [value] if id(value) not in known else []
        for node in topological(roots, lambda node: [v for v in _sources(node, loops) if id(v) not in known]):
            effect = self._is_effect(node) or any(known.get(id(v), False) for v in _sources(node, loops))
            known[id(node)] = effect and not _gives_formals(node)
        return known.get(id(value), False)

    def _is_effect(self, node: Node) -> bool:
        reads = any(isinstance(value, Parameter) and value.is_weight for value in node.operands)
        reads = reads or (node.op_type == DEAD and bool(node.attrs["reads"]))
        return reads or (self.is_busy(node) if node.blocks else self.writes(node))

    def _is_block_busy(self, block: Graph, loops: frozenset[object]) -> bool:
        inner_loops = [inner for node in block.trail if node.op_type == "While" for inner in node.blocks]
        values = [node for node in _own(block) if node.op_type != "While"]
        if any(self._is_effect(node) or self.depends(node, loops) for node in values):
            return True
        return any(self._is_block_busy(inner, loops) for inner in inner_loops)


def _weights(node: Node) -> tuple[Value, ...]:
    """Return the operands of a node that are weights."""
    weights = [(value, skip_depends(value)) for value in node.operands]
    return tuple(value for value, weight in weights if isinstance(weight, Parameter) and weight.is_weight)


def _gives_formals(node: Node) -> bool:
    """Whether the results of a node are formal parameters of functions that the vendor's parser creates."""
    return node.op_type == "While" or (node.control is not None and node.control.joins)


def _given_on(nodes: Sequence[Node], parts: Sequence[Node], after: frozenset[int]) -> Iterator[Value]:
    """Yield the values that branches and rounds pass to the code after them; with ``break``, only those of `after`.

    They are arguments of calls until the optimizer drops unused parameters. [source function_block.cc]
    """
    for node in nodes:
        inner = after
        if node.op_type == "While":
            inner = frozenset(part.operands[1].value for part in parts if part.operands[0] is node)  # type: ignore[union-attr]
        jumps = node.control.jumps if node.op_type == "If" and node.control is not None else ()
        for at, block in enumerate(node.blocks):
            if isinstance(block.output, Node):
                values = block.output.operands
                yield from [values[place] for place in inner] if jumps and jumps[at] == "break" else values
            yield from _given_on(block.trail, parts, inner)


def _sources(node: Node, loops: frozenset[object]) -> Sequence[Value]:
    return () if _gives_formals(node) else own_operands(node, loops)


def _own(block: Graph) -> list[Node]:
    output = [block.output] if isinstance(block.output, Node) else []
    return [*block.trail, *output]


class _Dropper:
    """Marks the values that are needed.

    The needed outputs of a branch are those that were used before any output was dropped (`taken`; None for all, in the
    first run): the vendor's analysis, which turns unused outputs into zeros, runs only once after unused code was
    dropped. [observed 2.10: r1_045, r1_187]
    """

    def __init__(self, effects: Effects, taken: dict[int, set[int]] | None, *, before_gradients: bool) -> None:
        self._effects = effects
        self._taken = taken
        self._before_gradients = before_gradients
        self._live: set[int] = set()  # ids of values
        self._clean: set[int] = set()  # ids of graphs
        self._after: set[int] = set()  # variables of the enclosing loop that are used after it
        self.places: dict[int, set[int]] = {}  # indexes of used outputs, by id of the control node

    def graph(self, graph: Graph, wanted: set[int] | None) -> None:
        """Mark the values that the `wanted` outputs of a graph need (None: all outputs), and its effects."""
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
        elif self._effects.writes(node):
            self._use([node])

    def _branch(self, node: Node) -> None:
        busy = self._effects.is_busy(node)
        if id(node) not in self._live and not busy:
            return
        self._use([node, *node.operands])
        jumps = control_of(node).jumps
        if jumps and self._taken is not None:  # the results of a side that breaks are used after the loop
            places = self.places.setdefault(id(node), set())
            for block, how in zip(node.blocks, jumps, strict=True):
                self.graph(block, places & self._after if how == "break" else places)
            return
        if self._taken is not None:
            self.places[id(node)] = self._taken.get(id(node), set()) | control_of(node).kept
            if self._before_gradients:
                self.places[id(node)] |= set(control_of(node).passed)
            if busy:
                self.places[id(node)] |= set(range(len(node.abstract.items)))  # type: ignore[union-attr]
        wanted = None
        if self._taken is not None and _returns_gradient(node):
            wanted = self.places[id(node)] | set(_given(node))
        elif self._taken is not None and not _is_fixed(node):
            wanted = self.places[id(node)]
        for block in node.blocks:
            self.graph(block, wanted)

    def _loop(self, node: Node) -> None:
        """Mark a loop: all variables stay except those that are not read in it, not even to compute themselves.

        The vendor drops unused parameters of the header one after the other. [observed: r1_126]
        """
        self._use([node])
        head, body = node.blocks
        taken = set(self.places.get(id(node), ()))
        around, self._after = self._after, taken
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
        self._after = around
        self.places[id(node)] = kept
        self._use([node.operands[at] for at in sorted(kept)])

    # -- dropping

    def clean(self, graph: Graph) -> None:
        """Drop the nodes that were not marked; a function with several calls is visited several times."""
        if id(graph) in self._clean:
            return
        self._clean.add(id(graph))
        graph.trail = [new for node in graph.trail for new in self._left(node)]
        for node in graph.trail:
            if _returns_gradient(node):
                _clear(node, set(range(_given(node).start)) - self.places.get(id(node), set()))
            elif node.blocks and not _is_fixed(node):
                self._keep(node, sorted(self.places.get(id(node), ())))
            for block in node.blocks:
                self.clean(block)
        for node in graph.trail:
            if node.op_type == "TupleGetItem" and isinstance(node.operands[0], Node) and node.operands[0].blocks:
                self._move(node, node.operands[0])

    def _left(self, node: Node) -> list[Node]:
        if id(node) in self._live or node.op_type == DEAD:
            return [node]
        if node.blocks or node.op_type == "MakeTuple":
            return []
        reads = self._effects.depends(node)
        named = node.op_type != "TupleGetItem" and node.text is not None
        is_assigned = named and bool(node.text.variable or node.text.call_variable)  # type: ignore[union-attr]
        waits = reads or (is_assigned and self._effects.is_isolated(node))
        weights = () if node.scope.startswith("Gradients/") else _weights(node)
        if not waits and not weights:
            return []
        attrs = {"reads": reads, "waits": waits, "weights": weights}
        return [Node(op_type=DEAD, operands=[], abstract=TupleType(items=()), attrs=attrs)]

    def _keep(self, node: Node, places: list[int]) -> None:
        """Keep the outputs at some indexes; the others of a branch become zeros, those of a loop are dropped."""
        assert isinstance(node.abstract, TupleType)
        if len(places) == len(node.abstract.items):
            return
        if node.op_type == "If" and not control_of(node).jumps:
            _clear(node, set(range(len(node.abstract.items))) - set(places))
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
            control_of(bundle).dropped += [value for at, value in enumerate(bundle.operands) if at not in places]
            bundle.operands = [bundle.operands[at] for at in places]
            bundle.abstract = node.abstract

    def _move(self, part: Node, source: Node) -> None:
        is_pruned = source.op_type == "While" or bool(control_of(source).jumps)
        places = self.places.get(id(source)) if is_pruned else None
        place = part.operands[1]
        if places is not None and not _is_fixed(source):
            assert isinstance(place, Constant)
            at = sorted(places).index(place.value)
            if at != place.value:
                part.operands[1] = constant(at)


def _clear(node: Node, places: set[int]) -> None:
    """Replace outputs of both sides of a branch by the number 0."""
    assert isinstance(node.abstract, TupleType)
    zero = ScalarType(dtype=dtype("int64"), value=0)
    node.abstract = TupleType(items=tuple(zero if at in places else i for at, i in enumerate(node.abstract.items)))
    for block in node.blocks:
        bundle = block.output
        assert isinstance(bundle, Node)
        bundle.operands = [
            Constant(value=0, abstract=zero) if at in places else value for at, value in enumerate(bundle.operands)
        ]
        bundle.abstract = node.abstract


def _is_fixed(node: Node) -> bool:
    """Whether a control node has a gradient, is a gradient, or is a call of a function that has other calls."""
    control = node.control
    if node.op_type in ("Unwind", "Invoke") or any(block.results is not None for block in node.blocks):
        return True
    return control is not None and (control.backward is not None or bool(control.unwinds) or bool(control.saved))


def _returns_gradient(node: Node) -> bool:
    """Whether a branch returns its gradient after its outputs; the functions of loops in it are left as they are."""
    if node.op_type != "If" or control_of(node).backward is None or control_of(node).jumps:
        return False
    return all(inner.op_type != "While" for block in node.blocks for inner in block.trail)


def _given(node: Node) -> range:
    """Return the indexes of the outputs of a branch that only its gradient uses; they follow those of the script."""
    block = node.blocks[0]
    assert isinstance(block.output, Node)
    count = len(block.output.operands)
    return range(count if block.results is None else block.results, count)


def _outputs(graph: Graph, wanted: set[int] | None) -> list[Value]:
    if graph.output is None:
        return []
    if wanted is None:
        return [graph.output]
    assert isinstance(graph.output, Node)
    return [graph.output.operands[at] for at in sorted(wanted)]
