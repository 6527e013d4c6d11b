"""What a graph of GE computes, by the meaning that GE's documentation gives the types of its nodes."""

import pytest
import torch

from dumpsim.frontends.torchair._ge import Ref


def _dims(numbers):
    return [int(one) for one in numbers.reshape(-1).tolist()]


def _sliced(x, begin, end, axes, strides, **masks):
    assert not any(masks.values())
    found = [slice(None)] * x.dim()
    for low, high, axis, step in zip(*map(_dims, (begin, end, axes, strides)), strict=True):
        found[axis] = slice(low, high, step)
    return x[tuple(found)]


def _scattered(x, indices, updates, *, axis, reduction):
    assert reduction == "none"
    return x.scatter(axis, indices.long(), updates)


def _product(x, y, bias=None, *, offset_x=0, transpose_x1=False, transpose_x2=False):
    assert not offset_x
    made = (x.T if transpose_x1 else x) @ (y.T if transpose_x2 else y)
    if bias is None:
        return made
    assert bias.dim() == 1 or bias.shape == (1, made.shape[1])
    assert bias.dtype in (torch.float16, torch.bfloat16)
    return made + bias


def _stacked(*x, axis, **attrs):
    assert len(x) == attrs["N"]
    return torch.stack([one if one.dim() else one.long() for one in x], axis)


def _expanded(x, shape):
    """A mean over the last dimension lacks that dimension."""
    sizes = _dims(shape)
    return (x.unsqueeze(-1) if list(x.shape) == sizes[:-1] else x).expand(sizes)


def _deviation(x, mean, *, correction, dim, epsilon, invert, keepdim, unbiased):
    assert (epsilon, invert, unbiased) == (pytest.approx(0.001), False, True)
    dims = dim or list(range(x.dim()))
    count = 1
    for one in dims:
        count *= x.shape[one]
    return (((x - mean) ** 2).sum(dims, keepdim=keepdim) / max(0, count - correction)).sqrt()


def _layout(x, attrs):
    """GE's normalisations take tensors of 4 or 5 dimensions, of the format that their layouts name."""
    assert x.dim() == {"NCHW": 4, "NCDHW": 5}[_format(attrs)], (x.shape, attrs)


def _format(attrs):
    (name,) = {*attrs["input_layout_info"].values(), *attrs["output_layout_info"].values()}
    return name


def _wide(one, x):
    return one.reshape([1, -1] + [1] * (x.dim() - 2))


def _rest(x):
    return [at for at in range(x.dim()) if at != 1]


def _normalised(x, scale, offset, mean, variance, *, epsilon, is_training, momentum, **layouts):
    """The statistics, which are further outputs, are not computed."""
    _layout(x, layouts)
    assert is_training
    assert momentum == pytest.approx(0.1)
    normal = (x - x.mean(_rest(x), keepdim=True)) / (x.var(_rest(x), keepdim=True, correction=0) + epsilon).sqrt()
    return normal * _wide(scale, x) + _wide(offset, x), mean, variance, mean, variance


def _normal(x, mean, inverse):
    return (x - _wide(mean, x)) * _wide(inverse, x)


def _scale_gradients(grad, x, mean, inverse, *, epsilon, **layouts):
    """The operands of training are torch's: the mean and the inverse deviation."""
    _layout(x, layouts)
    return (grad * _normal(x, mean, inverse)).sum(_rest(x)), grad.sum(_rest(x))


def _reduced_gradient(grad, x, scales, offsets, scale, mean, inverse, *, epsilon, **layouts):
    _layout(x, layouts)
    count = x.numel() // x.shape[1]
    centred = grad - (_wide(offsets, x) + _normal(x, mean, inverse) * _wide(scales, x)) / count
    return centred * _wide(scale * inverse, x)


def _inferred_gradient(grad, scale, variance, *, epsilon, **layouts):
    _layout(grad, layouts)
    return grad * _wide(scale / (variance + epsilon).sqrt(), grad)


def _inferred(x, scale, offset, mean, variance, *, epsilon, **layouts):
    _layout(x, layouts)
    normal = (x - _wide(mean, x)) / (_wide(variance, x) + epsilon).sqrt()
    return normal * _wide(scale, x) + _wide(offset, x)


TABLE = {
    "Add": lambda x, y: x + y,
    "AsStrided": lambda x, size, stride, offset: x.reshape(-1).as_strided(_dims(size), _dims(stride), int(offset)),
    "AxpyV2": lambda x, y, alpha: x + alpha * y,
    "BN3DTrainingUpdateGrad": _scale_gradients,
    "BNInfer": _inferred,
    "BNInferGrad": _inferred_gradient,
    "BNTrainingReduceGrad": _reduced_gradient,
    "BNTrainingUpdateGrad": _scale_gradients,
    "BatchNormV3": _normalised,
    "BroadcastTo": lambda x, shape: x.expand(_dims(shape)),
    "Cast": lambda x, *, dst_type: x.to(dst_type),
    "Complex": lambda x, y, **attrs: torch.complex(x, y).to(attrs["Tout"]),
    "ConcatV2": lambda *x, **attrs: torch.cat(
        [one if one.dim() else one[None] for one in x[: attrs["N"]]], int(x[attrs["N"]])
    ),
    "Expand": _expanded,
    "FFT": lambda x: torch.fft.fft(x),
    "FFT2D": lambda x: torch.fft.fft2(x),
    "Fill": lambda dims, value: value.expand(_dims(dims)),
    "FloorMod": lambda x, y: x % y,
    "Gather": lambda x, at, **_: x[int(at)],
    "GreaterEqual": lambda x, y: x >= y,
    "Imag": lambda x, **attrs: x.imag.to(attrs["Tout"]),
    "Identity": lambda x: x,
    "InplaceIndexAdd": lambda x, places, y, alpha, *, axis: x.index_add(
        axis, places.reshape(-1), y, alpha=alpha.item()
    ),
    "MatMulV2": _product,
    "Maximum": lambda x, y: torch.maximum(x, y),
    "Minimum": lambda x, y: torch.minimum(x, y),
    "Mul": lambda x, y: x * y,
    "Muls": lambda x, *, value: x * value,
    "Pack": _stacked,
    "Permute": lambda x, *, order: x.permute([*order, *range(len(order), x.dim())]),  # the parts of a number stay last
    "Range": lambda low, high, step: torch.arange(low.item(), high.item(), step.item()),
    "Real": lambda x, **attrs: x.real.to(attrs["Tout"]),
    "RealDiv": lambda x, y: x / y,
    "ReduceMean": lambda x, axes, *, keep_dims, **_: x.mean(_dims(axes) or None, keepdim=keep_dims),
    "ReduceStdWithMean": _deviation,
    "ReduceSum": lambda x, axes, *, keep_dims: x.sum(_dims(axes), keepdim=keep_dims),
    "Reshape": lambda x, shape, **attrs: _reshaped(x, shape, **attrs),
    "ScatterElements": _scattered,
    "SelectV2": lambda condition, x, y: torch.where(condition, x, y),
    "Shape": lambda x, *, dtype: torch.tensor(list(x.shape), dtype=dtype),
    "Sort": lambda x, *, axis, descending, stable: torch.sort(x, dim=axis, descending=descending),
    "SplitV": lambda x, sizes, axis, *, num_split: x.split(
        [one if one >= 0 else x.shape[int(axis)] - sum(_dims(sizes)) - 1 for one in _dims(sizes)], int(axis)
    ),
    "Sqrt": lambda x: x.sqrt(),
    "Squeeze": lambda x, *, axis: _squeezed(x, axis),
    "StridedSliceV2": _sliced,
    "Sub": lambda x, y: x - y,
    "TensorMove": lambda x: x.clone(),
    "Transpose": lambda x, order: x.permute(_dims(order)),
    "Unsqueeze": lambda x, *, axes: _unsqueezed(x, axes),
    "ZerosLike": lambda x: torch.zeros_like(x),
}


def _squeezed(x, axes):
    assert all(x.shape[axis] == 1 for axis in axes)  # GE refuses others
    return x.squeeze(tuple(axes)) if axes else x.squeeze()


def _reshaped(x, shape, *, axis=0, num_axes=-1, **layouts):
    assert (axis, num_axes) == (0, -1)  # of the whole shape
    return x.reshape(_dims(shape))


def _unsqueezed(x, axes):
    assert axes
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


def evaluated(graph, feeds, results):
    """The values of some results of a graph, for the values of its Data by name."""
    found = {}
    for node in graph.nodes:
        if node.type == "Data":
            found[node.name] = [torch.as_tensor(feeds[node.name])]
        elif node.type == "Const":
            found[node.name] = [node.value]
        elif node.type != "NetOutput":
            inputs = [None if one is None else found[one.node.name][one.index] for one in node.inputs]
            while inputs and inputs[-1] is None:
                inputs.pop()
            attrs = {key: value for key, value in node.attrs.items() if not key.startswith("_")}
            made = TABLE[node.type](*inputs, **attrs)
            found[node.name] = list(made) if isinstance(made, (list, tuple)) else [made]
            assert len(found[node.name]) >= len(node.outputs), node.type
    return [found[one.node.name][one.index] if isinstance(one, Ref) else one for one in results]
