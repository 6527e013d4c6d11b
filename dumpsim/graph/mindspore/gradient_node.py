"""Gradient nodes: what a front end leaves of a gradient, until a pass puts the backward pass in its place.

The forward graph of a gradient is the part of the captured graph between what is differentiated and what it is
differentiated by. Its nodes stay where they are, so that other nodes may use its values and passes on the forward graph
need to know nothing of gradients; the gradient node follows them and gives one gradient for each wanted value.
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

GRADIENT = "Gradient"  # the type of these nodes, which no kernel has
Shape = int | tuple["Shape", ...]  # a tensor by its place, or a tuple of them


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Differentiated:
    """What a gradient node is the gradient of.

    Attributes
    ----------
    outputs : int or nested tuple
        The structure of what is differentiated; the integers are places among the operands.
    count : int
        Tensors in it: the first `count` operands are its values, the next `count` the gradients by them.
    function : Call or None
        The function that is differentiated, with the tree of its calls. None where nobody recorded calls.
    around : Call or None
        The call in which the gradient is taken; it gets the nodes of the backward pass.
    nodes : sequence of Node or None
        The nodes of the forward pass in their order; those below the outputs where None.
    fills : bool
        Whether the gradient is zeros by what the outputs do not depend on; nothing otherwise.
    sums : str
        Scope of the sums of gradients, where it is not that of the value that they are for: of a forward pass that was
        compiled before.
    arguments : int
        Wanted values that are arguments of the function, before the others.
    scope : str
        Scope of the function and so of its formal parameters, to which the sums of gradients by arguments belong.
    formals : tuple of (str, str)
        Arguments of the network, and the names that they have in the function.
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


def gradient_node(output: Value, seed: Any, wanted: Sequence[Value], **about: Any) -> Node:
    """A node that gives the gradients of `output` by the `wanted` values.

    Parameters
    ----------
    output : Value
        A tensor, or nested ``MakeTuple`` nodes of tensors that are no part of the program.
    seed : Value or Parts
        The gradient of what follows by `output`, in its structure.
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
    """What a gradient node is the gradient of."""
    found: Differentiated = node.attrs["gradient"]
    return found


def outputs_of(node: Node) -> Value:
    """What is differentiated, as one value."""
    return _whole(node.operands, gradient_of(node).outputs)


def seed_of(node: Node) -> Any:
    """The gradient of what follows by the outputs, in their structure."""
    given = gradient_of(node)
    return _parts(outputs_of(node), node.operands[given.count : 2 * given.count], given.outputs)


def wanted_of(node: Node) -> list[Value]:
    """The values that it is the gradient by."""
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
    """A type without what makes it a weight or a constant."""
    if not isinstance(abstract, TensorType):
        return abstract
    return TensorType(dtype=abstract.dtype, shape=abstract.shape)
