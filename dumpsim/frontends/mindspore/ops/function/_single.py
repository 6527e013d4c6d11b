"""Calls of operators with one output."""

from collections.abc import Mapping, Sequence
from typing import Any

from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["inner_single", "single"]


def single(op_type: str, operands: Sequence[Any], attrs: Mapping[str, Any] | None = None) -> Tensor:
    """Call an operator that returns one Tensor."""
    output: Tensor = call(op_type, operands, attrs)
    return output


def inner_single(op_type: str, operands: Sequence[Any]) -> Tensor:
    """`single` for a function that calls one of the library's inner primitives (``reverse_v2_impl``).

    Such a primitive is not an attribute of anything that the compiler parses, so its constant is in the root scope.
    [observed 2.10; wheel ops/auto_generate/pyboost_inner_prim.py]
    """
    output: Tensor = call(op_type, operands, is_inner=True)
    return output
