"""What the rules of graphs on the tape share: a graph is one operator there, whose gradient rule runs a graph."""

from collections.abc import Callable, Sequence
from typing import Any

from dumpsim.core.abstract import Abstract, TupleType
from dumpsim.frontends.mindspore._capture import values
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.graph.graph import Node, text_of

__all__ = ["placer", "sens_of", "unused"]


def placer(tracer: Tracer) -> Callable[[Node], None]:
    """What puts the nodes of a backward pass into its graph: their scope is set already."""

    def place(node: Node) -> None:
        text = text_of(node)
        scope, sources, candidate = node.scope, text.sources, text.candidate
        tracer.append(node)
        node.scope, text.sources, text.candidate = scope, sources, candidate

    return place


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
