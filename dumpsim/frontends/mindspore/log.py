"""``mindspore.log``: log lines on stderr in MindSpore's format. [spec observed 1.11]"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["critical", "debug", "error", "get_level", "info", "vendor_warning", "warning"]

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_DEFAULT = 2


def get_level() -> str:
    """Return the lowest level that is printed, as a number of ``GLOG_v``.

    Examples
    --------
    >>> get_level() in {"0", "1", "2", "3", "4"}
    True
    """
    value = os.environ.get("GLOG_v", "")  # noqa: SIM112 - the vendor's spelling
    return value if value in {"0", "1", "2", "3", "4"} else str(_DEFAULT)


def _line(level: int, source: str, message: str) -> str:
    now = time.time()
    stamp = time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime(now))
    thread = threading.get_ident()
    return (
        f"[{_LEVELS[level]}] ME({os.getpid()}:{thread},MainProcess):"
        f"{stamp}.{int(now * 1000) % 1000:03d}.000 [{source}] {message}"
    )


def _write(level: int, message: Any, args: tuple[Any, ...]) -> None:
    if level < int(get_level()):
        return
    frame = sys._getframe(2)
    path = Path(frame.f_code.co_filename)
    parts = path.parts[path.parts.index("mindspore") :] if "mindspore" in path.parts else (path.name,)
    text = str(message) % args if args else str(message)
    print(_line(level, f"{'/'.join(parts)}:{frame.f_lineno}", text), file=sys.stderr, flush=True)


def debug(msg: Any, *args: Any) -> None:
    """Log a message with level DEBUG."""
    _write(0, msg, args)


def info(msg: Any, *args: Any) -> None:
    """Log a message with level INFO."""
    _write(1, msg, args)


def warning(msg: Any, *args: Any) -> None:
    """Log a message with level WARNING."""
    _write(2, msg, args)


def error(msg: Any, *args: Any) -> None:
    """Log a message with level ERROR."""
    _write(3, msg, args)


def critical(msg: Any, *args: Any) -> None:
    """Log a message with level CRITICAL."""
    _write(4, msg, args)


def vendor_warning(source: str, function: str, message: str) -> None:
    """Log a warning in the format of MindSpore's C++ side: ``[file.cc:62] Function] message``."""
    if int(get_level()) <= 2:
        print(_line(2, source, f"{function}] {message}"), file=sys.stderr, flush=True)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.log", name)
