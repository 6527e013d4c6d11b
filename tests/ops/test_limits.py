"""Both sides of each limit of shape rules of operators that have no kernel on the CPU: collectives, attention, weights.

The results are arithmetic: parts of a group's ranks, borders of images, rows times columns.
"""

import re
from functools import partial

import numpy as np
import pytest

from dumpsim.core.abstract import NoneType, ScalarType, StringType, TensorType, TupleType, tensors_of
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.ops.table import find, names

NONE = NoneType()


def t(*shape, kind="float32"):
    return TensorType(dtype=dtype(kind), shape=shape)


def n(value):
    kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
    return ScalarType(dtype=dtype(kind), value=value)


def host(*numbers):
    return TupleType(items=tuple(map(n, numbers)), value=numbers)


def several(*tensors):
    return TupleType(items=tensors)


def shapes(name, *operands, **attrs):
    """Number types and shapes that the rule gives; settings that are left out have their defaults."""
    definition = find(name)
    missing = len(definition.operands) - len(operands)
    defaults = [
        NONE if value is None else n(value) for value in definition.defaults[len(definition.defaults) - missing :]
    ]
    abstract = definition.infer([*operands, *defaults], {**definition.attrs, **attrs})
    return [(one.dtype.name, one.shape) for one in tensors_of(abstract)]


def f32(*dims):
    return ("float32", dims)


TWO, THREE = {"rank_size": 2}, {"rank_size": 3}
ROTATED = {"rank_size": 4, "split_count": 4}
HALO = {"send_lens": (1, 2, 3, 4), "recv_lens": (5, 6, 7, 8)}
NEAR = {"send_rank_ids": (1, 2), "send_shapes": ((2,), (3, 1)), "recv_rank_ids": (2,), "recv_shapes": ((4,),),
        "recv_type": "int8"}  # fmt: skip
SOME = {"op_types": ("irecv", "isend", "irecv"), "remote_ranks": (1, 1, 2), "receive_shapes": ((2,), (3,)),
        "receive_dtypes": ("int8", "float16")}  # fmt: skip
TAKEN = [
    # a group of one by default
    (("AllReduce", t(2, 3)), {}, [f32(2, 3)]), (("AllGather", t(2, 3)), {}, [f32(2, 3)]),
    (("ReduceScatter", t(2, 3)), {}, [f32(2, 3)]), (("Reduce", t(2, 3)), {}, [f32(2, 3)]),
    (("CollectiveGather", t(2, 3)), {}, [f32(2, 3)]), (("CollectiveScatter", t(2, 3)), {}, [f32(2, 3)]),
    (("AllGatherV", t(3), host(3)), {}, [f32(3)]), (("ReduceScatterV", t(3), host(3)), {}, [f32(3)]),
    (("AlltoAll", t(2, 3)), {}, [f32(2, 3)]), (("AlltoAllV", t(3), host(3), host(3)), {}, [f32(3)]),
    (("AlltoAllVC", t(3), host(3)), {}, [f32(3)]), (("Broadcast", several(t(2), t(3, 1))), {}, [f32(2), f32(3, 1)]),
    (("NeighborExchangeV2", t(1, 2, 3, 4)), {}, [f32(1, 2, 3, 4)]), (("NeighborExchange", NONE), {}, []),
    # several ranks
    (("AllGather", t(2, 3)), THREE, [f32(6, 3)]), (("ReduceScatter", t(6, 3)), THREE, [f32(2, 3)]),
    (("ReduceScatter", t(0, 3)), THREE, [f32(0, 3)]), (("CollectiveScatter", t(6)), THREE, [f32(2)]),
    (("Reduce", t(2, 3)), {"dest_rank": 1}, [f32(1)]), (("Reduce", t(2, 3)), {"dest_rank": 1, "_rank": 1}, [f32(2, 3)]),
    (("CollectiveGather", t(2, 3)), {**TWO, "dest_rank": 1}, [f32(1)]),
    (("CollectiveGather", t(2, 3)), {**TWO, "dest_rank": 1, "rank_id": 1}, [f32(4, 3)]),
    (("AllReduce", t(2, kind="complex64")), {}, [("complex64", (2,))]),
    (("AllGatherV", t(3), host(2, 3, 0)), {**THREE, "rank_id": 1}, [f32(5)]),
    (("AllGatherV", t(0), host(0, 0)), {**TWO, "rank_id": 1}, [f32()]),
    (("ReduceScatterV", t(5), host(2, 3, 0)), {**THREE, "rank_id": 1}, [f32(3)]),
    (("ReduceScatterV", t(5), host(2, 3, 0)), {**THREE, "rank_id": 2}, [f32()]),
    (("AlltoAll", t(4, 8, 3)), {**ROTATED, "split_dim": 1, "concat_dim": 2}, [f32(4, 2, 12)]),
    (("AlltoAll", t(4, 8, 3)), {**ROTATED, "split_dim": 0, "concat_dim": 0}, [f32(4, 8, 3)]),
    (("AlltoAllV", t(6), host(1, 2), host(0, 4)), {"block_size": 2}, [f32(8)]),
    (("AlltoAllV", t(3), host(1, 2), host(0, 0)), {}, [f32()]),
    (("AlltoAllVC", t(6), host(0, 1, 2, 1)), {**TWO, "rank_id": 1, "block_size": 2}, [f32(4)]),
    (("AlltoAllVC", t(4), host(0, 1, 2, 1)), {**TWO, "rank_id": 1, "block_size": 2, "transpose": True}, [f32(6)]),
    (("AlltoAllVC", t(1), host(0, 1, 2, 1)), {**TWO, "rank_id": 0}, [f32(2)]),
    (("Send", t(2, 3)), {}, [f32(2, 3)]),
    (("Receive", NONE), {"shape": (4, 2), "dtype": dtype("int8")}, [("int8", (4, 2))]),
    (("NeighborExchange", several(t(2), t(3, 1))), NEAR, [("int8", (4,))]),
    (("NeighborExchangeV2", t(1, 2, 30, 40)), HALO, [f32(1, 2, 41, 55)]),
    (("NeighborExchangeV2Grad", t(1, 2, 30, 40)), HALO, [f32(1, 2, 27, 33)]),
    (("NeighborExchangeV2", t(1, 2, 3, 4)), {"send_rank_ids": (0, 1, 2, -1, -1, -1, -1, -1)}, [f32(1, 2, 3, 4)]),
    (("BatchISendIRecv", several(t(5))), SOME, [("int8", (2,)), f32(), ("float16", (3,))]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "attrs", "expected"), TAKEN, ids=[f"{at}-{row[0][0]}" for at, row in enumerate(TAKEN)]
)
def test_results_of_collectives(call, attrs, expected):
    assert shapes(*call, **attrs) == expected


LEFT_OVER = [
    (("AllReduce", t(2)), {"op": "mean"}, ScriptValueError, "one of ['sum', 'max', 'min', 'prod'], but got mean"),
    (("AllReduce", t(2, kind="uint8")), {}, ScriptTypeError, "but got Tensor[UInt8]"),
    (("AllReduce", t(2, kind="complex64")), {"op": "prod"}, ScriptTypeError, "complex64 can be summed only"),
    (("AllGather", t()), {}, ScriptValueError, "must be int and must > 0, but got '0'"),
    (("ReduceScatter", t()), {}, ScriptValueError, "the shape is empty"),
    (("ReduceScatter", t(5, 3)), THREE, ScriptValueError, "input_shape[0]: 5, rank_size: 3"),
    (("AllGatherV", t(3), host(2, 3)), TWO, ScriptValueError, "the sum of 'output_split_sizes' must be"),
    (("AllGatherV", t(3), host(3, 3, 3)), TWO, ScriptValueError, "must have 2 numbers >= 0, but got [3, 3, 3]"),
    (("AllGatherV", t(3), host(3, -1)), TWO, ScriptValueError, "must have 2 numbers >= 0, but got [3, -1]"),
    (("AllGatherV", t(3, 1), host(3)), {}, ScriptValueError, "must have one dimension, but got shape [3, 1]"),
    (("AllGatherV", t(3), t(1, kind="int64")), {}, UnsupportedError, "a tensor as output_split_sizes"),
    (("ReduceScatterV", t(4), host(2, 3)), TWO, ScriptValueError, "[2, 3] for shape [4]"),
    (("ReduceScatterV", t(5, kind="uint8"), host(2, 3)), TWO, ScriptTypeError, "but got Tensor[UInt8]"),
    (("AlltoAll", t(4, 4)), {"split_dim": 2}, ScriptValueError, "Invalid split dim 2 is greater than shape size 2"),
    (("AlltoAll", t(4, 4)), {"split_dim": -1}, ScriptValueError, "Invalid split dim -1"),
    (("AlltoAll", t(4, 4)), {"concat_dim": 2}, ScriptValueError, "Invalid concat dim 2"),
    (("AlltoAll", t(4, 4)), {**TWO, "split_count": 4}, ScriptValueError, "'split_count': 4, 'rank_size': 2"),
    (("AlltoAll", t(4, 6)), {**ROTATED, "split_dim": 1}, ScriptValueError, "6, 'split_count' 4"),
    (("AlltoAllV", t(3), host(1, -1), host(0, 4)), {}, ScriptValueError, "must have numbers >= 0, but got [1, -1]"),
    (("AlltoAllV", t(6), host(1, 1), host(0, 4)), {"block_size": 2}, ScriptValueError, "[2, 2] for shape [6]"),
    (("AlltoAllVC", t(3), host(0, 1, 2)), TWO, ScriptValueError, "must have 4 numbers >= 0"),
    (("AlltoAllVC", t(2), host(0, 1, 2, 1)), TWO, ScriptValueError, "[0, 1] for shape [2]"),
    (("NeighborExchange", several(t(2), t(3, 2))), NEAR, ScriptValueError, "but got [(2,), (3, 2)]"),
    (("NeighborExchange", several(t(2), t(3, 1))), {**NEAR, "send_rank_ids": (1,)}, ScriptValueError, "1 and 2"),
    (("NeighborExchange", several(t(2), t(3, 1))), {**NEAR, "recv_rank_ids": (1, 2)}, ScriptValueError, "2 and 1"),
    (("NeighborExchangeV2", t(2, 3, 4)), {}, ScriptValueError, "but got 3 in 'NCHW'"),
    (("NeighborExchangeV2", t(1, 2, 3, 4)), {"data_format": "NHWC"}, ScriptValueError, "but got 4 in 'NHWC'"),
    (("NeighborExchangeV2", t(1, 2, 3, 4)), {"send_rank_ids": (0, 0)}, ScriptValueError, "but got id :0 repeated"),
    (("NeighborExchangeV2", t(1, 2, 3, 4)), {"recv_rank_ids": (3, 1, 3)}, ScriptValueError, "but got id :3 repeated"),
    (("BatchISendIRecv", several()), SOME, ScriptRuntimeError, "1 'isend' and 2 'irecv' need as many"),
    (("BatchISendIRecv", several(t(5))), {**SOME, "receive_shapes": ((2,),)}, ScriptRuntimeError, "but got 1 and 1"),
    (("BatchISendIRecv", several(t(5))), {**SOME, "op_types": ("isend", "recv")}, ScriptValueError, "but got 'recv'"),
]  # fmt: skip


def refuses(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call()


@pytest.mark.parametrize(
    ("call", "attrs", "error", "words"), LEFT_OVER, ids=[f"{at}-{row[0][0]}" for at, row in enumerate(LEFT_OVER)]
)
def test_collectives_refuse(call, attrs, error, words):
    refuses(partial(shapes, *call, **attrs), error, words)


def attention(*tensors, more=(NONE,) * 7, heads=2, keep=1.0, layout=1, sparse=0):
    settings = (heads, keep, 1.0, 2147483647, 2147483647, 0, layout, sparse)
    return shapes("FlashAttentionScore", *tensors, *more, *map(n, settings))


def test_results_of_attention():
    """Lanes of 8 for the maximum and the sum of each row, nothing, and the shape of the query. [2.10 observed]"""
    layouts = {0: ((3, 5, 8), (3, 7, 8)), 1: ((3, 2, 5, 4), (3, 1, 7, 4)), 2: ((5, 3, 8), (7, 3, 8)),
               3: ((3, 5, 2, 4), (3, 7, 1, 4))}  # fmt: skip
    for layout, (query, key) in layouts.items():
        for kind, wide in (("float16", "float32"), ("float32", "float32"), ("float64", "float64")):
            lanes = (wide, (3, 2, 5, 8))
            found = attention(t(*query, kind=kind), t(*key, kind=kind), t(*key, kind=kind), layout=layout)
            assert found == [lanes, lanes, (kind, (1,)), (kind, query)]
    query = t(3, 2, 5, 4)
    assert shapes("FlashAttentionScore", t(3, 5, 8), t(3, 7, 8), t(3, 7, 8))[0] == f32(3, 1, 5, 8)  # one head, BSH
    for keep in (0.0078125, 1.0):
        assert attention(query, query, query, keep=keep)
    for sparse in range(5):
        assert attention(query, query, query, sparse=sparse)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"keep": 0.0}, ScriptValueError, "'keep_prob' must be in (0, 1], but got 0.0"),
        ({"keep": 1.5}, ScriptValueError, "but got 1.5"),
        ({"layout": -1}, ScriptValueError, "'input_layout' must be one of"),
        ({"layout": 5}, ScriptValueError, "but got 5"),
        ({"layout": 4}, UnsupportedError, "sequences of different lengths in one batch"),
        ({"sparse": -1}, UnsupportedError, "sparse_mode -1"),
        ({"sparse": 5}, UnsupportedError, "sparse_mode 5"),
        ({"heads": 3}, ScriptValueError, "'head_num' is 3, but 'query' has 2 heads"),
        ({"layout": 0}, ScriptValueError, "must be 3 for input_layout BSH"),
    ]
    + [
        ({"more": tuple(t(1) if at == place else NONE for at in range(3, 10))}, UnsupportedError, f"operand '{name}'")
        for place, name in ((5, "padding_mask"), (7, "prefix"), (8, "actual_seq_qlen"), (9, "actual_seq_kvlen"))
    ],
)
def test_attention_refuses(changes, error, words):
    refuses(partial(attention, *[t(3, 2, 5, 4)] * 3, **changes), error, words)


def test_attention_refuses_tensors_that_do_not_fit():
    query, flat = t(3, 2, 5, 4), t(3, 5, 9)
    refuses(partial(attention, query, t(3, 5, 8), query), ScriptValueError, "must be 4 for input_layout BNSD")
    refuses(partial(attention, t(3, 5, 8), query, query), ScriptValueError, "must be 4 for input_layout BNSD")
    refuses(partial(attention, flat, flat, flat, layout=0), ScriptValueError, "must divide the hidden size 9")
    refuses(partial(attention, flat, flat, flat, layout=2), ScriptValueError, "must divide the hidden size 9")
    refuses(partial(attention, query, query, t(3, 2, 5, 4, kind="float16")), ScriptTypeError, "must be same")
    for at in range(3):
        given = [query] * at + [t(3, 2, 5, 4, kind="int32")] + [query] * (2 - at)
        refuses(partial(attention, *given), ScriptTypeError, ("query", "key", "value")[at])


def rotary(*given, mode=0):
    return shapes("RotaryPositionEmbedding", *given, n(mode))


def test_limits_of_rotary_positions():
    x, angles = t(2, 3, 2, 4, kind="float16"), t(1, 3, 1, 4)
    assert rotary(x, angles, angles) == rotary(x, angles, angles, mode=1) == [("float16", (2, 3, 2, 4))]
    for mode in (-1, 2):
        refuses(partial(rotary, x, angles, angles, mode=mode), ScriptValueError, f"must be 0 or 1, but got {mode}")
    for wrong in ((t(3, 2, 4), angles, angles), (t(2, 3, 2, 5), angles, angles), (x, angles, t(1, 3, 1, 2))):
        refuses(partial(rotary, *wrong), ScriptValueError, "'x' must have 4 dimensions, the last of them even")


def quantised(x, weight, scale=None, more=(NONE,) * 4, left=False, right=False, group=0):
    half = t(1, kind="float16") if scale is None else scale
    return shapes("WeightQuantBatchMatmul", x, weight, half, *more, *map(n, (left, right, group)))


def test_results_of_quantised_weights():
    """Rows of x by columns of the weight; int4 counts pairs. [2.10 observed]"""
    x, turned = t(2, 64, kind="float16"), t(64, 2, kind="float16")
    for given, weight, flags in (
        (x, t(64, 6, kind="int8"), {}), (turned, t(64, 6, kind="int8"), {"left": True}),
        (x, t(6, 64, kind="int8"), {"right": True}), (x, t(64, 3, kind="int4"), {}),
        (x, t(6, 32, kind="int4"), {"right": True}),
    ):  # fmt: skip
        assert quantised(given, weight, **flags) == [("float16", (2, 6))]
    wide = quantised(t(5, 1, 2, 64, kind="bfloat16"), t(3, 64, 6, kind="int8"), t(1, kind="bfloat16"))
    assert wide == [("bfloat16", (5, 3, 2, 6))]
    for group in (0, 32):
        assert quantised(x, t(64, 6, kind="int8"), group=group) == [("float16", (2, 6))]
    assert quantised(t(2, 96, kind="float16"), t(96, 6, kind="int8"), group=64) == [("float16", (2, 6))]


@pytest.mark.parametrize(
    ("operands", "changes", "error", "words"),
    [
        ((t(2, 64), t(64, 6, kind="int8")), {}, ScriptTypeError, "argument[x]"),
        ((t(2, 64, kind="float16"), t(64, 6, kind="uint8")), {}, ScriptTypeError, "argument[weight]"),
        ((t(2, 64, kind="float16"), t(64, 6, kind="int8"), t(1)), {}, ScriptTypeError, "argument[antiquant_scale]"),
        ((t(64, kind="float16"), t(64, 6, kind="int8")), {}, ScriptValueError, "2 dimensions or more"),
        ((t(2, 64, kind="float16"), t(64, kind="int8")), {}, ScriptValueError, "2 dimensions or more"),
        ((t(2, 63, kind="float16"), t(64, 6, kind="int8")), {}, ScriptValueError, "differ: 63 and 64"),
        ((t(2, 64, kind="float16"), t(64, 6, kind="int8")), {"left": True}, ScriptValueError, "differ: 2 and 64"),
    ]
    + [
        ((t(2, 64, kind="float16"), t(64, 6, kind="int8")), {"group": group}, ScriptValueError,
         f"a multiple of 32 in [32, 63], but got {group}")
        for group in (-32, 31, 33, 48, 64, 96)
    ]
    + [
        ((t(2, 64, kind="float16"), t(64, 6, kind="int8")),
         {"more": tuple(t(1) if at == place else NONE for at in range(3, 7))}, UnsupportedError, f"operand '{name}'")
        for place, name in ((4, "quant_scale"), (5, "quant_offset"))
    ],
)  # fmt: skip
def test_quantised_weights_refuse(operands, changes, error, words):
    refuses(partial(quantised, *operands, **changes), error, words)


@pytest.mark.parametrize(("name", "operands", "expected"), [
    ("Mm", (t(2, 3), t(3, 4)), (2, 4)), ("Mv", (t(2, 3), t(3)), (2,)), ("Dot", (t(3), t(3)), ()),
    ("Outer", (t(3), t(2)), (3, 2)), ("Ger", (t(3), t(2)), (3, 2)), ("Addmm", (t(4), t(2, 3), t(3, 4)), (2, 4)),
    ("Addmv", (t(1), t(2, 3), t(3)), (2,)), ("Addbmm", (t(2, 1), t(5, 2, 3), t(5, 3, 4)), (2, 4)),
    ("Baddbmm", (t(), t(5, 2, 3), t(5, 3, 4)), (5, 2, 4)),
])  # fmt: skip
def test_products_take_shapes_that_fit_alone(name, operands, expected):
    assert shapes(name, *operands) == [f32(*expected)]
    first = len(operands) - 2  # an added term precedes the two
    for at in (first, first + 1):
        given = operands[at]
        others = [(*given.shape, 7), given.shape[1:]]
        if at == first and name not in ("Outer", "Ger"):
            others.append((*given.shape[:-1], given.shape[-1] + 1))  # the axis that is summed
        if name in ("Addbmm", "Baddbmm"):
            others.append((given.shape[0] + 1, *given.shape[1:]))
        for shape in others:
            wrong = [*operands[:at], t(*shape), *operands[at + 1 :]]
            refuses(partial(shapes, name, *wrong), ScriptValueError, f"'{name}'")
        wrong = [*operands[:at], t(*given.shape, kind="float16"), *operands[at + 1 :]]
        refuses(partial(shapes, name, *wrong), ScriptTypeError, "must be same")
        wrong = [*operands[:at], StringType(value="x"), *operands[at + 1 :]]
        refuses(partial(shapes, name, *wrong), ScriptTypeError, "must be a tensor, but got String")
    for shape in ((1, *expected), (*expected[:-1], expected[-1] + 1)) if first else ():
        refuses(partial(shapes, name, t(*shape), *operands[1:]), ScriptValueError, "must broadcast to the product")


def test_an_added_term_may_have_fewer_or_single_extents():
    for shape in ((), (1,), (4,), (1, 1), (2, 1), (1, 4), (2, 4)):
        assert shapes("Addmm", t(*shape), t(2, 3), t(3, 4)) == [f32(2, 4)]


def test_channels_are_the_second_or_the_last_axis():
    rows = [t(3)] * 4
    for dims, settings in (((2, 3, 4, 5), ()), ((2, 4, 5, 3), (False, 1e-5, 0.1, 1)), ((2, 3), (False, 1e-5, 0.1, 0))):
        assert shapes("BatchNorm", t(*dims), *rows, *map(n, settings))[0] == f32(*dims)
        wrong = (False, 1e-5, 0.1, 1) if not settings else (False, 1e-5, 0.1, 0)
        if len(dims) == 4:
            refuses(partial(shapes, "BatchNorm", t(*dims), *rows, *map(n, wrong)), ScriptValueError, "channel dim")


@pytest.mark.parametrize("indexing", [0, 1])
def test_grids_of_one_two_and_three_axes(indexing):
    for lengths in ((3,), (3, 4), (3, 4, 5)):
        found = shapes("Meshgrid", several(*map(t, lengths)), n(indexing))
        grids = np.meshgrid(*map(np.zeros, lengths), indexing="xy" if indexing else "ij")
        assert found == [f32(*one.shape) for one in grids]


def test_the_value_of_a_masked_fill_is_a_number():
    mask = t(2, 3, kind="bool")
    assert shapes("MaskedFill", t(2, 3), mask, n(0.5)) == [f32(2, 3)]
    for wrong in (NONE, StringType(value="x")):
        refuses(partial(shapes, "MaskedFill", t(2, 3), mask, wrong), ScriptTypeError, "argument[value]")


def test_the_gradient_of_attention_checks_its_settings():
    tensors = (t(3, 2, 5, 4), t(3, 2, 7, 4), t(3, 2, 7, 4))
    settings = [2, 1.0, 1.0, 2147483647, 2147483647, 0, 1, 0]
    name = "FlashAttentionScoreGrad"
    more = (NONE,) * (len(find(name).operands) - 3 - len(settings))
    assert shapes(name, *tensors, *more, *map(n, settings))[:3] == [f32(*one.shape) for one in tensors]
    settings[1] = 0.0
    refuses(
        partial(shapes, name, *tensors, *more, *map(n, settings)), ScriptValueError, "'keep_prob' must be in (0, 1]"
    )


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "pad"), [(3, 3, 1, 1), (2, 3, 1, 0), (3, 2, 2, 1), (2, 5, 1, 1)]
)
def test_windows_of_the_largest_element(kernel, stride, dilation, pad, ceil_mode):
    """As torch documents it: rounded up, the last window must still begin in the input or the padding before it."""
    for size in range(6, 20):
        room = size + 2 * pad - dilation * (kernel - 1) - 1
        count = (-(-room // stride) if ceil_mode else room // stride) + 1
        if ceil_mode and (count - 1) * stride >= size + pad:
            count -= 1
        found = shapes(
            "MaxPoolWithArgmaxV2", t(1, 2, size, 9), kernel_size=(1, 1, kernel, 1), strides=(1, 1, stride, 1),
            pads=(1, 1, pad, 0), dilation=(1, 1, dilation, 1), ceil_mode=ceil_mode,
        )  # fmt: skip
        assert found[0] == f32(1, 2, count, 9), size


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(3, (3, 3)), (None, (7, 5)), ((3, 2), (3, 2)), ((None, 2), (7, 2)), ((3, None), (3, 5)), ((-1, 2), (7, 2))],
)
def test_sizes_of_an_adaptive_average(wanted, expected):
    assert shapes("AdaptiveAvgPool2D", t(2, 7, 5), output_size=wanted) == [f32(2, *expected)]


HALF = {"mode": "reflect"}
SPACE = {"block_size": 2}
POOL = {"kernel_size": (1, 1, 3, 2, 2), "strides": (1, 1, 1, 1, 1), "pad_mode": "PAD"}
WITHIN = [
    (("Zeros", host(0, 2), NONE), {}, [f32(0, 2)]), (("LinSpace", t(), t(), n(1)), {}, [f32(1)]),
    (("Range", ScalarType(dtype=dtype("int64")), n(5), n(1)), {}, [("int64", (-1,))]),
    (("UnsortedSegmentSum", t(2, 3), t(2, kind="int32"), n(1)), {}, [f32(1, 3)]),
    (("UnsortedSegmentMax", t(2, 3), t(2, 3, kind="int32"), n(1)), {}, [f32(1)]),
    (("ScatterNd", t(2, 1, kind="int32"), t(2, 3), host(1, 3)), {}, [f32(1, 3)]),
    (("ScatterNdUpdate", t(4, 5), t(2, 2, kind="int32"), t(2)), {}, [f32(4, 5)]),
    (("OneHot", t(2, kind="int32"), n(0), t(), t()), {}, [f32(2, 0)]),
    (("Slice", t(2, 3), host(0, 3), host(2, 0)), {}, [f32(2, 0)]),
    (("Split", t(2, 3), n(0), n(1)), {}, [f32(2, 3)]), (("Split", t(2, 3), n(1), n(3)), {}, [f32(2, 1)] * 3),
    (("BatchMatMul", t(2, 3), t(3, 4)), {}, [f32(2, 4)]), (("BatchMatMul", t(5, 2, 3), t(3, 4)), {}, [f32(5, 2, 4)]),
    (("MatMulExt", t(3), t(3)), {}, [f32()]), (("MatMulExt", t(2, 3), t(3)), {}, [f32(2)]),
    (("MatMulExt", t(3), t(5, 3, 4)), {}, [f32(5, 4)]),
    (("Dense", t(3), t(4, 3), NONE), {}, [f32(4)]), (("Dense", t(5, 2, 3), t(4, 3), t(4)), {}, [f32(5, 2, 4)]),
    (("LayerNorm", t(2, 3), t(3), t(3), n(1), n(1)), {}, [f32(2, 3), f32(2, 1), f32(2, 1)]),
    (("GroupNorm", t(2, 6), n(3), t(6), t(6)), {}, [f32(2, 6), f32(2, 3), f32(2, 3)]),
    (("SpaceToDepth", t(1, 3, 4, 6)), SPACE, [f32(1, 12, 2, 3)]),
    (("DepthToSpace", t(1, 8, 3, 5)), SPACE, [f32(1, 2, 6, 10)]),
    (("RepeatInterleaveInt", t(2, 3), n(0), n(1)), {}, [f32(2, 0)]),
    (("AvgPool3D", t(1, 2, 4, 4, 4)), {**POOL, "pad_list": (1, 2, 1, 1, 0, 2)}, [f32(1, 2, 5, 5, 5)]),
    (("PadV3", t(2, 3, 4), host(1, 2)), HALF, [f32(2, 3, 7)]),
    (("PadV3", t(2, 3), host(1, 2, 3, 4), n(0.0)), {}, [f32(9, 6)]),
    (("Dropout", t(2, 3), n(1.0)), {}, [f32(2, 3), f32(2, 3)]),
    (("DropoutDoMaskExt", t(4, 4), t(2, kind="uint8"), n(0.5)), {}, [f32(4, 4)]),
    (("ResizeNearestNeighborV2", t(1, 2, 3, 4), host(1, 1)), {}, [f32(1, 2, 1, 1)]),
    (("Squeeze", t(2, 1, 3), host(0, 1)), {}, [f32(2, 3)]), (("Squeeze", t(1, 1, 3), host(1)), {}, [f32(1, 3)]),
    (("Tile", t(2, 3), host(0, 2)), {}, [f32(0, 6)]), (("DiagPart", t(2, 3, 2, 3)), {}, [f32(2, 3)]),
    (("GLU", t(2, 4), n(1)), {}, [f32(2, 2)]), (("Tile", t(2, 3), several(n(1), n(2))), {}, [f32(2, 6)]),
    (("Argmax", t(), n(-1)), {}, [("int32", ())]), (("Argmin", t(), n(0)), {}, [("int32", ())]),
    (("AllGatherV", t(3), n(3)), {}, [f32(3)]),
    (("AlltoAllVC", t(3), several(host(0, 1), host(2, 1))), {**TWO, "rank_id": 1}, [f32(2)]),
    (("Einsum", several(t(2, 3), t(3, 4))), {"equation": "ab,bc"}, [f32(2, 4)]),
    (("Einsum", several(t(5, 2, 3), t(3, 4))), {"equation": "...b,bc->...c"}, [f32(5, 2, 4)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "attrs", "expected"), WITHIN, ids=[f"{at}-{row[0][0]}" for at, row in enumerate(WITHIN)]
)
def test_operands_at_their_limits(call, attrs, expected):
    assert shapes(*call, **attrs) == expected


BEYOND = [
    (("Zeros", host(2, -1), NONE), {}, ScriptValueError, "must be at least 0"),
    (("LinSpace", t(), t(), n(0)), {}, ScriptValueError, "must be greater than 0, but got 0"),
    (("LinSpace", t(1), t(), n(1)), {}, ScriptValueError, "the rank of 'start' must be equal to 0, but got 1"),
    (("LinSpace", t(), t(1), n(1)), {}, ScriptValueError, "the rank of 'stop' must be equal to 0, but got 1"),
    (("UnsortedSegmentSum", t(2, 3), t(2, kind="int32"), n(0)), {}, ScriptValueError, "must be greater than 0"),
    (("UnsortedSegmentMax", t(2, 3), t(2, kind="int32"), n(0)), {}, ScriptValueError, "must be greater than 0"),
    (("UnsortedSegmentMax", t(2, 3), t(kind="int32"), n(1)), {}, ScriptValueError, "cannot be 0-D"),
    (("UnsortedSegmentMax", t(2, 3), t(3, kind="int32"), n(1)), {}, ScriptValueError, "the first shape of input_x"),
    (("ScatterNd", t(2, 1, kind="int32"), t(2, 3), host(0, 3)), {}, ScriptValueError, "all positive item"),
    (("ScatterNdUpdate", t(4, 5), t(2, 3, kind="int32"), t(2)), {}, ScriptValueError, "which is 2 , but got 3"),
    (("OneHot", t(2, kind="int32"), n(-1), t(), t()), {}, ScriptValueError, "greater than or equal to 0, but got -1"),
    (("Slice", t(2, 3), host(0, -1), host(2, 1)), {}, ScriptValueError, "begin_shape[1]"),
    (("Slice", t(2, 3), host(0, 1), host(2, -2)), {}, ScriptValueError, "begin_shape[1]"),
    (("Slice", t(2, 3), host(1, 0), host(2, 1)), {}, ScriptValueError, "begin_shape[0]"),
    (("Split", t(2, 3), n(0), n(0)), {}, ScriptValueError, "must be divisible by output_num = 0"),
    (("Split", t(2, 3), n(1), n(2)), {}, ScriptValueError, "must be divisible by output_num = 2, but got 3"),
    (("BatchMatMul", t(3), t(3, 4)), {}, ScriptValueError, "must be at least 2"),
    (("BatchMatMul", t(2, 3), t(3)), {}, ScriptValueError, "must be at least 2"),
    (("BatchMatMul", t(5, 2, 3), t(5, 4, 2)), {}, ScriptValueError, "should be same as the col"),
    (("MatMulExt", t(), t(3)), {}, ScriptValueError, "cannot multiply"),
    (("MatMulExt", t(3), t()), {}, ScriptValueError, "cannot multiply"),
    (("MatMulExt", t(2, 3), t(4)), {}, ScriptValueError, "cannot multiply"),
    (("Dense", t(), t(4, 3), NONE), {}, ScriptValueError, "the last dimension of 'input'"),
    (("Dense", t(2), t(4, 3), NONE), {}, ScriptValueError, "the last dimension of 'input'"),
    (("Dense", t(3), t(1, 4, 3), NONE), {}, ScriptValueError, "the last dimension of 'input'"),
    (("Dense", t(3), t(4, 3), t(3)), {}, ScriptValueError, "'Dense'"),
    (("LayerNorm", t(2, 3), t(3), t(2, 3), n(0), n(0)), {}, ScriptValueError, "gamma shape"),
    (("LayerNorm", t(2, 3), t(2, 3), t(3), n(0), n(0)), {}, ScriptValueError, "beta shape"),
    (("GroupNorm", t(2, 6), n(0), t(6), t(6)), {}, ScriptValueError, "must be greater than 0, but got 0"),
    (("GroupNorm", t(6), n(3), t(6), t(6)), {}, ScriptValueError, "GroupNorm"),
    (("GroupNorm", t(2, 6), n(4), t(6), t(6)), {}, ScriptValueError, "GroupNorm"),
    (("SpaceToDepth", t(3, 4, 6)), SPACE, ScriptValueError, "SpaceToDepth"),
    (("SpaceToDepth", t(1, 3, 4, 6)), {"block_size": 1}, ScriptValueError, "but got"),
    (("SpaceToDepth", t(1, 4, 3, 6)), SPACE, ScriptValueError, "does not divide"),
    (("SpaceToDepth", t(1, 4, 6, 3)), SPACE, ScriptValueError, "does not divide"),
    (("DepthToSpace", t(1, 6, 3, 5)), SPACE, ScriptValueError, "does not divide"),
    (("RepeatInterleaveInt", t(2, 3), n(-1), n(1)), {}, ScriptValueError, "must not be negative, but got -1"),
    (("AvgPool3D", t(1, 2, 4, 4, 4)), {**POOL, "pad_list": (1, 2, 1, 1, 1, 2)}, ScriptValueError, "AvgPool3D"),
    (("PadV3", t(2, 3), host(1)), HALF, ScriptValueError, "must be greater than or equal to 3, but got 2"),
    (("PadV3", t(2, 3), host(1, 2, 3), n(0.0)), {}, ScriptValueError, "do not fit a tensor of rank 2"),
    (("PadV3", t(2), host(1, 2, 3, 4), n(0.0)), {}, ScriptValueError, "do not fit a tensor of rank 1"),
    (("Dropout", t(2, 3), n(0.0)), {}, ScriptRuntimeError, "must be in (0.0, 1.0], but got 0.0"),
    (("DropoutDoMaskExt", t(17), t(2, kind="uint8"), n(0.5)), {}, ScriptValueError, "too small for 17 elements"),
    (("ResizeNearestNeighborV2", t(2, 3, 4), host(1, 1)), {}, ScriptValueError, "two positive numbers"),
    (("ResizeNearestNeighborV2", t(1, 2, 3, 4), host(1, 1, 1)), {}, ScriptValueError, "two positive numbers"),
    (("ResizeNearestNeighborV2", t(1, 2, 3, 4), host(0, 1)), {}, ScriptValueError, "two positive numbers"),
    (("TopK", t(), n(1)), {}, ScriptValueError, "must be at least 1, but got 0"),
    (("Diag", t()), {}, ScriptValueError, "greater than or equal to 1, but got 0"),
    (("AllGatherV", t(3), host()), {}, ScriptValueError, "must have 1 numbers >= 0, but got []"),
    (("Tile", t(2, 3), host(1, -1)), {}, ScriptValueError, "but got -1 in 1th"),
    (("Tile", t(2, 3), host(1.5, 2)), {}, ScriptTypeError, "must be an int or a tuple of int, but got (1.5, 2)"),
    (("Tile", t(2, 3), n(1.5)), {}, ScriptTypeError, "must be an int or a tuple of int, but got 1.5"),
    (("Argmax", t(3), n(0), n(True)), {}, ScriptTypeError, "must be int32 or int64, but got True"),
    (("DiagPart", t(2, 3, 2)), {}, ScriptValueError, "must be equal"),
    (("DiagPart", t(2, 3)), {}, ScriptValueError, "must be equal"),
    (("GLU", t(2, 3), n(1)), {}, ScriptValueError, "must be even"),
    (("SmoothL1Loss", t(2), t(2), n(0.0)), {}, ScriptRuntimeError, "should greater than 0, but got 0"),
    (("SmoothL1Loss", t(2), t(2), n(-1.0)), {}, ScriptRuntimeError, "not support negative values, but got -1"),
    (("Einsum", several(t(2, 3))), {"equation": "ab->aa"}, ScriptValueError, "does not fit"),
    (("Einsum", several(t(2, 3))), {"equation": "ab->ac"}, ScriptValueError, "does not fit"),
    (("Einsum", several(t(2, 3))), {"equation": "abc->a"}, ScriptValueError, "does not fit"),
]  # fmt: skip
BEYOND += [
    ((name, wrong, *more), attrs, ScriptTypeError, "must be a tuple of tensors")
    for name, more, attrs in (
        ("Concat", (n(0),), {}), ("Stack", (), {}), ("AddN", (), {}), ("Meshgrid", (n(0),), {}),
        ("Einsum", (), {"equation": "a->a"}), ("Broadcast", (), {}),
    )
    for wrong in (t(2), several())
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "attrs", "error", "words"), BEYOND, ids=[f"{at}-{row[0][0]}" for at, row in enumerate(BEYOND)]
)
def test_operands_beyond_their_limits(call, attrs, error, words):
    refuses(partial(shapes, *call, **attrs), error, words)


STEPS = [name for name in names() if name.startswith("Apply") or name in ("Adam", "AdamWeightDecay", "SGD")]


@pytest.mark.parametrize("name", STEPS)
def test_what_a_step_reads_and_writes_has_one_type(name):
    """The weight, its state and its gradient; the rule and the kernel have as many results."""
    definition = find(name)
    tensors = {at for at, one in enumerate(definition.operands) if one in ("grad", "gradient", "delta")}
    tensors |= set(definition.updates)
    given = [t(2, 3) if at in tensors else t() for at in range(len(definition.operands))]
    found = tensors_of(definition.infer(given, definition.attrs))
    made = definition.kernel(
        *[np.full(one.shape, 0.5, np.float32) if one.shape else np.float32(0.5) for one in given], **definition.attrs
    )
    made = made if isinstance(made, tuple) else (made,)
    assert [(one.dtype.name, one.shape) for one in found] == [f32(*one.shape) for one in made]
    assert all(one.shape == (2, 3) for one in made)
    for at in sorted(tensors):
        for wrong, error in ((t(3, 2), ScriptValueError), (t(2, 3, kind="float16"), ScriptTypeError)):
            with pytest.raises(error):
                definition.infer([*given[:at], wrong, *given[at + 1 :]], definition.attrs)


@pytest.mark.parametrize("name", [name for name in STEPS if "update_slots" in find(name).attrs])
def test_slots_may_stay_as_they_are(name):
    for update in (False, True):
        weight, total = np.ones(2, np.float32), np.full(2, 3, np.float32)
        kernel = find(name).kernel
        kernel(weight, total, np.float32(0.5), np.full(2, 2, np.float32), update_slots=update)
        assert total.tolist() == [7 if update else 3] * 2
        assert weight.tolist() == pytest.approx([1 - 0.5 * 2 / (7 if update else 3) ** 0.5] * 2, rel=1e-5)


def test_rows_of_a_data_set_have_as_many_types_as_shapes():
    one, two = {"types": (dtype("int8"),), "shapes": ((2, 3),)}, {"types": (dtype("int8"),) * 2, "shapes": ((2,), ())}
    assert shapes("GetNext", **one, output_num=1) == [("int8", (2, 3))]
    assert shapes("GetNext", **two, output_num=2) == [("int8", (2,)), ("int8", ())]
    for attrs in ({**one, "output_num": 2}, {**two, "output_num": 1}, {**two, "types": one["types"], "output_num": 2},
                  {**two, "types": one["types"], "output_num": 1}):  # fmt: skip
        refuses(partial(shapes, "GetNext", **attrs), ScriptValueError, "must be equal")


def test_a_dumped_tensor_needs_a_file():
    assert shapes("TensorDump", StringType(value="a"), t(2)) == [("int32", (1,))]
    refuses(partial(shapes, "TensorDump", t(2), t(2)), ScriptTypeError, "the type of 'file' should be 'str'")
    refuses(partial(shapes, "TensorDump", StringType(value=""), t(2)), ScriptValueError, "cannot be an empty string")
    refuses(partial(shapes, "TensorDump", StringType(value="a"), NONE), ScriptTypeError, "input_x")


def test_windows_need_images():
    flat = t(2, 3, 4)
    refuses(partial(shapes, "MaxPool", flat), ScriptValueError, "the length of input must be equal to 4 , but got 3")
    refuses(partial(shapes, "AvgPool", flat, n(1), n(1)), ScriptValueError, "the x_rank must be equal to 4, but got 3")
