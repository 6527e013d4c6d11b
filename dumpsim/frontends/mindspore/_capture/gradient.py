"""Gradients of functions and cells: as a gradient node in a capture, operator by operator in PYNATIVE."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore import _listener as listener
from dumpsim.frontends.mindspore._capture import control, custom_gradient, dispatch, tape, trace, values
from dumpsim.frontends.mindspore._capture.tapesegment import segments
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._session import current_session
from dumpsim.graph.builder import constant
from dumpsim.graph.gradient import needing, reverse
from dumpsim.graph.gradient_builder import Parts
from dumpsim.graph.gradient_control import below, everything
from dumpsim.graph.graph import Constant, Node, Parameter, Value
from dumpsim.graph.mindspore.calls import Call
from dumpsim.graph.mindspore.gradient_node import gradient_node
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find

__all__ = ["differentiate"]

Result = tuple[Any, tuple[Any, ...], tuple[Any, ...]]


def differentiate(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    positions: tuple[int, ...],
    weights: tuple[Any, ...],
    sens: Any = None,
    has_aux: bool = False,
) -> Result:
    """Call a function and take its gradient.

    Parameters
    ----------
    fn : callable
        A function or cell; with `has_aux` only its first output is differentiated.
    args, kwargs
        Its arguments.
    positions : tuple of int
        Positions of the arguments to differentiate with respect to, which must be Tensors.
    weights : tuple of Parameter
        Parameters to differentiate with respect to.
    sens : Tensor or tuple, optional
        The gradient of the output, with the same structure; ones if None.
    has_aux : bool

    Returns
    -------
    tuple
        The result of `fn`, the gradients of the arguments, the gradients of the weights; zeros if independent.

    Raises
    ------
    ScriptTypeError
        An argument to differentiate with respect to is not a Tensor.
    UnsupportedError
        An operator has no gradient.
    """
    for position in positions:
        if not values.is_tensor(args[position]):
            raise ScriptTypeError(
                f"argument {position} is of type {type(args[position]).__name__}", where="grad", allowed=("Tensor",)
            )
    tracer = capturing()
    wanted = [*(args[position] for position in positions), *weights]
    if tracer is not None:
        value, gradients = _in_capture(tracer, fn, args, kwargs, wanted, len(positions), sens, has_aux)
    else:
        value, gradients = _eager(fn, args, kwargs, wanted, sens, has_aux)
    return value, tuple(gradients[: len(positions)]), tuple(gradients[len(positions) :])


# -- in a capture


def _in_capture(
    tracer: trace.Tracer,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    wanted: Sequence[Any],
    arguments: int,
    sens: Any,
    has_aux: bool,
) -> tuple[Any, list[Any]]:
    value, call, is_called = _called(tracer, fn, args, kwargs)
    chosen = value[0] if has_aux else value
    if sens is None:
        chosen = _only_tensors(chosen)
    output = _whole(tracer, chosen)
    nodes = below([output])
    tracer.refuse_foreign_control(nodes)
    seed = _seed(tracer, output, sens)
    leaves = [tracer.value_of(tensor) for tensor in wanted]
    needed = needing(nodes, leaves)
    rules = [each for node in nodes if id(node) in needed for each in everything([node])]
    custom_gradient.capture_rules(tracer, tracer.rules, rules)
    node = tracer.append(
        gradient_node(
            output,
            seed,
            leaves,
            function=call,
            around=tracer.calls.open,
            arguments=arguments,
            scope=tracer.scope_of_callee(fn),
            formals=_formals(tracer, fn, args),
            is_called=is_called,
        )
    )
    return value, list(tracer.unpack(node, node.abstract))


def _formals(tracer: trace.Tracer, fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    """Return the parameter names of a function for arguments of the network."""
    try:
        names = tuple(signature(getattr(fn, "construct", fn)).parameters)
    except (TypeError, ValueError):  # builtin functions may have no signature
        return ()
    passed = [(tracer.value_of(arg), name) for arg, name in zip(args, names, strict=False) if values.is_tensor(arg)]
    return tuple((value.name, name) for value, name in passed if isinstance(value, Parameter))


def _called(
    tracer: trace.Tracer, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, Call, bool]:
    """Return the outputs of a function, its call, and whether an earlier call with the same values is reused.

    In the vendor's compiler, a call reuses the forward result of the gradient of the same call. [observed 2.10]
    """
    before = tracer.result_of(fn, args) if not kwargs else None
    if before is not None:
        return *before, True
    depth = tracer.calls.enter("")
    value = control.called(fn, *args, **kwargs)
    tracer.calls.leave(depth)
    call = tracer.calls.latest()
    assert call is not None
    return value, call, False


def _whole(tracer: trace.Tracer, value: Any) -> Value:
    """Return the outputs as one graph value; the bundle of a tuple is not a part of the program."""
    if values.is_tensor(value):
        return tracer.value_of(value)
    items = [_whole(tracer, item) for item in value]
    return Node(op_type="MakeTuple", operands=items, abstract=TupleType(items=tuple(i.abstract for i in items)))


def _seed(tracer: trace.Tracer, output: Value, sens: Any) -> Any:
    abstract = output.abstract
    if isinstance(abstract, TupleType):
        assert isinstance(output, Node)
        given = sens if isinstance(sens, (tuple, list)) else [sens] * len(abstract.items)
        items = zip(output.operands, given, strict=True)
        return Parts(abstract=abstract, items=tuple(_seed(tracer, o, s) for o, s in items))
    if sens is not None:
        return tracer.value_of(sens)
    assert isinstance(abstract, TensorType)
    if -1 in abstract.shape:
        return tracer.value_of(tracer.emit(find("OnesLike"), [values.tensor_of_symbol(output, abstract)], {}))
    return constant(np.ones(abstract.shape, abstract.dtype.numpy))


# -- in PYNATIVE


def _eager(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    wanted: Sequence[Any],
    sens: Any,
    has_aux: bool,
) -> tuple[Any, list[Any]]:
    before = tape.take_forward(fn, args) if not kwargs and not tape.is_recording() else None
    if before is not None:
        value, recorded = before.value, before.tape
    else:
        with tape.recording() as recorded:
            value = fn(*args, **kwargs)
    chosen = value[0] if has_aux else value
    if sens is None:
        chosen = _only_tensors(chosen)
    depending = tape.depending(recorded, wanted)
    builder = EagerBuilder(depending)
    leaves = [builder.symbol(tensor) for tensor in wanted]
    nodes = builder.replay(_entries(recorded, depending, chosen))
    output = builder.whole(chosen)
    seed = builder.seed(chosen, sens)
    notify = builder.notify if listener.observes_gradients() else None
    found = reverse(output, seed, leaves, builder, nodes=[*nodes, *_bundles(output)], tell=notify)
    if notify is not None:
        for leaf, gradient in zip(leaves, found, strict=True):
            notify(leaf, gradient)
    return value, [
        builder.tensor(gradient if gradient is not None else builder.zeros(leaf.abstract))
        for gradient, leaf in zip(found, leaves, strict=True)
    ]


def _only_tensors(value: Any) -> Any:
    """Remove outputs that are not tensors, whose gradient is zero. [observed 2.10]"""
    if values.is_tensor(value):
        return value
    return tuple(map(_only_tensors, value)) if isinstance(value, (tuple, list)) else ()


def _entries(recorded: tape.Tape, depending: Set[int], results: Any) -> Sequence[tape.Entry]:
    """Return the entries to differentiate: operators, or segments of operators with graphs as backward passes.

    Operators are needed for a gradient of a gradient, which the outer tape records, and for listeners, which observe
    the gradient of every operator.
    """
    if tape.is_recording() or listener.observes_gradients():
        return recorded.entries
    session = current_session()
    if not session.options().backward_graphs:
        return recorded.entries
    return segments(session, recorded.entries, depending, results)


def _bundles(output: Value) -> list[Node]:
    """Return the MakeTuple nodes that bundle the outputs, inner ones first."""
    if not isinstance(output, Node) or output.op_type != "MakeTuple":
        return []
    return [bundle for operand in output.operands for bundle in _bundles(operand)] + [output]


class EagerBuilder:
    """The builder of `gradient.reverse` that runs operators immediately.

    A symbol is a graph value that represents a tensor. `depending` are the ids of the tensors that depend on the
    requested ones.
    """

    def __init__(self, depending: Set[int] = frozenset()) -> None:
        self._depending = depending
        self._symbols: dict[int, Value] = {}  # by id of the tensor
        self._tensors: dict[int, Any] = {}  # by id of the symbol
        self._alive: list[Any] = []  # tensors and symbols, whose ids are keys
        self._recorded: dict[str, OpDef] = {}  # operators of the tape, graphs among them

    # -- symbols

    def symbol(self, tensor: Any) -> Value:
        """Return the symbol of a tensor."""
        found = self._symbols.get(id(tensor))
        if found is None:
            abstract = values.abstract_of(tensor)
            assert isinstance(abstract, TensorType)
            found = Parameter(name="", abstract=abstract)
            self._bind(found, tensor)
        return found

    def _bind(self, symbol: Value, tensor: Any) -> None:
        self._alive += [symbol, tensor]
        self._symbols[id(tensor)] = symbol
        self._tensors[id(symbol)] = tensor

    def whole(self, value: Any) -> Value:
        """Return the outputs of a function as one symbol."""
        if values.is_tensor(value):
            return self.symbol(value)
        if isinstance(value, (tuple, list)):
            items = [self.whole(item) for item in value]
            return Node(op_type="MakeTuple", operands=items, abstract=TupleType(items=tuple(i.abstract for i in items)))
        return constant(value)

    def seed(self, value: Any, sens: Any) -> Any:
        """Return the gradient of the outputs: the caller's, else ones."""
        if values.is_tensor(value):
            if sens is not None:
                return self.value(sens)
            return constant(np.ones(value._shape, value._dtype.numpy))
        given = sens if isinstance(sens, (tuple, list)) else [sens] * len(value)
        items = tuple(self.seed(item, s) for item, s in zip(value, given, strict=True))
        abstract = self.whole(value).abstract
        assert isinstance(abstract, TupleType)
        return Parts(abstract=abstract, items=items)

    def replay(self, entries: Sequence[tape.Entry]) -> list[Node]:
        """Convert the operators that ran to nodes; `symbol` then finds their outputs."""
        nodes: list[Node] = []
        for entry in entries:
            operands = [self._operand(operand, nodes) for operand in entry.operands]
            abstract = values.abstract_of(entry.out) if entry.out is not None else None
            assert abstract is not None
            name = entry.definition.name
            if self._recorded.setdefault(name, entry.definition) is not entry.definition:
                name = f"{name} {len(self._recorded)}"  # the same graph ran twice, on other values
                self._recorded[name] = entry.definition
            node = Node(op_type=name, operands=operands, abstract=abstract, attrs=dict(entry.attrs))
            nodes.append(node)
            self._outputs(node, entry.out, nodes)
        return nodes

    def _operand(self, operand: Any, nodes: list[Node]) -> Value:
        if values.is_tensor(operand):
            return self.symbol(operand)
        if isinstance(operand, (tuple, list)) and any(True for _ in values.tensors_in(operand)):
            items = [self._operand(item, nodes) for item in operand]
            bundle = Node(
                op_type="MakeTuple", operands=items, abstract=TupleType(items=tuple(i.abstract for i in items))
            )
            nodes.append(bundle)
            return bundle
        return values.constant_of(operand)

    def _outputs(self, node: Value, out: Any, nodes: list[Node]) -> None:
        self._alive.append(node)
        if values.is_tensor(out):
            self._bind(node, out)
        elif isinstance(out, tuple):
            self._tensors[id(node)] = out
            for index, item in enumerate(out):
                getter = Node(
                    op_type="TupleGetItem", operands=[node, constant(index)], abstract=values.abstract_of(item)
                )
                nodes.append(getter)
                self._outputs(getter, item, nodes)

    def tensor(self, symbol: Any) -> Any:
        """Return the tensor (or tuple, or host value) of a symbol."""
        if isinstance(symbol, (tuple, list)):
            return tuple(self.tensor(item) for item in symbol)
        if id(symbol) in self._tensors:
            return self._tensors[id(symbol)]
        if isinstance(symbol, Node) and symbol.op_type == "MakeTuple":
            return tuple(self.tensor(operand) for operand in symbol.operands)
        if isinstance(symbol, Constant):
            if isinstance(symbol.abstract, TensorType):
                return values.tensor_of_array(np.asarray(symbol.value), symbol.abstract.dtype)
            return symbol.value
        if isinstance(symbol, np.ndarray):
            return self.tensor(constant(symbol))
        return symbol

    def value(self, operand: Any) -> Any:
        """Return the symbol of a tensor, and anything else unchanged."""
        return self.symbol(operand) if values.is_tensor(operand) else operand

    def is_asked(self, tensor: Any) -> bool:
        """Whether a requested gradient depends on the gradient of a tensor of the tape."""
        return id(tensor) in self._depending

    def notify(self, symbol: Value, gradient: Any) -> None:
        """Notify the listeners of the gradient of a symbol's tensor, if there is one."""
        tensor = self._tensors.get(id(symbol))
        if gradient is not None and values.is_tensor(tensor):
            for observer in listener.listeners():
                observer.gradient(tensor, partial(self.tensor, gradient))

    # -- interface for `reverse` and the gradient rules

    def definition(self, op_type: str) -> OpDef:
        """Return the definition of an operator from the tape or from the table."""
        return self._recorded.get(op_type) or find(op_type)

    @contextmanager
    def backward_of(self, node: Node) -> Iterator[None]:
        """Do nothing: the node is not needed."""
        yield

    def emit(self, op_type: str, *operands: Any, **attrs: Any) -> Any:
        """Run an operator."""
        if op_type == "Depend":
            return operands[0]
        if op_type == "MakeTuple":
            return tuple(operands)
        return self._wrapped(dispatch.call(op_type, [self.tensor(operand) for operand in operands], attrs))

    def _wrapped(self, out: Any) -> Any:
        if values.is_tensor(out):
            return self.symbol(out)
        return tuple(self._wrapped(item) for item in out) if isinstance(out, tuple) else out

    def item(self, value: Any, index: int) -> Any:
        """Return output `index` of an operator with several outputs."""
        if isinstance(value, (tuple, list)):
            return value[index]
        return self.symbol(self._tensors[id(value)][index])

    @property
    def in_graph(self) -> bool:
        """False: operators run one by one."""
        return False

    def choose(self, condition: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """Run one of the functions, depending on the condition."""
        return one() if bool(self.tensor(condition).asnumpy()) else other()

    def total(self, gradients: Sequence[Any], value: Value) -> Any:
        """Return the sum of several gradients."""
        return self.emit("AddN", tuple(gradients))

    def zeros(self, abstract: Abstract) -> Any:
        """Return a tensor of zeros."""
        assert isinstance(abstract, TensorType)
        return constant(np.zeros(abstract.shape, abstract.dtype.numpy))
