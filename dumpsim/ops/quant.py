"""Matrix products with quantised weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType
from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.rules import output, tensor_of, value_of, vector

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

_OP = "WeightQuantBatchMatmul"
_TENSORS = ("x", "weight", "antiquant_scale", "antiquant_offset", "quant_scale", "quant_offset", "bias")
_FAMILY = ("transpose_x", "transpose_weight", "antiquant_group_size")


def _infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of(_OP, abstracts[0], "x", ("float16", "bfloat16"))
    weight = tensor_of(_OP, abstracts[1], "weight", ("int8", "int4"))
    tensor_of(_OP, abstracts[2], "antiquant_scale", ("float16", "bfloat16"))
    transpose_x, transpose_weight, group = (
        value_of(_OP, abstract, name) for abstract, name in zip(abstracts[7:], _FAMILY, strict=True)
    )
    for at in (4, 5):
        if not isinstance(abstracts[at], NoneType):
            raise UnsupportedError(f"operand {_TENSORS[at]!r}", where=_OP)
    if len(x.shape) < 2 or len(weight.shape) < 2:
        raise ScriptValueError(f"For '{_OP}', 'x' and 'weight' must have 2 dimensions or more.")
    rows, inner = x.shape[-2:][:: -1 if transpose_x else 1]
    stored = list(weight.shape)
    if weight.dtype.name == "int4":
        stored[-1] *= 2  # the shape counts pairs [observed 2.10]
    depth, columns = stored[-2:][:: -1 if transpose_weight else 1]
    if inner != depth:
        raise ScriptValueError(
            f"For '{_OP}', the inner dimensions of 'x' {vector(x.shape)} and 'weight' {vector(stored)} differ: "
            f"{inner} and {depth}."
        )
    if group and (group % 32 or not 32 <= group < depth):
        raise ScriptValueError(
            f"For '{_OP}', 'antiquant_group_size' must be 0 or a multiple of 32 in [32, {depth - 1}], but got {group}."
        )
    return output(x.dtype, (*np.broadcast_shapes(x.shape[:-2], weight.shape[:-2]), rows, columns))


def _matmul(
    x: Array, weight: Array, antiquant_scale: Array, antiquant_offset: Array | None, quant_scale: None,
    quant_offset: None, bias: Array | None, transpose_x: bool = False, transpose_weight: bool = False,
    antiquant_group_size: int = 0,
) -> Array:  # fmt: skip
    """Return x @ ((weight + offset) * scale) + bias."""
    if transpose_x:
        x = x.swapaxes(-1, -2)
    full = weight.astype(np.float32)
    if transpose_weight:
        full = full.swapaxes(-1, -2)
    depth, columns = full.shape[-2:]

    def spread(factor: Array) -> Array:
        """Broadcast one number per tensor, per column, or per column and group of rows."""
        factor = factor.astype(np.float32)
        if factor.size == 1:
            return factor.reshape(())
        if not antiquant_group_size:
            return factor.reshape(1, columns)
        table = factor.T if transpose_weight else factor
        return np.repeat(table, antiquant_group_size, axis=0)[:depth]

    if antiquant_offset is not None:
        full = full + spread(antiquant_offset)
    full = full * spread(antiquant_scale)
    result = x.astype(np.float32) @ full
    return np.asanyarray(result if bias is None else result + bias.astype(np.float32))


OPS = (
    OpDef(
        name=_OP,
        operands=(*_TENSORS, *_FAMILY),
        defaults=(None, None, None, None, False, False, 0),
        infer=_infer,
        kernel=_matmul,
        prim_func=True,
        targets=("Ascend",),
    ),
)
