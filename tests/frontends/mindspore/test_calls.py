"""Calls of layers, functions and methods in PYNATIVE mode and in graphs, against those of real MindSpore 2.10."""

import importlib.util
import json
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.runtime.session import Session

HERE = Path(__file__).parents[3] / "fixtures" / "frontends" / "mindspore" / "calls"


@cache
def evaluate():
    spec = importlib.util.spec_from_file_location("evaluate_calls", HERE / "evaluate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def recorded():
    return json.loads((HERE / "calls.json").read_text("utf-8"))


def split_numbers(text):
    """A description, split into its numbers and the text between them."""
    return re.split(r"(?<![\w.])(-?\d+\.?\d*(?:e[-+]?\d+)?|-?inf|nan)(?!\w)", text)


def equal(line, ours, theirs):
    """Whether two descriptions differ by rounding only, or our error starts with the text of the real one."""
    if re.match(r"[A-Z]\w*(Error|Exception): ", theirs):
        wanted = theirs.partition(": ")[0] if line.startswith("~ ") else theirs.rstrip(".")
        return ours.startswith(wanted)
    left, right = split_numbers(ours), split_numbers(theirs)
    if len(left) != len(right) or left[::2] != right[::2]:
        return False
    coarse = 4e-3 if "float16" in theirs.lower() or "mixed_precision" in line else 1e-5
    return all(
        a == b or (math.isclose(float(a), float(b), rel_tol=coarse, abs_tol=5e-6))
        for a, b in zip(left[1::2], right[1::2], strict=True)
    )


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
