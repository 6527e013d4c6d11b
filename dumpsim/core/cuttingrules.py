"""How each operator is cut by its strategy. [spec parallel 2.3]

A rule takes an `Operator` and returns its `Scheme`; the device dimensions are named ``0``, ``1`` ... after the axes
that they cut, or ``m``, ``k``, ``n`` in matrix products.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import prod
from types import MappingProxyType

from dumpsim.core.cutting import Labels, Operator, Reduction, Scheme, strategy_error, strategy_text

__all__ = ["RULES", "default_strategy", "scheme_of"]

Rule = Callable[[Operator], Scheme]


def _vector(values: Sequence[int]) -> str:
    """Format a list as the vendor's log does."""
    return f"[const vector]{{{', '.join(map(str, values))}}}"


def _axes(count: int) -> list[str]:
    return [str(axis) for axis in range(count)]


def _matrix(cuts: Sequence[int]) -> list[tuple[str, int]]:
    return list(zip(_axes(len(cuts)), cuts, strict=True))


def _elementwise(op: Operator) -> Scheme:
    """Broadcasting operators: one device dimension for each axis of the result. Axes of extent 1 are not cut.

    All operands must be cut equally along an axis, except those of extent 1.
    """
    rank = max(map(len, op.shapes))
    columns = list(zip_longest(*(tuple(reversed(row)) for row in op.strategy), fillvalue=1))
    extents = list(zip_longest(*(tuple(reversed(shape)) for shape in op.shapes), fillvalue=1))
    cuts = [max(column) for column in columns][::-1]
    for column, row in zip(columns, extents, strict=True):
        for count, extent in zip(column, row, strict=True):
            if count != max(column) and extent != 1:
                raise strategy_error(op, "Invalid strategy. The cuts of operands that broadcast must be equal")
    labels = _axes(rank)
    inputs = []
    for row in op.strategy:
        own = labels[rank - len(row) :]
        inputs.append([None if count == 1 else label for label, count in zip(own, row, strict=True)])
    return Scheme(matrix=_matrix(cuts), inputs=inputs, outputs=[labels] * len(op.outputs))


def _all_like_first(op: Operator) -> Scheme:
    """Operands and outputs are all cut like the first operand."""
    return _like_first(op, ())


def _like_first(op: Operator, whole: Sequence[int], why: str = "") -> Scheme:
    """Cut like the first operand; the axes `whole` must not be cut, and outputs may lack those at the end."""
    cuts = op.strategy[0]
    for axis in whole:
        if cuts[axis] != 1:
            raise strategy_error(op, why or f"The strategy corresponding to axis dimension({cuts[axis]}) is not 1")
    labels = _axes(len(cuts))
    inputs: list[Labels] = []
    for row in op.strategy:
        own = labels[len(labels) - len(row) :]
        inputs.append([None if count == 1 else label for label, count in zip(own, row, strict=True)])
    outputs = [labels[: len(shape)] for shape in op.outputs]  # only the last axes may be missing
    return Scheme(matrix=_matrix(cuts), inputs=inputs, outputs=outputs)


def _last_whole(op: Operator) -> Scheme:
    return _like_first(op, (-1,))


def _softmax(op: Operator) -> Scheme:
    axes = op.constants.get(1, -1)
    return _like_first(op, axes if isinstance(axes, tuple) else (axes,))


_EXTREMES = MappingProxyType({"ArgMaxWithValue": "max", "Argmax": "max", "ArgMinWithValue": "min", "Argmin": "min"})


def _along_axis(op: Operator) -> Scheme:
    """Extremes and their indices along an axis, which outputs drop or keep with extent 1.

    If the axis is cut, the ranks reduce the outputs as they are, including the indices, which then count within the
    parts. [observed 2.10]
    """
    cuts, axis = op.strategy[0], op.constants.get(1, op.attrs.get("axis", -1))
    assert isinstance(axis, int)
    axis %= len(cuts)
    labels = _axes(len(cuts))
    outputs: list[Labels] = []
    for shape in op.outputs:
        keeps_axis = len(shape) == len(cuts)
        outputs.append([None if at == axis else label for at, label in enumerate(labels) if keeps_axis or at != axis])
    reduction = Reduction(_EXTREMES[op.op_type], (labels[axis],)) if cuts[axis] > 1 else None
    return Scheme(matrix=_matrix(cuts), inputs=[labels], outputs=outputs, reduction=reduction)


def _cum_sum(op: Operator) -> Scheme:
    axis, row = op.constants[1], op.strategy[0]
    why = (
        f"For distributed operator CumSum, the input's dimension 'dim'/'axis' can not be split, the 'dim'/'axis' is "
        f"{axis} and the shard strategy is {_vector(row)}."
    )
    return _like_first(op, (axis,), why)


def _top_k(op: Operator) -> Scheme:
    return _like_first(op, (-1,), "Now we can not support to split last dimension")


def _layer_norm(op: Operator) -> Scheme:
    begin = op.constants[3]
    assert isinstance(begin, int)
    row = op.strategy[0]
    first = begin % len(row)
    why = (
        f"The dimensions starting form begin_norm_axis cannot be split, the begin_norm_axis is {first}, but the "
        f"strategy of first input is {list(row)}"
    )
    scheme = _like_first(op, range(first, len(row)), why)
    for name, other in zip(("gamma", "beta"), op.strategy[1:], strict=False):
        if other != row[len(row) - len(other) :]:
            raise strategy_error(
                op,
                f"The strategies of input and {name} must be right aligned, but the strategy of input is {list(row)}, "
                f"the strategy of {name} is {list(other)}",
            )
    return scheme


def _matmul(op: Operator) -> Scheme:
    """Matrix products: ``m``, ``k`` and ``n`` are device dimensions; batch axes are cut like those of the operands."""
    (a, b), (first, second) = op.strategy, op.shapes
    flags = [bool(op.constants.get(at, False)) for at in (2, 3)]
    if op.op_type == "MatMul" and a == b and not any(flags) and prod(a) == op.devices:
        labels = _axes(2)
        return Scheme(matrix=_matrix(a), inputs=[labels, labels], outputs=[labels], gathers=True)
    rows = (a[-1], a[-2]) if flags[0] else (a[-2], a[-1])
    columns = (b[-1], b[-2]) if flags[1] else (b[-2], b[-1])
    if rows[1] != columns[0]:
        raise strategy_error(
            op,
            f"Invalid strategy for mat_a {list(a)} and mat_b {list(b)}. The transpose_a is: {int(flags[0])}, and "
            f"transpose_b is {int(flags[1])}, the shard num of first input's {'row' if flags[0] else 'column'} is "
            f"{rows[1]}, but the shard num of second input's {'column' if flags[1] else 'row'} is {columns[0]}",
        )
    _check_batches(op)
    batch = max(len(first), len(second)) - 2
    cuts: list[int] = []
    labels = _axes(batch)
    batches: list[Labels] = []
    for row, shape in ((a, first), (b, second)):
        own = labels[batch - len(shape) + 2 :]
        batches.append([None if count == 1 else label for label, count in zip(own, row, strict=False)])
    for one, two in zip_longest(reversed(a[:-2]), reversed(b[:-2]), fillvalue=1):
        cuts.insert(0, max(one, two))
    left = ["k", "m"] if flags[0] else ["m", "k"]
    right = ["n", "k"] if flags[1] else ["k", "n"]
    return Scheme(
        matrix=[*zip(labels, cuts, strict=True), ("m", rows[0]), ("k", rows[1]), ("n", columns[1])],
        inputs=[[*batches[0], *left], [*batches[1], *right]],
        outputs=[[*labels, "m", "n"]],
        reduction=Reduction("sum", ("k",)) if rows[1] > 1 else None,
    )


def _check_batches(op: Operator) -> None:
    """Check that the batch axes that both operands have are cut equally."""
    (a, b), (first, second) = op.strategy, op.shapes
    pairs = zip(reversed(a[:-2]), reversed(b[:-2]), reversed(first[:-2]), reversed(second[:-2]), strict=False)
    if any(one != other and extent == count for one, other, extent, count in pairs):
        longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
        raise strategy_error(
            op,
            f"Strategies of batch dimensions are not equal, long strategy is {list(longer)}, short strategy is "
            f"{list(shorter)}",
        )


def _bias_add(op: Operator) -> Scheme:
    cuts, channel = op.strategy[0], op.strategy[1][0]
    if cuts[1] != channel:
        raise strategy_error(op, "Invalid strategy. The bias must be cut like the channel axis")
    labels = _axes(len(cuts))
    return Scheme(matrix=_matrix(cuts), inputs=[labels, [labels[1]]], outputs=[labels])


_REDUCTIONS = MappingProxyType(
    {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "max", "ReduceMin": "min", "ReduceProd": "prod"}
)


def _reduce(op: Operator) -> Scheme:
    cuts, keep = op.strategy[0], bool(op.constants.get(2, op.attrs.get("keep_dims", False)))
    axes = op.constants.get(1, ())
    listed = axes if isinstance(axes, (tuple, list)) else (axes,)
    gone = {int(axis) % len(cuts) for axis in listed} or set(range(len(cuts)))
    labels = _axes(len(cuts))
    output = [None if axis in gone else label for axis, label in enumerate(labels) if keep or axis not in gone]
    summed = tuple(labels[axis] for axis in sorted(gone) if cuts[axis] > 1)
    kind = _REDUCTIONS[op.op_type]
    return Scheme(
        matrix=_matrix(cuts), inputs=[labels], outputs=[output], reduction=Reduction(kind, summed) if summed else None
    )


def _transpose(op: Operator) -> Scheme:
    cuts, order = op.strategy[0], op.constants[1]
    assert isinstance(order, tuple)
    labels = _axes(len(cuts))
    return Scheme(matrix=_matrix(cuts), inputs=[labels], outputs=[[labels[axis] for axis in order]])


def _expand_dims(op: Operator) -> Scheme:
    axis = op.constants[1]
    assert isinstance(axis, int)
    labels: list[str | None] = list(_axes(len(op.strategy[0])))
    at = axis % (len(labels) + 1)
    return Scheme(matrix=_matrix(op.strategy[0]), inputs=[labels], outputs=[[*labels[:at], None, *labels[at:]]])


def _squeeze(op: Operator) -> Scheme:
    listed = op.attrs.get("axis", op.constants.get(1, ()))
    axes = listed if isinstance(listed, (tuple, list)) else (listed,)
    shape, labels = op.shapes[0], _axes(len(op.shapes[0]))
    gone = {int(a) % len(shape) for a in axes} or {a for a, n in enumerate(shape) if n == 1}
    return Scheme(
        matrix=_matrix(op.strategy[0]),
        inputs=[labels],
        outputs=[[label for axis, label in enumerate(labels) if axis not in gone]],
    )


def _one_hot(op: Operator) -> Scheme:
    """The strategy is that of the output. For cut classes see `dumpsim.graph.parallel.classes`. [observed 2.10]"""
    row = op.strategy[0]
    axis = op.constants.get(4, -1)
    if len(op.shapes[0]) > 1 and (axis != -1 or any(count != 1 for count in row[1:])):
        raise strategy_error(op, "When input dimension is > 1, axis must be -1, and strategy must be data parallel")
    labels = _axes(len(row))
    classes = labels[axis]
    return Scheme(
        matrix=_matrix(row) if axis else _matrix(row)[::-1],
        inputs=[[label for label in labels if label != classes], *([] for _ in op.shapes[1:])],
        outputs=[labels],
    )


def _concat(op: Operator) -> Scheme:
    axis = op.constants.get(1, 0)
    assert isinstance(axis, int)
    if any(row != op.strategy[0] for row in op.strategy):
        raise strategy_error(op, "The strategy of each input tensor must be equal")
    return _like_first(op, (axis,), "The axis can not be split")


def _split(op: Operator) -> Scheme:
    axis = op.constants.get(1, 0)
    assert isinstance(axis, int)
    return _like_first(op, (axis,), "The axis can not be split")


def _strided_slice(op: Operator) -> Scheme:
    """An axis may be cut if the slice takes all of it; axes that the slice shrinks are dropped from the output.

    The end is not adjusted: it stays that of the whole axis, beyond the end of a part. [observed 2.10]
    """
    cuts = op.strategy[0]
    for axis, count in enumerate(cuts):
        if count != 1 and axis < len(op.constants[3]) and op.constants[3][axis] != 1:
            raise strategy_error(
                op,
                "When a certain dimension is split, now does not support that the stride is not 1, the strides is "
                f"{_vector(op.constants[3])}, the strategy is {_vector(cuts)}, the index is {axis}",
            )
        if count != 1 and not _takes_whole(op, axis):
            raise strategy_error(
                op,
                "When a dimension is not fully fetched, the dimension can not be split now, the begin is "
                f"{_vector(op.constants[1])}, the end is {_vector(op.constants[2])}, the index is {axis}, the input "
                f"shape in process is {_vector(op.shapes[0])}, the strategy in process is {_vector(cuts)}",
            )
    labels = _axes(len(cuts))
    outputs: Labels = [label for axis, label in enumerate(labels) if not _mask(op, _SHRINK) >> axis & 1]
    if not _is_aligned(op):  # nothing is cut
        outputs = [None] * len(op.outputs[0])
    return Scheme(matrix=_matrix(cuts), inputs=[labels], outputs=[outputs])


_BEGIN, _END, _ELLIPSIS, _NEW_AXIS, _SHRINK = range(4, 9)  # the masks of StridedSlice, among its operands


def _mask(op: Operator, at: int) -> int:
    found: int = op.constants.get(at, 0)
    return found


def _is_aligned(op: Operator) -> bool:
    """Whether begin, end and steps of a StridedSlice refer to the first axes of the operand, in order."""
    return not _mask(op, _ELLIPSIS) and not _mask(op, _NEW_AXIS)


def _takes_whole(op: Operator, axis: int) -> bool:
    """Whether a StridedSlice takes all of an axis."""
    begin, end, steps = (op.constants[at] for at in (1, 2, 3))
    if not _is_aligned(op) or _mask(op, _SHRINK) >> axis & 1:
        return False
    if axis >= len(begin):
        return True
    extent = op.shapes[0][axis]
    first = 0 if _mask(op, _BEGIN) >> axis & 1 else begin[axis]
    last = extent if _mask(op, _END) >> axis & 1 else end[axis]
    return (first, last, steps[axis]) == (0, extent, 1)


def _gather(op: Operator) -> Scheme:
    """Rows by index: the indices, columns and rows may be cut; for rows see `dumpsim.graph.parallel.lookup`."""
    table, ids = op.strategy[0], op.strategy[1]
    axis = op.constants.get(2, 0)
    if axis != 0 and table[axis] != 1 and any(count != 1 for count in ids):
        raise strategy_error(op, f"param is split at dim (axis){axis} ,index can't be split.")
    if axis != 0:
        raise strategy_error(op, f"Gather cannot be cut along axis {axis}, only axis 0 is supported")
    rows = ["p"] if table[0] > 1 else []
    labels = [f"i{axis}" for axis in range(len(ids))]
    columns = [f"c{axis}" for axis in range(1, len(table))]
    matrix = [
        *((label, table[0]) for label in rows),
        *zip(labels, ids, strict=True),
        *zip(columns, table[1:], strict=True),
    ]
    scheme = Scheme(
        matrix=matrix,
        inputs=[[rows[0] if rows else None, *columns], labels],
        outputs=[[*labels, *columns]],
        reduction=Reduction("sum", ("p",)) if rows else None,
    )
    if not rows:
        return scheme
    scheme = replace(scheme, repeats_left=True)
    count = op.shapes[1][0] if op.shapes[1] else 1
    if all(cut == 1 for cut in (*ids, *table[1:])) and count % table[0] == 0:  # every rank keeps its part of the sum
        return replace(scheme, outputs=[["p", *scheme.outputs[0][1:]]], reduction=Reduction("scatter", ("p",)))
    return scheme


def _conv(op: Operator) -> Scheme:
    """Batch and channels are cut; height and width stay whole."""
    (n, ci, *place), (co, other, *window) = op.strategy
    if ci != other:
        raise strategy_error(
            op,
            f"The shard num of c-in for input strategy is {ci}, but the shard num of c-in for weight strategy is "
            f"{other}",
        )
    if any(count != 1 for count in (*place, *window)):
        raise strategy_error(op, "the operands must not be cut along height and width")
    rest: list[str | None] = [None] * len(place)
    return Scheme(
        matrix=[("n", n), ("i", ci), ("o", co)],
        inputs=[["n", "i", *rest], ["o", "i", *rest]],
        outputs=[["n", "o", *rest]],
        reduction=Reduction("sum", ("i",)) if ci > 1 else None,
        attrs={"out_channel": op.shapes[1][0] // co},
    )


def _logits(op: Operator) -> Scheme:
    """A loss over classes: the class axis is not cut, and the output with one value per row lacks it."""
    (batch, classes), (rows, columns) = op.strategy
    if classes != 1 or columns != 1:
        raise strategy_error(
            op, f"The strategy corresponding to axis dimension is not 1, input: {classes}, label: {columns}"
        )
    if batch != rows:
        raise strategy_error(op, "Strategies of relevant dimensions are not equal.")
    labels = _axes(2)
    outputs = [labels[: len(shape)] for shape in op.outputs]
    return Scheme(matrix=_matrix(op.strategy[0]), inputs=[labels, labels], outputs=outputs)


def _tile(op: Operator) -> Scheme:
    """The strategy is that of the output: a rank has some of the repetitions of an axis. [observed 2.10]"""
    row, times = op.strategy[0], op.constants[1]
    labels = _axes(len(row))
    front = len(row) - len(op.shapes[0])
    return Scheme(
        matrix=_matrix(row),
        inputs=[[label if n == 1 else None for label, n in list(zip(labels, times, strict=True))[front:]]],
        outputs=[labels],
        local={1: tuple(n // count if n > 1 else n for n, count in zip(times, row, strict=True))},
    )


def _broadcast_to(op: Operator) -> Scheme:
    shape, target, row = op.shapes[0], op.outputs[0], op.strategy[0]
    labels: list[str | None] = list(_axes(len(row)))
    front: list[str | None] = [None] * (len(target) - len(shape))
    local = list(target[: len(front)])
    local += [n // count if m == n else n for m, n, count in zip(shape, target[len(front) :], row, strict=True)]
    return Scheme(matrix=_matrix(row), inputs=[labels], outputs=[[*front, *labels]], local={1: tuple(local)})


_SAME = (
    "ReLU ReLU6 GeLU FastGeLU SiLU Sigmoid Tanh Neg Abs Square Sign Floor Ceil Rint Round Sqrt Rsqrt Reciprocal Inv "
    "Exp Expm1 Log Log1p Sin Cos Tan ACos Asin Atan Sinh Cosh Asinh Acosh Atanh Erf Erfc Elu SeLU Softplus Softsign "
    "HSwish HSigmoid Mish Cast LogicalNot IsNan IsInf IsFinite ZerosLike OnesLike Dropout StopGradient "
    "ShardIdentity Muls Divs AddScalar SubScalar PowTensorScalar ClampScalar HShrink SoftShrink Trunc"
)
_BROADCAST = (
    "Add Sub Mul Div RealDiv DivNoNan FloorDiv Mod FloorMod Pow Maximum Minimum Atan2 SquaredDifference Xdivy Xlogy "
    "MulNoNan Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr BitwiseAnd BitwiseOr BitwiseXor "
    "Select AddN"
)
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(_SAME.split(), _all_like_first),
        **dict.fromkeys(_BROADCAST.split(), _elementwise),
        **dict.fromkeys(_REDUCTIONS, _reduce),
        "MatMul": _matmul,
        "BatchMatMul": _matmul,
        "BiasAdd": _bias_add,
        "Softmax": _softmax,
        "LogSoftmax": _softmax,
        "LayerNorm": _layer_norm,
        "RmsNorm": _last_whole,
        "CumSum": _cum_sum,
        "ArgMaxWithValue": _along_axis,
        "ArgMinWithValue": _along_axis,
        "Argmax": _along_axis,
        "Argmin": _along_axis,
        "TopK": _top_k,
        "SoftmaxCrossEntropyWithLogits": _logits,
        "Transpose": _transpose,
        "ExpandDims": _expand_dims,
        "Squeeze": _squeeze,
        "OneHot": _one_hot,
        "Concat": _concat,
        "Split": _split,
        "StridedSlice": _strided_slice,
        "Gather": _gather,
        "Conv2D": _conv,
        "Tile": _tile,
        "BroadcastTo": _broadcast_to,
    }
)
_FIRST_ONLY = frozenset({"MatMul", "LayerNorm", "RmsNorm", "BiasAdd", "Conv2D", "OneHot"})  # the others are weights


def scheme_of(op: Operator) -> Scheme:
    """Return the scheme of an operator.

    Raises
    ------
    StrategyError
        If the strategy does not fit the operator, or cuts an operator that has no rule.
    """
    _check(op)
    rule = RULES.get(op.op_type)
    if rule is None:
        if any(count != 1 for row in op.strategy for count in row):
            raise strategy_error(op, "dumpsim has no rule for cutting this operator")
        whole: list[Labels] = [[None] * len(shape) for shape in op.shapes]
        return Scheme(matrix=[], inputs=whole, outputs=[[None] * len(shape) for shape in op.outputs])
    return rule(op)


def _cut_shapes(op: Operator) -> tuple[tuple[int, ...], ...]:
    """Return the shapes that a strategy cuts: those of the operands, with some exceptions. [observed 2.10]"""
    if op.op_type == "OneHot":
        return (op.outputs[0], *op.shapes[1:])
    if op.op_type == "Tile":
        times, (shape,) = op.constants[1], op.shapes
        own = (*[1] * (len(times) - len(shape)), *shape)
        return (tuple(n if n > 1 else extent for n, extent in zip(times, own, strict=True)),)
    return op.shapes


def _check(op: Operator) -> None:
    if len(op.strategy) != len(op.shapes):
        raise strategy_error(
            op, f"{strategy_text(op)}, strategy size: {len(op.strategy)} is not equal to inputs size: {len(op.shapes)}"
        )
    for index, (row, shape) in enumerate(zip(op.strategy, _cut_shapes(op), strict=True)):
        if len(row) != len(shape):
            raise strategy_error(
                op,
                f"{strategy_text(op)}, strategy len: {len(row)} is not equal to inputs len: {len(shape)}, "
                f"index: {index}",
            )
        for axis, (count, extent) in enumerate(zip(row, shape, strict=True)):
            if not isinstance(count, int) or isinstance(count, bool) or count < 1:
                raise strategy_error(
                    op, f"{strategy_text(op)}, the value of strategy must be larger than 0, but get {count!r}"
                )
            if extent % count:
                raise strategy_error(
                    op,
                    f"Input index {index}, the strategy is {op.strategy}, shape is {list(shape)}, shape value {extent} "
                    f"at dim index {axis} cannot be divisible by strategy value {count}",
                )
            if count & (count - 1) and not op.devices & (op.devices - 1):
                raise strategy_error(
                    op, f"{strategy_text(op)}, the value of strategy must be the power of 2, but get {count}"
                )


def default_strategy(op: Operator) -> tuple[tuple[int, ...], ...]:
    """Return the default strategy: axis 0 is cut into as many parts as extent and devices allow. [observed 2.10]"""
    rows = [[1] * len(shape) for shape in op.shapes]
    if op.op_type not in RULES:
        return tuple(map(tuple, rows))
    if op.op_type == "Gather":
        batch = [1]
    elif op.op_type in _FIRST_ONLY:
        batch = [0]
    else:
        longest = max(map(len, op.shapes), default=0)
        batch = [at for at, shape in enumerate(op.shapes) if len(shape) == longest and shape and shape[0] > 1]
    counts = [_divisor(op.shapes[at][0], op.devices) for at in batch if op.shapes[at]]
    for at in batch:
        if op.shapes[at]:
            rows[at][0] = min(counts)
    if op.op_type == "OneHot" and op.shapes[0]:
        rows[0] = [op.devices if op.shapes[0][0] % op.devices == 0 else 1, *[1] * len(op.shapes[0])]
    if op.op_type == "Tile":
        rows[0] = [rows[0][0], *[1] * (len(op.constants[1]) - 1)]
    if op.op_type == "StridedSlice" and not _takes_whole(op, 0):
        return tuple((1,) * len(shape) for shape in op.shapes)
    whole = op.constants.get(1) if op.op_type in ("Concat", "Split", "Softmax", "CumSum") else None
    if op.op_type == "Concat" and whole is None:
        whole = 0
    first = len(op.shapes[0]) if op.shapes else 0
    if (
        whole is not None
        and first
        and 0 in [axis % first for axis in (whole if isinstance(whole, tuple) else (whole,))]
    ):
        rows = [[1] * len(shape) for shape in op.shapes]
    return tuple(map(tuple, rows))


def _divisor(extent: int, devices: int) -> int:
    """Return the largest divisor of both the extent and the number of devices.

    Examples
    --------
    >>> _divisor(4, 8), _divisor(6, 4), _divisor(5, 4)
    (4, 2, 1)
    """
    count = devices
    while extent % count or devices % count:
        count -= 1
    return count
