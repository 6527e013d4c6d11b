"""``mindspore.dataset``: pipelines of rows.

A pipeline is a chain of nodes. Each produces the rows of an epoch from those of the node before it, in a fixed order:
there are no workers, and the seed (`dataset.config`) determines shuffles.
"""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import NoneType
from typing import Any

import numpy as np

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError, UnsupportedError, nearest
from dumpsim.core.generator import Mersenne, Mersenne64, shuffled
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.dataset import config
from dumpsim.frontends.mindspore.dataset.iterator import RowIterator

__all__ = ["BatchInfo", "ConcatDataset", "Dataset", "Row", "zip"]

Row = tuple["np.ndarray[Any, Any]", ...]
_INT32_MAX = 2**31 - 1


class _RowError(DumpsimError, RuntimeError):
    """The RuntimeError for a row that the pipeline cannot use."""


class Dataset:
    """A node of a pipeline.

    Parameters
    ----------
    parents : sequence of Dataset
        The nodes before it.
    columns : sequence of str
        Names of the columns of its rows.
    """

    def __init__(self, parents: "Sequence[Dataset]", columns: Sequence[str]) -> None:
        self.parents = tuple(parents)
        self._columns = list(columns)
        self.queue: Any = None  # queue of a data sink; `sunk` is the network that it feeds
        self.sunk: Any = None

    # -- methods that nodes override

    def rows(self, epoch: int) -> Iterator[Row]:
        """Iterate over the rows of an epoch."""
        raise NotImplementedError

    def get_dataset_size(self) -> int:
        """Return the number of rows of an epoch."""
        return sum(1 for _ in self.rows(0))

    # -- properties

    def get_col_names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._columns)

    def get_batch_size(self) -> int:
        """Return the number of rows in a batch, 1 without batches."""
        return self.parents[0].get_batch_size() if self.parents else 1

    def get_repeat_count(self) -> int:
        """Return the number of passes in an epoch that the last `repeat` makes, 1 without one. [2.10 observed]"""
        return self.parents[0].get_repeat_count() if self.parents else 1

    def output_types(self) -> list[Any]:
        """Return the numpy types of the columns, from the first row."""
        return [value.dtype for value in self._first()]

    def output_shapes(self, estimate: bool = False) -> list[list[int]]:
        """Return the shapes of the columns, from the first row."""
        return [list(value.shape) for value in self._first()]

    def _first(self) -> Row:
        row = next(self.rows(0), None)
        if row is None:
            raise _RowError("the pipeline produces no rows", where=type(self).__name__)
        return row

    def __len__(self) -> int:
        return self.get_dataset_size()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.create_tuple_iterator(num_epochs=1))

    # -- rows for the script

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> RowIterator:
        """Iterate over rows as dicts of Tensors (or arrays); each ``for`` over the iterator is one epoch."""
        return RowIterator(self, self._columns, num_epochs=num_epochs, output_numpy=output_numpy, as_dict=True)

    def create_tuple_iterator(
        self, columns: Any = None, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> RowIterator:
        """Iterate over rows as lists of Tensors (or arrays); each ``for`` over the iterator is one epoch."""
        wanted = self._columns if columns is None else [columns] if isinstance(columns, str) else list(columns)
        self._known(wanted)
        return RowIterator(self, wanted, num_epochs=num_epochs, output_numpy=output_numpy, as_dict=False)

    # -- methods that add a node

    def batch(
        self, batch_size: int, drop_remainder: bool = False, num_parallel_workers: int | None = None, **kwargs: Any
    ) -> "Dataset":
        """Stack rows into batches.

        Raises
        ------
        ScriptValueError
            For a size below 1.
        """
        function = kwargs.pop("per_batch_map", None)
        inputs, outputs = kwargs.pop("input_columns", None), kwargs.pop("output_columns", None)
        refuse_options("BatchDataset", kwargs, known=_WORKERS)
        if not isinstance(batch_size, int):
            raise ScriptTypeError("batch_size should either be an int or a callable.")
        _within("batch_size", batch_size, 1)
        if function is None:
            return _Batch(self, batch_size, drop_remainder)
        before = self._columns if inputs is None else _names(inputs)
        self._known(before)
        after = before if outputs is None else _names(outputs)
        return _MappedBatch(self, batch_size, drop_remainder, function, before, after)

    def concat(self, datasets: Any) -> "Dataset":
        """Append the rows of other pipelines with the same columns."""
        return ConcatDataset((self, *_others(datasets, list)))

    def __add__(self, other: "Dataset") -> "Dataset":
        return self.concat(other)

    def shuffle(self, buffer_size: int) -> "Dataset":
        """Draw rows in random order from a buffer."""
        _within("buffer_size", buffer_size, 2)
        return _Shuffle(self, buffer_size)

    def repeat(self, count: int | None = None) -> "Dataset":
        """Repeat the rows several times in one epoch."""
        times = -1 if count is None else count
        if isinstance(times, bool) or not isinstance(times, int):
            kinds = (int, NoneType)
            shown = kinds if isinstance(times, bool) else list(kinds)
            raise ScriptTypeError(f"Argument repeat with value {times} is not of type {shown}, but got {type(times)}.")
        if times == 0 or not -1 <= times <= _INT32_MAX:
            raise ScriptValueError("count should be either -1 or positive integer, range[1, INT32_MAX].")
        if times == -1:
            raise UnsupportedError("an infinite epoch is not emulated", where="Dataset.repeat(-1)")
        return _Repeat(self, times)

    def map(
        self,
        operations: Any,
        input_columns: Any = None,
        output_columns: Any = None,
        num_parallel_workers: int | None = None,
        **kwargs: Any,
    ) -> "Dataset":
        """Apply functions to columns.

        Raises
        ------
        ScriptValueError
            For an operation that cannot be called.
        ScriptTypeError
            For an unknown option.
        UnsupportedError
            For `cache` and `callbacks`.
        """
        refuse_options("MapDataset", kwargs, known=(*_WORKERS, "offload"), absent=("cache", "callbacks"))
        listed = list(operations) if isinstance(operations, (list, tuple)) else [operations]
        for operation in listed:
            if not callable(operation):
                raise ScriptValueError(
                    "Parameter operations's element of method map should be a python function or class method which "
                    f"should be callable, but got: {operation}. It doesn't need parentheses for python function "
                    "or class method."
                )
        inputs = self._columns[:1] if input_columns is None else _names(input_columns)
        self._known(inputs)
        return _Map(self, listed, inputs, inputs if output_columns is None else _names(output_columns))

    def filter(
        self, predicate: Callable[..., Any], input_columns: Any = None, num_parallel_workers: int | None = None
    ) -> "Dataset":
        """Select the rows for which a function is true."""
        inputs = self._columns if input_columns is None else _names(input_columns)
        self._known(inputs)
        return _Filter(self, predicate, inputs)

    def skip(self, count: int) -> "Dataset":
        """Skip the first rows."""
        return _Cut(self, _within("count", count, 0), None)

    def take(self, count: int = -1) -> "Dataset":
        """Select the first rows."""
        if isinstance(count, int) and count < 1 and count != -1:
            raise ScriptValueError(
                f"count should be either -1 or within the required interval of (0, {_INT32_MAX}], got {count}."
            )
        return self if count == -1 else _Cut(self, 0, _within("count", count, 1))

    def split(self, sizes: Sequence[Any], randomize: bool = True) -> "tuple[Dataset, ...]":
        """Split the rows into parts with the given numbers of rows, or with shares that add up to 1.

        Parameters
        ----------
        sizes : list of int, or of float
        randomize : bool
            Shuffle the rows first, in the same order for every epoch.

        Raises
        ------
        RuntimeError, ValueError
            For sizes that do not add up to all rows.

        Examples
        --------
        >>> from dumpsim.frontends.mindspore.dataset import NumpySlicesDataset
        >>> parts = NumpySlicesDataset([1, 2, 3, 4], ["a"]).split([0.75, 0.25])
        >>> [part.get_dataset_size() for part in parts]
        [3, 1]
        """
        counts = _shares(sizes, self.get_dataset_size())
        source = _Fixed(self) if randomize else self
        starts = [sum(counts[:at]) for at in range(len(counts))]
        return tuple(_Cut(source, start, count) for start, count in builtins.zip(starts, counts, strict=True))

    def project(self, columns: Any) -> "Dataset":
        """Select some of the columns."""
        names = _names(columns)
        self._known(names)
        return _Project(self, names)

    def rename(self, input_columns: Any, output_columns: Any) -> "Dataset":
        """Rename columns."""
        old, new = _names(input_columns), _names(output_columns)
        self._known(old)
        if len(old) != len(new):
            raise ScriptValueError("Number of column in input_columns and output_columns is not equal.")
        mapping = dict(_pairs(old, new))
        return _Project(self, self._columns, [mapping.get(name, name) for name in self._columns])

    def zip(self, datasets: Any) -> "Dataset":
        """Combine the columns of this and other pipelines."""
        return _Zip((self, *_others(datasets, tuple)))

    def _known(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._columns:
                raise ScriptValueError(f"the column {name!r} does not exist", where="columns", allowed=self._columns)


_pairs = builtins.zip
_WORKERS = ("python_multiprocessing", "max_rowsize")  # options of the real workers, which do not affect rows


def refuse_options(
    owner: str, given: Mapping[str, Any], *, known: Sequence[str] = (), absent: Sequence[str] = ()
) -> None:
    """Raise for keywords that MindSpore does not know, and for those that are set but not emulated (`absent`)."""
    for name, value in given.items():
        if name in absent:
            if value is not None:
                raise UnsupportedError(f"the option {name} is not emulated", where=owner)
        elif name not in known:
            raise ScriptTypeError(
                f"{owner}.__init__() got an unexpected keyword argument '{name}'",
                nearest=nearest(name, (*known, *absent)),
            )


def zip(datasets: Sequence[Dataset]) -> Dataset:
    """Combine the columns of several pipelines."""
    return _Zip(tuple(datasets))


def _others(datasets: Any, several: type) -> tuple[Dataset, ...]:
    """Return one pipeline, or several, as a tuple."""
    found = tuple(datasets) if isinstance(datasets, (tuple, list)) else (datasets,)
    if not all(isinstance(dataset, Dataset) for dataset in found):
        raise ScriptTypeError(
            f"Argument datasets with value {datasets} is not of type [{several}, "
            "<class 'mindspore.dataset.engine.datasets.Dataset'>], but got "
            f"{type(datasets)}."
        )
    return found


def _names(columns: Any) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def _within(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ScriptTypeError(
            f"Argument {name} with value {value} is not of type [<class 'int'>], but got {type(value)}."
        )
    if not least <= value <= _INT32_MAX:
        raise ScriptValueError(f"Input {name} is not within the required interval of [{least}, {_INT32_MAX}].")
    return value


class _Batch(Dataset):
    """Rows stacked into batches."""

    def __init__(self, parent: Dataset, size: int, drop: bool) -> None:
        super().__init__([parent], parent.get_col_names())
        self.size, self.drop = size, drop

    def rows(self, epoch: int) -> Iterator[Row]:
        source = self.parents[0].rows(epoch)
        while group := list(islice(source, self.size)):
            if len(group) < self.size and self.drop:
                return
            yield tuple(self._stacked(column, values) for column, values in _pairs(self._columns, _pairs(*group)))

    @staticmethod
    def _stacked(column: str, values: Sequence[Any]) -> Any:
        shapes = {value.shape for value in values}
        if len(shapes) > 1:
            raise _RowError(
                f"rows of different shapes {sorted(shapes)} in a batch",
                where=f"Dataset.batch, column {column!r}",
            )
        return np.stack(values)

    def get_dataset_size(self) -> int:
        whole, rest = divmod(self.parents[0].get_dataset_size(), self.size)
        return whole + (1 if rest and not self.drop else 0)

    def get_batch_size(self) -> int:
        return self.size


class BatchInfo:
    """The numbers of the epoch and the batch, for `per_batch_map` functions.

    Examples
    --------
    >>> info = BatchInfo(epoch=1, batch=2)
    >>> info.get_epoch_num(), info.get_batch_num()
    (1, 2)
    """

    def __init__(self, epoch: int, batch: int) -> None:
        self._epoch, self._batch = epoch, batch

    def get_epoch_num(self) -> int:
        """Return the number of the epoch, from 0."""
        return self._epoch

    def get_batch_num(self) -> int:
        """Return the number of the batch in its epoch, from 0."""
        return self._batch


class _MappedBatch(_Batch):
    """Groups of rows transformed by a function before they are stacked."""

    def __init__(
        self,
        parent: Dataset,
        size: int,
        drop: bool,
        function: Callable[..., Any],
        inputs: list[str],
        outputs: list[str],
    ) -> None:
        super().__init__(parent, size, drop)
        self.function, self.inputs, self.outputs = function, inputs, outputs
        self.before = self._columns
        if len(inputs) == len(outputs):
            renamed = dict(_pairs(inputs, outputs))
            self._columns = [renamed.get(name, name) for name in self.before]
        else:
            self._columns = [*outputs, *(name for name in self.before if name not in inputs)]

    def rows(self, epoch: int) -> Iterator[Row]:
        source = self.parents[0].rows(epoch)
        number = 0
        while group := list(islice(source, self.size)):
            if len(group) < self.size and self.drop:
                return
            named = {name: list(values) for name, values in _pairs(self.before, _pairs(*group))}
            made = self.function(*(named.pop(name) for name in self.inputs), BatchInfo(epoch, number))
            made = made if isinstance(made, tuple) else (made,)
            if len(made) != len(self.outputs):
                raise _RowError(
                    f"per_batch_map returned {len(made)} columns, but {len(self.outputs)} are expected",
                    where="Dataset.batch",
                )
            named |= {name: [as_array(value) for value in values] for name, values in _pairs(self.outputs, made)}
            yield tuple(self._stacked(name, named[name]) for name in self._columns)
            number += 1


class ConcatDataset(Dataset):
    """The rows of several pipelines, one after the other.

    Parameters
    ----------
    datasets : sequence of Dataset
        Pipelines with the same columns.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore.dataset import NumpySlicesDataset
    >>> joined = NumpySlicesDataset([1, 2], ["a"]) + NumpySlicesDataset([3], ["a"])
    >>> joined.get_dataset_size()
    3
    """

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        for dataset in datasets:
            if not isinstance(dataset, Dataset):
                raise ScriptTypeError(f"a value of type {type(dataset).__name__}", where="Dataset.concat")
            if dataset.get_col_names() != datasets[0].get_col_names():
                raise ScriptValueError(
                    f"the columns {dataset.get_col_names()}", where="Dataset.concat",
                    allowed=[datasets[0].get_col_names()],
                )  # fmt: skip
        super().__init__(datasets, datasets[0].get_col_names())

    def rows(self, epoch: int) -> Iterator[Row]:
        for parent in self.parents:
            yield from parent.rows(epoch)

    def get_dataset_size(self) -> int:
        return sum(parent.get_dataset_size() for parent in self.parents)


class _Shuffle(Dataset):
    """Rows in random order."""

    def __init__(self, parent: Dataset, buffer_size: int) -> None:
        super().__init__([parent], parent.get_col_names())
        self.buffer_size = buffer_size

    def rows(self, epoch: int) -> Iterator[Row]:
        source = self.parents[0].rows(epoch)
        # [source shuffle_op.cc]; one generator runs through all epochs [observed 2.10]
        generator = Mersenne64(config.get_seed())
        if epoch:
            generator.skip(epoch * self.get_dataset_size())
        buffer = list(islice(source, self.buffer_size))
        while buffer:
            index = generator.word() % len(buffer)
            yield buffer[index]
            buffer[index] = buffer[-1]
            buffer.pop()
            buffer += islice(source, 1)

    def get_dataset_size(self) -> int:
        return self.parents[0].get_dataset_size()


class _Repeat(Dataset):
    """Several passes over the rows in one epoch."""

    def __init__(self, parent: Dataset, count: int) -> None:
        super().__init__([parent], parent.get_col_names())
        self.count = count

    def rows(self, epoch: int) -> Iterator[Row]:
        for i in range(self.count):
            yield from self.parents[0].rows(epoch * self.count + i)

    def get_dataset_size(self) -> int:
        return self.parents[0].get_dataset_size() * self.count

    def get_repeat_count(self) -> int:
        return self.count


class _Map(Dataset):
    """Columns replaced by the results of functions."""

    def __init__(
        self, parent: Dataset, operations: list[Callable[..., Any]], inputs: list[str], outputs: list[str]
    ) -> None:
        before = parent.get_col_names()
        others = [name for name in before if name not in inputs]
        if inputs == outputs:
            columns = before
        elif len(inputs) == len(outputs):
            renamed = dict(_pairs(inputs, outputs))
            columns = [renamed.get(name, name) for name in before]
        else:
            columns = [*outputs, *others]
        super().__init__([parent], columns)
        self.operations, self.inputs, self.outputs = operations, inputs, outputs
        self.before = before

    def rows(self, epoch: int) -> Iterator[Row]:
        for row in self.parents[0].rows(epoch):
            named = dict(_pairs(self.before, row))
            values: tuple[Any, ...] = tuple(named.pop(name) for name in self.inputs)
            for operation in self.operations:
                made = operation(*values)
                values = made if isinstance(made, tuple) else (made,)
            if len(values) != len(self.outputs):
                raise _RowError(
                    f"{len(values)} values for the columns {self.outputs}",
                    where="Dataset.map",
                    allowed=("one per column",),
                )
            named |= {name: as_array(value) for name, value in _pairs(self.outputs, values)}
            yield tuple(named[name] for name in self._columns)

    def get_dataset_size(self) -> int:
        return self.parents[0].get_dataset_size()


class _Filter(Dataset):
    """The rows for which a function is true."""

    def __init__(self, parent: Dataset, predicate: Callable[..., Any], inputs: list[str]) -> None:
        super().__init__([parent], parent.get_col_names())
        self.predicate, self.inputs = predicate, inputs

    def rows(self, epoch: int) -> Iterator[Row]:
        indices = [self._columns.index(name) for name in self.inputs]
        return (row for row in self.parents[0].rows(epoch) if self.predicate(*(row[i] for i in indices)))


class _Cut(Dataset):
    """A range of the rows."""

    def __init__(self, parent: Dataset, skipped: int, taken: int | None) -> None:
        super().__init__([parent], parent.get_col_names())
        self.skipped, self.taken = skipped, taken

    def rows(self, epoch: int) -> Iterator[Row]:
        stop = None if self.taken is None else self.skipped + self.taken
        return islice(self.parents[0].rows(epoch), self.skipped, stop)

    def get_dataset_size(self) -> int:
        rest = max(self.parents[0].get_dataset_size() - self.skipped, 0)
        return rest if self.taken is None else min(rest, self.taken)


class _Fixed(Dataset):
    """The rows in a random order that is the same in every epoch."""

    def __init__(self, parent: Dataset) -> None:
        super().__init__([parent], parent.get_col_names())

    def rows(self, epoch: int) -> Iterator[Row]:
        rows = list(self.parents[0].rows(0))
        order = shuffled(range(len(rows)), Mersenne(config.get_seed()))
        return iter([rows[i] for i in order])

    def get_dataset_size(self) -> int:
        return self.parents[0].get_dataset_size()


def _shares(sizes: Sequence[Any], total: int) -> list[int]:
    """Return the numbers of rows of a `split`; the first part that is large enough absorbs the rounding error."""
    listed = list(sizes)
    if not listed:
        raise ScriptValueError("sizes cannot be empty.")
    if all(isinstance(size, int) and not isinstance(size, bool) for size in listed):
        if any(size <= 0 for size in listed):
            raise ScriptValueError("sizes is a list of int, but there should be no negative or zero numbers.")
        if sum(listed) != total:
            raise _RowError(f"Sum of split sizes {sum(listed)} is not equal to dataset size {total}.")
        return listed
    if not all(isinstance(size, float) for size in listed):
        raise ScriptValueError("sizes should be list of int or list of float.")
    if any(not 0 < size <= 1 for size in listed):
        raise ScriptValueError("sizes is a list of float, but there should be no numbers outside the range (0, 1].")
    if abs(sum(listed) - 1) > 1e-9:
        raise ScriptValueError("sizes is a list of float, but the percentages do not sum up to 1.")
    counts = [round(size * total) for size in listed]
    if 0 in counts:
        raise _RowError(f"Split percentage {listed[counts.index(0)]} is too small.")
    rest = total - sum(counts)
    counts[next(at for at, count in enumerate(counts) if count + rest > 0)] += rest
    return counts


class _Project(Dataset):
    """Selected and renamed columns."""

    def __init__(self, parent: Dataset, names: Sequence[str], new_names: Sequence[str] | None = None) -> None:
        super().__init__([parent], new_names or names)
        self.indices = [parent.get_col_names().index(name) for name in names]

    def rows(self, epoch: int) -> Iterator[Row]:
        return (tuple(row[i] for i in self.indices) for row in self.parents[0].rows(epoch))

    def get_dataset_size(self) -> int:
        return self.parents[0].get_dataset_size()


class _Zip(Dataset):
    """Columns of several pipelines; the shortest determines the number of rows."""

    def __init__(self, parents: tuple[Dataset, ...]) -> None:
        columns = [name for parent in parents for name in parent.get_col_names()]
        if len(set(columns)) != len(columns):
            raise ScriptValueError(f"duplicate column in {columns}", where="Dataset.zip")
        super().__init__(parents, columns)

    def rows(self, epoch: int) -> Iterator[Row]:
        for parts in _pairs(*(parent.rows(epoch) for parent in self.parents)):
            yield tuple(value for part in parts for value in part)

    def get_dataset_size(self) -> int:
        return min(parent.get_dataset_size() for parent in self.parents)


def as_array(value: Any) -> "np.ndarray[Any, Any]":
    """Convert a value of a row to an array.

    Raises
    ------
    RuntimeError
        For a value without a number type.
    """
    array = np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
    if array.dtype.kind == "O":
        raise _RowError(f"a value of type {type(value).__name__} has no number type", where="row of a dataset")
    return array


__path__ = ()  # the vendor's module has submodules


def __getattr__(name: str) -> Any:
    return vendored("mindspore.dataset.engine", name)
