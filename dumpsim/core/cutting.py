"""How one operator is cut: device dimensions with names, and which of them cut the axes of its operands and outputs.

The rules of operators (`dumpsim.core.cuttingrules`) make schemes; a scheme makes layouts. [spec parallel 2.1, 2.3]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from dumpsim.core.errors import DumpsimError
from dumpsim.core.tensorlayout import WHOLE, Axis, TensorLayout, dims_of

__all__ = [
    "Labels",
    "Layouts",
    "Operator",
    "Reduction",
    "Scheme",
    "Strategy",
    "StrategyError",
    "layouts_of",
    "layouts_over",
    "names_of",
    "strategy_error",
    "strategy_text",
]

Labels = Sequence[str | tuple[str, ...] | None]  # for each axis the device dimension (or several) that cuts it
Strategy = tuple[tuple[int, ...], ...]


class StrategyError(DumpsimError, ValueError, RuntimeError):
    """A strategy that does not fit its operator; MindSpore 2.10 raises a RuntimeError, earlier ones a ValueError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator call, as the rules of `dumpsim.core.cuttingrules` see it.

    Attributes
    ----------
    op_type : str
    shapes : tuple
        Shapes of the tensor operands, tuples flattened.
    outputs : tuple
        Shapes of the outputs.
    constants : mapping of int to object
        Values of the other operands, by position in the call.
    attrs : mapping
    strategy : tuple of tuple of int
        One row for each tensor operand.
    devices : int
    """

    op_type: str
    shapes: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    constants: Mapping[int, Any]
    attrs: Mapping[str, Any]
    strategy: Strategy
    devices: int


@dataclass(frozen=True, slots=True)
class Reduction:
    """Forward communication: the ranks that differ in `labels` combine their results.

    `kind` is ``sum``, ``max``, ``min`` or ``prod`` of an AllReduce, ``mean`` with a division after it, or ``scatter``
    for a ReduceScatter along axis 0.
    """

    kind: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How an operator is cut.

    Attributes
    ----------
    matrix : sequence of (str, int)
        Device dimensions from left to right, without those of repeated calculation.
    inputs, outputs : sequence of sequence of (str or None)
        For each axis the device dimension that cuts it.
    reduction : Reduction, optional
    repeats_left : bool
        Repeated calculation is on the left of the device matrix.
    local : mapping of int to object
        Operands whose values differ for the part of one rank, by position in the call.
    attrs : mapping of str to object
        Attributes whose values differ for the part of one rank.
    gathers : bool
        Both operands of a product are gathered first.
    """

    matrix: Sequence[tuple[str, int]]
    inputs: Sequence[Labels]
    outputs: Sequence[Labels]
    reduction: Reduction | None = None
    repeats_left: bool = False
    local: Mapping[int, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    gathers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """The layouts of an operator call, and the ranks that reduce its result."""

    inputs: tuple[TensorLayout, ...]
    outputs: tuple[TensorLayout, ...]
    group: tuple[int, ...] = ()


def layouts_of(operator: Operator, scheme: Scheme, rank: int) -> Layouts:
    """Return the layouts of a scheme over all devices; devices that it does not use repeat the calculation.

    Raises
    ------
    StrategyError
        If there are too few devices, or an axis cannot be cut into that many parts.
    """
    matrix = [count for _, count in scheme.matrix]
    used = prod(matrix)
    if used > operator.devices or operator.devices % used:
        raise strategy_error(
            operator,
            f"{strategy_text(operator)}, it requires {used} devices, but the device number of this stage is "
            f"{operator.devices}, it can not be divisible by {used}",
        )
    repeats = operator.devices // used
    if repeats > 1:
        matrix.insert(0 if scheme.repeats_left else len(matrix), repeats)
    front = int(repeats > 1 and scheme.repeats_left)
    place = {label: at + front for at, (label, _) in enumerate(scheme.matrix)}
    last = len(matrix) - 1

    def layout(labels: Labels, shape: tuple[int, ...]) -> TensorLayout:
        dims = [tuple(last - place[name] for name in names_of(label)) for label in labels]
        found = TensorLayout(tuple(matrix), tuple(map(as_axis, dims)), shape)
        if not found.fits():
            raise strategy_error(operator, f"the shape {shape} cannot be cut into {found.cuts}")
        return found

    inputs = tuple(layout(*pair) for pair in zip(scheme.inputs, operator.shapes, strict=True))
    outputs = tuple(layout(*pair).squeezed() for pair in zip(scheme.outputs, operator.outputs, strict=True))
    group: tuple[int, ...] = ()
    if scheme.reduction is not None:
        whole = TensorLayout(tuple(matrix), (), ())
        group = whole.group([last - place[label] for label in scheme.reduction.labels], rank)
    return Layouts(inputs=tuple(one.squeezed() for one in inputs), outputs=outputs, group=group)


def layouts_over(operator: Operator, scheme: Scheme, given: Sequence[TensorLayout], rank: int) -> Layouts:
    """Return the layouts of a scheme when the script names the device dimensions of each operand.

    Raises
    ------
    StrategyError
        If the device matrices differ, or one dimension cuts two axes that are different to the operator.
    """
    matrix = given[0].device_matrix
    if prod(matrix) != operator.devices or any(row.device_matrix != matrix for row in given):
        raise strategy_error(operator, f"the device matrix {matrix} does not have {operator.devices} devices")
    dims: dict[str, tuple[int, ...]] = {}
    for labels, row in zip(scheme.inputs, given, strict=True):
        for label, axis in zip(labels, row.tensor_map, strict=True):
            for name in names_of(label):
                if dims.setdefault(name, dims_of(axis)) != dims_of(axis):
                    raise strategy_error(
                        operator, "axes that belong together must be cut by the same device dimensions"
                    )

    def layout(labels: Labels, shape: tuple[int, ...]) -> TensorLayout:
        axes = [tuple(dim for name in names_of(label) for dim in dims.get(name, ())) for label in labels]
        found = TensorLayout(matrix, tuple(map(as_axis, axes)), shape)
        if not found.fits():
            raise strategy_error(operator, f"the shape {shape} cannot be cut into {found.cuts}")
        return found.squeezed()

    group: tuple[int, ...] = ()
    if scheme.reduction is not None:
        summed = [dim for label in scheme.reduction.labels for dim in dims.get(label, ())]
        group = TensorLayout(matrix, (), ()).group(summed, rank)
    return Layouts(
        inputs=tuple(layout(*pair) for pair in zip(scheme.inputs, operator.shapes, strict=True)),
        outputs=tuple(layout(*pair) for pair in zip(scheme.outputs, operator.outputs, strict=True)),
        group=group,
    )


def names_of(label: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the device dimensions that a label names."""
    if label is None:
        return ()
    return label if isinstance(label, tuple) else (label,)


def as_axis(dims: tuple[int, ...]) -> Axis:
    """Return the entry of a tensor map for an axis that these dimensions cut."""
    return WHOLE if not dims else dims[0] if len(dims) == 1 else dims


def strategy_error(operator: Operator, why: str) -> StrategyError:
    """Return the error of an invalid strategy: the vendor's text, then its reason. [spec parallel 2.3]"""
    return StrategyError(
        f"Failure:operator {operator.op_type} init failed: {why}; strategy {operator.strategy}, "
        f"shapes {operator.shapes}"
    )


def strategy_text(operator: Operator) -> str:
    """Return the strategy as the vendor's log prints it."""
    return f"The strategy is {operator.strategy}"
