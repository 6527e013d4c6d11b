"""The library functions that the vendor numbers while it builds the gradient of a ``jit`` function.

A function gets a number when it is printed for the first time, and the compiler prints a function when it calls it
again with types that it has already evaluated. For the gradient of a graph, these functions are the zeros of an unused
output and the sum of two gradients of a value. Each sum and each tuple of zeros is a separate function, which calls one
of two shared leaves for each of its tensors. [observed 2.10: a traced compiler, 44 functions]
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.graph.graph import Node, Parameter, Value

__all__ = ["operators", "others"]

_ZEROS, _SUM = "zeros_like", "add_backward"


def operators(nodes: Sequence[Node], results: Iterable[Value]) -> frozenset[str]:
    """Return the leaves that are printed; each gets a number once in a process.

    The zeros of a weight's monad, or of an element of a tuple, are created more than once. Sums are created more than
    once if two have the same type.
    """
    found = set()
    used = [operand for node in nodes for operand in node.operands]
    if any(isinstance(value, Parameter) and value.is_weight for value in used) or any(map(_is_element, nodes)):
        found.add(_ZEROS)
    types: Counter[object] = Counter()
    values = {id(value): value for value in (*used, *results) if isinstance(value, (Node, Parameter))}
    uses = Counter(id(value) for value in (*used, *results))
    for key, value in values.items():
        for kind in set(_parts(value.abstract)):
            types[kind] += uses[key] - 1
    if any(count > 1 for count in types.values()):
        found.add(_SUM)
    return frozenset(found)


def others(nodes: Sequence[Node]) -> int:
    """Return how many numbers are used by functions that are created for each gradient.

    An element of a tuple needs zeros of the whole tuple, and the function that creates them is printed if two items of
    the tuple have the same type; so is the sum of two tuples. A function nested in that of a tensor's zeros is printed
    too.
    """
    elements = [node for node in nodes if _is_element(node)]
    uses = Counter(id(node.operands[0]) for node in elements)
    tuples = {id(node.operands[0]): node.operands[0] for node in elements}
    sums = [value for key, value in tuples.items() for _ in range(uses[key] - 1)]
    whole = [*(node.operands[0] for node in elements), *sums]
    return bool(elements) + sum(_repeats(value.abstract) for value in whole)


def _is_element(node: Node) -> bool:
    return node.op_type == "TupleGetItem"


def _parts(abstract: Abstract) -> list[object]:
    """Return the types of the items of a value, regardless of the Parameters they refer to."""
    parts = abstract.items if isinstance(abstract, TupleType) else (abstract,)
    return [(part.dtype, part.shape) if isinstance(part, TensorType) else part for part in parts]


def _repeats(abstract: Abstract) -> bool:
    parts = _parts(abstract)
    return len(set(parts)) < len(parts)
