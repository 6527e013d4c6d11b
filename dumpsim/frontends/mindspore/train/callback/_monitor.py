"""Callbacks that print: ``LossMonitor`` and ``TimeMonitor``."""

import time
from typing import Any

import numpy as np

from dumpsim.core.errors import DumpsimError
from dumpsim.frontends.mindspore._checkparam import check_non_negative_int, check_positive_int
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.train.callback._callback import Callback, RunContext

__all__ = ["LossMonitor", "TimeMonitor"]


class _BadLossError(DumpsimError, ValueError):
    """The ValueError for a loss that is NaN or infinite."""


def _loss_of(outputs: Any) -> Any:
    """Return the loss from the outputs of a step."""
    if isinstance(outputs, (tuple, list)) and outputs and isinstance(outputs[0], Tensor):
        outputs = outputs[0]
    if isinstance(outputs, Tensor):
        return float(np.mean(outputs.asnumpy()))
    return outputs


class LossMonitor(Callback):
    """Print the loss every few steps: ``epoch: 1 step: 2, loss is 0.5``.

    Parameters
    ----------
    per_print_times : int
        Steps between two lines; 0 prints none.

    Raises
    ------
    ValueError
        If the loss is NaN or infinite.
    """

    def __init__(self, per_print_times: int = 1) -> None:
        self._per_print_times = check_non_negative_int(per_print_times)
        self._last_print_time = 0

    def step_end(self, run_context: RunContext) -> None:
        """Print the loss of the step if it is due."""
        params = run_context.original_args()
        loss = _loss_of(params.net_outputs)
        step = (params.cur_step_num - 1) % params.batch_num + 1
        if isinstance(loss, float) and not np.isfinite(loss):
            raise _BadLossError(
                f"Invalid loss, terminate training. Epoch {params.cur_epoch_num}, step {step}: loss is {loss}."
            )
        if params.cur_step_num <= self._last_print_time:
            self._last_print_time = 0
        if self._per_print_times and params.cur_step_num - self._last_print_time >= self._per_print_times:
            self._last_print_time = params.cur_step_num
            print(f"epoch: {params.cur_epoch_num} step: {step}, loss is {loss}", flush=True)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Print the metrics of the evaluation between epochs."""
        params = run_context.original_args()
        metrics = params.get("metrics")
        if metrics:
            print(f"Eval result: epoch {params.cur_epoch_num}, metrics: {metrics}", flush=True)


class TimeMonitor(Callback):
    """Print the time of each epoch, and the mean time of its steps.

    Parameters
    ----------
    data_size : int, optional
        Steps of an epoch where the run does not say it.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        self.data_size = data_size
        self._start = time.perf_counter()

    def epoch_begin(self, run_context: RunContext) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def epoch_end(self, run_context: RunContext) -> None:
        """Print the times."""
        params = run_context.original_args()
        elapsed = (time.perf_counter() - self._start) * 1000
        steps = check_positive_int(params.get("batch_num") or self.data_size)
        mode = str(params.get("mode", "train")).title()
        print(f"{mode} epoch time: {elapsed:5.3f} ms, per step time: {elapsed / steps:5.3f} ms", flush=True)
