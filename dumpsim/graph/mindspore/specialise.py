"""Specialisation: the order in which functions of a network get their numbers."""

from collections.abc import Iterable

from dumpsim.graph.graph import Node
from dumpsim.graph.mindspore.funcgraph import FuncGraph, function_of

__all__ = ["specialised"]


def specialised(root: FuncGraph) -> list[FuncGraph]:
    """The functions in the order in which the vendor specialises them, the root first.

    The nodes of a function are visited breadth-first from its result, nodes of functions around it too, and each once
    in the network. A function that a node uses and that has not been met is specialised at once. [spec vendor 2.6]

    Parameters
    ----------
    root : FuncGraph
        Functions that use values of functions around them as they are, before these are lifted.
    """
    order: list[FuncGraph] = []
    met: set[int] = set()
    done: set[int] = set()

    def specialise(function: FuncGraph) -> None:
        met.add(id(function))
        order.append(function)
        for node in _by_breadth(function.result):
            if id(node) in done:
                continue
            for operand in node.operands:
                inner = function_of(operand)
                if inner is not None and id(inner) not in met:
                    specialise(inner)
            done.add(id(node))

    specialise(root)
    return order


def _by_breadth(result: Node) -> Iterable[Node]:
    order, seen = [result], {id(result)}
    for node in order:
        for operand in node.operands:
            if isinstance(operand, Node) and id(operand) not in seen:
                seen.add(id(operand))
                order.append(operand)
    return order
