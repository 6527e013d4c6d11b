"""Random numbers, and the dropout that uses them.

The numbers are not the vendor's: they come from Philox with the operator's seeds as the key and the run's number as
the counter, so
that a script that is run twice draws the same numbers, and two steps draw different ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptRuntimeError
from dumpsim.ops.gradient import part_or_zeros
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.rules import FLOATS, constant, ints_of, output, same_dtype, tensor_of, tuple_of, value_of

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
    """Kept elements grow by 1 / keep_prob; the mask holds 1 for them."""
    drawn = _generator(seed0, seed1, counter).random(x.shape, np.float32)
    mask = np.less(drawn, keep_prob).astype(x.dtype)
    return x * mask / np.asarray(keep_prob, x.dtype), mask


def _grad_dropout(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    mask = b.item(out, 1)
    slope = b.emit("DropoutGrad", part_or_zeros(b, dout, 0, out), mask, keep_prob=constant(operands[1]))
    return slope, None, None, None


def _infer_dropout_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dy, mask = tensor_of("DropoutGrad", abstracts[0], "dy"), tensor_of("DropoutGrad", abstracts[1], "mask")
    return output(same_dtype("DropoutGrad", {"dy": dy, "mask": mask}), dy.shape)


def _dropout_grad(dy: Array, mask: Array, *, keep_prob: float = 0.5) -> Any:
    return dy * mask / np.asarray(keep_prob, dy.dtype)


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
        name="StandardNormal",
        operands=("shape", "seed", "seed2"),
        defaults=(0, 0),
        infer=_infer_drawn("StandardNormal", "float32"),
        kernel=_normal,
        prim_func=True,
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
        prim_func=True,
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
        prim_func=True,
        random=True,
        stop=True,
        engine="aicpu",
    ),
)
