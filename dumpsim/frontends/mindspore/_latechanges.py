"""Warnings about dump variables that are changed after the first compile, without effect. [decisions]"""

import os
from collections.abc import Iterator, Mapping

from dumpsim.modes.environment import READ_ONCE

__all__ = ["LateChanges"]


class LateChanges:
    """Compare the environment with the values that the dump read, and report each changed variable once.

    Parameters
    ----------
    environment : mapping
        The environment that the dump read.

    Examples
    --------
    >>> import os
    >>> late = LateChanges(dict(os.environ))
    >>> os.environ["MS_DIAGNOSTIC_DATA_PATH"] = "/elsewhere"
    >>> list(late()), list(late())
    (['MS_DIAGNOSTIC_DATA_PATH was read before the first graph was compiled; changing it now has no effect'], [])
    >>> del os.environ["MS_DIAGNOSTIC_DATA_PATH"]
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._read = {name: environment.get(name) for name in READ_ONCE}

    def __call__(self) -> Iterator[str]:
        """Yield a warning for each variable that has changed since the last call."""
        for name, value in list(self._read.items()):
            if os.environ.get(name, value) != value:
                del self._read[name]
                yield f"{name} was read before the first graph was compiled; changing it now has no effect"
