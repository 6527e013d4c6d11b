"""Iterators over the rows of a pipeline."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dumpsim.core.errors import DumpsimError
from dumpsim.frontends.mindspore.common.tensor import Tensor

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore.dataset.engine import Dataset

__all__ = ["RowIterator"]


class _ExhaustedError(DumpsimError, RuntimeError):
    """The RuntimeError for more epochs than `num_epochs`."""


class RowIterator:
    """Iterator over the rows; each ``for`` over it is the next epoch.

    Parameters
    ----------
    dataset : Dataset
    columns : sequence of str
    num_epochs : int
        Maximal number of epochs, -1 for no limit.
    output_numpy, as_dict : bool
    """

    def __init__(
        self, dataset: "Dataset", columns: Sequence[str], *, num_epochs: int, output_numpy: bool, as_dict: bool
    ) -> None:
        self._dataset = dataset
        self._columns = list(columns)
        self._indices = [dataset.get_col_names().index(name) for name in self._columns]
        self._epochs = num_epochs
        self._numpy = output_numpy
        self._as_dict = as_dict
        self._epoch = 0
        self._rows: Iterator[Any] | None = None

    def __iter__(self) -> "RowIterator":
        self._start()
        return self

    def __next__(self) -> Any:
        if self._rows is None:
            self._start()
        row = next(self._rows, None) if self._rows is not None else None
        if row is None:
            self._rows = None
            raise StopIteration
        values = [row[i] if self._numpy else Tensor(row[i]) for i in self._indices]
        return dict(zip(self._columns, values, strict=True)) if self._as_dict else values

    def get_next(self) -> Any:
        """Return the next row."""
        return next(self)

    def _start(self) -> None:
        if self._epochs != -1 and self._epoch >= self._epochs:
            raise _ExhaustedError(f"the iterator has only {self._epochs} epochs", where="Dataset iterator")
        self._rows = self._dataset.rows(self._epoch)
        self._epoch += 1
