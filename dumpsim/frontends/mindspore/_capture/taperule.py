"""Helpers for the gradient rules of graphs on the tape, where a graph is a single operator."""

from collections.abc import Sequence
from typing import Any

from dumpsim.core.abstract import Abstract, TupleType
from dumpsim.frontends.mindspore._capture import values

__all__ = ["sens_of", "unused"]


def sens_of(b: Any, out: Any, dout: Any, outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the gradients of the results as tensors."""
    parts = dout.items if isinstance(out.abstract, TupleType) else (dout,)
    return tuple(
        b.tensor(part if part is not None else b.zeros(values.abstract_of(tensor)))
        for part, tensor in zip(parts, outputs, strict=True)
    )


def unused(*_: Any, **__: Any) -> Abstract:
    """Placeholder for the functions of an operator that are never called."""
    raise AssertionError("a graph on the tape is neither inferred nor run again")
