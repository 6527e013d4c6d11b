"""Gradients: ``GradOperation``, ``grad``, ``value_and_grad``, ``vjp``."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._capture import tape
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.context import GRAPH_MODE, _get_mode
from dumpsim.frontends.mindspore.ops.composite import _own

__all__ = ["GradOperation", "grad", "value_and_grad", "vjp"]


def _differentiate(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    positions: tuple[int, ...],
    weights: tuple[Any, ...],
    sens: Any = None,
    has_aux: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    from dumpsim.frontends.mindspore._capture import gradient  # loaded where a gradient is taken

    for position in positions:
        if position >= len(args):
            raise ScriptRuntimeError(f"Position index {position} is exceed input size.")
    result: tuple[Any, tuple[Any, ...], tuple[Any, ...]] = gradient.differentiate(
        fn,
        args,
        kwargs,
        positions=positions,
        weights=weights,
        sens=sens,
        has_aux=has_aux,
    )
    return result


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile each call of a gradient function as a separate graph in GRAPH_MODE, as MindSpore does."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _get_mode() != GRAPH_MODE or tape.is_within_cell() or capturing() is not None:
            return function(*args, **kwargs)
        from dumpsim.frontends.mindspore._capture import compile as compiler  # a PYNATIVE script loads no compiler

        return compiler.run_function(function, args, kwargs)

    return run


def _check_function(fn: Any) -> None:
    if not callable(fn):
        raise ScriptTypeError(f"The fn should be callable, but got {type(fn).__name__}")


class GradOperation:
    """Turn a function into its gradient function.

    Parameters
    ----------
    get_all : bool
        Differentiate with respect to all arguments instead of the first.
    get_by_list : bool
        Differentiate with respect to the parameters given in the call.
    sens_param : bool
        The last argument of the gradient function is the gradient of the output.

    Raises
    ------
    ScriptTypeError
        For settings that are not bools.
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise ScriptTypeError(
                    f"For 'GradOperation', the '{name}' should be bool, but got {type(value).__name__}"
                )
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        chosen = _weights(weights if weights is not None else _all_weights(fn)) if self.get_by_list else ()
        by_argument = self.get_all or not self.get_by_list

        @_compiled
        def gradients(*args: Any, **kwargs: Any) -> Any:
            _check_function(fn)
            sens = None
            if self.sens_param:
                if not args:
                    raise ScriptTypeError("the gradient of the output is missing", where="GradOperation(sens_param)")
                args, sens = args[:-1], args[-1]
            positions = (tuple(range(len(args))) if self.get_all else (0,)) if by_argument else ()
            _, of_arguments, of_weights = _differentiate(
                fn, args, kwargs, positions=_of_tensors(args, positions) if self.get_all else positions,
                weights=chosen, sens=sens,
            )  # fmt: skip
            if not by_argument:
                return of_weights if _is_list(weights) else of_weights[0]
            first = of_arguments if self.get_all else of_arguments[0]
            return (first, of_weights) if self.get_by_list else first

        return gradients


def _of_tensors(args: tuple[Any, ...], positions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the positions of the arguments that have a gradient: all tensors; that of whole numbers is zero."""
    return tuple(at for at in positions if isinstance(args[at], Tensor))


def _is_list(weights: Any) -> bool:
    return weights is None or isinstance(weights, (tuple, list))


def _all_weights(fn: Any) -> Any:
    parameters = getattr(fn, "trainable_params", None)
    if parameters is None:
        raise ScriptTypeError("weights is missing: a function has no parameters", where="GradOperation(weights)")
    return tuple(parameters())


def _weights(weights: Any) -> tuple[Any, ...]:
    listed = tuple(weights) if isinstance(weights, (tuple, list)) else (weights,)
    for weight in listed:
        if isinstance(weight, Tensor) and not isinstance(weight, Parameter):
            raise ScriptTypeError("a weight is a Tensor", where="weights", allowed=("Parameter",))
        if weight is weights and not isinstance(weight, Parameter):
            raise ScriptTypeError(
                f"The weights you provided is expected to be a tensor, or a list or tuple. but got {weights}"
            )
        if not isinstance(weight, Parameter):
            raise ScriptRuntimeError("The pointer[tensor] is null.")  # as in MindSpore
    return listed


def _positions(grad_position: Any) -> tuple[int, ...]:
    if grad_position is None:
        return ()
    listed = grad_position if isinstance(grad_position, (tuple, list)) else (grad_position,)
    for position in listed:
        if not isinstance(position, int):
            raise ScriptTypeError(
                f"For 'grad', the 'grad_position' should be int or tuple, but got {type(grad_position).__name__}"
            )
        if position < 0:
            what = "grad_position" if isinstance(grad_position, int) else "The element in grad_position"
            raise ScriptValueError(f"{what} must be >= 0.")
    return tuple(listed)


def value_and_grad(
    fn: Callable[..., Any],
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the value of `fn` and its gradient.

    Parameters
    ----------
    fn : function or Cell
        Its first output is differentiated.
    grad_position : int, tuple of int or None
        Positions of the arguments to differentiate with respect to; a tuple of one position is the same as an int.
    weights : Parameter, ParameterTuple or list, optional
        Parameters to differentiate with respect to.
    has_aux : bool
        Return the outputs after the first without differentiating them.
    return_ids : bool
        Return each gradient in a pair after the position of the argument or the name of the Parameter.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For arguments that MindSpore refuses.
    """

    def both(value: Any, gradients: Any) -> Any:
        return value, gradients

    return _gradient(fn, grad_position, weights, has_aux, return_ids, both)


def _gradient(
    fn: Callable[..., Any],
    grad_position: Any,
    weights: Any,
    has_aux: bool,
    return_ids: Any,
    result: Callable[[Any, Any], Any],
) -> Callable[..., Any]:
    """Return a function that applies `result` to the value of `fn` and its gradient.

    A graph contains only what the result needs.
    """
    if grad_position is None and weights is None:
        raise ScriptValueError("`grad_position` and `weight` can not be None at the same time.")
    if not isinstance(return_ids, bool):
        raise ScriptTypeError(f"For '_Grad', the 'return_ids' should be bool, but got {type(return_ids).__name__}")
    positions, chosen = _positions(grad_position), () if weights is None else _weights(weights)
    names = tuple(weight.name for weight in chosen)

    @_compiled
    def both(*args: Any, **kwargs: Any) -> Any:
        _check_function(fn)
        value, of_arguments, of_weights = _differentiate(
            fn, args, kwargs, positions=positions, weights=chosen, has_aux=has_aux
        )
        if return_ids:
            of_arguments = tuple(zip(positions, of_arguments, strict=True))
            of_weights = tuple(zip(names, of_weights, strict=True))
        by_argument: Any = of_arguments[0] if len(positions) == 1 else of_arguments
        by_weight: Any = of_weights if _is_list(weights) else of_weights[0]
        if weights is None:
            return result(value, by_argument)
        return result(value, by_weight if grad_position is None else (by_argument, by_weight))

    return both


def grad(
    fn: Callable[..., Any],
    grad_position: Any = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """Like `value_and_grad`, without the value; with `has_aux`, the other outputs come after the gradient."""

    def gradient(value: Any, gradients: Any) -> Any:
        return (gradients, value[1:]) if has_aux else gradients

    return _gradient(fn, grad_position, weights, has_aux, return_ids, gradient)


def vjp(fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """Return the value of `fn`, and a function from the gradient of the output to those of the inputs.

    Examples
    --------
    The second result is called with one gradient per output::

        value, back = vjp(lambda x: x * x, x)
        (of_x,) = back(sens)
    """
    _check_function(fn)
    value = fn(*inputs)
    chosen = () if weights is None else _weights(weights)

    @_compiled
    def back(*sens: Any) -> Any:
        _, of_inputs, of_weights = _differentiate(
            fn, inputs, {}, positions=tuple(range(len(inputs))), weights=chosen,
            sens=sens[0] if len(sens) == 1 else sens, has_aux=has_aux,
        )  # fmt: skip
        return tuple(of_inputs) if weights is None else (tuple(of_inputs), of_weights)

    return (value[0], back, value[1:]) if has_aux else (value, back)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.composite.base", name, _own)
