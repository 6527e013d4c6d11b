"""Gradients of ``jit`` functions in PYNATIVE: while gradients are recorded, the backward pass is a graph.

The forward pass is then a separate graph, which returns the values needed by the gradient after its results. The
backward pass takes these values, the gradients of the results and the arguments. [observed 2.10]
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore._capture import gradientnames, tape, values
from dumpsim.frontends.mindspore._capture.custom_gradient import capture_rules
from dumpsim.frontends.mindspore._capture.gradient import differentiate
from dumpsim.frontends.mindspore._capture.taperule import sens_of, unused
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.frontends.mindspore._current import tracing
from dumpsim.graph.builder import constant
from dumpsim.graph.gradient_builder import Parts
from dumpsim.graph.gradient_control import below, everything, replace_inner
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, copied
from dumpsim.graph.mindspore.expand_gradients import expand_gradients, gradients_of, order_branches
from dumpsim.graph.mindspore.gradient_node import gradient_node
from dumpsim.graph.mindspore.merge import merge_equal
from dumpsim.graph.mindspore.simplify import simplify
from dumpsim.graph.mindspore.unused import drop_unused
from dumpsim.graph.program import Program
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find

__all__ = ["Backward", "remember", "saving"]

Run = Callable[[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Any]


@dataclass(slots=True, kw_only=True, eq=False)
class Backward:
    """The gradient of a forward pass with respect to all its arguments and weights.

    Attributes
    ----------
    graph : Graph
        The graph, which is compiled for each choice of gradients. Its arguments are the gradients of the results, the
        saved values, and arguments of the forward pass.
    arguments : list of int
        The indices of these arguments of the forward pass.
    gradients : list of Value or None
        The gradients of the arguments, then of the weights.
    inputs : tuple of int
        Indices of the arguments that can have a gradient.
    weights : tuple of Parameter
        The Parameters of the script.
    """

    graph: Graph
    arguments: list[int]
    gradients: list[Value | None]
    inputs: tuple[int, ...]
    weights: tuple[Any, ...]
    operators: frozenset[str] = frozenset()  # operators that are named once in a process, see `gradientnames`
    numbers: int = 0  # extra node numbers that the forward pass uses before its own nodes
    _programs: dict[Any, Program] = field(default_factory=dict)

    def taken(self, known: set[str]) -> int:
        """Return how many numbers the forward pass uses; operators named for the first time are added to `known`."""
        fresh = self.operators - known
        known |= fresh
        return len(fresh) + self.numbers

    def run(
        self, session: Any, chosen: tuple[int, ...], sens: Sequence[Any], arguments: Sequence[Any], saved: Sequence[Any]
    ) -> list[Any]:
        """Return the arrays of the `chosen` gradients."""
        key = (chosen, weakref.ref(session), session.target, session.options().jit_level)
        program = self._programs.get(key)
        if program is None:
            graph = copied(self._with_outputs(chosen))
            session.ids.take(_BACKWARD)
            program = self._programs[key] = session.build(graph)
        arrays = [*sens, *saved, *(arguments[index]._array for index in self.arguments)]
        found: list[Any] = session.execute(program, arrays)
        return found

    def _with_outputs(self, chosen: tuple[int, ...]) -> Graph:
        outputs = [self.gradients[index] for index in chosen]
        assert all(value is not None for value in outputs)
        items: list[Value] = [value for value in outputs if value is not None]
        bundle = Node(op_type="MakeTuple", operands=items, abstract=TupleType(items=tuple(v.abstract for v in items)))
        trail = [*self.graph.trail, bundle]
        return replace(self.graph, trail=trail, output=bundle, is_tied=False)


# extra node numbers that the backward pass uses before its own nodes [observed 2.10]
_BACKWARD = -1


def saving(tracer: Tracer, result: Any) -> Backward | None:
    """Make a captured graph return the values that its gradient needs; return None if it contains a loop."""
    graph = tracer.graph
    results = [tracer.value_of(tensor) for tensor in values.tensors_in(result)]
    whole = Node(op_type="MakeTuple", operands=results, abstract=TupleType(items=tuple(v.abstract for v in results)))
    graph.output = whole
    order_branches(graph)
    expand_gradients(graph, find)  # gradients taken by the script itself
    merge_equal(simplify(drop_unused(graph, find)), find)  # differentiation works on the compiled graph [observed 2.10]
    results = whole.operands
    nodes = below([whole])
    forward = list(everything(nodes))
    captured = [node for node in forward if node is not whole or len(results) != 1]
    graph.output = whole if len(results) != 1 else results[0]
    if any(node.op_type in ("While", "Unwind") for node in forward):
        return None
    arguments = [parameter for parameter in graph.parameters if not parameter.is_weight]
    weights = [p for p in graph.parameters if p.is_weight and _is_float(p.abstract) and _is_trained(p.storage)]
    inputs = tuple(index for index, parameter in enumerate(arguments) if _is_float(parameter.abstract))
    back = Tracer(tracer.name)
    sens = [Parameter(name="", abstract=_plain(value.abstract)) for value in results]
    wanted = [*(arguments[index] for index in inputs), *weights]
    seed = Parts(abstract=whole.abstract, items=tuple(sens))  # type: ignore[arg-type]
    with tracing(back):  # custom gradients of the script
        capture_rules(back, tracer.rules, forward)
    graph.is_continued = graph.is_named_before = back.graph.is_continued = True
    node = gradient_node(whole, seed, wanted, function=tracer.calls.root, fills=False, sums="Default")
    gradients = gradients_of(back.graph, node, find, around=(graph,))
    back.graph.output = Node(
        op_type="MakeTuple", operands=[g for g in gradients if g is not None], abstract=TupleType(items=())
    )
    taken: list[tuple[Value, Parameter]] = []
    bundles: list[tuple[Node, Node]] = []  # tuples of the forward pass, and their replacements in the backward pass

    def given(value: Value) -> Value:
        if isinstance(value, Node) and isinstance(value.abstract, TupleType):
            items: list[Value] = [
                Parameter(name="", abstract=_plain(item), is_element=True) for item in value.abstract.items
            ]
            bundles.append((value, Node(op_type="MakeTuple", operands=items, abstract=value.abstract)))
            return bundles[-1][1]
        if isinstance(value, Parameter) and value.is_weight:
            parameter = replace(value, name="", debug_name="")
        else:
            parameter = Parameter(name="", abstract=_plain(value.abstract))
        taken.append((value, parameter))
        return parameter

    replace_inner(back.graph, graph, given, whole_tuples=True)
    back.graph.trail[:0] = [bundle for _, bundle in bundles]
    position_of = _visits(results)
    computed: list[tuple[Value, Value]] = [(value, parameter) for value, parameter in taken if isinstance(value, Node)]
    saved = sorted([*computed, *bundles], key=lambda pair: position_of(pair[0]))
    indices = {id(argument): index for index, argument in enumerate(arguments)}
    used = [(indices[id(v)], p) for v, p in taken if id(v) in indices]
    shared = [*(p for p in back.graph.parameters if p.is_weight), *(p for _, p in taken if p.is_weight)]
    elements = [p for _, value in saved for p in (value.operands if isinstance(value, Node) else (value,))]
    back.graph.parameters = [*sens, *elements, *(p for _, p in used), *shared]  # type: ignore[list-item]
    graph.output = tracer.make_tuple([*results, *(_given_out(value, graph, tracer) for value, _ in saved)])
    return Backward(
        graph=back.graph,
        arguments=[index for index, _ in used],
        gradients=_after(gradients, back.graph.output),
        inputs=inputs,
        weights=tuple(weight.storage for weight in weights),
        operators=gradientnames.operators(captured, results),
        numbers=1 + gradientnames.others(captured),
    )


def _given_out(value: Value, graph: Graph, tracer: Tracer) -> Value:
    """Turn a saved value into an output of the forward pass, which returns a tuple item by item."""
    if not isinstance(value.abstract, TupleType):
        return value
    parts: list[Value] = []
    for index, item in enumerate(value.abstract.items):
        node = Node(op_type="TupleGetItem", operands=[value, constant(index)], abstract=item, scope="Default")
        graph.trail.append(node)
        parts.append(node)
    return tracer.make_tuple(parts)


def _visits(results: Sequence[Value]) -> Callable[[Value], tuple[int, int]]:
    """Return the position of values in a walk from the results, operands left to right; items follow their tuple.

    [observed 2.10: the saved values of forward graphs]
    """
    found: dict[int, int] = {}
    stack = list(reversed(results))
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and id(node) not in found:
            found[id(node)] = len(found)
            stack.extend(reversed(node.operands))

    def position(value: Value) -> tuple[int, int]:
        if isinstance(value, Node) and value.op_type == "TupleGetItem":
            source, part = value.operands
            assert isinstance(part, Constant)
            return (position(source)[0], part.value + 1)
        return (found.get(id(value), len(found)), 0)

    return position


def _after(gradients: Sequence[Value | None], bundle: Value) -> list[Value | None]:
    """Return the gradients after the replacement of forward values."""
    assert isinstance(bundle, Node)
    rest = iter(bundle.operands)
    return [next(rest) if gradient is not None else None for gradient in gradients]


def _plain(abstract: Abstract) -> TensorType:
    assert isinstance(abstract, TensorType)
    return TensorType(dtype=abstract.dtype, shape=abstract.shape)


def _is_float(abstract: Abstract) -> bool:
    return isinstance(abstract, TensorType) and abstract.dtype.kind == "float"


def _is_trained(weight: Any) -> bool:
    return bool(getattr(weight, "requires_grad", True))


def remember(
    session: Any,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    result: Any,
    compiled: Any,
    saved: Sequence[Any],
    run: Run,
) -> None:
    """Record the run of a graph on the tape as one operator.

    Parameters
    ----------
    session : Session
    function : callable
        The compiled function.
    args, kwargs
        Its arguments; the cell of a method comes first.
    result
        Its result.
    compiled : Compiled
        Its forward pass.
    saved : sequence of ndarray
        The values saved by the forward pass for the gradient.
    run : callable
        Compiles and runs a function, for gradients that run the forward pass again.
    """
    outputs = tuple(values.tensors_in(result))
    back: Backward | None = compiled.backward
    if back is None or tape.is_nested():
        operands, grad = _again(function, args, kwargs, outputs, compiled.weights(session), run)
    else:
        operands, grad = _of_saved(session, back, args, kwargs, outputs, saved)
    definition = OpDef(
        name=f"jit {function.__qualname__}", operands=("inputs",), infer=unused, kernel=unused, grad=grad
    )
    tape.record(definition, operands, outputs if len(outputs) != 1 else outputs[0], {}, is_graph=True)


def _of_saved(
    session: Any,
    back: Backward,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    outputs: Sequence[Any],
    saved: Sequence[Any],
) -> tuple[list[Any], Any]:
    """Return the operands on the tape, and the gradient rule that runs the backward pass."""
    arguments = list(values.tensors_in((args, dict(kwargs)), parameters=False))
    tensors = [*(arguments[index] for index in back.inputs), *back.weights]

    def grad(b: Any, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        chosen = tuple(
            index for index, tensor in enumerate(tensors) if b.is_asked(tensor) and back.gradients[index] is not None
        )
        if not chosen:
            return [None] * len(tensors)
        sens = [tensor._array for tensor in sens_of(b, out, dout, outputs)]
        arrays = back.run(session, chosen, sens, arguments, saved)
        found: list[Any] = [None] * len(tensors)
        for index, array in zip(chosen, arrays, strict=True):
            found[index] = b.value(values.tensor_of_array(array, tensors[index]._dtype))
        return found

    return tensors, grad


# -- graphs that are run again: loops, and gradients of gradients


def _again(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    outputs: Sequence[Any],
    weights: Sequence[Any],
    run: Run,
) -> tuple[list[Any], Any]:
    """Return the operands on the tape, and a gradient rule that runs the forward pass again."""
    positions = tuple(i for i, arg in enumerate(args) if values.is_tensor(arg) and _has_gradient(arg))
    chosen = tuple(weight for weight in weights if _has_gradient(weight))

    def grad(b: Any, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        _refuse_hidden(function, args, kwargs)
        gradients = _backward(function, positions, chosen, run)(sens_of(b, out, dout, outputs), *args, **kwargs)
        return [b.value(gradient) for gradient in gradients]

    return [*(args[position] for position in positions), *chosen], grad


def _has_gradient(tensor: Any) -> bool:
    return tensor._dtype.kind == "float" and _is_trained(tensor)


def _refuse_hidden(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise for tensors in tuples and keywords, which would silently get no gradient."""
    nested = [arg for arg in args if isinstance(arg, (tuple, list))]
    if any(_has_gradient(tensor) for tensor in values.tensors_in((nested, dict(kwargs)), parameters=False)):
        raise UnsupportedError(
            "gradients of tensors in tuples or keyword arguments of a jit function are not emulated",
            where=function.__qualname__,
        )


def _backward(
    function: Callable[..., Any], positions: tuple[int, ...], weights: tuple[Any, ...], run: Run
) -> Callable[..., tuple[Any, ...]]:
    """Return the function to compile as the backward pass, one for each choice of arguments and weights."""
    made: dict[Any, Any] = function.__dict__.setdefault("_backward", {})
    key = (positions, *map(id, weights))
    if key not in made:

        def backward(sens: Any, *args: Any, **kwargs: Any) -> Any:
            wanted = sens if len(sens) != 1 else sens[0]
            _, of_arguments, of_weights = differentiate(
                function, args, kwargs, positions=positions, weights=weights, sens=wanted
            )
            return (*of_arguments, *of_weights)

        made[key] = backward
    compiled = made[key]
    return lambda sens, *args, **kwargs: run(compiled, (sens, *args), kwargs)
