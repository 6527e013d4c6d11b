"""Calls of layers, functions and methods in PYNATIVE mode and in graphs, against those of real MindSpore 2.10."""

import importlib
import json
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.runtime.session import Session

HERE = Path(__file__).parents[3] / "fixtures" / "frontends" / "mindspore" / "calls"


@cache
def module(name):
    sys.path.insert(0, str(HERE))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(HERE))


def evaluate():
    return module("evaluate")


@cache
def recorded():
    return json.loads((HERE / "calls.json").read_text("utf-8"))


def equal(line, ours, theirs):
    """Whether two descriptions differ by rounding only, or our error starts with the text of the real one."""
    if re.match(r"[A-Z]\w*(Error|Exception): ", theirs):
        wanted = theirs.partition(": ")[0] if line.startswith("~ ") else theirs.rstrip(".")
        return ours.startswith(wanted)
    coarse = 4e-3 if "float16" in theirs.lower() or "amp." in line else 1e-5
    return module("compare").alike(ours, theirs, coarse)


@pytest.mark.parametrize("part", evaluate().sections())
def test_results_of_calls_are_the_recorded_ones(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some lines write checkpoints
    session = Session(RunSettings(quiet=True), environment={})
    Session.use(session)
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    session.configure(target="CPU")
    lines = evaluate().sections()[part]
    found = evaluate().results(ms, np, lines, tmp_path / "lines.py")
    real = recorded()
    different = {line: (found[line], real[line]) for line in lines if not equal(line, found[line], real[line])}
    assert different == {}


@pytest.mark.parametrize("number", range(module("compare").PARTS))
def test_drawn_calls_give_what_the_real_ones_give(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compare = module("compare")
    rows, open_ones = compare.compared(compare.part(number), tmp_path / "lines.py"), compare.listed()
    different = {line: row for line, row in rows.items() if row[0] not in ("equal", "refused")}
    assert {line: row for line, row in different.items() if line not in open_ones} == {}
    mended = [line for line in rows if line in open_ones and line not in different]
    assert mended == [], "run compare.py: it takes them from the list of open ones"


def test_most_drawn_calls_are_held_to_the_record():
    compare = module("compare")
    assert len(compare.listed()) < 0.3 * len(compare.recorded())
