"""Names: numbers of operators in files and in IR text.

File names count over the process. IR text counts anew for every network, and nodes that the backend makes anew take a
further number there. [spec observed 0.17; observed 2.10]
"""

from collections.abc import Callable, Sequence

from dumpsim.graph.graph import Graph, text_of
from dumpsim.graph.sequence import is_kernel

__all__ = ["name_for_files", "name_for_text"]


class _Counter:
    """Numbers of operators in one network."""

    def __init__(self) -> None:
        self._next: dict[tuple[str, str], int] = {}

    def __call__(self, scope: str, op_type: str) -> str:
        number = self._next.get((scope, op_type), 0)
        self._next[scope, op_type] = number + 1
        return f"{scope}/{op_type}-op{number}"


def name_for_text(graphs: Sequence[Graph], functions: int) -> list[str]:
    """Give nodes their names in IR text; returns the names of the graphs' Return nodes.

    Parameters
    ----------
    graphs : sequence of Graph
        The kernel graphs of a network in order.
    functions : int
        Function graphs of the front end, whose Return nodes come first.
    """
    counter = _Counter()
    for _ in range(functions):
        counter("Default", "Return")
    nodes = [graph.nodes() for graph in graphs]
    for group in nodes:
        for node in group:
            text = text_of(node)
            if not text.is_backend and not text.full_name:
                text.full_name = counter(node.scope, node.op_type)
    returns = []
    remade: set[int] = set()
    for group in nodes:
        for node in group:
            text = text_of(node)
            if not text.full_name or (text.is_remade and id(node) not in remade):
                text.full_name = counter(node.scope, node.op_type)
                remade.add(id(node))
        returns.append(counter("Default", "Return"))
    return returns


def name_for_files(graphs: Sequence[Graph], name: Callable[[str, str], str]) -> None:
    """Give nodes their names in files and `kernels`: the process counts each operator type of a scope."""
    for graph in graphs:
        for node in graph.nodes():
            if is_kernel(node):
                node.full_name = name(node.scope, node.op_type)
            else:
                node.full_name = text_of(node).full_name
