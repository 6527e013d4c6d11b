"""``mindspore.parallel.shard``: strategies for the arguments of a cell or function; those inside are propagated."""

from collections.abc import Callable
from typing import Any

from dumpsim.core.errors import ScriptTypeError, UnsupportedError
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.parallel._context import slices
from dumpsim.frontends.mindspore.parallel._layout import Layout, rows_of
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.virtual import VIRTUAL

__all__ = ["Layout", "shard"]

_MARKER = "ShardIdentity"


def shard(fn: Callable[..., Any], in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> Any:
    """State how the arguments and results of a cell or function are cut; operators inside without strategies follow.

    Parameters
    ----------
    fn : Cell or callable
    in_strategy, out_strategy : tuple of (tuple of int or Layout or None)
        One row for each argument or result; None leaves it to the propagation.
    parameter_plan : dict, optional
        Refused: Parameters follow the operators that use them.

    Returns
    -------
    callable
        `fn` with the strategies; outside of semi_auto_parallel and auto_parallel they are ignored.

    Raises
    ------
    ScriptTypeError
        A strategy is not a tuple.

    Examples
    --------
    >>> twice = shard(lambda x: x + x, in_strategy=((2, 1),))
    >>> from dumpsim.frontends.mindspore import Tensor
    >>> twice(Tensor([[1.0]])).asnumpy()
    array([[2.]], dtype=float32)
    """
    for name, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
        if (strategy is not None or name == "in_strategy") and not isinstance(strategy, tuple):
            wanted = "a tuple" if name == "in_strategy" else "None or tuple"
            raise ScriptTypeError(f"For 'Shard', the '{name}' should be {wanted}, but got {type(strategy).__name__}.")
    if parameter_plan:
        raise UnsupportedError("a plan for Parameters is not emulated", where="shard.parameter_plan")

    def sharded(*args: Any) -> Any:
        from dumpsim.frontends.mindspore._capture import control

        result = control.called(fn, *_marked(args, in_strategy))
        if out_strategy is None:
            return result
        marked = _marked(result if isinstance(result, tuple) else (result,), out_strategy)
        return marked if isinstance(result, tuple) else marked[0]

    return sharded


def _marked(tensors: tuple[Any, ...], strategy: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors behind markers that carry their rows."""
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
