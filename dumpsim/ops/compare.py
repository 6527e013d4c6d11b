"""Comparison, logic and selection."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import ScriptTypeError
from dumpsim.ops.gradient import is_variable, shape_of, unbroadcast
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.promotion import with_common_type
from dumpsim.ops.rules import broadcast, output, same_dtype, tensor_of

__all__ = ["OPS"]


def _infer(name: str, operands: tuple[str, str], one_type: bool) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        x = tensor_of(name, abstracts[0], operands[0])
        y = tensor_of(name, abstracts[1], operands[1])
        if one_type:
            same_dtype(name, {operands[0]: x, operands[1]: y})
        return output("bool", broadcast(name, x.shape, y.shape))

    return infer


def _comparison(name: str, kernel: Callable[..., Any], *, mixed: bool = False) -> OpDef:
    return OpDef(
        batched=True,
        name=name,
        operands=("input", "other"),
        infer=_infer(name, ("input", "other"), one_type=not mixed),
        kernel=np.errstate(all="ignore")(with_common_type(kernel) if mixed else kernel),
        promotes=() if mixed else (0, 1),
        mixed=(0, 1) if mixed else (),
        prim_func=True,
        stop=True,
    )


def _logic(name: str, kernel: Callable[..., Any]) -> OpDef:
    return OpDef(
        batched=True,
        name=name,
        operands=("x", "y"),
        infer=_infer(name, ("x", "y"), one_type=False),
        kernel=kernel,
        prim_func=True,
        stop=True,
    )


def _infer_not(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    return output("bool", tensor_of("LogicalNot", abstracts[0], "input").shape)


def _infer_select(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    condition = tensor_of("Select", abstracts[0], "condition")
    if condition.dtype.name != "bool":
        raise ScriptTypeError(
            f"For primitive[Select], the input argument[condition] must be a type of {{Tensor[Bool]}}, but got "
            f"Tensor[{condition.dtype.title}]."
        )
    x = tensor_of("Select", abstracts[1], "input")
    y = tensor_of("Select", abstracts[2], "other")
    kind = same_dtype("Select", {"input": x, "other": y})
    chosen = broadcast("Select", x.shape, y.shape, ("input", "other"))
    return output(kind, broadcast("Select", condition.shape, chosen, ("condition", "input")))


def _grad_select(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    condition, x, y = operands
    zeros = b.emit("ZerosLikeExt", dout, None)
    full = shape_of(out)
    dx = dy = None
    if is_variable(x):
        dx = unbroadcast(b, b.emit("Select", condition, dout, zeros), shape_of(x), full)
    if is_variable(y):
        dy = unbroadcast(b, b.emit("Select", condition, zeros, dout), shape_of(y), full)
    return None, dx, dy


def _infer_masked_fill(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    x = tensor_of("MaskedFill", abstracts[0], "input_x")
    mask = tensor_of("MaskedFill", abstracts[1], "mask")
    if mask.dtype != dtype("bool"):
        raise ScriptTypeError(
            f"For primitive[MaskedFill], the input argument[mask] must be a type of {{Bool}}, but got "
            f"{mask.dtype.title}."
        )
    tensor_of("MaskedFill", abstracts[2], "value")
    return output(x.dtype, broadcast("MaskedFill", x.shape, mask.shape, ("input", "mask")))


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    x = np.asanyarray(x)
    return np.where(mask, np.asanyarray(value, x.dtype), x)


def _grad_masked_fill(
    b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Mapping[str, Any]
) -> Sequence[Any]:
    x, mask, value = operands
    full = shape_of(out)
    zero = np.zeros((), out.abstract.dtype.numpy)
    dx = unbroadcast(b, b.emit("MaskedFill", dout, mask, zero), shape_of(x), full)
    dvalue = None
    if is_variable(value):
        zeros = b.emit("ZerosLikeExt", dout, None)
        dvalue = b.emit("SumExt", b.emit("Select", mask, dout, zeros), None, False, None)
    return dx, None, dvalue


OPS = (
    _comparison("Equal", np.equal, mixed=True),
    _comparison("NotEqual", np.not_equal),
    _comparison("Less", np.less, mixed=True),
    _comparison("LessEqual", np.less_equal),
    _comparison("Greater", np.greater),
    _comparison("GreaterEqual", np.greater_equal),
    _logic("LogicalAnd", np.logical_and),
    _logic("LogicalOr", np.logical_or),
    _logic("LogicalXor", np.logical_xor),
    OpDef(
        name="LogicalNot",
        operands=("input",),
        infer=_infer_not,
        kernel=np.logical_not,
        prim_func=True,
        stop=True,
        batched=True,
    ),
    OpDef(
        name="Select",
        batched=True,
        operands=("condition", "input", "other"),
        infer=_infer_select,
        kernel=np.where,
        grad=_grad_select,
        promotes=(1, 2),
        prim_func=True,
    ),
    OpDef(
        name="MaskedFill",
        operands=("input_x", "mask", "value"),
        infer=_infer_masked_fill,
        kernel=_masked_fill,
        grad=_grad_masked_fill,
        prim_func=True,
    ),
)
