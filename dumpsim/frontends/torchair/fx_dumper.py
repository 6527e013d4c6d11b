"""Dumps of torch.fx graphs: executed node by node with npy files, or with added nodes that save. [spec ge 1.7, 1.8]"""

import os
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from torch import fx

from dumpsim.core.errors import DumpWriteError
from dumpsim.frontends.torchair.configs.dump_config import rank_directory
from dumpsim.runtime.session import Session

__all__ = ["NpuFxDumper", "save_nodes"]


def _stamp() -> str:
    """Return the device's time as it is written in file names: UTC, 20 digits."""
    when = datetime.fromtimestamp(Session.current().clock.stamp_us() / 1e6, UTC)
    return f"{when:%Y%m%d%H%M%S%f}"


class NpuFxDumper(fx.Interpreter):
    """Runs a graph node by node, and saves inputs and outputs of the ATen operators.

    Parameters
    ----------
    module : GraphModule
    config : Options
        ``config.debug.data_dump``.
    name : str, optional
        Name of the graph's directory.
    """

    def __init__(self, module: fx.GraphModule, config: Any, name: str | None = None) -> None:
        super().__init__(module)
        self._config = config
        self._name = name or f"gm_{_stamp()}_dump"
        self._step = 0
        self._node: fx.Node | None = None
        warnings.warn(
            "When enable data dump, npu graph is executed node by node, the performance is reduced", stacklevel=2
        )

    @property
    def directory(self) -> str:
        """The directory of the current step's files."""
        return f"{rank_directory(self._config.path.value)}/{self._name}/{self._step}"

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph for one step."""
        result = super().run(*args, **kwargs)
        self._step += 1
        return result

    def run_node(self, n: fx.Node) -> Any:
        """Run a node; its files are not written if the filter excludes it."""
        chosen = n if self._config.filter is None else self._config.filter(n)
        self._node = chosen
        try:
            return super().run_node(n)
        finally:
            self._node = None

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Save the operands, call an operator, and save the results."""
        if self._node is None or not str(target).startswith("aten"):
            return super().call_function(target, args, kwargs)
        head, stamp = f"{self._node.name}-{target}", _stamp()
        for number, value in enumerate(args):
            if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
                for inner, tensor in enumerate(value):
                    self._save(f"{head}.INPUT.{number}.{inner}.{stamp}", tensor)
            else:
                self._save(f"{head}.INPUT.{number}.{stamp}", value)
        result = super().call_function(target, args, kwargs)
        for number, value in enumerate(result if isinstance(result, (list, tuple)) else [result]):
            self._save(f"{head}.OUTPUT.{number}.{stamp}", value)
        return result

    def _save(self, name: str, value: Any) -> None:
        _written(self.directory, f"{name}.npy", lambda path: np.save(path, _array(value)))


def _array(value: Any) -> Any:
    """Convert a value to an array; bfloat16 becomes float32."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    try:
        return np.array(value)
    except (TypeError, ValueError):
        return np.array(str(value))


def save_nodes(module: fx.GraphModule, config: Any) -> fx.GraphModule:
    """Add a node that saves the tensor after every node that makes one, as reduce-overhead and npugraph_ex do.

    Parameters
    ----------
    module : GraphModule
        It is changed.
    config : DataDumpConfig

    Returns
    -------
    GraphModule
        `module`.
    """
    directory = config.full_path()
    saved: dict[str, int] = {}
    for node in list(module.graph.nodes):
        if node.op in ("output", "get_attr") or "dumpsim_saves" in node.meta:
            continue  # constants of the graph are not saved [observed wheel 2.14.0]
        with module.graph.inserting_after(node):
            saver = module.graph.call_function(_saver(directory, node.name, saved), (node,))
            saver.meta["dumpsim_saves"] = node.name
    module.recompile()
    return module


def _saver(directory: str, name: str, counts: dict[str, int]) -> Callable[[Any], None]:
    """Return the function of a node that saves the value of another node if it is a tensor."""

    def save_tensor(value: Any) -> None:
        if not isinstance(value, torch.Tensor):
            return
        count = counts[name] = counts.get(name, -1) + 1
        file = f"{name}_device_{Session.current().device_id}_{count}.pt"
        _written(directory, file, lambda path: torch.save(value.detach().cpu().clone(), path))

    return save_tensor


def _written(directory: str, name: str, save: Callable[[str], object]) -> None:
    """Write a file, and create its directory if it is missing.

    Raises
    ------
    DumpWriteError
        If it cannot be written; the error names the file.
    """
    try:
        os.makedirs(directory, exist_ok=True)
        save(f"{directory}/{name}")
    except OSError as error:
        raise DumpWriteError(
            f"cannot be written: {error.strerror}", where=f"{directory}/{name}", code="DS-ARC-010"
        ) from error
