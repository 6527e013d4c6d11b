"""The sharding pass against the real compiler: fed with its stage before the pass, it gives its stage after it.

What is compared of each node: operator, operands, instance name, scope, attributes and the number in its name.
"""

import pytest
from graph.parallel.replay import compare, load

RATE = 0.99  # of nets that are equal in everything


def test_recorded_nets():
    nets = load("nets", "moving")
    chosen = dict(list(nets.items())[::12])
    equal = [name for name, net in chosen.items() if not compare(net)]
    assert len(equal) >= RATE * len(chosen), sorted(set(chosen) - set(equal))


@pytest.mark.slow
def test_all_recorded_nets():
    nets = load("nets", "moving")
    equal = [name for name, net in nets.items() if not compare(net)]
    assert len(equal) >= RATE * len(nets), sorted(set(nets) - set(equal))


def test_extremes_along_a_cut_axis():
    """One result is reduced: that whose user is found first from the network's result on, be it the places."""
    for name, net in load("extremes").items():
        assert not compare(net), name
