"""Calls of operators with one output."""

from collections.abc import Mapping, Sequence
from typing import Any

from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["single"]


def single(op_type: str, operands: Sequence[Any], attrs: Mapping[str, Any] | None = None) -> Tensor:
    """`dispatch.call` of an operator that returns one Tensor."""
    output: Tensor = call(op_type, operands, attrs)
    return output
