"""OneHot with its classes split over ranks: each rank computes the classes of its part. [observed 2.10]"""

from typing import Any

import numpy as np

from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Node, text_of
from dumpsim.graph.parallel.group import hashed
from dumpsim.graph.parallel.inserted import Inserter
from dumpsim.graph.parallel.plan import Plan

__all__ = ["cut_classes"]


def cut_classes(node: Node, plan: Plan, insert: Inserter, rank: int) -> None:
    """Change the indices of a OneHot: relative to this rank's classes, and -1 for classes of other ranks.

    Parameters
    ----------
    node : Node
        The OneHot, which is already in the program, as the last node.
    plan : Plan
    insert : Inserter
    rank : int
    """
    (output,) = plan.layouts.outputs
    axis = node.operands[4].value if len(node.operands) > 4 and isinstance(node.operands[4], Constant) else -1
    at = axis % len(output.shape)
    if output.cuts[at] == 1:
        return
    classes = output.slice_shape[at]
    base = hashed(text_of(node).instance_name or "")
    number = 0

    def put(op_type: str, *operands: Any) -> Node:
        nonlocal number
        number += 1
        values = [np.array(v, np.int32) if isinstance(v, int) else v for v in operands]
        return insert.node(op_type, values, node, f"{base}{number}")

    insert.take_back(node)
    ids = node.operands[0]
    part = put("FloorDiv", ids, classes)  # of the ranks' classes
    within = put("Sub", ids, put("Mul", part, classes))
    mine = put("Cast", put("Equal", part, output.index(rank, at)), dtype("int32"))
    # (index + 1) * mine - 1
    own = put("Sub", put("Mul", mine, put("Add", put("Mul", within, mine), 1)), 1)
    node.operands[0] = own
    node.operands[1] = constant(classes)
    text = text_of(node)
    text.variable, text.instance_name = "", f"{base}OneHot{number + 1}"
    for made in (part, within):
        text_of(made).node_attrs["in_strategy"] = plan.strategy
    text.attrs.clear()
    insert.put(node)
