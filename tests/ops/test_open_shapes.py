"""Operators that take tensors whose shape depends on data: each extent of each operand may be open."""

from dataclasses import replace

import numpy as np
import pytest
from inprocess import fresh
from ops.cases import CASES, arrays
from ops.evaluator import abstract_of, operands_of

from dumpsim.core.abstract import TensorType, TupleType, tensors_of
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import ScriptRuntimeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import Tensor, context, mint, nn, ops
from dumpsim.ops.openshape import infer_open
from dumpsim.ops.table import find

# operands whose open extents decide the number of axes or of results
DECIDING = {"GatherNd": 1, "Squeeze": 0, "Squeeze.all": 0, "Unstack": 0, "Unstack.back": 0, "ChunkView": 0,
            "SplitTensorView": 0, "UnstackExtView": 0}  # fmt: skip
REFUSING = ("KLDivLoss", "ReverseSequence")  # MindSpore 2.10 refuses them with -1 in the message
OPEN = [case for case in CASES if not case.op.startswith((*REFUSING, "WeightQuant"))]


def opened(abstract):
    """The operand's type with one extent open, for each extent."""
    if isinstance(abstract, TupleType):
        for at, item in enumerate(abstract.items):
            for one in opened(item):
                yield replace(abstract, items=(*abstract.items[:at], one, *abstract.items[at + 1 :]), value=None)
    elif isinstance(abstract, TensorType):
        for at in range(len(abstract.shape)):
            yield replace(abstract, shape=(*abstract.shape[:at], -1, *abstract.shape[at + 1 :]))


def typed(definition, operands, attrs):
    return [(one.dtype, one.shape) for one in tensors_of(definition.output_type(operands, attrs))]


@pytest.mark.parametrize("case", OPEN, ids=lambda case: case.id)
def test_an_open_extent_takes_nothing_away(case):
    """Each known extent of the results is that of known operands: nothing is refused, nothing computed with -1."""
    definition, operands = find(case.op), operands_of(case, arrays(case))
    operands += definition.defaults[len(definition.defaults) - len(definition.operands) + len(operands) :]
    attrs, known = {**definition.attrs, **case.attrs}, [abstract_of(one) for one in operands]
    whole = typed(definition, known, attrs)
    for at, abstract in enumerate(known):
        if at == DECIDING.get(case.id):
            continue
        for one in opened(abstract):
            found = typed(definition, [*known[:at], one, *known[at + 1 :]], attrs)
            assert [kind for kind, _ in found] == [kind for kind, _ in whole]
            for (_, open_shape), (_, shape) in zip(found, whole, strict=True):
                assert len(open_shape) == len(shape)
                assert all(n in (-1, m) for n, m in zip(open_shape, shape, strict=True)), one


def t(*shape):
    return TensorType(dtype=dtype("float32"), shape=shape)


WHOLE = replace(t(4), dtype=dtype("int32"))


@pytest.mark.parametrize(
    ("op", "operands", "expected"),
    [
        ("Concat", (TupleType(items=(t(-1, 3), t(4, 3))), 0), [(-1, 3)]),
        ("Concat", (TupleType(items=(t(-1, 3), t(4, 3))), 1), [(-1, 6)]),
        ("Flatten", (t(2, -1, 3),), [(2, -1)]),
        ("PadV3", (t(-1, 3), (1, 2, 0, 4)), [(-1, 6)]),
        ("ExpandDimsView", (t(-1, 3), 1), [(-1, 1, 3)]),
        ("NarrowView", (t(-1, 5), 0, 1, 2), [(2, 5)]),
        ("SplitTensorView", (t(-1, 5), 2, 1), [(-1, 2), (-1, 2), (-1, 1)]),
        ("TopK", (t(3, -1), 2), [(3, 2), (3, 2)]),
    ],
)  # fmt: skip
def test_what_follows_from_an_open_extent_is_open(op, operands, expected):
    definition = find(op)
    abstracts = [one if isinstance(one, TensorType | TupleType) else abstract_of(one) for one in operands]
    missing = len(definition.operands) - len(abstracts)
    abstracts += [abstract_of(one) for one in definition.defaults[len(definition.defaults) - missing :]]
    assert [shape for _, shape in typed(definition, abstracts, definition.attrs)] == expected


@pytest.mark.parametrize(
    ("op", "operands", "error", "text"),
    [
        ("MatMul", (t(-1, 3), t(4, 5), False, False), ScriptValueError, "but got 'x1_col': 3 and 'x2_row': 4."),
        ("SmoothL1Loss", (t(-1, 3), t(2, 4)), ScriptValueError, r"\[-1,3,\] must be equal to \[2,4,\]"),
        ("KLDivLoss", (t(-1), t(4)), ScriptValueError, r"the x shape: \[-1,\] must be equal to \[4,\]"),
        ("ReverseSequence", (t(-1, 4), WHOLE), ScriptValueError, "'seq_lengths' must have shape"),
        ("ChunkView", (t(-1, 2), 2, 0), ScriptRuntimeError, "the specified 'dims' is dynamic, which is not supported"),
        ("SplitTensorView", (t(2, -1), 2, 1), ScriptValueError, "^Unsupported dynamic shape for graph mode.$"),
        ("UnstackExtView", (t(2, -1), 1), ScriptRuntimeError, "the extent of 'dim' must be known"),
        ("Unstack", (t(-1, 2),), UnsupportedError, "an axis whose extent only the run knows"),
        ("TopK", (t(3, -1), 0), ScriptValueError, "must be in"),
    ],
)  # fmt: skip
def test_what_fits_for_no_extent_is_refused(op, operands, error, text):
    definition = find(op)
    abstracts = [one if isinstance(one, TensorType) else abstract_of(one) for one in operands]
    missing = len(definition.operands) - len(abstracts)
    abstracts += [abstract_of(one) for one in definition.defaults[len(definition.defaults) - missing :]]
    with pytest.raises(error, match=text):
        definition.output_type(abstracts, {**definition.attrs, "seq_dim": 1} if "Reverse" in op else definition.attrs)


@pytest.mark.parametrize(
    ("equation", "operands", "expected"),
    [
        ("ab,bc->ac", ((-1, 3), (3, 4)), (-1, 4)), ("ab,bc->ac", ((2, -1), (-1, 4)), (2, 4)),
        ("ab,ab->ab", ((-1, 3), (2, 1)), (2, 3)), ("ab,ab->b", ((2, -1), (2, 1)), (-1,)),
        ("ab->ba", ((2, -1),), (-1, 2)),
        ("ab,ab->ba", ((2, 1), (1, -1)), (-1, 2)), ("ab,ab->ab", ((1, 4), (3, 1)), (3, 4)),
        ("a,a->", ((3,), (-1,)), ()),
    ],
)  # fmt: skip
def test_letters_of_open_extents(equation, operands, expected):
    tensors = TupleType(items=tuple(t(*shape) for shape in operands))
    assert typed(find("Einsum"), [tensors], {"equation": equation}) == [(dtype("float32"), expected)]
    if not any(-1 in shape for shape in operands):
        assert np.einsum(equation, *map(np.ones, operands)).shape == expected


def test_an_ellipsis_of_open_extents_is_told():
    with pytest.raises(UnsupportedError, match="for shapes"):
        find("Einsum").output_type([TupleType(items=(t(2, -1),))], {"equation": "...a->a"})


@pytest.mark.parametrize(
    "computed",
    [
        lambda n: n + 1, lambda n: 1 + n, lambda n: n - 1, lambda n: 1 - n, lambda n: n * 2, lambda n: 2 * n,
        lambda n: n // 2, lambda n: 7 // n, lambda n: -n, lambda n: -(-n // 3), lambda n: abs(n),
    ],
)  # fmt: skip
def test_arithmetic_of_an_open_extent(computed):
    def rule(abstracts, attrs):
        return replace(abstracts[0], shape=(5, computed(abstracts[0].shape[1])))

    assert infer_open("Any", rule, [t(5, -1)], {}).shape == (5, -1)


def test_comparisons_of_an_open_extent_refuse_nothing():
    """An open extent equals any other, and nothing is left when it is divided."""

    def rule(abstracts, attrs):
        n = abstracts[0].shape[0]
        if n != 4 or n < 1 or n > 9 or not n == 3 or n % 5 or 5 % n or n <= 0 or n >= 2:
            raise ScriptValueError("no")
        return abstracts[0]

    assert infer_open("Any", rule, [t(-1)], {}).shape == (-1,)


class Loss(nn.Cell):
    def construct(self, x, mask, y):
        return ops.smooth_l1_loss(ops.masked_select(x, mask), y)


class Joined(nn.Cell):
    def construct(self, x, mask, y):
        return ops.cat((ops.masked_select(x, mask), y))


class Padded(nn.Cell):
    def construct(self, x, mask, y):
        return ops.pad(ops.masked_select(x, mask), (1, 2))


class Norm(nn.Cell):
    def construct(self, x, mask, y):
        return ops.LayerNorm()(ops.masked_select(x, mask).expand_dims(0), y, y)[0]


class Images(nn.Cell):
    def construct(self, x, mask, y):
        return ops.AvgPool(2, 2)(ops.masked_select(x, mask).reshape(1, 1, 2, -1))


class Blocks(nn.Cell):
    def construct(self, x, mask, y):
        return ops.DepthToSpace(2)(ops.masked_select(x, mask).reshape(1, 4, -1, 1))


class Rows(nn.Cell):
    def construct(self, x, mask, y):
        return mint.unbind(mint.nonzero(mask), 1)[1]


class Scattered(nn.Cell):
    def construct(self, x, mask, y):
        return ops.tensor_scatter_add(y, Tensor(np.array([[0], [1], [0], [2]], np.int32)), ops.masked_select(x, mask))


class Layer(nn.Cell):
    def construct(self, x, mask, y):
        return ops.dense(ops.masked_select(x, mask).reshape(1, -1), Tensor(np.ones((2, 4), np.float32)))


# results of MindSpore 2.10 on a CPU
RECORDED = [
    (Loss, [0.005, 0.00125, 0.02, 0.06125]), (Joined, [0.0, 0.25, 0.5, 0.75, 0.1, 0.2, 0.3, 0.4]),
    (Padded, [0.0, 0.0, 0.25, 0.5, 0.75, 0.0, 0.0]), (Norm, [[-0.03416399, 0.11055734, 0.434164, 0.93665624]]),
    (Images, [[[[0.375]]]]), (Blocks, [[[[0.0, 0.25], [0.5, 0.75]]]]), (Rows, [0, 3, 2, 1]), (Layer, [[1.5, 1.5]]),
    (Scattered, [0.6, 0.45, 1.05, 0.4]),
]  # fmt: skip


@pytest.mark.parametrize(("net", "expected"), RECORDED, ids=lambda one: getattr(one, "__name__", ""))
def test_nets_whose_data_decide_a_shape(net, expected, monkeypatch):
    x = np.arange(12, dtype=np.float32).reshape(3, 4) / 12
    with fresh("CPU", monkeypatch):
        context.set_context(mode=context.GRAPH_MODE)
        y = Tensor(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
        result = net()(Tensor(x), Tensor(np.arange(12).reshape(3, 4) % 3 == 0), y).asnumpy()
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-5)
