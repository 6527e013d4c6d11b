"""``mindspore.dataset.samplers``: choice and order of the rows of a source in each epoch.

The orders are those of the real system with the same seed. [source minddata/dataset/engine/datasetops/source/sampler]
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.core.generator import Mersenne, shuffled
from dumpsim.frontends.mindspore.dataset import config

__all__ = [
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "SubsetSampler",
    "WeightedRandomSampler",
    "shard_indices",
]


class _Order:
    """Rows that are shuffled again in every epoch, starting from the order of the previous epoch.

    Parameters
    ----------
    step : int
        Increment of the seed after each epoch.
    """

    def __init__(self, step: int = 1) -> None:
        self._step = step
        self._last: tuple[Any, int, list[int]] | None = None

    def of(self, rows: Sequence[int], seed: int, epoch: int) -> list[int]:
        """Return the order of an epoch."""
        key = (tuple(rows), seed)
        done, order = -1, list(rows)
        if self._last is not None and self._last[0] == key and self._last[1] <= epoch:
            _, done, order = self._last
        for i in range(done + 1, epoch + 1):
            order = shuffled(order, Mersenne(seed + i * self._step))
        self._last = (key, epoch, order)
        return order


def _count(value: Any) -> int | None:
    """Check a number of rows; return None for all rows."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ScriptTypeError(f"num_samples must be integer but was: {value}.")
    if value < 0:
        raise ScriptValueError(f"num_samples should be a positive integer value, but got num_samples: {value}.")
    return value or None  # 0 means all


class Sampler:
    """Base of the samplers: an iterable of row numbers.

    Parameters
    ----------
    num_samples : int, optional
        Maximal number of rows.

    Examples
    --------
    >>> class Last(Sampler):
    ...     def __iter__(self):
    ...         return iter([self.dataset_size - 1])
    >>> Last().numbers(5, 0)
    [4]
    """

    def __init__(self, num_samples: int | None = None) -> None:
        self.num_samples = _count(num_samples)
        self.dataset_size = 0

    def __iter__(self) -> Any:
        raise NotImplementedError

    def numbers(self, count: int, epoch: int) -> Sequence[int]:
        """Return the row numbers of an epoch, out of `count` rows."""
        self.dataset_size = count
        return self._cut(np.asarray([int(number) for number in self], np.int64))

    def _cut(self, numbers: Any) -> Sequence[int]:
        listed: list[int] = numbers[: self.num_samples].tolist()
        return listed


class SequentialSampler(Sampler):
    """The rows in order.

    Examples
    --------
    >>> SequentialSampler(1, 2).numbers(5, 0)
    [1, 2]
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        if start_index is not None and (isinstance(start_index, bool) or not isinstance(start_index, int)):
            raise ScriptTypeError(f"start_index must be integer but was: {start_index}.")
        if start_index is not None and start_index < 0:
            raise ScriptValueError(f"start_index should not be negative, but got start_index: {start_index}.")
        self.start_index = start_index or 0

    def numbers(self, count: int, epoch: int) -> Sequence[int]:
        return self._cut(np.arange(self.start_index, count))


class RandomSampler(Sampler):
    """The rows in random order, drawn from the seed of `dataset.config`.

    Parameters
    ----------
    replacement : bool
        Whether a row may occur several times.
    num_samples : int, optional

    Examples
    --------
    >>> sorted(RandomSampler().numbers(3, 0))
    [0, 1, 2]
    """

    def __init__(self, replacement: bool = False, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        if not isinstance(replacement, bool):
            raise ScriptTypeError(f"replacement must be a boolean value but was: {replacement}.")
        self.replacement = replacement
        self._order = _Order()

    def numbers(self, count: int, epoch: int) -> Sequence[int]:
        if not self.replacement:
            return self._cut(np.asarray(self._order.of(range(count), config.get_seed(), epoch)))
        generator = Mersenne(config.get_seed() + epoch)
        return [generator.below(count) for _ in range(min(self.num_samples or count, count))]


class SubsetSampler(Sampler):
    """Some of the rows, in the given order.

    Examples
    --------
    >>> SubsetSampler([3, 1]).numbers(5, 0)
    [3, 1]
    """

    def __init__(self, indices: Any, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.indices = [indices] if isinstance(indices, int) else list(indices)
        for at, index in enumerate(self.indices):
            if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
                raise ScriptTypeError(
                    f"SubsetSampler: Type of indices element must be int, but got list[{at}]: {index}, type: "
                    f"{type(index)}."
                )

    def numbers(self, count: int, epoch: int) -> Sequence[int]:
        for index in self.indices:
            if not 0 <= index < count:
                raise ScriptRuntimeError(f"index {index} is out of bounds [0, {count})", where=type(self).__name__)
        return self._cut(np.asarray(self.indices, np.int64))


class SubsetRandomSampler(SubsetSampler):
    """Some of the rows in random order; with `num_samples`, the first of them. [2.10 observed]

    Examples
    --------
    >>> sorted(SubsetRandomSampler([3, 1]).numbers(5, 0))
    [1, 3]
    """

    def __init__(self, indices: Any, num_samples: int | None = None) -> None:
        super().__init__(indices, num_samples)
        self._order = _Order(step=0)

    def numbers(self, count: int, epoch: int) -> Sequence[int]:
        return self._order.of(super().numbers(count, epoch), config.get_seed(), epoch)


class WeightedRandomSampler(Sampler):
    """Rows drawn at random with given weights.

    Parameters
    ----------
    weights : sequence of float
    num_samples : int, optional
        Number of rows that are drawn; all rows of the source if None, which is also the upper bound.
    replacement : bool

    Examples
    --------
    >>> WeightedRandomSampler([0, 1], 3).numbers(4, 0)
    [1, 1, 1]
    """

    def __init__(self, weights: Any, num_samples: int | None = None, replacement: bool = True) -> None:
        super().__init__(num_samples)
        self.weights = np.asarray(weights, np.float64)
        if self.weights.ndim != 1 or (self.weights < 0).any() or not self.weights.any():
            raise ScriptValueError("weights must be at least 0, and not all 0", where="WeightedRandomSampler")
        self.replacement = replacement

    def numbers(self, count: int, epoch: int) -> Sequence[int]:
        if self.weights.size > count:
            raise ScriptValueError(f"{self.weights.size} weights for {count} rows", where="WeightedRandomSampler")
        size = min(self.num_samples or count, count)  # [2.10 observed]
        generator = Mersenne(config.get_seed())  # the same rows in every epoch [observed 2.10]
        if not self.replacement:
            if size > self.weights.size:
                raise ScriptRuntimeError(
                    f"{size} rows without replacement from {self.weights.size} weights", where="WeightedRandomSampler"
                )
            drawn = np.array([generator.real() for _ in range(self.weights.size)])
            with np.errstate(divide="ignore", invalid="ignore"):
                return self._cut(np.argsort(-np.log(1 - drawn) / self.weights, kind="stable")[:size])
        shares = np.cumsum(self.weights / self.weights.sum())
        shares[-1] = 1
        return [int(np.searchsorted(shares, generator.real())) for _ in range(size)]


class DistributedSampler(Sampler):
    """Every `num_shards`-th row, for one of several ranks.

    Parameters
    ----------
    num_shards, shard_id : int
    shuffle : bool
        Shuffle the rows: the same order on all ranks, a different one in every epoch.
    num_samples : int, optional
    offset : int
        The rank that gets the first row. With -1 it is rank 0, and rows are repeated so that all ranks have the same
        number; otherwise no row is repeated. [observed 2.10]

    Examples
    --------
    >>> DistributedSampler(2, 1, shuffle=False).numbers(5, 0)
    [1, 3, 0]
    >>> DistributedSampler(2, 1, shuffle=False, offset=0).numbers(5, 0)
    [1, 3]
    """

    def __init__(
        self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None, offset: int = -1
    ) -> None:
        super().__init__(num_samples)
        for name, value in (("num_shards", num_shards), ("shard_id", shard_id), ("offset", offset)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ScriptTypeError(f"{name} must be integer but was: {value}.")
        if not 0 <= shard_id < num_shards:
            raise ScriptValueError(f"shard_id {shard_id} is not in [0, {num_shards})", where="DistributedSampler")
        if not isinstance(shuffle, bool):
            raise ScriptTypeError(f"shuffle must be a boolean value or valid shuffle mode but was: {shuffle}.")
        if not -1 <= offset < num_shards:
            raise ScriptValueError(f"offset should be less than num_shards, but got offset: {offset}.")
        self.num_shards, self.shard_id, self.shuffled, self.offset = num_shards, shard_id, shuffle, offset
        self._order = _Order()

    def numbers(self, count: int, epoch: int) -> Sequence[int]:
        order = np.arange(count)
        if self.shuffled:  # the sampler increments its seed before the first epoch [observed 2.10]
            order = np.asarray(self._order.of(range(count), config.get_seed() + 1, epoch))
        if self.offset >= 0:
            return self._cut(order[(self.shard_id - self.offset) % self.num_shards :: self.num_shards])
        return self._cut(order[shard_indices(count, self.num_shards, self.shard_id)])


def shard_indices(count: int, shards: int, shard: int) -> "np.ndarray[Any, Any]":
    """Return the row numbers of a shard; the first rows are repeated so that all shards have the same number.

    Examples
    --------
    >>> [shard_indices(7, 2, shard).tolist() for shard in range(2)]
    [[0, 2, 4, 6], [1, 3, 5, 0]]
    """
    each = -(-count // shards)
    return (np.arange(each) * shards + shard) % max(count, 1)
