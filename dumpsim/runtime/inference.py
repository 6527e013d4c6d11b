"""The types of the values of one plan: those of the graph, or those inferred from the shapes of its arguments."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dumpsim.core.abstract import Abstract, MonadType, NoneType, ScalarType, TensorType, TupleType
from dumpsim.core.errors import DumpsimError, UnsupportedError
from dumpsim.graph.graph import Constant, Node, Value, definition_of
from dumpsim.graph.program import KernelGraph
from dumpsim.ops.opdef import OpDef

__all__ = ["FIRST", "ITEMS", "TUPLES", "Inference", "leaves"]

# nodes that pass a value on or order side effects, without a kernel
FIRST = frozenset({"Load", "Depend", "StopGradient"})
TUPLES = frozenset({"MakeTuple", "MakeList"})
ITEMS = frozenset({"TupleGetItem", "ListGetItem"})


class Inference:
    """Infers types in the order of execution.

    Parameters
    ----------
    kernel_graph : KernelGraph
    find : callable
        The definition of an operator type.
    shapes : sequence of tuple of int, optional
        Shapes of the arguments where the graph leaves them open.
    """

    def __init__(
        self,
        kernel_graph: KernelGraph,
        find: Callable[[str], OpDef],
        shapes: Sequence[tuple[int, ...]] | None,
    ) -> None:
        self._find = find
        self._dynamic = shapes is not None
        self._inferred: dict[int, Abstract] = {}  # of a graph with open shapes: the types of this plan
        self._largest: dict[int, Abstract] = {}  # of values of open shape: the types with the largest extents
        for parameter, shape in zip(kernel_graph.arguments, shapes or (), strict=False):
            self._inferred[id(parameter)] = replace(parameter.abstract, shape=shape)

    def of(self, value: Value) -> Abstract:
        """Return the type of a value."""
        return self._inferred.get(id(value), value.abstract)

    def upper_bound(self, value: Value) -> Abstract:
        """Return the type of a value with the largest extents that it can have; -1 if they are not known."""
        return self._largest.get(id(value), self.of(value))

    def visit(self, node: Node) -> None:
        """Infer the type of the next node, whose operands were visited before."""
        if self._dynamic and not isinstance(node.abstract, MonadType):
            self._inferred[id(node)] = self._result(node, [self.of(operand) for operand in node.operands])
        if _has_open_shape(self.of(node)):
            self._largest[id(node)] = self._with_largest(node)

    def _result(self, node: Node, operands: Sequence[Abstract]) -> Abstract:
        """The type of a node's result for operands of these types."""
        if node.op_type in FIRST:
            return operands[0]
        if node.op_type in TUPLES:
            return TupleType(items=tuple(operands))
        if node.op_type in ITEMS:
            assert isinstance(operands[0], TupleType)
            assert isinstance(node.operands[1], Constant)
            item: Abstract = operands[0].items[node.operands[1].value]
            return item
        definition = definition_of(node, self._find)
        typed = [operand for operand in operands if not isinstance(operand, MonadType)]
        return definition.output_type(typed, {**definition.attrs, **node.attrs})

    def _with_largest(self, node: Node) -> Abstract:
        """The type of a node of open shape with the largest extents that it can have."""
        operands = [self.upper_bound(operand) for operand in node.operands]
        try:
            inferred = self._result(node, operands)
        except (DumpsimError, ValueError, TypeError):  # e.g. operands of equal shape with different upper bounds
            return self.of(node)
        if node.op_type in FIRST | TUPLES | ITEMS:
            return inferred
        shape_of = definition_of(node, self._find).largest
        shapes = [operand.shape for operand in operands if isinstance(operand, TensorType)]
        if shape_of is None or any(-1 in shape for shape in shapes):
            return inferred
        first, *others = inferred.items if isinstance(inferred, TupleType) else (inferred,)
        assert isinstance(first, TensorType)
        first = replace(first, shape=shape_of(shapes))
        return TupleType(items=(first, *others)) if isinstance(inferred, TupleType) else first


def _has_open_shape(abstract: Abstract) -> bool:
    """Whether a tensor of the type has an extent that only the run knows."""
    if isinstance(abstract, TupleType):
        return any(_has_open_shape(item) for item in abstract.items)
    return isinstance(abstract, TensorType) and -1 in abstract.shape


def leaves(abstract: Abstract) -> Iterator[TensorType | ScalarType]:
    """Yield the types of the values that a kernel returns, tuples flattened."""
    if isinstance(abstract, (TensorType, ScalarType)):
        yield abstract
    elif isinstance(abstract, TupleType):
        for item in abstract.items:
            yield from leaves(item)
    elif not isinstance(abstract, (MonadType, NoneType)):
        raise UnsupportedError(f"a kernel cannot return a {type(abstract).__name__}")
