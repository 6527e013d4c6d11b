"""Gradients through graphs: a ``jit`` function that runs while PYNATIVE records has a graph as its backward pass."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dumpsim.core.abstract import Abstract, TupleType
from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore._capture import tape, values
from dumpsim.ops.opdef import OpDef

__all__ = ["remember"]


def remember(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    result: Any,
    weights: Sequence[Any],
) -> None:
    """Put the run of a graph onto the tape as one operator.

    Parameters
    ----------
    function : callable
        What was compiled.
    args, kwargs
        What it was called with; the cell of a method comes first.
    result
        What it returned.
    weights : sequence of Parameter
        The parameters that the graph reads.
    """
    positions = tuple(i for i, arg in enumerate(args) if values.is_tensor(arg) and _has_gradient(arg))
    chosen = tuple(weight for weight in weights if _has_gradient(weight))
    outputs = tuple(values.tensors_in(result))

    def grad(b: Any, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        _refuse_hidden(function, args, kwargs)
        parts = dout.items if isinstance(out.abstract, TupleType) else (dout,)
        sens = tuple(
            b.tensor(part if part is not None else b.zeros(values.abstract_of(tensor)))
            for part, tensor in zip(parts, outputs, strict=True)
        )
        gradients = _backward(function, positions, chosen)(sens, *args, **kwargs)
        return [b.value(gradient) for gradient in gradients]

    definition = OpDef(
        name=f"jit {function.__qualname__}", operands=("inputs",), infer=_unused, kernel=_unused, grad=grad
    )
    operands = [*(args[position] for position in positions), *chosen]
    tape.record(definition, operands, outputs if len(outputs) != 1 else outputs[0], {})


def _has_gradient(tensor: Any) -> bool:
    return tensor._dtype.kind == "float" and getattr(tensor, "requires_grad", True)


def _refuse_hidden(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Tensors inside of tuples and keywords would get no gradient in silence."""
    nested = [arg for arg in args if isinstance(arg, (tuple, list))]
    if any(_has_gradient(tensor) for tensor in values.tensors_in((nested, dict(kwargs)), parameters=False)):
        raise UnsupportedError(
            "gradients of tensors in tuples or keyword arguments of a jit function", where=function.__qualname__
        )


def _backward(
    function: Callable[..., Any], positions: tuple[int, ...], weights: tuple[Any, ...]
) -> Callable[..., tuple[Any, ...]]:
    """The function that is compiled as the backward pass; one for each choice of what is differentiated."""
    from dumpsim.frontends.mindspore._capture.compile import run_function

    made: dict[Any, Any] = function.__dict__.setdefault("_backward", {})
    key = (positions, *map(id, weights))
    if key not in made:

        def backward(sens: Any, *args: Any, **kwargs: Any) -> Any:
            from dumpsim.frontends.mindspore._capture.gradient import differentiate

            wanted = sens if len(sens) != 1 else sens[0]
            _, of_arguments, of_weights = differentiate(
                function, args, kwargs, positions=positions, weights=weights, sens=wanted
            )
            return (*of_arguments, *of_weights)

        made[key] = backward
    compiled = made[key]
    return lambda sens, *args, **kwargs: run_function(compiled, (sens, *args), kwargs)


def _unused(*_: Any, **__: Any) -> Abstract:
    raise AssertionError("a graph on the tape is neither inferred nor run again")
