"""Conditions: known at capture, or tensors of the graph."""

import inspect
from importlib import import_module
from typing import Any

from dumpsim.core.errors import CaptureError, ScriptValueError
from dumpsim.frontends.mindspore._capture import numbering, values
from dumpsim.frontends.mindspore._capture.dispatch import call as run
from dumpsim.frontends.mindspore._capture.frame import Position
from dumpsim.frontends.mindspore._capture.jump import JumpError
from dumpsim.frontends.mindspore._current import capturing

__all__ = ["as_bool", "leaving", "negation", "static", "truth_of"]


def truth_of(condition: Any) -> Any:
    """Return the condition as a bool, or as the tensor of the graph that determines it."""
    if values.is_tensor(condition) and condition._symbol is not None:
        shape = condition._shape
        if len(shape) > 1 or any(isinstance(extent, int) and extent not in (1, -1) for extent in shape):
            shown = ", ".join(map(str, shape))
            raise ScriptValueError(
                f"Only tensor which shape is () or (1,) can be converted to bool, but got tensor shape is ({shown})"
            )
        _convert(condition)
        return condition
    if values.is_parameter(condition) and capturing() is not None:
        _convert(condition)
        return condition
    return bool(condition)


def _convert(condition: Any) -> None:
    """Note that a condition is converted to bool, by a method of tensors that calls ``cast``, of bools, too.

    Methods are looked up in the default scope. [source standard_method.py of the wheel: tensor_bool; observed 2.10: a
    cast in a branch has the scope of its own call]
    """
    tracer = capturing()
    if tracer is not None:
        tracer.mention(inspect.unwrap(import_module("dumpsim.frontends.mindspore.ops").cast), "Default")


def static(position: Position, condition: Any) -> bool:
    """Return a condition that must be known at capture."""
    numbering.truth(capturing(), position, condition)
    truth = truth_of(condition)
    if not isinstance(truth, bool):
        raise CaptureError(
            "a condition on a tensor of the graph cannot decide 'assert'",
            where=f"{position.whole.path}:{position.whole.line}",
        )
    return truth


def leaving(position: Position, condition: Any) -> bool:
    """Return the condition of a jump out of a loop; for a tensor of the graph, restart the capture with flags."""
    numbering.truth(capturing(), position, condition)
    truth = truth_of(condition)
    if not isinstance(truth, bool):
        raise JumpError(position.whole.path, position.whole.line)
    return truth


def negation(position: Position, value: Any) -> Any:
    """``not value``."""
    numbering.operator(capturing(), position, "Not", value)
    truth = truth_of(value)
    if isinstance(truth, bool):
        return not truth
    return _operator(position, "LogicalNot", [as_bool(truth)])


def _operator(position: Position, op_type: str, operands: list[Any]) -> Any:
    tracer = capturing()
    if tracer is not None:
        tracer.at(position, entering=False)
    return run(op_type, operands)


def as_bool(tensor: Any) -> Any:
    """Convert a condition tensor to Bool."""
    if tensor._dtype.name == "bool":
        return tensor
    return run("NotEqual", [tensor, 0])
