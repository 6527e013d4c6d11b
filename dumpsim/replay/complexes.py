"""Operators on complex numbers in complex128, with a bound on the rounding errors of real and imaginary part.

Only operators whose error follows from that of their real operations are bounded (N. J. Higham, Accuracy and Stability
of Numerical Algorithms, 2nd edition, lemma 3.5): those that move elements, sums, products and quotients.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.ops.opdef import OpDef
from dumpsim.replay.slope import Machine
from dumpsim.replay.unit import gamma

__all__ = ["bound_of_complex", "is_complex", "widened"]

Array = np.ndarray[Any, Any]
Run = Callable[[Sequence[Any]], list[Array]]
Rule = Callable[[Run, Sequence[Any], Array, float], Any]

_PRODUCT = 4.0  # units of |a| |b|: sqrt(5) for products of two roundings, sqrt(8) for others
_QUOTIENT = 16.0  # units of |a / b|: sqrt(2) * gamma(7)


def is_complex(operands: Any) -> bool:
    """Whether one of the operands is complex."""
    if isinstance(operands, tuple | list):
        return any(is_complex(one) for one in operands)
    return isinstance(operands, np.ndarray) and operands.dtype.kind == "c"


def widened(operand: Any) -> Any:
    """Return an operand in double precision."""
    if isinstance(operand, tuple):
        return tuple(widened(one) for one in operand)
    if not isinstance(operand, np.ndarray) or operand.dtype.kind not in "fcV":
        return operand
    return operand.astype(np.complex128 if operand.dtype.kind == "c" else np.float64)


def bound_of_complex(
    definition: OpDef, run: Run, operands: Sequence[Any], result: Array, machine: Machine
) -> "Array | float | None":
    """Return the largest error of either part of a result before it is rounded, None if no rule is known.

    Parameters
    ----------
    definition : OpDef
    run : callable
        ``run(operands)`` returns the results of the kernel.
    operands : sequence
        In double precision.
    result : array
        The first result.
    machine : Machine

    Examples
    --------
    >>> from dumpsim.ops.table import find
    >>> from dumpsim.replay.slope import MACHINES
    >>> machine = Machine(unit=2.0**-24, slopes=MACHINES["device"])
    >>> a = np.array([3 + 4j])
    >>> float(bound_of_complex(find("Mul"), lambda xs: [xs[0] * xs[1]], (a, a), a * a, machine)[0]) * 2**24
    100.0
    """
    if result.dtype.kind not in "fc" or definition.name in _MOVING:
        return 0.0
    rule = _RULES.get(definition.name)
    return None if rule is None else rule(run, operands, result, machine.unit)


def _sizes(operands: Sequence[Any]) -> tuple[Any, ...]:
    """Return the absolute values of floats and complex numbers; other operands are unchanged."""
    return tuple(
        _sizes(one)
        if isinstance(one, tuple)
        else np.abs(one)
        if isinstance(one, np.ndarray) and one.dtype.kind in "fc"
        else one
        for one in operands
    )


def _of_result(units: float) -> Rule:
    return lambda run, operands, result, unit: units * unit * np.abs(result)


def _of_sizes(count: Callable[[Sequence[Any], Array], float]) -> Rule:
    """Return the rule of a sum of products; with absolute operands its kernel sums the absolute values of the terms."""

    def rule(run: Run, operands: Sequence[Any], result: Array, unit: float) -> Any:
        return gamma(count(operands, result), unit) * run(_sizes(operands))[0]

    return rule


def _terms(operands: Sequence[Any], result: Array) -> float:
    """Return an upper bound of the terms: the elements of the largest operand, with two products in each part."""
    return 4.0 * max(_elements(one) for one in operands)


def _elements(operand: Any) -> float:
    if isinstance(operand, tuple):
        return sum(_elements(one) for one in operand)
    return float(operand.size) if isinstance(operand, np.ndarray) else 0.0


def _folded(operands: Sequence[Any], result: Array) -> float:
    """Return the number of terms of a reduction."""
    return _elements(operands[0]) / max(result.size, 1) + 1.0


def _contracted(operands: Sequence[Any], result: Array) -> float:
    return 2.0 * float(max(operands[0].shape)) + 2.0


# operators whose only rounding is the correct rounding of the result
_MOVING = frozenset(
    {
        "Add", "Sub", "BiasAdd", "Neg", "Reshape", "Flatten", "ExpandDims", "Squeeze", "Transpose", "BroadcastTo",
        "Tile", "ReverseV2", "Pad", "PadV3", "MirrorPad", "Triu", "Tril", "Diag", "DiagPart", "Concat", "Split",
        "Stack", "Unstack", "SplitWithSize", "StridedSlice", "Slice", "Gather", "GatherD", "GatherNd", "Select",
        "MaskedFill", "TensorScatterUpdate", "ScatterNdUpdate", "ScatterUpdate", "Roll", "IndexSelect", "OnesLike",
        "ReverseSequence", "ZerosLike", "TransData", "Identity", "Assign", "OneHot", "Meshgrid", "FillV2",
    }
)  # fmt: skip
_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(("Mul", "Square", "Muls", "Outer", "Ger"), _of_sizes(lambda operands, result: _PRODUCT)),
        **dict.fromkeys(("Div", "RealDiv", "Reciprocal", "Inv", "Divs"), _of_result(_QUOTIENT)),
        **dict.fromkeys(("MatMul", "BatchMatMul", "MatMulExt", "Mm", "Mv", "Dot"), _of_sizes(_contracted)),
        **dict.fromkeys(("ReduceSum", "ReduceMean", "SumExt", "MeanExt", "BiasAddGrad"), _of_sizes(_folded)),
        **dict.fromkeys(("AddN", "AccumulateNV2"), _of_sizes(lambda operands, result: float(len(operands[0])))),
        **dict.fromkeys(
            ("CumSum", "Conv2D", "Conv3D", "UnsortedSegmentSum", "ScatterNd", "TensorScatterAdd", "ScatterAdd",
             "ScatterNdAdd", "IndexAdd", "Einsum", "MirrorPadGrad"),
            _of_sizes(_terms),
        ),
    }
)  # fmt: skip
