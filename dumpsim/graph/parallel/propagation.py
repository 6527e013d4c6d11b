"""Strategies of operators without one, from the layouts of their operands; the vendor searches by cost."""

from collections.abc import Sequence

from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.parallel.scheme import Strategy

__all__ = ["propagated"]

_PRODUCTS = frozenset({"MatMul", "BatchMatMul"})


def propagated(
    op_type: str, shapes: Sequence[tuple[int, ...]], sources: Sequence[TensorLayout | None], *, transposed: bool = False
) -> Strategy | None:
    """The strategy that takes the first operand with a layout as it is; None where no operand has one.

    Other operands are cut alike along axes of equal extent, counted from the last one. In products of matrices, the
    second operand is cut as the first along the axis that is summed.

    Examples
    --------
    >>> rows = TensorLayout((2,), (0, -1), (16, 32))
    >>> propagated("Add", [(16, 32), (32,)], [rows, None])
    ((2, 1), (1,))
    >>> propagated("MatMul", [(16, 32), (32, 8)], [TensorLayout((2,), (-1, 0), (16, 32)), None])
    ((1, 2), (2, 1))
    """
    first = next((at for at, one in enumerate(sources) if one is not None and one.shape == shapes[at]), None)
    if first is None:
        return None
    source = sources[first]
    assert source is not None
    cuts = source.cuts
    if op_type in _PRODUCTS:
        if first:
            return None
        summed = cuts[-1]
        batch = cuts[:-2] if len(shapes[1]) == len(cuts) else (1,) * (len(shapes[1]) - 2)
        return cuts, (*batch, *((1, summed) if transposed else (summed, 1)))
    return tuple(_alike(shape, shapes[first], cuts) for shape in shapes)


def _alike(shape: tuple[int, ...], model: tuple[int, ...], cuts: tuple[int, ...]) -> tuple[int, ...]:
    behind = len(model) - len(shape)
    return tuple(
        cuts[axis + behind] if axis + behind >= 0 and model[axis + behind] == extent else 1
        for axis, extent in enumerate(shape)
    )
