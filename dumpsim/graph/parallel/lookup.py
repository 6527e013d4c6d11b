"""Gather from a table whose rows are split over ranks: each returns its own rows, zeros for others. [observed 2.10]"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Node, Value, text_of
from dumpsim.graph.parallel.group import hashed
from dumpsim.graph.parallel.inserted import Inserter
from dumpsim.graph.parallel.plan import Plan

__all__ = ["LOOKUP_NODES", "fold_types", "look_up"]

# in the vendor's order of creation, which gives the numbers in instance names
_MADE = (
    *("Sub", "ReLU", "Minimum", "Equal", "Gather", "DType", "DtypeToEnum"),
    *("Cast", "ExpandDims", "Mul", "Communication"),
)
LOOKUP_NODES = frozenset({"DType", "DtypeToEnum"})  # folded to types before kernels are selected


def look_up(node: Node, kind: DType, plan: Plan, insert: Inserter, rank: int) -> tuple[Node, str]:
    """Change the row numbers of a Gather to those of this rank's part; its result is zero for rows of other ranks.

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
        The value to be summed over the ranks.
    str
        Instance name of the communication that sums, with ``{}`` for the name of the operator.
    """
    table, ids = plan.layouts.inputs[0], node.operands[1]
    rows = table.slice_shape[0]
    offset = np.array(table.index(rank, 0) * rows, kind.numpy)
    base = hashed(text_of(node).instance_name or "")
    numbers = {op_type: at for at, op_type in enumerate(_MADE, 1)}

    def put(op_type: str, operands: Sequence[Any]) -> Node:
        return insert.node(op_type, operands, node, f"{base}{numbers[op_type]}")

    insert.take_back(node)
    own = put("Sub", [ids, offset])
    clipped = put("Minimum", [put("ReLU", [own]), np.array(rows - 1, kind.numpy)])
    node.operands[1] = clipped
    text = text_of(node)
    text.variable, text.instance_name = "", f"{base}{numbers['Gather']}"
    for made in (node, own):
        text_of(made).node_attrs["in_strategy"] = plan.strategy
    text.attrs.clear()
    insert.put(node)
    found = put("Equal", [own, clipped])
    number = put("DtypeToEnum", ["DtypeToEnum", "dtype", put("DType", [node])])
    mask = put("Cast", [found, number])
    for _ in range(len(table.shape) - 1):
        mask = put("ExpandDims", [mask, -1])
    return put("Mul", [node, mask]), f"{base}{{}}{numbers['Communication']}"


def fold_types(node: Node) -> Value | None:
    """Return the number type that a node of `LOOKUP_NODES` computes; None for other nodes.

    Examples
    --------
    >>> from dumpsim.core.abstract import NoneType, TensorType
    >>> from dumpsim.core.dtype import dtype
    >>> x = Node(op_type="Gather", operands=[], abstract=TensorType(dtype=dtype("float16"), shape=(2,)))
    >>> fold_types(Node(op_type="DType", operands=[x], abstract=NoneType())).value.name
    'float16'
    """
    if node.op_type == "DType":
        kind = node.operands[0].abstract
        return constant(getattr(kind, "dtype", None))
    return node.operands[2] if node.op_type == "DtypeToEnum" else None
