"""How many functions type inference specialises before those of a network, against the real wheel's numbers."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore._capture.numbering import Resolved

FOLDER = Path(__file__).parents[4] / "fixtures" / "mindspore_2_10" / "specialised"
NUMBERS = json.loads((FOLDER / "numbers.json").read_text())


def run(text, tmp_path):
    """Compile a network."""
    spec = importlib.util.spec_from_file_location("specialised_nets", FOLDER / "nets.py")
    nets = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(nets)
    path = tmp_path / "net.py"
    path.write_text(nets.source(text).replace("mindspore", "dumpsim.frontends.mindspore"))
    names = {"__name__": "net", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), names)
    x, y = (ms.Tensor(np.full((4, 4), value, np.float32)) for value in (0.3, 0.6))
    names["Net"]()(x, y, ms.Tensor(3, ms.int32))


@pytest.mark.parametrize("text", NUMBERS)
def test_the_root_takes_the_number_of_the_real_one(text, tmp_path, graph_mode, monkeypatch):
    firsts: list[int | None] = []
    ids = graph_mode.ids
    functions = type(ids).functions

    def noted(self, count):
        firsts.append(functions(self, count))
        return firsts[-1]

    monkeypatch.setattr(type(ids), "functions", noted)
    before = ids.specialised
    run(text, tmp_path)
    assert firsts[0] - before == NUMBERS[text]


@pytest.mark.parametrize(("before", "calls", "overloads"), [(0, 0, 1), (0, 3, 0), (2, 3, 0), (2, 1, 4), (1, 0, 0)])
def test_statements_evaluated_again_take_the_numbers_of_their_calls_again(before, calls, overloads):
    resolved = Resolved()
    resolved.note("unpack_call! " * before)
    resolved.note("unpack_call@", constants=(0,))
    mark = resolved.mark()
    resolved.note("unpack_call! " * calls)
    for length in range(overloads):
        resolved.note("unpack_call@", constants=(length + 1,))
    once = resolved.taken(set())
    resolved.again(mark)
    assert once == before + 1 + calls + overloads
    assert resolved.taken(set()) == once + calls + overloads
