"""The sharding pass: turns a captured network into the program of one rank. [spec parallel 1.2, 2.4, 2.5, 2.7]

It runs before gradients are expanded, so that the backward pass follows from the operators that it inserts.
"""

from itertools import count

from dumpsim.graph.compilation import Find, Numbers
from dumpsim.graph.graph import Graph, Node, Value, copied, text_of
from dumpsim.graph.parallel.firstnames import name_early
from dumpsim.graph.parallel.product import operand_layouts
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.sharder import Sharder
from dumpsim.graph.parallel.sharding import Sharding
from dumpsim.graph.parallel.stagetext import NodeNames, read_weights, stage_document
from dumpsim.graph.parallel.tensordumps import name_by_number, place_tensordumps
from dumpsim.graph.parallel.virtual import with_virtual

__all__ = ["shard"]


def shard(
    graph: Graph,
    settings: Settings,
    find: Find,
    *,
    numbers: Numbers | None = None,
    release: str = "2.10",
) -> Sharding:
    """Split a network over devices: change the graph into that of rank `settings.rank`.

    Parameters
    ----------
    graph : Graph
        The captured graph, with the shapes of whole tensors.
    settings : Settings
    find : callable
        The definition of an operator type.
    numbers : Numbers, optional
        Counters of the process. If given, the texts of the graph before and after the pass are created, which number
        its nodes.
    release : str
        The release whose numbering the texts follow.

    Raises
    ------
    StrategyError
        If a strategy does not fit its operator, or a weight is cut in two ways.
    UnsupportedError
        For a gradient inside of control flow, and control flow under gradient accumulation.
    """
    find = with_virtual(find)
    is_printed = numbers is not None
    names = NodeNames(number=numbers.cnode if numbers is not None else count(1).__next__)
    if numbers is not None:
        name_early(graph, find, names, numbers, release)
    sharder = Sharder(graph, settings, find)
    sharder.begin()
    weights = read_weights(graph)
    before: dict[int, Value] = {}
    begin = copied(graph, before)
    names.copies(before, graph)
    sharder.run()
    placed = place_tensordumps(graph, generation=settings.tensordump, rank=settings.rank)
    texts = [("step_parallel_begin", stage_document(begin, find, names, graph.name))] if is_printed else []
    name_by_number(placed, names.name)
    known: dict[int, Value] = {}
    end = copied(graph, known)
    names.copies(known, graph)
    if is_printed:
        for cut, strategy in sharder.strategies_by_node():
            shown = known.get(id(cut))
            if isinstance(shown, Node):  # results that need no argument need no data set
                text_of(shown).node_attrs["in_strategy"] = strategy
        texts.append(
            ("step_parallel_end", stage_document(end, find, names, graph.name, sharder.slices(), weights=weights))
        )
    found = Sharding(settings=settings, begin=begin, end=end, texts=tuple(texts))
    sharder.finish()
    for plan in sharder.plans:
        for node in (plan.node, known.get(id(plan.node), plan.node)):
            assert isinstance(node, Node)
            found.layouts[node] = plan.layouts.outputs
            found.inputs[node] = operand_layouts(plan)
            found.strategies[node] = plan.strategy
        if plan.scheme.reduction is not None and len(plan.layouts.group) > 1:
            found.reductions[plan.node] = plan.scheme.reduction.kind
    found.strategies_by_name = sharder.strategies()
    found.arguments = sharder.arguments
    found.parameters = sharder.weights
    found.weights = [p for p in graph.parameters if p.is_weight and p.name in sharder.weights]
    found.groups = sharder.groups
    found.reduced = sharder.reduced
    found.notes = tuple(sharder.notes)
    return found
