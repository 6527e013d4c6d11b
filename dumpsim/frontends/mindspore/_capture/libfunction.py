"""Functions of the vendor's library that are also called by the library itself and by Python's operators.

``x + y`` calls the function ``add`` of `ops`, which is parsed once per compile, for its first caller: a cell of the
script with ``+`` or ``ops.add``, or another function of the library. Its nodes keep the scope of that first call.
[spec vendor 3.1; source ops/composite/multitype_ops of the wheel]
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from dumpsim.frontends.mindspore._capture import values
from dumpsim.frontends.mindspore._current import capturing

__all__ = ["after_tests", "calling", "parsed_once", "tested"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def parsed_once(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function to open a new frame for every caller during a capture."""

    @wraps(function)
    def entered(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        tracer = capturing()
        if tracer is None or tracer.frame.function is function:
            return function(*args, **kwargs)
        with tracer.entering_operator(function, name=function.__name__):
            return function(*args, **kwargs)

    return entered


def after_tests(count: int) -> None:
    """Note that what follows in a function of the library comes after tests of its arguments that hold.

    To the vendor, each such test is two functions: its branch, and what follows it. [spec vendor 3.5; observed 2.10:
    01_type_inference of the losses]
    """
    tracer = capturing()
    for _ in range(count if tracer is not None else 0):
        assert tracer is not None
        depth = tracer.calls.enter("branch")
        tracer.calls.leave_branch(depth, [], fixed=True)


@contextmanager
def calling(name: str) -> Iterator[None]:
    """Record what the body computes as a call of a function of the library."""
    tracer = capturing()
    with nullcontext() if tracer is None else tracer.calls.calling(name):
        yield


@contextmanager
def tested(given: list[Any]) -> Iterator[None]:
    """Record the side of a test in a library function; the code after it is a function that the caller calls.

    Parameters
    ----------
    given : list
        Filled by the body with the tensors that the side assigns to variables.
    """
    tracer = capturing()
    if tracer is None:
        yield
        return
    depth = tracer.calls.enter("branch")
    yield
    symbols = [tensor._symbol for tensor in values.tensors_in(given) if tensor._symbol is not None]
    tracer.calls.leave_branch(depth, symbols, fixed=False)
