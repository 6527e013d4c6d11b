"""Constants and nodes created by a builder."""

import numpy as np

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant


def test_an_array_is_a_constant_tensor():
    found = constant(np.ones((2, 3), np.float16))
    assert found.abstract == TensorType(dtype=dtype("float16"), shape=(2, 3), constant=True)
    assert found.abstract.constant is True
