"""Saves and restores the global random generators."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["restored"]


@contextmanager
def restored() -> Iterator[None]:
    """Restore the states of `random` and `numpy.random` at the end of the block.

    Examples
    --------
    >>> state = random.getstate()
    >>> with restored():
    ...     random.seed(1)
    >>> random.getstate() == state
    True
    """
    import numpy as np

    before, numpy_before = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)
