"""The order in which names are looked up, and the scopes of the operators of helper functions."""

import ast
import importlib.util
import json
import re
from collections import Counter
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from dumpsim.frontends.mindspore import Tensor, nn, ops
from dumpsim.frontends.mindspore._capture.names import looked_up

FOLDER = Path(__file__).parents[4] / "fixtures" / "mindspore_2_10" / "function_scopes"
RECORDED = json.loads((FOLDER / "names.json").read_text())


def names(text):
    """The names that a function looks up, with ``()`` after calls; a number is the last line of a loop."""
    (tree,) = ast.parse(dedent(text).strip()).body
    found = []
    for line, names in looked_up(tree):
        found += [line] * bool(line) + [".".join(name) + "()" * is_called for name, is_called in names]
    return found


def test_the_function_of_a_call_comes_before_its_arguments_and_the_call_last():
    assert names("def f(x): return outer(inner(x), other)") == ["outer", "inner", "inner()", "other", "outer()"]


def test_the_outermost_call_is_looked_up_first():
    text = """
        def f(self, x):
            y = ops.exp(x)
            z = self.cell(y)
            return ops.relu(z)
    """
    assert names(text) == ["ops.relu", "ops.exp", "ops.exp()", "self.cell()", "ops.relu()"]


def test_a_variable_means_its_latest_value():
    text = """
        def f(x):
            y = first(x)
            z = second(y)
            y = third(z)
            return last(y, z)
    """
    order = ["last", "third", "second", "first", "first()", "second()", "third()", "last()"]
    assert names(text) == order


def test_unused_variables_come_before_the_result():
    text = """
        def f(x):
            b = one(x)
            a = two(x)
            y = three(x)
            for i in all(x):
                y = inner(y)
            c = four(y)
            return last(y)
    """
    order = ["one", "one()", "two", "two()", "all", "all()", "three", "three()", 6, "four", "four()", "last", "last()"]
    assert names(text) == order


def test_names_in_tuples_operators_and_keywords():
    text = """
        def f(x, *args, key=None, **kwargs):
            a, (b, _) = pair(x)
            a += one(b)
            return (a[two(x)] + -three(x) > args[0], named(key=four(kwargs)))
    """
    called = [name for name in names(text) if name.endswith("()")]
    assert called == ["pair()", "one()", "two()", "three()", "four()", "named()"]


@pytest.mark.parametrize(
    ("expression", "operators"),
    [
        ("x + 1", ["add"]),
        ("-x + 1", ["add"]),
        ("1 + (x > 2)", ["greater", "add"]),
        ("1 + (2 > x)", ["greater", "add"]),
        ("1 + x[0]", ["add"]),
        ("1 + x.T", ["add"]),
        ("1 + x.ndim", []),
        ("1 + self.size", []),
        ("1 + -self.size", []),
        ("1 + (self.size > 2)", []),
        ("1 + self.cell(x)", ["add"]),
        ("1 + int(x)", []),
    ],
)
def test_operators_of_what_may_be_a_tensor_are_looked_up(expression, operators):
    found = names(f"def f(self, x): return {expression}")
    assert [name for name in found if name.startswith(".")] == [f".{name}" for name in operators]


def test_names_in_branches_and_loops():
    text = """
        def f(self, x):
            if self.flag:
                x = one(x)
            else:
                x = two(x)
            for cell in all(self.cells):
                x = inner(cell(x))
            y = third(x)
            return last(y)
    """
    before = ["all", "all()", "one", "one()", "two", "two()"]
    assert names(text) == [*before, 7, "last", "third", "third()", "last()"]


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): pass",
        "def f(x): return",
        "def f(x):\n    if x:\n        return one(x)\n    return two(x)",
        "def f(x):\n    with one(x):\n        x = two(x)\n    return x",
    ],
)
def test_other_functions_have_no_names(text):
    assert names(text) == []


def test_a_nested_function_counts_as_a_call():
    assert names("def f(x): return one((lambda y: two(y))(x))") == ["one", "()", "()", "one()"]


def load():
    spec = importlib.util.spec_from_file_location("function_scope_nets", FOLDER / "nets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_scopes_of_helpers_are_those_of_the_real_compiler(name, graph_mode, graphs):
    load().build(nn, ops)[name]()(Tensor(np.full((2, 2), 0.3, np.float32)))
    found = Counter(
        re.sub(r"-op\d+$", "", node.full_name) for part in graphs() for graph in part for node in graph.order
    )
    assert found == RECORDED[name]
