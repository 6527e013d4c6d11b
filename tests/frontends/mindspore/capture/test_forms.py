"""Kernel graphs and results of nets of one form of Python code each, compared with those of MindSpore 2.10.

Operators, operands, names, numbers, and the lines and columns of the script are compared. [2.10 observed]
"""

import json
import re
import sys
from pathlib import Path

import pytest

from dumpsim.codecs import irtext
from dumpsim.frontends import mindspore as ms

FOLDER = Path(__file__).parents[4] / "fixtures" / "frontends" / "mindspore" / "forms"
RECORDED = {kind: json.loads((FOLDER / f"{kind}.json").read_text("utf-8")) for kind in ("call", "gradient", "pynative")}
DIFFERENT = json.loads((FOLDER / "different.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def nets():
    """The recording's own module."""
    sys.path.insert(0, str(FOLDER))
    try:
        import nets
    finally:
        sys.path.remove(str(FOLDER))
    return nets


@pytest.fixture
def made(tmp_path, nets, monkeypatch, graph_mode):
    """Results of a form here, and the texts of its kernel graphs in the order of their ids."""
    monkeypatch.setitem(sys.modules, "mindspore", ms)

    def run(kind, form):
        if kind == "pynative":
            ms.set_context(mode=ms.PYNATIVE_MODE)
        space = {"__name__": "net", "__file__": str(tmp_path / "net.py")}
        results = nets.run(form, tmp_path / "net.py", ms, space, kind)
        graphs = [graph for executor in graph_mode.executors() for graph in executor.program.kernel_graphs]
        return results, {str(graph.graph_id): irtext.render(graph.doc) for graph in graphs}

    return run


def shape(value):
    """The nesting of a result; an error is one whatever its class."""
    if isinstance(value, list):
        return [shape(one) for one in value]
    return type(value)


def numbers(value):
    """The numbers of a result."""
    return [number for one in value for number in numbers(one)] if isinstance(value, list) else [value]


def split(line):
    """Number, label, operator with operands, name and lines of a node; copies of functions have the same labels."""
    node, _, places = line.partition(" [")
    head, _, call = node.rpartition(" = ")
    call, _, name = call.rpartition(" ")
    number, _, label = head.partition("(")
    return number, re.sub("_#.*|^equiv_[0-9]+_", "", label), call, name, places


def nodes(graphs):
    """What follows for each node, named by the graph and its own name: label, operator, operands and its lines.

    Operands are named, too: the numbers of nodes and parameters depend on what else there is.
    """
    found = {}
    for graph, lines in graphs.items():
        names = {number: name for number, _, _, name, _ in map(split, lines)}
        for _, label, call, name, places in map(split, lines):
            call = re.sub(r"%para\d+_(Parameter_#\d+|_#)?", "%", call)
            call = re.sub(r"%\d+", lambda match, names=names: names[match[0]], call)
            found[f"{graph} {name}"] = (f"{label} {call}", places)
    return found


def different(ours, theirs):
    """Names of the nodes that differ, of those of which only the lines differ, and graphs of another order."""
    order = [
        number
        for number in ours
        if [split(n)[3] for n in ours[number]] != [split(n)[3] for n in theirs.get(number, ())]
    ]
    ours, theirs = nodes(ours), nodes(theirs)
    unequal = [name for name in ours | theirs if ours.get(name) != theirs.get(name)]
    only_lines = [name for name in unequal if name in ours and name in theirs and ours[name][0] == theirs[name][0]]
    return {"nodes": sorted(set(unequal) - set(only_lines)), "lines": sorted(only_lines), "order": order}


@pytest.mark.parametrize(
    ("kind", "form"),
    [(kind, form) for kind, forms in RECORDED.items() for form in forms],
    ids=lambda part: " ".join(part.split()),
)
def test_graphs_and_results_are_those_of_the_vendor(kind, form, made, nets):
    """Results of calls and gradients, and the graphs of calls but what is in ``different.json``."""
    results, texts = made(kind, form)
    wanted = RECORDED[kind][form]
    if kind == "call":
        graphs = {number: nets.stripped(text) for number, text in texts.items()}
        known = DIFFERENT.get(form, {})
        assert different(graphs, wanted["graphs"]) == {"nodes": [], "lines": [], "order": [], **known.get("graphs", {})}
        if not known.get("first"):
            assert [nets.first_number(text) for text in texts.values()] == wanted["first"]
    assert shape(results) == shape(wanted["results"])
    for one, other in zip(numbers(results), numbers(wanted["results"]), strict=True):
        assert isinstance(other, str) or one == (pytest.approx(other, rel=1e-5) if other is not None else None)
