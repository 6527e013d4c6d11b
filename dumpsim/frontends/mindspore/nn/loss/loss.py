"""``mindspore.nn.loss.loss``."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "L1Loss",
    "LossBase",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
    "SoftmaxCrossEntropyWithLogits",
]


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
        """The losses weighted and reduced."""
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

    def construct(self, logits: Any, labels: Any) -> Any:
        raise NotImplementedError


def _tensor(name: str, value: Any, owner: str) -> None:
    if not isinstance(value, Tensor):
        raise ScriptTypeError(f"For '{owner}', the '{name}' must be '{Tensor}', but got '{type(value)}'", where=name)


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
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing

    def construct(self, logits: Any, labels: Any) -> Any:
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", labels, self.cls_name)
        return ops.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(LossBase):
    """Negative log-likelihood of the target classes."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = reduction

    def construct(self, logits: Any, labels: Any) -> Any:
        _tensor("logits", logits, self.cls_name)
        _tensor("labels", labels, self.cls_name)
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
        super().__init__(reduction)
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
