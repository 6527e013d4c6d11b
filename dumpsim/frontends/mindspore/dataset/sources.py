"""Sources of rows: arrays in memory, and functions or classes of the script."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore.dataset.engine import Dataset, Row, as_array, refuse_options
from dumpsim.frontends.mindspore.dataset.samplers import (
    DistributedSampler,
    RandomSampler,
    Sampler,
    SubsetSampler,
    shard_indices,
)

__all__ = ["GeneratorDataset", "NumpySlicesDataset", "Source"]


class Source(Dataset):
    """Base of the sources: numbered rows of one shard, in order, shuffled or chosen by a sampler."""

    def __init__(
        self, columns: Sequence[str], *, shuffle: bool, num_samples: int | None, num_shards: int | None,
        shard_id: int | None, sampler: Any, shuffle_given: bool,
    ) -> None:  # fmt: skip
        if sampler is not None and (shuffle_given or num_shards is not None or num_samples is not None):
            raise ScriptValueError(
                f"Conflicting arguments during sampler assignments. num_samples: {num_samples}, num_shards: "
                f"{num_shards}, shard_id: {shard_id}, shuffle: {shuffle if shuffle_given else None}."
            )
        for name, value in (("num_shards", num_shards), ("shard_id", shard_id)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise ScriptTypeError(
                    f"Argument {name} with value {value} is not of type [<class 'int'>], but got {type(value)}."
                )
        if (num_shards is None) != (shard_id is None):
            raise ScriptValueError("num_shards and shard_id need to be passed in together.")
        if num_shards is not None and shard_id is not None:
            if num_shards < 1:
                raise ScriptValueError("Input num_shards is not within the required interval of [1, 2147483647].")
            if shard_id >= num_shards:
                raise ScriptValueError("shard_id should be less than num_shards.")
            if shard_id < 0:
                raise ScriptValueError(
                    f"shard_id {shard_id} is not within the required interval of [0, {num_shards - 1}]."
                )
        super().__init__([], columns)
        self.shuffled = shuffle
        num_samples = num_samples or None  # 0 is all rows [2.10 observed]
        self.num_samples = num_samples
        self.shards = num_shards or 1
        self.shard = shard_id or 0
        self.sampler = _sampler(sampler)
        self._shuffling: Sampler | None = None
        if shuffle and num_shards is not None and shard_id is not None:
            self._shuffling = DistributedSampler(num_shards, shard_id, num_samples=num_samples)
        elif shuffle:  # a part of the rows is drawn with replacement [wheel dataset/engine/samplers.py]
            self._shuffling = RandomSampler(num_samples is not None, num_samples)

    def row(self, number: int) -> Row:
        """Return one row."""
        raise NotImplementedError

    def count(self) -> int:
        """Return the number of all rows, before sharding and sampling."""
        raise NotImplementedError

    def rows(self, epoch: int) -> Iterator[Row]:
        if self.sampler is not None:
            for number in self.sampler.numbers(self.count(), epoch):
                yield self.row(number)
            return
        if self._shuffling is not None:
            chosen: Sequence[int] = self._shuffling.numbers(self.count(), epoch)
        else:
            chosen = range(self.count())
            if self.shards > 1:
                chosen = shard_indices(len(chosen), self.shards, self.shard).tolist()
        for number in chosen[: self.num_samples]:
            yield self.row(number)

    def get_dataset_size(self) -> int:
        if self.sampler is not None:
            return len(self.sampler.numbers(self.count(), 0))
        per_shard = -(-self.count() // self.shards)
        return per_shard if self.num_samples is None else min(per_shard, self.num_samples)


def _sampler(sampler: Any) -> Sampler | None:
    """Return the sampler for a sampler or for a list of row numbers."""
    if sampler is None or isinstance(sampler, Sampler):
        return sampler
    if not hasattr(sampler, "__iter__"):
        raise ScriptTypeError("sampler should be either iterable or from mindspore.dataset.samplers.")
    return SubsetSampler([int(number) for number in sampler])


class NumpySlicesDataset(Source):
    """Rows from the first axis of arrays.

    Parameters
    ----------
    data : array, list, tuple of them (one per column) or dict of them
    column_names : list of str, optional
        If None, the keys of the dict, or ``column_0`` and so on.
    num_samples : int, optional
    shuffle : bool, optional
        Shuffle; None means True, as in MindSpore.
    num_shards, shard_id : int, optional

    Examples
    --------
    >>> rows = NumpySlicesDataset(([1, 2], [3.0, 4.0]), ["a", "b"], shuffle=False)
    >>> [row["a"].item() for row in rows.create_dict_iterator(num_epochs=1)]
    [1, 2]
    """

    def __init__(
        self,
        data: Any,
        column_names: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        if isinstance(data, dict):
            names, columns = list(data), list(data.values())
        elif isinstance(data, tuple):
            names, columns = [f"column_{number}" for number in range(len(data))], list(data)
        else:
            names, columns = ["column_0"], [data]
        if column_names is not None:
            given = [column_names] if isinstance(column_names, str) else list(column_names)
            if len(given) != len(columns):
                raise ScriptValueError(f"Num of input column names is {len(given)}, but required is {len(columns)}.")
            names = given
        self.arrays = [as_array(column) for column in columns]
        if len({len(array) for array in self.arrays}) > 1:
            raise ScriptValueError("Data length in each column is not equal.")
        super().__init__(
            names, shuffle=shuffle is not False, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id,
            sampler=sampler, shuffle_given=shuffle is not None,
        )  # fmt: skip

    def row(self, number: int) -> Row:
        return tuple(np.asarray(array[number]) for array in self.arrays)

    def count(self) -> int:
        return len(self.arrays[0])


class GeneratorDataset(Source):
    """Rows of a generator function, an iterable or a class with ``__getitem__`` and ``__len__``.

    Parameters
    ----------
    source : callable, iterable or object
    column_names : str or list of str
    column_types : list of number types, optional
        Types that rows must have. [2.10 observed]
    schema, batch_sampler, collate_fn : None
        Other values are not emulated.
    num_samples : int, optional
    shuffle : bool, optional
        Shuffle sources with ``__getitem__``; None means True, as in MindSpore.
    num_shards, shard_id : int, optional
    """

    def __init__(
        self,
        source: Any,
        column_names: Any = None,
        column_types: Any = None,
        schema: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: Any = None,
        batch_sampler: Any = None,
        collate_fn: Any = None,
    ) -> None:
        absent = {"schema": schema, "batch_sampler": batch_sampler, "collate_fn": collate_fn}
        refuse_options("GeneratorDataset", absent, absent=tuple(absent))
        if column_names is None:
            raise ScriptValueError("Neither columns_names nor schema are provided.")
        names = [column_names] if isinstance(column_names, str) else list(column_names)
        self.indexable = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self.indexable and not callable(source) and not hasattr(source, "__iter__"):
            raise ScriptTypeError(
                "Input `source` function of GeneratorDataset should be callable, iterable or random accessible, "
                "commonly it should implement one of the method like yield, __getitem__ or __next__(__iter__)."
            )
        if shuffle and not self.indexable:
            raise ScriptValueError(
                "shuffle is not supported if the input source does not have attribute '__getitem__'."
            )
        if sampler is not None and not self.indexable:
            raise ScriptValueError("sampler is not supported if source does not have attribute '__getitem__'.")
        if num_shards is not None and not self.indexable:
            raise ScriptValueError("num_shards is not supported if source does not have attribute '__getitem__'.")
        self.source = source
        self.kinds = None if column_types is None else [np.dtype(kind.numpy) for kind in column_types]
        super().__init__(
            names, shuffle=self.indexable and shuffle is not False, num_samples=num_samples, num_shards=num_shards,
            shard_id=shard_id, sampler=sampler, shuffle_given=shuffle is not None,
        )  # fmt: skip

    def _checked(self, made: Any) -> Row:
        values = made if isinstance(made, tuple) else (made,)
        if len(values) != len(self._columns):
            raise ScriptRuntimeError(
                f"Invalid data, the number of columns of a row is {len(values)}, but {len(self._columns)} are "
                "expected.",
                where="GeneratorDataset",
            )
        arrays = tuple(as_array(value) for value in values)
        if self.kinds is not None and [array.dtype for array in arrays] != self.kinds:
            raise ScriptRuntimeError(
                f"Invalid data, the number types of a row are {[array.dtype.name for array in arrays]}, but "
                f"{[kind.name for kind in self.kinds]} are expected.",
                where="GeneratorDataset",
            )
        return arrays

    def row(self, number: int) -> Row:
        return self._checked(self.source[number])

    def rows(self, epoch: int) -> Iterator[Row]:
        if self.indexable:
            yield from super().rows(epoch)
            return
        made = self.source() if callable(self.source) else self.source
        for row in islice(made, self.num_samples):
            yield self._checked(row)

    def count(self) -> int:
        return len(self.source)

    def get_dataset_size(self) -> int:
        return super().get_dataset_size() if self.indexable else sum(1 for _ in self.rows(0))
