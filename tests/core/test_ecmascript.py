"""ECMAScript patterns: error texts as MindSpore 2.10.0 raised them, matches against Python where both agree."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.core.ecmascript import PatternError, compile_pattern

RECORDED = json.loads((Path(__file__).parents[2] / "fixtures/core/ecmascript_errors.json").read_text())


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["pattern"])
def test_error_texts_are_those_of_the_real_library(case):
    with pytest.raises(PatternError) as caught:
        compile_pattern(case["pattern"])
    assert str(caught.value) == case["message"]


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("Default/.+", "Default/Add-op0", True),
        ("Default", "Default/Add-op0", False),
        (".", "\n", False),
        ("a++", "aaa", True),
        ("a{2,3}?", "aaa", True),
        ("[[:alpha:]_]+", "ab_C", True),
        ("[[:digit:]]", "a", False),
        ("[]", "a", False),
        ("[^]", "\n", True),
        ("[a-]", "-", True),
        ("[-a]", "-", True),
        ("[a&&b]+", "&&", True),
        (r"\\d", r"\d", True),
        (r"\\d", "1", False),
        ("(?:ab)+", "abab", True),
        ("(a)(b)\\2\\1", "abba", True),
        ("(?=a)a", "a", True),
        ("(?!a)a", "a", False),
        ("a|b", "b", True),
        ("^a$", "a", True),
        ("a]", "a]", True),
        ("a}", "a}", True),
        ("\\x41", "A", True),
        ("#a b", "#a b", True),
        # what std::regex of libstdc++ 13 says
        (r"\bab\b", "ab", True),
        (r"a\Bb", "ab", True),
        (r"a\bb", "ab", False),
        (r"a\B", "a", False),
        (r"[\b]", "\b", True),
        (r"[\b]", "b", False),
        (r"[\d-]", "-", True),
        (r"[\d]+", "90", True),
        (r"[\D]", "a", True),
        (r"[\D]", "9", False),
        (r"[\s]", "\t", True),
        (r"[\S]", "x", True),
        (r"[\S]", " ", False),
        (r"[\w]+", "a_9", True),
        (r"[\W]", "-", True),
        (r"[\W]", "_", False),
        (r"\d\D\s\S\w\W", "1a b_-", True),
        (r"\D", "1", False),
        (r"\S", " ", False),
        (r"\W", "_", False),
        ("[^a-c]", "d", True),
        ("[^a-c]", "b", False),
        ("[[=a=]]", "a", True),
        ("[[=a=]]", "b", False),
        ("[[.a.]-c]", "b", True),
        (r"[\cA]", "A", True),
        (r"\cA", "A", True),
        ("a|", "", True),
        (r"(a|b)*\1", "abb", True),
        (r"(?:a)(b)\1", "abb", True),
        (r"[\x41-\x43]", "B", True),
        (r"[a\]]", "]", True),
        ("[[a]", "[", True),
        ("a{2}", "aa", True),
        ("a{2}", "aaa", False),
        ("a{2,}", "aaaa", True),
        ("a{0,1}", "", True),
        (r"\n\t\r\f\v", "\n\t\r\f\v", True),
        ("[[:w:]]", "_", True),
        ("[[:ALPHA:]]", "a", True),
        ("x*?y", "xxy", True),
        ("[a-a]", "a", True),
        ("[--a]", ".", True),
        ("[]a]", "]", False),
        (r"\cJ", "J", True),
        ("^^a$$", "a", True),
        ("(^a)|b", "b", True),
        ("(a*)*", "aaa", True),
        (r"\d+", "12", True),
        (r"\d*x", "12x", True),
        (r"(?=(a+?))\1b", "aab", False),  # lazy: the look-ahead takes one letter
        (r"(?=(a+))\1b", "aab", True),
        ("a{2,3}?", "", False),
        ("a+?", "", False),
        ("a*?", "", True),
        ("a??", "", True),
        ("a{2,2}", "aa", True),
        ("a{2,2}", "aaa", False),
        ("a{0}", "", True),
        (r"(?:(a))\1", "aa", True),
        ("a||b", "", True),
        ("()", "", True),
        (r"[^\d]", "a", True),
        ("[^[:alpha:]]", "1", True),
        ("[^a]", "^", True),
        ("[[=]=]]", "]", True),
        ("[[=^=]a]", "^", True),
        ("[[.].]]", "]", True),
        ("[[.^.]]", "^", True),
        ("[a^]", "^", True),
        ("[.]", "x", False),
        ("[*]", "*", True),
        (r"[a\-z]", "b", False),
        (r"[a\-z]", "-", True),
        (r"[\0]", "\0", True),
        (r"\0", "\0", True),
        (r"\01", "\0" + "1", True),
        (r"\-\/\_", "-/_", True),
    ],
)
def test_full_match(pattern, text, matches):
    assert (compile_pattern(pattern).fullmatch(text) is not None) is matches


@given(st.text(alphabet="ab/-.|*+?()[]0", max_size=8), st.text(alphabet="ab/-.0", max_size=8))
def test_agrees_with_python_where_both_accept(pattern, text):
    try:
        expected = re.compile(pattern)
    except (re.error, FutureWarning):
        return
    if re.search(r"\(\?|[*+?]\+|\[[\]^]|\[\[", pattern):
        return  # the two syntaxes differ here
    assert (compile_pattern(pattern).fullmatch(text) is None) == (expected.fullmatch(text) is None)


@pytest.mark.parametrize(
    ("pattern", "text"), [(r"\x410", "A0"), (r"\u00410", "A0"), (r"\u00e9", "é"), (r"\xe9x", "éx")]
)
def test_escapes_of_numbers_have_two_or_four_digits(pattern, text):
    assert compile_pattern(pattern).fullmatch(text) is not None


@pytest.mark.parametrize(
    ("pattern", "message"),
    [  # of libstdc++ 13
        (r"(?:a)(b\1)", "Back-reference referred to an opened sub-expression."),
        (r"(a)\10", "Back-reference index exceeds current sub-expression count."),
        (r"(?:a)\1", "Back-reference index exceeds current sub-expression count."),
        ("[[:WORD:]]", "Invalid character class."),
        ("[[::]]", "Invalid character class."),
        ("[[:]", "Unexpected end of character class."),
        (r"[\1]", "Unexpected character in bracket expression."),
        ("[[:^alpha:]]", "Invalid character class."),
    ],
)
def test_what_the_library_refuses(pattern, message):
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == message


def test_assertions_take_no_quantifier_and_numbers_need_their_group():
    for pattern in (r"\b*", r"\B+a", "^*a", "$*", "(?=a)*a", "a|*"):
        with pytest.raises(PatternError, match=r"^Mismatched '\(' and '\)' in regular expression$"):
            compile_pattern(pattern)
    for pattern in (r"\8", r"\10", "(a)" * 9 + r"\10"):
        with pytest.raises(PatternError, match=r"^Back-reference index exceeds current sub-expression count\.$"):
            compile_pattern(pattern)
    assert compile_pattern("(a)" * 10 + r"\10").fullmatch("a" * 11)
