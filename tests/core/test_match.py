"""The kernels rules, row by row as observed."""

import pytest

from dumpsim.core.errors import DumpConfigError
from dumpsim.core.match import KernelRules

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
