"""Callbacks that monitor a value, such as ``EarlyStopping``, and callbacks made of a script's functions."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import log
from dumpsim.frontends.mindspore._checkparam import check_non_negative_int
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.train.callback._callback import Callback, RunContext
from dumpsim.frontends.mindspore.train.callback._monitor import _loss_of

__all__ = ["EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "ReduceLROnPlateau"]

# metrics of which smaller values are better, for ``mode="auto"`` [observed 2.10]
_SMALLER = frozenset(
    {"hausdorff_distance", "mae", "mse", "loss", "perplexity", "mean_surface_distance", "root_mean_square_distance",
     "eval_loss"}
)  # fmt: skip


class _Watch(Callback):
    """A callback that monitors one value at the end of each epoch.

    It is the loss of the last step, or a metric of the evaluation between epochs. A value of 0 counts as missing.
    [observed 2.10]
    """

    _purpose = ""

    def __init__(self, monitor: str, min_delta: float, patience: int, verbose: bool, mode: str) -> None:
        if not isinstance(monitor, str):
            raise ScriptTypeError(f"The type of 'monitor' should be 'str', but got type '{type(monitor).__name__}'.")
        if mode not in ("auto", "min", "max"):
            raise ScriptValueError(f"mode should be 'auto', 'min' or 'max', but got {mode}.")
        self.monitor, self.min_delta, self.mode = monitor, min_delta, mode
        self.patience, self.verbose = check_non_negative_int(patience), _flag(verbose)
        self._is_smaller_better = mode == "min" or (mode == "auto" and monitor in _SMALLER)
        self.wait = 0
        self.best = self._worst()

    def _worst(self) -> float:
        return float("inf") if self._is_smaller_better else float("-inf")

    def is_improvement(self, value: float, other: float) -> bool:
        """Whether a value is better than another by more than `min_delta`."""
        if self._is_smaller_better:
            return bool(value < other - self.min_delta)
        return bool(value > other + self.min_delta)

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the state."""
        self.wait = 0
        self.best = self._worst()

    def _value(self, params: Any) -> float | None:
        found: Mapping[str, Any] = {}
        if self.monitor == "loss":
            value = _loss_of(params.get("net_outputs"))
        else:
            found = params.get("eval_results") or {}
            value = found.get(self.monitor)
        if value is None:
            log.warning(
                f"{self._purpose} is conditioned on {self.monitor}, which is not available. Available choices are: "
                f"{sorted({'loss', *found})}"
            )
        if isinstance(value, np.ndarray) and value.shape:
            raise ScriptValueError(f"{type(self).__name__} only supports scalar monitor now.")
        return float(value) if value else None


class EarlyStopping(_Watch):
    """Stop the training when a value has not improved for some epochs.

    Parameters
    ----------
    monitor : str
        ``loss``, ``eval_loss`` or the name of a metric of `Model.fit`.
    min_delta : float
        Smallest change that counts as an improvement.
    patience : int
        Number of epochs without improvement after which to stop.
    verbose : bool
        Print when it stops.
    mode : str
        ``min``, ``max`` or ``auto``, which depends on the name of the value.
    baseline : float, optional
        With one, values that are not better than `min_delta` do not count as an improvement.
    restore_best_weights : bool
        Restore the weights of the best epoch when the training stops.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For settings of other types, or out of range.

    Examples
    --------
    >>> EarlyStopping(monitor="loss", patience=2).is_improvement(0.5, 0.6)
    True
    """

    _purpose = "Early stopping"

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, min_delta, patience, verbose, mode)
        self.baseline = min_delta if baseline else None  # as the real class, by mistake [wheel _early_stop.py]
        self.restore_best_weights = _flag(restore_best_weights)
        self.stopped_epoch = 0
        self._weights: dict[str, Any] | None = None

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the state."""
        super().on_train_begin(run_context)
        self.stopped_epoch, self._weights = 0, None

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Stop the training if it is due."""
        params = run_context.original_args()
        value = self._value(params)
        if value is None:
            return
        if self._weights is None:
            self._keep(params)
        self.wait += 1
        if self.is_improvement(value, self.best):
            self.best = value
            self._keep(params)
            if self.baseline is None or self.is_improvement(value, self.baseline):
                self.wait = 0
        if self.wait >= self.patience:
            self.stopped_epoch = params.cur_epoch_num
            run_context.request_stop()
            self._restore(params)

    def _keep(self, params: Any) -> None:
        if self.restore_best_weights:
            weights = params.train_network.parameters_dict()
            self._weights = {name: weight.asnumpy().copy() for name, weight in weights.items()}

    def _restore(self, params: Any) -> None:
        if self._weights is None:
            return
        if self.verbose:
            print("Restoring model weights from the end of the best epoch.")
        for name, weight in params.train_network.parameters_dict().items():
            weight.set_data(Tensor(self._weights[name], weight.dtype))

    def on_train_end(self, run_context: RunContext) -> None:
        """Print the epoch of the stop, if `verbose`."""
        if self.stopped_epoch > 0 and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping")


class ReduceLROnPlateau(_Watch):
    """Reduce the learning rate when a value has not improved for some epochs.

    Parameters
    ----------
    monitor, patience, verbose, mode, min_delta
        As in `EarlyStopping`.
    factor : float
        Factor for the learning rate, between 0 and 1.
    cooldown : int
        Epochs after a reduction that are not counted.
    min_lr : float
        Lower bound of the learning rate.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For settings of other types, or out of range; for an optimizer whose learning rate is not a single Parameter.

    Examples
    --------
    >>> ReduceLROnPlateau(monitor="acc", factor=0.5).is_improvement(0.5, 0.6)
    False
    """

    _purpose = "Learning rate reduction"

    def __init__(
        self,
        monitor: str = "eval_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__(monitor, min_delta, patience, verbose, mode)
        if not isinstance(factor, float):
            raise ScriptTypeError(f"The input value must be 'float',  but got '{type(factor).__name__}'.")
        if not 0 < factor < 1:
            raise ScriptValueError(
                f"The input value must be in range of (0.0, 1.0), but got {factor} with type 'float'."
            )
        self.factor, self.cooldown, self.min_lr = factor, check_non_negative_int(cooldown), min_lr
        self.cooldown_counter = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the state."""
        super().on_train_begin(run_context)
        self.cooldown_counter = 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Reduce the learning rate if it is due."""
        params = run_context.original_args()
        rate = params.optimizer.learning_rate
        if not isinstance(rate, Parameter):
            raise ScriptValueError(
                "ReduceLROnPlateau does not support dynamic learning rate and group learning rate now."
            )
        value = self._value(params)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_improvement(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(rate, params.cur_epoch_num)
                self.cooldown_counter, self.wait = self.cooldown, 0

    def _reduce(self, rate: Parameter, epoch: int) -> None:
        present, lowest = np.float32(rate.asnumpy()), np.float32(self.min_lr)
        if present > lowest:
            new = max(present * np.float32(self.factor), lowest)
            rate.set_data(Tensor(new, rate.dtype))
            if self.verbose:
                print(f"Epoch {epoch:05d}: ReduceLROnPlateau reducing learning rate to {new!s}.")


class LearningRateScheduler(Callback):
    """Set the learning rate after each step to ``learning_rate_function(present, step)``.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore.nn import SGD
    >>> from dumpsim.frontends.mindspore.train.callback._callback import InternalCallbackParam
    >>> optimizer = SGD([Parameter(Tensor([1.0]), name="w")], 0.5)
    >>> scheduler = LearningRateScheduler(lambda rate, step: rate / 2)
    >>> scheduler.step_end(RunContext(InternalCallbackParam(optimizer=optimizer, cur_step_num=1)))
    >>> optimizer.learning_rate.item()
    0.25
    """

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context: RunContext) -> None:
        """Set the learning rate."""
        params = run_context.original_args()
        rate = params.optimizer.learning_rate
        present = float(str(np.float32(rate.asnumpy())))  # the value as printed [observed 2.10]
        new = self.learning_rate_function(present, params.cur_step_num)
        rate.set_data(Tensor(np.float32(new), rate.dtype))


class History(Callback):
    """Record the network's output and the metrics of each epoch in `history`, and the epochs in `epoch`.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore.train.callback._callback import InternalCallbackParam
    >>> history = History()
    >>> history.epoch_end(RunContext(InternalCallbackParam(cur_epoch_num=1, net_outputs=Tensor(0.5))))
    >>> history.epoch, history.history
    ({'epoch': [1]}, {'net_output': [0.5]})
    """

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] | None = None

    def begin(self, run_context: RunContext) -> None:
        """Start a list of epochs."""
        self.epoch = {"epoch": []}

    def epoch_end(self, run_context: RunContext) -> None:
        """Record the results of the epoch."""
        params = run_context.original_args()
        if self.epoch is None:
            self.epoch = {"epoch": []}
        self.epoch["epoch"].append(params.get("cur_epoch_num", 1))
        found = {"net_output": _loss_of(params.net_outputs), **(params.get("metrics") or {})}
        for name, value in found.items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    """A callback made of functions: ``LambdaCallback(on_train_epoch_end=lambda context: ...)``.

    Examples
    --------
    >>> LambdaCallback(on_train_end=lambda context: print("done")).on_train_end(None)
    done
    """

    def __init__(
        self,
        on_train_epoch_begin: Any = None,
        on_train_epoch_end: Any = None,
        on_train_step_begin: Any = None,
        on_train_step_end: Any = None,
        on_train_begin: Any = None,
        on_train_end: Any = None,
        on_eval_epoch_begin: Any = None,
        on_eval_epoch_end: Any = None,
        on_eval_step_begin: Any = None,
        on_eval_step_end: Any = None,
        on_eval_begin: Any = None,
        on_eval_end: Any = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name.startswith("on_")}
        for name, function in given.items():
            setattr(self, name, function or _nothing)


def _nothing(run_context: RunContext) -> None:
    """Do nothing, for an event without a function."""


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ScriptTypeError(f"The input value must be a bool, but got {type(value).__name__}.")
    return value
