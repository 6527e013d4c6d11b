"""What is global to a process although each rank has its own: random states, environment, directory, output."""

import os
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO

__all__ = ["ProcessState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """A snapshot of the process's global state.

    Attributes
    ----------
    environment : mapping of str to str
        What `os.environ` holds.
    directory : str
        The working directory.
    python_random, numpy_random : tuple, tuple or None
        State of the global generators of `random` and `numpy.random`; None where numpy is not loaded.
    stdout, stderr : TextIO
        What `sys` holds.
    """

    environment: Mapping[str, str]
    directory: str
    python_random: Any
    numpy_random: Any
    stdout: TextIO
    stderr: TextIO

    @classmethod
    def take(cls) -> "ProcessState":
        """Return the state as it is now."""
        return cls(
            environment=dict(os.environ),
            directory=os.getcwd(),
            python_random=random.getstate(),
            numpy_random=_numpy_state(),
            stdout=sys.stdout,
            stderr=sys.stderr,
        )

    @classmethod
    def fresh(
        cls, *, environment: Mapping[str, str], directory: str, seed: int, stdout: TextIO, stderr: TextIO
    ) -> "ProcessState":
        """Return the state of a process that `dumpsim run` has just started."""
        import numpy as np  # first here: a process that asks for its rank alone does without

        return cls(
            environment=dict(environment),
            directory=directory,
            python_random=random.Random(seed).getstate(),
            numpy_random=np.random.RandomState(seed).get_state(),
            stdout=stdout,
            stderr=stderr,
        )

    def install(self) -> None:
        """Make the process's global state this one.

        Examples
        --------
        >>> before = ProcessState.take()
        >>> first = random.random()
        >>> before.install()
        >>> random.random() == first
        True
        """
        present = dict(os.environ)
        if present != self.environment:
            for name in present.keys() - self.environment.keys():
                del os.environ[name]
            for name, value in self.environment.items():
                if present.get(name) != value:
                    os.environ[name] = value
        if os.getcwd() != self.directory:
            os.chdir(self.directory)
        random.setstate(self.python_random)
        if self.numpy_random is not None:
            sys.modules["numpy"].random.set_state(self.numpy_random)
        sys.stdout, sys.stderr = self.stdout, self.stderr


def _numpy_state() -> Any:
    numpy = sys.modules.get("numpy")
    return None if numpy is None else numpy.random.get_state()
