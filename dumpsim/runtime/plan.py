"""The plan of a kernel graph before it runs: operands and outputs of kernels, how tensors lie, when memory is whose."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias, Union

import numpy as np

from dumpsim.core.abstract import (
    Abstract,
    MonadType,
    NoneType,
    ScalarType,
    TensorType,
    TupleType,
)
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.options import CompileOptions
from dumpsim.device.chip import Chip
from dumpsim.device.space import BLOCK_RULES, BlockRule, Space
from dumpsim.graph.engine import engine_of
from dumpsim.graph.graph import Constant, Layout, Node, Parameter, Value, definition_of, topological
from dumpsim.graph.program import KernelGraph
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.place import PLAIN, Place

__all__ = ["Argument", "Call", "GraphPlan", "HostValue", "is_dynamic", "places_of", "plan_graph"]

# nodes that hand a value on or order side effects; no kernel stands behind them
_FIRST = frozenset({"Load", "Depend", "StopGradient"})
_TUPLES = frozenset({"MakeTuple", "MakeList"})
_ITEMS = frozenset({"TupleGetItem", "ListGetItem"})
_ENDLESS = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class HostValue:
    """An operand that never reaches the device: a number, a tuple of numbers, a string, a type, None."""

    value: Any
    abstract: Abstract


# what an operand is: a tensor, a host value, a tuple of these, or an ordering token (None)
Argument: TypeAlias = Union[Place, HostValue, tuple["Argument", ...], None]  # noqa: UP007 (it names itself)


@dataclass(eq=False, slots=True, kw_only=True)
class Call:
    """One kernel of the graph.

    Attributes
    ----------
    node, definition
        What is run.
    arguments : tuple of Argument
        Operands in order, ordering tokens left out.
    outputs : tuple of Place
    stored : tuple of bool
        Whether the kernel's result has to be written to the output; False where the kernel wrote it in place.
    attrs : mapping
        Keywords of the kernel.
    engine : str
        What runs it, as in `OpDef.engine`.
    stream : int
        Where it runs.
    """

    node: Node
    definition: OpDef
    arguments: tuple[Argument, ...]
    outputs: tuple[Place, ...]
    stored: tuple[bool, ...]
    attrs: Mapping[str, Any]
    engine: str
    cost_ns: int
    stream: int = 0
    births: list[Place] = field(default_factory=list)
    deaths: list[Place] = field(default_factory=list)


@dataclass(eq=False, slots=True, kw_only=True)
class GraphPlan:
    """A kernel graph, ready to run.

    Attributes
    ----------
    calls : tuple of Call
        In execution order.
    parameters : tuple of Place
        Of the graph's parameters, in order.
    inputs : tuple of Place
        Of the parameters that are not weights.
    constants, weights : tuple of Place
    planned : tuple of Place
        Everything that lies in the workspace.
    results : tuple of Argument
        The graph's output tensors.
    workspace : int
        Bytes of the workspace.
    rule : str
        Block rule of the tensors in it.
    model_name, model_id
        The model that the graph was loaded as (O2); "" and 0 elsewhere.
    """

    kernel_graph: KernelGraph
    calls: tuple[Call, ...]
    parameters: tuple[Place, ...]
    inputs: tuple[Place, ...]
    constants: tuple[Place, ...]
    weights: tuple[Place, ...]
    planned: tuple[Place, ...]
    results: tuple[Argument, ...]
    workspace: int
    rule: str
    model_name: str = ""
    model_id: int = 0


def is_dynamic(kernel_graph: KernelGraph) -> bool:
    """Whether the shape of an argument is known to the run only."""
    return any(-1 in parameter.abstract.shape for parameter in kernel_graph.arguments)


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
        `memory_reuse` and `streams` count here.
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
        self.whole = options.streams
        self.reuse = options.memory_reuse
        self.rule = BLOCK_RULES["static" if self.whole else "dynamic"]
        self.find = find
        self.known: dict[int, Argument] = {}
        self.inferred: dict[int, Abstract] = {}  # of a graph with open shapes: the types of this plan
        self.dynamic = shapes is not None
        for parameter, shape in zip(kernel_graph.arguments, shapes or (), strict=False):
            self.inferred[id(parameter)] = replace(parameter.abstract, shape=shape)
        self.calls: dict[int, Call] = {}
        self.constants: list[Place] = []
        self.planned: list[Place] = []
        self.streams = {id(launch.node): launch.stream for launch in kernel_graph.launches}

    def plan(self) -> GraphPlan:
        graph = self.kernel_graph.graph
        order = self.kernel_graph.order
        kernels = {id(node) for node in order}
        parameters = tuple(self._parameter(p) for p in graph.parameters)
        for node in topological([*order, graph.output]):
            if self.dynamic:
                self._infer(node)
            if id(node) in kernels:
                self._kernel(node)
            else:
                self.known[id(node)] = self._structural(node)
        calls = tuple(self.calls[id(node)] for node in order if id(node) in self.calls)
        results = tuple(_tensors(self._argument(graph.output))) if graph.output is not None else ()
        workspace = self._lifetimes(calls, results)
        return GraphPlan(
            kernel_graph=self.kernel_graph,
            calls=calls,
            parameters=parameters,
            inputs=tuple(p for p in parameters if p.kind == "input"),
            constants=tuple(self.constants),
            weights=tuple(p for p in parameters if p.kind == "weight"),
            planned=tuple(self.planned),
            results=results,
            workspace=workspace,
            rule=self.rule.name,
        )

    # -------------------------------------------------------------- types
    def _abstract(self, value: Value) -> Abstract:
        """The type of a value; in a graph with open shapes the one that follows from the arguments' shapes."""
        return self.inferred.get(id(value), value.abstract)

    def _infer(self, node: Node) -> None:
        if isinstance(node.abstract, MonadType):
            return
        operands = [self._abstract(operand) for operand in node.operands]
        if node.op_type in _FIRST:
            inferred = operands[0]
        elif node.op_type in _TUPLES:
            inferred = TupleType(items=tuple(operands))
        elif node.op_type in _ITEMS:
            assert isinstance(operands[0], TupleType)
            assert isinstance(node.operands[1], Constant)
            inferred = operands[0].items[node.operands[1].value]
        else:
            definition = definition_of(node, self.find)
            typed = [operand for operand in operands if not isinstance(operand, MonadType)]
            inferred = definition.infer(typed, {**definition.attrs, **node.attrs})
        self.inferred[id(node)] = inferred

    # ------------------------------------------------------------- values
    def _parameter(self, parameter: Parameter) -> Place:
        abstract = self._abstract(parameter)
        assert isinstance(abstract, TensorType)
        place = Place(
            name=parameter.name,
            kind="weight" if parameter.is_weight else "input",
            dtype=abstract.dtype,
            shape=abstract.shape,
            device_dtype=abstract.dtype,
            storage=parameter.storage,
            is_element=parameter.is_element,
        )
        self.known[id(parameter)] = place
        if not parameter.is_weight:
            self.planned.append(place)
        return place

    def _argument(self, value: Value) -> Argument:
        if id(value) in self.known:
            return self.known[id(value)]
        if isinstance(value, Constant):
            argument = self._constant(value)
        elif isinstance(value, Parameter):
            raise UnsupportedError(f"parameter {value.name!r} is not a parameter of its graph", where=self._where())
        else:
            raise UnsupportedError(f"operand {value.full_name or value.op_type!r} has not run", where=self._where())
        self.known[id(value)] = argument
        return argument

    def _constant(self, constant: Constant) -> Argument:
        abstract = constant.abstract
        if isinstance(abstract, MonadType):
            return None
        if isinstance(abstract, TensorType):
            value = np.ascontiguousarray(constant.value, dtype=abstract.dtype.numpy).reshape(abstract.shape)
            place = Place(
                name=f"data-{len(self.constants)}",
                kind="constant",
                dtype=abstract.dtype,
                shape=abstract.shape,
                device_dtype=abstract.dtype,
                value=value,
            )
            self.constants.append(place)
            return place
        return HostValue(value=constant.value, abstract=abstract)

    def _structural(self, node: Node) -> Argument:
        """The value of a node without a kernel."""
        if node.op_type in _FIRST:
            return self._argument(node.operands[0])
        if node.op_type in _TUPLES:
            return tuple(self._argument(operand) for operand in node.operands)
        if node.op_type in _ITEMS:
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

    def _view(self, node: Node) -> Place:
        operand = self._argument(node.operands[0])
        abstract = self._abstract(node)
        assert isinstance(operand, Place)
        assert isinstance(abstract, TensorType)
        if not operand.plain:
            raise UnsupportedError(
                f"{node.full_name} gives another shape to a tensor in {operand.device_format}", where=self._where()
            )
        return Place(
            name=operand.name,
            kind=operand.kind,
            dtype=operand.device_dtype if self.whole else abstract.dtype,
            shape=abstract.shape,
            device_dtype=operand.device_dtype,
            slot=operand.slot,
            base=operand,
        )

    # ------------------------------------------------------------ kernels
    def _kernel(self, node: Node) -> None:
        definition = definition_of(node, self.find)
        if definition.view:
            self._no_compute(node, definition)
            return
        found = (self._argument(value) for value in node.operands)
        arguments = tuple(argument for argument in found if argument is not None)
        outputs, stored = self._outputs(node, definition, arguments)
        self.calls[id(node)] = Call(
            node=node,
            definition=definition,
            arguments=arguments,
            outputs=outputs,
            stored=stored,
            attrs={**definition.attrs, **node.attrs},
            engine=engine_of(node, self.find) if self.whole else definition.engine,
            cost_ns=self._cost(node, definition, arguments, outputs),
            stream=self.streams.get(id(node), 0),
        )
        self.known[id(node)] = _shaped(self._abstract(node), iter(outputs))

    def _no_compute(self, node: Node, definition: OpDef) -> None:
        """A task that computes nothing: its output is the operand's memory. [spec observed 1.2]"""
        place = self._view(node)
        place.transparent = self.chip.target == "CPU"
        arguments = tuple(a for a in (self._argument(value) for value in node.operands) if a is not None)
        assert place.base is not None
        self.calls[id(node)] = Call(
            node=node,
            definition=definition,
            arguments=(place.base, *arguments[1:]),
            outputs=(place,),
            stored=(False,),
            attrs={**definition.attrs, **node.attrs},
            engine=definition.engine,
            cost_ns=0,
        )
        self.known[id(node)] = place

    def _outputs(
        self, node: Node, definition: OpDef, arguments: Sequence[Argument]
    ) -> tuple[tuple[Place, ...], tuple[bool, ...]]:
        outputs: list[Place] = []
        stored: list[bool] = []
        for slot, abstract in enumerate(_leaves(self._abstract(node))):
            layout = node.layouts[slot] if node.layouts else Layout(dtype=abstract.dtype)
            shape = abstract.shape if isinstance(abstract, TensorType) else ()
            base = arguments[definition.alias[slot]] if slot in definition.alias else None
            shared = isinstance(base, Place) and base.plain and layout.format == PLAIN
            device = base.device_dtype if shared and isinstance(base, Place) else layout.dtype
            place = Place(
                name=node.full_name,
                kind="activation",
                dtype=device if self.whole else abstract.dtype,  # GE's graph knows no other type than the device's
                shape=shape,
                device_dtype=device,
                device_format=layout.format,
                groups=layout.groups,
                slot=slot,
                scalar=isinstance(abstract, ScalarType),
                base=base if shared and isinstance(base, Place) else None,
                bound=max(-prod(shape), 1)
                * sum(p.nbytes // p.device_dtype.itemsize for a in arguments for p in places_of(a)),
            )
            if shape.count(-1) == 1 and self.chip.target == "CPU":
                place.largest = tuple(place.bound // max(-prod(shape), 1) if dim == -1 else dim for dim in shape)
            outputs.append(place)
            stored.append(not (shared and definition.alias[slot] in definition.updates))
            if not shared:
                self.planned.append(place)
        return tuple(outputs), tuple(stored)

    def _cost(self, node: Node, definition: OpDef, arguments: Sequence[Argument], outputs: Sequence[Place]) -> int:
        places = [*outputs, *(p for a in arguments for p in places_of(a))]
        if definition.flops is not None:
            operands = [self._abstract(value) for value in node.operands]
            flops = definition.flops(operands, {**definition.attrs, **node.attrs})
        else:
            flops = sum(p.nbytes // max(1, p.device_dtype.itemsize) for p in outputs)
        return self.chip.prices.kernel_ns(flops, sum(p.nbytes for p in places))

    # ----------------------------------------------------------- lifetimes
    def _lifetimes(self, calls: Sequence[Call], results: Sequence[Argument]) -> int:
        """Born, dead and offset of everything in the workspace; returns the size of the workspace."""
        end = len(calls)
        for place in self.planned:
            if place.kind == "input":
                place.dead = end  # `Parameter` files are written after the last kernel
        for position, call in enumerate(calls):
            for output in call.outputs:
                if output.base is None:
                    output.born = output.dead = position
                else:
                    _use(output, position)
            for argument in call.arguments:
                for place in places_of(argument):
                    _use(place, position)
        for argument in results:
            for place in places_of(argument):
                _use(place, end)
        apart = self._apart(calls, end)
        space = Space(_ENDLESS, reuse=self.reuse)
        births: dict[int, list[Place]] = {}
        deaths: dict[int, list[Place]] = {}
        for place in self.planned:
            births.setdefault(place.born, []).append(place)
            deaths.setdefault(place.dead, []).append(place)
        for position in range(-1, end + 1):
            for place in births.get(position, ()):
                if id(place) not in apart:
                    offset = space.take(self.rule.block(place.nbytes), self.rule.align)
                    assert offset is not None
                    place.offset = offset
            if 0 <= position < end:
                calls[position].births = births.get(position, [])
                calls[position].deaths = deaths.get(position, [])
            for place in deaths.get(position, ()):
                if id(place) not in apart:
                    space.give(place.offset)
        size = space.peak
        for place in self.planned:
            if id(place) in apart:
                place.offset = size + apart[id(place)].guard
                size += apart[id(place)].block(place.nbytes)
        return size

    def _apart(self, calls: Sequence[Call], end: int) -> dict[int, BlockRule]:
        """The tensors that another stream than the computing one touches: alive to the end, in memory of their own.

        The order of launch says nothing of when another stream is done with them. Those of collectives have guards on
        both sides. [spec parallel 4.3]
        """
        apart: dict[int, BlockRule] = {}
        for call in calls:
            if call.stream:
                rule = BLOCK_RULES["communication"] if call.engine == "hccl" else self.rule
                for place in (*call.outputs, *(place for a in call.arguments for place in places_of(a))):
                    if apart.get(id(place.root), rule).guard <= rule.guard:
                        apart[id(place.root)] = rule
        for place in self.planned:
            if id(place) in apart:
                place.dead = end
        return apart

    def _where(self) -> str:
        return f"kernel graph {self.kernel_graph.graph_id}"


def _use(place: Place, position: int) -> None:
    """Keep a tensor alive until `position`."""
    place.root.dead = max(place.root.dead, position)


def places_of(argument: Argument) -> Iterator[Place]:
    """The tensors of an argument, tuples flattened."""
    if isinstance(argument, Place):
        yield argument
    elif isinstance(argument, tuple):
        for item in argument:
            yield from places_of(item)


def _tensors(argument: Argument) -> Iterator[Argument]:
    """The tensors and constants of a graph's output, tuples flattened, tokens left out."""
    if isinstance(argument, tuple):
        for item in argument:
            yield from _tensors(item)
    elif isinstance(argument, Place) and not argument.scalar:
        yield argument


def _leaves(abstract: Abstract) -> Iterator[TensorType | ScalarType]:
    """What a kernel gives back, tuples flattened."""
    if isinstance(abstract, (TensorType, ScalarType)):
        yield abstract
    elif isinstance(abstract, TupleType):
        for item in abstract.items:
            yield from _leaves(item)
    elif not isinstance(abstract, (MonadType, NoneType)):
        raise UnsupportedError(f"a kernel cannot give a {type(abstract).__name__}")


def _shaped(abstract: Abstract, outputs: Iterator[Place]) -> Argument:
    """The outputs of a kernel in the structure of its type."""
    if isinstance(abstract, TupleType):
        return tuple(_shaped(item, outputs) for item in abstract.items)
    if isinstance(abstract, (TensorType, ScalarType)):
        return next(outputs)
    return None
