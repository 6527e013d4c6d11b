"""In-place operators such as ``x += y``: composites whose result the compiler assigns to the first operand.

[source ccsrc/backend/common/expander/fallback/math_ops.cc]
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.composite import FLOOR
from dumpsim.ops.gradient import is_variable, unbroadcast_pair
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import broadcast, constant, output, tensor_of

__all__ = ["OPS"]

Attrs = Mapping[str, Any]


def _infer(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        other = abstracts[1]
        if isinstance(other, TensorType) and broadcast(name, x.shape, other.shape) != x.shape:
            raise ScriptValueError(f"For '{name}', the shape {other.shape} does not broadcast to {x.shape}.")
        return output(x.dtype, x.shape)

    return infer


def _run(function: Callable[..., Any]) -> Callable[..., Any]:
    @np.errstate(all="ignore")
    def run(x: Any, other: Any, alpha: Any = 1) -> Any:
        x = np.asanyarray(x)
        return np.asanyarray(function(x, np.asanyarray(other).astype(x.dtype), np.asarray(alpha, x.dtype)), x.dtype)

    return run


def _grad_sum(sign: int) -> Grad:
    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        if not is_variable(operands[1]):
            return dout, None, None
        alpha = sign * constant(operands[2])
        dy = dout if alpha == 1 else b.emit("Neg", dout) if alpha == -1 else b.emit("Muls", dout, alpha)
        return *unbroadcast_pair(b, operands, (dout, dy)), None

    return grad


def _grad_product(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, y = operands[:2]
    if not is_variable(y):
        return b.emit("Muls", dout, constant(y)), None
    return unbroadcast_pair(b, operands, (b.emit("Mul", y, dout), b.emit("Mul", x, dout)))


def _grad_quotient(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    y = operands[1]
    if not is_variable(y):
        return b.emit("Divs", dout, constant(y)), None
    dy = b.emit("Mul", b.emit("Neg", dout), b.emit("Div", out, y))
    return unbroadcast_pair(b, operands, (b.emit("Div", dout, y), dy))


def _grad_remainder(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, y = operands[:2]
    if not is_variable(y):
        return dout, None
    return unbroadcast_pair(b, operands, (dout, b.emit("Mul", b.emit("Neg", dout), b.emit("DivMod", x, y, FLOOR))))


def _inplace(name: str, function: Callable[..., Any], grad: Grad | None, *, alpha: bool = False) -> OpDef:
    return OpDef(
        name=name,
        operands=("input", "other", "alpha") if alpha else ("input", "other"),
        defaults=(1,) if alpha else (),
        infer=_infer(name),
        kernel=_run(function),
        grad=grad,
        prim_func=True,
        composite=True,
        stop=grad is None,
    )


def _add(x: Any, y: Any, alpha: Any) -> Any:
    return x + y * alpha


def _sub(x: Any, y: Any, alpha: Any) -> Any:
    return x - y * alpha


OPS = (
    _inplace("InplaceAddExt", _add, _grad_sum(1), alpha=True),
    _inplace("InplaceAddsExt", _add, _grad_sum(1), alpha=True),
    _inplace("InplaceSubExt", _sub, _grad_sum(-1), alpha=True),
    _inplace("InplaceSubScalar", _sub, _grad_sum(-1), alpha=True),
    _inplace("InplaceMul", lambda x, y, _: x * y, _grad_product),
    _inplace("InplaceMuls", lambda x, y, _: x * y, _grad_product),
    _inplace("InplaceDiv", lambda x, y, _: x / y, _grad_quotient),
    _inplace("InplaceDivs", lambda x, y, _: x / y, _grad_quotient),
    _inplace("InplaceFloorDivide", lambda x, y, _: np.floor_divide(x, y), None),
    _inplace("InplaceFloorDivides", lambda x, y, _: np.floor_divide(x, y), None),
    _inplace("InplaceRemainderTensorTensor", lambda x, y, _: np.mod(x, y), _grad_remainder),
    _inplace("InplaceRemainderTensorScalar", lambda x, y, _: np.mod(x, y), _grad_remainder),
)
