"""What stands between a weight and its users: a gather or a mirror, and the sum of accumulated gradients."""

from types import SimpleNamespace

import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.cutting import StrategyError
from dumpsim.core.dtype import dtype
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.graph import Node, Parameter, text_of
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.weights import Weights

SHAPE = (8, 16)  # 512 bytes
WHOLE = TensorLayout((4,), (-1, -1), SHAPE)
ROWS = TensorLayout((2, 2), (1, -1), SHAPE)  # each half on two of four ranks
CUT = TensorLayout((2, 2), (1, 0), SHAPE)  # a part for each rank
ODD = TensorLayout((4,), (-1, -1), (6, 16))
KIND = TensorType(dtype=dtype("float32"), shape=SHAPE)
INSERT = SimpleNamespace(
    optimizer_gather=lambda value, ranks, name, node, into: ("gather", value.name, ranks, name, into and into.name),
    mirror=lambda value, ranks, name, node, into: ("mirror", value.name, ranks, name, into and into.name),
    assign_add=lambda value, into, node: ("add", value, into.name),
)


def weight(name, shape=SHAPE):
    return Parameter(name=name, abstract=TensorType(dtype=dtype("float32"), shape=shape), is_weight=True)


def parts(accumulators=(), *, is_trained=True, **settings):
    known = Settings(device_num=4, rank=1, **settings)
    return Weights(known, INSERT, {name: weight(f"acc.{name}") for name in accumulators}, is_trained=is_trained)


FURTHER = {"enable_parallel_optimizer": True, "optimizer_threshold": 512}
ALL, PAIR = (0, 1, 2, 3), (0, 1)


@pytest.mark.parametrize(
    ("layout", "settings", "found"),
    [
        (WHOLE, {}, ("mirror", ALL)), (ROWS, {}, ("mirror", PAIR)), (CUT, {}, None),
        (WHOLE, {"is_trained": False}, None), (WHOLE, {"frozen": frozenset({"w"})}, None),
        (WHOLE, {"frozen": frozenset({"v"})}, ("mirror", ALL)),
        # the parallel optimizer cuts what is large enough and can be divided by the ranks that have the same part
        (WHOLE, FURTHER, ("gather", ALL)), (ROWS, FURTHER, ("gather", PAIR)), (CUT, FURTHER, None),
        (WHOLE, {**FURTHER, "optimizer_threshold": 513}, ("mirror", ALL)),
        (WHOLE, {**FURTHER, "alone": frozenset({"w"})}, ("mirror", ALL)), (ODD, FURTHER, ("mirror", ALL)),
        (WHOLE, {**FURTHER, "alone": frozenset({"v"})}, ("gather", ALL)),
    ],
)  # fmt: skip
def test_a_weight_is_gathered_or_mirrored_where_ranks_have_the_same_part(layout, settings, found):
    one, node = weight("w", layout.shape), Node(op_type="MatMul", operands=[], abstract=KIND)
    for accumulators in ((), ("w",), ("v",)):
        known = parts(accumulators, **settings)
        into = "acc.w" if accumulators == ("w",) else None
        value = known.brought(one, one, layout, node)
        expected = one if found is None else (found[0], "w", found[1], "w", into)
        is_added = into is not None and settings.get("is_trained", True) and "w" not in settings.get("frozen", ())
        assert value == (("add", expected, into) if is_added else expected)
        if found is not None:
            assert ("mirror_user_id" in text_of(node).attrs) is (found[0] == "mirror")


def test_users_share_a_mirror_unless_they_are_in_another_block():
    known, node = parts(), Node(op_type="MatMul", operands=[], abstract=KIND)
    one, other = weight("w"), weight("v")
    first = known.brought(one, one, WHOLE, node)
    assert known.brought(one, one, WHOLE, node) is first
    assert known.brought(other, other, WHOLE, node)[1] == "v"
    with known.inside():
        inner = known.brought(other, other, WHOLE, node)
        third = known.brought(weight("u"), weight("u"), WHOLE, node)
        assert known.brought(weight("u"), weight("u"), WHOLE, node) is third
    assert known.brought(other, other, WHOLE, node) is inner  # it was there before
    assert known.brought(weight("u"), weight("u"), WHOLE, node) is not third


def test_one_layout_for_all_users():
    known, one = parts(), weight("w")
    known.cut(one, WHOLE)
    known.cut(one, WHOLE)
    with pytest.raises(StrategyError, match="The parameter 'w' is cut in two ways by its users"):
        known.cut(one, ROWS)
    assert known.layouts == {"w": WHOLE}


@pytest.mark.parametrize("layout", [WHOLE, ROWS])
def test_the_state_of_the_optimizer_is_cut_like_its_weight_and_accumulated_gradients_are_not(layout):
    clones = frozenset({("moment.w", "w"), ("acc.w", "w"), ("acc.v", "v")})
    for accumulators in ((), ("w",), ("v", "w")):
        known, one = parts(accumulators, clones=clones, **FURTHER), weight("w")
        known.cut(one, layout)
        assert {known.layout_of(name) for name in ("w", "moment.w", "acc.w")} == {layout}
        known.brought(one, one, layout, Node(op_type="MatMul", operands=[], abstract=KIND))
        rows = layout.slice_shape[0] // len(layout.replicas(1))
        assert {known.layout_of(name).slice_shape for name in ("w", "moment.w")} == {(rows, 16)}
        assert (known.layout_of("acc.w") == layout) is ("w" in accumulators)
        assert known.layout_of("acc.v") is known.layout_of("other") is None
