"""Operators on the bits of integers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.ops.opdef import Infer, OpDef
from dumpsim.ops.rules import broadcast, output, same_dtype, tensor_of

__all__ = ["OPS"]

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _infer(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        x, y = (tensor_of(name, a, n, (*_INTEGERS, "bool")) for a, n in zip(abstracts, ("x1", "x2"), strict=True))
        return output(same_dtype(name, {"x1": x, "x2": y}), broadcast(name, x.shape, y.shape))

    return infer


def _infer_invert(abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
    x = tensor_of("Invert", abstracts[0], "x", _INTEGERS)
    return output(x.dtype, x.shape)


def _bitwise(name: str, kernel: Callable[..., Any]) -> OpDef:
    return OpDef(
        batched=True,
        name=name,
        operands=("x1", "x2"),
        infer=_infer(name),
        kernel=kernel,
        promotes=(0, 1),
        stop=True,
        input_names=["x1", "x2"],
        output_names=["y"],
    )


OPS = (
    _bitwise("BitwiseAnd", np.bitwise_and),
    _bitwise("BitwiseOr", np.bitwise_or),
    _bitwise("BitwiseXor", np.bitwise_xor),
    OpDef(
        name="Invert",
        batched=True,
        operands=("x",),
        infer=_infer_invert,
        kernel=np.invert,
        stop=True,
        input_names=["x"],
        output_names=["y"],
    ),
)
