"""Kernels where small cases look alike: empty ranges, large logits, several index axes, padding of the last axes."""

import numpy as np
import pytest
from ops.evaluator import Builder

from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.table import find


def kernel(name, *operands, **attrs):
    definition = find(name)
    return definition.kernel(*operands, **{**definition.attrs, **attrs})


def test_probabilities_of_large_logits_are_numbers():
    logits, labels = np.float32([[1000, 999, 0], [-2000, -2000, -2001]]), np.int32([1, 2])
    shifted = np.float64([[0, -1, -1000], [0, 0, -1]])
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    loss = kernel("SparseSoftmaxCrossEntropyWithLogits", logits, labels)
    assert float(loss) == pytest.approx(-(logs[0, 1] + logs[1, 2]) / 2, rel=1e-6)


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
