"""Numbers of threads: which are possible, and that one thread or one piece of work starts none."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.tensor import digest, layout, metrics, stats
from dumpsim.tensor.threads import thread_count


def test_from_1_to_256():
    assert [thread_count(number) for number in (1, 2, 255, 256)] == [1, 2, 255, 256]
    for wrong in (0, -1, 257, 1.0, "1", None, True, np.int64(2)):
        with pytest.raises(BadInputError) as caught:
            thread_count(wrong)
        assert str(caught.value) == (
            f"threads: {wrong!r} is not a number of threads; allowed: 1..256 (did you mean '1'?) [DS-THR-001]"
        )


LONG = np.ones(2 * stats.BLOCK, np.float32)
SHORT = LONG[:8]


def blocks(threads):
    return LONG if threads == 1 else SHORT


LARGE = np.ones((64, 64, 32, 32), np.float16)


@pytest.mark.parametrize(
    ("module", "call", "large"),
    [
        (stats, lambda n: stats.statistics(blocks(n), threads=n), lambda: stats.statistics(LONG, threads=2)),
        (
            stats,
            lambda n: stats.statistics(blocks(n)[::2], threads=n),
            lambda: stats.statistics(np.repeat(LONG, 2)[::2], threads=2),
        ),
        (
            digest,
            lambda n: digest.digest([SHORT, SHORT][n - 1 :], "md5", n),
            lambda: digest.digest([SHORT, SHORT], "md5", 2),
        ),
        (
            metrics,
            lambda n: metrics.distance(blocks(n), blocks(n), threads=n),
            lambda: metrics.distance(LONG[: metrics.BLOCK + 1], LONG[: metrics.BLOCK + 1], threads=2),
        ),
        (
            layout,
            lambda n: layout.to_device(LARGE[: 64 if n == 1 else 4], "NC1HWC0", threads=n),
            lambda: layout.to_device(LARGE, "NC1HWC0", threads=2),
        ),
    ],
    ids=["statistics", "strided", "digest", "distance", "layout"],
)
def test_nothing_is_started_for_one_thread_or_one_piece(module, call, large, monkeypatch):
    def refused(*arguments, **options):
        raise AssertionError("a thread was started")

    monkeypatch.setattr(module, "ThreadPoolExecutor", refused)
    for threads in (1, 2):
        call(threads)
    with pytest.raises(AssertionError, match="a thread was started"):
        large()


@pytest.mark.parametrize(
    ("kernel", "name", "call"),
    [
        (stats._stats, "measure", lambda: stats.statistics(LONG, threads=2)),
        (digest._digest, "many", lambda: digest.digest([SHORT, SHORT], "md5", 2)),
        (layout._kernel, "copy", lambda: layout.to_device(np.ones((64, 64, 32, 32), np.float16), "NC1HWC0", threads=2)),
    ],
    ids=["statistics", "digest", "layout"],
)
def test_an_error_in_a_thread_is_raised(kernel, name, call, monkeypatch):
    """Not only one in the thread of the caller."""
    main, run = threading.current_thread(), getattr(kernel, name)

    def fails(*arguments, **options):
        if threading.current_thread() is not main:
            raise MemoryError("in a thread")
        return run(*arguments, **options)

    module = {"measure": stats, "many": digest, "copy": layout}[name]
    own = SimpleNamespace(**{one: getattr(kernel, one) for one in dir(kernel) if not one.startswith("__")})
    setattr(own, name, fails)
    monkeypatch.setattr(module, {"measure": "_stats", "many": "_digest", "copy": "_kernel"}[name], own)
    with pytest.raises(MemoryError, match="in a thread"):
        call()
