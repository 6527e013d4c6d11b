"""``mindspore.parallel.shard``: strategies for the arguments of a cell or function, propagated to its operators."""

from collections.abc import Callable
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.frontends.mindspore import log
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.parallel._context import slices
from dumpsim.frontends.mindspore.parallel._layout import Layout, rows_of
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.virtual import VIRTUAL

__all__ = ["Layout", "check_shard", "marked", "plan_parameters", "shard"]

_MARKER = "ShardIdentity"


def shard(fn: Callable[..., Any], in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Any:
    """Declare how the arguments of a cell or function are sliced; the strategies propagate to its operators.

    Parameters
    ----------
    fn : Cell or callable
    in_strategy : tuple of (tuple of int or Layout)
        One row for each argument.
    out_strategy : tuple, optional
        Checked, then ignored with a warning. [2.10 observed]
    parameter_plan : dict of str to (tuple of int or Layout), optional
        How Parameters of a cell are sliced, by name; ``self.`` in a name is ignored.

    Returns
    -------
    callable
        `fn` with the strategies, which are ignored outside semi_auto_parallel and auto_parallel.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        As in MindSpore, with its messages.

    Examples
    --------
    >>> twice = shard(lambda x: x + x, in_strategy=((2, 1),))
    >>> from dumpsim.frontends.mindspore import Tensor
    >>> twice(Tensor([[1.0]])).asnumpy()
    array([[2.]], dtype=float32)
    """
    check_shard(in_strategy, out_strategy)
    plan_parameters(fn, parameter_plan)

    def sharded(*args: Any) -> Any:
        from dumpsim.frontends.mindspore._capture import control

        return control.called(fn, *marked(args, in_strategy))

    return sharded


def check_shard(in_strategy: Any, out_strategy: Any) -> None:
    """Check the strategies of a cell or function.

    Raises
    ------
    ScriptTypeError
    """
    for name, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
        if strategy is None and name == "out_strategy":
            continue
        if not isinstance(strategy, tuple):
            wanted = "a tuple" if name == "in_strategy" else "None or tuple"
            raise ScriptTypeError(f"For 'Shard', the '{name}' should be {wanted}, but got {type(strategy).__name__}.")
        if name == "out_strategy":
            log.warning("Out_strategy is not in use currently, will be ignored in the following procedures.")
        for row in strategy:
            if not isinstance(row, (tuple, Layout)):
                raise ScriptTypeError(
                    f"The '{name}' should be a tuple(tuple(int)) or tuple(mindspore.parallel.Layout), but got "
                    f"{type(row).__name__}"
                )
            if isinstance(row, tuple) and not all(isinstance(item, int) for item in row):
                raise ScriptTypeError("The tuple strategy for each dimension should be tuple(int).")
        if len({isinstance(row, Layout) for row in strategy}) != 1:
            raise ScriptTypeError("For 'Shard', the strategy can only pass in consistent type for all dimensions.")


def plan_parameters(fn: Any, plan: Any) -> None:
    """Set how Parameters of a cell are sliced, if this is not set yet.

    Raises
    ------
    ScriptTypeError, ScriptValueError
    """
    if plan is None:
        return
    if not isinstance(plan, dict):
        raise ScriptTypeError(
            f"For 'Shard', the 'parameter_plan' should be a dict or None, but got {type(plan).__name__}"
        )
    if not hasattr(fn, "trainable_params"):
        raise ScriptTypeError(f"If parameter_plan is set, type of fn must be mindspore.nn.Cell, but got {type(fn)}")
    for name, row in plan.items():
        if not isinstance(name, str) or not isinstance(row, (tuple, Layout)):
            raise ScriptTypeError(
                "For 'Shard', the type of each key and value in 'parameter_plan' must be str and tuple/Layout, but got "
                f"{type(name).__name__} and {type(row).__name__}"
            )
    weights = {weight.name: weight for weight in fn.trainable_params()}
    for name, row in plan.items():
        weight = weights.get(name.replace("self.", ""))
        if weight is None:
            log.warning(f"{name} is not exist, ignored its setting.")
        elif isinstance(weight._plan, tuple):
            log.warning(
                f"The layout of parameter '{name}' has been set to {weight._plan}, current setting will be ignored."
            )
        elif weight._plan is not None:
            log.warning(f"The layout of parameter '{name}' has been set, current setting will be ignored.")
        elif isinstance(row, Layout):
            weight._plan = row.as_row()
        else:
            _check_plan(name, row, weight.shape)
            weight._plan = row


def _check_plan(name: str, row: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if len(row) != len(shape):
        raise ScriptValueError(
            f"For {name}, the length of param_strategy: {len(row)}, is not equal to param_shape len: {len(shape)}."
        )
    for axis, (count, extent) in enumerate(zip(row, shape, strict=True)):
        if extent % count:
            raise ScriptValueError(
                f"For '{name}', the param_shape is {shape} and the setting param_strategy is {row}. The "
                f"param_shape[{axis}]: {extent} cannot be divisible by param_strategy[{axis}]: {count}."
            )


def marked(tensors: tuple[Any, ...], strategy: tuple[Any, ...]) -> tuple[Any, ...]:
    """Pass tensors through markers with their rows."""
    from dumpsim.frontends.mindspore._capture import values

    tracer = capturing()
    if tracer is None or not slices():
        return tensors
    rows = [*rows_of(strategy), *[None] * len(tensors)]
    return tuple(
        tensor if row is None or not values.is_tensor(tensor) else _mark(tracer, tensor, row)
        for tensor, row in zip(tensors, rows, strict=False)
    )


def _mark(tracer: Any, tensor: Any, row: tuple[int, ...] | TensorLayout) -> Any:
    definition = VIRTUAL[_MARKER]
    marked = tracer.emit(definition, [tensor], {}, NodeText(attrs={"in_strategy": (row,)}))
    marked._symbol.definition = definition
    return marked


def __getattr__(name: str) -> Any:
    return vendored("mindspore.parallel.shard", name)
