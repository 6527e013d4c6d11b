"""Which tolerance a pair has: by its number types, what came before it, and the user's rules."""

from types import SimpleNamespace

import pytest

from dumpsim.analysis.pairing import Accuracy
from dumpsim.analysis.tolerance import Tolerance, rule, usual
from dumpsim.core.errors import BadInputError

# float32 as in api_dump_compare [spec api_dump 2]; narrow types by four of their last bits, 2**-11 and 2**-8, rounded
TYPES = {
    "float64": (1e-7, 1e-7), "float32": (1e-4, 1e-4), "float16": (2e-3, 5e-3), "bfloat16": (1.6e-2, 4e-2),
    "complex64": (1e-4, 1e-4), "complex128": (1e-7, 1e-7), "float8_e4m3fn": (0.125, 0.0625),
    "hifloat8": (0.125, 0.0625),
}  # fmt: skip
WHOLE = ["int8", "uint8", "int64", "bool", "string", ""]


@pytest.mark.parametrize("name", TYPES)
def test_floats_have_a_tolerance_for_their_size(name):
    assert usual([name]) == Tolerance(rtol=TYPES[name][0], atol=TYPES[name][1], scaled=True)
    assert usual([name]).few == TYPES[name][1]


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_equal_or_differ(name):
    assert usual([name]) == usual([]) == Tolerance(rtol=0.0, atol=0.0)
    assert usual([name]).few == 0
    assert usual([name, "float32"]) == usual(["float32"])


def test_the_wider_tolerance_of_two_types_holds():
    order = ["float64", "float32", "float16", "bfloat16", "float8_e5m2"]
    for at, narrow in enumerate(order):
        for wide in order[: at + 1]:
            assert usual([narrow, wide]) == usual([wide, narrow]) == usual([narrow])


def test_a_tolerance_follows_the_size_down_to_a_least_one():
    scaled = Tolerance(rtol=0.5, atol=0.25, scaled=True)
    for size, atol in ((4.0, 1.0), (1.0, 0.25), (2e-5, 5e-6), (1e-5, 2.5e-6), (1e-6, 2.5e-6), (0.0, 2.5e-6)):
        assert scaled.at(size) == Tolerance(rtol=0.5, atol=pytest.approx(atol))
    fixed = Tolerance(rtol=0.5, atol=0.25)
    assert fixed.at(4.0) is fixed


@pytest.mark.parametrize(
    ("text", "pattern", "rtol", "atol"),
    [
        ("*:0.5", "*", 0.5, 0.5), ("*:0.5:0.25", "*", 0.5, 0.25), ("*:0:0", "*", 0.0, 0.0),
        ("a:output.0:0.5", "a:output.0", 0.5, 0.5), ("a:1:2:3", "a:1", 2.0, 3.0), ("a:b:0.5:1e-3", "a:b", 0.5, 1e-3),
    ],
)  # fmt: skip
def test_a_rule_has_one_number_or_two(text, pattern, rtol, atol):
    found = rule(text)
    assert (found.pattern, found.tolerance) == (pattern, Tolerance(rtol=rtol, atol=atol))


@pytest.mark.parametrize("text", ["", "a", ":1", "a:", "a:x", "a:-1", "a:1:-1", "a:inf", "a:nan", "a:1:inf", "0.5"])
def test_other_texts_are_no_rules(text):
    with pytest.raises(BadInputError, match="is not a tolerance; allowed: PATTERN:RTOL"):
        rule(text)


def entry(dtype, *answers):
    return SimpleNamespace(dtype=dtype, answers=lambda pattern: pattern in answers)


def test_after_a_pair_of_two_types_later_pairs_have_the_narrower_ones_accuracy():
    accuracy = Accuracy()
    single, half, wide, whole = (entry(name) for name in ("float32", "float16", "float64", "int32"))
    assert accuracy.of(single, single) == usual(["float32"])
    assert accuracy.of(whole, single) == usual(["float32"])  # two types, one of them a float: nothing is lost by that
    assert accuracy.of(wide, wide) == usual(["float64"])
    assert accuracy.of(single, half) == usual(["float16"])
    assert accuracy.of(single, single) == accuracy.of(wide, wide) == usual(["float16"])
    assert accuracy.of(whole, whole) == usual(["int32"])
    assert Accuracy().of(single, single) == usual(["float32"])


def test_the_last_rule_that_either_side_answers_to_holds():
    accuracy = Accuracy([rule("a:1"), rule("b:2"), rule("c:3")])
    for left, right, rtol in ((("a",), (), 1), ((), ("b",), 2), (("a",), ("b",), 2), (("c", "a"), ("b",), 3)):
        found = accuracy.of(entry("float32", *left), entry("float16", *right))
        assert found == Tolerance(rtol=rtol, atol=rtol)
    assert accuracy.of(entry("float32"), entry("float32")) == usual(["float32"])  # what a rule chose is not noted
