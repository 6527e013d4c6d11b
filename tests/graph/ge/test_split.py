"""Operators that GE's library splits into parts."""

from types import SimpleNamespace

import pytest

from dumpsim.core.abstract import ScalarType, TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.ge.split import _is_taken_apart, _trains


def norm(training, data_format, shape=(2, 3, 4, 4), abstract=None):
    x = SimpleNamespace(abstract=abstract or TensorType(dtype=dtype("float32"), shape=shape))
    return SimpleNamespace(operands=[x, constant(training), constant(data_format), x])


@pytest.mark.parametrize(("node", "parts"), [
    (norm(True, 0), True), (norm(False, 0), False), (norm(True, 1), False), (norm(True, 0, (2, 3)), False),
    (norm(True, 0, (2, 3, 4, 4, 4)), False), (norm(True, 0, abstract=ScalarType(dtype=dtype("float32"))), False),
])  # fmt: skip
def test_training_normalisation_of_nchw_images(node, parts):
    assert _trains(node, 1, 2) is parts
    assert not _trains(node, 3, 2)  # not known when the graph is compiled


@pytest.mark.parametrize(("types", "apart"), [
    (["TupleGetItem", "TupleGetItem", "UpdateState"], True), ([], True), (["TupleGetItem", "MakeTuple"], False),
    (["Return"], False),
])  # fmt: skip
def test_outputs_that_are_taken_one_by_one(types, apart):
    node = SimpleNamespace()
    assert _is_taken_apart(node, {id(node): [SimpleNamespace(op_type=kind) for kind in types]}) is apart
    assert _is_taken_apart(node, {}) is True
