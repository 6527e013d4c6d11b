"""Opening API dumps: records as entries, steps, arguments, lines of stacks."""

import json

import numpy as np
import pytest
from smalltree import api, write

import dumpsim
from dumpsim.analysis.apicall import order
from dumpsim.core.errors import UnreadableError
from dumpsim.core.irdoc import SourceLine

X = np.arange(6, dtype=np.float32).reshape(2, 3)
RECORDS = [
    ("LAYER_fc_forward_input", [0.0]),
    ("NN_Linear_0_forward_input.0", X),
    ("NN_Linear_0_forward_output", X + 1),
    ("Torch_cat_0_forward_input.0.0", X),
    ("Torch_cat_0_forward_input.0.1", X + 1),
    ("Torch_cat_0_forward_input.1", X + 2),
    ("Torch_cat_0_forward_output", X + 3),
    ("NN_Linear_0_backward_input", X),
    ("NN_Linear_1_forward_output", X),
]


@pytest.mark.parametrize("version", ["1.0.17", "1.0.18"])
def test_records_are_entries_in_order(tmp_path, version):
    dump = dumpsim.open(api(tmp_path, RECORDS, version=version))
    found = [(e.iteration, e.op_type, e.op_name, e.io, e.slot) for e in dump]
    assert found == [
        (0, "LAYER", "LAYER_fc_forward", "input", 0),
        (0, "Linear", "NN_Linear_0_forward", "input", 0),
        (0, "Linear", "NN_Linear_0_forward", "output", 0),
        (0, "cat", "Torch_cat_0_forward", "input", 0),
        (0, "cat", "Torch_cat_0_forward", "input", 1),
        (0, "cat", "Torch_cat_0_forward", "input", 2),
        (0, "cat", "Torch_cat_0_forward", "output", 0),
        (0, "Linear", "NN_Linear_0_backward", "input", 0),
        (1, "Linear", "NN_Linear_1_forward", "output", 0),
    ]
    (entry,) = dump.filter(iteration=1)
    assert np.array_equal(entry.array(), X)
    assert (entry.dtype, entry.shape, entry.row["max"]) == ("float32", (2, 3), 5.0)
    assert ("avg" in entry.row) == (version == "1.0.17")
    assert entry.statistic("avg") == pytest.approx(2.5)
    assert entry.statistic("l2norm") == pytest.approx(np.sqrt((X**2).sum()))


@pytest.mark.parametrize("part", ["rank0", "rank0/torch_api_dump", "rank0/torch_api_dump_info.pkl"])
def test_parts_of_the_tree_are_the_same_dump(tmp_path, part):
    api(tmp_path, RECORDS)
    assert [e.label for e in dumpsim.open(tmp_path / part)] == [e.label for e in dumpsim.open(tmp_path)]


def test_two_frameworks_and_another_tree_side_by_side(tmp_path):
    api(tmp_path, RECORDS[1:3])
    api(tmp_path, [("NN_Dense_0_forward_output", X)], framework="mindspore")
    write(tmp_path, [("ReLU", "Default/ReLU-op0", [], [X])])
    assert [e.op_type for e in dumpsim.open(tmp_path)] == ["Dense", "Linear", "Linear", "ReLU"]


def test_lines_of_stacks_outermost_first(tmp_path):
    root = api(tmp_path, RECORDS)
    frames = ["File net.py, line 9, in forward, \n y = self.fc(x)", "File train.py, line 3, in <module>, \n net(x)"]
    stack = {"torch.nn.Linear(0) forward": frames, "torch.cat(0) forward": frames[1:]}
    (root / "rank0" / "torch_api_dump_stack.json").write_text(json.dumps(stack, indent=4))
    lines = {e.op_name: list(e.source) for e in dumpsim.open(root)}
    both = [
        SourceLine(path=path, line=line, end_line=line, column=-1, end_column=-1, code=code)  # no column is known
        for path, line, code in (("train.py", 3, "net(x)"), ("net.py", 9, "y = self.fc(x)"))
    ]
    assert lines["NN_Linear_0_forward"] == lines["NN_Linear_0_backward"] == both
    assert lines["Torch_cat_0_forward"] == both[:1]
    assert lines["NN_Linear_1_forward"] == []
    assert {e.op_type for e in dumpsim.open(root).filter(source="net.py:9")} == {"Linear"}


def test_a_dump_without_statistics_and_one_whose_values_are_nan(tmp_path):
    """NaN stands for both; where other records have statistics it is the value."""
    for name, largest in (("none", float("nan")), ("some", 1.0)):
        place = tmp_path / name / "rank0"
        place.mkdir(parents=True)
        lines = [
            [
                "NN_ReLU_0_forward_input.0",
                1,
                [],
                "torch.float32",
                [2],
                [largest, 0.0 if largest == 1 else largest, largest],
            ]
        ]
        lines.append(["NN_ReLU_0_forward_output", 1, [], "torch.float32", [2], [float("nan")] * 3])
        (place / "torch_api_dump_info.pkl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [e.row for e in dumpsim.open(tmp_path / "none")] == [{}, {}]
    assert [np.isnan(e.row["max"]) for e in dumpsim.open(tmp_path / "some")] == [False, True]
    assert [one.op_name for one in dumpsim.first(tmp_path / "some")] == ["NN_ReLU_0_forward"]
    assert not dumpsim.first(tmp_path / "none").findings


def test_names_that_are_none_are_told_with_their_place(tmp_path):
    root = api(tmp_path, [*RECORDS[:2], ("NN_Linear", X)])
    with pytest.raises(UnreadableError, match=r"torch_api_dump_info.pkl: record 3: 'NN_Linear' is not the name"):
        list(dumpsim.open(root))


@pytest.mark.parametrize("left_out", range(3))
def test_a_statistic_that_was_not_asked_for_is_no_nan(tmp_path, left_out):
    """1.0.18 writes NaN for it in every line; the other two say what is bad."""
    place = tmp_path / "rank0"
    place.mkdir()
    lines = []
    for n, bad in enumerate((False, True)):
        values = [float("nan") if at == left_out or bad else 1.0 for at in range(3)]
        lines.append([f"Torch_log_{n}_forward_output", 1, [], "torch.float32", [2], values, [], 1.5])
    (place / "torch_api_dump_info.csv").write_text("".join(json.dumps(line) + "\n" for line in lines))
    names = ("max", "min", "avg")
    assert [set(e.row) for e in dumpsim.open(tmp_path)] == [{*names, "l2norm"} - {names[left_out]}] * 2
    assert [one.op_name for one in dumpsim.first(tmp_path, everything=True)] == ["Torch_log_1_forward"]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("torch.float32", "float32"), ("torch.bfloat16", "bfloat16"), ("mindtorch.torch.float16", "float16"),
        ("Float32", "float32"), ("BFloat16", "bfloat16"), ("Int64", "int64"), ("Bool", "bool"), ("UInt8", "uint8"),
        ("<class 'int'>", "int64"), ("<class 'float'>", "float64"), ("<class 'bool'>", "bool"),
        ("<class 'NoneType'>", "NoneType"), ("torch.qint8", "qint8"), ("Odd", "odd"),
    ],
)  # fmt: skip
def test_names_of_number_types(tmp_path, text, dtype):
    """[spec api_dump 1.4]"""
    place = tmp_path / "rank0"
    place.mkdir()
    line = json.dumps(["Torch_abs_0_forward_output", 1, [], text, [2], [1.0, 0.0, 0.5]])
    (place / "torch_api_dump_info.pkl").write_text(line + "\n")
    assert [entry.dtype for entry in dumpsim.open(tmp_path)] == [dtype]


@pytest.mark.parametrize(
    ("indices", "slots"),
    [
        (["0", "2"], [0, 2]), (["1", "0"], [1, 0]), (["0.0", "0.1", "1"], [0, 1, 2]), (["0", "1.0", "1.1"], [0, 1, 2]),
        (["0", "mask"], [0, 1]), (["3", "mask.0"], [0, 1]),
    ],
)  # fmt: skip
def test_arguments_are_numbered_by_place_or_in_their_order_where_one_is_nested(tmp_path, indices, slots):
    calls = [(f"Torch_cat_0_forward_input.{index}", X) for index in indices]
    dump = dumpsim.open(api(tmp_path, [*calls, ("Torch_cat_0_forward_output", X)]))
    assert [entry.slot for entry in dump.filter(io="input")] == slots
    assert [entry.slot for entry in dump.filter(io="output")] == [0]


def test_positional_arguments_come_before_those_by_name():
    assert sorted(["b", 2, "a", 10, 0], key=order) == [0, 2, 10, "a", "b"]
