"""``mindspore.ops.vmap``: a function of one item, applied to each item of an axis.

The vendor adds an axis to every operator. Here the function runs once per item and the results are stacked: the values
are the same, but a dump has the operators of every item, with the shapes of one item.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dumpsim.core.errors import ScriptRuntimeError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops.function.shape import stack

__all__ = ["vmap"]

Axes = int | None | Sequence[Any]


def vmap(fn: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """Return the function that applies `fn` to each item of an axis and stacks the results.

    Parameters
    ----------
    fn : callable
        The function, primitive or cell to apply.
    in_axes : int, None or nested sequence
        For each argument, the axis of the items; None passes the whole argument to every call.
    out_axes : int, None or nested sequence
        For each result, the axis of the items; None returns only the result of the first item.

    Raises
    ------
    ScriptRuntimeError
        For axes that MindSpore refuses, with its message.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore import Tensor, ops
    >>> vmap(ops.add, in_axes=(0, None))(Tensor([[1, 2], [3, 4]]), Tensor([10, 20])).asnumpy().tolist()
    [[11, 22], [13, 24]]
    """
    if not callable(fn):
        raise ScriptRuntimeError(f"'VmapOperation' arg0 must be a 'Function' or 'Cell', but got {fn!r}.")

    def mapped(*args: Any) -> Any:
        axes = _per_argument(in_axes, len(args))
        sizes = [size for argument, axis in zip(args, axes, strict=True) for size in _sizes(argument, axis)]
        if not sizes:
            raise ScriptRuntimeError(
                f"The 'in_axes' of 'vmap' cannot be all None while 'fn' is not a 'CellList', but got {in_axes}."
            )
        if len(set(sizes)) > 1:
            first, second = list(dict.fromkeys(sizes))[:2]
            raise ScriptRuntimeError(
                f"The 'axis_size' of each argument in the scope of 'vmap' should be equal, but got {first} and "
                f"{second}."
            )
        results = [fn(*(_item(a, axis, i) for a, axis in zip(args, axes, strict=True))) for i in range(sizes[0])]
        if out_axes is None:
            raise ScriptRuntimeError("The 'out_axes' of 'vmap' cannot be a single None while 'fn' is not a 'CellList'.")
        return _stacked(results, out_axes)

    return mapped


def _per_argument(in_axes: Axes, count: int) -> list[Any]:
    if in_axes is None:
        raise ScriptRuntimeError("The 'in_axes' of 'vmap' cannot be a single None while 'fn' is not a 'CellList'.")
    if not isinstance(in_axes, (tuple, list)):
        return [in_axes] * count
    if len(in_axes) != count:
        raise ScriptRuntimeError(
            "When vmap`s 'in_axes' is a tuple or list, and its size must be equal to the number of arguments of 'fn': "
            f"{count}, but got size: {len(in_axes)}."
        )
    return list(in_axes)


def _sizes(argument: Any, axis: Any) -> list[int]:
    """Return the number of items in each mapped tensor of an argument."""
    if axis is None:
        return []
    if isinstance(argument, (tuple, list)):
        axes = axis if isinstance(axis, (tuple, list)) else [axis] * len(argument)
        return [size for part, own in zip(argument, axes, strict=True) for size in _sizes(part, own)]
    return [argument.shape[_checked(axis, argument.ndim)]]


def _checked(axis: Any, rank: int) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ScriptRuntimeError(
            f"The axis in vmap`s 'in_axes' can only be of type Int or None, but got {type(axis).__name__} {axis!r}."
        )
    if not -rank <= axis < rank:
        raise ScriptRuntimeError(
            f"The axis: {axis} in 'in_axes' is out of bounds for array of dimension [-{rank},{rank})."
        )
    return axis % rank


def _item(argument: Any, axis: Any, i: int) -> Any:
    if axis is None:
        return argument
    if isinstance(argument, (tuple, list)):
        axes = axis if isinstance(axis, (tuple, list)) else [axis] * len(argument)
        return type(argument)(_item(part, own, i) for part, own in zip(argument, axes, strict=True))
    index = (slice(None),) * _checked(axis, argument.ndim)
    return argument[(*index, i)]


def _stacked(results: list[Any], out_axes: Any) -> Any:
    first = results[0]
    if isinstance(first, (tuple, list)):
        axes = out_axes if isinstance(out_axes, (tuple, list)) else [out_axes] * len(first)
        return tuple(_stacked([result[k] for result in results], own) for k, own in enumerate(axes))
    axis = out_axes[0] if isinstance(out_axes, (tuple, list)) else out_axes
    if axis is None:
        return first
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ScriptRuntimeError(
            f"The axis in vmap`s 'out_axes' can only be of type Int or None, but got {type(axis).__name__} {axis!r}."
        )
    rank = first.ndim + 1
    if not -rank <= axis < rank:
        raise ScriptRuntimeError(
            f"The axis: {axis} in 'out_axes' is out of bounds for array of dimension [{-rank},{rank})."
        )
    return stack(results, axis)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.function.vmap_func", name)
