"""Layouts of tensors over devices. [spec parallel 2.1]"""

import random

import numpy as np
import pytest
from graph.parallel.test_redistribution import layout, strategy

from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.parallel.group import group_name, hashed


@pytest.mark.parametrize("seed", range(20))
def test_regions_cover_the_tensor_once_for_each_replica(seed):
    chosen = random.Random(seed)
    devices = chosen.choice([2, 4, 8, 16])
    shape = tuple(chosen.choice([2, 4, 8, 16]) for _ in range(chosen.randint(1, 4)))
    one = layout(shape, strategy(chosen, shape, devices), devices)
    seen = np.zeros(shape, int)
    for rank in range(devices):
        seen[one.region(rank)] += 1
    assert (seen == len(one.replicas(0))).all()
    for rank in range(devices):
        assert all(one.region(other) == one.region(rank) for other in one.replicas(rank))


def test_repeated_calculation_is_on_the_right():
    relu = layout((16, 32), (2, 1), 4)
    assert relu == TensorLayout((2, 2), (1, -1), (16, 32))
    assert relu.region(0) == relu.region(1) != relu.region(2)
    assert relu.group([1], 0) == (0, 2)


def test_several_dimensions_cut_one_axis():
    one = TensorLayout((2, 2, 2), ((2, 0), -1), (16, 4))
    assert one.slice_shape == (4, 4)
    assert [one.region(rank)[0].start for rank in range(8)] == [0, 4, 0, 4, 8, 12, 8, 12]
    assert one.replicas(1) == (1, 3)


def test_names_of_groups():
    known = {
        "0-1": 5004544844489628105, "1-3": 4190060298023907007, "0-2": 5208665662337742843,
        "0-1-2-3": 6301172352641561019, "0-4": 16453000547691086251, "0-2-4-6": 5226697808808137312,
    }  # fmt: skip
    assert {ranks: hashed(ranks) for ranks in known} == known
    assert group_name((0, 2, 4, 6), 8) == "4-5226697808808137312"
    assert group_name((0, 1), 2, "CPU") == "mccl_world_group"
