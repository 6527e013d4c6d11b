"""Gradients that a script writes itself: a cell's ``bprop``, and hooks on gradients.

A custom-gradient node passes tensors on as they are and sends their gradient through a rule of the script: in a
capture it is a node that the gradient walks and no program holds, in PYNATIVE an entry of the tape.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.frontends.mindspore._capture import tape, trace, values
from dumpsim.frontends.mindspore._capture.taperule import sens_of, unused
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.graph.custom_gradient import custom_gradient
from dumpsim.graph.graph import Constant, Node
from dumpsim.ops.opdef import OpDef

__all__ = ["Rule", "with_gradient", "without_gradient"]

# from the gradients by the outputs to those by the inputs; None for an input without one
Rule = Callable[[tuple[Any, ...]], Sequence[Any]]


def with_gradient(result: Any, inputs: Sequence[Any], rule: Rule) -> Any:
    """Return the result, with a gradient that the script writes.

    Parameters
    ----------
    result : nested tuple of Tensor
        Its tensors are what the rule is given the gradients by.
    inputs : sequence of Tensor
        Where the rule's gradients go.
    rule : callable

    Returns
    -------
    nested tuple of Tensor
        As `result`; the very same where no gradient is being taken.
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
    def grad(b: Any, node: Node, dout: Any) -> Sequence[Any]:
        assert isinstance(node.abstract, TupleType)
        now = capturing()
        assert now is not None
        parts = zip(node.abstract.items, dout.items, strict=True)
        given = tuple(_tensor(b.zeros(kind) if part is None else part) for kind, part in parts)
        return [now.value_of(gradient) if gradient is not None else None for gradient in rule(given)]

    node = custom_gradient([tracer.value_of(t) for t in outputs], [tracer.value_of(t) for t in inputs], grad)
    new: tuple[Any, ...] = tracer.unpack(tracer.append(node), node.abstract)
    return new


def _tensor(symbol: Any) -> Any:
    """The Tensor for a gradient that the walk has found."""
    assert isinstance(symbol.abstract, TensorType)
    if isinstance(symbol, Constant):
        return values.tensor_of_array(np.asarray(symbol.value), symbol.abstract.dtype)
    return values.tensor_of_symbol(symbol, symbol.abstract)


@contextmanager
def without_gradient() -> Iterator[None]:
    """What runs op by op inside is not on the tape: another gradient takes its place."""
    with tape.paused():
        yield
