"""Func graphs, their order and their kernel graphs, from the stages that real MindSpore printed."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from funcgraphs import read_stage

from dumpsim.graph.graph import Constant, Node, Parameter
from dumpsim.graph.mindspore.funcgraph import called_by, function_of, functions_of
from dumpsim.graph.mindspore.partition import function_order, listed_nodes, segments
from dumpsim.graph.mindspore.specialise import specialised

RECORDS = Path(__file__).parents[3] / "fixtures" / "mindspore_2_10" / "func_graphs"
NETS = sorted(path.stem for path in RECORDS.glob("*.json"))
VIRTUAL = {"MakeTuple", "TupleGetItem", "Depend", "UpdateState", "Load"}


def recorded(net):
    return json.loads((RECORDS / f"{net}.json").read_text(encoding="utf-8"))


def operators(names):
    """Operators of a kernel graph by what they were before the back end expanded and converted them."""
    found = set()
    for name in names:
        expanded = re.match(r"Expand/_(\w+)/", name)
        found.add(expanded[1] if expanded else re.sub(r"-op\d+$", "", name.split("/")[-1]))
    return found - {"Cast"}


@pytest.mark.parametrize("net", NETS)
def test_kernel_graphs_and_their_ids_are_those_of_the_vendor(net):
    record = recorded(net)
    found = []
    for compiled in record["compiles"]:
        root, _ = read_stage("\n".join(compiled["lifted"]))
        for function in function_order(root):
            for segment in segments(function):
                if segment.cut is None:
                    found.append({node.op_type for node in segment.nodes} - VIRTUAL - {"Cast"})
    assert found == [operators(order) for order in record["orders"].values()]


# in the text of h_forif, values that functions use of others around them have one name
@pytest.mark.parametrize("net", [net for net in NETS if net != "h_forif"])
def test_functions_are_specialised_in_the_order_of_their_numbers(net):
    for compiled in recorded(net)["compiles"]:
        root, functions = read_stage("\n".join(compiled["closures"]))
        numbers = [function.number for function in specialised(root)]
        assert numbers == sorted(numbers)
        assert set(numbers) == {function.number for function in functions.values()}


def test_functions_come_in_the_order_of_their_names_as_text():
    root, functions = read_stage("\n".join(recorded("h_gradwhile")["compiles"][0]["lifted"]))
    names = [function.name for function in function_order(root)]
    assert names[0] == root.name
    assert names[1:] == sorted(names[1:], key=str.encode)
    assert set(names) <= set(functions)


def test_a_call_knows_the_functions_that_it_may_run():
    root, _ = read_stage("\n".join(recorded("h_while")["compiles"][0]["lifted"]))
    signs = []
    for function in functions_of(root):
        for node in listed_nodes(function):
            if node.op_type == "Call":
                signs.append("".join(re.sub(r"[^✓✗↵↻↓]", "", f.label)[:1] for f in called_by(node)))
    assert "↻↓" in signs
    assert "↵" in signs


def test_an_operand_that_is_not_a_function_has_no_function():
    parameter = Parameter(name="x", abstract=None)
    assert function_of(parameter) is None
    assert function_of(Constant(value=3, abstract=None)) is None
    assert function_of(Node(op_type="Add", operands=[], abstract=None)) is None


@pytest.mark.parametrize("first", [0, 1])
def test_items_follow_their_tuple_and_a_depend_on_a_parameter_what_it_waits_for(first):
    """[spec vendor 2.3]: before other users of the tuple."""
    x = Parameter(name="x", abstract=None)

    def node(op_type, *operands):
        return Node(op_type=op_type, operands=list(operands), abstract=None)

    parts = node("Split", x)
    items = [node("TupleGetItem", parts, Constant(value=at, abstract=None)) for at in range(2)]
    tied = node("Depend", x, items[0])
    ends = [node("Neg", node("Exp", items[0])), items[1], tied]
    result = node("Return", node("MakeTuple", *ends[first:], *ends[:first]))
    order = listed_nodes(SimpleNamespace(result=result))
    untied = [one for one in order if one is not tied]
    at = untied.index(parts)
    assert {id(one) for one in untied[at + 1 : at + 3]} == {id(item) for item in items}
    assert order.index(tied) == order.index(items[0]) + 1
