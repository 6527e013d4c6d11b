"""``Model``: training, evaluation and prediction."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import log, nn
from dumpsim.frontends.mindspore._checkparam import check_non_negative_int
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.amp import build_train_network
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.context import get_auto_parallel_context, get_context
from dumpsim.frontends.mindspore.parallel._utils import (
    _get_parallel_mode,
    _get_parameter_broadcast,
    _parameter_broadcast_check,
)
from dumpsim.frontends.mindspore.train import callback as own_callbacks
from dumpsim.frontends.mindspore.train.callback._callback import CallbackList, InternalCallbackParam, RunContext
from dumpsim.frontends.mindspore.train.callback._monitor import TimeMonitor
from dumpsim.frontends.mindspore.train.dataset_helper import DatasetHelper, connect_network_with_dataset

__all__ = ["Model"]


class _NoNetworkError(DumpsimError, ValueError):
    """The ValueError for a Model without the network or metrics that a call needs."""


_OLD_NAMES = frozenset({"begin", "end", "epoch_begin", "epoch_end", "step_begin", "step_end"})


class Model:
    """A network with its loss, optimizer and metrics.

    Parameters
    ----------
    network : Cell
    loss_fn : Cell, optional
        If None, the network itself returns the loss.
    optimizer : Optimizer, optional
    metrics : set or dict, optional
        Names, or Metric objects by name; without them there is no evaluation.
    eval_network : Cell, optional
        Returns loss, outputs and label.
    eval_indexes : list of int, optional
        Indices of loss, outputs and label in the result of `eval_network`.
    amp_level : {"O0", "O2", "O3"}
        Mixed precision, as in `build_train_network`.
    **kwargs
        ``keep_batchnorm_fp32`` and ``loss_scale_manager``.
    """

    def __init__(
        self,
        network: nn.Cell,
        loss_fn: Any = None,
        optimizer: Any = None,
        metrics: Any = None,
        eval_network: Any = None,
        eval_indexes: Any = None,
        amp_level: str = "O0",
        boost_level: str = "O0",
        **kwargs: Any,
    ) -> None:
        unknown = set(kwargs) - {"keep_batchnorm_fp32", "loss_scale_manager"}
        if unknown:
            raise ScriptValueError(
                "The argument in 'kwargs' should be 'loss_scale_manager' or 'keep_batchnorm_fp32' or "
                f"'boost_config_dict' or 'acc_level', but got '{min(unknown)}'."
            )
        if amp_level != "O0" and optimizer is None:
            raise ScriptValueError(
                "Auto mixed precision will not work because 'optimizer' is None.Please set amp_level='O0' to "
                "disable auto mixed precision or set 'optimizer' not be None to use auto mixed precision."
            )
        if kwargs.get("loss_scale_manager") is not None and optimizer is None:
            raise ScriptValueError("The argument 'optimizer' can not be None when set 'loss_scale_manager'.")
        self._levels = {"level": amp_level, "boost_level": boost_level}
        self._precision = {name: value for name, value in kwargs.items() if value is not None}
        if "loss_scale_manager" in kwargs:  # None means no scale
            self._precision["loss_scale_manager"] = kwargs["loss_scale_manager"]
        if not isinstance(network, nn.Cell):
            raise ScriptTypeError(f"The type of 'network' should be 'Cell', but got type '{type(network).__name__}'.")
        _parameter_broadcast_check(_get_parallel_mode(), _get_parameter_broadcast())
        self._network = network
        self._loss_fn = loss_fn
        self._optimizer = optimizer
        self._metric_fns = _metrics(metrics)
        if self._metric_fns and eval_network is None and loss_fn is None:
            raise _NoNetworkError(
                "If `metrics` is set, `eval_network` must not be None. Do not set `metrics` if you don't want an "
                "evaluation."
            )
        self._eval_network = eval_network
        self._eval_indexes = eval_indexes
        self._train_network: Any = None
        self._predict_network = network

    @property
    def train_network(self) -> Any:
        """The network that `train` runs."""
        if self._train_network is None:
            self._train_network = self._built_train_network()
        return self._train_network

    @property
    def predict_network(self) -> Any:
        """The network that `predict` runs."""
        return self._predict_network

    @property
    def eval_network(self) -> Any:
        """The network that `eval` runs; None without metrics."""
        if self._eval_network is None and self._metric_fns:
            self._eval_network = nn.WithEvalCell(self._network, self._loss_fn, False)
            self._eval_indexes = [0, 1, 2]
        return self._eval_network

    def _built_train_network(self) -> Any:
        network = self._network
        if self._optimizer is None:
            return nn.WithLossCell(network, self._loss_fn) if self._loss_fn is not None else network
        return build_train_network(network, self._optimizer, self._loss_fn, **self._levels, **self._precision)

    # -- training

    def train(
        self,
        epoch: int,
        train_dataset: Any,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train the network.

        Parameters
        ----------
        epoch : int
        train_dataset : Dataset
            Batches of arguments of the network (and the loss).
        callbacks : Callback or list, optional
        dataset_sink_mode : bool
            Let the device fetch the batches: a graph of the data set runs first, and the host sees every
            `sink_size`-th step. The CPU has no data sink and runs ordinary steps.
        sink_size : int
            Steps of an epoch, -1 for all batches of the data set.
        initial_epoch : int
            Number of epochs trained before.

        Raises
        ------
        ScriptTypeError, ScriptValueError
            As in MindSpore.
        """
        _check_methods(callbacks, "train")
        self._train(epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch)

    def _train(
        self,
        epoch: int,
        train_dataset: Any,
        callbacks: Any,
        dataset_sink_mode: bool,
        sink_size: int,
        initial_epoch: int,
        evaluate: Callable[[Any], None] | None = None,
    ) -> None:
        """Train, and call `evaluate` after each epoch, before callbacks are notified of its end."""
        _positive(epoch)
        if check_non_negative_int(initial_epoch) >= epoch:
            raise ScriptValueError(
                f"For 'Model.train', the parameter 'epoch' must bigger than parameter 'initial_epoch', "
                f"but got the parameter 'epoch' is {epoch}, 'initial_epoch' is {initial_epoch}."
            )
        if not isinstance(dataset_sink_mode, bool):
            raise ScriptTypeError(f"The input value must be a bool, but got {type(dataset_sink_mode).__name__}.")
        if sink_size == 0 or sink_size < -1:
            raise ScriptValueError(
                f"For 'Model.train', The argument 'sink_size' must be -1 or positive, but got {sink_size}."
            )
        batches = train_dataset.get_dataset_size()
        if not batches:
            raise ScriptValueError("There is no valid data in dataset, please check dataset file firstly.")
        listed = CallbackList(_listed(callbacks))
        sink = dataset_sink_mode and get_context("device_target") != "CPU"  # the CPU has no data sink [observed 1.11]
        helper = DatasetHelper(train_dataset, sink, sink_size, epoch)
        params = self._params("train", sink_size if dataset_sink_mode and sink_size != -1 else batches, callbacks)
        params.update(
            epoch_num=epoch - initial_epoch, dataset_sink_mode=sink, train_network=self.train_network,
            network=self._network, loss_fn=self._loss_fn, optimizer=self._optimizer, train_dataset=train_dataset,
            initial_step=None,
        )  # fmt: skip
        context = RunContext(params)
        network = connect_network_with_dataset(self.train_network, helper) if sink else self.train_network
        listed.notify("train", "begin", context)
        for number in range(initial_epoch, epoch):
            params.cur_epoch_num = number + 1
            listed.notify("train", "epoch_begin", context)
            network.set_train(True)
            for batch in helper:
                self._step(network, batch, helper.sink_size(), params, listed, context)
                if context.get_stop_requested():
                    break
            if evaluate is not None:
                evaluate(params)
            listed.notify("train", "epoch_end", context)
            for name in ("metrics", "eval_results"):
                params.pop(name, None)
            if context.get_stop_requested():
                break
        listed.notify("train", "end", context)

    @staticmethod
    def _step(network: Any, batch: Any, steps: int, params: Any, listed: CallbackList, context: RunContext) -> None:
        """Call the network once: for one step, or for the steps of a data sink."""
        params.cur_step_num += steps
        params.train_dataset_element = batch
        listed.notify("train", "step_begin", context)
        params.net_outputs = network(*batch)
        listed.notify("train", "step_end", context)

    def _params(self, mode: str, batches: int, callbacks: Any) -> Any:
        return InternalCallbackParam(
            mode=mode,
            batch_num=batches,
            cur_step_num=0,
            parallel_mode=get_auto_parallel_context("parallel_mode"),
            device_number=get_auto_parallel_context("device_num"),
            list_callback=callbacks,
            device_target=get_context("device_target"),
        )

    # -- evaluation and prediction

    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """Evaluate the metrics on a data set.

        Raises
        ------
        ValueError
            Without metrics.
        """
        if not self._metric_fns:
            raise _NoNetworkError(
                "For Model.eval, the model argument 'metrics' can not be None or empty, "
                "you should set the argument 'metrics' for model."
            )
        _check_methods(callbacks, "eval")
        params = self._params("eval", valid_dataset.get_dataset_size(), callbacks)
        params.network = self._network
        return self._evaluate(valid_dataset, CallbackList(callbacks), dataset_sink_mode, params)

    def _evaluate(self, valid_dataset: Any, listed: CallbackList, sink: bool, params: Any) -> dict[str, Any]:
        """Evaluate, and notify callbacks with the given parameters; between epochs these include the last loss."""
        network = self.eval_network
        params.update(valid_dataset=valid_dataset, eval_network=network)
        context = RunContext(params)
        between = "train_dataset" in params
        for metric in self._metric_fns.values():
            metric.clear()
        batches: Iterable[Any]
        if sink and get_context("device_target") != "CPU":
            batches = DatasetHelper.stepwise(valid_dataset)
            network = connect_network_with_dataset(network, batches)
        else:
            batches = valid_dataset.create_tuple_iterator()
        network.set_train(False)
        listed.notify("eval", "begin", context)
        listed.notify("eval", "epoch_begin", context)
        for batch in batches:
            params.cur_step_num += 1
            listed.notify("eval", "step_begin", context)
            params.net_outputs = outputs = network(*batch)
            listed.notify("eval", "step_end", context)
            self._update(outputs)
            if context.get_stop_requested():
                break
        listed.notify("eval", "epoch_end", context)
        params.metrics = metrics = {name: metric.eval() for name, metric in self._metric_fns.items()}
        if between:  # the loss is that of the last batch [2.10 observed]
            loss = nn.Loss()
            loss.update(outputs if self._eval_indexes is None else outputs[self._eval_indexes[0]])
            params.eval_results = {**metrics, "eval_loss": loss.eval()}
        listed.notify("eval", "end", context)
        return metrics

    def _update(self, outputs: Any) -> None:
        indices = self._eval_indexes
        chosen = outputs if indices is None else [outputs[i] for i in indices]
        for metric in self._metric_fns.values():
            if isinstance(metric, nn.Loss):
                metric.update(chosen[0])
            else:
                metric.update(*(chosen if indices is None else chosen[1:]))

    def predict(self, *predict_data: Tensor, backend: Any = None, config: Any = None) -> Any:
        """Return the result of the network for some data."""
        if backend is not None or config is not None:
            raise UnsupportedError("prediction by another back end is not emulated", where="Model.predict(backend)")
        self._predict_network.set_train(False)
        _check_input(predict_data)
        result = self._predict_network(*predict_data)
        if result is None:
            raise ScriptRuntimeError("The output data can not be None, please check your net or input data.")
        return result

    def fit(
        self,
        epoch: int,
        train_dataset: Any,
        valid_dataset: Any = None,
        valid_frequency: int = 1,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train, and evaluate between the epochs.

        Parameters
        ----------
        epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch
            As in `train`.
        valid_dataset : Dataset, optional
            The data set to evaluate on.
        valid_frequency : int or list of int
            Evaluate every `valid_frequency` epochs, or after the listed epochs. Of MindSpore's callbacks, only
            TimeMonitor is notified of the evaluation; a script's callbacks always are.
        valid_dataset_sink_mode : bool
            As in `eval`.

        Raises
        ------
        ScriptTypeError, ScriptValueError
            As in MindSpore.
        """
        if not isinstance(valid_frequency, (int, list)):
            raise ScriptTypeError(
                f"For 'Model.fit', the type of 'valid_frequency' must be a list or an integer, but got type "
                f"{type(valid_frequency)}."
            )
        if valid_dataset is not None and not self._metric_fns:
            raise ScriptValueError(
                "For 'Model.fit', if valid_dataset is not None, the model argument 'metrics' can not be"
                "None or empty, you should set the argument 'metrics' for model."
            )
        _check_methods(callbacks, "fit")
        listed = CallbackList([one for one in _listed(callbacks) if not _is_own(one) or isinstance(one, TimeMonitor)])

        def evaluate(params: Any) -> None:
            number = params.cur_epoch_num
            wanted = number % valid_frequency == 0 if isinstance(valid_frequency, int) else number in valid_frequency
            if valid_dataset is None or not wanted:
                return
            before = {name: params[name] for name in ("cur_step_num", "batch_num", "mode", "net_outputs")}
            params.update(batch_num=valid_dataset.get_dataset_size(), mode="eval", cur_step_num=0)
            self._evaluate(valid_dataset, listed, valid_dataset_sink_mode, params)
            params.update(before)

        self._train(epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, evaluate)


def _listed(callbacks: Any) -> Sequence[Any]:
    if callbacks is None:
        return []
    return callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]


def _is_own(callback: Any) -> bool:
    """Whether the class of a callback has the name of one of MindSpore's."""
    return type(callback).__name__ in own_callbacks.__all__


def _check_methods(callbacks: Any, mode: str) -> None:
    """Reject a script's callbacks with methods of the old names in `fit`, where both phases would call them."""
    for callback in _listed(callbacks):
        old = _OLD_NAMES & vars(type(callback)).keys()
        if not old or _is_own(callback):
            continue
        text = (
            f"For {type(callback).__name__} callback, {old} methods may not be supported in later version, "
            f"Use methods prefixed with 'on_train' or 'on_eval' instead when using customized callbacks."
        )
        if mode == "fit":
            raise ScriptValueError(text)
        log.warning(text)


def _check_input(values: Iterable[Any]) -> None:
    """Refuse data of `predict` that MindSpore refuses, lists and dicts among them. [observed 2.10]"""
    for value in values:
        if isinstance(value, Tensor):
            if value.size == 0:
                raise ScriptValueError("The input data can not be empty.")
        elif value is not None and not isinstance(value, (int, float, str)):
            kinds = "Tensor, None, int, float, str"
            raise ScriptTypeError(
                f"The types of input data must be in the Union({kinds}, tuple[{kinds}], list[{kinds}], "
                f"dict[{kinds}]), but got type {type(value).__name__}."
            )


def _positive(epoch: Any) -> None:
    if not isinstance(epoch, int):
        raise ScriptTypeError(f"The input value must be int, but got '{type(epoch).__name__}'")
    if isinstance(epoch, bool) or epoch <= 0:
        kind = ScriptTypeError if isinstance(epoch, bool) else ScriptValueError
        raise kind(f"The input value must be int and must > 0, but got '{epoch}' with type '{type(epoch).__name__}'.")


def _metrics(metrics: Any) -> dict[str, nn.Metric]:
    """Return metric objects by name."""
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        return dict(metrics)
    if not isinstance(metrics, set):
        raise ScriptTypeError(f"For 'get_metrics', the argument 'metrics' must be None, dict or set, but got {metrics}")
    return {name: nn.get_metric_fn(name) for name in sorted(metrics)}


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train.model", name)
