"""The kernels rules, row by row as observed."""

import pytest

from dumpsim.core.errors import DumpConfigError
from dumpsim.core.match import KernelRules, element_text, type_part

NAMES = [
    "Default/fc1-Dense/MatMul-op0",
    "Default/fc1-Dense/BiasAdd-op0",
    "Default/relu-ReLU/ReLU-op0",
    "fc1.weight",
    "fc1.bias",
]
MATMUL, BIASADD, RELU, WEIGHT, BIAS = NAMES

ROWS = [
    ([], set(NAMES)),
    ([""], set(NAMES)),
    (["", " "], set(NAMES)),
    (["", "relu"], {RELU}),
    (["mul"], {MATMUL}),
    (["ADD"], {BIASADD}),
    (["a"], {MATMUL, BIASADD, BIAS}),
    (["fc1"], {WEIGHT, BIAS}),
    (["fc1.weight"], {WEIGHT}),
    (["dense"], set()),
    (["op0"], set()),
    (["-op0"], set()),
    (["/"], set()),
    ([" relu "], {RELU}),
    ([["relu"]], set()),
    ([None], set()),
    ([MATMUL], {MATMUL}),
    ([MATMUL.lower()], set()),
    (["MatMul-op0"], set()),
    (["Default/fc1-Dense"], set()),
    (["name-regex(.*[0-9]+)"], {MATMUL, BIASADD, RELU}),
    (["name-regex(.*\\d+)"], set()),
    (["name-regex(Default/fc1)"], set()),
    (["name-regex(Default/.+"], set()),
    (["name-regex(fc1.*)"], {WEIGHT, BIAS}),
    (["name-regex( f c 1 .*)"], {WEIGHT, BIAS}),
    ([1], {WEIGHT, BIAS}),
    (["relu", "name-regex(.*MatMul.*)", BIASADD], {RELU, MATMUL, BIASADD}),
]


@pytest.mark.parametrize(("elements", "expected"), ROWS, ids=[str(row[0]) for row in ROWS])
def test_selection(elements, expected):
    rules = KernelRules.parse(elements)
    assert {name for name in NAMES if rules.match(name) is not None} == expected


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (" a b ", "ab"), ("größe", "größe"), ({"b": 1, "a": [True, None]}, "{a:[true,null],b:1}"), (1.5, "1.5"),
        ('say "a"', "say\\a\\"), ("\t", "\\t"), ([["relu"]], "[[relu]]"),
    ],
)  # fmt: skip
def test_elements_are_compared_as_compact_json_without_quotes_and_blanks(element, text):
    assert element_text(element) == text


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("Default/fc1-Dense/MatMul-op0", "MatMul"), ("a/b-c-op0", "b-c"), ("x/-op0", ""), ("-op0", ""), ("x/", ""),
        ("MatMul", "MatMul"), ("a-b/MatMul", "MatMul"), ("", ""),
    ],
)  # fmt: skip
def test_the_part_of_a_name_that_is_a_type(name, part):
    assert type_part(name) == part


def test_a_pattern_has_a_head_and_an_end():
    kinds = {"name-regex(a)": "regex", "name-regex(a": "type", "a)": "type", "x-op0)": "name", "name-regex(a/b": "name"}
    assert {rule.text: rule.kind for rule in KernelRules.parse(kinds).rules} == kinds


def test_an_element_that_is_nested_too_deeply_matches_nothing():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert element_text(deep) == "[...]"
    while deep:  # taken apart, since Python would recurse
        deep = deep.pop()


def test_each_kind_of_rule_is_sorted_by_its_text():
    rules = KernelRules.parse(["zz", "Add", "b/x", "name-regex(z)", "a-op1", "größe", "name-regex(b)", "gz"])
    assert [(rule.kind, rule.text) for rule in rules.rules] == [
        ("regex", "name-regex(b)"), ("regex", "name-regex(z)"), ("name", "a-op1"), ("name", "b/x"), ("type", "Add"),
        ("type", "größe"), ("type", "gz"), ("type", "zz"),
    ]  # fmt: skip
    assert KernelRules.parse([]).match("Default/x").kind == "type"


def test_patterns_first_then_names_then_types_and_duplicates_once():
    rules = KernelRules.parse(["add", "Default/Add-op0", "name-regex(.*)", "add", " ad d"])
    assert [rule.kind for rule in rules.rules] == ["regex", "name", "type"]
    assert rules.match("Default/Add-op0").kind == "regex"
    assert rules.duplicates == ("add", "add")


@pytest.mark.parametrize(
    ("elements", "credited"),
    [
        (["add", "Ad"], "Ad"),
        (["Ad", "add"], "Ad"),
        (["dd", "add", "zz"], "add"),
        (["add", "name-regex(.*Add.*)"], "name-regex(.*Add.*)"),
        (["add", "Default/Add-op0"], "Default/Add-op0"),
    ],
)
def test_only_the_first_rule_that_matches_counts_as_used(elements, credited):
    """As MindSpore 2.10.0 reported the unused ones."""
    assert KernelRules.parse(elements).match("Default/Add-op0").text == credited


def test_a_malformed_pattern_is_an_error_only_where_patterns_are_read():
    with pytest.raises(DumpConfigError) as caught:
        KernelRules.parse(["relu", "name-regex((a)"])
    assert str(caught.value) == "Parenthesis is not closed."
    assert "kernels[1]" in caught.value.__notes__[0]
    assert KernelRules.parse(["name-regex((a)"], patterns=False).rules
