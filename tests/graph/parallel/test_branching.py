"""Networks with branches and loops, compiled by MindSpore 2.10 for a pretended cluster: their functions, node by node.

The nets are those of `branching.py`, and nets whose blocks give parts that do not fit together.
"""

import contextlib
import io
import json
import lzma
import re
from pathlib import Path

import pytest
from graph.parallel.stages import read
from graph.parallel.texts import texts_of

RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "mindspore_2_10" / "parallel" / "branches.json.xz"


def load():
    return json.loads(lzma.decompress(RECORDED.read_bytes()))


def rows_of(stage):
    """What is compared of each node: operator, kind of its instance name, strategy and operands."""
    for line in stage.lines:
        call = re.sub(r"^%\d+\[.*|^call .*", "call", line.call)
        operands = ["outer" if is_outer(text) else text for text in line.operands if not is_monad(text)]
        if call in ("call", "Switch"):  # functions have names of their own
            operands = []
        yield call, re.sub(r"\d{6,}", "", line.instance or ""), line.strategy, operands


def is_monad(text):
    return "Monad" in text or text.endswith("_u")


def is_outer(text):
    """Whether a function takes a value from outside: the vendor's parser makes some of them formal parameters."""
    return text.startswith("$(") or "ф" in text


def functions_of(text):
    return sorted([list(rows_of(stage)) for stage in read(text)], key=str)


def ours(net):
    with contextlib.redirect_stderr(io.StringIO()) as log:
        return functions_of(texts_of(net["script"])["end"]), "wrong parts" in log.getvalue()


def check(name, net):
    mine, differ = ours(net)
    assert not differ
    assert mine == functions_of(net["end"]), name


def test_recorded_nets():
    for name, net in list(load().items())[::6]:
        if name.startswith("net"):
            check(name, net)


@pytest.mark.slow
def test_all_recorded_nets():
    for name, net in load().items():
        if name.startswith("net"):
            check(name, net)


def kinds_of(functions):
    return [[row[0] for row in function if row[0] not in ("Depend", "UpdateState")] for function in functions]


def test_for_mismatched_layouts_only_redistributions_are_added():
    nets = {name: net for name, net in load().items() if not name.startswith("net")}
    added = 0
    for name, net in list(nets.items())[::3]:
        mine, differ = ours(net)
        mine, real = (sorted(kinds_of(found), key=root_first) for found in (mine, functions_of(net["end"])))
        assert len(mine) == len(real)
        for one, two in zip(mine, real, strict=True):
            rest = iter(one)
            assert all(kind in rest for kind in two), f"{name}: {two} is no part of {one}"
        more = sum(map(len, mine)) - sum(map(len, real))
        assert bool(more) == differ, name
        added += more
    assert added


def root_first(kinds):
    """Functions in an order that inserted nodes do not change."""
    names = "VirtualDataset", "ReLU", "Neg", "Switch"
    return next((at for at, name in enumerate(names) if any(name in kind for kind in kinds)), len(names))
