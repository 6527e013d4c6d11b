"""``mindspore.mint.nn.functional``."""

from types import NoneType
from typing import Any

import numpy as np

from dumpsim.core.errors import DumpsimError, ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import check_has_shape, expect, takes
from dumpsim.frontends.mindspore.common._overloads import check
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.mint._renamed import checked, find
from dumpsim.frontends.mindspore.ops.function._single import single

__all__ = [
    "avg_pool2d",
    "batch_norm",
    "conv2d",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "glu",
    "group_norm",
    "kl_div",
    "log_softmax",
    "logsigmoid",
    "max_pool2d",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "relu6",
    "softmax",
    "softplus",
]

_RENAMED = """
binary_cross_entropy(input, target, weight=None, reduction='mean'): \
binary_cross_entropy(logits, labels, weight, reduction)
binary_cross_entropy_with_logits(input, target, weight=None, reduction='mean', pos_weight=None): \
binary_cross_entropy_with_logits(logits, label, weight, reduction, pos_weight)
leaky_relu(input, negative_slope=0.01): leaky_relu(input, alpha)
linear(input, weight, bias=None): dense(input, weight, bias)
smooth_l1_loss(input, target, reduction='mean', beta=1.0): smooth_l1_loss(input, target, reduction, beta)
""".replace("\\\n", "")


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def _implicit(input: Tensor, dim: int | None) -> int:
    """Return the default axis of softmax."""
    check_has_shape(input)
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Exponentials along an axis, divided by their sum.

    Examples
    --------
    >>> softmax(Tensor([[0.0, 0.0]]), dim=1).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    result: Tensor = ops.softmax(input if dtype is None else ops.cast(input, dtype), _implicit(input, dim))
    return result


@takes("LogSoftmaxExt")
def log_softmax(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """Logarithm of `softmax`.

    Examples
    --------
    >>> log_softmax(Tensor([[0.0, 0.0]]), dim=1).asnumpy().round(4)
    array([[-0.6931, -0.6931]], dtype=float32)
    """
    x, axis = input if dtype is None else ops.cast(input, dtype), _implicit(input, dim)
    rank = max(input.ndim, 1)
    if isinstance(axis, int) and not -rank <= axis < rank:
        raise ScriptValueError(f"The dim value should be in range [-{rank},{rank - 1}], but got {axis}")
    return single("LogSoftmaxExt", [x, axis, None])


def logsigmoid(input: Tensor) -> Tensor:
    """Logarithm of the sigmoid.

    Examples
    --------
    >>> logsigmoid(Tensor([0.0])).asnumpy().round(4)
    array([-0.6931], dtype=float32)
    """
    result: Tensor = call("LogSigmoid", [input])[0]
    return result


@takes("Embedding")
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of a table.

    Examples
    --------
    >>> embedding(Tensor([1]), Tensor([[1.0, 2.0], [3.0, 4.0]])).asnumpy()
    array([[3., 4.]], dtype=float32)
    """
    if padding_idx is not None or max_norm is not None or scale_grad_by_freq:
        raise UnsupportedError(
            "padding_idx, max_norm and scale_grad_by_freq are not emulated", where="mint.nn.functional.embedding"
        )
    return single("Embedding", [input, weight, None, None, 2.0, False])


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """One-hot vectors of int64; the default number of classes, which depends on the values, requires PYNATIVE.

    Examples
    --------
    >>> one_hot(Tensor([1]), 3).asnumpy()
    array([[0, 1, 0]])
    """
    depth = int(tensor.asnumpy().max()) + 1 if num_classes == -1 else num_classes
    zero, one = Tensor(0, mstype.int64), Tensor(1, mstype.int64)
    return single("OneHotExt", [tensor, depth, one, zero, -1])


def softplus(input: Tensor, beta: Any = 1, threshold: Any = 20) -> Tensor:
    """Smooth maximum of an element and 0; the element itself above the threshold.

    Examples
    --------
    >>> softplus(Tensor([0.0, 30.0])).asnumpy().round(4)
    array([ 0.6931, 30.    ], dtype=float32)
    """
    return single("SoftplusExt", [input, beta, threshold])


def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Extend axes by a constant; `pad` has pairs of amounts, the last axis first. [wheel ops/function/nn_func.py]

    Examples
    --------
    >>> import dumpsim.frontends.mindspore.mint.nn.functional as F
    >>> F.pad(Tensor([1.0]), (1, 2)).asnumpy()
    array([0., 1., 0., 0.], dtype=float32)
    """
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"For 'pad', the type of 'input' must be Tensor, but got {type(input)}.")
    if pad == ():
        return input
    if mode == "constant":
        expect("ConstantPadND", input, pad, 0 if value is None else value)
        if len(pad) % 2:
            raise ScriptValueError(f"Length of padding must be even but got {len(pad)}")
        if len(pad) > 2 * input.ndim:
            raise ScriptValueError(  # [observed 2.10]
                f"Length of padding must be no more than 2 * dim of the input. Length of padding is: {len(pad)}while "
                f"the input's dim is:{input.ndim}"
            )
        return single("ConstantPadND", [input, tuple(pad), 0 if value is None else value])
    if value is not None and value != 0:
        raise ScriptValueError("Padding mode does not take in a value argument.")
    if mode not in ("circular", "reflect", "replicate"):
        raise ScriptValueError("Pad filling mode must be 'constant' 'circular' 'reflect' or 'replicate'.")
    raise UnsupportedError(
        f"mode {mode!r} is not emulated here; ops.pad has it",
        where="mint.nn.functional.pad(mode)",
        allowed=("constant",),
    )


def _check_inplace(op_type: str, inplace: Any, *values: Any) -> None:
    expect(f"Inplace{op_type.removesuffix('Ext')}" if inplace else op_type, *values)
    if inplace:
        raise UnsupportedError(f"in-place {op_type} is not emulated", where="mint.nn.functional(inplace)")


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The element where it is positive, else ``alpha (exp(x) - 1)``.

    Examples
    --------
    >>> elu(Tensor([1.0, 0.0])).asnumpy()
    array([1., 0.], dtype=float32)
    """
    _check_inplace("EluExt", inplace, input, alpha)
    return single("Elu", [input, alpha])


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """The element where it is positive, at most 6.

    Examples
    --------
    >>> relu6(Tensor([7.0, -1.0])).asnumpy()
    array([6., 0.], dtype=float32)
    """
    _check_inplace("Hardtanh", inplace, input, 0, 6)
    result: Tensor = ops.relu6(input)
    return result


class _GluIndexError(DumpsimError, IndexError):
    """The IndexError for an axis of `glu` that does not exist."""


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along an axis, gated by the sigmoid of the second.

    Examples
    --------
    >>> glu(Tensor([2.0, 0.0])).asnumpy()
    array([1.], dtype=float32)
    """
    expect("GLU", input, dim)
    rank = input.ndim
    if not -rank <= dim < rank:
        raise _GluIndexError(f"For GLU, dimension should be in range of [-{rank}, {rank - 1}], but got {dim}.")
    if input.shape[dim] % 2:
        raise ScriptRuntimeError(
            f"For GLU, halving dimension must be even, but dimension {dim % rank} is size {input.shape[dim]}."
        )
    return single("GLU", [input, dim])


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set elements to 0 with probability `p`, and scale the others.

    Examples
    --------
    >>> dropout(Tensor([1.0, 2.0]), training=False).asnumpy()
    array([1., 2.], dtype=float32)
    """
    if inplace:
        raise UnsupportedError("in-place dropout is not emulated", where="mint.nn.functional.dropout")
    if training and p == 1:
        everything: Tensor = ops.mul(input, 0.0)  # also the sign of a zero [2.10 observed]
        return everything
    result: Tensor = ops.dropout(input, p, training)
    return result


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution; `padding` is an amount, a pair of them, "valid" or "same".

    Examples
    --------
    >>> conv2d(Tensor(np.ones((1, 1, 3, 3), np.float32)), Tensor(np.ones((1, 1, 3, 3), np.float32)), padding=1).shape
    (1, 1, 3, 3)
    """
    check("mint.conv2d", (input, weight, bias, stride, padding, dilation, groups), {})
    if isinstance(padding, str):
        mode, amounts = padding, (0, 0, 0, 0)
    else:
        height, width = _pair(padding)
        mode, amounts = ("pad", (height, height, width, width)) if height or width else ("valid", (0, 0, 0, 0))
    result: Tensor = ops.conv2d(
        input, weight, bias, _pair(stride), mode, amounts if any(amounts) else 0, _pair(dilation), groups
    )
    return result


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Largest elements of windows, and their indices if `return_indices`.

    Examples
    --------
    >>> max_pool2d(Tensor(np.arange(4.0, dtype=np.float32).reshape(1, 1, 2, 2)), 2).asnumpy()
    array([[[[3.]]]], dtype=float32)
    """
    return ops.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Tensor:  # fmt: skip
    """Means of windows, with zeros for padding.

    Examples
    --------
    >>> avg_pool2d(Tensor(np.arange(4.0, dtype=np.float32).reshape(1, 1, 2, 2)), 2).asnumpy()
    array([[[[1.5]]]], dtype=float32)
    """
    expect(
        "AvgPool2D", input, kernel_size, kernel_size if stride is None else stride, padding, ceil_mode,
        count_include_pad, divisor_override,
    )  # fmt: skip
    for name, given in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
        if isinstance(given, (tuple, list)) and len(given) not in (1, 2):
            raise ScriptValueError(
                f"For primitive[AvgPool2D], the number of {name} must be in [1,2], but got {len(given)}."
            )
    for extent, amount in zip(_pair(kernel_size), _pair(padding), strict=True):
        if amount > extent // 2:
            raise ScriptValueError(
                f"For AvgPool2D, pad should be at most half of kernel size, but got pad = {amount} and kernel_size = "
                f"{extent}"
            )
    if ceil_mode or divisor_override is not None or (any(_pair(padding)) and not count_include_pad):
        raise UnsupportedError(
            "ceil_mode, divisor_override and padding with count_include_pad=False are not emulated",
            where="mint.nn.functional.avg_pool2d",
        )
    height, width = _pair(padding)
    x = ops.pad(input, (width, width, height, height)) if height or width else input
    result: Tensor = ops.AvgPool(_pair(kernel_size), _pair(kernel_size if stride is None else stride))(x)
    return result


def batch_norm(
    input: Tensor, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalisation over the batch; training updates the running mean and variance.

    Examples
    --------
    >>> mean, var = Tensor([1.0]), Tensor([4.0])
    >>> batch_norm(Tensor([[3.0]]), mean, var, eps=0.0).asnumpy()
    array([[1.]], dtype=float32)
    """
    expect("BatchNormExt", input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not 2 <= input.ndim <= 8:
        raise ScriptValueError(
            f"For primitive[BatchNormExt], the rank of input must be in [2,8], but got {input.ndim}."
        )
    channels = input.shape[1]
    given = {"weight": weight, "bias": bias, "running_mean": running_mean, "runnning_var": running_var}
    for name, one in given.items():
        if one is not None and one.shape[0] != channels:
            raise ScriptValueError(
                f"For BatchNormExt, the {name}.shape[0] should be equal to input's channel dimension, but got "
                f"{one.shape[0]} and {channels}"
            )
    if running_mean is None:
        running_mean = Tensor(np.zeros(channels, np.float32))
    if running_var is None:
        running_var = Tensor(np.ones(channels, np.float32))
    gamma = Tensor(np.ones(channels, np.float32)) if weight is None else weight
    beta = Tensor(np.zeros(channels, np.float32)) if bias is None else bias
    operator = ops.BatchNorm(is_training=training, epsilon=eps, momentum=momentum)
    result: Tensor = operator(input, gamma, beta, running_mean, running_var)[0]
    return result


def group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalisation of groups of channels.

    Examples
    --------
    >>> group_norm(Tensor([[1.0, 3.0]]), 1, eps=0.0).asnumpy()
    array([[-1.,  1.]], dtype=float32)
    """
    check_has_shape(input)
    channels = input.shape[1]
    gamma = Tensor(np.ones(channels), input.dtype) if weight is None else weight
    beta = Tensor(np.zeros(channels), input.dtype) if bias is None else bias
    expect("GroupNorm", input, num_groups, gamma, beta, eps)
    result: Tensor = call("GroupNorm", [input, num_groups, gamma, beta, eps])[0]
    return result


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide vectors by their norms.

    Examples
    --------
    >>> normalize(Tensor([[3.0, 4.0]])).asnumpy()
    array([[0.6, 0.8]], dtype=float32)
    """
    length = ops.sum(ops.abs(input), dim, True) if p == 1 else ops.norm(input, None if p == 2 else p, dim, True)
    result: Tensor = ops.div(input, ops.clamp(length, eps))
    return result


def _rows(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Move classes to the last axis of a matrix: (N, C, d1, ...) becomes (N * d1 * ..., C)."""
    if logits.ndim < 3:
        return logits, target
    order = (0, *range(2, logits.ndim), 1)
    return ops.reshape(ops.transpose(logits, order), (-1, logits.shape[1])), ops.reshape(target, (-1,))


def nll_loss(
    input: Tensor, target: Tensor, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """Negative log-likelihood of the target classes.

    Examples
    --------
    >>> nll_loss(Tensor([[-1.0, -2.0]]), Tensor([1])).item()
    2.0
    """
    if isinstance(input, Tensor) and input.ndim > 2:
        weights = input if weight is None else weight  # without weights, it gets a tensor of ones
        expect("NLLLoss2d", input, target, weights, reduction, ignore_index)
    elif weight is not None:
        expect("NLLLoss", input, target, weight, reduction, ignore_index)
    rows, classes = _rows(input, target)
    loss: Tensor = ops.nll_loss(rows, classes, weight, ignore_index, reduction)
    return loss if reduction != "none" or input.ndim < 3 else ops.reshape(loss, target.shape)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """`log_softmax` over the classes, then `nll_loss`; float targets are probabilities.

    Examples
    --------
    >>> round(cross_entropy(Tensor([[0.0, 0.0]]), Tensor([1])).item(), 4)
    0.6931
    """
    if not isinstance(weight, (Tensor, NoneType)):
        raise ScriptTypeError(f"For cross_entropy, weight must be Tensor or None, but got {type(weight)}.")
    if not 0 <= label_smoothing <= 1:
        raise ScriptValueError("For cross_entropy, label_smoothing must be in [0, 1].")
    if target.dtype.kind == "float":
        if label_smoothing or weight is not None or input.ndim > 2 or reduction == "mean":
            return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
        result: Tensor = ops.cross_entropy(input, target, reduction=reduction)
        return result
    rows, classes = _rows(input, target)
    if label_smoothing and weight is not None:
        result = _smoothed(rows, classes, weight, ignore_index, reduction, label_smoothing)
    else:
        result = ops.cross_entropy(rows, classes, weight, ignore_index, reduction, label_smoothing)
    return result if reduction != "none" or input.ndim < 3 else ops.reshape(result, target.shape)


def _smoothed(
    rows: Tensor, classes: Tensor, weight: Tensor, ignored: int, reduction: str, smoothing: float
) -> Tensor:  # fmt: skip
    """Weighted cross entropy with targets that give each class a part of the probability."""
    kept = ops.cast(ops.not_equal(classes, ignored), rows.dtype)
    every: Tensor = ops.mul(ops.neg(ops.sum(ops.mul(log_softmax(rows, -1), weight), -1)), kept)
    if reduction != "none":
        every = ops.sum(every)
    if reduction == "mean":
        chosen = ops.gather(weight, ops.mul(classes, ops.cast(kept, classes.dtype)), 0)
        every = ops.div(every, ops.sum(ops.mul(chosen, kept)))
    hard = ops.cross_entropy(rows, classes, weight, ignored, reduction)
    total: Tensor = ops.add(ops.mul(hard, 1.0 - smoothing), ops.mul(every, smoothing / rows.shape[-1]))
    return total


def _soft_cross_entropy(input: Tensor, target: Tensor, weight: Any, reduction: str, smoothing: float) -> Tensor:
    axis = 1 if input.ndim > 1 else 0
    if smoothing:
        target = ops.add(ops.mul(target, 1.0 - smoothing), smoothing / input.shape[axis])
    logs = log_softmax(input, axis)
    if weight is not None:
        logs = ops.mul(logs, ops.reshape(weight, (-1, *(1,) * (input.ndim - axis - 1))))
    loss: Tensor = ops.neg(ops.sum(ops.mul(logs, target), axis))
    if reduction == "mean":
        mean: Tensor = ops.div(ops.sum(loss), float(max(loss.size, 1)))
        return mean
    total: Tensor = ops.sum(loss) if reduction == "sum" else loss
    return total


@takes("KLDiv")
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence of a distribution, given by its logarithm, from the target.

    Examples
    --------
    >>> round(kl_div(Tensor([[-1.0, -1.0]]), Tensor([[0.5, 0.5]]), reduction="sum").item(), 4)
    0.3069
    """
    if reduction not in ("none", "mean", "sum", "batchmean"):
        raise ScriptValueError(
            f"unknown reduction {reduction!r}", where="kl_div", allowed=("none", "mean", "sum", "batchmean")
        )
    logs = target if log_target else ops.log(ops.clamp(target, float(np.finfo(np.float32).tiny)))
    weights = ops.exp(target) if log_target else target
    loss: Tensor = ops.mul(weights, ops.sub(logs, input))
    if reduction == "none":
        return loss
    total: Tensor = ops.sum(loss)
    if reduction == "sum":
        return total
    result: Tensor = ops.div(total, float(loss.shape[0] if reduction == "batchmean" else loss.size))
    return result


def _own(name: str) -> Any:
    value = None if name.startswith("_") else find(name, "nn.functional.", _RENAMED)
    if value is None:
        raise AttributeError(name)
    return checked(f"nn.functional.{name}", value)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint.nn.functional", name, _own)
