"""Which output of the original model each tensor of a compiled one stands for."""

import json

import pytest

from dumpsim.analysis.msaccucmp.fusion import Origin, load, selection
from dumpsim.analysis.msaccucmp.status import Status, ToolError


def text(name, value):
    return {"key": name, "value": {"s": value}}


def desc(op=None, index=None, layout=None):
    found = [text("_datadump_origin_name", op)] if op is not None else []
    found += [text("_datadump_origin_format", layout)] if layout is not None else []
    found += [{"key": "_datadump_origin_output_index", "value": {"i": index}}] if index is not None else []
    return {"attr": found}


def op(name, inputs=(), originals=None, outputs=()):
    names = {"key": "_datadump_original_op_names", "value": {"list": {"s": originals}}}
    attr = [] if originals is None else [names if originals else {**names, "value": {}}]
    return {"name": name, "type": "T", "input": list(inputs), "attr": attr, "output_desc": list(outputs)}


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "model.json"
    outputs = [desc("relu", 0, "NCHW"), desc("conv", 2)]
    ops = [
        op("data", outputs=[desc()]),
        op("trans", ["data:0"], []),  # put in by the compiler
        op("conv_relu", ["trans:0", "w:0", "data:-1"], ["conv", "bias", "relu"], outputs),
        op("cast", ["conv_relu:1"], []),
        op("plain", ["cast:0", "conv_relu:3"], outputs=[desc(), desc("", 4)]),
        op("loop", ["loop:0"], []),
    ]
    path.write_text(json.dumps({"graph": [{"op": ops[:3]}, {}, {"op": ops[3:]}]}))
    return load(str(path))


def test_outputs_stand_for_those_of_the_original_model(rules):
    def of(name, index):
        return rules.of_output(rules.by_name[name], index)

    assert of("data", 0) == Origin(op_name="data", index=0)
    assert of("trans", 0) == Origin(op_name="data", index=0)  # what it reads
    assert of("conv_relu", 0) == Origin(op_name="relu", index=0, format="NCHW")
    assert of("conv_relu", 1) == Origin(op_name="conv", index=2)
    assert of("conv_relu", 2) == Origin(op_name="relu", index=2)  # of the last one that was fused
    assert of("cast", 0) == Origin(op_name="conv", index=2)
    assert of("plain", 0) == Origin(op_name="plain", index=0)
    assert of("plain", 1) == Origin(op_name="plain", index=4)
    assert of("loop", 0) is None


def test_inputs_stand_for_the_outputs_that_they_read(rules):
    def of(name, index):
        return rules.of_input(rules.by_name[name], index)

    assert of("conv_relu", 0) == Origin(op_name="data", index=0)
    assert of("conv_relu", 1) is None  # nobody makes w
    assert of("conv_relu", 2) is None  # a control edge is no input
    assert of("plain", 1) == Origin(op_name="relu", index=3)
    assert of("data", 0) is None


def test_what_is_no_model_is_refused(tmp_path):
    path = tmp_path / "model.json"
    for content in (
        "",
        "[]",
        "{}",
        '{"graph": 3}',
        '{"graph": [{"op": [{}]}]}',
        '{"graph": [{"op": [{"name": "a", "attr": 1}]}]}',
    ):
        path.write_text(content)
        with pytest.raises(ToolError, match="There is no compiled model in") as caught:
            load(str(path))
        assert caught.value.status is Status.PARSE_JSON


@pytest.mark.parametrize(
    ("chosen", "numbers"),
    [
        ((None, None), [0, 1, 2, 3, 4, 5]), (("", "3, 1,3"), [1, 3]), ((",,", None), [1, 2, 3, 4, 5]),
        (("2,4,", None), [2, 3, 4]), (("1,-1,2", None), [1, 3, 5]), (("5,5,5", None), [5]),
    ],
)  # fmt: skip
def test_operators_are_chosen_by_number(rules, chosen, numbers):
    assert selection(rules, *chosen) == numbers


@pytest.mark.parametrize(
    ("chosen", "status", "said"),
    [
        ((None, "0"), "INVALID_PARAM", r"Index \[0\] out of range \[1,5\]\."),
        ((None, "6"), "INVALID_PARAM", r"Index \[6\] out of range \[1,5\]\."),
        ((None, "1,x"), "INVALID_PARAM", 'The argument -s "1,x" is invalid'),
        (("1,2", None), "INVALID_PARAM", 'The range "1,2" is invalid'),
        (("1,2,x", None), "INVALID_PARAM", "is invalid"),
        (("0,2,1", None), "INDEX_OUT_OF_BOUNDS", r"The start index \(0\) is out of range \[1, 5\]"),
        (("6,,", None), "INDEX_OUT_OF_BOUNDS", "The start index"),
        (("3,2,1", None), "INDEX_OUT_OF_BOUNDS", r"The end index \(2\) is out of range \[3, 5\]"),
        (("1,6,1", None), "INDEX_OUT_OF_BOUNDS", "The end index"),
        (("1,2,0", None), "INDEX_OUT_OF_BOUNDS", r"The step index \(0\) is out of range \[1, 5\]"),
        (("1,2,6", None), "INDEX_OUT_OF_BOUNDS", "The step index"),
    ],
)  # fmt: skip
def test_numbers_that_are_not_there_are_refused(rules, chosen, status, said):
    with pytest.raises(ToolError, match=said) as caught:
        selection(rules, *chosen)
    assert caught.value.status is Status[status]
