"""Calls of ``mint.distributed`` on two ranks, right and spoilt ones, against those of real MindSpore 2.10."""

import importlib
import json
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[3] / "fixtures" / "frontends" / "mindspore"


@cache
def recorder():
    sys.path.insert(0, str(HERE))
    try:
        return importlib.import_module("record_distributed")
    finally:
        sys.path.remove(str(HERE))


@cache
def held():
    """The recorded calls that agree."""
    open_ones = set(json.loads((HERE / "distributed_open.json").read_text("utf-8")))
    return {line: both for line, both in recorder().recorded().items() if line not in open_ones}


@pytest.mark.parametrize("function", sorted({line.partition("(")[0] for line in held()}))
def test_calls_give_what_real_ones_give(function):
    expected = {line: both for line, both in held().items() if line.startswith(f"{function}(")}
    found = recorder().emulated(list(expected))
    assert {line: (both, expected[line]) for line, both in found.items() if both != expected[line]} == {}


def test_most_calls_are_held_to_the_record():
    assert len(held()) > 0.8 * len(recorder().recorded())
