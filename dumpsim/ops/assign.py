"""Operators that write a Parameter: assignment."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.opdef import Infer, OpDef
from dumpsim.ops.rules import same_dtype, tensor_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]


def _infer(name: str, second: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        variable, value = tensor_of(name, abstracts[0], "variable"), tensor_of(name, abstracts[1], second)
        same_dtype(name, {"variable": variable, second: value})
        if variable.shape != value.shape and value.size != 1:
            raise ScriptValueError(
                f"For '{name}', the shape of '{second}' {value.shape} must be that of 'variable' {variable.shape}."
            )
        assert isinstance(abstracts[0], TensorType)
        return abstracts[0]  # the Ref itself, as the vendor prints it [spec observed 1.8]

    return infer


def _write(change: Callable[[Array, Any], Any]) -> Callable[..., Array]:
    def run(variable: Array, value: Any) -> Array:
        variable[...] = change(variable, np.reshape(value, ()) if np.shape(value) != variable.shape else value)
        return variable

    return np.errstate(all="ignore")(run)


def _assignment(name: str, second: str, change: Callable[[Array, Any], Any]) -> OpDef:
    return OpDef(
        name=name,
        operands=("variable", second),
        infer=_infer(name, second),
        kernel=_write(change),
        prim_func=True,
        updates=(0,),
        alias={0: 0},
        side_effect="mem",
        stop=True,
    )


OPS = (
    _assignment("Assign", "value", lambda variable, value: value),
    _assignment("AssignAdd", "value", lambda variable, value: variable + value),
    _assignment("AssignSub", "value", lambda variable, value: variable - value),
)
