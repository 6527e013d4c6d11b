"""Each kind of difference is named by its earliest cause."""

import json

import pytest
from corpus import compare, pack


@pytest.fixture
def net():
    return pack.load("h_shared")


def changed(net, old, new, part=None):
    """The net's tree with a text replaced, everywhere or in one of its parts."""
    tree = json.loads(json.dumps(net["tree"]))
    for key in [part] if part else list(tree):
        tree[key] = json.loads(json.dumps(tree[key]).replace(old, new))
    return tree


def causes(net, tree):
    return list(compare.compare(net, tree).causes)


def test_a_missing_operator(net):
    tree = changed(net, "Default/fc-Dense/BiasAdd-op0", "Default/fc-Dense/Add-op9")
    result = compare.compare(net, tree)
    assert list(result.causes) == ["operators"]
    assert result.causes["operators"] == "-BiasAdd +Add"
    assert result.counts["orders"] == (0, 1)


def test_a_scope(net):
    assert causes(net, changed(net, "Default/Tanh", "Default/one-Block/Tanh")) == ["scope"]


def test_a_number_in_the_order(net):
    lines = net["tree"]["orders"]["ms_execution_order_graph_0.csv"]
    one = next(line for line in lines if line.endswith("-op0"))
    assert causes(net, changed(net, one, f"{one}7", "orders")) == ["operator number"]


def test_the_order(net):
    tree = changed(net, " ", " ")
    tree["orders"]["ms_execution_order_graph_0.csv"][1:3] = reversed(
        tree["orders"]["ms_execution_order_graph_0.csv"][1:3]
    )
    assert causes(net, tree) == ["order"]


def test_a_parameter_file(net):
    tree = changed(net, " ", " ")
    tree["npy"] = [record for record in tree["npy"] if "/Parameter." not in record[0]]
    assert causes(net, tree) == ["missing Parameter file"]


def test_a_number_in_file_names(net):
    assert causes(net, changed(net, "Tanh-op0", "Tanh-op1", "npy")) == ["file number"]


def test_an_input_file(net):
    tree = changed(net, " ", " ")
    tree["npy"] = [record for record in tree["npy"] if not (".input.1." in record[0] and "Tanh" not in record[0])]
    assert causes(net, tree) == ["missing input file"]


def test_graph_ids():
    net = pack.load("h_while")
    tree = changed(net, " ", " ")
    names = [f"ms_execution_order_graph_{graph}.csv" for graph in (0, 2)]
    orders = tree["orders"]
    orders[names[0]], orders[names[1]] = orders[names[1]], orders[names[0]]
    result = compare.compare(net, tree)
    assert list(result.causes) == ["graph ids"]
    assert result.counts["graphs"] == (6, 8)


def test_the_order_of_time(net):
    tree = changed(net, " ", " ")
    second = [
        at for at, record in enumerate(tree["npy"]) if record[0].startswith("0/1/") and "Parameter" not in record[0]
    ]
    moved = tree["npy"].pop(second[0])
    tree["npy"].insert(second[-1], moved)
    result = compare.compare(net, tree)
    assert list(result.causes) == ["time order"]
    assert result.counts["time"] == (0, 1)


def test_values_and_types(net):
    tree = changed(net, " ", " ")
    tree["npy"][5][3][1] += 0.1
    tree["npy"][8][2] = [7]
    result = compare.compare(net, tree)
    assert list(result.causes) == ["values"]
    good, total = result.counts["values"]
    assert total - good == 2


def test_an_error(net):
    result = compare.compare(net, {"refused": "Traceback\nValueError: no such thing\nmore"})
    assert result.causes == {"refused": "ValueError: no such thing"}
    assert result.counts["names"][0] == 0
