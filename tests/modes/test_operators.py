"""Operands and outputs that no dump holds. [spec mindspore 3.9]"""

import pytest

from dumpsim.modes.operators import UNNAMED, hidden_operands, hidden_outputs, leaves_none

OPERANDS = """
Reshape 1; Conv2DBackpropInput 2; ReduceSum 1; ResizeNearestNeighborV2Grad 1; StandardNormal 0; Slice 1,2; Ones 0,1;
Zeros 0,1; StridedSlice 1,2,3; StridedSliceGrad 1,2,3,4; Print 0; UniformInt 0; Transpose 1; Tile 1;
KVCacheScatterUpdate 0
"""
OUTPUTS = """
Print 0; TensorDump 0; TensorSummary 0; ImageSummary 0; ScalarSummary 0; HistogramSummary 0; Send 0; BatchNorm 1,2;
FlashAttentionScore 2; FlashAttentionScoreGrad 3
"""
# [2.10 observed]: operands without a file in recorded trees of a CPU, where other constants have one
CPU_OPERANDS = """
Conv2DBackpropFilter 2; Conv2DBackpropInput 2; ExpandDims 1; OneHot 1; Reshape 1; Squeeze 1; Transpose 1
"""


def read(table):
    rows = (row.split() for row in table.replace("\n", " ").split(";"))
    return {name: frozenset(map(int, slots.split(","))) for name, slots in rows}


TABLES = {"ascend": (read(OPERANDS), read(OUTPUTS)), "cpu": (read(CPU_OPERANDS), {}), "ge": ({}, {}), "none": ({}, {})}


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_are_those_of_the_vendor(table):
    """An operator that no table names has all its operands and outputs."""
    types = {"Add", "MatMul", *(name for tables in TABLES.values() for one in tables for name in one)}
    operands, outputs = TABLES[table]
    assert {name: found for name in types if (found := hidden_operands(table, name))} == operands
    assert {name: found for name in types if (found := hidden_outputs(table, name))} == outputs
    assert hidden_operands(table, "Add") == hidden_outputs(table, "Add") == frozenset()


def test_nodes_of_whole_graphs_that_are_no_kernels():
    """[spec ge 2.6]; each operator of other modes may have files."""
    assert leaves_none("ge") == {"Const", "Constant", "NetOutput", "Recv", "Send", "StreamActive"}
    assert [leaves_none(table) for table in ("ascend", "cpu", "none")] == [None] * 3
    assert {"Data"} == UNNAMED
