"""Numbers of the nodes that are printed by the stages before sharding; a node is named when it is first printed.

[spec parallel 1.5] [observed 2.10: stages of some thirty networks]
"""

from collections.abc import Sequence
from types import MappingProxyType

from dumpsim.graph.compilation import Find, Numbers
from dumpsim.graph.effects import live_nodes
from dumpsim.graph.graph import Graph, Node, Parameter, Value, copied, text_of, topological
from dumpsim.graph.mindspore.gradient_node import GRADIENT
from dumpsim.graph.parallel.stagetext import NodeNames, stage_document, with_monads
from dumpsim.graph.sequence import flat_operands

__all__ = ["name_early"]

# fitted to the seed's network, with and without TensorDump; the last one to networks that train
_FITTED = MappingProxyType({"seed": 18, "2.7": 22, "2.10": 23})  # [seed 000] [spec parallel 1.5]
_BY_TENSORDUMP = 38  # nodes of its Python function
# the first stage has a graph that looks up and calls the script's function, with a parameter for each argument; the
# second stage parses the function
_BOOTSTRAP, _PARSED = 3, 1
# type inference: the network's graph, the call of the script's function and the function's graph; then both graphs
# again with monads
_ROOT, _INFERRED, _WITH_MONADS = 1, 2, 2
# nodes of tensordump's Python function: its own statements, the functions of its checks, and their copies with monads
_CHECKS, _FUNCTIONS, _COPIES = 6, 24, 9


def name_early(graph: Graph, find: Find, names: NodeNames, numbers: Numbers, release: str) -> None:
    """Name the nodes of a graph as the stages before sharding do.

    Parameters
    ----------
    graph : Graph
    find : callable
        The definition of an operator type.
    names : NodeNames
        Gets the names.
    numbers : Numbers
        Counters of the process.
    release : str
    """
    dumps = sum(node.op_type == "TensorDump" for node in graph.trail)
    if release != "2.10" or any(node.op_type == GRADIENT for node in graph.trail):
        numbers.take(_FITTED[release] + bool(dumps) * _BY_TENSORDUMP)
        stage_document(graph, find, names, graph.name)
        return
    arguments = sum(not parameter.is_weight for parameter in graph.parameters)
    dead = _dead(graph)
    items = sum(node.op_type == "TupleGetItem" for node in graph.trail)
    numbers.take(_BOOTSTRAP + arguments + _PARSED + bool(dumps) * _CHECKS + bool(items))
    later = []
    for node in graph.trail:
        if not text_of(node).variable and node.op_type != "MakeTuple":
            if node is graph.output:
                names.name(node)
            else:
                later.append(node)
    numbers.take(_ROOT)
    for node in later:
        names.name(node)
    # an unused statement is kept alive by a StopGradient and a Depend, several by a tuple of them; a function call
    # takes each item of a tuple
    numbers.take(items + (0 if not dead else 2 if dead == 1 else 3) + _INFERRED)
    for node in graph.trail:
        if not text_of(node).variable:
            names.name(node)
    numbers.take(_WITH_MONADS + bool(dumps) * (_FUNCTIONS + _COPIES))
    if not dumps:
        _name_reads(graph, find, names, is_bare=bool(dead))
    stage_document(graph, find, names, graph.name)


def _dead(graph: Graph) -> int:
    """Return the number of unused results."""
    used = {id(value) for node in graph.trail for value in node.operands} | {id(graph.output)}
    used |= {id(value) for value in flat_operands(graph.output)} if isinstance(graph.output, Node) else set()
    return sum(id(node) not in used for node in graph.trail)


def _name_reads(graph: Graph, find: Find, names: NodeNames, *, is_bare: bool) -> None:
    """Name the Loads of weights: an UpdateState follows those of each operator, until a later pass joins them.

    A tuple of weights that an operator takes has an UpdateState of its own, which is never joined: the tuple, the token
    before it and one more node are recreated.
    """
    known: dict[int, Value] = {}
    shown = copied(graph, known)
    shown.trail = live_nodes(shown, find)
    nodes = topological([with_monads(shown, find).output])
    loads = [node.operands[0] for node in nodes if node.op_type == "Load"]
    place = {weight.name: at for at, weight in enumerate(loads) if isinstance(weight, Parameter)}
    bundles = {id(node) for node in graph.trail if node.op_type == "MakeTuple"}
    made = _Places([node for node in nodes if all(node is not value for value in known.values())])
    seen: set[str] = set()
    group: list[list[str]] = []  # weights read by the operators since the last such tuple, or by the tuple
    follows = False  # whether the last reader was such a tuple

    def state(mine: Sequence[str]) -> int | None:
        """Return the index of the UpdateState that orders exactly these Loads."""
        return made.states.get(frozenset(mine))

    for node in graph.trail:
        values = node.operands if id(node) in bundles else _operands(node)
        weights = [value.name for value in values if isinstance(value, Parameter) and value.is_weight]
        mine = [name for name in dict.fromkeys(weights) if name not in seen]
        if not mine:
            continue
        if id(node) in bundles:
            names.take()
            before = state(group[0]) if len(group) == 1 else None
            if before is not None:
                names.give("UpdateState", before)
            else:
                names.take()
            group, follows = [mine], True
        else:
            group, follows = [*([] if follows else group), mine], False
        for name in mine:
            if name in place:
                names.give("Load", place[name])
            else:  # of an unused statement
                names.take()
        seen.update(mine)
        if id(node) in bundles:
            names.rename(node)
        elif len(mine) > 1:
            bundle = made.bundles.get(frozenset(mine))
            if bundle is not None:
                names.give("MakeTuple", bundle)
            else:
                names.take()
        at = state(mine)
        if at is not None:
            names.give("UpdateState", at)
        else:
            names.take()
    variable = text_of(graph.output).variable if isinstance(graph.output, Node) and not is_bare else ""
    if loads and variable:
        names.label("Depend", 0, variable)
    elif loads:
        names.give("Depend", 0)


def _operands(node: Node) -> list[Value]:
    """Return the parameters that a node takes directly; none of a tuple."""
    return [] if node.op_type == "MakeTuple" else [v for v in node.operands if isinstance(v, Parameter)]


class _Places:
    """Indexes, among nodes of their type, of the UpdateStates and the tuples before them, by the weights they order.

    Parameters
    ----------
    nodes : sequence of Node
        The nodes that were added with monads, in the order of the text.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.states: dict[frozenset[str], int] = {}
        self.bundles: dict[frozenset[str], int] = {}
        tuples = -1
        numbers: dict[int, int] = {}
        states = [node for node in nodes if node.op_type == "UpdateState"]
        for node in nodes:
            if node.op_type == "MakeTuple":
                tuples += 1
                numbers[id(node)] = tuples
        for at, node in enumerate(states):
            after = node.operands[1]
            items = after.operands if isinstance(after, Node) and after.op_type == "MakeTuple" else [after]
            read = [v.operands[0] for v in items if isinstance(v, Node) and v.op_type == "Load"]
            weights = frozenset(v.name for v in read if isinstance(v, Parameter))
            self.states.setdefault(weights, at)
            if id(after) in numbers:
                self.bundles.setdefault(weights, numbers[id(after)])
