"""Operators that GE's library splits into parts."""

from types import SimpleNamespace

import pytest

from dumpsim.core.abstract import ScalarType, TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.ge.split import _is_masked, _is_taken_apart, _trains


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


X = TensorType(dtype=dtype("float32"), shape=(2, 3))
UNKNOWN = TensorType(dtype=dtype("float32"), shape=(2, -1))


@pytest.mark.parametrize(
    ("kind", "settings", "takers", "masked"),
    [
        # who takes the mask, and in which place
        (X, "ccc", [("DropoutGrad", 1)], True), (X, "ccc", [("DropoutGrad", 1), ("DropoutGrad", 1)], True),
        (X, "ccc", [], True), (X, "ccc", [("DropoutGrad", 0)], False), (X, "ccc", [("Mul", 1)], False),
        (X, "ccc", [("DropoutGrad", 1), ("Mul", 1)], False), (X, "ccc", [("Mul", 1), ("DropoutGrad", 1)], False),
        (X, "pcc", [("DropoutGrad", 1)], False), (X, "cpc", [("DropoutGrad", 1)], False),
        (X, "ccp", [("DropoutGrad", 1)], False), (X, "", [("DropoutGrad", 1)], True),
        (UNKNOWN, "ccc", [("DropoutGrad", 1)], False),
        (ScalarType(dtype=dtype("float32")), "ccc", [("DropoutGrad", 1)], False),
    ],
)  # fmt: skip
def test_a_dropout_has_a_mask_of_its_own_where_gradients_alone_take_it(kind, settings, takers, masked):
    x = SimpleNamespace(abstract=kind)
    node = SimpleNamespace(operands=[x, *(constant(0.5) if one == "c" else x for one in settings)])
    result, mask = (SimpleNamespace(op_type="TupleGetItem", operands=[node, constant(at)]) for at in (0, 1))
    users = {id(node): [result, mask], id(result): [SimpleNamespace(op_type="Mul", operands=[result, x])]}
    users[id(mask)] = [
        SimpleNamespace(op_type=op_type, operands=[x, mask] if place else [mask, x]) for op_type, place in takers
    ]
    assert _is_masked(node, users) is masked
    users[id(node)].append(SimpleNamespace(op_type="MakeTuple", operands=[node]))
    assert not _is_masked(node, users)
