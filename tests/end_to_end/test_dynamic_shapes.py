"""Shapes that values decide, in the files of a dump: the shapes are those that MindSpore 2.10 wrote on the CPU."""

import re

import numpy as np
import pytest
from inprocess import dump

from dumpsim.frontends.mindspore import Tensor, int32, nn, ops

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 10
MASK = np.arange(12).reshape(3, 4) % 5 < 2  # 6 of 12
SPARSE = (np.arange(12).reshape(3, 4) % 3 < 1).astype(np.float32)  # 4 of 12
REPEATED = np.array([0, 2, 0, 2], np.int32)


class Selected(nn.Cell):
    def construct(self, x, mask):
        s = ops.masked_select(x, mask)
        q = ops.exp(ops.reshape(s, (-1, 1)))
        stacked = ops.stack((s, s), 1)
        tiled = ops.tile(s, (3,))
        return (
            ops.exp(s) + 1,
            ops.reduce_max(ops.concat((q, q), 1), 0),
            ops.cast(ops.nonzero(s > 0.3), int32) * 3,
            stacked,
            s + tiled[:1],
            ops.reduce_mean(s),
            ops.softmax(s),
        )


class Found(nn.Cell):
    def construct(self, x, sparse, repeated):
        places = ops.nonzero(sparse)
        values, _ = ops.unique(repeated)
        rows = ops.gather(x, values, 0)
        table = ops.expand_dims(values, 0) * ops.expand_dims(values, 1)
        return ops.reduce_sum(ops.relu(ops.gather_nd(x, places)) * 2), ops.reduce_sum(rows, 1), table, values + 1


SELECTED = """
    MaskedSelect i0 3,4  i1 3,4  o0 12
    Reshape i0 6  o0 6
    Exp i0 6  o0 6  o0 6,1
    Add i0 6  i1 -  i1 1  o0 6
    Concat i0 6,1  i1 6,1  i2 -  o0 6,2
    ReduceMax i0 6,2  i1 1  i2 -  o0 2
    Greater i0 6  i1 -  o0 6
    NonZero i0 6  o0 6,1
    Cast i0 4,1  o0 4,1
    Mul i0 4,1  i1 -  o0 4,1
    Stack i0 6  i1 6  o0 6,2
    Tile i0 6  i1 1  o0 18
    StridedSlice i0 18  o0 1
    ReduceMean i0 6  i2 -  o0 -
    Softmax i0 6  i1 1  o0 6
"""
FOUND = """
    NonZero i0 3,4  o0 12,2
    GatherNd i0 3,4  i1 4,2  o0 4
    ReLU i0 4  o0 4
    Unique i0 4  o0 4  o1 4
    Gather i0 3,4  i1 2  i2 -  i3 -  o0 2,4
    ExpandDims i0 2  o0 2
    ReduceSum i0 4  i0 2,4  i1 1  i2 -  i3 -  o0 -  o0 2
    Mul i0 2  i0 4  i1 -  i1 2  o0 2,2  o0 4
    Add i0 2  i1 -  o0 2
"""


def expected(text):
    """The shapes of each operator type's tensors."""
    lines = (line.split(maxsplit=1) for line in text.split("\n") if line.strip())
    return {op: sorted(re.findall(r"(\w\d) (\S+)", rest)) for op, rest in lines}


def found(left, wanted):
    """The shapes of the tensors on disk, of the operators and slots of `wanted`, and all values by file."""
    shapes, values = {}, {}
    for path in left.files("*.npy"):
        part = path.name.split(".")
        slot = part[5][0] + part[6]
        array = np.load(path)
        values[part[1].rsplit("_", 1)[-1], slot] = array
        if part[0] in wanted and any(slot == name for name, _ in wanted[part[0]]):
            shapes.setdefault(part[0], set()).add((slot, ",".join(map(str, array.shape)) or "-"))
    return {op: sorted(each) for op, each in shapes.items()}, values


@pytest.mark.parametrize(("net", "inputs", "text"), [
    (Selected, (X, MASK), SELECTED), (Found, (X, SPARSE, REPEATED), FOUND),
])  # fmt: skip
def test_the_producer_shows_the_largest_shape_and_its_readers_the_true_one(tmp_path, monkeypatch, net, inputs, text):
    left = dump(
        tmp_path, monkeypatch, "CPU", lambda: net()(*map(Tensor, inputs)),
        settings={"mindspore": "2.10"}, iteration="0",
    )  # fmt: skip
    assert left.error is None
    wanted = expected(text)
    shapes, values = found(left, wanted)
    assert shapes == wanted
    if net is Selected:
        np.testing.assert_array_equal(values["MaskedSelect-op0", "o0"], [*X[MASK], *[0] * 6])
        np.testing.assert_allclose(values["Exp-op1", "o0"].ravel(), np.exp(X[MASK]), rtol=1e-6)
    else:
        np.testing.assert_array_equal(values["NonZero-op0", "o0"], [*np.argwhere(SPARSE), *[[0, 0]] * 8])
        np.testing.assert_array_equal(values["GatherNd-op0", "o0"], X[SPARSE > 0])


@pytest.mark.parametrize("mode", ["GPU", "O0", "O1"])
def test_other_devices_show_the_true_shape_only(tmp_path, monkeypatch, mode):
    left = dump(tmp_path, monkeypatch, mode, lambda: Selected()(Tensor(X), Tensor(MASK)), iteration="0")
    assert left.error is None
    _, values = found(left, {})
    np.testing.assert_array_equal(values["MaskedSelect-op0", "o0"], X[MASK])


def test_masks_of_another_shape_and_their_gradients(tmp_path, monkeypatch):
    """Operators and shapes as 2.10 had them: MaskedSelectGrad, then a sum over the axes that were broadcast."""

    class Gradient(nn.Cell):
        def construct(self, x, mask):
            return ops.grad(lambda x, mask: ops.exp(ops.masked_select(x, mask)) * 2)(x, mask)

    row, column = X[0], np.array([True, False, True, True])
    for n, (x, mask) in enumerate([(X, column), (row, MASK)]):
        folder = tmp_path / str(n)
        folder.mkdir()
        left = dump(folder, monkeypatch, "CPU", lambda a=x, b=mask: Gradient()(Tensor(a), Tensor(b)), iteration="0")
        assert left.error is None
        whole = np.where(np.broadcast_to(mask, (3, 4)), 2 * np.exp(np.broadcast_to(x, (3, 4))), 0)
        np.testing.assert_allclose(left.result.asnumpy(), whole if n == 0 else whole.sum(0), rtol=1e-6)
        shapes, _ = found(left, {"MaskedSelectGrad": [(slot, "") for slot in ("i0", "i1", "i2", "o0")]})
        count = str(np.broadcast_to(mask, (3, 4)).sum())
        first = ",".join(map(str, x.shape)), ",".join(map(str, mask.shape))
        assert shapes["MaskedSelectGrad"] == [("i0", first[0]), ("i1", first[1]), ("i2", count), ("o0", "3,4")]


def test_an_outer_product_of_open_shapes_has_room():
    class Outer(nn.Cell):
        def construct(self, x):
            values, _ = ops.unique(x)
            return ops.expand_dims(values, 0) * ops.expand_dims(values, 1)

    out = Outer()(Tensor(np.array([5, 2, 5, 7], np.int32)))
    np.testing.assert_array_equal(out.asnumpy(), np.outer([5, 2, 7], [5, 2, 7]))
