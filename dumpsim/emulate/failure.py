"""Tracebacks under `dumpsim run`: the frames of the script, without those of the emulation."""

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType

from dumpsim.core.errors import DumpsimError, public_name

__all__ = ["FULL", "install", "text_of"]

FULL = "DUMPSIM_TRACEBACK"  # the variable that asks for all frames
_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def text_of(error: BaseException) -> str:
    """Return the traceback of an error as a user needs it.

    For an error that dumpsim raises on purpose, the frames below the last one of the script are left out, and an error
    that stands for one of MindSpore's gets its name, such as ``ValueError``. Other errors are shown as Python does.

    Parameters
    ----------
    error : BaseException

    Examples
    --------
    >>> from dumpsim.core.errors import ScriptValueError
    >>> print(text_of(ScriptValueError("the axis is 3")), end="")
    ValueError: the axis is 3
    """
    shown = traceback.TracebackException.from_exception(error)
    if not isinstance(error, DumpsimError):
        return "".join(shown.format())
    own = [frame for frame in shown.stack if not frame.filename.startswith(_PACKAGE)]
    if own:
        last = max(at for at, frame in enumerate(shown.stack) if not frame.filename.startswith(_PACKAGE))
        shown.stack = traceback.StackSummary.from_list(shown.stack[: last + 1])
    text = "".join(shown.format())
    kind = type(error)
    if kind.__name__.startswith("Script"):
        text = text.replace(f"{kind.__module__}.{kind.__qualname__}", public_name(error))
    return text


def install() -> None:
    """Show uncaught errors with `text_of`, unless ``DUMPSIM_TRACEBACK=full`` asks for all frames."""
    if os.environ.get(FULL) != "full" and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _hook


def _hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, DumpsimError):
        print(text_of(error), end="", file=sys.stderr, flush=True)
    else:
        sys.__excepthook__(kind, error, trace)
