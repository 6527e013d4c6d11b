"""The operators that an expression becomes and their dumps, compared with real MindSpore 2.10 on the CPU."""

import json
import math
import re
import sys
from pathlib import Path

import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

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


def _ours(jobs, folder):
    recorder, found = _recorder(), {}
    # a folder for each call: the recorder lists the whole folder after each line
    recorder.launched(jobs, COMMAND, found, folder / "expressions.json", 150)
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
    # lines that return a Parameter are compared in test_shares_of_equal_lines: they may or may not copy it
    chosen = [line for line in lines if "slots" in RECORDED.get(line, ()) and "self." not in line][::every]
    jobs = [job for job in recorder.jobs() if job[1] in chosen and not job[2]]
    ours = _ours(jobs, tmp_path)
    different = {line: ours[line] for line in ours if not _equal(ours[line], RECORDED[line])}
    assert len(ours) == len(chosen) > 130 / every
    assert not different


def _orders(jobs, folder, monkeypatch):
    """The operators that each line becomes, in the order in which they run; in this process."""
    recorder = _recorder()
    monkeypatch.setitem(sys.modules, "mindspore", ms)
    monkeypatch.setitem(sys.modules, "record", recorder)
    operands = [recorder.operand(name) for name in recorder.NAMES.split()]
    found = {}
    for number, line, gradient in jobs:
        path, space = folder / f"line{number}.py", {"__name__": f"line{number}"}
        body = line.replace("; ", "\n        ") if "return " in line else f"return {line}"
        path.write_text(recorder.NET.format(names=", ".join(recorder.NAMES.split()), body=body))
        with use(RankContext.from_environment()):
            session = Session(RunSettings(quiet=True), environment={})
            Session.use(session)
            ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
            session.configure(target="CPU")
            exec(compile(path.read_text(), str(path), "exec"), space)
            try:
                space["Grad" if gradient else "Net"]()(*operands)
                graphs = [graph for one in session.executors() for graph in one.program.kernel_graphs]
                names = [node.full_name for graph in graphs for node in graph.order]
            except Exception as error:
                names = [repr(error)]
        found[recorder.named(line, gradient)] = [_without_number(name) for name in names]
    return found


def _without_number(name):
    """Remove the number from the name of an operator: it depends on what else was compiled."""
    return re.sub(r"-op\d+$", "", name.removeprefix("Default/"))


@pytest.mark.parametrize("part", range(4))
def test_operators_run_in_the_recorded_order(tmp_path, monkeypatch, part):
    recorder, listed = _recorder(), set((HERE / "different.txt").read_text("utf-8").splitlines())
    jobs = [job for job in recorder.jobs() if "order" in RECORDED.get(recorder.named(*job[1:]), ())][part::4]
    found = _orders(jobs, tmp_path, monkeypatch)
    wanted = {name: [_without_number(one) for one in RECORDED[name]["order"]] for name in found}
    different = {name: (found[name], wanted[name]) for name in found if found[name] != wanted[name]}
    assert {name: names for name, names in different.items() if name not in listed} == {}


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
