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
from dumpsim.frontends.mindspore._capture.specialised import Specialised
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
    """Recorder of the operators of one network into graphs.

    The network's own graph is `graph`; `block` records branches and loop bodies into separate graphs, which may use
    values of the enclosing graphs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph = Graph(name=name)
        self.frames: list[Frame] = [Frame(scope="Default", call_scope="Default", name=name, instance="root")]
        self._open: list[Graph] = [self.graph]
        self._weights: dict[int, Parameter] = {}
        self.calls = CallStack(name)
        self.resolved = numbering.Resolved()
        self.specialised = Specialised(self)
        self.shared = Shared()
        self.rules: dict[int, Any] = {}  # the script's gradient rules, by id of the custom-gradient node
        self._functions: dict[int, tuple[Any, str]] = {}  # each function with the scope of its first call
        self._results: dict[tuple[int, ...], tuple[Any, ...]] = {}  # cell, arguments, result and call

    # -- position of the capture

    @property
    def frame(self) -> Frame:
        """The function that is being captured."""
        return self.frames[-1]

    def sources(self) -> tuple[SourceLine, ...]:
        """Return the definitions and expressions of all open frames, outermost first."""
        return tuple(line for frame in self.frames for line in frame.lines())

    @contextmanager
    def entering(
        self, *, scope: str | None = None, own_scope: str = "", cell: Any = None, name: str = ""
    ) -> Iterator[Frame]:
        """Open a frame for a function or a cell that is being called."""
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
        """Set the expression that is being evaluated."""
        self.frame.position = position.called if entering else position.whole

    def block(self, name: str) -> AbstractContextManager[Graph]:
        """Record into a new graph, for a branch or a part of a loop."""
        return opened(self._open, name)

    def mark(self) -> tuple[Graph, int]:
        """Return the graph that is being recorded, and its number of nodes."""
        return self._open[-1], len(self._open[-1].trail)

    @property
    def open_graphs(self) -> tuple[Graph, ...]:
        """The graphs that are being recorded, innermost last."""
        return tuple(self._open)

    def refuse_foreign_control(self, nodes: Sequence[Node]) -> None:
        """Raise if `nodes` contain a loop outside the block that is being recorded.

        The values that a loop saves for its gradient are valid for one run of that gradient.
        """
        here = {id(node) for node in self._open[-1].trail}
        if any(node.op_type == "While" and id(node) not in here for node in nodes):
            raise UnsupportedError(
                "a gradient, within a branch or loop, of a loop before it is not emulated",
                where=self.name,
                code="DS-GRD-002",
            )

    def mention(self, function: Any, scope: str) -> str:
        """Record a function that is looked up in a scope; return the scope of its first look-up."""
        return self._functions.setdefault(id(function), (function, scope))[1]

    def _function_scope(self, function: Any) -> str:
        return self.mention(function, self.frame.scope)

    def scope_of_callee(self, function: Any) -> str:
        """Return the scope of a cell, or the scope in which a function was first looked up."""
        scope = scope_of(function) if hasattr(function, "name_cells") else None
        found = self._functions.get(id(inspect.unwrap(getattr(function, "__func__", function))))
        return scope or (found[1] if found is not None else self.frame.scope)

    @contextmanager
    def entering_function(self, function: Any, *, name: str, is_nested: bool = False) -> Iterator[Frame]:
        """Open a frame for a function, in the scope in which its name was first looked up. [spec vendor 3.1]

        The vendor parses a function once. In the scope ``Default``, its operators take the scope of the call when it is
        inlined; functions that it calls and code in its branches (`is_nested`: all of it) were inlined into it before,
        and keep the default. [spec vendor 3.2; observed 2.10: helpers called in the root and in cells]
        """
        scope = self._function_scope(function)
        own = self.frame.scope if scope == _DEFAULT and not is_nested else ""
        with self.entering(scope=scope, own_scope=own, name=name) as frame:
            frame.function = function
            yield frame

    @contextmanager
    def entering_operator(self, function: Any, *, name: str) -> Iterator[Frame]:
        """Open a frame for the function of a Python operator, which takes the scope of the call by default."""
        scope = self._function_scope(function)
        with self.entering(scope=None if scope == _DEFAULT else scope, name=name) as frame:
            frame.function = function
            yield frame

    # -- values

    def argument(self, name: str, abstract: TensorType, *, debug_name: str = "", is_element: bool = False) -> Any:
        """Create a Tensor for an argument of the graph that is being recorded, or for an element of one."""
        parameter = Parameter(name=name, abstract=abstract, debug_name=debug_name or name, is_element=is_element)
        self._open[-1].parameters.append(parameter)
        return values.tensor_of_symbol(parameter, abstract)

    def value_of(self, operand: Any) -> Value:
        """Return the graph value of a Python value."""
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
        """Return the graph parameter of a Parameter of the script."""
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
        """Sort the Parameters first used in this context by their order among the arguments `given`.

        MindSpore resolves the arguments of a call before the body of the called function. [observed 2.10]
        """
        parameters = self.graph.parameters
        before = len(parameters)
        yield
        order = {id(tensor): i for i, tensor in reversed(list(enumerate(values.tensors_in(given))))}
        new = parameters[before:]
        parameters[before:] = sorted(new, key=lambda one: order.get(id(one.storage), len(order)))

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
        """Record one operator, with the script's names for it; return symbolic Tensors.

        The node stores a definition of its own (`is_own`), or one that is not in the table: that of a script's
        primitive.
        """
        refuse_open(tuple(operands))
        inputs = [self.value_of(operand) for operand in complete(definition, operands, self._cast)]
        abstract = definition.output_type([v.abstract for v in inputs], attrs)
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
        """Convert a tensor to another number type."""
        if tensor._symbol is None and not values.is_parameter(tensor):
            return values.tensor_of_array(tensor._array.astype(kind.numpy), kind)
        from dumpsim.ops.table import find

        return self.emit(find("Cast"), [tensor, kind], {})

    def append(self, node: Node) -> Node:
        """Append a node to the graph that is being recorded, and set its scope and source lines."""
        frame = self.frame
        inside = self.calls.open
        node.scope = frame.own_scope if frame.own_scope and inside is frame.call else frame.scope
        text = text_of(node)
        text.sources = self.sources()
        text.call_scope = frame.call_scope
        text.block_scope = frame.scope if frame.blocks or frame.is_in_loop else frame.call_scope
        node.dump_mark = text.attrs.get("dump") or mark_of(frame.cell)
        self.with_formals(node)
        frame.made.add(id(node))
        self.calls.record(node)
        self._open[-1].trail.append(node)
        return node

    def with_formals(self, node: Node) -> Node:
        """Mark the operands of a node that are formal parameters in the vendor's parser; return the node."""
        formals = self.frame.formals
        found = {value: formals[value] for value in node.operands if isinstance(value, Node) and value in formals}
        if found:
            text_of(node).formals = found
        if node.blocks and formals:
            control_of(node).loops = frozenset(formals.values())
        return node

    def depend(self, value: Any, expression: Any) -> Any:
        """Return `value` after `expression` is computed."""
        source = self.value_of(value)
        node = Node(op_type="Depend", operands=[source, self.value_of(expression)], abstract=source.abstract)
        node.text = NodeText(attrs={"side_effect_propagate": 1})
        self.append(node)
        kind = source.abstract
        if isinstance(kind, ScalarType):  # ``depend(True, step)`` marks a step as done
            return values.tensor_of_symbol(node, TensorType(dtype=kind.dtype, shape=()))
        return self.unpack(node, kind)

    def keep_result(self, cell: Any, args: tuple[Any, ...], result: Any) -> None:
        """Store the result of a call of a cell, for a gradient of the same call."""
        self._results[(id(cell), *_identities(args))] = (cell, args, result, self.calls.latest())

    def result_of(self, cell: Any, args: tuple[Any, ...]) -> tuple[Any, Call] | None:
        """Return the result of an earlier, equal call of a cell in this capture, and that call; else None."""
        found = self._results.get((id(cell), *_identities(args)))
        return (found[2], found[3]) if found is not None else None

    def make_tuple(self, items: list[Value]) -> Node:
        """Append a MakeTuple node."""
        abstract = TupleType(items=tuple(item.abstract for item in items))
        return self.append(Node(op_type="MakeTuple", operands=items, abstract=abstract))

    def unpack(self, node: Value, abstract: Abstract) -> Any:
        """Return Tensors for a value; a tuple gets one TupleGetItem per element."""
        if isinstance(abstract, TensorType):
            return values.tensor_of_symbol(node, abstract)
        if isinstance(abstract, TupleType):
            return tuple(self.unpack(self._item(node, i, a), a) for i, a in enumerate(abstract.items))
        return None

    def _item(self, node: Value, index: int, abstract: Abstract) -> Node:
        number = Constant(value=index, abstract=ScalarType(dtype=dtype("int64"), value=index))
        item = Node(op_type="TupleGetItem", operands=[node, number], abstract=abstract)
        return self.append(item)

    def has_effects(self) -> bool:
        """Return whether any recorded operator writes memory or does input or output."""
        from dumpsim.graph.effects import has_effect
        from dumpsim.ops.table import find

        return any(has_effect(node, find) for node in self.graph.trail)

    def made_here(self, node: Node) -> bool:
        """Return whether a statement of the current frame created the node."""
        return id(node) in self.frame.made

    def name_value(self, name: str, value: Any, *, item: bool = False) -> None:
        """Name the node of a value after its variable; `item` means that a tuple is unpacked into variables."""
        if not values.is_tensor(value) or not isinstance(value._symbol, Node):
            return
        node = value._symbol
        if (item and node.op_type == "TupleGetItem") or id(node) in self.frame.made:
            text_of(node).variable = text_of(node).variable or name
        elif not text_of(node).call_variable:
            text_of(node).call_variable = name


def _identities(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the key by which calls are equal: the ids of graph values, else of the objects."""
    return tuple(id(arg._symbol if values.is_tensor(arg) and arg._symbol is not None else arg) for arg in args)


def mark_of(cell: Any) -> str | None:
    """Return the mark of set_dump on a cell, for its operators; the mark of a primitive takes precedence."""
    return "true" if cell is not None and cell.get_flags().get("dump") is True else None


def scope_of(cell: Any) -> str | None:
    """Return the scope that `assign_scopes` set on a cell, or None for a cell outside the root."""
    scope = cell.__dict__.get("_scope")
    return scope if isinstance(scope, str) else None


def assign_scopes(root: Any, *, with_class: bool) -> None:
    """Set the scopes of the root's descendants; the scope of a cell is set once. [spec observed 1.2]"""
    pending: list[tuple[str, Any]] = [("Default", root)]
    while pending:
        prefix, cell = pending.pop()
        for name, child in cell.name_cells().items():
            scope = f"{prefix}/{name}" + (f"-{type(child).__name__}" if with_class else "")
            if scope_of(child) is None:
                object.__setattr__(child, "_scope", scope)
            pending.append((scope, child))
