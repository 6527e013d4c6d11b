"""Products of two matrices that are both cut along both axes: each rank gathers the rows and columns of its part.

[observed 2.10]
"""

from dataclasses import replace
from itertools import count

from dumpsim.core.tensorlayout import WHOLE, TensorLayout, dims_of
from dumpsim.graph.graph import Node, Value, text_of
from dumpsim.graph.parallel.group import hashed
from dumpsim.graph.parallel.inserted import Inserter
from dumpsim.graph.parallel.plan import Plan

__all__ = ["gather_operands", "operand_layouts"]


def operand_layouts(plan: Plan) -> tuple[TensorLayout, ...]:
    """Return the layouts of a kernel's operands; for a product that gathers them, those after the gathering."""
    if not plan.scheme.gathers:
        return plan.layouts.inputs
    rows, columns = plan.layouts.inputs
    return (
        replace(rows, tensor_map=(rows.tensor_map[0], WHOLE)),
        replace(columns, tensor_map=(WHOLE, columns.tensor_map[1])),
    )


def gather_operands(node: Node, plan: Plan, insert: Inserter, rank: int) -> None:
    """Gather whole rows of a product's first operand and whole columns of its second one."""
    base = hashed(text_of(node).instance_name or "")
    numbers = count(1)

    def gathered(value: Value, at: int, axis: int) -> Value:
        layout = plan.layouts.inputs[at]
        parts = layout.cuts[axis]
        if parts == 1:
            return value
        ranks = layout.group(dims_of(layout.tensor_map[axis]), rank)
        whole = insert.all_gather(value, ranks, node, f"{base}AllGather{next(numbers)}")
        text_of(whole).node_attrs["in_strategy"] = plan.strategy
        if not axis:
            return whole
        split = insert.node("Split", [whole, 0, parts], node, f"{base}Split{next(numbers)}")
        last = [next(numbers) for _ in range(parts)][-1]  # the items share one primitive, named by the last one
        items = [insert.node("TupleGetItem", [split, part], node, f"{base}{last}") for part in range(parts)]
        return insert.node("Concat", [insert.node("MakeTuple", items, node), axis], node, f"{base}{next(numbers)}")

    node.operands[0] = gathered(node.operands[0], 0, 1)
    node.operands[1] = gathered(node.operands[1], 1, 0)
    text = text_of(node)
    text.instance_name = f"{base}{next(numbers)}"
    text.attrs.clear()
