"""Recorded nets whose whole trees, orders and names the emulation gives: one for each rule of names."""

import pytest
from corpus import pack, rates

NETS = {
    "h_operators": "+, ops.add and what the library adds are one function in the scope of its first caller",
    "h_compare": "so are > == !=; ops.less lies in a graph of the default scope",
    "r1_039_jitstep": "numbers of the pieces of one expansion begin at its results",
    "r1_196_eval": "numbers of AddN, which the backend makes anew, follow the graph",
    "r1_056_eval": "a sum that is a summand of another one is merged into it",
    "r1_135_train": "ExpandDims of ones is no constant, AdamWeightDecay has ten operands and its results go nowhere",
    "h_jitgrad": "a record holds the last step of a jit function",
}


@pytest.mark.parametrize("name", NETS)
def test_a_net_is_exact(name):
    net = pack.load(name)
    (result,) = rates.measure({name: net}).values()
    assert not result.causes
    assert all(equal == total for measure, (equal, total) in result.counts.items() if measure != "time")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("h_pynative", "numbers in IR text go on in the graphs that PYNATIVE makes of a jit function"),
        ("r1_038_pynative", "equal primitives of a jit function share the default scope"),
        ("r1_118_pynative", "its merged forward graph is differentiated, which gives values out from its result on"),
        ("r1_055_train", "a list of learning rates is a cell of the vendor's name"),
    ],
)
def test_execution_orders_are_exact(name, rule):
    # names of Parameter files of backward graphs are debug ids of the vendor; memory that is not written has any value
    (result,) = rates.measure({name: pack.load(name)}).values()
    equal, total = result.counts["orders"]
    assert equal == total, rule
