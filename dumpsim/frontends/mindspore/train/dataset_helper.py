"""``DatasetHelper`` and ``data_sink``: batches for a network, with or without data sinking."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import _dumping
from dumpsim.frontends.mindspore.common.jit_config import JitConfig
from dumpsim.frontends.mindspore.context import get_context

__all__ = ["DatasetHelper", "connect_network_with_dataset", "data_sink"]


class _CallError(DumpsimError, RuntimeError):
    """A data sink where there is none."""


class DatasetHelper:
    """The batches of a data set, epoch by epoch.

    Without sinking a ``for`` over it gives the batches of an epoch. With sinking it gives one empty batch for each
    group of `sink_size` steps, as MindSpore does: the device fetches the data itself, here when `Model` asks for it.

    Parameters
    ----------
    dataset : Dataset
    dataset_sink_mode : bool
    sink_size : int
        Steps between two returns to the host, -1 for an epoch.
    epoch_num : int
    """

    def __init__(self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1) -> None:
        if not isinstance(dataset_sink_mode, bool):
            raise ScriptTypeError(f"The argument 'dataset_sink_mode' must be bool, but got {type(dataset_sink_mode)}.")
        if isinstance(sink_size, bool) or not isinstance(sink_size, int):
            raise ScriptTypeError(f"The argument 'sink_size' must be int, but got {type(sink_size)}.")
        if sink_size < -1 or sink_size == 0:
            raise ScriptValueError(f"The 'sink_size' must be -1 or positive, but got sink_size {sink_size}.")
        if dataset_sink_mode:
            if get_context("device_target") == "CPU":
                raise _CallError(
                    "Currently dataset sink mode is not supported when the device target is CPU, "
                    "please set dataset_sink_mode to False in Model.train()"
                )
            _dumping.begin_sink()
        self._dataset = dataset
        self._sink = dataset_sink_mode
        self._size = sink_size
        self._rows = dataset.create_tuple_iterator(num_epochs=-1)
        self._endless: Iterator[Any] | None = None

    def sink_size(self) -> int:
        """Steps between two returns to the host: 1 without sinking."""
        if not self._sink:
            return 1
        return int(self._dataset.get_dataset_size()) if self._size == -1 else self._size

    def __iter__(self) -> Iterator[Any]:
        if not self._sink:
            return iter(self._rows)
        groups = max(int(self._dataset.get_dataset_size()) // self.sink_size(), 1)
        return iter([()] * groups)

    def next_batches(self) -> Iterator[Any]:
        """The batches of the next group of steps, going on over the ends of epochs."""
        if self._endless is None:
            self._endless = self._forever()
        return islice(self._endless, self.sink_size())

    def _forever(self) -> Iterator[Any]:
        while True:
            count = 0
            for batch in self._rows:
                count += 1
                yield batch
            if not count:
                return

    def types_shapes(self) -> tuple[list[Any], list[Any]]:
        """Number types and shapes of the columns."""
        return self._dataset.output_types(), self._dataset.output_shapes()

    def stop_send(self) -> None:
        """Stop feeding the device: nothing runs ahead here."""

    def release(self) -> None:
        """Give back what feeding the device took: nothing."""

    def continue_send(self) -> None:
        """Go on feeding the device."""

    def get_data_info(self) -> Any:
        """Number types and shapes of the columns."""
        return self.types_shapes()


def connect_network_with_dataset(network: Any, dataset_helper: DatasetHelper) -> Any:
    """A function of no arguments that runs the network on the next batch of a sinking data set.

    Raises
    ------
    ScriptTypeError
        For a second argument that is no DatasetHelper.
    RuntimeError
        For a helper that does not sink.
    """
    if not isinstance(dataset_helper, DatasetHelper):
        raise ScriptTypeError(
            f"the helper is of type {type(dataset_helper).__name__}", where="connect_network_with_dataset"
        )
    if not dataset_helper._sink:
        raise _CallError("The API 'connect_network_with_dataset' should be called in dataset sink mode.")

    def fetched() -> Any:
        output = None
        for batch in dataset_helper.next_batches():
            output = network(*batch)
        return output

    return fetched


def data_sink(
    fn: Callable[..., Any],
    dataset: Any,
    sink_size: int = 1,
    jit_config: JitConfig | None = None,
    input_signature: Any = None,
) -> Callable[[], Any]:
    """A function of no arguments that runs `fn` on the next batches of a data set.

    Parameters
    ----------
    fn : callable
        Takes a batch.
    dataset : Dataset
    sink_size : int
        Batches of one call.
    jit_config : JitConfig, optional
        Compile `fn`.

    Returns
    -------
    callable
        Returns what `fn` returned for the last batch.

    Raises
    ------
    ScriptValueError
        For a size below 1, and on the CPU, which has no data sink.
    """
    if get_context("device_target") == "CPU":
        raise ScriptValueError("Data sinking supports ascend or gpu device target, but device target is CPU.")
    if isinstance(sink_size, bool) or not isinstance(sink_size, int) or sink_size <= 0:
        raise ScriptValueError(f"The 'sink_size' must be positive, but got sink_size {sink_size}.", where="data_sink")
    if input_signature is not None:
        raise UnsupportedError("input_signature", where="data_sink")
    function = fn
    if jit_config is not None:
        from dumpsim.frontends.mindspore.common.api import jit

        function = jit(fn, jit_config=jit_config)
    helper = DatasetHelper(dataset, True, sink_size)

    def sunk() -> Any:
        output = None
        for batch in helper.next_batches():
            output = function(*batch)
        return output

    return sunk
