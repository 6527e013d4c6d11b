"""``mindspore.parallel.auto_parallel.AutoParallel``: a network with its own parallel settings."""

from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.parallel._context import (
    check_dataset_strategy,
    set_auto_parallel_context,
    setting,
)

__all__ = ["AutoParallel"]

_MODES = MappingProxyType(
    {
        "semi_auto": ("semi_auto_parallel", "recursive_programming"),
        "sharding_propagation": ("auto_parallel", "sharding_propagation"),
        "recursive_programming": ("auto_parallel", "recursive_programming"),
    }
)


class AutoParallel(Cell):
    """A network that is compiled with its own parallel settings.

    Parameters
    ----------
    network : Cell
    parallel_mode : str
        ``semi_auto``, ``sharding_propagation``, or ``recursive_programming``, which raises during compilation.

    Raises
    ------
    ScriptValueError
        For another mode.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore.nn import ReLU
    >>> AutoParallel(ReLU(), "semi")
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptValueError: the argument 'parallel_mode' must be one of ['semi_auto', \
'sharding_propagation', 'recursive_programming'], but got the value : semi .
    """

    def __init__(self, network: Cell, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        if parallel_mode not in _MODES:
            raise ScriptValueError(
                f"the argument 'parallel_mode' must be one of {list(_MODES)}, but got the value : {parallel_mode} ."
            )
        mode, search = _MODES[parallel_mode]
        self._parallel_settings: dict[str, Any] = {
            "parallel_mode": mode,
            "search_mode": search,
            "enable_alltoall": True,
        }

    def dataset_strategy(self, config: Any) -> None:
        """Set how the arguments are sliced: ``full_batch``, ``data_parallel`` or one row for each argument."""
        check_dataset_strategy(config, "For 'AutoParallel.dataset_strategy', the argument 'config'")
        self._parallel_settings["dataset_strategy"] = config

    def hsdp(self, shard_size: int = -1, threshold: int = 64, optimizer_level: str = "level1") -> None:
        """Slice weights and optimizer states of at least `threshold` KB over the devices that share the same part."""
        if not isinstance(threshold, int) or threshold < 0:
            raise ScriptValueError(f"threshold must be a positive integer or 0, but got {threshold}.")
        if shard_size != -1 or optimizer_level != "level1":
            raise UnsupportedError(
                "another shard_size or optimizer_level is not emulated",
                where="AutoParallel.hsdp",
                allowed=(-1, "level1"),
            )
        self._parallel_settings["enable_parallel_optimizer"] = True
        self._parallel_settings["parallel_optimizer_config"] = {"parallel_optimizer_threshold": threshold}

    def pipeline(self, stages: int = 1, *args: Any, **kwargs: Any) -> None:
        """Set the number of pipeline stages; more than one raises during compilation."""
        self._parallel_settings["pipeline_stages"] = stages

    def enable_gradients_mean(self) -> None:
        """Average the replicas' gradients."""
        self._parallel_settings["gradients_mean"] = True

    def disable_loss_repeated_mean(self) -> None:
        """Do not divide the gradient of the loss by the number of its copies."""
        self._parallel_settings["loss_repeated_mean"] = False

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Call the network."""
        return self.network(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = {name: setting(name) for name in self._parallel_settings}
        set_auto_parallel_context(**self._parallel_settings)
        try:
            return super().__call__(*args, **kwargs)
        finally:
            set_auto_parallel_context(**{name: value for name, value in before.items() if value != []})


def __getattr__(name: str) -> Any:
    return vendored("mindspore.parallel.auto_parallel", name)
