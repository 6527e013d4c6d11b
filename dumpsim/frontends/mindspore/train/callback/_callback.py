"""Callbacks of training and evaluation."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["Callback", "CallbackList", "InternalCallbackParam", "RunContext"]


class InternalCallbackParam(dict[str, Any]):
    """What callbacks may see: keys that are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """Handed to callbacks: what is going on, and the way to stop it.

    Examples
    --------
    >>> context = RunContext(InternalCallbackParam(epoch_num=2))
    >>> context.original_args().epoch_num
    2
    """

    def __init__(self, original_args: dict[str, Any]) -> None:
        if not isinstance(original_args, dict):
            raise ScriptTypeError(f"The argument 'original_args' must be dict type, but got {type(original_args)}.")
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self) -> Any:
        """What is going on: epochs, steps, networks, outputs."""
        return self._original_args

    def request_stop(self) -> None:
        """Stop after this step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether a callback asked to stop."""
        return self._stop_requested


class Callback:
    """Base of the callbacks: a method for each event, for training, for evaluation, or (the old names) for both."""

    def __enter__(self) -> "Callback":
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def begin(self, run_context: RunContext) -> None:
        """Before the first step."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Before each epoch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """After each epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Before each step."""

    def step_end(self, run_context: RunContext) -> None:
        """After each step."""

    def end(self, run_context: RunContext) -> None:
        """After the last step."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Before the first training step."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Before each training epoch."""
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """After each training epoch."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Before each training step."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """After each training step."""
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """After the last training step."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Before the first evaluation step."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Before each evaluation."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """After each evaluation."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Before each evaluation step."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """After each evaluation step."""
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """After the last evaluation step."""
        self.end(run_context)


class CallbackList:
    """All callbacks of a run, called in their order."""

    def __init__(self, callbacks: Any) -> None:
        if callbacks is None:
            listed = []
        else:
            listed = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
        for callback in listed:
            if not isinstance(callback, Callback):
                raise ScriptTypeError(
                    "When the 'callbacks' is a list, the elements in 'callbacks' must be Callback functions, "
                    f"but got {type(callback)}."
                )
        self._callbacks = listed

    def tell(self, phase: str, event: str, run_context: RunContext) -> None:
        """``tell("train", "step_end", ...)`` calls every ``on_train_step_end``."""
        for callback in self._callbacks:
            getattr(callback, f"on_{phase}_{event}")(run_context)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train.callback._callback", name)
