"""The public names of operators: one row for each function of ``ops`` and the other names that call it.

This table defines the functions of ``ops``, the methods of Tensor, the functions of ``mint`` and the primitives with a
class in this package. Every operator of `dumpsim.ops.table` is also a primitive of the same name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

__all__ = ["PRIMITIVES", "Api", "function", "methods", "mint_function", "primitive_module", "rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The public names of one function of ``ops``, or of cells without one.

    Attributes
    ----------
    operator : str
        Operator type, "" if several operators are involved.
    module : str
        Module of ``ops.function`` that defines the function, "" if it is created from the table of operators.
    functions : tuple of str
        Names in ``ops``: the function, then its aliases.
    methods : tuple of str
        Methods of Tensor; those that Tensor does not define call the first function.
    mint : tuple of str
        Names in ``mint``: ``abs``, ``nn.functional.relu``, ``nn.ReLU``.
    cells : tuple of str
        Cells of ``nn``.
    """

    operator: str
    module: str
    functions: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    mint: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()


# module -> its functions, "operator: functions | methods | mint | cells"; a dash means no name, or several operators;
# a backslash at the end continues a line
_ROWS = MappingProxyType(
    {
        "arithmetic": """
Add: add | add | add
Sub: sub | sub subtract | sub
Mul: mul | mul multiply | mul
Div: div divide true_divide | div divide true_divide | div divide
FloorDiv: floor_div floor_divide | floor_divide floor_div | floor_divide
FloorMod: floor_mod
RemainderTensorTensor: remainder | remainder | remainder
Pow: pow | pow | pow
Maximum: maximum | maximum | maximum
Minimum: minimum | minimum | minimum
Equal: equal eq | equal eq | eq
NotEqual: not_equal ne | not_equal ne | ne not_equal
Greater: greater gt | greater gt | gt greater
GreaterEqual: greater_equal ge | greater_equal ge | ge greater_equal
Less: less lt | less lt | lt less
LessEqual: less_equal le | less_equal le | le less_equal
BitwiseAnd: bitwise_and | - | bitwise_and
BitwiseOr: bitwise_or | - | bitwise_or
BitwiseXor: bitwise_xor | - | bitwise_xor
Invert: invert
MatMulExt: matmul | matmul | matmul
""",
        "elementwise": """
Abs: abs | abs absolute | abs
ACos: acos | - | acos arccos
Acosh: acosh | - | acosh arccosh
Asin: asin | - | asin arcsin
Asinh: asinh | - | asinh arcsinh
Atan: atan | - | atan arctan
Atanh: atanh arctanh | - | atanh arctanh
Ceil: ceil | ceil | ceil
Cos: cos | cos | cos
Cosh: cosh | - | cosh
Erf: erf | erf | erf
Erfc: erfc | - | erfc
Exp: exp | exp | exp
Expm1: expm1 | expm1 | expm1
Floor: floor | floor | floor
IsFinite: isfinite | isfinite | isfinite
IsInf: isinf | isinf | isinf
IsNan: isnan | isnan | isnan
Log: log | log | log
Log1p: log1p | log1p | log1p
LogicalNot: logical_not | logical_not | logical_not
Mish: mish | - | nn.functional.mish nn.Mish | Mish
Neg: neg | neg negative | neg
Reciprocal: reciprocal | reciprocal | reciprocal
Rsqrt: rsqrt | rsqrt | rsqrt
Sigmoid: sigmoid | sigmoid | sigmoid nn.functional.sigmoid nn.Sigmoid | Sigmoid
Sign: sign | sign | sign
Sin: sin | sin | sin
Sinh: sinh | - | sinh
Sqrt: sqrt | sqrt | sqrt
Square: square | square | square
Tan: tan | tan | tan
Tanh: tanh | tanh | tanh nn.functional.tanh nn.Tanh | Tanh
Trunc: trunc | trunc | trunc
Abs: absolute
Neg: negative | - | negative
Round: round | round | round
Cast: cast | cast astype to type type_as float half double bfloat16 int long bool
ClampScalar: clamp clip | clamp clip | clamp
-: clip_by_value
LogicalAnd: logical_and | logical_and | logical_and
LogicalOr: logical_or | logical_or | logical_or
LogicalXor: logical_xor | logical_xor | logical_xor
-: deepcopy | copy clone | clone
""",
        "shape": """
Reshape: reshape | reshape view view_as reshape_as ravel | reshape
Transpose: transpose | transpose permute T | t
Transpose: permute | - | permute
Transpose: swapaxes swapdims | swapaxes swapdims | swapaxes transpose
Transpose: movedim
Flatten: flatten | flatten | flatten nn.Flatten | Flatten
Squeeze: squeeze | squeeze | squeeze
ExpandDims: expand_dims | expand_dims
ExpandDims: unsqueeze | unsqueeze | unsqueeze
Concat: concat
-: cat | - | cat concat
Stack: stack | - | stack
Unstack: unbind unstack | unbind | unbind
Split: split | split | split
-: chunk | chunk | chunk
Slice: narrow | narrow | narrow
Slice: slice
StridedSlice: strided_slice
Tile: tile | tile repeat | tile
-: repeat_elements
BroadcastTo: broadcast_to | broadcast_to expand expand_as | broadcast_to
ReverseV2: flip | flip | flip
Gather: gather | gather take | select | Embedding
IndexSelect: index_select | index_select | index_select
GatherD: gather_elements gather_d | gather_elements | gather
GatherNd: gather_nd | gather_nd
ScatterNd: scatter_nd
TensorScatterUpdate: tensor_scatter_update
Select: select
NonZero: nonzero | nonzero | nonzero
-: masked_select | masked_select | masked_select
-: diagonal | diagonal
-: where | where | where
MaskedFill: masked_fill | masked_fill
Tril: tril | tril | tril
Triu: triu | triu | triu
Diag: diag
Shape: shape shape_
-: rank
-: size
""",
        "reduce": """
SumExt: sum | sum | sum
ReduceMean: mean | mean | mean
ProdExt: prod | prod | prod
Max: max | max | max
Min: min | min | min
ReduceSum: reduce_sum
ReduceMean: reduce_mean
ReduceMax: amax reduce_max | amax | amax
ReduceMin: amin reduce_min | amin | amin
ReduceAll: all reduce_all | all | all
ReduceAny: any reduce_any | any | any
Argmax: argmax | argmax | argmax
Argmin: argmin | argmin | argmin
CumSum: cumsum | cumsum | cumsum
CumProd: cumprod | - | cumprod
TopK: topk | topk | topk
Sort: sort | sort | sort
-: argsort | argsort | argsort
Unique: unique | unique
-: var | var | var
-: std | std | std
-: norm | norm | norm
-: logsumexp | logsumexp | logsumexp
""",
        "create": """
Zeros: zeros | new_zeros | zeros
Ones: ones | new_ones | ones
FillV2: full | - | full
FillV2: fill
ZerosLike: zeros_like | - | zeros_like
OnesLike: ones_like | - | ones_like
FillV2: full_like | - | full_like
-: arange | - | arange
Range: range
LinSpace: linspace | - | linspace
Eye: eye | - | eye
OneHot: one_hot | - | nn.functional.one_hot | OneHot
Meshgrid: meshgrid | - | meshgrid
StandardNormal: standard_normal
-: normal
-: uniform
-: randn | - | randn
-: rand | - | rand
-: randint
-: tuple_to_array
""",
        "network": """
ReLU: relu | - | nn.functional.relu nn.ReLU | ReLU
ReLU6: relu6 | - | nn.functional.relu6 nn.ReLU6 | ReLU6
GeLU: gelu | - | nn.functional.gelu nn.GELU | GELU
SiLU: silu | - | nn.functional.silu nn.SiLU | SiLU
-: leaky_relu | - | nn.functional.leaky_relu | LeakyReLU
Elu: elu | - | nn.functional.elu nn.ELU | ELU
SeLU: selu | - | nn.functional.selu nn.SELU | SeLU
HSwish: hardswish | - | nn.functional.hardswish nn.Hardswish | HSwish
HSigmoid: hardsigmoid | - | nn.functional.hardsigmoid nn.Hardsigmoid | HSigmoid
Softplus: softplus | - | nn.functional.softplus | -
Softmax: softmax | softmax | nn.functional.softmax nn.Softmax | Softmax
LogSoftmax: log_softmax | log_softmax | nn.functional.log_softmax nn.LogSoftmax | LogSoftmax
MatMul: mm | mm | mm
BatchMatMul: bmm | bmm | bmm
Dot: dot | dot | dot
-: inner | inner
KLDivLoss: kl_div | - | nn.functional.kl_div nn.KLDivLoss | KLDivLoss
-: addmm | - | addmm
-: baddbmm | - | baddbmm
Dense: dense | - | nn.functional.linear nn.Linear | Dense
BiasAdd: bias_add
Dropout: dropout | - | nn.functional.dropout nn.Dropout | Dropout
LayerNorm: layer_norm | - | nn.functional.layer_norm | LayerNorm
MaxPoolWithArgmaxV2: max_pool2d | - | nn.functional.max_pool2d nn.MaxPool2d | MaxPool2d
-: avg_pool2d | - | nn.functional.avg_pool2d nn.AvgPool2d | AvgPool2d
Conv2D: conv2d | - | nn.functional.conv2d nn.Conv2d | Conv2d
PadV3: pad | - | nn.functional.pad | ReplicationPad1d ReplicationPad2d ReplicationPad3d
MirrorPad: - | - | - | Pad ReflectionPad1d ReflectionPad2d ReflectionPad3d
-: mse_loss | - | nn.functional.mse_loss nn.MSELoss | MSELoss
-: l1_loss | - | nn.functional.l1_loss nn.L1Loss | L1Loss
SmoothL1Loss: smooth_l1_loss | - | nn.functional.smooth_l1_loss nn.SmoothL1Loss | SmoothL1Loss
-: cross_entropy | - | nn.functional.cross_entropy nn.CrossEntropyLoss | CrossEntropyLoss
-: nll_loss | - | nn.functional.nll_loss nn.NLLLoss | NLLLoss
BinaryCrossEntropy: binary_cross_entropy | - | nn.functional.binary_cross_entropy nn.BCELoss | BCELoss
BCEWithLogitsLoss: binary_cross_entropy_with_logits | - | nn.functional.binary_cross_entropy_with_logits \
nn.BCEWithLogitsLoss | BCEWithLogitsLoss
SigmoidCrossEntropyWithLogits: sigmoid_cross_entropy_with_logits
""",
        "clip": """
-: clip_by_global_norm
-: clip_by_norm
""",
        "steer": """
Assign: assign
AssignAdd: assign_add
AssignSub: assign_sub
-: identity | - | nn.Identity | Identity
-: partial
-: scalar_to_tensor
-: is_tensor
Depend: depend
StopGradient: stop_gradient
""",
        "vmap_func": """
-: vmap
""",
        "debug": """
Print: print_
TensorDump: tensordump
""",
        "fused": """
FlashAttentionScore: flash_attention_score
WeightQuantBatchMatmul: weight_quant_batch_matmul
RmsNorm: rms_norm
Swiglu: swiglu
RotaryPositionEmbedding: rotary_position_embedding
""",
        "further": """
Addmv: addmv
Addbmm: addbmm
Einsum: einsum | - | einsum
CeLU: celu | - | - | CELU
GLU: glu | - | nn.functional.glu nn.GLU | GLU
HShrink: hardshrink | - | - | HShrink
SoftShrink: softshrink | - | - | SoftShrink
LogSigmoid: logsigmoid | - | nn.functional.logsigmoid nn.LogSigmoid | LogSigmoid
Logit: logit
IsClose: isclose | isclose allclose | isclose
NanToNum: nan_to_num | - | nan_to_num
Roll: roll | - | roll
ReverseSequence: reverse_sequence
RepeatInterleaveInt: repeat_interleave | - | repeat_interleave
-: pixel_shuffle | - | nn.functional.pixel_shuffle nn.PixelShuffle
-: interpolate | - | nn.functional.interpolate nn.Upsample
IndexAdd: index_add
ScatterUpdate: scatter_update
ScatterAdd: scatter_add
ScatterSub: scatter_sub
ScatterMul: scatter_mul
ScatterDiv: scatter_div
ScatterMax: scatter_max
ScatterMin: scatter_min
ScatterNdAdd: scatter_nd_add
ScatterNdSub: scatter_nd_sub
ScatterNdMul: scatter_nd_mul
ScatterNdDiv: scatter_nd_div
ScatterNdMax: scatter_nd_max
ScatterNdMin: scatter_nd_min
-: dtype
-: numel | numel
AdaptiveAvgPool2D: adaptive_avg_pool2d | - | nn.functional.adaptive_avg_pool2d nn.AdaptiveAvgPool2d | AdaptiveAvgPool2d
""",
        "composed": """
Addcdiv: addcdiv | - | addcdiv
Addcmul: addcmul | - | addcmul
BatchNorm: batch_norm | - | nn.functional.batch_norm | BatchNorm1d BatchNorm2d BatchNorm3d
GroupNorm: group_norm | - | nn.functional.group_norm | GroupNorm
Mul: multiply
Sub: subtract
-: positive
-: fmod
-: deg2rad
-: rad2deg
-: copysign
-: rot90
-: kron
-: count_nonzero
""",
        "combine": """
-: dstack
-: tanhshrink
-: tensor_split
-: upsample
Reshape: ravel
Transpose: moveaxis
ReverseV2: flipud
ReverseV2: fliplr
Concat: vstack
Concat: hstack
SumExt: trace | - | trace
-: softmin | - | - | Softmin
-: pixel_unshuffle
-: cosine_similarity
-: huber_loss | - | - | HuberLoss
-: margin_ranking_loss | - | - | MarginRankingLoss
""",
        "guarded": """
Exp2: exp2 | - | exp2
Frac: frac | - | frac
Hardtanh: hardtanh | - | - | Hardtanh
Log10: log10 | - | log10
Log2: log2 | - | log2
LogAddExp: logaddexp | - | logaddexp
LogAddExp2: logaddexp2 | - | logaddexp2
Mv: mv | - | mv
TensorScatterElements: tensor_scatter_elements | - | scatter
Threshold: threshold | - | - | Threshold
Xlogy: xlogy | - | xlogy
Mul: outer | - | outer
""",
        "": """
AddN: addn
Atan2: atan2 | - | arctan2 atan2
FastGeLU: fast_gelu | - | - | FastGelu
FloorDiv: floordiv
FloorMod: floormod
Fmax: fmax
Fmin: fmin
Gcd: gcd
Ger: ger
Heaviside: heaviside
Hypot: hypot
Inv: inv
Lerp: lerp | - | lerp
MakeTuple: make_tuple
PReLU: prelu | - | - | PReLU
Softsign: softsign | - | - | Softsign
TensorScatterAdd: tensor_scatter_add
TensorScatterDiv: tensor_scatter_div
TensorScatterMax: tensor_scatter_max
TensorScatterMin: tensor_scatter_min
TensorScatterMul: tensor_scatter_mul
TensorScatterSub: tensor_scatter_sub
TruncateDiv: truncate_div
TruncateMod: truncate_mod
TupleGetItem: tuple_getitem
UnsortedSegmentMax: unsorted_segment_max
UnsortedSegmentMin: unsorted_segment_min
UnsortedSegmentProd: unsorted_segment_prod
UnsortedSegmentSum: unsorted_segment_sum
Xdivy: xdivy
Softmax: - | - | - | Softmax2d
AvgPool: - | - | - | AvgPool1d
MaxPool: - | - | - | MaxPool1d
EmbeddingLookup: - | - | - | EmbeddingLookup
SoftmaxCrossEntropyWithLogits: - | - | - | SoftmaxCrossEntropyWithLogits
Adam: - | - | - | Adam
AdamWeightDecay: - | - | - | AdamWeightDecay
Reshape: reshape_
StopGradient: stop_gradient_
SGD: - | - | - | SGD
ApplyMomentum: - | - | - | Momentum
-: - | - | - | Tanhshrink
-: - | - | - | Conv1d Conv2dTranspose
-: - | - | - | SyncBatchNorm
-: - | - | - | AdaptiveAvgPool1d AdaptiveMaxPool1d
-: - | - | - | GRUCell LSTMCell RNNCell
-: - | - | - | GRU LSTM RNN
-: - | - | - | MultiheadAttention TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
-: - | - | - | CosineEmbeddingLoss DiceLoss FocalLoss GaussianNLLLoss HingeEmbeddingLoss LossBase MAELoss \
MultiClassDiceLoss MultiLabelSoftMarginLoss PoissonNLLLoss RMSELoss
-: - | - | - | FTRL AdaMax Adadelta Adagrad ProximalAdagrad RMSProp Optimizer
-: - | - | nn.functional.embedding nn.functional.normalize nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.Embedding \
nn.GroupNorm nn.LayerNorm
""",
    }
)

# module of the front end -> primitives that it defines; the others are created from the table of operators
PRIMITIVES: Mapping[str, str] = MappingProxyType(
    {
        "ops.operations.comm_ops": (
            "AllGather AllGatherV AllReduce AlltoAll AlltoAllV AlltoAllVC Barrier BatchISendIRecv Broadcast "
            "CollectiveGather CollectiveScatter NeighborExchange NeighborExchangeV2 Receive Reduce ReduceOp "
            "ReduceScatter ReduceScatterV Send"
        ),
        "ops.operations.debug_ops": "DumpGradient Print TensorDump",
        "ops.operations.host_ops": (
            "Cast DType Depend Fill Identity Ones OnesLike Rank ScalarToTensor Shape Size StopGradient TensorShape "
            "Unstack Zeros ZerosLike"
        ),
        "ops.operations.nn_ops": "AvgPool AvgPool3D BatchNorm Conv2D Conv3D MaxPool MirrorPad Pad",
        "dataset.queue": "GetNext",  # uses the queues of data sets
    }
)


@cache
def rows() -> tuple[Api, ...]:
    """Return the table.

    Examples
    --------
    >>> next(row for row in rows() if row.operator == "Mul")
    Api(operator='Mul', module='arithmetic', functions=('mul',), methods=('mul', 'multiply'), mint=('mul',), cells=())
    """
    return tuple(
        _row(module, line) for module, text in _ROWS.items() for line in text.replace("\\\n", "").strip().split("\n")
    )


def _row(module: str, line: str) -> Api:
    operator, _, names = line.partition(": ")
    columns = [() if column.strip() == "-" else tuple(column.split()) for column in names.split("|")]
    functions, methods, mint, cells = columns + [()] * (4 - len(columns))
    return Api(
        operator="" if operator == "-" else operator,
        module=module,
        functions=functions,
        methods=methods,
        mint=mint,
        cells=cells,
    )


@cache
def _functions() -> Mapping[str, Api]:
    return {name: row for row in rows() for name in row.functions}


def function(name: str) -> Api | None:
    """Return the row of a function of ``ops``, or None for an unknown name.

    Examples
    --------
    >>> function("floor_divide").module
    'arithmetic'
    """
    return _functions().get(name)


def methods() -> Mapping[str, str]:
    """Return the methods of Tensor and the functions that they call.

    Examples
    --------
    >>> methods()["multiply"]
    'mul'
    """
    return {name: row.functions[0] for row in rows() for name in row.methods if row.functions}


def mint_function(name: str) -> str | None:
    """Return the function of ``ops`` with the name and arguments of a function of ``mint``, or None.

    Examples
    --------
    >>> mint_function("nn.functional.relu"), mint_function("nn.ReLU")
    ('relu', None)
    """
    row = function(name.rpartition(".")[2])
    return name.rpartition(".")[2] if row is not None and name in row.mint else None


@cache
def primitive_module(name: str) -> str | None:
    """Return the module that defines a primitive, or None if it is created from the table of operators."""
    return next((module for module, listed in PRIMITIVES.items() if name in listed.split()), None)
