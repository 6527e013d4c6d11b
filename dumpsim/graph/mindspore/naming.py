"""Names: numbers of operators in IR text and in files.

Two counters, which is why csv and IR differ from file names. IR text counts anew with each compile, over the network's
functions as the front end leaves them; nodes that the backend makes (anew) later take further numbers. Files count over
the process, kernel graph by kernel graph. [spec vendor 4]
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from dumpsim.graph.compilation import OperatorNumbers
from dumpsim.graph.graph import Graph, Node, Value, text_of, topological
from dumpsim.graph.mindspore.funcgraph import FuncGraph, function_of

__all__ = ["name_for_files", "name_for_text", "name_later", "nodes_in_order"]


def nodes_in_order(root: FuncGraph) -> list[Node]:
    """The nodes of a function and of all that it reaches: operands left to right, each before its user.

    A function is entered where it stands as an operand; so a callee comes before the arguments. [spec vendor 4.1]
    """

    def needs(node: Node) -> Sequence[Value]:
        functions = [function_of(operand) for operand in node.operands]
        return [v if f is None else f.result for v, f in zip(node.operands, functions, strict=True)]

    return topological([root.result], needs)


def name_for_text(root: FuncGraph, numbers: OperatorNumbers) -> None:
    """Give the nodes of the front end's last form their names in IR text, Returns included. [spec vendor 4.1]"""
    for node in nodes_in_order(root):
        text_of(node).full_name = numbers.full_name(node.scope, node.op_type)


def name_later(graph: Graph, order: Iterable[Node], numbers: OperatorNumbers) -> str:
    """Name the nodes of a kernel graph that the backend made, or made anew; returns the name of its Return.

    Parameters
    ----------
    graph : Graph
    order : iterable of Node
        Its kernels in execution order. The numbers of what has no name yet follow it, as kernels are selected in it,
        those of one expansion from its result backwards; the numbers of nodes that are made anew follow the graph,
        operands before users. [spec vendor 4.2; observed 2.10: 33 of 33 groups made anew of the corpus]
    numbers : OperatorNumbers
        The counter that `name_for_text` began.
    """
    nodes = graph.nodes()
    fresh = [node for node in nodes if text_of(node).is_remade]
    remade = {id(node) for node in fresh}
    for node in (*_selected(order), *nodes):
        text = text_of(node)
        if not text.full_name and id(node) not in remade:
            text.full_name = numbers.full_name(node.scope, node.op_type)
    for node in fresh:
        text_of(node).full_name = numbers.full_name(node.scope, node.op_type)
    return numbers.full_name("Default", "Return")


def _selected(order: Iterable[Node]) -> Iterator[Node]:
    """Kernels as they are selected: an expansion as a whole at its first node, from its results backwards."""
    kernels = list(order)
    pieces: dict[int, list[Node]] = {}
    for node in kernels:
        pieces.setdefault(id(text_of(node).composite or node), []).append(node)
    for node in kernels:
        yield from _from_results(pieces.pop(id(text_of(node).composite or node), []))


def _from_results(nodes: Sequence[Node]) -> Iterator[Node]:
    """Some nodes breadth-first: those that no other one uses, then their operands."""
    used = {id(operand) for node in nodes for operand in node.operands}
    left = {id(node): node for node in nodes}
    queue = deque(node for node in nodes if id(node) not in used)
    while queue:
        node = queue.popleft()
        if left.pop(id(node), None) is not None:
            yield node
            queue.extend(left[id(operand)] for operand in node.operands if id(operand) in left)


def name_for_files(graphs: Sequence[Graph], name: Callable[[str, str], str]) -> None:
    """Give nodes their names in files and `kernels`: the process counts each operator type of a scope.

    Nodes that no device runs take numbers, too. [spec vendor 4.3]
    """
    for graph in graphs:
        for node in graph.nodes():
            node.full_name = name(node.scope, node.op_type)
