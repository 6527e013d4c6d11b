"""What the CPU's kernels make of NaN, infinities and zero divisors, where IEEE arithmetic gives something else.

They compare where IEEE's maximum propagates: ReLU of NaN is 0, and a maximum forgets each NaN but the first. So a NaN
that is missing in a CPU's dump may be there in an accelerator's. Each rule was observed in MindSpore 2.10, on NaN,
infinities, zeros and random numbers of float16, float32 and float64. [observed 2.10]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.ops.cpporder import nth_element, stable_sort
from dumpsim.ops.opdef import Kernel, OpDef
from dumpsim.ops.reduce import axes_of
from dumpsim.ops.table import find
from dumpsim.ops.window import Window

__all__ = ["on_target"]

Array = np.ndarray[Any, Any]

_KINDS = ("float16", "float32", "float64")
_LARGEST = np.finfo(np.float32).max  # where maxima begin
_SMALL = 3e-38  # chances above it have no power near 2**-125.5


@dataclass(frozen=True, slots=True)
class _Change:
    """How the CPU's kernel is made of the plain one, and for which number types."""

    make: Callable[[Kernel], Kernel]
    kinds: Sequence[str] = _KINDS


def on_target(definition: OpDef, target: str, operands: Sequence[Any]) -> OpDef:
    """The operator as a device target computes it.

    Parameters
    ----------
    definition : OpDef
    target : str
        ``Ascend``, ``GPU`` or ``CPU``.
    operands : sequence
        As they are stored; the number type of the first array decides.

    Returns
    -------
    OpDef
        `definition` itself, except on the CPU for operators and number types of this module.

    Examples
    --------
    >>> x = np.array([np.nan, -1, 2], np.float32)
    >>> on_target(find("ReLU"), "Ascend", [x]).kernel(x), on_target(find("ReLU"), "CPU", [x]).kernel(x)
    (array([nan,  0.,  2.], dtype=float32), array([0., 0., 2.], dtype=float32))
    """
    if target != "CPU" or definition.name not in _CHANGES or definition is not find(definition.name):
        return definition
    kind = next((str(one.dtype) for one in operands if isinstance(one, np.ndarray)), "")
    return _on_cpu(definition.name) if kind in _CHANGES[definition.name].kinds else definition


@cache
def _on_cpu(name: str) -> OpDef:
    definition = find(name)
    kernel = _CHANGES[name].make(definition.kernel)
    return replace(definition, kernel=np.errstate(all="ignore")(kernel))


def _has_nan(x: Array) -> bool:
    return bool(x.size) and bool(np.isnan(x.min()))


def _of_nan(number: float) -> _Change:
    """A function of one tensor that makes a number of NaN."""

    def make(plain: Kernel) -> Kernel:
        def run(x: Array, *settings: Any, **attrs: Any) -> Any:
            result = plain(x, *settings, **attrs)
            return np.where(np.isnan(x), x.dtype.type(number), result) if _has_nan(x) else result

        return run

    return _Change(make)


def _softplus(plain: Kernel) -> Kernel:
    """The logarithm of 1 + exp(x), as it is written; the power of NaN is infinite."""

    def run(x: Array) -> Any:
        result = np.where(1 + np.exp(x) == 1, x.dtype.type(0), plain(x))
        return np.where(np.isnan(x), x.dtype.type(np.inf), result)

    return run


def _slope_at_nan(slope: Callable[[Any], Any]) -> _Change:
    """A gradient of an activation function, ``(dy, x)``, that does not ask what x is where it is NaN."""

    def make(plain: Kernel) -> Kernel:
        def run(dy: Array, x: Array) -> Any:
            result = plain(dy, x)
            return np.where(np.isnan(x), slope(dy), result).astype(result.dtype) if _has_nan(x) else result

        return run

    return _Change(make)


def _left_of_minus_3(plain: Kernel) -> Kernel:
    """HSwish and its gradient: 0 there, whatever it would be multiplied with."""

    def run(*operands: Array) -> Any:
        result = plain(*operands)
        return np.where(operands[-1] <= -3, result.dtype.type(0), result)

    return run


def _mish(plain: Kernel) -> Kernel:
    """The hyperbolic tangent is a quotient of powers of float32, which are too large from some x on."""

    def run(x: Array) -> Any:
        single = x.astype(np.float32)
        gate = np.log(1 + np.exp(single))
        lost = np.isinf(np.exp(2 * gate)) | (gate == 0)
        return np.where(lost, x * np.where(gate == 0, 0, np.nan).astype(x.dtype), plain(x)) if lost.any() else plain(x)

    return run


def _by_zero(x: Array, y: Array, result: Any) -> Any:
    """A quotient: the sign of a zero divisor does not matter, and NaN counts as negative."""
    zero = np.asarray(y) == 0
    if not zero.any():
        return result
    kind = result.dtype
    if kind.kind == "f":
        high, low, none = np.inf, -np.inf, np.nan
    else:
        high, low, none = np.iinfo(kind).max, np.iinfo(kind).min, 0
    x = np.asarray(x)
    return np.where(zero, np.where(x == 0, none, np.where(x > 0, high, low)).astype(kind), result)


def _quotient(plain: Kernel) -> Kernel:
    return lambda x, y, *settings: _by_zero(x, y, plain(x, y, *settings))


def _floor_quotient(plain: Kernel) -> Kernel:
    """The quotient in float64, rounded down."""

    def run(x: Array, y: Array) -> Any:
        if not np.asarray(y).all() and np.asarray(y).dtype.kind == "i":
            return plain(x, y)
        quotient = np.floor(np.asarray(x, np.float64) / np.asarray(y, np.float64))
        return _by_zero(x, y, quotient.astype(np.result_type(x, y)))

    return run


def _remainder(rounded: Callable[[Any], Any], *, of_nan: float) -> Callable[[Kernel], Kernel]:
    """x - y * round(x / y), in float64; `of_nan`: what a quotient that is NaN is rounded to."""

    def make(plain: Kernel) -> Kernel:
        def run(x: Array, y: Array) -> Any:
            kind = np.result_type(x, y)
            wide, by = np.asarray(x, np.float64), np.asarray(y, np.float64)
            whole = rounded(wide / by)
            return (wide - by * np.where(np.isnan(whole), of_nan, whole)).astype(kind)

        return run

    return make


def _no_nan_quotient(plain: Kernel) -> Kernel:
    """0 where the divisor is within the type's epsilon of 0; halves are compared with 0 itself."""

    def run(x: Array, y: Array) -> Any:
        return np.where(np.abs(y) < np.finfo(y.dtype).eps, x.dtype.type(0), plain(x, y))

    return run


def _step(plain: Kernel) -> Kernel:
    """Heaviside: x within float64's epsilon of 0 counts as 0 (of halves, only 0 does), and NaN as negative."""

    def run(x: Array, values: Array) -> Any:
        zero = np.abs(x) < np.finfo(np.float64).eps
        return np.where(zero, values, (x > 0).astype(x.dtype))

    return run


def _greater(compare: Callable[[Any, Any], Any]) -> _Change:
    """Maximum and Minimum: the first where it compares so, else the second; a NaN in the first is lost."""

    def make(plain: Kernel) -> Kernel:
        def run(x: Array, y: Array) -> Any:
            result = plain(x, y)
            return np.where(compare(x, y), x, y) if _has_nan(np.asarray(result)) else result

        return run

    return _Change(make)


def _sum(plain: Kernel) -> Kernel:
    """In float64."""

    def run(x: Array, *settings: Any) -> Any:
        return np.asarray(plain(x.astype(np.float64), *settings)).astype(x.dtype)

    return run


def _mean(plain: Kernel) -> Kernel:
    """Sums as those of `_sum`, those of small types in the type itself, divided in float32, rounded towards zero."""

    def run(x: Array, axis: Any = (), keep_dims: bool = False) -> Any:
        axes = axes_of("ReduceMean", axis, x.ndim)
        if not axes:
            return plain(x, axis, keep_dims)
        count = np.float32(np.prod([x.shape[at] for at in axes]))
        wide = np.float64 if x.dtype.itemsize > 2 else x.dtype
        total = x.sum(axis=axes, keepdims=keep_dims, dtype=wide).astype(x.dtype).astype(np.float32)
        return np.asarray(np.trunc(total / count)).astype(x.dtype)

    return run


def _running(extreme: np.ufunc) -> _Change:
    """A maximum that is kept unless the next element is greater: NaN stays where it comes first, else it is lost."""

    def make(plain: Kernel) -> Kernel:
        def run(x: Array, axis: Any = (), keep_dims: bool = False, skip_mode: bool = False) -> Any:
            result = plain(x, axis, keep_dims, skip_mode) if skip_mode else plain(x, axis, keep_dims)
            if not x.ndim or not _has_nan(x) or (skip_mode and not isinstance(axis, int) and not axis):
                return result
            axes = axes_of(extreme.__name__, axis, x.ndim)
            first = x[tuple(slice(0, 1) if at in axes else slice(None) for at in range(x.ndim))]
            best = extreme.reduce(x, axis=axes, keepdims=True)
            return np.where(np.isnan(first), first, best).reshape(np.shape(result))

        return run

    return _Change(make)


def _place(lowest: float, choose: Callable[..., Any]) -> Callable[[Array, int], Array]:
    """The place of the running extreme along an axis."""

    def find_place(x: Array, axis: int) -> Array:
        index = choose(np.where(np.isnan(x), x.dtype.type(lowest), x), axis=axis)
        return np.where(np.isnan(np.take(x, 0, axis=axis)), 0, index)

    return find_place


def _argument(place: Callable[[Array, int], Array]) -> _Change:
    def make(plain: Kernel) -> Kernel:
        def run(x: Array, axis: int = -1, output_type: Any = None) -> Any:
            result = plain(x, axis, output_type)
            return place(x, axis).astype(result.dtype) if x.ndim and _has_nan(x) else result

        return run

    return _Change(make)


def _argument_with_value(place: Callable[[Array, int], Array]) -> _Change:
    def make(plain: Kernel) -> Kernel:
        def run(x: Array, axis: int = 0, keep_dims: bool = False) -> Any:
            if not x.ndim or not _has_nan(x):
                return plain(x, axis, keep_dims)
            index = np.expand_dims(place(x, axis), axis)
            value = np.take_along_axis(x, index, axis)
            index = index.astype(np.int64)
            return (index, value) if keep_dims else (index.squeeze(axis), value.squeeze(axis))

        return run

    return _Change(make)


def _is_last(axis: Any, rank: int) -> bool:
    """Whether an axis is the last one; the kernels of other axes follow IEEE arithmetic."""
    named = axis if isinstance(axis, tuple | list) else (axis,)
    return [at % rank for at in named] == [rank - 1]


def _chances(x: Array) -> Array:
    """Softmax of float32 along the last axis.

    Powers below 2**-125.5 are 0, the power of NaN is infinite, and where all powers are 0 the chances are 0.
    """
    centred = x - np.maximum(np.fmax.reduce(x, axis=-1, keepdims=True), -_LARGEST)
    powers = np.where(centred < -125.5 * np.log(2), np.float32(0), np.exp(centred))
    powers[np.isnan(centred)] = np.inf
    total = powers.sum(axis=-1, keepdims=True)
    return np.where(np.isnan(centred), centred, np.where(total == 0, np.float32(0), powers / total))


def _softmax(plain: Kernel) -> Kernel:
    def run(x: Array, axis: Any = -1) -> Any:
        result = plain(x, axis)
        if not result.size or result.min() >= _SMALL or not _is_last(axis, x.ndim):
            return result
        return _chances(x)

    return run


def _log_softmax(plain: Kernel) -> Kernel:
    """The power of NaN is infinite, so that the logarithms of the others in its row become -infinity."""

    def run(x: Array, axis: int = -1) -> Any:
        result = plain(x, axis)
        if not _has_nan(result) or not _is_last(axis, x.ndim):
            return result
        greatest = np.fmax.reduce(x, axis=-1, keepdims=True)
        itself = np.isnan(x - np.maximum(greatest, -_LARGEST)) | (greatest == -np.inf)
        return np.where(np.isnan(result) & ~itself, x.dtype.type(-np.inf), result)

    return run


def _sparse_cross_entropy(plain: Kernel) -> Kernel:
    """Minus the logarithm of the chance itself: infinite where the chance is 0."""

    def run(x: Array, labels: Array, *, is_grad: bool = False, sens: float = 1.0) -> Any:
        chances = _chances(x)
        taken = np.take_along_axis(chances, labels[..., None], -1)
        if not chances.size or chances.min() >= _SMALL or (not is_grad and taken.min() >= _SMALL):
            return plain(x, labels, is_grad=is_grad, sens=sens)
        if not is_grad:
            return -np.log(taken).mean(dtype=x.dtype)
        np.put_along_axis(chances, labels[..., None], taken - 1, -1)
        return chances * np.asanyarray(sens / labels.size, chances.dtype)

    return run


def _max_pool(plain: Kernel) -> Kernel:
    """Each element of a window is taken unless it is less: NaN is kept where it comes last."""

    def run(x: Array, **attrs: Any) -> Any:
        if x.dtype.kind != "f" or np.isfinite(x.min()):
            return plain(x, **attrs)
        window = _window(x, attrs)
        best = np.full((*x.shape[:2], *window.out), -_LARGEST, x.dtype)
        inside = window.taps(window.pad(np.ones(x.shape[2:], np.bool_), False))
        for tap, there in zip(window.taps(window.pad(x)), inside, strict=True):
            best = np.where(there & ~(tap < best), tap, best)
        return best

    return run


def _max_pool_slope(plain: Kernel) -> Kernel:
    """Each window hands its gradient to the last element that was greater than all before it, else to the first."""

    def run(x: Array, out: Array, dout: Array, **attrs: Any) -> Any:
        if x.dtype.kind != "f" or np.isfinite(x.min()):
            return plain(x, out, dout, **attrs)
        window = _window(x, attrs)
        wide = window.pad(x, -np.inf)
        best, place = np.full(out.shape, -_LARGEST, x.dtype), np.zeros(out.shape, np.intp)
        for at, tap in enumerate(window.taps(wide)):
            place = np.where(tap > best, at, place)
            best = np.where(tap > best, tap, best)
        slopes = np.zeros_like(wide, dout.dtype)
        for at, target in enumerate(window.taps(slopes)):
            target += np.where(place == at, dout, 0)
        return window.crop(slopes)

    return run


def _window(x: Array, attrs: Mapping[str, Any]) -> Window:
    return Window.of(x.shape[2:], attrs["kernel_size"], attrs["strides"], 1, attrs["pad_mode"])


def _clamp(plain: Kernel) -> Kernel:
    """A maximum, then a minimum."""

    def run(x: Array, low: Any = None, high: Any = None) -> Any:
        result = plain(x, low, high)
        limit = low if low is not None else high
        return result if limit is None or not _has_nan(x) else np.where(np.isnan(x), x.dtype.type(limit), result)

    return run


def _numbers_of_half(plain: Kernel) -> Kernel:
    def run(x: Array, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
        largest = float(np.finfo(np.float16).max)
        return plain(x, nan, largest if posinf is None else posinf, -largest if neginf is None else neginf)

    return run


def _top(plain: Kernel) -> Kernel:
    """Up to half of a row is chosen by `nth_element` and then sorted, more of it is sorted as a whole."""

    def run(x: Array, k: Any, *, sorted: bool = True) -> Any:
        count = int(np.asarray(k).reshape(()))
        values, index = plain(x, min(count + 1, x.shape[-1]))
        chosen = index[..., :count].copy()
        unclear = np.isnan(values).any(axis=-1) | (values[..., 1:] == values[..., :-1]).any(axis=-1) | (not sorted)
        for row in zip(*np.nonzero(unclear), strict=True) if x.ndim > 1 else [()] * bool(unclear):
            numbers = x[row].tolist()
            order = list(range(len(numbers)))
            before = _descends(numbers)
            if sorted and count > len(numbers) // 2:
                stable_sort(order, before)
            else:
                nth_element(order, count, before)
                if sorted:
                    best = order[:count]
                    stable_sort(best, before)
                    order[:count] = best
            chosen[row] = order[:count]
        return np.take_along_axis(x, chosen, -1), chosen.astype(np.int32)

    return run


def _descends(numbers: Sequence[float]) -> Callable[[int, int], bool]:
    return lambda one, other: numbers[one] > numbers[other]


def _ascends(numbers: Sequence[float]) -> Callable[[int, int], bool]:
    return lambda one, other: numbers[one] < numbers[other]


def _sort(plain: Kernel) -> Kernel:
    """By comparisons alone: NaN stays where it meets no element that is compared past it."""

    def run(x: Array, *, axis: int = -1, descending: bool = False) -> Any:
        if not x.size or not _has_nan(x):
            return plain(x, axis=axis, descending=descending)
        places = np.empty(np.moveaxis(x, axis, -1).shape, np.int32)
        rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
        for row, found in zip(rows, places.reshape(rows.shape), strict=True):
            order = list(range(len(row)))
            stable_sort(order, (_descends if descending else _ascends)(row.tolist()))
            found[:] = order
        index = np.moveaxis(places, -1, axis)
        return np.take_along_axis(x, index, axis), index

    return run


def _without_nan(at: int, number: float) -> _Change:
    """A maximum or minimum by indices: NaN in one operand loses every comparison."""

    def make(plain: Kernel) -> Kernel:
        def run(*operands: Any) -> Any:
            given = list(operands)
            if _has_nan(given[at]):
                given[at] = np.where(np.isnan(given[at]), given[at].dtype.type(number), given[at])
            return plain(*given)

        return run

    return _Change(make)


def _unit_vector(plain: Kernel) -> Kernel:
    """A length that is NaN counts as `epsilon`."""

    def run(x: Array, *, axis: Any = 0, epsilon: float = 1e-4) -> Any:
        result = plain(x, axis=axis, epsilon=epsilon)
        if not _has_nan(x):
            return result
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
        lost = np.isnan(np.square(x).sum(axis=axes, keepdims=True))
        return np.where(lost, x / np.sqrt(x.dtype.type(epsilon)), result)

    return run


def _distinct(plain: Kernel) -> Kernel:
    """No NaN equals another."""

    def run(x: Array) -> Any:
        if not _has_nan(x):
            return plain(x)
        values, first, index = np.unique(x.reshape(-1), return_index=True, return_inverse=True, equal_nan=False)
        order = np.argsort(first)
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        return values[order], places[index.reshape(-1)].astype(np.int32)

    return run


_GREATEST, _LEAST = _place(-np.inf, np.argmax), _place(np.inf, np.argmin)

_CHANGES: Mapping[str, _Change] = MappingProxyType(
    {
        "ReLU": _of_nan(0),
        "ReLU6": _of_nan(0),
        "Sign": _of_nan(0),
        "HShrink": _of_nan(0),
        "Softplus": _Change(_softplus),
        "Mish": _Change(_mish),
        "HSwish": _Change(_left_of_minus_3),
        "HSwishGrad": _Change(_left_of_minus_3),
        "EluGrad": _slope_at_nan(lambda dy: dy),
        "SoftplusGrad": _slope_at_nan(lambda dy: dy * 0),
        "HSigmoidGrad": _slope_at_nan(lambda dy: dy / 6),
        "Div": _Change(_quotient),
        "RealDiv": _Change(_quotient, (*_KINDS, "int8", "int16", "int32", "int64", "uint8")),
        "TruncateDiv": _Change(_quotient),
        "FloorDiv": _Change(_floor_quotient, (*_KINDS, "int64")),
        "Mod": _Change(_remainder(np.trunc, of_nan=0), (*_KINDS, "int64")),
        "FloorMod": _Change(_remainder(np.floor, of_nan=np.nan), (*_KINDS, "int64")),
        "DivNoNan": _Change(_no_nan_quotient, ("float32", "float64")),
        "Xlogy": _Change(lambda plain: lambda x, y: x * np.log(y)),
        "Heaviside": _Change(_step),
        "Maximum": _greater(np.greater),
        "Minimum": _greater(np.less),
        "ClampScalar": _Change(_clamp),
        "Hardtanh": _Change(_clamp),
        "NanToNum": _Change(_numbers_of_half, ("float16",)),
        "ReduceSum": _Change(_sum, ("int32", "int64")),
        "ReduceMean": _Change(_mean, ("int8", "int16", "int32", "int64", "uint8")),
        "ReduceMax": _running(np.fmax),
        "ReduceMin": _running(np.fmin),
        "Argmax": _argument(_GREATEST),
        "Argmin": _argument(_LEAST),
        "ArgMaxWithValue": _argument_with_value(_GREATEST),
        "ArgMinWithValue": _argument_with_value(_LEAST),
        "Softmax": _Change(_softmax, ("float32",)),
        "LogSoftmax": _Change(_log_softmax),
        "SparseSoftmaxCrossEntropyWithLogits": _Change(_sparse_cross_entropy),
        "MaxPool": _Change(_max_pool),
        "MaxPoolGrad": _Change(_max_pool_slope),
        "UnsortedSegmentMax": _without_nan(0, -np.inf),
        "UnsortedSegmentMin": _without_nan(0, np.inf),
        "TensorScatterMax": _without_nan(2, -np.inf),
        "TensorScatterMin": _without_nan(2, np.inf),
        "L2Normalize": _Change(_unit_vector),
        "Unique": _Change(_distinct),
        "TopK": _Change(_top, (*_KINDS, "int8", "int16", "int32", "int64", "uint8")),
        "Sort": _Change(_sort),
    }
)
