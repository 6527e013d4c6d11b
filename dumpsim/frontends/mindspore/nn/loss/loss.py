"""``mindspore.nn.loss.loss``."""

import math
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import abstract_name
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.nn.layer.activation import LogSoftmax, get_activation

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "DiceLoss",
    "FocalLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LossBase",
    "MAELoss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiClassDiceLoss",
    "MultiLabelSoftMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "RMSELoss",
    "SmoothL1Loss",
    "SoftmaxCrossEntropyWithLogits",
]


_HALF_OR_SINGLE = (mstype.float16, mstype.float32)


class LossBase(Cell):
    """Base of the losses: reduces a tensor of losses.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'reduction' must be in ['mean', 'sum', 'none'], but got {reduction}."
            )
        self.average = reduction != "sum"
        self.reduce = reduction != "none"
        self.reduce_mean = ops.ReduceMean()
        self.reduce_sum = ops.ReduceSum()
        self.mul = ops.Mul()
        self.cast = ops.Cast()

    def get_axis(self, x: Any) -> tuple[int, ...]:
        """All axes of a tensor."""
        return tuple(range(len(ops.shape(x))))

    def get_loss(self, x: Any, weights: Any = 1.0) -> Any:
        """Return the losses, weighted and reduced."""
        input_dtype = x.dtype
        x = self.cast(x, mstype.float32)
        weights = self.cast(weights, mstype.float32)
        x = self.mul(weights, x)
        if self.reduce and self.average:
            x = self.reduce_mean(x, self.get_axis(x))
        if self.reduce and not self.average:
            x = self.reduce_sum(x, self.get_axis(x))
        x = self.cast(x, input_dtype)
        return x  # noqa: RET504 - the IR shows the name

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def _tensor(name: str, value: Any, owner: str) -> None:
    """Refuse what is neither a tensor nor None, whose error comes from an operator. [observed 2.10]"""
    if value is not None and not isinstance(value, Tensor):
        raise ScriptTypeError(
            f"For '{owner}', the '{name}' must be '<class 'mindspore._c_expression.typing.TensorType'>', "
            f"but got '{abstract_name(value)}'"
        )


def _class_weights(weight: Any, owner: str) -> None:
    if weight is not None:
        _check.typed(weight, "weight", [Tensor], owner)
        _check.number_type(weight, "weight", _HALF_OR_SINGLE, owner)


class MSELoss(LossBase):
    """Squared differences."""

    def construct(self, logits: Any, labels: Any) -> Any:
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", labels, self.cls_name)
        x = ops.square(logits - labels)
        return self.get_loss(x)


class L1Loss(LossBase):
    """Absolute differences."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.reduction = reduction

    def construct(self, logits: Any, labels: Any) -> Any:
        return ops.l1_loss(logits, labels, self.reduction)


class SmoothL1Loss(LossBase):
    """Squares near 0, absolute differences further away."""

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = beta
        self.reduction = reduction
        self.smooth_l1_loss = ops.SmoothL1Loss(self.beta, self.reduction)

    def construct(self, logits: Any, labels: Any) -> Any:
        return self.smooth_l1_loss(logits, labels)


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Cross entropy of the softmax.

    Parameters
    ----------
    sparse : bool
        Labels are class numbers rather than probabilities.
    reduction : {"none", "mean", "sum"}
    """

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = _check.bool_value(sparse, "sparse", self.cls_name)
        self.reduction = reduction
        self.softmax_cross_entropy = ops.SoftmaxCrossEntropyWithLogits()
        self.one_hot = ops.OneHot()
        self.on_value = Tensor(1.0, mstype.float32)
        self.off_value = Tensor(0.0, mstype.float32)
        self.sparse_softmax_cross_entropy = ops.SparseSoftmaxCrossEntropyWithLogits()

    def construct(self, logits: Any, labels: Any) -> Any:
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", labels, self.cls_name)
        if self.sparse:
            if self.reduction == "mean":
                x = self.sparse_softmax_cross_entropy(logits, labels)
                return x  # noqa: RET504 - the IR shows the name
            labels = self.one_hot(labels, ops.shape(logits)[-1], self.on_value, self.off_value)
        x = self.softmax_cross_entropy(logits, labels)[0]
        return self.get_loss(x)


class CrossEntropyLoss(LossBase):
    """Cross entropy of the log-softmax over axis 1."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        _check.typed(ignore_index, "ignore_index", [int], self.cls_name)
        _check.typed(label_smoothing, "label_smoothing", [float], self.cls_name)
        if not 0.0 <= label_smoothing <= 1.0:
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'label_smoothing' must be in range of [0.0, 1.0], but got "
                f"{label_smoothing} with type 'float'."
            )
        _class_weights(weight, self.cls_name)
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def construct(self, logits: Any, labels: Any) -> Any:
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", labels, self.cls_name)
        self._check_inputs(logits, labels)
        return ops.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)

    def _check_inputs(self, logits: Any, labels: Any) -> None:
        """Refuse number types and shapes that do not go together. [source nn.loss 2.10]"""
        owner = f"For '{self.cls_name}', the"
        _check.number_type(logits, "logits", _HALF_OR_SINGLE, self.cls_name)
        if logits.ndim == labels.ndim:
            _check.number_type(labels, "labels", _HALF_OR_SINGLE, self.cls_name)
            wanted, form = logits.shape, "(N, C, d_0, d_1, ...)"
        elif logits.ndim == labels.ndim + 1:
            _check.number_type(labels, "labels", [mstype.int32], self.cls_name)
            wanted, form = logits.shape[:1] * (logits.ndim > 1) + logits.shape[2:], "(N, d_0, d_1, ...)"
        else:
            raise ScriptValueError(
                f"{owner} rank of 'logits' and 'labels' should be:\n"
                "1. 'logits.ndim == labels.ndim' for probabilities, \n"
                "2. 'logits.ndim - 1 == labels.ndim' for class indices, \n"
                f"but get 'logits' rank: {logits.ndim} and 'labels' rank: {labels.ndim}."
            )
        if wanted != labels.shape:
            raise ScriptValueError(
                f"{owner} shape of 'logits' should be (N, C, d_0, d_1, ...), and the shape of 'labels' should be "
                f"{form}, but get 'logits' shape: {logits.shape} and 'labels' shape: {labels.shape}."
            )


class NLLLoss(LossBase):
    """Negative log-likelihood of the target classes."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        _check.typed(ignore_index, "ignore_index", [int], self.cls_name)
        _class_weights(weight, self.cls_name)
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction

    def construct(self, logits: Any, labels: Any) -> Any:
        return ops.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class BCELoss(LossBase):
    """Cross entropy of probabilities."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.reduction = reduction
        self.weight = weight

    def construct(self, logits: Any, labels: Any) -> Any:
        return ops.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """Cross entropy of the sigmoid."""

    def __init__(self, reduction: str = "mean", weight: Tensor | None = None, pos_weight: Tensor | None = None) -> None:
        super().__init__()
        self.reduction = reduction
        for name, value in (("weight", weight), ("pos_weight", pos_weight)):
            if isinstance(value, Parameter):
                raise ScriptTypeError(f"For '{self.cls_name}', the '{name}' can not be a Parameter.")
        self.weight = weight
        self.pos_weight = pos_weight

    def construct(self, input: Any, target: Any) -> Any:
        _tensor("input", input, self.cls_name)
        _tensor("target", target, self.cls_name)
        return ops.binary_cross_entropy_with_logits(input, target, self.weight, self.pos_weight, self.reduction)


_UNSIGNED = (mstype.uint8, mstype.uint16, mstype.uint32, mstype.uint64)


class RMSELoss(LossBase):
    """Root of the mean of squared differences."""

    def __init__(self) -> None:
        super().__init__()
        self.MSELoss = MSELoss()

    def construct(self, logits: Any, label: Any) -> Any:
        for value in (logits, label):
            if value.dtype in _UNSIGNED:
                raise ScriptTypeError(
                    f"For 'RMSELoss', the parameters data type must not be in {list(_UNSIGNED)}, "
                    f"but got {value.dtype!r}."
                )
        rmse_loss = ops.sqrt(self.MSELoss(logits, label))
        return rmse_loss  # noqa: RET504 - the IR shows the name


class MAELoss(LossBase):
    """Absolute differences."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.abs = ops.Abs()

    def construct(self, logits: Any, label: Any) -> Any:
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", label, self.cls_name)
        x = self.abs(logits - label)
        return self.get_loss(x)


class _Reduced(LossBase):
    """A loss whose reduction is a plain mean or sum of its elements."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.reduction = reduction

    def _reduced(self, loss: Any) -> Any:
        if self.reduction == "mean":
            return self.reduce_mean(loss, self.get_axis(loss))
        if self.reduction == "sum":
            return self.reduce_sum(loss, self.get_axis(loss))
        return loss


class HuberLoss(_Reduced):
    """Half of the squares near 0, absolute differences further away."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def construct(self, logits: Any, labels: Any) -> Any:
        return ops.huber_loss(logits, labels, self.reduction, self.delta)


class MarginRankingLoss(_Reduced):
    """Distance of two scores from the wanted order."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = _check.typed(margin, "margin", [float], self.cls_name)

    def construct(self, input1: Any, input2: Any, target: Any) -> Any:
        return ops.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class CosineEmbeddingLoss(LossBase):
    """Distance of the cosine of two rows from 1, or its excess over a margin."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.maximum = ops.Maximum()
        self.margin = _check.typed(margin, "margin", [float], self.cls_name)
        if not -1.0 <= margin <= 1.0:
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'margin' must be in range of [-1.0, 1.0], but got {margin} with type "
                "'float'."
            )

    def construct(self, logits_x1: Any, logits_x2: Any, labels: Any) -> Any:
        for name, value in (("logits_x1", logits_x1), ("logits_x2", logits_x2), ("labels", labels)):
            _tensor(name, value, self.cls_name)
        prod_sum = self.reduce_sum(logits_x1 * logits_x2, (1,))
        square1 = self.reduce_sum(ops.square(logits_x1), (1,))
        square2 = self.reduce_sum(ops.square(logits_x2), (1,))
        denom = ops.sqrt(square1) * ops.sqrt(square2)
        cosine = prod_sum / denom
        pos_value = 1.0 - cosine
        neg_value = self.maximum(cosine - self.margin, 0.0)
        zeros = ops.zeros_like(cosine)
        pos_part = ops.select(labels == 1, pos_value, zeros)
        neg_part = ops.select(labels == -1, neg_value, zeros)
        output_unreduced = pos_part + neg_part
        return self.get_loss(output_unreduced)


class KLDivLoss(LossBase):
    """Kullback-Leibler divergence of log-probabilities from probabilities."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def construct(self, logits: Any, labels: Any) -> Any:
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", labels, self.cls_name)
        return ops.kl_div(logits, labels, self.reduction)


class PoissonNLLLoss(LossBase):
    """Negative log-likelihood of counts."""

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps
        self.maximum = ops.Maximum()

    def construct(self, input: Any, target: Any) -> Any:
        _tensor("input", input, self.cls_name)
        _tensor("target", target, self.cls_name)
        target = self.cast(target, input.dtype)
        if self.log_input:
            loss = ops.exp(input) - target * input
        else:
            loss = input - target * ops.log(input + self.eps)
        if self.full:
            target = self.maximum(target, self.eps)
            stirling_term = (target > 1) * ((target + 0.5) * ops.log(target) - target + 0.5 * math.log(2 * math.pi))
            loss += ops.masked_fill(stirling_term, target <= 1, 0.0)
        out = self.get_loss(loss)
        return out  # noqa: RET504 - the IR shows the name


class GaussianNLLLoss(_Reduced):
    """Negative log-likelihood of normal variables with given variances."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        if eps <= 0:
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'eps' must be in range of (0, inf), but got {eps} with type 'float'."
            )
        self.full = _check.typed(full, "full", [bool], self.cls_name)
        self.eps = eps

    def construct(self, logits: Any, labels: Any, var: Any) -> Any:
        if logits.shape != var.shape and logits.shape[:-1] == var.shape:
            var = ops.expand_dims(var, -1)
        maxima = ops.maximum(var, self.eps)
        logarithm = ops.log(maxima)
        squared_loss = ops.square(logits - labels)
        c = 0.5 * math.log(2 * math.pi) if self.full else 0
        loss = 0.5 * (logarithm + squared_loss / maxima) + c
        return self._reduced(loss)


class HingeEmbeddingLoss(_Reduced):
    """Distances of similar pairs, and the shortfall of dissimilar pairs from a margin."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__()
        self.margin = _check.typed(margin, "margin", [float, int], self.cls_name)
        self.reduction = _check.choice(reduction, ["none", "sum", "mean"], "reduction", self.cls_name)

    def construct(self, logits: Any, labels: Any) -> Any:
        for which, value in (("first", logits), ("second", labels)):
            if value.dtype.kind != "float":
                raise ScriptTypeError(
                    f"For 'HingeEmbeddingLoss', the dtype of the {which} input must be float, but got {value.dtype}."
                )
        pos = (labels > 0) * logits
        neg_index = labels < 0
        neg = neg_index * logits
        neg = ops.cast(self.margin, logits.dtype) * neg_index - neg
        neg = ops.maximum(neg, 0.0)
        return self._reduced(pos + neg)


class MultiLabelSoftMarginLoss(_Reduced):
    """Cross entropy of the sigmoids, as mean over the classes."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, x: Any, target: Any) -> Any:
        pos = ops.log(ops.add(ops.exp(-x), 1))
        neg = ops.log(ops.add(ops.exp(x), 1))
        loss = ops.mul(target, pos) + ops.mul(1 - target, neg)
        if self.weight is not None:
            loss = ops.mul(loss, self.weight)
        axis = x.ndim - 1
        loss = self.reduce_sum(loss, axis) / x.shape[axis]
        return self._reduced(loss)


class DiceLoss(LossBase):
    """One minus the Dice coefficient of two masks."""

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        if not isinstance(smooth, float):
            raise ScriptTypeError(f"The 'smooth' must be float, but got '{type(smooth).__name__}'")
        if smooth <= 0:
            raise ScriptValueError(f"The 'smooth' must be float and must > 0, but got '{smooth}' with type 'float'.")
        self.smooth = smooth

    def construct(self, logits: Any, label: Any) -> Any:
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", label, self.cls_name)
        if logits.shape != label.shape:
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'logits_shape' should be = label_shape: {label.shape}, but got "
                f"{logits.shape}."
            )
        intersection = self.reduce_sum(self.mul(logits.view(-1), label.view(-1)))
        unionset_part1 = self.reduce_sum(self.mul(logits.view(-1), logits.view(-1)))
        unionset_part2 = self.reduce_sum(self.mul(label.view(-1), label.view(-1)))
        unionset = ops.add(unionset_part1, unionset_part2)
        single_dice_coeff = 2 * intersection / ops.add(unionset, self.smooth)
        dice_loss = ops.sub(1, single_dice_coeff)
        return dice_loss  # noqa: RET504 - the IR shows the name


class MultiClassDiceLoss(LossBase):
    """Mean of the Dice losses of the classes."""

    def __init__(
        self, weights: Tensor | None = None, ignore_indiex: int | None = None, activation: Any = "softmax"
    ) -> None:
        super().__init__()
        self.binarydiceloss = DiceLoss(smooth=1e-5)
        if weights is not None and not isinstance(weights, Tensor):
            raise ScriptTypeError(f"The type of 'weights' should be 'Tensor', but got type '{type(weights).__name__}'.")
        self.weights = weights
        self.ignore_indiex = ignore_indiex
        allowed = ["softmax", "logsoftmax", "relu", "relu6", "tanh", "sigmoid"]
        if isinstance(activation, str) and activation not in allowed:
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'activation' must be in {allowed}, but got {activation}."
            )
        self.activation: Any = get_activation(activation) if isinstance(activation, str) else activation

    def construct(self, logits: Any, label: Any) -> Any:
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", label, self.cls_name)
        total_loss: Any = 0
        if logits.shape != label.shape:
            raise ScriptValueError(
                f"For '{self.cls_name}', the 'logits_shape' should be = label_shape: {label.shape}, but got "
                f"{logits.shape}."
            )
        if self.activation is not None:
            logits = self.activation(logits)
        for i in range(label.shape[1]):
            if i != self.ignore_indiex:
                dice_loss = self.binarydiceloss(logits[:, i], label[:, i])
                if self.weights is not None:
                    dice_loss = dice_loss * self.weights[i]
                total_loss += dice_loss
        return total_loss / label.shape[1]


class FocalLoss(LossBase):
    """Cross entropy that counts easy samples less."""

    def __init__(self, weight: Tensor | None = None, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.gamma = _check.typed(gamma, "gamma", [float], self.cls_name)
        if weight is not None and not isinstance(weight, Tensor):
            raise ScriptTypeError(
                f"For '{self.cls_name}', the type of 'weight' must be a Tensor, but got {type(weight).__name__}."
            )
        if weight is not None and weight.ndim != 1:
            raise ScriptValueError(
                f"For '{self.cls_name}', the dimension of 'weight' must be 1, but got {weight.ndim}."
            )
        self.weight = weight
        self.expand_dims = ops.ExpandDims()
        self.gather_d = ops.GatherD()
        self.squeeze = ops.Squeeze(axis=1)
        self.tile = ops.Tile()
        self.logsoftmax = LogSoftmax(1)

    def _check_inputs(self, logits: Any, labels: Any) -> None:
        """Refuse axes, channels and number types that do not go together. [source nn.loss 2.10]"""
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", labels, self.cls_name)
        owner = f"For '{self.cls_name}', the"
        for name, value in (("logits", logits), ("labels", labels)):
            if not 2 <= value.ndim <= 4:
                raise ScriptValueError(
                    f"{owner} dimensions of '{name}' must be in [2, 4], but got dimension of '{name}' {value.ndim}."
                )
        if logits.ndim != labels.ndim:
            raise ScriptValueError(
                f"{owner} dimensions of 'logits' and 'labels' must be equal, but got dimension of 'logits' "
                f"{logits.ndim} and dimension of 'labels' {labels.ndim}."
            )
        classes, given = logits.shape[1], labels.shape[1]
        if classes == 1:
            raise ScriptValueError(f"{owner} 'logits'.shape[1] cannot be one, but got {classes}.")
        if given not in (1, classes):
            raise ScriptValueError(
                f"{owner} 'labels'.shape[1] must be one or equal to 'logits'.shape[1]: {classes}, but got {given}."
            )
        kinds = (mstype.int32, mstype.int64, mstype.float16, mstype.float32)
        _check.number_type(labels, "labels", kinds, self.cls_name)

    def construct(self, logits: Any, labels: Any) -> Any:
        self._check_inputs(logits, labels)
        sparse = labels.shape[1] == 1
        if logits.ndim > 2:
            logits = logits.view(logits.shape[0], logits.shape[1], -1)
            labels = labels.view(labels.shape[0], labels.shape[1], -1)
        else:
            logits = self.expand_dims(logits, 2)
            labels = self.expand_dims(labels, 2)
        log_probability = self.logsoftmax(logits)
        if sparse:
            log_probability = self.gather_d(log_probability, 1, self.cast(labels, mstype.int32))
            log_probability = self.squeeze(log_probability)
        probability = ops.exp(log_probability)
        if self.weight is not None:
            convert_weight = self.weight[None, :, None]
            convert_weight = self.tile(convert_weight, (labels.shape[0], 1, labels.shape[2]))
            if sparse:
                convert_weight = self.gather_d(convert_weight, 1, self.cast(labels, mstype.int32))
                convert_weight = self.squeeze(convert_weight)
            log_probability = log_probability * convert_weight
        weight = ops.pow(-1 * probability + 1.0, self.gamma)
        if sparse:
            loss = (-1 * weight * log_probability).mean(axis=1)
        else:
            loss = (-1 * weight * labels * log_probability).mean(axis=-1)
        return self.get_loss(loss)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.loss.loss", name)
