"""``mindspore.nn.metrics``: metrics of an evaluation."""

from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError, nearest
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common._operandtypes import type_text
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = [
    "MAE",
    "MSE",
    "Accuracy",
    "Loss",
    "Metric",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "get_metric_fn",
]


class _NotUpdatedError(DumpsimError, RuntimeError):
    """The RuntimeError for `eval` before the first `update`."""


class _UnknownMetricError(DumpsimError, KeyError):
    """The KeyError for an unknown name of a metric."""

    __str__ = DumpsimError.__str__


def _array(value: Any) -> Any:
    if not isinstance(value, (Tensor, list, np.ndarray)):
        raise ScriptTypeError(
            "For 'Metric' and its derived classes, the input data type must be tensor, list or numpy.ndarray, but got "
            f"{type_text(value)}."
        )
    return value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)


def _is_zero_or_one(values: Any) -> bool:
    return bool((values**2 == values).all())


def _is_one_hot(label: Any) -> bool:
    """Whether labels are rows of zeros with a single one."""
    return label.ndim > 1 and _is_zero_or_one(label) and bool((label.sum(axis=1) == 1).all())


class Metric:
    """Base of the metrics: `clear`, `update` with every batch, `eval`."""

    def clear(self) -> None:
        """Drop the batches seen so far."""
        raise NotImplementedError

    def update(self, *inputs: Any) -> None:
        """Add a batch."""
        raise NotImplementedError

    def eval(self) -> Any:
        """The value over all batches."""
        raise NotImplementedError


class _Mean(Metric):
    """Base of the metrics that divide a sum by the number of samples."""

    _name: str
    _reason = "your inputs(predicted value, true value) are empty, or "

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Drop the batches seen so far."""
        self._total, self._count = 0.0, 0

    def _pair(self, inputs: tuple[Any, ...], shown: str = "") -> tuple[Any, Any]:
        """Return predictions and labels."""
        if len(inputs) != 2:
            raise ScriptValueError(
                f"For '{self._name}.update', it needs 2 inputs (predicted value, true value), "
                f"but got {shown}{len(inputs)}."
            )
        return _array(inputs[0]), _array(inputs[1])

    def eval(self) -> float:
        """The mean over all batches."""
        if not self._count:
            raise _NotUpdatedError(
                f"The '{self._name}' can not be calculated, because the number of samples is 0, please check "
                f"whether {self._reason}has called update method before calling eval method."
            )
        return self._total / self._count


class Accuracy(_Mean):
    """Share of correct classes.

    Examples
    --------
    >>> metric = Accuracy()
    >>> metric.update(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    >>> metric.eval()
    0.5
    """

    _name = "Accuracy"

    def __init__(self, eval_type: str = "classification") -> None:
        if eval_type not in ("classification", "multilabel"):
            raise ScriptTypeError(
                f"The argument 'eval_type' must be in {{'classification', 'multilabel'}}, but got {eval_type}"
            )
        self.eval_type = eval_type
        super().__init__()

    def update(self, *inputs: Any) -> None:
        """Add the predictions and labels of a batch."""
        predicted, label = self._pair(inputs)
        if self.eval_type == "multilabel":
            if predicted.ndim != label.ndim:
                raise ScriptValueError(
                    "In multilabel case, the dimension of y_pred (predicted value) should equal to the dimension of y "
                    f"(true value), but got y_pred dimension: {predicted.ndim} and y dimension: {label.ndim}."
                )
            if predicted.shape != label.shape:
                raise ScriptValueError(
                    "In multilabel case, the shape of y_pred (predicted value) should equal to the shape of y (true "
                    f"value), but got y_pred shape: {predicted.shape} and y shape: {label.shape}."
                )
            if not (_is_zero_or_one(predicted) and _is_zero_or_one(label)):
                raise ScriptValueError(
                    "In multilabel case, all elements in y_pred (predicted value) and y (true value) should be 0 or 1."
                    "Please check whether your inputs y_pred and y are correct."
                )
            classes = predicted.shape[1]
            right = (predicted == label).swapaxes(1, -1).reshape(-1, classes).all(axis=1)
        else:
            label = label.argmax(axis=1) if label.ndim == predicted.ndim and _is_one_hot(label) else label
            if predicted.ndim != label.ndim + 1:
                raise ScriptValueError(
                    "In classification case, the dimension of y_pred (predicted value) should equal to the dimension "
                    f"of y (true value) add 1, but got y_pred dimension: {predicted.ndim} and y dimension: "
                    f"{label.ndim}."
                )
            if predicted.shape[:1] + predicted.shape[2:] != label.shape:
                raise ScriptValueError(
                    "In classification case, y_pred (predicted value) shape and y (true value) shape can not match, y "
                    "shape should be equal to y_pred shape that the value at index 1 is deleted. Such as y_pred shape "
                    f"(1, 2, 3), then y shape should be (1, 3). But got y_pred shape {predicted.shape} and y shape "
                    f"{label.shape}"
                )
            right = predicted.argmax(axis=1) == label
        self._total += float(right.sum())
        self._count += int(right.size)


class TopKCategoricalAccuracy(_Mean):
    """Share of samples whose class is among the `k` classes with the highest scores.

    Examples
    --------
    >>> metric = TopKCategoricalAccuracy(2)
    >>> metric.update(np.array([[0.1, 0.6, 0.3], [0.8, 0.2, 0.0]]), np.array([2, 2]))
    >>> metric.eval()
    0.5
    """

    _name = "TopKCategoricalAccuracy"
    _reason = "your inputs (predicted value, true value) are empty, or "

    def __init__(self, k: int) -> None:
        if isinstance(k, bool) or not isinstance(k, int):
            raise ScriptTypeError(
                "For 'TopKCategoricalAccuracy', the type of the argument 'k' should be int, but got 'k' type: "
                f"{type_text(k)}."
            )
        if k < 1:
            raise ScriptValueError(
                f"For 'TopKCategoricalAccuracy', the argument 'k' must be at least 1, but got 'k' value: {k}."
            )
        self.k = k
        super().__init__()

    def update(self, *inputs: Any) -> None:
        """Add the predictions and labels of a batch."""
        predicted, label = self._pair(inputs, "'inputs' size: ")
        label = label.argmax(axis=1) if label.ndim == predicted.ndim and _is_one_hot(label) else label
        best = predicted.argsort(axis=1)[:, : -(self.k + 1) : -1]
        self._total += float(np.equal(best, np.repeat(label.reshape(-1, 1), self.k, axis=1)).sum())
        self._count += int(label.size)


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """`TopKCategoricalAccuracy` with ``k = 1``.

    Examples
    --------
    >>> metric = Top1CategoricalAccuracy()
    >>> metric.update(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
    >>> metric.eval()
    0.5
    """

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """`TopKCategoricalAccuracy` with ``k = 5``.

    Examples
    --------
    >>> metric = Top5CategoricalAccuracy()
    >>> metric.update(np.eye(6)[:2], np.array([0, 5]))
    >>> metric.eval()
    1.0
    """

    def __init__(self) -> None:
        super().__init__(5)


class Loss(_Mean):
    """Mean of the losses of the batches."""

    _name = "Loss"
    _reason = ""

    def update(self, *inputs: Any) -> None:
        """Add the loss of a batch."""
        if len(inputs) != 1:
            raise ScriptValueError(f"For 'Loss.update', it needs 1 input (loss), but got {len(inputs)}")
        loss = _array(inputs[0])
        if loss.ndim > 1:
            raise ScriptValueError(
                f"For 'Loss.update', the dimension of your input (loss) must be 1, but got {loss.ndim}."
            )
        self._total += float(loss.mean() if loss.ndim else loss)
        self._count += 1


class MSE(_Mean):
    """Mean of the squared differences, summed over the features."""

    _name = "MSE"

    def update(self, *inputs: Any) -> None:
        """Add the predictions and labels of a batch."""
        predicted, label = self._pair(inputs)
        self._total += float(((label.reshape(predicted.shape) - predicted) ** 2).sum())
        self._count += int(label.shape[0])


class MAE(_Mean):
    """Mean of the absolute differences, summed over the features."""

    _name = "MAE"

    def update(self, *inputs: Any) -> None:
        """Add the predictions and labels of a batch."""
        predicted, label = self._pair(inputs)
        self._total += float(np.abs(label.reshape(predicted.shape) - predicted).sum())
        self._count += int(label.shape[0])


_BY_NAME = MappingProxyType(
    {
        "accuracy": Accuracy,
        "acc": Accuracy,
        "loss": Loss,
        "mse": MSE,
        "mae": MAE,
        "topk": TopKCategoricalAccuracy,
        "top_1_accuracy": Top1CategoricalAccuracy,
        "top_5_accuracy": Top5CategoricalAccuracy,
    }
)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """Create the metric with the given name.

    Examples
    --------
    >>> type(get_metric_fn("acc")).__name__
    'Accuracy'
    """
    if name not in _BY_NAME:
        raise _UnknownMetricError(
            f"For 'get_metric_fn', unsupported metric {name}, please refer to official website for more details about "
            "supported metrics.",
            allowed=_BY_NAME,
            nearest=nearest(name, _BY_NAME),
        )
    found: Metric = _BY_NAME[name](*args, **kwargs)
    return found


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.metrics", name)
