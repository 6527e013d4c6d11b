"""The virtual data set node, through which a network's arguments pass, and the marks of results. [spec parallel 2.4]"""

import numpy as np

from dumpsim.core.abstract import NoneType, TensorType, TupleType
from dumpsim.core.cutting import Strategy, StrategyError
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.compilation import Find
from dumpsim.graph.effects import has_effect
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Constant, Graph, Node, Value
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.inserted import Inserter
from dumpsim.graph.parallel.lookup import fold_types
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.virtual import VIRTUAL
from dumpsim.graph.replacement import Replacements

__all__ = ["dataset_layout", "dataset_plan", "drop_markers", "insert_dataset", "insert_plans"]

_DATASET = "_VirtualDataset"
_MARKER = "ShardIdentity"


def insert_dataset(graph: Graph, forward: list[Node], settings: Settings) -> Node | None:
    """Insert a virtual data set after the arguments, as the first printed graph shows it.

    Parameters
    ----------
    graph : Graph
    forward : list of Node
        The nodes of the forward pass; the new ones come first.
    settings : Settings

    Returns
    -------
    Node or None
        The data set; None if the network has no tensors as arguments.
    """
    found = next((node for node in forward if node.op_type == _DATASET), None)
    if found is not None:
        return found
    bundles = [block.output for node in everything(forward) for block in node.blocks]
    users = [*everything(forward), *(bundle for bundle in bundles if isinstance(bundle, Node))]
    used = {id(value) for node in users for value in node.operands}
    arguments = [p for p in graph.parameters if not p.is_weight and isinstance(p.abstract, TensorType)]
    if not arguments:
        return None
    made: list[Node] = []
    anchor = Node(
        op_type=_DATASET,
        operands=[],
        abstract=NoneType(),
        text=NodeText(call_scope="Default", block_scope="Default"),
    )
    insert = Inserter(settings, made)
    dataset = insert.node(_DATASET, arguments, anchor, _DATASET, shown={"order_enforce_skip": True})
    dataset.abstract = TupleType(items=tuple(p.abstract for p in arguments))
    taken: dict[int, Value] = {}
    for at, parameter in enumerate(arguments):
        if id(parameter) in used:
            item = insert.node("TupleGetItem", [dataset, at], anchor)
            item.abstract = parameter.abstract
            taken[id(parameter)] = item
    for node in users:
        node.operands = [taken.get(id(value), value) for value in node.operands]
    graph.trail[:0] = made
    forward[:0] = made
    return dataset


def insert_plans(graph: Graph, forward: list[Node], settings: Settings, find: Find) -> None:
    """Insert a marker with the strategy after each weight that has a plan, as MindSpore does. [observed 2.10]

    Parameters
    ----------
    graph : Graph
    forward : list of Node
        The nodes of the forward pass; the new ones come first.
    settings : Settings
    find : callable
        The definition of an operator type.
    """
    rows = dict(settings.planned)
    taken: dict[int, Value] = {}
    made: list[Node] = []
    for weight in graph.parameters:
        if weight.is_weight and weight.name in rows:
            marker = Node(
                op_type=_MARKER,
                operands=[weight],
                abstract=weight.abstract,
                definition=VIRTUAL[_MARKER],
                text=NodeText(attrs={"in_strategy": (rows[weight.name],)}, call_scope="Default", block_scope="Default"),
            )
            taken[id(weight)] = marker
            made.append(marker)
    if not made:
        return
    bundles = [block.output for node in everything(forward) for block in node.blocks]
    for node in [*everything(forward), *(bundle for bundle in bundles if isinstance(bundle, Node))]:
        if not has_effect(node, find):
            node.operands = [taken.get(id(value), value) for value in node.operands]
    graph.trail[:0] = made
    forward[:0] = made


def dataset_plan(dataset: Node, settings: Settings) -> tuple[tuple[TensorLayout, ...], Strategy]:
    """Return the layouts of the arguments, and into how many parts their axes are cut."""
    layouts, rows = [], []
    assert isinstance(dataset.abstract, TupleType)
    for at, kind in enumerate(dataset.abstract.items):
        assert isinstance(kind, TensorType)
        cuts = settings.cuts(at, kind.shape)
        layouts.append(dataset_layout(settings, kind.shape, cuts))
        rows.append(cuts)
    return tuple(layouts), tuple(rows)


def dataset_layout(settings: Settings, shape: tuple[int, ...], cuts: tuple[int, ...]) -> TensorLayout:
    """Return the layout of an argument or result; the dimension of replicas is the leftmost here. [spec parallel 2.3]

    Raises
    ------
    StrategyError
        If the number of devices or the shape does not allow these cuts.
    """
    used = int(np.prod(cuts, dtype=int))
    if settings.device_num % used:
        raise StrategyError(f"the data set cannot be cut into {cuts} by {settings.device_num} devices")
    matrix = (settings.device_num // used, *cuts)
    layout = TensorLayout(matrix, tuple(range(len(shape) - 1, -1, -1)), shape)
    if not layout.fits():
        raise StrategyError(f"the data set cannot be cut into {cuts}: its shape is {shape}")
    return layout.squeezed()


def drop_markers(graph: Graph) -> None:
    """Drop the nodes that only printed graphs show."""
    _drop(graph, Replacements())


def _drop(graph: Graph, replaced: Replacements) -> None:
    kept: list[Node] = []
    for node in graph.trail:
        node.operands = replaced.operands(node)
        for block in node.blocks:
            _drop(block, replaced)
        first = node.operands[0] if node.operands else None
        if node.op_type == "TupleGetItem" and isinstance(first, Node) and first.op_type == _DATASET:
            place = node.operands[1]
            assert isinstance(place, Constant)
            replaced.put(node, first.operands[place.value])
        elif node.op_type == "_VirtualOutput":
            replaced.put(node, node.operands[0])
        elif (folded := fold_types(node)) is not None:
            replaced.put(node, folded)
        elif node.op_type != _DATASET:
            kept.append(node)
    replaced.finish(graph, kept)
