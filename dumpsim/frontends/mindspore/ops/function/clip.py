"""Bounds on the norm of tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function import elementwise
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.frontends.mindspore.ops.function.arithmetic import div, mul
from dumpsim.frontends.mindspore.ops.function.reduce import reduce_sum
from dumpsim.frontends.mindspore.ops.function.shape import reshape

__all__ = ["clip_by_global_norm", "clip_by_norm"]


def clip_by_global_norm(x: Sequence[Tensor], clip_norm: float = 1.0, use_norm: Any = None) -> Sequence[Tensor]:
    """Scale tensors so that their joint norm is at most `clip_norm`.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For anything but a list or tuple of tensors, and for a bound that is not positive.

    Examples
    --------
    >>> [t.asnumpy().tolist() for t in clip_by_global_norm((Tensor([3.0]), Tensor([4.0])), 2.5)]
    [[1.5], [2.0]]
    """
    if not isinstance(x, (tuple, list)):
        raise ScriptTypeError(f"x is a {type(x).__name__}", where="ops.clip_by_global_norm", allowed=("tuple", "list"))
    if clip_norm <= 0:
        raise ScriptValueError(f"clip_norm is {clip_norm}", where="ops.clip_by_global_norm", allowed=("above 0",))
    if use_norm is not None:
        raise ScriptTypeError("use_norm is not None", where="ops.clip_by_global_norm")
    squares = tuple(single("ExpandDims", [reduce_sum(_square(tensor)), 0]) for tensor in x)
    norm = single("Sqrt", [single("AddN", [squares]) if len(squares) > 1 else squares[0]])
    bound = Tensor(np.array([clip_norm], norm._dtype.numpy))
    limit = single("Select", [single("GreaterEqual", [norm, bound]), norm, bound])
    clipped = [_shaped(div(mul(tensor, bound), limit), tensor) for tensor in x]
    return clipped if isinstance(x, list) else tuple(clipped)


def _square(tensor: Tensor) -> Tensor:
    """Call ops.square like a function of the script, since the vendor parses it once."""
    from dumpsim.frontends.mindspore._capture.control import called

    result: Tensor = called(elementwise.square, tensor)  # type: ignore[attr-defined]
    return result


def _shaped(result: Tensor, tensor: Tensor) -> Tensor:
    """Restore the shape of a 0-d tensor, to which the bound has added an axis."""
    return result if tensor.ndim else reshape(result, ())


def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Like `clip_by_global_norm`, for one tensor or several, and for the Euclidean norm only."""
    if norm_type != 2.0:
        raise ScriptValueError(f"norm_type is {norm_type}", where="ops.clip_by_norm", allowed=("2.0",))
    if error_if_nonfinite:
        raise ScriptValueError("error_if_nonfinite is True", where="ops.clip_by_norm", allowed=("False",))
    return clip_by_global_norm((x,), max_norm)[0] if isinstance(x, Tensor) else clip_by_global_norm(x, max_norm)
