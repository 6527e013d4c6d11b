"""Callbacks of training and evaluation."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["Callback", "CallbackList", "InternalCallbackParam", "RunContext"]


class InternalCallbackParam(dict[str, Any]):
    """The state of a run for callbacks; keys are also attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """The argument of callbacks: the state of the run, and a way to stop it.

    Examples
    --------
    >>> context = RunContext(InternalCallbackParam(epoch_num=2))
    >>> context.original_args().epoch_num
    2
    """

    def __init__(self, original_args: dict[str, Any]) -> None:
        if not isinstance(original_args, dict):
            raise ScriptTypeError(
                f"The argument 'original_args' of RunContext should be dict type, but got {type(original_args)}."
            )
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self) -> Any:
        """Return the state of the run: epochs, steps, networks, outputs."""
        return self._original_args

    def request_stop(self) -> None:
        """Request a stop after this step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Return whether a callback has requested a stop."""
        return self._stop_requested


class Callback:
    """Base of the callbacks, with methods for each event of training, of evaluation, or (the old names) of both."""

    def __enter__(self) -> "Callback":
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def begin(self, run_context: RunContext) -> None:
        """Called before the first step."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Called before each epoch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """Called after each epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Called before each step."""

    def step_end(self, run_context: RunContext) -> None:
        """Called after each step."""

    def end(self, run_context: RunContext) -> None:
        """Called after the last step."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Called before the first training step."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Called before each training epoch."""
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Called after each training epoch."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Called before each training step."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Called after each training step."""
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Called after the last training step."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Called before the first evaluation step."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Called before each evaluation."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Called after each evaluation."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Called before each evaluation step."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Called after each evaluation step."""
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Called after the last evaluation step."""
        self.end(run_context)


class CallbackList:
    """All callbacks of a run, called in order."""

    def __init__(self, callbacks: Any) -> None:
        if not isinstance(callbacks, (list, tuple, Callback, type(None))):
            raise ScriptTypeError("The 'callbacks' is not a Callback or a list of Callback.")
        listed = [callbacks] if isinstance(callbacks, Callback) else list(callbacks or ())
        for callback in listed:
            if not isinstance(callback, Callback):
                raise ScriptTypeError(
                    "When the 'callbacks' is a list, the elements in 'callbacks' must be Callback functions, "
                    f"but got {type(callback)}."
                )
        self._callbacks = listed

    def notify(self, phase: str, event: str, run_context: RunContext) -> None:
        """Call the method of an event: ``notify("train", "step_end", ...)`` calls every ``on_train_step_end``."""
        for callback in self._callbacks:
            getattr(callback, f"on_{phase}_{event}")(run_context)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train.callback._callback", name)
