"""Gradient nodes, by which a front end represents a gradient until a pass replaces them by the backward pass.

The forward graph of a gradient is the part of the captured graph between the differentiated value and the wanted ones.
Its nodes stay in their positions, so other nodes may use its values, and passes on the forward graph need no knowledge
of gradients. The gradient node follows them, and returns one gradient for each wanted value.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.graph.custom_gradient import unrun
from dumpsim.graph.gradient_builder import Parts
from dumpsim.graph.graph import Node, Value
from dumpsim.graph.mindspore.calls import Call

__all__ = ["GRADIENT", "Differentiated", "gradient_node", "gradient_of", "outputs_of", "seed_of", "wanted_of"]

GRADIENT = "Gradient"  # the type of these nodes, which have no kernel
Shape = int | tuple["Shape", ...]  # a tensor by its index, or a tuple of them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differentiated:
    """The value that a gradient node differentiates, and properties of the gradient.

    Attributes
    ----------
    outputs : int or nested tuple
        The structure of the differentiated value; the integers are indexes of operands.
    count : int
        Number of tensors in it: the first `count` operands are its values, the next `count` their incoming gradients.
    function : Call or None
        The function that is differentiated, with the tree of its calls; None if no calls were recorded.
    around : Call or None
        The call in which the gradient is taken; it gets the nodes of the backward pass.
    nodes : sequence of Node or None
        The nodes of the forward pass, in order; by default those that the outputs depend on.
    fills : bool
        Whether the gradient of a value that the outputs do not depend on is zeros; otherwise it is None.
    sums : str
        Scope of the sums of gradients, if it is not that of the value: for a forward pass that was compiled before.
    arguments : int
        Number of wanted values that are arguments of the function; they come first.
    scope : str
        Scope of the function and so of its formal parameters, to which the sums of their gradients belong.
    formals : tuple of (str, str)
        Arguments of the network, and their names in the function.
    is_called : bool
        Whether the network also calls the function itself.
    """

    outputs: Shape
    count: int
    function: Call | None = None
    around: Call | None = None
    nodes: Sequence[Node] | None = None
    fills: bool = True
    sums: str = ""
    arguments: int = 0
    scope: str = "Default"
    formals: tuple[tuple[str, str], ...] = ()
    is_called: bool = False


def gradient_node(output: Value, seed: Any, wanted: Sequence[Value], **about: Any) -> Node:
    """Create a node that returns the gradients of `output` with respect to the `wanted` values.

    Parameters
    ----------
    output : Value
        A tensor, or nested ``MakeTuple`` nodes of tensors that are not part of the program.
    seed : Value or Parts
        The incoming gradient, in the structure of `output`.
    wanted : sequence of Value
    **about
        Fields of `Differentiated`.
    """
    leaves = list(_leaves(output))
    numbers = iter(range(len(leaves)))
    given = Differentiated(outputs=_shape(output, numbers), count=len(leaves), **about)
    return Node(
        op_type=GRADIENT,
        operands=[*leaves, *_seeds(output, seed), *wanted],
        abstract=TupleType(items=tuple(_plain(value.abstract) for value in wanted)),
        attrs={"gradient": given},
        definition=unrun(GRADIENT),
    )


def gradient_of(node: Node) -> Differentiated:
    """Return the `Differentiated` of a gradient node."""
    found: Differentiated = node.attrs["gradient"]
    return found


def outputs_of(node: Node) -> Value:
    """Return the differentiated value of a gradient node."""
    return _whole(node.operands, gradient_of(node).outputs)


def seed_of(node: Node) -> Any:
    """Return the incoming gradient of a gradient node, in the structure of its outputs."""
    given = gradient_of(node)
    return _parts(outputs_of(node), node.operands[given.count :], given.outputs)


def wanted_of(node: Node) -> list[Value]:
    """Return the values whose gradients a gradient node returns."""
    return node.operands[2 * gradient_of(node).count :]


def _leaves(value: Value) -> Iterator[Value]:
    if isinstance(value, Node) and value.op_type == "MakeTuple":
        for operand in value.operands:
            yield from _leaves(operand)
    else:
        yield value


def _shape(value: Value, numbers: Iterator[int]) -> Shape:
    if isinstance(value, Node) and value.op_type == "MakeTuple":
        return tuple(_shape(operand, numbers) for operand in value.operands)
    return next(numbers)


def _seeds(output: Value, seed: Any) -> Iterator[Value]:
    if isinstance(output, Node) and output.op_type == "MakeTuple":
        for operand, part in zip(output.operands, seed.items, strict=True):
            yield from _seeds(operand, part)
    else:
        yield seed


def _whole(values: Sequence[Value], shape: Shape) -> Value:
    if isinstance(shape, int):
        return values[shape]
    items = [_whole(values, inner) for inner in shape]
    return Node(op_type="MakeTuple", operands=items, abstract=TupleType(items=tuple(v.abstract for v in items)))


def _parts(output: Value, seeds: Sequence[Value], shape: Shape) -> Any:
    if isinstance(shape, int):
        return seeds[shape]
    assert isinstance(output, Node)
    assert isinstance(output.abstract, TupleType)
    inner = zip(output.operands, shape, strict=True)
    return Parts(abstract=output.abstract, items=tuple(_parts(value, seeds, part) for value, part in inner))


def _plain(abstract: Abstract) -> Abstract:
    """Return a type without the marks of a weight or a constant."""
    if not isinstance(abstract, TensorType):
        return abstract
    return TensorType(dtype=abstract.dtype, shape=abstract.shape)
