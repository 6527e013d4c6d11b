"""The iteration grammar, row by row as observed."""

import pytest

from dumpsim.core.errors import DumpConfigError
from dumpsim.core.steps import Steps

MATCHING = {
    "0": {0}, "0|2": {0, 2}, "1-3": {1, 2, 3}, "0|2-3|5": {0, 2, 3, 5}, "0|": {0}, "|0": {0}, "0||2": {0, 2}, "00": {0},
    "0|0|0": {0}, "2-2": {2}, "1-3|2-4": {1, 2, 3, 4}, "0-1001": set(range(8)), "00-01": {0, 1}, "0-1-2|1": {1},
    "all": set(range(8)),
}  # fmt: skip
NEVER = ["-1", "3-1", "1-", "-", "1--3", "|", "0-5-7", "1-0", "||", "99999999999999999999"]
REFUSED = ["", " ", "All", "a", "1,2", "1.5", "0x1", "+1", "0 | 2", "all|0", "0\n"]


@pytest.mark.parametrize(("text", "expected"), MATCHING.items())
def test_matching_texts(text, expected):
    steps = Steps.parse(text)
    assert {n for n in range(8) if n in steps} == expected


@pytest.mark.parametrize("text", NEVER)
def test_accepted_and_never_matching(text):
    steps = Steps.parse(text)
    assert not any(n in steps for n in (*range(12), 2**32, 2**64 - 1))
    assert steps.never


def test_numbers_beyond_64_bits_are_reported_and_leave_the_others_alone():
    steps = Steps.parse("99999999999999999999|3")
    assert steps.oversized == ("99999999999999999999",)
    assert 3 in steps


LARGEST = 2**64 - 1  # of unsigned long, which has 20 digits


@pytest.mark.parametrize(
    ("text", "ranges", "oversized", "idle"),
    [
        (f"{LARGEST}", ((LARGEST, LARGEST),), (), ()),
        (f"{LARGEST + 1}", (), (f"{LARGEST + 1}",), ()),
        (f"0-{LARGEST}", ((0, LARGEST),), (), ()),
        (f"{LARGEST + 1}-{LARGEST + 2}|7", ((7, 7),), (f"{LARGEST + 1}", f"{LARGEST + 2}"), ()),
        ("0" * 500 + "7", ((7, 7),), (), ()),
        ("0" * 500 + f"{LARGEST}", ((LARGEST, LARGEST),), (), ()),
        ("1" + "0" * 20, (), ("1" + "0" * 20,), ()),
        ("1" * 5000, (), ("1" * 5000,), ()),
        ("8-5|3-3|1-|-2|1-2-3||4", ((8, 5), (3, 3), (4, 4)), (), ("8-5", "1-", "-2", "1-2-3", "")),
    ],
    ids=range(9),
)
def test_what_a_text_selects_and_what_it_cannot(text, ranges, oversized, idle):
    steps = Steps.parse(text)
    assert steps == Steps(text=text, ranges=ranges, oversized=oversized, idle=idle)
    assert str(steps) == text
    assert steps.never == (not any(low <= high for low, high in ranges))


def test_all_iterations():
    steps = Steps.parse("all")
    assert steps == Steps(text="all", every=True)
    assert not steps.never
    assert "3" not in Steps.parse("3")
    assert 3 in Steps.parse("3")


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("All", "all"), ("A L L", "all"), ("0, 2", "0|2"), ("1 - 3", "1-3"), ("", None), (" ", None), ("a", None)],
)
def test_the_text_that_was_meant(text, nearest):
    with pytest.raises(DumpConfigError) as caught:
        Steps.parse(text)
    assert (caught.value.nearest, caught.value.code) == (nearest, "DS-CFG-020")


@pytest.mark.parametrize("text", REFUSED)
def test_refused_texts(text):
    with pytest.raises(DumpConfigError) as caught:
        Steps.parse(text)
    assert str(caught.value) == f"iteration only supports digits, {{'-', '|'}}, or just \"all\" but got: {text}"
    assert "$.common_dump_settings.iteration" in caught.value.__notes__[0]


def test_the_seed_accepts_blanks_around_numbers_only():
    steps = Steps.parse("0 | 5 - 8 | 100-120", blanks=True)
    assert {n for n in range(200) if n in steps} == {0, *range(5, 9), *range(100, 121)}
    for text in ("1 2", " ", "al l"):
        with pytest.raises(DumpConfigError):
            Steps.parse(text, blanks=True)
