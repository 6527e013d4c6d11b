"""Gather from a table whose rows are cut: each rank looks up its own and gives zeros for the rest. [observed 2.10]"""

import numpy as np

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import DType
from dumpsim.graph.graph import Node
from dumpsim.graph.parallel.inserted import Inserter
from dumpsim.graph.parallel.plan import Plan

__all__ = ["look_up"]


def look_up(node: Node, kind: DType, plan: Plan, insert: Inserter, rank: int) -> Node:
    """Let a Gather take the row numbers of this rank's part; its result is zero for rows of other ranks.

    Parameters
    ----------
    node : Node
        The Gather, which is already in the program, as the last node.
    kind : DType
        Number type of the row numbers.
    plan : Plan
    insert : Inserter
    rank : int

    Returns
    -------
    Node
        What the ranks have to sum.
    """
    table, ids = plan.layouts.inputs[0], node.operands[1]
    rows = table.slice_shape[0]
    offset = np.array(table.index(rank, 0) * rows, kind.numpy)
    insert.take_back(node)
    own = insert.node("Sub", [ids, offset], node)
    kept = insert.node("Minimum", [insert.node("ReLU", [own], node), np.array(rows - 1, kind.numpy)], node)
    node.operands[1] = kept
    insert.put(node)
    found = insert.node("Equal", [own, kept], node)
    assert isinstance(node.abstract, TensorType)
    mask = insert.node("Cast", [found, node.abstract.dtype], node)
    for _ in range(len(table.shape) - 1):
        mask = insert.node("ExpandDims", [mask, -1], node)
    return insert.node("Mul", [node, mask], node)
