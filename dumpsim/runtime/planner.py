"""Plans kernel graphs: assigns slots to values, and operands, outputs and durations to kernels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, MonadType, ScalarType, TensorType, TupleType
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.options import CompileOptions
from dumpsim.device.chip import Chip
from dumpsim.device.space import BLOCK_RULES
from dumpsim.graph.engine import engine_of
from dumpsim.graph.graph import Constant, Layout, Node, Parameter, Value, definition_of, topological
from dumpsim.graph.program import KernelGraph
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.freed import freed
from dumpsim.runtime.inference import FIRST, ITEMS, TUPLES, Inference, leaves
from dumpsim.runtime.plan import Argument, Call, GraphPlan, HostValue, slots_of
from dumpsim.runtime.slot import PLAIN, Slot
from dumpsim.runtime.workspace import Span, Use, arrange

__all__ = ["plan_graph"]


def plan_graph(
    kernel_graph: KernelGraph,
    chip: Chip,
    options: CompileOptions,
    find: Callable[[str], OpDef],
    shapes: Sequence[tuple[int, ...]] | None = None,
) -> GraphPlan:
    """Plan a kernel graph.

    Parameters
    ----------
    kernel_graph : KernelGraph
    chip : Chip
        Number formats and prices.
    options : CompileOptions
        Only `memory_reuse` is used here.
    find : callable
        The definition of an operator type.
    shapes : sequence of tuple of int, optional
        Shapes of the arguments where the graph leaves them open; all other shapes are inferred from them.

    Raises
    ------
    UnsupportedError
        For an operator that is not emulated.
    """
    return _Planner(kernel_graph, chip, options, find, shapes).plan()


class _Planner:
    def __init__(
        self,
        kernel_graph: KernelGraph,
        chip: Chip,
        options: CompileOptions,
        find: Callable[[str], OpDef],
        shapes: Sequence[tuple[int, ...]] | None,
    ) -> None:
        self.kernel_graph = kernel_graph
        self.chip = chip
        self.whole = kernel_graph.model_id != 0
        self.reuse = options.memory_reuse
        self.rule = BLOCK_RULES["static" if self.whole else "dynamic"]
        self.find = find
        self.known: dict[int, Argument] = {}
        self.types = Inference(kernel_graph, find, shapes)
        self.calls: dict[int, Call] = {}
        self.slots: list[Slot] = []
        self.constants: list[Slot] = []
        self.planned: list[Slot] = []
        self.streams = {id(launch.node): launch.stream for launch in kernel_graph.launches}

    def plan(self) -> GraphPlan:
        graph = self.kernel_graph.graph
        order = self.kernel_graph.order
        kernels = {id(node) for node in order}
        parameters = tuple(self._parameter(p) for p in graph.parameters)
        for node in topological([*order, graph.output]):
            self.types.visit(node)
            if id(node) in kernels:
                self._kernel(node)
            else:
                self.known[id(node)] = self._structural(node)
        calls = tuple(self.calls[id(node)] for node in order)
        results = tuple(_tensors(self._argument(graph.output))) if graph.output is not None else ()
        uses = [
            Use(
                reads=tuple(slot for argument in call.arguments for slot in slots_of(argument)),
                writes=call.outputs,
                stream=call.stream,
                engine=call.engine,
            )
            for call in calls
        ]
        spans, workspace = arrange(self.planned, uses, results, self.rule, reuse=self.reuse)
        return self._finished(calls, parameters, results, spans, workspace)

    def _finished(
        self,
        calls: Sequence[Call],
        parameters: Sequence[Slot],
        results: Sequence[Slot],
        spans: Mapping[int, Span],
        workspace: int,
    ) -> GraphPlan:
        """Return the plan, with life times and offsets in its slots."""
        done: list[Slot] = []
        for slot in self.slots:  # bases come first
            base = None if slot.base is None else done[slot.base.index]
            span = spans.get(slot.index)
            if span is not None:
                slot = replace(slot, base=base, born=span.born, dead=span.dead, offset=span.offset)
            elif base is not None:
                slot = replace(slot, base=base)
            done.append(slot)

        planned = tuple(done[slot.index] for slot in self.planned)
        births: dict[int, list[Slot]] = {}
        deaths: dict[int, list[Slot]] = {}
        for slot in planned:
            births.setdefault(slot.born, []).append(slot)
            deaths.setdefault(slot.dead, []).append(slot)
        ready = [
            replace(
                call,
                arguments=tuple(_final(argument, done) for argument in call.arguments),
                outputs=tuple(done[slot.index] for slot in call.outputs),
                births=tuple(births.get(position, ())),
                deaths=tuple(deaths.get(position, ())),
            )
            for position, call in enumerate(calls)
        ]
        given = tuple(done[slot.index] for slot in results)
        return GraphPlan(
            kernel_graph=self.kernel_graph,
            calls=tuple(replace(call, freed=found) for call, found in zip(ready, freed(ready, given), strict=True)),
            parameters=tuple(done[slot.index] for slot in parameters),
            inputs=tuple(done[slot.index] for slot in parameters if slot.kind == "input"),
            constants=tuple(done[slot.index] for slot in self.constants),
            weights=tuple(done[slot.index] for slot in parameters if slot.kind == "weight"),
            planned=planned,
            results=given,
            workspace=workspace,
            rule=self.rule.name,
        )

    def _new(self, **fields: Any) -> Slot:
        """The next slot of the plan."""
        slot = Slot(index=len(self.slots), **fields)
        self.slots.append(slot)
        return slot

    # ------------------------------------------------------------- values
    def _parameter(self, parameter: Parameter) -> Slot:
        abstract = self.types.of(parameter)
        assert isinstance(abstract, TensorType)
        slot = self._new(
            name=parameter.name,
            kind="weight" if parameter.is_weight else "input",
            dtype=abstract.dtype,
            shape=abstract.shape,
            device_dtype=abstract.dtype,
            storage=parameter.storage,
            is_element=parameter.is_element,
            is_formal=parameter.is_formal,
        )
        self.known[id(parameter)] = slot
        if not parameter.is_weight:
            self.planned.append(slot)
        return slot

    def _argument(self, value: Value) -> Argument:
        if id(value) in self.known:
            return self.known[id(value)]
        if isinstance(value, Constant):
            argument = self._constant(value)
        elif isinstance(value, Parameter):
            raise UnsupportedError(f"parameter {value.name!r} is not a parameter of its graph", where=self._where())
        else:
            what = f"operand {value.full_name or value.op_type!r} comes later in the execution order"
            raise UnsupportedError(what, where=self._where())
        self.known[id(value)] = argument
        return argument

    def _constant(self, constant: Constant) -> Argument:
        abstract = constant.abstract
        if isinstance(abstract, MonadType):
            return None
        if isinstance(abstract, TensorType):
            value = np.ascontiguousarray(constant.value, dtype=abstract.dtype.numpy).reshape(abstract.shape)
            slot = self._new(
                name=f"data-{len(self.constants)}",
                kind="constant",
                dtype=abstract.dtype,
                shape=abstract.shape,
                device_dtype=abstract.dtype,
                value=value,
            )
            self.constants.append(slot)
            return slot
        return HostValue(value=constant.value, abstract=abstract)

    def _sent(self, argument: Argument) -> Argument:
        """Return an operand of a collective: tensors of a constant tuple are on the device for the other ranks."""
        abstract = argument.abstract if isinstance(argument, HostValue) else None
        if not isinstance(abstract, TupleType) or not any(isinstance(item, TensorType) for item in abstract.items):
            return argument
        assert isinstance(argument, HostValue)
        parts = zip(argument.value, abstract.items, strict=True)
        return tuple(self._constant(Constant(value=value, abstract=item)) for value, item in parts)

    def _structural(self, node: Node) -> Argument:
        """Return the value of a node without a kernel."""
        if node.op_type in FIRST:
            return self._argument(node.operands[0])
        if node.op_type in TUPLES:
            return tuple(self._argument(operand) for operand in node.operands)
        if node.op_type in ITEMS:
            of = self._argument(node.operands[0])
            index = self._argument(node.operands[1])
            assert isinstance(index, HostValue)
            if isinstance(of, HostValue):
                return HostValue(value=of.value[index.value], abstract=node.abstract)
            assert isinstance(of, tuple), node.op_type
            item: Argument = of[index.value]
            return item
        if isinstance(node.abstract, MonadType):
            return None
        definition = definition_of(node, self.find)
        if definition.view:
            return self._view(node)
        raise UnsupportedError(
            f"operator {node.op_type!r} has a kernel, but is not in the execution order of its graph",
            where=self._where(),
        )

    def _view(self, node: Node, *, transparent: bool = False) -> Slot:
        operand = self._argument(node.operands[0])
        abstract = self.types.of(node)
        assert isinstance(operand, Slot)
        assert isinstance(abstract, TensorType)
        if not operand.plain:
            raise UnsupportedError(
                f"{node.full_name} reshapes a tensor in {operand.device_format}", where=self._where()
            )
        return self._new(
            transparent=transparent,
            name=operand.name,
            kind=operand.kind,
            dtype=operand.device_dtype if self.whole else abstract.dtype,
            shape=abstract.shape,
            device_dtype=operand.device_dtype,
            slot=operand.slot,
            base=operand,
            bound=operand.bound if operand.settles else prod(operand.shape),
        )

    # ------------------------------------------------------------ kernels
    def _kernel(self, node: Node) -> None:
        definition = definition_of(node, self.find)
        if definition.view:
            self._no_compute(node, definition)
            return
        found = (self._argument(value) for value in node.operands)
        if definition.engine == "hccl":
            found = (self._sent(argument) for argument in found)
        arguments = tuple(argument for argument in found if argument is not None)
        sends = definition.engine == "hccl" and bool(definition.alias)  # its output is its operand: nothing is received
        outputs, stored = ((), ()) if sends else self._outputs(node, definition, arguments)
        flops = self._flops(node, definition, outputs)
        self.calls[id(node)] = Call(
            node=node,
            definition=definition,
            arguments=arguments,
            outputs=outputs,
            stored=stored,
            attrs={**definition.attrs, **node.attrs},
            engine=engine_of(node, self.find) if self.whole else definition.engine,
            cost_ns=self._cost(flops, arguments, outputs),
            flops=flops,
            stream=self.streams.get(id(node), 0),
        )
        self.known[id(node)] = arguments[0] if sends else _shaped(self.types.of(node), iter(outputs))

    def _no_compute(self, node: Node, definition: OpDef) -> None:
        """Plan a task that computes nothing: its output is the operand's memory. [spec observed 1.2]"""
        slot = self._view(node, transparent=self.chip.target == "CPU")
        arguments = tuple(a for a in (self._argument(value) for value in node.operands) if a is not None)
        assert slot.base is not None
        self.calls[id(node)] = Call(
            node=node,
            definition=definition,
            arguments=(slot.base, *arguments[1:]),
            outputs=(slot,),
            stored=(False,),
            attrs={**definition.attrs, **node.attrs},
            engine=definition.engine,
            cost_ns=0,
        )
        self.known[id(node)] = slot

    def _outputs(
        self, node: Node, definition: OpDef, arguments: Sequence[Argument]
    ) -> tuple[tuple[Slot, ...], tuple[bool, ...]]:
        outputs: list[Slot] = []
        stored: list[bool] = []
        for slot, abstract in enumerate(leaves(self.types.of(node))):
            layout = node.layouts[slot] if node.layouts else Layout(dtype=abstract.dtype)
            shape = abstract.shape if isinstance(abstract, TensorType) else ()
            base = arguments[definition.alias[slot]] if slot in definition.alias else None
            shared = isinstance(base, Slot) and base.plain and layout.format == PLAIN
            device = base.device_dtype if shared and isinstance(base, Slot) else layout.dtype
            output = self._new(
                name=node.full_name,
                kind="activation",
                dtype=device if self.whole else abstract.dtype,  # GE's graph has the device's types only
                shape=shape,
                device_dtype=device,
                device_format=layout.format,
                groups=layout.groups,
                slot=slot,
                scalar=isinstance(abstract, ScalarType),
                base=base if shared and isinstance(base, Slot) else None,
                bound=self._bound(node, definition, slot, arguments) if -1 in shape else 1,
                shows_largest=definition.largest is not None and self.chip.target == "CPU",
            )
            outputs.append(output)
            stored.append(not (shared and definition.alias[slot] in definition.updates))
            if not shared:
                self.planned.append(output)
        return tuple(outputs), tuple(stored)

    def _bound(self, node: Node, definition: OpDef, slot: int, arguments: Sequence[Argument]) -> int:
        """Return the largest number of elements of an output of open shape."""
        bounds = [leaf.shape if isinstance(leaf, TensorType) else () for leaf in leaves(self.types.upper_bound(node))]
        shape = bounds[slot]
        if -1 not in shape:
            return prod(shape)
        # the operands' upper bounds give none: assume as many rows as the operands have elements
        rows = sum(s.nbytes // s.device_dtype.itemsize for a in arguments for s in slots_of(a))
        return abs(prod(shape)) * rows

    def _flops(self, node: Node, definition: OpDef, outputs: Sequence[Slot]) -> int:
        if definition.flops is None:
            return sum(s.nbytes // max(1, s.device_dtype.itemsize) for s in outputs)
        operands = [self.types.of(value) for value in node.operands]
        return definition.flops(operands, {**definition.attrs, **node.attrs})

    def _cost(self, flops: int, arguments: Sequence[Argument], outputs: Sequence[Slot]) -> int:
        slots = [*outputs, *(s for a in arguments for s in slots_of(a))]
        return self.chip.prices.kernel_ns(flops, sum(s.nbytes for s in slots))

    def _where(self) -> str:
        return f"kernel graph {self.kernel_graph.graph_id}"


def _final(argument: Argument, done: Sequence[Slot]) -> Argument:
    """Return an argument with the finished slots."""
    if isinstance(argument, Slot):
        return done[argument.index]
    return tuple(_final(item, done) for item in argument) if isinstance(argument, tuple) else argument


def _tensors(argument: Argument) -> Iterator[Slot]:
    """Yield the tensors and constants of a graph's output, tuples flattened, without ordering tokens."""
    if isinstance(argument, tuple):
        for item in argument:
            yield from _tensors(item)
    elif isinstance(argument, Slot) and not argument.scalar:
        yield argument


def _shaped(abstract: Abstract, outputs: Iterator[Slot]) -> Argument:
    """Return the outputs of a kernel in the structure of its type."""
    if isinstance(abstract, TupleType):
        return tuple(_shaped(item, outputs) for item in abstract.items)
    if isinstance(abstract, (TensorType, ScalarType)):
        return next(outputs)
    return None
