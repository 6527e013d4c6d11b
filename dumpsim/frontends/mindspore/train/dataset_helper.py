"""``DatasetHelper`` and ``data_sink``: batches for a network, with or without data sinking."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import _dumping
from dumpsim.frontends.mindspore._checkparam import check_value_type
from dumpsim.frontends.mindspore._session import context_level
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common.jit_config import JitConfig
from dumpsim.frontends.mindspore.context import GRAPH_MODE, get_context
from dumpsim.frontends.mindspore.dataset.queue import DataQueue, GetNext
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.runtime.session import Session

__all__ = ["DatasetHelper", "connect_network_with_dataset", "data_sink"]


class _CallError(DumpsimError, RuntimeError):
    """The RuntimeError for a data sink where sinking is not possible."""


def _queue(dataset: Any, size: int, asked: int | None = None) -> DataQueue:
    """Return the queue of a data set; its first use compiles and runs the graph that initializes it.

    A dump that supports only sinks of one step checks the size that was asked for, not that of the queue. [seed 001]
    """
    if dataset.queue is None:
        session = Session.current()
        session.configure(target=get_context("device_target"), jit_level=context_level())
        _dumping.begin_sink((asked or size) if get_context("mode") == GRAPH_MODE else 1)
        dataset.queue = DataQueue(dataset, size)
    queue: DataQueue = dataset.queue
    return queue


class DatasetHelper:
    """An iterator over the batches of a data set, epoch by epoch.

    Without sinking, it yields the batches of an epoch. With sinking, it yields an empty batch for each call of the
    network returned by `connect_network_with_dataset`: one call runs `sink_size` steps, in PYNATIVE one step.

    Parameters
    ----------
    dataset : Dataset
    dataset_sink_mode : bool
    sink_size : int
        Steps until control returns to the host, -1 for an epoch.
    epoch_num : int

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For arguments of other types and ranges.
    RuntimeError
        For a sink in GRAPH_MODE on the CPU. [observed 2.10]
    """

    def __init__(self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1) -> None:
        if not isinstance(dataset_sink_mode, bool):
            raise ScriptTypeError(f"The input value must be a bool, but got {type(dataset_sink_mode).__name__}.")
        if isinstance(sink_size, bool) or not isinstance(sink_size, int):
            raise ScriptTypeError(f"The type of input value must be 'int', but got '{type(sink_size).__name__}'.")
        if sink_size < -1 or sink_size == 0:
            raise ScriptValueError(f"The 'sink_size' must be -1 or positive, but got sink_size {sink_size}.")
        if dataset_sink_mode and get_context("device_target") == "CPU":
            raise _CallError(
                "Currently dataset sink mode is not supported when the device target is CPU, "
                "please set dataset_sink_mode to False in Model.train()"
            )
        self._dataset = dataset
        self._sink = dataset_sink_mode
        self._size = dataset.get_dataset_size() if sink_size == -1 else sink_size
        self._calls = 1  # of the network in an epoch
        self._rows: Any = None
        if dataset_sink_mode:
            self._queue = _queue(dataset, self._size)
            if get_context("mode") != GRAPH_MODE:
                self._calls, self._size = self._size, 1
        else:
            self._rows = dataset.create_tuple_iterator(num_epochs=-1)

    @classmethod
    def stepwise(cls, dataset: Any) -> "DatasetHelper":
        """Create a sink that returns to the host after every step of an epoch, for evaluations."""
        helper = cls(dataset, True, 1)
        helper._calls = int(dataset.get_dataset_size())
        return helper

    def sink_size(self) -> int:
        """Return the number of steps until control returns to the host: 1 without sinking."""
        return int(self._size) if self._sink else 1

    def __iter__(self) -> Iterator[Any]:
        return iter([()] * self._calls) if self._sink else iter(self._rows)

    def types_shapes(self) -> tuple[list[Any], list[Any]]:
        """Return number types and shapes of the columns."""
        return self._queue.kinds() if self._sink else (self._dataset.output_types(), self._dataset.output_shapes())

    def stop_send(self) -> None:
        """Do nothing: no data is sent ahead here."""

    def release(self) -> None:
        """Do nothing: sending data takes no resources here."""

    def continue_send(self) -> None:
        """Do nothing: no data is sent ahead here."""

    def get_data_info(self) -> Any:
        """Return number types and shapes of the columns."""
        return self.types_shapes()


class _DataWrapper(Cell):
    """A network that fetches its arguments from the queue of a data set.

    It is compiled for the types and shapes of the next row; a smaller batch at the end of an epoch has its own graph.
    """

    def __init__(self, network: Any, queue: DataQueue, steps: int) -> None:
        super().__init__(auto_prefix=False, flags=network.get_flags())
        self.queue = queue
        self.steps = steps
        self.get_next = _get_next(queue)
        self.network = network
        self._get_attr_from_cell(network)

    def __call__(self) -> Any:
        output = None
        for _ in range(self.steps):
            self.get_next = _get_next(self.queue)
            self.add_flags(dataset=str(self.queue.kinds()))  # part of the key of the compiled graph
            output = super().__call__()
        return output

    def construct(self) -> Any:
        outputs = self.get_next()
        return self.network(*outputs)


def _get_next(queue: DataQueue) -> GetNext:
    types, shapes = queue.kinds()
    return GetNext(types, shapes, len(types), queue.name)


def connect_network_with_dataset(network: Any, dataset_helper: DatasetHelper) -> Any:
    """Return a cell without arguments that runs the network on the next batches of a sinking data set.

    Raises
    ------
    ScriptTypeError
        For a second argument that is not a DatasetHelper.
    RuntimeError
        For a helper that does not sink.
    ScriptValueError
        For a data set that feeds another network.
    """
    if not isinstance(dataset_helper, DatasetHelper):
        raise ScriptTypeError(
            f"the helper is of type {type(dataset_helper).__name__}", where="connect_network_with_dataset"
        )
    if not dataset_helper._sink:
        raise _CallError("The API 'connect_network_with_dataset' should be called in dataset sink mode.")
    dataset = dataset_helper._dataset
    if dataset.sunk is None:
        dataset.sunk = _DataWrapper(network, dataset_helper._queue, dataset_helper.sink_size())
    if dataset.sunk.network is not network:
        raise ScriptValueError("The dataset has been connected to other network, please check the code.")
    dataset.sunk.steps = dataset_helper.sink_size()
    return dataset.sunk


def data_sink(
    fn: Callable[..., Any],
    dataset: Any,
    sink_size: int = 1,
    jit_config: JitConfig | None = None,
    input_signature: Any = None,
) -> Callable[[], Any]:
    """Return a function without arguments that runs `fn` on the next batches of a data set.

    Parameters
    ----------
    fn : callable
        Takes a batch.
    dataset : Dataset
        Its graph is compiled and run here.
    sink_size : int
        Number of batches per call.
    jit_config : JitConfig, optional
        Compile `fn` together with the operator that fetches the batch.

    Returns
    -------
    callable
        Returns the result of `fn` for the last batch.

    Raises
    ------
    ScriptValueError
        For a size below 1, on the CPU, which has no data sink, and for a data set that is already used.
    """
    check_value_type("sink_size", sink_size, [int], "Data sink")
    if sink_size <= 0:
        raise ScriptValueError(f"The 'sink_size' must be positive, but got sink_size {sink_size}.")
    if get_context("device_target") == "CPU":
        raise ScriptValueError("Data sinking supports ascend or gpu device target, but device target is CPU.")
    if dataset.queue is not None:
        raise ScriptValueError("The dataset has been used with network.")
    if input_signature is not None:
        raise UnsupportedError("input_signature is not emulated", where="data_sink")
    queue = _queue(dataset, 1 if jit_config is None else sink_size, sink_size)
    compiled: dict[str, Callable[[], Any]] = {}

    def fetching() -> Callable[[], Any]:
        """Return `fn` on the next row; with `jit_config`, compiled for the row's types and shapes."""
        next_op = _get_next(queue)

        def sink_fun() -> Any:
            data = next_op()
            out = fn(*data)
            return out  # noqa: RET504 - the IR shows the name

        if jit_config is None:
            return sink_fun
        from dumpsim.frontends.mindspore.common.api import jit

        return compiled.setdefault(str(queue.kinds()), jit(sink_fun, jit_config=jit_config))

    @wraps(fn)
    def sink_process() -> Any:
        output = None
        for _ in range(sink_size):
            output = fetching()()
        return output

    return sink_process


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train.dataset_helper", name)
