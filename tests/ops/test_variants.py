"""Other number types, shapes and settings than those of ``cases.py``, against MindSpore 2.10: values and errors."""

import json
import lzma
import warnings
from functools import cache
from pathlib import Path

import pytest
from inprocess import fresh
from ops import variants

from dumpsim.frontends.mindspore import context

RECORDED = Path(__file__).parents[2] / "fixtures/ops/variants.json.xz"


@cache
def recorded():
    with lzma.open(RECORDED, "rt", encoding="utf-8") as file:
        return json.load(file)


@cache
def calls():
    return variants.calls()


@pytest.mark.parametrize("case", sorted(recorded()))
def test_a_call_near_a_case_does_what_it_does_in_mindspore(case, monkeypatch):
    """It gives the same types, shapes and numbers, or raises the same error. [2.10 observed]"""
    left = dict(recorded()[case])
    different = []
    with fresh("CPU", monkeypatch), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of numpy, for numbers that do not fit a type
        context.set_context(mode=context.PYNATIVE_MODE)
        names = variants.namespace("dumpsim.frontends.mindspore")
        for name, given, text in calls()[case]:
            wanted = left.pop(name, None)
            if wanted is not None and not variants.agree(ours := variants.outcome(text, given, names), wanted):
                different.append((name, ours, wanted))
    assert (different, left) == ([], {})
