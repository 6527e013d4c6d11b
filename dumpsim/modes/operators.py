"""Operands and outputs that are never dumped, by operator type."""

__all__ = ["CUBE", "HIDDEN_OPERANDS", "HIDDEN_OUTPUTS", "TEXT_OPERANDS", "UNNAMED", "WITHOUT_FILES"]

# Ascend [spec mindspore 3.9]: operator type -> operands that are on the host or only attributes
_ASCEND_OPERANDS: dict[str, frozenset[int]] = {
    "Conv2DBackpropInput": frozenset({2}),
    "KVCacheScatterUpdate": frozenset({0}),
    "Ones": frozenset({0, 1}),
    "Print": frozenset({0}),
    "ReduceSum": frozenset({1}),
    "Reshape": frozenset({1}),
    "ResizeNearestNeighborV2Grad": frozenset({1}),
    "Slice": frozenset({1, 2}),
    "StandardNormal": frozenset({0}),
    "StridedSlice": frozenset({1, 2, 3}),
    "StridedSliceGrad": frozenset({1, 2, 3, 4}),
    "Tile": frozenset({1}),
    "Transpose": frozenset({1}),
    "UniformInt": frozenset({0}),
    "Zeros": frozenset({0, 1}),
}

# CPU [observed 2.10]: operator type -> operands that are not passed to the kernel
_CPU_OPERANDS: dict[str, frozenset[int]] = {
    "Conv2DBackpropFilter": frozenset({2}),
    "Conv2DBackpropInput": frozenset({2}),
    "ExpandDims": frozenset({1}),
    "OneHot": frozenset({1}),
    "Reshape": frozenset({1}),
    "Squeeze": frozenset({1}),
    "Transpose": frozenset({1}),
}

# Ascend [spec mindspore 3.9]: operator type -> outputs known to be useless, skipped while
# MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT is 1
_ASCEND_OUTPUTS: dict[str, frozenset[int]] = {
    "BatchNorm": frozenset({1, 2}),
    "FlashAttentionScore": frozenset({2}),
    "FlashAttentionScoreGrad": frozenset({3}),
    "HistogramSummary": frozenset({0}),
    "ImageSummary": frozenset({0}),
    "Print": frozenset({0}),
    "ScalarSummary": frozenset({0}),
    "Send": frozenset({0}),
    "TensorDump": frozenset({0}),
    "TensorSummary": frozenset({0}),
}

# prefixes of operator types of the cube unit (AIC); the others belong to the vector unit (AIV)
CUBE = ("BatchMatMul", "Conv2D", "Conv3D", "Depthwise", "FlashAttention", "MatMul")

TEXT_OPERANDS = frozenset({"Print"})  # operators whose strings are written to the log [seed 001]

# whole graphs [spec ge 2.6]: nodes that are not kernels; nodes without outputs have no file either
_GE_WITHOUT_FILES = frozenset({"Const", "Constant", "NetOutput", "Recv", "Send", "StreamActive"})

# whole graphs [spec ge 2.6]: nodes that cannot be selected by name; their bytes are inputs of other operators
UNNAMED = frozenset({"Data"})

# tables by the value of `Profile.skip_tables`
HIDDEN_OPERANDS: dict[str, dict[str, frozenset[int]]] = {
    "ascend": _ASCEND_OPERANDS,
    "cpu": _CPU_OPERANDS,
    "ge": {},
    "none": {},
}
HIDDEN_OUTPUTS: dict[str, dict[str, frozenset[int]]] = {"ascend": _ASCEND_OUTPUTS, "cpu": {}, "ge": {}, "none": {}}
WITHOUT_FILES: dict[str, frozenset[str] | None] = {  # None: every operator may have files
    "ascend": None,
    "cpu": None,
    "ge": _GE_WITHOUT_FILES,
    "none": None,
}
