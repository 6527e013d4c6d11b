"""Functions of the fused operators of large models: attention, normalisation, quantized weights."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore.common._operandtypes import takes
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import single

__all__ = ["flash_attention_score", "rms_norm", "rotary_position_embedding", "swiglu", "weight_quant_batch_matmul"]


def flash_attention_score(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    real_shift: Tensor | None = None,
    drop_mask: Tensor | None = None,
    padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    keep_prob: float = 1.0,
    scalar_value: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647,
    inner_precise: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Tensor:
    """Attention of queries over keys and values, in one operator (Ascend).

    Parameters
    ----------
    query, key, value : Tensor
        float16, bfloat16 or float32, with the axes in the order of `input_layout`.
    head_num : int
        Number of heads of `query`; `key` may have fewer.
    real_shift, drop_mask, attn_mask : Tensor, optional
        An addend to the scores, the elements that dropout keeps, and a mask whose true elements hide keys.
    scalar_value, keep_prob, pre_tokens, next_tokens, sparse_mode
        As in MindSpore; sparse modes 0 to 4.

    Raises
    ------
    TypeError, ValueError
        For operands that do not fit.
    NotImplementedError
        For prefixes, sequences of different lengths (``TND``) and sparse modes above 4.
    """
    if not isinstance(input_layout, str):
        raise ScriptTypeError(f"input_layout is of type {type(input_layout).__name__}", where="flash_attention_score")
    from dumpsim.frontends.mindspore.ops._signatures import signature_of

    layout = signature_of("FlashAttentionScore").encode["input_layout"](input_layout)
    outputs = call(
        "FlashAttentionScore",
        [
            query, key, value, real_shift, drop_mask, padding_mask, attn_mask, prefix, actual_seq_qlen,
            actual_seq_kvlen, head_num, float(keep_prob), float(scalar_value), pre_tokens, next_tokens, inner_precise,
            layout, sparse_mode,
        ],
    )  # fmt: skip
    attention: Tensor = outputs[3]
    return attention


def weight_quant_batch_matmul(
    x: Tensor,
    weight: Tensor,
    antiquant_scale: Tensor,
    antiquant_offset: Tensor | None = None,
    quant_scale: Tensor | None = None,
    quant_offset: Tensor | None = None,
    bias: Tensor | None = None,
    transpose_x: bool = False,
    transpose_weight: bool = False,
    antiquant_group_size: int = 0,
) -> Tensor:
    """``x @ ((weight + antiquant_offset) * antiquant_scale) + bias`` with weights of int8 or pairs of int4 (Ascend)."""
    tensors = [x, weight, antiquant_scale, antiquant_offset, quant_scale, quant_offset, bias]
    return single("WeightQuantBatchMatmul", [*tensors, transpose_x, transpose_weight, antiquant_group_size])


@takes("RmsNorm")
def rms_norm(x: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Divide `x` by the root of the mean of its squares, times `gamma`; also return the inverse of that root."""
    outputs: tuple[Tensor, Tensor] = call("RmsNorm", [x, gamma, float(epsilon)])
    return outputs


@takes("Swiglu")
def swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """Swish of the first half along `dim`, times the second half."""
    return single("Swiglu", [input, dim])


@takes("RotaryPositionEmbedding")
def rotary_position_embedding(x: Tensor, cos: Tensor, sin: Tensor, mode: int = 0) -> Tensor:
    """Rotate `x` by the angles of its positions, pairing halves (`mode` 0) or neighbours (1)."""
    return single("RotaryPositionEmbedding", [x, cos, sin, mode])
