"""Results of kernels, before the device stores them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import DeviceError
from dumpsim.device.halves import floating

__all__ = ["finite", "flat", "spoil"]


def flat(result: Any) -> Iterator[Any]:
    """Yield the results of a kernel, tuples flattened, without None.

    Examples
    --------
    >>> list(flat((1, (2, None))))
    [1, 2]
    """
    if isinstance(result, (tuple, list)):
        for item in result:
            yield from flat(item)
    elif result is not None:
        yield result


def finite(operands: Sequence[Any]) -> bool:
    """Whether all numbers of operands are finite; only then a result that is too large counts as an overflow.

    Examples
    --------
    >>> finite([np.ones(2), (np.arange(2), "mean")]), finite([(np.float32([1, np.inf]),)])
    (True, False)
    """
    for operand in operands:
        if isinstance(operand, tuple):
            if not finite(operand):
                return False
        elif isinstance(operand, np.ndarray) and floating(operand) and not np.isfinite(operand).all():
            return False
    return True


def spoil(full_name: str, results: list[Any], fault: Any) -> None:
    """Put the value of an overflow fault into the exact result.

    Raises
    ------
    DeviceError
        If the operator has no such output, or the output no such element.

    Examples
    --------
    >>> from dumpsim.device.faults import OverflowFault
    >>> results = [np.zeros(2)]
    >>> spoil("Default/Add-op0", results, OverflowFault(op="Add", index=1, value="-inf"))
    >>> results
    [array([  0., -inf])]
    """
    if fault.output >= len(results):
        raise DeviceError(
            f"{full_name} has {len(results)} outputs, not an output {fault.output}",
            where="fault plan: overflow.output",
            code="DS-FLT-004",
        )
    exact = np.array(results[fault.output])
    if exact.dtype.kind != "f" or fault.index >= exact.size:
        raise DeviceError(
            f"output {fault.output} of {full_name} is {exact.dtype} of {exact.size} elements",
            where="fault plan: overflow.index",
            code="DS-FLT-004",
        )
    exact.reshape(-1)[fault.index] = float(fault.value)
    results[fault.output] = exact
