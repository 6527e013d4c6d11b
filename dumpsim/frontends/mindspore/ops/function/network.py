"""Operators of neural networks: activations, losses, normalisation, pooling, convolution."""

from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError, nearest
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._capture.libfunction import after_tests, tested
from dumpsim.frontends.mindspore._checkparam import (
    GE,
    check_int,
    check_is_int,
    check_non_negative_float,
    check_non_negative_int,
    check_string,
    check_value_type,
)
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._listener import neutral
from dumpsim.frontends.mindspore.common._operandtypes import (
    check_has_dtype,
    check_has_shape,
    check_is_tensor,
    expect,
    takes,
)
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops._signatures import number_of
from dumpsim.frontends.mindspore.ops.function._single import inner_single, single
from dumpsim.frontends.mindspore.ops.function.arithmetic import (
    add,
    binary,
    cast_to,
    divs,
    greater,
    mul,
    muls,
    promote,
    sub,
)
from dumpsim.frontends.mindspore.ops.function.arithmetic import div as _div
from dumpsim.frontends.mindspore.ops.function.reduce import reduce_mean, reduce_sum, reduced_loss, sum
from dumpsim.frontends.mindspore.ops.function.shape import masked_fill, reshape, select, transpose

__all__ = [
    "addmm",
    "avg_pool2d",
    "baddbmm",
    "bias_add",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bmm",
    "conv2d",
    "cross_entropy",
    "dense",
    "dropout",
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "max_pool2d",
    "mm",
    "mse_loss",
    "nll_loss",
    "pad",
    "relu",
    "relu6",
    "selu",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softplus",
]

_SQRT2 = float(np.float32(np.sqrt(2.0)))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """The element where it is positive, else 0."""
    if inplace:
        raise UnsupportedError("in-place relu is not emulated", where="ops.relu(inplace=True)")
    return single("ReLU", [input])


def relu6(x: Tensor) -> Tensor:
    """`relu`, at most 6."""
    return single("ReLU6", [x])


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Gaussian error linear unit: by Erf, or by the operator GeLU if `approximate` is "tanh". [observed 2.10]"""
    check_has_dtype(input)
    if approximate not in ("none", "tanh"):
        raise ScriptValueError(
            "For ops.gelu, approximate value should be either 'none' or 'tanh'.",
            nearest=nearest(str(approximate), ("none", "tanh")),
        )
    if approximate == "tanh":
        output = single("GeLU", [input])
    else:
        output = _div(input, _SQRT2)
        output = mul(mul(input, add(call("Erf", [output]), 1)), 0.5)
    return output


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Product with the sigmoid: a composite operator. [observed 2.10]"""
    expect("InplaceSiLU" if inplace else "SiLU", input)
    if inplace:
        raise UnsupportedError("in-place silu is not emulated", where="ops.silu(inplace=True)")
    return single("SiLU", [input])


def leaky_relu(input: Tensor, alpha: float = 0.2) -> Tensor:
    """The element where it is positive, else `alpha` times it."""
    check_is_tensor("input", input, "leaky_relu")
    check_value_type("alpha", alpha, [float, int], "leaky_relu")
    scaled = mul(cast_to(alpha, input._dtype), input)
    return binary("Maximum" if alpha <= 1 else "Minimum", scaled, input)


@takes("Elu")
def elu(input_x: Tensor, alpha: float = 1.0) -> Tensor:
    """The element where it is positive, else ``exp(x) - 1``; MindSpore 2.10 refuses another `alpha` than 1."""
    if float(alpha) != 1.0:
        raise ScriptValueError("EluIn Elu, alpha must be 1.0f.")
    return single("Elu", [input_x, 1.0])


def selu(input_x: Tensor) -> Tensor:
    """Self-normalising `elu`."""
    return single("SeLU", [input_x])


def hardswish(x: Tensor) -> Tensor:
    """The operator HSwish."""
    return single("HSwish", [x])


def hardsigmoid(input: Tensor) -> Tensor:
    """The operator HSigmoid."""
    return single("HSigmoid", [input])


def softplus(input: Tensor, beta: int = 1, threshold: int = 20) -> Tensor:
    """Smooth `relu`; elements above the threshold are unchanged. [observed 2.10]"""
    scaled = input if beta == 1 else muls(input, beta)
    return select(greater(scaled, threshold), input, muls(call("Softplus", [scaled]), 1.0 / beta))


def softmax(input: Tensor, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """Exponentials along an axis, divided by their sum.

    Examples
    --------
    >>> softmax(Tensor([0.0, 0.0])).asnumpy()
    array([0.5, 0.5], dtype=float32)
    """
    operand = cast_to(input, dtype) if dtype is not None else input
    expect("Softmax", operand, axis)
    return inner_single("Softmax", [operand, axis if isinstance(axis, tuple) else (axis,)])


def log_softmax(logits: Tensor, axis: int = -1) -> Tensor:
    """Logarithm of `softmax`."""
    return inner_single("LogSoftmax", [logits, axis])


@takes("MatMul")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Product of two matrices."""
    return single("MatMul", [input, mat2, False, False])


def bmm(input_x: Tensor, mat2: Tensor) -> Tensor:
    """Products of two stacks of matrices."""
    return single("BatchMatMul", [input_x, mat2, False, False])


def dot(input: Tensor, other: Tensor) -> Tensor:
    """Sums over the last axis of `input` and the second to last axis of `other`.

    Examples
    --------
    >>> dot(Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])).asnumpy()
    array([[11.]], dtype=float32)
    """
    check_has_shape(input)
    check_has_shape(other)
    if input.ndim == other.ndim == 1:
        return reshape(mm(reshape(input, (1, -1)), reshape(other, (-1, 1))), ())
    if input.ndim < 2 or other.ndim < 2:
        raise ScriptValueError(
            f"operands with {input.ndim} and {other.ndim} axes", where="ops.dot",
            allowed=("two vectors", "at least 2 axes each"),
        )  # fmt: skip
    inner, columns = other.shape[-2], other.shape[-1]
    order = (other.ndim - 2, *range(other.ndim - 2), other.ndim - 1)
    right = reshape(transpose(other, order), (inner, -1))
    shape = (*input.shape[:-1], *other.shape[:-2], columns)
    return reshape(mm(reshape(input, (-1, inner)), right), shape)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums over the last axes of both."""
    if isinstance(input, Tensor) and isinstance(other, Tensor) and not (input.ndim and other.ndim):
        return mul(input, other)
    if input.ndim == 1 or other.ndim == 1:
        left, right = (reshape(one, (1, -1)) if one.ndim == 1 else one for one in (input, other))
        return reshape(inner(left, right), (*input.shape[:-1], *other.shape[:-1]))
    order = (*range(other.ndim - 2), other.ndim - 1, other.ndim - 2)
    return dot(input, transpose(other, order))


def kl_div(logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """Kullback-Leibler divergence of log-probabilities from probabilities."""
    if reduction not in ("none", "mean", "sum", "batchmean"):
        raise ScriptValueError(
            "For 'KLDivLoss', the 'reduction' must be str and must be in '['none', 'mean', 'batchmean', 'sum']', but "
            f"got '{reduction}'."
        )
    if reduction == "batchmean":
        return divs(single("KLDivLoss", [logits, labels], {"reduction": "sum"}), logits.shape[0])
    return single("KLDivLoss", [logits, labels], {"reduction": reduction})


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``."""
    product = mm(mat1, mat2)
    return add(input if beta == 1 else muls(input, beta), product if alpha == 1 else muls(product, alpha))


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`addmm` for stacks of matrices."""
    product = bmm(batch1, batch2)
    return add(input if beta == 1 else muls(input, beta), product if alpha == 1 else muls(product, alpha))


def dense(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: a composite operator. [observed 2.10]"""
    return single("Dense", [input, weight, bias])


def bias_add(input_x: Tensor, bias: Tensor) -> Tensor:
    """Add a vector along axis 1."""
    return single("BiasAdd", [input_x, bias, 0])


def dropout(input: Tensor, p: float = 0.5, training: bool = True, seed: int | None = None) -> Tensor:
    """Set elements to 0 with probability `p`, and scale the others."""
    from dumpsim.frontends.mindspore.common.seed import _get_graph_seed

    if neutral() or not training or p == 0:
        return input
    if not 0 <= p < 1:
        raise ScriptRuntimeError(f"For 'Dropout, the 'keep_prob' must be in (0.0, 1.0], but got {1 - p}")
    out: Tensor
    out, _ = call("Dropout", [input, 1.0 - p, *_get_graph_seed(seed, "dropout")])
    return out


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise, scale and shift the last axes."""
    expect("LayerNormExt", input, normalized_shape)
    extents = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    axis = input.ndim - len(extents)
    gamma = weight if weight is not None else Tensor(np.ones(extents), input.dtype)
    beta = bias if bias is not None else Tensor(np.zeros(extents), input.dtype)
    expect("LayerNormExt", input, normalized_shape, gamma, beta, eps)
    y: Tensor
    y, _, _ = call("LayerNorm", [input, gamma, beta, axis, axis, eps])
    return y


def max_pool2d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Largest elements of windows, and their indices if `return_indices`. [observed 2.10]"""
    strides = kernel_size if stride is None else stride
    found: tuple[Tensor, Tensor] = call(
        "MaxPoolWithArgmaxV2",
        [x],
        {
            "kernel_size": (1, 1, *_both(kernel_size)),
            "strides": (1, 1, *_both(strides)),
            "pads": (1, 1, *_both(padding)),
            "dilation": (1, 1, *_both(dilation)),
            "ceil_mode": bool(ceil_mode),
        },
    )
    return found if return_indices else found[0]


def _both(value: Any) -> tuple[int, int]:
    """Return a number twice, or a pair for height and width."""
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def avg_pool2d(
    input_x: Tensor, kernel_size: Any = 1, stride: Any = 1, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int = 0,
) -> Tensor:  # fmt: skip
    """Means of windows of NCHW images, as means over volumes of depth 1. [observed 2.10]

    Examples
    --------
    >>> avg_pool2d(Tensor([[[[2.0, 4.0]]]]), (1, 2), 1, (0, 0, 1, 0)).asnumpy().tolist()
    [[[[1.0, 3.0]]]]
    """
    from dumpsim.frontends.mindspore.ops.operations.nn_ops import AvgPool3D

    if not isinstance(input_x, Tensor):
        raise ScriptTypeError("For avg_pool2d, the input input_x must be tensor")
    windows = (1, *_window_numbers("kernel_size", kernel_size, 2, 1))
    strides = (1, *_window_numbers("stride", stride, 2, 1))
    pads = (0, 0, *_window_numbers("padding", padding, 4, 0))
    check_value_type("ceil_mode", ceil_mode, bool, "avg_pool2d")
    check_value_type("count_include_pad", count_include_pad, bool, "avg_pool2d")
    check_non_negative_int(divisor_override, "divisor_override", "avg_pool2d")
    pool = AvgPool3D(windows, strides, "pad", pads, ceil_mode, count_include_pad, divisor_override)
    out: Tensor = call("Squeeze", [pool(call("ExpandDims", [input_x, 2])), (2,)])
    return out


def _window_numbers(name: str, value: Any, count: int, least: int) -> tuple[int, ...]:
    """Return the numbers of a setting of `avg_pool2d`, one or `count`."""
    if not isinstance(value, (int, tuple)):
        raise ScriptTypeError(f"For avg_pool2d, {name} should be int or tuple of length {count}.")
    if isinstance(value, tuple) and len(value) != count:
        raise ScriptValueError(f"For avg_pool2d, {name} should be int or tuple of length {count}.")
    numbers = (value,) * count if isinstance(value, int) else value
    for n in numbers:
        check_int(n, least, GE, name, "avg_pool2d")
    return numbers


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, pad_mode: str = "valid",
    padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution."""
    from dumpsim.frontends.mindspore.ops.operations.nn_ops import Conv2D

    out: Tensor = Conv2D(
        weight.shape[0], weight.shape[2:], 1, pad_mode, padding, stride, dilation, groups
    )(input, weight)  # fmt: skip
    return bias_add(out, bias) if bias is not None else out


def pad(input_x: Tensor, padding: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Extend axes by a constant or, but for the first two axes, by copies; `padding` has pairs, the last axis first.

    Examples
    --------
    >>> pad(Tensor([[1.0, 2.0, 3.0]]), (1, 2), "reflect").asnumpy().tolist()
    [[2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]
    """
    if not isinstance(input_x, Tensor):
        raise ScriptTypeError(f"For 'pad', the type of 'input_x' must be Tensor, but got {type(input_x)}.")
    if isinstance(padding, (tuple, list)) and not padding:
        return input_x
    if len(padding) % 2:
        raise ScriptValueError(f"For 'pad', the size of padding must be divisible by 2, but got {len(padding)}")
    if not isinstance(padding, Tensor) and not all(isinstance(n, int) for n in padding):
        raise ScriptTypeError(f"For 'pad', the paddings value must be tuple of int or list of int, but got {padding}")
    amounts = tuple(int(n) for n in padding)
    if mode == "constant":
        return single("PadV3", [input_x, amounts, Tensor(0 if value is None else value, input_x.dtype)])
    if len(amounts) > 6:
        raise ScriptValueError(f"For 'pad', the padding must be less than or equal to 6, but got {len(amounts)}.")
    if value is not None:
        raise ScriptValueError(f"For 'pad', the padding mode '{mode}' can not set value, but got value {value}.")
    modes = ["constant", "reflect", "edge", "circular"]
    kind = check_string("edge" if mode == "replicate" else mode, modes, "mode", "PadV3")
    pairs = [(amounts[at], amounts[at + 1]) for at in range(0, len(amounts), 2)]
    if kind == "circular" and any(
        max(pair) > n + min(pair[0], 0) + min(pair[1], 0)
        for pair, n in zip(pairs, reversed(input_x.shape), strict=False)
    ):
        raise UnsupportedError("amounts above the extent in mode 'circular' are not emulated", where="ops.pad(padding)")
    expand = len(amounts) // 2 + 1 == input_x.ndim
    if expand:
        input_x = call("ExpandDims", [input_x, 0])
    out: Tensor = call("PadV3", [input_x, amounts, None], {"mode": kind, "paddings_contiguous": True})
    return call("Squeeze", [out, (0,)]) if expand else out


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    axes = tuple(range(loss.ndim))
    if reduction == "mean":
        return reduce_mean(loss, axes)
    if reduction == "sum":
        return reduce_sum(loss, axes)
    if reduction != "none":
        raise ScriptValueError(f"unknown reduction {reduction!r}", where="reduction", allowed=("none", "mean", "sum"))
    return loss


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Squared differences."""
    for name, value in (("input", input), ("target", target)):
        if not isinstance(value, Tensor):
            raise ScriptTypeError(f"For ops.mse_loss, the `{name}` must be tensor")
    if reduction not in ("mean", "none", "sum"):
        raise ScriptValueError("For ops.mse_loss, `reduction` value should be either 'mean', 'none' or 'sum'.")
    after_tests(3)  # of both tensors and the reduction [wheel ops/function/nn_func.py]
    return _reduced(call("Square", [sub(input, target)]), reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Absolute differences."""
    check_is_tensor("input", input, "l1_loss")
    check_is_tensor("target", target, "l1_loss")
    if reduction not in ("mean", "sum", "none"):
        raise ScriptValueError(f"For l1_loss, the 'reduction' must be in ['mean', 'sum', 'none'], but got {reduction}.")
    after_tests(1)  # of the reduction [wheel ops/function/nn_func.py]
    return reduced_loss(call("Abs", [sub(input, target)]), reduction, "l1_loss")


def smooth_l1_loss(input: Tensor, target: Tensor, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """Squares near 0, absolute differences further away."""
    number = number_of("smooth_l1_loss", "reduction", reduction)
    expect("SmoothL1Loss", input, target, beta)
    if capturing() is None and isinstance(target, Tensor) and input._dtype != target._dtype:
        input, target = promote("SmoothL1Loss", input, target)
    return single("SmoothL1Loss", [input, target, float(beta), number])


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """`log_softmax` over the classes (axis 1), then `nll_loss`; targets may be probabilities.

    Examples
    --------
    >>> round(cross_entropy(Tensor([[0.0, 0.0]]), Tensor([1])).item(), 4)
    0.6931
    """
    for name, value in (("input", input), ("target", target), ("weight", weight)):
        if value is not None:
            check_is_tensor(name, value, "cross_entropy_loss")
    check_is_int(ignore_index, "ignore_index", "cross_entropy_loss")
    check_non_negative_float(label_smoothing, "label_smoothing", "cross_entropy_loss")
    check_string(reduction, ["none", "mean", "sum"], "reduction", "cross_entropy_loss")
    if input._dtype.name not in ("float64", "float32", "float16"):
        raise ScriptTypeError(
            "For cross_entropy, the input dtype should be mstype.float64, mstype.float32 ormstype.float16, but got "
            f"dtype:{input.dtype}."
        )
    axis = 1 if input.ndim > 1 else 0
    after_tests(1)  # of the reduction
    logits = _log_softmax(input, axis)
    if target._dtype.kind == "float":
        if label_smoothing:
            target = add(muls(target, 1.0 - label_smoothing), label_smoothing / input.shape[axis])
        loss = mul(logits, target)
        if weight is not None:
            loss = mul(loss, reshape(weight, tuple(-1 if at == axis else 1 for at in range(input.ndim))))
        loss = call("Neg", [sum(loss, axis) if reduction == "none" else sum(loss)])
        return divs(loss, float(max(input.size // input.shape[axis], 1))) if reduction == "mean" else loss
    return nll_loss(logits, target, weight, ignore_index, reduction, label_smoothing)


def _log_softmax(inputs: Tensor, axis: int) -> Tensor:
    """Logarithm of the softmax by single operators, as in the vendor's cross entropy. [observed 2.10]"""
    input_max = call("ReduceMax", [inputs, (axis,), True])
    input_exp = call("Exp", [sub(inputs, input_max)])
    input_logsumexp = call("Log", [sum(input_exp, axis, True)])
    return sub(inputs, add(input_logsumexp, input_max))


def nll_loss(
    inputs: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Negative log-likelihood of the target classes, by single operators. [observed 2.10]

    Classes lie on axis 1 of `inputs` (axis 0 of a vector); inputs of 3 axes and of more than 4 are computed as images
    of one row.

    Examples
    --------
    >>> nll_loss(Tensor([[[-1.0, -2.0], [-3.0, -4.0]]]), Tensor([[0, 1]]), reduction="none").asnumpy().tolist()
    [[1.0, 4.0]]
    """
    if inputs.ndim in (1, 2, 4):
        axis = {1: 0, 2: -1, 4: 1}[inputs.ndim]
        return _nll_loss(inputs, target, axis, weight, ignore_index, reduction, label_smoothing)
    n, c, places = inputs.shape[0], inputs.shape[1], inputs.shape[2:]
    inputs, target = reshape(inputs, (n, c, 1, -1)), reshape(target, (n, 1, -1))
    loss = _nll_loss(inputs, target, 1, weight, ignore_index, reduction, label_smoothing)
    return reshape(loss, (n, *places)) if reduction == "none" else loss


def _nll_loss(
    inputs: Tensor, target: Tensor, axis: int, weight: Tensor | None, ignore_index: int, reduction: str,
    label_smoothing: float,
) -> Tensor:  # fmt: skip
    """Return the loss of classes on an axis."""
    given: list[Any] = []
    with tested(given):
        if target.ndim == inputs.ndim - 1:
            target = call("ExpandDims", [target, axis])
        given.append(target)
    with tested(given):
        non_pad_mask = call("Equal", [target, Tensor(ignore_index, target.dtype)])
        target = masked_fill(target, non_pad_mask, 0)
        given[:] = [non_pad_mask, target]
    loss_weights = Tensor(np.ones(target.shape), inputs.dtype)
    if weight is not None:
        loss_weights = call("Gather", [weight, target, 0, 0])
        if inputs.ndim == 2:
            inputs = mul(inputs, weight)  # before the sum, so that each class of the smoothing has its own weight
        else:
            shape = inputs.shape
            flat = reshape(inputs, (*shape[:2], -1))
            inputs = reshape(mul(flat, reshape(weight, (*weight.shape, 1))), shape)
    with tested(given):
        loss = call("Neg", [call("GatherD", [inputs, axis, target])])
        smooth_loss = call("Neg", [sum(inputs, axis, True)])
        given[:] = [loss, smooth_loss, loss_weights]
    with tested(given):
        loss = masked_fill(loss, non_pad_mask, 0)
        loss_weights = masked_fill(loss_weights, non_pad_mask, 0)
        smooth_loss = masked_fill(smooth_loss, non_pad_mask, 0)
        given[:] = [loss, smooth_loss, loss_weights]
    with tested(given):
        axes = (axis % inputs.ndim,)
        loss, smooth_loss = call("Squeeze", [loss, axes]), call("Squeeze", [smooth_loss, axes])
        given[:] = [loss, smooth_loss]
    with tested(given):
        if reduction in ("sum", "mean"):  # any other word means "none" [wheel ops/function/nn_func.py]
            loss, smooth_loss = sum(loss), sum(smooth_loss)
        if reduction == "mean":
            weight_sum = sum(loss_weights)
            loss, smooth_loss = _div(loss, weight_sum), _div(smooth_loss, weight_sum)
        given[:] = [loss, smooth_loss]
    return add(muls(loss, 1.0 - label_smoothing), muls(smooth_loss, label_smoothing / inputs.shape[axis]))


def binary_cross_entropy(
    logits: Tensor, labels: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of probabilities."""
    number = number_of("BinaryCrossEntropy", "reduction", reduction)
    return single("BinaryCrossEntropy", [logits, labels, weight, number])


def binary_cross_entropy_with_logits(
    logits: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of the sigmoid."""
    number = number_of("BCEWithLogitsLoss", "reduction", reduction)
    return single("BCEWithLogitsLoss", [logits, label, weight, pos_weight, number])


def sigmoid_cross_entropy_with_logits(logits: Tensor, labels: Tensor) -> Tensor:
    """The operator SigmoidCrossEntropyWithLogits."""
    if not isinstance(logits, Tensor):
        raise ScriptTypeError("logits is not a Tensor", where="ops.sigmoid_cross_entropy_with_logits")
    return single("SigmoidCrossEntropyWithLogits", [logits, labels])
