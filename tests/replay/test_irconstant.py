"""Values that graphs spell, and settings that shapes allow: against how they are written, and against all settings."""

from itertools import product

import numpy as np
import pytest

from dumpsim.core.errors import UnreadableError
from dumpsim.replay import gegraph
from dumpsim.replay.guess import guesses
from dumpsim.replay.irconstant import Unparsable, parse


@pytest.mark.parametrize(("text", "value"), [
    ('""', ""), ('"', '"'), ('"a"', "a"), ('"a', '"a'), ("()", ()), ("(1,)", (1,)), ("[2, (3, 4)]", (2, (3, 4))),
    ("(1", "(1"), ("1)", "1)"), ("-7", -7), ("+7", 7), ("2.5", 2.5), (".5", 0.5), ("1e-05", float(np.float32(1e-5))),
    ("-inf", -np.inf), ("F64(0.1)", 0.1), ("F32(0.1)", float(np.float32(0.1))), ("Bool(0)", False), ("Bool(1)", True),
    ("Bool(false)", False), ("U8(200)", 200), ("False", False), ("  3 ", 3), ("abc(3)", "abc(3)"), ("1.2.3", "1.2.3"),
    ('a"', 'a"'), ("aba", "aba"), ("1.5.1", "1.5.1"),
])  # fmt: skip
def test_a_value_is_read_as_it_is_spelled(text, value):
    found = parse(text)
    assert (found, type(found)) == (value, type(value))


def test_what_is_not_spelled_out_is_no_value():
    assert parse("a" * (1 << 16)) == "a" * (1 << 16)
    tensor = "Tensor(shape=[{}], dtype={}, value=[{}])".format
    for text in ("a" * ((1 << 16) + 1), "I64(x)", tensor("3", "Int32", "1 2"), tensor("1", "Int32", "1.5"),
                 tensor("1", "Complex64", "1"), tensor("1", "Strange", "1"),
                 tensor("2", "Float32", "1 ...")):  # fmt: skip
        with pytest.raises(Unparsable):
            parse(text)


@pytest.mark.parametrize(("kind", "cells", "value"), [
    ("Int32", "[7 8] [9 -1]", [[7, 8], [9, -1]]), ("Float16", "[1 2.5], [inf -3e-1]", [[1, 2.5], [np.inf, -0.3]]),
    ("Bool", "[True False] [1 0]", [[True, False], [True, False]]),
])  # fmt: skip
def test_a_tensor_is_read_as_it_is_spelled(kind, cells, value):
    found = parse(f"Tensor(shape=[2, 2], dtype={kind}, value=\n[{cells}])")
    assert found.dtype.name == kind.lower()
    assert (found == np.array(value, found.dtype)).all()
    assert parse(f"Tensor(shape=[], dtype={kind}, value=1)").shape == ()


# -- GE's text graphs


def test_a_text_graph_has_every_field():
    text = """
    graph { name: "g" op {
        name: "a/b" type: "Conv2D" input: "x:0" input: "w:1" input: "c:-1"
        attr { key: "strides" value { list { i: 1 i: 2 val_type: 2 } } }
        attr { key: "pads" value { list { i: 0 i: -3 } } }
        attr { key: "format" value { s: "NC\\"H\\\\W" } } attr { key: "on" value { b: true } }
        attr { key: "off" value { b: false } } attr { key: "eps" value { f: 1e-5 } } attr { key: "one" value { f: 1 } }
        attr { key: "T" value { dt: DT_FLOAT16 } } attr { key: "nothing" value { } } attr { key: "bare" }
    } }
    op { name: "second", type: "Relu"; }
    """
    one, two = gegraph.parse(text)
    assert (one.name, one.type, one.inputs) == ("a/b", "Conv2D", ("x:0", "w:1"))
    assert (two.name, two.type, two.inputs, dict(two.attrs)) == ("second", "Relu", (), {})
    attrs = dict(one.attrs)
    assert attrs.pop("T").name == "float16"
    assert attrs["one"] == 1
    assert type(attrs["one"]) is float
    assert attrs["strides"][:2] == (1, 2)
    assert {name: attrs[name] for name in ("pads", "format", "on", "off", "eps", "nothing", "bare")} == {
        "pads": (0, -3), "format": 'NC"H\\W', "on": True, "off": False, "eps": 1e-5, "nothing": (), "bare": (),
    }  # fmt: skip


def test_a_text_graph_that_is_none_says_where():
    nested = lambda depth: "a { " * depth + "} " * depth  # noqa: E731
    assert gegraph.parse(nested(64)) == ()
    for text in (nested(65), "graph { op { name: 'a'", "graph { { 3 } }", '"text"'):
        with pytest.raises(UnreadableError, match=r"here\.txt"):
            gegraph.parse(text, "here.txt")


def test_graphs_are_found_beside_a_dump_or_above_it(tmp_path):
    dump = tmp_path / "run" / "rank_0" / "dump"
    dump.mkdir(parents=True)
    assert gegraph.ge_graphs(dump) == ()
    (tmp_path / "run" / "graphs").mkdir()
    later = tmp_path / "run" / "graphs" / "ge_proto_00000009_graph_1_Fused.txt"
    later.write_text("graph { }")
    assert gegraph.ge_graphs(dump) == (later,)  # where there is nothing better
    names = [f"ge_proto_0000000{n}_graph_1_{stage}.txt" for n, stage in enumerate(("PreRunBegin", "Build"))]
    for name in (*names, "ge_proto_x.txt", "other.txt"):
        (tmp_path / "run" / "graphs" / name).write_text(f'graph {{ op {{ name: "n/{name[14:16]}" type: "Relu" }} }}')
    found = gegraph.ge_graphs(dump)
    assert found
    assert {path.name for path in found} <= set(names)
    assert found == tuple(sorted(found))
    near = dump / names[0]
    near.write_text('graph { op { name: "near/one" type: "Add" } }')
    assert gegraph.ge_graphs(dump) == (near,)
    assert gegraph.ge_graphs(dump / "file.npy") == (near,)  # of a file: those beside it
    assert {name: op.type for name, op in gegraph.index((near,)).items()} == {"near_one": "Add"}


@pytest.mark.parametrize(("depth", "found"), [(0, True), (1, True), (6, True), (7, False)])
def test_graphs_are_looked_for_in_six_directories_above(tmp_path, depth, found):
    dump = tmp_path.joinpath(*"abcdefg"[:depth])
    dump.mkdir(parents=True, exist_ok=True)
    graph = tmp_path / "ge_proto_00000001_graph_1_Build.txt"
    graph.write_text("")
    assert gegraph.ge_graphs(dump) == ((graph,) if found else ())
    (tmp_path / "graphs").mkdir()
    graph.rename(tmp_path / "graphs" / graph.name)
    assert len(gegraph.ge_graphs(dump)) == found


def test_graphs_of_more_than_half_a_gibibyte_are_refused(tmp_path):
    graph = tmp_path / "ge_proto_00000001_graph_1_Build.txt"
    with open(graph, "wb") as file:
        file.truncate((1 << 29) + 1)
    with pytest.raises(UnreadableError, match="is larger than 536870912 bytes"):
        gegraph.index((graph,))


# -- settings by shapes: exactly those that a search through all of them finds


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_products_that_shapes_allow(turned):
    a, b = ((4, 3) if turned[0] else (3, 4)), ((5, 4) if turned[1] else (4, 5))
    wanted = [{"transpose_a": turned[0], "transpose_b": turned[1]}]
    assert list(guesses("MatMul", [a, b], (3, 5))) == wanted
    assert list(guesses("BatchMatMul", [(2, *a), (2, *b)], (2, 3, 5))) == wanted
    assert list(guesses("MatMul", [a, b], (3, 6))) == []
    assert len(list(guesses("MatMul", [(4, 4), (4, 4)], (4, 4)))) == 4


def reach(size, kernel, stride, pads):
    return (size + sum(pads) - kernel) // stride + 1


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 3, 4])
@pytest.mark.parametrize("pads", [(0, 0), (1, 1), (0, 1), (1, 2)])
def test_a_convolution_is_among_those_that_shapes_allow(kernel, stride, pads):
    if sum(pads) > 2 * (kernel - 1):
        return
    size = 11
    out = reach(size, kernel, stride, pads)
    x, w, y = (2, 6, size, size), (8, 3, kernel, kernel), (2, 8, out, out)
    for op_type, shapes, output, more in (
        ("Conv2D", [x, w], y, {}),
        ("Conv2DBackpropInput", [y, w], x, {"input_sizes": x}),
        ("Conv2DBackpropFilter", [y, x], w, {"filter_sizes": w}),
    ):
        found = list(guesses(op_type, shapes, output))
        for one in found:
            assert one["kernel_size"] == (kernel, kernel)
            assert (one["group"], one["out_channel"], one["dilation"], one["pad_mode"]) == (2, 8, (1, 1), "pad")
            assert {name: one[name] for name in more} == more
            for axis in range(2):
                own = one["pad"][2 * axis : 2 * axis + 2]
                assert reach(size, kernel, one["stride"][axis], own) == out
                assert own[0] <= own[1] < max(kernel, 1)
        # a pad at the end that no window reaches makes no other result
        used = (out - 1) * stride + kernel - size - pads[0]
        if max(used, 0) in (pads[0], pads[0] + 1):
            assert any(one["stride"] == (stride, stride) and one["pad"][0] == pads[0] for one in found)
        first = [one["stride"][0] == one["stride"][1] and one["pad"][:2] == one["pad"][2:] for one in found]
        assert first == sorted(first, reverse=True)  # square ones first
    assert list(guesses("Conv2D", [(2, 5, 9, 9), w], y)) == []


@pytest.mark.parametrize("op_type", ["MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad"])
@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("out", [1, 3, 4, 7])
def test_pools_that_shapes_allow(op_type, size, out):
    x, y = (1, 2, size, size), (1, 2, out, out)
    wanted = set()
    for kernel, stride in product((1, 2, 3, 4, 5, 7), range(1, 9)):
        if kernel <= size and (size - kernel) // stride + 1 == out:
            wanted.add((kernel, stride, "VALID"))
        if kernel > 1 and -(-size // stride) == out:
            wanted.add((kernel, stride, "SAME"))
    shapes = {"MaxPool": [x], "AvgPool": [x], "MaxPoolGrad": [x, y, y], "AvgPoolGrad": [x, y]}[op_type]
    found = list(guesses(op_type, shapes, x if op_type.endswith("Grad") else y))
    places = {2: "VALID", 1: "SAME", "VALID": "VALID", "SAME": "SAME"}
    assert {(one["kernel_size"][-1], one["strides"][-1], places[one["pad_mode"]]) for one in found} == wanted
    for one in found:
        assert one["kernel_size"][-1] == one["kernel_size"][-2]
        assert one["strides"][-1] == one["strides"][-2]
        assert set(one["kernel_size"][:-2]) | set(one["strides"][:-2]) <= {1}


def test_reductions_joins_and_turns_that_shapes_allow():
    assert list(guesses("ReduceSum", [(2, 3, 2)], (2, 3))) == [{"axis": (2,), "keep_dims": False}]
    assert list(guesses("ReduceMean", [(2, 3, 4)], (1, 3, 1))) == [{"axis": (0, 2), "keep_dims": True}]
    assert {one["axis"] for one in guesses("ReduceMax", [(3, 2, 3)], (2, 3))} == {(0,)}
    assert {one["axis"] for one in guesses("ReduceMax", [(3, 3)], (3,))} == {(0,), (1,)}
    assert list(guesses("ReduceSum", [(1,) * 6], ())) == []  # too many dimensions to try
    assert [one["axis"] for one in guesses("ReduceSum", [(2,) * 5], ())] == [(0, 1, 2, 3, 4)]
    assert list(guesses("Softmax", [(2, 3)], (2, 3))) == [{"axis": 1}, {"axis": 0}]
    assert list(guesses("Concat", [(2, 3), (2, 5)], (2, 8))) == [{"axis": 1}]
    assert list(guesses("Transpose", [(2, 3, 4)], (4, 2, 3))) == [{"input_perm": (2, 0, 1)}]
    assert list(guesses("Transpose", [(2,) * 6], (2,) * 6)) == []
    assert list(guesses("Reshape", [(2, 3)], (6,))) == [{"shape": (6,)}]
    assert list(guesses("Adam", [], ())) == [{"use_nesterov": False}, {"use_nesterov": True}]
    assert list(guesses("Unheard", [(2,)], (2,))) == []
