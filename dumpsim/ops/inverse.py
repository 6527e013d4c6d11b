"""Inverse trigonometric and hyperbolic functions and their gradient operators."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.ops.gradient import number
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import output, same_dtype, tensor_of

__all__ = ["OPS"]


def _infer(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        return output("float32" if x.dtype.kind in ("bool", "int", "uint") else x.dtype, x.shape)

    return infer


def _infer_slope(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        x, dout = tensor_of(name, abstracts[0], "x"), tensor_of(name, abstracts[1], "dout")
        return output(same_dtype(name, {"x": x, "dout": dout}), x.shape)

    return infer


def _by(op_type: str, of_output: bool) -> Grad:
    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        return (b.emit(op_type, out if of_output else operands[0], dout),)

    return grad


def _grad_atanh(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    x = operands[0]
    return (b.emit("Div", dout, b.emit("Sub", number(1, x), b.emit("Square", x))),)


def _function(name: str, kernel: Callable[..., Any], grad: Grad) -> OpDef:
    @np.errstate(all="ignore")
    def run(x: Any) -> Any:
        return kernel(np.asanyarray(x, np.float32) if np.asanyarray(x).dtype.kind in "iub" else x)

    return OpDef(name=name, operands=("input",), infer=_infer(name), kernel=run, grad=grad, prim_func=True)


def _slope(name: str, kernel: Callable[..., Any], first: str = "x") -> OpDef:
    return OpDef(
        name=name,
        operands=(first, "dout"),
        infer=_infer_slope(name),
        kernel=np.errstate(all="ignore")(kernel),
        prim_func=True,
    )


OPS = (
    _function("ACos", np.arccos, _by("ACosGrad", of_output=False)),
    _function("Asin", np.arcsin, _by("AsinGrad", of_output=False)),
    _function("Acosh", np.arccosh, _by("AcoshGrad", of_output=True)),
    _function("Asinh", np.arcsinh, _by("AsinhGrad", of_output=True)),
    _function("Atanh", np.arctanh, _grad_atanh),
    _slope("ACosGrad", lambda x, dout: -dout / np.sqrt(1 - x * x)),
    _slope("AsinGrad", lambda x, dout: dout / np.sqrt(1 - x * x)),
    _slope("AcoshGrad", lambda y, dout: dout / np.sinh(y), "y"),
    _slope("AsinhGrad", lambda y, dout: dout / np.cosh(y), "y"),
)
