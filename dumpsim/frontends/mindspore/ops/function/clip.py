"""Bounds on the norm of tensors."""

from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._checkparam import check_value_type
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function import elementwise
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.frontends.mindspore.ops.function.arithmetic import add, div, maximum, mul, pow
from dumpsim.frontends.mindspore.ops.function.reduce import max, reduce_sum
from dumpsim.frontends.mindspore.ops.function.shape import reshape, stack

__all__ = ["clip_by_global_norm", "clip_by_norm"]


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: Any = None) -> Any:
    """Scale tensors so that their joint norm is at most `clip_norm`.

    Raises
    ------
    ScriptTypeError, ScriptValueError, UnsupportedError
        For anything but a list or tuple of tensors, and for a bound that is not positive.

    Examples
    --------
    >>> [t.asnumpy().tolist() for t in clip_by_global_norm((Tensor([3.0]), Tensor([4.0])), 2.5)]
    [[1.5], [2.0]]
    """
    check_value_type("clip_norm", clip_norm, [int, float], "clip_by_global_norm")
    if clip_norm <= 0:
        raise ScriptValueError(f"For 'clip_by_global_norm', the argument 'clip_norm' must > 0.0, but got {clip_norm}.")
    if use_norm is not None:
        raise ScriptValueError(
            f"For '_ClipByGlobalNorm', input 'use_norm' only supports None currently, but got 'use_norm': {use_norm}"
        )
    if isinstance(x, Tensor) and capturing() is None:
        return clip_by_global_norm((x,), clip_norm)[0]
    if not isinstance(x, (tuple, list)):
        raise ScriptTypeError(f"x is a {type(x).__name__}", where="ops.clip_by_global_norm", allowed=("tuple", "list"))
    squares = tuple(single("ExpandDims", [reduce_sum(_square(tensor)), 0]) for tensor in x)
    norm = single("Sqrt", [single("AddN", [squares]) if len(squares) > 1 else squares[0]])
    bound = Tensor(np.array([clip_norm], norm._dtype.numpy))
    limit = single("Select", [single("GreaterEqual", [norm, bound]), norm, bound])
    return tuple(_shaped(div(mul(tensor, bound), limit), tensor) for tensor in x)


def _square(tensor: Tensor) -> Tensor:
    """Call ops.square like a function of the script, since the vendor parses it once."""
    from dumpsim.frontends.mindspore._capture.control import called

    result: Tensor = called(elementwise.square, tensor)  # type: ignore[attr-defined]
    return result


def _shaped(result: Tensor, tensor: Tensor) -> Tensor:
    """Restore the shape of a 0-d tensor, to which the bound has added an axis."""
    return result if tensor.ndim else reshape(result, ())


def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Scale one tensor or several so that their joint norm is at most `max_norm`.

    Raises
    ------
    ScriptRuntimeError
        For a norm that is not finite, where `error_if_nonfinite` says so.

    Examples
    --------
    >>> clip_by_norm(Tensor([3.0, 4.0]), 2.5).asnumpy().round(3)
    array([1.5, 2. ], dtype=float32)
    """
    tensors = [x] if isinstance(x, Tensor) else x
    if capturing() is not None:  # without a branch on the norm
        if norm_type != 2.0 or error_if_nonfinite:
            raise UnsupportedError("another norm in a graph", where="ops.clip_by_norm(norm_type)", allowed=("2.0",))
        clipped = clip_by_global_norm(tensors, max_norm)
        return clipped[0] if isinstance(x, Tensor) else clipped
    if norm_type == float("inf"):
        norms = [max(elementwise.absolute(tensor))[0] for tensor in tensors]
        total = norms[0]
        for norm in norms[1:]:
            total = maximum(total, norm)
    else:
        total = _norm(norm_type, stack([_norm(norm_type, tensor) for tensor in tensors]))
    if error_if_nonfinite and not np.isfinite(total.asnumpy()):
        raise ScriptRuntimeError(f"For clip_by_norm, the total norm of order {norm_type} from input is non-finite.")
    factor = div(max_norm, add(total, 1e-06))
    if factor < 1:
        clipped = tuple(mul(factor, tensor) for tensor in tensors)
        return clipped[0] if isinstance(x, Tensor) else clipped
    return x


def _norm(order: float, tensor: Tensor) -> Tensor:
    powers = reduce_sum(pow(tensor, order))
    return elementwise.unshared_cast(pow(powers, 1.0 / order), tensor.dtype)
