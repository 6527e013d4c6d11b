"""How the tensors of a split network are distributed over the ranks, by their names in dumps."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dumpsim.core.abstract import MonadType, TensorType
from dumpsim.core.tensorlayout import Axis, TensorLayout
from dumpsim.graph.graph import Constant, Node, Parameter, Value
from dumpsim.graph.parallel.inserted import is_communication
from dumpsim.graph.parallel.sharding import Sharding, Slices
from dumpsim.graph.program import KernelGraph, Program
from dumpsim.graph.sequence import flat_operands

__all__ = ["TensorSlices", "slices_of"]

_MASKED = frozenset({"Gather"})  # rows of other ranks become zeros after it


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSlices:
    """One tensor of a kernel graph.

    Attributes
    ----------
    graph_id : int
    op : str
        Full name of the operator, or name of the argument or weight.
    io : str
        ``input`` or ``output``.
    slot : int
    device_matrix, tensor_map, shape
        Those of its `TensorLayout`.
    summed : tuple of int
        Device dimensions along which the ranks have terms of a sum.
    """

    graph_id: int
    op: str
    io: str
    slot: int
    device_matrix: tuple[int, ...]
    tensor_map: tuple[Axis, ...]
    shape: tuple[int, ...]
    summed: tuple[int, ...] = ()


def slices_of(program: Program) -> Iterator[TensorSlices]:
    """Yield the tensors of a program whose layouts are known; nothing for a network that is not split."""
    if program.sharding is not None:  # the communication after a sum takes what the sum's operator gives
        yield from dict.fromkeys(_every(program, program.sharding))


def _every(program: Program, sharding: Sharding) -> Iterator[TensorSlices]:
    """Yield the tensors of a split network, some of them twice."""
    for graph in program.kernel_graphs:
        graph_id = graph.model_id if graph.model_name else graph.graph_id  # as in dumps of whole graphs
        reduced = _reduced(graph)
        for node in graph.order:
            parts = node.members or (node,)
            if parts[0] in sharding.inputs:
                yield from _operands(graph_id, node, parts[0], sharding)
            elif not node.members:  # the layouts of a fused operator are unknown
                yield from _taken(graph_id, node, parts[0], sharding)
            if parts[-1] in sharding.layouts:
                yield from _results(graph_id, node, parts[-1], sharding, reduced)
            elif not node.members:
                yield from _given(graph_id, node, parts[-1], sharding)
        for parameter in graph.graph.parameters:
            layout = _layout_of(parameter, sharding)
            if layout is not None:
                yield _slices(graph_id, parameter.name, "output", 0, layout)


def _taken(graph_id: int, node: Node, part: Node, sharding: Sharding) -> Iterator[TensorSlices]:
    """Yield operands of a node of a backward pass or an optimizer, with the layouts of their sources."""
    operands = [value for value in flat_operands(part) if not isinstance(value.abstract, MonadType)]
    for slot, value in enumerate(operands):
        found = _known(value, sharding)
        if found is not None and _fits(value, found.layout):
            yield _slices(graph_id, node.full_name, "input", slot, found.layout, found.summed)


def _given(graph_id: int, node: Node, part: Node, sharding: Sharding) -> Iterator[TensorSlices]:
    """Yield the result of a node of a backward pass, or of an optimizer: the weight that it writes."""
    found = sharding.gradients.get(part)
    first = part.operands[0] if part.operands else None
    if found is None and part.op_type.startswith("Apply") and first is not None:
        found = _known(first, sharding)
    if found is not None and _fits(part, found.layout):
        yield _slices(graph_id, node.full_name, "output", 0, found.layout, found.summed)


def _known(value: Value, sharding: Sharding) -> Slices | None:
    """Return the layout of a weight, an argument, a split operator's result or a value of a backward pass."""
    index = 0
    while isinstance(value, Node) and value.op_type in ("TupleGetItem", "Load", "Depend"):
        if value.op_type == "TupleGetItem":
            place = value.operands[1]
            assert isinstance(place, Constant)
            index = place.value
        value = value.operands[0]
    if isinstance(value, Parameter):
        layout = _layout_of(value, sharding)
        return None if layout is None else Slices(layout)
    if not isinstance(value, Node):
        return None
    maker = sharding.reduced.get(value, value)
    layouts = sharding.layouts.get(maker, ())
    if index >= len(layouts):
        return sharding.gradients.get(value)
    if maker is not value or sharding.reductions.get(maker) is None:
        return Slices(layouts[index])
    is_sum = sharding.reductions[maker] == "sum" and maker.op_type not in _MASKED
    return Slices(layouts[index], sharding.terms(maker)) if is_sum else None


def _slices(
    graph_id: int, op: str, io: str, slot: int, layout: TensorLayout, summed: tuple[int, ...] = ()
) -> TensorSlices:
    return TensorSlices(
        graph_id=graph_id,
        op=op,
        io=io,
        slot=slot,
        device_matrix=layout.device_matrix,
        tensor_map=layout.tensor_map,
        shape=layout.shape,
        summed=summed,
    )


def _operands(graph_id: int, node: Node, part: Node, sharding: Sharding) -> Iterator[TensorSlices]:
    """Yield the operands of a node, into which `part` was fused first."""
    layouts = iter(sharding.inputs.get(part, ()))
    operands = [value for value in flat_operands(part) if not isinstance(value.abstract, MonadType)]
    for slot, value in enumerate(operands):
        layout = next(layouts, None) if isinstance(value.abstract, TensorType) else None
        if slot and part.op_type in _MASKED and part in sharding.reductions:
            return  # row numbers relative to the rank's part
        if layout is not None and _fits(value, layout):
            yield _slices(graph_id, node.full_name, "input", slot, layout)


def _results(
    graph_id: int, node: Node, part: Node, sharding: Sharding, reduced: Mapping[int, Sequence[Node]]
) -> Iterator[TensorSlices]:
    """Yield the results of a node, into which `part` was fused last, and those of the communication after it."""
    layouts = sharding.layouts.get(part, ())
    kind = sharding.reductions.get(part)
    if kind is None:
        for slot, layout in enumerate(layouts):
            yield _slices(graph_id, node.full_name, "output", slot, layout)
        return
    (layout,) = layouts[:1]
    after = reduced.get(id(part)) or [last for last, maker in sharding.reduced.items() if maker is part]
    if after and _fits(after[-1], layout):  # a mean is divided after the AllReduce
        yield _slices(graph_id, after[-1].full_name, "output", 0, layout)
    if kind == "sum" and part.op_type not in _MASKED and _fits(part, layout):
        summed = sharding.terms(part)
        yield _slices(graph_id, node.full_name, "output", 0, layout, summed)
        if after:
            yield _slices(graph_id, after[0].full_name, "input", 0, layout, summed)


def _reduced(graph: KernelGraph) -> dict[int, list[Node]]:
    """Return the communication after each operator, in execution order, by the operator's id."""
    found: dict[int, list[Node]] = {}
    first: dict[int, int] = {}  # the id of the operator, by that of a communication node
    for node in graph.order:
        if is_communication(node) and isinstance(node.operands[0], Node):
            source = id(node.operands[0])
            first[id(node)] = source = first.get(source, source)
            found.setdefault(source, []).append(node)
    return found


def _fits(value: Value, layout: TensorLayout) -> bool:
    return isinstance(value.abstract, TensorType) and value.abstract.shape == layout.slice_shape


def _layout_of(parameter: Parameter, sharding: Sharding) -> TensorLayout | None:
    if parameter.is_weight:
        layout = sharding.parameters.get(parameter.name)
    else:
        layout = next(
            (one for p, one in sharding.arguments.items() if p is parameter or p.name == parameter.name), None
        )
    return layout if layout is not None and _fits(parameter, layout) else None
