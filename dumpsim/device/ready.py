"""Priority queue of the streams whose first task can start."""

from bisect import insort
from heapq import heappop, heappush
from typing import TypeAlias

from dumpsim.device.stream import Stream

__all__ = ["Ready"]

Entry: TypeAlias = tuple[int, int, int, Stream]  # order of the stream, serial of the task, number of the device


class Ready:
    """A priority queue of streams by (time, rank, device, stream, serial).

    There is a heap of times, and for each time a bucket of entries, which is sorted when it becomes the first one.
    Ranks that do the same work start their tasks at equal times, so that the cost of a task does not depend on the
    number of ranks. An entry is valid while it is its stream's `entry`; the others are skipped.

    Attributes
    ----------
    times : list of int
        The heap; empty if no stream is ready.
    """

    __slots__ = ("_at", "_bucket", "_buckets", "_time", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        self._buckets: dict[int, list[Entry]] = {}
        self._time: int | None = None  # of the current bucket
        self._bucket: list[Entry] = []
        self._at = 0  # index of its first entry that was not taken

    def push(self, start_ns: int, stream: Stream) -> None:
        """Add a stream; its previous entry becomes invalid."""
        entry = stream.entry = (stream.order, stream.tasks[0].serial, stream.number, stream)
        bucket = self._buckets.get(start_ns)
        if bucket is None:
            self._buckets[start_ns] = [entry]
            heappush(self.times, start_ns)
        elif start_ns == self._time:
            insort(bucket, entry, self._at)
        else:
            bucket.append(entry)

    def pop(self) -> tuple[int, Stream] | None:
        """Take the first stream and the time at which its task can start; None if its entry is not valid."""
        time = self.times[0]
        if time != self._time:
            del self._bucket[: self._at]  # a bucket with an earlier time was added
            self._bucket = self._buckets[time]
            self._bucket.sort()
            self._time, self._at = time, 0
        entry = self._bucket[self._at]
        self._at += 1
        if self._at == len(self._bucket):
            heappop(self.times)
            del self._buckets[time]
            self._time, self._bucket = None, []
        stream = entry[3]
        return (time, stream) if stream.entry is entry else None
