"""Numbers that function graphs use up: those of branches and loops are named from the same counter as nodes.

[fitted 2.10: the first ``CNode_N`` of the kernel graphs of the networks in fixtures/mindspore_2_10/cnode_numbers.json,
see tests/end_to_end/test_cnode_numbers.py; the numbers are ids that the vendor's compiler assigns when it first
prints or names something, so no rule for all networks is known, spec vendor 7]
"""

from collections.abc import Iterator

from dumpsim.core.abstract import tensors_of
from dumpsim.graph.compilation import Functions
from dumpsim.graph.graph import Graph, Node, Value

__all__ = ["function_numbers"]

_ROOT = 2  # the network's own function, before and after optimization
_BRANCH = 4  # both sides of an ``if``, before and after optimization
_LOOP = 5  # body and continuation of a ``while``, before and after, and its header


def function_numbers(graph: Graph) -> Functions:
    """Return the numbers that the function graphs of a captured network use up.

    Examples
    --------
    >>> function_numbers(Graph(name="no control flow"))
    Functions(count=1, before=2, after=0)
    """
    before, after = _ROOT + _is_dynamic(graph), 0
    for node, rest, in_loop in _control(graph, in_loop=False):
        after += 2
        if node.op_type == "If":
            before += _BRANCH + (in_loop and _does_something(rest))
        else:
            before += _LOOP + _is_specialized(node)
    return Functions(before=before, after=after)


def _is_dynamic(graph: Graph) -> bool:
    """Whether a shape is only known at run time: the network's function is then named for the analysis of shapes."""
    values: list[Value] = [*graph.parameters, *graph.trail]
    return any(-1 in tensor.shape for value in values for tensor in tensors_of(value.abstract))


def _control(graph: Graph, *, in_loop: bool) -> Iterator[tuple[Node, list[Node], bool]]:
    """Yield all control nodes with the nodes after them in their block, and whether they are inside of a loop."""
    for place, node in enumerate(graph.trail):
        if node.op_type in ("If", "While"):
            yield node, graph.trail[place + 1 :], in_loop
            for block in node.blocks:
                yield from _control(block, in_loop=in_loop or node.op_type == "While")


def _does_something(rest: list[Node]) -> bool:
    """Whether statements follow, for which there is a function that both sides call."""
    return any(node.op_type not in ("TupleGetItem", "MakeTuple") for node in rest)


def _is_specialized(loop: Node) -> bool:
    """Whether the header is named, because the compiler tries to merge additions of the body."""
    return any(node.op_type == "Add" for node in loop.blocks[1].trail)
