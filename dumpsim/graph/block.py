"""Blocks: graphs inside of control nodes, during capture or construction."""

from collections.abc import Iterator
from contextlib import contextmanager

from dumpsim.graph.graph import Graph

__all__ = ["opened"]


@contextmanager
def opened(graphs: list[Graph], name: str) -> Iterator[Graph]:
    """Open a new graph as the innermost one of `graphs`.

    Examples
    --------
    >>> graphs = [Graph(name="net")]
    >>> with opened(graphs, "body"):
    ...     print([graph.name for graph in graphs])
    ['net', 'body']
    >>> [graph.name for graph in graphs]
    ['net']
    """
    graph = Graph(name=name)
    graphs.append(graph)
    try:
        yield graph
    finally:
        graphs.pop()
