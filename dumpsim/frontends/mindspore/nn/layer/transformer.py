"""``mindspore.nn.layer.transformer``: attention, and the layers around it."""

import copy
import math
from typing import Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._listener import neutral
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import (
    HeUniform,
    Uniform,
    XavierNormal,
    XavierUniform,
    initializer,
)
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.nn.layer.basic import Dense, Dropout
from dumpsim.frontends.mindspore.nn.layer.container import CellList
from dumpsim.frontends.mindspore.nn.layer.normalization import LayerNorm

__all__ = [
    "MultiheadAttention",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _dense(inputs: int, outputs: int, dtype: DType, has_bias: bool = True, *, fan_in: int) -> Dense:
    weight_init, bias_init = HeUniform(math.sqrt(5)), Uniform(1 / math.sqrt(fan_in))
    return Dense(inputs, outputs, has_bias=has_bias, weight_init=weight_init, bias_init=bias_init, dtype=dtype)


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    """Multiply by a weight and add the bias, if any."""
    return ops.dense(x, weight, bias)


def _dropped(x: Any, p: float, training: bool) -> Any:
    """Apply dropout without a separate cell, and without the seed of the script. [observed 2.10]"""
    return x if neutral() or not training or not 0 < p <= 1 else ops.Dropout(1.0 - p)(x)[0]


def _check_ranks(query: Any, key: Any, value: Any) -> None:
    """Refuse numbers of axes that do not go together. [2.10 observed]"""
    if query.ndim not in (2, 3):
        raise ScriptValueError(
            f"The `query` should be unbatched 2D or batched 3D tensor, but got `query` with {query.ndim}D."
        )
    if not query.ndim == key.ndim == value.ndim:
        raise ScriptValueError(
            f"For {'batched' if query.ndim == 3 else 'unbatched'} `query`, the `key` and `value` must be {query.ndim}D "
            f"tensor, but got `key` with {key.ndim}D and `value` with {value.ndim}D."
        )


class MultiheadAttention(Cell):
    """Attention of several heads.

    Parameters
    ----------
    embed_dim, num_heads : int
    dropout : float
        Of the attention weights.
    has_bias, add_bias_kv, add_zero_attn, batch_first : bool
    kdim, vdim : int, optional
        Features of key and value, `embed_dim` if None.
    dtype : number type

    Examples
    --------
    >>> [p.name for p in MultiheadAttention(8, 2).get_parameters()]
    ['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias']
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        has_bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ScriptValueError("The init argument 'embed_dim' must be divisible by 'num_heads'.")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.batch_first, self.add_zero_attn, self.dtype = batch_first, add_zero_attn, dtype
        self.dropout = dropout
        widths = [embed_dim if width is None else width for width in (kdim, vdim)]
        self.packed = widths == [embed_dim, embed_dim]

        def weight(name: str, rows: int, width: int) -> Parameter:
            return Parameter(initializer(XavierUniform(), (rows, width), dtype), name)

        if self.packed:
            self.in_proj_weight = weight("in_proj_weight", 3 * embed_dim, embed_dim)
        else:
            self.q_proj_weight = weight("q_proj_weight", embed_dim, embed_dim)
            self.k_proj_weight = weight("k_proj_weight", embed_dim, widths[0])
            self.v_proj_weight = weight("v_proj_weight", embed_dim, widths[1])
        self.in_proj_bias: Any = None
        if has_bias:
            self.in_proj_bias = Parameter(initializer("zeros", 3 * embed_dim, dtype), "in_proj_bias")
        self.out_proj = _dense(embed_dim, embed_dim, dtype, has_bias, fan_in=embed_dim)
        self.bias_k: Any = None
        self.bias_v: Any = None
        if add_bias_kv:
            self.bias_k = Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), "bias_k")
            self.bias_v = Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), "bias_v")

    def construct(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
    ) -> Any:
        is_batched = query.ndim == 3
        _check_ranks(query, key, value)
        if not is_batched:
            query, key, value = (ops.expand_dims(each, 1) for each in (query, key, value))
            if key_padding_mask is not None:
                key_padding_mask = ops.expand_dims(key_padding_mask, 0)
        elif self.batch_first:
            query, key, value = (each.swapaxes(1, 0) for each in (query, key, value))
        tgt_len, bsz, embed_dim = query.shape
        if embed_dim != self.embed_dim:
            raise ScriptValueError(f"The `embed_dim` should be {self.embed_dim}, but got {embed_dim}.")
        self._check_shapes(key.shape, value.shape)
        q, k, v = self._projected(query, key, value)
        if attn_mask is not None and attn_mask.ndim == 2:
            attn_mask = ops.expand_dims(attn_mask, 0)
        if self.bias_k is not None:
            k = ops.cat([k, ops.tile(self.bias_k, (1, bsz, 1))])
            v = ops.cat([v, ops.tile(self.bias_v, (1, bsz, 1))])
            attn_mask, key_padding_mask = _widened(attn_mask), _widened(key_padding_mask)
        heads = bsz * self.num_heads
        q = q.view(tgt_len, heads, self.head_dim).swapaxes(0, 1)
        k = k.view(k.shape[0], heads, self.head_dim).swapaxes(0, 1)
        v = v.view(v.shape[0], heads, self.head_dim).swapaxes(0, 1)
        if self.add_zero_attn:
            zeros = (heads, 1, self.head_dim)
            k = ops.cat([k, ops.zeros(zeros, k.dtype)], 1)
            v = ops.cat([v, ops.zeros(zeros, v.dtype)], 1)
            attn_mask, key_padding_mask = _widened(attn_mask), _widened(key_padding_mask)
        src_len = k.shape[1]
        mask = self._mask(attn_mask, key_padding_mask, bsz, src_len, q.dtype)
        q = q.view(bsz, self.num_heads, tgt_len, self.head_dim)
        k = k.view(bsz, self.num_heads, src_len, self.head_dim)
        v = v.view(bsz, self.num_heads, src_len, self.head_dim)
        scaling_factor = Tensor(np.sqrt(np.sqrt(np.float32(self.head_dim))), self.dtype)
        attn = ops.matmul(q / scaling_factor, k.swapaxes(-2, -1) / scaling_factor)
        if mask is not None:
            attn = attn + mask
        attn = _dropped(ops.softmax(attn, -1), self.dropout, self.training)
        output = ops.matmul(attn, v)
        output = ops.transpose(output, (2, 0, 1, 3)).view(bsz * tgt_len, embed_dim)
        output = _linear(output, self.out_proj.weight, self.out_proj.bias)
        output = output.view(tgt_len, bsz, embed_dim)
        weights = attn
        if average_attn_weights:
            weights = weights.sum(axis=1) / self.num_heads
        if not is_batched:
            output = output.squeeze(1)
            weights = weights.squeeze(0)
        elif self.batch_first:
            output = output.swapaxes(1, 0)
        return (output, weights) if need_weights else (output,)

    def _check_shapes(self, key: tuple[int, ...], value: tuple[int, ...]) -> None:
        """Refuse keys and values that do not fit together or do not fit the weights. [2.10 observed]"""
        if self.packed:
            if key != value:
                raise ScriptValueError(f"The shape of `key` {key} does not match `value` {value}.")
            return
        if key[:2] != value[:2]:
            raise ScriptValueError(
                f"The sequence length and batch dims of `key`: {key[:2]} do not match `value`: {value[:2]}."
            )
        for name, shape, weight in (("key", key, self.k_proj_weight), ("value", value, self.v_proj_weight)):
            if weight.shape[1] != shape[2]:
                wanted = (self.embed_dim, shape[2])
                raise ScriptValueError(f"Expecting {name} weights shape of {wanted}, but got {tuple(weight.shape)}")

    def _projected(self, query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
        """Multiply query, key and value by their weights."""
        biases: Any = (None, None, None)
        if self.in_proj_bias is not None:
            biases = ops.split(self.in_proj_bias, self.embed_dim)
        weights: Any = None
        if self.packed:
            if query is key and key is value:  # a single product
                together = _linear(query, self.in_proj_weight, self.in_proj_bias)
                q, k, v = ops.split(together, self.embed_dim, -1)
                return q, k, v
            weights = ops.split(self.in_proj_weight, self.embed_dim)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return (
            _linear(query, weights[0], biases[0]),
            _linear(key, weights[1], biases[1]),
            _linear(value, weights[2], biases[2]),
        )

    def _mask(self, attn_mask: Any, padding: Any, bsz: int, src_len: int, kind: DType) -> Any:
        """Return the mask that is added to the scores: minus infinity where a mask is true."""
        if padding is not None:
            padding = ops.tile(padding.view(bsz, 1, 1, src_len), (1, self.num_heads, 1, 1))
            padding = padding.reshape(bsz * self.num_heads, 1, src_len)
            if attn_mask is None:
                attn_mask = padding
            elif attn_mask.dtype == mstype.bool_:
                attn_mask = ops.logical_or(attn_mask, padding)
            else:
                attn_mask = attn_mask + padding
        if attn_mask is None:
            return None
        if attn_mask.dtype == mstype.bool_:
            zeros = ops.zeros(attn_mask.shape, kind)
            attn_mask = ops.masked_fill(zeros, attn_mask, Tensor(float("-inf"), kind))
        if attn_mask.shape[0] == 1:
            return ops.expand_dims(attn_mask, 0)
        return attn_mask.view(bsz, self.num_heads, -1, src_len)


def _widened(mask: Any) -> Any:
    """Extend a mask by one position that is not masked."""
    if mask is None:
        return None
    return ops.cat([mask, ops.zeros((*mask.shape[:-1], 1), mask.dtype)], -1)


class _Layer(Cell):
    """Base of the layers of encoder and decoder."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        self.settings: tuple[Any, ...] = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype,
        )  # fmt: skip
        self.self_attn = self._attention()
        self._more_attention()
        self.dense1 = _dense(d_model, dim_feedforward, dtype, fan_in=d_model)
        self.dropout = Dropout(p=dropout)
        self.dense2 = _dense(dim_feedforward, d_model, dtype, fan_in=dim_feedforward)
        self.norm_first = norm_first
        self.activation = _activation(activation)

    def _attention(self) -> MultiheadAttention:
        d_model, nhead, _, dropout, _, _, batch_first, _, dtype = self.settings
        return MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)

    def _more_attention(self) -> None:
        """Create the second attention of a decoder."""

    def _norms(self, count: int) -> None:
        """Create norms and dropouts, numbered from 1."""
        d_model, dropout, epsilon, dtype = (self.settings[index] for index in (0, 3, 5, 8))
        for number in range(1, count + 1):
            setattr(self, f"norm{number}", LayerNorm((d_model,), epsilon=epsilon, dtype=dtype))
        for number in range(1, count + 1):
            setattr(self, f"dropout{number}", Dropout(p=dropout))

    def _self_attended(self, x: Any, mask: Any, padding: Any) -> Any:
        x = self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]
        return self.dropout1(x)

    def _fed_forward(self, x: Any) -> Any:
        return self.dense2(self.dropout(self.activation(self.dense1(x))))


def _activation(activation: Any) -> Any:
    if isinstance(activation, str):
        if activation not in ("relu", "gelu"):
            raise ScriptValueError(f"The activation must be relu/gelu, but get {activation}")
        return ops.relu if activation == "relu" else ops.gelu
    if activation in (ops.relu, ops.gelu):
        return activation
    # a cell is refused, although the documentation allows it [2.10 observed]
    raise ScriptValueError(f"The argument 'activation' must be ops.relu or ops.gelu instance, but get {activation}.")


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, and two dense layers.

    Parameters
    ----------
    d_model, nhead : int
    dim_feedforward : int
    dropout : float
    activation : {"relu", "gelu"}, ops.relu or ops.gelu
    layer_norm_eps : float
    batch_first, norm_first : bool
    dtype : number type
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._norms(2)

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Any:
        x = src
        if self.norm_first:
            x = x + self._self_attended(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self.dropout2(self._fed_forward(self.norm2(x)))
        x = self.norm1(x + self._self_attended(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self.dropout2(self._fed_forward(x)))


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself and to a memory, and two dense layers.

    The arguments are those of `TransformerEncoderLayer`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._norms(3)

    def _more_attention(self) -> None:
        self.multihead_attn = self._attention()

    def _attended(self, x: Any, memory: Any, mask: Any, padding: Any) -> Any:
        x = self.multihead_attn(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]
        return self.dropout2(x)

    def construct(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Any:
        x = tgt
        if self.norm_first:
            x = x + self._self_attended(self.norm1(x), tgt_mask, tgt_key_padding_mask)
            x = x + self._attended(self.norm2(x), memory, memory_mask, memory_key_padding_mask)
            return x + self.dropout3(self._fed_forward(self.norm3(x)))
        x = self.norm1(x + self._self_attended(x, tgt_mask, tgt_key_padding_mask))
        x = self.norm2(x + self._attended(x, memory, memory_mask, memory_key_padding_mask))
        return self.norm3(x + self.dropout3(self._fed_forward(x)))


class _Stack(Cell):
    """Copies of one layer, with newly initialized weights."""

    def __init__(self, layer: _Layer, num_layers: int, norm: Any) -> None:
        super().__init__()
        made = type(layer)(*layer.settings)
        self.layers = CellList([copy.deepcopy(made) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm


class TransformerEncoder(_Stack):
    """Encoder layers one after the other."""

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Any = None) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Any:
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        if self.norm is not None:
            output = self.norm(output)
        return output


class TransformerDecoder(_Stack):
    """Decoder layers one after the other."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Any = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def construct(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Any:
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
            )
        if self.norm is not None:
            output = self.norm(output)
        return output


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.transformer", name)
