"""Functions of the vendor's library that its own code and the operators of Python call too.

``x + y`` is the function ``add`` of `ops`, which is parsed once for a compile, by its first caller: a cell of the
script with ``+`` or ``ops.add``, or another function of the library. Its nodes keep the scope of that first call.
[spec vendor 3.1; source ops/composite/multitype_ops of the wheel]
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from dumpsim.frontends.mindspore._current import capturing

__all__ = ["parsed_once"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def parsed_once(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorator: while a graph is captured, the function has a frame of its own for every caller."""

    @wraps(function)
    def entered(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        tracer = capturing()
        if tracer is None or tracer.frame.function is function:
            return function(*args, **kwargs)
        with tracer.entering_operator(function, name=function.__name__):
            return function(*args, **kwargs)

    return entered
