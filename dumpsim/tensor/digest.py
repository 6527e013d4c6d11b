"""MD5 and SHA1 digests of many tensors at a time. [spec mindspore 4.2]"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dumpsim._ext import digest as _digest
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.tensor.simd import level_number
from dumpsim.tensor.slab import raw, slabs
from dumpsim.tensor.threads import thread_count

__all__ = ["digest"]

ALGORITHMS = {"md5": _digest.MD5, "sha1": _digest.SHA1}
SLAB_BYTES = 1 << 20  # bytes of a non-contiguous array that are copied at a time


def digest(arrays: Sequence[ArrayLike], algorithm: str, threads: int = 1, *, _level: str | None = None) -> list[str]:
    """Compute the digest of each array's bytes, in C order and in the array's own byte order.

    Parameters
    ----------
    arrays : sequence of array_like
        Arrays of any shape, strides and type without Python objects. The bytes of one array cannot be split; many
        arrays in one call are fast, because they are hashed in parallel by SIMD instructions.
    algorithm : {"md5", "sha1"}
        Kind of digest.
    threads : int
        Number of threads that share the arrays.

    Returns
    -------
    list of str
        Lower-case hex digests, in the order of `arrays`.

    Raises
    ------
    BadInputError
        For an unknown algorithm, a single array, arrays of Python objects, or an invalid number of threads.

    Examples
    --------
    >>> digest([np.zeros(3, np.uint8), np.frombuffer(b"abc", np.uint8)], "md5")
    ['693e9af84d3dfcc71e640e005bdc5e2e', '900150983cd24fb0d6963f7d28e17f72']
    """
    if algorithm not in ALGORITHMS:
        raise BadInputError(
            f"unknown digest {algorithm!r}",
            where="algorithm",
            allowed=ALGORITHMS,
            nearest=nearest(algorithm, ALGORITHMS),
            code="DS-DIG-001",
        )
    threads = thread_count(threads)
    if isinstance(arrays, str | bytes | bytearray | memoryview | np.ndarray):
        raise BadInputError(
            "a single array",
            where="arrays",
            allowed=("a sequence of arrays",),
            nearest="[array]",
        )
    code, level = ALGORITHMS[algorithm], level_number(_level)
    values = [np.asarray(a) for a in arrays]
    for i, value in enumerate(values):
        if value.dtype.hasobject:
            raise BadInputError("an array of Python objects has no digest", where=f"arrays[{i}]")
    found = [""] * len(values)
    stop = Event()

    def together(indices: Sequence[int]) -> None:
        hexes = _digest.many([raw(values[i]) for i in indices], code, level, stop)
        for i, text in zip(indices, hexes, strict=True):
            found[i] = text

    def alone(index: int) -> None:
        found[index] = _strided(values[index], code, level, stop)

    tasks: list[Callable[[], None]] = [partial(alone, i) for i, v in enumerate(values) if not v.flags.c_contiguous]
    tasks += [
        partial(together, group)
        for group in _groups([(v.nbytes, i) for i, v in enumerate(values) if v.flags.c_contiguous], threads)
    ]
    if threads == 1 or len(tasks) < 2:
        for task in tasks:
            task()
    else:
        with ThreadPoolExecutor(min(threads, len(tasks)), thread_name_prefix="dumpsim-digest") as pool:
            try:
                for done in [pool.submit(task) for task in tasks]:
                    done.result()
            except BaseException:  # Ctrl-C, too: stop the threads, since the pool waits for them
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
    return found


def _groups(sizes: list[tuple[int, int]], count: int) -> list[list[int]]:
    """Split indices into at most `count` groups of about the same number of bytes, with the longest first in each."""
    groups: list[list[int]] = [[] for _ in range(min(count, len(sizes)))]
    load = [0] * len(groups)
    for size, index in sorted(sizes, key=lambda pair: (-pair[0], pair[1])):
        lightest = load.index(min(load))
        groups[lightest].append(index)
        load[lightest] += size + 64
    return groups


def _strided(array: NDArray[Any], code: int, level: int, stop: Event) -> str:
    stream = _digest.Stream(code, level)
    for piece in slabs(array, array.dtype, max(1, SLAB_BYTES // array.itemsize), 0, array.size):
        stream.update(raw(piece))
        if stop.is_set():
            break
    return stream.hexdigest()
