"""Settings that shapes allow: those that were really used are among them, and all others give the same shape."""

from itertools import permutations, product

import numpy as np
import pytest

from dumpsim.replay.guess import guesses


def reach(size, kernel, stride, before, after):
    """Places of a window (the definition: as many as fit into the padded line)."""
    return len(range(0, size + before + after - kernel + 1, stride))


@pytest.mark.parametrize(("a", "b"), list(product((False, True), repeat=2)))
def test_products(a, b):
    left, right = ((5, 3), (3, 7))
    shapes = [left[::-1] if a else left, right[::-1] if b else right]
    for op in ("MatMul", "BatchMatMul"):
        for lead in ((), (2, 4)):
            found = list(guesses(op, [(*lead, *shape) for shape in shapes], (*lead, 5, 7)))
            assert found == [{"transpose_a": a, "transpose_b": b}]
    assert len(list(guesses("MatMul", [(4, 4), (4, 4)], (4, 4)))) == 4
    assert list(guesses("MatMul", shapes, (5, 8))) == []


CONVOLUTIONS = [
    # size, kernel, stride, pads before and after of both axes
    ((8, 8), (3, 3), (1, 1), (0, 0, 0, 0)),
    ((8, 9), (3, 3), (2, 2), (1, 1, 1, 1)), ((7, 7), (3, 3), (2, 2), (0, 1, 0, 1)),
    ((227, 227), (11, 11), (4, 4), (0, 0, 0, 0)), ((224, 224), (7, 7), (2, 2), (3, 3, 3, 3)),
    ((6, 9), (1, 3), (1, 2), (0, 0, 1, 1)), ((5, 5), (5, 5), (1, 1), (2, 2, 2, 2)),
    ((6, 6), (6, 6), (1, 1), (0, 0, 0, 0)),
    ((32, 32), (2, 2), (8, 8), (0, 0, 0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("size", "kernel", "stride", "pad"), CONVOLUTIONS)
@pytest.mark.parametrize("group", [1, 3])
def test_convolutions_and_their_gradients(size, kernel, stride, pad, group):
    out = tuple(reach(size[at], kernel[at], stride[at], *pad[2 * at : 2 * at + 2]) for at in (0, 1))
    x, w, y = (2, 6, *size), (9, 6 // group, *kernel), (2, 9, *out)
    real = {"kernel_size": kernel, "stride": stride, "pad_mode": "pad", "pad": pad, "dilation": (1, 1), "group": group,
            "out_channel": 9}  # fmt: skip
    found = list(guesses("Conv2D", [x, w], y))
    assert real in found or any(one["stride"] == stride and out == (1, 1) for one in found)
    for one in found:
        down, across = one["pad"][:2], one["pad"][2:]
        assert (
            reach(size[0], kernel[0], one["stride"][0], *down),
            reach(size[1], kernel[1], one["stride"][1], *across),
        ) == out
        assert max(one["pad"]) < max(kernel)
        assert all(0 <= after - before <= 1 for before, after in (down, across))
    square = [one["stride"][0] == one["stride"][1] and one["pad"][:2] == one["pad"][2:] for one in found]
    assert square == sorted(square, reverse=True)  # square ones first
    assert [{**one, "input_sizes": x} for one in found] == list(guesses("Conv2DBackpropInput", [y, w], x))
    assert [{**one, "filter_sizes": w} for one in found] == list(guesses("Conv2DBackpropFilter", [y, x], w))


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_all_strides_up_to_8_and_all_even_pads_are_tried(kernel):
    """Each way to place windows with pads below the kernel, the one after by at most one larger."""
    for size, out in product(range(1, 12), range(1, 13)):
        wanted = [
            (stride, total // 2, total - total // 2)
            for stride in range(1, 9)
            for total in range(2 * kernel - 1)
            if reach(size, kernel, stride, 0, total) == out and (out > 1 or stride == 1)
        ]
        wanted.sort(key=lambda one: one != (1, 0, 0))  # that of the other axis first
        found = guesses("Conv2D", [(1, 1, size, 1), (1, 1, kernel, 1)], (1, 1, out, 1))
        assert [(one["stride"][0], *one["pad"][:2]) for one in found] == wanted


def test_what_is_no_convolution_has_no_settings():
    for shapes, output in (
        ([(2, 3, 8), (4, 3, 3, 3)], (2, 4, 6, 6)), ([(2, 3, 8, 8), (4, 3, 3)], (2, 4, 6, 6)),
        ([(2, 3, 8, 8), (4, 3, 3, 3)], (2, 4, 6)), ([(2, 3, 8, 8), (4, 0, 3, 3)], (2, 4, 6, 6)),
        ([(2, 3, 8, 8), (4, 2, 3, 3)], (2, 4, 6, 6)),
    ):  # fmt: skip
        assert list(guesses("Conv2D", shapes, output)) == []


@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("stride", [1, 2, 5, 8])
def test_pools_and_their_gradients(kernel, stride):
    x = (2, 3, 19, 16)
    for mode, number in (("VALID", 2), ("SAME", 1)):
        if mode == "VALID":
            out = tuple(reach(size, kernel, stride, 0, 0) for size in x[2:])
        else:
            out = tuple(len(range(0, size, stride)) for size in x[2:])
        y = (2, 3, *out)
        wide = {"kernel_size": (1, 1, kernel, kernel), "strides": (1, 1, stride, stride), "pad_mode": mode}
        plain = {"kernel_size": (kernel, kernel), "strides": (stride, stride), "pad_mode": number}
        for op, shapes, output, real in (
            ("MaxPool", [x], y, wide), ("MaxPoolGrad", [x, y, y], x, wide), ("AvgPool", [x], y, plain),
            ("AvgPoolGrad", [x, y], x, plain),
        ):  # fmt: skip
            found = list(guesses(op, shapes, output))
            assert (real in found) is (mode == "VALID" or kernel > 1)
    assert list(guesses("MaxPool", [(2, 3, 19)], (2, 3, 9))) == []
    assert list(guesses("MaxPool", [(2, 3, 19, 16)], (2, 3, 9))) == []


@pytest.mark.parametrize(
    "op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceAll", "ReduceAny"]
)
def test_reductions(op):
    x = (2, 3, 4)
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        for keep in (False, True):
            output = np.sum(np.zeros(x), axis=axes, keepdims=keep).shape
            assert list(guesses(op, [x], output)) == [{"axis": axes, "keep_dims": keep}]
    assert {one["axis"] for one in guesses(op, [(3, 3)], (3,))} == {(0,), (1,)}
    assert list(guesses(op, [(1, 3)], (1, 3))) == [{"axis": (0,), "keep_dims": True}]
    assert next(guesses(op, [(2,) * 5], (2,) * 4)) == {"axis": (0,), "keep_dims": False}
    assert list(guesses(op, [(2,) * 6], (2,) * 5)) == []


def test_axes_joins_and_turns():
    for op in ("Softmax", "LogSoftmax", "LogSoftmaxGrad"):
        assert list(guesses(op, [(2, 3, 4)], (2, 3, 4))) == [{"axis": 2}, {"axis": 1}, {"axis": 0}]
    assert list(guesses("Concat", [(2, 3), (2, 5)], (2, 8))) == [{"axis": 1}]
    assert list(guesses("Concat", [(2, 2), (2, 2)], (4, 2))) == [{"axis": 0}]
    assert list(guesses("Concat", [(2, 2), (2, 2)], (2, 2))) == []
    for order in permutations(range(3)):
        output = tuple((2, 3, 4)[at] for at in order)
        assert list(guesses("Transpose", [(2, 3, 4)], output)) == [{"input_perm": order}]
    assert list(guesses("Transpose", [(1,) * 6], (1,) * 6)) == []
    assert len(list(guesses("Transpose", [(1,) * 5], (1,) * 5))) == 120


def test_settings_of_two_values_are_both_tried():
    shape = [(2, 3)]
    assert list(guesses("Reshape", shape, (6,))) == [{"shape": (6,)}]
    assert list(guesses("BroadcastTo", shape, (4, 2, 3))) == [{"shape": (4, 2, 3)}]
    assert list(guesses("BiasAdd", shape, (2, 3))) == list(guesses("BiasAddGrad", shape, (3,))) == [
        {"data_format": 0}, {"data_format": 1}
    ]  # fmt: skip
    for op in ("Adam", "ApplyMomentum"):
        assert list(guesses(op, shape, (2, 3))) == [{"use_nesterov": False}, {"use_nesterov": True}]
    assert list(guesses("SparseSoftmaxCrossEntropyWithLogits", [(2, 3), (2,)], ())) == [{"is_grad": False, "sens": 1.0}]
    assert list(guesses("SparseSoftmaxCrossEntropyWithLogits", [(2, 3), (2,)], (2, 3))) == [
        {"is_grad": True, "sens": 1.0}
    ]
    for op in ("LayerNorm", "LayerNormGrad"):
        found = [tuple(one.values()) for one in guesses(op, shape, (2, 3))]
        assert found == list(product((-1, 1), (-1, 1), (1e-5, 1e-7, 1e-6, 1e-12)))
        assert list(next(guesses(op, shape, (2, 3)))) == ["begin_norm_axis", "begin_params_axis", "epsilon"]
    assert list(guesses("Unheard", shape, (2, 3))) == []
