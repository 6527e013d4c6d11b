"""Batch, layer and group normalisation and their gradients."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import part_or_zeros
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import FLOATS, constant, output, size_of, tensor_of, tuple_of, value_of, vector

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer_layer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, gamma, beta = (
        tensor_of("LayerNorm", a, n) for a, n in zip(abstracts[:3], ("input_x", "gamma", "beta"), strict=True)
    )
    rank = len(x.shape)
    norm, params = (value_of("LayerNorm", abstracts[i], "begin axis") for i in (3, 4))
    for axis, name in ((norm, "begin_norm_axis"), (params, "begin_params_axis")):
        if not -rank <= axis < rank:
            raise ScriptValueError(f"For 'LayerNorm', '{name}' must be in [{-rank}, {rank}), but got {axis}.")
    start = params % rank
    if len(gamma.shape) + start < rank or len(beta.shape) + start < rank:
        raise ScriptValueError(
            "For 'LayerNorm', begin_params_axis must be less than or equal to input_x shape size, gamma shape size "
            "add begin_params_axis "
            "must be equal to or greater than input_x shape size, and beta shape size add begin_params_axis must be "
            "equal to or greater "
            f"than input_x shape size, But got begin_params_axis: {start}, input_x shape size: {rank}, gamma shape "
            "size: "
            f"{len(gamma.shape)}, beta shape size: {len(beta.shape)}."
        )
    if gamma.shape != x.shape[start:] or beta.shape != x.shape[start:]:
        raise ScriptValueError(
            f"For 'LayerNorm', gamma or beta shape must match input shape, but got input shape: {vector(x.shape)}, "
            "gamma shape: "
            f"{vector(gamma.shape)}, beta shape: {vector(beta.shape)}."
        )
    begin = norm % rank
    small = output(
        "float32" if x.dtype.name in ("float16", "bfloat16") else x.dtype, (*x.shape[:begin], *(1,) * (rank - begin))
    )
    return tuple_of(output(x.dtype, x.shape), small, small)


@np.errstate(all="ignore")
def _layer(
    x: Array, gamma: Array, beta: Array, begin_norm_axis: int = 1, begin_params_axis: int = 1, epsilon: float = 1e-7
) -> tuple[Array, Array, Array]:
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    mean = x.mean(axis=axes, keepdims=True, dtype=x.dtype)
    centred = x - mean
    variance = np.square(centred).mean(axis=axes, keepdims=True, dtype=x.dtype)
    return centred / np.sqrt(variance + np.asanyarray(epsilon, x.dtype)) * gamma + beta, mean, variance


def _grad_layer(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, gamma, _, norm, params, epsilon = operands
    variance, mean = b.item(out, 2), b.item(out, 1)
    begin = constant(norm), constant(params)
    slopes = b.emit(
        "LayerNormGrad", x, part_or_zeros(b, dout, 0, out), variance, mean, gamma, *begin, epsilon=constant(epsilon)
    )
    return b.item(slopes, 0), b.item(slopes, 1), b.item(slopes, 2), None, None, None


def _infer_layer_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, gamma = tensor_of("LayerNormGrad", abstracts[0], "x"), tensor_of("LayerNormGrad", abstracts[4], "gamma")
    return tuple_of(output(x.dtype, x.shape), output(gamma.dtype, gamma.shape), output(gamma.dtype, gamma.shape))


@np.errstate(all="ignore")
def _layer_grad(
    x: Array,
    dy: Array,
    variance: Array,
    mean: Array,
    gamma: Array,
    begin_norm_axis: int = 1,
    begin_params_axis: int = 1,
    *,
    epsilon: float = 1e-7,
) -> tuple[Array, Array, Array]:
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))
    outer = tuple(range(begin_params_axis % x.ndim))
    scale = 1 / np.sqrt(variance + np.asanyarray(epsilon, x.dtype))
    normal = (x - mean) * scale
    slope = dy * gamma
    dx = scale * (
        slope
        - slope.mean(axis=axes, keepdims=True, dtype=x.dtype)
        - normal * (slope * normal).mean(axis=axes, keepdims=True, dtype=x.dtype)
    )
    return dx, (dy * normal).sum(axis=outer, dtype=x.dtype), dy.sum(axis=outer, dtype=x.dtype)


def _channel_axis(data_format: int) -> int:
    return -1 if data_format == 1 else 1


def _infer_batch(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("BatchNorm", abstracts[0], "input_x")
    if len(x.shape) not in (2, 3, 4, 5):
        raise ScriptValueError(f"For primitive[BatchNorm], the input_x rank must be in [2, 5], but got {len(x.shape)}.")
    channels = x.shape[_channel_axis(value_of("BatchNorm", abstracts[8], "data_format"))]
    kinds = []
    for abstract, name in zip(abstracts[1:5], ("scale", "bias", "mean", "variance"), strict=True):
        tensor = tensor_of("BatchNorm", abstract, name)
        if tensor.shape != (channels,):
            length = tensor.shape[0] if tensor.shape else "none"
            raise ScriptValueError(
                f"For BatchNorm, {name}.shape[0] should be equal to input_x's channel dimension: {channels}, bug got "
                f"{name}.shape[0]: "
                f"{length}."
            )
        kinds.append(tensor.dtype)
    small = output(kinds[0], (channels,))
    return tuple_of(output(x.dtype, x.shape), small, small, small, small)


def _per_channel(values: Array, rank: int, data_format: int) -> Array:
    return values if data_format == 1 else values.reshape(-1, *(1,) * (rank - 2))


@np.errstate(all="ignore")
def _batch(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    is_training: bool = False,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
    data_format: int = 0,
) -> tuple[Array, Array, Array, Array, Array]:
    axis = _channel_axis(data_format) % x.ndim
    tiny = np.asanyarray(epsilon, x.dtype)
    if not is_training:
        factor = scale / np.sqrt(variance + tiny)
        y = (x - _per_channel(mean, x.ndim, data_format)) * _per_channel(factor, x.ndim, data_format)
        return y + _per_channel(bias, x.ndim, data_format), mean, variance, mean, variance
    axes = tuple(i for i in range(x.ndim) if i != axis)
    count = x.size // x.shape[axis]
    batch_mean = x.mean(axis=axes, dtype=x.dtype)
    centred = x - _per_channel(batch_mean, x.ndim, data_format)
    batch_variance = np.square(centred).mean(axis=axes, dtype=x.dtype)
    factor = scale / np.sqrt(batch_variance + tiny)
    y = centred * _per_channel(factor, x.ndim, data_format) + _per_channel(bias, x.ndim, data_format)
    share = np.asanyarray(momentum, mean.dtype)
    unbiased = batch_variance * np.asanyarray(count / max(count - 1, 1), x.dtype)
    mean[...] = mean * (1 - share) + batch_mean * share
    variance[...] = variance * (1 - share) + unbiased * share
    return y, batch_mean, batch_variance, batch_mean, batch_variance


def _grad_batch(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, scale, _, mean, variance, training, epsilon, _, data_format = operands[:9]
    if constant(training):
        mean, variance = b.item(out, 3), b.item(out, 4)
    reserve = b.item(out, 2)
    settings = constant(training), constant(epsilon), constant(data_format)
    slopes = b.emit("BatchNormGrad", part_or_zeros(b, dout, 0, out), x, scale, mean, variance, reserve, *settings)
    return b.item(slopes, 0), b.item(slopes, 1), b.item(slopes, 2), *(None,) * (len(operands) - 3)


def _infer_batch_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, scale = tensor_of("BatchNormGrad", abstracts[1], "x"), tensor_of("BatchNormGrad", abstracts[2], "scale")
    return tuple_of(output(x.dtype, x.shape), output(scale.dtype, scale.shape), output(scale.dtype, scale.shape))


@np.errstate(all="ignore")
def _batch_grad(
    dout: Array,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    reserve: Array,
    is_training: bool = False,
    epsilon: float = 1e-5,
    data_format: int = 0,
) -> tuple[Array, Array, Array]:
    axis = _channel_axis(data_format) % x.ndim
    axes = tuple(i for i in range(x.ndim) if i != axis)
    inverse = 1 / np.sqrt(variance + np.asanyarray(epsilon, x.dtype))
    normal = (x - _per_channel(mean, x.ndim, data_format)) * _per_channel(inverse, x.ndim, data_format)
    dbias = dout.sum(axis=axes, dtype=x.dtype)
    dscale = (dout * normal).sum(axis=axes, dtype=x.dtype)
    slope = dout
    if is_training:
        count = np.asanyarray(x.size // x.shape[axis], x.dtype)
        shared = _per_channel(dbias / count, x.ndim, data_format)
        slope = dout - shared - normal * _per_channel(dscale / count, x.ndim, data_format)
    return slope * _per_channel(scale * inverse, x.ndim, data_format), dscale, dbias


def _infer_group(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("GroupNorm", abstracts[0], "input")
    groups = value_of("GroupNorm", abstracts[1], "num_groups")
    if groups <= 0:
        raise ScriptValueError(f"For GroupNorm, the 'num_groups' must be greater than 0, but got {groups}")
    if len(x.shape) < 2:
        raise ScriptValueError(f"For 'GroupNorm', the input must have 2 dimensions or more, but got {vector(x.shape)}.")
    if x.shape[1] % groups:
        raise ScriptValueError(
            "For GroupNorm, the 'num_channels' must be divided by 'num_groups', but got 'num_channels': "
            f"{x.shape[1]} ,'num_groups': {groups}"
        )
    for abstract, name in ((abstracts[2], "weight"), (abstracts[3], "bias")):
        if tensor_of("GroupNorm", abstract, name).shape != (x.shape[1],):
            raise ScriptValueError(f"For 'GroupNorm', the shape of '{name}' must be ({x.shape[1]},).")
    small = output(x.dtype, (x.shape[0], groups))
    return tuple_of(output(x.dtype, x.shape), small, small)


@np.errstate(all="ignore")
def _group(x: Array, num_groups: int, weight: Array, bias: Array, eps: float = 1e-5) -> tuple[Array, Array, Array]:
    table = x.reshape(x.shape[0], num_groups, -1)
    mean = table.mean(axis=-1, dtype=x.dtype)
    centred = table - mean[..., None]
    inverse = 1 / np.sqrt(np.square(centred).mean(axis=-1, dtype=x.dtype) + np.asanyarray(eps, x.dtype))
    normal = (centred * inverse[..., None]).reshape(x.shape)
    return normal * _per_channel(weight, x.ndim, 0) + _per_channel(bias, x.ndim, 0), mean, inverse


def _grad_group(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, groups, weight, _, _ = operands
    mean, inverse = b.item(out, 1), b.item(out, 2)
    slopes = b.emit(
        "GroupNormGrad", part_or_zeros(b, dout, 0, out), x, mean, inverse, weight, constant(groups), True, True, True
    )
    return b.item(slopes, 0), None, b.item(slopes, 1), b.item(slopes, 2), None


def _infer_group_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, weight = tensor_of("GroupNormGrad", abstracts[1], "x"), tensor_of("GroupNormGrad", abstracts[4], "gamma")
    return tuple_of(output(x.dtype, x.shape), output(weight.dtype, weight.shape), output(weight.dtype, weight.shape))


@np.errstate(all="ignore")
def _group_grad(
    dy: Array, x: Array, mean: Array, rstd: Array, gamma: Array, num_groups: int, dx_is_require: bool = True,
    dgamma_is_require: bool = True, dbeta_is_require: bool = True,
) -> tuple[Array, Array, Array]:  # fmt: skip
    shape = x.shape[0], num_groups, -1
    normal = (x.reshape(shape) - mean[..., None]) * rstd[..., None]
    slope = (dy * _per_channel(gamma, x.ndim, 0)).reshape(shape)
    count = np.asanyarray(size_of(normal.shape[2:]), x.dtype)
    total, along = slope.sum(-1, keepdims=True), (slope * normal).sum(-1, keepdims=True)
    dx = (slope - total / count - normal * along / count) * rstd[..., None]
    axes = (0, *range(2, x.ndim))
    return dx.reshape(x.shape), (dy * normal.reshape(x.shape)).sum(axis=axes), dy.sum(axis=axes)


def _sums(x: TensorType) -> str:
    return "float64" if x.dtype.name == "float64" else "float32"


def _infer_rms(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, gamma = tensor_of("RmsNorm", abstracts[0], "x", FLOATS), tensor_of("RmsNorm", abstracts[1], "gamma", FLOATS)
    left = len(x.shape) - len(gamma.shape)
    if left < 0 or x.shape[left:] != gamma.shape:
        raise ScriptValueError(
            f"For 'RmsNorm', the shape of 'gamma' {vector(gamma.shape)} must end that of 'x' {vector(x.shape)}."
        )
    return tuple_of(output(x.dtype, x.shape), output(_sums(x), (*x.shape[:left], *(1 for _ in gamma.shape))))


def _rms(x: Array, gamma: Array, epsilon: float = 1e-6) -> tuple[Array, Array]:
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    wide = x.astype(np.result_type(x, np.float32))
    rstd = 1 / np.sqrt(np.square(wide).mean(axis=axes, keepdims=True) + np.asanyarray(epsilon, wide.dtype))
    return (wide * rstd * gamma).astype(x.dtype), rstd


def _grad_rms(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, gamma, _ = operands
    slopes = b.emit("RmsNormGrad", part_or_zeros(b, dout, 0, out), x, b.item(out, 1), gamma)
    return b.item(slopes, 0), b.item(slopes, 1), None


def _infer_rms_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, gamma = tensor_of("RmsNormGrad", abstracts[1], "x"), tensor_of("RmsNormGrad", abstracts[3], "gamma")
    return tuple_of(output(x.dtype, x.shape), output(_sums(x), gamma.shape))


def _rms_grad(dy: Array, x: Array, rstd: Array, gamma: Array) -> tuple[Array, Array]:
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    normal = x * rstd
    slope = dy * gamma
    along = (slope * normal).mean(axis=axes, keepdims=True)
    dgamma = (dy * normal).sum(axis=tuple(range(x.ndim - gamma.ndim)))
    return (rstd * (slope - normal * along)).astype(x.dtype), dgamma


OPS = (
    OpDef(
        name="LayerNorm",
        operands=("input_x", "gamma", "beta", "begin_norm_axis", "begin_params_axis", "epsilon"),
        defaults=(1, 1, 1e-7),
        infer=_infer_layer,
        kernel=_layer,
        grad=_grad_layer,
        prim_func=True,
    ),
    OpDef(
        name="LayerNormGrad",
        operands=("x", "dy", "variance", "mean", "gamma", "begin_norm_axis", "begin_params_axis"),
        defaults=(1, 1),
        infer=_infer_layer_grad,
        kernel=_layer_grad,
        attrs={"epsilon": 1e-7},
        prim_func=True,
    ),
    OpDef(
        name="BatchNorm",
        operands=("input_x", "scale", "bias", "mean", "variance", "is_training", "epsilon", "momentum", "data_format"),
        defaults=(False, 1e-5, 0.1, 0),
        infer=_infer_batch,
        kernel=_batch,
        grad=_grad_batch,
        prim_func=True,
        updates=(3, 4),
        side_effect="mem",
        unwritten={"CPU": (1, 2)},  # [2.10 observed: zeros in training, otherwise the previous content of the memory]
        formats={"in": {0: "NC1HWC0"}, "out": {0: "NC1HWC0"}},
    ),
    OpDef(
        name="BatchNormGrad",
        operands=(
            "dout",
            "input",
            "weight",
            "running_mean",
            "running_var",
            "saved_rstd",
            "is_training",
            "epsilon",
            "data_format",
        ),
        defaults=(False, 1e-5, 0),
        infer=_infer_batch_grad,
        kernel=_batch_grad,
        prim_func=True,
        formats={"in": {0: "NC1HWC0", 1: "NC1HWC0"}, "out": {0: "NC1HWC0"}},
    ),
    OpDef(
        name="GroupNorm",
        operands=("input", "num_groups", "weight", "bias", "eps"),
        defaults=(1e-5,),
        infer=_infer_group,
        kernel=_group,
        grad=_grad_group,
        prim_func=True,
    ),
    OpDef(
        name="GroupNormGrad",
        operands=(
            "dy",
            "x",
            "mean",
            "rstd",
            "gamma",
            "num_groups",
            "dx_is_require",
            "dgamma_is_require",
            "dbeta_is_require",
        ),
        defaults=(True, True, True),
        infer=_infer_group_grad,
        kernel=_group_grad,
        prim_func=True,
    ),
    OpDef(
        name="RmsNorm",
        operands=("x", "gamma", "epsilon"),
        defaults=(1e-6,),
        infer=_infer_rms,
        kernel=_rms,
        grad=_grad_rms,
        prim_func=True,
        targets=("Ascend",),
    ),
    OpDef(
        name="RmsNormGrad",
        operands=("dy", "x", "rstd", "gamma"),
        infer=_infer_rms_grad,
        kernel=_rms_grad,
        prim_func=True,
        targets=("Ascend",),
    ),
)
