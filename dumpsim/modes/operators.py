"""Operands and outputs that are never dumped, by operator type."""

__all__ = ["CUBE", "TEXT_OPERANDS", "UNNAMED", "hidden_operands", "hidden_outputs", "leaves_none"]

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

# by the value of `Profile.skip_tables`
_HIDDEN_OPERANDS = {"ascend": _ASCEND_OPERANDS, "cpu": _CPU_OPERANDS}
_HIDDEN_OUTPUTS = {"ascend": _ASCEND_OUTPUTS}
_WITHOUT_FILES = {"ge": _GE_WITHOUT_FILES}


def hidden_operands(table: str, op_type: str) -> frozenset[int]:
    """Return the operands of an operator that are never dumped; `table` is a profile's `skip_tables`."""
    return _HIDDEN_OPERANDS.get(table, {}).get(op_type, frozenset())


def hidden_outputs(table: str, op_type: str) -> frozenset[int]:
    """Return the outputs of an operator that are known to be useless."""
    return _HIDDEN_OUTPUTS.get(table, {}).get(op_type, frozenset())


def leaves_none(table: str) -> frozenset[str] | None:
    """Return the types of operators that never have files; None if every operator may have files."""
    return _WITHOUT_FILES.get(table)
