"""Compute one operator in float64, with a bound on the rounding errors of a machine that uses a narrower type."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.ops.cpu import on_target
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.rules import pair_of
from dumpsim.ops.table import MODULES, find
from dumpsim.replay.bounded import Bounded, Untracked, bound_of, exact, plain
from dumpsim.replay.complexes import bound_of_complex, is_complex, widened
from dumpsim.replay.slope import Machine
from dumpsim.replay.unit import gamma, largest, smallest, unit

__all__ = ["Computed", "Refusal", "as_on_cpu", "compute"]

Array = np.ndarray[Any, Any]
Operands = Sequence[Any]

_REAL = frozenset(" ".join(MODULES[module] for module in ("elementwise", "inverse", "blend", "arithmetic")).split())

# operators without rounding whose kernels cannot propagate bounds
_MOVING = frozenset(
    {
        "MaskedSelect", "Meshgrid", "DiagPart", "FillV2", "Round", "UnsortedSegmentMax", "UnsortedSegmentMin",
        "TensorScatterMax", "TensorScatterMin", "ScatterMax", "ScatterMin", "ScatterNdMax", "ScatterNdMin",
        "NonZero", "NanToNum", "ReverseSequence", "ScatterUpdate", "ScatterNdUpdate", "TensorScatterUpdate",
    }
)  # fmt: skip


class Refusal(Exception):
    """An operator cannot be recomputed; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Computed:
    """One output.

    Attributes
    ----------
    value : array
        In float64; integers and booleans in their own types.
    bound : array or float
        Largest error by rounding in the operator, before the result is rounded to the type of the output.
    """

    value: Array
    bound: Any


def compute(
    definition: OpDef, operands: Operands, attrs: Mapping[str, Any], *, machine: Machine, real: bool
) -> list[Computed]:
    """Recompute an operator.

    Parameters
    ----------
    definition : OpDef
    operands : sequence
        Arguments of the kernel: arrays for tensors, Python values for settings, tuples for several tensors.
    attrs : mapping
    machine : Machine
        The machine that computed the dumped results.
    real : bool
        Whether the first output is a float.

    Raises
    ------
    Refusal
    """
    if is_complex(operands):
        return _of_complex(definition, tuple(widened(one) for one in operands), attrs, machine)
    widen = real and definition.name in _REAL - {"Cast"} and not any(a.dtype.kind in "fV" for a in _arrays(operands))
    bounded = tuple(_with_bounds(one, at in definition.updates, machine, widen) for at, one in enumerate(operands))
    try:
        # a bound from the table's order of summation does not hold for other orders
        found = None if definition.name in _ONLY else _run(definition, bounded, attrs)
    except (Untracked, TypeError):
        found = None
    if found is not None and not any(_lacks_bound(one, definition) for one in found):
        return [_roughened(_computed(one), definition, machine) for one in found]
    terms = LINEAR.get(definition.name)
    if terms is None and definition.name in PRODUCTS:
        return [_product(definition, bounded, attrs, machine)]
    if terms is None:
        if definition.name in _MOVING:
            return [Computed(one, 0.0) for one in _run(definition, _without_bounds(bounded), attrs)]
        raise Refusal(f"no rule bounds the rounding errors of {definition.name}")
    _require_exact(definition, bounded)
    value = _run(definition, _without_bounds(bounded), attrs)
    only = _ONLY.get(definition.name)
    sizes = _without_bounds(bounded, np.abs if only is None else None)
    if only is not None:
        sizes = (*sizes[:only], np.abs(sizes[only]), *sizes[only + 1 :])
    size = _run(definition, sizes, attrs)
    count = terms([plain(one) for one in _flat(_without_bounds(bounded))], attrs, value[0])
    return [
        Computed(v, gamma(count, machine.unit) * s) if v.dtype.kind == "f" else Computed(v, 0.0)
        for v, s in zip(value, size, strict=True)
    ]


def _require_exact(definition: OpDef, operands: Operands) -> None:
    """Raise a Refusal if operands, results of a fused operator, have errors."""
    if any(isinstance(one, Bounded) and bool(np.any(bound_of(one))) for one in _flat(operands)):
        raise Refusal(f"no rule bounds how {definition.name} propagates the rounding errors of its operands")


def _of_complex(definition: OpDef, operands: Operands, attrs: Mapping[str, Any], machine: Machine) -> list[Computed]:
    """Recompute an operator on complex numbers; kernels that write an operand get a copy."""

    def run(given: Operands) -> list[Any]:
        own = [one.copy() if at in definition.updates else one for at, one in enumerate(given)]
        return _run(definition, own, attrs)

    try:
        results = run(operands)
        bound = bound_of_complex(definition, run, operands, results[0], machine)
    except TypeError as error:
        raise Refusal(f"{definition.name} is not recomputed for complex numbers") from error
    if bound is None:
        raise Refusal(f"no rule bounds the rounding errors of {definition.name} for complex numbers")
    return [Computed(np.asarray(one), bound) for one in results]


def _product(definition: OpDef, operands: Operands, attrs: Mapping[str, Any], machine: Machine) -> Computed:
    """Recompute products or quotients of all the elements that have the same index.

    Each step rounds once. There is no bound if the product of the numbers above 1, or of those below 1, can leave the
    range of the type, since a machine may take them in any order.
    """
    _require_exact(definition, operands)
    value = _run(definition, _without_bounds(operands), attrs)[0]
    divides = definition.name.endswith("Div")
    last = len(operands) - 1

    def extreme(larger: bool) -> Array:
        limit = np.maximum if larger else np.minimum
        other = np.minimum if larger else np.maximum
        given: list[Any] = []
        for at, one in enumerate(operands):
            if isinstance(one, Bounded):
                size = np.abs(plain(one))
                size[size == 0] = 1.0  # the result is zero in any order
                given.append((other if divides and at == last else limit)(size, 1.0))
            else:
                given.append(one)
        return np.asarray(_run(definition, given, attrs)[0])

    steps = _run(find(PRODUCTS[definition.name]), _without_bounds(operands, np.ones_like), attrs)[0]
    name = next((name for name in ("float16", "float32") if unit(name) <= machine.unit), "float64")
    beyond = (extreme(True) > largest(name)) | (extreme(False) < smallest(name))
    units = max(machine.slopes[rule].units for rule in ("multiply", "divide"))
    bound = gamma(1.0, machine.unit) * units * steps * np.abs(value)
    return Computed(np.asarray(value), np.where(beyond, np.inf, bound))


def as_on_cpu(
    computed: Sequence[Computed], definition: OpDef, operands: Operands, attrs: Mapping[str, Any]
) -> list[Computed]:
    """Return the results with the CPU kernel's treatment of NaN, infinities and zeros, see `dumpsim.ops.cpu`.

    Parameters
    ----------
    computed : sequence of Computed
    definition, operands, attrs
        Those of the recomputation; the operands are those of the dump.
    """
    own = on_target(definition, "CPU", operands)
    if own is definition:
        return list(computed)
    wide = [
        one.astype(np.float32) if isinstance(one, np.ndarray) and one.dtype == np.float16 else one for one in operands
    ]
    found: list[Computed] = []
    for one, ieee, cpu in zip(computed, _run(definition, wide, attrs), _run(own, wide, attrs), strict=False):
        same = (ieee == cpu) | ((ieee != ieee) & (cpu != cpu))
        found.append(Computed(np.where(same, one.value, cpu).astype(one.value.dtype), one.bound))
    return found


def _run(definition: OpDef, operands: Operands, attrs: Mapping[str, Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        result = definition.kernel(*operands, **attrs)
    return [result] if isinstance(result, np.ndarray | np.generic) else list(_flat(result))


def _lacks_bound(result: Any, definition: OpDef) -> bool:
    """Whether a result that is subject to rounding lacks a bound."""
    return definition.name in LINEAR and result.dtype.kind == "f" and not isinstance(result, Bounded)


def _computed(result: Any) -> Computed:
    bound = bound_of(result) if isinstance(result, Bounded) else 0.0
    return Computed(np.asarray(plain(result)), bound)


def _roughened(computed: Computed, definition: OpDef, machine: Machine) -> Computed:
    """Add the known error of the machine in an operator that it computes in another way."""
    if definition.name not in machine.rough or computed.value.dtype.kind != "f":
        return computed
    absolute, relative = machine.rough[definition.name]
    return Computed(computed.value, computed.bound + machine.unit * (absolute + relative * np.abs(computed.value)))


def _with_bounds(operand: Any, updated: bool, machine: Machine, widen: bool) -> Any:
    if isinstance(operand, tuple):
        return tuple(_with_bounds(item, updated, machine, widen) for item in operand)
    if not isinstance(operand, np.ndarray) or isinstance(operand, Bounded):
        return operand
    if operand.dtype.kind in "fV" or (widen and operand.dtype.kind in "iub"):
        return exact(operand, machine)
    return operand.copy() if updated else operand


def _without_bounds(operands: Operands, function: Callable[[Array], Array] | None = None) -> tuple[Any, ...]:
    """Return the operands without bounds; `function` is applied to floats."""
    found: list[Any] = []
    for one in operands:
        if isinstance(one, tuple):
            found.append(_without_bounds(one, function))
        elif isinstance(one, Bounded):
            found.append(function(plain(one)) if function is not None else plain(one).copy())
        else:
            found.append(one)
    return tuple(found)


def _flat(operands: Any) -> list[Any]:
    return [leaf for one in operands for leaf in (_flat(one) if isinstance(one, tuple | list) else [one])]


def _arrays(operands: Operands) -> list[Array]:
    return [one for one in _flat(operands) if isinstance(one, np.ndarray)]


# -- operators that are sums of products, and the number of terms of a sum

Terms = Callable[[Sequence[Any], Mapping[str, Any], Array], float]


def _filter(operands: Sequence[Any], attrs: Mapping[str, Any], out: Array) -> float:
    """Terms of a convolution: the elements of one filter."""
    return float(prod(operands[1].shape[1:]))


def _filter_back(operands: Sequence[Any], attrs: Mapping[str, Any], out: Array) -> float:
    count, _, *kernel = operands[1].shape
    return float(prod((count, *kernel)))


def _images(operands: Sequence[Any], attrs: Mapping[str, Any], out: Array) -> float:
    """Terms of a filter's gradient: the elements of one channel of the result's gradient."""
    count, _, *places = operands[0].shape
    return float(prod((count, *places)))


def _all(operands: Sequence[Any], attrs: Mapping[str, Any], out: Array) -> float:
    """Upper bound of the terms: the elements of the largest operand."""
    return float(max(one.size for one in operands if isinstance(one, np.ndarray)))


def _window(operands: Sequence[Any], attrs: Mapping[str, Any], out: Array) -> float:
    """Terms of a pooling: the elements of a window."""
    return float(prod(pair_of(attrs["kernel_size"])))


# products of the elements with the same index -> the sum that counts the factors of each index
PRODUCTS: Mapping[str, str] = MappingProxyType(
    {
        **{
            f"{kind}{how}": f"{kind}Add" for kind in ("Scatter", "ScatterNd", "TensorScatter") for how in ("Mul", "Div")
        },
        "UnsortedSegmentProd": "UnsortedSegmentSum",
    }
)
# operators that select by all operands and sum up the operand of this index
_ONLY = {"MaxPoolGrad": 2, "MaxPoolGradWithArgmaxV2": 1}
LINEAR: Mapping[str, Terms] = MappingProxyType(
    {
        "Conv2D": _filter,
        "Conv3D": _filter,
        "Conv2DBackpropInput": _filter_back,
        "Conv3DBackpropInput": _filter_back,
        "Conv2DBackpropFilter": _images,
        "Conv3DBackpropFilter": _images,
        "MaxPoolGrad": _window,
        "MaxPoolGradWithArgmaxV2": _window,
        "WeightQuantBatchMatmul": _all,
        **dict.fromkeys(
            (
                "AvgPool", "AvgPoolGrad", "AvgPool3D", "AvgPool3DGrad", "AdaptiveAvgPool2D",
                "AdaptiveAvgPool2DGrad",
                "UnsortedSegmentSum", "GatherDGradV2", "ScatterNd", "ScatterAdd",
                "ScatterNdAdd", "TensorScatterAdd", "IndexAdd", "ResizeBilinearV2", "ResizeBilinearGrad",
                "ResizeNearestNeighborV2Grad", "TensorScatterElements", "ScatterSub", "ScatterNdSub",
                "TensorScatterSub", "CumSum", "Einsum", "MirrorPadGrad",
            ),
            _all,
        ),
    }
)  # fmt: skip
