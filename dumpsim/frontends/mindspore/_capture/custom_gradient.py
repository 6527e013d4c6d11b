"""Gradients defined by a script: a cell's ``bprop``, and hooks on gradients.

A custom-gradient node passes tensors through unchanged and applies a rule of the script to their gradient. In a capture
it is a node that exists only for gradients, not in programs; in PYNATIVE it is an entry of the tape.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.frontends.mindspore._capture import tape, trace, values
from dumpsim.frontends.mindspore._capture.taperule import sens_of, unused
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT, custom_gradient
from dumpsim.graph.graph import Node
from dumpsim.ops.opdef import OpDef

__all__ = ["Rule", "capture_rules", "with_gradient", "without_gradient"]

# from the gradients of the outputs to those of the inputs; None for an input without a gradient
Rule = Callable[[tuple[Any, ...]], Sequence[Any]]


def with_gradient(result: Any, inputs: Sequence[Any], rule: Rule) -> Any:
    """Return the result with a gradient defined by the script.

    Parameters
    ----------
    result : nested tuple of Tensor
        The rule receives the gradients of its tensors.
    inputs : sequence of Tensor
        The tensors whose gradients the rule returns.
    rule : callable

    Returns
    -------
    nested tuple of Tensor
        Like `result`; the same object if no gradient is being taken.
    """
    outputs = list(values.tensors_in(result))
    tracer = capturing()
    if not outputs or (tracer is None and not tape.is_recording()):
        return result
    new = _recorded(outputs, inputs, rule) if tracer is None else _in_capture(tracer, outputs, inputs, rule)
    return values.rebuild(result, iter(new))


def _recorded(outputs: Sequence[Any], inputs: Sequence[Any], rule: Rule) -> tuple[Any, ...]:
    new = tuple(values.tensor_of_array(tensor._array, tensor._dtype) for tensor in outputs)

    def grad(b: Any, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        return [b.value(gradient) if gradient is not None else None for gradient in rule(sens_of(b, out, dout, new))]

    definition = OpDef(name="a script's gradient", operands=("inputs",), infer=unused, kernel=unused, grad=grad)
    tape.record(definition, inputs, new if len(new) != 1 else new[0], {}, is_graph=True)
    return new


def _in_capture(tracer: trace.Tracer, outputs: Sequence[Any], inputs: Sequence[Any], rule: Rule) -> tuple[Any, ...]:
    node = custom_gradient([tracer.value_of(t) for t in outputs], [tracer.value_of(t) for t in inputs])
    tracer.rules[id(node)] = rule
    new: tuple[Any, ...] = tracer.unpack(tracer.append(node), node.abstract)
    return new


def capture_rules(tracer: trace.Tracer, rules: Mapping[int, Rule], nodes: Iterable[Node]) -> None:
    """Record the rules of the custom-gradient nodes of a forward pass, in the order of the backward pass.

    Parameters
    ----------
    tracer : Tracer
        The tracer that records them.
    rules : mapping
        The rules by node id.
    nodes : iterable of Node
        The forward pass, in the order of the program.
    """
    for node in reversed(list(nodes)):
        if node.op_type != CUSTOM_GRADIENT or node.attrs["rule"] is not None:
            continue
        assert isinstance(node.abstract, TupleType)
        with tracer.block("gradient") as graph:
            given = tuple(tracer.argument("", kind) for kind in node.abstract.items if isinstance(kind, TensorType))
            found = [tracer.value_of(gradient) for gradient in rules[id(node)](given)]
        kind = TupleType(items=tuple(value.abstract for value in found))
        graph.output = Node(op_type="MakeTuple", operands=found, abstract=kind)
        node.attrs["rule"] = graph


@contextmanager
def without_gradient() -> Iterator[None]:
    """Keep operators off the tape, because another gradient replaces theirs."""
    with tape.paused():
        yield
