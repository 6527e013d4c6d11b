"""Handles of asynchronous collectives, and shared argument checks."""

from collections.abc import Callable
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._capture.dispatch import finish
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = [
    "CommHandle",
    "Work",
    "check_all_tensors",
    "check_async",
    "check_group",
    "check_int",
    "check_reduction",
    "check_same_dtype",
    "check_tensor",
    "even_sizes",
    "numel",
]


class Work:
    """A launched collective; the first `wait` waits for it and stores its results."""

    __slots__ = ("_done", "_store", "_wait")

    def __init__(self, wait: Callable[[], None], store: Callable[[], None] | None = None) -> None:
        self._wait, self._store, self._done = wait, store, False

    def wait(self) -> None:
        """Wait for the collective."""
        if not self._done:
            self._done = True
            self._wait()
            if self._store is not None:
                self._store()


class CommHandle:
    """Handle of an asynchronous collective: its results may be used after `wait`.

    Parameters
    ----------
    handle : object with a method ``wait``, optional
        None if there is nothing to wait for.
    exec_sync : bool
        Wait for the device as well.

    Examples
    --------
    >>> CommHandle().wait()
    >>> CommHandle()
    CommHandle(handle=None)
    """

    def __init__(self, handle: Any = None, exec_sync: bool = False) -> None:
        self.handle = handle
        self.exec_sync = exec_sync

    def wait(self) -> None:
        """Wait until the collective is done."""
        if self.handle is not None:
            self.handle.wait()
        if self.exec_sync:
            finish()

    def __repr__(self) -> str:
        return f"CommHandle(handle={self.handle})"


def check_tensor(value: Any, function: str, what: str = "input") -> None:
    """Raise for a value that is not a Tensor, with MindSpore's message."""
    if not isinstance(value, Tensor):
        raise ScriptTypeError(f"For {function}, the {what} tensor must be tensor")


def check_int(value: Any, function: str, name: str) -> None:
    """Raise for a rank that is not an int."""
    if not isinstance(value, int):
        raise ScriptTypeError(f"For {function}, the {name} must be int")


def check_group(group: Any, text: str = "The argument 'group' must be type of string") -> None:
    """Raise for a group that is not a string."""
    if not isinstance(group, str):
        raise ScriptTypeError(f"{text}, but got 'group' type : {type(group)}.")


def check_async(async_op: Any) -> None:
    """Raise for an `async_op` that is not a bool."""
    if not isinstance(async_op, bool):
        raise ScriptTypeError(f"The argument 'async_op' must be a bool, but got {type(async_op)}.")


def check_reduction(op: Any, function: str, allowed: tuple[str, ...]) -> None:
    """Raise for a reduction that the function does not support."""
    if not isinstance(op, str):
        raise ScriptTypeError(f"For {function}, the input op type must be str")
    if op not in allowed:
        raise ScriptTypeError(f"For {function}, the input op value must be one of {', '.join(allowed)}")


def check_all_tensors(tensors: Any, others: tuple[type, ...] = ()) -> None:
    """Raise for a value that is not a list of Tensors (or `others`)."""
    if not isinstance(tensors, (list, tuple)):
        raise ScriptTypeError(f"Expected list or tuple, but got {type(tensors)}.")
    for tensor in tensors:
        if not isinstance(tensor, (Tensor, *others)):
            kind = "tensor or tuple" if others else "tensor"
            raise ScriptTypeError(f"Expected {kind}, but got {type(tensor)}" + ("." if others else ""))


def check_same_dtype(tensors: Any) -> None:
    """Raise for Tensors of different number types."""
    kinds = [tensor.dtype for tensor in tensors if isinstance(tensor, Tensor)]
    for kind in kinds[1:]:
        if kind != kinds[0]:
            raise ScriptTypeError(f"all_to_all input dtype must be the same, but got {kinds[0]} and {kind}.")


def numel(shape: Any) -> int:
    """Return the number of elements of a shape.

    Examples
    --------
    >>> numel((2, 3)), numel(())
    (6, 1)
    """
    total = 1
    for extent in shape:
        total *= extent
    return total


def even_sizes(sizes: Any, extent: int, ranks: int, what: str) -> tuple[int, ...]:
    """Return the given sizes of the parts of an axis, or equal sizes.

    Examples
    --------
    >>> even_sizes(None, 6, 2, "input"), even_sizes([1, 5], 6, 2, "input")
    ((3, 3), (1, 5))
    """
    if sizes:
        return tuple(sizes)
    if extent % ranks:
        raise ScriptValueError(f"{what} shape at dim 0 must be divided by world_size, but got {extent} and {ranks}.")
    return (extent // ranks,) * ranks
