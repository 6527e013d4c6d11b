"""``ModelCheckpoint``: periodic checkpoints."""

from pathlib import Path
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._checkparam import check_bool, check_non_negative_int
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.train.callback._callback import Callback, RunContext

__all__ = ["CheckpointConfig", "ModelCheckpoint"]


class CheckpointConfig:
    """Settings of checkpoints: how often they are written, and how many are kept.

    Parameters
    ----------
    save_checkpoint_steps : int
    keep_checkpoint_max : int
    """

    def __init__(
        self, save_checkpoint_steps: int = 1, save_checkpoint_seconds: int = 0, keep_checkpoint_max: int = 5,
        **options: Any,
    ) -> None:  # fmt: skip
        if save_checkpoint_seconds:
            raise UnsupportedError(
                "checkpoints by time are not emulated", where="CheckpointConfig(save_checkpoint_seconds)"
            )
        if any(value not in (None, True, False, 0, "AES-GCM", "ckpt") for value in options.values()):
            raise UnsupportedError(f"the settings {sorted(options)} are not emulated", where="CheckpointConfig")
        check_non_negative_int(save_checkpoint_steps)
        check_non_negative_int(keep_checkpoint_max)
        check_bool(options.get("integrated_save", True))
        if save_checkpoint_steps < 1 or keep_checkpoint_max < 1:
            raise UnsupportedError(
                "checkpoints by time or in unlimited number are not emulated", where="CheckpointConfig"
            )
        self.save_checkpoint_steps = save_checkpoint_steps
        self.keep_checkpoint_max = keep_checkpoint_max


class ModelCheckpoint(Callback):
    """Write ``{prefix}-{epoch}_{step}.ckpt`` into a directory.

    Parameters
    ----------
    prefix : str
    directory : str, optional
        The current directory if None.
    config : CheckpointConfig, optional
    """

    def __init__(
        self, prefix: str = "CKP", directory: str | None = None, config: CheckpointConfig | None = None
    ) -> None:
        if not isinstance(prefix, str) or "/" in prefix:
            raise ScriptValueError(
                "For 'ModelCheckpoint', the argument 'prefix' for checkpoint file name is invalid, it must be "
                f"callable or string that does not contain '/', but got {prefix}."
            )
        if config is not None and not isinstance(config, CheckpointConfig):
            raise ScriptTypeError(
                "For 'ModelCheckpoint', the type of argument 'config' should be 'CheckpointConfig', but got "
                f"{type(config)}."
            )
        self._prefix = prefix
        self._directory = Path(directory or ".")
        self._config = config or CheckpointConfig()
        self._written: list[Path] = []

    @property
    def latest_ckpt_file_name(self) -> str:
        """The newest checkpoint, "" before the first."""
        return str(self._written[-1]) if self._written else ""

    def step_end(self, run_context: RunContext) -> None:
        """Write a checkpoint if it is due."""
        params = run_context.original_args()
        if params.cur_step_num % self._config.save_checkpoint_steps == 0:
            self._write(params)

    def end(self, run_context: RunContext) -> None:
        """Write the last checkpoint."""
        self._write(run_context.original_args())

    def _write(self, params: Any) -> None:
        from dumpsim.frontends.mindspore.train.serialization import save_checkpoint

        step = (params.cur_step_num - 1) % params.batch_num + 1
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{self._prefix}-{params.cur_epoch_num}_{step}.ckpt"
        if path in self._written:
            return
        save_checkpoint(params.train_network, str(path))
        self._written.append(path)
        while len(self._written) > self._config.keep_checkpoint_max:
            self._written.pop(0).unlink(missing_ok=True)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train.callback._checkpoint", name)
