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
