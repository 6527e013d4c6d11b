"""Fused attention as the Ascend kernels define it, forward and backward, and rotary position embedding.

The scores are float32 for any type of the operands, like the kernel's own buffers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType
from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.ops.gradient import part_or_zeros
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import FLOATS, constant, output, same_dtype, tensor_of, tuple_of, value_of, vector

__all__ = ["LAYOUTS", "OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

LAYOUTS = ("BSH", "BNSD", "SBH", "BSND", "TND")  # the numbers that the IR prints [observed 2.10]
_LANES = 8  # last axis of softmax_max and softmax_sum [observed 2.10]
_TENSORS = (
    "query", "key", "value", "real_shift", "drop_mask", "padding_mask", "attn_mask", "prefix", "actual_seq_qlen",
    "actual_seq_kvlen",
)  # fmt: skip
_SETTINGS = (
    "head_num", "keep_prob", "scale_value", "pre_tokens", "next_tokens", "inner_precise", "input_layout", "sparse_mode",
)  # fmt: skip
_GRAD_TENSORS = (
    "query", "key", "value", "dy", "pse_shift", "drop_mask", "padding_mask", "atten_mask", "softmax_max", "softmax_sum",
    "softmax_in", "attention_in", "prefix", "actual_seq_qlen", "actual_seq_kvlen",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Heads:
    """The order of batch, heads, sequence and depth in a layout."""

    layout: str
    count: int

    def split(self, x: Array) -> Array:
        """Convert to (batch, heads, sequence, depth)."""
        if self.layout == "BNSD":
            return x
        if self.layout == "BSND":
            return x.transpose(0, 2, 1, 3)
        if self.layout == "SBH":
            x = x.transpose(1, 0, 2)
        return x.reshape(*x.shape[:2], self.count, -1).transpose(0, 2, 1, 3)

    def join(self, x: Array) -> Array:
        """Convert back from (batch, heads, sequence, depth)."""
        if self.layout == "BNSD":
            return x
        x = x.transpose(0, 2, 1, 3)
        if self.layout == "BSND":
            return x
        x = x.reshape(*x.shape[:2], -1)
        return x.transpose(1, 0, 2) if self.layout == "SBH" else x

    def shape(self, shape: Sequence[int]) -> tuple[int, int, int]:
        """Return batch, heads and sequence."""
        if self.layout == "BNSD":
            return shape[0], shape[1], shape[2]
        if self.layout == "BSND":
            return shape[0], shape[2], shape[1]
        batch, sequence = (shape[1], shape[0]) if self.layout == "SBH" else (shape[0], shape[1])
        return batch, self.count, sequence


def _settings(op: str, abstracts: Sequence[Abstract]) -> tuple[str, int]:
    """Return layout and number of heads; raise for settings that are not emulated."""
    head_num, keep_prob, _, _, _, _, layout, sparse = (
        value_of(op, abstract, name) for abstract, name in zip(abstracts[-8:], _SETTINGS, strict=True)
    )
    if not 0 < keep_prob <= 1:
        raise ScriptValueError(f"For '{op}', the value of 'keep_prob' must be in (0, 1], but got {keep_prob}.")
    if not 0 <= layout < len(LAYOUTS):
        raise ScriptValueError(f"For '{op}', 'input_layout' must be one of {list(LAYOUTS)}, but got {layout}.")
    if LAYOUTS[layout] == "TND":
        raise UnsupportedError("sequences of different lengths in one batch", where=f"{op}: input_layout 'TND'")
    if not 0 <= sparse <= 4:
        raise UnsupportedError(f"sparse_mode {sparse}", where=op, allowed=[str(n) for n in range(5)])
    return LAYOUTS[layout], head_num


def _infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op = "FlashAttentionScore"
    layout, head_num = _settings(op, abstracts)
    query, key, value = (tensor_of(op, abstracts[i], _TENSORS[i], FLOATS) for i in range(3))
    same_dtype(op, {"query": query, "key": key, "value": value})
    for at in (5, 7, 8, 9):
        if not isinstance(abstracts[at], NoneType):
            raise UnsupportedError(f"operand {_TENSORS[at]!r}", where=op)
    if len(query.shape) != len(layout) or len(key.shape) != len(layout):
        raise ScriptValueError(
            f"For '{op}', the rank of 'query' and 'key' must be {len(layout)} for input_layout {layout}, but got "
            f"{vector(query.shape)} and {vector(key.shape)}."
        )
    if layout in ("BSH", "SBH") and query.shape[2] % head_num:
        raise ScriptValueError(f"For '{op}', 'head_num' {head_num} must divide the hidden size {query.shape[2]}.")
    batch, heads, sequence = _Heads(layout, head_num).shape(query.shape)
    if heads != head_num:
        raise ScriptValueError(f"For '{op}', 'head_num' is {head_num}, but 'query' has {heads} heads.")
    sums = output("float64" if query.dtype.name == "float64" else "float32", (batch, heads, sequence, _LANES))
    return tuple_of(sums, sums, output(query.dtype, (1,)), output(query.dtype, query.shape))


def _allowed(
    mask: Array | None, rows: int, columns: int, pre_tokens: int, next_tokens: int, sparse_mode: int
) -> Array | None:
    """Return a mask of the keys that each query may attend to, None for all of them."""
    if sparse_mode in (0, 1):
        if mask is None:
            return None
        return np.asarray(np.logical_not(mask.astype(bool)))
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    if sparse_mode == 2:
        return np.asanyarray(column <= row)
    row = row + columns - rows  # the diagonal ends in the lower right corner
    if sparse_mode == 3:
        return np.asanyarray(column <= row)
    return np.asanyarray((column >= row - pre_tokens) & (column <= row + next_tokens))


def _dropped(drop_mask: Array | None, shape: tuple[int, ...], keep_prob: float) -> Array | None:
    """Return the dropout factors of a mask of bits, lowest first, or of one byte per element."""
    if drop_mask is None:
        return None
    bits = drop_mask.reshape(-1)
    count = int(np.prod(shape))
    if bits.size < count:
        bits = np.unpackbits(bits.view(np.uint8), bitorder="little")
    return np.asanyarray(bits[:count].reshape(shape).astype(np.float32) / np.float32(keep_prob))


def _wide(x: Array) -> Array:
    """Convert to float32, unless the type is wider."""
    return x.astype(np.result_type(x.dtype, np.float32))


def _scores(query: Array, key: Array, shift: Array | None, scale: float, allowed: Array | None) -> Array:
    scores = _wide(query) @ _wide(key).swapaxes(-1, -2)
    if shift is not None:
        scores = scores + _wide(shift)
    scores = scores * np.asanyarray(scale, scores.dtype)
    return scores if allowed is None else np.where(allowed, scores, np.asanyarray(-np.inf, scores.dtype))


def _repeated(x: Array, heads: int) -> Array:
    """Repeat keys or values for the heads that share them."""
    return x if x.shape[1] == heads else np.repeat(x, heads // x.shape[1], axis=1)


def _flash(
    query: Array, key: Array, value: Array, real_shift: Array | None, drop_mask: Array | None, padding_mask: None,
    attn_mask: Array | None, prefix: None, actual_seq_qlen: None, actual_seq_kvlen: None, head_num: int,
    keep_prob: float, scale_value: float, pre_tokens: int, next_tokens: int, inner_precise: int, input_layout: int,
    sparse_mode: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    q, k, v, heads = _operands(query, key, value, head_num, input_layout)
    allowed = _allowed(attn_mask, q.shape[2], k.shape[2], pre_tokens, next_tokens, sparse_mode)
    scores = _scores(q, _repeated(k, head_num), real_shift, scale_value, allowed)
    largest = scores.max(axis=-1, keepdims=True)
    shifted = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = shifted.sum(axis=-1, keepdims=True)
    weights = shifted / np.where(total == 0, 1, total)
    factors = _dropped(drop_mask, weights.shape, keep_prob)
    if factors is not None:
        weights = weights * factors
    attention = heads.join((weights @ _wide(_repeated(v, head_num))).astype(query.dtype))
    lanes = (*largest.shape[:3], _LANES)
    none = np.zeros((1,), query.dtype)
    return np.broadcast_to(largest, lanes), np.broadcast_to(total, lanes), none, attention


def _operands(query: Array, key: Array, value: Array, head_num: int, layout: int) -> tuple[Array, Array, Array, _Heads]:
    heads = _Heads(LAYOUTS[layout], head_num)
    q = heads.split(query)
    shared = head_num
    if heads.layout in ("BSH", "SBH"):
        shared = key.shape[2] // q.shape[3]
    key_heads = _Heads(heads.layout, shared)
    return q, key_heads.split(key), key_heads.split(value), heads


def _grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    query, key, value, shift, drop, padding, mask, prefix, qlen, kvlen, *settings = operands
    slopes = b.emit(
        "FlashAttentionScoreGrad", query, key, value, part_or_zeros(b, dout, 3, out), shift, drop, padding, mask,
        b.item(out, 0), b.item(out, 1), b.item(out, 2), b.item(out, 3), prefix, qlen, kvlen,
        *(constant(setting) for setting in settings),
    )  # fmt: skip
    gradients = [b.item(slopes, 0), b.item(slopes, 1), b.item(slopes, 2)]
    shifted = None if isinstance(getattr(shift, "abstract", NoneType()), NoneType) else b.item(slopes, 3)
    return [*gradients, shifted, *(None for _ in operands[4:])]


def _infer_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op = "FlashAttentionScoreGrad"
    _settings(op, abstracts)
    query, key, value = (tensor_of(op, abstracts[i], _GRAD_TENSORS[i]) for i in range(3))
    shift = abstracts[4]
    last = output(query.dtype, (0,)) if isinstance(shift, NoneType) else tensor_of(op, shift, "pse_shift")
    return tuple_of(*(output(query.dtype, x.shape) for x in (query, key, value, last)))


def _flash_grad(
    query: Array, key: Array, value: Array, dy: Array, pse_shift: Array | None, drop_mask: Array | None,
    padding_mask: None, atten_mask: Array | None, softmax_max: Array, softmax_sum: Array, softmax_in: Array,
    attention_in: Array, prefix: None, actual_seq_qlen: None, actual_seq_kvlen: None, head_num: int, keep_prob: float,
    scale_value: float, pre_tokens: int, next_tokens: int, inner_precise: int, input_layout: int, sparse_mode: int,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    q, k, v, heads = _operands(query, key, value, head_num, input_layout)
    shared = _Heads(heads.layout, k.shape[1])
    full_k, full_v = (_wide(_repeated(x, head_num)) for x in (k, v))
    allowed = _allowed(atten_mask, q.shape[2], k.shape[2], pre_tokens, next_tokens, sparse_mode)
    scores = _scores(q, full_k, pse_shift, scale_value, allowed)
    largest, total = softmax_max[..., :1], softmax_sum[..., :1]
    weights = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    weights = weights / np.where(total == 0, 1, total)
    slope = _wide(heads.split(dy))
    factors = _dropped(drop_mask, weights.shape, keep_prob)
    dropped = weights if factors is None else weights * factors
    dv = dropped.swapaxes(-1, -2) @ slope
    dweights = slope @ full_v.swapaxes(-1, -2)
    if factors is not None:
        dweights = dweights * factors
    along = (dweights * weights).sum(axis=-1, keepdims=True)
    dscores = weights * (dweights - along) * np.asanyarray(scale_value, weights.dtype)
    dq, dk = dscores @ full_k, dscores.swapaxes(-1, -2) @ _wide(q)
    dk, dv = (x.reshape(x.shape[0], k.shape[1], -1, *x.shape[2:]).sum(axis=2) for x in (dk, dv))
    dshift = np.zeros((0,), query.dtype)
    if pse_shift is not None:
        dshift = _summed(dscores, pse_shift.shape)
    kind = query.dtype
    return heads.join(dq).astype(kind), shared.join(dk).astype(kind), shared.join(dv).astype(kind), dshift.astype(kind)


def _summed(slope: Array, shape: tuple[int, ...]) -> Array:
    """Sum a gradient down to the shape of an operand that was broadcast."""
    slope = slope.reshape((1,) * (len(shape) - slope.ndim) + slope.shape)
    slope = slope.sum(axis=tuple(range(slope.ndim - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and slope.shape[i] != 1)
    return np.asanyarray(slope.sum(axis=axes, keepdims=True))


def _infer_rotary(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op = "RotaryPositionEmbedding"
    x, cos, sin = (tensor_of(op, abstracts[i], name) for i, name in enumerate(("x", "cos", "sin")))
    mode = value_of(op, abstracts[3], "mode")
    if mode not in (0, 1):
        raise ScriptValueError(f"For '{op}', the value of 'mode' must be 0 or 1, but got {mode}.")
    if len(x.shape) != 4 or x.shape[3] % 2 or cos.shape != sin.shape:
        raise ScriptValueError(
            f"For '{op}', 'x' must have 4 dimensions, the last of them even, and 'cos' and 'sin' one shape, but got "
            f"{vector(x.shape)}, {vector(cos.shape)} and {vector(sin.shape)}."
        )
    return output(x.dtype, x.shape)


def _turned(x: Array, mode: int) -> Array:
    """Rotate pairs by 90 degrees: the halves of the last axis (mode 0), or neighbours (mode 1)."""
    if mode == 0:
        left, right = np.split(x, 2, axis=-1)
        return np.concatenate([-right, left], axis=-1)
    return np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)


def _rotary(x: Array, cos: Array, sin: Array, mode: int = 0) -> Array:
    return np.asanyarray(x * cos + _turned(x, mode) * sin)


def _grad_rotary(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, cos, sin, mode = operands
    slopes = b.emit("RotaryPositionEmbeddingGrad", dout, cos, sin, x, constant(mode))
    return b.item(slopes, 0), b.item(slopes, 1), b.item(slopes, 2), None


def _infer_rotary_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op = "RotaryPositionEmbeddingGrad"
    dy, cos, sin = (tensor_of(op, abstracts[i], name) for i, name in enumerate(("dy", "cos", "sin")))
    return tuple_of(output(dy.dtype, dy.shape), output(cos.dtype, cos.shape), output(sin.dtype, sin.shape))


def _rotary_grad(dy: Array, cos: Array, sin: Array, x: Array, mode: int = 0) -> tuple[Array, Array, Array]:
    dx = dy * cos - _turned(dy * sin, mode)
    return dx, _summed(dy * x, cos.shape), _summed(dy * _turned(x, mode), sin.shape)


OPS = (
    OpDef(
        name="FlashAttentionScore",
        operands=(*_TENSORS, *_SETTINGS),
        defaults=(*(None,) * 7, 1, 1.0, 1.0, 2147483647, 2147483647, 0, 0, 0),
        infer=_infer,
        kernel=_flash,
        grad=_grad,
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="FlashAttentionScoreGrad",
        operands=(*_GRAD_TENSORS, *_SETTINGS),
        infer=_infer_grad,
        kernel=_flash_grad,
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="RotaryPositionEmbedding",
        operands=("x", "cos", "sin", "mode"),
        defaults=(0,),
        infer=_infer_rotary,
        kernel=_rotary,
        grad=_grad_rotary,
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="RotaryPositionEmbeddingGrad",
        operands=("dy", "cos", "sin", "x", "mode"),
        defaults=(0,),
        infer=_infer_rotary_grad,
        kernel=_rotary_grad,
        prim_func=True,
        targets=("Ascend",),
    ),
)
