"""The process's global state, of which each rank has its own: random states, environment, directory, output."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from dumpsim.world.twister import NumpyRandom, PythonRandom, RandomState

__all__ = ["ProcessState", "Variables"]


class Variables:
    """A snapshot of the process's environment variables.

    Ranks take turns in a fixed order, so each caches how its variables differ from those of the rank before it.

    Parameters
    ----------
    table : mapping of bytes to bytes

    Examples
    --------
    >>> own = Variables.take()
    >>> Variables({**own.table, b"MINE": b"1"}).install(own)
    >>> os.environ["MINE"], own.holds()
    ('1', False)
    >>> own.install(Variables.take())
    >>> "MINE" in os.environ, own.holds()
    (False, True)
    """

    __slots__ = ("_changes", "_present", "table")

    def __init__(self, table: Mapping[bytes, bytes]) -> None:
        self.table = table
        self._present: Variables | None = None  # the snapshot to which `_changes` apply
        self._changes: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def take(cls) -> "Variables":
        """Return a snapshot of the current variables."""
        return cls(dict(_table()))

    def holds(self) -> bool:
        """Whether the process has exactly these variables."""
        return self.table == _table()

    def install(self, present: "Variables") -> None:
        """Set the process's environment, which is `present`, to this snapshot."""
        if present is self:
            return
        if present is not self._present:
            gone = [(os.fsdecode(name), None) for name in present.table.keys() - self.table.keys()]
            new = [
                (os.fsdecode(name), os.fsdecode(value)) for name, value in self.table.items() - present.table.items()
            ]
            self._present, self._changes = present, (*gone, *new)
        for name, value in self._changes:
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """A snapshot of the process's global state.

    Ranks take turns often and change little of it. So a snapshot shares unchanged parts with the one before, and only
    differences are installed.

    Attributes
    ----------
    variables : Variables
        The environment.
    directory : str
        The working directory.
    python_random, numpy_random : RandomState or None
        State of the global generators of `random` and `numpy.random`; None if numpy is not loaded.
    stdout, stderr : TextIO
        ``sys.stdout`` and ``sys.stderr``.
    """

    variables: Variables
    directory: str
    python_random: RandomState
    numpy_random: RandomState | None
    stdout: TextIO
    stderr: TextIO

    @property
    def environment(self) -> dict[str, str]:
        """The variables as `os.environ` shows them."""
        return {os.fsdecode(name): os.fsdecode(value) for name, value in self.variables.table.items()}

    @classmethod
    def take(cls, before: "ProcessState | None" = None) -> "ProcessState":
        """Return the current state.

        Parameters
        ----------
        before : ProcessState, optional
            The state that was installed or taken last.
        """
        if before is None:
            variables, python_before, numpy_before = Variables.take(), None, None
        else:
            variables, python_before, numpy_before = before.variables, before.python_random, before.numpy_random
            if not variables.holds():
                variables = Variables.take()
        return cls(
            variables=variables,
            directory=os.getcwd(),
            python_random=PythonRandom.take(python_before),
            numpy_random=NumpyRandom.take(numpy_before) if "numpy" in sys.modules else None,
            stdout=sys.stdout,
            stderr=sys.stderr,
        )

    @classmethod
    def fresh(
        cls, *, environment: Mapping[str, str], directory: str, seed: int, stdout: TextIO, stderr: TextIO
    ) -> "ProcessState":
        """Return the state of a process just started by `dumpsim run`."""
        return cls(
            variables=Variables({os.fsencode(name): os.fsencode(value) for name, value in environment.items()}),
            directory=directory,
            python_random=PythonRandom.seeded(seed),
            numpy_random=NumpyRandom.seeded(seed),
            stdout=stdout,
            stderr=stderr,
        )

    def install(self, present: "ProcessState | None" = None) -> None:
        """Set the process's global state to this snapshot.

        Parameters
        ----------
        present : ProcessState, optional
            The process's state, if the caller has just taken it.

        Examples
        --------
        >>> import random
        >>> before = ProcessState.take()
        >>> first = random.random()
        >>> before.install()
        >>> random.random() == first
        True
        """
        present = ProcessState.take() if present is None else present
        self.variables.install(present.variables)
        if present.directory != self.directory:
            os.chdir(self.directory)
        PythonRandom.install(self.python_random, present.python_random)
        if self.numpy_random is not None:
            NumpyRandom.install(self.numpy_random, present.numpy_random)
        sys.stdout, sys.stderr = self.stdout, self.stderr


def _table() -> Mapping[bytes, bytes]:
    """Return the bytes of `os.environ`, from its private table if possible: decoding takes a hundred times as long."""
    table: Mapping[bytes, bytes] | None = getattr(os.environ, "_data", None)
    if table is None:  # a script has put another mapping there
        return {os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
    return table
