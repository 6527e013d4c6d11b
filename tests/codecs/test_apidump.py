"""Info lines, names and stacks of API dumps: as Python's json writes them, back again, and garbage refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs.apidump import (
    ApiRecord,
    lines_of,
    parse_name,
    read_info,
    read_stack,
    stack_text,
    tail_of,
)
from dumpsim.core.errors import UnreadableError

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


def test_stacks(tmp_path):
    stacks = {"torch.clip(0) forward": ("a", "b"), "LAYER: x forward": ()}
    path = tmp_path / "stack.json"
    path.write_text(stack_text(stacks))
    assert read_stack(path) == stacks
    path.write_text('{"a": [1]}')
    with pytest.raises(UnreadableError):
        read_stack(path)
