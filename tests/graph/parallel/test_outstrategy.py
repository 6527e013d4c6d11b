"""Products whose output the script cuts further: parts of the sum, one for each rank. [spec parallel 2.4]"""

import numpy as np
import pytest

from dumpsim.core.cutting import Operator, StrategyError, layouts_of
from dumpsim.core.cuttingrules import scheme_of
from dumpsim.graph.parallel.plan import _with_output


def product(shapes, strategy, devices, op_type="MatMul"):
    out = (shapes[0][0], shapes[1][1])
    return Operator(
        op_type=op_type, shapes=shapes, outputs=(out,), constants={}, attrs={}, strategy=strategy, devices=devices
    )


@pytest.mark.parametrize(
    ("shapes", "strategy", "devices", "wanted"),
    [
        (((8, 4), (4, 6)), ((1, 2), (2, 1)), 2, (2, 1)),
        (((8, 4), (4, 6)), ((2, 2), (2, 1)), 4, (4, 1)),
        (((8, 4), (4, 6)), ((2, 2), (2, 3)), 12, (4, 3)),
        (((12, 8), (8, 6)), ((3, 4), (4, 2)), 24, (12, 2)),
    ],
)
def test_every_rank_keeps_its_part_of_the_sum(shapes, strategy, devices, wanted):
    """On data: the rows of the sum over the group, by the rank's place in it, are the rank's part of the product."""
    op = product(shapes, strategy, devices)
    scheme = _with_output(op, scheme_of(op), (wanted,))
    x, y = (np.arange(np.prod(shape)).reshape(shape) % 7 - 3.0 for shape in shapes)
    made = [layouts_of(op, scheme, rank) for rank in range(devices)]
    own = [x[one.inputs[0].region(rank)] @ y[one.inputs[1].region(rank)] for rank, one in enumerate(made)]
    assert scheme.reduction.kind == "scatter"
    for rank, layouts in enumerate(made):
        assert layouts.outputs[0].cuts == wanted
        total = sum(own[other] for other in layouts.group)
        part = np.split(total, len(layouts.group))[layouts.group.index(rank)]
        np.testing.assert_array_equal(part, (x @ y)[layouts.outputs[0].region(rank)])


@pytest.mark.parametrize(
    ("shapes", "strategy", "devices", "plain"),
    [
        (((8, 4), (4, 6)), ((1, 2), (2, 1)), 2, (1, 1)),
        (((8, 4), (4, 6)), ((2, 2), (2, 3)), 12, (2, 3)),
        (((8, 4), (4, 6)), ((4, 1), (1, 1)), 4, (4, 1)),
    ],
)
def test_the_default_output_strategy_changes_nothing(shapes, strategy, devices, plain):
    op = product(shapes, strategy, devices)
    scheme = scheme_of(op)
    assert _with_output(op, scheme, (plain,)) == scheme
    assert layouts_of(op, scheme, 0).outputs[0].cuts == plain or plain == (1, 1)


@pytest.mark.parametrize(
    ("op_type", "strategy", "wanted"),
    [
        ("MatMul", ((2, 2), (2, 1)), (2, 2)),  # columns cannot take the parts of the sum
        ("MatMul", ((2, 2), (2, 1)), (3, 1)),
        ("MatMul", ((2, 2), (2, 1)), (8, 1)),
        ("MatMul", ((2, 2), (2, 1)), (2,)),
        ("MatMul", ((2, 2), (2, 2)), (4, 1)),  # nor can columns be brought together
        ("MatMul", ((4, 1), (1, 1)), (2, 1)),  # no sum
        ("MatMul", ((2, 4), (4, 1)), (6, 1)),  # times, not plus
    ],
)
def test_other_outputs_are_refused(op_type, strategy, wanted):
    op = product(((8, 4), (4, 6)), strategy, 8, op_type)
    with pytest.raises(StrategyError, match="the output cannot be cut into"):
        _with_output(op, scheme_of(op), (wanted,))
