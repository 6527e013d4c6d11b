"""Arithmetic of two broadcasting tensors, and sums of several tensors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import is_variable, number, shape_of, unbroadcast_pair
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.promotion import common_type, with_common_type
from dumpsim.ops.rules import FLOATS, broadcast, output, same_dtype, tensor_of, tensors_in

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]


# Add is the only arithmetic operator that checks its types itself [2.10 observed]
_NUMBERS = (
    *FLOATS,
    "int16",
    "int32",
    "int64",
    "int8",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "complex64",
    "complex128",
)


def _infer(name: str, to_float: bool = False, mixed: bool = False) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        x = tensor_of(name, abstracts[0], "x" if name == "Add" else "input", _NUMBERS if name == "Add" else ())
        y = tensor_of(name, abstracts[1], "other")
        kind = common_type(x.dtype, y.dtype) if mixed else same_dtype(name, {"input": x, "other": y})
        if to_float and kind.kind in ("bool", "int", "uint"):
            kind = dtype("float32")
        return output(kind, broadcast(name, x.shape, y.shape))

    return infer


def _binary(
    name: str,
    kernel: Callable[..., Any],
    grad: Grad | None = None,
    *,
    stop: bool = False,
    to_float: bool = False,
    mixed: bool = False,
    named: tuple[str, str, str] | None = None,
) -> OpDef:
    """Return an operator of two tensors; `named` are names of operands and output, printed if not defined in yaml."""
    return OpDef(
        batched=True,
        name=name,
        operands=("input", "other"),
        infer=_infer(name, to_float, mixed),
        kernel=np.errstate(all="ignore")(with_common_type(kernel) if mixed else kernel),
        grad=grad,
        promotes=() if mixed else (0, 1),
        mixed=(0, 1) if mixed else (),
        prim_func=named is None,
        input_names=list(named[:2]) if named else (),
        output_names=list(named[2:]) if named else (),
        stop=stop,
    )


def _true_divide(x: Any, y: Any) -> Any:
    """Divide; integers give float32."""
    if np.result_type(x, y).kind in "iub":
        return np.divide(np.asanyarray(x, np.float32), np.asanyarray(y, np.float32))
    return np.divide(x, y)


def _truncating_divide(x: Any, y: Any) -> Any:
    """Divide in the operands' type: integers round towards zero. [2.10 observed]"""
    kind = np.result_type(x, y)
    if kind.kind not in "iu":
        return np.divide(x, y)
    quotient = np.floor_divide(x, y)
    return (quotient + ((np.remainder(x, y) != 0) & (quotient < 0))).astype(kind)


def _power(x: Any, y: Any) -> Any:
    kind = np.result_type(x, y)
    if kind.kind not in "iu":
        return np.power(x, y)
    # integers to negative powers are 0 except for 1 and -1
    return np.power(np.asanyarray(x, np.float64), np.asanyarray(y, np.float64)).astype(kind)


def _divide_no_nan(x: Any, y: Any) -> Any:
    quotient = _truncating_divide(x, np.where(np.equal(y, 0), np.ones_like(y), y))
    return np.where(np.equal(y, 0), np.zeros_like(quotient), quotient)


def _grad_add(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    return unbroadcast_pair(b, operands, (dout, dout))


def _grad_sub(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    return unbroadcast_pair(b, operands, (dout, b.emit("Neg", dout) if is_variable(operands[1]) else None))


def _grad_mul(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    x, y = operands
    dx = b.emit("Mul", y, dout) if is_variable(x) else None
    dy = b.emit("Mul", x, dout) if is_variable(y) else None
    return unbroadcast_pair(b, operands, (dx, dy))


def _grad_quotient(op_type: str) -> Any:
    """Return the gradient of a division, which uses the same division."""

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        dx = b.emit(op_type, dout, operands[1])
        dy = b.emit("Neg", b.emit("Mul", dx, out)) if is_variable(operands[1]) else None
        return unbroadcast_pair(b, operands, (dx, dy))

    return grad


def _grad_div(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    y = operands[1]
    dx = b.emit("Div", dout, y) if is_variable(operands[0]) else None
    dy = None
    if is_variable(y):
        negative = b.emit("Neg", dout)
        dy = b.emit("Mul", negative, b.emit("Div", out, y))
    return unbroadcast_pair(b, operands, (dx, dy))


def _grad_modulo(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    dy = None
    if is_variable(operands[1]):
        dy = b.emit("Mul", b.emit("Neg", dout), b.emit("FloorDiv", operands[0], operands[1]))
    return unbroadcast_pair(b, operands, (dout, dy))


def _grad_pow(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    x, power = operands
    dx = dpower = None
    if is_variable(x):
        lowered = b.emit("Pow", x, b.emit("SubScalar", power, 1, 1))
        dx = b.emit("Mul", b.emit("Mul", power, lowered), dout)
    if is_variable(power):
        # the logarithm of 0 is infinite, but the slope of 0 ** positive is 0
        flat = b.emit(
            "LogicalAnd", b.emit("Equal", x, number(0, power)), b.emit("GreaterEqual", power, number(0, power))
        )
        slope = b.emit("Mul", out, b.emit("Log", x))
        dpower = b.emit("Mul", dout, b.emit("Select", flat, np.zeros(shape_of(out), number(0, out).dtype), slope))
    return unbroadcast_pair(b, operands, (dx, dpower))


def _grad_extreme(loses: str, wins: str) -> Grad:
    """Gradient of Maximum and Minimum: to the selected operand, halved if both are equal.

    [source SelectScalar in grad_math_ops.cc]
    """

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
        x, y = operands
        gradients: list[Any] = [None, None]
        zeros = b.emit("FillV2", shape_of(out), number(0, out)) if b.in_graph else number(0, out)
        shared = b.emit("Select", b.emit("Equal", x, y), b.emit("Divs", dout, 2), dout)
        for index, comparison in enumerate((loses, wins)):
            if is_variable(operands[index]):
                loser = b.emit(comparison, x, y)
                masked = ("Select", loser, zeros, shared) if b.in_graph else ("MaskedFill", shared, loser, zeros)
                gradients[index] = b.emit(*masked)
        return unbroadcast_pair(b, operands, gradients)

    return grad


def _grad_atan2(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    x, y = operands
    scaled = b.emit("RealDiv", dout, b.emit("Add", b.emit("Square", x), b.emit("Square", y)))
    return unbroadcast_pair(b, operands, (b.emit("Mul", scaled, y), b.emit("Mul", scaled, b.emit("Neg", x))))


def _infer_sum(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        first, *others = tensors_in(name, abstracts[0], "inputs")
        for i, other in enumerate(others, 1):
            if other.shape != first.shape:
                raise ScriptValueError(
                    f"For '{name}', input shape must be same, but got shape of input[{i}]: {other.shape}, shape of "
                    "input[0]: "
                    f"{first.shape}."
                )
            same_dtype(name, {"input[0]": first, f"input[{i}]": other})
        return output(first.dtype, first.shape)

    return infer


def _count(abstracts: Sequence[Abstract], out: Abstract, attrs: Mapping[str, Any]) -> int:
    return len(tensors_in("AddN", abstracts[0], "inputs"))


def _sum(inputs: Sequence[Array]) -> Array:
    total = np.array(inputs[0])
    for x in inputs[1:]:
        total = np.logical_or(total, x) if total.dtype == np.bool_ else np.add(total, x)
    return total


def _grad_sum(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]) -> Sequence[Any]:
    inputs = operands[0]
    count = len(inputs) if isinstance(inputs, tuple | list) else len(inputs.abstract.items)
    return ((dout,) * count,)


OPS = (
    _binary("Add", np.add, _grad_add),
    _binary("Sub", np.subtract, _grad_sub),
    _binary("Mul", np.multiply, _grad_mul, mixed=True),
    _binary("Div", _true_divide, _grad_div, to_float=True, mixed=True),
    _binary("RealDiv", _truncating_divide, _grad_quotient("RealDiv")),
    _binary("DivNoNan", _divide_no_nan, _grad_quotient("DivNoNan"), named=("x1", "x2", "y")),
    _binary("FloorDiv", np.floor_divide, stop=True),
    _binary("Mod", np.fmod, _grad_modulo, named=("x", "y", "output")),
    _binary("FloorMod", np.mod, _grad_modulo),
    _binary("Pow", _power, _grad_pow),
    _binary("Maximum", np.maximum, _grad_extreme("Less", "Greater")),
    _binary("Minimum", np.minimum, _grad_extreme("Greater", "Less")),
    _binary("Atan2", np.arctan2, _grad_atan2),
    OpDef(
        name="AddN",
        batched=True,
        operands=("inputs",),
        infer=_infer_sum("AddN"),
        kernel=np.errstate(all="ignore")(_sum),
        grad=_grad_sum,
        fixed={
            "n": _count,
            "N": _count,
            "dyn_input_sizes": lambda abstracts, out, attrs: (_count(abstracts, out, attrs),),
        },
        prim_func=True,
        input_names=["inputs"],
        output_names=["sum"],
    ),
    OpDef(
        name="AccumulateNV2",
        operands=("inputs",),
        infer=_infer_sum("AccumulateNV2"),
        kernel=np.errstate(all="ignore")(_sum),
        grad=_grad_sum,
        input_names=["inputs"],
        output_names=["sum"],
    ),
)
