"""Gradients of operators that ran one by one, as compiled graphs.

In dynamic graph mode the forward pass runs natively, operator by operator, and the backward pass is compiled, so that
it is dumped like any graph. [seed 001] A *segment* consists of the operators between two graphs of ``jit`` functions;
most tapes are one segment. Its backward pass is a graph of the gradients of the results and of the values of the
forward pass that the rules use. It is cached by the structure of the segment: the next step that runs the same
operators on tensors of the same types runs the same graph again.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.options import CompileOptions
from dumpsim.frontends.mindspore._capture import tape, values
from dumpsim.frontends.mindspore._capture.taperule import sens_of, unused
from dumpsim.frontends.mindspore._capture.trace import assign_scopes, mark_of, scope_of
from dumpsim.frontends.mindspore._session import with_class_names
from dumpsim.graph.builder import constant
from dumpsim.graph.gradient_builder import Parts
from dumpsim.graph.gradient_control import replace_inner
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, text_of
from dumpsim.graph.mindspore.expand_gradients import gradients_of
from dumpsim.graph.mindspore.gradient_node import gradient_node
from dumpsim.graph.pipeline import WHOLE_GRAPH
from dumpsim.graph.program import Program
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session

__all__ = ["BackwardCache", "segments"]

_CACHED = 64  # backward passes per session, so that a script whose shapes never repeat does not fill the memory


def segments(session: Session, entries: Sequence[tape.Entry], depending: Set[int], results: Any) -> list[tape.Entry]:
    """Return a tape with one entry for each segment, whose gradient rule runs a graph.

    Parameters
    ----------
    session : Session
    entries : sequence of Entry
    depending : set of int
        Ids of the tensors that depend on the requested ones; other entries are dropped.
    results : Tensor or nested tuple
        The value to differentiate.
    """
    used = {id(tensor) for tensor in values.tensors_in(results)}
    found: list[tape.Entry] = []
    for group in reversed(list(_groups(entries, depending))):
        if group[0].is_graph:
            found.append(group[0])
            inputs = list(values.tensors_in(group[0].operands))
        else:
            segment = _Segment.of(group, depending, used)
            if segment.outputs:
                found.append(segment.entry(session))
            inputs = segment.inputs
        used |= {id(tensor) for tensor in inputs}
    return found[::-1]


def _groups(entries: Iterable[tape.Entry], depending: Set[int]) -> Iterator[list[tape.Entry]]:
    """Yield groups of consecutive operators, and each graph as a group by itself."""
    group: list[tape.Entry] = []
    for entry in entries:
        if not any(id(tensor) in depending for tensor in values.tensors_in(entry.operands)):
            continue
        if entry.is_graph:
            if group:
                yield group
            yield [entry]
            group = []
        else:
            group.append(entry)
    if group:
        yield group


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Segment:
    """Operators that ran one by one; gradients are taken of `inputs`, and other entries use `outputs`."""

    entries: list[tape.Entry]
    inputs: list[Any]
    outputs: list[Any]

    @classmethod
    def of(cls, entries: list[tape.Entry], depending: Set[int], used: Set[int]) -> "_Segment":
        """Create a segment and determine its inputs and outputs."""
        made = [tensor for entry in entries for tensor in values.tensors_in((entry.out,))]
        inside = {id(tensor) for tensor in made}
        taken = {
            id(tensor): tensor
            for entry in entries
            for tensor in values.tensors_in(entry.operands)
            if id(tensor) in depending and id(tensor) not in inside
        }
        return cls(entries=entries, inputs=list(taken.values()), outputs=[t for t in made if id(t) in used])

    def entry(self, session: Session) -> tape.Entry:
        """Return the segment as one operator of a tape."""

        def grad(b: Any, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
            sens = [tensor._array for tensor in sens_of(b, out, dout, self.outputs)]
            arrays = self._gradients(session, sens)
            return [
                b.value(values.tensor_of_array(array, tensor._dtype)) if array is not None else None
                for array, tensor in zip(arrays, self.inputs, strict=True)
            ]

        name = f"{len(self.entries)} operators"
        return tape.Entry(
            definition=OpDef(name=name, operands=("inputs",), infer=unused, kernel=unused, grad=grad),
            operands=tuple(self.inputs),
            out=tuple(self.outputs) if len(self.outputs) != 1 else self.outputs[0],
            attrs={},
        )

    def _gradients(self, session: Session, sens: Sequence[Any]) -> list[Any]:
        """Return the arrays of the inputs' gradients, None for inputs without influence on the outputs."""
        numbering = _Numbering()
        structure = numbering.structure(self)
        options = _options(session)
        key = (options.target, options.jit_level, structure)
        passes: BackwardCache | None = session.backward_passes
        if passes is None:
            passes = session.backward_passes = BackwardCache()
        back = passes.get(key)
        if back is None:
            back = _Backward.of(self, session, options, numbering)
            for old in passes.add(key, back):
                session.release(old)
        return back.run(session, options, sens, numbering.tensors)


def _options(session: Session) -> CompileOptions:
    """Return the options of a backward pass, which runs kernel by kernel even if graphs run whole. [seed 001]"""
    options = session.options()
    return session.options(jit_level="O0") if options.pipeline == WHOLE_GRAPH else options


class _Numbering:
    """Numbers of the tensors of a segment, equal for equal structures."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self._numbers: dict[int, int] = {}

    def number(self, tensor: Any) -> int:
        """Return the number of a tensor."""
        found = self._numbers.get(id(tensor))
        if found is None:
            found = self._numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
        return found

    def structure(self, segment: _Segment) -> Any:
        """Return the key of the backward pass: operators, attributes, wiring, types, weights and cells."""
        wiring = tuple(
            (
                entry.definition.name,
                self._frozen(entry.attrs),
                self._frozen(entry.operands),
                self._frozen(entry.out),
                id(entry.within.cell) if entry.within is not None else None,  # the backward pass keeps it alive
                mark_of(entry.within.cell) if entry.within is not None else None,
            )
            for entry in segment.entries
        )
        return wiring, self._frozen(segment.inputs), self._frozen(segment.outputs)

    def _frozen(self, value: Any) -> Any:
        if values.is_tensor(value):
            known = id(value) in self._numbers
            number = self.number(value)
            if known:
                return ("tensor", number)
            # the graph reads a weight itself, so the weight is part of the key
            return ("tensor", number, value._dtype.name, value._shape, id(value) if values.is_parameter(value) else 0)
        if isinstance(value, Mapping):
            return tuple(sorted((str(name), self._frozen(item)) for name, item in value.items()))
        if isinstance(value, (tuple, list)):
            return tuple(self._frozen(item) for item in value)
        if isinstance(value, np.ndarray):
            return (value.dtype.str, value.shape, value.tobytes())
        return (type(value).__name__, repr(value) if isinstance(value, float) else value)  # -0.0 is not 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Backward:
    """The backward pass of all segments of one structure.

    Attributes
    ----------
    program : Program or None
        None where no gradient needs an operator.
    saved : tuple of int
        Numbers of the tensors that it takes as arguments after the gradients of the outputs.
    gradients : tuple of tuple
        For each input the source of its gradient: ``("output", index)`` of the program, ``("sens", index)``,
        ``("saved", number)``, ``("constant", array)`` or ``("none", 0)``.
    alive : tuple of CellCall
        The calls of the cells whose ids are in the key.
    """

    program: Program | None
    saved: tuple[int, ...]
    gradients: tuple[tuple[str, Any], ...]
    alive: tuple[tape.CellCall, ...]

    @classmethod
    def of(cls, segment: _Segment, session: Session, options: CompileOptions, numbering: _Numbering) -> "_Backward":
        """Differentiate a segment and compile its gradient."""
        forward = _Forward.of(segment, numbering)
        outputs = [forward.symbols[numbering.number(tensor)] for tensor in segment.outputs]
        wanted = [forward.symbols[numbering.number(tensor)] for tensor in segment.inputs]
        back = Graph(name="backward")
        sens = [_leaf(tensor) for tensor in segment.outputs]
        whole, kind = _bundle(outputs)
        seed = Parts(abstract=kind, items=tuple(sens))
        node = gradient_node(whole, seed, wanted, nodes=forward.graph.trail, fills=False)
        found = gradients_of(back, node, find, around=(forward.graph,))
        return cls._compiled(found, back, sens, forward, session, options, segment)

    @classmethod
    def _compiled(
        cls,
        found: Sequence[Any],
        graph: Graph,
        sens: list[Parameter],
        forward: "_Forward",
        session: Session,
        options: CompileOptions,
        segment: _Segment,
    ) -> "_Backward":
        """Compile the graph, which takes the values of the forward pass as arguments."""
        chosen = [constant(gradient) if isinstance(gradient, np.ndarray) else gradient for gradient in found]
        bundle, _ = _bundle([gradient for gradient in chosen if isinstance(gradient, (Node, Parameter))])
        graph.output = bundle
        taken: dict[int, Parameter] = {}  # by number of the tensor

        def given(value: Value) -> Value:
            number = forward.number_of(value)
            return taken.setdefault(number, _leaf(forward.tensors[number]))

        replace_inner(graph, forward.graph, given)
        sources: dict[int, tuple[str, Any]] = {id(p): ("sens", i) for i, p in enumerate(sens)}
        sources |= {id(p): ("saved", number) for number, p in taken.items()}
        items: list[Value] = []
        for value in bundle.operands:
            if id(value) not in sources:
                sources[id(value)] = ("output", len(items))
                items.append(value)
        rest = iter(bundle.operands)
        gradients = tuple(_source(gradient, rest, sources) for gradient in chosen)
        saved = [(number, p) for number, p in taken.items() if not p.is_weight]
        graph.parameters = [*sens, *(p for _, p in saved), *(p for p in taken.values() if p.is_weight)]
        program = None
        if items:
            graph.output, _ = _bundle(items)
            graph.is_tied = False
            program = session.build(graph, options)
        alive = tuple(entry.within for entry in segment.entries if entry.within is not None)
        return cls(program=program, saved=tuple(n for n, _ in saved), gradients=gradients, alive=alive)

    def run(self, session: Session, options: CompileOptions, sens: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
        """Return the arrays of the gradients; `tensors` are the tensors of the segment, by number."""
        outputs: list[Any] = []
        if self.program is not None:
            session.compile(self.program, options)
            outputs = session.execute(self.program, [*sens, *(tensors[number]._array for number in self.saved)])
        read: dict[str, Callable[[Any], Any]] = {
            "output": lambda index: outputs[index],
            "sens": lambda index: sens[index].copy(),
            "saved": lambda number: tensors[number]._array.copy(),
            "constant": lambda array: array.copy(),
            "none": lambda _: None,
        }
        return [read[kind](what) for kind, what in self.gradients]


def _source(gradient: Any, rest: Iterator[Value], sources: Mapping[int, tuple[str, Any]]) -> tuple[str, Any]:
    """Return where to find a gradient after a run."""
    if gradient is None:
        return ("none", None)
    if isinstance(gradient, Constant):
        return ("constant", np.asarray(gradient.value))
    return sources[id(next(rest))]


def _bundle(items: Sequence[Value]) -> tuple[Node, TupleType]:
    """Return one value for several, and its type."""
    kind = TupleType(items=tuple(item.abstract for item in items))
    return Node(op_type="MakeTuple", operands=list(items), abstract=kind), kind


@dataclass(slots=True, kw_only=True, eq=False)
class _Forward:
    """A segment as a graph that is never run, for the gradient rules."""

    graph: Graph
    tensors: list[Any]
    symbols: dict[int, Value] = field(default_factory=dict)  # by number of the tensor
    _numbers: dict[int, int] = field(default_factory=dict)  # by id of the symbol
    _parts: dict[int, tuple[Any, ...]] = field(default_factory=dict)  # numbers of a tuple's tensors, by id of its node

    @classmethod
    def of(cls, segment: _Segment, numbering: _Numbering) -> "_Forward":
        """Convert the operators to nodes, in the scopes of the cells that ran them."""
        made = cls(graph=Graph(name="forward"), tensors=numbering.tensors)
        for entry in segment.entries:
            abstract = values.abstract_of(entry.out)
            operands = [made._operand(operand, numbering.number) for operand in entry.operands]
            node = Node(op_type=entry.definition.name, operands=operands, abstract=abstract, attrs=dict(entry.attrs))
            if entry.within is not None:
                node.scope = text_of(node).block_scope = _scope(entry.within)
                node.dump_mark = mark_of(entry.within.cell)
            made.graph.trail.append(node)
            made._made(node, entry.out, numbering.number)
        return made

    def _operand(self, operand: Any, number: Callable[[Any], int]) -> Value:
        if values.is_tensor(operand):
            key = number(operand)
            if key not in self.symbols:
                self._add(key, _leaf(operand))
                self.graph.parameters.append(self.symbols[key])  # type: ignore[arg-type]
            return self.symbols[key]
        if isinstance(operand, (tuple, list)) and any(True for _ in values.tensors_in(operand)):
            bundle, _ = _bundle([self._operand(item, number) for item in operand])
            self.graph.trail.append(bundle)
            return bundle
        return values.constant_of(operand)

    def _made(self, symbol: Value, out: Any, number: Callable[[Any], int]) -> Any:
        """Record the tensors of an operator's result; return their numbers."""
        if values.is_tensor(out):
            key = number(out)
            self._add(key, symbol)
            return key
        if isinstance(out, tuple):
            parts = []
            for index, item in enumerate(out):
                getter = Node(
                    op_type="TupleGetItem", operands=[symbol, constant(index)], abstract=values.abstract_of(item)
                )
                self.graph.trail.append(getter)
                parts.append(self._made(getter, item, number))
            self._parts[id(symbol)] = tuple(parts)
            return self._parts[id(symbol)]
        return None

    def _add(self, number: int, symbol: Value) -> None:
        self.symbols[number] = symbol
        self._numbers[id(symbol)] = number

    def number_of(self, value: Value) -> int:
        """Return the number of the tensor of a value of this graph, or of an item of one of its tuples."""
        if id(value) in self._numbers:
            return self._numbers[id(value)]
        assert isinstance(value, Node)
        assert value.op_type == "TupleGetItem"
        source, index = value.operands
        assert isinstance(index, Constant)
        number: int = self._parts[id(source)][index.value]
        return number


def _leaf(tensor: Any) -> Parameter:
    """Return the graph parameter for a tensor from outside."""
    kind, shape = tensor._dtype, tuple(tensor._shape)
    if not values.is_parameter(tensor):
        return Parameter(name="", abstract=TensorType(dtype=kind, shape=shape))
    abstract = TensorType(dtype=kind, shape=shape, ref_key=tensor.name)
    return Parameter(name="", abstract=abstract, is_weight=True, has_default=True, storage=tensor)


def _scope(call: tape.CellCall) -> str:
    """Return the scope of a cell's operators, as in a graph of the outermost cell."""
    chain = [call]
    while chain[-1].outer is not None:
        chain.append(chain[-1].outer)
    assign_scopes(chain[-1].cell, with_class=with_class_names())
    return next((scope for scope in (scope_of(each.cell) for each in chain) if scope is not None), "Default")


class BackwardCache:
    """Least-recently-used cache of the backward passes of a session, by structure."""

    def __init__(self, size: int = _CACHED) -> None:
        self._size = size
        self._passes: OrderedDict[Any, _Backward] = OrderedDict()

    def get(self, key: Any) -> _Backward | None:
        """Return the backward pass of a structure, or None."""
        found = self._passes.get(key)
        if found is not None:
            self._passes.move_to_end(key)
        return found

    def add(self, key: Any, back: _Backward) -> list[Program]:
        """Add a backward pass; return the programs that are evicted."""
        self._passes[key] = back
        evicted = [self._passes.popitem(last=False)[1] for _ in range(len(self._passes) - self._size)]
        return [old.program for old in evicted if old.program is not None]
