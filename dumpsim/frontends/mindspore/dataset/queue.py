"""The queue between a data set and the device of a data sink."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any
from weakref import WeakValueDictionary

from dumpsim.core.abstract import NoneType
from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.dataset.engine import Dataset, Row
from dumpsim.frontends.mindspore.ops.primitive import Primitive
from dumpsim.graph.graph import Graph, Node
from dumpsim.runtime.session import Session
from dumpsim.world.context import current

__all__ = ["DataQueue", "GetNext"]


class _Queues(WeakValueDictionary[str, "DataQueue"]):
    """The queues of the rank, by the `shared_name` of GetNext."""


def _queues() -> _Queues:
    return current().get(_Queues)


class DataQueue:
    """The rows of a data set, epoch after epoch, for ``GetNext``.

    The constructor compiles and runs the graph of the data set, which has its own graph id.

    Parameters
    ----------
    dataset : Dataset
    size : int
        Steps until control returns to the host.
    """

    def __init__(self, dataset: Dataset, size: int) -> None:
        from dumpsim.frontends.mindspore._capture.compile import run_data_graph

        self.dataset = dataset
        self.name = f"dataset_{Session.current().ids.next_graph}"  # the real name is a random uuid
        self._endless = self._forever()
        self._next: Row | None = None
        types, shapes = self.kinds()
        node = Node(
            op_type="InitDataSetQueue",
            operands=[],
            abstract=NoneType(),
            attrs={
                "queue_name": self.name,
                "size": size,
                "batch_size": dataset.get_batch_size(),
                "types": tuple(types),
                "shapes": tuple(shapes),
                "input_indexes": (),
            },
        )
        run_data_graph(Graph(name="dataset", output=node, trail=[node]))
        _queues()[self.name] = self

    def _forever(self) -> Iterator[Row]:
        epoch = 0
        while True:
            count = 0
            for row in self.dataset.rows(epoch):
                count += 1
                yield row
            if not count:
                return
            epoch += 1

    def peek(self) -> Row:
        """Return the next row without consuming it."""
        if self._next is None:
            self._next = next(self._endless, None)
        if self._next is None:
            raise ScriptValueError("There is no valid data in dataset, please check dataset file firstly.")
        return self._next

    def rows(self) -> Iterator[Row]:
        """Iterate over the rows, starting at the next one."""
        if self._next is None:
            return self._endless
        row, self._next = self._next, None
        return chain([row], self._endless)

    def kinds(self) -> tuple[list[Any], list[tuple[int, ...]]]:
        """Return number types and shapes of the next row."""
        row = self.peek()
        return [mstype.type_of(value.dtype.type) for value in row], [tuple(value.shape) for value in row]


class GetNext(Primitive):
    """The next row of a data sink's queue.

    Parameters
    ----------
    types : list of number types
    shapes : list of tuple of int
    output_num : int
    shared_name : str
        Name of the queue.

    Raises
    ------
    ScriptValueError
        For lists of different lengths.
    """

    def __init__(
        self, types: Sequence[Any], shapes: Sequence[Sequence[int]], output_num: int, shared_name: str
    ) -> None:
        super().__init__("GetNext")
        if len(types) != len(shapes):
            raise ScriptValueError(
                f"For 'GetNext', the 'types length' must be equal to 'shapes length', but got 'types length': "
                f"{len(types)} and 'shapes length': {len(shapes)}."
            )
        self._given = {
            "types": tuple(types),
            "shapes": tuple(tuple(shape) for shape in shapes),
            "output_num": output_num,
            "shared_name": shared_name,
        }

    def __call__(self) -> tuple[Any, ...]:
        name = self._given["shared_name"]
        queues = _queues()
        queue = queues.get(name)
        if queue is None:
            raise ScriptValueError(f"unknown data queue {name!r}", where="GetNext", allowed=sorted(queues))
        row: tuple[Any, ...] = self._run([], {**self._given, "channel": queue})
        return row
