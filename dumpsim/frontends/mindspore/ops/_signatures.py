"""Arguments of primitives, as declared by MindSpore 2.10: those of the constructor, then of the call. [observed 2.10]

For an operator of `dumpsim.ops.table` that is not listed here, the attributes are the arguments of the constructor and
the operands those of the call.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, nearest
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import type_text
from dumpsim.ops.attention import LAYOUTS

__all__ = ["PrimitiveSignature", "number_of", "signature_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitiveSignature:
    """Arguments of constructor and call; `encode` converts settings to operands (enum names to numbers)."""

    init: inspect.Signature
    call: inspect.Signature | None
    encode: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)


# type(settings): operands; a backslash at the end continues a line
_SIGNATURES = """
Abs(): input
Add(): input, other
AddN(): inputs
ApplyMomentum(use_nesterov=False, use_locking=False, gradient_scale=1.0): \
variable, accumulation, learning_rate, gradient, momentum
Adam(use_locking=False, use_nesterov=False): var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient
AdamWeightDecay(use_locking=False): var, m, v, lr, beta1, beta2, epsilon, decay, gradient
ApplyAdagradV2(epsilon, update_slots=True): var, accum, lr, grad
ArgMaxWithValue(axis=0, keep_dims=False): input
ArgMinWithValue(axis=0, keep_dims=False): input
Argmax(axis=-1, output_type=int32): input_x
Argmin(axis=-1, output_type=int32): x
Assign(): variable, value
AssignAdd(): variable, value
AssignSub(): variable, value
BatchMatMul(transpose_a=False, transpose_b=False): x, y
BCEWithLogitsLoss(reduction='mean'): input, target, weight=None, posWeight=None
BiasAdd(data_format='NCHW'): input_x, bias
BinaryCrossEntropy(reduction='mean'): input, target, weight=None
BitwiseAnd(): x, y
BitwiseOr(): x, y
BitwiseXor(): x, y
BroadcastTo(shape): input
Cast(): input_x, dtype
CeLU(alpha=1.0): x
Concat(axis=0): tensors
CumProd(exclusive=False, reverse=False): x, axis
CumSum(exclusive=False, reverse=False): input, axis
DepthToSpace(block_size): x
Div(): input, other
DivNoNan(): x, y
Dropout(keep_prob=0.5, Seed0=0, Seed1=0): x
Einsum(equation): inputs
Elu(alpha=1.0): input_x
Equal(): input, other
ExpandDims(): input_x, axis
Eye(): n, m, dtype
FillV2(): shape, value
FlashAttentionScore(head_num, keep_prob=1.0, scale_value=1.0, pre_tokens=2147483647, next_tokens=2147483647, \
inner_precise=0, input_layout='BSH', sparse_mode=0): query, key, value, real_shift=None, drop_mask=None, \
padding_mask=None, attn_mask=None, prefix=None, actual_seq_qlen=None, actual_seq_kvlen=None
Flatten(): input_x
FloorDiv(): input, other
FloorMod(): x, y
Gather(batch_dims=0): input_params, input_indices, axis
GatherD(): x, dim, index
GatherNd(): input_x, indices
GLU(axis=-1): x
Greater(): input, other
GreaterEqual(): input, other
HShrink(lambd=0.5): input
IndexAdd(axis, use_lock=True, check_index_bound=True): x, indices, y
IsClose(rtol=1e-05, atol=1e-08, equal_nan=False): input, other
L2Normalize(axis=0, epsilon=0.0001): input_x
LayerNorm(begin_norm_axis=1, begin_params_axis=1, epsilon=1e-07): input_x, gamma, beta
Less(): input, other
LessEqual(): input, other
Logit(eps=-1.0): input
LogSoftmax(axis=-1): logits
LogicalAnd(): x, y
LogicalOr(): x, y
LogicalXor(): input, other
MaskedFill(): input_x, mask, value
MatMul(transpose_a=False, transpose_b=False): input, mat2
Maximum(): input, other
Minimum(): input, other
Mod(): x, y
Mul(): input, other
NanToNum(nan=None, posinf=None, neginf=None): input
NLLLoss(reduction='mean', ignore_index=-100): logits, labels, weight
NotEqual(): input, other
OneHot(axis=-1): indices, depth, on_value, off_value
Pow(): input, exponent
RealDiv(): x, y
ReduceAll(keep_dims=False): input, axis=None
ReduceAny(keep_dims=False): x, axis=()
ReduceMax(keep_dims=False): x, axis=()
ReduceMean(keep_dims=False): x, axis=()
ReduceMin(keep_dims=False): x, axis=()
ReduceProd(keep_dims=False): x, axis=()
ReduceSum(keep_dims=False, skip_mode=False): x, axis=()
Reshape(): input, shape
ResizeBilinearV2(align_corners=False, half_pixel_centers=False): image, size
ResizeNearestNeighborV2(align_corners=False, half_pixel_centers=False): image, size
ReverseSequence(seq_dim, batch_dim=0): x, seq_lengths
ReverseV2(axis): input
Roll(shifts, dims=None): input
Round(): input, decimals=0
Select(): condition, input, other
SGD(dampening=0.0, weight_decay=0.0, nesterov=False): parameters, gradient, learning_rate, accum, momentum, stat
SigmoidCrossEntropyWithLogits(): logits, label
Slice(): input, begin, size
SmoothL1Loss(beta=1.0, reduction='none'): prediction, target
SoftShrink(lambd=0.5): input
Softmax(axis=-1): input
SoftmaxCrossEntropyWithLogits(): logits, labels
Sort(axis=-1, descending=False): x
SpaceToDepth(block_size): x
SparseSoftmaxCrossEntropyWithLogits(is_grad=False): logits, labels
Split(axis=0, output_num=1): input_x
SquaredDifference(): x, y
Squeeze(axis=()): input
Stack(axis=0): input_x
StridedSlice(begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0): \
input_x, begin, end, strides
Sub(): x, y
TensorScatterUpdate(): input_x, indices, updates
Tile(): input, dims
TopK(sorted=True): input_x, k
Transpose(): input, dims
Tril(diagonal=0): x
Triu(diagonal=0): input
Unique(): x
UnsortedSegmentSum(): input_x, segment_ids, num_segments
Unstack(axis=0, num=None): input_x
WeightQuantBatchMatmul(transpose_x=False, transpose_weight=False, antiquant_group_size=0): x, weight, \
antiquant_scale, antiquant_offset=None, quant_scale=None, quant_offset=None, bias=None
Xdivy(): x, y
"""

_FORMATS = ("NCHW", "NHWC", "NHWC4", "HWKC", "HWCK", "KCHW", "CKHW", "KHWC", "CHWK", "HW", "HW4", "NC", "NC4", "NC4HW4")
_REDUCTIONS = ("sum", "mean", "none")


def number_of(owner: str, name: str, value: Any, names: tuple[str, ...] = _REDUCTIONS) -> int:
    """Return the number of a name that a function passes on to a primitive.

    Examples
    --------
    >>> number_of("smooth_l1_loss", "reduction", "avg")
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptValueError: Failed to convert the value "avg" of input 'reduction' of \
'smooth_l1_loss' to enum.
    """
    if not isinstance(value, str):
        raise ScriptTypeError(f"For '{owner}', the input '{name}' should be a str, but got {type_text(value)}.")
    if value not in names:
        raise ScriptValueError(f"Failed to convert the value \"{value}\" of input '{name}' of '{owner}' to enum.")
    return names.index(value)


def data_format(value: Any) -> int:
    """Return the number of a layout name, as the IR prints it (``I64(0)`` for NCHW). [observed 2.10]

    Examples
    --------
    >>> data_format("NHWC")
    1
    """
    return _number("data_format", value, _FORMATS)


def _reduction(value: Any) -> int:
    return _number("reduction", value, _REDUCTIONS)


def _number(what: str, value: Any, names: tuple[str, ...]) -> int:
    if isinstance(value, int):
        return value
    if value not in names:
        raise ScriptValueError(f"unknown value {value!r}", where=what, allowed=names, nearest=nearest(value, names))
    return names.index(value)


def _axes(value: Any) -> Any:
    return (value,) if isinstance(value, int) else tuple(value)


_ENCODE: Mapping[str, tuple[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "BiasAdd": ("data_format", data_format),
        "BCEWithLogitsLoss": ("reduction", _reduction),
        "BinaryCrossEntropy": ("reduction", _reduction),
        "FlashAttentionScore": ("input_layout", lambda name: _number("input_layout", name, LAYOUTS)),
        "NLLLoss": ("reduction", _reduction),
        "SmoothL1Loss": ("reduction", _reduction),
        "Softmax": ("axis", _axes),
        "Squeeze": ("axis", _axes),
    }
)


@cache
def _declared() -> dict[str, PrimitiveSignature]:
    return {line.split("(", 1)[0]: _parsed(line) for line in _SIGNATURES.strip().splitlines()}


def _parsed(line: str) -> PrimitiveSignature:
    head, operands = line.rsplit("): ", 1) if "): " in line else (line.rsplit("):", 1)[0], "")
    name, settings = head.split("(", 1)
    return PrimitiveSignature(
        init=_signature(settings),
        call=_signature(operands),
        encode=dict([_ENCODE[name]] if name in _ENCODE else []),
    )


def _signature(text: str) -> inspect.Signature:
    """Parse ``axis=0, keep_dims=False`` into a signature; the text comes from this module only."""
    scope: dict[str, Any] = {"int32": mstype.int32}
    exec(f"def declared({text}): pass", scope)
    return inspect.signature(scope["declared"])


def signature_of(op_type: str) -> PrimitiveSignature:
    """Return the arguments of an operator type.

    Raises
    ------
    UnsupportedError
        For an operator that is not emulated.

    Examples
    --------
    >>> str(signature_of("MatMul").init)
    '(transpose_a=False, transpose_b=False)'
    """
    from dumpsim.ops.table import find

    definition = find(op_type)
    if op_type in _declared():
        return _declared()[op_type]
    settings = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)
        for name, value in definition.attrs.items()
        if name.isidentifier()
    ]
    return PrimitiveSignature(init=inspect.Signature(settings), call=None)
