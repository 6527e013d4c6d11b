"""Operators that write a Parameter: assignment."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import same_dtype, tensor_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]

_ALIKE = (((), (1,)), ((1,), ()))  # shapes that fit; only the CPU kernel of Assign refuses them [observed 2.10]


def _infer(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        variable, value = tensor_of(name, abstracts[0], "variable"), tensor_of(name, abstracts[1], "value")
        same_dtype(name, {"variable": variable, "value": value})
        ours, theirs = variable.shape, value.shape
        if ours != theirs and (ours, theirs) not in _ALIKE:
            what, one, other = "shape", *(f"({', '.join(map(str, shape))})" for shape in (theirs, ours))
            if len(ours) != len(theirs):
                what, one, other = "rank", str(len(theirs)), str(len(ours))
            raise ScriptValueError(
                f"For '{name}','value' must have the same {what} as 'variable'. But got 'value' {what}: {one}, "
                f"'variable' {what}: {other}."
            )
        assert isinstance(abstracts[0], TensorType)
        return abstracts[0]  # the Ref itself, as the vendor prints it [spec observed 1.8]

    return infer


def _write(change: Callable[[Array, Any], Any]) -> Callable[..., Array]:
    def run(variable: Array, value: Any) -> Array:
        variable[...] = change(variable, value)
        return variable

    return np.errstate(all="ignore")(run)


def _of_assign(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    """Return the gradient of the variable: the vendor hands that of the result to it, not to the value."""
    return dout, None


def _of_sum(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    return dout, dout


def _of_difference(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    return dout, b.emit("Neg", dout)


def _assignment(name: str, change: Callable[[Array, Any], Any], grad: Grad) -> OpDef:
    return OpDef(
        name=name,
        operands=("variable", "value"),
        infer=_infer(name),
        kernel=_write(change),
        prim_func=True,
        updates=(0,),
        alias={0: 0},
        side_effect="mem",
        grad=grad,
    )


OPS = (
    _assignment("Assign", lambda variable, value: value, _of_assign),
    _assignment("AssignAdd", lambda variable, value: variable + value, _of_sum),
    _assignment("AssignSub", lambda variable, value: variable - value, _of_difference),
)
