"""Recording the names that functions look up, in the vendor's order; see `names`."""

import inspect
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore._capture.trace import Tracer

__all__ = ["is_library", "look_up"]

_PACKAGE = str(Path(__file__).resolve().parents[3])


def look_up(tracer: "Tracer", line: int) -> None:
    """Record the names of the current function's segment that contains a line."""
    pending = tracer.frame.mentions
    while pending and pending[0][0] < line:
        for value, is_called in pending.pop(0)[1]:
            target = inspect.unwrap(value) if isinstance(value, types.FunctionType) else None
            if is_called and (target is None or not is_library(target)):
                break
            if target is not None:
                tracer.mention(target)


def is_library(function: Callable[..., Any]) -> bool:
    """Whether a function belongs to the front end, to Python or to an installed package, and is only traced."""
    path = function.__code__.co_filename
    if path.startswith(_PACKAGE) and "examples" not in path:
        return True
    module = str(getattr(function, "__module__", "")).partition(".")[0]
    return (module in sys.stdlib_module_names and module != "__main__") or module == "numpy"
