"""Names: numbers of operators in IR text and in files.

Two counters, which is why csv and IR differ from file names. IR text counts anew with each compile, over the network's
functions as the front end leaves them; nodes that the backend makes (anew) later take further numbers. Files count over
the process, kernel graph by kernel graph. [spec vendor 4]
"""

from collections.abc import Callable, Iterable, Sequence

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


def name_for_text(nodes: Iterable[Node], numbers: OperatorNumbers) -> None:
    """Give the nodes of the front end's last form their names in IR text, Returns included. [spec vendor 4.1]

    What a pass of the back end makes later gets its name in `name_later`: the first Assign of ``parameter += value``.
    """
    for node in nodes:
        if node.op_type == "Assign" and text_of(node).is_backend:
            continue
        text_of(node).full_name = numbers.full_name(node.scope, node.op_type)


def name_later(graph: Graph, order: Iterable[Node], numbers: OperatorNumbers) -> str:
    """Name the nodes of a kernel graph that the backend made, or made anew; returns the name of its Return.

    Parameters
    ----------
    graph : Graph
    order : iterable of Node
        Its kernels in execution order, which their numbers follow. [spec vendor 4.2]
    numbers : OperatorNumbers
        The counter that `name_for_text` began.
    """
    done: set[int] = set()
    for node in (*order, *graph.nodes()):
        text = text_of(node)
        if id(node) not in done and (text.is_remade or not text.full_name):
            text.full_name = numbers.full_name(node.scope, node.op_type)
        done.add(id(node))
    return numbers.full_name("Default", "Return")


def name_for_files(graphs: Sequence[Graph], name: Callable[[str, str], str]) -> None:
    """Give nodes their names in files and `kernels`: the process counts each operator type of a scope.

    Nodes that no device runs take numbers, too. [spec vendor 4.3]
    """
    for graph in graphs:
        for node in graph.nodes():
            node.full_name = name(node.scope, node.op_type)
