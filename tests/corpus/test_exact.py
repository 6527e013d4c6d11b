"""Recorded nets whose whole trees, orders and names the emulation gives: one for each rule of names."""

import pytest
from corpus import pack, rates

NETS = {
    "h_operators": "+, ops.add and what the library adds are one function in the scope of its first caller",
    "h_compare": "so are > == !=; ops.less lies in a graph of the default scope",
    "r1_039_jitstep": "numbers of the pieces of one expansion begin at its results",
    "r1_196_eval": "numbers of AddN, which the backend makes anew, follow the graph",
    "h_jitgrad": "a record holds the last step of a jit function",
}


@pytest.mark.parametrize("name", NETS)
def test_a_net_is_exact(name):
    net = pack.load(name)
    (result,) = rates.measure({name: net}).values()
    assert not result.causes
    assert all(equal == total for measure, (equal, total) in result.counts.items() if measure != "time")


def test_numbers_go_on_in_the_graphs_that_pynative_makes_of_a_jit_function():
    name = "h_pynative"  # the names of its Parameter files are debug ids of the vendor
    (result,) = rates.measure({name: pack.load(name)}).values()
    assert result.counts["orders"] == (4, 4)


def test_equal_primitives_of_a_jit_function_in_pynative_share_the_default_scope():
    (result,) = rates.measure({"r1_038_pynative": pack.load("r1_038_pynative")}).values()
    assert result.counts["orders"] == (4, 4)
