"""Attributes of primitives, as IR text shows them, against those of real MindSpore 2.10."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ops.cases import CASES, Case, arrays
from ops.evaluator import abstract_of, operands_of

from dumpsim.codecs.irvalue import attr_text
from dumpsim.ops.printed import attributes
from dumpsim.ops.table import find

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "ops" / "primitives.json"
# the compiler, a gradient rule or the front end makes these, or it gives them names of its own
ELSEWHERE = {
    "Sub": ("input_names", "output_names"),  # by its class with names, by the operator of Python without
    "FillV2": ("input_names", "output_names"),  # by gradient rules, whose names are tuples
    "LpNorm": ("axis",),  # its class makes a list of it
    "Conv3D": ("stride", "dilation"),  # its class keeps what its caller wrote
}


@cache
def recorded() -> dict[str, dict[str, Any]]:
    return dict(json.loads(RECORDED.read_text("utf-8")))


@pytest.mark.parametrize("case", [case for case in CASES if case.id in recorded()["nodes"]], ids=lambda case: case.id)
def test_a_node_shows_the_attributes_that_mindspore_shows(case: Case) -> None:
    definition = find(case.op)
    operands = operands_of(case, arrays(case))
    missing = len(definition.operands) - len(operands)
    if missing and not definition.operands[0].startswith("*"):
        operands += definition.defaults[len(definition.defaults) - missing :]
    abstracts, attrs = [abstract_of(o) for o in operands], {**definition.attrs, **case.attrs}
    made = attributes(definition, abstracts, definition.infer(abstracts, attrs), attrs)
    ours = {name: attr_text(value) for name, value in made.items()}
    if case.op == "Cast":  # the kind is an attribute of the node
        ours["dst_type"] = recorded()["nodes"][case.id]["attrs"]["dst_type"]
    if definition.side_effect is not None and case.id != "BatchNorm.infer":  # only training writes
        ours[f"side_effect_{definition.side_effect}"] = "Bool(1)"
    ours.pop("dyn_input_sizes", None)  # of the graph: the recorder leaves it out as well
    node = recorded()["nodes"][case.id]
    for name in ELSEWHERE.get(case.op, ()):
        ours.pop(name, None)
        node["attrs"].pop(name, None)
    assert (definition.prim_func, ours) == (node["prim_func"], node["attrs"])


def _named() -> list[str]:
    """Primitives without a recorded node; those whose names are tuples are made by gradient rules."""
    shown = {case.op for case in CASES if case.id in recorded()["nodes"]}
    return sorted(
        name
        for name in recorded()["objects"].keys() - shown - {"Load"}  # the compiler makes Load
        if not isinstance(find(name).input_names, tuple) or not find(name).input_names
    )


@pytest.mark.parametrize("name", _named())
def test_a_primitive_has_the_names_that_mindspore_gives_it(name: str) -> None:
    definition, real = find(name), recorded()["objects"][name]
    assert definition.prim_func is real["prim_func"]
    for ours, kind in ((definition.input_names, "input_names"), (definition.output_names, "output_names")):
        assert ", ".join(ours) == ", ".join(real.get(kind, []))  # the vendor's Fmin has one name, "x1, x2"
