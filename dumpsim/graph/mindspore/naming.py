"""Names: numbers of operators in IR text and in files.

There are two counters, so CSV files and IR differ from file names. The counter of IR text restarts with each
compilation, and counts over the network's functions in the front end's final form; nodes that the backend creates or
recreates get further numbers. The counter of files runs through the process, kernel graph by kernel graph.
[spec vendor 4]
"""

from collections.abc import Callable, Iterable, Sequence

from dumpsim.graph.compilation import OperatorNumbers
from dumpsim.graph.graph import Graph, Node, Value, text_of, topological
from dumpsim.graph.mindspore.funcgraph import FuncGraph, function_of

__all__ = ["name_for_files", "name_for_text", "name_later", "nodes_in_order"]


def nodes_in_order(root: FuncGraph) -> list[Node]:
    """Return the nodes of a function and of those that it reaches: operands from left to right, before their users.

    A function is entered where it is an operand, so a callee comes before the arguments. [spec vendor 4.1]
    """

    def needs(node: Node) -> Sequence[Value]:
        functions = [function_of(operand) for operand in node.operands]
        return [v if f is None else f.result for v, f in zip(node.operands, functions, strict=True)]

    return topological([root.result], needs)


def name_for_text(nodes: Iterable[Node], numbers: OperatorNumbers) -> None:
    """Name the nodes of the front end's final form in IR text, including Returns. [spec vendor 4.1]

    A node that the back end creates later is named in `name_later`: the first Assign of ``parameter += value``.
    """
    for node in nodes:
        if node.op_type == "Assign" and text_of(node).is_backend:
            continue
        text_of(node).full_name = numbers.full_name(node.scope, node.op_type)


def name_later(graph: Graph, order: Iterable[Node], numbers: OperatorNumbers) -> str:
    """Name the nodes of a kernel graph that the backend created or recreated; return the name of its Return.

    Parameters
    ----------
    graph : Graph
    order : iterable of Node
        Its kernels in execution order, which is also that of their numbers. [spec vendor 4.2]
    numbers : OperatorNumbers
        The counter that `name_for_text` has used.
    """
    done: set[int] = set()
    for node in (*order, *graph.nodes()):
        text = text_of(node)
        if id(node) not in done and (text.is_remade or not text.full_name):
            text.full_name = numbers.full_name(node.scope, node.op_type)
        done.add(id(node))
    return numbers.full_name("Default", "Return")


def name_for_files(graphs: Sequence[Graph], name: Callable[[str, str], str]) -> None:
    """Name nodes in files and `kernels`: the process counts each operator type of a scope.

    Nodes that do not run on the device use up numbers, too. [spec vendor 4.3]
    """
    for graph in graphs:
        for node in graph.nodes():
            node.full_name = name(node.scope, node.op_type)
