"""Kernels where small cases look alike: empty ranges, large logits, several index axes, padding of the last axes."""

import numpy as np
import pytest
from ops.evaluator import Builder, Value

from dumpsim.core.abstract import MonadType, ScalarType, StringType, TensorType, TupleType
from dumpsim.core.dtype import dtype, from_numpy
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.ops.cpu import on_target
from dumpsim.ops.gradient import shape_of
from dumpsim.ops.rules import broadcast, is_constant, numbers_of
from dumpsim.ops.table import find
from dumpsim.ops.window import Window


def kernel(name, *operands, **attrs):
    definition = find(name)
    return definition.kernel(*operands, **{**definition.attrs, **attrs})


def test_probabilities_of_large_logits_are_numbers():
    logits, labels = np.float32([[1000, 999, 0], [-2000, -2000, -2001]]), np.int32([1, 2])
    shifted = np.float64([[0, -1, -1000], [0, 0, -1]])
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    loss = kernel("SparseSoftmaxCrossEntropyWithLogits", logits, labels)
    assert float(loss) == pytest.approx(-(logs[0, 1] + logs[1, 2]) / 2, rel=1e-6)


def test_the_gradient_of_probabilities_is_shared_by_the_rows():
    logits, labels = np.float32([[1, 2, 0], [0, -1, 1]]), np.int32([1, 2])
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    made = kernel("SparseSoftmaxCrossEntropyWithLogits", logits, labels, is_grad=True, sens=3.0)
    np.testing.assert_allclose(made, (chances - np.eye(3)[labels]) * 3 / 2, rtol=1e-5)


@pytest.mark.parametrize(("start", "limit", "delta"), [(3, 3, 1), (0, 7, 2), (0, 8, 2), (5, -1, -2), (0.0, 1.0, 0.3)])
def test_a_range_has_as_many_numbers_as_its_type_says(start, limit, delta):
    made = Builder().emit("Range", start, limit, delta)
    assert made.content.tolist() == pytest.approx(np.arange(start, limit, delta).tolist())
    assert made.abstract.shape == made.content.shape
    kind = "float32" if isinstance(start, float) else "int64"
    assert made.abstract.dtype.name == kind
    with pytest.raises(ScriptValueError):
        Builder().emit("Range", 0, 5, -1)
    with pytest.raises(ScriptValueError):
        Builder().emit("Range", 0, 5, 0)


@pytest.mark.parametrize("padding", [(1, 2), (0, 1, 2, 0), (-1, 1), (1, 0, 0, -1, 2, 2)])
def test_padding_names_the_last_axes_first(padding):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) + 1
    made = Builder().emit("ConstantPadND", x, padding, 9.0)
    wanted = x
    for at in range(0, len(padding), 2):
        axis = 2 - at // 2
        for side, n in enumerate(padding[at : at + 2]):
            if n < 0:
                keep = slice(-n, None) if side == 0 else slice(None, n)
                wanted = wanted[tuple(keep if a == axis else slice(None) for a in range(3))]
            else:
                more = np.full([n if a == axis else size for a, size in enumerate(wanted.shape)], 9, np.float32)
                wanted = np.concatenate([more, wanted] if side == 0 else [wanted, more], axis)
    np.testing.assert_array_equal(made.content, wanted)
    assert made.abstract.shape == wanted.shape


@pytest.mark.parametrize(("base", "exponent", "kind"), [
    (2, np.int32([0, 3]), "int32"), (2.5, np.int32([0, 3]), "float32"), (2.5, np.float16([0, 2]), "float16"),
    (2, np.float32([0.5, 3]), "float32"),
])  # fmt: skip
def test_a_power_has_the_type_of_a_number_and_a_tensor(base, exponent, kind):
    made = Builder().emit("PowScalarTensor", base, exponent)
    assert made.abstract.dtype.name == kind
    np.testing.assert_allclose(made.content, np.float64(base) ** exponent, rtol=1e-3)


def test_whole_numbers_are_divided_one_after_the_other_at_places_of_several_axes():
    x = np.int32([[100, -7], [9, 50]])
    index, values = np.int32([[0, 0], [0, 0], [0, 1], [1, 1]]), np.int32([3, 4, 2, -8])
    made = kernel("TensorScatterDiv", x, index, values)
    assert made.tolist() == [[100 // 3 // 4, -3], [9, -6]]
    made = kernel("TensorScatterDiv", x, np.int32([[1], [1]]), np.int32([[2, 3], [2, -5]]))
    assert made.tolist() == [[100, -7], [2, -3]]


@pytest.mark.parametrize("name", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
def test_bits(name):
    a, b = np.int16([[12], [10]]), np.int16([10, 6, -1])
    made = Builder().emit(name, a, b)
    truth = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}[name](a, b)
    assert made.content.tolist() == truth.tolist()
    assert (made.abstract.shape, made.abstract.dtype.name) == ((2, 3), "int16")


@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("name", ["CumSum", "CumProd"])
def test_running_results(name, exclusive, reverse):
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    wanted = np.empty_like(x)
    for row in range(2):
        total = np.float32(name == "CumProd")
        for at in range(3)[:: -1 if reverse else 1]:
            before, total = total, total * x[row, at] if name == "CumProd" else total + x[row, at]
            wanted[row, at] = before if exclusive else total
    made = Builder().emit(name, x, 1, exclusive, reverse)
    assert made.content.tolist() == wanted.tolist()
    assert made.abstract.shape == (2, 3)


def test_the_gradient_of_a_resize_has_the_type_of_what_flows_in():
    grads, image = np.ones((1, 1, 4, 4), np.float16), np.ones((1, 1, 2, 2), np.float32)
    made = Builder().emit("ResizeBilinearGrad", grads, image, False, False)
    assert (made.abstract.dtype.name, made.abstract.shape) == ("float16", (1, 1, 2, 2))
    assert float(made.content.sum()) == 16


@pytest.mark.parametrize(
    ("axis", "keep", "shape"),
    [((1,), False, (2, 4)), ((1,), True, (2, 1, 4)), ((0, 2), False, (3,)), ((), False, ())],
)
def test_deviations_and_means_have_the_shape_of_a_reduction(axis, keep, shape):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2
    made = Builder().emit("ReduceStd", x, axis, False, keep)
    assert [one.shape for one in made.abstract.items] == [shape, shape]
    axes = axis or (0, 1, 2)
    np.testing.assert_allclose(made.content[0], x.std(axis=axes, keepdims=keep), rtol=1e-5)
    np.testing.assert_allclose(made.content[1], x.mean(axis=axes, keepdims=keep), rtol=1e-5)


def value(array):
    array = np.asarray(array)
    return Value(TensorType(dtype=from_numpy(array.dtype), shape=array.shape), array)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_rows_that_do_not_exist_are_zeros(dim):
    x, index = np.arange(1.0, 13).reshape(3, 4), np.array([2, -1, 0, 5, 4])
    size = x.shape[dim]
    wanted = np.stack([x.take(at, dim) if 0 <= at < size else np.zeros_like(x.take(0, dim)) for at in index], dim)
    assert kernel("IndexSelect", x, dim, index).tolist() == wanted.tolist()
    # Gather and GatherD also count from the end
    wanted = np.stack([x.take(at, dim) if -size <= at < size else np.zeros_like(x.take(0, dim)) for at in index], dim)
    assert kernel("Gather", x, index, dim, 0).tolist() == wanted.tolist()
    each = np.array([[2, -size, size], [-size - 1, 0, -1]])
    each = each if dim == 0 else each.T[:, :2]
    found = kernel("GatherD", x, dim, each)
    for place in np.ndindex(*each.shape):
        at = each[place]
        key = (at, place[1]) if dim == 0 else (place[0], at)
        assert found[place] == (x[key] if -size <= at < size else 0)


@pytest.mark.parametrize("name", ["Max", "Min"])
def test_equal_extremes_share_the_gradient(name):
    x = np.float64([[3, 1, 3], [1, 3, 2]])
    best = 3 if name == "Max" else 1
    odd = x * [[1, 1, np.nan]]  # its extreme is NaN
    for given, chosen in ((x, x == best), (odd, np.isnan(odd))):
        b, wanted = Builder(), chosen * 6 / chosen.sum()
        operand = value(given)
        out = b.emit(name, operand)
        (slope,) = find(name).grad(b, [operand], out, value(np.float64(6)), {})
        assert slope.content.tolist() == wanted.tolist()


@pytest.mark.parametrize(("name", "operands"), [("UniformReal", ()), ("UniformInt", (-3, 4))])
def test_uniform_numbers_follow_seeds_and_counter(name, operands):
    def drawn(seed, seed2, counter):
        return kernel(name, (2000,), *operands, seed, seed2, counter=counter)

    first = drawn(0, 0, 0)
    assert first.tolist() == kernel(name, (2000,), *operands).tolist() == drawn(0, 0, 0).tolist()
    for other in (drawn(1, 0, 0), drawn(0, 1, 0), drawn(0, 0, 1)):
        assert first.tolist() != other.tolist()
    if name == "UniformInt":
        assert set(first.tolist()) == set(range(-3, 4))
    else:
        assert 0 <= first.min() < 0.01
        assert 0.99 < first.max() < 1
        assert float(first.mean()) == pytest.approx(0.5, abs=0.03)
    assert kernel(name, (2, 3), *operands).shape == (2, 3)


REAL = """
    Sqrt Rsqrt Reciprocal Exp Expm1 Log Log1p Sin Cos Tan Atan Sinh Cosh Tanh Sigmoid Erf Erfc ACos Asin Asinh Acosh
    Atanh Log2 Log10 Exp2
"""


@pytest.mark.parametrize("name", REAL.split())
def test_functions_of_whole_numbers_are_real(name):
    made = Builder().emit(name, value(np.int32([[1], [1]])))
    assert (made.abstract.dtype.name, made.abstract.shape) == ("float32", (2, 1))
    alone = Builder().emit(name, value(np.float32([[1], [1]])))
    np.testing.assert_allclose(made.content, alone.content, rtol=1e-6)


@pytest.mark.parametrize(("low", "high", "kind"), [
    (1, 3, "int32"), (1.5, None, "float32"), (None, 2.5, "float32"), (None, 2, "int32"), (1.5, 2.5, "float32"),
])  # fmt: skip
def test_limits_of_whole_numbers_may_be_real(low, high, kind):
    x = np.int32([0, 1, 2, 3, 4])
    made = Builder().emit("ClampScalar", value(x), low, high)
    assert made.abstract.dtype.name == kind
    assert made.content.tolist() == np.clip(x.astype(float), low, high).tolist()
    made = Builder().emit("ClampScalar", value(x.astype(np.float16)), low, high)
    assert made.abstract.dtype.name == "float16"


def test_a_gradient_is_scaled_before_the_momentum():
    variable, total = np.float32([1, 2]), np.float32([0.5, -1])
    kernel("ApplyMomentum", variable, total, np.float32(0.5), np.float32([8, 4]), np.float32(0.5), gradient_scale=0.25)
    assert total.tolist() == [0.25 + 2, -0.5 + 1]
    assert variable.tolist() == [1 - 0.5 * 2.25, 2 - 0.5 * 0.5]


@pytest.mark.parametrize(("name", "ranks"), [
    ("ScalarSummary", (0,)), ("ImageSummary", (4,)), ("HistogramSummary", range(1, 9)), ("TensorSummary", range(1, 9)),
])  # fmt: skip
def test_summaries_take_a_name_and_a_tensor_of_some_ranks(name, ranks):
    infer, tag = find(name).infer, StringType(value="loss")
    for rank in range(10):
        given = TensorType(dtype=dtype("float32"), shape=(2,) * rank)
        if rank in ranks:
            assert infer([tag, given], {}) == TensorType(dtype=dtype("int32"), shape=(1,))
        else:
            with pytest.raises(
                ScriptValueError, match=rf"the dimension of 'value' should be in \[.*\], but got {rank}."
            ):
                infer([tag, given], {})
    one = TensorType(dtype=dtype("float32"), shape=(1,))
    assert infer([tag, one], {}).shape == (1,)
    for wrong in (StringType(value=""), one):
        with pytest.raises(ScriptTypeError, match="the type of 'name' should be 'str' and it cannot be empty"):
            infer([wrong, one], {})


def test_extremes_of_a_number():
    for name in ("ArgMaxWithValue", "ArgMinWithValue"):
        made = Builder().emit(name, value(np.float32(2.5)), 0, False)
        assert [one.tolist() for one in made.content] == [0, 2.5]
    assert Builder().emit("Argmax", value(np.float32([1, 3, 2])), 0, dtype("int64")).content.dtype == np.int64
    assert Builder().emit("Argmax", value(np.float32([1, 3, 2])), 0, 34).content.dtype == np.int32  # its number
    for wrong in (dtype("float32"), 43):
        with pytest.raises(ScriptTypeError, match="must be int32 or int64"):
            Builder().emit("Argmax", value(np.float32([1, 3, 2])), 0, wrong)


def test_a_reduction_over_no_axes_may_be_skipped():
    x = np.float32([[1, 2], [3, 4]])
    assert kernel("ReduceSum", x, (), False, True).tolist() == x.tolist()
    assert kernel("ReduceSum", x, (), False, False) == 10
    assert (
        kernel("ReduceSum", x, 0, False, True).tolist() == kernel("ReduceSum", x, (0,), False, True).tolist() == [4, 6]
    )


def test_items_of_tuples_pass_gradients_to_one_of_them():
    b, items = Builder(), (value(np.ones(2)), value(np.zeros(3)), value(np.ones(())))
    for index, at in ((0, 0), (2, 2), (-1, 2), (-3, 0)):
        given, rest = find("TupleGetItem").grad(b, [items, index], items[at], "slope", {})
        assert given == tuple("slope" if n == at else None for n in range(3))
        assert rest is None
    whole = b.emit("MakeTuple", *items)
    assert find("TupleGetItem").grad(b, [whole, 1], items[1], "slope", {}) == ((None, "slope", None), None)
    assert find("MakeTuple").grad(b, items, whole, ["one", "two", "three"], {}) == ("one", "two", "three")
    assert find("Depend").grad(b, [items[0], items[1]], items[0], "slope", {}) == ("slope", None)
    abstracts = [item.abstract for item in items]
    made = find("MakeTuple").infer(abstracts, {})
    for index in (-3, -1, 0, 2):
        number = ScalarType(dtype=dtype("int64"), value=index)
        assert find("TupleGetItem").infer([made, number], {}) == abstracts[index]
    for index in (-4, 3):
        with pytest.raises(ScriptValueError, match=rf"must be in \[-3, 3\), but got {index}"):
            find("TupleGetItem").infer([made, ScalarType(dtype=dtype("int64"), value=index)], {})


def test_rows_that_a_number_of_tensor_type_counts_are_known_at_run_time():
    k = TensorType(dtype=dtype("int32"), shape=())
    values, places = find("TopK").infer([TensorType(dtype=dtype("float32"), shape=(2, 5)), k], {}).items
    assert (values.shape, places.shape, places.dtype.name) == ((2, -1), (2, -1), "int32")
    bound = TensorType(dtype=dtype("int32"), shape=())
    number = ScalarType(dtype=dtype("int64"), value=1)
    made = find("Range").infer([number, bound, number, number], {})
    assert (made.dtype.name, made.shape) == ("int64", (-1,))
    for k in (0, 6):
        with pytest.raises(ScriptValueError, match=rf"the k must be in \(0,5\], but got {k}"):
            Builder().emit("TopK", value(np.zeros((2, 5), np.float32)), k)


@pytest.mark.parametrize("eps", [-1.0, 0.0, 0.25])
def test_logits_beyond_their_limits(eps):
    x = np.float64([-0.5, 0, 0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.5])
    inside = np.clip(x, eps, 1 - eps) if eps >= 0 else x
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(kernel("Logit", x, eps), np.log(inside / (1 - inside)))
        slope = kernel("LogitGrad", np.full_like(x, 3.0), x, eps)
    outside = 0 if eps >= 0 else np.nan
    edge = (x < eps) | (x > 1 - eps) if eps >= 0 else (x < 0) | (x > 1)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(slope, np.where(edge, outside, 3 / (x * (1 - x))))


def test_vectors_that_point_nowhere_read_zeros():
    x, index = np.arange(1.0, 13).reshape(3, 4), np.array([[2, 3], [3, 0], [0, -1], [1, 2]])
    assert kernel("GatherNd", x, index).tolist() == [12, 0, 0, 7]
    assert kernel("GatherNd", x, index[:, :1]).tolist() == [x[2].tolist(), [0] * 4, x[0].tolist(), x[1].tolist()]


def test_elements_are_added_up_at_equal_indices():
    x, index, updates = np.float32([[1, 2], [3, 4]]), np.array([[0, 1], [0, 0]]), np.float32([[10, 20], [30, 40]])
    assert kernel("TensorScatterElements", x, index, updates, 0, 1).tolist() == [[41, 42], [3, 24]]
    assert kernel("TensorScatterElements", x, index, updates, 1, 1).tolist() == [[11, 22], [73, 4]]
    with pytest.raises(UnsupportedError, match="the gradient of a reduction"):
        find("TensorScatterElements").grad(Builder(), [x, index, updates, 0, 1], None, None, {})


@pytest.mark.parametrize("name", ["Flatten", "FlattenExt"])
def test_a_number_is_flattened_to_a_vector_of_one(name):
    assert find(name).infer([TensorType(dtype=dtype("float32"), shape=()), *more(name)], {}).shape == (1,)


def more(name):
    number = ScalarType(dtype=dtype("int64"), value=0)
    return [number, number] if name == "FlattenExt" else []


def test_a_flattened_number_has_one_element():
    assert Builder().emit("Flatten", value(np.float32(3))).content.tolist() == [3]
    assert Builder().emit("Flatten", value(np.ones((2, 3, 4)))).content.shape == (2, 12)


@pytest.mark.parametrize("name", ["DropoutExt", "DropoutDoMaskExt"])
def test_what_dropout_keeps_has_a_gradient(name):
    b, x, dout = Builder(), value(np.arange(1, 65, dtype=np.float32)), value(np.full(64, 3, np.float32))
    if name == "DropoutExt":
        operands = [x, 0.25, 5, 7]
        out = b.emit(name, *operands)
        result, slopes = out.content[0], find(name).grad(b, operands, out, (dout, None), {})
    else:
        mask = b.emit("DropoutGenMaskExt", (64,), 0.25, 5, 7, None)
        operands = [x, mask, 0.25]
        out = b.emit(name, *operands)
        result, slopes = out.content, find(name).grad(b, operands, out, dout, {})
    kept = result != 0
    assert 30 < kept.sum() < 64
    np.testing.assert_allclose(result[kept], x.content[kept] / np.float32(0.75), rtol=1e-6)
    np.testing.assert_allclose(slopes[0].content, np.where(kept, 4, 0), rtol=1e-6)
    assert list(slopes[1:]) == [None] * (len(operands) - 1)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("count", [1, 6])
def test_weights_of_few_bits_have_one_factor_or_one_per_column(turned, count):
    rng = np.random.RandomState(0)
    x, weight = rng.randint(-3, 4, (2, 64)).astype(np.float32), rng.randint(-8, 8, (64, 6)).astype(np.int8)
    scale, offset, bias = rng.randint(1, 4, count), rng.randint(-2, 3, count), rng.randint(-9, 9, 6)
    made = kernel(
        "WeightQuantBatchMatmul", x.T if turned else x, weight, scale, offset, None, None, bias, turned, False, 0
    )
    assert made.tolist() == (x @ ((weight + offset) * scale) + bias).tolist()
    made = kernel("WeightQuantBatchMatmul", x, weight, scale, None, None, None, None)
    assert made.tolist() == (x @ (weight * scale)).tolist()


def test_weights_of_few_bits_may_be_a_batch_of_turned_matrices():
    rng = np.random.RandomState(1)
    x, weight = rng.randint(-3, 4, (5, 2, 4)).astype(np.float32), rng.randint(-8, 8, (5, 6, 4)).astype(np.int8)
    scale = np.float32([3])
    made = kernel("WeightQuantBatchMatmul", x, weight, scale, None, None, None, None, False, True, 0)
    assert made.tolist() == (x @ (weight * scale).transpose(0, 2, 1)).tolist()


def test_a_clamp_without_limits_passes_everything():
    b, x = Builder(), value(np.float32([1, np.nan]))
    out = b.emit("ClampScalar", x, None, None)
    assert out.content is x.content
    assert find("ClampScalar").grad(b, [x, None, None], out, "slope", {}) == ("slope", None, None)


def test_extents_known_at_run_time_are_those_of_the_other_operand():
    assert broadcast("Add", (2, -1), (2, 3)) == broadcast("Add", (2, 3), (2, -1)) == (2, 3)
    assert broadcast("Add", (-1, 3), (1, 1)) == broadcast("Add", (1, 1), (-1, 3)) == (-1, 3)
    assert shape_of(2.5) == shape_of(value(np.float32(1))) == ()
    assert shape_of(np.zeros((2, 3))) == (2, 3)
    with pytest.raises(UnsupportedError, match="known shape"):
        shape_of(Value(TensorType(dtype=dtype("float32"), shape=(2, -1)), None))


def test_the_gradient_of_joined_parts_of_one_symbol_is_split():
    b, parts = Builder(), (value(np.ones((2, 1))), value(np.ones((2, 3))))
    dout = value(np.arange(8.0).reshape(2, 4))
    for operand in (parts, b.emit("MakeTuple", *parts)):
        slopes, rest = find("Concat").grad(b, [operand, 1], None, dout, {})
        assert [one.content.tolist() for one in slopes] == [[[0], [4]], [[1, 2, 3], [5, 6, 7]]]
        assert rest is None


def test_powers_of_whole_numbers_on_a_cpu():
    """One that does not fit is the smallest number; of a real exponent it is a real number. [2.10 observed]"""
    x = np.int32([2, -2, 3, 1])
    own = on_target(find("Pow"), "CPU", [x]).kernel
    assert own(x, np.int32([31, 31, 20, 40])).tolist() == [-(2**31), -(2**31), -(2**31), 1]
    assert own(x, np.int32([30, 3, 2, 0])).tolist() == [2**30, -8, 9, 1]
    assert own(x, np.float32([0.5, 2, 1, 3])).tolist() == pytest.approx([2**0.5, 4, 3, 1])


def test_states_of_a_graph_are_monads():
    state = MonadType()
    assert find("UpdateState").infer([state, value(np.ones(2)).abstract], {}) is state
    assert find("UpdateState").infer([value(np.ones(2)).abstract], {}) == state


@pytest.mark.parametrize(("name", "of_output"), [
    ("ReLU", True), ("Elu", True), ("ReLU6", False), ("FastGeLU", False), ("HSwish", False), ("HSigmoid", False),
    ("Softplus", False), ("Sqrt", True), ("Rsqrt", True), ("Tanh", True), ("Sigmoid", True), ("Atan", False),
    ("ACos", False), ("Asin", False), ("Acosh", True), ("Asinh", True),
])  # fmt: skip
def test_a_gradient_operator_takes_what_the_rule_of_mindspore_gives_it(name, of_output):
    """Files of a dump show which one it is, though often both give the same; most primitives name it."""
    b, definition = Builder(), find(name)
    x, dout = value(np.float32([1.25, 1.5])), value(np.float32([2, 3]))
    operands = [x, *definition.defaults]
    out = b.emit(name, *operands)
    slope = definition.grad(b, operands, out, dout, {})[0]
    assert [one for one in slope.inputs if one is not dout] == [out if of_output else x]


@pytest.mark.parametrize(("name", "number", "result"), [
    ("Muls", (2,), [2, 0]), ("Muls", (-1,), [-1, 0]), ("AddScalar", (2, 1), [3, 2]),
    ("AddScalar", (300, 1), [301, 300]),
    ("SubScalar", (2, 1), [-1, -2]),
])  # fmt: skip
def test_truth_values_and_whole_numbers_are_whole_numbers(name, number, result):
    found = find(name).kernel(np.array([True, False]), *number)  # [2.10 observed]
    assert (found.tolist(), found.dtype) == (result, np.int64)


WRAPPED = [("Muls", [-124, -88]), ("AddScalar", [47, 42]), ("SubScalar", [-41, -46])]


@pytest.mark.parametrize(("name", "result"), WRAPPED)
def test_a_number_beyond_the_type_of_a_tensor_wraps_around(name, result):
    one = (1,) if name != "Muls" else ()
    found = find(name).kernel(np.array([3, -2], np.int8), 300, *one)  # [2.10 observed]
    assert (found.tolist(), found.dtype) == (result, np.int8)
    assert find("Divs").kernel(np.array([3, -2], np.int8), 300) == pytest.approx([0.01, -2 / 300])
    assert find("LessScalar").kernel(np.array([44, -2], np.int8), 300).tolist() == [True, True]


@pytest.mark.parametrize(("name", "operands", "expected"), [
    ("HShrink", ([-0.5, 0.5], 0.5), [0, 0]), ("HShrinkGrad", ([3, 3], [-0.5, 0.5], 0.5), [0, 0]),
    ("SoftShrinkGrad", ([3, 3], [-0.5, 0.5], 0.5), [0, 0]),
    ("Threshold", ([1, 1.5], 1.0, 7.0), [7, 1.5]), ("ThresholdGrad", ([3, 3], [1, 1.5], 1.0, 7.0), [0, 3]),
    ("Hardtanh", ([-1, 2], -1.0, 2.0), [-1, 2]), ("HardtanhGrad", ([3, 3], [-1, 2], -1.0, 2.0), [0, 0]),
    ("LeakyReLUGradExt", ([3, 3], [0, 1], 0.5), [1.5, 3]), ("ReluGrad", ([3, 3], [0, 1]), [0, 3]),
    ("ReLU6Grad", ([3, 3], [0, 6]), [0, 0]), ("KLDivLoss", ([-1, -1], [0, 1]), 0.5),
    ("SoftplusExt", ([2, 4], 0.5, 1.0), [2 * np.log1p(np.e), 4]),
    ("SoftplusGradExt", ([3, 3], [2, 4], 0.5, 1.0), [3 / (1 + np.exp(-1)), 3]),
    ("ApproximateEqual", ([1, 1], [1.5, 1.25]), [False, True]),
])  # fmt: skip
def test_functions_in_pieces_at_their_corners(name, operands, expected):
    """The formulas of the documents: what is "greater" or "less" there does not hold at the corner itself."""
    given = [np.float64(one) if isinstance(one, list) else one for one in operands]
    attrs = {"tolerance": 0.5} if name == "ApproximateEqual" else {}
    np.testing.assert_allclose(kernel(name, *given, **attrs), expected, rtol=1e-12)


def test_a_slope_at_zero_is_that_of_the_left():
    dx, slope = kernel("PReLUGrad", np.float64([[3, 3]]), np.float64([[0, 1]]), np.float64([0.25]))
    assert dx.tolist() == [[0.75, 3]]
    assert slope.tolist() == [0]


def test_segments_beyond_the_last_are_left_out():
    x = np.float32([1, 2, 3, 4])
    for name, result in (
        ("UnsortedSegmentMax", [3, 2]),
        ("UnsortedSegmentMin", [1, 2]),
        ("UnsortedSegmentSum", [4, 2]),
    ):
        assert kernel(name, x, np.int32([0, 1, 0, 2]), 2).tolist() == result
        assert kernel(name, x, np.int32([0, 1, 0, -1]), 2).tolist() == result


@pytest.mark.parametrize("equation", ["ab,bc", "...b,bc->...c", "aa,ab->b"])
def test_equations_without_a_gradient(equation):
    operands = (value(np.ones((2, 2))), value(np.ones((2, 2))))
    with pytest.raises(UnsupportedError, match="the gradient of the equation"):
        find("Einsum").grad(Builder(), [operands], None, value(np.ones((2, 2))), {"equation": equation})


def test_a_few_numbers_are_known_to_the_compiler():
    assert numbers_of(np.arange(64)) == tuple(range(64))
    assert numbers_of(np.arange(65)) is None


def test_an_empty_axis_has_a_known_extent():
    (rows, columns) = find("Shape").infer([TensorType(dtype=dtype("float32"), shape=(0, 3))], {}).items
    assert (rows.value, columns.value) == (0, 3)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("name", ["ResizeNearestNeighborV2", "ResizeBilinearV2"])
def test_an_image_of_one_pixel_shows_the_first(name, align):
    x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
    assert kernel(name, x, (1, 1), align, False).tolist() == [[[[1]]]]


def test_the_gradient_of_a_grid_of_one_axis_is_that_of_the_axis():
    b, x, dout = Builder(), value(np.float32([1, 2, 3])), value(np.float32([4, 5, 6]))
    for indexing in (0, 1):
        out = b.emit("Meshgrid", (x,), indexing)
        (slope,), rest = find("Meshgrid").grad(b, [(x,), indexing], out, (dout,), {})
        assert slope is dout
        assert rest is None


def test_parts_of_a_grid_without_a_gradient_have_none():
    b, x, y = Builder(), value(np.float32([1, 2, 3])), value(np.float32([1, 2]))
    out = b.emit("Meshgrid", (x, y), 1)
    (first, second), _ = find("Meshgrid").grad(b, [(x, y), 1], out, (value(np.ones((2, 3), np.float32)), None), {})
    assert first.content.tolist() == [2, 2, 2]
    assert second is None


def test_elements_are_counted_from_the_end():
    x, index = np.float32([[1, 2], [3, 4]]), np.array([[-2, 1], [-1, -2]])
    assert kernel("GatherD", x, 1, index).tolist() == [[1, 2], [4, 3]]


@pytest.mark.parametrize("extents", [(0, 3), (3, 0)])
def test_extents_of_zero_stay_beside_open_ones(extents):
    x = TensorType(dtype=dtype("float32"), shape=(*extents, -1))
    assert find("ReLU").output_type([x], {}).shape == (*extents, -1)


# size, window, stride, padding before and after, mode, ceil_mode, count_include_pad, divisor_override; the means, and
# the gradient of 12 times their number, None where MindSpore 2.10 refuses it on a CPU
MEANS = [
    ((5, 2, 2, 0, 0, "VALID", True, True, 0), [1.5, 3.5, 5], None),
    ((6, 2, 2, 0, 0, "VALID", True, True, 0), [1.5, 3.5, 5.5], [6, 6, 12, 12, 18, 18]),
    ((5, 2, 2, 0, 0, "VALID", False, False, 0), [1.5, 3.5], [6, 6, 12, 12, 0]),
    ((5, 3, 2, 1, 1, "PAD", False, True, 0), [1, 3, 3], [4, 12, 8, 20, 12]),
    ((5, 3, 2, 1, 1, "PAD", False, False, 0), [1.5, 3, 4.5], [6, 14, 8, 26, 18]),
    ((5, 3, 2, 1, 0, "PAD", True, True, 0), [1, 3, 4.5], [4, 12, 8, 26, 18]),
    ((4, 2, 1, 0, 2, "PAD", True, True, 0), [1.5, 2.5, 3.5, 2], None),
    ((4, 2, 1, 0, 2, "PAD", True, False, 0), [1.5, 2.5, 3.5, 4], None),
    ((4, 2, 1, 2, 0, "PAD", False, False, 0), [np.nan, 1, 1.5, 2.5, 3.5], None),
    ((4, 2, 1, 0, 2, "PAD", False, False, 0), [1.5, 2.5, 3.5, 4, np.nan], None),
    ((4, 2, 1, 2, 0, "PAD", False, True, 0), [0, 0.5, 1.5, 2.5, 3.5], [30, 42, 54, 30]),
    ((4, 2, 1, 1, 1, "PAD", False, False, 0), [1, 1.5, 2.5, 3.5, 4], [24, 30, 42, 84]),
    ((4, 2, 2, 1, 1, "PAD", False, False, 3), [1 / 3, 5 / 3, 4 / 3], [8, 8, 8, 24]),
    ((4, 2, 2, 1, 1, "PAD", False, True, 3), [1 / 3, 5 / 3, 4 / 3], [4, 8, 8, 12]),
    ((4, 2, 2, 0, 0, "VALID", False, False, 3), [1, 7 / 3], [4, 4, 8, 8]),
    ((5, 2, 2, 0, 0, "SAME", True, True, 0), [1.5, 3.5, 2.5], [6, 6, 12, 12, 18]),
]


@pytest.mark.parametrize(("settings", "means", "slopes"), MEANS)
@pytest.mark.parametrize("axis", [2, 3, 4])
def test_means_of_a_volume_and_their_gradient_on_a_cpu(settings, means, slopes, axis):
    size, window, stride, before, after, mode, ceil_mode, inside, divisor = settings

    def along(number, other):
        return tuple(number if at == axis else other for at in range(5))

    attrs = {
        "kernel_size": along(window, 1), "strides": along(stride, 1), "pad_mode": mode, "ceil_mode": ceil_mode,
        "pad_list": tuple(n for at in range(2, 5) for n in ((before, after) if at == axis else (0, 0))),
        "count_include_pad": inside, "divisor_override": divisor,
    }  # fmt: skip
    x = np.arange(1, size + 1, dtype=np.float32).reshape(along(size, 1))
    made = kernel("AvgPool3D", x, **attrs)
    assert made.ravel().tolist() == pytest.approx(means, rel=1e-6, nan_ok=True)
    dout = 12 * np.arange(1, made.size + 1, dtype=np.float32).reshape(made.shape)
    own = on_target(find("AvgPool3DGrad"), "CPU", [dout])
    given = {**own.attrs, **attrs}
    if slopes is None:
        with pytest.raises(ScriptRuntimeError):
            own.kernel(x.shape, dout, **given)
    else:
        assert own.kernel(x.shape, dout, **given).ravel().tolist() == pytest.approx(slopes, rel=1e-6)


def test_selected_elements_pass_their_gradients_back():
    b, x = Builder(), value(np.arange(6, dtype=np.float32).reshape(2, 3))
    for mask, wanted in (([[True, False, True], [False, False, True]], [[1, 0, 2], [0, 0, 3]]),
                         ([False, True, True], [[0, 1, 2], [0, 3, 4]])):  # fmt: skip
        chosen = value(np.array(mask))
        out = b.emit("MaskedSelect", x, chosen)
        dout = value(np.arange(1, out.content.size + 1, dtype=np.float32))
        slope, rest = find("MaskedSelect").grad(b, [x, chosen], out, dout, {})
        assert (slope.content.tolist(), slope.abstract.dtype.name, rest) == (wanted, "float32", None)


def test_an_element_that_is_selected_twice_adds_up_its_gradients():
    b, x, chosen = Builder(), value(np.float32([5])), value(np.array([True, False, True]))
    out = b.emit("MaskedSelect", x, chosen)
    assert out.content.tolist() == [5, 5]
    slope, _ = find("MaskedSelect").grad(b, [x, chosen], out, value(np.float32([2, 3])), {})
    assert slope.content.tolist() == [5]


def test_padding_surrounds_an_image():
    window, x = Window.of((5, 6), (3, 2), 1, 1, "pad", (1, 2, 4, 3)), np.arange(30.0).reshape(1, 5, 6)
    assert (window.padded, window.out) == ((8, 13), (6, 12))
    wide = window.pad(x, -1)
    assert np.array_equal(wide, np.pad(x, ((0, 0), (1, 2), (4, 3)), constant_values=-1))
    assert np.array_equal(window.crop(wide), x)


def test_means_of_whole_numbers_are_rounded_towards_zero():
    x = np.int32([[-4, 0], [-3, 0], [0, 0], [3, 0], [4, 0]])
    assert kernel("ReduceMean", x, (1,), False).tolist() == [-2, -1, 0, 1, 2]


def test_a_tuple_is_constant_if_its_items_are():
    number, known = dtype("int64"), ScalarType(dtype=dtype("int64"), value=1)
    assert is_constant(TupleType(items=(known, known)))
    assert not is_constant(TupleType(items=(known, ScalarType(dtype=number))))
    assert is_constant(TupleType(items=(known,), value=(1,)))


@pytest.mark.parametrize("name", ["ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMax", "ScatterMin"])
def test_a_scatter_writes_rows_of_the_first_axis(name):
    x, bounds = np.zeros((4, 2)), find(name).bounds
    assert bounds(x, np.array([0, 3]), np.ones((2, 2))) is None
    assert bounds(x, np.array([0, 4]), np.ones((2, 2))).value == 4
