"""Random numbers and dropout.

Dropout drops the same elements as the real system's CPU. The numbers of the other operators are not the vendor's: they
come from Philox with the operator's seeds as the key and the run's number as the counter, so that two runs of a script
draw the same numbers, and two steps different ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptRuntimeError, ScriptValueError
from dumpsim.core.generator import minimal_standard, mixed_seed
from dumpsim.ops.gradient import part_or_zeros
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.rules import FLOATS, constant, ints_of, output, same_dtype, size_of, tensor_of, tuple_of, value_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

_WORD = (1 << 64) - 1


def _generator(seed: int, seed2: int, counter: int) -> np.random.Generator:
    key = (int(seed) & _WORD) | (int(seed2) & _WORD) << 64
    return np.random.Generator(np.random.Philox(key=key, counter=int(counter) << 64))


def _keep_prob(value: Any) -> float:
    if not 0 < value <= 1:
        raise ScriptRuntimeError(f"For 'Dropout, the 'keep_prob' must be in (0.0, 1.0], but got {value}")
    return float(value)


def _infer_dropout(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Dropout", abstracts[0], "x", FLOATS)
    _keep_prob(value_of("Dropout", abstracts[1], "keep_prob"))
    return tuple_of(output(x.dtype, x.shape), output(x.dtype, x.shape))


def _dropout(
    x: Array, keep_prob: float = 0.5, seed0: int = 0, seed1: int = 0, *, counter: int = 0
) -> tuple[Array, Array]:
    """Retained elements are scaled by 1 / keep_prob; the mask is 1 for them. [source dropout_cpu_kernel.cc]"""
    drawn = minimal_standard(mixed_seed(seed0, seed1), counter * x.size, x.size).reshape(x.shape)
    mask = np.less(drawn, np.float32(keep_prob)).astype(x.dtype)
    return mask * x * np.asarray(np.float32(1) / np.float32(keep_prob), x.dtype), mask


def _grad_dropout(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    mask = b.item(out, 1)
    slope = b.emit("DropoutGrad", part_or_zeros(b, dout, 0, out), mask, keep_prob=constant(operands[1]))
    return slope, None, None, None


def _infer_dropout_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dy, mask = tensor_of("DropoutGrad", abstracts[0], "dy"), tensor_of("DropoutGrad", abstracts[1], "mask")
    return output(same_dtype("DropoutGrad", {"dy": dy, "mask": mask}), dy.shape)


def _dropout_grad(dy: Array, mask: Array, *, keep_prob: float = 0.5) -> Any:
    return dy * mask / np.asarray(keep_prob, dy.dtype)


def _mask_bytes(shape: Sequence[int]) -> int:
    """Return the size of a mask: one bit per element, in blocks of 16 bytes. [observed 2.10: 16 bytes for 6]"""
    return -(-size_of(shape) // 128) * 16


def _keep_bits(count: int, p: float, seed: Any, offset: Any) -> Array:
    """Return bits that are 1 for retained elements; seed and offset are tensors of one number."""
    drawn = _generator(int(np.asarray(seed).item()), 0, int(np.asarray(offset).item())).random(count, np.float32)
    return np.less(drawn, 1 - p)


def _packed(bits: Array, shape: Sequence[int]) -> Array:
    mask = np.zeros(_mask_bytes(shape), np.uint8)
    packed = np.packbits(bits, bitorder="little")
    mask[: packed.size] = packed
    return mask


def _masked(x: Array, mask: Array, p: float) -> Array:
    if p >= 1:
        return np.zeros_like(x)
    bits = np.unpackbits(mask, bitorder="little")[: x.size].reshape(x.shape)
    return np.asarray(np.where(bits, x / np.asarray(1 - p, x.dtype), np.asarray(0, x.dtype)))


def _probability(op: str, abstract: Abstract) -> float:
    p = value_of(op, abstract, "p")
    if not 0 <= p <= 1:
        raise ScriptValueError(f"For '{op}', the 'p' must be in [0, 1], but got {p}.")
    return float(p)


def _infer_dropout_ext(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("DropoutExt", abstracts[0], "input", FLOATS)
    _probability("DropoutExt", abstracts[1])
    return tuple_of(output(x.dtype, x.shape), output("uint8", (_mask_bytes(x.shape),)))


def _dropout_ext(input: Array, p: float, seed: Any, offset: Any) -> tuple[Array, Array]:
    mask = _packed(_keep_bits(input.size, p, seed, offset), input.shape)
    return _masked(input, mask, p), mask


def _grad_dropout_ext(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    slope = b.emit("DropoutGradExt", part_or_zeros(b, dout, 0, out), b.item(out, 1), constant(operands[1]))
    return slope, None, None, None


def _infer_masked(op: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, mask = tensor_of(op, abstracts[0], "input", FLOATS), tensor_of(op, abstracts[1], "mask", ("uint8",))
        _probability(op, abstracts[2])
        if size_of(mask.shape) * 8 < size_of(x.shape):
            raise ScriptValueError(
                f"For '{op}', the mask of {size_of(mask.shape)} bytes is too small for {size_of(x.shape)} elements."
            )
        return output(x.dtype, x.shape)

    return infer


def _grad_do_mask(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("DropoutDoMaskExt", dout, operands[1], constant(operands[2])), None, None


def _infer_gen_mask(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    _probability("DropoutGenMaskExt", abstracts[1])
    return output("uint8", (_mask_bytes(ints_of("DropoutGenMaskExt", abstracts[0], "shape")),))


def _gen_mask(shape: Sequence[int], p: float, seed: Any, offset: Any, dtype: Any) -> Array:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return _packed(_keep_bits(size_of(shape), p, seed, offset), shape)


def _infer_drawn(name: str, kind: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        return output(kind, ints_of(name, abstracts[0], "shape"))

    return infer


def _normal(shape: Sequence[int], seed: int = 0, seed2: int = 0, *, counter: int = 0) -> Array:
    return _generator(seed, seed2, counter).standard_normal(tuple(shape), np.float32)


def _uniform(shape: Sequence[int], seed: int = 0, seed2: int = 0, *, counter: int = 0) -> Array:
    return _generator(seed, seed2, counter).random(tuple(shape), np.float32)


def _uniform_int(
    shape: Sequence[int], low: Any, high: Any, seed: int = 0, seed2: int = 0, *, counter: int = 0
) -> Array:
    return _generator(seed, seed2, counter).integers(int(low), int(high), tuple(shape), np.int32)


OPS = (
    OpDef(
        name="Dropout",
        operands=("x", "keep_prob", "seed0", "seed1"),
        defaults=(0.5, 0, 0),
        infer=_infer_dropout,
        kernel=_dropout,
        grad=_grad_dropout,
        fixed={"side_effect_hidden": True},
        prim_func=True,
        random=True,
    ),
    OpDef(
        name="DropoutGrad",
        operands=("dy", "mask"),
        infer=_infer_dropout_grad,
        kernel=_dropout_grad,
        attrs={"keep_prob": 0.5},
    ),
    OpDef(
        name="DropoutExt",
        operands=("input", "p", "seed", "offset"),
        infer=_infer_dropout_ext,
        kernel=_dropout_ext,
        grad=_grad_dropout_ext,
        fixed={"side_effect_hidden": True},
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="DropoutGradExt",
        operands=("input", "mask", "p"),
        infer=_infer_masked("DropoutGradExt"),
        kernel=_masked,
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="DropoutGenMaskExt",
        operands=("shape", "p", "seed", "offset", "dtype"),
        infer=_infer_gen_mask,
        kernel=_gen_mask,
        fixed={"side_effect_hidden": True},
        stop=True,
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="DropoutDoMaskExt",
        operands=("input", "mask", "p"),
        infer=_infer_masked("DropoutDoMaskExt"),
        kernel=_masked,
        grad=_grad_do_mask,
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="StandardNormal",
        operands=("shape", "seed", "seed2"),
        defaults=(0, 0),
        infer=_infer_drawn("StandardNormal", "float32"),
        kernel=_normal,
        input_names=["shape"],
        output_names=["output"],
        random=True,
        stop=True,
        engine="aicpu",
    ),
    OpDef(
        name="UniformReal",
        operands=("shape", "seed", "seed2"),
        defaults=(0, 0),
        infer=_infer_drawn("UniformReal", "float32"),
        kernel=_uniform,
        input_names=["shape"],
        output_names=["output"],
        random=True,
        stop=True,
        engine="aicpu",
    ),
    OpDef(
        name="UniformInt",
        operands=("shape", "minval", "maxval", "seed", "seed2"),
        defaults=(0, 0),
        infer=_infer_drawn("UniformInt", "int32"),
        kernel=_uniform_int,
        input_names=["shape", "minval", "maxval"],
        output_names=["output"],
        random=True,
        stop=True,
        engine="aicpu",
    ),
)
