"""Info lines, names and stacks of API dumps: as Python's json writes them, back again, and garbage refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs.apidump import (
    ApiRecord,
    file_name,
    is_statistics_free,
    lines_of,
    parse_name,
    read_info,
    read_stack,
    stack_keys,
    stack_text,
    tail_of,
)
from dumpsim.core.errors import UnfinishedWarning, UnreadableError

NUMBERS = st.floats() | st.integers(-(2**70), 2**70) | st.booleans()


@given(st.text(max_size=20), st.lists(st.integers(0, 9), max_size=4), NUMBERS, NUMBERS, NUMBERS)
def test_a_line_is_what_json_writes(name, shape, high, low, mean):
    line = lines_of([name], [tail_of("torch.float32", tuple(shape), (high, low, mean))])
    assert line == json.dumps([name, 1, [], "torch.float32", shape, [high, low, mean]]) + "\n"


@given(st.lists(st.text(max_size=5) | st.just("NN_ReLU_0"), max_size=4))
def test_lines_together_are_the_lines_alone(names):
    """One name that needs escapes does not change how the others are written."""
    expected = [json.dumps([name, 1, [], "torch.int8", [2], [1, 0, 0.5]]) + "\n" for name in names]
    assert lines_of(names, [tail_of("torch.int8", (2,), (1, 0, 0.5))] * len(names)) == "".join(expected)


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1.5, 1e300, 5e-324, 0.1, math.nan, math.inf, -math.inf, 0, -7, 2**70, True, False]
)
def test_a_number_of_any_kind_is_what_json_writes(value):
    values = json.dumps([value, 1, value])
    assert tail_of("torch.int8", (), (value, 1, value)) == f'"torch.int8", [], {values}]\n'


@pytest.mark.parametrize("version", ["1.0.17", "1.0.18"])
def test_lines_come_back(tmp_path, version):
    extra = {"md5": "0" * 32, "l2norm": 1.5} if version == "1.0.18" else {}
    records = [
        ApiRecord(name=f"NN_ReLU_{n}_forward_output", dtype="Float32", shape=(n,), max=math.inf, min=-1, mean=0.5)
        for n in range(3)
    ]
    records = [
        ApiRecord(
            **{s: getattr(r, s) for s in ("name", "dtype", "shape", "max", "min", "mean")}, version=version, **extra
        )
        for r in records
    ]
    path = tmp_path / "info.pkl"
    lines = [lines_of([r.name], [tail_of(r.dtype, r.shape, (r.max, r.min, r.mean))]) for r in records]
    if version == "1.0.18":
        lines = [f"{line[:-2]}, {json.dumps(extra['md5'])}, {extra['l2norm']}]\n" for line in lines]
    path.write_text("".join(lines))
    assert list(read_info(path)) == records


GOOD = '["a", 1, [], "t", [1], [0, 0, 1.5]]\n'


@pytest.mark.parametrize("rest", ["[", '["', '["b', '["b", 1, [], "t", [1], [0, 0, 1.5]]'])
def test_an_unfinished_last_line_is_left_out(tmp_path, rest):
    path = tmp_path / "info.pkl"
    path.write_text(GOOD * 2 + rest)
    with pytest.warns(UnfinishedWarning, match=r"info\.pkl:3: the last line is unfinished"):
        assert [record.name for record in read_info(path)] == ["a", "a"]


@pytest.mark.parametrize("rest", ["\x80\x04", "x", '{"', "[1", "]"])
def test_other_bytes_at_the_end_are_no_unfinished_line(tmp_path, rest):
    path = tmp_path / "info.pkl"
    path.write_text(GOOD + rest)
    with pytest.raises(UnreadableError, match=r"info\.pkl:2: is not"):
        list(read_info(path))


def test_blank_lines_are_skipped(tmp_path):
    path = tmp_path / "info.pkl"
    path.write_text("\n" + GOOD + " \t\n" + GOOD)
    assert len(list(read_info(path))) == 2


def record_of(tmp_path, *fields):
    (tmp_path / "info.pkl").write_text(json.dumps(fields) + "\n")
    (found,) = read_info(tmp_path / "info.pkl")
    return found


def test_fields_up_to_their_limits(tmp_path):
    largest = (1 << 48) - 1
    found = record_of(tmp_path, "a", 1, [], "t", [0, largest], [(1 << 1023) - 1, -(1 << 1023) + 1, True])
    assert (found.shape, found.max, found.min, found.mean) == ((0, largest), (1 << 1023) - 1, -(1 << 1023) + 1, True)
    assert (found.md5, found.l2norm, found.version) == (None, None, "1.0.17")
    found = record_of(tmp_path, "a", 1, [], "t", [], [[], [], []], [], [])
    assert all(map(math.isnan, (found.max, found.min, found.mean)))
    assert (found.md5, found.l2norm, found.version) == (None, None, "1.0.18")
    found = record_of(tmp_path, "a", 1, [], "t", [], [1, 2, 3], "d41d", 0)
    assert (found.md5, found.l2norm, found.version) == ("d41d", 0, "1.0.18")
    assert record_of(tmp_path, "a", 1, [], "t", [], [1, 2, 3], None, 4.5).l2norm == 4.5


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (("a", 1, [], "t", [1]), "is not an array of 6 or 8 fields"),
        (("a", 1, [], "t", [1], [0, 0, 0], ""), "is not an array of 6 or 8 fields"),
        ((3, 1, [], "t", [1], [0, 0, 0]), "name and data type are not both strings"),
        (("a", 1, [], 3, [1], [0, 0, 0]), "name and data type are not both strings"),
        (("a", 1, [], "\n", [1], [0, 0, 0]), r"'a\\n' has characters that are not printable"),
        (("a\x1b" + "b" * 300, 1, [], "t", [1], [0, 0, 0]), rf"'a\\x1b{'b' * 198}' has characters"),
        (("a", 1, [], "t", [1 << 48], [0, 0, 0]), r"shape \[281474976710656\] is not possible"),
        (("a", 1, [], "t", [-1], [0, 0, 0]), r"shape \[-1\] is not possible"),
        (("a", 1, [], "t", [True], [0, 0, 0]), r"shape \[True\] is not possible"),
        (("a", 1, [], "t", 3, [0, 0, 0]), "shape 3 is not possible"),
        (("a", 1, [], "t", [-1] * 100, [0, 0, 0]), rf"shape \[{'-1, ' * 49}-1, is not possible"),
        (("a", 1, [], "t", [1], 3), "maximum, minimum and mean are not three values"),
        (("a", 1, [], "t", [1], [0, 0, 0, 0]), "maximum, minimum and mean are not three values"),
        (("a", 1, [], "t", [1], [0, None, 0]), "None is not a statistic"),
        (("a", 1, [], "t", [1], ["x" * 201, 0, 0]), f"{'x' * 200} is not a statistic"),
        (("a", 1, [], "t", [1], [1 << 1023, 0, 0]), "a statistic of 1024 bits is too large"),
        (("a", 1, [], "t", [1], [0, 0, 0], 3, 0), "md5 3 is neither a string nor"),
        (("a", 1, [], "t", [1], [0, 0, 0], "", "x"), "x is not a statistic"),
    ],
)
def test_fields_that_no_record_has(tmp_path, fields, what):
    with pytest.raises(UnreadableError, match=rf"info\.pkl:1: {what}.*\[DS-ADP-001\]$"):
        record_of(tmp_path, *fields)


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[1,2]",
        '["a",1,[],"t",[-1],[0,0,0]]',
        '["a",1,[],"t",[1],[0,0]]',
        '["a",1,[],"t",[1],[0,0,"x"]]',
        '["a\\u001b[31m",1,[],"t",[1],[0,0,0]]',
        f'["a",1,[],"t",[1],[{1 << 1023},0,0]]',
        '["a",1,[],"t",[1],[' + "1" * 5000 + ",0,0]]",
        "[" * 9999,
    ],
)
def test_garbage_names_its_line(tmp_path, line):
    path = tmp_path / "info.pkl"
    path.write_text('["a",1,[],"t",[1],[0,0,NaN]]\n' + line + "\n")
    with pytest.raises(UnreadableError, match=r"info.pkl:2"):
        list(read_info(path))


@pytest.mark.parametrize(
    "name",
    [
        "NN_Linear_0_forward_output",
        "Torch_cat_12_forward_input.0.1",
        "Tensor___add___3_backward_input",
        "LAYER_a_0_forward_input",
    ],
)
def test_names_come_back(name):
    assert str(parse_name(name)) == name


def test_no_name():
    with pytest.raises(UnreadableError, match="not the name"):
        parse_name("weights")


def test_the_parts_of_a_name():
    found = parse_name("Torch_cat_12_forward_input.0.key.1")
    assert (found.kind, found.api, found.count, found.direction, found.io) == ("Torch", "cat", 12, "forward", "input")
    assert (found.index, found.call) == ((0, "key", 1), "Torch_cat_12")
    found = parse_name("LAYER_a_0_backward_output")
    assert (found.kind, found.api, found.count, found.direction, found.io) == (
        "LAYER", "a_0", None, "backward", "output"
    )  # fmt: skip
    assert (found.index, found.call) == ((), "LAYER_a_0")
    most = "1" * 18
    assert parse_name(f"NN_x_{most}_forward_input.{most}").index == (int(most),)
    assert parse_name(f"NN_x_0_forward_input.1{most}").index == (f"1{most}",)  # a key
    with pytest.raises(UnreadableError):
        parse_name(f"NN_x_1{most}_forward_input")


def test_the_longest_name():
    name = "NN_" + "a" * ((1 << 16) - 1 - len("NN__0_forward_input")) + "_0_forward_input"
    assert len(parse_name(name).api) == (1 << 16) - 1 - len("NN__0_forward_input")
    with pytest.raises(UnreadableError, match=f"^'NN_{'a' * 197}' is not the name of a record") as caught:
        parse_name(name.replace("NN_", "NN_a", 1))
    assert caught.value.code == "DS-ADP-002"


def test_names_of_files_escape_what_a_name_cannot_contain():
    names = {"a": "a.npy", "a/b": "a%2Fb.npy", "a\0b": "a%00b.npy", "/\0/": "%2F%00%2F.npy"}
    assert {name: file_name(name) for name in names} == names


@pytest.mark.parametrize(
    ("values", "free"),
    [
        ((math.nan, math.nan, math.nan), True),
        ((1.0, math.nan, math.nan), False),
        ((math.nan, 1.0, math.nan), False),
        ((math.nan, math.nan, 1.0), False),
        ((True, math.nan, math.nan), False),
        ((1, 2, 3), False),
    ],
)
def test_a_record_without_statistics(values, free):
    high, low, mean = values
    assert is_statistics_free(ApiRecord(name="a", dtype="t", shape=(), max=high, min=low, mean=mean)) is free


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("NN_Linear_0_forward_input", ["NN_Linear_0_forward_stack_info", "torch.nn.Linear(0) forward"]),
        ("Functional_relu_1_backward_output",
         ["Functional_relu_1_forward_stack_info", "torch.nn.functional.relu(1) forward"]),
        ("Tensor_add_2_forward_input", ["Tensor_add_2_forward_stack_info", "torch.Tensor.add(2) forward"]),
        ("Torch_cat_3_forward_input", ["Torch_cat_3_forward_stack_info", "torch.cat(3) forward"]),
        ("VF_lstm_4_forward_input",
         ["VF_lstm_4_forward_stack_info", "torch._VF.lstm(4) forward", "_VF.lstm(4) forward"]),
        ("LAYER_a_b_forward_input",
         ["LAYER_a_b_forward_stack_info", "LAYER: a_b forward", "LAYER: a.b forward"]),
        ("Other_x_5_forward_input", ["Other_x_5_forward_stack_info"]),
    ],
)  # fmt: skip
def test_keys_of_a_calls_frames(name, keys):
    """[spec api_dump 1.5]"""
    assert list(stack_keys(parse_name(name))) == keys


def test_stacks(tmp_path):
    stacks = {"torch.clip(0) forward": ("a", "b"), "LAYER: x forward": ()}
    path = tmp_path / "stack.json"
    path.write_text(stack_text(stacks))
    assert read_stack(path) == stacks
    path.write_text('{"a": [1]}')
    with pytest.raises(UnreadableError):
        read_stack(path)
