"""Strategies of operators without one, derived from the layouts of their operands; the vendor searches by cost."""

from collections.abc import Mapping, Sequence
from typing import Any

from dumpsim.core.abstract import TensorType
from dumpsim.core.cutting import Strategy, StrategyError
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.graph import Constant, Node
from dumpsim.graph.parallel.plan import Plan, edges_of, plan_of, source_of
from dumpsim.graph.parallel.settings import Settings

__all__ = ["plan_propagated", "propagated"]

_PRODUCTS = frozenset({"MatMul", "BatchMatMul"})


def propagated(
    op_type: str, shapes: Sequence[tuple[int, ...]], sources: Sequence[TensorLayout | None], *, transposed: bool = False
) -> Strategy | None:
    """Return the strategy that leaves the first operand with a layout unchanged; None if no operand has one.

    Other operands are cut in the same way along axes of equal extent, counted from the last one. In products of
    matrices, the second operand is cut like the first along the axis that is summed.

    Examples
    --------
    >>> rows = TensorLayout((2,), (0, -1), (16, 32))
    >>> propagated("Add", [(16, 32), (32,)], [rows, None])
    ((2, 1), (1,))
    >>> propagated("MatMul", [(16, 32), (32, 8)], [TensorLayout((2,), (-1, 0), (16, 32)), None])
    ((1, 2), (2, 1))
    """
    first = next((at for at, one in enumerate(sources) if one is not None and one.shape == shapes[at]), None)
    if first is None:
        return None
    source = sources[first]
    assert source is not None
    cuts = source.cuts
    if op_type in _PRODUCTS:
        if first:
            return None
        batch = _alike(shapes[1][:-2], shapes[0][:-2], cuts[:-2])
        return cuts, (*batch, *((1, cuts[-1]) if transposed else (cuts[-1], 1)))
    return tuple(_alike(shape, shapes[first], cuts) for shape in shapes)


def _alike(shape: tuple[int, ...], model: tuple[int, ...], cuts: tuple[int, ...]) -> tuple[int, ...]:
    offset = len(model) - len(shape)
    return tuple(
        cuts[axis + offset] if axis + offset >= 0 and model[axis + offset] == extent else 1
        for axis, extent in enumerate(shape)
    )


def plan_propagated(
    node: Node, settings: Settings, attrs: Mapping[str, Any], results: Mapping[int, Sequence[TensorLayout | None]]
) -> Plan:
    """Return the plan of an operator without a strategy, which leaves the layout of its operands unchanged.

    Parameters
    ----------
    node : Node
    settings : Settings
    attrs : mapping
        Attributes of the operator that the script has set.
    results : mapping
        The layouts of the outputs of earlier nodes, by the ids of the nodes.
    """
    sources = [source_of(edge.value) for edge in edges_of(node)]
    layouts = [results.get(id(root), ())[index : index + 1] for root, index in sources]
    shapes = [e.value.abstract.shape for e in edges_of(node) if isinstance(e.value.abstract, TensorType)]
    flag = node.operands[3] if node.op_type in _PRODUCTS else None
    rows = propagated(
        node.op_type,
        shapes,
        [found[0] if found else None for found in layouts],
        transposed=isinstance(flag, Constant) and bool(flag.value),
    )
    try:
        return plan_of(node, settings, attrs, rows)
    except StrategyError:
        return plan_of(node, settings, attrs)
