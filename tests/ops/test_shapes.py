"""Shape rules give the shape and number type that the kernels give, for shapes that hypothesis chooses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes
from ops.evaluator import Builder, Value

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.rules import axis_of, broadcast
from dumpsim.ops.window import Window


def tensor(shape: tuple[int, ...], kind: str = "float32") -> Value:
    array = np.ones(shape, kind)
    return Value(TensorType(dtype=from_numpy(array.dtype), shape=shape), array)


@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
def test_broadcast_is_that_of_numpy(shapes: Any) -> None:
    assert broadcast("Add", *shapes.input_shapes) == shapes.result_shape


@given(array_shapes(max_dims=4), array_shapes(max_dims=4))
def test_broadcast_refuses_what_numpy_refuses(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(first, second)
    except ValueError:
        with pytest.raises(ScriptValueError, match="need to broadcast"):
            broadcast("Add", first, second)
    else:
        assert broadcast("Add", first, second) == expected


# `Builder.emit` compares every result with its shape rule
@given(
    mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3),
    st.sampled_from(["Add", "Mul", "Div", "RealDiv", "FloorMod", "Pow", "Maximum", "Less", "Equal"]),
    st.sampled_from(["float32", "float64", "int32", "int64"]),
)
def test_binary_operators(shapes: Any, name: str, kind: str) -> None:
    first, second = shapes.input_shapes
    Builder().emit(name, tensor(first, kind), tensor(second, kind))


@given(array_shapes(max_dims=4, max_side=3), st.data(), st.booleans())
def test_reductions(shape: tuple[int, ...], data: Any, keep: bool) -> None:
    axes = tuple(data.draw(st.sets(st.integers(-len(shape), -1), max_size=len(shape))))
    for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceProd", "ReduceAny"):
        Builder().emit(name, tensor(shape), axes, keep)
    Builder().emit("SumExt", tensor(shape, "int32"), axes, keep, None)


@given(array_shapes(min_dims=1, max_dims=4, max_side=3), st.data())
def test_shapes(shape: tuple[int, ...], data: Any) -> None:
    x = tensor(shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    Builder().emit("Transpose", x, order)
    Builder().emit("ExpandDims", x, axis)
    Builder().emit("Squeeze", x, ())
    Builder().emit("Flatten", x)
    Builder().emit("Reshape", x, (-1,))
    Builder().emit("Tile", x, tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))))
    Builder().emit("Concat", (x, x, x), axis)
    Builder().emit("Stack", (x, x), axis=axis)
    Builder().emit("Unstack", x, axis=axis)
    Builder().emit("CumSum", x, axis, True, True)
    Builder().emit("Sort", x, axis=axis)


@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2),
    st.sampled_from(["valid", "same", "pad"]),
)  # fmt: skip
@settings(deadline=None)
def test_convolutions(height: int, width: int, kernel: int, stride: int, dilation: int, pad: int, mode: str) -> None:
    attrs: dict[str, Any] = {
        "out_channel": 4,
        "kernel_size": kernel,
        "stride": (1, 1, stride, stride),
        "dilation": (1, 1, dilation, dilation),
        "pad_mode": mode,
        "pad": (pad,) * 4 if mode == "pad" else (0,) * 4,
        "group": 2,
    }
    window = Window.of((height, width), kernel, stride, dilation, mode, attrs["pad"])
    x, w = tensor((1, 2, height, width)), tensor((4, 1, kernel, kernel))
    if min(window.out) < 1:
        with pytest.raises(ScriptValueError, match="after padding"):
            Builder().emit("Conv2D", x, w, **attrs)
        return
    out = Builder().emit("Conv2D", x, w, **attrs)
    dx = Builder().emit("Conv2DBackpropInput", out, w, x.content.shape, **attrs)
    dw = Builder().emit("Conv2DBackpropFilter", out, x, w.content.shape, **attrs)
    # <out, conv(x, w)> = <dx, x> = <dw, w>: both gradients are the adjoints
    total = float((out.content * out.content).sum())
    assert float((dx.content * x.content).sum()) == pytest.approx(total, rel=1e-5)
    assert float((dw.content * w.content).sum()) == pytest.approx(total, rel=1e-5)


def test_large_convolutions_are_chunked_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from dumpsim.ops import conv
    from dumpsim.ops.table import find

    rng = np.random.RandomState(0)
    x, w = rng.randn(2, 3, 20, 17).astype(np.float64), rng.randn(4, 3, 3, 3).astype(np.float64)
    attrs = dict(find("Conv2D").attrs) | {
        "kernel_size": 3,
        "out_channel": 4,
        "pad_mode": "same",
        "stride": (1, 1, 2, 2),
    }

    def everything() -> list[np.ndarray[Any, Any]]:
        y = find("Conv2D").kernel(x, w, **attrs)
        dx = find("Conv2DBackpropInput").kernel(y, w, x.shape, **attrs)
        return [y, dx, find("Conv2DBackpropFilter").kernel(y, x, w.shape, **attrs)]

    whole = everything()
    monkeypatch.setattr(
        conv,
        "_row_chunks",
        lambda window, *_: (slice(i, min(i + 3, window.out[0])) for i in range(0, window.out[0], 3)),
    )
    for chunked, expected in zip(everything(), whole, strict=True):
        np.testing.assert_allclose(chunked, expected, rtol=1e-12, atol=1e-12)


@given(st.integers(1, 5), st.integers(-9, 9))
def test_axes_are_in_range_or_refused(rank: int, axis: int) -> None:
    if -rank <= axis < rank:
        assert axis_of("Softmax", axis, rank) == axis % rank
    else:
        with pytest.raises(ScriptValueError, match=rf"must be in \[-{rank},{rank}\), but got {axis}"):
            axis_of("Softmax", axis, rank)
