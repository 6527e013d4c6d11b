"""MindSpore's CPU kernels where they differ from IEEE arithmetic: for NaN, infinities and zero divisors.

They use comparisons, which do not propagate NaN: ReLU of NaN is 0, and a maximum ignores every NaN but the first. So a
NaN in an accelerator's dump may be missing in a CPU's. Each rule was observed in MindSpore 2.10, on NaN, infinities,
zeros and random numbers of float16, float32 and float64. [observed 2.10]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.ops.average import cpu_slope
from dumpsim.ops.cpporder import nth_element, stable_sort
from dumpsim.ops.opdef import Kernel, OpDef
from dumpsim.ops.order import unique
from dumpsim.ops.pool import max_window
from dumpsim.ops.reduce import argument, reduction, with_value
from dumpsim.ops.table import find

__all__ = ["on_target"]

Array = np.ndarray[Any, Any]

_KINDS = ("float16", "float32", "float64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
_LARGEST = np.finfo(np.float32).max  # initial value of a maximum
_SMALL = 3e-38  # above it, no exponential is near 2**-125.5


@dataclass(frozen=True, slots=True)
class _Change:
    """How to derive the CPU's kernel from the plain one, and for which number types."""

    make: Callable[[Kernel], Kernel]
    kinds: Sequence[str] = _KINDS


def on_target(definition: OpDef, target: str, operands: Sequence[Any]) -> OpDef:
    """Return the operator as a device target computes it.

    Parameters
    ----------
    definition : OpDef
    target : str
        ``Ascend``, ``GPU`` or ``CPU``.
    operands : sequence
        In their stored types; the number type of the first array decides.

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
    """Return the change of a function of one tensor whose result for NaN is a number."""

    def make(plain: Kernel) -> Kernel:
        def run(x: Array, *settings: Any, **attrs: Any) -> Any:
            result = plain(x, *settings, **attrs)
            return np.where(np.isnan(x), x.dtype.type(number), result) if _has_nan(x) else result

        return run

    return _Change(make)


def _softplus(plain: Kernel) -> Kernel:
    """log(1 + exp(x)), computed in this way; exp of NaN is infinite."""

    def run(x: Array) -> Any:
        result = np.where(1 + np.exp(x) == 1, x.dtype.type(0), plain(x))
        return np.where(np.isnan(x), x.dtype.type(np.inf), result)

    return run


def _slope_at_nan(slope: Callable[[Any], Any]) -> _Change:
    """Return the change of an activation's gradient ``(dy, x)`` that is ``slope(dy)`` where x is NaN."""

    def make(plain: Kernel) -> Kernel:
        def run(dy: Array, x: Array) -> Any:
            result = plain(dy, x)
            return np.where(np.isnan(x), slope(dy), result).astype(result.dtype) if _has_nan(x) else result

        return run

    return _Change(make)


def _left_of_minus_3(plain: Kernel) -> Kernel:
    """HSwish and its gradient are 0 for x <= -3, even if the other factor is infinite or NaN."""

    def run(*operands: Array) -> Any:
        result = plain(*operands)
        return np.where(operands[-1] <= -3, result.dtype.type(0), result)

    return run


def _mish(plain: Kernel) -> Kernel:
    """The hyperbolic tangent is a quotient of float32 exponentials, which overflow for large x."""

    def run(x: Array) -> Any:
        single = x.astype(np.float32)
        gate = np.log(1 + np.exp(single))
        off = np.isinf(np.exp(2 * gate)) | (gate == 0)
        return np.where(off, x * np.where(gate == 0, 0, np.nan).astype(x.dtype), plain(x)) if off.any() else plain(x)

    return run


def _by_zero(x: Array, y: Array, result: Any) -> Any:
    """Apply the rule for zero divisors: their sign is ignored, and a NaN dividend counts as negative."""
    zero = np.asarray(y) == 0
    if not zero.any():
        return result
    kind = result.dtype
    if kind.kind == "f":
        high, low, none = np.inf, -np.inf, np.nan
    else:
        high, low, none = np.iinfo(kind).max, np.iinfo(kind).min, 0
    x = np.asarray(x)
    return np.where(zero, np.where(x > 0, high, np.where(x == 0, none, low)).astype(kind), result)


def _quotient(plain: Kernel) -> Kernel:
    return lambda x, y, *settings: _by_zero(x, y, plain(x, y, *settings))


def _floor_quotient(plain: Kernel) -> Kernel:
    """The quotient in float64, rounded down."""

    def run(x: Array, y: Array) -> Any:
        quotient = np.floor(np.asarray(x, np.float64) / np.asarray(y, np.float64))
        return _by_zero(x, y, quotient.astype(np.result_type(x, y)))

    return run


def _remainder(rounded: Callable[[Any], Any], *, of_nan: float) -> Callable[[Kernel], Kernel]:
    """Return x - y * round(x / y) in float64; `of_nan` replaces a quotient that is NaN."""

    def make(plain: Kernel) -> Kernel:
        def run(x: Array, y: Array) -> Any:
            kind = np.result_type(x, y)
            wide, by = np.asarray(x, np.float64), np.asarray(y, np.float64)
            whole = rounded(wide / by)
            return (wide - by * np.where(np.isnan(whole), of_nan, whole)).astype(kind)

        return run

    return make


def _power(plain: Kernel) -> Kernel:
    """Powers of integers are float64 in between: one that does not fit becomes the smallest integer."""

    def run(x: Array, y: Any) -> Any:
        result = np.asarray(plain(x, y))
        if result.dtype.kind != "i":
            return result
        info = np.iinfo(result.dtype)
        wide = np.power(np.asarray(x, np.float64), np.asarray(y, np.float64))
        return np.where(np.abs(wide) > info.max, info.min, result).astype(result.dtype)

    return run


def _fused(x: Array, y: Array, add: float) -> Array:
    """x * y + add of float32, rounded once."""
    return (x.astype(np.float64) * y.astype(np.float64) + add).astype(np.float32)


def _tanh(x: Array) -> Array:
    """A quotient of polynomials, which exceeds 1 just before 5; beyond it is 1. Equal bit by bit. [2.10 observed]"""
    square = x * x
    above = _fused(_fused(square + np.float32(378), square, 17325), square, 135135) * x
    below = _fused(_fused(_fused(np.full_like(square, 28), square, 3150), square, 62370), square, 135135)
    return np.where(np.abs(x) > 5, np.sign(x), above / below).astype(np.float32)


def _no_nan_quotient(plain: Kernel) -> Kernel:
    """0 if the divisor is within the type's epsilon of 0; float16 is compared with 0 itself."""

    def run(x: Array, y: Array) -> Any:
        return np.where(np.abs(y) < np.finfo(y.dtype).eps, x.dtype.type(0), plain(x, y))

    return run


def _step(plain: Kernel) -> Kernel:
    """Heaviside: x within float64's epsilon of 0 counts as 0 (for float16 only 0 itself), and NaN as negative."""

    def run(x: Array, values: Array) -> Any:
        zero = np.abs(x) < np.finfo(np.float64).eps
        return np.where(zero, values, (x > 0).astype(x.dtype))

    return run


def _greater(compare: Callable[[Any, Any], Any]) -> _Change:
    """Maximum and Minimum: the first operand if the comparison holds, else the second; NaN in the first is ignored."""

    def make(plain: Kernel) -> Kernel:
        def run(x: Array, y: Array) -> Any:
            result = plain(x, y)
            return np.where(compare(x, y), x, y) if _has_nan(np.asarray(result)) else result

        return run

    return _Change(make)


def _sum(x: Array, axis: Any, keepdims: bool) -> Any:
    """Sum in float64."""
    return x.sum(axis=axis, keepdims=keepdims, dtype=np.float64).astype(x.dtype)


def _mean(x: Array, axis: Any, keepdims: bool) -> Any:
    """Sum, for small types in the type itself, divide in float32 and round towards zero."""
    small = x.dtype.itemsize <= 2
    total = x.sum(axis=axis, keepdims=keepdims, dtype=x.dtype) if small else _sum(x, axis, keepdims)
    count = np.float32(np.prod([x.shape[at] for at in axis]))
    return np.trunc(total.astype(np.float32) / count).astype(x.dtype)


def _running(extreme: np.ufunc, plain: np.ufunc) -> Callable[..., Any]:
    """A maximum that is replaced only by greater elements: a NaN remains if it is first, and is ignored otherwise."""

    def run(x: Array, axis: Any, keepdims: bool) -> Any:
        if not _has_nan(x):
            return plain.reduce(x, axis=axis, keepdims=keepdims)
        first = x[tuple(slice(0, 1) if at in axis else slice(None) for at in range(x.ndim))]
        best = np.where(np.isnan(first), first, extreme.reduce(x, axis=axis, keepdims=True))
        return best if keepdims else best.squeeze(axis)

    return run


def _index_of(lowest: float, choose: Callable[..., Any]) -> Callable[..., Array]:
    """Return a function that finds the index of the running extreme along an axis."""

    def find_place(x: Array, axis: int) -> Array:
        if not x.ndim or not _has_nan(x):
            return np.asarray(choose(x, axis=axis))
        index = choose(np.where(np.isnan(x), x.dtype.type(lowest), x), axis=axis)
        return np.where(np.isnan(np.take(x, 0, axis=axis)), 0, index)

    return find_place


def _instead(kernel: Kernel, kinds: Sequence[str] = _KINDS) -> _Change:
    """Return the change to a kernel that is independent of the plain one."""
    return _Change(lambda plain: kernel, kinds)


def _is_last(axis: Any, rank: int) -> bool:
    """Whether an axis is the last one; the kernels of other axes follow IEEE arithmetic."""
    named = axis if isinstance(axis, tuple | list) else (axis,)
    return [at % rank for at in named] == [rank - 1]


def _probabilities(x: Array) -> Array:
    """Softmax of float32 along the last axis.

    Exponentials below 2**-125.5 are 0, exp of NaN is infinite, and if all exponentials are 0, so are the results.
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
        return _probabilities(x)

    return run


def _log_softmax(plain: Kernel) -> Kernel:
    """exp of NaN is infinite, so that the logarithms of the others in its row become -infinity."""

    def run(x: Array, axis: int = -1) -> Any:
        result = plain(x, axis)
        if not _has_nan(result) or not _is_last(axis, x.ndim):
            return result
        greatest = np.fmax.reduce(x, axis=-1, keepdims=True)
        itself = np.isnan(x - np.maximum(greatest, -_LARGEST)) | (greatest == -np.inf)
        return np.where(np.isnan(result) & ~itself, x.dtype.type(-np.inf), result)

    return run


def _sparse_cross_entropy(plain: Kernel) -> Kernel:
    """The loss is minus the logarithm of the probability itself: infinite if the probability is 0."""

    def run(x: Array, labels: Array, *, is_grad: bool = False, sens: float = 1.0) -> Any:
        probabilities = _probabilities(x)
        taken = np.take_along_axis(probabilities, labels[..., None], -1)
        if not probabilities.size or probabilities.min() >= _SMALL or (not is_grad and taken.min() >= _SMALL):
            return plain(x, labels, is_grad=is_grad, sens=sens)
        if not is_grad:
            return -np.log(taken).mean(dtype=x.dtype)
        np.put_along_axis(probabilities, labels[..., None], taken - 1, -1)
        return probabilities * np.asanyarray(sens / labels.size, probabilities.dtype)

    return run


def _max_pool(plain: Kernel) -> Kernel:
    """Each element of a window replaces the result unless it is less: a NaN remains if it comes last."""

    def run(x: Array, **attrs: Any) -> Any:
        if np.isfinite(x.min()):
            return plain(x, **attrs)
        window = max_window(x.shape, attrs)
        best = np.full((*x.shape[:2], *window.out), -_LARGEST, x.dtype)
        inside = window.taps(window.pad(np.ones(x.shape[2:], np.bool_), False))
        for tap, there in zip(window.taps(window.pad(x)), inside, strict=True):
            best = np.where(there & ~(tap < best), tap, best)
        return best

    return run


def _max_pool_slope(plain: Kernel) -> Kernel:
    """The gradient of a window goes to the last element that is greater than all before it, else to the first."""

    def run(x: Array, out: Array, dout: Array, **attrs: Any) -> Any:
        if np.isfinite(x.min()):
            return plain(x, out, dout, **attrs)
        window = max_window(x.shape, attrs)
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
    """At most half of a row is selected by `nth_element` and then sorted; for more of it the whole row is sorted."""

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
    """Sort with comparisons only: the position of NaN depends on the elements that it is compared with."""

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
    """A norm that is NaN counts as `epsilon`."""

    def run(x: Array, *, axis: Any = 0, epsilon: float = 1e-4) -> Any:
        result = plain(x, axis=axis, epsilon=epsilon)
        if not _has_nan(x):
            return result
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
        lost = np.isnan(np.square(x).sum(axis=axes, keepdims=True))
        return np.where(lost, x / np.sqrt(x.dtype.type(epsilon)), result)

    return run


_GREATEST, _LEAST = _index_of(-np.inf, np.argmax), _index_of(np.inf, np.argmin)

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
        "RealDiv": _Change(_quotient, (*_KINDS, *_INTEGERS)),
        "TruncateDiv": _Change(_quotient, (*_KINDS, *_INTEGERS)),
        "FloorDiv": _Change(_floor_quotient, (*_KINDS, *_INTEGERS)),
        "Mod": _Change(_remainder(np.trunc, of_nan=0), (*_KINDS, *_INTEGERS)),
        "FloorMod": _Change(_remainder(np.floor, of_nan=np.nan), (*_KINDS, *_INTEGERS)),
        "Pow": _Change(_power, ("int32", "int64")),
        "PowTensorScalar": _Change(_power, ("int32", "int64")),
        "Tanh": _instead(_tanh, ("float32",)),
        "DivNoNan": _Change(_no_nan_quotient, ("float32", "float64")),
        "Xlogy": _instead(lambda x, y: x * np.log(y)),
        "Heaviside": _Change(_step),
        "Maximum": _greater(np.greater),
        "Minimum": _greater(np.less),
        "ClampScalar": _Change(_clamp),
        "Hardtanh": _Change(_clamp),
        "NanToNum": _Change(_numbers_of_half, ("float16",)),
        "ReduceSum": _instead(reduction("ReduceSum", _sum), ("int32", "int64")),
        "ReduceMean": _instead(reduction("ReduceMean", _mean), _INTEGERS),
        "ReduceMax": _instead(reduction("ReduceMax", _running(np.fmax, np.maximum))),
        "ReduceMin": _instead(reduction("ReduceMin", _running(np.fmin, np.minimum))),
        "Max": _instead(lambda x: _running(np.fmax, np.maximum)(x, tuple(range(x.ndim)), False)),
        "Min": _instead(lambda x: _running(np.fmin, np.minimum)(x, tuple(range(x.ndim)), False)),
        "Argmax": _instead(argument(_GREATEST)),
        "Argmin": _instead(argument(_LEAST)),
        "ArgMaxWithValue": _instead(with_value(_GREATEST)),
        "ArgMinWithValue": _instead(with_value(_LEAST)),
        "Softmax": _Change(_softmax, ("float32",)),
        "LogSoftmax": _Change(_log_softmax),
        "SparseSoftmaxCrossEntropyWithLogits": _Change(_sparse_cross_entropy),
        "AvgPool3DGrad": _instead(cpu_slope),
        "MaxPool": _Change(_max_pool),
        "MaxPoolGrad": _Change(_max_pool_slope),
        "UnsortedSegmentMax": _without_nan(0, -np.inf),
        "UnsortedSegmentMin": _without_nan(0, np.inf),
        "TensorScatterMax": _without_nan(2, -np.inf),
        "TensorScatterMin": _without_nan(2, np.inf),
        "L2Normalize": _Change(_unit_vector),
        "Unique": _instead(partial(unique, equal_nan=False)),
        "TopK": _Change(_top, (*_KINDS, *_INTEGERS)),
        "Sort": _Change(_sort),
    }
)
