"""Errors for invalid strategies, compared with the log of MindSpore 2.10."""

import pytest
from graph.parallel.illegal import load, script_of
from graph.parallel.texts import texts_of

from dumpsim.core.cutting import StrategyError

CASES = load()


def plain(text):
    """The vendor's log writes lists in several ways."""
    return text.replace("[", "(").replace("]", ")").replace(",)", ")")


@pytest.mark.parametrize("name", CASES)
def test_the_vendors_words(name):
    case = CASES[name]
    if not case["said"]:
        assert texts_of(script_of(case))["end"]
        return
    with pytest.raises(StrategyError) as caught:
        texts_of(script_of(case))
    assert plain(case["said"].rstrip(".")) in plain(str(caught.value))
