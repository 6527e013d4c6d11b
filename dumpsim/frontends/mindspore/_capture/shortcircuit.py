"""``and`` and ``or``: operands after a tensor of the graph are evaluated in a branch, as in Python."""

from collections.abc import Callable, Sequence
from typing import Any

from dumpsim.frontends.mindspore._capture import numbering
from dumpsim.frontends.mindspore._capture.branch import either
from dumpsim.frontends.mindspore._capture.condition import truth_of
from dumpsim.frontends.mindspore._capture.frame import Position
from dumpsim.frontends.mindspore._current import capturing

__all__ = ["conjunction", "disjunction"]


def conjunction(position: Position, *operands: Callable[[], Any]) -> Any:
    """``a and b``; if ``a`` is a tensor of the graph, a branch on it returns ``b`` or ``a``. [source parse.cc]"""
    return _joined(position, operands, stops=False)


def disjunction(position: Position, *operands: Callable[[], Any]) -> Any:
    """``a or b``; if ``a`` is a tensor of the graph, a branch on it returns ``a`` or ``b``. [source parse.cc]"""
    return _joined(position, operands, stops=True)


def _joined(position: Position, operands: Sequence[Callable[[], Any]], *, stops: bool) -> Any:
    tracer = capturing()
    numbering.truth(tracer, position, True)

    def value(at: int) -> Any:
        first = operands[at]()
        if at + 1 == len(operands):
            return first
        truth = truth_of(first)
        if isinstance(truth, bool):
            return first if truth is stops else value(at + 1)
        assert tracer is not None
        tracer.specialised.truth(position, truth)
        numbering.control(tracer, position, f"side {at}", 2)
        sides = (lambda: value(at + 1)), (lambda: first)
        return either(tracer, position, truth, *(sides[::-1] if stops else sides))

    return value(0)
