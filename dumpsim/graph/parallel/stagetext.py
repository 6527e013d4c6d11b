"""The graphs before and after sharding as texts: ``step_parallel_begin.ir`` and ``step_parallel_end.ir``.

A node without a variable gets a number as its name when it is first printed. [spec parallel 1.5, 1.6]
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dumpsim.core.abstract import (
    Abstract,
    FunctionType,
    MonadType,
    NoneType,
    ScalarType,
    TensorType,
    TupleType,
    TypeType,
)
from dumpsim.core.cutting import Strategy
from dumpsim.core.hashorder import hash_order
from dumpsim.core.irdoc import (
    ConstRef,
    IrDoc,
    IrFunction,
    IrNode,
    IrParam,
    KernelIo,
    NameRef,
    NodeRef,
    Operand,
    ParamRef,
)
from dumpsim.graph.builder import constant
from dumpsim.graph.compilation import Find
from dumpsim.graph.effects import live_nodes
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, copied, definition_of, text_of, topological
from dumpsim.graph.mindspore.funcform import FuncForm
from dumpsim.graph.mindspore.funcgraph import FuncGraph
from dumpsim.graph.mindspore.functions import made_functions
from dumpsim.graph.mindspore.gradient_node import GRADIENT, gradient_of
from dumpsim.graph.mindspore.monads import add_monads
from dumpsim.graph.parallel.differentiated import CALL, Differentiated, split_training_step
from dumpsim.graph.parallel.results import block_outputs
from dumpsim.graph.parallel.stagefunctions import Functions, call_text
from dumpsim.graph.sequence import flat_operands
from dumpsim.ops.printed import attributes
from dumpsim.ops.rules import type_number

__all__ = ["NodeNames", "primitive_attributes", "read_weights", "stage_document", "with_monads"]

_STRUCTURAL = frozenset(
    {
        *("MakeTuple", "TupleGetItem", "Load", "UpdateState", "Depend", "Return", "Gradient"),
        *("J", CALL, "RefToEmbed", "EnvironGet", "Switch", "Call"),
    }
)


@dataclass(slots=True, kw_only=True)
class NodeNames:
    """Names of nodes that are printed several times, in graphs that are copies of each other.

    Attributes
    ----------
    number : callable
        The next number of a node.
    """

    number: Callable[[], int]
    _names: dict[object, str] = field(default_factory=dict)
    _originals: dict[int, Value] = field(default_factory=dict)
    _alive: list[Value] = field(default_factory=list)  # keeps the ids of the mapping valid

    def copies(self, known: Mapping[int, Value], graph: Graph) -> None:
        """Record copies, which get the names of their originals.

        Parameters
        ----------
        known : mapping
            Copies by the ids of the originals.
        graph : Graph
            The copied graph.
        """
        for node in everything(graph.trail):
            copy = known.get(id(node))
            if copy is not None and copy is not node:
                self._originals[id(copy)] = self._originals.get(id(node), node)
                self._alive += [copy, node]

    def is_original(self, node: Node) -> bool:
        """Whether the node is a recorded copy."""
        return id(node) in self._originals

    def name(self, node: Node, key: object = None) -> str:
        """Return the printed name of a node; `key` identifies a node that each graph creates again."""
        variable = text_of(node).variable
        if variable:
            return variable
        found = id(self._originals.get(id(node), node)) if key is None else key
        if found not in self._names:
            self._names[found] = f"CNode_{self.number()}"
            self._alive.append(node)
        return self._names[found]

    def give(self, op_type: str, index: int) -> None:
        """Name a node that each graph creates again, by its index among nodes of its type."""
        self._names[op_type, index] = f"CNode_{self.number()}"

    def label(self, op_type: str, index: int, name: str) -> None:
        """Do the same as `give`, with a variable's name."""
        self._names[op_type, index] = name

    def rename(self, node: Node) -> None:
        """Replace the number of a node by a new one."""
        found = id(self._originals.get(id(node), node))
        self._names[found] = f"CNode_{self.number()}"
        self._alive.append(node)

    def take(self) -> None:
        """Use up a number, for a node that is not printed."""
        self.number()


def stage_document(
    graph: Graph,
    find: Find,
    names: NodeNames,
    title: str,
    slices: Mapping[str, tuple[int, ...]] | None = None,
    *,
    weights: frozenset[str] = frozenset(),
) -> IrDoc:
    """Return the text of a graph at a stage; monads are added to a copy of it.

    Parameters
    ----------
    graph : Graph
    find : callable
        The definition of an operator type.
    names : NodeNames
    title : str
        Name of the graph.
    slices : mapping, optional
        The current shapes of parameters, by name.
    weights : frozenset of str
        Weights that are parameters even if they are not read any longer.
    """
    known: dict[int, Value] = {}
    shown = copied(graph, known)
    names.copies(known, graph)
    weights = weights | read_weights(shown)
    shown.parameters = [p for p in shown.parameters if not p.is_weight or p.name in weights]
    shown.trail = live_nodes(shown, find)  # earlier stages have dropped unused nodes
    form = _form(shown, find)
    whole = replace(shown, output=form.root.output, trail=form.root.trail)
    functions = Functions(form, title, len(whole.parameters)) if len(form.functions) > 1 else None
    parts = split_training_step(whole, function_name(graph)) if functions is None else None
    writer = _Writer(whole if parts is None else parts.root, find, names, slices or {}, functions)
    return writer.write(title, parts)


def read_weights(graph: Graph) -> frozenset[str]:
    """Return the names of the weights that the nodes of a graph read, including nodes with unused results."""
    nodes = list(everything(graph.trail))
    values = [value for node in nodes for value in flat_operands(node)]
    values += [value for node in nodes for block in node.blocks for value in block_outputs(block)]
    values += [] if graph.output is None else [graph.output]
    return frozenset(value.name for value in values if isinstance(value, Parameter) and value.is_weight)


def function_name(graph: Graph) -> str:
    """Return the name of the function that a network differentiates."""
    gradient = next((node for node in graph.trail if node.op_type == GRADIENT), None)
    call = gradient_of(gradient).function if gradient is not None else None
    return f"{graph.name}_forward" if call is None or call.name in ("", graph.name) else call.name.replace(".", "_")


def with_monads(graph: Graph, find: Find) -> Graph:
    """Return the graph with explicit reads of weights and order of side effects; its nodes are modified."""
    form = _form(graph, find)
    return replace(graph, output=form.root.output, trail=form.root.trail)


def _form(graph: Graph, find: Find) -> FuncForm:
    trains = any(node.op_type == GRADIENT for node in graph.trail)
    form = made_functions(graph)
    add_monads(form, find, orders_bundles=not trains)
    return form


def _is_operator(node: Node) -> bool:
    return node.op_type not in _STRUCTURAL and not node.op_type.startswith("call @")


def _number(value: Constant) -> Constant:
    """Replace a number type by its number, as the front end's text does. [observed 2.10]"""
    number = type_number(value.value) if isinstance(value.abstract, TypeType) else None
    return constant(number) if number is not None else value


def _axes(value: Value) -> Value:
    """Return the axes of a reduction as a tuple, also a single one."""
    is_one = isinstance(value, Constant) and type(value.value) is int
    return constant((value.value,)) if is_one and isinstance(value, Constant) else value


class _Writer:
    def __init__(
        self,
        graph: Graph,
        find: Find,
        names: NodeNames,
        slices: Mapping[str, tuple[int, ...]],
        functions: Functions | None = None,
    ) -> None:
        self._functions = functions
        self._in: FuncGraph | None = None if functions is None else functions.form.root
        self._labels: dict[int, str] = {}  # the names of nodes that other functions take
        self._find, self._names, self._slices = find, names, slices
        self._output = graph.output
        self._named: dict[int, str] = {}  # names of parameters as operands in a function
        self._nodes = topological([graph.output]) if functions is None else functions.nodes(functions.form.root)
        self._index = {id(node): at for at, node in enumerate(self._nodes)}
        self._parameters = graph.parameters
        self._place = {id(p): at for at, p in enumerate(self._parameters)}

    def write(self, title: str, parts: Differentiated | None = None) -> IrDoc:
        made: Counter[str] = Counter()
        inner: tuple[IrFunction, ...] = ()
        if parts is not None:
            inner = (self._function(parts, title, made),)
        nodes = [self._node(node, made) for node in self._nodes]
        if self._functions is not None:
            inner += tuple(self._called(function, made) for function in self._functions.inner())
        end = self._return(self._output)
        given = [v for node in self._nodes for v in node.operands if isinstance(v, Constant)]
        constants = {repr(v.value) for v in given if not isinstance(v.abstract, FunctionType)}
        return IrDoc(
            name=title,
            graph_id=-1,
            params=tuple(_parameter(p, self._part(p) or p.abstract) for p in self._parameters),
            nodes=(*nodes, end),
            total_nodes=2 * len(nodes) + 2 + len(self._parameters) + len(constants),
            total_cnodes=len(nodes) + 1,
            is_stage=True,
            functions=inner,
        )

    def _function(self, parts: Differentiated, title: str, made: Counter[str]) -> IrFunction:
        """Return the text of a function graph, whose formal parameters are numbered after the parameters."""
        function = parts.inner
        for at, parameter in enumerate(self._parameters, 1):
            self._named[id(parameter)] = f"$(@{title}:para{at}_{parameter.debug_name or parameter.name})"
        formals: list[Parameter | Constant] = [*function.parameters, parts.token]
        for at, formal in enumerate(formals, len(self._parameters) + 1):
            label = "u" if isinstance(formal, Constant) else formal.debug_name or formal.name
            self._named[id(formal)] = f"%para{at}_{label}"
        own, self._nodes = self._nodes, topological([function.output])
        index, self._index = self._index, {id(node): at for at, node in enumerate(self._nodes)}
        nodes = [self._node(node, made) for node in self._nodes]
        found = IrFunction(
            name=function.name,
            parent=title,
            formals=tuple((self._named[id(formal)], formal.abstract) for formal in formals),
            nodes=(*nodes, self._return(function.output, parts.scope)),
            is_last=bool(nodes) and nodes[0].op_type == "Load",
        )
        self._nodes, self._index = own, index
        self._named.clear()
        return found

    def _called(self, function: FuncGraph, made: Counter[str]) -> IrFunction:
        """Return the text of a function of a branch or a loop."""
        functions = self._functions
        assert functions is not None
        before = self._in, self._nodes, self._index
        self._in = function
        self._nodes = functions.nodes(function)
        self._index = {id(node): at for at, node in enumerate(self._nodes)}
        nodes = [self._node(node, made) for node in self._nodes]
        found = IrFunction(
            name=functions.name(function),
            parent=functions.parent(function),
            formals=functions.formals(function),
            nodes=(*nodes, self._return(function.output)),
            is_last=functions.is_last(function),
        )
        self._in, self._nodes, self._index = before
        return found

    def _return(self, output: Value | None, scope: str = "Default") -> IrNode:
        return IrNode(
            index=None,
            name="",
            op_type="Return",
            prim_func=False,
            operands=(self._operand(output),) if output is not None else (),
            operand_types=(output.abstract,) if output is not None else (),
            output=None,
            full_name=scope,
        )

    def _part(self, value: Value) -> Abstract | None:
        """Return the type of a parameter's part; None if the parameter is not cut."""
        shape = self._slices.get(value.name) if isinstance(value, Parameter) else None
        if id(value) in self._named and isinstance(value, Parameter) and not value.is_weight:
            return None  # a formal parameter
        kind = value.abstract
        return replace(kind, shape=shape) if shape is not None and isinstance(kind, TensorType) else None

    def _label(self, node: Node) -> str:
        """Return the name of a node that another function uses."""
        if id(node) not in self._labels:
            self._labels[id(node)] = self._names.name(node)
        return self._labels[id(node)]

    def _operand(self, value: Value) -> Operand:
        if self._functions is not None and self._in is not None:
            name = self._functions.operand(value, self._in, self._label, self._place)
            if name is not None:
                return NameRef(name=name)
        if isinstance(value, Node):
            return NodeRef(index=self._index[id(value)])
        if id(value) in self._named:
            return NameRef(name=self._named[id(value)])
        if isinstance(value, Parameter):
            return ParamRef(index=self._place[id(value)])
        value = _number(value)
        return ConstRef(value=value.value, abstract=value.abstract, identity=0)

    def _node(self, node: Node, made: Counter[str]) -> IrNode:
        text = text_of(node)
        definition = definition_of(node, self._find) if _is_operator(node) else None
        key = None
        # monads are added to each copy of a graph again: their order identifies them
        if not self._names.is_original(node):
            key = (node.op_type, made[node.op_type])
            made[node.op_type] += 1
        operands = node.operands
        if node.op_type.startswith("Reduce") and len(operands) > 1:
            operands = [operands[0], _axes(operands[1]), *operands[2:]]
        op_type = node.op_type
        if op_type == CALL:  # of a value
            called, *operands = operands
            op_type = f"%{self._index[id(called)]}"
        elif op_type == "Call" and self._functions is not None:
            op_type = call_text(node, self._functions, self._index)
            operands = operands[1:]
        name = self._labels.get(id(node)) or self._names.name(node, key)
        self._labels[id(node)] = name
        return IrNode(
            index=self._index[id(node)],
            name=name,
            op_type=op_type,
            prim_func=definition is not None and definition.prim_func,
            operands=tuple(map(self._operand, operands)),
            operand_types=tuple(self._part(value) or _type(node, value) for value in operands),
            output=_shown(node),
            full_name=_scope(node),
            instance_name=text.instance_name,
            primitive_attrs=_ordered(primitive_attributes(node, self._find)),
            sources=text.sources,
            strategy=strategy_text(text.node_attrs["in_strategy"]) if "in_strategy" in text.node_attrs else "",
        )


def primitive_attributes(node: Node, find: Find) -> dict[str, Any]:
    """Return the primitive attributes of a node, by name."""
    text = text_of(node)
    if not _is_operator(node):
        return dict(text.attrs)
    definition = definition_of(node, find)
    operands = [v.abstract for v in node.operands if not isinstance(v.abstract, MonadType)]
    found: dict[str, Any] = {**node.attrs}
    if not definition.prim_func and not any(isinstance(kind, NoneType) for kind in (node.abstract, *operands)):
        found = attributes(definition, operands, node.abstract, {**definition.attrs, **node.attrs}, given=text.given)
    elif not definition.prim_func:  # the type, and attributes that depend on it, are inferred later
        fixed = {name: value for name, value in definition.fixed.items() if not callable(value)}
        found = {**fixed, **definition.attrs, **node.attrs}
    if definition.side_effect is not None:
        found[f"side_effect_{definition.side_effect}"] = True
    return {name: value for name, value in {**found, **text.attrs}.items() if not name.startswith("_")}


_WRITERS = frozenset({"Assign", "AssignAdd", "AssignSub"})  # functions that return the written operand
# constants of inserted nodes that have no types yet
_UNTYPED = frozenset({"Split", "TupleGetItem", "Concat", "ExpandDims", "Gather", "DtypeToEnum"})
_ANEW = re.compile(r"\d+(OneHot)?\d+|redistribution_op_\d+")
_REPLACING = re.compile(r"redistribution_op_\d+")  # replaces the script's Reshape


def _type(node: Node, value: Value) -> Abstract:
    """Return the printed type of an operand; a tuple that a node of the script takes shows its used elements."""
    kind, is_constant = _shown(value), isinstance(value, Constant)
    if node.op_type in _WRITERS and value is node.operands[0] and isinstance(kind, TensorType):
        return replace(kind, inplace=True)
    if isinstance(kind, TypeType) and isinstance(value, Constant):
        kind = NoneType() if isinstance(node.abstract, NoneType) else _number(value).abstract
    if is_constant and not isinstance(kind, TensorType) and (_is_anew(node) or _is_sliced_tile(node)):
        return NoneType()
    if isinstance(kind, TupleType) and not kind.items and is_constant and text_of(node).sources:
        return replace(kind, counted=True)
    if isinstance(kind, TupleType) and not (text_of(node).sources and is_constant):
        kind = replace(kind, value=None)
    if text_of(node).sources or not is_constant:
        return kind
    if node.op_type == CALL:
        return replace(kind, constant=True) if isinstance(kind, TensorType) else kind
    if isinstance(kind, TensorType) and node.op_type != "RealDiv":
        return replace(kind, value=None, constant=False)
    if isinstance(node.abstract, NoneType) and (node.op_type in _UNTYPED or _is_first_replacing(node)):
        return NoneType()
    return kind


def _shown(value: Value) -> Abstract:
    """Return the printed type of a value; an operator that replaces one of the script has none yet."""
    if isinstance(value, Node) and _is_anew(value):
        return NoneType()
    kind = value.abstract
    if isinstance(value, Node) and value.op_type == "MakeTuple" and isinstance(kind, TupleType):
        numbers = bool(kind.items) and all(isinstance(item, ScalarType) for item in kind.items)
        return TupleType(items=tuple(map(_plain, kind.items)), counted=numbers)  # weights are Loads here
    if isinstance(value, Node) and value.op_type in _WRITERS and isinstance(kind, TensorType):
        return replace(kind, inplace=kind.ref_key is not None)
    return kind


def _scope(node: Node) -> str:
    """Return the scope of a node; a tuple of numbers has that of the last one: of the map over the weights."""
    last = node.operands[-1] if node.op_type == "MakeTuple" and node.operands else None
    return last.scope if isinstance(last, Node) and isinstance(last.abstract, ScalarType) else node.scope


def _plain(kind: Abstract) -> Abstract:
    return replace(kind, ref_key=None) if isinstance(kind, TensorType) else kind


def _is_anew(node: Node) -> bool:
    """Whether the pass recreates a node of the script; a Reshape of the script is dropped instead."""
    name = text_of(node).instance_name
    return bool(text_of(node).sources) and name is not None and _ANEW.fullmatch(name) is not None


def _is_sliced_tile(node: Node) -> bool:
    """Whether a node is a Tile whose repetitions the pass has set."""
    return node.op_type == "Tile" and "in_strategy" in text_of(node).node_attrs


def _is_first_replacing(node: Node) -> bool:
    """Whether a node is the first of those that replace a Reshape."""
    source = node.operands[0]
    return _replaces(node) and not (isinstance(source, Node) and _replaces(source))


def _replaces(node: Node) -> bool:
    return _REPLACING.fullmatch(text_of(node).instance_name or "") is not None


def _parameter(parameter: Parameter, kind: Abstract) -> IrParam:
    label = parameter.debug_name or parameter.name
    assert isinstance(kind, TensorType)
    device = KernelIo(dtype=kind.dtype.title, format="DefaultFormat", shape=kind.shape)
    return IrParam(
        name=parameter.name,
        label=label,
        use_label=label,
        abstract=kind,
        device=device,
        is_weight=parameter.is_weight,
        has_default=parameter.has_default,
        shape_hint=not parameter.is_weight,
    )


def strategy_text(strategy: Strategy) -> str:
    """Return the text of a strategy.

    Examples
    --------
    >>> strategy_text(((2, 1), (1,)))
    '((2, 1), (1))'
    """
    rows = [f"({', '.join(map(str, row))})" for row in strategy]
    return f"({', '.join(rows)})"


def _ordered(marks: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, marks[name]) for name in hash_order(tuple(sorted(marks))))
