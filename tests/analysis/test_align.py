"""Which operators of two dumps belong together, in tables of small trees."""

import numpy as np
import pytest
from smalltree import api, write

import dumpsim
from dumpsim.analysis.align import align
from dumpsim.analysis.operator import Operator, series
from dumpsim.core.irdoc import SourceLine

SHAPES = {"s": (2, 3), "t": (4,), "u": (1, 2, 3), "v": (3, 3), "o": ()}


def tree(root, text):
    """Operators of one line: ``Add:0 s>s=1`` is Add-op0 with an input and a result of shape s full of ones."""
    ops = []
    for n, one in enumerate(text.split("; ")):
        name, flow = one.split(" ")
        kind, _, number = name.partition(":")
        shapes, _, value = flow.partition("=")
        inputs, _, outputs = shapes.partition(">")
        arrays = [
            [np.full(SHAPES[letter], float(value or n), np.float32) for letter in side] for side in (inputs, outputs)
        ]
        ops.append((kind, number if "/" in number else f"Default/{kind}-op{number}", *arrays))
    (found,) = series(dumpsim.open(write(root, ops)))
    return found.operators


def short(one):
    return one.op_name.removeprefix("Default_").replace("-op", ":")


TABLE = [
    # left, right, matches
    # by name: equal numbers wherever they ran, other numbers in order
    ("Add:0 s>s; Add:1 s>s", "Add:1 s>s; Add:0 s>s", ["Add:0 Add:0 name", "Add:1 Add:1 name"]),
    ("Add:0 s>s; Add:1 s>s", "Add:5 s>s; Add:4 s>s", ["Add:0 Add:5 name", "Add:1 Add:4 name"]),
    ("Add:0 s>s; Add:3 s>s", "Add:3 s>s; Add:4 s>s", ["Add:0 Add:3 name", "Add:3 Add:4 name"]),
    # of more on one side those with equal values, or else with equal numbers
    ("Add:0 s>s=5; Add:1 s>s=7", "Add:0 s>s=4; Add:1 s>s=5; Add:2 s>s=7",
     ["+ Add:0", "Add:0 Add:1 name", "Add:1 Add:2 name"]),
    ("Add:1 s>s=1", "Add:0 s>s=2; Add:1 s>s=3", ["+ Add:0", "Add:1 Add:1 name"]),
    ("Add:0 s>s=2; Add:1 s>s=3", "Add:1 s>s=1", ["- Add:0", "Add:1 Add:1 name"]),
    # between matched ones: by type and shapes, by the shapes of results, by the first result
    ("ReLU:0 s>s; Add:Own/x-op7 s>s; Mul:0 s>s", "ReLU:0 s>s; Add:Other/y-op3 s>s; Mul:0 s>s",
     ["ReLU:0 ReLU:0 name", "Own_x:7 Other_y:3 order", "Mul:0 Mul:0 name"]),
    ("Add:Own/x-op7 st>s", "Add:Other/y-op3 s>s", ["Own_x:7 Other_y:3 order"]),
    ("Add:Own/x-op7 s>st", "Add:Other/y-op3 s>s", ["Own_x:7 Other_y:3 order"]),
    ("Add:Own/x-op7 s>ts", "Add:Other/y-op3 s>s", ["+ Other_y:3", "- Own_x:7"]),
    ("Add:Own/x-op7 u>s", "Add:Other/y-op3 s>u", ["Own_x:7 Other_y:3 order"]),  # dimensions of 1 do not count
    # the shapes of operands count before those of results, all results before the first one
    ("Add:Own/x-op7 ss>s", "Add:Other/y-op3 ts>s; Add:Other/y-op4 ss>s", ["+ Other_y:3", "Own_x:7 Other_y:4 order"]),
    ("Add:Own/x-op7 s>st", "Add:Other/y-op3 t>ss; Add:Other/y-op4 t>st", ["+ Other_y:3", "Own_x:7 Other_y:4 order"]),
    # a single one of another type, if its shapes are the same and tell something
    ("Add:Own/x-op7 s>s", "Mul:Other/y-op3 s>s", ["Own_x:7 Other_y:3 order"]),
    ("Add:Own/x-op7 s>s", "Mul:Other/y-op3 s>t", ["+ Other_y:3", "- Own_x:7"]),
    ("Add:Own/x-op7 s>s; Sub:Own/z-op8 s>s", "Mul:Other/y-op3 s>s", ["+ Other_y:3", "- Own_x:7", "- Own_z:8"]),
    # what compilers put in has no counterpart by order
    ("Cast:Own/x-op7 s>s; ReLU:0 s>s", "Cast:Other/y-op3 s>s; ReLU:0 s>s",
     ["+ Other_y:3", "- Own_x:7", "ReLU:0 ReLU:0 name"]),
    ("Cast:7 s>s; ReLU:0 s>s", "Cast:7 s>s; ReLU:0 s>s", ["Cast:7 Cast:7 name", "ReLU:0 ReLU:0 name"]),
    # operators of the right alone stand after the match before them
    ("Add:0 s>s; Mul:0 s>s", "Neg:0 t>t; Add:0 s>s; Abs:0 t>t; Exp:0 v>v; Mul:0 s>s; Log:0 t>t",
     ["+ Neg:0", "Add:0 Add:0 name", "+ Abs:0", "+ Exp:0", "Mul:0 Mul:0 name", "+ Log:0"]),
    ("Neg:0 t>t; Add:0 s>s; Abs:0 v>v", "Add:0 s>s", ["- Neg:0", "Add:0 Add:0 name", "- Abs:0"]),
    # matches that cross: what stands alone follows those that do not
    ("Add:0 s>s; Mul:0 s>s; Sub:0 s>s", "Mul:0 s>s; Neg:0 t>t; Add:0 s>s; Sub:0 s>s",
     ["Add:0 Add:0 name", "Mul:0 Mul:0 name", "+ Neg:0", "Sub:0 Sub:0 name"]),
    # a gap of several: pairs in order, the rest alone
    ("Add:Own/a-op1 s>s; Add:Own/b-op2 s>s", "Add:O/c-op3 s>s; Add:O/d-op4 s>s",
     ["Own_a:1 O_c:3 order", "Own_b:2 O_d:4 order"]),
    ("Add:Own/a-op1 s>s; Mul:Own/b-op2 t>t; Add:Own/c-op3 s>s", "Add:O/c-op3 s>s; Exp:O/d-op4 t>t; Add:O/e-op5 s>s",
     ["Own_a:1 O_c:3 order", "Own_b:2 O_d:4 order", "Own_c:3 O_e:5 order"]),
]  # fmt: skip


def told(matches):
    for match in matches:
        if match.left and match.right:
            yield f"{'+'.join(map(short, match.left))} {'+'.join(map(short, match.right))} {match.by}"
        else:
            (one,) = (*match.left, *match.right)
            yield f"{'-' if match.left else '+'} {short(one)}"
            assert match.by == ""


@pytest.mark.parametrize(("left", "right", "matches"), TABLE)
def test_operators_are_matched_by_name_and_then_by_order(tmp_path, left, right, matches):
    assert list(told(align(tree(tmp_path / "a", left), tree(tmp_path / "b", right)))) == matches


FUSED = [
    ("MatMul:0 s>s; BiasAdd:0 s>s", "MatMul:Default/MatMul-op0Default/BiasAdd-op0 s>s", [(2, 1)]),
    ("MatMul:0 s>s; Neg:0 t>t; BiasAdd:0 s>s", "MatMul:Default/MatMul-op0Default/BiasAdd-op0 s>s", [(1, 0), (2, 1)]),
    ("MatMul:0 s>s", "MatMul:Default/MatMul-op0Default/BiasAdd-op0 s>s", [(1, 1)]),
    ("Neg:0 t>t", "MatMul:Default/MatMul-op0Default/BiasAdd-op0 s>s", [(1, 0), (0, 1)]),
    ("A:0 s>s; B:0 s>s; C:0 s>s", "A:Default/A-op0Default/B-op0Default/C-op0 s>s", [(3, 1)]),
]


@pytest.mark.parametrize(("parts", "whole", "sizes"), FUSED)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_fused_operator_has_its_parts(tmp_path, parts, whole, sizes, swapped):
    sides = tree(tmp_path / "a", parts), tree(tmp_path / "b", whole)
    matches = align(*(sides[::-1] if swapped else sides))
    found = [(len(match.left), len(match.right)) for match in matches]
    assert sorted(found) == sorted((b, a) if swapped else (a, b) for a, b in sizes)
    assert [match.by for match in matches if match.left and match.right] == ["fusion"] * sum(
        bool(a and b) for a, b in sizes
    )
    for match in matches:
        assert [one.order for one in match.left] == sorted(one.order for one in match.left)


@pytest.mark.parametrize(
    ("ended", "matched"), [("s", True), ("st", True), ("ts", False), ("t", False), ("ss", True), ("tt", False)]
)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_layer_has_the_operators_that_end_in_its_first_result(tmp_path, ended, matched, swapped):
    one = np.ones(SHAPES["s"], np.float32)
    root = api(tmp_path / "a", [("NN_Linear_0_forward_input.0", one), ("NN_Linear_0_forward_output", one)])
    (calls,) = series(dumpsim.open(root))
    graph = tree(tmp_path / "b", f"MatMul:0 su>s; BiasAdd:0 st>{ended}")
    matches = align(graph, calls.operators) if swapped else align(calls.operators, graph)
    sizes = [(len(match.left), len(match.right)) for match in matches if match.left and match.right]
    assert sizes == ([(2, 1) if swapped else (1, 2)] if matched else [])


class Written(Operator):
    """An operator of a given line of a script, which needs no graph beside the dump."""

    line = property(lambda self: self.__dict__["written"])


def on_lines(operators, lines):
    """Operators of these lines of a script: ``file.py:7 code``."""
    for one, text in zip(operators, lines, strict=True):
        path, _, rest = text.partition(":")
        number, _, code = rest.partition(" ")
        line = SourceLine(path=path, line=int(number), end_line=int(number), column=0, end_column=9, code=code)
        found = Written(entries=one.entries, order=one.order)
        found.__dict__["written"] = line
        yield found


ON_LINES = [
    # what a line says counts, not its number or the folder; of two lines each has its operator, whatever their numbers
    (["/a/net.py:7  x + y", "/a/net.py:8 y + z"], ["/b/net.py:8 y + z", "/b/net.py:9 x + y"],
     ["Add:0 Add:1 line", "Add:1 Add:0 line"]),
    (["/a/net.py:7 x + y", "/a/net.py:8 y + z"], ["/a/other.py:7 y + z", "/a/other.py:8 x + y"],
     ["Add:0 Add:0 name", "Add:1 Add:1 name"]),
    (["/a/net.py:7 x + y", "/a/net.py:8  "], ["/a/net.py:7 ", "/a/net.py:8 x + y"],
     ["Add:0 Add:1 line", "Add:1 Add:0 name"]),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "matches"), ON_LINES)
def test_operators_of_one_line_of_a_script_belong_together(tmp_path, left, right, matches):
    sides = [tree(tmp_path / name, "Add:0 s>s; Add:1 s>s") for name in "ab"]
    found = [list(on_lines(operators, lines)) for operators, lines in zip(sides, (left, right), strict=True)]
    assert list(told(align(*found))) == matches
