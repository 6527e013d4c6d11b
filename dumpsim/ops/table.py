"""The module that defines each operator type; a module is loaded at the first use of one of its operators."""

from functools import cache
from importlib import import_module

from dumpsim.core.errors import UnsupportedError, nearest
from dumpsim.ops.opdef import OpDef

__all__ = ["MODULES", "find", "is_known", "names"]

# module of dumpsim.ops -> operator types in its table; adding an operator to a table means adding its name here
MODULES: dict[str, str] = {
    "adaptive": (
        "ApplyRMSProp ApplyCenteredRMSProp ApplyAdagrad ApplyAdagradV2 ApplyAdadelta ApplyFtrl ApplyAdaMax "
        "ApplyGradientDescent ApplyProximalGradientDescent ApplyProximalAdagrad ApplyPowerSign ApplyAddSign "
        "ApplyAdamWithAmsgrad"
    ),
    "arrange": (
        "Roll ReverseSequence DepthToSpace SpaceToDepth MaskedSelect MaskedSelectGrad IndexSelect RepeatInterleaveInt"
    ),
    "blend": (
        "SquaredDifference Xdivy Xlogy MulNoNan TruncateDiv TruncateMod Hypot Fmax Fmin Heaviside LeftShift RightShift "
        "LogAddExp LogAddExp2 Gcd IsClose ApproximateEqual Lerp Addcmul Addcdiv Log2 Log10 Exp2 Frac Inv NanToNum"
    ),
    "resize": "ResizeNearestNeighborV2 ResizeNearestNeighborV2Grad ResizeBilinearV2 ResizeBilinearGrad",
    "scatter": (
        "ScatterUpdate ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterMax ScatterMin ScatterNdUpdate ScatterNdAdd "
        "ScatterNdSub ScatterNdMul ScatterNdDiv ScatterNdMax ScatterNdMin TensorScatterAdd TensorScatterSub "
        "TensorScatterMul TensorScatterDiv TensorScatterMax TensorScatterMin IndexAdd UnsortedSegmentMax "
        "UnsortedSegmentMin UnsortedSegmentProd"
    ),
    "shrink": (
        "HShrink HShrinkGrad SoftShrink SoftShrinkGrad Logit LogitGrad Threshold ThresholdGrad Hardtanh HardtanhGrad "
        "LeakyReLUExt LeakyReLUGradExt CeLU Swiglu SwigluGrad GLU GluGrad LogSigmoid LogSigmoidGrad"
    ),
    "activation": (
        "ReLU ReluGrad ReLU6 ReLU6Grad GeLU GeLUGrad FastGeLU FastGeLUGrad HSwish HSwishGrad HSigmoid HSigmoidGrad "
        "Elu EluGrad SeLU Softplus SoftplusGrad Mish Softsign SoftplusExt SoftplusGradExt PReLU PReLUGrad "
        "Softmax LogSoftmax LogSoftmaxGrad"
    ),
    "arithmetic": "Add Sub Mul Div RealDiv DivNoNan FloorDiv Mod FloorMod Pow Maximum Minimum Atan2 AddN AccumulateNV2",
    "assign": "Assign AssignAdd AssignSub",
    "attention": "FlashAttentionScore FlashAttentionScoreGrad RotaryPositionEmbedding RotaryPositionEmbeddingGrad",
    "average": "AvgPool3D AvgPool3DGrad",
    "bits": "BitwiseAnd BitwiseOr BitwiseXor Invert",
    "collective": (
        "AllReduce AllGather ReduceScatter Broadcast Reduce AllGatherV ReduceScatterV CollectiveScatter "
        "CollectiveGather Barrier"
    ),
    "compare": (
        "Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr LogicalXor LogicalNot Select "
        "MaskedFill"
    ),
    "composite": (
        "Muls Divs AddScalar SubScalar PowTensorScalar RemainderTensorScalar LessScalar EqScalar "
        "RemainderScalarTensor SumExt MeanExt ZerosLikeExt GreaterEqualScalar "
        "SoftmaxBackward SiLU SiLUGrad ClampScalar RemainderTensorTensor DivMod SplitWithSize InplaceScatterSrc"
    ),
    "control": "Depend Load UpdateState MakeTuple TupleGetItem Return StopGradient",
    "conv": "Conv2D Conv2DBackpropInput Conv2DBackpropFilter",
    "create": "ZerosLike OnesLike Zeros Ones FillV2 FillScalar Range Eye Shape LinSpace NonZero Meshgrid",
    "crossentropy": (
        "SigmoidCrossEntropyWithLogits SigmoidCrossEntropyWithLogitsGrad BCEWithLogitsLoss "
        "BinaryCrossEntropyWithLogitsBackward NLLLoss NLLLossGrad KLDivLoss KLDivLossGrad"
    ),
    "dataqueue": "InitDataSetQueue GetNext",
    "debug": "TensorDump Print ScalarSummary TensorSummary ImageSummary HistogramSummary",
    "elementwise": (
        "Neg Abs Square Sign Floor Ceil Trunc Rint Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos Tan Atan Sinh "
        "Cosh Tanh Sigmoid Erf Erfc IsNan IsInf IsFinite Round SqrtGrad RsqrtGrad TanhGrad SigmoidGrad AtanGrad Cast"
    ),
    "exchange": (
        "AlltoAll AlltoAllV AlltoAllVC NeighborExchange NeighborExchangeV2 NeighborExchangeV2Grad Send Receive "
        "BatchISendIRecv"
    ),
    "extended": "Max Min InplaceMaskedFillTensor ProdExt ReduceStd MaskedFillScalar ArgMaxExt NewZeros NewOnes ViewAs",
    "gather": (
        "Gather SparseGatherV2 EmbeddingLookup UnsortedSegmentSum GatherD GatherDGradV2 GatherNd ScatterNd "
        "TensorScatterUpdate TensorScatterElements OneHot"
    ),
    "index": "StridedSlice StridedSliceGrad Slice SliceGrad",
    "inplace": (
        "InplaceAddExt InplaceAddsExt InplaceSubExt InplaceSubScalar InplaceMul InplaceMuls InplaceDiv InplaceDivs "
        "InplaceFloorDivide InplaceFloorDivides InplaceRemainderTensorTensor InplaceRemainderTensorScalar"
    ),
    "inverse": "ACos Asin Acosh Asinh Atanh ACosGrad AsinGrad AcoshGrad AsinhGrad",
    "join": "Concat Split Stack Unstack",
    "length": "L2Normalize L2NormalizeGrad LpNorm",
    "loss": (
        "SparseSoftmaxCrossEntropyWithLogits SoftmaxCrossEntropyWithLogits SmoothL1Loss SmoothL1LossGrad "
        "BinaryCrossEntropy BinaryCrossEntropyGrad L2Loss"
    ),
    "matrix": "MatMul BatchMatMul MatMulExt Dense BiasAdd BiasAddGrad",
    "norm": "LayerNorm LayerNormGrad BatchNorm BatchNormGrad GroupNorm GroupNormGrad RmsNorm RmsNormGrad",
    "optimizer": "ApplyMomentum SGD Adam AdamWeightDecay",
    "order": "TopK Sort Unique CumSum CumProd",
    "padding": "Pad PadV3 PadV3Grad MirrorPad MirrorPadGrad",
    "pool": (
        "MaxPool MaxPoolGrad AvgPool AvgPoolGrad AdaptiveAvgPool2D AdaptiveAvgPool2DGrad MaxPoolWithArgmaxV2 "
        "MaxPoolGradWithArgmaxV2"
    ),
    "product": "Mm Mv Dot Outer Ger Addmm Addmv Addbmm Baddbmm Einsum",
    "quant": "WeightQuantBatchMatmul",
    "randomness": (
        "Dropout DropoutGrad DropoutExt DropoutGradExt DropoutGenMaskExt DropoutDoMaskExt StandardNormal UniformReal "
        "UniformInt"
    ),
    "reduce": (
        "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceAll ReduceAny Argmax Argmin ArgMaxWithValue "
        "ArgMinWithValue"
    ),
    "shape": "Reshape Flatten ExpandDims Squeeze Transpose BroadcastTo Tile ReverseV2 Triu Tril Diag DiagPart",
    "status": (
        "NPUAllocFloatStatus NPUGetFloatStatus NPUClearFloatStatus NPUGetFloatStatusV2 NPUClearFloatStatusV2 AllFinite "
        "FloatStatus"
    ),
    "strided": (
        "TransposeView TransposeExtView ExpandDimsView NarrowView SelectExtView SplitTensorView ChunkView "
        "UnstackExtView"
    ),
    "twin": (
        "AddExt SubExt BatchMatMulExt MaxDim MinDim Scatter ScatterValue FlattenExt LogSoftmaxExt OneHotExt Embedding "
        "ConstantPadND OnesLikeExt PowScalarTensor"
    ),
    "volume": "Conv3D Conv3DBackpropInput Conv3DBackpropFilter",
}


@cache
def _modules() -> dict[str, str]:
    """Return operator type -> module."""
    return {name: module for module, listed in MODULES.items() for name in listed.split()}


@cache
def _table(module: str) -> dict[str, OpDef]:
    """Return the operators of one module by type."""
    return {op.name: op for op in import_module(f"dumpsim.ops.{module}").OPS}


def names() -> tuple[str, ...]:
    """Return all emulated operator types, sorted.

    Examples
    --------
    >>> "MatMul" in names()
    True
    """
    return tuple(sorted(_modules()))


def is_known(op_type: str) -> bool:
    """Whether an operator type is emulated; no module is loaded.

    Examples
    --------
    >>> is_known("MatMul"), is_known("CTCLoss")
    (True, False)
    """
    return op_type in _modules()


def find(op_type: str) -> OpDef:
    """Return the definition of an operator type.

    Raises
    ------
    UnsupportedError
        If it is not emulated.

    Examples
    --------
    >>> find("MatMul").operands
    ('x', 'y', 'transpose_a', 'transpose_b')
    """
    try:
        module = _modules()[op_type]
    except KeyError:
        raise UnsupportedError(
            f"operator {op_type!r} is not emulated", nearest=nearest(op_type, _modules()), code="DS-OPS-001"
        ) from None
    return _table(module)[op_type]
