"""What the rules of graphs on the tape share: a graph is one operator there, whose gradient rule runs a graph."""

from collections.abc import Sequence
from typing import Any

from dumpsim.core.abstract import Abstract, TupleType
from dumpsim.frontends.mindspore._capture import values

__all__ = ["sens_of", "unused"]


def sens_of(b: Any, out: Any, dout: Any, outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Gradients of the results as tensors."""
    parts = dout.items if isinstance(out.abstract, TupleType) else (dout,)
    return tuple(
        b.tensor(part if part is not None else b.zeros(values.abstract_of(tensor)))
        for part, tensor in zip(parts, outputs, strict=True)
    )


def unused(*_: Any, **__: Any) -> Abstract:
    """Stand for the functions of an operator that nobody calls."""
    raise AssertionError("a graph on the tape is neither inferred nor run again")
