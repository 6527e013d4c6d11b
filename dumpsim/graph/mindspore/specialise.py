"""Specialisation: the order in which functions of a network get their numbers."""

from collections.abc import Iterable, Sequence

from dumpsim.graph.graph import Node, Value
from dumpsim.graph.mindspore.funcgraph import FuncGraph, called_by, function_of

__all__ = ["specialised"]


def specialised(root: FuncGraph, *, is_lifted: bool = False) -> list[FuncGraph]:
    """Return the functions in the order in which the vendor specialises them, the root first.

    The nodes of a function are visited breadth-first from its result, including nodes of enclosing functions, and each
    once in the network. A new function that a node uses is specialised immediately. [spec vendor 2.6] The closures of
    functions that are differentiated are already lifted: calls have the outer values as operands.
    [source ad/grad.cc LiftFvMulti]

    Parameters
    ----------
    root : FuncGraph
        The network's function.
    is_lifted : bool
        Whether all closures are lifted.
    """
    order: list[FuncGraph] = []
    met: set[int] = set()
    done: set[int] = set()

    def specialise(function: FuncGraph, around: frozenset[int]) -> None:
        met.add(id(function))
        order.append(function)
        closed = around if is_lifted else around | _lifted(function)
        for node in _by_breadth(function, closed, is_lifted=is_lifted):
            if id(node) in done:
                continue
            for operand in node.operands:
                inner = function_of(operand)
                if inner is not None and id(inner) not in met:
                    specialise(inner, closed)
            done.add(id(node))

    specialise(root, frozenset())
    return order


def _by_breadth(function: FuncGraph, closed: frozenset[int], *, is_lifted: bool) -> Iterable[Node]:
    order, seen = [function.result], {id(function.result)}
    for node in order:
        for operand in node.operands if is_lifted else _operands(node):
            if isinstance(operand, Node) and id(operand) not in seen | closed:
                seen.add(id(operand))
                order.append(operand)
    return order


def _lifted(function: FuncGraph) -> frozenset[int]:
    """Return the ids of the values that are lifted parameters of a function, or of the one whose gradient it is."""
    around = function.forward or function
    return frozenset(map(id, around.order)) if around.is_differentiated else frozenset()


def _operands(node: Node) -> Sequence[Value]:
    if node.op_type != "Call":
        return node.operands
    taken = [value for called in called_by(node) if called.is_differentiated for value in called.order]
    return [node.operands[0], *taken, *node.operands[1:]]
