"""The capture of one network: the tracer that records operators as graph nodes."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dumpsim.core.abstract import Abstract, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.irdoc import SourceLine
from dumpsim.frontends.mindspore._capture import numbering, values
from dumpsim.frontends.mindspore._capture.frame import Frame, Position
from dumpsim.frontends.mindspore._capture.operands import complete
from dumpsim.frontends.mindspore._capture.sharing import Shared
from dumpsim.frontends.mindspore._extent import refuse_open
from dumpsim.graph.block import opened
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, text_of
from dumpsim.graph.mindspore.calls import Call, CallStack
from dumpsim.graph.mindspore.folding import fold, is_foldable
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import is_known

__all__ = ["Tracer", "assign_scopes", "mark_of", "scope_of"]


_DEFAULT = "Default"  # the scope of the root


class Tracer:
    """Records operators of one network into graphs.

    The network's own graph is `graph`; branches and loop bodies are recorded into graphs of their own by `block`, and
    may use values of the graphs around them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph = Graph(name=name)
        self.frames: list[Frame] = [Frame(scope="Default", call_scope="Default", name=name)]
        self._open: list[Graph] = [self.graph]
        self._weights: dict[int, Parameter] = {}
        self.calls = CallStack(name)
        self.resolved = numbering.Resolved()
        self.shared = Shared()
        self.rules: dict[int, Any] = {}  # what the script says of gradients, by id of the custom-gradient node
        self._functions: dict[int, tuple[Any, str]] = {}  # each function with the scope of its first call
        self._results: dict[tuple[int, ...], tuple[Any, ...]] = {}  # cell, arguments, result and call

    # -- where the capture is

    @property
    def frame(self) -> Frame:
        """The function that is being captured."""
        return self.frames[-1]

    def sources(self) -> tuple[SourceLine, ...]:
        """Definitions and expressions of all open frames, outermost first."""
        return tuple(line for frame in self.frames for line in frame.lines())

    @contextmanager
    def entering(
        self, *, scope: str | None = None, own_scope: str = "", cell: Any = None, name: str = ""
    ) -> Iterator[Frame]:
        """A frame for a function or a cell that is being called."""
        caller = self.frame
        frame = Frame(
            scope=scope or caller.scope,
            call_scope=caller.scope,
            own_scope=own_scope,
            cell=cell or caller.cell,
            name=name,
            formals=dict(caller.formals),
        )
        self.frames.append(frame)
        depth = self.calls.enter(name)
        frame.call = self.calls.open
        try:
            yield frame
        finally:
            self.calls.leave(depth)
            self.frames.pop()

    def at(self, position: Position, *, entering: bool) -> None:
        """Note the expression that is being evaluated."""
        self.frame.position = position.called if entering else position.whole

    def block(self, name: str) -> AbstractContextManager[Graph]:
        """Record into a new graph: a branch or a part of a loop."""
        return opened(self._open, name)

    def mark(self) -> tuple[Graph, int]:
        """The graph that is being recorded, and how many nodes it has."""
        return self._open[-1], len(self._open[-1].trail)

    @property
    def open_graphs(self) -> tuple[Graph, ...]:
        """The graphs that are being recorded, innermost last."""
        return tuple(self._open)

    def refuse_foreign_control(self, nodes: Sequence[Node]) -> None:
        """Raise where control flow among `nodes` is outside of the block that is being recorded.

        What a loop keeps for its gradient is there for one run of that gradient.
        """
        here = {id(node) for node in self._open[-1].trail}
        if any(node.op_type == "While" and id(node) not in here for node in nodes):
            raise UnsupportedError(
                "the gradient, inside of a branch or loop, of a loop in front of it is not emulated",
                where=self.name,
                code="DS-GRD-002",
            )

    def mention(self, function: Any) -> None:
        """Note a function that the present function looks up."""
        self._function_scope(function)

    def _function_scope(self, function: Any) -> str:
        return self._functions.setdefault(id(function), (function, self.frame.scope))[1]

    def scope_of_callee(self, function: Any) -> str:
        """The scope of a cell, or that in which a function was looked up first."""
        scope = scope_of(function) if hasattr(function, "name_cells") else None
        found = self._functions.get(id(inspect.unwrap(getattr(function, "__func__", function))))
        return scope or (found[1] if found is not None else self.frame.scope)

    @contextmanager
    def entering_function(self, function: Any, *, name: str, is_nested: bool = False) -> Iterator[Frame]:
        """A frame for a function, in the scope in which its name was looked up first. [spec vendor 3.1]

        The vendor parses a function once. Under the bare default its operators still take the scope of the call when it
        is inlined; what it calls, and what lies in its branches (`is_nested`: all of it), was inlined into it before
        and keeps the default. [spec vendor 3.2; observed 2.10: helpers called in the root and in cells]
        """
        scope = self._function_scope(function)
        own = self.frame.scope if scope == _DEFAULT and not is_nested else ""
        with self.entering(scope=scope, own_scope=own, name=name) as frame:
            frame.function = function
            yield frame

    @contextmanager
    def entering_operator(self, function: Any, *, name: str) -> Iterator[Frame]:
        """A frame for the function of a Python operator: all of it takes the scope of the call by default."""
        scope = self._function_scope(function)
        with self.entering(scope=None if scope == _DEFAULT else scope, name=name) as frame:
            frame.function = function
            yield frame

    # -- values

    def argument(self, name: str, abstract: TensorType, *, debug_name: str = "", is_element: bool = False) -> Any:
        """A Tensor for an argument of the graph that is being recorded, or for an element of one."""
        parameter = Parameter(name=name, abstract=abstract, debug_name=debug_name or name, is_element=is_element)
        self._open[-1].parameters.append(parameter)
        return values.tensor_of_symbol(parameter, abstract)

    def value_of(self, operand: Any) -> Value:
        """The graph value of a Python value."""
        if values.is_tensor(operand):
            if operand._symbol is not None:
                symbol: Value = operand._symbol
                return symbol
            if values.is_parameter(operand):
                return self.weight(operand)
        if isinstance(operand, (tuple, list)) and any(
            t._symbol is not None or values.is_parameter(t) for t in values.tensors_in(operand)
        ):
            return self.make_tuple([self.value_of(item) for item in operand])
        return values.constant_of(operand)

    def weight(self, parameter: Any) -> Parameter:
        """The graph parameter of a Parameter of the script."""
        found = self._weights.get(id(parameter))
        if found is None:
            abstract = TensorType(dtype=parameter._dtype, shape=tuple(parameter._shape), ref_key=parameter.name)
            found = Parameter(
                name=parameter.name, abstract=abstract, is_weight=True, has_default=True, storage=parameter
            )
            self._weights[id(parameter)] = found
            self.graph.parameters.append(found)
        return found

    @contextmanager
    def ordering_weights(self, given: Any) -> Iterator[None]:
        """Let Parameters that are used first in here follow in the order in which they are given.

        MindSpore resolves the arguments of a call before what the called function does with them. [observed 2.10]
        """
        parameters = self.graph.parameters
        before = len(parameters)
        yield
        places = {id(tensor): place for place, tensor in reversed(list(enumerate(values.tensors_in(given))))}
        new = parameters[before:]
        parameters[before:] = sorted(new, key=lambda one: places.get(id(one.storage), len(places)))

    # -- nodes

    def emit(
        self,
        definition: OpDef,
        operands: Sequence[Any],
        attrs: Mapping[str, Any],
        names: NodeText | None = None,
        *,
        is_own: bool = False,
    ) -> Any:
        """Record one operator, with what the script names of it; returns symbolic Tensors.

        The node keeps a definition that is its own (`is_own`) or not in the table: that of a primitive of the script.
        """
        refuse_open(tuple(operands))
        inputs = [self.value_of(operand) for operand in complete(definition, operands, self._cast)]
        abstract = definition.infer([v.abstract for v in inputs], attrs)
        node = Node(
            op_type=definition.name,
            operands=inputs,
            abstract=abstract,
            attrs=dict(attrs),
            text=names or NodeText(),
            definition=definition if is_own or not is_known(definition.name) else None,
        )
        if is_foldable(node):
            assert isinstance(abstract, TensorType)
            return values.tensor_of_array(fold(node, definition).value, abstract.dtype)
        self.append(node)
        return self.unpack(node, abstract)

    def _cast(self, tensor: Any, kind: DType) -> Any:
        """A tensor in another number type."""
        if tensor._symbol is None and not values.is_parameter(tensor):
            return values.tensor_of_array(tensor._array.astype(kind.numpy), kind)
        from dumpsim.ops.table import find

        return self.emit(find("Cast"), [tensor, kind], {})

    def append(self, node: Node) -> Node:
        """Place a node: scope, source lines and the place in the program."""
        frame = self.frame
        inside = self.calls.open
        node.scope = frame.own_scope if frame.own_scope and inside is frame.call else frame.scope
        text = text_of(node)
        text.sources = self.sources()
        text.call_scope = frame.call_scope
        text.block_scope = frame.call_scope if not frame.blocks else frame.scope
        node.dump_mark = text.attrs.get("dump") or mark_of(frame.cell)
        self.with_formals(node)
        frame.made.add(id(node))
        self.calls.record(node)
        self._open[-1].trail.append(node)
        return node

    def with_formals(self, node: Node) -> Node:
        """A node of the present frame that knows which of its operands are formal parameters to the vendor's parser."""
        formals = self.frame.formals
        found = {value: formals[value] for value in node.operands if isinstance(value, Node) and value in formals}
        if found:
            text_of(node).formals = found
        if node.blocks and formals:
            control_of(node).loops = frozenset(formals.values())
        return node

    def depend(self, value: Any, expression: Any) -> Any:
        """`value`, once `expression` is done."""
        source = self.value_of(value)
        node = Node(op_type="Depend", operands=[source, self.value_of(expression)], abstract=source.abstract)
        node.text = NodeText(attrs={"side_effect_propagate": 1})
        self.append(node)
        kind = source.abstract
        if isinstance(kind, ScalarType):  # ``depend(True, step)``: what marks a step as done
            return values.tensor_of_symbol(node, TensorType(dtype=kind.dtype, shape=()))
        return self.unpack(node, kind)

    def keep_result(self, cell: Any, args: tuple[Any, ...], result: Any) -> None:
        """Remember what a call of a cell returned, for a gradient of the same call."""
        self._results[(id(cell), *_identities(args))] = (cell, args, result, self.calls.latest())

    def result_of(self, cell: Any, args: tuple[Any, ...]) -> tuple[Any, Call] | None:
        """What the same call of a cell returned before in this capture, and the call; None where there was none."""
        found = self._results.get((id(cell), *_identities(args)))
        return (found[2], found[3]) if found is not None else None

    def make_tuple(self, items: list[Value]) -> Node:
        """A MakeTuple node."""
        abstract = TupleType(items=tuple(item.abstract for item in items))
        return self.append(Node(op_type="MakeTuple", operands=items, abstract=abstract))

    def unpack(self, node: Value, abstract: Abstract) -> Any:
        """Tensors for a value; tuples get one TupleGetItem an element."""
        if isinstance(abstract, TensorType):
            return values.tensor_of_symbol(node, abstract)
        if isinstance(abstract, TupleType):
            return tuple(self.unpack(self._item(node, i, a), a) for i, a in enumerate(abstract.items))
        return None

    def _item(self, node: Value, index: int, abstract: Abstract) -> Node:
        place = Constant(value=index, abstract=ScalarType(dtype=dtype("int64"), value=index))
        item = Node(op_type="TupleGetItem", operands=[node, place], abstract=abstract)
        return self.append(item)

    def has_effects(self) -> bool:
        """Whether anything recorded so far writes memory or does input and output."""
        from dumpsim.graph.effects import has_effect
        from dumpsim.ops.table import find

        return any(has_effect(node, find) for node in self.graph.trail)

    def made_here(self, node: Node) -> bool:
        """Whether the present frame's own statements made the node."""
        return id(node) in self.frame.made

    def name_value(self, name: str, value: Any, *, item: bool = False) -> None:
        """Name the node of a value after the variable that takes it; `item`: the variable takes a tuple apart."""
        if not values.is_tensor(value) or not isinstance(value._symbol, Node):
            return
        node = value._symbol
        if (item and node.op_type == "TupleGetItem") or id(node) in self.frame.made:
            text_of(node).variable = text_of(node).variable or name
        elif not text_of(node).call_variable:
            text_of(node).call_variable = name


def _identities(args: tuple[Any, ...]) -> tuple[int, ...]:
    """What makes two calls the same: the values of the graph, else the objects."""
    return tuple(id(arg._symbol if values.is_tensor(arg) and arg._symbol is not None else arg) for arg in args)


def mark_of(cell: Any) -> str | None:
    """The mark that set_dump left on a cell, as its operators carry it; a primitive's own mark goes before it."""
    return "true" if cell is not None and cell.get_flags().get("dump") is True else None


def scope_of(cell: Any) -> str | None:
    """The scope that `assign_scopes` gave a cell, None for one that the root does not hold."""
    scope = cell.__dict__.get("_scope")
    return scope if isinstance(scope, str) else None


def assign_scopes(root: Any, *, with_class: bool) -> None:
    """Give the root's children their scopes, once in the life of a cell. [spec observed 1.2]"""
    pending: list[tuple[str, Any]] = [("Default", root)]
    while pending:
        prefix, cell = pending.pop()
        for name, child in cell.name_cells().items():
            scope = f"{prefix}/{name}" + (f"-{type(child).__name__}" if with_class else "")
            if scope_of(child) is None:
                object.__setattr__(child, "_scope", scope)
            pending.append((scope, child))
