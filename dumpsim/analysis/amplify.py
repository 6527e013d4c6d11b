"""How much of the difference of an operator's results the difference of its inputs explains.

Errors are relative: the Euclidean norm of the difference of two tensors by that of the golden one. Where the function
of an operator is known up to its weights, both sides are put through it; others may enlarge what they got a little.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf, isfinite, log10, nan
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.analysis.apiname import canonical
from dumpsim.analysis.apitree import ApiEntry
from dumpsim.analysis.finding import Tensor
from dumpsim.analysis.jump import jump
from dumpsim.analysis.verdict import side_of
from dumpsim.core.errors import DumpsimError

__all__ = ["SUSPECT", "Blame", "Growth", "argument", "explain", "largest", "magnitude"]

Array = np.ndarray[Any, Any]

SUSPECT = 10.0  # times the explained difference; below that, the inputs may be the cause
_GAIN = 3.0  # factor by which an unknown operator may enlarge a relative error
_BACKWARD_GAIN = 10.0  # gradients are sums of several terms, which cancel
_ROUNDINGS = 16.0  # of results by the sums of two libraries, in last bits
_EPSILON = MappingProxyType({"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8})
_MAGNITUDES = 12
_GROSS = 0.1  # a relative error that is one, however much larger it may be
_NARROW = 2.0**-4  # of float8 and its like
_EPSILON_OF_NORMS = 1e-5
_LARGEST = 1 << 24  # largest tensor to recompute, in elements
# sums of operands: their errors are those of the operands by the size of the sum
_SUMS = ("add", "sub", "subtract", "addn", "biasadd", "rsub", "addcmul")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """A row of the ranking: an operator, and how much of its difference is explained.

    Attributes
    ----------
    rank, iteration, op_type, op_name, other_name
    tensor : str
        The tensor that differs: ``output.0``, or the gradient of another operator.
    error_in, error_out : float
        The largest relative differences of its inputs and of its results; NaN if unknown.
    explained : float
        The relative difference of the results that is explained.
    verdict : str
        ``suspect``, ``ok`` or ``unknown``.
    basis : str
        ``recomputed``, ``function`` (known up to its weights), ``growth`` (nothing is known of the operator),
        ``argument``, ``gradient`` or ``alone``.
    reason : str
    """

    rank: int
    iteration: int | None
    op_type: str
    op_name: str
    other_name: str = ""
    tensor: str = ""
    error_in: float = nan
    error_out: float = nan
    explained: float = nan
    verdict: str = "unknown"
    basis: str = "growth"
    reason: str = ""

    @property
    def excess(self) -> float:
        """The difference, divided by the explained one; 0 if nothing is known."""
        return excess(self.error_out, self.explained)

    def as_dict(self) -> dict[str, Any]:
        """Plain values by field name."""
        return {name: getattr(self, name) for name in self.__slots__}


def magnitude(error: float, explained: float) -> int:
    """The powers of ten by which an error exceeds the explained one, up to 12; -1 if all is explained.

    Of two operators with the same number the earlier one comes first. A relative difference of 2, or a NaN, says no
    more than one of 0.1.

    Examples
    --------
    >>> magnitude(0.5, 1e-6), magnitude(float("inf"), 1e-6), magnitude(0.5, 0.0), magnitude(1e-7, 1e-6)
    (5, 5, 12, -1)
    """
    if excess(error, explained) <= 1:
        return -1
    return (
        min(_MAGNITUDES, max(0, floor(log10(min(error, _GROSS)) - log10(explained)))) if explained > 0 else _MAGNITUDES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The explained difference of a result, and its basis."""

    error_in: float
    error_out: float
    explained: float
    basis: str
    reason: str = ""

    @property
    def excess(self) -> float:
        return excess(self.error_out, self.explained)

    @property
    def magnitude(self) -> int:
        return magnitude(self.error_out, self.explained)


def excess(error: float, explained: float) -> float:
    """Return an error, divided by the explained one.

    Examples
    --------
    >>> excess(1.0, 0.5), excess(float("inf"), float("inf")), excess(float("nan"), 1.0), excess(1.0, 0.0)
    (2.0, 1.0, 0.0, inf)
    """
    if error != error or explained != explained:
        return 0.0
    if explained == inf or error == 0:
        return 1.0 if error == inf else 0.0
    return error / explained if explained > 0 else inf


def argument(one: Tensor) -> bool:
    """Return whether a record of an API dump is a number from the script, not a tensor."""
    return isinstance(one.entry, ApiEntry) and one.entry.line.dtype.startswith("<class '")


def largest(tensors: Iterable[Tensor]) -> float:
    """Return the largest relative difference of some tensors; 0 without any, NaN if unknown."""
    errors = [one.error for one in tensors]
    known = [error for error in errors if error == error]
    return max(known, default=nan if errors else 0.0)


def explain(op_type: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, gradient: bool = False) -> Growth:
    """Return how much of the difference of an operator's results its inputs explain.

    Parameters
    ----------
    op_type : str
    inputs, outputs : sequence of Tensor
        Pairs; for a gradient, the inputs of the backward, and all inputs and outputs of the operator.
    gradient : bool
        Whether `outputs` were made by the backward.
    """
    got, gave = largest(inputs), largest(outputs)
    rounding = _ROUNDINGS * _rounding((*inputs, *outputs)) * (_BACKWARD_GAIN if gradient else 1.0)
    usual = (_BACKWARD_GAIN if gradient else _GAIN) * (got if got == got else 0.0) + rounding
    found = Growth(error_in=got, error_out=gave, explained=usual if gave == gave else nan, basis="growth")
    if gradient or found.excess <= SUSPECT or not isfinite(gave):
        return _jumped(op_type, found, outputs)
    word = canonical(op_type)
    try:
        if word in _NORMS and inputs:
            there = _GAIN * _apart(*map(_NORMS[word], _pair(inputs[0])))
        elif word in _SUMS and inputs:
            there = _sum(inputs, outputs, gave)
        else:
            return _jumped(op_type, found, outputs)
    except (DumpsimError, OSError, ValueError):
        return found
    return Growth(error_in=got, error_out=gave, explained=max(usual, there + rounding), basis="function")


def _jumped(op_type: str, found: Growth, outputs: Sequence[Tensor]) -> Growth:
    """Treat any difference of a discontinuous function as explained, unless its inputs are bit-equal."""
    said = jump(op_type, outputs[0].entry.dtype) if outputs and found.excess > SUSPECT else ""
    if not said or found.error_in == 0:
        return found
    return Growth(
        error_in=found.error_in, error_out=found.error_out, explained=found.error_out, basis=found.basis, reason=said
    )


def _rounding(tensors: Iterable[Tensor]) -> float:
    """The last bit of the narrowest floating type."""
    types = {kind for one in tensors for kind in (_dtype(one.entry), _dtype(one.other)) if "float" in kind}
    return max((_EPSILON.get(kind, _NARROW) for kind in types), default=_EPSILON["float32"])


def _dtype(entry: Any) -> str:
    try:
        return str(entry.dtype) if entry is not None else ""
    except (DumpsimError, OSError):
        return ""


def _pair(one: Tensor) -> tuple[Array, Array]:
    """Load both sides of a pair as float64."""
    if one.other is None or one.entry.path is None or one.other.path is None:
        raise ValueError("no values")
    own, other = side_of(one.entry).load(), side_of(one.other).load()
    if own.size > _LARGEST or own.shape != other.shape:
        raise ValueError("too large, or of two shapes")
    return own.astype(np.float64), other.astype(np.float64)


def _apart(own: Array, other: Array) -> float:
    """Return the relative difference of two arrays."""
    size = float(np.linalg.norm(other))
    return float(np.linalg.norm(own - other)) / size if size else inf


def _sum(inputs: Sequence[Tensor], outputs: Sequence[Tensor], error: float) -> float:
    """Return the part of the error of a sum that comes from its operands."""
    made, golden = _pair(outputs[0])
    size = float(np.linalg.norm(made - golden))
    given = 0.0
    for one in inputs:
        own, other = _pair(one)
        given += float(np.linalg.norm(own - other)) * (golden.size / max(1, other.size)) ** 0.5  # broadcast
    return error * given / size if size else inf


def _over(axes: Callable[[int], tuple[int, ...]]) -> Callable[[Array], Array]:
    """Normalise over some axes, without weights."""

    def normal(array: Array) -> Array:
        over = axes(array.ndim)
        shifted = array - array.mean(axis=over, keepdims=True)
        return np.asarray(shifted / np.sqrt(np.square(shifted).mean(axis=over, keepdims=True) + _EPSILON_OF_NORMS))

    return normal


def _root(array: Array) -> Array:
    return np.asarray(array / np.sqrt(np.square(array).mean(axis=-1, keepdims=True) + _EPSILON_OF_NORMS))


# Normalisations by their definitions (ONNX operator set 21), without scale and shift. A dump has no epsilon; the usual
# one keeps the rounding of constant channels small.
_NORMS: Mapping[str, Callable[[Array], Array]] = {
    "batchnorm": _over(lambda ndim: (0, *range(2, ndim))),
    "batchnormalization": _over(lambda ndim: (0, *range(2, ndim))),
    "instancenorm": _over(lambda ndim: tuple(range(2, ndim))),
    "instancenorm2d": _over(lambda ndim: tuple(range(2, ndim))),
    "groupnorm": _over(lambda ndim: tuple(range(1, ndim))),
    "layernorm": _over(lambda ndim: (ndim - 1,)),
    "rmsnorm": _root,
}
