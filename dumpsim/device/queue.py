"""Queues from kernels to the host, for TensorDump and Print.

A kernel posts a copy of its tensors and returns, so that the device continues; a receiver on the host gets the
messages in order of arrival, when the device is synchronised or the queue is full. [spec parallel 1.7]
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dumpsim.core.errors import BadInputError, DeviceError

__all__ = ["SLICE_SIZE", "WAIT_TIME", "HostQueue", "HostQueues", "Message"]

SLICE_SIZE = "MS_DUMP_SLICE_SIZE"
WAIT_TIME = "MS_DUMP_WAIT_TIME"
_LIMITS = {SLICE_SIZE: 2048, WAIT_TIME: 600}  # megabytes, seconds; 0 is the default of both [spec mindspore 1.5]
_DEPTH = 1024  # pieces in a full queue
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a kernel to the host.

    Attributes
    ----------
    items : tuple
        Texts, numbers and tensors in the order of the operator's operands; tensors are copies.
    source : str
        ``graph`` for kernels, ``host`` for PYNATIVE calls without a kernel.
    attrs : mapping
        Attributes of the operator.
    """

    items: tuple[Any, ...]
    source: str = "graph"
    attrs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A queued tensor, in slices."""

    parts: tuple[npt.NDArray[Any], ...]
    shape: tuple[int, ...]

    def whole(self) -> npt.NDArray[Any]:
        joined = self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)
        return joined.reshape(self.shape)


class HostQueue:
    """One queue from kernels to the host.

    Parameters
    ----------
    name : str
        The vendor's name, ``ms_tensor_dump``.
    slice_bytes : int
        Tensors larger than this are sent in slices; 0 sends them whole.
    wait_ns : int
        How long a kernel waits if the queue is full.
    wait : callable
        Called with the nanoseconds to wait.

    Examples
    --------
    >>> queue, seen = HostQueue("ms_tensor_dump"), []
    >>> queue.receiver = seen.append
    >>> queue.post(Message(items=("a", np.ones(2)), attrs={}))
    >>> len(seen)
    0
    >>> queue.deliver()
    >>> seen[0].items[0]
    'a'
    """

    def __init__(
        self,
        name: str,
        *,
        slice_bytes: int = 0,
        wait_ns: int = 0,
        wait: Callable[[int], object] = lambda nanoseconds: None,
    ) -> None:
        self.name = name
        self.receiver: Callable[[Message], object] | None = None
        self._slice_bytes = slice_bytes
        self._wait_ns = wait_ns
        self._wait = wait
        self._waiting: deque[tuple[Message, int]] = deque()
        self._pieces = 0

    def post(self, message: Message) -> None:
        """Append a message; its tensors are copied.

        Raises
        ------
        DeviceError
            If the queue is still full after the time to wait.
        """
        items = tuple(self._cut(item) if isinstance(item, np.ndarray) else item for item in message.items)
        count = sum(len(item.parts) for item in items if isinstance(item, _Pieces)) or 1
        if self._pieces and self._pieces + count > _DEPTH:
            self.deliver()
            if self._pieces:
                self._wait(self._wait_ns)
                raise DeviceError(
                    f"queue {self.name!r} is full: {self._pieces} pieces of tensors wait and no receiver takes them",
                    where=f"{WAIT_TIME}={self._wait_ns // _SECOND}",
                )
        self._waiting.append((Message(items=items, source=message.source, attrs=message.attrs), count))
        self._pieces += count

    def deliver(self) -> None:
        """Deliver all queued messages, in order of arrival."""
        while self._waiting and self.receiver is not None:
            message, count = self._waiting.popleft()
            self._pieces -= count
            items = tuple(item.whole() if isinstance(item, _Pieces) else item for item in message.items)
            self.receiver(Message(items=items, source=message.source, attrs=message.attrs))

    def _cut(self, tensor: npt.NDArray[Any]) -> _Pieces:
        flat = np.array(tensor, order="C", copy=True).reshape(-1)
        step = self._slice_bytes // tensor.itemsize  # 0 for a tensor in one piece
        parts = np.split(flat, range(step, flat.size, step)) if step else [flat]
        return _Pieces(tuple(parts), tensor.shape)


class HostQueues:
    """The queues of a rank, by name; they outlive its device.

    Parameters
    ----------
    environment : mapping
        ``MS_DUMP_SLICE_SIZE`` and ``MS_DUMP_WAIT_TIME`` are read from it when the first queue is created.
    wait : callable
        Called with the nanoseconds to wait.

    Examples
    --------
    >>> queues = HostQueues({"MS_DUMP_SLICE_SIZE": "4096"})
    >>> queues["ms_tensor_dump"]
    Traceback (most recent call last):
    ...
    dumpsim.core.errors.BadInputError: MS_DUMP_SLICE_SIZE: '4096' is not a whole number in the range; \
allowed: 0 to 2048
    """

    def __init__(
        self, environment: Mapping[str, str], wait: Callable[[int], object] = lambda nanoseconds: None
    ) -> None:
        self._environment = environment
        self._wait = wait
        self._made: dict[str, HostQueue] = {}

    def __getitem__(self, name: str) -> HostQueue:
        """Return the queue of that name.

        Raises
        ------
        BadInputError
            If a variable is not an integer in its range.
        """
        if name not in self._made:
            self._made[name] = HostQueue(
                name,
                slice_bytes=self._number(SLICE_SIZE) << 20,
                wait_ns=self._number(WAIT_TIME) * _SECOND,
                wait=self._wait,
            )
        return self._made[name]

    def deliver(self) -> None:
        """Deliver all queued messages."""
        for queue in self._made.values():
            queue.deliver()

    def _number(self, variable: str) -> int:
        text = self._environment.get(variable, "") or "0"
        if not text.isascii() or not text.isdigit() or int(text) > _LIMITS[variable]:
            raise BadInputError(
                f"{text!r} is not a whole number in the range", where=variable, allowed=[f"0 to {_LIMITS[variable]}"]
            )
        return int(text)
