"""The sharding pass against the real compiler: fed with its stage before the pass, it gives its stage after it.

What is compared of each node: operator, operands, instance name, scope, attributes and the number in its name.
"""

import pytest
from graph.parallel.replay import PARTS, compare, load

RATE = 0.99  # of nets that are equal in everything


def test_recorded_nets():
    nets = load()
    chosen = dict(list(nets.items())[::10])
    equal = [name for name, net in chosen.items() if not compare(net)]
    assert len(equal) >= RATE * len(chosen), sorted(set(chosen) - set(equal))


@pytest.mark.slow
def test_all_recorded_nets():
    nets = load()
    equal = [name for name, net in nets.items() if not compare(net)]
    assert len(equal) >= RATE * len(nets), sorted(set(nets) - set(equal))
    alike = [name for name, net in nets.items() if not compare(net, PARTS[:2])]
    assert len(alike) >= 0.99 * len(nets), sorted(set(nets) - set(alike))
