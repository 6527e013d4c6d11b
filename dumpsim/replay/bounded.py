"""Arrays that carry a bound on their rounding errors through the kernels of the operator table.

A kernel computes with numpy. Given `Bounded` operands, it computes in float64 and, for every value, a bound on the
error of the same steps in a narrower type: a running error analysis (N. J. Higham, Accuracy and Stability of
Numerical Algorithms, 2nd edition, sections 3.1 and 3.3). One rounding adds the unit roundoff ``u`` of the type times
the result. A sum of ``n`` terms adds ``gamma(n)`` times the sum of their absolute values, in any order.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from dumpsim.replay.slope import MACHINES, Machine, Slope
from dumpsim.replay.unit import gamma

__all__ = ["DEVICE", "Bounded", "Untracked", "bound_of", "exact", "plain"]

Array = np.ndarray[Any, Any]

_FUNCTION = 8.0  # unit roundoffs of functions that numpy does not have
DEVICE = Machine(unit=2.0**-24, slopes=MACHINES["device"])


class Untracked(Exception):
    """A kernel uses a function that does not propagate bounds."""


def bound_of(value: Any, unit: float = 0.0) -> Any:
    """Return the bound of an operand; that of a constant is its rounding error in the type."""
    if isinstance(value, Bounded):
        if value.bound is None:
            raise Untracked("a view without bounds")
        return value.bound
    if isinstance(value, tuple | list):
        return 0.0
    array = np.asarray(value)
    if array.dtype.kind == "f" and array.ndim == 0:
        number = float(array)
        return 0.0 if number == float(np.float32(number)) else abs(number) * unit
    return 0.0


def exact(value: Array, machine: Machine = DEVICE) -> "Bounded":
    """Return an operand for a kernel: float64, with an error of zero.

    Examples
    --------
    >>> x = exact(np.array([1.0, 3.0]))
    >>> total = (x / 3).sum()
    >>> float(total.bound) > 0, bool(abs(float(np.float32(1) / 3 + 1) - float(total)) <= float(total.bound))
    (True, True)
    """
    return Bounded.of(np.array(value, np.float64), np.zeros(value.shape), machine)


def plain(value: Any) -> Any:
    """Return the values without bounds."""
    return value.view(np.ndarray) if isinstance(value, Bounded) else value


class Bounded(np.ndarray[Any, Any]):
    """Values in float64 with a bound on the error of each.

    Attributes
    ----------
    bound : array or None
        Of the same shape; None for a view that numpy created itself.
    machine : Machine
        How the device rounds.
    """

    bound: Any
    machine: Machine

    @classmethod
    def of(cls, value: Any, bound: Any, machine: Machine) -> "Bounded":
        """Return an array of values with bounds."""
        found = np.asarray(value, np.float64).view(cls)
        errors = np.asarray(bound, np.float64)
        found.bound = errors if errors.shape == found.shape else np.broadcast_to(errors, found.shape).copy()
        found.machine = machine
        return found

    def __array_finalize__(self, origin: Any) -> None:
        self.bound = None
        self.machine = getattr(origin, "machine", DEVICE)

    @property
    def unit(self) -> float:
        """Unit roundoff of the type that the device computes in."""
        return self.machine.unit

    # -- views

    def _viewed(self, function: Callable[[Array], Any]) -> Any:
        """Apply a function that only moves elements to values and bounds."""
        value, bound = function(plain(self)), function(bound_of(self))
        found = value.view(Bounded) if isinstance(value, np.ndarray) else np.asarray(value).view(Bounded)
        found.bound, found.machine = np.asarray(bound), self.machine
        return found

    def __getitem__(self, key: Any) -> Any:
        return self._viewed(lambda x: x[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        bound = bound_of(self)
        if not bound.flags.writeable:
            bound = self.bound = bound.copy()
        plain(self)[key] = plain(value)
        bound[key] = bound_of(value, self.unit)

    @property
    def T(self) -> Any:  # noqa: N802 - numpy's name
        return self._viewed(lambda x: x.T)

    def reshape(self, *shape: Any, **options: Any) -> Any:
        return self._viewed(lambda x: x.reshape(*shape, **options))

    def transpose(self, *axes: Any) -> Any:
        return self._viewed(lambda x: x.transpose(*axes))

    def swapaxes(self, *axes: Any) -> Any:
        return self._viewed(lambda x: x.swapaxes(*axes))

    def squeeze(self, *axes: Any, **options: Any) -> Any:
        return self._viewed(lambda x: x.squeeze(*axes, **options))

    def ravel(self, *order: Any) -> Any:
        return self._viewed(lambda x: x.ravel(*order))

    def copy(self, *order: Any) -> Any:
        return self._viewed(lambda x: x.copy())

    def astype(self, kind: Any, *rest: Any, **options: Any) -> Any:  # type: ignore[override]
        """Return self for any float type, since a kernel's types are not the device's; otherwise convert."""
        return self if np.dtype(kind).kind == "f" else plain(self).astype(kind)

    # -- reductions

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **rest: Any) -> Any:  # type: ignore[override]
        if out is not None or rest:
            raise Untracked("sum")
        value, bound = plain(self), bound_of(self)
        total = value.sum(axis=axis, keepdims=keepdims)
        terms = value.size / max(np.size(total), 1)
        size = np.abs(value).sum(axis=axis, keepdims=keepdims)
        error = bound.sum(axis=axis, keepdims=keepdims)
        return Bounded.of(total, error + gamma(max(terms - 1, 0), self.unit) * (size + error), self.machine)

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **rest: Any) -> Any:  # type: ignore[override]
        total = self.sum(axis, None, out, keepdims, **rest)
        return total / float(self.size / max(total.size, 1))

    def prod(self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **rest: Any) -> Any:  # type: ignore[override]
        value, bound = plain(self), bound_of(self)
        total = value.prod(axis=axis, keepdims=keepdims)
        terms = value.size / max(np.size(total), 1)
        with np.errstate(all="ignore"):
            relative = np.where(bound > 0, bound / np.abs(value), 0.0).sum(axis=axis, keepdims=keepdims)
        return Bounded.of(total, np.abs(total) * (relative + gamma(terms, self.unit)), self.machine)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False, **rest: Any) -> Any:  # type: ignore[override]
        return self._extreme(np.max, axis, keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False, **rest: Any) -> Any:  # type: ignore[override]
        return self._extreme(np.min, axis, keepdims)

    def _extreme(self, function: Callable[..., Any], axis: Any, keepdims: bool) -> Any:
        value, bound = plain(self), bound_of(self)
        error = bound.max(axis=axis, keepdims=keepdims) if value.size else 0.0
        return Bounded.of(function(value, axis=axis, keepdims=keepdims), error, self.machine)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        value, bound = plain(self), bound_of(self)
        total = value.cumsum(axis=axis)
        terms = value.size if axis is None else value.shape[axis]
        error = bound.cumsum(axis=axis) + gamma(terms, self.unit) * np.abs(value).cumsum(axis=axis)
        return Bounded.of(total, error, self.machine)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        value, bound = plain(self), bound_of(self)
        if bound.any():
            raise Untracked("cumprod of computed values")
        total = value.cumprod(axis=axis)
        terms = value.size if axis is None else value.shape[axis]
        return Bounded.of(total, np.abs(total) * gamma(terms, self.unit), self.machine)

    # -- functions of one and two operands

    def apply(self, function: Callable[[Array], Array], slope: Callable[[Array], Array]) -> "Bounded":
        """Apply a function that numpy does not have; `slope` is its derivative."""
        value, bound = plain(self), bound_of(self)
        with np.errstate(all="ignore"):
            result = np.asarray(function(value))
            error = np.where(bound > 0, np.abs(slope(value)) * bound, 0.0)
            return Bounded.of(result, error + _FUNCTION * self.unit * np.abs(result), self.machine)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        options.pop("dtype", None)
        if method == "reduce" and ufunc in _REDUCTIONS:
            reduction = getattr(self, _REDUCTIONS[ufunc])
            return reduction(axis=options.pop("axis", 0), keepdims=options.pop("keepdims", False))
        if method == "accumulate" and ufunc in _REDUCTIONS:
            return getattr(self, "cum" + _REDUCTIONS[ufunc])(options.pop("axis", 0))
        if method != "__call__" or options or ufunc.nout != 1:
            raise Untracked(f"{ufunc.__name__}.{method}")
        machine = _machine(*inputs)
        unit = machine.unit
        values = [plain(one) for one in inputs]
        with np.errstate(all="ignore"):
            result = ufunc(*values)
            if result.dtype.kind != "f":
                found = result
            else:
                rule = machine.slopes.get(ufunc.__name__)
                if rule is None:
                    raise Untracked(ufunc.__name__)
                bounds = [bound_of(one, unit) for one in inputs]
                found = Bounded.of(result, _bound(rule, values, bounds, result, unit), machine)
        if out is None:
            return found
        (target,) = out
        if not isinstance(target, Bounded):
            raise Untracked(f"{ufunc.__name__} into an array without bounds")
        target[...] = found
        return target

    def __array_function__(self, function: Any, kinds: Any, args: Any, options: Any) -> Any:
        rule = _FUNCTIONS.get(function.__name__)
        if rule is not None:
            return rule(*args, **options)
        raise Untracked(function.__name__)


def _bound(rule: Slope, values: Sequence[Any], bounds: Sequence[Any], result: Any, unit: float) -> Any:
    """Return the error of a result: the propagated errors of the operands plus the rounding of the result."""
    error = rule.propagate(values, bounds, result, unit)
    return error + rule.units * unit * np.abs(result) if rule.units else error


_REDUCTIONS = {np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min"}


# -- functions of numpy that are not ufuncs


def _machine(*values: Any) -> Machine:
    return next((one.machine for one in values if isinstance(one, Bounded)), DEVICE)


def _where(condition: Any, left: Any, right: Any) -> Any:
    machine = _machine(condition, left, right)
    bounds = [np.asarray(bound_of(one, machine.unit)) for one in (left, right)]
    chosen = np.where(plain(condition), plain(left), plain(right))
    return Bounded.of(chosen, np.where(plain(condition), *bounds), machine)


def _clip(value: Any, low: Any = None, high: Any = None, **options: Any) -> Any:
    if not isinstance(value, Bounded):
        raise Untracked("clip")
    return Bounded.of(np.clip(plain(value), plain(low), plain(high)), bound_of(value), value.machine)


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a bounded version of a function that joins several arrays."""

    def run(parts: Any, *args: Any, **options: Any) -> Any:
        machine = _machine(*parts)
        bounds = [np.broadcast_to(np.asarray(bound_of(one, machine.unit)), np.shape(one)) for one in parts]
        return Bounded.of(
            function([plain(one) for one in parts], *args, **options), function(bounds, *args, **options), machine
        )

    return run


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a bounded version of a function that only moves elements of its first operand."""

    def run(value: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(value, Bounded):
            raise Untracked(function.__name__)
        return value._viewed(lambda x: function(x, *args, **options))

    return run


def _pad(value: Any, *args: Any, **options: Any) -> Any:
    """Pad the bounds with that of the constant: its rounding error."""
    if not isinstance(value, Bounded):
        raise Untracked("pad")
    own = dict(options)
    if "constant_values" in own:
        own["constant_values"] = bound_of(own["constant_values"], value.machine.unit)
    return Bounded.of(np.pad(plain(value), *args, **options), np.pad(bound_of(value), *args, **own), value.machine)


def _split(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a bounded version of a function that splits its first operand."""

    def run(value: Any, *args: Any, **options: Any) -> Any:
        values, bounds = function(plain(value), *args, **options), function(bound_of(value), *args, **options)
        return [Bounded.of(v, b, value.machine) for v, b in zip(values, bounds, strict=True)]

    return run


def _method(name: str) -> Callable[..., Any]:
    """Return a bounded version of a function that is also a method of its first operand."""

    def run(value: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(value, Bounded):
            raise Untracked(name)
        return getattr(value, name)(*args, **options)

    return run


def _values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a version, for bounded operands, of a function whose result has no rounding errors, such as indices."""

    def run(*args: Any, **options: Any) -> Any:
        return function(*(plain(one) for one in args), **options)

    return run


def _like(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a bounded version of a function that creates an array in the shape of another one."""

    def run(value: Any, *args: Any, **options: Any) -> Any:
        made = function(plain(value), *args, **options)
        return Bounded.of(made, np.zeros(made.shape), value.machine) if made.dtype.kind == "f" else made

    return run


def _put_along_axis(target: Any, index: Any, values: Any, axis: int) -> None:
    if not isinstance(target, Bounded):
        raise Untracked("put_along_axis")
    bound = np.broadcast_to(np.asarray(bound_of(values, target.unit)), index.shape)
    errors = target.bound.copy()
    np.put_along_axis(plain(target), index, plain(values), axis)
    np.put_along_axis(errors, index, bound, axis)
    target.bound = errors


def _einsum(equation: str, *operands: Any, **options: Any) -> Any:
    machine = _machine(*operands)
    values = [plain(one) for one in operands]
    if any(np.any(bound_of(one)) for one in operands):
        raise Untracked("einsum of computed values")
    result = np.einsum(equation, *values, optimize=True)
    size = np.einsum(equation, *(np.abs(one) for one in values), optimize=True)
    terms, arrow, output = equation.partition("->")
    letters = "".join(filter(str.isalpha, terms))
    if not arrow:
        output = "".join(letter for letter in letters if letters.count(letter) == 1)
    summed = prod(size for letter, size in _extents(terms, values).items() if letter not in output)
    return Bounded.of(result, gamma(summed + len(values), machine.unit) * size, machine)


def _extents(terms: str, values: Sequence[Array]) -> dict[str, int]:
    """Return the extent of the axis of each letter."""
    found: dict[str, int] = {}
    for term, value in zip(terms.replace(" ", "").split(","), values, strict=True):
        head, _, tail = term.partition("...")
        pairs = [*zip(head, value.shape, strict=False), *zip(reversed(tail), reversed(value.shape), strict=False)]
        for letter, size in pairs:
            found[letter] = max(size, found.get(letter, 1))
    return found


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "pad": _pad,
    "clip": _clip,
    "einsum": _einsum,
    "put_along_axis": _put_along_axis,
    **{name: _joined(getattr(np, name)) for name in ("concatenate", "stack")},
    **{
        name: _moved(getattr(np, name))
        for name in (
            "moveaxis", "flip", "roll", "tile", "repeat", "broadcast_to", "expand_dims", "take", "take_along_axis",
            "triu", "tril", "diag", "diagonal", "ascontiguousarray",
        )
    },
    **{name: _split(getattr(np, name)) for name in ("split", "array_split")},
    **{
        name: _method(name)
        for name in ("sum", "mean", "prod", "max", "min", "reshape", "transpose", "swapaxes", "squeeze", "copy",
                     "cumsum", "cumprod", "ravel")
    },
    "amax": _method("max"),
    "amin": _method("min"),
    **{
        name: _values(getattr(np, name))
        for name in ("argmax", "argmin", "argsort", "shape", "ndim", "size", "any", "all", "result_type", "argwhere",
                     "isclose", "array_equal")
    },
    **{name: _like(getattr(np, name)) for name in ("zeros_like", "ones_like", "empty_like", "full_like")},
}  # fmt: skip
