"""Which operators one expression becomes, and what is dumped of them, against real MindSpore 2.10 on the CPU."""

import json
import math
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[3] / "fixtures/frontends/mindspore/expressions"
RECORDED = json.loads((HERE / "expressions.json").read_text())
COMMAND = [sys.executable, "-m", "dumpsim", "run", "--mindspore", "2.10", "--device", "cpu", "-q", "--manifest", "none"]
FLOORS = {"plain": 0.89, "gradient": 0.79}  # shares of equal lines


def _recorder():
    sys.path.insert(0, str(HERE))
    try:
        import record
    finally:
        sys.path.remove(str(HERE))
    return record


def _ours(jobs, place):
    recorder, found = _recorder(), {}
    # the recorder lists the whole tree behind each line, so that a tree for all of them would take longer
    recorder.launched(jobs, COMMAND, found, place / "expressions.json", 150)
    return found


def _parts(text):
    """Slots, number types and shapes of an operator, and the values of single elements."""
    pairs = [re.fullmatch(r"([^=]*)(?:=(.+))?", part).groups() for part in text.split()]
    return [kind for kind, _ in pairs], [float(value) if value else None for _, value in pairs]


def _equal(ours, real):
    if "slots" not in ours or ours["slots"].keys() != real["slots"].keys():
        return False
    for name, text in real["slots"].items():
        (kinds, values), (wanted, numbers) = _parts(ours["slots"][name]), _parts(text)
        if kinds != wanted:
            return False
        for value, number in zip(values, numbers, strict=True):
            if (value is None) != (number is None):
                return False
            if value is not None and not math.isclose(value, number, rel_tol=1e-4, abs_tol=1e-5):
                return False
    return True


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 10])
def test_operators_of_python_are_the_recorded_ones(tmp_path, every):
    recorder = _recorder()
    lines = (HERE / "cases.txt").read_text().partition("# indices")[0].splitlines()
    # lines that return a Parameter are left to the test of shares: whether it is copied is decided elsewhere
    chosen = [line for line in lines if "slots" in RECORDED.get(line, ()) and "self." not in line][::every]
    jobs = [job for job in recorder.jobs() if job[1] in chosen and not job[2]]
    ours = _ours(jobs, tmp_path)
    different = {line: ours[line] for line in ours if not _equal(ours[line], RECORDED[line])}
    assert len(ours) == len(chosen) > 130 / every
    assert not different


@pytest.mark.slow
def test_shares_of_equal_lines(tmp_path):
    recorder = _recorder()
    jobs = [job for job in recorder.jobs() if "slots" in RECORDED[recorder.named(*job[1:])]]
    ours = _ours(jobs, tmp_path)
    for title, gradient in (("plain", False), ("gradient", True)):
        names = [recorder.named(*job[1:]) for job in jobs if job[2] is gradient]
        equal = [name for name in names if _equal(ours[name], RECORDED[name])]
        print(title, len(equal), "of", len(names))
        assert len(equal) >= FLOORS[title] * len(names), sorted(set(names) - set(equal))
