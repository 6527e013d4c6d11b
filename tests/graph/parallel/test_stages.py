"""The sharding pass against the real compiler: fed with its stage before the pass, it gives its stage after it.

What is compared of each node: operator, operands, instance name, scope, attributes and the number in its name.
"""

import pytest
from graph.parallel.replay import compare, load

PARTS = 12


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
def test_recorded_nets(part):
    """Each of the 414 nets, in parts."""
    nets = dict(list(load("nets", "moving").items())[part::PARTS])
    assert len(nets) >= 34
    different = {name: problem for name, net in nets.items() if (problem := compare(net))}
    assert not different


def test_extremes_along_a_cut_axis():
    """One result is reduced: that whose user is found first from the network's result on, be it the places."""
    for name, net in load("extremes").items():
        assert not compare(net), name
